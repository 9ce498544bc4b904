//! Messages of the drop monitor (include/uapi/linux/net_dropmon.h).
use netlink::Attr;
use netlink::generic::attrs_of;

/// Names of the family and of its multicast group.
pub(super) const FAMILY: &str = "NET_DM";
pub(super) const GROUP: &[u8] = b"events";

// include/uapi/linux/net_dropmon.h
pub(super) const NET_DM_CMD_CONFIG: u8 = 2;
pub(super) const NET_DM_CMD_START: u8 = 3;
pub(super) const NET_DM_CMD_STOP: u8 = 4;
const NET_DM_CMD_PACKET_ALERT: u8 = 5;
pub(super) const NET_DM_CMD_CONFIG_GET: u8 = 6;
const NET_DM_CMD_CONFIG_NEW: u8 = 7;
pub(super) const NET_DM_CMD_STATS_GET: u8 = 8;
const NET_DM_CMD_STATS_NEW: u8 = 9;
pub(super) const NET_DM_ATTR_ALERT_MODE: u16 = 1;
const NET_DM_ATTR_PC: u16 = 2;
const NET_DM_ATTR_SYMBOL: u16 = 3;
const NET_DM_ATTR_IN_PORT: u16 = 4;
const NET_DM_ATTR_TIMESTAMP: u16 = 5;
const NET_DM_ATTR_PROTO: u16 = 6;
const NET_DM_ATTR_PAYLOAD: u16 = 7;
pub(super) const NET_DM_ATTR_TRUNC_LEN: u16 = 9;
const NET_DM_ATTR_ORIG_LEN: u16 = 10;
pub(super) const NET_DM_ATTR_QUEUE_LEN: u16 = 11;
const NET_DM_ATTR_STATS: u16 = 12;
const NET_DM_ATTR_HW_STATS: u16 = 13;
const NET_DM_ATTR_ORIGIN: u16 = 14;
const NET_DM_ATTR_HW_TRAP_GROUP_NAME: u16 = 15;
const NET_DM_ATTR_HW_TRAP_NAME: u16 = 16;
pub(super) const NET_DM_ATTR_SW_DROPS: u16 = 20;
pub(super) const NET_DM_ATTR_HW_DROPS: u16 = 21;
const NET_DM_ATTR_REASON: u16 = 23;
const NET_DM_ATTR_PORT_NETDEV_IFINDEX: u16 = 0;
const NET_DM_ATTR_PORT_NETDEV_NAME: u16 = 1;
const NET_DM_ATTR_STATS_DROPPED: u16 = 0;
const NET_DM_ORIGIN_HW: u16 = 1;
const NET_DM_ALERT_MODE_PACKET: u8 = 1;

/// A dropped packet, as reported by a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DropAlert<'m> {
    /// The address in the function that dropped it; 0 for drops by hardware.
    pub place: u64,
    /// That function with offset and length, as `%pS` writes it.
    pub symbol: &'m [u8],
    /// The kernel's name of the reason; empty before Linux 5.18 and for drops by hardware.
    pub reason: &'m [u8],
    /// The trap with which hardware dropped it, and that trap's group.
    pub trap: Option<(&'m [u8], &'m [u8])>,
    /// Number of the receiving interface, which may be in any namespace; 0 for packets without one.
    pub ifindex: u32,
    /// The name of that interface; messages only contain it for drops by hardware.
    pub iface: &'m [u8],
    /// Time in nanoseconds since 1970.
    pub wall_ns: u64,
    /// EtherType.
    pub ethertype: u16,
    /// Length of the packet in bytes.
    pub bytes: u32,
    /// First bytes of the packet, including the link-layer header if it had one.
    pub payload: &'m [u8],
}

impl<'m> DropAlert<'m> {
    /// Decodes a message. `None` if it is of another type, or lacks a mandatory attribute.
    pub(crate) fn decode(message: &'m [u8]) -> Option<DropAlert<'m>> {
        let attrs = attrs_of(message, NET_DM_CMD_PACKET_ALERT)?;
        let (mut alert, mut is_hardware, mut group, mut trap) = (DropAlert::default(), false, &b""[..], &b""[..]);
        for attr in attrs {
            match attr.kind {
                NET_DM_ATTR_PC => alert.place = attr.u64().ok()?,
                NET_DM_ATTR_SYMBOL => alert.symbol = attr.c_str(),
                NET_DM_ATTR_REASON => alert.reason = attr.c_str(),
                NET_DM_ATTR_IN_PORT => (alert.ifindex, alert.iface) = port(&attr),
                NET_DM_ATTR_TIMESTAMP => alert.wall_ns = attr.u64().ok()?,
                NET_DM_ATTR_PROTO => alert.ethertype = attr.u16().ok()?,
                NET_DM_ATTR_PAYLOAD => alert.payload = attr.payload,
                NET_DM_ATTR_ORIG_LEN => alert.bytes = attr.u32().ok()?,
                NET_DM_ATTR_ORIGIN => is_hardware = attr.u16().ok()? == NET_DM_ORIGIN_HW,
                NET_DM_ATTR_HW_TRAP_GROUP_NAME => group = attr.c_str(),
                NET_DM_ATTR_HW_TRAP_NAME => trap = attr.c_str(),
                _ => {}
            }
        }
        alert.trap = is_hardware.then_some((trap, group));
        let is_whole = if is_hardware { !trap.is_empty() } else { alert.place != 0 };
        is_whole.then_some(alert)
    }

    /// The function that dropped it, without offset, length and module.
    pub(crate) fn function(&self) -> &'m [u8] {
        let end = self.symbol.iter().position(|byte| matches!(byte, b'+' | b' '));
        let name = self.symbol.get(..end.unwrap_or(self.symbol.len())).unwrap_or_default();
        // For an address outside of all symbols, `%pS` writes the address.
        if name.starts_with(b"0x") { b"" } else { name }
    }
}

/// Number and name of an interface.
fn port<'m>(port: &Attr<'m>) -> (u32, &'m [u8]) {
    let of = |kind: u16| port.nested().flatten().find(|attr| attr.kind == kind);
    let index = of(NET_DM_ATTR_PORT_NETDEV_IFINDEX).and_then(|attr| attr.u32().ok());
    (index.unwrap_or(0), of(NET_DM_ATTR_PORT_NETDEV_NAME).map_or(&[], |attr| attr.c_str()))
}

/// The settings of the monitor, which apply to the whole host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MonitorConfig {
    /// `enum net_dm_alert_mode`
    pub(super) mode: u8,
    /// Bytes of each packet in a message; 0 for all.
    pub(super) snaplen: u32,
    /// Length of each CPU's queue, in packets.
    pub(super) queue: u32,
}

impl MonitorConfig {
    /// The settings of a netwren run that wants `snaplen` bytes of each packet; 0 for all.
    pub(super) fn ours(snaplen: u32, queue: u32) -> MonitorConfig {
        MonitorConfig { mode: NET_DM_ALERT_MODE_PACKET, snaplen, queue }
    }

    /// True if a run of netwren has made these settings: no other program uses a queue of this length. A killed run
    /// leaves the monitor on, with these settings and without a listener.
    pub(super) fn is_ours(&self) -> bool {
        self.mode == NET_DM_ALERT_MODE_PACKET && self.queue == OUR_QUEUE
    }
}

/// Length of each CPU's queue in packets, unless the user chooses another length.
///
/// Bound: packets in the queue of each CPU, with the drop monitor. Beyond: further drops are lost and counted (exit
/// code 3). This also affects other users. By: anyone whose packets are dropped faster than they are read.
pub const OUR_QUEUE: u32 = 16_381;
/// Number of bytes that contain a packet's addresses and ports, even inside tunnel headers.
pub(crate) const ENDS_BYTES: u32 = 134;
/// The settings of a freshly booted kernel.
pub(super) const DEFAULT: MonitorConfig = MonitorConfig { mode: 0, snaplen: 0, queue: 1000 };

/// The settings in this message, if it has them.
pub(super) fn config(message: &[u8]) -> Option<MonitorConfig> {
    let (mut mode, mut snaplen, mut queue) = (None, None, None);
    for attr in attrs_of(message, NET_DM_CMD_CONFIG_NEW)? {
        match attr.kind {
            NET_DM_ATTR_ALERT_MODE => mode = attr.u8().ok(),
            NET_DM_ATTR_TRUNC_LEN => snaplen = attr.u32().ok(),
            NET_DM_ATTR_QUEUE_LEN => queue = attr.u32().ok(),
            _ => {}
        }
    }
    Some(MonitorConfig { mode: mode?, snaplen: snaplen?, queue: queue? })
}

/// Numbers of packets that the kernel could not report since it booted, if this message has them: software, hardware.
pub(super) fn dropped(message: &[u8]) -> Option<[u64; 2]> {
    let mut both = [0; 2];
    for attr in attrs_of(message, NET_DM_CMD_STATS_NEW)? {
        let [software, hardware] = &mut both;
        let count = match attr.kind {
            NET_DM_ATTR_STATS => software,
            NET_DM_ATTR_HW_STATS => hardware,
            _ => continue,
        };
        let inner = attr.nested().flatten().find(|inner| inner.kind == NET_DM_ATTR_STATS_DROPPED);
        *count = inner.and_then(|inner| inner.u64().ok()).unwrap_or(0);
    }
    Some(both)
}

/// Decodes any bytes as each of the messages. None of these may panic or loop forever.
pub(crate) fn fuzz(data: &[u8]) {
    if let Some(alert) = DropAlert::decode(data) {
        std::hint::black_box((alert.function().len(), alert.payload.len()));
    }
    std::hint::black_box((config(data), dropped(data)));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::fixtures::NET_DM;
    use netlink::Messages;
    use proptest::prelude::*;

    /// The payload of a recorded message.
    fn payload(datagram: &[u8]) -> &[u8] {
        Messages::new(datagram).next().unwrap().unwrap().payload
    }

    #[test]
    fn packets_that_software_dropped() {
        let alert = DropAlert::decode(payload(NET_DM.tcp4_612)).unwrap();
        assert_eq!((alert.function(), alert.reason, alert.trap), (&b"tcp_v4_rcv"[..], &b"NO_SOCKET"[..], None));
        assert_eq!((alert.ifindex, alert.ethertype, alert.bytes, alert.payload.len()), (1, 0x0800, 74, 74));
        assert!(alert.place > u64::MAX / 2 && alert.wall_ns > 1_790_000_000_000_000_000, "{alert:?}");
        let old = DropAlert::decode(payload(NET_DM.tcp4_510)).unwrap();
        assert_eq!((old.function(), old.reason), (&b"tcp_v4_rcv"[..], &b""[..]), "5.10 has no reasons");
        assert_eq!(DropAlert { symbol: b"0xffffffffc0000000", ..old }.function(), b"");
    }

    #[test]
    fn packets_that_hardware_dropped() {
        let alert = DropAlert::decode(payload(NET_DM.trap_drop)).unwrap();
        assert_eq!(alert.trap, Some((&b"source_mac_is_multicast"[..], &b"l2_drops"[..])));
        assert_eq!((alert.place, alert.ifindex, alert.bytes, alert.payload.len()), (0, 2, 142, 134));
        assert!(alert.iface.starts_with(b"e"), "{:?}", alert.iface);
    }

    #[test]
    fn settings_and_losses() {
        assert_eq!(config(payload(NET_DM.config)), Some(MonitorConfig::ours(ENDS_BYTES, OUR_QUEUE)));
        assert!(MonitorConfig::ours(4096, OUR_QUEUE).is_ours() && !DEFAULT.is_ours());
        assert_eq!(dropped(payload(NET_DM.stats)), Some([0, 0]));
        assert_eq!((config(payload(NET_DM.stats)), dropped(payload(NET_DM.config))), (None, None));
    }

    #[test]
    fn messages_that_end_early() {
        for whole in [NET_DM.tcp4_612, NET_DM.trap_drop, NET_DM.config, NET_DM.stats] {
            let whole = payload(whole);
            (0..whole.len()).for_each(|len| fuzz(&whole[..len]));
        }
        let whole = payload(NET_DM.tcp4_612);
        assert_eq!(DropAlert::decode(&whole[..8]), None, "nothing that is always there");
        assert_eq!(DropAlert::decode(&[&[1], &whole[1..]].concat()), None, "a summary");
    }

    proptest! {
        #[test]
        fn any_bytes(bytes: Vec<u8>, command in 0_u8..12) {
            fuzz(&bytes);
            fuzz(&[&[command, 2, 0, 0][..], &bytes].concat());
        }
    }
}
