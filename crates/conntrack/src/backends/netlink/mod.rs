//! Reads the table, its counters and its expectations via ctnetlink.
pub(crate) mod counters;
pub(crate) mod ctnetlink;
pub(crate) mod dump;
pub(crate) mod entry_queries;
pub(crate) mod expect;
