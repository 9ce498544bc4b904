//! Decodes one message of nfnetlink_log into a row.
use netlink::{Attr, Attrs, DecodeError, Message, prefix};
use packet::read_headers_into;
use record::rows::{ArpHeader, CtAttrs, LogRecord};

use crate::uapi::{NFGENMSG, NFNL_SUBSYS_ULOG, NFULA_VLAN_TCI, msg, nfula};

/// The lower 12 bits of a VLAN tag are its id.
const VLAN_ID: u16 = 0x0fff;

/// EtherTypes (include/uapi/linux/if_ether.h).
const ETH_P_IP: u16 = 0x0800;
const ETH_P_ARP: u16 = 0x0806;
const ETH_P_IPV6: u16 = 0x86dd;
/// Family of the ARP hooks (include/uapi/linux/netfilter.h).
const NFPROTO_ARP: u8 = 3;

/// True if the message is a record.
pub(crate) fn is_record(message: &Message<'_>) -> bool {
    message.kind == NFNL_SUBSYS_ULOG << 8 | msg::PACKET
}

/// Decodes the payload of a message into a row. `received_ns` is the row's time if the kernel sends none; unknown
/// attributes are counted in `unknown_attrs`. Allocates nothing.
pub fn decode_record<'b>(
    payload: &'b [u8],
    received_ns: u64,
    unknown_attrs: &mut u64,
) -> Result<LogRecord<'b>, DecodeError> {
    let mut row = LogRecord { time_ns: received_ns, ..LogRecord::default() };
    decode_into(payload, &mut row, unknown_attrs)?;
    read_packet(&mut row);
    Ok(row)
}

/// Decodes the headers of the record's packet.
#[inline]
pub(crate) fn read_packet(row: &mut LogRecord<'_>) {
    if is_plain(row) {
        read_headers_into(row.payload, &mut row.packet);
    } else {
        read_other_packet(row);
    }
}

/// True unless the kernel reports that the payload starts with something other than an IP header.
#[inline]
pub(crate) fn is_plain(row: &LogRecord<'_>) -> bool {
    matches!(row.ether_type, 0 | ETH_P_IP | ETH_P_IPV6)
}

/// Decodes the headers of a packet whose payload starts with VLAN tags or is not IP. Removes the link-layer header that
/// precedes ARP packets sent by this host (`arp_xmit` in net/ipv4/arp.c).
#[cold]
pub(crate) fn read_other_packet(row: &mut LogRecord<'_>) {
    const ETHERNET: usize = 14;
    row.packet = None;
    if (row.family, row.ether_type) == (NFPROTO_ARP, ETH_P_ARP) {
        if let Some((link, packet)) = row.payload.split_at_checked(ETHERNET) {
            if link.ends_with(&ETH_P_ARP.to_be_bytes()) && ArpHeader::read(packet).is_some() {
                row.payload = packet;
            }
        }
    }
    let (ether_type, packet) = row.payload_after_tags();
    if ether_type != row.ether_type {
        // The kernel reports the outer tag in an attribute. Without it, the first tag in the payload is the outer one.
        let control = row.payload.first_chunk().map(|control| u16::from_be_bytes(*control) & VLAN_ID);
        row.vlan = row.vlan.or(control);
    }
    if matches!(ether_type, ETH_P_IP | ETH_P_IPV6) {
        read_headers_into(packet, &mut row.packet);
    }
}

/// Like [`decode_record`], into `row`, which must contain the defaults for missing attributes; its content is invalid
/// after an error. In place, because a row has 300 bytes and each move is a copy. Packet headers are left to the
/// caller.
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
    let mut link_header: &[u8] = &[];
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
            nfula::L2HDR => link_header = attr.payload,
            _ => decode_rare(row, attr, unknown_attrs)?,
        }
    }
    // In netdev's egress hook, the payload starts with the link-layer header.
    if let Some(packet) = row.payload.strip_prefix(link_header) {
        row.payload = packet;
    }
    Ok(())
}

/// The value before its attributes are read.
const NO_ENTRY: CtAttrs<'static> = CtAttrs { attrs: &[], info: u32::MAX };

#[inline(never)]
fn decode_rare<'b>(row: &mut LogRecord<'b>, attr: Attr<'b>, unknown_attrs: &mut u64) -> Result<(), DecodeError> {
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
        nfula::SEQ_GLOBAL => {}
        nfula::CT => row.ct_attrs.get_or_insert(NO_ENTRY).attrs = attr.payload,
        nfula::CT_INFO => row.ct_attrs.get_or_insert(NO_ENTRY).info = attr.be32()?,
        _ => *unknown_attrs += 1,
    }
    Ok(())
}

/// struct nfulnl_msg_packet_hw: hw_addrlen be16, padding, eight bytes of which the first hw_addrlen are valid.
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
        let mut request = Request::for_one(0);
        request.append(&[2, 0, 0, 5]);
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
    fn what_is_in_front_of_the_packet_is_left_out() {
        let read = |family: u8, ether_type: u16, payload: &[u8], link_header: &[u8]| {
            let mut bytes = message(|message| {
                let [high, low] = ether_type.to_be_bytes();
                message.attr(nfula::PACKET_HDR, &[high, low, 1, 0]);
                message.attr(nfula::L2HDR, link_header).attr(nfula::PAYLOAD, payload);
            });
            bytes[0] = family;
            let row = decode_record(&bytes, 1, &mut 0).unwrap();
            (row.payload.to_vec(), row.packet.map(|packet| packet.src), row.arp().map(|arp| arp.target.1), row.vlan)
        };
        let (src, link) = (Some(Addr::V4([203, 0, 113, 7])), [&[2; 12][..], &[8, 0]].concat());
        assert_eq!(read(5, 0x800, &[&link, &SYN[..]].concat(), &link), (SYN.to_vec(), src, None, None), "egress");
        assert_eq!(read(5, 0x800, &SYN, &link), (SYN.to_vec(), src, None, None), "ingress");
        let tagged = [&[0, 50, 0x91, 0, 0, 8, 8, 0][..], &SYN].concat();
        assert_eq!(read(5, 0x8100, &tagged, &link), (tagged.clone(), src, None, Some(50)), "tags");
        let arp = [&[0, 1, 8, 0, 6, 4, 0, 1][..], &[2; 10], &[0; 6], &[192, 0, 2, 1]].concat();
        let target = Some([192, 0, 2, 1]);
        assert_eq!(read(3, 0x806, &arp, &[]), (arp.clone(), None, target, None));
        let sent = [&[0xff; 12][..], &[8, 6], &arp].concat();
        assert_eq!(read(3, 0x806, &sent, &[]), (arp.clone(), None, target, None), "sent by this host");
        let behind = [&[0, 50, 8, 6][..], &arp].concat();
        assert_eq!(read(7, 0x8100, &behind, &[]), (behind.clone(), None, target, Some(50)));
        assert_eq!(read(7, 4, &[0x42, 0x42, 3, 0, 0, 0], &[]).1, None, "spanning tree is not IPv4");
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
