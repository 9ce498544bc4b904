//! Random expressions on random packets must have the same verdicts as libpcap's program. `PROPTEST_CASES=2000` tests
//! more.

use super::corpus;

use super::peer::{self, NAMES, Said};
use pcapfilter::{FilterTarget, LinkType, Metadata, Packet, PacketOrigin, Program, compile, run};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Expressions per run: each starts a tcpdump process.
const CASES: u32 = 16;

fn host() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["10.0.0.1", "10.0.0.2", "192.168.1.77", "1.2.3.4", "2001:db8::1", "2001:db8:0:1::2"])
        .prop_map(str::to_owned)
}

fn number() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["0", "1", "2", "4", "6", "8", "0xf", "17", "20", "40", "64", "80", "255", "0x800"])
        .prop_map(str::to_owned)
}

fn arith() -> impl Strategy<Value = String> {
    let load = ("(ip|ip6|tcp|udp|icmp|ether|arp)", 0..24_u32, prop::sample::select(vec!["", ":1", ":2", ":4"]))
        .prop_map(|(proto, offset, size)| format!("{proto}[{offset}{size}]"));
    let leaf = prop_oneof![3 => load, 2 => number(), 1 => Just("len".to_owned())];
    leaf.prop_recursive(2, 6, 2, |inner| {
        let form = prop::sample::select(vec![
            "(L + R)",
            "(L - R)",
            "(L * R)",
            "(L & R)",
            "(L | R)",
            "(L ^ R)",
            "((L << 2) + R)",
            "((L >> 1) - R)",
            "((L / 3) + R)",
            "((L % 7) ^ R)",
            "-(L)",
        ]);
        (inner.clone(), form, inner).prop_map(|(left, form, right)| form.replace('L', &left).replace('R', &right))
    })
}

fn primitive() -> impl Strategy<Value = String> {
    let words = prop::sample::select(include_str!("../expressions.txt").lines().step_by(3).collect::<Vec<_>>())
        .prop_filter("one that moves headers, or is known to differ", |text| {
            !["geneve", "protochain", "net 1.0", "2001:db8::3", "fe80"].iter().any(|word| text.contains(word))
        })
        .prop_map(|text| format!("({text})"));
    let dir = prop::sample::select(vec!["", "src ", "dst ", "src and dst "]);
    let hosts = (dir.clone(), prop::collection::vec(host(), 1..4))
        .prop_map(|(dir, hosts)| format!("{dir}host {}", hosts.join(" or ")));
    let ports = (dir, prop::collection::vec(number(), 1..5))
        .prop_map(|(dir, ports)| format!("{dir}port {}", ports.join(" or ")));
    let relation = (arith(), prop::sample::select(vec!["=", "!=", ">", "<", ">=", "<="]), arith())
        .prop_map(|(left, relation, right)| format!("{left} {relation} {right}"));
    prop_oneof![3 => words, 2 => hosts, 2 => ports, 3 => relation]
}

fn expression() -> impl Strategy<Value = String> {
    primitive().prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(left, right)| format!("({left} and {right})")),
            (inner.clone(), inner.clone()).prop_map(|(left, right)| format!("({left} or {right})")),
            inner.prop_map(|inner| format!("not ({inner})")),
        ]
    })
}

fn verdict(program: &Program, bytes: &[u8]) -> bool {
    let packet = Packet { bytes, length: bytes.len() as u32, metadata: Some(Metadata::default()) };
    run(program, &packet, &mut |_| false) != 0
}

/// Whole packets, each also with some bytes changed. Verdicts on truncated packets are compared with fixed
/// expressions.
fn packets(seed: u64) -> Vec<Vec<u8>> {
    let whole = corpus::packets(LinkType::Ethernet).into_iter().filter(|packet| packet.len() > 100);
    let mut all: Vec<Vec<u8>> = whole.collect();
    let mut state = seed | 1;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for mut packet in all.clone() {
        for _ in 0..3 {
            let at = random(60);
            packet[at] = random(256) as u8;
        }
        all.push(packet);
    }
    all
}

#[test]
fn expressions_and_packets() {
    testkit::require_tool!("tcpdump");
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(CASES);
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 60, ..Config::default() };
    let origin = PacketOrigin::Live { vlan_beside: false };
    let target = FilterTarget { link: LinkType::Ethernet, origin, snaplen: 262_144, netmask: Some(0) };
    let outcome = TestRunner::new(config).run(&(expression(), any::<u64>()), |(expression, seed)| {
        let ours = compile(&expression, &target, &NAMES);
        match (ours, peer::ask(&["-y", "EN10MB"], &expression)) {
            (Ok(ours), Said::Program(theirs)) => {
                let decides = ours.rest.as_ref().unwrap_or(&ours.kernel);
                let differs = |theirs: &Program| {
                    packets(seed).into_iter().find(|bytes| verdict(decides, bytes) != verdict(theirs, bytes))
                };
                if differs(&theirs).is_some() {
                    // libpcap's optimiser sometimes drops a store that is read. In that case its unoptimised program
                    // decides.
                    let plain = peer::ask(&["-y", "EN10MB", "-O"], &expression);
                    let Said::Program(plain) = plain else { return Err(TestCaseError::fail(expression)) };
                    let bytes = differs(&plain);
                    prop_assert!(bytes.is_none(), "{expression} {bytes:02x?}");
                }
            }
            // The reported error may differ: libpcap finds some only after it has removed conditions that are never
            // true.
            (Err(_), Said::Refusal(_)) => {}
            // One of the two detects earlier that nothing passes, or has more words of scratch memory.
            (Err(ours), Said::Program(theirs)) => {
                prop_assert_eq!(&ours.message, "expression rejects all packets", "{}", expression);
                let passes = packets(seed).iter().any(|bytes| verdict(&theirs, bytes));
                prop_assert!(!passes, "{}", expression);
            }
            (Ok(_), Said::Refusal(theirs)) => {
                let is_known = theirs == "expression rejects all packets" || theirs.contains("registers");
                prop_assert!(is_known, "{}: {}", expression, theirs);
            }
        }
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}
