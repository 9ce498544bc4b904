//! A record as the keys and values that the tool's plugins pass to each other, in their order.
//!
//! JSON, GPRINT and OPRINT are three formats of this list.

use super::clock::microseconds;
use super::names::IfaceNames;
use super::packet::{ARPHRD_ETHER, ETH_P_IP, HeaderExtent, Layer4, arp, ip, layer4, ports, word};
use record::rows::{ArpHeader, LogRecord, PacketHeaders, Transport};
use record::{Addr, Lookups};

/// The plugins between NFLOG and the output: each adds its keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stages {
    /// NFLOG with `seq_local=1`: the record's number in its group.
    pub seq_local: bool,
    /// NFLOG's `numeric_label`.
    pub label: u8,
    /// BASE: the headers of the packet.
    pub base: bool,
    /// IFINDEX: names of interfaces.
    pub ifindex: bool,
    /// IP2STR: addresses as text.
    pub ip2str: bool,
    /// HWHDR: link-layer addresses as text.
    pub hwhdr: bool,
}

impl Stages {
    /// NFLOG, BASE, IFINDEX, IP2STR, HWHDR.
    pub const ALL: Stages = Stages { seq_local: false, label: 0, base: true, ifindex: true, ip2str: true, hwhdr: true };
}

/// A key, in the forms of the formats.
pub(super) struct Name {
    /// `, "name": `, with JSON's name.
    pub(super) json: &'static [u8],
    /// `name=`
    pub(super) plain: &'static [u8],
}

macro_rules! name {
    ($name:literal) => {
        name!($name, $name)
    };
    ($name:literal, $json:literal) => {
        &const { Name { json: concat!(", \"", $json, "\": ").as_bytes(), plain: concat!($name, "=").as_bytes() } }
    };
}

/// A writer of keys in one format.
pub(super) trait KeyWriter {
    /// Writes a number.
    fn number(&mut self, name: &Name, n: u64);
    /// Writes a number that an earlier plugin has already written under the same key.
    fn repeated_number(&mut self, name: &Name, n: u64);
    /// Writes text from outside.
    fn outside_text(&mut self, name: &Name, text: &[u8]);
    /// Writes text that is already harmless.
    fn word(&mut self, name: &Name, text: &[u8]);
    /// Writes an address as text.
    fn address(&mut self, name: &Name, addr: Addr);
    /// Writes an address as a number, which JSON omits.
    fn raw_address(&mut self, name: &Name, addr: Addr);
    /// Writes a link-layer address.
    fn hardware(&mut self, name: &Name, bytes: &[u8]);
    /// Writes a value that only OPRINT names.
    fn pointer(&mut self, name: &Name);
    /// Writes NFLOG's label.
    fn label(&mut self, name: &Name, label: u8) {
        self.number(name, label.into());
    }
}

/// The record, with the options for writing it.
pub(super) struct Record<'r, 'b> {
    pub(super) row: &'r LogRecord<'b>,
    pub(super) stages: Stages,
    pub(super) bug_compatible: bool,
    /// Second of the record's time.
    pub(super) second: u64,
}

/// Writes all keys of a record.
#[inline(always)]
pub(super) fn put_keys(
    to: &mut impl KeyWriter,
    record: &Record<'_, '_>,
    names: &mut IfaceNames,
    lookups: &Lookups<'_>,
) {
    let Record { row, stages, .. } = record;
    let ip = ip(row, record.bug_compatible);
    let arp = if ip.is_none() { arp(row, record.bug_compatible) } else { None };
    put_nflog(to, record);
    if stages.base {
        put_base(to, record, ip, arp.as_ref());
    }
    if stages.ifindex {
        to.word(name!("oob.in"), names.name(lookups, row.netns_id, row.in_ifindex, record.second));
        to.word(name!("oob.out"), names.name(lookups, row.netns_id, row.out_ifindex, record.second));
    }
    if stages.base && stages.ip2str {
        if let Some(ip) = ip {
            to.address(name!("ip.saddr.str", "src_ip"), ip.src);
            to.address(name!("ip.daddr.str", "dest_ip"), ip.dst);
        }
        if let Some(arp) = arp {
            to.address(name!("arp.saddr.str"), Addr::V4(arp.sender.1));
            to.address(name!("arp.daddr.str"), Addr::V4(arp.target.1));
        }
    }
    if stages.hwhdr {
        put_hardware(to, row);
    }
}

#[inline(always)]
fn put_nflog(to: &mut impl KeyWriter, record: &Record<'_, '_>) {
    let Record { row, stages, second, .. } = *record;
    if !row.hw_header.is_empty() {
        to.pointer(name!("raw.mac"));
    }
    to.pointer(name!("raw.pkt"));
    to.number(name!("raw.pktlen"), row.payload.len() as u64);
    to.number(name!("raw.pktcount"), 1);
    to.outside_text(name!("oob.prefix"), row.prefix);
    to.number(name!("oob.time.sec"), second);
    to.number(name!("oob.time.usec"), microseconds(row.time_ns));
    to.number(name!("oob.mark"), row.mark.unwrap_or(0).into());
    if let Some(index) = row.in_ifindex {
        to.number(name!("oob.ifindex_in"), index.into());
    }
    if let Some(index) = row.out_ifindex {
        to.number(name!("oob.ifindex_out"), index.into());
    }
    to.number(name!("oob.hook"), row.hook.into());
    if !row.hw_header.is_empty() {
        to.number(name!("raw.mac_len"), row.hw_header.len() as u64);
    }
    if let (true, Some(seq)) = (stages.seq_local, row.seq) {
        to.number(name!("oob.seq.local"), seq.into());
    }
    to.number(name!("oob.family"), row.family.into());
    to.number(name!("oob.protocol"), row.ether_type.into());
    if let Some(uid) = row.uid {
        to.number(name!("oob.uid"), uid.into());
    }
    if let Some(gid) = row.gid {
        to.number(name!("oob.gid"), gid.into());
    }
    to.label(name!("raw.label"), stages.label);
    if let Some(kind) = row.hw_type.filter(|_| !row.hw_header.is_empty()) {
        to.number(name!("raw.type"), kind.into());
    }
    if !row.hw_addr.is_empty() {
        to.pointer(name!("raw.mac.saddr"));
        to.number(name!("raw.mac.addrlen"), row.hw_addr.len() as u64);
    }
    to.pointer(name!("raw"));
}

#[inline(always)]
fn put_base(to: &mut impl KeyWriter, record: &Record<'_, '_>, ip: Option<&PacketHeaders<'_>>, arp: Option<&ArpHeader>) {
    let mut is_sctp = false;
    if let Some(ip) = ip {
        let (layer, captured) = layer4(ip, record.bug_compatible);
        to.raw_address(name!("ip.saddr"), ip.src);
        to.raw_address(name!("ip.daddr"), ip.dst);
        match ip.src {
            Addr::V4(_) => put_v4(to, ip),
            Addr::V6(_) => put_v6(to, ip, layer, record.bug_compatible),
        }
        if captured == HeaderExtent::Whole {
            put_layer4(to, ip, layer, record.bug_compatible);
            is_sctp = layer == Layer4::Sctp;
        }
    }
    to.repeated_number(name!("oob.protocol"), record.row.ether_type.into());
    if let (Some(ip), true) = (ip, is_sctp) {
        put_sctp(to, ip);
    }
    if let Some(arp) = arp {
        to.number(name!("arp.hwtype"), ARPHRD_ETHER.into());
        to.number(name!("arp.protocoltype"), ETH_P_IP.into());
        to.number(name!("arp.operation"), arp.operation.into());
        to.pointer(name!("arp.shwaddr"));
        to.raw_address(name!("arp.saddr"), Addr::V4(arp.sender.1));
        to.pointer(name!("arp.dhwaddr"));
        to.raw_address(name!("arp.daddr"), Addr::V4(arp.target.1));
    }
}

#[inline(always)]
fn put_v4(to: &mut impl KeyWriter, ip: &PacketHeaders<'_>) {
    to.number(name!("ip.protocol"), ip.proto.into());
    to.number(name!("ip.tos"), ip.tos.into());
    to.number(name!("ip.ttl"), ip.ttl.into());
    to.number(name!("ip.totlen"), ip.length.into());
    to.number(name!("ip.ihl"), ip.v4_header_words().unwrap_or(0).into());
    to.number(name!("ip.csum"), ip.v4_checksum().unwrap_or(0).into());
    to.number(name!("ip.id"), ip.id.into());
    to.number(name!("ip.fragoff"), ip.v4_fragment_bits().unwrap_or(0).into());
}

fn put_v6(to: &mut impl KeyWriter, ip: &PacketHeaders<'_>, layer: Layer4, bug_compatible: bool) {
    const HEADER: u32 = 40;
    let later = ip.fragment.is_some_and(|fragment| fragment.offset != 0);
    // The tool stops at ESP and at later fragments, whose protocol is only in the next key.
    if !(bug_compatible && (later || layer == Layer4::Esp)) {
        to.number(name!("ip.protocol"), ip.proto.into());
    }
    to.number(name!("ip6.payloadlen"), ip.length.saturating_sub(HEADER).into());
    to.number(name!("ip6.priority"), ip.tos.into());
    to.number(name!("ip6.flowlabel"), ip.flow_label().unwrap_or(0).into());
    to.number(name!("ip6.hoplimit"), ip.ttl.into());
    to.number(name!("ip6.nexthdr"), ip.proto.into());
    if let Some(fragment) = ip.fragment {
        to.number(name!("ip6.fragoff"), fragment.offset.into());
        to.number(name!("ip6.fragid"), ip.id.into());
    }
}

#[inline(always)]
fn put_layer4(to: &mut impl KeyWriter, ip: &PacketHeaders<'_>, layer: Layer4, bug_compatible: bool) {
    let (sport, dport) = ports(ip);
    match layer {
        Layer4::Tcp => put_tcp(to, ip),
        Layer4::Udp => {
            to.number(name!("udp.sport", "src_port"), sport.into());
            to.number(name!("udp.dport", "dest_port"), dport.into());
            to.number(name!("udp.len"), ip.udp_length().unwrap_or(0).into());
            to.number(name!("udp.csum"), ip.udp_checksum().unwrap_or(0).into());
        }
        Layer4::Icmp => put_icmp(to, ip, bug_compatible),
        Layer4::Icmp6 => put_icmp6(to, ip, bug_compatible),
        // The keys of SCTP follow later.
        Layer4::Sctp | Layer4::Esp | Layer4::Ah | Layer4::Other => {}
    }
}

fn put_sctp(to: &mut impl KeyWriter, ip: &PacketHeaders<'_>) {
    let (sport, dport) = ports(ip);
    to.number(name!("sctp.sport", "src_port"), sport.into());
    to.number(name!("sctp.dport", "dest_port"), dport.into());
    to.number(name!("sctp.csum"), ip.sctp_checksum().unwrap_or(0).into());
}

#[inline(always)]
fn put_tcp(to: &mut impl KeyWriter, ip: &PacketHeaders<'_>) {
    let Transport::Tcp(tcp) = &ip.transport else { return put_stray_tcp(to, ip) };
    to.number(name!("tcp.sport", "src_port"), tcp.sport.into());
    to.number(name!("tcp.dport", "dest_port"), tcp.dport.into());
    put_tcp_numbers(to, ip, tcp.seq, tcp.ack, tcp.window, tcp.flags);
}

/// Writes the payload of a later fragment as if it were a header.
#[cold]
fn put_stray_tcp(to: &mut impl KeyWriter, ip: &PacketHeaders<'_>) {
    let (sport, dport) = ports(ip);
    to.number(name!("tcp.sport", "src_port"), sport.into());
    to.number(name!("tcp.dport", "dest_port"), dport.into());
    let bits = word(ip, 12);
    put_tcp_numbers(to, ip, word(ip, 4), word(ip, 8), bits as u16, (bits >> 16) as u8);
}

#[inline(always)]
fn put_tcp_numbers(to: &mut impl KeyWriter, ip: &PacketHeaders<'_>, seq: u32, ack: u32, window: u16, flags: u8) {
    let bit = |mask: u8| u64::from(flags & mask != 0);
    to.number(name!("tcp.seq"), seq.into());
    to.number(name!("tcp.ackseq"), ack.into());
    to.number(name!("tcp.window"), window.into());
    // The tool has these two keys, but no values for them.
    to.number(name!("tcp.offset"), 0);
    to.number(name!("tcp.reserved"), 0);
    to.number(name!("tcp.urg"), bit(32));
    if bit(32) != 0 {
        to.number(name!("tcp.urgp"), ip.tcp_urgent().unwrap_or(0).into());
    }
    to.number(name!("tcp.ack"), bit(16));
    to.number(name!("tcp.psh"), bit(8));
    to.number(name!("tcp.rst"), bit(4));
    to.number(name!("tcp.syn"), bit(2));
    to.number(name!("tcp.fin"), bit(1));
    to.number(name!("tcp.res1"), ip.tcp_reserved().unwrap_or(0).into());
    to.number(name!("tcp.res2"), (flags >> 6).into());
    to.number(name!("tcp.csum"), ip.tcp_checksum().unwrap_or(0).into());
}

fn kind_of(ip: &PacketHeaders<'_>) -> (u8, u8) {
    ip.payload.first_chunk().map_or((0, 0), |[kind, code]| (*kind, *code))
}

fn put_icmp(to: &mut impl KeyWriter, ip: &PacketHeaders<'_>, bug_compatible: bool) {
    let (kind, code) = kind_of(ip);
    let rest = ip.icmp_rest().unwrap_or_default();
    to.number(name!("icmp.type"), kind.into());
    to.number(name!("icmp.code"), code.into());
    match (kind, code) {
        (0 | 8, _) => {
            to.number(name!("icmp.echoid"), u16::from_be_bytes([rest[0], rest[1]]).into());
            to.number(name!("icmp.echoseq"), u16::from_be_bytes([rest[2], rest[3]]).into());
        }
        (5, _) if bug_compatible => to.raw_address(name!("icmp.gateway"), reverse_bytes(rest)),
        // The tool writes the pointer here.
        (12, _) if bug_compatible => to.raw_address(name!("icmp.gateway"), reverse_bytes(rest)),
        (5, _) => to.raw_address(name!("icmp.gateway"), Addr::V4(rest)),
        (3, 4) => to.number(name!("icmp.fragmtu"), u16::from_be_bytes([rest[2], rest[3]]).into()),
        _ => {}
    }
    to.number(name!("icmp.csum"), icmp_checksum(ip, bug_compatible).into());
}

/// The tool writes this checksum, and no other, in the host's byte order.
fn icmp_checksum(ip: &PacketHeaders<'_>, bug_compatible: bool) -> u16 {
    let sum = ip.icmp_checksum().unwrap_or(0);
    if bug_compatible { sum.to_be() } else { sum }
}

/// The tool passes this address in the host's byte order.
fn reverse_bytes([a, b, c, d]: [u8; 4]) -> Addr {
    Addr::V4([d, c, b, a])
}

fn put_icmp6(to: &mut impl KeyWriter, ip: &PacketHeaders<'_>, bug_compatible: bool) {
    let (kind, code) = kind_of(ip);
    to.number(name!("icmpv6.type"), kind.into());
    to.number(name!("icmpv6.code"), code.into());
    if let (128 | 129, Some(rest)) = (kind, ip.icmp_rest()) {
        to.number(name!("icmpv6.echoid"), u16::from_be_bytes([rest[0], rest[1]]).into());
        to.number(name!("icmpv6.echoseq"), u16::from_be_bytes([rest[2], rest[3]]).into());
    }
    to.number(name!("icmpv6.csum"), icmp_checksum(ip, bug_compatible).into());
}

#[inline(always)]
fn put_hardware(to: &mut impl KeyWriter, row: &LogRecord<'_>) {
    const ADDRESS: usize = 6;
    let header = row.hw_header;
    if let Some(kind) = row.hw_type.filter(|_| !header.is_empty()) {
        to.repeated_number(name!("raw.type"), kind.into());
    }
    to.repeated_number(name!("oob.protocol"), row.ether_type.into());
    if !row.hw_addr.is_empty() {
        to.hardware(name!("mac.saddr.str"), row.hw_addr);
    }
    if let (Some(ARPHRD_ETHER), Some(destination)) = (row.hw_type, header.get(..ADDRESS)) {
        to.hardware(name!("mac.daddr.str"), destination);
    }
    if !header.is_empty() {
        to.hardware(name!("mac.str"), header);
    }
}
