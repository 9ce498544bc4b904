//! One message of nfnetlink_log as a row.
use netlink::{Attr, Attrs, DecodeError, Message, prefix};
use packet::read_headers_into;
use record::rows::{CtAttrs, LogRecord};

use crate::uapi::{NFGENMSG, NFNL_SUBSYS_ULOG, NFULA_VLAN_TCI, msg, nfula};

/// The lower 12 bits of a VLAN tag are its id.
const VLAN_ID: u16 = 0x0fff;

/// True if the message is a record.
pub(crate) fn is_record(message: &Message<'_>) -> bool {
    message.kind == NFNL_SUBSYS_ULOG << 8 | msg::PACKET
}

/// Makes a row of the payload of a message. `received_ns` is the row's time where the kernel tells none; attributes
/// that are unknown here are counted in `unknown_attrs`. Allocates nothing.
pub fn decode_record<'b>(
    payload: &'b [u8],
    received_ns: u64,
    unknown_attrs: &mut u64,
) -> Result<LogRecord<'b>, DecodeError> {
    let mut row = LogRecord { time_ns: received_ns, ..LogRecord::default() };
    decode_into(payload, &mut row, unknown_attrs)?;
    read_headers_into(row.payload, &mut row.packet);
    Ok(row)
}

/// The same into `row`, which has the defaults of what a message may lack; after an error it is of no use. In place,
/// because a row has 300 bytes, and each move is a copy. What the packet's headers say is left to the caller.
#[inline]
pub(crate) fn decode_into<'b>(
    payload: &'b [u8],
    row: &mut LogRecord<'b>,
    unknown_attrs: &mut u64,
) -> Result<(), DecodeError> {
    let Some(([family, _, group_high, group_low], attrs)) = payload.split_first_chunk::<NFGENMSG>() else {
        return Err(DecodeError::Short { what: "nfgenmsg", claims: NFGENMSG, has: payload.len() });
    };
    (row.group, row.family) = (u16::from_be_bytes([*group_high, *group_low]), *family);
    for attr in Attrs::new(attrs) {
        let attr = attr?;
        match attr.kind {
            nfula::PACKET_HDR => {
                // struct nfulnl_msg_packet_hdr: hw_protocol be16, hook u8, padding.
                let [high, low, hook, _] = attr.chunk()?;
                (row.ether_type, row.hook) = (u16::from_be_bytes([*high, *low]), *hook);
            }
            nfula::PREFIX => row.prefix = attr.c_str(),
            nfula::PAYLOAD => row.payload = attr.payload,
            nfula::SEQ => row.seq = Some(attr.be32()?),
            nfula::IFINDEX_INDEV => row.in_ifindex = Some(attr.be32()?),
            nfula::IFINDEX_OUTDEV => row.out_ifindex = Some(attr.be32()?),
            nfula::TIMESTAMP => row.time_ns = time_ns(attr.chunk()?),
            nfula::HWHEADER => row.hw_header = attr.payload,
            nfula::HWADDR => row.hw_addr = hardware_address(attr.payload),
            nfula::HWTYPE => row.hw_type = Some(attr.be16()?),
            nfula::HWLEN => {}
            _ => rarer(row, attr, unknown_attrs)?,
        }
    }
    Ok(())
}

/// Before its attributes are read.
const NO_ENTRY: CtAttrs<'static> = CtAttrs { attrs: &[], info: u32::MAX };

#[inline(never)]
fn rarer<'b>(row: &mut LogRecord<'b>, attr: Attr<'b>, unknown_attrs: &mut u64) -> Result<(), DecodeError> {
    match attr.kind {
        nfula::MARK => row.mark = Some(attr.be32()?),
        nfula::UID => row.uid = Some(attr.be32()?),
        nfula::GID => row.gid = Some(attr.be32()?),
        nfula::IFINDEX_PHYSINDEV => row.physin_ifindex = Some(attr.be32()?),
        nfula::IFINDEX_PHYSOUTDEV => row.physout_ifindex = Some(attr.be32()?),
        nfula::VLAN => {
            for part in attr.nested() {
                let part = part?;
                if part.kind == NFULA_VLAN_TCI {
                    row.vlan = Some(part.be16()? & VLAN_ID);
                }
            }
        }
        nfula::L2HDR => {}
        nfula::SEQ_GLOBAL => {}
        nfula::CT => row.ct_attrs.get_or_insert(NO_ENTRY).attrs = attr.payload,
        nfula::CT_INFO => row.ct_attrs.get_or_insert(NO_ENTRY).info = attr.be32()?,
        _ => *unknown_attrs += 1,
    }
    Ok(())
}

/// struct nfulnl_msg_packet_hw: hw_addrlen be16, padding, eight bytes of which so many count.
#[inline]
pub(super) fn hardware_address(bytes: &[u8]) -> &[u8] {
    let Some(([high, low, _, _], address)) = bytes.split_first_chunk() else { return &[] };
    address.get(..usize::from(u16::from_be_bytes([*high, *low]))).unwrap_or_default()
}

/// struct nfulnl_msg_packet_timestamp: sec be64, usec be64.
#[inline]
pub(super) fn time_ns(stamp: &[u8; 16]) -> u64 {
    let number = |at: usize| prefix::be64_at(stamp, at).unwrap_or(0);
    number(0).saturating_mul(1_000_000_000).saturating_add(number(8).saturating_mul(1_000))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use netlink::Request;
    use proptest::prelude::*;
    use record::Addr;
    use record::rows::Transport;

    /// 203.0.113.7:40000 → 192.0.2.1:443, SYN.
    const SYN: [u8; 40] = [
        0x45, 0, 0, 60, 0x12, 0x34, 0x40, 0, 57, 6, 0, 0, 203, 0, 113, 7, 192, 0, 2, 1, // IPv4
        0x9c, 0x40, 1, 187, 0, 0, 0, 5, 0, 0, 0, 9, 0xa0, 0x02, 0xfa, 0xf0, 0, 0, 0, 0, // TCP
    ];

    /// The payload of a message with these attributes, of group 5 and family ip.
    fn message(attrs: impl FnOnce(&mut Request)) -> Vec<u8> {
        let mut request = Request::one(0);
        request.body(&[2, 0, 0, 5]);
        attrs(&mut request);
        request.bytes().unwrap()[16..].to_vec()
    }

    #[test]
    fn a_record_is_read() {
        let bytes = message(|message| {
            message.attr(nfula::PACKET_HDR, &[8, 0, 1, 0]).attr(nfula::PREFIX, b"fw-drop: \0");
            message.attr(nfula::IFINDEX_INDEV, &[0, 0, 0, 2]).attr(nfula::MARK, &[0, 0, 0, 7]);
            message.attr(nfula::TIMESTAMP, &[0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 3]);
            message.attr(nfula::UID, &[0, 0, 3, 232]).attr(nfula::SEQ, &[0, 0, 1, 0]).attr(nfula::PAYLOAD, &SYN);
            message.attr(nfula::HWTYPE, &[0, 1]).attr(nfula::HWHEADER, &[7; 14]);
            message.attr(nfula::HWADDR, &[0, 6, 0, 0, 2, 0, 0, 0, 0, 9, 0, 0]);
            message.nested(nfula::VLAN, |inside| _ = inside.attr(NFULA_VLAN_TCI, &[0xe0, 42]));
            message.nested(nfula::CT, |inside| _ = inside.attr(8, &[0, 0, 0, 9]));
            message.attr(nfula::CT_INFO, &[0, 0, 0, 2]).attr(77, &[1]);
        });
        let mut unknown = 0;
        let row = decode_record(&bytes, 1, &mut unknown).unwrap();
        assert_eq!((row.group, row.family, row.hook_name(), row.prefix), (5, 2, "input", &b"fw-drop: "[..]));
        assert_eq!((row.time_ns, row.ether_type, row.in_ifindex), (9_000_003_000, 0x800, Some(2)));
        assert_eq!((row.mark, row.uid, row.seq, row.vlan), (Some(7), Some(1000), Some(256), Some(42)));
        assert_eq!((row.hw_type, row.hw_header, row.hw_addr), (Some(1), &[7; 14][..], &[2, 0, 0, 0, 0, 9][..]));
        assert_eq!((unknown, row.payload.len()), (1, 40));
        assert_eq!(row.ct_attrs, Some(CtAttrs { attrs: &[8, 0, 8, 0, 0, 0, 0, 9], info: 2 }));
        let packet = row.packet.unwrap();
        assert_eq!((packet.src, packet.transport.ports()), (Addr::V4([203, 0, 113, 7]), Some((40_000, 443))));
    }

    #[test]
    fn what_is_short_is_an_error_or_left_out() {
        let mut unknown = 0;
        assert!(matches!(decode_record(&[2, 0, 0], 1, &mut unknown), Err(DecodeError::Short { .. })));
        let short = message(|message| _ = message.attr(nfula::SEQ, &[0, 1]));
        assert!(matches!(decode_record(&short, 1, &mut unknown), Err(DecodeError::Attr { attr: nfula::SEQ, .. })));
        let long = message(|message| _ = message.attr(nfula::HWADDR, &[0, 9, 0, 0, 2, 0, 0, 0, 0, 9, 0, 0]));
        assert_eq!(decode_record(&long, 1, &mut unknown).unwrap().hw_addr, [], "longer than its bytes");
        let cut = message(|message| _ = message.attr(nfula::PAYLOAD, &SYN[..24]));
        let row = decode_record(&cut, 1, &mut unknown).unwrap();
        assert_eq!((row.time_ns, row.packet.unwrap().transport), (1, Transport::Ports { sport: 40_000, dport: 443 }));
        let bytes = message(|_| ());
        assert_eq!(decode_record(&bytes, 1, &mut unknown).unwrap().packet, None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            crate::fuzz_nflog(&bytes);
        }
    }
}
