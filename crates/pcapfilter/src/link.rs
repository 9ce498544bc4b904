//! Link types that filters can be compiled for.

use std::fmt;

/// The link-layer header of packets (`DLT_*` of libpcap).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkType {
    /// Ethernet.
    Ethernet,
    /// IP packets without a link-layer header; the version field shows which IP it is.
    Raw,
    /// IPv4 packets without a link-layer header.
    Ipv4,
    /// IPv6 packets without a link-layer header.
    Ipv6,
    /// BSD loopback: address family in the writer's byte order.
    Null,
    /// OpenBSD loopback: address family in network byte order.
    Loop,
    /// Linux cooked capture, version 1.
    LinuxSll,
    /// Linux cooked capture, version 2.
    LinuxSll2,
    /// PPP.
    Ppp,
    /// IEEE 802.11 frames. For this link type and those below, filters can test only the length and bytes.
    Ieee80211,
    /// IEEE 802.11 frames with a radiotap header.
    Ieee80211Radio,
    /// Netfilter log messages.
    Nflog,
    /// USB packets with the Linux header.
    UsbLinux,
    /// USB packets with the longer Linux header.
    UsbLinuxMmapped,
    /// USB packets captured on Windows.
    UsbPcap,
}

/// Number in files and in libpcap, name for `tcpdump -y`, description.
const ALL: &[(LinkType, u32, &str, &str)] = &[
    (LinkType::Null, 0, "NULL", "BSD loopback"),
    (LinkType::Ethernet, 1, "EN10MB", "Ethernet"),
    (LinkType::Ppp, 9, "PPP", "PPP"),
    (LinkType::Raw, 12, "RAW", "Raw IP"),
    (LinkType::Raw, 101, "RAW", "Raw IP"),
    (LinkType::Loop, 108, "LOOP", "OpenBSD loopback"),
    (LinkType::Ieee80211, 105, "IEEE802_11", "IEEE 802.11"),
    (LinkType::LinuxSll, 113, "LINUX_SLL", "Linux cooked v1"),
    (LinkType::Ieee80211Radio, 127, "IEEE802_11_RADIO", "IEEE 802.11 with radiotap"),
    (LinkType::UsbLinux, 189, "USB_LINUX", "USB with Linux header"),
    (LinkType::UsbLinuxMmapped, 220, "USB_LINUX_MMAPPED", "USB with padded Linux header"),
    (LinkType::Ipv4, 228, "IPV4", "Raw IPv4"),
    (LinkType::Ipv6, 229, "IPV6", "Raw IPv6"),
    (LinkType::Nflog, 239, "NFLOG", "Linux netfilter log messages"),
    (LinkType::UsbPcap, 249, "USBPCAP", "USB with USBPcap header"),
    (LinkType::LinuxSll2, 276, "LINUX_SLL2", "Linux cooked v2"),
];

impl LinkType {
    /// Returns the link type with this number in files (`LINKTYPE_*`) or in libpcap (`DLT_*`). None if it is not
    /// supported.
    #[must_use]
    pub fn from_number(number: u32) -> Option<LinkType> {
        ALL.iter().find(|(_, one, _, _)| *one == number).map(|(link, ..)| *link)
    }

    /// Returns the link type with this name for `tcpdump -y`, in upper or lower case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<LinkType> {
        ALL.iter().find(|(_, _, one, _)| one.eq_ignore_ascii_case(name)).map(|(link, ..)| *link)
    }

    /// Its number in files; for several, libpcap's number.
    #[must_use]
    pub fn number(self) -> u32 {
        ALL.iter().find(|(link, ..)| *link == self).map_or(0, |(_, number, ..)| *number)
    }

    /// Its name for `tcpdump -y`.
    #[must_use]
    pub fn name(self) -> &'static str {
        ALL.iter().find(|(link, ..)| *link == self).map_or("", |(_, _, name, _)| name)
    }
}

impl fmt::Display for LinkType {
    /// The description in libpcap's messages.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(ALL.iter().find(|(link, ..)| link == self).map_or("", |(.., description)| description))
    }
}
