//! Output settings from an ulogd.conf that `--to` does not have.

use sinks::face::ulogd::Stages;
use sinks::syslog::Priority;

/// The settings of one output in an ulogd.conf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UlogdTuning {
    /// The group whose records the output gets.
    pub(crate) group: u16,
    /// The plugins before the output in its stack.
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
    /// Reproduces the tool's bytes even where they are wrong.
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
