//! Traps of devices (devlink): packets that hardware hands to the kernel or drops, from one dump of generic netlink.

use netlink::generic::{PROTOCOL, attrs_of};
use netlink::{Attr, Query, Request};
use record::rows::CounterSource::Trap;

use crate::reading::{CounterReading, Object, Width};

/// Name of the generic netlink family.
pub(crate) const FAMILY: &str = "devlink";

// include/uapi/linux/devlink.h
const DEVLINK_CMD_TRAP_GET: u8 = 61;
const DEVLINK_CMD_TRAP_NEW: u8 = 63;
const DEVLINK_ATTR_BUS_NAME: u16 = 1;
const DEVLINK_ATTR_DEV_NAME: u16 = 2;
const DEVLINK_ATTR_STATS: u16 = 129;
const DEVLINK_ATTR_TRAP_NAME: u16 = 130;
const DEVLINK_ATTR_TRAP_TYPE: u16 = 132;
const DEVLINK_TRAP_TYPE_DROP: u8 = 0;
/// Members of `DEVLINK_ATTR_STATS` by number, and the end of their counter's name.
const STATS: &[(u16, &str)] = &[(0, "packets"), (1, "bytes"), (2, "dropped")];

/// The request for all traps of the devices of a namespace.
pub(crate) fn request(family: u16) -> Request {
    let mut request = Request::dump(family);
    request.append(&[DEVLINK_CMD_TRAP_GET, 1, 0, 0]);
    request
}

/// The query with its name in a recording.
pub(crate) fn query<'r>(request: &'r Request, key: &'r str) -> Query<'r> {
    Query { what: "devlink traps", protocol: PROTOCOL, request, key, note: "", netns: None }
}

/// Adds the counters of the trap in one message: packets and bytes handed to the kernel as `NAME.packets` and
/// `NAME.bytes`, other packets as `NAME.dropped` (Linux 5.14, not every device). `None` for other messages, and without
/// names.
pub(crate) fn add(into: &mut CounterReading, message: &[u8]) -> Option<()> {
    let (mut bus, mut device, mut trap, mut kind, mut stats) = (&b""[..], &b""[..], &b""[..], None, None);
    for attr in attrs_of(message, DEVLINK_CMD_TRAP_NEW)? {
        match attr.kind {
            DEVLINK_ATTR_BUS_NAME => bus = attr.c_str(),
            DEVLINK_ATTR_DEV_NAME => device = attr.c_str(),
            DEVLINK_ATTR_TRAP_NAME => trap = attr.c_str(),
            DEVLINK_ATTR_TRAP_TYPE => kind = attr.u8().ok(),
            DEVLINK_ATTR_STATS => stats = Some(attr),
            _ => {}
        }
    }
    if device.is_empty() || trap.is_empty() {
        return None;
    }
    let object = Object {
        is_drop_trap: kind == Some(DEVLINK_TRAP_TYPE_DROP),
        label: [bus, b"/", device].concat().into(),
        ..Object::default()
    };
    let object = into.add_object(object);
    let value_of = |number: u16| {
        let found = stats.as_ref().map(Attr::nested).into_iter().flatten().flatten().find(|one| one.kind == number)?;
        found.u64().ok()
    };
    let trap = String::from_utf8_lossy(trap);
    for (number, suffix) in STATS {
        if let Some(value) = value_of(*number) {
            into.add(Trap, &format!("{trap}.{suffix}"), Some(object), value.into(), Width::Bits64);
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use netlink::Messages;

    /// The traps of a simulated device; the HOW file next to it describes how they were recorded.
    const TRAPS: &[u8] = include_bytes!("../../../fixtures/devlink/6.8/traps.nl");

    #[test]
    fn traps_of_a_simulated_device() {
        let mut reading = CounterReading::default();
        let messages: Vec<&[u8]> = Messages::new(TRAPS).map(|message| message.unwrap().payload).collect();
        let added = messages.iter().filter(|message| add(&mut reading, message).is_some()).count();
        assert_eq!(added, 14, "{} messages", messages.len());
        let of = |name: &str| reading.values().iter().find(|one| one.name.text() == name).unwrap();
        let object = |name: &str| reading.object(of(name)).unwrap();
        assert!(of("source_mac_is_multicast.packets").value > 0);
        assert!(object("source_mac_is_multicast.packets").is_drop_trap);
        assert_eq!(&*object("source_mac_is_multicast.packets").label, b"netdevsim/netdevsim1");
        assert!(!object("ttl_value_is_too_small.packets").is_drop_trap, "an exception, which the kernel takes over");
        assert!(reading.values().iter().any(|one| one.name.text() == "blackhole_route.dropped"));
        for message in messages {
            (0..message.len()).for_each(|len| _ = add(&mut CounterReading::default(), &message[..len]));
        }
    }
}
