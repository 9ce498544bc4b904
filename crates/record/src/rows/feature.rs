//! Rows of `netwren support`: what this kernel and these privileges allow.

use crate::table::fields;
use crate::{Field, Show, Table, Value};

/// The table of `netwren support`.
pub enum Features {}

/// Something that netwren can do, and whether it works here.
#[derive(Clone, Debug)]
pub struct Feature {
    /// What it is.
    pub feature: String,
    /// True if it works with this kernel and these privileges.
    pub works: bool,
    /// How, or why not.
    pub words: String,
}

type F = Field<Features>;

impl Table for Features {
    type Row<'b> = Feature;
    const NAME: &'static str = "support";
    const FIELDS: &'static [F] = fields! { F:
        /// What netwren can do.
        feature: Text = own(|row| Value::Bytes(row.feature.as_bytes())), show Show::Default;
        /// True if it works with this kernel and these privileges.
        works: Bool = own(|row| Value::Bool(row.works)), show Show::Default;
        /// How it works, or why it does not.
        words: Text = own(|row| Value::Bytes(row.words.as_bytes())), show Show::Default;
    };
}
