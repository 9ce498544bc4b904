//! Rows of `netwren support`: the features that this kernel and these privileges allow.

use crate::named_enum::named_enum;
use crate::table::stored_once;
use crate::{Field, Show, Table, Value};

named_enum! {
    /// The state of a feature on this host.
    pub enum FeatureState {
        /// It works.
        Works => "works",
        /// This process lacks a required privilege.
        RightMissing => "right missing",
        /// The kernel was built without it, or is too old.
        OptionMissing => "kernel option missing",
        /// It is in a kernel module that is not loaded.
        NotLoaded => "module not loaded",
        /// This netwren was built without it.
        NotBuilt => "not built in",
        /// It failed for another reason when tried.
        Fails => "fails",
    }
}

/// The table of `netwren support`.
pub enum Features {}

/// A feature of netwren with one backend, and whether it works here.
#[derive(Clone, Debug)]
pub struct Feature {
    /// The feature.
    pub feature: String,
    /// The backend; empty if there is only one.
    pub backend: &'static str,
    /// Whether the feature works with this kernel and these privileges, or what is missing.
    pub state: FeatureState,
    /// How the feature works, or why it does not.
    pub words: String,
    /// How to make it work; empty if it works or cannot be made to work.
    pub remedy: String,
}

type F = Field<Features>;

impl Table for Features {
    type Row<'b> = Feature;
    const NAME: &'static str = "support";
    const FIELDS: &'static [F] = stored_once! { F:
        /// Feature of netwren.
        feature: Text = own(|row| Value::Bytes(row.feature.as_bytes())), show Show::Default;
        /// Kernel interface (backend) that the feature uses; null if only one exists.
        backend: Text = own(|row| Value::nonempty(row.backend.as_bytes())), show Show::Default;
        /// Whether the feature works with this kernel and these privileges, or what is missing.
        state: Name(FeatureState::NAMES) = own(|row| Value::Name(row.state.name())), show Show::Default;
        /// True if the feature works.
        works: Bool = own(|row| Value::Bool(row.state == FeatureState::Works)), show Show::Wide;
        /// How the feature works, or why it does not.
        words: Text = own(|row| Value::Bytes(row.words.as_bytes())), show Show::Default;
        /// What would make the feature work; null if it already works, or if nothing would help.
        remedy: Text = own(|row| Value::nonempty(row.remedy.as_bytes())), show Show::Default;
    };
}
