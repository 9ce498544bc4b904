//! Decodes one event of the BPF program into a row.
use netlink::DecodeError;
use netlink::prefix::{array_at, u16_at, u32_at, u64_at};
use record::Addr;
use record::rows::{Conntrack, CtState, CtStatus, CtTuple, ip_proto};

use crate::uapi::{AF_INET, AF_INET6};

/// Size of `struct event` in crates/bpf/c/conntrack_new.bpf.c, in machine byte order.
pub(crate) const EVENT: usize = 48;
/// Size of `struct event6`: a `struct event` followed by IPv6 addresses.
pub(crate) const EVENT6: usize = EVENT + 64;

const FAMILY: usize = 26;
const PROTO: usize = 27;
const STATE: usize = 28;
const HAS: usize = 29;
/// Offset of the four IPv4 addresses.
const ADDRS: usize = 32;
const HAS_MARK: u8 = 1;
const HAS_STATE: u8 = 2;

/// One event: [`EVENT`] bytes, [`EVENT6`] if its family is IPv6.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewEntry<'b>(&'b [u8]);

impl<'b> NewEntry<'b> {
    /// The first of `events` and the bytes after it; `Err` with the bytes if they are too short for an event.
    pub(crate) fn split_first(events: &'b [u8]) -> Result<(NewEntry<'b>, &'b [u8]), &'b [u8]> {
        let bytes = if events.get(FAMILY) == Some(&AF_INET6) { EVENT6 } else { EVENT };
        events.split_at_checked(bytes).map(|(event, rest)| (NewEntry(event), rest)).ok_or(events)
    }

    /// Time of the event on the kernel's monotonic clock, in ns.
    pub(crate) fn happened_ns(self) -> u64 {
        u64_at(self.0, 0).unwrap_or(0)
    }

    /// The entry as it is about to be inserted into the table of namespace `netns_id`.
    pub(crate) fn row(self, netns_id: u64) -> Result<Conntrack<'static>, DecodeError> {
        let event = self.0;
        // Every offset is inside the event, so the fallbacks are never used.
        let byte = |at: usize| event.get(at).copied().unwrap_or(0);
        let (family, proto, has) = (byte(FAMILY), byte(PROTO), byte(HAS));
        let addr = |index: usize| match family {
            AF_INET => Ok(Addr::V4(array_at(event, ADDRS + 4 * index).unwrap_or([0; 4]))),
            AF_INET6 => Ok(Addr::V6(array_at(event, EVENT + 16 * index).unwrap_or([0; 16]))),
            other => Err(DecodeError::Family(other)),
        };
        let part = |at: usize| u16::from_be(u16_at(event, at).unwrap_or(0));
        let tuple = |addrs: usize, parts: usize| -> Result<CtTuple, DecodeError> {
            let (src, dst) = (addr(addrs)?, addr(addrs + 1)?);
            Ok(CtTuple { src, dst, proto, src_part: part(parts), dst_part: part(parts + 2), zone: None })
        };
        let zone = u16_at(event, 24).unwrap_or(0);
        Ok(Conntrack {
            netns_id,
            family,
            orig: tuple(0, 16)?,
            reply: tuple(2, 20)?,
            status: Some(CtStatus(u32_at(event, 8).unwrap_or(0))),
            state: (has & HAS_STATE != 0).then(|| match proto {
                ip_proto::SCTP => CtState::Sctp(byte(STATE)),
                _ => CtState::Tcp(byte(STATE)),
            }),
            // Like a netlink event, this omits a mark of 0.
            mark: u32_at(event, 12).filter(|mark| has & HAS_MARK != 0 && *mark != 0),
            zone: (zone != 0).then_some(zone),
            ..Conntrack::EMPTY
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn event(family: u8, proto: u8) -> Vec<u8> {
        let mut bytes = 5u64.to_ne_bytes().to_vec();
        [0x188u32, 7].iter().for_each(|n| bytes.extend(n.to_ne_bytes()));
        [1000u16, 53, 8053, 1001].iter().for_each(|n| bytes.extend(n.to_be_bytes()));
        bytes.extend(3u16.to_ne_bytes());
        bytes.extend([family, proto, 1, 3, 0, 0]);
        bytes.extend([10, 0, 0, 1, 10, 0, 0, 2, 172, 17, 0, 2, 192, 0, 2, 1]);
        if family == AF_INET6 {
            (1..=4).for_each(|host| bytes.extend([&[0; 15][..], &[host]].concat()));
        }
        bytes
    }

    #[test]
    fn both_families_in_a_row() {
        let events = [event(2, 6), event(10, 132), event(2, 17)].concat();
        let (first, rest) = NewEntry::split_first(&events).unwrap();
        let row = first.row(9).unwrap();
        assert_eq!((first.happened_ns(), row.netns_id, row.family, row.mark, row.zone), (5, 9, 2, Some(7), Some(3)));
        assert_eq!((row.orig.src, row.orig.sport(), row.orig.dport()), (Addr::V4([10, 0, 0, 1]), Some(1000), Some(53)));
        assert_eq!((row.reply.src, row.reply.sport()), (Addr::V4([172, 17, 0, 2]), Some(8053)));
        assert_eq!((row.state, row.status), (Some(CtState::Tcp(1)), Some(CtStatus(0x188))));
        let (second, rest) = NewEntry::split_first(rest).unwrap();
        let row = second.row(9).unwrap();
        assert_eq!(row.reply.dst, Addr::V6([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4]));
        assert_eq!(row.state, Some(CtState::Sctp(1)));
        let (_, rest) = NewEntry::split_first(rest).unwrap();
        assert!(NewEntry::split_first(rest).is_err() && NewEntry::split_first(&events[..EVENT - 1]).is_err());
        assert!(NewEntry::split_first(&event(7, 6)).unwrap().0.row(0).is_err());
    }
}
