//! Counters of interfaces, from one dump of rtnetlink.

use netlink::{Attr, Attrs, Query, Request, prefix};
use record::rows::CounterSource::Iface;

use crate::reading::{CounterReading, Object, Width};

// include/uapi/linux/rtnetlink.h
pub(crate) const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;

// include/uapi/linux/if_link.h
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_LINKINFO: u16 = 18;
const IFLA_STATS64: u16 = 23;
const IFLA_CARRIER: u16 = 33;
const IFLA_CARRIER_CHANGES: u16 = 35;
const IFLA_CARRIER_UP_COUNT: u16 = 47;
const IFLA_CARRIER_DOWN_COUNT: u16 = 48;
/// `struct ifinfomsg`: family u8, pad u8, type u16, index s32, flags u32, change u32.
const IFINFOMSG: usize = 16;

/// Members of `struct rtnl_link_stats64` in order, u64 each; newer kernels append more.
const STATS64: &[&str] = &[
    "rx_packets",
    "tx_packets",
    "rx_bytes",
    "tx_bytes",
    "rx_errors",
    "tx_errors",
    "rx_dropped",
    "tx_dropped",
    "multicast",
    "collisions",
    "rx_length_errors",
    "rx_over_errors",
    "rx_crc_errors",
    "rx_frame_errors",
    "rx_fifo_errors",
    "rx_missed_errors",
    "tx_aborted_errors",
    "tx_carrier_errors",
    "tx_fifo_errors",
    "tx_heartbeat_errors",
    "tx_window_errors",
    "rx_compressed",
    "tx_compressed",
    "rx_nohandler",
    "rx_otherhost_dropped",
];

/// The request for all interfaces.
pub(crate) fn request() -> Request {
    let mut request = Request::dump(RTM_GETLINK);
    request.append(&[0; IFINFOMSG]);
    request
}

/// The query with its name in a recording.
pub(crate) fn query<'r>(request: &'r Request, key: &'r str) -> Query<'r> {
    Query { what: "interface counters", protocol: 0, request, key, note: "", netns: None }
}

/// Adds the counters of the interface in one message. `None` if it is cut short or has no name.
pub(crate) fn add(into: &mut CounterReading, payload: &[u8]) -> Option<()> {
    let index = prefix::u32_at(payload, 4)?;
    let attrs = || Attrs::new(payload.get(IFINFOMSG..).unwrap_or_default()).map_while(Result::ok);
    let name = attrs().find(|attr| attr.kind == IFLA_IFNAME)?;
    let is_virtual = attrs().any(|attr| attr.kind == IFLA_LINKINFO);
    let object = into.add_object(Object { is_virtual, ..Object::iface(index, name.c_str()) });
    let mut add = |name, value: Option<u32>| {
        let Some(value) = value else { return };
        into.add(Iface, name, Some(object), value.into(), Width::Bits32);
    };
    for attr in attrs() {
        match attr.kind {
            IFLA_MTU => add("mtu", attr.u32().ok()),
            IFLA_CARRIER => add("carrier", prefix::u8_at(attr.payload, 0).map(u32::from)),
            IFLA_CARRIER_CHANGES => add("carrier_changes", attr.u32().ok()),
            IFLA_CARRIER_UP_COUNT => add("carrier_up_count", attr.u32().ok()),
            IFLA_CARRIER_DOWN_COUNT => add("carrier_down_count", attr.u32().ok()),
            _ => {}
        }
    }
    if let Some(stats) = attrs().find(|attr| attr.kind == IFLA_STATS64) {
        add_stats(into, object, &stats);
    }
    Some(())
}

fn add_stats(into: &mut CounterReading, object: u32, stats: &Attr<'_>) {
    for (at, name) in STATS64.iter().enumerate() {
        let Some(value) = prefix::u64_at(stats.payload, at * 8) else { return };
        into.add(Iface, name, Some(object), value.into(), Width::Bits64);
    }
}
