//! The netlink backend: requests whole tables and decodes the answers into rows.
//!
//! For any dump the kernel walks the hash table of the whole host, at 50 ns a bucket, and evicts the expired entries
//! that it passes, in every namespace. So a kernel filter saves the building of messages, not the walk.
use std::ops::ControlFlow;

use netlink::{Answer, DecodeError, DumpEnd, DumpError, Query, Request};
use record::Addr;
use record::rows::{Conntrack, CtTuple, Expectation, ip_proto};
use sys::{Host, NetNs};

use crate::backends::netlink::ctnetlink::CtDecoder;
use crate::backends::netlink::uapi::{
    AF_INET, AF_INET6, NETLINK_NETFILTER, NFNL_SUBSYS_CTNETLINK, NFNL_SUBSYS_CTNETLINK_EXP, cta, filter, ip, msg,
    proto, tuple,
};
use crate::expect::ExpectDecoder;

/// The kernel's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CtTable {
    /// Entries.
    Conntrack,
    /// Entries removed from the table that are still referenced, or whose destroy event could not be delivered.
    Dying,
    /// Entries whose first packet is still on its way through the kernel.
    Unconfirmed,
    /// Connections that helpers expect.
    Expect,
}

impl CtTable {
    /// Every table.
    pub const ALL: [CtTable; 4] = [CtTable::Conntrack, CtTable::Dying, CtTable::Unconfirmed, CtTable::Expect];

    /// Name of the table.
    pub fn name(self) -> &'static str {
        match self {
            CtTable::Conntrack => "conntrack",
            CtTable::Dying => "dying",
            CtTable::Unconfirmed => "unconfirmed",
            CtTable::Expect => "expect",
        }
    }

    /// Names the reader of this table in a recording, see [`sys::NetnsTarget::enter_for`].
    pub fn purpose(self) -> &'static str {
        match self {
            CtTable::Conntrack => "/conntrack",
            CtTable::Dying => "/dying",
            CtTable::Unconfirmed => "/unconfirmed",
            CtTable::Expect => "/expect",
        }
    }

    /// Name in messages: `cannot dump the dying list`.
    pub fn what(self) -> &'static str {
        match self {
            CtTable::Conntrack => "the connection-tracking table",
            CtTable::Dying => "dying connection-tracking entries",
            CtTable::Unconfirmed => "unconfirmed connection-tracking entries",
            CtTable::Expect => "connection-tracking expectations",
        }
    }

    fn kind(self) -> u16 {
        let (subsystem, message) = match self {
            CtTable::Conntrack => (NFNL_SUBSYS_CTNETLINK, msg::CT_GET),
            CtTable::Dying => (NFNL_SUBSYS_CTNETLINK, msg::CT_GET_DYING),
            CtTable::Unconfirmed => (NFNL_SUBSYS_CTNETLINK, msg::CT_GET_UNCONFIRMED),
            CtTable::Expect => (NFNL_SUBSYS_CTNETLINK_EXP, msg::EXP_GET),
        };
        subsystem << 8 | message
    }
}

/// Conditions of a kernel filter (CTA_FILTER) on one tuple of an entry. It needs a family, even without an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TupleFilter {
    /// Source address.
    pub src: Option<Addr>,
    /// Destination address.
    pub dst: Option<Addr>,
    /// IP protocol.
    pub proto: Option<u8>,
    /// Source port; only with `proto`.
    pub sport: Option<u16>,
    /// Destination port; only with `proto`.
    pub dport: Option<u16>,
}

impl TupleFilter {
    /// True without conditions.
    pub fn is_empty(&self) -> bool {
        *self == TupleFilter::default()
    }

    fn flags(&self) -> u32 {
        let bits = [
            (self.src.is_some(), filter::IP_SRC),
            (self.dst.is_some(), filter::IP_DST),
            (self.proto.is_some(), filter::PROTO_NUM),
            (self.sport.is_some(), filter::SRC_PORT),
            (self.dport.is_some(), filter::DST_PORT),
        ];
        bits.iter().filter(|(wanted, _)| *wanted).fold(0, |flags, (_, bit)| flags | bit)
    }

    fn tell(&self, side: &str, words: &mut Vec<String>) {
        words.extend(self.proto.map(|proto| format!("{side}_proto = {proto}")));
        words.extend(self.src.map(|addr| format!("{side}_src = {addr}")));
        words.extend(self.dst.map(|addr| format!("{side}_dst = {addr}")));
        words.extend(self.sport.map(|port| format!("{side}_sport = {port}")));
        words.extend(self.dport.map(|port| format!("{side}_dport = {port}")));
    }

    // The kernel parses both addresses of a tuple, even if it compares only one.
    fn put(&self, request: &mut Request, kind: u16, v6: bool) {
        request.nested(kind, |inside| {
            if self.src.is_some() || self.dst.is_some() {
                let kinds = if v6 { [ip::V6_SRC, ip::V6_DST] } else { [ip::V4_SRC, ip::V4_DST] };
                inside.nested(tuple::IP, |inside| {
                    for (kind, addr) in kinds.into_iter().zip([self.src, self.dst]) {
                        put_addr(inside, kind, addr.unwrap_or(if v6 { Addr::ANY6 } else { Addr::ANY4 }));
                    }
                });
            }
            if let Some(number) = self.proto {
                inside.nested(tuple::PROTO, |inside| {
                    inside.attr(proto::NUM, &[number]);
                    if self.sport.is_some() || self.dport.is_some() {
                        inside.attr(proto::SRC_PORT, &self.sport.unwrap_or(0).to_be_bytes());
                        inside.attr(proto::DST_PORT, &self.dport.unwrap_or(0).to_be_bytes());
                    }
                });
            }
        });
    }
}

/// Filter of a dump in the kernel; all its conditions must hold. The [`Default`] filters nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KernelFilter {
    /// 2 AF_INET, 10 AF_INET6, 0 both.
    pub family: u8,
    /// Status bits: value and mask (CTA_STATUS, CTA_STATUS_MASK; kernel 5.15).
    pub status: Option<(u32, u32)>,
    /// Mark: value and mask (CTA_MARK, CTA_MARK_MASK).
    pub mark: Option<(u32, u32)>,
    /// Zone (CTA_ZONE; kernel 6.8).
    pub zone: Option<u16>,
    /// Parts of the original tuple (CTA_FILTER; kernel 5.8).
    pub orig: TupleFilter,
    /// Parts of the reply tuple (the same).
    pub reply: TupleFilter,
    /// Resets the counters of the entries that are read to 0 (IPCTNL_MSG_CT_GET_CTRZERO).
    pub zero_counters: bool,
}

impl KernelFilter {
    /// A copy of this filter for one family.
    pub fn of_family(self, family: u8) -> KernelFilter {
        KernelFilter { family, ..self }
    }

    /// The families to request one after the other: the kernel refuses CTA_FILTER for both at once, and an address
    /// belongs to one family. Empty if no entry can match.
    pub fn families(&self) -> &'static [u8] {
        if self.family == 0 && !self.is_by_tuple() {
            return &[0];
        }
        match (self.can_be(AF_INET), self.can_be(AF_INET6)) {
            (true, true) => &[AF_INET, AF_INET6],
            (true, false) => &[AF_INET],
            (false, true) => &[AF_INET6],
            (false, false) => &[],
        }
    }

    fn can_be(&self, family: u8) -> bool {
        let fits = |addr: Option<Addr>| addr.is_none_or(|addr| matches!(addr, Addr::V6(_)) == (family == AF_INET6));
        let addrs = [self.orig.src, self.orig.dst, self.reply.src, self.reply.dst];
        (self.family == 0 || self.family == family) && addrs.into_iter().all(fits)
    }

    fn is_by_tuple(&self) -> bool {
        !(self.orig.is_empty() && self.reply.is_empty())
    }

    /// True if only a protocol makes it need a family: then it costs one walk more than no filter at all.
    pub(crate) fn is_proto_alone(&self) -> bool {
        let only = TupleFilter { proto: self.orig.proto, ..TupleFilter::default() };
        self.family == 0 && self.orig == only && self.reply.is_empty() && self.orig.proto.is_some()
    }

    /// Describes the filter, for `--explain` and for recordings; empty without conditions.
    pub fn words(&self) -> String {
        let mut words = Vec::new();
        match self.family {
            AF_INET => words.push("family = inet".to_owned()),
            AF_INET6 => words.push("family = inet6".to_owned()),
            _ => {}
        }
        if let Some((value, mask)) = self.status {
            words.push(format!("status = {value:#x}/{mask:#x}"));
        }
        if let Some((value, mask)) = self.mark {
            words.push(format!("mark = {value:#x}/{mask:#x}"));
        }
        words.extend(self.zone.map(|zone| format!("zone = {zone}")));
        self.orig.tell("orig", &mut words);
        self.reply.tell("reply", &mut words);
        words.join(" and ")
    }

    /// Builds the request for a table.
    pub fn request(&self, table: CtTable) -> Request {
        let kind = match table {
            CtTable::Conntrack if self.zero_counters => NFNL_SUBSYS_CTNETLINK << 8 | msg::CT_GET_CTRZERO,
            _ => table.kind(),
        };
        let mut request = Request::dump(kind);
        request.body(&[self.family, 0, 0, 0]);
        if table != CtTable::Conntrack {
            // The kernel filters these tables only by family.
            return request;
        }
        if let Some((value, mask)) = self.mark {
            request.attr(cta::MARK, &value.to_be_bytes()).attr(cta::MARK_MASK, &mask.to_be_bytes());
        }
        if let Some((value, mask)) = self.status {
            request.attr(cta::STATUS, &value.to_be_bytes()).attr(cta::STATUS_MASK, &mask.to_be_bytes());
        }
        if let Some(zone) = self.zone {
            request.attr(cta::ZONE, &zone.to_be_bytes());
        }
        if self.is_by_tuple() {
            for (tuple, kind) in [(&self.orig, cta::TUPLE_ORIG), (&self.reply, cta::TUPLE_REPLY)] {
                if !tuple.is_empty() {
                    tuple.put(&mut request, kind, self.family == AF_INET6);
                }
            }
            request.nested(cta::FILTER, |inside| {
                // These flags are in machine byte order, unlike all other numbers here.
                inside.attr_u32(filter::ORIG_FLAGS, self.orig.flags());
                inside.attr_u32(filter::REPLY_FLAGS, self.reply.flags());
            });
        }
        request
    }
}

pub(crate) fn put_addr(request: &mut Request, kind: u16, addr: Addr) {
    match addr {
        Addr::V4(octets) => request.attr(kind, &octets),
        Addr::V6(octets) => request.attr(kind, &octets),
    };
}

/// Appends a whole tuple as an attribute of a request: for GET, DELETE and NEW.
pub fn put_tuple(request: &mut Request, kind: u16, of: &CtTuple) {
    let kinds = match of.src {
        Addr::V4(_) => [ip::V4_SRC, ip::V4_DST],
        Addr::V6(_) => [ip::V6_SRC, ip::V6_DST],
    };
    request.nested(kind, |inside| {
        inside.nested(tuple::IP, |inside| {
            put_addr(inside, kinds[0], of.src);
            put_addr(inside, kinds[1], of.dst);
        });
        inside.nested(tuple::PROTO, |inside| {
            inside.attr(proto::NUM, &[of.proto]);
            put_parts(inside, of);
        });
        if let Some(zone) = of.zone {
            inside.attr(tuple::ZONE, &zone.to_be_bytes());
        }
    });
}

fn put_parts(request: &mut Request, of: &CtTuple) {
    let [kind, code] = of.dst_part.to_be_bytes();
    match of.proto {
        ip_proto::ICMP => {
            request.attr(proto::ICMP_ID, &of.src_part.to_be_bytes());
            request.attr(proto::ICMP_TYPE, &[kind]).attr(proto::ICMP_CODE, &[code]);
        }
        ip_proto::ICMPV6 => {
            request.attr(proto::ICMPV6_ID, &of.src_part.to_be_bytes());
            request.attr(proto::ICMPV6_TYPE, &[kind]).attr(proto::ICMPV6_CODE, &[code]);
        }
        _ if of.has_ports() || of.proto == ip_proto::GRE => {
            request.attr(proto::SRC_PORT, &of.src_part.to_be_bytes());
            request.attr(proto::DST_PORT, &of.dst_part.to_be_bytes());
        }
        _ => {}
    }
}

/// A network namespace, and its number in a recording.
#[derive(Debug, Clone, Copy)]
pub struct NetnsRef<'p> {
    /// The namespace to read; `None` is the calling thread's.
    pub netns: Option<&'p NetNs>,
    /// Its inode, which is part of every row and of the stream's name in a recording.
    pub netns_id: u64,
}

/// Result of a dump that completed or that the caller stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dumped {
    /// Result of the netlink dump itself.
    pub end: DumpEnd,
    /// Number of rows handed out.
    pub rows: u64,
    /// Number of messages that could not be decoded.
    pub malformed: u64,
    /// Error of the first of these messages.
    pub first_error: Option<DecodeError>,
    /// Number of skipped attributes that only newer kernels define.
    pub unknown_attrs: u64,
}

impl Dumped {
    pub(crate) fn failed(&mut self, error: DecodeError) {
        self.malformed += 1;
        self.first_error.get_or_insert(error);
    }
}

/// Name of a table's stream in a recording.
pub fn key(table: CtTable, netns_id: u64, family: u8) -> String {
    let family = match family {
        AF_INET => "/v4",
        AF_INET6 => "/v6",
        _ => "",
    };
    format!("ctnetlink/{}/{netns_id}{family}", table.name())
}

/// Reads `table` (one that holds entries) with one request and calls `each` for every row, in the kernel's order, with
/// the number of the receive buffer that contained it.
///
/// Costs 2.1 to 2.7 µs of kernel time per entry and 50 ns per bucket of the host's table; allocates nothing per row.
/// Needs CAP_NET_ADMIN. `filter` must fit one request: see [`KernelFilter::families`].
pub fn dump_entries(
    host: &Host,
    place: NetnsRef<'_>,
    table: CtTable,
    filter: &KernelFilter,
    note: &str,
    mut each: impl FnMut(&Conntrack<'_>, u64) -> ControlFlow<()>,
) -> Result<Dumped, DumpError> {
    let (mut decoder, mut dumped) = (CtDecoder::new(place.netns_id), Dumped::default());
    let end = ask(host, place, table, filter, note, |part| match decoder.decode(part.payload) {
        Ok(row) => {
            dumped.rows += 1;
            each(&row, part.block)
        }
        Err(error) => {
            dumped.failed(error);
            ControlFlow::Continue(())
        }
    })?;
    Ok(Dumped { end, unknown_attrs: decoder.unknown_attrs, ..dumped })
}

/// Reads the expectations in the same way.
pub fn dump_expectations(
    host: &Host,
    place: NetnsRef<'_>,
    family: u8,
    mut each: impl FnMut(&Expectation<'_>) -> ControlFlow<()>,
) -> Result<Dumped, DumpError> {
    let (mut decoder, mut dumped) = (ExpectDecoder::new(place.netns_id), Dumped::default());
    let filter = KernelFilter::default().of_family(family);
    let end = ask(host, place, CtTable::Expect, &filter, "", |part| match decoder.decode(part.payload) {
        Ok(row) => {
            dumped.rows += 1;
            each(&row)
        }
        Err(error) => {
            dumped.failed(error);
            ControlFlow::Continue(())
        }
    })?;
    Ok(Dumped { end, unknown_attrs: decoder.unknown_attrs(), ..dumped })
}

fn ask(
    host: &Host,
    place: NetnsRef<'_>,
    table: CtTable,
    filter: &KernelFilter,
    note: &str,
    each: impl FnMut(&Answer<'_>) -> ControlFlow<()>,
) -> Result<DumpEnd, DumpError> {
    let request = filter.request(table);
    let key = key(table, place.netns_id, filter.family);
    let ask = Query {
        what: table.what(),
        protocol: NETLINK_NETFILTER,
        request: &request,
        key: &key,
        note,
        netns: place.netns,
    };
    netlink::dump(host, &ask, each)
}
