//! Link-layer headers: Ethernet with VLAN tags, Linux "cooked" headers, raw IP, the BSDs' loopback; and ARP.

use crate::bytes::array;
use crate::headers::read_headers;
use record::rows::{ArpHeader, CapturedPacket, LinkHeader, LinkType};

const ETH_P_IP: u16 = 0x0800;
const ETH_P_ARP: u16 = 0x0806;
const ETH_P_IPV6: u16 = 0x86dd;
/// IEEE 802.1Q, 802.1ad, and the number used before 802.1ad.
const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// `LINKTYPE_NFLOG`
const NFLOG: LinkType = LinkType(239);
/// Maximum number of tags to read; the bytes after them count as the payload.
///
/// Bound: link-layer tags of a packet. Beyond: the rest counts as payload. By: any sender of packets.
const TAGS_MAX: usize = 16;
/// Bytes of a tag, including the EtherType of the data after it.
const TAG_BYTES: usize = 4;

/// Decodes the headers of `row.frame` into `row`. Fields that were not captured are left unchanged.
#[inline]
pub fn read_frame(row: &mut CapturedPacket<'_>) {
    row.link = read_link(row.link_type, row.frame);
    match row.link.ether_type {
        ETH_P_IP | ETH_P_IPV6 => {
            row.packet = read_headers(row.link.payload);
            if row.packet.as_ref().is_some_and(|packet| packet.known_length().is_none()) {
                set_length(row);
            }
        }
        ETH_P_ARP => row.arp = ArpHeader::read(row.link.payload),
        _ => {}
    }
}

/// Computes the packet's length from the frame's length.
#[cold]
fn set_length(row: &mut CapturedPacket<'_>) {
    let link_header = row.frame.len().saturating_sub(row.link.payload.len()) as u32;
    if let Some(packet) = &mut row.packet {
        packet.length = row.len.saturating_sub(link_header);
    }
}

/// The link-layer header of a frame; its payload is empty if the header is unknown or incomplete.
#[inline]
fn read_link(link_type: LinkType, frame: &[u8]) -> LinkHeader<'_> {
    let read = match link_type {
        LinkType::ETHERNET => ethernet(frame),
        LinkType::RAW => raw(frame, 0),
        // Raw IP with other systems' numbers; IPv4 only, IPv6 only.
        LinkType(12 | 14 | 228 | 229) => raw(frame, 0),
        LinkType::SLL => decode_cooked(frame, 14, 16),
        LinkType::SLL2 => decode_cooked(frame, 0, 20),
        // The number of the family differs between systems; the packet shows its version itself.
        LinkType::NULL | LinkType::LOOP => raw(frame, 4),
        NFLOG => nflog_payload(frame).and_then(|packet| raw(packet, 0)),
        _ => None,
    };
    read.unwrap_or_default()
}

#[inline]
fn ethernet(frame: &[u8]) -> Option<LinkHeader<'_>> {
    let addresses = Some([array(frame, 0)?, array(frame, 6)?]);
    let header = LinkHeader { addresses, ..LinkHeader::default() };
    Some(with_tags(header, u16::from_be_bytes(array(frame, 12)?), frame.get(14..)?))
}

/// Skips VLAN tags: `ether_type` is the type before `rest`.
#[inline]
fn with_tags<'f>(mut header: LinkHeader<'f>, ether_type: u16, rest: &'f [u8]) -> LinkHeader<'f> {
    (header.ether_type, header.payload) = (ether_type, rest);
    for nth in 0..TAGS_MAX {
        let tag = if TAGS.contains(&header.ether_type) { array::<4>(header.payload, 0) } else { None };
        let Some([high, low, kind_high, kind_low]) = tag else { break };
        let tag = Some(u16::from_be_bytes([high, low]));
        match nth {
            0 => header.vlan = tag,
            1 => header.inner_vlan = tag,
            _ => {}
        }
        header.ether_type = u16::from_be_bytes([kind_high, kind_low]);
        header.payload = header.payload.get(TAG_BYTES..).unwrap_or_default();
    }
    header
}

/// Returns the offsets of a frame's EtherType and of its tags; `None` for link types without tags.
fn tag_places(link_type: LinkType) -> Option<(usize, usize)> {
    match link_type {
        LinkType::ETHERNET => Some((12, 14)),
        LinkType::SLL => Some((14, 16)),
        LinkType::SLL2 => Some((0, 20)),
        _ => None,
    }
}

/// True if the bytes of the frame contain a VLAN tag.
#[inline]
pub fn is_tagged(link_type: LinkType, frame: &[u8]) -> bool {
    let kind = tag_places(link_type).and_then(|(kind_at, _)| array(frame, kind_at));
    kind.is_some_and(|kind| TAGS.contains(&u16::from_be_bytes(kind)))
}

/// Copies the frame into `out` without its first VLAN tags, at most `most` of them. Returns the number of tags removed;
/// writes nothing if it is 0.
pub fn put_untagged(link_type: LinkType, frame: &[u8], most: usize, out: &mut Vec<u8>) -> usize {
    let Some((kind_at, begin)) = tag_places(link_type) else { return 0 };
    let (mut kind_place, mut left_out) = (kind_at, 0);
    let kind = |at: usize| array::<2>(frame, at).map(u16::from_be_bytes);
    while left_out < most.min(TAGS_MAX) && kind(kind_place).is_some_and(|kind| TAGS.contains(&kind)) {
        let next = begin + left_out * TAG_BYTES + 2;
        if kind(next).is_none() {
            break;
        }
        kind_place = next;
        left_out += 1;
    }
    let parts = (frame.get(..begin), frame.get(kind_place..kind_place + 2), frame.get(begin + left_out * TAG_BYTES..));
    let (Some(header), Some(kind), Some(rest), 1..) = (parts.0, parts.1, parts.2, left_out) else { return 0 };
    out.clear();
    out.extend_from_slice(header);
    if let Some(place) = out.get_mut(kind_at..kind_at + 2) {
        place.copy_from_slice(kind);
    }
    out.extend_from_slice(rest);
    left_out
}

/// Returns the packet in a netfilter log message. The message holds family, version and group, then attributes with
/// numbers in the byte order of the capturing host, which is nearly always little-endian
/// (https://www.tcpdump.org/linktypes/LINKTYPE_NFLOG.html).
fn nflog_payload(frame: &[u8]) -> Option<&[u8]> {
    const PAYLOAD: u16 = 9;
    let mut rest = frame.get(4..)?;
    loop {
        let (length, kind) = (u16::from_le_bytes(array(rest, 0)?), u16::from_le_bytes(array(rest, 2)?));
        let attr = rest.get(4..usize::from(length).min(rest.len()))?;
        if kind == PAYLOAD {
            return Some(attr);
        }
        rest = rest.get(usize::from(length).next_multiple_of(4)..)?;
    }
}

fn raw(frame: &[u8], at: usize) -> Option<LinkHeader<'_>> {
    let payload = frame.get(at..)?;
    let ether_type = match payload.first()? >> 4 {
        4 => ETH_P_IP,
        6 => ETH_P_IPV6,
        _ => 0,
    };
    Some(LinkHeader { ether_type, payload, ..LinkHeader::default() })
}

/// Decodes a header of `bytes` bytes with the EtherType at `kind_at`.
fn decode_cooked(frame: &[u8], kind_at: usize, bytes: usize) -> Option<LinkHeader<'_>> {
    let ether_type = u16::from_be_bytes(array(frame, kind_at)?);
    Some(with_tags(LinkHeader::default(), ether_type, frame.get(bytes..)?))
}

/// Decodes any bytes as a frame of any link type, and describes it. For the fuzzer: it must not panic.
pub fn fuzz_frame(data: &[u8]) {
    let mut text = Vec::new();
    for link_type in [0, 1, 101, 108, 113, 276, 105, 239].map(LinkType) {
        let mut row = CapturedPacket { link_type, frame: data, len: u32::MAX, ..CapturedPacket::default() };
        read_frame(&mut row);
        text.clear();
        crate::info::put_info(&row, &mut text);
        assert!(text.len() <= crate::info::INFO_BYTES_MAX);
        let (is_tagged, left_out) = (is_tagged(link_type, data), put_untagged(link_type, data, usize::MAX, &mut text));
        assert!(is_tagged || left_out == 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(link_type: LinkType, frame: &[u8]) -> CapturedPacket<'_> {
        let mut row = CapturedPacket { link_type, frame, len: frame.len() as u32, ..CapturedPacket::default() };
        read_frame(&mut row);
        row
    }

    const IPV4: [u8; 28] = [
        0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, // IPv4
        0, 53, 0, 99, 0, 8, 0, 0, // UDP
    ];

    #[test]
    fn every_link_type_leads_to_the_packet() {
        let tags = [0x88, 0xa8, 0x20, 77, 0x81, 0, 0, 78, 8, 0];
        for (link_type, head) in [
            (LinkType::ETHERNET, [&[1; 12][..], &[8, 0]].concat()),
            (LinkType::ETHERNET, [&[1; 12][..], &tags].concat()),
            (LinkType::RAW, vec![]),
            (LinkType::NULL, vec![2, 0, 0, 0]),
            (LinkType::LOOP, vec![0, 0, 0, 2]),
            (LinkType::SLL, [&[0; 14][..], &[8, 0]].concat()),
            (LinkType::SLL2, [&[8, 0][..], &[0; 18]].concat()),
        ] {
            let frame = [&head[..], &IPV4].concat();
            let row = read(link_type, &frame);
            assert_eq!(row.ports(), Some((53, 99)), "{link_type:?}");
            let tags = (row.link.vlan, row.link.inner_vlan);
            assert_eq!(tags, if head.len() == 22 { (Some(0x204d), Some(78)) } else { (None, None) });
        }
        assert_eq!(read(LinkType(105), &IPV4).packet, None);
        assert_eq!(read(LinkType::ETHERNET, &[1; 13]).link, LinkHeader::default());
    }

    #[test]
    fn a_length_of_0_is_that_of_the_frame() {
        let mut super_packet = [&[1; 12][..], &[8, 0], &IPV4].concat();
        (super_packet[16], super_packet[17]) = (0, 0);
        let mut row = CapturedPacket {
            link_type: LinkType::ETHERNET,
            frame: &super_packet,
            len: 90_014,
            ..read(LinkType::RAW, &[])
        };
        read_frame(&mut row);
        assert_eq!(row.packet.map(|packet| packet.length), Some(90_000));
        let mut info = Vec::new();
        crate::info::put_info(&row, &mut info);
        assert_eq!(info, b"len 89972");
        let mut big =
            [&[0x60, 0, 0, 0, 0, 0, 6, 64][..], &[1; 32], &[0x9c, 0x40, 1, 187], &[0; 8], &[0x50, 16], &[0; 6]]
                .concat();
        let mut row =
            CapturedPacket { link_type: LinkType::RAW, frame: &big, len: 90_060, ..CapturedPacket::default() };
        read_frame(&mut row);
        assert_eq!(row.packet.map(|packet| packet.length), Some(90_060));
        big[5] = 20;
        assert_eq!(read(LinkType::RAW, &big).packet.map(|packet| packet.length), Some(60));
    }

    #[test]
    fn a_message_of_netfilters_log_leads_to_the_packet() {
        let attrs =
            [&[2, 0, 0, 5][..], &[8, 0, 1, 0, 8, 0, 1, 0], &[7, 0, 10, 0, b'a', b':', 0, 0], &[32, 0, 9, 0], &IPV4]
                .concat();
        let row = read(LinkType(239), &attrs);
        assert_eq!(row.ports(), Some((53, 99)));
        for end in 0..attrs.len() {
            read(LinkType(239), &attrs[..end]);
        }
        assert_eq!(read(LinkType(239), &[2, 0, 0, 5, 0, 0, 1, 0]).packet, None, "an attribute without a length");
    }

    #[test]
    fn fields_see_through_every_tag() {
        let kinds = [[0x81, 0], [0x88, 0xa8], [0x91, 0]];
        for tags in 0..=TAGS_MAX {
            let chain: Vec<u8> =
                (0..tags).flat_map(|nth| [kinds[nth % 3], [0, nth as u8]]).flatten().chain([8, 0]).collect();
            for (link_type, frame) in [
                (LinkType::ETHERNET, [&[1; 12][..], &chain, &IPV4].concat()),
                (LinkType::SLL, [&[1; 14][..], &chain, &IPV4].concat()),
                (LinkType::SLL2, [&chain[..2], &[0; 18], &chain[2..], &IPV4].concat()),
            ] {
                let row = read(link_type, &frame);
                assert_eq!(row.ports(), Some((53, 99)), "{link_type:?} {tags}");
                assert_eq!((row.link.vlan, row.link.inner_vlan), ((tags > 0).then_some(0), (tags > 1).then_some(1)));
                assert_eq!(is_tagged(link_type, &frame), tags > 0);
                let mut bare = Vec::new();
                assert_eq!(put_untagged(link_type, &frame, usize::MAX, &mut bare), tags);
                let row = read(link_type, if tags > 0 { &bare } else { &frame });
                assert_eq!((row.ports(), row.link.vlan), (Some((53, 99)), None));
                assert_eq!(put_untagged(link_type, &frame, 1, &mut bare), tags.min(1));
            }
        }
        assert_eq!(put_untagged(LinkType::ETHERNET, &[&[1; 12][..], &[0x81, 0, 0, 1, 8]].concat(), 1, &mut vec![]), 0);
    }

    #[test]
    fn arp_has_both_addresses() {
        let head = [&[0xff; 6][..], &[2, 0, 0, 0, 0, 1], &[8, 6], &[0, 1, 8, 0, 6, 4, 0, 1]].concat();
        let frame = [&head[..], &[2, 0, 0, 0, 0, 1, 10, 0, 0, 1], &[0; 6], &[10, 0, 0, 2]].concat();
        let row = read(LinkType::ETHERNET, &frame);
        let mac = [2, 0, 0, 0, 0, 1];
        let arp = ArpHeader { operation: 1, sender: (mac, [10, 0, 0, 1]), target: ([0; 6], [10, 0, 0, 2]) };
        assert_eq!(row.arp, Some(arp));
        assert_eq!(&crate::mac_text(mac), b"02:00:00:00:00:01");
        assert_eq!(read(LinkType::ETHERNET, &frame[..41]).arp, None, "cut");
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            fuzz_frame(&bytes);
        }

        #[test]
        fn any_ip_packet_is_survived(bytes in prop::collection::vec(any::<u8>(), 0..200), proto in any::<u8>()) {
            let mut bytes = bytes;
            bytes.splice(0..0, [&[0; 12][..], &[8, 0, 0x45, 0, 1, 0, 0, 0, 0, 0, 64, proto]].concat());
            fuzz_frame(&bytes);
        }
    }
}
