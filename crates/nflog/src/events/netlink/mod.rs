//! Receives log records via nfnetlink_log.
pub(crate) mod batch;
pub(crate) mod bound;
pub(crate) mod groups;
pub(crate) mod layout;
pub(crate) mod other_netns;
pub(crate) mod reader;
pub(crate) mod record;
pub(crate) mod scanner;
pub(crate) mod sequence;
