//! Decodes ctnetlink messages about expectations: connections that a helper read out of another connection's payload
//! and waits for.
use netlink::{Attr, Attrs, DecodeError};
use record::rows::{CtTuple, Expectation};

use crate::backends::netlink::ctnetlink::CtDecoder;
use crate::uapi::{NFGENMSG, expect};

/// Decodes messages about expectations into rows. Allocates nothing.
#[derive(Debug, Clone, Copy)]
pub struct ExpectDecoder {
    netns_id: u64,
    tuples: CtDecoder,
    unknown_attrs: u64,
}

impl ExpectDecoder {
    /// A decoder for messages from namespace `netns_id`.
    pub fn new(netns_id: u64) -> ExpectDecoder {
        ExpectDecoder { netns_id, tuples: CtDecoder::new(netns_id), unknown_attrs: 0 }
    }

    /// Number of skipped attributes so far that only newer kernels define.
    pub fn unknown_attrs(&self) -> u64 {
        self.unknown_attrs + self.tuples.unknown_attrs
    }

    /// Decodes one message's payload into a row that borrows it.
    ///
    /// Fails if the payload is shorter than its header, an attribute does not fit, or the expected tuple is missing.
    pub fn decode<'b>(&mut self, payload: &'b [u8]) -> Result<Expectation<'b>, DecodeError> {
        let Some((head, attrs)) = payload.split_first_chunk::<NFGENMSG>() else {
            return Err(DecodeError::Short { what: "nfgenmsg", claims: NFGENMSG, has: payload.len() });
        };
        let mut row = Expectation { netns_id: self.netns_id, family: head[0], ..Expectation::EMPTY };
        let mut told = false;
        for attr in Attrs::new(attrs) {
            let attr = attr?;
            told |= attr.kind == expect::TUPLE;
            self.attribute(&mut row, &attr)?;
        }
        if told { Ok(row) } else { Err(DecodeError::Missing("the expected tuple")) }
    }

    fn attribute<'b>(&mut self, row: &mut Expectation<'b>, attr: &Attr<'b>) -> Result<(), DecodeError> {
        match attr.kind {
            expect::MASTER => row.master = self.tuples.tuple(attr)?,
            expect::TUPLE => row.tuple = self.tuples.tuple(attr)?,
            expect::MASK => row.mask = self.tuples.tuple(attr)?,
            expect::TIMEOUT => row.timeout_s = Some(attr.be32()?),
            expect::ID => row.id = Some(attr.be32()?),
            expect::HELP_NAME => row.helper = Some(attr.c_str()),
            expect::ZONE => row.zone = Some(attr.be16()?),
            expect::FLAGS => row.flags = Some(attr.be32()?),
            expect::CLASS => row.class = Some(attr.be32()?),
            expect::FN => row.function = Some(attr.c_str()),
            expect::NAT => row.nat = self.nat(attr)?,
            _ => self.unknown_attrs += 1,
        }
        Ok(())
    }

    fn nat(&mut self, attr: &Attr<'_>) -> Result<Option<(u32, CtTuple)>, DecodeError> {
        let (mut direction, mut tuple) = (0, None);
        for part in attr.nested() {
            let part = part?;
            match part.kind {
                expect::NAT_DIR => direction = part.be32()?,
                expect::NAT_TUPLE => tuple = Some(self.tuples.tuple(&part)?),
                _ => self.unknown_attrs += 1,
            }
        }
        Ok(tuple.map(|tuple| (direction, tuple)))
    }
}
