//! The interfaces by which drops are known, by their words.

/// The kernel's interface by which drops are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DropsVia {
    /// A BPF program at the tracepoint `kfree_skb`.
    #[default]
    Bpf,
    /// The tracepoint by way of tracefs: reason, place and EtherType alone, of every namespace.
    Tracefs,
    /// The kernel's drop monitor (NET_DM): reason, place, interface and addresses, of every namespace.
    NetDm,
    /// Counters of losses: no packet, reason or place is known.
    Counters,
}

impl DropsVia {
    /// The words, as `--via` takes them.
    pub const NAMES: [&str; 4] = ["bpf", "tracefs", "net-dm", "counters"];

    /// The word.
    pub fn name(self) -> &'static str {
        match self {
            DropsVia::Bpf => "bpf",
            DropsVia::Tracefs => "tracefs",
            DropsVia::NetDm => "net-dm",
            DropsVia::Counters => "counters",
        }
    }

    /// The interface with this word.
    pub fn of_name(name: &str) -> Option<DropsVia> {
        DropsVia::ALL.into_iter().find(|via| via.name() == name)
    }

    /// True if drops are of every namespace, which is not told with them, and wait in the kernel until they are taken.
    pub fn is_of_host(self) -> bool {
        matches!(self, DropsVia::Tracefs | DropsVia::NetDm)
    }

    const ALL: [DropsVia; 4] = [DropsVia::Bpf, DropsVia::Tracefs, DropsVia::NetDm, DropsVia::Counters];
}
