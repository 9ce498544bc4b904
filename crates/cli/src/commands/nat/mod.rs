//! `netwren nat` and its subcommands: the conntrack table, its counters, its events, advice.

pub(crate) mod advise;
pub(crate) mod delete;
pub(crate) mod events;
pub(crate) mod list;
mod port_use;
pub(crate) mod stateless;
pub(crate) mod stats;
pub(crate) mod top;

/// Default number of groups in `nat top`.
const LIMIT: u64 = 10;
