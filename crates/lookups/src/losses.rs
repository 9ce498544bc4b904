//! Losses other than dropped packets, as rows in addition to the packets, or alone if packets cannot be counted.

use crate::kernel_counters::counter_reader;
use crate::pillars;
use crate::session::Session;
use counters::{CounterMemory, CounterTable, NextReading};
use drops::{DropsVia, LOSING_SOCKETS_MAX, Losses, PacketsOver, SocketDrops};
use record::rows::{Drops, KernelCounters, PacketDrop, Sockets};
use record::{Accounting, Annotate, Demand, Each, Next, Offer, Schema, Source, SourceError, field_index};
use std::cell::{Cell, RefCell};

/// The recording's key for whether packets were counted.
const TAPE_KEY: &str = "drops/packets";

/// The socket fields needed for drops of sockets.
const OF_SOCKETS: &[&str] = &["proto", "socket_drops", "cookie", "inode", "uid", "netns_id"];

/// The message if packets cannot be counted.
const ALONE: &str = "dropped packets are not counted individually: only the kernel's drop counters are shown, without \
                     place, address or rule, and without drops by rules";

/// The readings of a run, starting with its first round.
#[derive(Default)]
pub struct OpenLosses {
    /// True if packets are also counted; `None` for a recording without losses, or before the first reading.
    are_packets_counted: Cell<Option<bool>>,
    /// The reason why packets are not counted.
    why: RefCell<Option<String>>,
    counters: RefCell<CounterMemory>,
    sockets: RefCell<SocketDrops>,
    /// Packets of the previous round that no kernel counter included at that time.
    over: RefCell<PacketsOver>,
    /// The losses of the round, and the reasons for missing data.
    round: RefCell<(Losses, Accounting)>,
}

/// Marks a recording of everything. Its counters and sockets, which are saved elsewhere, also show losses, and packets
/// were counted.
pub fn save_mark(session: &Session) {
    // If the recording cannot be written, the end of the run reports it.
    let _ = session.host().bytes(TAPE_KEY, "", &mut Vec::new(), |into| {
        into.push(1);
        Ok(())
    });
}

impl OpenLosses {
    /// Takes the first readings. `why` is the reason if packets are not counted; in a replay the recording provides
    /// it.
    pub fn begin(&self, session: &Session, why: Option<String>) {
        let mut counted = Vec::new();
        let marked = session.host().bytes(TAPE_KEY, "", &mut counted, |into| {
            into.push(u8::from(why.is_none()));
            Ok(())
        });
        self.why.replace(why.filter(|why| !why.is_empty()));
        if marked.is_err() {
            return;
        }
        self.are_packets_counted.set(Some(counted == [1]));
        // Errors are reported when lookups are read.
        pillars::find_namespaces(session, false, &mut Accounting::default());
        let mut first = Losses::default();
        // The second reading will have the same errors and report them.
        let _ = self.read_counters(session, &NextReading::Ended, &mut first);
        let _ = self.read_sockets(session, None, &mut first);
        self.sockets.replace(first.take_sockets());
    }

    /// True if readings have started.
    pub fn is_begun(&self) -> bool {
        self.are_packets_counted.get().is_some()
    }

    /// Reads the losses since the last reading; false if there were none. Must be called before packets are read, so
    /// that a packet dropped in between is first counted as a packet.
    pub fn read(&self, session: &Session) -> bool {
        if !self.is_begun() {
            return false;
        }
        let (mut losses, mut stats) = (Losses::default(), Accounting::default());
        let before = self.sockets.take();
        losses.add_packets_over(self.over.take());
        for read in [
            self.read_counters(session, &NextReading::Begun, &mut losses),
            self.read_sockets(session, Some(&before), &mut losses),
        ] {
            match read {
                Ok(read) => stats.add_gaps(&read),
                Err(error) => {
                    stats.incomplete(1, format!("losses that only counters show are missing: {error}"));
                }
            }
        }
        if losses.sockets_over() > 0 {
            let text = format!("drops of sockets after the first {LOSING_SOCKETS_MAX} are not shown");
            stats.incomplete(losses.sockets_over(), text);
        }
        self.sockets.replace(losses.take_sockets());
        let is_any = !losses.is_empty();
        self.round.replace((losses, stats));
        is_any
    }

    fn read_counters(
        &self,
        session: &Session,
        next: &NextReading,
        losses: &mut Losses,
    ) -> Result<Accounting, SourceError> {
        let namespaces = session.namespaces();
        let reader = counter_reader(session, namespaces.as_deref(), true);
        let next = || *next;
        let table = CounterTable::of_two(reader, &self.counters, &next);
        table.run(&Demand::<KernelCounters>::every_field(0), &mut |row| {
            losses.add_counter(row);
            Next::More
        })
    }

    fn read_sockets(
        &self,
        session: &Session,
        before: Option<&SocketDrops>,
        losses: &mut Losses,
    ) -> Result<Accounting, SourceError> {
        let which = match self.are_packets_counted.get() {
            Some(false) => "proto in (udp, packet, netlink)",
            _ => "proto in (packet, netlink)",
        };
        let fields: Vec<usize> = OF_SOCKETS.iter().filter_map(|name| field_index::<Sockets>(name)).collect();
        let demand =
            Demand::new(&fields, engine::filter::conjuncts(Schema::from_table::<Sockets>(), which).unwrap_or_default());
        pillars::with_sockets(session, None, &|_| true, |sockets| {
            sockets.run(&demand, &mut |socket| {
                losses.add_socket(socket, before);
                Next::More
            })
        })
    }
}

/// The losses without a packet of each round: their rows follow those of packets, or replace them if packets are not
/// counted.
pub struct OtherLosses<'a> {
    open: &'a OpenLosses,
    /// True if packets are not counted.
    is_alone: bool,
    /// The losses of the round, and the reasons for missing data.
    losses: Losses,
    missing: Accounting,
    /// The number of rows handed out for them; `None` before the first.
    added: Option<u64>,
}

impl<'a> OtherLosses<'a> {
    /// Adds the losses that `open` has read; `via` is `--via`.
    pub fn new(open: &'a OpenLosses, via: Option<DropsVia>) -> OtherLosses<'a> {
        let is_alone = via == Some(DropsVia::Counters) || open.are_packets_counted.get() == Some(false);
        let (losses, missing) = Default::default();
        OtherLosses { open, is_alone, losses, missing, added: None }
    }

    fn hand_out(&mut self, each: &mut Each<'_, Drops>) -> Next {
        self.added = Some(0);
        for loss in self.losses.rows(!self.is_alone) {
            self.added = self.added.map(|added| added + 1);
            if each(&loss.row()) == Next::Stop {
                return Next::Stop;
            }
        }
        Next::More
    }

    fn note_missing_packets(&self, stats: &mut Accounting) {
        stats.add_backend(DropsVia::Counters.name());
        let why = self.open.why.borrow();
        stats.incomplete(0, why.as_ref().map_or_else(|| ALONE.to_owned(), |why| format!("{ALONE} ({why})")));
    }
}

impl Annotate<Drops> for OtherLosses<'_> {
    fn explain(&self, offer: &mut Offer) {
        if self.is_alone {
            *offer = Offer { backend: DropsVia::Counters.name(), ..Offer::default() };
        }
        offer.explain.push(
            "losses that only counters show: counters of interfaces, drivers, device traps, queues, protocols and \
             connection tracking, and drops of sockets, each read twice"
                .to_owned(),
        );
    }

    fn begin(&mut self, _: u64, each: &mut Each<'_, Drops>) -> Next {
        (self.losses, self.missing) = self.open.round.take();
        self.added = None;
        if !self.is_alone {
            return Next::More;
        }
        let _ = self.hand_out(each);
        Next::Stop
    }

    fn row(&mut self, row: &PacketDrop<'_>, each: &mut Each<'_, Drops>) -> Next {
        self.losses.note_packets(row);
        each(row)
    }

    fn end(&mut self, _: u64, _: bool, each: &mut Each<'_, Drops>) -> Next {
        self.hand_out(each)
    }

    fn stop(&mut self) {
        if self.added.is_none() {
            // Finds out which packets no counter contains.
            let _ = self.losses.rows(!self.is_alone);
        }
    }

    fn close(&mut self, stats: &mut Accounting) {
        if self.is_alone {
            self.note_missing_packets(stats);
        }
        if !self.open.is_begun() {
            stats.unanswered = true;
            stats.add_reason(0, "the recording does not hold the drop counters");
        }
        stats.add_gaps(&self.missing);
        self.open.over.replace(self.losses.take_packets_over());
        stats.seen += self.added.unwrap_or(0);
    }
}
