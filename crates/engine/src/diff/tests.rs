#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::*;
use crate::testing::{CannedSource, Numbers, TextSink, plan, request, run_once, socket};
use record::rows::{Socket, Sockets, TcpInfo};
use record::{Lookups, State};
use std::collections::HashMap;

const SECOND: u64 = 1_000_000_000;

/// `tcp_info` with these counts of received bytes, sent bytes and sent segments.
fn info(bytes_in: u64, bytes_out: u64, segs_out: u32) -> &'static [u8] {
    let mut bytes = vec![0; 208];
    bytes[128..136].copy_from_slice(&bytes_in.to_ne_bytes());
    bytes[136..140].copy_from_slice(&segs_out.to_ne_bytes());
    bytes[200..208].copy_from_slice(&bytes_out.to_ne_bytes());
    bytes.leak()
}

fn with(cookie: u64, counters: Option<(u64, u64, u32)>) -> Socket<'static> {
    let tcp_info = counters.map(|(i, o, s)| TcpInfo::new(info(i, o, s)));
    let local_port = u16::try_from(cookie).unwrap();
    Socket { cookie, tcp_info, ..socket(State::ESTABLISHED, local_port, "192.0.2.2", 9) }
}

/// The sockets of one round in the form `cookie change in out segs`.
fn round(memory: &RefCell<DiffState<Sockets>>, now_ns: u64, source: &mut CannedSource) -> Vec<String> {
    let columns = ["cookie", "change", "bytes_in_per_s", "bytes_out_per_s", "segs_out_per_s"];
    let mut sink = TextSink::default();
    let watching = DiffSource::new(source, memory, now_ns);
    let ran = run_once(&plan(request(&columns, "")), &watching, &Lookups::empty(), &mut sink);
    assert!(ran.unwrap().stats.balances());
    sink.rows
}

fn canned(rows: Vec<Socket<'static>>) -> CannedSource {
    CannedSource { rows, ..CannedSource::default() }
}

#[test]
fn rounds_by_example() {
    let memory = RefCell::new(DiffState::default());
    let rows = vec![with(1, Some((100, 0, 5))), with(2, None), with(3, Some((0, 7, 1)))];
    assert_eq!(round(&memory, SECOND, &mut canned(rows)), ["1 - - - -", "2 - - - -", "3 - - - -"]);
    // Two seconds later: one has grown, one is new in the middle, one is gone, one has lost its counters.
    let rows = vec![with(1, Some((1_100, 30, 9))), with(4, Some((9, 9, 9))), with(3, None)];
    assert_eq!(
        round(&memory, 3 * SECOND, &mut canned(rows)),
        ["1 kept 500 15 2", "4 new - - -", "3 kept - - -", "2 gone - - -"]
    );
    // Rows that are gone are forgotten. The kernel never reuses a socket's cookie; if one reappears, it counts as new.
    let rows = vec![with(2, None), with(4, Some((8, 10, 9))), with(1, Some((1_100, 30, 9)))];
    assert_eq!(
        round(&memory, 4 * SECOND, &mut canned(rows)),
        ["2 new - - -", "4 kept - 1 0", "1 kept 0 0 0", "3 gone - - -"]
    );
}

#[test]
fn a_connection_that_took_the_ports_of_another_is_new() {
    let memory = RefCell::new(DiffState::default());
    round(&memory, 0, &mut canned(vec![with(1, Some((0, 0, 0)))]));
    let again = Socket { cookie: 9, ..with(1, Some((50, 0, 0))) };
    assert_eq!(round(&memory, SECOND, &mut canned(vec![again])), ["9 new - - -"]);
    assert_eq!(round(&memory, 2 * SECOND, &mut canned(vec![again])), ["9 kept 0 0 0"]);
}

#[test]
fn a_round_that_was_not_whole_makes_nothing_new_or_gone() {
    let memory = RefCell::new(DiffState::default());
    let all = || vec![with(1, None), with(2, None)];
    round(&memory, 0, &mut canned(all()));
    let partial = Accounting { incomplete: true, ..Accounting::default() };
    let mut half = CannedSource { rows: vec![with(1, None)], extra: partial, ..CannedSource::default() };
    assert_eq!(round(&memory, SECOND, &mut half), ["1 kept - - -"], "2 may be there");
    let mut more = all();
    more.push(with(3, None));
    assert_eq!(round(&memory, 2 * SECOND, &mut canned(more)), ["1 kept - - -", "2 kept - - -", "3 - - - -"]);
    let broken = CannedSource { fails: true, ..canned(all()) };
    let watching = DiffSource::new(&broken, &memory, 3 * SECOND);
    let ran = run_once(&plan(request(&["change"], "")), &watching, &Lookups::empty(), &mut TextSink::default());
    assert!(ran.is_err());
    assert_eq!(round(&memory, 4 * SECOND, &mut canned(all()))[2], "3 gone - - -");
}

#[test]
fn a_namespace_that_cannot_be_entered_hides_no_changes_of_others() {
    let memory = RefCell::new(DiffState::default());
    let rounds = [vec![with(1, None), with(2, None)], vec![with(1, None), with(3, None)]];
    let mut shown = Vec::new();
    for (second, rows) in (1..).zip(rounds) {
        let extra = Accounting { incomplete: true, only_namespaces_missing: true, ..Accounting::default() };
        shown.push(round(&memory, second * SECOND, &mut CannedSource { rows, extra, ..CannedSource::default() }));
    }
    assert_eq!(shown[1], ["1 kept - - -", "3 new - - -", "2 gone - - -"]);
}

#[test]
fn rates_span_the_rounds_that_a_row_was_not_seen_in() {
    let memory = RefCell::new(DiffState::default());
    let rows = |bytes| vec![with(1, Some((0, 0, 0))), with(2, Some((bytes, 0, 0)))];
    let limited = |memory: &RefCell<DiffState<Sockets>>, at, bytes, limit| {
        let mut sink = TextSink::default();
        let mut request = request(&["cookie", "bytes_in_per_s"], "");
        request.limit = limit;
        let source = canned(rows(bytes));
        let watching = DiffSource::new(&source, memory, at);
        run_once(&plan(request), &watching, &Lookups::empty(), &mut sink).unwrap();
        sink.rows
    };
    limited(&memory, 0, 0, None);
    assert_eq!(limited(&memory, SECOND, 1_000, Some(1)), ["1 0"]);
    assert_eq!(limited(&memory, 4 * SECOND, 1_000, None), ["1 0", "2 250"]);
}

#[test]
fn plans_without_closed_rows_neither_pay_for_them_nor_show_them() {
    let memory = RefCell::new(DiffState::default());
    for rows in [vec![with(1, None), with(2, None)], vec![with(2, None)]] {
        let mut sink = TextSink::default();
        let source = canned(rows);
        let watching = DiffSource::new(&source, &memory, SECOND);
        run_once(&plan(request(&["cookie"], "")), &watching, &Lookups::empty(), &mut sink).unwrap();
        assert!(sink.rows.iter().all(|row| row != "1" || sink.rows.len() == 2));
    }
    assert!(memory.borrow().rows.is_empty());
}

#[test]
fn filters_and_orders_work_on_rates_and_changes() {
    let memory = RefCell::new(DiffState::default());
    let rows = |n: u64| (1..=5).map(|c| with(c, Some((c * c * n, 0, 0)))).collect::<Vec<_>>();
    round(&memory, 0, &mut canned(rows(0)));
    let mut sink = TextSink::default();
    let mut asked = request(&["cookie", "bytes_in_per_s"], "bytes_in_per_s > 3 and change = kept");
    asked.sort = crate::SortKey::parse_list("bytes_in_per_s:desc");
    asked.limit = Some(2);
    let source = canned(rows(2));
    let watching = DiffSource::new(&source, &memory, SECOND);
    run_once(&plan(asked), &watching, &Lookups::empty(), &mut sink).unwrap();
    assert_eq!(sink.rows, ["5 50", "4 32"]);
    let mut sink = TextSink::default();
    let asked = request(&["cookie", "local_port", "peer_addr"], "change = gone");
    let source = canned(rows(2).split_off(4));
    let watching = DiffSource::new(&source, &memory, 2 * SECOND);
    run_once(&plan(asked), &watching, &Lookups::empty(), &mut sink).unwrap();
    assert_eq!(sink.rows, ["1 1 192.0.2.2", "2 2 192.0.2.2", "3 3 192.0.2.2", "4 4 192.0.2.2"]);
}

#[test]
fn a_full_memory_is_reported() {
    let memory = RefCell::new(DiffState::with_rows(2));
    for at in 0..2 {
        let mut sink = TextSink::default();
        let source = canned((1..=4).map(|c| with(c, None)).collect());
        let watching = DiffSource::new(&source, &memory, at);
        run_once(&plan(request(&["cookie", "change"], "")), &watching, &Lookups::empty(), &mut sink).unwrap();
        let why = &sink.totals.unwrap().why;
        assert_eq!(
            (why[0].count, &*why[0].text),
            (2, "more than 2 rows: the others have no rates, and their disappearance is not reported")
        );
        assert_eq!(sink.rows[2..], ["3 -", "4 -"]);
    }
    assert_eq!(memory.borrow().rows.len(), 2);
}

/// Sockets that come, go, change their order and come twice, compared with a plain map.
#[test]
fn any_churn_matches_a_plain_map() {
    let mut numbers = Numbers(7);
    let memory = RefCell::new(DiffState::default());
    let mut plain: HashMap<u64, u64> = HashMap::new();
    for n in 0..300 {
        let mut now: Vec<u64> = plain.keys().copied().filter(|_| numbers.next_below(10) > 0).collect();
        now.sort_unstable();
        now.extend((0..numbers.next_below(20)).map(|_| 1 + numbers.next_below(400)));
        if numbers.next_below(3) == 0 {
            now.reverse();
        }
        let grown = |cookie: u64| cookie * n;
        let rows = now.iter().map(|&c| with(c, Some((grown(c), 0, 0)))).collect();
        let mut seen: HashMap<u64, Vec<String>> = HashMap::new();
        for line in round(&memory, n * SECOND, &mut canned(rows)) {
            let (cookie, rest) = line.split_once(' ').unwrap();
            seen.entry(cookie.parse().unwrap()).or_default().push(rest.to_owned());
        }
        for (cookie, lines) in &seen {
            let expected = match (plain.contains_key(cookie), now.contains(cookie)) {
                (true, true) => format!("kept {cookie} 0 0"),
                (true, false) => "gone - - -".to_owned(),
                (false, _) if n == 0 => "- - - -".to_owned(),
                (false, _) => "new - - -".to_owned(),
            };
            assert_eq!(lines[0], expected, "{cookie} in round {n}");
        }
        let all: Vec<&u64> = plain.keys().chain(&now).collect();
        assert!(all.iter().all(|cookie| seen.contains_key(cookie)), "round {n}");
        plain = now.into_iter().map(|c| (c, grown(c))).collect();
        assert_eq!(memory.borrow().index.len(), plain.len());
        assert!(memory.borrow().rows.len() < 500, "places are used again");
    }
}
