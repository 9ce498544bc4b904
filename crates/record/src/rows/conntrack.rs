//! Conntrack entries as rows.

use crate::hash::{mix_addr, mix_into};
use crate::named_enum::named_enum;
use crate::{Addr, Owner};

/// Status bits of an entry (`enum ip_conntrack_status` in include/uapi/linux/netfilter/nf_conntrack_common.h).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct CtStatus(pub u32);

impl CtStatus {
    /// Packets were seen in both directions.
    pub const SEEN_REPLY: u32 = 1 << 1;
    /// A helper expected the connection.
    pub const EXPECTED: u32 = 1;
    /// The entry is not evicted early when the table is full.
    pub const ASSURED: u32 = 1 << 2;
    /// The source address of the original direction is rewritten.
    pub const SRC_NAT: u32 = 1 << 4;
    /// The destination address of the original direction is rewritten.
    pub const DST_NAT: u32 = 1 << 5;
    /// A flow table handles the connection and bypasses the network stack.
    pub const OFFLOAD: u32 = 1 << 14;
    /// The network card handles the connection.
    pub const HW_OFFLOAD: u32 = 1 << 15;

    /// Words of the field `status`, by bit.
    pub const NAMES: &'static [&'static str] = &[
        "expected",
        "seen_reply",
        "assured",
        "confirmed",
        "src_nat",
        "dst_nat",
        "seq_adjust",
        "src_nat_done",
        "dst_nat_done",
        "dying",
        "fixed_timeout",
        "template",
        "nat_clash",
        "helper",
        "offload",
        "hw_offload",
    ];

    /// True if every bit of `bits` is set.
    pub fn contains(self, bits: u32) -> bool {
        self.0 & bits == bits
    }
}

named_enum! {
    /// The addresses that an entry rewrites, according to its status.
    pub enum NatKind {
        /// The entry rewrites no address.
        None => "none",
        /// The source address.
        Snat => "snat",
        /// The destination address.
        Dnat => "dnat",
        /// Source and destination address.
        Both => "both",
    }
}

impl NatKind {
    /// Derives the kind from the status. (Tuples prove nothing: source and destination of an ICMP entry are swapped.)
    pub fn from_status(status: CtStatus) -> NatKind {
        match (status.contains(CtStatus::SRC_NAT), status.contains(CtStatus::DST_NAT)) {
            (false, false) => NatKind::None,
            (true, false) => NatKind::Snat,
            (false, true) => NatKind::Dnat,
            (true, true) => NatKind::Both,
        }
    }

    /// Adds implied words to the words of a filter over a column with these `names`. `snat` and `dnat` match every
    /// entry whose source or destination is rewritten, so each of them also matches `both`. The words of other columns
    /// are returned unchanged.
    pub fn with_implied(names: &[&str], mut words: Vec<Box<[u8]>>) -> Vec<Box<[u8]>> {
        let named = |kinds: &[NatKind]| words.iter().any(|word| kinds.iter().any(|k| **word == *k.name().as_bytes()));
        let implies_both = named(&[NatKind::Snat, NatKind::Dnat]) && !named(&[NatKind::Both]);
        if names == NatKind::NAMES && implies_both {
            words.push(NatKind::Both.name().as_bytes().into());
        }
        words
    }

    // The parts of an ICMP tuple are not ports: the id stays on the same side, and replies have a different type and
    // code.
    fn by_tuples(orig: &CtTuple, reply: &CtTuple) -> NatKind {
        let icmp = orig.icmp().is_some();
        let source = reply.dst != orig.src || if icmp { reply.src_part } else { reply.dst_part } != orig.src_part;
        let destination = reply.src != orig.dst || (!icmp && reply.src_part != orig.dst_part);
        match (source, destination) {
            (false, false) => NatKind::None,
            (true, false) => NatKind::Snat,
            (false, true) => NatKind::Dnat,
            (true, true) => NatKind::Both,
        }
    }
}

/// Type, code and id of an ICMP query, as an entry stores them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct IcmpPart {
    /// Type: 8 is an echo request (RFC 792), 128 an ICMPv6 echo request (RFC 4443).
    pub kind: u8,
    /// Code.
    pub code: u8,
    /// Identifier.
    pub id: u16,
}

/// One direction of an entry: `struct nf_conntrack_tuple`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CtTuple {
    /// Source address.
    pub src: Addr,
    /// Destination address.
    pub dst: Addr,
    /// IP protocol number.
    pub proto: u8,
    /// The value that the kernel stores with the source address, in host order: a port, an ICMP id, a GRE key.
    pub src_part: u16,
    /// The value that the kernel stores with the destination address, in host order: a port, ICMP type (high byte) and
    /// code, a GRE key.
    pub dst_part: u16,
    /// Zone of this direction only (CTA_TUPLE_ZONE).
    pub zone: Option<u16>,
}

/// IP protocols whose tuples contain more than the addresses.
pub mod ip_proto {
    /// ICMP.
    pub const ICMP: u8 = 1;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// DCCP.
    pub const DCCP: u8 = 33;
    /// GRE.
    pub const GRE: u8 = 47;
    /// ICMPv6.
    pub const ICMPV6: u8 = 58;
    /// SCTP.
    pub const SCTP: u8 = 132;
    /// UDP-Lite.
    pub const UDPLITE: u8 = 136;

    /// Words of the field `proto`.
    pub const NAMES: &[&str] = &[
        "tcp", "udp", "icmp", "icmpv6", "sctp", "udplite", "dccp", "gre", "esp", "ah", "igmp", "ipip", "ipv6", "ospf",
        "pim", "vrrp", "l2tp", "other",
    ];

    /// The protocol's word (IANA's name in lower case); `other` if it has no word.
    pub fn name(number: u8) -> &'static str {
        let place = match number {
            TCP => 0,
            UDP => 1,
            ICMP => 2,
            ICMPV6 => 3,
            SCTP => 4,
            UDPLITE => 5,
            DCCP => 6,
            GRE => 7,
            50 => 8,
            51 => 9,
            2 => 10,
            4 => 11,
            41 => 12,
            89 => 13,
            103 => 14,
            112 => 15,
            115 => 16,
            _ => 17,
        };
        NAMES[place]
    }

    /// The number of a word; `None` for `other` and for unknown words.
    pub fn number(name: &[u8]) -> Option<u8> {
        (0..=u8::MAX).find(|number| self::name(*number).as_bytes() == name && name != b"other")
    }
}

/// Bits of `Demand::need` for the conntrack table: fields that some backend cannot deliver, or that cost extra.
pub mod nat_need {
    /// Packets and bytes.
    pub const COUNTERS: u64 = 1;
    /// Start and end.
    pub const TIMES: u64 = 1 << 1;
    /// Labels.
    pub const LABELS: u64 = 1 << 2;
    /// Helper.
    pub const HELPER: u64 = 1 << 3;
    /// The connection that announced this one.
    pub const MASTER: u64 = 1 << 4;
    /// Security context.
    pub const SECCTX: u64 = 1 << 5;
    /// Id.
    pub const ID: u64 = 1 << 6;
    /// Reference count.
    pub const USES: u64 = 1 << 7;
    /// Zones.
    pub const ZONE: u64 = 1 << 8;
    /// The raw status bits.
    pub const STATUS: u64 = 1 << 10;
    /// Whether an entry is still in the table after its timeout.
    pub const EXPIRED: u64 = 1 << 9;
    /// Processes at the local end: requires reading sockets and owners.
    pub const OWNERS: u64 = 1 << 63;
}

impl CtTuple {
    /// A tuple with all values unset.
    pub const EMPTY: CtTuple =
        CtTuple { src: Addr::ANY4, dst: Addr::ANY4, proto: 0, src_part: 0, dst_part: 0, zone: None };

    /// True for TCP, UDP, UDP-Lite, SCTP and DCCP.
    pub fn has_ports(&self) -> bool {
        use ip_proto::{DCCP, SCTP, TCP, UDP, UDPLITE};
        matches!(self.proto, TCP | UDP | UDPLITE | SCTP | DCCP)
    }

    /// Source port, host order.
    pub fn sport(&self) -> Option<u16> {
        self.has_ports().then_some(self.src_part)
    }

    /// Destination port, host order.
    pub fn dport(&self) -> Option<u16> {
        self.has_ports().then_some(self.dst_part)
    }

    /// The tuple of replies if nothing is rewritten; `None` for an ICMP type without a reply (`invmap` in
    /// net/netfilter/nf_conntrack_proto_icmp.c and …_icmpv6.c). The zone stays the same.
    pub fn reply_tuple(&self) -> Option<CtTuple> {
        let (mut src_part, mut dst_part) = (self.dst_part, self.src_part);
        if let Some(part) = self.icmp() {
            let answer = match (self.proto, part.kind) {
                (ip_proto::ICMP, 8) => 0,
                (ip_proto::ICMP, 0) => 8,
                (ip_proto::ICMP, kind @ (13 | 15 | 17)) | (ip_proto::ICMPV6, kind @ (128 | 139)) => kind + 1,
                (ip_proto::ICMP, kind @ (14 | 16 | 18)) | (ip_proto::ICMPV6, kind @ (129 | 140)) => kind - 1,
                _ => return None,
            };
            (src_part, dst_part) = (self.src_part, u16::from_be_bytes([answer, part.code]));
        }
        Some(CtTuple { src: self.dst, dst: self.src, src_part, dst_part, ..*self })
    }

    /// Type, code and id, for ICMP or ICMPv6.
    pub fn icmp(&self) -> Option<IcmpPart> {
        let [kind, code] = self.dst_part.to_be_bytes();
        matches!(self.proto, ip_proto::ICMP | ip_proto::ICMPV6).then_some(IcmpPart { kind, code, id: self.src_part })
    }
}

/// Packets and bytes of one direction (CTA_COUNTERS_ORIG, CTA_COUNTERS_REPLY); only with `nf_conntrack_acct`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CtCounters {
    /// Packets.
    pub packets: u64,
    /// Bytes, including network headers.
    pub bytes: u64,
}

/// The connection state of a protocol that has states, as the kernel's number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CtState {
    /// `enum tcp_conntrack` (include/uapi/linux/netfilter/nf_conntrack_tcp.h).
    Tcp(u8),
    /// `enum sctp_conntrack` (nf_conntrack_sctp.h).
    Sctp(u8),
    /// `enum ct_dccp_states` (nf_conntrack_dccp.h); removed in 6.16.
    Dccp(u8),
}

impl CtState {
    const TCP: &'static [&'static str] = &[
        "none",
        "syn_sent",
        "syn_recv",
        "established",
        "fin_wait",
        "close_wait",
        "last_ack",
        "time_wait",
        "close",
        "syn_sent2",
    ];
    const SCTP: &'static [&'static str] = &[
        "none",
        "closed",
        "cookie_wait",
        "cookie_echoed",
        "established",
        "shutdown_sent",
        "shutdown_recd",
        "shutdown_ack_sent",
        "heartbeat_sent",
        "heartbeat_acked",
    ];
    const DCCP: &'static [&'static str] =
        &["none", "request", "respond", "partopen", "open", "closereq", "closing", "timewait"];

    /// Every word of the field `state`.
    pub const NAMES: &'static [&'static str] = &[
        "none",
        "syn_sent",
        "syn_recv",
        "established",
        "fin_wait",
        "close_wait",
        "last_ack",
        "time_wait",
        "close",
        "syn_sent2",
        "closed",
        "cookie_wait",
        "cookie_echoed",
        "shutdown_sent",
        "shutdown_recd",
        "shutdown_ack_sent",
        "heartbeat_sent",
        "heartbeat_acked",
        "request",
        "respond",
        "partopen",
        "open",
        "closereq",
        "closing",
        "timewait",
        "unknown",
    ];

    /// Our word for the state; `unknown` for a number that this program does not know.
    pub fn name(self) -> &'static str {
        let (names, number) = match self {
            CtState::Tcp(n) => (Self::TCP, n),
            CtState::Sctp(n) => (Self::SCTP, n),
            CtState::Dccp(n) => (Self::DCCP, n),
        };
        names.get(usize::from(number)).copied().unwrap_or("unknown")
    }
}

/// One entry. Borrows the receive buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Conntrack<'b> {
    /// Inode of its network namespace.
    pub netns_id: u64,
    /// 2 AF_INET, 10 AF_INET6.
    pub family: u8,
    /// The direction of the packet that created the entry.
    pub orig: CtTuple,
    /// The direction of replies: the inverse of `orig` if nothing is rewritten.
    pub reply: CtTuple,
    /// Status bits; `None` if an event does not report them.
    pub status: Option<CtStatus>,
    /// Seconds until the entry expires; `None` if not reported (DESTROY events). 0 if `expired`.
    pub timeout_s: Option<u32>,
    /// True if the entry has expired and has not been collected yet; `None` for backends that do not show expired
    /// entries.
    pub expired: Option<bool>,
    /// The protocol's state, if it has states and the kernel reported it.
    pub state: Option<CtState>,
    /// SCTP's verification tags, original and reply direction, host order.
    pub vtags: Option<[u32; 2]>,
    /// DCCP role in the original direction (`enum ct_dccp_roles`): 0 client, 1 server.
    pub dccp_role: Option<u8>,
    /// Counters of the original direction.
    pub counters_orig: Option<CtCounters>,
    /// Counters of the reply direction.
    pub counters_reply: Option<CtCounters>,
    /// Mark (CTA_MARK). Dumps also report the value 0, events do not.
    pub mark: Option<u32>,
    /// Zone (CTA_ZONE); `None` is zone 0.
    pub zone: Option<u16>,
    /// Reference count (CTA_USE).
    pub uses: Option<u32>,
    /// Id (CTA_ID): a hash that stays the same for the life of the entry.
    pub id: Option<u32>,
    /// Name of the helper, without the NUL.
    pub helper: Option<&'b [u8]>,
    /// Security context, without the NUL.
    pub secctx: Option<&'b [u8]>,
    /// True if the entry may have a security context that the backend does not report.
    pub secctx_untold: bool,
    /// Label bits (CTA_LABELS), as the kernel stores them, in little-endian words: bit n is in byte n/8 of 16 bytes.
    pub labels: Option<&'b [u8]>,
    /// Start time, ns since 1970 (CTA_TIMESTAMP_START; only with `nf_conntrack_timestamp`).
    pub start_ns: Option<u64>,
    /// End time, ns since 1970 (CTA_TIMESTAMP_STOP).
    pub stop_ns: Option<u64>,
    /// True if the entry has an extension object, which takes additional memory. Only the walk sees all of them;
    /// `None` if the backend cannot report it.
    pub extended: Option<bool>,
    /// The connection whose helper expected this one (CTA_TUPLE_MASTER).
    pub master: Option<&'b CtTuple>,
    /// `labels` as words, joined by commas; filled in by code that knows the label names.
    pub label_words: Option<&'b [u8]>,
    /// When the table was read, ns since 1970: used to compute ages.
    pub now_ns: Option<u64>,
    /// Owners of the socket at the end that is in the entry's namespace; filled in on request.
    pub owners: &'b [Owner],
    /// When the owners were seen, in ns of CLOCK_BOOTTIME; 0 if facts about the processes were read together with
    /// them.
    pub owners_seen_ns: u64,
}

impl Conntrack<'_> {
    /// A row with all values unset: backends start from it and fill in their values.
    pub const EMPTY: Conntrack<'static> = Conntrack {
        netns_id: 0,
        family: 0,
        orig: CtTuple::EMPTY,
        reply: CtTuple::EMPTY,
        status: None,
        timeout_s: None,
        expired: None,
        state: None,
        vtags: None,
        dccp_role: None,
        counters_orig: None,
        counters_reply: None,
        mark: None,
        zone: None,
        uses: None,
        id: None,
        helper: None,
        secctx: None,
        secctx_untold: false,
        labels: None,
        start_ns: None,
        stop_ns: None,
        extended: None,
        master: None,
        label_words: None,
        now_ns: None,
        owners: &[],
        owners_seen_ns: 0,
    };

    /// The row without borrowed data: labels, helper, master, security context, owners.
    pub fn without_borrowed(&self) -> Conntrack<'static> {
        let Conntrack { netns_id, family, orig, reply, status, timeout_s, expired, state, .. } = *self;
        let Conntrack { vtags, dccp_role, counters_orig, counters_reply, mark, zone, uses, id, .. } = *self;
        let Conntrack { secctx_untold, start_ns, stop_ns, extended, now_ns, owners_seen_ns, .. } = *self;
        let (helper, secctx, labels, master, label_words) = (None, None, None, None, None);
        Conntrack {
            netns_id,
            family,
            orig,
            reply,
            status,
            timeout_s,
            expired,
            state,
            vtags,
            dccp_role,
            counters_orig,
            counters_reply,
            mark,
            zone,
            uses,
            id,
            helper,
            secctx,
            secctx_untold,
            labels,
            start_ns,
            stop_ns,
            extended,
            master,
            label_words,
            now_ns,
            owners: &[],
            owners_seen_ns,
        }
    }

    /// The addresses that are rewritten: from the status if reported, else from the condition under which the kernel
    /// sets its bits, namely that the reply tuple is not the plain inverse. `None` without a reply tuple.
    pub fn nat(&self) -> Option<NatKind> {
        match self.status {
            Some(status) => Some(NatKind::from_status(status)),
            None => self.has_reply().then(|| NatKind::by_tuples(&self.orig, &self.reply)),
        }
    }

    /// A number for the entry that stays the same for its life: 32 bits of the kernel's id, which is a keyed hash, and
    /// 32 bits of a hash of the original tuple. Two of a million entries rarely have the same number.
    pub fn lifetime_key(&self) -> u64 {
        let CtTuple { src, dst, src_part, dst_part, proto, .. } = self.orig;
        let ports = u64::from(src_part) << 32 | u64::from(dst_part) << 8 | u64::from(proto);
        let hash = mix_into(mix_addr(mix_addr(self.netns_id, &src), &dst), ports);
        u64::from(self.id.unwrap_or(0)) << 32 | hash >> 32
    }

    /// False for a connection that is only expected: it has no reply direction yet.
    pub fn has_reply(&self) -> bool {
        self.reply.proto != 0 || self.status.is_some()
    }

    /// Address and port of the host that replies. Uses the status if known, because the tuples of ICMP always differ.
    pub fn backend(&self) -> Option<(Addr, Option<u16>)> {
        let rewritten = self.status.is_none_or(|status| status.contains(CtStatus::DST_NAT));
        let is_reply = rewritten && self.has_reply();
        match (is_reply, self.status) {
            (true, _) => Some((self.reply.src, self.reply.sport())),
            (false, Some(_)) => Some((self.orig.dst, self.orig.dport())),
            (false, None) => None,
        }
    }

    /// The client's address and port as the other end sees them, if the source is rewritten.
    pub fn mapped_source(&self) -> Option<(Addr, Option<u16>)> {
        let is_source_rewritten = matches!(self.nat(), Some(NatKind::Snat | NatKind::Both)) && self.has_reply();
        is_source_rewritten.then(|| (self.reply.dst, self.reply.dport()))
    }

    /// The zone, even if it applies to only one direction; `None` is the default zone.
    pub fn any_zone(&self) -> Option<u16> {
        self.zone.or(self.orig.zone).or(self.reply.zone)
    }
}

/// A connection that a helper expects. Borrows the receive buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expectation<'b> {
    /// Inode of its network namespace.
    pub netns_id: u64,
    /// 2 AF_INET, 10 AF_INET6.
    pub family: u8,
    /// The expected tuple.
    pub tuple: CtTuple,
    /// The bits of the tuple that must match: a port mask of 0 matches any port.
    pub mask: CtTuple,
    /// The original direction of the connection that announced it.
    pub master: CtTuple,
    /// Seconds until the expectation expires.
    pub timeout_s: Option<u32>,
    /// Id (CTA_EXPECT_ID).
    pub id: Option<u32>,
    /// Name of the helper, without the NUL.
    pub helper: Option<&'b [u8]>,
    /// Zone.
    pub zone: Option<u16>,
    /// `NF_CT_EXPECT_…`: 1 permanent, 2 inactive, 4 created from user space.
    pub flags: Option<u32>,
    /// Expectation class within the helper.
    pub class: Option<u32>,
    /// The NAT applied to the connection when it arrives: direction (0 original, 1 reply) and tuple.
    pub nat: Option<(u32, CtTuple)>,
    /// Name of the kernel function that will be called, without the NUL.
    pub function: Option<&'b [u8]>,
}

impl Expectation<'_> {
    /// An expectation with all values unset.
    pub const EMPTY: Expectation<'static> = Expectation {
        netns_id: 0,
        family: 0,
        tuple: CtTuple::EMPTY,
        mask: CtTuple::EMPTY,
        master: CtTuple::EMPTY,
        timeout_s: None,
        id: None,
        helper: None,
        zone: None,
        flags: None,
        class: None,
        nat: None,
        function: None,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_is_of_the_bits() {
        let words =
            [0, 1 << 4, 1 << 5, 3 << 4].map(|bits| NatKind::from_status(CtStatus(bits | 0x18e & !(3 << 4))).name());
        assert_eq!(words, ["none", "snat", "dnat", "both"]);
    }

    #[test]
    fn a_word_of_a_filter_says_what_is_done() {
        let of = |names: &[&str], words: &[&str]| {
            let words = words.iter().map(|word| word.as_bytes().into()).collect();
            let words: Vec<String> = NatKind::with_implied(names, words)
                .iter()
                .map(|word| String::from_utf8_lossy(word).into_owned())
                .collect();
            words.join(" ")
        };
        assert_eq!(of(NatKind::NAMES, &["dnat"]), "dnat both");
        assert_eq!(of(NatKind::NAMES, &["snat", "dnat"]), "snat dnat both");
        assert_eq!(of(NatKind::NAMES, &["both", "snat"]), "both snat");
        assert_eq!(of(NatKind::NAMES, &["both"]), "both");
        assert_eq!(of(NatKind::NAMES, &["none"]), "none");
        assert_eq!(of(&["dnat"], &["dnat"]), "dnat", "another column");
    }

    #[test]
    fn every_state_is_a_word_of_the_field() {
        let all = (0..=10).flat_map(|n| [CtState::Tcp(n), CtState::Sctp(n), CtState::Dccp(n)]);
        assert!(all.map(CtState::name).all(|word| CtState::NAMES.contains(&word)));
        assert_eq!(CtState::Tcp(7).name(), "time_wait");
        assert_eq!(CtState::Sctp(4).name(), "established");
        assert_eq!(CtState::Tcp(200).name(), "unknown");
    }

    #[test]
    fn the_parts_mean_what_the_protocol_says() {
        let tcp = CtTuple { proto: ip_proto::TCP, src_part: 1, dst_part: 2, ..CtTuple::EMPTY };
        assert_eq!((tcp.sport(), tcp.dport(), tcp.icmp()), (Some(1), Some(2), None));
        let ping = CtTuple { proto: ip_proto::ICMP, src_part: 77, dst_part: 0x0803, ..CtTuple::EMPTY };
        assert_eq!((ping.sport(), ping.icmp()), (None, Some(IcmpPart { kind: 8, code: 3, id: 77 })));
    }
}
