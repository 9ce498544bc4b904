//! `netwren capture`: packets of interfaces, as they come.

use super::follow::{self, StreamNotes, Then};
use super::plan::of_request;
use crate::command::{Command, ParsedWords, TableEntry};
use crate::exit::Exit;
use crate::flags::defs::Scope;
use crate::flags::parser;
use crate::flags::request::Request;
use crate::messages::say;
use crate::outcome::Outcome;
use crate::session::Session;
use capture::{CapturePlace, FollowPackets, Pacing, PacketStream};
use engine::{Plan, Run, RunError};
use export::{Format, Target};
use host::{Links, Namespace, Namespaces};
use record::Accounting;
use record::rows::{CapturedPackets, Link};
use std::time::Duration;

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    name: "capture",
    about: "Packets of interfaces, as they come, until interrupted",
    examples: EXAMPLES,
    scope: Scope::ROWS.and(Scope::COLUMNS).and(Scope::NAMES).and(Scope::ALL_NETNS).and(Scope::CAPTURE).and(Scope::SHIP),
    refusals: REFUSALS,
    tables: &[TableEntry::of::<CapturedPackets>()],
    run: Some(run),
    ..Command::TABLE
};

const REFUSALS: &[(&str, &str)] = &[
    ("record", "packets are recorded by --to pcapng:FILE, which every reader of packets knows"),
    ("group", "capture sees packets of interfaces; those that rules log are shown by `netwren log --group N`"),
];

const EXAMPLES: &str = "\
Examples:
  netwren capture --for 1                           every packet of every interface, for a second
  netwren capture -i lo 'sport = 53 or dport = 53'  names that are asked for, and the answers
  netwren capture 'not iface = lo' -o json --limit 1000   a thousand packets, one object a line
  netwren capture 'tcp_flags ~ syn and dst in 10.0.0.0/8' -c +ttl,vlan   who connects there
  netwren capture --all-netns 'proto = icmp'        pings in every network namespace there is
  netwren capture -i lo --to pcapng:FILE --rotate-size 100MiB   whole packets into files, eight of them
  netwren capture --to json:FILE 'dport in (22, 3389)'  lines into a file; SIGUSR1 tells the figures so far
";

/// The longest time of `--for`: ten years.
const FOR_S: std::ops::RangeInclusive<f64> = 0.001..=315_360_000.0;
/// Room for what waits, where packets are cut; where they are whole.
const BUFFER_BYTES: u32 = 16 << 20;
const WHOLE_BUFFER_BYTES: u32 = 64 << 20;
/// With more rings than these each has this room.
const RINGS_MANY: usize = 4;
const SMALL_BUFFER_BYTES: u32 = 4 << 20;
/// How late a block of packets may be where latency is not said.
const RETIRE_MS: u32 = 10;
/// The word for all interfaces.
const ANY: &str = "any";

/// A parsed `capture`.
#[derive(Debug)]
struct Capture {
    /// What is chosen and how it is shown.
    request: Request,
    /// `-i`; none for all.
    ifaces: Vec<String>,
    /// `--latency`
    latency: Latency,
    /// `--buffer`
    buffer_bytes: Option<u32>,
    /// `--snaplen`
    snaplen: u32,
    /// `--no-promiscuous` was not given.
    promiscuous: bool,
    /// `--for`
    time: Option<Duration>,
}

/// How late packets may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Latency {
    Auto,
    /// Each packet at once, always.
    None,
    Ms(u32),
}

fn run(line: &ParsedWords<'_>) -> Result<Outcome, String> {
    let capture = asked(line)?;
    Ok(match of_request(&capture.request) {
        Ok(plan) => captured(&capture, &plan),
        Err(wrong) => Outcome::because(Exit::Usage, wrong),
    })
}

fn asked(line: &ParsedWords<'_>) -> Result<Capture, String> {
    let request = Request::of(line)?;
    let number = |flag, range| line.value(flag).map(|text| bytes(flag, text, range)).transpose();
    let snaplen = number("snaplen", 16..=capture::SNAPLEN_MAX)?;
    let ifaces: Vec<String> = line.values("interface").iter().map(|name| (*name).to_owned()).collect();
    Ok(Capture {
        ifaces: if ifaces.iter().any(|name| name == ANY) { Vec::new() } else { unique(ifaces) },
        latency: latency(line.value("latency").unwrap_or("auto"))?,
        buffer_bytes: number("buffer", 1 << 16..=1 << 30)?,
        snaplen: snaplen.unwrap_or_else(|| default_snaplen(&request)),
        promiscuous: !line.has("no-promiscuous"),
        time: line.seconds("for", FOR_S)?,
        request,
    })
}

fn unique(mut names: Vec<String>) -> Vec<String> {
    names.sort_unstable();
    names.dedup();
    names
}

/// Whole packets where a target stores packets.
fn default_snaplen(request: &Request) -> u32 {
    let stores = |target: &Target| matches!(target.format, Format::Pcap | Format::Pcapng);
    let stores = request.ship.as_ref().is_some_and(|ship| ship.targets.iter().any(stores));
    if stores { capture::SNAPLEN_MAX } else { capture::SNAPLEN }
}

fn latency(text: &str) -> Result<Latency, String> {
    let ms = || text.strip_suffix("ms")?.parse().ok().filter(|ms| (1..=1000).contains(ms));
    match (text, ms()) {
        ("auto", _) => Ok(Latency::Auto),
        ("0" | "0ms", _) => Ok(Latency::None),
        (_, Some(ms)) => Ok(Latency::Ms(ms)),
        _ => Err(format!("--latency takes auto, 0, or 1ms to 1000ms, not `{text}`")),
    }
}

fn bytes(flag: &str, text: &str, range: std::ops::RangeInclusive<u32>) -> Result<u32, String> {
    let number = parser::bytes(text).and_then(|number| u32::try_from(number).ok());
    let (least, most) = (*range.start(), *range.end());
    let number = number.filter(|number| range.contains(number));
    number.ok_or_else(|| format!("--{flag} takes {least} to {most} bytes, not `{text}`"))
}

impl Capture {
    fn pace(&self) -> Pacing {
        Pacing::new(match self.latency {
            Latency::Auto => Some(Pacing::AUTO),
            Latency::None => None,
            Latency::Ms(ms) => Some(Duration::from_millis(ms.into())),
        })
    }

    fn retire_ms(&self) -> u32 {
        match self.latency {
            Latency::Auto => RETIRE_MS,
            Latency::None => 1,
            Latency::Ms(ms) => ms,
        }
    }

    /// Bytes of each of so many rings.
    fn ring_bytes(&self, rings: usize) -> usize {
        let usual = match rings {
            0..=RINGS_MANY if self.snaplen > capture::SNAPLEN => WHOLE_BUFFER_BYTES,
            0..=RINGS_MANY => BUFFER_BYTES,
            _ => SMALL_BUFFER_BYTES,
        };
        self.buffer_bytes.unwrap_or(usual) as usize
    }
}

fn captured(capture: &Capture, plan: &Plan<CapturedPackets>) -> Outcome {
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
        let follow = FollowPackets {
            ifaces: capture.ifaces.clone(),
            places,
            pace: capture.pace(),
            retire_ms: capture.retire_ms(),
            buffer_bytes: capture.ring_bytes(rings),
            snaplen: capture.snaplen,
            promiscuous: capture.promiscuous,
            program: None,
            links: &links,
            say: &say,
            stop: &stop,
            reports: &sys::signal::reports,
        };
        let mut stream = PacketStream::open(follow).map_err(RunError::Source)?;
        shown(&mut stream, capture, then)
    })
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

/// What is said of `--all-netns` at the start.
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn parse(line: &str) -> Result<Capture, clap::Error> {
        parser::parse_line(&COMMAND, line, asked)
    }

    #[test]
    fn words_become_numbers() {
        let capture = parse(
            "-i eth1 -i eth0 -i eth1 dport = 22 --latency 5ms --snaplen 96 --buffer 1MiB --no-promiscuous --for 2",
        );
        let capture = capture.unwrap();
        assert_eq!((capture.ifaces.join(","), capture.latency), ("eth0,eth1".to_owned(), Latency::Ms(5)));
        assert_eq!((capture.snaplen, capture.buffer_bytes, capture.promiscuous), (96, Some(1 << 20), false));
        assert_eq!((capture.time, capture.request.shown.filter.as_str()), (Some(Duration::from_secs(2)), "dport = 22"));
        let plain = parse("").unwrap();
        assert_eq!((plain.latency, plain.snaplen, plain.promiscuous), (Latency::Auto, capture::SNAPLEN, true));
        assert_eq!((plain.ring_bytes(1), plain.ring_bytes(9)), (16 << 20, 4 << 20));
        assert!(parse("-i eth0 -i any").unwrap().ifaces.is_empty());
        assert_eq!(parse("--latency 0").unwrap().latency, Latency::None);
    }

    #[test]
    fn files_of_packets_have_whole_packets() {
        let capture = parse("--to pcapng:/tmp/x").unwrap();
        assert_eq!((capture.snaplen, capture.ring_bytes(1)), (capture::SNAPLEN_MAX, 64 << 20));
        assert_eq!(parse("--to json:/tmp/x").unwrap().snaplen, capture::SNAPLEN);
        assert_eq!(parse("--to pcapng:/tmp/x -s 64").unwrap().snaplen, 64);
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        for (line, says) in [
            ("--latency 5", "--latency takes auto, 0, or 1ms to 1000ms, not `5`"),
            ("--latency 0.5ms", "--latency takes"),
            ("--snaplen 300000", "--snaplen takes 16 to 262144 bytes"),
            ("--buffer 1k", "--buffer takes 65536 to"),
            ("--for x", "--for takes seconds"),
            ("--record x", "packets are recorded by --to pcapng:FILE"),
        ] {
            let said = parse(line).unwrap_err().to_string();
            assert!(said.contains(says), "{line}: {said}");
        }
    }
}
