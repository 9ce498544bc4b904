//! The entries that a walk selects.

const AF_INET: u8 = 2;
pub(super) const AF_INET6: u8 = 10;

// The conditions with which a walk was loaded.
pub(super) const ORIG: u32 = 1;
pub(super) const ANSWER: u32 = 2;
pub(super) const STATUS: u32 = 4;
pub(super) const MARK: u32 = 8;
pub(super) const STATES: u32 = 16;
pub(super) const ZONE: u32 = 32;

/// A condition on a tuple: only the given parts must match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TupleCondition {
    pub(super) value: [u8; 40],
    pub(super) mask: [u8; 40],
}

impl TupleCondition {
    // `struct nf_conntrack_tuple` (include/net/netfilter/nf_conntrack_tuple.h).
    const SRC: usize = 0;
    const SPORT: usize = 16;
    const FAMILY: usize = 18;
    const DST: usize = 20;
    const DPORT: usize = 36;
    const PROTO: usize = 38;

    /// Matches any tuple.
    pub const ANY: TupleCondition = TupleCondition { value: [0; 40], mask: [0; 40] };

    /// True if it matches any tuple.
    pub fn is_any(&self) -> bool {
        self.mask.iter().all(|bits| *bits == 0)
    }

    fn with_bytes(mut self, at: usize, bytes: &[u8], mask: &[u8]) -> TupleCondition {
        let places = self.value.iter_mut().zip(&mut self.mask).skip(at);
        for ((value, masked), (byte, bits)) in places.zip(bytes.iter().zip(mask)) {
            *value = byte & bits;
            *masked = *bits;
        }
        self
    }

    fn with_net(self, at: usize, addr: &[u8], bits: u8) -> TupleCondition {
        let mask = |byte: usize| {
            let left = usize::from(bits).saturating_sub(8 * byte).min(8);
            (0xff00u16 >> left) as u8
        };
        let masks: Vec<u8> = (0..addr.len()).map(mask).collect();
        self.family(if addr.len() == 4 { AF_INET } else { AF_INET6 }).with_bytes(at, addr, &masks)
    }

    /// Requires this address family: 2 AF_INET, 10 AF_INET6.
    pub fn family(self, family: u8) -> TupleCondition {
        self.with_bytes(TupleCondition::FAMILY, &u16::from(family).to_ne_bytes(), &[0xff; 2])
    }

    /// Requires this IP protocol.
    pub fn proto(self, proto: u8) -> TupleCondition {
        self.with_bytes(TupleCondition::PROTO, &[proto], &[0xff])
    }

    /// Requires a source address whose first `bits` bits equal those of `addr` (4 or 16 bytes).
    pub fn src(self, addr: &[u8], bits: u8) -> TupleCondition {
        self.with_net(TupleCondition::SRC, addr, bits)
    }

    /// Requires a destination address whose first `bits` bits equal those of `addr` (4 or 16 bytes).
    pub fn dst(self, addr: &[u8], bits: u8) -> TupleCondition {
        self.with_net(TupleCondition::DST, addr, bits)
    }

    /// Requires this value with the source address: a port, an ICMP id, a GRE key. Host order.
    pub fn sport(self, port: u16) -> TupleCondition {
        self.with_bytes(TupleCondition::SPORT, &port.to_be_bytes(), &[0xff; 2])
    }

    /// Requires this value with the destination address: a port, ICMP type and code, a GRE key. Host order.
    pub fn dport(self, port: u16) -> TupleCondition {
        self.with_bytes(TupleCondition::DPORT, &port.to_be_bytes(), &[0xff; 2])
    }
}

/// The entries to select.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WantedEntries {
    /// True for entries of every namespace, false for those of the calling thread's namespace only.
    pub all: bool,
    /// True to include live entries.
    pub live: bool,
    /// True to include expired entries, which wait to be collected.
    pub expired: bool,
    /// Status bits: value and mask.
    pub status: Option<(u32, u32)>,
    /// Mark: value and mask.
    pub mark: Option<(u32, u32)>,
    /// Protocol states: bit n is TCP's state n, bit 16 + n SCTP's, bit 32 + n DCCP's. Protocols without states never
    /// match.
    pub states: Option<u64>,
    /// Zone.
    pub zone: Option<u16>,
    /// The direction of the packet that created the entry.
    pub orig: TupleCondition,
    /// The reply direction.
    pub reply: TupleCondition,
}

impl WantedEntries {
    /// All live entries of the calling thread's namespace.
    pub const LIVE: WantedEntries = WantedEntries {
        all: false,
        live: true,
        expired: false,
        status: None,
        mark: None,
        states: None,
        zone: None,
        orig: TupleCondition::ANY,
        reply: TupleCondition::ANY,
    };

    pub(super) fn conditions(&self) -> u32 {
        let each = [
            (!self.orig.is_any(), ORIG),
            (!self.reply.is_any(), ANSWER),
            (self.status.is_some(), STATUS),
            (self.mark.is_some(), MARK),
            (self.states.is_some(), STATES),
            (self.zone.is_some(), ZONE),
        ];
        each.iter().filter(|(is, _)| *is).fold(0, |bits, (_, bit)| bits | bit)
    }
}
