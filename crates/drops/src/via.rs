//! The interfaces that report drops, with their names.

/// The kernel interface that reports drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DropsVia {
    /// A BPF program at the tracepoint `kfree_skb`.
    #[default]
    Bpf,
    /// The same tracepoint, read through tracefs: only reason, place and EtherType, of every namespace.
    Tracefs,
    /// The kernel's drop monitor (NET_DM): reason, place, interface and addresses, of every namespace.
    NetDm,
    /// Counters of losses, without packet, reason or place.
    Counters,
}

impl DropsVia {
    /// The names that `--via` accepts.
    pub const NAMES: [&str; 4] = ["bpf", "tracefs", "net-dm", "counters"];

    /// Name of the interface.
    pub fn name(self) -> &'static str {
        match self {
            DropsVia::Bpf => "bpf",
            DropsVia::Tracefs => "tracefs",
            DropsVia::NetDm => "net-dm",
            DropsVia::Counters => "counters",
        }
    }

    /// The interface with this name.
    pub fn of_name(name: &str) -> Option<DropsVia> {
        DropsVia::ALL.into_iter().find(|via| via.name() == name)
    }

    /// True if the interface reports drops of every namespace without naming it, and keeps them in the kernel until
    /// they are read.
    pub fn is_of_host(self) -> bool {
        matches!(self, DropsVia::Tracefs | DropsVia::NetDm)
    }

    const ALL: [DropsVia; 4] = [DropsVia::Bpf, DropsVia::Tracefs, DropsVia::NetDm, DropsVia::Counters];
}
