//! The kernel interfaces through which the table is read.
pub(crate) mod bpf;
pub(crate) mod fault;
pub(crate) mod netlink;
pub(crate) mod proc;
pub(crate) mod read;
pub(crate) mod rows;
pub(crate) mod seen;
