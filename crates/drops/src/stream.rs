//! The stream of single drops.
use record::rows::{DropEvent, DropEvents, drop_need};
use record::{Accounting, Demand, Each, Expr, Next, Offer, SourceError, Stream, StreamState, field_index};
use sys::{Blocks, Host, SysError};

use crate::backend::DropScope;
use crate::block::via_of;
use crate::error::DropsError;
use crate::event_block::{self, EventDecoder, EventHeader};
use crate::event_source::{EventParts, EventSource};
use crate::source::{NAMES_HIDDEN, limits, tell_left_out};
use crate::via::DropsVia;

/// The key of the stream in a recording.
const TAPE_KEY: &str = "drop events";

/// Maximum bytes of a packet that can be read.
pub const SNAPLEN_MAX: u32 = event_block::SNAPLEN_MAX as u32;

/// Options of following single drops.
#[derive(Clone, Copy)]
pub struct FollowDrops<'h> {
    /// The namespaces whose packets are shown.
    pub scope: DropScope,
    /// True to include drops that are routine.
    pub all: bool,
    /// Bytes to read of each packet, at most [`SNAPLEN_MAX`], instead of stacks; with `None` packets are not read.
    pub snaplen: Option<u32>,
    /// The interface; with `None` the best one that opens.
    pub via: Option<DropsVia>,
    /// Called every 10 ms; true ends the stream.
    pub stop: &'h dyn Fn() -> bool,
}

/// The drops of one run.
pub struct DropStream<'h> {
    blocks: Box<dyn Blocks + 'h>,
    all: bool,
    via: Option<DropsVia>,
    decoder: EventDecoder,
    header: EventHeader,
    stats: Accounting,
    unplaced: u64,
    routine: u64,
    failure: Option<DropsError>,
}

impl<'h> DropStream<'h> {
    /// Loads and attaches the program, or opens the recording: drops from now on are reported. Fails if no interface
    /// can report them.
    pub fn open(
        host: &'h Host,
        demand: &Demand<DropEvents>,
        follow: FollowDrops<'h>,
    ) -> Result<DropStream<'h>, SourceError> {
        let blocks = open(host, demand.need & drop_need::STACK != 0, follow)?;
        let benign = field_index::<DropEvents>("benign");
        let mut asks_for_benign = false;
        let mut look = |expr: &Expr| expr.for_each_test(&mut |test| asks_for_benign |= Some(test.field) == benign);
        demand.conjuncts.iter().for_each(&mut look);
        let stats = Accounting::default();
        let (decoder, header, failure) = Default::default();
        let all = follow.all || asks_for_benign;
        Ok(DropStream { blocks, all, via: follow.via, decoder, header, stats, unplaced: 0, routine: 0, failure })
    }
}

fn open<'h>(host: &'h Host, with_stack: bool, follow: FollowDrops<'h>) -> Result<Box<dyn Blocks + 'h>, DropsError> {
    let mut failure = None;
    let parts = match follow.snaplen {
        Some(snaplen) => EventParts::Frame(snaplen),
        None if with_stack => EventParts::Stack,
        None => EventParts::Plain,
    };
    let opened =
        host.stream(TAPE_KEY, "", || match EventSource::open(host, follow.scope, parts, follow.via, follow.stop) {
            Ok(source) => Ok(Box::new(source) as Box<dyn Blocks>),
            Err(error) => Err(SysError::new("read", failure.insert(error).to_string(), sys::Errno::IO)),
        });
    match failure {
        Some(error) => Err(error),
        None => opened.map_err(DropsError::from),
    }
}

/// The outcome of one drop.
enum Judged {
    Shown,
    Routine,
    Unplaced,
}

fn judged(event: &DropEvent<'_>, is_one: bool, all: bool) -> Judged {
    match event.packet.benign {
        false if is_one && event.packet.netns_id == 0 => Judged::Unplaced,
        true if !all || is_one && event.packet.netns_id == 0 => Judged::Routine,
        _ => Judged::Shown,
    }
}

impl Stream<DropEvents> for DropStream<'_> {
    fn offer(&self, _: &Demand<DropEvents>) -> Offer {
        let explain = vec![
            "a BPF program at the tracepoint kfree_skb writes each drop to a ring buffer"
                .to_owned(),
            "the reader is woken when 64 KiB are waiting, and checks every 10 ms".to_owned(),
            "without BPF: the kernel's trace of that tracepoint (tracefs), otherwise the kernel's drop monitor (NET_DM)"
                .to_owned(),
        ];
        Offer { backend: self.via.unwrap_or(DropsVia::Bpf).name(), explain, ..Offer::default() }
    }

    fn next(&mut self, _: &Demand<DropEvents>, each: &mut Each<'_, DropEvents>) -> Result<StreamState, SourceError> {
        let Some(block) = self.blocks.next().map_err(DropsError::from)? else { return Ok(StreamState::Ended) };
        let all = self.all;
        let (stats, unplaced, routine) = (&mut self.stats, &mut self.unplaced, &mut self.routine);
        let decoded = self.decoder.decode(block, |event, flags| {
            stats.seen += 1;
            let left_out = match judged(event, flags & event_block::ALL_NETNS == 0, all) {
                Judged::Shown => return each(event) == Next::More,
                Judged::Routine => &mut *routine,
                Judged::Unplaced => &mut *unplaced,
            };
            *left_out += 1;
            stats.filtered += 1;
            true
        });
        match decoded {
            Ok(header) => self.header = header,
            Err(error) => {
                self.failure.get_or_insert(error);
            }
        }
        Ok(StreamState::Open)
    }

    fn close(&mut self) -> Accounting {
        let mut stats = std::mem::take(&mut self.stats);
        let EventHeader { lost, missed, flags, .. } = self.header;
        let has = |flag: u64| flags & flag != 0;
        let via = via_of(has(event_block::BY_TRACE), has(event_block::BY_NET_DM));
        stats.add_backend(via.name());
        if let Some(limits) = limits(via) {
            stats.incomplete(0, limits);
        }
        if flags & event_block::NAMES_HIDDEN != 0 {
            stats.add_reason(0, NAMES_HIDDEN);
        }
        stats.lost += lost;
        if lost > 0 {
            stats.add_reason(
                lost,
                "a drop is not shown: they occurred faster than they could be shown (without --events they are \
                counted)",
            );
        }
        if missed > 0 {
            stats.incomplete(missed, "a drop is not shown: it interrupted the report of another drop");
        }
        tell_left_out(self.routine, self.unplaced, &mut stats);
        if let Some(error) = self.failure.take() {
            stats.incomplete(1, error.to_string());
        }
        stats
    }
}
