//! Output settings from an ulogd.conf that `--to` does not have.

use sinks::syslog::Priority;
use sinks::ulogd::Stages;

/// The settings of one output in an ulogd.conf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UlogdTuning {
    /// The group whose records the output gets.
    pub group: u16,
    /// The plugins before the output in its stack.
    pub stages: Stages,
    /// JSON: `device`.
    pub json_device: String,
    /// JSON: `timestamp`.
    pub json_timestamp: bool,
    /// JSON: `boolean_label`.
    pub json_boolean_label: bool,
    /// GPRINT: `timestamp`.
    pub gprint_timestamp: bool,
    /// SYSLOG: `facility` and `level`.
    pub priority: Priority,
    /// SQLITE3, PGSQL: `table`.
    pub table: String,
    /// PGSQL: `procedure`; empty for INSERT.
    pub procedure: String,
    /// Reproduces the tool's bytes even where they are wrong.
    pub bug_compatible: bool,
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
