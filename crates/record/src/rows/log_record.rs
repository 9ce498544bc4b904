//! Netfilter log records (`log`), one per packet that a rule logs.

use super::captured_packet::ArpHeader;
use super::conntrack::{Conntrack, CtStatus, NatKind, ip_proto};
use super::logging_rule::{LoggingRule, VERDICTS, text};
use super::packet::{PacketHeaders, TcpHeader, Transport, tcp_flag};
use super::packet_entry::{CtAttrs, CtDirection, EntrySource, PacketEntry, PacketState, cells};
use crate::kernel_words::{KernelWords, kernel_words};
use crate::table::table;
use crate::{Addr, Key, Link, LookupId, Owner, RowLink, Show, Value};

/// A packet that a rule logged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LogRecord<'b> {
    /// When the packet was received, in ns since 1970, if the kernel reports it; otherwise when the record was
    /// received.
    pub time_ns: u64,
    /// When the record was received, in ns since 1970.
    pub received_ns: u64,
    /// A time before the records received together with this one arrived, in ns since 1970. The record may have waited
    /// in the kernel even longer if records are batched there.
    pub since_ns: u64,
    /// Inode of the network namespace.
    pub netns_id: u64,
    /// Number of the log group.
    pub group: u16,
    /// `NFPROTO_…` of the chain: 1 inet, 2 IPv4, 3 ARP, 5 netdev, 7 bridge, 10 IPv6.
    pub family: u8,
    /// `NF_INET_…`, or `NF_NETDEV_…`, `NF_ARP_…` in those families.
    pub hook: u8,
    /// The rule's prefix; empty without one.
    pub prefix: &'b [u8],
    /// Interface that the packet came in on.
    pub in_ifindex: Option<u32>,
    /// Interface that the packet goes out on.
    pub out_ifindex: Option<u32>,
    /// Bridge port that the packet came in on.
    pub physin_ifindex: Option<u32>,
    /// Bridge port that the packet goes out on.
    pub physout_ifindex: Option<u32>,
    /// EtherType (0x0800 IPv4); 0 if the kernel does not report it.
    pub ether_type: u16,
    /// Link-layer header, destination first for Ethernet. Empty for packets of this host, which have no header yet,
    /// and for interfaces without one.
    pub hw_header: &'b [u8],
    /// Link-layer address of the sender; empty if the kernel does not report it.
    pub hw_addr: &'b [u8],
    /// `ARPHRD_…` of the interface: 1 Ethernet, 772 loopback.
    pub hw_type: Option<u16>,
    /// Mark.
    pub mark: Option<u32>,
    /// User id of the sending socket, if this host sent the packet.
    pub uid: Option<u32>,
    /// Group id of that socket.
    pub gid: Option<u32>,
    /// VLAN id, if the tag was removed from the packet.
    pub vlan: Option<u16>,
    /// Sequence number of the record in its group; gaps mean lost records.
    pub seq: Option<u32>,
    /// The copied part of the packet, starting with the network header.
    pub payload: &'b [u8],
    /// The decoded headers; `None` if the packet is not an IP packet, or if its header was not copied completely.
    pub packet: Option<PacketHeaders<'b>>,
    /// The rule that logged the packet; `None` unless requested and known.
    pub rule: Option<&'b LoggingRule<'b>>,
    /// Owners of the socket that sends or receives the packet; empty unless requested.
    pub owners: &'b [Owner],
    /// When the owners were seen, in ns of CLOCK_BOOTTIME; 0 if unknown.
    pub owners_seen_ns: u64,
    /// Attributes of the packet's conntrack entry, if the kernel sent any.
    pub ct_attrs: Option<CtAttrs<'b>>,
    /// The conntrack entry; `None` unless requested and known.
    pub entry: Option<&'b PacketEntry<'b>>,
}

/// Bits for fields that require reading more than the record.
pub mod log_need {
    /// Place, handle and comment of the rule.
    pub const RULE: u64 = 1;
    /// The rule's text.
    pub const RULE_TEXT: u64 = 1 << 1;
    /// Processes at the local end: requires reading sockets and owners.
    pub const OWNERS: u64 = 1 << 2;
    /// The packet's conntrack entry, from the kernel's attributes or a lookup.
    pub const ENTRY: u64 = 1 << 3;
}

/// Words for the IP hooks (`NF_INET_PRE_ROUTING` …), followed by hooks that only ARP and netdev have.
const HOOKS: &[&str] = &["prerouting", "input", "forward", "output", "postrouting", "ingress", "egress", "other"];
/// `NFPROTO_…` (include/uapi/linux/netfilter.h), as nft writes them.
const FAMILIES: KernelWords = kernel_words!(1 "inet", 2 "ip", 3 "arp", 5 "netdev", 7 "bridge", 10 "ip6");

const NFPROTO_ARP: u8 = 3;
const NFPROTO_NETDEV: u8 = 5;
/// Words of field `direction`.
const DIRECTIONS: &[&str] = &["in", "out", "forward"];

/// EtherTypes of VLAN tags (include/uapi/linux/if_ether.h), and the maximum number of tags that are read.
const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
const TAGS_MAX: usize = 16;
const ETH_P_ARP: u16 = 0x0806;

impl<'b> LogRecord<'b> {
    /// The direction, derived from the hook. At postrouting, only packets of this host lack an input interface.
    pub fn direction(&self) -> Option<&'static str> {
        let came_in = self.in_ifindex.is_some();
        match self.hook_name() {
            "prerouting" | "input" | "ingress" => Some("in"),
            "forward" => Some("forward"),
            "postrouting" if came_in => Some("forward"),
            "output" | "postrouting" | "egress" => Some("out"),
            _ => None,
        }
    }

    /// The word of the family, as nft writes it.
    pub fn family_name(&self) -> &'static str {
        match FAMILIES.value(self.family) {
            Value::Name(name) => name,
            _ => "",
        }
    }

    /// A part of the rule that logged the packet.
    fn of_rule<V>(&self, part: fn(&LoggingRule<'b>) -> Option<V>) -> Option<V> {
        self.rule.and_then(part)
    }

    /// Returns the EtherType and the bytes that follow the VLAN tags at the start of the payload. (The kernel leaves
    /// all tags except the outermost one in the packet.)
    pub fn payload_after_tags(&self) -> (u16, &'b [u8]) {
        let (mut ether_type, mut rest) = (self.ether_type, self.payload);
        for _ in 0..TAGS_MAX {
            let tag = rest.split_first_chunk::<4>().filter(|_| TAGS.contains(&ether_type));
            let Some(([_, _, high, low], behind)) = tag else { break };
            (ether_type, rest) = (u16::from_be_bytes([*high, *low]), behind);
        }
        (ether_type, rest)
    }

    /// Parses the packet as ARP; `None` if it is not ARP.
    #[cold]
    pub fn arp(&self) -> Option<ArpHeader> {
        let (ether_type, packet) = self.payload_after_tags();
        if ether_type == ETH_P_ARP { ArpHeader::read(packet) } else { None }
    }

    /// The word for the hook, as nft writes it.
    pub fn hook_name(&self) -> &'static str {
        let at = match (self.family, self.hook) {
            (NFPROTO_NETDEV, 0) => 5,
            (NFPROTO_NETDEV, 1) => 6,
            // NF_ARP_IN, NF_ARP_OUT, NF_ARP_FORWARD
            (NFPROTO_ARP, hook) => [1, 3, 2].get(usize::from(hook)).copied().unwrap_or(HOOKS.len()),
            (_, hook) => usize::from(hook),
        };
        HOOKS.get(at).unwrap_or(&"other")
    }
}

#[inline(always)]
fn of_packet<'r>(row: &LogRecord<'_>, get: impl Fn(&PacketHeaders<'_>) -> Option<Value<'static>>) -> Value<'r> {
    row.packet.as_ref().and_then(get).unwrap_or(Value::Null)
}

/// Returns an address from the IP header or from the ARP packet.
#[inline(always)]
fn address<'r>(
    row: &LogRecord<'_>,
    of_ip: impl Fn(&PacketHeaders<'_>) -> Addr,
    of_arp: impl Fn(&ArpHeader) -> [u8; 4],
) -> Value<'r> {
    match &row.packet {
        Some(ip) => Value::Addr(of_ip(ip)),
        None => row.arp().map_or(Value::Null, |arp| Value::Addr(Addr::V4(of_arp(&arp)))),
    }
}

#[inline(always)]
fn number<'r>(row: &LogRecord<'_>, get: impl Fn(&PacketHeaders<'_>) -> Option<u32>) -> Value<'r> {
    Value::number(row.packet.as_ref().and_then(get))
}

#[inline(always)]
fn of_tcp<'r>(row: &LogRecord<'_>, get: impl Fn(&TcpHeader) -> u32) -> Value<'r> {
    match row.packet.as_ref().map(|packet| &packet.transport) {
        Some(Transport::Tcp(tcp)) => Value::U64(get(tcp).into()),
        _ => Value::Null,
    }
}

fn tcp_flags<'r>(row: &LogRecord<'_>) -> Value<'r> {
    match row.packet.as_ref().map(|packet| &packet.transport) {
        Some(Transport::Tcp(tcp)) => Value::Bits(tcp.flags.into(), tcp_flag::NAMES),
        _ => Value::Null,
    }
}

fn owner<'r>(row: &LogRecord<'r>, part: fn(&'r Owner) -> Value<'r>) -> Value<'r> {
    row.owners.first().map_or(Value::Null, part)
}

fn entry<'r>(row: &LogRecord<'r>, cell: fn(&'r Conntrack<'r>) -> Value<'r>) -> Value<'r> {
    cells::entry_value(row.entry, cell)
}

fn by_pid(row: &LogRecord<'_>) -> Key {
    row.owners.first().map_or(Key::None, |owner| match row.owners_seen_ns {
        0 => Key::Id(owner.pid.into()),
        seen_ns => Key::Process { pid: owner.pid, seen_ns },
    })
}

/// The interface that the packet came in by, or would leave by.
const LINK: Link<LogRecords> = Link {
    of: |row| RowLink::index(row.netns_id, row.in_ifindex.or(row.out_ifindex).unwrap_or(0)),
    names: &["iif", "oif"],
    numbers: &["iifindex", "oifindex"],
    in_rows: false,
};

fn iface(row: &LogRecord<'_>, index: Option<u32>) -> Key {
    index.map_or(Key::None, |index| Key::Pair(row.netns_id, index))
}

table! {
    /// The table of log records (`log`).
    pub enum LogRecords of LogRecord = "log", ENDLESS = true;

    /// Time at which the packet was received if the kernel reports it, otherwise of the record's arrival. A filter
    /// accepts 10:30 (local time today), -5m and 2026-11-22T10:30:00Z.
    time: Time = own(|row| Value::Time(row.time_ns)), kernel "NFULA_TIMESTAMP", show Show::Default;
    /// Name of the network namespace, or its inode number if it is unnamed.
    netns: Text = joined(LookupId::Netns, |row| Key::Id(row.netns_id)), show Show::Wide;
    /// Inode of the network namespace.
    netns_id: Id = own(|row| Value::U64(row.netns_id));
    /// Log group to which the rule logs.
    group: Id = own(|row| Value::U64(row.group.into())), kernel "nfgenmsg.res_id", show Show::Default;
    /// Log prefix of the rule.
    prefix: Text = own(|row| Value::nonempty(row.prefix)), kernel "NFULA_PREFIX", show Show::Default;
    /// Netfilter hook at which the packet matched the rule.
    hook: Name(HOOKS) = own(|row| Value::Name(row.hook_name())),
        kernel "nfulnl_msg_packet_hdr.hook", show Show::Default;
    /// Where the packet goes: in (to this host; before routing, possibly through it), out (from this host) or forward.
    direction: Name(DIRECTIONS) = own(|row| row.direction().map_or(Value::Null, Value::Name));
    /// Table of the rule that logged the packet, with its family; null if several rules match (same group, prefix and
    /// hook).
    rule_table: Text = own(|row| text(row.of_rule(|rule| rule.table))), needs log_need::RULE;
    /// Chain of that rule.
    rule_chain: Text = own(|row| text(row.of_rule(|rule| rule.chain))), needs log_need::RULE;
    /// Handle of that rule (nft -a list ruleset).
    rule_handle: Id = own(|row| Value::number(row.of_rule(|rule| rule.handle))), needs log_need::RULE;
    /// Comment of that rule.
    rule_comment: Text = own(|row| text(row.of_rule(|rule| rule.comment))), needs log_need::RULE;
    /// Verdict of that rule; null if it only logs.
    rule_verdict: Name(VERDICTS) = own(|row| row.of_rule(|rule| rule.verdict).map_or(Value::Null, Value::Name)),
        needs log_need::RULE;
    /// Text of that rule, as nft writes it.
    rule: Text = own(|row| text(row.of_rule(|rule| rule.text))), needs log_need::RULE | log_need::RULE_TEXT;
    /// Address family of the chain, as nft writes it; packets in inet chains have ip or ip6.
    family: Name(FAMILIES.names) = own(|row| FAMILIES.value(row.family)), kernel "nfgen_family", show Show::Wide;
    /// Incoming interface.
    iif: Text = joined(LookupId::Ifaces, |row| iface(row, row.in_ifindex)),
        kernel "NFULA_IFINDEX_INDEV", show Show::Default;
    /// Index of that interface.
    iifindex: Id = own(|row| Value::number(row.in_ifindex)), kernel "NFULA_IFINDEX_INDEV";
    /// Outgoing interface.
    oif: Text = joined(LookupId::Ifaces, |row| iface(row, row.out_ifindex)),
        kernel "NFULA_IFINDEX_OUTDEV", show Show::Default;
    /// Index of that interface.
    oifindex: Id = own(|row| Value::number(row.out_ifindex)), kernel "NFULA_IFINDEX_OUTDEV";
    /// Incoming bridge port.
    physin: Text = joined(LookupId::Ifaces, |row| iface(row, row.physin_ifindex)), kernel "NFULA_IFINDEX_PHYSINDEV";
    /// Outgoing bridge port.
    physout: Text = joined(LookupId::Ifaces, |row| iface(row, row.physout_ifindex)),
        kernel "NFULA_IFINDEX_PHYSOUTDEV";
    /// IP protocol; `other` for a protocol without a name here, null if it is not an IP packet.
    proto: Name(ip_proto::NAMES) = own(|row| of_packet(row, |ip| Some(Value::Name(ip_proto::name(ip.proto))))),
        show Show::Default;
    /// IP protocol number.
    proto_number: Id = own(|row| number(row, |ip| Some(ip.proto.into())));
    /// Source address; for ARP, the sender's address.
    src: Addr = own(|row| address(row, |ip| ip.src, |arp| arp.sender.1)), show Show::Default, link &LINK;
    /// Source port.
    sport: Port = own(|row| number(row, |ip| Some(ip.transport.ports()?.0.into()))), show Show::Default;
    /// Destination address; for ARP, the target's address.
    dst: Addr = own(|row| address(row, |ip| ip.dst, |arp| arp.target.1)), show Show::Default, link &LINK;
    /// Destination port.
    dport: Port = own(|row| number(row, |ip| Some(ip.transport.ports()?.1.into()))), show Show::Default;
    /// Length of the packet from its network header on; null for a packet of more than 65,535 bytes without a length
    /// in its header.
    len: Bytes = own(|row| number(row, |ip| ip.known_length())), show Show::Default;
    /// Flags of the TCP header.
    tcp_flags: Words(tcp_flag::NAMES) = own(tcp_flags), show Show::Default;
    /// Sequence number of the TCP header.
    tcp_seq: Id = own(|row| of_tcp(row, |tcp| tcp.seq));
    /// Acknowledgement number of the TCP header.
    tcp_ack: Id = own(|row| of_tcp(row, |tcp| tcp.ack));
    /// Window of the TCP header, unscaled.
    tcp_window: Id = own(|row| of_tcp(row, |tcp| tcp.window.into()));
    /// Type of an ICMP message.
    icmp_type: Id = own(|row| number(row, |ip| Some(ip.transport.icmp()?.kind.into()))), show Show::Wide;
    /// Code of an ICMP message.
    icmp_code: Id = own(|row| number(row, |ip| Some(ip.transport.icmp()?.code.into()))), show Show::Wide;
    /// Identifier of an ICMP echo.
    icmp_id: Id = own(|row| number(row, |ip| Some(ip.transport.icmp()?.id?.into())));
    /// Remaining hops (TTL or hop limit).
    ttl: Count = own(|row| number(row, |ip| Some(ip.ttl.into()))), show Show::Wide;
    /// Type of service or traffic class: DSCP and ECN.
    tos: Hex = own(|row| number(row, |ip| Some(ip.tos.into()))), show Show::Wide;
    /// Identification field of an IPv4 packet or an IPv6 fragment.
    ip_id: Id = own(|row| number(row, |ip| Some(ip.id)));
    /// Offset of a fragment within the whole packet; null if it is not a fragment.
    fragment_offset: Bytes = own(|row| number(row, |ip| Some(ip.fragment?.offset.into()))), show Show::Wide;
    /// Mark of the packet.
    mark: Hex = own(|row| Value::number(row.mark)), kernel "NFULA_MARK", show Show::Wide, zero_is_null true;
    /// User ID of the sending socket; null for packets from other hosts.
    uid: Id = own(|row| Value::number(row.uid)), kernel "NFULA_UID", show Show::Wide;
    /// User name of the sending socket.
    user: Text = joined(LookupId::Users, |row| row.uid.map_or(Key::None, |uid| Key::Id(uid.into()))),
        kernel "NFULA_UID", show Show::Wide;
    /// Group ID of the sending socket.
    gid: Id = own(|row| Value::number(row.gid)), kernel "NFULA_GID";
    /// Name of the process that sent the packet or receives it (the first of several); null if its socket was already
    /// closed when netwren looked it up.
    process: Text = own(|row| owner(row, |o| Value::Bytes(o.process.as_bytes()))), needs log_need::OWNERS;
    /// That process.
    pid: Id = own(|row| owner(row, |o| Value::U64(o.pid.into()))), needs log_need::OWNERS;
    /// All owners of the socket: PID, name, file descriptor and start time (ms since boot).
    owners: Owners = own(|row| if row.owners.is_empty() { Value::Null } else { Value::Owners(row.owners) }),
        needs log_need::OWNERS;
    /// Command line of the first owner, its arguments separated by spaces.
    cmdline: Text = joined(LookupId::Cmdlines, by_pid), needs log_need::OWNERS;
    /// Container of the first owner: its name, or the start of its ID.
    container: Text = joined(LookupId::Containers, by_pid), needs log_need::OWNERS;
    /// Kubernetes pod of the first owner as namespace/name; its UID if the name is unknown.
    pod: Text = joined(LookupId::Pods, by_pid), needs log_need::OWNERS;
    /// Innermost systemd unit of the first owner.
    unit: Text = joined(LookupId::Units, by_pid), needs log_need::OWNERS;
    /// Conntrack state of the packet: new, established or related. With `ct_source` lookup it is the state that such a
    /// packet would have now: established if the connection has been answered since. Null without an entry: not
    /// confirmed (its first packet was dropped), invalid, untracked or already removed.
    ct_state: Name(PacketState::NAMES) = own(|row| cells::state(row.entry)), kernel "NFULA_CT_INFO",
        needs log_need::ENTRY;
    /// Direction of the packet in its connection: original (of the first packet) or reply.
    ct_direction: Name(CtDirection::NAMES) = own(|row| cells::direction(row.entry)), kernel "NFULA_CT_INFO",
        needs log_need::ENTRY;
    /// Status bits of the packet's conntrack entry. A filter matches if the named bit is set.
    ct_status: Words(CtStatus::NAMES) = own(|row| cells::status(row.entry)), kernel "CTA_STATUS", needs log_need::ENTRY;
    /// Mark of that entry; `mark` is the packet's.
    ct_mark: Hex = own(|row| entry(row, |ct| Value::number(ct.mark))),
        kernel "CTA_MARK", needs log_need::ENTRY, zero_is_null true;
    /// Zone of that entry; null for the default zone, 0, the only one in which netwren looks up entries.
    ct_zone: Id = own(|row| entry(row, |ct| Value::number(ct.any_zone()))),
        kernel "CTA_ZONE", needs log_need::ENTRY, zero_is_null true;
    /// ID of that entry, as in `nat`.
    ct_id: Id = own(|row| entry(row, |ct| Value::number(ct.id))), kernel "CTA_ID", needs log_need::ENTRY;
    /// Where the entry comes from: packet (logged with the packet, as it was then) or lookup (read afterwards, as it is
    /// now).
    ct_source: Name(EntrySource::NAMES) = own(|row| {
        row.entry.map_or(Value::Null, |logged| Value::Name(logged.source.name()))
    }), needs log_need::ENTRY;
    /// Address translation of the connection: none, snat (of the client's address), dnat (of the service's address) or
    /// both. A lookup also shows translation that was decided after the rule.
    nat: Name(NatKind::NAMES) = own(|row| cells::nat(row.entry)), needs log_need::ENTRY;
    /// Client that opened the connection: address and port.
    client: Endpoint = own(|row| cells::client(row.entry)), needs log_need::ENTRY;
    /// Client's address and port after source NAT, as the backend sees them; null if they are not rewritten.
    mapped: Endpoint = own(|row| cells::mapped(row.entry)), needs log_need::ENTRY;
    /// Address and port that the client connects to (before destination NAT).
    published: Endpoint = own(|row| cells::published(row.entry)), needs log_need::ENTRY;
    /// Address and port that answer; they differ from `published` after destination NAT.
    backend: Endpoint = own(|row| cells::backend(row.entry)), needs log_need::ENTRY;
    /// Source address of the connection's original direction.
    orig_src: Addr = own(|row| entry(row, |ct| Value::Addr(ct.orig.src))),
        kernel "CTA_TUPLE_ORIG", needs log_need::ENTRY;
    /// Source port of the original direction.
    orig_sport: Port = own(|row| entry(row, |ct| Value::number(ct.orig.sport()))), needs log_need::ENTRY;
    /// Destination address of the original direction.
    orig_dst: Addr = own(|row| entry(row, |ct| Value::Addr(ct.orig.dst))), needs log_need::ENTRY;
    /// Destination port of the original direction.
    orig_dport: Port = own(|row| entry(row, |ct| Value::number(ct.orig.dport()))), needs log_need::ENTRY;
    /// Source address of the connection's reply direction.
    reply_src: Addr = own(|row| entry(row, |ct| Value::Addr(ct.reply.src))),
        kernel "CTA_TUPLE_REPLY", needs log_need::ENTRY;
    /// Source port of the reply direction.
    reply_sport: Port = own(|row| entry(row, |ct| Value::number(ct.reply.sport()))), needs log_need::ENTRY;
    /// Destination address of the reply direction: after source NAT, the client's rewritten address.
    reply_dst: Addr = own(|row| entry(row, |ct| Value::Addr(ct.reply.dst))), needs log_need::ENTRY;
    /// Destination port of the reply direction.
    reply_dport: Port = own(|row| entry(row, |ct| Value::number(ct.reply.dport()))), needs log_need::ENTRY;
    /// VLAN ID of a bridged packet.
    vlan: Id = own(|row| Value::number(row.vlan)), kernel "NFULA_VLAN_TCI";
    /// EtherType: 0x800 IPv4, 0x86dd IPv6, 0x806 ARP.
    ether_type: Hex = own(|row| Value::number(Some(row.ether_type).filter(|kind| *kind != 0))),
        kernel "nfulnl_msg_packet_hdr.hw_protocol";
    /// Bytes of the packet that were copied.
    payload_bytes: Bytes = own(|row| Value::U64(row.payload.len() as u64)), kernel "NFULA_PAYLOAD";
    /// Sequence number of the record in its group; gaps are records that the kernel could not deliver.
    seq: Id = own(|row| Value::number(row.seq)), kernel "NFULA_SEQ";
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{Addr, Lookups, Table, field_index};

    fn cell<'r>(row: &'r LogRecord<'_>, name: &str) -> Value<'r> {
        LogRecords::FIELDS[field_index::<LogRecords>(name).unwrap()].cell(row, &Lookups::empty())
    }

    #[test]
    fn hooks_and_families_have_nfts_words() {
        for (family, hook, words) in [
            (2, 0, ("ip", "prerouting")),
            (10, 3, ("ip6", "output")),
            (1, 4, ("inet", "postrouting")),
            (3, 1, ("arp", "output")),
            (3, 0, ("arp", "input")),
            (5, 0, ("netdev", "ingress")),
            (5, 1, ("netdev", "egress")),
            (7, 2, ("bridge", "forward")),
            (77, 200, ("other", "other")),
            (3, 9, ("arp", "other")),
        ] {
            let row = LogRecord { family, hook, ..LogRecord::default() };
            assert_eq!(cell(&row, "family"), Value::Name(words.0));
            assert_eq!(row.hook_name(), words.1);
        }
    }

    #[test]
    fn directions_follow_from_hook_and_interfaces() {
        for (hook, iif, direction) in [
            (0, Some(1), Some("in")),
            (1, Some(1), Some("in")),
            (2, Some(1), Some("forward")),
            (3, None, Some("out")),
            (4, None, Some("out")),
            (4, Some(1), Some("forward")),
            (200, None, None),
        ] {
            let row = LogRecord { family: 2, hook, in_ifindex: iif, ..LogRecord::default() };
            assert_eq!(row.direction(), direction, "{hook}");
        }
    }

    #[test]
    fn a_tcp_packet_has_its_cells() {
        let transport = Transport::Tcp(TcpHeader { sport: 40_000, dport: 443, flags: 0x12, ..TcpHeader::default() });
        let packet = PacketHeaders { proto: 6, dst: Addr::V4([192, 0, 2, 1]), transport, ..PacketHeaders::default() };
        let row = LogRecord { packet: Some(packet), prefix: b"in: ", ..LogRecord::default() };
        assert_eq!(cell(&row, "dport"), Value::U64(443));
        assert_eq!(cell(&row, "dst"), Value::Addr(Addr::V4([192, 0, 2, 1])));
        assert_eq!(cell(&row, "tcp_flags"), Value::Bits(0x12, tcp_flag::NAMES));
        assert_eq!(cell(&row, "icmp_type"), Value::Null);
        assert_eq!(cell(&row, "prefix"), Value::text(Some(b"in: ")));
        assert_eq!(cell(&LogRecord::default(), "proto"), Value::Null, "no IP packet");
    }
}
