//! Reads the table as lines of /proc/net/nf_conntrack.
pub(crate) mod file;
pub(crate) mod line;
