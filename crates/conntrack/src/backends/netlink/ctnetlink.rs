//! ctnetlink: decodes a message about an entry into a row.
//!
//! Layouts: include/uapi/linux/netfilter/nfnetlink_conntrack.h. A message is a `struct nfgenmsg` of 4 bytes and
//! attributes, most of them nested. An attribute that the kernel leaves out is `None` in the row; unknown attributes
//! are skipped and counted. This module does not send requests. Start reading at [`CtDecoder::decode`].
use netlink::{Attr, Attrs, DecodeError};
use record::Addr;
use record::rows::{Conntrack, CtCounters, CtState, CtStatus, CtTuple};

use crate::uapi::{NAME, NFGENMSG, counters, cta, ip, proto, protoinfo, timestamp, tuple};

/// Decodes messages into rows: from a dump, from the answer to a GET request, or from an event. Allocates nothing.
#[derive(Debug, Clone, Copy)]
pub struct CtDecoder {
    netns_id: u64,
    /// Master of the newest row: rows refer to it, because hardly any row has one.
    master: CtTuple,
    /// Number of skipped attributes so far that only newer kernels define.
    pub unknown_attrs: u64,
}

impl CtDecoder {
    /// A decoder for messages from namespace `netns_id`.
    pub fn new(netns_id: u64) -> CtDecoder {
        CtDecoder { netns_id, master: CtTuple::EMPTY, unknown_attrs: 0 }
    }

    /// Sets the namespace of the following messages: one socket may receive events of many namespaces.
    pub fn set_netns(&mut self, netns_id: u64) {
        self.netns_id = netns_id;
    }

    /// Decodes one message's payload into a row that borrows it.
    ///
    /// Fails if the payload is shorter than its header, an attribute does not fit, or a tuple is missing.
    #[inline]
    pub fn decode<'b>(&'b mut self, payload: &'b [u8]) -> Result<Conntrack<'b>, DecodeError> {
        let Some((head, attrs)) = payload.split_first_chunk::<NFGENMSG>() else {
            return Err(DecodeError::Short { what: "nfgenmsg", claims: NFGENMSG, has: payload.len() });
        };
        self.decode_attrs(head[0], attrs)
    }

    /// Decodes the attributes alone, of an entry of this family: the content of `NFULA_CT` and `NFQA_CT`.
    #[inline]
    pub fn decode_attrs<'b>(&'b mut self, family: u8, attrs: &'b [u8]) -> Result<Conntrack<'b>, DecodeError> {
        let mut row = Conntrack { netns_id: self.netns_id, family, ..Conntrack::EMPTY };
        let (mut orig, mut reply, mut has_master) = (false, false, false);
        for attr in Attrs::new(attrs) {
            let attr = attr?;
            match attr.kind {
                cta::TUPLE_ORIG => (row.orig, orig) = (self.tuple(&attr)?, true),
                cta::TUPLE_REPLY => (row.reply, reply) = (self.tuple(&attr)?, true),
                cta::TUPLE_MASTER => (self.master, has_master) = (self.tuple(&attr)?, true),
                cta::STATUS => row.status = Some(CtStatus(attr.be32()?)),
                cta::TIMEOUT => row.timeout_s = Some(attr.be32()?),
                cta::MARK => row.mark = Some(attr.be32()?),
                cta::USE => row.uses = Some(attr.be32()?),
                cta::ID => row.id = Some(attr.be32()?),
                cta::ZONE => row.zone = Some(attr.be16()?),
                _ => self.decode_rare(&mut row, &attr)?,
            }
        }
        if !(orig && reply) {
            return Err(DecodeError::Missing(if orig { "the reply tuple" } else { "the original tuple" }));
        }
        if has_master {
            row.master = Some(&self.master);
        }
        Ok(row)
    }

    fn decode_rare<'b>(&mut self, row: &mut Conntrack<'b>, attr: &Attr<'b>) -> Result<(), DecodeError> {
        match attr.kind {
            cta::PROTOINFO => self.protoinfo(row, attr)?,
            cta::COUNTERS_ORIG => row.counters_orig = Some(self.counters(attr)?),
            cta::COUNTERS_REPLY => row.counters_reply = Some(self.counters(attr)?),
            cta::LABELS => row.labels = Some(attr.payload),
            cta::HELP => row.helper = decode_helper_name(attr)?,
            cta::SECCTX => row.secctx = decode_helper_name(attr)?,
            cta::TIMESTAMP => {
                for part in attr.nested() {
                    let part = part?;
                    match part.kind {
                        timestamp::START => row.start_ns = Some(part.be64()?),
                        timestamp::STOP => row.stop_ns = Some(part.be64()?),
                        // CTA_TIMESTAMP_PAD.
                        3 => {}
                        _ => self.unknown_attrs += 1,
                    }
                }
            }
            // Their values are not used here, but the kernel stores them in extensions.
            cta::SYNPROXY | cta::SEQ_ADJ_ORIG | cta::SEQ_ADJ_REPLY => row.extended = Some(true),
            // Attributes that occur only in requests.
            known if known <= cta::LAST_KNOWN => {}
            _ => self.unknown_attrs += 1,
        }
        Ok(())
    }

    /// Decodes a tuple: addresses, protocol with its ports or other numbers, zone.
    #[inline]
    pub(crate) fn tuple(&mut self, attr: &Attr<'_>) -> Result<CtTuple, DecodeError> {
        let mut made = CtTuple::EMPTY;
        for part in attr.nested() {
            let part = part?;
            match part.kind {
                tuple::IP => self.addresses(&mut made, &part)?,
                tuple::PROTO => self.parts(&mut made, &part)?,
                tuple::ZONE => made.zone = Some(part.be16()?),
                _ => self.unknown_attrs += 1,
            }
        }
        Ok(made)
    }

    #[inline]
    fn addresses(&mut self, made: &mut CtTuple, attr: &Attr<'_>) -> Result<(), DecodeError> {
        for part in attr.nested() {
            let part = part?;
            match part.kind {
                ip::V4_SRC => made.src = Addr::V4(part.array()?),
                ip::V4_DST => made.dst = Addr::V4(part.array()?),
                ip::V6_SRC => made.src = Addr::V6(part.array()?),
                ip::V6_DST => made.dst = Addr::V6(part.array()?),
                _ => self.unknown_attrs += 1,
            }
        }
        Ok(())
    }

    #[inline]
    fn parts(&mut self, made: &mut CtTuple, attr: &Attr<'_>) -> Result<(), DecodeError> {
        let [mut kind, mut code] = [0; 2];
        for part in attr.nested() {
            let part = part?;
            match part.kind {
                proto::NUM => made.proto = part.u8()?,
                proto::SRC_PORT | proto::ICMP_ID | proto::ICMPV6_ID => made.src_part = part.be16()?,
                proto::DST_PORT => made.dst_part = part.be16()?,
                proto::ICMP_TYPE | proto::ICMPV6_TYPE => kind = part.u8()?,
                proto::ICMP_CODE | proto::ICMPV6_CODE => code = part.u8()?,
                _ => self.unknown_attrs += 1,
            }
        }
        if (kind, code) != (0, 0) {
            made.dst_part = u16::from_be_bytes([kind, code]);
        }
        Ok(())
    }

    // Skips protocols without states and protocols that are not known here.
    fn protoinfo(&mut self, row: &mut Conntrack<'_>, attr: &Attr<'_>) -> Result<(), DecodeError> {
        for part in attr.nested() {
            let part = part?;
            let of: fn(u8) -> CtState = match part.kind {
                protoinfo::TCP => CtState::Tcp,
                protoinfo::SCTP => CtState::Sctp,
                protoinfo::DCCP => CtState::Dccp,
                _ => {
                    self.unknown_attrs += 1;
                    continue;
                }
            };
            for one in part.nested() {
                let one = one?;
                match (part.kind, one.kind) {
                    (_, protoinfo::STATE) => row.state = Some(of(one.u8()?)),
                    (protoinfo::SCTP, protoinfo::SCTP_VTAG_ORIG) => row.vtags.get_or_insert([0; 2])[0] = one.be32()?,
                    (protoinfo::SCTP, protoinfo::SCTP_VTAG_REPLY) => row.vtags.get_or_insert([0; 2])[1] = one.be32()?,
                    (protoinfo::DCCP, protoinfo::DCCP_ROLE) => row.dccp_role = Some(one.u8()?),
                    // Rows do not contain window scales and flags.
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn counters(&mut self, attr: &Attr<'_>) -> Result<CtCounters, DecodeError> {
        let mut made = CtCounters { packets: 0, bytes: 0 };
        for part in attr.nested() {
            let part = part?;
            match part.kind {
                counters::PACKETS => made.packets = part.be64()?,
                counters::BYTES => made.bytes = part.be64()?,
                counters::PACKETS_32 => made.packets = part.be32()?.into(),
                counters::BYTES_32 => made.bytes = part.be32()?.into(),
                // CTA_COUNTERS_PAD.
                5 => {}
                _ => self.unknown_attrs += 1,
            }
        }
        Ok(made)
    }
}

// The name inside CTA_HELP or CTA_SECCTX.
fn decode_helper_name<'b>(attr: &Attr<'b>) -> Result<Option<&'b [u8]>, DecodeError> {
    for part in attr.nested() {
        let part = part?;
        if part.kind == NAME {
            return Ok(Some(part.c_str()));
        }
    }
    Ok(None)
}
