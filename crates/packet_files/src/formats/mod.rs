//! Logged and captured packets as capture files for tcpdump and Wireshark.
//!
//! The writers append one record per row to the caller's buffer; pcap has one header per file, pcapng one per section.
//! The module knows no files. Start reading at [`Pcap`], the simpler one; captured packets are in [`CapturedPcapNg`].

mod blocks;
mod captured;
mod captured_pcap;
mod cooked;
mod copied;
mod pcap;
mod pcapng;

pub use captured::{CapturedPcapNg, IfaceStatistics, PacketNotes, SectionIface};
pub use captured_pcap::CapturedPcap;
pub use cooked::{CookedPcap, LOOPBACK, write_sll, write_sll2};
pub use copied::{
    CopiedPacket, put_copied_block, put_copied_iface, put_copied_packet, put_copied_section, put_copied_simple_packet,
    put_copied_statistics, put_counts,
};
pub use pcap::Pcap;
pub use pcapng::PcapNg;

use record::rows::LogRecord;

/// Link type of packets that begin with their IPv4 or IPv6 header.
const LINKTYPE_RAW: u16 = 101;
/// Longest record: the length of a netlink attribute has 16 bits.
const SNAPLEN: u32 = 64 << 10;
/// EtherTypes.
const ETH_P_IP: u16 = 0x0800;
const ETH_P_IPV6: u16 = 0x86dd;
const IPV6_HEADER: u32 = 40;

/// True unless the kernel says that it is another protocol, or, if the kernel says nothing, the first byte does.
fn is_ip(row: &LogRecord<'_>) -> bool {
    match row.ether_type {
        0 => matches!(version(row), Some(4 | 6)),
        ether_type => matches!(ether_type, ETH_P_IP | ETH_P_IPV6),
    }
}

/// Appends the bytes of a packet.
#[inline(always)]
fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    // The usual lengths of logged packets, and of those with only headers.
    if !put_halves::<32>(bytes, out) && !put_halves::<64>(bytes, out) {
        out.extend_from_slice(bytes);
    }
}

/// Appends bytes with a length from `HALF` to twice that, as two halves: first the first half, then the last, and the
/// overlap is removed. A copy of a known length needs no call, and bytes that were just written are not read again.
/// Returns false, and appends nothing, for other lengths.
#[inline(always)]
fn put_halves<const HALF: usize>(bytes: &[u8], out: &mut Vec<u8>) -> bool {
    let (Some(first), Some(last)) = (bytes.first_chunk::<HALF>(), bytes.last_chunk::<HALF>()) else { return false };
    if bytes.len() > 2 * HALF {
        return false;
    }
    out.reserve(2 * HALF);
    let end = out.len() + bytes.len();
    out.extend_from_slice(first);
    out.truncate(end - HALF);
    out.extend_from_slice(last);
    true
}

/// Returns the IP version in the first byte.
fn version(row: &LogRecord<'_>) -> Option<u8> {
    row.payload.first().map(|byte| byte >> 4)
}

/// Returns the copied bytes of the packet, and its original length: the length in its IP header, but at least the
/// copied bytes.
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
