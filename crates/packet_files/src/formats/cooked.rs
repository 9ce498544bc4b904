//! Packets captured on all interfaces: Linux "cooked" headers replace their link-layer headers.

use super::captured_pcap::CapturedPcap;
use record::rows::{CapturedFrame, CapturedPacket, LinkType};

/// Bytes of the cooked header (https://www.tcpdump.org/linktypes/LINKTYPE_LINUX_SLL2.html), and of an Ethernet header.
const HEADER: usize = 20;
/// Bytes of the header of version 1.
const FIRST_HEADER: usize = 16;
const ETHERNET: usize = 14;
/// EtherTypes; IEEE 802.3 with LLC, and IPX without (include/uapi/linux/if_ether.h); the lowest EtherType, below which
/// a value is a length.
const ETH_P_IP: u16 = 0x0800;
const ETH_P_IPV6: u16 = 0x86dd;
const ETH_P_802_3: u16 = 1;
const ETH_P_802_2: u16 = 4;
const ETHER_TYPE_MIN: u16 = 1536;
/// `ARPHRD_ETHER`; next, `ARPHRD_NONE`, which has no header.
const ARPHRD_ETHER: u16 = 1;
const ARPHRD_NONE: u16 = 0xfffe;
/// `ARPHRD_LOOPBACK`
pub const LOOPBACK: u16 = 772;

/// The facts about a packet in its cooked header.
struct Sender<'p> {
    protocol: u16,
    /// Length of the link-layer header that it replaces.
    skipped: usize,
    address: &'p [u8],
}

/// Writes the packet to `out` with a header of version 2; returns its length with this header. A packet of unknown
/// hardware keeps its whole frame after the header.
pub fn write_sll2(row: &CapturedPacket<'_>, hardware: u16, out: &mut Vec<u8>) -> u32 {
    let Sender { protocol, skipped, address } = sender(row);
    out.clear();
    out.extend_from_slice(&protocol.to_be_bytes());
    out.extend_from_slice(&[0, 0]);
    out.extend_from_slice(&row.ifindex.to_be_bytes());
    out.extend_from_slice(&hardware.to_be_bytes());
    out.push(row.packet_type.map_or(0, |packet_type| packet_type as u8));
    out.push(address.len() as u8);
    out.extend_from_slice(address);
    out.resize(HEADER, 0);
    out.extend_from_slice(row.frame.get(skipped..).unwrap_or_default());
    row.len.saturating_sub(skipped as u32).saturating_add(HEADER as u32)
}

/// Writes a header of version 1, which does not name the interface.
pub fn write_sll(row: &CapturedPacket<'_>, hardware: u16, out: &mut Vec<u8>) -> u32 {
    let Sender { protocol, skipped, address } = sender(row);
    out.clear();
    out.extend_from_slice(&row.packet_type.map_or(0, |packet_type| packet_type as u16).to_be_bytes());
    out.extend_from_slice(&hardware.to_be_bytes());
    out.extend_from_slice(&(address.len() as u16).to_be_bytes());
    out.extend_from_slice(address);
    out.resize(FIRST_HEADER - 2, 0);
    out.extend_from_slice(&protocol.to_be_bytes());
    out.extend_from_slice(row.frame.get(skipped..).unwrap_or_default());
    row.len.saturating_sub(skipped as u32).saturating_add(FIRST_HEADER as u32)
}

fn sender<'p>(row: &CapturedPacket<'p>) -> Sender<'p> {
    let (mut protocol, mut skipped, mut address) = (0, 0, &[][..]);
    if row.link_type == LinkType::ETHERNET && row.frame.len() >= ETHERNET {
        let half = |at: usize| match row.frame.get(at..at + 2) {
            Some(&[high, low]) => u16::from_be_bytes([high, low]),
            _ => 0,
        };
        protocol = match half(12) {
            0..ETHER_TYPE_MIN if half(14) == 0xffff => ETH_P_802_3,
            0..ETHER_TYPE_MIN => ETH_P_802_2,
            ether_type => ether_type,
        };
        (skipped, address) = (ETHERNET, row.frame.get(6..12).unwrap_or_default());
    } else if row.link_type == LinkType::RAW {
        protocol = match row.frame.first().map(|byte| byte >> 4) {
            Some(4) => ETH_P_IP,
            Some(6) => ETH_P_IPV6,
            _ => 0,
        };
    }
    Sender { protocol, skipped, address }
}

/// Writes packets of all interfaces as records of one pcap file, like tcpdump does for `any`: nanoseconds, with cooked
/// headers of version 2 in place of the link layer's. Files have the same header for any interfaces, so that a run can
/// continue the file of another.
#[derive(Debug, Default)]
pub struct CookedPcap {
    pcap: CapturedPcap,
    packet: Vec<u8>,
}

impl CookedPcap {
    /// A writer at the beginning of a file.
    pub fn new() -> CookedPcap {
        CookedPcap::default()
    }

    /// Returns the header of a file.
    pub fn header() -> Vec<u8> {
        let mut header = Vec::new();
        CapturedPcap::new().begin(LinkType::SLL2, &mut header);
        header
    }

    /// Appends a record.
    pub fn write(&mut self, row: &CapturedPacket<'_>, out: &mut Vec<u8>) {
        let hardware = if row.link_type == LinkType::ETHERNET { ARPHRD_ETHER } else { ARPHRD_NONE };
        let len = write_sll2(row, hardware, &mut self.packet);
        // The file already has this header.
        self.pcap.skip_header(LinkType::SLL2);
        self.pcap.write(&CapturedFrame { link_type: LinkType::SLL2, frame: &self.packet, len, ..row.to_frame() }, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::rows::PktType;

    #[test]
    fn headers_are_replaced() {
        let frame = [[1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 8, 0], [9; 14]].concat();
        let row = CapturedPacket {
            ifindex: 3,
            link_type: LinkType::ETHERNET,
            packet_type: Some(PktType::Outgoing),
            len: 1000,
            frame: &frame,
            ..CapturedPacket::default()
        };
        let mut out = vec![7; 100];
        assert_eq!(write_sll2(&row, 1, &mut out), 1006);
        let header = [8, 0, 0, 0, 0, 0, 0, 3, 0, 1, 4, 6, 2, 2, 2, 2, 2, 2, 0, 0];
        assert_eq!(out, [&header[..], &[9; 14]].concat());
        assert_eq!(write_sll(&row, 1, &mut out), 1002);
        let header = [0, 4, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 0, 0, 8, 0];
        assert_eq!(out, [&header[..], &[9; 14]].concat());
        let raw = CapturedPacket { link_type: LinkType::RAW, frame: &[0x60, 1], len: 2, ..row };
        assert_eq!(
            (write_sll2(&raw, 0xfffe, &mut out), &out[..2], &out[20..]),
            (22, &[0x86, 0xdd][..], &[0x60, 1][..])
        );
        assert_eq!(write_sll2(&CapturedPacket { frame: &[1], len: 1, ..row }, 1, &mut out), 21);
        let (mut writer, mut records) = (CookedPcap::new(), Vec::new());
        [row, raw].iter().for_each(|row| writer.write(row, &mut records));
        assert_eq!(records.len(), 16 + 20 + 14 + 16 + 20 + 2);
        assert_eq!(records[..16], [0, 0, 0, 0, 0, 0, 0, 0, 34, 0, 0, 0, 0xee, 3, 0, 0]);
        assert_eq!((CookedPcap::header().len(), CookedPcap::header()[20]), (24, 20), "276 is 1 << 8 | 20");
    }
}
