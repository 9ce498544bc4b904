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

/// A setting of interfaces, net.ipv4.conf.IFACE, with which the kernel leaves ARP requests unanswered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArpSetting {
    /// `arp_ignore`: 1 leaves out addresses of other interfaces, 2 also senders of other networks, 8 everything.
    Ignore,
    /// `arp_filter`: leaves out requests whose answer would leave through another interface.
    Filter,
}

impl ArpSetting {
    /// The file of the setting.
    pub fn name(self) -> &'static str {
        match self {
            ArpSetting::Ignore => "arp_ignore",
            ArpSetting::Filter => "arp_filter",
        }
    }
}

/// Repeated ARP requests for an address of this host that a setting leaves unanswered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredArp {
    /// The address.
    pub addr: Addr,
    /// The interface that received the requests.
    pub iface: String,
    /// The interface that has the address.
    pub holder: String,
    /// The host that asks.
    pub sender: Addr,
    /// Number of requests within the window.
    pub count: u32,
    /// The setting, and its value for the interface.
    pub setting: ArpSetting,
    /// Its value for the interface or for `all`: the larger one.
    pub value: u32,
}
