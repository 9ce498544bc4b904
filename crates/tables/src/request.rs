//! A request for a table in words, before names are resolved.

use crate::stream_rounds::GroupRate;
use record::Via;
use std::path::Path;
use std::time::Duration;

/// The selection of columns and rows.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// The words of the filter, joined by blanks.
    pub filter: String,
    /// `--columns`
    pub columns: Option<String>,
    /// True for `-o wide` and JSON.
    pub wide: bool,
    /// `--no-owner`
    pub no_owner: bool,
    /// `--by`
    pub by: Option<String>,
    /// `--sum`, `--max`, `--avg`
    pub aggregates: [Option<String>; 3],
    /// `--sort`
    pub sort: Option<String>,
    /// The default order without `--sort`; its fields are not shown.
    pub order: Option<&'static str>,
    /// `--limit`
    pub limit: Option<u64>,
}

/// Reads once or repeatedly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Repeat {
    /// One round.
    Once,
    /// A round after each interval.
    Every(Duration),
}

impl Repeat {
    /// Returns the length of a round; `None` if there is only one.
    pub fn period(self) -> Option<Duration> {
        match self {
            Repeat::Once => None,
            Repeat::Every(period) => Some(period),
        }
    }
}

/// The user's request for a table.
#[derive(Clone, Copy)]
pub struct TableRequest<'r> {
    /// The selected columns and rows.
    pub shown: &'r Selection,
    /// Columns that are written only if a row has them.
    pub unusual: &'r [&'static str],
    /// Columns that replace the addresses in the plain table if the filter admits only this protocol.
    pub columns_of_proto: &'static [(&'static str, &'static [&'static str])],
    /// Columns of groups that are also shown per second in the rounds of a stream.
    pub group_rates: &'static [GroupRate],
    /// True if the rows are for people, false if they are for programs.
    pub is_for_people: bool,
    /// Reads once or repeatedly.
    pub repeat: Repeat,
    /// When rounds end, on the monotonic clock; `None` if the user ends them.
    pub ends_ns: Option<u64>,
    /// How long rows wait for the names of hosts; `None` without such names.
    pub resolve: Option<Duration>,
    /// True to read every network namespace.
    pub all_netns: bool,
    /// The backend to read through; `None` for the best one.
    pub via: Option<Via>,
    /// The recording that is read in place of the kernel.
    pub replay: Option<&'r Path>,
    /// The command line that the request comes from.
    pub line: &'r dyn CommandLine,
}

impl<'r> TableRequest<'r> {
    /// A request for one reading of `shown`, for a program.
    pub fn new(shown: &'r Selection) -> TableRequest<'r> {
        TableRequest {
            shown,
            unusual: &[],
            columns_of_proto: &[],
            group_rates: &[],
            is_for_people: false,
            repeat: Repeat::Once,
            ends_ns: None,
            resolve: None,
            all_netns: false,
            via: None,
            replay: None,
            line: &NoLine,
        }
    }
}

/// A command line, for messages that propose another one.
pub trait CommandLine {
    /// Returns the command line with another filter and the same flags; `None` if it cannot be written.
    fn with_filter(&self, filter: &str) -> Option<String>;
}

/// The line of a request that was not written by a user.
struct NoLine;

impl CommandLine for NoLine {
    fn with_filter(&self, _: &str) -> Option<String> {
        None
    }
}
