#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::cells::clear_cells;
use super::*;
use crate::plan::{Fold, PlanRequest, SortKey};
use crate::testing::*;
use record::rows::{CapturedPacket, CapturedPackets, Conntrack, Nat, Sockets};
use record::{
    Columns, Demand, Each, FilterPushdown, Lookups, Next, Scan, SinkError, Source, SourceFault, State, Value, full_scan,
};

fn run(plan: &Plan<Sockets>, source: &mut CannedSource, sink: &mut TextSink) -> Run {
    let run = run_once(plan, source, &Lookups::empty(), sink).unwrap();
    assert!(run.stats.balances(), "{:?}", run.stats);
    run
}

fn four() -> CannedSource {
    let rows = vec![
        socket(State::LISTEN, 22, "", 0),
        socket(State::ESTABLISHED, 22, "10.0.0.2", 5000),
        socket(State::ESTABLISHED, 80, "10.0.0.1", 6000),
        socket(State::TIME_WAIT, 80, "192.0.2.9", 7000),
    ];
    CannedSource { rows, ..CannedSource::default() }
}

#[test]
fn rows_stream_through_the_filter() {
    let plan = plan(request(&["state", "local_port", "peer_addr"], "state = established and peer in 10.0.0.0/8"));
    let (mut source, mut sink) = (four(), TextSink::default());
    let run = run(&plan, &mut source, &mut sink);
    assert_eq!(sink.header, ["state", "local_port", "peer_addr"]);
    assert_eq!(sink.rows, ["established 22 10.0.0.2", "established 80 10.0.0.1"]);
    assert_eq!((run.stats.seen, run.stats.emitted, run.stats.filtered), (4, 2, 2));
    assert_eq!(run.ended, EndReason::Whole);
    assert_eq!(sink.totals, Some(run.stats));
}

#[test]
fn what_the_source_filters_exactly_is_not_tested_again() {
    let plan = plan(request(&["local_port"], "state = listen and local_port = 80"));
    let pushdown = vec![FilterPushdown::Exact, FilterPushdown::Inexact];
    let (mut source, mut sink) = (CannedSource { pushdown, ..four() }, TextSink::default());
    run(&plan, &mut source, &mut sink);
    assert_eq!(sink.rows, ["80", "80"]);
}

#[test]
fn a_limit_without_order_stops_the_source() {
    let plan = plan(PlanRequest { limit: Some(2), ..request(&["local_port"], "local_port > 0") });
    let (mut source, mut sink) = (four(), TextSink::default());
    let run = run(&plan, &mut source, &mut sink);
    assert_eq!((source.handed.get(), sink.rows.len(), run.ended), (2, 2, EndReason::Limit));
}

#[test]
fn a_limit_of_zero_reads_nothing() {
    for sort in [vec![], SortKey::parse_list("state")] {
        let plan = plan(PlanRequest { limit: Some(0), sort, ..request(&["state"], "") });
        let (mut source, mut sink) = (four(), TextSink::default());
        run(&plan, &mut source, &mut sink);
        assert_eq!((source.handed.get(), sink.rows.len(), sink.header.len()), (0, 0, 1));
    }
}

#[test]
fn an_empty_result_has_its_header_and_end() {
    let plan = plan(request(&["state"], "local_port = 1"));
    let (mut source, mut sink) = (four(), TextSink::default());
    run(&plan, &mut source, &mut sink);
    assert_eq!((sink.header.len(), sink.rounds.len()), (1, 1));
    assert_eq!(sink.totals.unwrap().filtered, 4);
}

#[test]
fn order_with_hidden_keys_ties_and_limit() {
    let sort = SortKey::parse_list("local_port:desc");
    let plan = plan(PlanRequest { sort, limit: Some(3), ..request(&["peer_addr", "state"], "") });
    let (mut source, mut sink) = (four(), TextSink::default());
    let run = run(&plan, &mut source, &mut sink);
    assert_eq!(sink.rows, ["10.0.0.1 established", "192.0.2.9 time_wait", "10.0.0.2 established"]);
    assert_eq!((run.stats.seen, run.stats.emitted, run.stats.cut), (4, 3, 1));
}

#[test]
fn groups_with_folds() {
    let folds = vec![(Fold::Sum, "recv_q".into()), (Fold::Max, "local_port".into()), (Fold::Avg, "recv_q".into())];
    let plan = plan(PlanRequest { by: vec!["state".into()], folds, ..request(&[], "local_port != 1") });
    let mut source = four();
    source.rows.iter_mut().zip([5, 1, 2, 9]).for_each(|(row, n)| row.rqueue = n);
    let mut sink = TextSink::default();
    let run = run(&plan, &mut source, &mut sink);
    assert_eq!(sink.header, ["state", "count", "sum_recv_q", "max_local_port", "avg_recv_q"]);
    // A listener's queue counts connections, so its bytes are null and so is their sum.
    assert_eq!(sink.rows, ["time_wait 1 9 80 9", "established 2 3 80 2", "listen 1 - 22 -"]);
    assert_eq!((run.stats.seen, run.stats.grouped, run.stats.emitted, run.stats.cut), (4, 4, 0, 0));
}

/// Returns the groups of a table with 200,000 different rows.
fn groups_of_a_flood<T: Table>(by: &str, row: impl Fn(u64, &mut Each<'_, T>) -> Next) -> (Vec<String>, Run) {
    struct Flood<F>(F);
    impl<T: Table, F: Fn(u64, &mut Each<'_, T>) -> Next> Source<T> for Flood<F> {
        fn prepare(&self, _: &Demand<T>) -> Box<dyn Scan<T> + '_> {
            full_scan::<T, _>("test", "", |each| {
                let seen = (0..200_000).take_while(|n| (self.0)(*n, each) == Next::More).count() as u64;
                Ok(Accounting { seen, ..Accounting::default() })
            })
        }
    }
    let plan = Plan::<T>::new(PlanRequest { by: vec![by.into()], ..PlanRequest::default() }).unwrap();
    let mut sink = TextSink::default();
    let run = run_once(&plan, &Flood(row), &Lookups::empty(), &mut sink).unwrap();
    assert!(run.stats.balances() && run.stats.grouped == 200_000, "{:?}", run.stats);
    (sink.rows, run)
}

#[test]
fn groups_of_streams_are_bounded() {
    let (rows, run) = groups_of_a_flood::<CapturedPackets>("iface", |n, each| {
        let name = n.to_string();
        each(&CapturedPacket { iface: name.as_bytes(), ..CapturedPacket::default() })
    });
    let count = |row: &String| row.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
    assert!(rows.len() <= 65_537 && rows.iter().map(count).sum::<u64>() == 200_000, "{}", rows.len());
    assert!(rows[0].starts_with("- "), "the line of the others is visible: {}", rows[0]);
    assert!(run.stats.is_partial());
    let [why] = &run.stats.why[..] else { panic!("{:?}", run.stats.why) };
    assert_eq!((why.count, why.text.contains("the row without keys")), (count(&rows[0]), true));
}

/// The host itself bounds the size of its own tables.
#[test]
fn groups_of_tables_are_exact() {
    let (rows, run) =
        groups_of_a_flood::<Nat>("mark", |n, each| each(&Conntrack { mark: Some(n as u32), ..Conntrack::EMPTY }));
    assert!(rows.len() == 200_000 && rows.iter().all(|row| row.ends_with(" 1")));
    assert!(!run.stats.is_partial() && run.stats.why.is_empty());
}

#[test]
fn groups_in_another_order_with_limit() {
    let by = vec!["peer_port".into()];
    let sort = SortKey::parse_list("peer_port");
    let plan = plan(PlanRequest { by, sort, limit: Some(2), ..request(&[], "") });
    let mut sink = TextSink::default();
    let run = run(&plan, &mut four(), &mut sink);
    assert_eq!(sink.rows, ["5000 1", "6000 1"]);
    assert_eq!((run.stats.grouped, run.stats.cut), (4, 0));
}

#[test]
fn folds_without_keys_make_one_row_even_of_nothing() {
    let plan = plan(PlanRequest { folds: vec![(Fold::Sum, "recv_q".into())], ..request(&[], "local_port = 1") });
    let mut sink = TextSink::default();
    run(&plan, &mut four(), &mut sink);
    assert_eq!(sink.rows, ["0 -"]);
}

#[test]
fn the_first_owner_is_shown_any_is_matched() {
    let table = FakeOwners { owners: vec![(22, vec![owner(7, "sshd"), owner(8, "nginx")])], ..FakeOwners::default() };
    let plan = plan(request(&["local_port", "process"], "process = nginx"));
    assert!(plan.needs_lookup(record::LookupId::Owners) && !plan.needs_lookup(record::LookupId::Users));
    let mut sink = TextSink::default();
    run_once(&plan, &four(), &table.lookups(), &mut sink).unwrap();
    assert_eq!(sink.rows, ["22 sshd +1", "22 sshd +1"]);

    let by_process = super::super::testing::plan(PlanRequest { by: vec!["process".into()], ..request(&[], "") });
    let mut sink = TextSink::default();
    run_once(&by_process, &four(), &table.lookups(), &mut sink).unwrap();
    assert_eq!(sink.rows, ["sshd 2", "- 2"]);
}

#[test]
fn a_reader_that_leaves_ends_the_run_in_order() {
    for sort in ["", "local_port"] {
        for fault in [None, Some((|| SinkError::Closed) as fn() -> SinkError)] {
            let plan = plan(PlanRequest { sort: SortKey::parse_list(sort), ..request(&["state"], "") });
            let mut sink = TextSink { stop_at: Some(2), fault, ..TextSink::default() };
            let run = run(&plan, &mut four(), &mut sink);
            assert_eq!(run.ended, EndReason::Closed, "{sort} {fault:?}");
            let written = if fault.is_some() { 1 } else { 2 };
            assert_eq!(run.stats.emitted, written);
        }
    }
}

#[test]
fn a_full_disk_is_an_error() {
    for sort in ["", "local_port"] {
        let plan = plan(PlanRequest { sort: SortKey::parse_list(sort), ..request(&["state"], "") });
        let mut sink =
            TextSink { stop_at: Some(1), fault: Some(|| SinkError::Io("no space".into())), ..TextSink::default() };
        let error = run_once(&plan, &four(), &Lookups::empty(), &mut sink).unwrap_err();
        assert_eq!(error.to_string(), "cannot write the output: no space");
        assert_eq!(sink.totals, None);
    }
}

#[test]
fn a_source_that_fails_leaves_no_header() {
    for sort in ["", "local_port"] {
        let plan = plan(PlanRequest { sort: SortKey::parse_list(sort), ..request(&["state"], "") });
        let mut sink = TextSink::default();
        let source = CannedSource { fails: true, ..four() };
        let error = run_once(&plan, &source, &Lookups::empty(), &mut sink).unwrap_err();
        assert_eq!(error.to_string(), "cannot read canned rows: the can is shut");
        assert!(sink.rounds.is_empty());
    }
}

#[test]
fn stop_ends_in_order_with_what_was_read() {
    let looks = std::cell::Cell::new(0);
    let stop = || {
        looks.set(looks.get() + 1);
        looks.get() > 1
    };
    let plan = plan(PlanRequest { sort: SortKey::parse_list("local_port"), ..request(&["local_port"], "") });
    let (source, mut sink) =
        (CannedSource { rows: make_sockets(1_000), ..CannedSource::default() }, TextSink::default());
    let run = plan.run(&mut OneRound::new(&source, &Lookups::empty(), &stop), &mut sink).unwrap();
    assert_eq!((run.ended, run.stats.seen, sink.rows.len()), (EndReason::Stopped, 65, 65));
    assert!(run.stats.balances());
}

#[test]
fn the_sources_own_losses_stay_in_the_stats() {
    let mut extra =
        Accounting { seen: 3, duplicates: 2, failed: 1, lost: 5, incomplete: true, ..Accounting::default() };
    extra.add_reason(5, "the table changed");
    extra.add_backend("canned");
    let mut sink = TextSink::default();
    let run = run(&plan(request(&["state"], "")), &mut CannedSource { extra, ..four() }, &mut sink);
    assert_eq!((run.stats.seen, run.stats.emitted, run.stats.lost), (7, 4, 5));
    assert!(run.stats.is_partial() && run.stats.via == ["canned"] && run.stats.why.len() == 1);
}

/// A row that is lost between being counted and being output is reported, for every kind of work on rows.
#[test]
fn a_lost_row_is_reported() {
    let by = PlanRequest { by: vec!["state".into()], ..request(&[], "") };
    let sorted = PlanRequest { sort: SortKey::parse_list("local_port"), ..request(&["local_port"], "") };
    for request in [request(&["local_port"], ""), request(&["local_port"], "local_port = 80"), by, sorted] {
        let (source, mut sink) = (CannedSource { loses: Some(2), ..four() }, TextSink::default());
        let run = run_once(&plan(request), &source, &Lookups::empty(), &mut sink).unwrap();
        assert!(!run.stats.balances() && run.stats.is_partial() && run.stats.seen == 4, "{:?}", run.stats);
        let why = run.stats.why.last().unwrap();
        assert_eq!((why.count, why.text.contains("were read but not written: this is a bug in netwren")), (1, true));
        assert_eq!(sink.totals, Some(run.stats));
    }
    let extra = Accounting { grouped: 3, ..Accounting::default() };
    let (source, mut sink) = (CannedSource { extra, ..four() }, TextSink::default());
    let run = run_once(&plan(request(&["state"], "")), &source, &Lookups::empty(), &mut sink).unwrap();
    assert!(run.stats.is_partial() && run.stats.why[0].text.contains("were not counted"), "{:?}", run.stats);
}

#[test]
fn rounds_reach_the_sink() {
    let plan = plan(PlanRequest { repeated: true, ..request(&["state"], "") });
    assert!(plan.demand().repeated);
    let mut sink = TextSink::default();
    let source = four();
    let mut rounds = CannedRounds { source: &source, answers: Answers::Unknown, rounds: 0..2 };
    let run = plan.run(&mut rounds, &mut sink).unwrap();
    assert_eq!((run.stats.seen, run.stats.emitted, run.stats.balances()), (8, 8, true));
    assert_eq!(sink.rounds.iter().map(|r| r.unwrap().n).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(sink.rows.len(), 8);
}

/// A screen has room for two rows: it gets the number of the others, with and without an order.
#[test]
fn rows_beyond_the_end_of_a_screen_are_counted() {
    let by = |limit| PlanRequest { by: vec!["peer_port".into()], limit, ..request(&[], "") };
    let sorted = |limit| PlanRequest { sort: SortKey::parse_list("peer_port"), limit, ..request(&["peer_port"], "") };
    let listed = |limit| PlanRequest { limit, ..request(&["peer_port"], "") };
    for (request, rows, left_out) in [
        (listed(None), ["-", "5000"], 2),
        (listed(Some(3)), ["-", "5000"], 1),
        (sorted(None), ["5000", "6000"], 2),
        (sorted(Some(3)), ["5000", "6000"], 1),
        (by(None), ["5000 1", "6000 1"], 2),
        (by(Some(2)), ["5000 1", "6000 1"], 0),
    ] {
        let mut sink = TextSink { wants: Some(2), ..TextSink::default() };
        let run = run(&plan(request), &mut four(), &mut sink);
        assert_eq!((sink.rows.as_slice(), sink.left_out), (&rows.map(String::from)[..], left_out));
        if run.stats.grouped == 0 {
            assert_eq!(run.stats.emitted, 2 + left_out, "{:?}", run.stats);
        }
    }
    let mut sink = TextSink { wants: Some(0), ..TextSink::default() };
    run(&plan(listed(None)), &mut four(), &mut sink);
    assert_eq!((sink.rows.len(), sink.left_out), (0, 4));
}

/// Counts rows and records the addresses of cells, without allocating.
#[derive(Default)]
struct Bare {
    rows: u64,
}

impl Sink for Bare {
    fn begin(&mut self, _: &Columns, _: Option<Round>) -> Result<(), SinkError> {
        Ok(())
    }
    fn row(&mut self, cells: &[Value<'_>]) -> Result<Next, SinkError> {
        self.rows += u64::from(!cells.is_empty());
        Ok(Next::More)
    }
    fn end(&mut self, _: &Accounting) -> Result<(), SinkError> {
        Ok(())
    }
}

/// Counts the allocations of a run over `n` rows.
fn allocations(request: &PlanRequest, n: usize) -> u64 {
    let mut source = CannedSource { rows: make_sockets(2_000), ..CannedSource::default() };
    source.rows.truncate(n);
    let table = FakeOwners { owners: vec![(22, vec![owner(7, "sshd")])], ..FakeOwners::default() };
    let plan = plan(request.clone());
    let mut sink = Bare::default();
    let before = sys::allocator::allocations();
    run_once(&plan, &source, &table.lookups(), &mut sink).unwrap();
    let taken = sys::allocator::allocations() - before;
    assert!(sink.rows > 0);
    taken
}

#[test]
fn streaming_allocates_nothing() {
    let columns = ["proto", "state", "recv_q", "local_addr", "local_port", "peer_addr", "peer_port", "process", "user"];
    let filter =
        "state in (established, listen, close) and peer in 10.0.0.0/8 and not local_port in (1-3, 7) or process = sshd";
    let request = request(&columns, filter);
    // The first row may fill caches; a thousand more cost nothing.
    assert_eq!(allocations(&request, 2_000), allocations(&request, 1_000));
    assert!(allocations(&request, 2_000) < 20);
}

#[test]
fn rows_of_known_groups_allocate_nothing() {
    let by: Vec<Box<str>> = vec!["state".into(), "peer_addr".into(), "process".into()];
    let request = PlanRequest { by, folds: vec![(Fold::Sum, "recv_q".into())], ..request(&[], "") };
    // There are at most 165 groups, nearly all seen after 1,800 rows: only a few vectors still grow.
    let (all, most) = (allocations(&request, 2_000), allocations(&request, 1_800));
    assert!(all - most <= 3, "{most} then {all}");
}

#[test]
fn the_vector_of_cells_is_recycled() {
    let mut cells: Vec<Value<'static>> = vec![Value::Null; 9];
    let place = cells.as_ptr();
    for _ in 0..3 {
        cells[3] = Value::U64(1);
        cells = clear_cells(cells);
        assert_eq!(cells, [Value::Null; 9]);
        assert!(cells.as_ptr() == place && cells.capacity() == 9);
    }
}

/// Each run decides once how its source is read, also in rounds.
#[test]
fn issue_11_a_run_prepares_one_scan() {
    let plan = plan(request(&["state"], "local_port = 22"));
    let (source, mut sink) = (four(), TextSink::default());
    run_once(&plan, &source, &Lookups::empty(), &mut sink).unwrap();
    let mut rounds = CannedRounds { source: &source, answers: Answers::Same, rounds: 0..2 };
    plan.run(&mut rounds, &mut sink).unwrap();
    assert_eq!(source.prepared.get(), 3);
}

/// Rounds of which the one after the first `left` breaks: its scan, or the feed itself.
struct BreakingRounds {
    left: u64,
    breaks_scan: bool,
}

impl Feed<Sockets> for BreakingRounds {
    fn next(
        &mut self,
        demand: &Demand<Sockets>,
        notes: &mut Accounting,
        read: &mut ReadPart<'_, Sockets>,
    ) -> Result<FeedState, SourceError> {
        let breaks = self.left == 0;
        if breaks && !self.breaks_scan {
            return Err(SourceError { what: "canned rows", fault: SourceFault::Io, cause: "the can is shut".into() });
        }
        self.left = self.left.saturating_sub(1);
        notes.add_reason(1, "a note");
        let (source, lookups) = (CannedSource { fails: breaks, ..four() }, Lookups::empty());
        read(FeedPart::new(&mut *source.prepare(demand), &lookups, &|| false));
        Ok(FeedState::EndOfRound)
    }

    fn close(&mut self) -> Accounting {
        Accounting { lost: 7, ..Accounting::default() }
    }
}

/// The counts include rows that were shown before a break; without such rows the break is an error.
#[test]
fn a_break_in_a_later_round_loses_no_counts() {
    let plan = plan(request(&["state"], ""));
    for (breaks_scan, notes) in [(false, 2), (true, 3)] {
        let mut sink = TextSink::default();
        let run = plan.run(&mut BreakingRounds { left: 2, breaks_scan }, &mut sink).unwrap();
        assert_eq!((run.stats.emitted, run.stats.lost, sink.rows.len()), (8, 7, 8));
        assert!(run.stats.is_partial() && run.stats.balances());
        let count = |text: &str| run.stats.why.iter().find(|why| why.text.contains(text)).map(|why| why.count);
        assert_eq!((count("a note"), count("the can is shut")), (Some(notes), Some(0)));
        assert!(matches!(
            plan.run(&mut BreakingRounds { left: 0, breaks_scan }, &mut TextSink::default()),
            Err(RunError::Source(_))
        ));
    }
}
