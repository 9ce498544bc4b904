//! Captures packets of interfaces.

use super::Capture;
use super::program::Programs;
use crate::commands::all_netns::descriptors_for_netns;
use crate::commands::follow::{self, StreamNotes, Then};
use capture::{CaptureControl, CapturePlace, FollowPackets, PacketStream, Passes, complete};
use engine::{Plan, Run, RunError};
use host::{LinksReader, NetnsOwners};
use lookups::enrich::Enrichment;
use lookups::long_work;
use lookups::owners::helper_process::{OwnerHelper, OwnerOptions, Wake};
use lookups::packet_entries::{EntryLookups, PacketEntries, remote};
use lookups::session::Session;
use owners::PacketOwners;
use packet_files::{Figures, PacketWriter, UnopenedOutput};
use record::rows::{CapturedPacket, CapturedPackets, Link};
use record::{Accounting, Annotate, LookupId, SourceError, SourceFault, Stream, annotated};
use runtime::messages::print_message;
use runtime::outcome::Outcome;
use runtime::rights::{ConfiningStream, NeededRights};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;
use sys::{BufferBudget, NetnsOwner, ShortShares};

/// Captures until the time is over or the run is ended.
pub(super) fn captured(capture: &Capture, plan: &Plan<CapturedPackets>) -> Outcome {
    let end_ns = capture.time.map(|time| {
        let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        sys::clock::monotonic_ns().saturating_add(time_ns)
    });
    follow::run(&capture.request, plan, |session, then| {
        let needed = capture.needed_rights(plan).map_err(refused)?;
        let mut notes = Accounting::default();
        session.find_namespaces(None, &mut notes);
        session.found().keep();
        let (places, shortage) = places(capture, session);
        if let Err(error) = sys::signal::report_on_usr1() {
            print_message(&error.to_string());
        }
        let figures = Rc::new(Figures::new(watched(capture), capture.rotation.is_some()));
        let readers = RefCell::default();
        let links = |place: &CapturePlace| read_links(session, place, &readers);
        let is_late = || end_ns.is_some_and(|end_ns| sys::clock::monotonic_ns() >= end_ns);
        let stop = || is_late() || follow::is_over(&capture.request, session);
        let (need, all_netns) =
            (if capture.request.explain { 0 } else { plan.demand().need }, capture.request.all_netns);
        let owners = OwnerHelper::start(OwnerOptions { all_netns, need }).map_err(refused)?;
        let entries = remote::start(all_netns, need).map_err(refused)?;
        let wake = owners.as_ref().map(|owners| owners.feed.wake());
        let programs = programs(capture);
        let program = programs.as_ref().map(Programs::kernel).transpose().map_err(refused)?;
        let judge = |row: &CapturedPacket<'_>| programs.as_ref().is_none_or(|programs| programs.passes(row, false));
        let is_judged = programs.as_ref().is_some_and(Programs::is_rest_needed);
        let passes: Option<&Passes<'_>> = if is_judged { Some(&judge) } else { None };
        let follow = FollowPackets {
            ifaces: capture.ifaces.clone(),
            places,
            delivery: capture.delivery(),
            shortage,
            snaplen: capture.live_snaplen(),
            promiscuous: capture.promiscuous,
            clock: capture.clock,
            program,
            passes,
            links: &links,
            control: CaptureControl {
                say: &print_message,
                stop: &stop,
                reports: &|| figures.requests(),
                on_report: &|report| figures.take(report),
                wake_up: wake.as_ref().map(Wake::wake_up),
            },
        };
        let mut stream = PacketStream::open(follow).map_err(RunError::Source)?;
        if capture.request.explain {
            return then(&mut stream, StreamNotes::default());
        }
        let output = capture.prepare_output(session.run())?;
        announce(capture);
        let wanted: &[LookupId] =
            if output.is_some() && plan.needs_lookup(LookupId::Netns) { &[LookupId::Netns] } else { &[] };
        let names = Enrichment::read(session, wanted, &mut notes);
        session.stay_inside();
        needed.drop_capabilities(session.resolver(), Some(session.run())).map_err(refused)?;
        let writer = output.map(|output| writer(output, capture, plan, &figures)).transpose()?;
        let reading = Reading { capture, plan, needed: &needed, names: &names, writer };
        let (mut run, writer) = reading.read_all(&mut stream, annotators(entries, owners), then)?;
        let latency = capture.request.stats.then(|| stream.report().latency_in_words()).flatten();
        say_figures(&mut stream, writer, &figures, &mut run);
        latency.iter().for_each(|words| print_message(words));
        programs.iter().for_each(Programs::say_behind_tags);
        run.stats.add(&notes);
        Ok(run)
    })
}

/// How often figures are reported: at the `--watch` interval, or every second on a terminal while a file is written.
fn watched(capture: &Capture) -> Option<Duration> {
    let is_seen = || sys::term::is_terminal(sys::term::STDERR);
    capture.watch.or_else(|| capture.output.as_ref().filter(|_| is_seen()).map(|_| Duration::from_secs(1)))
}

/// Announces the captured interfaces, the file, and the end of the run.
fn announce(capture: &Capture) {
    let Some(output) = &capture.output else { return };
    let from = if capture.ifaces.is_empty() { "all interfaces".to_owned() } else { capture.ifaces.join(", ") };
    let output = match output.as_os_str().as_encoded_bytes() {
        b"-" => "standard output".to_owned(),
        path => sys::escape_bytes(path).to_string(),
    };
    let limit = capture.request.shown.limit.map_or_else(String::new, |limit| format!(" or {limit} packets"));
    let until = long_work::until(capture.time);
    print_message(&format!("capturing packets of {from} into {output}{limit}, {until}"));
}

/// Returns the programs of the filter. If all packets go into a file unparsed, no packet is tested here.
fn programs(capture: &Capture) -> Option<Programs<'_>> {
    let counts_tagged = capture.output.is_none();
    capture.filter.as_ref().map(|filter| Programs::live(filter, capture.live_snaplen(), counts_tagged))
}

/// The writer of `-w`, opened after privileges were dropped.
fn writer(
    output: UnopenedOutput,
    capture: &Capture,
    plan: &Plan<CapturedPackets>,
    figures: &Rc<Figures>,
) -> Result<PacketWriter, RunError> {
    let mut writer = output.open()?;
    if let Some(snaplen) = capture.snaplen {
        writer = writer.with_header(snaplen, 0);
    }
    let writer = writer.with_figures(Rc::clone(figures));
    Ok(if capture.has_comments { writer.with_notes(plan.columns()) } else { writer })
}

/// Writes the end of the file, and reports the number of packets and what became of them.
fn say_figures(stream: &mut PacketStream<'_>, writer: Option<PacketWriter>, figures: &Figures, run: &mut Run) {
    let report = stream.report();
    let (shown, filtered) = (run.stats.emitted, run.stats.filtered);
    if writer.is_some() {
        figures.take(&report);
    }
    match writer {
        Some(writer) => {
            let line = writer.finish(run);
            print_message(&format!("{report}; {line}, {filtered} filtered"));
        }
        None => print_message(&format!("{report}; {shown} shown, {filtered} filtered")),
    }
}

/// The annotators of a capture: conntrack entries, and processes at both ends.
fn annotators(
    entries: Option<EntryLookups<'static>>,
    owners: Option<OwnerHelper>,
) -> Vec<Box<dyn Annotate<CapturedPackets>>> {
    let entries = entries.map(|lookups| Box::new(PacketEntries::new(lookups)) as Box<dyn Annotate<_>>);
    let owners = owners.map(|OwnerHelper { feed, sockets }| PacketOwners::new(complete, feed, sockets));
    entries.into_iter().chain(owners.map(|owners| Box::new(owners) as Box<dyn Annotate<_>>)).collect()
}

/// The parameters for reading packets, and the output.
struct Reading<'c> {
    capture: &'c Capture,
    plan: &'c Plan<CapturedPackets>,
    needed: &'c NeededRights,
    /// Names of namespaces, for `-w`.
    names: &'c Enrichment<'c>,
    /// The file of `-w`.
    writer: Option<PacketWriter>,
}

impl Reading<'_> {
    /// Reads all packets, with or without their owners and connections.
    fn read_all(
        mut self,
        stream: &mut PacketStream<'_>,
        annotators: Vec<Box<dyn Annotate<CapturedPackets>>>,
        then: &mut Then<'_, CapturedPackets>,
    ) -> Result<(Run, Option<PacketWriter>), RunError> {
        if !annotators.is_empty() {
            return self.read(&mut *annotated(stream, annotators), then);
        }
        match self.writer_of_all(stream) {
            Some(mut writer) => {
                self.needed.confine();
                Ok((writer.write_all(stream)?, Some(writer)))
            }
            None => self.read(stream, then),
        }
    }

    /// Takes the writer out if every packet goes into the file unparsed; `None` if a filter, a limit or a comment needs
    /// headers.
    fn writer_of_all(&mut self, stream: &PacketStream<'_>) -> Option<PacketWriter> {
        let looks_into = self.capture.has_comments || !self.plan.takes_all() || stream.is_judging();
        if looks_into { None } else { self.writer.take() }
    }

    /// Reads the stream to its end, after dropping privileges.
    fn read(
        mut self,
        stream: &mut dyn Stream<CapturedPackets>,
        then: &mut Then<'_, CapturedPackets>,
    ) -> Result<(Run, Option<PacketWriter>), RunError> {
        let mut stream = ConfiningStream::new(stream, self.needed);
        let run = match &mut self.writer {
            Some(writer) => writer.write_rows(self.plan, &mut stream, self.names.lookups())?,
            None => {
                let caveat = self.capture.request.all_netns.then(|| AT_THE_START.to_owned());
                then(&mut stream, StreamNotes { caveat, ..StreamNotes::default() })?
            }
        };
        Ok((run, self.writer))
    }
}

/// An error in the request, such as a filter that does not support the packets' link type, or an unknown user.
pub(super) fn refused(refusal: String) -> RunError {
    RunError::Source(SourceError { what: "packets", fault: SourceFault::Io, cause: refusal.into() })
}

/// The message about `--all-netns` at the start.
const AT_THE_START: &str = "packets of network namespaces that are created later are not captured";

/// The smallest useful ring for another namespace, in bytes.
///
/// Bound: bytes of the smallest ring in another namespace
/// (`netns_budget::root_a_users_namespaces_take_their_share_of_a_capture_and_no_more`). Beyond: further namespaces are
/// left out and counted (exit code 3). By: a user who makes namespaces, for that user's namespaces.
const RING_BYTES_MIN: u64 = 1 << 20;

/// Returns the namespaces to capture that can be opened and have enough memory. The search reports namespaces that
/// cannot be opened.
fn places(capture: &Capture, session: &Session) -> (Vec<CapturePlace>, ShortShares) {
    let own = session.netns_id();
    let namespaces = session.namespaces();
    let mut found = namespaces.map(|all| NetnsOwners::default().found(&all, own)).unwrap_or_default();
    found.retain(|namespace| namespace.netns_id != own);
    let rings = capture.ifaces.len().max(1);
    let ring_bytes = capture.ring_bytes(rings * (1 + found.len()));
    let own_ring_bytes = capture.ring_bytes(rings);
    let mut places = vec![CapturePlace { netns_id: own, netns: None, ring_bytes: own_ring_bytes }];
    if found.is_empty() {
        return (places, ShortShares::default());
    }
    let budget = BufferBudget {
        total: capture.buffer_total,
        buffer: ring_bytes as u64,
        buffer_min: RING_BYTES_MIN.min(ring_bytes as u64),
        buffers: rings as u64,
        // A namespace takes one descriptor for itself, two for rtnetlink sockets, and one for each ring.
        namespaces_max: descriptors_for_netns(3 + rings as u64),
    };
    let owners: Vec<NetnsOwner> = found.iter().map(|namespace| namespace.owner).collect();
    let shares = budget.share_out(&owners);
    for (namespace, bytes) in found.iter().zip(&shares).filter(|(_, bytes)| **bytes > 0) {
        if let Some(netns) = namespace.netns() {
            let ring_bytes = usize::try_from(*bytes).unwrap_or(ring_bytes);
            places.push(CapturePlace { netns_id: namespace.netns_id, netns: Some(netns), ring_bytes });
        }
    }
    (places, budget.count_shortage(&shares))
}

/// Readers of interfaces by namespace.
type Readers = RefCell<HashMap<u64, LinksReader>>;

fn read_links(session: &Session, place: &CapturePlace, readers: &Readers) -> Result<Vec<Link>, String> {
    let mut readers = readers.borrow_mut();
    let reader = readers.entry(place.netns_id).or_default();
    let read = reader.read(session.host(), place.netns_id, place.netns.as_ref());
    read.map(|read| read.links).map_err(|error| error.to_string())
}
