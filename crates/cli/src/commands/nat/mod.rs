//! `netwren nat` and the commands behind it: the table of connection tracking, its counters, its events, advice.

pub(crate) mod advise;
pub(crate) mod delete;
pub(crate) mod events;
pub(crate) mod list;
pub(super) mod owner_readings;
mod port_use;
mod snat_rules;
pub(crate) mod stateless;
pub(crate) mod stats;
pub(crate) mod top;
mod uncounted;

pub(super) use snat_rules::SnatRules;

/// Groups that `nat top` shows unless `--limit` says how many.
const LIMIT: u64 = 10;
