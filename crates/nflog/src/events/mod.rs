//! Log records as they come.
pub(crate) mod netlink;
pub(crate) mod preview;
pub(crate) mod stream;
pub(crate) mod succession;
