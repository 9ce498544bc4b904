//! The filter of a dump that the kernel applies, and its encoding in a request.

use netlink::Request;
use record::Addr;
use record::rows::{CtTuple, ip_proto};

use crate::table::CtTable;
use crate::uapi::{AF_INET, AF_INET6, NFNL_SUBSYS_CTNETLINK, cta, filter, ip, msg, proto, tuple};

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

    fn put_words(&self, side: &str, words: &mut Vec<String>) {
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
        self.orig.put_words("orig", &mut words);
        self.reply.put_words("reply", &mut words);
        words.join(" and ")
    }

    /// Builds the request for a table.
    pub fn request(&self, table: CtTable) -> Request {
        let kind = match table {
            CtTable::Conntrack if self.zero_counters => NFNL_SUBSYS_CTNETLINK << 8 | msg::CT_GET_CTRZERO,
            _ => table.kind(),
        };
        let mut request = Request::dump(kind);
        request.append(&[self.family, 0, 0, 0]);
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
