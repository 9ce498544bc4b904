//! tcpdump's names for EtherTypes.

use super::line::Line;
use super::pieces::{HexWide, names, put};

/// Appends `ethertype IPv4 (0x0800)`.
pub(super) fn put_with_number(line: &mut Line<'_>, kind: u16) {
    put!(line, "ethertype ", name(kind).unwrap_or("Unknown"), " (0x", HexWide(kind, 4), ")");
}

names! {
    /// Returns tcpdump's name for an EtherType.
    pub(super) fn name(u16):
        0x0600 => "NS", 0x0707 => "GeoNet (old)", 0x0800 => "IPv4", 0x0806 => "ARP", 0x1000 => "Trail",
        0x1111 => "CALM FAST", 0x6001 => "MOP DL", 0x6002 => "MOP RC", 0x6003 => "DN", 0x6004 => "LAT", 0x6007 => "SCA",
        0x6558 => "TEB", 0x8035 => "Reverse ARP", 0x8038 => "Lanbridge", 0x803c => "DEC DNS", 0x803e => "DEC DTS",
        0x805b => "VEXP", 0x805c => "VPROD", 0x809b => "Appletalk", 0x80f3 => "Appletalk ARP", 0x8100 => "802.1Q",
        0x8137 => "IPX", 0x86dd => "IPv6", 0x8808 => "MPCP", 0x8809 => "Slow Protocols", 0x880b => "PPP",
        0x8847 => "MPLS unicast", 0x8848 => "MPLS multicast", 0x8863 => "PPPoE D", 0x8864 => "PPPoE S",
        0x886f => "MS NLB heartbeat", 0x8870 => "Jumbo", 0x888e => "EAPOL", 0x8899 => "Realtek protocols",
        0x88a2 => "AoE", 0x88a8 => "802.1Q-QinQ", 0x88ca => "TIPC", 0x88cc => "LLDP", 0x88e5 => "802.1AE MACsec",
        0x88f7 => "PTP", 0x8902 => "CFM", 0x893a => "IEEE1905.1", 0x8947 => "GeoNet", 0x894f => "NSH",
        0x9000 => "Loopback", 0x9100 => "802.1Q-9100", 0x9200 => "802.1Q-9200", 0xabcd => "CFM (old)",
        0xd28b => "Arista Vendor Specific Protocol", 0xfefe => "OSI",
}
