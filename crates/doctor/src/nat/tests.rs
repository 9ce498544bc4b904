#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::*;
use proptest::prelude::*;
use record::Addr;
use record::rows::{Conntrack, CtState, CtStatus, CtTuple, PortRange, SnatPorts, ip_proto};

const SECOND: u64 = 1_000_000_000;

fn sample(at_s: u64, entries: u64, drops: u64) -> Sample {
    let mut counts = StatCounts::default();
    counts.set(StatCounter::Drop, Some(drops));
    Sample { at_ns: at_s * SECOND, entries, counts }
}

fn settings() -> CtSettings {
    let mut settings = CtSettings::default();
    let all = [
        (CtSetting::TcpEstablished, 432_000),
        (CtSetting::TcpTimeWait, 120),
        (CtSetting::TcpMaxRetransTimeout, 300),
        (CtSetting::TcpUnacknowledged, 300),
        (CtSetting::Udp, 30),
        (CtSetting::UdpStream, 120),
        (CtSetting::Events, 2),
        (CtSetting::Acct, 0),
    ];
    all.into_iter().for_each(|(setting, value)| settings.set(setting, Some(value)));
    settings
}

fn evidence(samples: Vec<Sample>, max: u64, buckets: u64) -> Evidence {
    Evidence {
        samples,
        max: Some(max),
        buckets: Some(buckets),
        settings: settings(),
        is_listened_to: Some(false),
        entry: Some(EntryBytes { entry: 256, extension: 128, helped: 196 }),
        page_bytes: 4096,
        is_first: true,
        host_memory_bytes: Some(1 << 44),
        ..Evidence::default()
    }
}

fn tcp(state: u8, left: u32) -> Conntrack<'static> {
    Conntrack {
        orig: CtTuple { proto: ip_proto::TCP, ..CtTuple::EMPTY },
        state: Some(CtState::Tcp(state)),
        timeout_s: Some(left),
        status: Some(CtStatus(CtStatus::SEEN_REPLY | CtStatus::ASSURED)),
        ..Conntrack::EMPTY
    }
}

#[test]
fn a_full_table_by_example() {
    let advice = advise(&evidence(vec![sample(1, 1000, 50), sample(3, 1000, 250)], 1000, 1024));
    assert_eq!((advice.verdict, advice.trend.growth_per_s, advice.trend.full_in_s), (Verdict::Full, Some(0), None));
    let sizes = advice.sizes.unwrap();
    assert_eq!((sizes.advised_max, sizes.advised_buckets), (2048, 2048));
    assert_eq!(sizes.memory_bytes, Some(2048 * 256 + 2048 * 8 + 1024 * 8));
    assert!(advice.reasons[0].starts_with("200 packets were dropped"), "{:?}", advice.reasons);
    assert!(advice.reasons.iter().any(|reason| reason.contains("the limit should be 2048")), "{:?}", advice.reasons);
}

#[test]
fn a_table_that_grows_and_one_that_shrinks() {
    let grows = advise(&evidence(vec![sample(1, 100, 0), sample(2, 400, 0), sample(4, 1000, 0)], 4000, 4096));
    assert_eq!((grows.trend.growth_per_s, grows.trend.full_in_s), (Some(300), Some(10)));
    assert_eq!(grows.verdict, Verdict::Filling);
    // 1000 now, and 300 more each second until the first of them expire.
    assert_eq!(grows.sizes.unwrap().wanted, 2 * (1000 + 300 * 120));
    let shrinks = advise(&evidence(vec![sample(1, 1000, 0), sample(2, 100, 0)], 262_144, 262_144));
    assert_eq!((shrinks.trend.growth_per_s, shrinks.trend.full_in_s), (Some(-900), None));
    assert_eq!((shrinks.trend.peak, shrinks.verdict), (Some(1000), Verdict::Roomy));
    assert!(!shrinks.sizes.unwrap().is_change, "a limit that does is left alone");
}

#[test]
fn one_sample_or_two_at_once_show_no_growth() {
    for samples in
        [vec![sample(1, 10, 3)], vec![sample(1, 10, 3), Sample { at_ns: SECOND * 3 / 2, ..sample(1, 90, 9) }]]
    {
        let advice = advise(&evidence(samples, 1000, 1024));
        assert_eq!((advice.trend.growth_per_s, advice.trend.full_in_s), (None, None));
        assert_eq!(advice.trend.grown, StatCounts::default());
        assert!(advice.reasons.iter().any(|reason| reason.contains("needs two samples")), "{:?}", advice.reasons);
    }
}

#[test]
fn counters_that_went_backwards_are_null() {
    let advice = advise(&evidence(vec![sample(1, 10, 300), sample(2, 10, 2)], 1000, 1024));
    assert_eq!(advice.trend.grown.get(StatCounter::Drop), None);
    assert_eq!(advice.trend.totals.get(StatCounter::Drop), Some(2));
}

#[test]
fn what_a_lower_timeout_frees_is_what_has_been_silent() {
    let mut census = Census::new(&settings());
    // Silent for 0 s, 7000 s, 8000 s, five days less 301 s; an unanswered one; one with more time left than a packet
    // gives.
    for left in [432_000, 425_000, 424_000, 301, 200, 500_000] {
        census.add(&tcp(3, left));
    }
    census.add(&tcp(7, 60));
    let of = |max| {
        let evidence = Evidence { census: Some(census.clone()), ..evidence(vec![sample(1, 7, 0)], max, 1024) };
        advise(&evidence).timeout.unwrap()
    };
    let timeout = of(14);
    assert_eq!((timeout.setting, timeout.seconds, timeout.entries), (CtSetting::TcpEstablished, 432_000, 6));
    assert_eq!((timeout.advised_s, timeout.frees), (Some(7440), Some(2)));
    let with_room = of(15);
    assert_eq!((with_room.entries, with_room.advised_s, with_room.frees), (6, None, None), "half of it is free");
}

#[test]
fn a_table_with_plenty_of_room_needs_no_change() {
    let mut census = Census::new(&settings());
    (0..6).for_each(|_| census.add(&tcp(3, 200)));
    let advice = advise(&Evidence { census: Some(census), ..evidence(vec![sample(1, 6, 0)], 1000, 1024) });
    assert_eq!((advice.verdict.name(), advice.verdict.words()), ("roomy", "plenty of room"));
    assert!(!advice.sizes.unwrap().is_change && advice.timeout.unwrap().advised_s.is_none());
    assert!(advice.reasons.iter().any(|reason| reason == "6 of 1000 entries, 0.6 %"), "{:?}", advice.reasons);
}

#[test]
fn timeouts_by_protocol_and_state() {
    let of = |proto, status| {
        setting_of(&Conntrack {
            orig: CtTuple { proto, ..CtTuple::EMPTY },
            status: Some(CtStatus(status)),
            ..Conntrack::EMPTY
        })
    };
    assert_eq!(of(ip_proto::UDP, 2), Some(CtSetting::Udp));
    assert_eq!(of(ip_proto::UDP, 6), Some(CtSetting::UdpStream));
    assert_eq!(of(ip_proto::ICMPV6, 0), Some(CtSetting::Icmpv6));
    assert_eq!(of(50, 0), Some(CtSetting::Generic));
    assert_eq!(of(ip_proto::TCP, 0), None, "without its state");
    assert_eq!(of(ip_proto::UDP, CtStatus::OFFLOAD), None);
    assert_eq!(setting_of(&tcp(7, 1)), Some(CtSetting::TcpTimeWait));
    assert_eq!(setting_of(&tcp(77, 1)), None);
}

#[test]
fn bytes_of_what_is_there() {
    let with = |rows: &[(u32, Option<bool>)]| {
        let mut census = Census::new(&settings());
        for (status, extended) in rows {
            census.add(&Conntrack { status: Some(CtStatus(*status)), extended: *extended, ..Conntrack::EMPTY });
        }
        advise(&Evidence { census: Some(census), ..evidence(vec![sample(1, 2, 0)], 1000, 1024) })
    };
    let (snat, dnat) = (CtStatus::SRC_NAT, CtStatus::DST_NAT);
    assert_eq!(with(&[(0, None), (0, None)]).bytes_per_entry, Some(256));
    assert_eq!(with(&[(dnat, None), (dnat, None)]).bytes_per_entry, Some(256), "no extension is made for it");
    let maybe = with(&[(snat, None), (0, None)]);
    assert_eq!((maybe.bytes_per_entry, maybe.nat_entries), (Some(320), Some(1)));
    assert!(maybe.reasons.iter().any(|reason| reason.contains("counted as masqueraded")));
    assert_eq!(with(&[(snat, Some(false)), (0, Some(true))]).bytes_per_entry, Some(320), "seen, not guessed");
    assert_eq!(with(&[(snat, Some(false)), (0, Some(false))]).bytes_per_entry, Some(256));
    let seen = with(&[(0, Some(true)), (0, Some(false)), (dnat, Some(true))]);
    assert_eq!((seen.bytes_per_entry_plain, seen.bytes_per_entry), (Some(320), Some(341)));
    let mut counted = evidence(vec![sample(1, 0, 0)], 1000, 1024);
    counted.settings.set(CtSetting::Acct, Some(1));
    assert_eq!(advise(&counted).bytes_per_entry, Some(384));
    let mut heard = evidence(vec![sample(1, 0, 0)], 1000, 1024);
    heard.is_listened_to = Some(true);
    assert_eq!(advise(&heard).bytes_per_entry_plain, Some(384));
    let mut census = Census::new(&settings());
    census.add(&Conntrack { extended: Some(false), ..Conntrack::EMPTY });
    heard.census = Some(census);
    assert_eq!(advise(&heard).bytes_per_entry, Some(256), "made before somebody listened: what was seen counts");
}

#[test]
fn expired_is_known_only_from_a_backend_that_shows_it() {
    let of = |expired: &[Option<bool>]| {
        let mut census = Census::new(&settings());
        expired.iter().for_each(|expired| census.add(&Conntrack { expired: *expired, ..tcp(7, 1) }));
        census.expired()
    };
    assert_eq!(of(&[Some(true), Some(false), Some(true)]), Some(2));
    assert_eq!(of(&[Some(true), None]), None);
    assert_eq!(of(&[None]), None);
}

#[test]
fn buckets_serve_all_namespaces() {
    let alone = evidence(vec![sample(1, 400, 0)], 1000, 1024);
    assert!(!advise(&alone).sizes.unwrap().is_change);
    let among = Evidence { host_entries: Some(5000), ..alone };
    let sizes = advise(&among).sizes.unwrap();
    assert_eq!((sizes.advised_max, sizes.advised_buckets), (1000, 5632));
    let few = Evidence { host_entries: Some(500), ..evidence(vec![sample(1, 400, 0)], 1000, 800) };
    assert!(!advise(&few).sizes.unwrap().is_change, "a few of others' are not worth it");
}

#[test]
fn chains_walked_or_counted() {
    let counted = Evidence { host_entries: Some(3000), ..evidence(vec![sample(1, 100, 0)], 4000, 1024) };
    let advice = advise(&counted);
    assert_eq!(advice.chains, Some(Chains { longest: None, nodes: 6000 }));
    assert!(advice.reasons.iter().any(|reason| reason.contains("mean hash chain has 5.8")), "{:?}", advice.reasons);
    let walked = |longest, nodes| {
        let advice = advise(&Evidence { chains: Some(Chains { longest: Some(longest), nodes }), ..counted.clone() });
        let says = advice.reasons.iter().find(|reason| reason.contains("longest hash chain"));
        (advice.verdict, says.expect("a sentence about the chain").clone())
    };
    // Tables of 1024 buckets: an even one, a crowded one, one with too few buckets, one with far too few.
    for (longest, nodes, verdict, says) in [
        (8, 1000, Verdict::Roomy, "has 8 nodes, the mean is 0.9 (two nodes per entry, all namespaces)"),
        (39, 1000, Verdict::Roomy, "has 39 nodes"),
        (40, 1000, Verdict::Crowded, "more buckets help little; the kernel rejects entries"),
        (14, 6000, Verdict::Roomy, "more than with one bucket per entry"),
        (40, 8192, Verdict::Crowded, "more buckets help little"),
        (40, 8193, Verdict::Crowded, "too few buckets; the kernel rejects entries"),
    ] {
        let (said, sentence) = walked(longest, nodes);
        assert!(said == verdict && sentence.contains(says), "{longest} of {nodes}: {said:?}, {sentence}");
    }
    assert!(!walked(8, 1000).1.contains("chaintoolong"));
}

#[test]
fn facts_that_only_the_walk_sees_are_mentioned_once() {
    let of = |expired, chains| {
        let mut census = Census::new(&settings());
        census.add(&Conntrack { expired, ..tcp(7, 1) });
        let evidence = Evidence { census: Some(census), chains, ..evidence(vec![sample(1, 1, 0)], 1000, 1024) };
        let reasons = advise(&evidence).reasons;
        let mut says = reasons.into_iter().filter(|reason| reason.contains("unknown") && !reason.contains("growth"));
        (says.next(), says.next())
    };
    let (both, more) = of(None, None);
    let both = both.unwrap();
    assert!(
        both.contains("longest hash chain and the number of expired entries") && both.contains("only the walk via BPF"),
        "{both}"
    );
    assert_eq!(more, None);
    let seen = Some(Chains { longest: Some(3), nodes: 2 });
    assert_eq!(of(Some(false), seen), (None, None));
    assert!(of(Some(false), None).0.unwrap().contains("was resized during the walk"));
}

#[test]
fn nothing_known_nothing_advised() {
    let advice = advise(&Evidence::default());
    assert_eq!((advice.verdict, advice.sizes, advice.entries), (Verdict::Unknown, None, None));
    assert!(!advice.reasons.is_empty());
}

/// A sample with `clashed` in `insert_failed` and `drop`, and `no_room` more drops.
fn losing(at_s: u64, entries: u64, clashed: u64, no_room: u64) -> Sample {
    let mut sample = sample(at_s, entries, clashed + no_room);
    sample.counts.set(StatCounter::InsertFailed, Some(clashed));
    sample.counts.set(StatCounter::ChainTooLong, Some(0));
    sample
}

/// An entry of 10.8.0.1 whose source is rewritten to this port of 10.9.0.1, towards port 80 of 10.9.0.9.
fn snat(port: u16, state: u8) -> Conntrack<'static> {
    let of = |b, last| Addr::V4([10, b, 0, last]);
    let orig = CtTuple { src: of(8, 1), dst: of(9, 9), proto: ip_proto::TCP, src_part: 1, dst_part: 80, zone: None };
    let reply = CtTuple { src: of(9, 9), dst: of(9, 1), src_part: 80, dst_part: port, ..orig };
    let status = Some(CtStatus(CtStatus::SEEN_REPLY | CtStatus::ASSURED | CtStatus::SRC_NAT));
    Conntrack { orig, reply, state: Some(CtState::Tcp(state)), status, ..Conntrack::EMPTY }
}

fn with_ports(ports: impl IntoIterator<Item = u16>, rules: Option<Vec<SnatRule>>, clashed: u64) -> Advice {
    let mut census = Census::new(&settings());
    ports.into_iter().for_each(|port| census.add(&snat(port, 3)));
    let samples = vec![losing(1, 10, 0, 0), losing(2, 10, clashed, 0)];
    advise(&Evidence { census: Some(census), snat_rules: rules, ..evidence(samples, 4096, 4096) })
}

fn rule(ports: SnatPorts) -> SnatRule {
    SnatRule { addrs: None, ports }
}

const TEN: SnatPorts = SnatPorts::In(PortRange { first: 20_000, last: 20_009 });

#[test]
fn issue_10_exhausted_ports_are_reported_and_no_limit_is_raised_for_them() {
    let advice = with_ports(20_000..=20_009, Some(vec![rule(TEN)]), 4);
    assert_eq!(advice.verdict, Verdict::Refusing);
    assert_eq!(
        advice.reasons[0],
        "source ports of 10.9.0.1 for connections to 10.9.0.9:80 are exhausted (10 of 10): tcp, the rule allows 20000 \
         to 20009"
    );
    assert!(advice.reasons[1].starts_with("4 packets were dropped although there was room"), "{:?}", advice.reasons);
    assert!(!advice.reasons.iter().any(|reason| reason.contains("no entry could be created")), "{:?}", advice.reasons);
    assert!(!advice.sizes.unwrap().is_change, "a larger table has no more ports");
    // Detected before any connection was refused.
    let before = with_ports(20_000..=20_009, Some(vec![rule(TEN)]), 0);
    assert_eq!((before.verdict, before.ports.used_up.len()), (Verdict::Refusing, 1));
}

#[test]
fn issue_10_ranges_without_a_rule_are_what_entries_show() {
    let unknown = with_ports(20_000..=20_009, None, 4);
    assert!(
        unknown.reasons[0].contains("are exhausted (10 of 10): tcp, no rule shows the range"),
        "{:?}",
        unknown.reasons
    );
    for (ports, rules, clashed) in [
        (vec![20_000, 20_002], None, 4),
        (vec![20_000], None, 4),
        (vec![20_000, 20_001], None, 0),
        (vec![20_000, 20_001], Some(vec![rule(SnatPorts::Any)]), 4),
        (vec![20_000, 20_001], Some(vec![rule(TEN)]), 4),
        (Vec::new(), None, 4),
    ] {
        let advice = with_ports(ports.clone(), rules, clashed);
        assert_eq!(advice.ports.used_up, [], "{ports:?}");
        assert_eq!(advice.verdict == Verdict::Roomy, clashed == 0, "{ports:?}: {:?}", advice.reasons);
    }
    // In a large range the kernel tries only some random ports; a closed connection gives up its port.
    let large = SnatPorts::In(PortRange { first: 20_000, last: 20_999 });
    let nearly = with_ports(20_000..20_900, Some(vec![rule(large)]), 4);
    assert!(
        nearly.reasons[0].contains("are nearly exhausted, connections are dropped (900 of 1000)"),
        "{:?}",
        nearly.reasons
    );
    let mut census = Census::new(&settings());
    (20_000..=20_009).for_each(|port| census.add(&snat(port, if port == 20_000 { 7 } else { 3 })));
    let rules = Some(vec![rule(TEN)]);
    let closed = Evidence { census: Some(census), snat_rules: rules, ..evidence(vec![sample(1, 10, 0)], 4096, 4096) };
    assert_eq!(advise(&closed).ports.used_up, []);
}

#[test]
fn issue_10_destinations_beyond_the_bound_are_reported_as_uncounted() {
    let mut census = Census::new(&settings());
    for n in 0..(1u32 << 18) + 5 {
        let mut row = snat(20_000, 3);
        row.reply.src = Addr::V4(n.to_be_bytes());
        census.add(&row);
    }
    let advice = advise(&Evidence { census: Some(census), ..evidence(vec![sample(1, 10, 0)], 4096, 4096) });
    assert!(advice.reasons[0].starts_with("source ports of 5 entries were not counted"), "{:?}", advice.reasons);
}

#[test]
fn the_range_is_the_smallest_that_holds_the_ports() {
    let addr = Addr::V4([10, 9, 0, 1]);
    let other = SnatRule { addrs: Some((Addr::V4([10, 9, 0, 2]), Addr::V4([10, 9, 0, 9]))), ports: TEN };
    let wide = SnatPorts::In(PortRange { first: 10_000, last: 30_000 });
    let of = |rules: &[SnatRule], first, last| range_of(rules, addr, (first, last), 2).map(PortRange::count);
    assert_eq!(of(&[rule(wide), rule(TEN), rule(SnatPorts::Unknown)], 20_000, 20_009), Some(10));
    assert_eq!(of(&[rule(TEN), rule(wide)], 20_000, 20_010), Some(20_001));
    assert_eq!(range_of(&[rule(wide), rule(TEN)], addr, (20_009, 20_009), 11).map(PortRange::count), Some(20_001));
    assert_eq!(of(&[rule(SnatPorts::Any), other], 20_000, 20_001), Some(64_512));
    assert_eq!(of(&[rule(SnatPorts::Any)], 1000, 1000), None, "the kernel keeps low ports low");
    assert_eq!(of(&[rule(SnatPorts::Any), rule(SnatPorts::Unknown)], 20_000, 20_001), None);
    assert_eq!(of(&[other], 20_000, 20_001), None);
}

#[test]
fn issue_10_no_more_than_a_tenth_of_the_memory_is_advised() {
    let of = |host: Option<u64>, word: Option<u64>| {
        let evidence = evidence(vec![sample(1, 400_000, 0)], 262_144, 262_144);
        advise(&Evidence { host_memory_bytes: host, memory_bytes_max: word, ..evidence })
    };
    const MIB: u64 = 1 << 20;
    let free = of(Some(1 << 40), None).sizes.unwrap();
    assert_eq!((free.advised_max, free.is_capped), (800_256, false));
    for (host, word, most) in [(Some(1280 * MIB), None, 128), (Some(1280 * MIB), Some(160 * MIB), 160)] {
        let advice = of(host, word);
        let sizes = advice.sizes.unwrap();
        assert!(sizes.is_capped && sizes.advised_max > 262_144, "{sizes:?}");
        // Masqueraded entries of 384 bytes each would still fit.
        let full = sizes.advised_max * 384 + (sizes.advised_buckets + 262_144) * 8;
        assert!(full <= sizes.memory_bytes_max.unwrap() && full > most * MIB * 98 / 100, "{sizes:?}");

        assert!(advice.reasons.iter().any(|reason| reason.contains(&format!("more than {most} MiB"))), "{advice:?}");
    }
    assert!(!of(Some(512 * MIB), None).sizes.unwrap().is_change, "what is there is too much already");
    assert!(!of(None, None).sizes.unwrap().is_change, "unknown is not enough");
    assert_eq!(of(Some(512 * MIB), Some(1 << 40)).sizes.unwrap().advised_max, 800_256);
    // Slab sizes are not readable.
    let blind = Evidence {
        entry: None,
        host_memory_bytes: Some(2048 * MIB),
        ..evidence(vec![sample(1, 400_000, 0)], 262_144, 262_144)
    };
    assert!(advise(&blind).sizes.unwrap().is_capped);
}

#[test]
fn issue_10_a_burst_is_no_growth() {
    let two = advise(&evidence(vec![sample(1, 100, 0), sample(2, 3000, 0)], 4096, 8192));
    assert_eq!((two.trend.growth_per_s, two.trend.full_in_s, two.verdict), (Some(2900), None, Verdict::Roomy));
    assert_eq!(two.sizes.unwrap().wanted, 6000, "twice the peak, no growth");
    let says = |advice: &Advice, words: &str| {
        assert!(advice.reasons.iter().any(|r| r.contains(words)), "{:?}", advice.reasons)
    };
    says(&two, "2900 more entries per second, sampled for 1.0 s in 2 samples: a burst is not growth");
    let burst = advise(&evidence(vec![sample(1, 100, 0), sample(2, 3000, 0), sample(3, 3000, 0)], 4096, 8192));
    assert_eq!((burst.trend.steady_growth_per_s, burst.trend.full_in_s), (Some(0), None));
    says(&burst, "sampled for 2.0 s, but not steadily");
    let steady = advise(&evidence(vec![sample(1, 100, 0), sample(2, 300, 0), sample(3, 900, 0)], 4096, 8192));
    assert_eq!((steady.trend.growth_per_s, steady.trend.full_in_s), (Some(400), Some(15)));
    says(&steady, "400 more entries per second, sampled for 2.0 s; 200 of them steadily: full in 15 s");
}

#[test]
fn issue_10_the_need_of_a_full_table_is_reported_as_an_estimate() {
    let advice = advise(&evidence(vec![sample(1, 1000, 50), sample(3, 1000, 250)], 1000, 1024));
    assert!(advice.sizes.unwrap().is_estimate);
    let words = "is unknown, because the limit is 1000: estimated as twice the limit, 2000 entries: the limit should \
                 be 2048; check again";
    assert!(advice.reasons.iter().any(|reason| reason.contains(words)), "{:?}", advice.reasons);
}

#[test]
fn issue_10_what_is_refused_elsewhere_crowds_all() {
    let alone = evidence(vec![sample(1, 10, 0), sample(2, 10, 0)], 4096, 4096);
    assert_eq!(advise(&alone).verdict, Verdict::Roomy);
    let advice = advise(&Evidence { host_refused: Some(7), ..alone });
    assert_eq!(advice.verdict, Verdict::Crowded);
    assert!(
        advice.reasons.iter().any(|r| r.starts_with("7 entries of other network namespaces were rejected")),
        "{advice:?}"
    );
}

#[test]
fn issue_10_no_timeout_below_the_kernels_default_for_udp_and_icmp() {
    for (setting, default) in
        [(CtSetting::Udp, 30), (CtSetting::UdpStream, 120), (CtSetting::Icmp, 30), (CtSetting::Icmpv6, 30)]
    {
        assert_eq!(entry_timeout::lower(setting, default), None, "{setting:?}");
        assert_eq!(entry_timeout::lower(setting, 600).map(|(seconds, _)| seconds), Some(default), "{setting:?}");
    }
}

fn any_sample() -> impl Strategy<Value = Sample> {
    (any::<u64>(), any::<u64>(), any::<Option<u64>>()).prop_map(|(at_ns, entries, drops)| {
        let mut counts = StatCounts::default();
        counts.set(StatCounter::Drop, drops);
        Sample { at_ns, entries, counts }
    })
}

proptest! {
    #[test]
    fn whatever_the_numbers(
        samples in proptest::collection::vec(any_sample(), 0..4),
        max: Option<u64>,
        buckets: Option<u64>,
        page_bytes: u64,
        entry: u64,
        host_entries: Option<u64>,
        lefts in proptest::collection::vec(any::<u32>(), 0..4),
        longest: Option<u64>,
        nodes: u64,
    ) {
        let mut census = Census::new(&settings());
        lefts.iter().for_each(|left| census.add(&tcp((left % 12) as u8, *left)));
        let entry = Some(EntryBytes { entry, extension: entry, helped: entry });
        let advice = advise(&Evidence {
            samples, max, buckets, page_bytes, entry, host_entries, census: Some(census), host_memory_bytes: max,
            chains: longest.map(|longest| Chains { longest: Some(longest), nodes }), ..Evidence::default()
        });
        if let (Some(sizes), Some(max), Some(buckets)) = (advice.sizes, max, buckets) {
            prop_assert!(sizes.advised_max >= max.min(i32::MAX as u64) && sizes.advised_buckets >= buckets);
            prop_assert!(sizes.memory_bytes >= sizes.memory_now_bytes || sizes.advised_max < max);
        }
        prop_assert!(advice.trend.full_in_s.is_none() || advice.trend.growth_per_s.is_none_or(|growth| growth >= 0));
        prop_assert!(!advice.reasons.is_empty());
    }

    #[test]
    fn there_is_room_for_twice_the_peak(peak in 0..1u64 << 28, max in 1..1u64 << 28, buckets in 1..1u64 << 20) {
        let advice = advise(&evidence(vec![sample(1, peak, 0)], max, buckets * 512));
        let sizes = advice.sizes.unwrap();
        prop_assert!(sizes.advised_max >= 2 * peak && sizes.advised_max >= max);
        prop_assert!(sizes.advised_buckets >= (2 * peak).min((1 << 28) - 512), "a bucket an entry");
        prop_assert_eq!(sizes.advised_buckets % 512, 0, "as the kernel rounds");
        if sizes.advised_max != max {
            prop_assert!(sizes.advised_max % 512 == 0 && sizes.advised_max < 2 * peak.max(max) + 512);
        }
    }

    #[test]
    fn more_entries_never_get_less_room(peak in 0..1u64 << 26, more in 0..1u64 << 26, max in 1..1u64 << 24) {
        let of = |peak| advise(&evidence(vec![sample(1, peak, 0)], max, 1024)).sizes.unwrap();
        let (less, more) = (of(peak), of(peak + more));
        prop_assert!(more.advised_max >= less.advised_max && more.memory_bytes >= less.memory_bytes);
    }

    #[test]
    fn a_forecast_is_neither_early_nor_late(first in 0..1u64 << 24, more in 1..1u64 << 20, seconds in 1..1000u64,
        room in 0..1u64 << 24) {
        let (last, max) = (first + 2 * more, first + 2 * more + room);
        let samples = [sample(0, first, 0), sample(seconds, first + more, 0), sample(2 * seconds, last, 0)];
        let trend = Trend::of(&samples, Some(max));
        let in_s = trend.full_in_s.unwrap();
        prop_assert!(u128::from(in_s) * u128::from(more) <= u128::from(room) * u128::from(seconds));
        prop_assert!(u128::from(in_s + 1) * u128::from(more) > u128::from(room) * u128::from(seconds));
    }
}
