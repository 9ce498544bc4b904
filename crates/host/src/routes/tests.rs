//! Compares decoded routes with the kernel's files and with `ip route`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::*;
use crate::NetnsSource;
use proptest::prelude::*;
use record::rows::Routes;
use record::{Demand, Next, Source, Table, Value};
use testkit::netns::Lab;

#[test]
fn lines_of_ipv6_route() {
    let line = b"20010db8000000000000000000000000 40 00000000000000000000000000000000 00 \
                 fe800000000000000000000000000001 ffffffff 00000003 00000000 80200003     eth0";
    let route = route6(line).unwrap();
    assert_eq!(route.target, "2001:db8::".parse().unwrap());
    assert_eq!((route.prefix_len, route.metric, route.refs, route.flags), (64, u32::MAX, 3, 0x8020_0003));
    assert_eq!((route.gateway, route.iface), ("fe80::1".parse().unwrap(), &b"eth0"[..]));
    assert_eq!(route6(b"20010db8000000000000000000000000 40 00000000000000000000000000000000 00 fe80"), None);
    assert_eq!(route6(b""), None);
}

#[test]
fn root_routes_say_what_the_kernels_file_says() {
    testkit::require_root!();
    let lab = Lab::new("routes");
    lab.ip(&["link", "add", "va", "type", "veth", "peer", "name", "vb"]);
    lab.ip(&["addr", "add", "192.0.2.1/24", "dev", "va"]);
    lab.ip(&["link", "set", "va", "up"]);
    lab.ip(&["link", "set", "vb", "up"]);
    for route in [
        "default via 192.0.2.9",
        "unreachable 198.51.100.0/24 metric 7",
        "203.0.113.0/24 via 192.0.2.8 metric 4000000000 advmss 1200 window 10 rtt 200ms",
        "10.1.0.0/16 nexthop via 192.0.2.8 nexthop via 192.0.2.7",
        "10.2.0.0/16 via inet6 fe80::1 dev va",
        "10.3.0.1 dev vb table 99",
        "multicast 224.1.1.0/24 dev va",
    ] {
        lab.ip(&[&["route", "add"][..], &route.split(' ').collect::<Vec<_>>()].concat());
    }
    let netns = NetNs::open_path(&lab.path()).unwrap();
    let tmp = tempfile::tempdir().unwrap();
    let tape = tmp.path().join("tape");
    let host = Host::live().recording(&tape).unwrap();
    let read = |host: &Host, inside: Option<&NetNs>| {
        let mut ifaces = Ifaces::new();
        ifaces.add(host, netns.inode(), inside).unwrap();
        let mut lines = Vec::new();
        read4(host, netns.inode(), inside, &ifaces, |r| {
            let (Addr::V4(target), Addr::V4(gateway)) = (r.target, r.gateway) else { panic!("{r:?}") };
            let [target, gateway] = [target, gateway].map(u32::from_ne_bytes);
            let mask = u32::MAX.checked_shl(32 - u32::from(r.prefix_len)).unwrap_or(0).to_be();
            let iface = String::from_utf8_lossy(r.iface);
            lines.push(format!(
                "{iface}\t{target:08X}\t{gateway:08X}\t{:04X}\t0\t0\t{}\t{mask:08X}\t{}\t{}\t{}",
                r.flags, r.metric, r.mss, r.window, r.rtt_ms
            ));
            ControlFlow::Continue(())
        })
        .unwrap();
        lines
    };
    let ours = read(&host, Some(&netns));
    host.finish().unwrap();
    let file = lab.command("cat").arg("/proc/net/route").output().unwrap();
    let file = String::from_utf8(file.stdout).unwrap();
    let theirs: Vec<&str> = file.lines().skip(1).map(str::trim_end).collect();
    assert_eq!(ours, theirs);
    assert!(ours.len() >= 6, "{ours:?}");
    assert_eq!(read(&Host::open_replay(&tape).unwrap(), None), ours);
}

proptest! {
    #[test]
    fn any_bytes(bytes: Vec<u8>, text in "([0-9a-f]{31,33} [0-9a-f]{2} x 0 [0-9a-f]{32} 0 1 2 3 [a-z]{0,3}\n?){0,3}") {
        fuzz_routes(&bytes);
        fuzz_routes(text.as_bytes());
    }

    #[test]
    fn any_attributes(kind in 0u16..20, payload in prop::collection::vec(any::<u8>(), 0..64)) {
        let mut message = vec![AF_INET, 24, 0, 0, 254, 0, 0, 1, 0, 0, 0, 0];
        message.extend_from_slice(&((payload.len() + 4) as u16).to_ne_bytes());
        message.extend_from_slice(&kind.to_ne_bytes());
        message.extend_from_slice(&payload);
        fuzz_routes(&message);
    }
}

/// The cells of the table `routes` that `ip route` also prints; the interface by name.
fn cells(ifaces: &Ifaces, row: &Route<'_>) -> String {
    let lookups = record::Lookups::empty().with_lookup(record::LookupId::Ifaces, ifaces);
    let cell = |name: &str| {
        let field = <Routes as Table>::FIELDS.iter().find(|field| field.name == name).unwrap();
        match field.cell(row, &lookups) {
            Value::Null => "-".to_owned(),
            Value::Bytes(text) => String::from_utf8_lossy(text).into_owned(),
            Value::Name(word) => word.to_owned(),
            Value::U64(number) => number.to_string(),
            Value::Addr(addr) => addr.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let names = [
        "type",
        "destination",
        "source",
        "gateway",
        "iface",
        "metric",
        "table",
        "scope",
        "protocol",
        "prefsrc",
        "weight",
        "mtu",
    ];
    names.map(cell).join(" ")
}

/// The same cells for one route of `ip -d -j route`, or for one of its next hops.
fn cells_of_ip(route: &serde_json::Value, hop: Option<&serde_json::Value>) -> String {
    let word = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Number(number) => number.to_string(),
        _ => "-".to_owned(),
    };
    let at = hop.unwrap_or(route);
    let gateway = if at["via"].is_object() { &at["via"]["host"] } else { &at["gateway"] };
    let metric = route["metric"].as_u64().unwrap_or(0).to_string();
    let weight = hop.map_or("-".to_owned(), |hop| word(&hop["weight"]));
    let [kind, dst, from, table] = ["type", "dst", "from", "table"].map(|name| word(&route[name]));
    let [scope, protocol, prefsrc] = ["scope", "protocol", "prefsrc"].map(|name| word(&route[name]));
    let (gateway, dev, mtu) = (word(gateway), word(&at["dev"]), word(&route["metrics"][0]["mtu"]));
    format!("{kind} {dst} {from} {gateway} {dev} {metric} {table} {scope} {protocol} {prefsrc} {weight} {mtu}")
}

const ROUTES_TO_ADD: &[&str] = &[
    "default via 192.0.2.9 metric 100",
    "default via 192.0.2.10 dev va proto bird metric 200",
    "unreachable 198.51.100.0/24 metric 7",
    "blackhole 198.51.101.0/24 table 99",
    "prohibit 198.51.102.0/24 proto static",
    "throw 198.51.103.0/24 table 70000",
    "203.0.113.0/24 via 192.0.2.8 metric 4000000000 mtu 1400 src 192.0.2.1",
    "10.1.0.0/16 nexthop via 192.0.2.8 weight 3 nexthop via 192.0.2.7 dev va weight 5",
    "10.2.0.0/16 via inet6 fe80::1 dev va",
    "10.3.0.1 dev vb table 99 proto bgp",
    "10.4.0.0/16 dev vb scope site",
    "multicast 224.1.1.0/24 dev va",
    "-6 2001:db8:1::/48 via 2001:db8::9 metric 5 mtu 1300",
    "-6 default via fe80::2 dev va proto ra",
    "-6 blackhole 2001:db8:2::/48",
    "-6 unreachable 2001:db8:3::1 table 98",
    "-6 2001:db8:4::/48 nexthop via 2001:db8::8 dev va weight 2 nexthop via fe80::3 dev vb",
    "-6 2001:db8:5::/48 from 2001:db8:6::/64 dev va",
];

#[test]
fn root_the_table_says_what_ip_route_says() {
    testkit::require_root!();
    let lab = Lab::new("routetable");
    lab.ip(&["link", "add", "va", "type", "veth", "peer", "name", "vb"]);
    lab.ip(&["addr", "add", "192.0.2.1/24", "dev", "va"]);
    lab.ip(&["addr", "add", "2001:db8::1/64", "dev", "va", "nodad"]);
    lab.ip(&["link", "set", "lo", "up"]);
    lab.ip(&["link", "set", "va", "up"]);
    lab.ip(&["link", "set", "vb", "up"]);
    for route in ROUTES_TO_ADD {
        let (family, route) = route.strip_prefix("-6 ").map_or(("-4", *route), |route| ("-6", route));
        lab.ip(&[&[family, "route", "add"][..], &route.split(' ').collect::<Vec<_>>()].concat());
    }
    let expected = || {
        let mut all = Vec::new();
        for family in ["-4", "-6"] {
            let text = lab.output("ip", &["-d", "-j", family, "route", "show", "table", "all"]);
            let routes: serde_json::Value = serde_json::from_str(&text).unwrap();
            for route in routes.as_array().unwrap() {
                match route["nexthops"].as_array() {
                    None => all.push(cells_of_ip(route, None)),
                    Some(hops) => all.extend(hops.iter().map(|hop| cells_of_ip(route, Some(hop)))),
                }
            }
        }
        all.sort();
        all
    };
    let read = |host: &Host, netns_id: u64| {
        let mut ifaces = Ifaces::new();
        ifaces.add(host, netns_id, None).unwrap();
        let (source, mut all) = (NetnsSource::new(host, vec![sys::NetnsTarget::current(netns_id)]), Vec::new());
        let stats = source.run(&Demand::<Routes>::new(&[], Vec::new()), &mut |row| {
            all.push(cells(&ifaces, row));
            Next::More
        });
        let stats = stats.unwrap();
        assert!(!stats.is_partial() && stats.seen == all.len() as u64, "{stats:?}");
        all.sort();
        all
    };
    let tmp = tempfile::tempdir().unwrap();
    let tape = tmp.path().join("tape");
    let netns_id = NetNs::open_path(&lab.path()).unwrap().inode();
    lab.run_inside(|| {
        let host = Host::live().recording(&tape).unwrap();
        // Link-local addresses of the new interfaces appear a moment later, with their routes.
        let mut ours = Vec::new();
        testkit::wait_until("routes are at rest", || {
            let before = expected();
            ours = read(&Host::live(), netns_id);
            before == expected() && ours.len() == before.len() && before.iter().any(|route| route.contains("fe80::"))
        });
        assert_eq!(ours, expected());
        assert!(ours.len() > ROUTES_TO_ADD.len() + 10, "{ours:#?}");
        assert_eq!(read(&host, netns_id), ours);
        host.finish().unwrap();
    });
    let host = Host::open_replay(&tape).unwrap();
    assert_eq!(read(&host, netns_id).len(), expected().len());
    let nothing = NetnsSource::new(&host, vec![sys::NetnsTarget::current(1)]);
    let error = nothing.run(&Demand::<Routes>::new(&[], Vec::new()), &mut |_| Next::More).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot read routes: the recording holds no routes (`netwren record FILE` records everything)"
    );
}

#[test]
fn root_a_namespace_without_routes_has_none() {
    testkit::require_root!();
    let lab = Lab::new("noroutes");
    lab.ip(&["addr", "flush", "dev", "lo"]);
    lab.ip(&["link", "set", "lo", "down"]);
    lab.run_inside(|| {
        let host = Host::live();
        let source = NetnsSource::new(&host, vec![sys::NetnsTarget::current(1)]);
        let stats = source.run(&Demand::<Routes>::new(&[], Vec::new()), &mut |row| panic!("{row:?}")).unwrap();
        assert_eq!((stats.seen, stats.is_partial()), (0, false));
    });
}

#[test]
fn cached_routes_of_redirects() {
    let message = |family: u8, flags: u32, attrs: &[(u16, &[u8])]| {
        let mut bytes = vec![family, 32, 0, 0, 254, 3, 0, 1];
        bytes.extend_from_slice(&flags.to_ne_bytes());
        for (kind, payload) in attrs {
            bytes.extend_from_slice(&(payload.len() as u16 + 4).to_ne_bytes());
            bytes.extend_from_slice(&kind.to_ne_bytes());
            bytes.extend_from_slice(payload);
        }
        bytes
    };
    let read = |bytes: &[u8], family| {
        let part = AnswerMessage { kind: RTM_NEWROUTE, flags: 0, payload: bytes, block: 0 };
        cached_route(&part, family)
    };
    let (to, gateway, oif) = ([172, 17, 0, 2], [192, 0, 2, 99], 7u32.to_ne_bytes());
    let attrs = [(RTA_DST, &to[..]), (RTA_GATEWAY, &gateway), (RTA_OIF, &oif)];
    let redirected = message(AF_INET, RTM_F_CLONED | RTCF_REDIRECTED, &attrs);
    let route = CachedRoute { to: Addr::V4(to), gateway: Addr::V4(gateway), ifindex: 7 };
    assert_eq!(read(&redirected, AF_INET), Some(route));
    assert_eq!(read(&redirected, AF_INET6), None);
    assert_eq!(read(&redirected[..20], AF_INET), None, "no gateway");
    assert_eq!(read(&message(AF_INET, RTM_F_CLONED, &attrs), AF_INET), None, "a path MTU");
    let (to, gateway) = ([0xfd; 16], [0xfe; 16]);
    let attrs = [(RTA_DST, &to[..]), (RTA_GATEWAY, &gateway), (RTA_OIF, &oif)];
    let route = CachedRoute { to: Addr::V6(to), gateway: Addr::V6(gateway), ifindex: 7 };
    assert_eq!(read(&message(AF_INET6, RTM_F_CLONED, &attrs), AF_INET6), Some(route));
    assert_eq!(read(&message(AF_INET6, 0, &attrs), AF_INET6), None, "a route");
}
