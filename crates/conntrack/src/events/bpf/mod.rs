//! New entries by a BPF program that sees the packet which makes an entry.
pub(crate) mod blocks;
pub(crate) mod new_entry;
#[cfg(feature = "bpf")]
pub(crate) mod ring;
