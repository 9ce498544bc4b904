//! Hosts that have an address of this host.

use record::Addr;

/// Another host on the same link that has an IPv4 address of this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The address.
    pub addr: Addr,
    /// The interface that has the address and received the other host's messages.
    pub iface: String,
    /// The host's hardware address.
    pub hardware: [u8; 6],
    /// ARP messages that it sent with this address within the window.
    pub count: u32,
}
