//! `netwren nat events`: conntrack entries as they are created, changed and destroyed.

use super::super::all_netns::{buffer_total, descriptors_for_netns};
use super::super::follow::{self, StreamNotes};
use crate::command::{Command, ParsedWords, Prepared, ready};
use crate::flags::defs::Scope;
use crate::flags::request::Request;
use conntrack::events::{BUFFER_BYTES, EventsVia, FindNamespaces, FollowNat, NatEventStream, OtherNetnsOptions};
use engine::{Plan, RunError};
use host::{Namespaces, NetnsOwners, NetnsSearch};
use lookups::owners::readings::SessionReadings;
use lookups::session::Session;
use owners::EventOwners;
use record::Annotated;
use record::rows::{NatEventKind, NatEvents, nat_need};
use runtime::outcome::Outcome;
use sys::{BufferLimits, FoundNetns, Host};

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    name: "nat events",
    about: "Conntrack entries as they are created, changed and destroyed, until interrupted",
    examples: EXAMPLES,
    scope: Scope::ROWS
        .and(Scope::COLUMNS)
        .and(Scope::NAMES)
        .and(Scope::PLACES)
        .and(Scope::ALL_NETNS)
        .and(Scope::SHIP)
        .and(Scope::VIA)
        .and(Scope::OWNERS_VIA)
        .and(Scope::LASTS)
        .and(Scope::EVENTS),
    tables: &[tables::NAT_EVENTS],
    prepare: Some(prepare),
    ..Command::TABLE
};

const EXAMPLES: &str = "\
Examples:
  netwren nat events                                all events
  netwren nat events --event destroy                a session log: one row per ended connection, with bytes and duration
  netwren nat events -c session-log --to json:FILE  which client used which public address and port, and when
  netwren nat events --event new 'nat = dnat'       new connections to published ports
  netwren nat events -c event,client,published,process,pid   with the local process of each connection
  netwren nat events --all-netns -o json            all namespaces of the host
  netwren nat events --event new --cost             new entries via BPF: at any rate, without cost for senders
";

/// A word for `--columns`: one line at the end of each session, with the data that RFC 6302 and RFC 7422 require.
const SESSION_LOG: &str = "session-log";
/// Start, end, protocol, internal and external address and port, destination.
const SESSION_LOG_COLUMNS: &str = "start,time,proto,client,external,published";

/// A parsed `nat events`.
#[derive(Debug)]
struct Events {
    /// The selected rows and their format.
    request: Request,
    /// `--via`
    via: Option<EventsVia>,
    /// `--buffer` in bytes.
    buffer: u32,
    /// `--buffer-total` in bytes.
    buffer_total: u64,
    /// `--resync`
    resync: bool,
}

fn prepare(line: &ParsedWords<'_>) -> Prepared<'static> {
    let events = asked(line)?;
    let plan = follow::plan_of(&events.request)?;
    ready(move || followed(&events, &plan))
}

fn asked(line: &ParsedWords<'_>) -> Result<Events, String> {
    let mut request = Request::of(line)?;
    let resync = line.has("resync");
    let is_session_log = request.shown.columns.as_deref() == Some(SESSION_LOG);
    if is_session_log {
        request.shown.columns = Some(SESSION_LOG_COLUMNS.to_owned());
    }
    let events = line.value("event").or_else(|| is_session_log.then(|| NatEventKind::Destroy.name()));
    if let Some(words) = events {
        request.shown.filter = with_events(words, resync, &request.shown.filter)?;
    }
    // At least the kernel's minimum for sockets, at most what fits into its number.
    let buffer = line.bytes("buffer", 1 << 12..=1 << 30)?.unwrap_or(BUFFER_BYTES);
    let buffer_total = buffer_total(line)?;
    Ok(Events { via: via_of(request.via)?, buffer, buffer_total, resync, request })
}

/// The filter combined with the events of `--event`; `--resync` also shows the entries that it finds alive.
fn with_events(words: &str, resync: bool, filter: &str) -> Result<String, String> {
    let mut words: Vec<&str> = words.split(',').map(str::trim).collect();
    if let Some(word) = words.iter().find(|word| !NatEventKind::NAMES.contains(word)) {
        return Err(format!("--event takes {}, not `{word}`", NatEventKind::NAMES.join(", ")));
    }
    let live = NatEventKind::Live.name();
    if resync && !words.contains(&live) {
        words.push(live);
    }
    let events = format!("event in ({})", words.join(", "));
    Ok(if filter.trim().is_empty() { events } else { format!("{events} and ({filter})") })
}

fn followed(events: &Events, plan: &Plan<NatEvents>) -> Outcome {
    let has_owners = plan.demand().need & nat_need::OWNERS != 0;
    follow::run(&events.request, plan, |session, then| {
        let stop = || follow::is_over(&events.request, session);
        let follow = FollowNat { always_new: has_owners, ..place_of(events, session, &stop) };
        let mut stream = NatEventStream::open(session.host(), plan.demand(), follow).map_err(RunError::Source)?;
        let words = StreamNotes {
            caveat: stream.caveat(),
            cost: stream.bpf_refusal().map(not_by_bpf).into_iter().collect(),
            reread: None,
        };
        if !has_owners {
            return then(&mut stream, words);
        }
        let shows = [NatEventKind::New, NatEventKind::Destroy].map(|kind| stream.shows_kind(kind));
        then(&mut Annotated::new(&mut stream, EventOwners::new(SessionReadings::new(session), shows)), words)
    })
}

fn not_by_bpf(why: &str) -> String {
    format!("new entries were not reported via BPF: {why}")
}

fn place_of<'h>(events: &Events, session: &'h Session, stop: &'h dyn Fn() -> bool) -> FollowNat<'h> {
    let everywhere = events.request.all_netns;
    let own = session.netns_id();
    let others = || OtherNetnsOptions {
        find: finder(),
        buffers: BufferLimits { bytes: events.buffer_total, sockets: descriptors_for_netns(1) },
    };
    FollowNat {
        via: events.via,
        buffer_bytes: events.buffer,
        netns_id: own,
        find: everywhere.then(others),
        resync: events.resync.then(|| if everywhere { finder() } else { alone(own) }),
        always_new: false,
        stop,
    }
}

/// Finds only the session's own namespace, which need not be entered.
fn alone(own: u64) -> FindNamespaces {
    Box::new(move || vec![FoundNetns::current(own)])
}

/// Returns a function that finds all namespaces. The function does not use the session's host, because it runs on the
/// reader's thread and its results go into the recording with the events. The first call also searches threads and
/// descriptors; later calls keep what still leads to a namespace.
fn finder() -> FindNamespaces {
    let (mut owners, mut known) = (NetnsOwners::default(), None::<Namespaces>);
    Box::new(move || {
        let search = NetnsSearch { listed: None, holders: known.is_none(), before: known.as_ref() };
        let (Ok(found), Ok(own)) = (Namespaces::search(&Host::live(), &search), sys::netns::current_inode()) else {
            return Vec::new();
        };
        owners.found(known.insert(found), own)
    })
}

/// The backend for the word of `--via`.
fn via_of(via: Option<record::Via>) -> Result<Option<EventsVia>, String> {
    match via {
        None => Ok(None),
        Some(record::Via::Netlink) => Ok(Some(EventsVia::Netlink)),
        Some(record::Via::Bpf) => Ok(Some(EventsVia::Bpf)),
        Some(record::Via::Proc) => Err("/proc reports no events: --via takes netlink or bpf here".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::flags::parser;

    fn parse(line: &str) -> Result<Events, clap::Error> {
        parser::parse_line(&COMMAND, line, asked)
    }

    #[test]
    fn words_become_a_filter_and_numbers() {
        let events = parse("--event new,destroy orig_dport = 53 --buffer 64k --resync --via netlink").unwrap();
        assert_eq!(events.request.shown.filter, "event in (new, destroy, live) and (orig_dport = 53)");
        assert_eq!((events.buffer, events.resync, events.via), (65_536, true, Some(EventsVia::Netlink)));
        let plain = parse("").unwrap();
        assert_eq!((plain.request.shown.filter.as_str(), plain.buffer, plain.via), ("", BUFFER_BYTES, None));
        assert_eq!(parse("--buffer 1GiB").unwrap().buffer, 1 << 30);
    }

    #[test]
    fn contradictory_flags_are_refused() {
        for (line, says) in [
            ("--event gone", "--event takes new, update, destroy, live, not `gone`"),
            ("--buffer 12parsecs", "--buffer takes bytes"),
            ("--buffer 5GiB", "--buffer takes bytes"),
            ("--buffer 1", "--buffer takes bytes"),
            ("--via proc", "/proc reports no events"),
            ("--by client", "--by cannot be used with"),
            ("--watch", "--watch cannot be used with"),
            ("--sort time", "--sort cannot be used with"),
        ] {
            let said = parse(line).unwrap_err().to_string();
            assert!(said.contains(says), "{line}: {said}");
        }
    }
}
