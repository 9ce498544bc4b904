//! Reads the table with a BPF program that walks the kernel's hash table.
pub(crate) mod cache;
pub(crate) mod chains;
pub(crate) mod rows;
pub(crate) mod walk_filter;
