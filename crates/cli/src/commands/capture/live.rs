//! Packets of interfaces.

use super::Capture;
use super::program::Programs;
use super::writing::written;
use crate::commands::follow::{self, StreamNotes, Then};
use crate::messages::say;
use crate::outcome::Outcome;
use crate::session::Session;
use capture::{CapturePlace, FollowPackets, PacketStream, Passes};
use engine::{Plan, Run, RunError};
use host::{Links, Namespace, Namespaces};
use record::Accounting;
use record::rows::{CapturedPacket, CapturedPackets, Link};
use record::{SourceError, SourceFault};

/// Captures until the time is over or somebody ends it.
pub(super) fn captured(capture: &Capture, plan: &Plan<CapturedPackets>) -> Outcome {
    let end_ns = capture.time.map(|time| {
        let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        sys::clock::monotonic_ns().saturating_add(time_ns)
    });
    follow::run(&capture.request, plan, |session, then| {
        // What cannot be found is said when lookups are read.
        session.find_namespaces(None, &mut Accounting::default());
        let places = places(session);
        if let Err(error) = sys::signal::report_on_usr1() {
            say(&error.to_string());
        }
        let links = |place: &CapturePlace| read_links(session, place);
        let is_late = || end_ns.is_some_and(|end_ns| sys::clock::monotonic_ns() >= end_ns);
        let stop = || is_late() || follow::is_over(&capture.request, session);
        let rings = places.len() * capture.ifaces.len().max(1);
        let programs = capture.filter.as_ref().map(|filter| Programs::live(filter, capture.live_snaplen()));
        let program = programs.as_ref().map(Programs::kernel).transpose().map_err(unfit)?;
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
            program,
            passes,
            links: &links,
            say: &say,
            stop: &stop,
            reports: &sys::signal::reports,
        };
        let mut stream = PacketStream::open(follow).map_err(RunError::Source)?;
        match &capture.output {
            Some(path) if !capture.request.explain => {
                let (run, line) = written(path, capture, plan, &mut stream)?;
                say(&format!("{}; {line}, {} filtered", stream.report(), run.stats.filtered));
                Ok(run)
            }
            _ => shown(&mut stream, capture, then),
        }
    })
}

/// The error of a filter that is none for these packets.
pub(super) fn unfit(refusal: String) -> RunError {
    RunError::Source(SourceError { what: "packets", fault: SourceFault::Io, cause: refusal.into() })
}

/// Shows the packets and says the figures at the end.
fn shown(
    stream: &mut PacketStream<'_>,
    capture: &Capture,
    then: &mut Then<'_, CapturedPackets>,
) -> Result<Run, RunError> {
    let caveat = capture.request.all_netns.then(|| AT_THE_START.to_owned());
    let run = then(stream, StreamNotes { caveat, cost: Vec::new(), reread: None })?;
    if !capture.request.explain {
        let (shown, filtered) = (run.stats.emitted, run.stats.filtered);
        say(&format!("{}; {shown} shown, {filtered} filtered", stream.report()));
    }
    Ok(run)
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

fn read_links(session: &Session, place: &CapturePlace) -> Result<Vec<Link>, String> {
    let read = Links::read(session.host(), place.netns_id, place.netns.as_ref());
    read.map(|read| read.links).map_err(|error| error.to_string())
}
