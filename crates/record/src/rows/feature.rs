//! Rows of `netwren support`: what this kernel and these privileges allow.

use crate::named_enum::named_enum;
use crate::table::fields;
use crate::{Field, Show, Table, Value};

named_enum! {
    /// The state of a feature on this host.
    pub enum FeatureState {
        /// It works.
        Works => "works",
        /// This process lacks a right for it.
        RightMissing => "right missing",
        /// The kernel was built without it, or is too old.
        OptionMissing => "kernel option missing",
        /// A module of the kernel has it, which is not loaded.
        NotLoaded => "module not loaded",
        /// This netwren was built without it.
        NotBuilt => "not built in",
        /// It was tried and failed for another reason.
        Fails => "fails",
    }
}

/// The table of `netwren support`.
pub enum Features {}

/// Something that netwren can do by one interface, and whether it works here.
#[derive(Clone, Debug)]
pub struct Feature {
    /// What it is.
    pub feature: String,
    /// The kernel's interface; empty if there is one only.
    pub backend: &'static str,
    /// Whether it works with this kernel and these privileges, or what is missing.
    pub state: FeatureState,
    /// How, or why not.
    pub words: String,
    /// What would make it work; empty if it works, or nothing would.
    pub remedy: String,
}

type F = Field<Features>;

impl Table for Features {
    type Row<'b> = Feature;
    const NAME: &'static str = "support";
    const FIELDS: &'static [F] = fields! { F:
        /// What netwren can do.
        feature: Text = own(|row| Value::Bytes(row.feature.as_bytes())), show Show::Default;
        /// The kernel's interface that it is done by; null if there is one only.
        backend: Text = own(|row| Value::nonempty(row.backend.as_bytes())), show Show::Default;
        /// Whether it works with this kernel and these privileges, or what is missing.
        state: Name(FeatureState::NAMES) = own(|row| Value::Name(row.state.name())), show Show::Default;
        /// True if it works.
        works: Bool = own(|row| Value::Bool(row.state == FeatureState::Works)), show Show::Wide;
        /// How it works, or why it does not.
        words: Text = own(|row| Value::Bytes(row.words.as_bytes())), show Show::Default;
        /// What would make it work; null if it works, or if nothing would.
        remedy: Text = own(|row| Value::nonempty(row.remedy.as_bytes())), show Show::Default;
    };
}
