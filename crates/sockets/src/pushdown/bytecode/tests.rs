#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::kernel::{Tuple, audit, run};
use super::*;
use proptest::prelude::*;
use record::rows::Endpoint;

fn tuple_of(row: &Socket<'_>) -> Tuple {
    let sixteen = |addr: Addr| {
        let mut octets = [0; 16];
        octets[..addr.octets().len()].copy_from_slice(addr.octets());
        octets
    };
    Tuple {
        family: row.family,
        local: sixteen(row.local.addr),
        peer: sixteen(row.peer.addr),
        sport: row.local.port,
        dport: row.peer.port,
        ifindex: row.ifindex,
        mark: row.mark.unwrap_or(0),
        cgroup: row.cgroup_id.unwrap_or(0),
        autobound: false,
    }
}

/// Rows do not show whether the kernel chose the port, so backends that cannot filter must not drop any row that the
/// kernel would send.
#[test]
fn issue_10_autobound_is_the_kernels_word() {
    let auto = || Code::Cond(Cond::Auto);
    let port = || Code::Cond(Cond::Port { side: EndpointSide::Local, low: 80, high: 80 });
    for code in [auto(), Code::not(auto()), Code::and([auto(), port()]), Code::or([Code::not(auto()), port()])] {
        let program = code.compile().unwrap();
        audit(&program).unwrap();
        for (autobound, local) in [(true, 80), (false, 80), (true, 81), (false, 81)] {
            let mut row = Socket { family: AF_INET, ..Socket::EMPTY };
            row.local.port = local;
            let passes = run(&program, &Tuple { autobound, ..tuple_of(&row) });
            let expected = match code.to_string().as_str() {
                "autobound" => autobound,
                "not (autobound)" => !autobound,
                "autobound and local_port = 80" => autobound && local == 80,
                _ => !autobound || local == 80,
            };
            assert_eq!(passes, expected, "{code} {autobound} {local}");
            assert!(code.accepts(&row) || !passes, "{code} {autobound} {local}");
        }
    }
}

fn addr4() -> impl Strategy<Value = [u8; 4]> {
    // Only few values, so that prefixes and addresses often match.
    prop_oneof![Just([0; 4]), Just([127, 0, 0, 1]), Just([10, 1, 2, 3]), Just([10, 1, 2, 200]), any::<[u8; 4]>()]
}

fn addr6() -> impl Strategy<Value = [u8; 16]> {
    let mapped = addr4().prop_map(|four| {
        let mut octets = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0];
        octets[12..].copy_from_slice(&four);
        octets
    });
    prop_oneof![Just([0; 16]), Just("fd77::1".parse::<std::net::Ipv6Addr>().unwrap().octets()), mapped]
}

fn port() -> impl Strategy<Value = u16> {
    prop_oneof![Just(0), Just(1), Just(80), Just(443), Just(65535), any::<u16>()]
}

pub(crate) fn row() -> impl Strategy<Value = Socket<'static>> {
    let ends = prop_oneof![
        (addr4(), addr4()).prop_map(|(a, b)| (AF_INET, Addr::V4(a), Addr::V4(b))),
        (addr6(), addr6()).prop_map(|(a, b)| (AF_INET6, Addr::V6(a), Addr::V6(b))),
    ];
    let rest = (0u32..4, prop::option::of(0u32..20), prop::option::of(1u64..4), 1u8..12);
    (ends, port(), port(), rest).prop_map(|((family, a, b), sport, dport, (ifindex, mark, cgroup_id, state))| Socket {
        family,
        state: record::State(state),
        local: Endpoint { addr: a, port: sport },
        peer: Endpoint { addr: b, port: dport },
        ifindex,
        mark,
        cgroup_id,
        ..Socket::EMPTY
    })
}

fn prefix() -> impl Strategy<Value = Prefix> {
    prop_oneof![
        (addr4(), 0u8..=32).prop_map(|(addr, len)| Prefix::new(Addr::V4(addr), len).unwrap()),
        (addr6(), 0u8..=128).prop_map(|(addr, len)| Prefix::new(Addr::V6(addr), len).unwrap()),
    ]
}

fn code() -> impl Strategy<Value = Code> {
    let side = || prop_oneof![Just(EndpointSide::Local), Just(EndpointSide::Peer)];
    let cond = prop_oneof![
        (side(), port(), port()).prop_map(|(side, a, b)| Cond::Port { side, low: a.min(b), high: a.max(b) }),
        (side(), prefix(), prop::option::of(port())).prop_map(|(side, prefix, port)| Cond::Host { side, prefix, port }),
        (0u32..4).prop_map(Cond::Iface),
        (0u32..20, any::<u32>()).prop_map(|(value, mask)| Cond::Mark { value: value & mask, mask }),
        (0u64..4).prop_map(Cond::Cgroup),
    ];
    let leaf = prop_oneof![8 => cond.prop_map(Code::Cond), 1 => Just(Code::True), 1 => Just(Code::False)];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Code::And),
            prop::collection::vec(inner.clone(), 0..4).prop_map(Code::Or),
            inner.prop_map(|inner| Code::Not(Box::new(inner))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    /// The program is equivalent to the tree, and the kernel would accept it. Also without folding.
    #[test]
    fn programs_are_their_trees(code in code(), row in row()) {
        let program = code.compile().unwrap();
        let holds = if program.is_empty() {
            true
        } else {
            prop_assert_eq!(audit(&program), Ok(()));
            run(&program, &tuple_of(&row))
        };
        prop_assert_eq!(holds, code.accepts(&row), "{}", code);
    }

    #[test]
    fn folding_changes_nothing(code in code(), row in row()) {
        prop_assert_eq!(folded(&code).accepts(&row), code.accepts(&row));
    }
}

fn folded(code: &Code) -> Code {
    match code {
        Code::And(parts) => Code::and(parts.iter().map(folded)),
        Code::Or(parts) => Code::or(parts.iter().map(folded)),
        Code::Not(part) => Code::not(folded(part)),
        other => other.clone(),
    }
}

#[test]
#[cfg(target_endian = "little")]
fn the_kernels_own_example_of_a_port_range() {
    let range = Code::Cond(Cond::Port { side: EndpointSide::Local, low: 80, high: 443 });
    // {S_GE, 8, 20}{0, 0, low}{S_LE, 8, 12}{0, 0, high}: 20 and 12 jump four bytes beyond the end.
    let expected = [2, 8, 20, 0, 0, 0, 80, 0, 3, 8, 12, 0, 0, 0, 187, 1];
    assert_eq!(range.compile().unwrap(), expected);
    assert_eq!(Code::True.compile().unwrap(), [0u8; 0]);
}

#[test]
fn a_program_that_is_too_long_is_none() {
    let many = (0..2000u16).map(|n| Code::Cond(Cond::Port { side: EndpointSide::Peer, low: n * 2, high: n * 2 }));
    assert_eq!(Code::or(many).compile(), None);
}

#[test]
fn programs_are_described_in_words() {
    let code = Code::and([
        Code::Cond(Cond::Port { side: EndpointSide::Local, low: 80, high: 443 }),
        Code::or([
            Code::Cond(Cond::Host { side: EndpointSide::Peer, prefix: "10.0.0.0/8".parse().unwrap(), port: None }),
            Code::not(Code::Cond(Cond::Mark { value: 0x10, mask: 0xf0 })),
        ]),
    ]);
    assert_eq!(code.to_string(), "local_port in 80-443 and (peer in 10.0.0.0/8 or not (mark = 0x10/0xf0))");
}
