#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::*;
use crate::Plan;
use crate::diff::{DiffSource, DiffState};
use crate::run::Answers;
use crate::testing::{CannedRounds, Numbers, TextSink, cell_text, plan, request, run_once, socket};
use record::rows::{Socket, Sockets, TcpInfo};
use record::{
    Accounting, Columns, Demand, Each, Hole, Lookups, Next, Offer, Round, RowCache, Scan, Sink, SinkError, Source,
    SourceError, State, Table, Value, field_index,
};
use std::cell::{Cell, RefCell};

const SECOND: u64 = 1_000_000_000;

/// A socket's number, its queue and its received bytes. A negative queue means a listener, which has no counters.
type Row = (u16, i32, u64);

fn made(row: Row, info: &mut [u8]) -> Socket<'_> {
    let (port, queue, bytes_in) = row;
    if queue < 0 {
        return Socket { cookie: port.into(), ..socket(State::LISTEN, port, "", 0) };
    }
    info[128..136].copy_from_slice(&bytes_in.to_ne_bytes());
    let queues = Socket { rqueue: queue.unsigned_abs(), ..socket(State::ESTABLISHED, port, "192.0.2.2", 9) };
    Socket { cookie: port.into(), tcp_info: Some(TcpInfo::new(info)), ..queues }
}

/// A source of rows that also offers their bytes.
struct Bytes {
    rows: Vec<Row>,
    rules: Rules,
    /// True if the queue is not part of the bytes but passed separately.
    but_for_queue: bool,
    /// Number of rows that the cache knew.
    known: Cell<usize>,
}

impl Bytes {
    fn new(rows: &[Row]) -> Bytes {
        Bytes { rows: rows.to_vec(), rules: Rules::default(), but_for_queue: false, known: Cell::new(0) }
    }
}

impl Bytes {
    fn decoded(&self, each: &mut Each<'_, Sockets>) -> Result<Accounting, SourceError> {
        let mut seen = 0;
        for row in &self.rows {
            seen += 1;
            if each(&made(*row, &mut [0; 208])) == Next::Stop {
                break;
            }
        }
        Ok(Accounting { seen, ..Accounting::default() })
    }
}

impl Source<Sockets> for Bytes {
    fn prepare(&self, _: &Demand<Sockets>) -> Box<dyn Scan<Sockets> + '_> {
        Box::new(BytesScan(self))
    }
}

struct BytesScan<'b>(&'b Bytes);

impl Scan<Sockets> for BytesScan<'_> {
    fn offer(&self) -> Offer {
        Offer { backend: "canned", ..Offer::default() }
    }

    fn run(&mut self, each: &mut Each<'_, Sockets>) -> Result<Accounting, SourceError> {
        self.0.decoded(each)
    }

    fn run_cached(&mut self, cache: &dyn RowCache, each: &mut Each<'_, Sockets>) -> Result<Accounting, SourceError> {
        let Bytes { rows, rules, but_for_queue, known } = self.0;
        let queue = field_index::<Sockets>("recv_q").unwrap();
        if *but_for_queue && !cache.exclude_field(queue) {
            return self.run(each);
        }
        let mut seen = 0;
        for row in rows {
            seen += 1;
            let told = if *but_for_queue { (row.0, row.1.min(0), row.2) } else { *row };
            let bytes = format!("{told:?}");
            let mut info = [0; 208];
            let made = made(*row, &mut info);
            let beside = Sockets::FIELDS[queue].cell(&made, &Lookups::empty());
            // Some rows have the same key.
            let key = u64::from(row.0 % 250) << 32;
            let next = match cache.reuse(RowBytes { rules: *rules, key, bytes: bytes.as_bytes(), beside }) {
                Some(again) => {
                    known.set(known.get() + 1);
                    again.next
                }
                None => each(&made),
            };
            if next == Next::Stop {
                break;
            }
        }
        Ok(Accounting { seen, ..Accounting::default() })
    }
}

/// Returns the texts of the cells, empty for the column `hole`.
fn cell_texts(cells: &[Value<'_>], hole: Option<usize>) -> Vec<String> {
    let cells = cells.iter().enumerate();
    cells.map(|(at, cell)| if hole == Some(at) { String::new() } else { cell_text(cell) }).collect()
}

/// A sink of lines that can be reused.
#[derive(Default)]
struct Lines {
    lines: Vec<String>,
}

impl Sink for Lines {
    fn begin(&mut self, _: &Columns, _: Option<Round>) -> Result<(), SinkError> {
        Ok(())
    }

    fn row(&mut self, cells: &[Value<'_>]) -> Result<Next, SinkError> {
        self.lines.push(cell_texts(cells, None).join(" "));
        Ok(Next::More)
    }

    fn can_reuse(&self) -> bool {
        true
    }

    fn render_row(&mut self, cells: &[Value<'_>], hole: Option<usize>, kept: &mut Vec<u8>) -> Result<usize, SinkError> {
        kept.extend_from_slice(cell_texts(cells, hole).join(" ").as_bytes());
        // After the preceding cells, each with a blank.
        Ok(hole.map_or(0, |hole| cell_texts(cells, None).iter().take(hole).map(|cell| cell.len() + 1).sum()))
    }

    fn write_rendered(&mut self, kept: &[u8], missing: Option<Hole<'_>>) -> Result<Next, SinkError> {
        let mut line = String::from_utf8(kept.to_vec()).unwrap();
        missing.iter().for_each(|missing| line.insert_str(missing.at, &cell_text(&missing.value)));
        self.lines.push(line);
        Ok(Next::More)
    }

    fn end(&mut self, _: &Accounting) -> Result<(), SinkError> {
        Ok(())
    }
}

/// One of two readers with the same requests: with a memory of texts, and without.
#[derive(Default)]
struct Reader {
    memory: RefCell<DiffState<Sockets>>,
    rendered: Option<RenderedRows>,
}

impl Reader {
    /// Returns the lines of a round, the number of rows known by their bytes, and the row counts.
    fn round(&mut self, asked: (&[&str], &str), now_ns: u64, source: &mut Bytes) -> (Vec<String>, usize, Accounting) {
        self.round_of(&plan(request(asked.0, asked.1)), now_ns, source)
    }

    /// Like [`Reader::round`], for a plan.
    fn round_of(&mut self, plan: &Plan<Sockets>, now_ns: u64, source: &mut Bytes) -> (Vec<String>, usize, Accounting) {
        let mut sink = Lines::default();
        let watching = DiffSource::new(source, &self.memory, now_ns);
        let mut round = CannedRounds { source: &watching, answers: Answers::Same, rounds: 0..1 };
        let ran = match &mut self.rendered {
            Some(rendered) => plan.run_reusing(rendered, &mut round, &mut sink),
            None => run_once(plan, &watching, &Lookups::empty(), &mut sink),
        };
        (sink.lines, source.known.get(), ran.unwrap().stats)
    }
}

const RATES: (&[&str], &str) = (&["cookie", "recv_q", "change", "bytes_in_per_s"], "");
const UNFILTERED: (&[&str], &str) = (&["recv_q", "cookie"], "");
const PLAIN: (&[&str], &str) = (&["cookie", "recv_q"], "recv_q < 500 or recv_q = null");

#[test]
fn what_rests_is_written_again_as_soon_as_it_says_the_same() {
    let rows = [(1, 0, 100), (2, 5, 100), (3, -1, 0)];
    let mut reader = Reader { rendered: Some(RenderedRows::default()), ..Reader::default() };
    let mut known = |n: u64, rows: &[Row]| {
        let (lines, known, _) = reader.round(RATES, n * SECOND, &mut Bytes::new(rows));
        (known, lines.join(", "))
    };
    assert_eq!(known(1, &rows), (0, "1 0 - -, 2 5 - -, 3 - - -".to_owned()));
    assert_eq!(known(2, &rows), (0, "1 0 kept 0, 2 5 kept 0, 3 - kept -".to_owned()), "other words than before");
    assert_eq!(known(3, &rows), (3, "1 0 kept 0, 2 5 kept 0, 3 - kept -".to_owned()));
    // Two seconds later one has received data: its rate covers the time since it was last seen.
    let grown = [(1, 0, 100), (2, 5, 400), (3, -1, 0)];
    assert_eq!(known(5, &grown), (2, "1 0 kept 0, 2 5 kept 150, 3 - kept -".to_owned()));
    assert_eq!(known(6, &grown), (2, "1 0 kept 0, 2 5 kept 0, 3 - kept -".to_owned()));
    assert_eq!(known(7, &grown), (3, "1 0 kept 0, 2 5 kept 0, 3 - kept -".to_owned()));
    assert_eq!(known(8, &grown[1..]), (2, "2 5 kept 0, 3 - kept -, 1 0 gone -".to_owned()));
    assert_eq!(known(9, &grown), (2, "1 0 new -, 2 5 kept 0, 3 - kept -".to_owned()));
}

#[test]
fn without_rates_and_changes_bytes_tell_everything() {
    let rows = [(1, 0, 1), (2, 700, 1), (3, 7, 1)];
    let mut reader = Reader { rendered: Some(RenderedRows::default()), ..Reader::default() };
    for n in 0..3 {
        let (lines, known, stats) = reader.round(PLAIN, n, &mut Bytes::new(&rows));
        assert_eq!((lines.join(", "), known), ("1 0, 3 7".to_owned(), if n == 0 { 0 } else { 3 }), "round {n}");
        assert_eq!((stats.seen, stats.emitted, stats.filtered), (3, 2, 1));
    }
    let mut other = Bytes { rules: Rules { layout: 1, ..Rules::default() }, ..Bytes::new(&rows) };
    assert_eq!(reader.round(PLAIN, 9, &mut other).1, 0, "the same bytes mean something else");
    reader.rendered.as_mut().unwrap().clear();
    assert_eq!(reader.round(PLAIN, 9, &mut other).1, 0);
    assert_eq!(reader.round(PLAIN, 9, &mut Bytes { known: Cell::new(0), ..other }).1, 3);
}

/// Rows that come, go, change and change their order: the output is the same with and without a memory of texts.
#[test]
fn any_churn_gives_the_same_text_as_without_the_cache() {
    let asked = [RATES, PLAIN, UNFILTERED].into_iter().flat_map(|asked| [(asked, BYTES_MAX), (asked, 3_000)]);
    for ((asked, bytes_max), but_for_queue) in asked.flat_map(|asked| [(asked, false), (asked, true)]) {
        let mut numbers = Numbers(11);
        let mut with = Reader { rendered: Some(RenderedRows::with_bytes(bytes_max)), ..Reader::default() };
        let mut without = Reader::default();
        let (mut rows, mut known): (Vec<Row>, usize) = (Vec::new(), 0);
        for n in 0..300 {
            rows.retain(|_| numbers.next_below(20) > 0);
            for row in &mut rows {
                match numbers.next_below(12) {
                    0 => row.2 += numbers.next_below(900),
                    1 if row.1 >= 0 => row.1 = numbers.next_below(1_000) as i32,
                    _ => {}
                }
            }
            for _ in 0..numbers.next_below(12) {
                let at = numbers.next_below(rows.len() as u64 + 1) as usize;
                let row = (numbers.next_below(300) as u16, numbers.next_below(600) as i32 - 100, numbers.next_below(9));
                // A source never returns a row twice.
                if rows.iter().all(|(port, ..)| *port != row.0) {
                    rows.insert(at, row);
                }
            }
            if numbers.next_below(9) == 0 {
                rows.reverse();
            }
            let (expected, _, stats) = without.round(asked, n * SECOND, &mut Bytes::new(&rows));
            let mut source = Bytes { but_for_queue, ..Bytes::new(&rows) };
            let (lines, again, same) = with.round(asked, n * SECOND, &mut source);
            assert_eq!(lines, expected, "round {n}");
            assert_eq!((same.seen, same.emitted, same.filtered), (stats.seen, stats.emitted, stats.filtered));
            assert!(same.balances());
            let rendered = with.rendered.as_ref().unwrap();
            assert!(rendered.bytes.len() <= bytes_max.min(200_000), "round {n}: {}", rendered.bytes.len());
            known += again;
        }
        // The filter needs the queue of every row.
        let least = match (asked == PLAIN && but_for_queue, bytes_max == BYTES_MAX) {
            (true, _) => 0..1,
            (false, true) => 5_000..u32::MAX as usize,
            (false, false) => 500..u32::MAX as usize,
        };
        assert!(least.contains(&known), "{asked:?} {bytes_max} {but_for_queue}: {known}");
    }
}

#[test]
fn rows_are_the_same_but_for_one_cell() {
    let mut reader = Reader { rendered: Some(RenderedRows::default()), ..Reader::default() };
    let mut round = |asked, rows: &[Row]| {
        let (lines, known, _) = reader.round(asked, 0, &mut Bytes { but_for_queue: true, ..Bytes::new(rows) });
        (lines.join(", "), known)
    };
    assert_eq!(round(UNFILTERED, &[(1, 0, 1), (2, 7, 1), (3, -1, 0)]), ("0 1, 7 2, - 3".to_owned(), 0));
    assert_eq!(round(UNFILTERED, &[(1, 800, 1), (2, 7, 2), (3, -1, 0)]), ("800 1, 7 2, - 3".to_owned(), 2));
    // If the queue is not shown, it does not matter; if it is shown twice, there is more than one cell.
    reader.rendered = Some(RenderedRows::default());
    let mut round = |asked: &[&str], rows: &[Row]| {
        let (lines, known, _) = reader.round((asked, ""), 0, &mut Bytes { but_for_queue: true, ..Bytes::new(rows) });
        (lines.join(", "), known)
    };
    assert_eq!(round(&["cookie"], &[(1, 0, 1)]).1, 0);
    assert_eq!(round(&["cookie"], &[(1, 9, 1)]), ("1".to_owned(), 1));
    assert_eq!(round(&["recv_q", "recv_q"], &[(1, 9, 1)]), ("9 9".to_owned(), 0));
}

/// Rows in an order by rate, which come, go, grow and change their order: those with a rate come first and in order,
/// the others are all there, and most of these are written from their kept texts.
#[test]
fn rows_without_a_rate_are_reused_in_an_order_by_rate() {
    let mut asked = request(&["cookie", "recv_q"], "");
    (asked.sort, asked.ties_by_arrival) = (crate::SortKey::parse_list("bytes_in_per_s:desc"), true);
    let plan = plan(asked);
    for (bytes_max, but_for_queue) in [(BYTES_MAX, false), (BYTES_MAX, true), (3_000, true)] {
        let mut numbers = Numbers(7);
        let mut with = Reader { rendered: Some(RenderedRows::with_bytes(bytes_max)), ..Reader::default() };
        let mut without = Reader::default();
        let (mut rows, mut known): (Vec<Row>, usize) = ((0..100).map(|n| (n, 5, 1)).collect(), 0);
        for n in 1..100 {
            let mut rated: Vec<String> = Vec::new();
            for row in &mut rows {
                match numbers.next_below(20) {
                    0 => {
                        (row.2, rated) =
                            (row.2 + 1 + numbers.next_below(900), [rated, vec![row.0.to_string()]].concat())
                    }
                    1 => row.1 = numbers.next_below(1_000) as i32,
                    _ => {}
                }
            }
            let (gone, new) = (numbers.next_below(100) as usize, 100 + n as u16);
            rows[gone] = (new, 7, 1);
            rated.retain(|row| rows.iter().any(|(port, ..)| port.to_string() == *row));
            let (expected, ..) = without.round_of(&plan, n * SECOND, &mut Bytes::new(&rows));
            let mut source = Bytes { but_for_queue, ..Bytes::new(&rows) };
            let (lines, again, stats) = with.round_of(&plan, n * SECOND, &mut source);
            let rated = if n == 1 { 0 } else { rated.len() };
            assert_eq!(lines[..rated], expected[..rated], "round {n}");
            let sorted = |mut lines: Vec<String>| {
                lines.sort();
                lines
            };
            assert_eq!(sorted(lines), sorted(expected), "round {n}");
            assert_eq!((stats.seen, stats.emitted, stats.balances()), (100, 100, true), "round {n}");
            known += again;
        }
        assert!(known > if bytes_max == BYTES_MAX { 6_000 } else { 500 }, "{bytes_max} {but_for_queue}: {known}");
    }
}

#[test]
fn an_order_a_limit_and_other_sinks_need_every_row() {
    let rows = [(2, 0, 1), (1, 7, 1)];
    let mut rendered = RenderedRows::default();
    for n in 0..3 {
        let mut sink = TextSink::default();
        let source = Bytes::new(&rows);
        let one = plan(request(&["cookie"], ""));
        let mut round = CannedRounds { source: &source, answers: Answers::Same, rounds: 0..1 };
        one.run_reusing(&mut rendered, &mut round, &mut sink).unwrap();
        assert_eq!((sink.rows.len(), source.known.get()), (2, 0), "round {n}");
        for (sort, limit, first) in [("cookie", None, "1"), ("", Some(1), "2")] {
            let mut asked = request(&["cookie"], "");
            (asked.sort, asked.limit) = (crate::SortKey::parse_list(sort), limit);
            let (mut lines, source) = (Lines::default(), Bytes::new(&rows));
            let mut round = CannedRounds { source: &source, answers: Answers::Same, rounds: 0..1 };
            plan(asked).run_reusing(&mut rendered, &mut round, &mut lines).unwrap();
            assert_eq!((&*lines.lines[0], source.known.get()), (first, 0));
        }
    }
}

#[test]
fn a_row_that_was_looked_up_and_not_passed_on_is_not_reused() {
    let mut rendered = RenderedRows::default();
    let row = |bytes| RowBytes { rules: Rules::default(), key: 7, bytes, beside: Value::Null };
    assert!(rendered.find_unchanged(row(b"one")).is_none());
    rendered.invalidate();
    assert!(rendered.pending_buffer().is_none());
    rendered.store_pending(0, Some(0));
    rendered.begin();
    assert!(rendered.find_unchanged(row(b"one")).is_none());
    rendered.pending_buffer().unwrap().extend_from_slice(b"text");
    rendered.store_pending(5, Some(0));
    rendered.begin();
    let kept = rendered.find_unchanged(row(b"one")).unwrap();
    assert_eq!((rendered.text(kept), kept.tag()), (Some(&b"text"[..]), 5));
}
