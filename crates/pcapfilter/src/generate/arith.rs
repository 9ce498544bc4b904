//! Relations of numbers, and bytes of the packet by offset.

use super::protocols::ip_number;
use super::{Condition, Generated, Generator, HeaderPlace};
use crate::ast::{Arith, Operator, Relation};
use crate::graph::Compare;
use crate::numbers::{ethertype, ip};
use crate::value::{Size, ValueId};
use crate::words::Proto;

impl Generator<'_> {
    /// A relation holds if the packet contains the protocols whose bytes it reads, and the comparison is true.
    pub(super) fn relation(&mut self, relation: Relation, left: &Arith, right: &Arith) -> Generated {
        let mut parts = Vec::new();
        let left = self.arith(left, &mut parts)?;
        let right = self.arith(right, &mut parts)?;
        let (compare, is_negated) = match relation {
            Relation::Greater => (Compare::Greater, false),
            Relation::GreaterOrEqual => (Compare::GreaterOrEqual, false),
            Relation::Equal => (Compare::Equal, false),
            Relation::LessOrEqual => (Compare::Greater, true),
            Relation::Less => (Compare::GreaterOrEqual, true),
            Relation::NotEqual => (Compare::Equal, true),
        };
        let holds = Condition::compare(self.values, left, compare, right);
        parts.push(if is_negated { holds.negate() } else { holds });
        Ok(Condition::All(parts))
    }

    /// Returns a number. Adds the conditions for the packet to contain the protocols whose bytes are read to
    /// `protocols`.
    fn arith(&mut self, arith: &Arith, protocols: &mut Vec<Condition>) -> Result<ValueId, String> {
        Ok(match arith {
            Arith::Number(number) => self.values.constant(*number),
            Arith::Len => self.values.length(),
            Arith::Negate(inner) => {
                let inner = self.arith(inner, protocols)?;
                self.values.negate(inner)
            }
            Arith::Binary(operator, left, right) => {
                let left = self.arith(left, protocols)?;
                // libpcap tests only the protocols of the left side: `len - tcp[12] > 0` is true for any packet.
                let right = self.arith(right, &mut Vec::new())?;
                match (operator, self.values.constant_of(right)) {
                    (Operator::Div, Some(0)) => return Err("division by zero".to_owned()),
                    (Operator::Mod, Some(0)) => return Err("modulus by zero".to_owned()),
                    (Operator::ShiftLeft | Operator::ShiftRight, Some(32..)) => {
                        return Err("shift by more than 31 bits".to_owned());
                    }
                    _ => {}
                }
                self.values.binary(*operator, left, right)
            }
            Arith::Load { proto, offset, size } => {
                let offset = self.arith(offset, protocols)?;
                self.load_indexed(*proto, offset, *size, protocols)?
            }
        })
    }

    fn load_indexed(
        &mut self,
        proto: Proto,
        index: ValueId,
        size: u32,
        protocols: &mut Vec<Condition>,
    ) -> Result<ValueId, String> {
        let size = match size {
            1 => Size::Byte,
            2 => Size::Half,
            4 => Size::Word,
            _ => return Err("data size must be 1, 2, or 4".to_owned()),
        };
        let network = self.payload.constant.wrapping_add(self.network);
        let (base, offset) = match proto {
            Proto::Link => {
                if self.values.constant_of(index).is_none() {
                    self.values.note_link_index();
                }
                (self.base(self.header), self.header.constant)
            }
            Proto::Ip
            | Proto::Arp
            | Proto::Rarp
            | Proto::Atalk
            | Proto::Decnet
            | Proto::Sca
            | Proto::Lat
            | Proto::Moprc
            | Proto::Mopdl
            | Proto::Ipv6 => {
                protocols.push(self.protocol_word(proto)?);
                (self.base(self.payload), network)
            }
            Proto::Sctp
            | Proto::Tcp
            | Proto::Udp
            | Proto::Icmp
            | Proto::Igmp
            | Proto::Igrp
            | Proto::Pim
            | Proto::Vrrp
            | Proto::Carp => {
                let mut parts = vec![self.link_type(ethertype::IP)?];
                parts.append(protocols);
                // Only over IPv4. For IPv6, the offset depends on the extension headers.
                let number = ip_number(proto).unwrap_or(0);
                parts.push(self.test_equal(HeaderPlace::Network, 9, Size::Byte, number));
                parts.push(self.first_fragment());
                *protocols = parts;
                (Some(self.ipv4_header_length()), network)
            }
            Proto::Icmpv6 => {
                protocols.push(self.protocol_word(Proto::Ipv6)?);
                protocols.push(self.test_equal(HeaderPlace::Network, 6, Size::Byte, ip::ICMPV6));
                (self.base(self.payload), network.wrapping_add(40))
            }
            Proto::Radio => return Err("radio information not present in capture".to_owned()),
            _ => return Err("unsupported index operation".to_owned()),
        };
        let index = match base {
            Some(base) => self.values.binary(Operator::Add, index, base),
            None => index,
        };
        Ok(self.values.load(size, Some(index), offset))
    }
}
