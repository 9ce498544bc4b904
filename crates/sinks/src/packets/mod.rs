//! Logged and captured packets as capture files: what tcpdump and Wireshark read.
//!
//! One record for each row, appended to the caller's buffer; pcap has a header once a file, pcapng one in each
//! section. Knows no file. Start reading at [`Pcap`], the plainer one; captured packets are in [`CapturedPcapNg`].

mod blocks;
mod captured;
mod captured_pcap;
mod cooked;
mod copied;
mod pcap;
mod pcapng;

pub use captured::{CapturedPcapNg, IfaceOfSection, IfaceStatistics, PacketNotes};
pub use captured_pcap::CapturedPcap;
pub use cooked::{CookedPcap, LOOPBACK, cook, cook_first};
pub use copied::{
    CopiedPacket, put_copied_block, put_copied_iface, put_copied_packet, put_copied_section, put_copied_statistics,
    put_counts,
};
pub use pcap::Pcap;
pub use pcapng::PcapNg;

use record::rows::LogRecord;

/// Link type of packets that begin with their IPv4 or IPv6 header.
const LINKTYPE_RAW: u16 = 101;
/// No record is longer: the length of a netlink attribute has 16 bits.
const SNAPLEN: u32 = 64 << 10;
/// EtherTypes.
const ETH_P_IP: u16 = 0x0800;
const ETH_P_IPV6: u16 = 0x86dd;
const IPV6_HEADER: u32 = 40;

/// True unless the kernel says that it is something else, or the first byte does where the kernel says nothing.
fn is_ip(row: &LogRecord<'_>) -> bool {
    match row.ether_type {
        0 => matches!(version(row), Some(4 | 6)),
        ether_type => matches!(ether_type, ETH_P_IP | ETH_P_IPV6),
    }
}

/// IP version by the first byte.
fn version(row: &LogRecord<'_>) -> Option<u8> {
    row.payload.first().map(|byte| byte >> 4)
}

/// Bytes that were copied of the packet, and bytes that it had: as its IP header says, and never less than were copied.
fn lengths(row: &LogRecord<'_>) -> (u32, u32) {
    let captured = u32::try_from(row.payload.len()).unwrap_or(u32::MAX);
    let at = |at: usize| match row.payload.get(at..at + 2) {
        Some(&[high, low]) => u32::from(u16::from_be_bytes([high, low])),
        _ => 0,
    };
    let whole = match version(row).filter(|_| is_ip(row)) {
        Some(4) => at(2),
        Some(6) => at(4) + IPV6_HEADER,
        _ => captured,
    };
    (captured, whole.max(captured))
}
