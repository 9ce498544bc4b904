//! The parts of an rtnetlink message about an interface that only some kinds of interfaces have.
use netlink::{Attr, prefix};
use record::rows::{BridgeState, Link, PortState};

// IFLA_INFO_…, include/uapi/linux/if_link.h
const KIND: u16 = 1;
const DATA: u16 = 2;
const PORT_KIND: u16 = 4;
const PORT_DATA: u16 = 5;

// IFLA_BR_…
const FORWARD_DELAY: u16 = 1;
const STP_STATE: u16 = 5;
const MCAST_SNOOPING: u16 = 23;
const MCAST_QUERIER: u16 = 25;
const MCAST_MEMBERSHIP_INTVL: u16 = 31;
const MCAST_QUERIER_INTVL: u16 = 32;
const MCAST_QUERY_INTVL: u16 = 33;
/// Linux 5.15; inside: `BRIDGE_QUERIER_…`, include/uapi/linux/if_bridge.h.
const MCAST_QUERIER_STATE: u16 = 47;
const IP_OTHER_TIMER: u16 = 3;
const IPV6_OTHER_TIMER: u16 = 7;

// IFLA_BRPORT_…
const PORT_STATE: u16 = 1;
const PORT_GUARD: u16 = 5;
const PORT_UNICAST_FLOOD: u16 = 9;
const PORT_MCAST_FLOOD: u16 = 27;
const PORT_BCAST_FLOOD: u16 = 30;
const PORT_ISOLATED: u16 = 33;
/// Linux 5.18.
const PORT_LOCKED: u16 = 39;

/// AF_INET6, then IFLA_INET6_CONF: an array of s32 in the order of `DEVCONF_…` (include/uapi/linux/ipv6.h).
const AF_INET6: u16 = 10;
const INET6_CONF: u16 = 2;
const DEVCONF_HOPLIMIT: usize = 1;

/// Adds an attribute `IFLA_LINKINFO`.
pub(crate) fn add(link: &mut Link, info: &Attr<'_>) {
    let mut port_kind: &[u8] = b"";
    // The kernel puts each kind before its data.
    for attr in info.nested().flatten() {
        match attr.kind {
            KIND => link.kind = attr.c_str().into(),
            DATA if &*link.kind == b"bridge" => link.bridge = Some(bridge(&attr)),
            PORT_KIND => port_kind = attr.c_str(),
            PORT_DATA if port_kind == b"bridge" => link.port = Some(port(&attr)),
            _ => {}
        }
    }
    link.is_bridge = &*link.kind == b"bridge";
}

fn bridge(data: &Attr<'_>) -> BridgeState {
    let mut state = BridgeState::default();
    for attr in data.nested().flatten() {
        let (byte, number, time) = (attr.u8().unwrap_or(0), attr.u32().unwrap_or(0), attr.u64().unwrap_or(0));
        match attr.kind {
            FORWARD_DELAY => state.forward_delay = number,
            STP_STATE => state.stp = number,
            MCAST_SNOOPING => state.is_snooping = byte != 0,
            MCAST_QUERIER => state.is_querier = byte != 0,
            MCAST_MEMBERSHIP_INTVL => state.membership_interval = time,
            MCAST_QUERIER_INTVL => state.querier_interval = time,
            MCAST_QUERY_INTVL => state.query_interval = time,
            MCAST_QUERIER_STATE => {
                let timer = |kind| attr.nested().flatten().find(|one| one.kind == kind).and_then(|one| one.u64().ok());
                (state.other_querier, state.other_querier6) = (timer(IP_OTHER_TIMER), timer(IPV6_OTHER_TIMER));
            }
            _ => {}
        }
    }
    state
}

fn port(data: &Attr<'_>) -> PortState {
    // A kernel that lacks an attribute floods.
    let (floods_hosts, floods_broadcasts, floods_groups) = (true, true, true);
    let mut state = PortState { floods_hosts, floods_broadcasts, floods_groups, ..PortState::default() };
    for attr in data.nested().flatten() {
        let byte = attr.u8().unwrap_or(0);
        match attr.kind {
            PORT_STATE => state.state = byte,
            PORT_GUARD => state.is_guarded = byte != 0,
            PORT_UNICAST_FLOOD => state.floods_hosts = byte != 0,
            PORT_BCAST_FLOOD => state.floods_broadcasts = byte != 0,
            PORT_LOCKED => state.is_locked = byte != 0,
            PORT_MCAST_FLOOD => state.floods_groups = byte != 0,
            PORT_ISOLATED => state.is_isolated = byte != 0,
            _ => {}
        }
    }
    state
}

/// The hop limit in an attribute `IFLA_AF_SPEC`.
pub(crate) fn hop_limit(spec: &Attr<'_>) -> Option<u32> {
    let six = spec.nested().flatten().find(|one| one.kind == AF_INET6)?;
    let conf = six.nested().flatten().find(|one| one.kind == INET6_CONF)?;
    prefix::u32_at(conf.payload, DEVCONF_HOPLIMIT * 4)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::links::Links;
    use sys::Host;
    use testkit::netns::Lab;

    #[test]
    fn root_a_bridge_its_ports_and_a_hop_limit() {
        testkit::require_root!();
        let lab = Lab::new("linkkinds");
        let bridge = ["link", "add", "br0", "type", "bridge", "stp_state", "1", "mcast_querier", "1"];
        lab.ip(&[&bridge[..], &["mcast_query_interval", "1200", "forward_delay", "400"]].concat());
        lab.ip(&["link", "add", "va", "type", "veth", "peer", "name", "vb"]);
        lab.ip(&["link", "set", "va", "mtu", "1400"]);
        lab.ip(&["link", "set", "vb", "master", "br0"]);
        lab.ip(&["link", "set", "vb", "type", "bridge_slave", "isolated", "on", "mcast_flood", "off", "guard", "on"]);
        lab.run_inside(|| std::fs::write("/proc/sys/net/ipv6/conf/va/hop_limit", "7").unwrap());
        lab.run_inside(|| {
            let links = Links::read(&Host::live(), 0, None).unwrap();
            let of = |name: &[u8]| links.links.iter().find(|link| *link.name == *name).unwrap();
            let (state, port) = (of(b"br0").bridge.unwrap(), of(b"vb").port.unwrap());
            assert_eq!((state.stp, state.is_querier, state.is_snooping), (1, true, true));
            assert_eq!((state.query_interval, state.querier_interval), (1200, 25_500));
            assert_eq!((state.other_querier, state.other_querier6, state.forward_delay), (None, None, 400));
            assert_eq!((port.state, port.is_isolated, port.floods_groups, port.is_guarded), (0, true, false, true));
            let (va, vb) = (of(b"va"), of(b"vb"));
            assert_eq!((&*va.kind, va.hop_limit, va.port, va.bridge), (&b"veth"[..], Some(7), None, None));
            assert_eq!(Links::read_peer_mtu(&Host::live(), 0, vb).unwrap(), Some(1400));
        });
    }

    #[test]
    fn root_the_other_end_in_another_namespace() {
        testkit::require_root!();
        let (lab, other) = (Lab::new("peera"), Lab::new("peerb"));
        lab.ip(&["link", "add", "va", "type", "veth", "peer", "name", "vb", "netns", other.name()]);
        other.ip(&["link", "set", "vb", "mtu", "1300"]);
        lab.run_inside(|| {
            let links = Links::read(&Host::live(), 0, None).unwrap();
            let va = links.links.iter().find(|link| *link.name == *b"va").unwrap();
            assert!(va.is_lower_elsewhere);
            assert_eq!(Links::read_peer_mtu(&Host::live(), 0, va).unwrap(), Some(1300));
        });
    }
}
