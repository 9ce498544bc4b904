//! Numbers of protocols.

/// include/uapi/linux/if_ether.h
pub(crate) mod ethertype {
    pub(crate) const IP: u32 = 0x0800;
    pub(crate) const ARP: u32 = 0x0806;
    pub(crate) const RARP: u32 = 0x8035;
    pub(crate) const APPLETALK: u32 = 0x809b;
    pub(crate) const AARP: u32 = 0x80f3;
    pub(crate) const XEROX_NS: u32 = 0x0600;
    pub(crate) const MOPDL: u32 = 0x6001;
    pub(crate) const MOPRC: u32 = 0x6002;
    pub(crate) const DECNET: u32 = 0x6003;
    pub(crate) const LAT: u32 = 0x6004;
    pub(crate) const SCA: u32 = 0x6007;
    pub(crate) const VLAN: u32 = 0x8100;
    pub(crate) const IPX: u32 = 0x8137;
    pub(crate) const IPV6: u32 = 0x86dd;
    pub(crate) const MPLS: u32 = 0x8847;
    pub(crate) const PPPOE_DISCOVERY: u32 = 0x8863;
    pub(crate) const PPPOE_SESSION: u32 = 0x8864;
    pub(crate) const VLAN_SERVICE: u32 = 0x88a8;
    pub(crate) const LOOPBACK: u32 = 0x9000;
    pub(crate) const VLAN_OLD_SERVICE: u32 = 0x9100;
    /// Ethernet in Geneve.
    pub(crate) const ETHERNET: u32 = 0x6558;
    /// Up to this value the field is a length, and LLC follows.
    pub(crate) const LENGTH_MAX: u32 = 1500;
}

/// Service access points of LLC (IEEE 802.2).
pub(crate) mod llc {
    pub(crate) const IP: u32 = 0x06;
    pub(crate) const STP: u32 = 0x42;
    pub(crate) const SNAP: u32 = 0xaa;
    pub(crate) const IPX: u32 = 0xe0;
    pub(crate) const NETBEUI: u32 = 0xf0;
    pub(crate) const ISO: u32 = 0xfe;
}

/// PPP's protocol field (IANA).
pub(crate) mod ppp {
    pub(crate) const IP: u32 = 0x21;
    pub(crate) const OSI: u32 = 0x23;
    pub(crate) const XEROX_NS: u32 = 0x25;
    pub(crate) const DECNET: u32 = 0x27;
    pub(crate) const APPLETALK: u32 = 0x29;
    pub(crate) const IPX: u32 = 0x2b;
    pub(crate) const BRIDGE: u32 = 0x31;
    pub(crate) const IPV6: u32 = 0x57;
    pub(crate) const MPLS: u32 = 0x281;
}

/// IP protocols (IANA).
pub(crate) mod ip {
    pub(crate) const ICMP: u32 = 1;
    pub(crate) const IGMP: u32 = 2;
    pub(crate) const TCP: u32 = 6;
    pub(crate) const IGRP: u32 = 9;
    pub(crate) const UDP: u32 = 17;
    pub(crate) const FRAGMENT: u32 = 44;
    pub(crate) const ESP: u32 = 50;
    pub(crate) const AH: u32 = 51;
    pub(crate) const ICMPV6: u32 = 58;
    pub(crate) const PIM: u32 = 103;
    pub(crate) const VRRP: u32 = 112;
    pub(crate) const SCTP: u32 = 132;
}

/// Network layer protocols of OSI (ISO/IEC TR 9577), and packet types of IS-IS (ISO 10589).
pub(crate) mod osi {
    pub(crate) const CLNP: u32 = 0x81;
    pub(crate) const ESIS: u32 = 0x82;
    pub(crate) const ISIS: u32 = 0x83;
    pub(crate) const L1_HELLO: u32 = 15;
    pub(crate) const L2_HELLO: u32 = 16;
    pub(crate) const POINT_TO_POINT_HELLO: u32 = 17;
    pub(crate) const L1_LSP: u32 = 18;
    pub(crate) const L2_LSP: u32 = 20;
    pub(crate) const L1_CSNP: u32 = 24;
    pub(crate) const L2_CSNP: u32 = 25;
    pub(crate) const L1_PSNP: u32 = 26;
    pub(crate) const L2_PSNP: u32 = 27;
}
