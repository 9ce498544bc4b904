//! Packets of interfaces.

use super::Capture;
use super::figures::Figures;
use super::opening::Opened;
use super::program::Programs;
use super::writing::{PacketWriter, finished, written};
use crate::commands::follow::{self, StreamNotes};
use crate::messages::say;
use crate::outcome::Outcome;
use crate::rights::{Confined, NeededRights};
use crate::session::Session;
use capture::{CapturePlace, FollowPackets, PacketStream, Passes};
use engine::{Plan, Run, RunError};
use host::{LinksReader, Namespace, Namespaces};
use record::Accounting;
use record::rows::{CapturedPacket, CapturedPackets, Link};
use record::{SourceError, SourceFault};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Captures until the time is over or somebody ends it.
pub(super) fn captured(capture: &Capture, plan: &Plan<CapturedPackets>) -> Outcome {
    let end_ns = capture.time.map(|time| {
        let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        sys::clock::monotonic_ns().saturating_add(time_ns)
    });
    follow::run(&capture.request, plan, |session, then| {
        let needed = capture.needed_rights(plan).map_err(refused)?;
        let mut notes = Accounting::default();
        session.find_namespaces(None, &mut notes);
        session.keep_namespaces();
        let places = places(session);
        if let Err(error) = sys::signal::report_on_usr1() {
            say(&error.to_string());
        }
        let figures = Rc::new(Figures::new(capture.watch, capture.rotation.is_some()));
        let tell = |text: &str| figures.say(text);
        let readers = RefCell::default();
        let links = |place: &CapturePlace| read_links(session, place, &readers);
        let is_late = || end_ns.is_some_and(|end_ns| sys::clock::monotonic_ns() >= end_ns);
        let stop = || is_late() || follow::is_over(&capture.request, session);
        let rings = places.len() * capture.ifaces.len().max(1);
        let programs = capture.filter.as_ref().map(|filter| Programs::live(filter, capture.live_snaplen()));
        let program = programs.as_ref().map(Programs::kernel).transpose().map_err(refused)?;
        let judge = |row: &CapturedPacket<'_>| programs.as_ref().is_none_or(|programs| programs.passes(row, false));
        let is_judged = programs.as_ref().is_some_and(Programs::is_rest_needed);
        let passes: Option<&Passes<'_>> = if is_judged { Some(&judge) } else { None };
        let follow = FollowPackets {
            ifaces: capture.ifaces.clone(),
            places,
            pace: capture.pace(),
            retire_ms: capture.retire_ms(),
            buffer_bytes: capture.ring_bytes(rings),
            snaplen: capture.live_snaplen(),
            promiscuous: capture.promiscuous,
            clock: capture.clock,
            program,
            passes,
            links: &links,
            say: &tell,
            stop: &stop,
            reports: &|| figures.requests(),
            on_report: &|report| figures.take(report),
        };
        let mut stream = PacketStream::open(follow).map_err(RunError::Source)?;
        if capture.request.explain {
            return then(&mut stream, StreamNotes::default());
        }
        let output = Opened::of(capture)?;
        needed.drop_capabilities().map_err(refused)?;
        let output = output.map(Opened::writer).transpose()?;
        let mut run = match output {
            Some(writer) => saved(writer, plan, &mut stream, &needed, &figures)?,
            None => {
                let caveat = capture.request.all_netns.then(|| AT_THE_START.to_owned());
                let notes = StreamNotes { caveat, ..StreamNotes::default() };
                let run = then(&mut Confined::new(&mut stream, &needed), notes)?;
                figures.end();
                let (shown, filtered) = (run.stats.emitted, run.stats.filtered);
                say(&format!("{}; {shown} shown, {filtered} filtered", stream.report()));
                run
            }
        };
        run.stats.add(&notes);
        Ok(run)
    })
}

/// Writes packets until the stream ends.
fn saved(
    mut writer: PacketWriter,
    plan: &Plan<CapturedPackets>,
    stream: &mut PacketStream<'_>,
    needed: &NeededRights,
    figures: &Rc<Figures>,
) -> Result<Run, RunError> {
    writer.tell(Rc::clone(figures));
    let mut run = written(&mut writer, plan, &mut Confined::new(stream, needed))?;
    let report = stream.report();
    figures.take(&report);
    figures.end();
    let line = finished(writer, &mut run);
    say(&format!("{report}; {line}, {} filtered", run.stats.filtered));
    Ok(run)
}

/// The error of what was asked for: a filter that is none for these packets, a user that is not there.
pub(super) fn refused(refusal: String) -> RunError {
    RunError::Source(SourceError { what: "packets", fault: SourceFault::Io, cause: refusal.into() })
}

/// The sentence about `--all-netns` at the start.
const AT_THE_START: &str = "packets of network namespaces that are made from now on are not captured";

/// The namespaces that are captured, as far as they can be opened; the search says which cannot.
fn places(session: &Session) -> Vec<CapturePlace> {
    let own = session.netns_id();
    let namespaces = session.namespaces();
    let list = namespaces.as_deref().map(Namespaces::list).unwrap_or_default();
    let open = |namespace: &Namespace| {
        let netns = namespace.open(session.host(), own).ok()??;
        Some(CapturePlace { netns_id: namespace.inode, netns: Some(netns) })
    };
    let others = list.iter().filter(|namespace| namespace.inode != own).filter_map(open);
    std::iter::once(CapturePlace { netns_id: own, netns: None }).chain(others).collect()
}

/// Readers of interfaces by namespace.
type Readers = RefCell<HashMap<u64, LinksReader>>;

fn read_links(session: &Session, place: &CapturePlace, readers: &Readers) -> Result<Vec<Link>, String> {
    let mut readers = readers.borrow_mut();
    let reader = readers.entry(place.netns_id).or_default();
    let read = reader.read(session.host(), place.netns_id, place.netns.as_ref());
    read.map(|read| read.links).map_err(|error| error.to_string())
}
