//! Rows of `netwren support`: what this kernel and these privileges allow.

use crate::{Field, Kind, Show, Table, Value};

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
    const FIELDS: &'static [F] = &[
        F::own("feature", Kind::Text, |row| Value::Bytes(row.feature.as_bytes()))
            .doc("What netwren can do.")
            .show(Show::Default),
        F::own("works", Kind::Bool, |row| Value::Bool(row.works))
            .doc("True if it works with this kernel and these privileges.")
            .show(Show::Default),
        F::own("words", Kind::Text, |row| Value::Bytes(row.words.as_bytes()))
            .doc("How it works, or why it does not.")
            .show(Show::Default),
    ];
}
