//! The stream of log records.
pub(crate) mod netlink;
pub(crate) mod preview;
pub(crate) mod stream;
pub(crate) mod succession;
pub(crate) mod wanted;
