#![allow(clippy::unwrap_used)]
use super::*;
use record::rows::HomeScreen;
use record::{Addr, Lookups, Table};
use unicode_width::UnicodeWidthStr;

fn object(members: &'static [record::Member], values: &[Value<'_>]) -> OwnedObject {
    OwnedObject::new(members, values.iter().copied())
}

/// A host with more of everything than fits on a screen, and with hostile names.
fn crowded() -> HomeScreen {
    let long = "an-interface\x1b[2J\u{202e}with a name that goes on and on and on and on and on and on and on and on";
    let text = |text: &'static str| Value::Bytes(text.as_bytes());
    let n = Value::U64;
    let v6 = Addr::V6([0x20, 1, 0xd, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    let flow = [
        text(long),
        Value::Name("tcp"),
        Value::Guess("out"),
        Value::Addr(v6),
        Value::Null,
        Value::Addr(v6),
        n(8080),
        n(123_456),
        n(u64::MAX),
        Value::Null,
        text(long),
        n(4_194_304),
        text(long),
    ];
    let states = ["established", "listen", "time_wait", "fin_wait1", "fin_wait2", "close_wait", "syn_sent", "syn_recv"];
    let count = |state: &'static str| object(HomeScreen::SOCKETS, &[text("tcp"), Value::Name(state), n(10_000_000)]);
    let drop = [n(12), text("NETFILTER_DROP"), text(long), Value::Null, Value::Null, Value::Null, text(long)];
    let finding = [Value::Name("critical"), text("ct-full"), text("other"), text(long), Value::Null, Value::Null];
    HomeScreen {
        host: long.into(),
        kernel: long.into(),
        uptime_s: Some(9_999_999),
        window_ns: 1_000_000_000,
        interfaces: vec![
            object(HomeScreen::INTERFACES, &[text("a"), text(long), n(u64::MAX), n(1), n(u64::MAX), n(1)]),
            object(HomeScreen::INTERFACES, &[text("b"), text("lo"), Value::Null, n(1), n(2), n(1)]),
        ],
        interfaces_total: 12_345,
        sockets: states.into_iter().map(count).collect(),
        conntrack: vec![object(HomeScreen::CONNTRACK, &[text(long), n(1), n(262_144), n(1), n(2), n(3)])],
        segs_out: Some(1000),
        retransmits: Some(3),
        flows: vec![object(HomeScreen::FLOWS, &flow); 20],
        flows_total: 1000,
        drops: vec![object(HomeScreen::DROPS, &drop); 20],
        drops_via: "bpf",
        findings: vec![object(HomeScreen::FINDINGS, &finding); 4],
        findings_total: 4,
        unseen: vec![long.repeat(3); 5],
        ..HomeScreen::default()
    }
}

fn text(screen: &HomeScreen, width: Option<usize>) -> String {
    text_of(screen, width, None)
}

fn text_of(screen: &HomeScreen, width: Option<usize>, lines: Option<usize>) -> String {
    let mut sink = HomeText::new(Out::new(Vec::new()), HomeTextOptions { color: false, width, lines });
    sink.begin(&Columns::default(), None).unwrap();
    let lookups = Lookups::empty();
    let cells: Vec<Value<'_>> = HomeScreens::FIELDS.iter().map(|field| field.cell(screen, &lookups)).collect();
    assert_eq!(sink.row(&cells).unwrap(), Next::More);
    sink.end(&Accounting::default()).unwrap();
    String::from_utf8(sink.out.into_inner()).unwrap()
}

#[test]
fn a_crowded_host_fits_on_a_screen() {
    for width in [None, Some(60), Some(80), Some(200)] {
        let text = text(&crowded(), width);
        let columns = width.unwrap_or(80);
        assert!(text.lines().count() < 24, "{text}");
        assert!(text.lines().all(|line| line.width() <= columns), "{columns}: {text}");
        assert!(!text.contains('\x1b') && !text.contains('\u{202e}'), "{text}");
        assert!(text.contains("…") && text.contains("flows (1000)") && text.contains("findings (4)"), "{text}");
        assert!(text.contains("CRITICAL ct-full: ") && text.contains("12 NETFILTER_DROP at "), "{text}");
    }
}

/// A taller terminal shows more rows, and the findings come first.
#[test]
fn the_height_of_the_terminal_is_used() {
    let screen = crowded();
    let tall = text_of(&screen, Some(200), Some(49));
    assert!(tall.lines().count() > 40 && tall.lines().count() < 50, "{tall}");
    let found = tall.find("findings").unwrap();
    assert!(
        found < tall.find("ifaces").unwrap() && tall.contains("run `netwren doctor` for evidence and fixes"),
        "{tall}"
    );
    assert_eq!(text_of(&screen, Some(80), Some(10)), text(&screen, Some(80)));
}

/// On a wide screen the numbers stay next to the names.
#[test]
fn numbers_stay_next_to_names() {
    let iface = [Value::Null, Value::Bytes(b"eth0"), Value::U64(8), Value::U64(1), Value::U64(8), Value::U64(1)];
    let screen = HomeScreen {
        interfaces: vec![object(HomeScreen::INTERFACES, &iface)],
        interfaces_total: 1,
        segs_out: Some(0),
        retransmits: Some(30),
        ..HomeScreen::default()
    };
    assert_eq!(text(&screen, Some(200)), text(&screen, Some(80)));
    assert!(text(&screen, None).contains("0 segments sent, 30 retransmitted (100.0 %)"), "{}", text(&screen, None));
}

#[test]
fn an_empty_host_has_every_part_that_was_looked_at() {
    let screen = HomeScreen { host: b"h".to_vec(), kernel: "6".into(), drops_via: "counters", ..HomeScreen::default() };
    let expected = "\
h  Linux 6  1970-01-01T00:00:00Z
findings      none
ifaces        none
sockets       none
conntrack     no readable table
tcp           segments and retransmits unknown: only one reading
flows         none
drops         none according to the kernel's drop counters
";
    assert_eq!(text(&screen, None), expected);
}

#[test]
fn an_empty_line_stands_between_rounds() {
    let mut sink = HomeText::new(Out::new(Vec::new()), HomeTextOptions { color: true, width: Some(80), lines: None });
    sink.begin(&Columns::default(), Some(Round { n: 2, time_ns: 0 })).unwrap();
    assert_eq!(sink.row(&[]).unwrap(), Next::More);
    let text = String::from_utf8(sink.out.buf().clone()).unwrap();
    assert!(text.starts_with("\n\x1b[1m"), "{text:?}");
}
