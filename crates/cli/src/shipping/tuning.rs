//! The settings of an output that an ulogd.conf has and `--to` has not.

use sinks::face::ulogd::Stages;
use sinks::syslog::Priority;

/// What an ulogd.conf says of one output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UlogdTuning {
    /// The only group whose records it gets.
    pub(crate) group: u16,
    /// The plugins before it.
    pub(crate) stages: Stages,
    /// JSON: `device`.
    pub(crate) json_device: String,
    /// JSON: `timestamp`.
    pub(crate) json_timestamp: bool,
    /// JSON: `boolean_label`.
    pub(crate) json_boolean_label: bool,
    /// GPRINT: `timestamp`.
    pub(crate) gprint_timestamp: bool,
    /// SYSLOG: `facility` and `level`.
    pub(crate) priority: Priority,
    /// SQLITE3, PGSQL: `table`.
    pub(crate) table: String,
    /// PGSQL: `procedure`; empty for INSERT.
    pub(crate) procedure: String,
    /// The old bytes also where they are wrong.
    pub(crate) bug_compatible: bool,
}

impl Default for UlogdTuning {
    fn default() -> UlogdTuning {
        UlogdTuning {
            group: 0,
            stages: Stages::default(),
            json_device: "Netfilter".to_owned(),
            json_timestamp: true,
            json_boolean_label: false,
            gprint_timestamp: false,
            priority: Priority::default(),
            table: String::new(),
            procedure: String::new(),
            bug_compatible: false,
        }
    }
}
