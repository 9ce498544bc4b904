//! Receives events through the multicast groups of ctnetlink.
mod coalesce;
pub(crate) mod messages;
pub(crate) mod netns_watcher;
pub(crate) mod nsid;
pub(crate) mod reader;
pub(crate) mod subscribe;
