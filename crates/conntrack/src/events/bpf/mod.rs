//! Reports new entries with a BPF program that sees the packet which creates an entry.
pub(crate) mod blocks;
pub(crate) mod new_entry;
#[cfg(feature = "bpf")]
pub(crate) mod ring;
