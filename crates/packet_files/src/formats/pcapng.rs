//! pcapng: interfaces by name, nanoseconds, the rule's prefix and the direction of each packet
//! (draft-ietf-opsawg-pcapng).

use super::blocks::{INBOUND, OUTBOUND, UNKNOWN};
use super::captured::{CapturedPcapNg, PacketNotes, PacketParts};
use super::{ETH_P_IP, ETH_P_IPV6, lengths, version};
use record::rows::{CapturedFrame, LinkType, LogRecord};
use record::{Key, LookupId, Lookups, Value};

/// Length of the header of the kernel's "cooked" sockets (SLL) before packets.
///
/// For IP, packets without a header (RAW, like in [`super::Pcap`]) would do, but ARP could not be recognised, and
/// libpcap (1.10.3) rejects files with two interfaces of that type.
const SLL_HEADER: usize = 16;
/// Types of packets in that header.
const PACKET_HOST: u16 = 0;
const PACKET_OUTGOING: u16 = 4;
/// The type of the link is unknown.
const ARPHRD_VOID: u16 = 0xffff;

/// Writes rows as blocks of a pcapng file: little-endian, nanoseconds, link type LINUX_SLL, which has the direction
/// and the EtherType of each packet, so that ARP is also readable.
///
/// Each interface has its block before its first packet: under its name, or as `if7` if index 7 has no name. A packet
/// belongs to its output interface in output, postrouting and egress, elsewhere to its input interface, and has the
/// corresponding direction. Its comment is the rule's prefix.
///
/// Packets refer to interfaces by their number in the section. The bytes written after [`PcapNg::begin_section`] form
/// a section that may begin a file, follow any other section, or be lost, without harm to the others.
#[derive(Debug, Default)]
pub struct PcapNg {
    packets: CapturedPcapNg,
}

impl PcapNg {
    /// A writer at the beginning of a file.
    pub fn new() -> PcapNg {
        PcapNg::default()
    }

    /// Begins a new section with the next packet. Call this before each piece that is stored or lost as a whole.
    pub fn begin_section(&mut self) {
        self.packets.begin_section();
    }

    /// Appends one packet to `out`; if it is the first of its section or interface, after the header of the section or
    /// the block of the interface. `fields` are names and values, written like the fields of [`PacketNotes`].
    pub fn write(&mut self, row: &LogRecord<'_>, fields: &[(&str, &[u8])], lookups: &Lookups<'_>, out: &mut Vec<u8>) {
        let (ifindex, direction) = interface_of(row);
        let key = ifindex.map_or(Key::None, |ifindex| Key::Pair(row.netns_id, ifindex));
        let iface = match lookups.value(LookupId::Ifaces, key) {
            Value::Bytes(name) => name,
            _ => &[],
        };
        let describe = |text: &mut Vec<u8>| put_description(text, row.netns_id, ifindex, lookups);
        let (_, len) = lengths(row);
        let packet = CapturedFrame {
            time_ns: row.time_ns,
            netns_id: row.netns_id,
            ifindex: ifindex.unwrap_or(0),
            link_type: LinkType::SLL,
            len,
            iface,
            frame: row.payload,
            ..CapturedFrame::default()
        };
        let parts = PacketParts {
            link_header: &link_header(row, direction),
            flags: Some(direction),
            describe: Some(&describe),
            notes: PacketNotes { text: row.prefix, fields },
        };
        self.packets.write_with(&packet, &parts, out);
    }
}

/// Appends the description of an interface.
fn put_description(text: &mut Vec<u8>, netns_id: u64, ifindex: Option<u32>, lookups: &Lookups<'_>) {
    if ifindex.is_none() {
        text.extend_from_slice(b"packets without interface");
    } else if let Value::Bytes(netns) = lookups.value(LookupId::Netns, Key::Id(netns_id)) {
        text.extend_from_slice(b"network namespace ");
        text.extend_from_slice(netns);
    }
}

/// Returns the index of the interface that a packet belongs to, and its direction there.
fn interface_of(row: &LogRecord<'_>) -> (Option<u32>, u32) {
    let leaves = matches!(row.hook_name(), "output" | "postrouting" | "egress");
    match (leaves, row.in_ifindex, row.out_ifindex) {
        (true, _, Some(out)) | (false, None, Some(out)) => (Some(out), OUTBOUND),
        (false, Some(by), _) | (true, Some(by), None) => (Some(by), INBOUND),
        (true, None, None) => (None, OUTBOUND),
        (false, None, None) => (None, UNKNOWN),
    }
}

/// Builds the header of LINUX_SLL: type of the packet, type of the link, sender's address (none), EtherType.
fn link_header(row: &LogRecord<'_>, direction: u32) -> [u8; SLL_HEADER] {
    let kind = if direction == OUTBOUND { PACKET_OUTGOING } else { PACKET_HOST };
    let ether_type = match (row.ether_type, version(row)) {
        (0, Some(4)) => ETH_P_IP,
        (0, Some(6)) => ETH_P_IPV6,
        (ether_type, _) => ether_type,
    };
    let mut header = [0; SLL_HEADER];
    for (at, field) in [(0, kind), (2, ARPHRD_VOID), (14, ether_type)] {
        header[at..at + 2].copy_from_slice(&field.to_be_bytes());
    }
    header
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::formats::blocks::read_back::{Block, blocks, options, u32_at};
    use crate::formats::blocks::{
        COMMENT, CUSTOM_TEXT, IF_DESCRIPTION, IF_NAME, IF_TIME_RESOLUTION, INTERFACE, PACKET, PACKET_FLAGS,
        SECTION_HEADER,
    };
    use record::Lookup;
    use std::cell::RefCell;
    use std::collections::HashMap;

    /// Names by index.
    #[derive(Default)]
    struct Names(RefCell<HashMap<u32, &'static [u8]>>);

    impl Lookup for Names {
        fn value(&self, key: Key) -> Value<'_> {
            match key {
                Key::Pair(_, index) => Value::text(self.0.borrow().get(&index).copied()),
                _ => Value::Bytes(b"blue"),
            }
        }
    }

    /// Returns the number of the interface and the options of a packet.
    fn packet(block: &Block) -> (u32, Vec<(u16, Vec<u8>)>) {
        let captured = u32_at(&block.1, 12) as usize;
        (u32_at(&block.1, 0), options(block, 20 + captured.next_multiple_of(4)))
    }

    fn row(hook: u8, inward: Option<u32>, outward: Option<u32>) -> LogRecord<'static> {
        LogRecord {
            time_ns: 0x18e9_6c00_1234_5678,
            netns_id: 1,
            family: 2,
            hook,
            ether_type: 0x0800,
            in_ifindex: inward,
            out_ifindex: outward,
            payload: &[0x45, 0, 0, 60, 1],
            prefix: b"in\x1b: ",
            ..LogRecord::default()
        }
    }

    #[test]
    fn a_packet_has_its_interface_direction_and_comment() {
        let names = Names::default();
        names.0.borrow_mut().insert(2, b"eth\"0");
        let lookups = Lookups::empty().with_lookup(LookupId::Ifaces, &names).with_lookup(LookupId::Netns, &names);
        let (mut writer, mut out) = (PcapNg::new(), Vec::new());
        for row in [row(1, Some(2), None), row(2, Some(2), Some(7)), row(4, Some(2), Some(7)), row(3, None, None)] {
            writer.write(&row, &[("pid", b"7")], &lookups, &mut out);
        }
        let blocks = blocks(&out);
        let kinds: Vec<u32> = blocks.iter().map(|block| block.0).collect();
        assert_eq!(kinds, [SECTION_HEADER, INTERFACE, PACKET, PACKET, INTERFACE, PACKET, INTERFACE, PACKET]);
        assert!(options(&blocks[0], 16)[0].1.starts_with(b"netwren "));
        let netns = (IF_DESCRIPTION, b"network namespace blue".to_vec());
        let resolution = (IF_TIME_RESOLUTION, vec![9]);
        assert_eq!(options(&blocks[1], 8), [(IF_NAME, b"eth\"0".to_vec()), netns.clone(), resolution.clone()]);
        assert_eq!(options(&blocks[4], 8), [(IF_NAME, b"if7".to_vec()), netns, resolution.clone()]);
        assert_eq!(options(&blocks[6], 8), [(IF_DESCRIPTION, b"packets without interface".to_vec()), resolution]);
        let said = [
            (COMMENT, b"in\\x1b: ".to_vec()),
            (COMMENT, b"pid=7".to_vec()),
            (CUSTOM_TEXT, b"\xd9\x7e\0\0pid=7".to_vec()),
        ];
        for (at, number, flags) in [(2, 0, 1), (3, 0, 1), (5, 1, 2), (7, 2, 2)] {
            assert_eq!(packet(&blocks[at]), (number, [&[(PACKET_FLAGS, vec![flags, 0, 0, 0])], &said[..]].concat()));
        }
        let head = [0u32, 0x18e9_6c00, 0x1234_5678, 21, 76].map(u32::to_le_bytes).concat();
        let link = [0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0];
        assert_eq!(blocks[2].1[..41], [&head[..], &link, &[0x45, 0, 0, 60, 1]].concat());
    }

    #[test]
    fn another_name_or_section_is_another_interface() {
        let names = Names::default();
        names.0.borrow_mut().insert(2, b"eth0");
        let lookups = Lookups::empty().with_lookup(LookupId::Ifaces, &names);
        let mut writer = PcapNg::new();
        let mut written = |name: &'static [u8], section: bool| {
            let mut out = Vec::new();
            if section {
                writer.begin_section();
            }
            names.0.borrow_mut().insert(2, name);
            writer.write(&row(1, Some(2), None), &[], &lookups, &mut out);
            let blocks = blocks(&out);
            (blocks.len(), packet(blocks.last().unwrap()).0)
        };
        assert_eq!(written(b"eth0", true), (3, 0));
        assert_eq!(written(b"eth0", false), (1, 0));
        assert_eq!(written(b"veth1", false), (2, 1), "the index was used again");
        assert_eq!(written(b"veth1", false), (1, 1));
        assert_eq!(written(b"veth1", true), (3, 0), "another section");
    }

    #[test]
    fn the_ether_type_is_the_kernels_or_the_packets() {
        for (said, payload, expected) in
            [(0x0806, &[0x45][..], 0x0806), (0, &[0x45], 0x0800), (0, &[0x60], 0x86dd), (0, &[0x10], 0), (0, &[], 0)]
        {
            let row = LogRecord { ether_type: said, payload, ..LogRecord::default() };
            let header = link_header(&row, OUTBOUND);
            assert_eq!((u16::from_be_bytes([header[14], header[15]]), header[1]), (expected, 4));
        }
    }

    #[test]
    fn a_long_prefix_is_cut() {
        let (mut writer, mut out) = (PcapNg::new(), Vec::new());
        let long = vec![0xff; 70_000];
        writer.write(&LogRecord { prefix: &long, ..row(1, None, None) }, &[], &Lookups::empty(), &mut out);
        assert_eq!(packet(&blocks(&out)[2]).1[1].1, b"\\xff".repeat(256));
    }
}
