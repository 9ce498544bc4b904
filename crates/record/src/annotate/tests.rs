#![allow(clippy::unwrap_used)]
use super::*;
use crate::rows::{Socket, Sockets};
use crate::{CachedRow, RowBytes};

fn socket(inode: u32) -> Socket<'static> {
    Socket { inode, ..Socket::EMPTY }
}

/// Hands out two rows in each batch or round; their inodes begin at 0 without a cache and at 10 with one.
struct TwoRows;

impl TwoRows {
    fn rows(first: u32, each: &mut Each<'_, Sockets>) -> Accounting {
        let more = (first..first + 2).take_while(|inode| each(&socket(*inode)) == Next::More).count();
        Accounting { seen: more as u64, ..Accounting::default() }
    }
}

impl Source<Sockets> for TwoRows {
    fn prepare(&self, _: &Demand<Sockets>) -> Box<dyn Scan<Sockets> + '_> {
        Box::new(TwoRows)
    }
}

impl Scan<Sockets> for TwoRows {
    fn offer(&self) -> Offer {
        Offer { lacks: 7, ..Offer::default() }
    }

    fn run(&mut self, each: &mut Each<'_, Sockets>) -> Result<Accounting, SourceError> {
        Ok(TwoRows::rows(0, each))
    }

    fn run_cached(&mut self, _: &dyn RowCache, each: &mut Each<'_, Sockets>) -> Result<Accounting, SourceError> {
        Ok(TwoRows::rows(10, each))
    }
}

/// A stream of two batches.
struct TwoBatches(u32);

impl Stream<Sockets> for TwoBatches {
    fn offer(&self, _: &Demand<Sockets>) -> Offer {
        Offer::default()
    }

    fn next(&mut self, _: &Demand<Sockets>, each: &mut Each<'_, Sockets>) -> Result<StreamState, SourceError> {
        self.0 += 1;
        TwoRows::rows(2 * (self.0 - 1), each);
        Ok(if self.0 < 2 { StreamState::Open } else { StreamState::Ended })
    }

    fn close(&mut self) -> Accounting {
        Accounting { seen: 4, ..Accounting::default() }
    }
}

/// Adds 100 to each inode, and holds the last row back until another one arrives.
#[derive(Default)]
struct Late {
    waiting: Option<u32>,
    calls: Vec<&'static str>,
    unwanted: u64,
}

impl Annotate<Sockets> for Late {
    fn explain(&self, offer: &mut Offer) {
        offer.explain.push("late".to_owned());
    }

    fn begin(&mut self, _: u64, _: &mut Each<'_, Sockets>) -> Next {
        self.calls.push("begin");
        Next::More
    }

    fn row(&mut self, row: &Socket<'_>, each: &mut Each<'_, Sockets>) -> Next {
        self.calls.push("row");
        match self.waiting.replace(row.inode + 100) {
            Some(inode) => each(&socket(inode)),
            None => Next::More,
        }
    }

    fn end(&mut self, _: u64, is_last: bool, each: &mut Each<'_, Sockets>) -> Next {
        self.calls.push(if is_last { "last end" } else { "end" });
        match self.waiting.take_if(|_| is_last) {
            Some(inode) => each(&socket(inode)),
            None => Next::More,
        }
    }

    fn stop(&mut self) {
        self.calls.push("stop");
        self.unwanted += self.waiting.take().map_or(0, |_| 1);
    }

    fn close(&mut self, stats: &mut Accounting) {
        stats.seen -= self.unwanted;
        stats.filtered = 5;
    }
}

struct NoRows;

impl RowCache for NoRows {
    fn exclude_field(&self, _: usize) -> bool {
        true
    }

    fn reuse(&self, _: RowBytes<'_>) -> Option<CachedRow> {
        None
    }

    fn invalidate(&self) {}

    fn set_tag(&self, _: Option<u32>) {}
}

fn demand() -> Demand<Sockets> {
    Demand::new(&[], Vec::new())
}

/// Reads a stream until it ends or has handed out `most` rows.
fn read(stream: &mut dyn Stream<Sockets>, most: usize) -> (Vec<u32>, Accounting) {
    let (mut inodes, mut state) = (Vec::new(), StreamState::Open);
    while state == StreamState::Open && inodes.len() < most {
        let next = stream.next(&demand(), &mut |row| {
            inodes.push(row.inode);
            if inodes.len() < most { Next::More } else { Next::Stop }
        });
        state = next.unwrap();
    }
    (inodes, stream.close())
}

#[test]
fn rows_that_wait_come_out_in_a_later_batch_or_at_the_end() {
    let mut stream = Annotated::new(TwoBatches(0), Late::default());
    assert_eq!(stream.offer(&demand()).explain, ["late"]);
    let (inodes, stats) = read(&mut stream, 9);
    assert_eq!((inodes, stats.seen, stats.filtered), (vec![100, 101, 102, 103], 4, 5));
    let calls = ["begin", "row", "row", "end", "begin", "row", "row", "last end"];
    assert_eq!(stream.annotator.into_inner().calls, calls);
}

#[test]
fn rows_that_are_not_wanted_any_more_are_not_handed_out() {
    let mut stream = Annotated::new(TwoBatches(0), Late::default());
    let (inodes, stats) = read(&mut stream, 1);
    assert_eq!((inodes, stats.seen), (vec![100], 3), "one of the four waited");
    assert_eq!(stream.annotator.into_inner().calls, ["begin", "row", "row", "stop"]);
}

#[test]
fn each_annotator_of_a_list_sees_what_the_one_before_it_added() {
    let mut inner = TwoBatches(0);
    let list = [Box::new(Late::default()) as Box<dyn Annotate<Sockets>>, Box::new(Late::default())];
    let mut stream = annotated(&mut inner, list);
    assert_eq!(stream.offer(&demand()).explain, ["late", "late"]);
    assert_eq!(read(&mut *stream, 9).0, [200, 201, 202, 203]);
}

#[test]
fn rows_the_cache_and_the_counts_of_a_table_pass_through() {
    let source = Annotated::new(TwoRows, Late::default());
    let mut scan = source.prepare(&demand());
    assert_eq!((scan.offer().lacks, scan.offer().explain), (7, vec!["late".to_owned()]));
    for (cache, first) in [(None, 100), (Some(&NoRows as &dyn RowCache), 110)] {
        let mut inodes = Vec::new();
        let stats = scan.run_with(cache, &mut |row| {
            inodes.push(row.inode);
            Next::More
        });
        let stats = stats.unwrap();
        assert_eq!((inodes, stats.seen, stats.filtered), (vec![first, first + 1], 2, 5));
    }
}

/// Hands out one row instead of the table.
struct Instead;

impl Annotate<Sockets> for Instead {
    fn begin(&mut self, _: u64, each: &mut Each<'_, Sockets>) -> Next {
        let _ = each(&socket(9));
        Next::Stop
    }

    fn row(&mut self, row: &Socket<'_>, each: &mut Each<'_, Sockets>) -> Next {
        each(row)
    }

    fn close(&mut self, stats: &mut Accounting) {
        stats.seen += 1;
    }
}

#[test]
fn nothing_is_read_if_the_beginning_says_so() {
    let mut inodes = Vec::new();
    let stats = Annotated::new(TwoRows, Instead).run(&demand(), &mut |row| {
        inodes.push(row.inode);
        Next::More
    });
    assert_eq!((inodes, stats.unwrap().seen), (vec![9], 1));
}
