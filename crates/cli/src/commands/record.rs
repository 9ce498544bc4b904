//! `netwren record FILE`: saves the host's entire state in one recording.
//!
//! It uses the other commands' sources with the widest demand. Only the reading matters, so the rows are discarded.
//! Each source is read once per round, because a replay plays the streams of a round in the recorded order.

use crate::command::{Command, Commands, ParsedWords, Positional, Prepared, SaveRound, SavedPart, ready};
use crate::flags::defs::Scope;
use crate::flags::request::PERIODS_S;
use host::{HostError, Ifaces, Links};
use lookups::long_work::{self, ProgressLine};
use lookups::pillars;
use lookups::recording_file;
use lookups::session::{Session, SessionTarget};
use record::Accounting;
use runtime::exit::Exit;
use runtime::messages::{footer_lines, print_message};
use runtime::outcome::Outcome;
use runtime::print;
use std::path::{Path, PathBuf};
use std::time::Duration;
use sys::{Errno, Host};

/// The interval between rounds.
const PERIOD: Duration = Duration::from_secs(1);

/// The default duration, which is long enough to see what grows.
const LONG: Duration = Duration::from_secs(10);

/// The default size limit. A million sockets with all of the kernel's data take about 0.8 GB per round; a typical host
/// takes some hundred kilobytes. At the limit the recording stops with a message and exit code 3.
///
/// Bound: bytes of a recording (`--max-size`). Beyond: the recording ends with exit code 3; small tables come first.
/// By: a local user with many sockets.
const SIZE_MAX: u64 = 1 << 30;

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    name: "record",
    about: "Record everything that netwren can show of this host to a file, for later analysis",
    examples: EXAMPLES,
    scope: Scope::RECORD,
    positional: Positional::File,
    prepare: Some(prepare),
    ..Command::TABLE
};

const EXAMPLES: &str = "\
Examples:
  netwren record incident.nw                       ten seconds, one round per second
  netwren record incident.nw --for 60              a minute
  netwren record incident.nw --once                one round
  netwren record incident.nw -N /proc/self/ns/net  only the current network namespace
  netwren --replay incident.nw                     the home screen as it was then
  netwren sockets --replay incident.nw state = established -c +rtt_us
  netwren flows --replay incident.nw --columns +bytes_out
  netwren nat --replay incident.nw
  netwren nat stats --watch --replay incident.nw   round by round
  netwren nat advise --replay incident.nw

A recording holds sockets with all their fields, listeners, connection tracking with its counters and settings, owners
with their command lines and containers, namespaces, links, addresses, routes and the kernel's counters, for all network
namespaces. It holds no events: `--follow` and `nat events` have their own `--record FILE`. Only its owner may read the
file: it contains addresses, process names and command lines. It is compressed with zstd at the end; an interrupted
`record` may leave it uncompressed, and netwren reads both.
";

/// A parsed `record`.
#[derive(Debug, PartialEq, Eq)]
struct RecordRequest {
    /// The file to write.
    file: PathBuf,
    /// The duration; zero for one round.
    length: Duration,
    /// Maximum size of the file in bytes, before compression.
    size_max: u64,
    /// `--netns`: records only this network namespace.
    netns: Option<String>,
}

/// The results of a round.
#[derive(Default)]
struct Counted {
    rounds: u64,
    namespaces: usize,
    /// Number of rows and their noun, in the order of the registry.
    rows: Vec<(u64, &'static str)>,
}

fn asked(words: &ParsedWords<'_>) -> Result<RecordRequest, String> {
    let length = words.seconds("for", PERIODS_S)?;
    if length.is_some() && words.has("once") {
        return Err("--for cannot be used with --once".to_owned());
    }
    let size_max = words.bytes("max-size", 1 << 16..=u64::MAX)?.unwrap_or(SIZE_MAX);
    let length = if words.has("once") { Duration::ZERO } else { length.unwrap_or(LONG) };
    let file = words.file("file").map(PathBuf::from).unwrap_or_default();
    Ok(RecordRequest { file, length, size_max, netns: words.text("netns") })
}

fn prepare(words: &ParsedWords<'_>) -> Prepared<'static> {
    let (asked, commands) = (asked(words)?, words.commands);
    ready(move || run(&asked, commands))
}

fn run(asked: &RecordRequest, commands: Commands) -> Outcome {
    let target = SessionTarget {
        netns: asked.netns.clone(),
        all_netns: asked.netns.is_none(),
        record: Some(asked.file.clone()),
        size_max: Some(asked.size_max),
        ..SessionTarget::default()
    };
    let session = match Session::open(target) {
        Ok(session) => session,
        Err(error) => return Outcome::with_message(error.exit(), error),
    };
    announce(asked);
    let mut stats = Accounting::default();
    let counted = rounds(&session, commands, asked.length, &mut stats);
    session.finish(&mut stats);
    let size = packed(&asked.file, &mut stats);
    let Counted { rounds, namespaces, rows } = counted;
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let rows: Vec<String> = rows.into_iter().map(|(count, rows)| format!("{count} {rows}")).collect();
    let printed = print::print_prose(&format!(
        "{}: {size}, {rounds} round{} of {namespaces} network namespace{}; in the last one {}\n",
        sys::escape_bytes(asked.file.as_os_str().as_encoded_bytes()),
        plural(usize::try_from(rounds).unwrap_or(usize::MAX)),
        plural(namespaces),
        rows.join(", "),
    ));
    let exit = if printed == Exit::Ok && stats.is_partial() { Exit::Partial } else { printed };
    Outcome { exit, messages: footer_lines(&stats) }
}

/// Compresses the finished file and returns its size as text. A file that cannot be compressed is kept and reported in
/// `stats`.
fn packed(file: &Path, stats: &mut Accounting) -> String {
    let size = |bytes: u64| match bytes / 1_000_000 {
        0 => format!("{} kB", bytes.div_ceil(1000)),
        mega => format!("{mega}.{} MB", bytes / 100_000 % 10),
    };
    let Ok(before) = std::fs::metadata(file).map(|facts| facts.len()) else { return "unknown size".to_owned() };
    if !recording_file::may_be_packed(before) {
        return size(before);
    }
    let line = ProgressLine;
    line.show(&format!("packing {} of recording", size(before)));
    match export::pack_in_place(file, Path::new("/proc/self/exe")) {
        Ok(after) => format!("{} ({} unpacked)", size(after), size(before)),
        Err(error) => {
            stats.add_reason(1, format!("the recording is not compressed: {error}"));
            size(before)
        }
    }
}

/// Announces the recorded host or namespace, the file, and the end of the run.
fn announce(asked: &RecordRequest) {
    let file = sys::escape_bytes(asked.file.as_os_str().as_encoded_bytes());
    let what = match &asked.netns {
        Some(name) => format!("network namespace {name}"),
        None => "every network namespace".to_owned(),
    };
    print_message(&match asked.length {
        Duration::ZERO => format!("recording one round of {what} in {file}"),
        length => format!("recording {what} in {file}, one round per second, {}", long_work::until(Some(length))),
    });
}

/// Reads a round every [`PERIOD`] until `length` is over, the user ends the run or the file is full.
fn rounds(session: &Session, commands: Commands, length: Duration, stats: &mut Accounting) -> Counted {
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let begun_ns = sys::clock::monotonic_ns();
    let end_ns = begun_ns.saturating_add(nanoseconds(length));
    let parts = commands.iter().rev().filter_map(|command| command.recorded);
    let mut parts: Vec<(SavedPart, SaveRound)> = parts.map(|part| (part, (part.open)())).collect();
    // Small parts come first, so that no user can fill the file with sockets before they are saved.
    parts.sort_by_key(|(part, _)| part.is_large);
    let (mut counted, progress) = (Counted::default(), ProgressLine);
    let mut now_ns = begun_ns;
    loop {
        session.host().begin_round();
        round(session, &mut parts, stats, &mut counted);
        counted.rounds += 1;
        let begun_s = now_ns.saturating_sub(begun_ns) / 1_000_000_000;
        progress.show(&format!("recording: {} rounds, {begun_s} of {} s", counted.rounds, length.as_secs_f64()));
        // The last round begins at the end of the duration, so that the file includes all growth until then.
        if now_ns >= end_ns || session.interrupted() || session.host().recording_has_stopped() {
            return counted;
        }
        let next_ns = begun_ns.saturating_add(nanoseconds(PERIOD).saturating_mul(counted.rounds));
        // If a round took longer than the period, the next one follows immediately.
        if !session.sleep_until(next_ns.min(end_ns)) {
            return counted;
        }
        now_ns = sys::clock::monotonic_ns();
    }
}

fn round(session: &Session, parts: &mut [(SavedPart, SaveRound)], stats: &mut Accounting, counted: &mut Counted) {
    pillars::find_namespaces(session, true, stats);
    counted.namespaces = session.namespaces().map_or(1, |namespaces| namespaces.list().len());
    session.in_each_namespace(&mut |netns_id| network(session.host(), netns_id, stats));
    counted.rows.clear();
    for (part, save) in parts {
        let count = save(session, stats);
        counted.rows.splice(..0, part.rows.map(|rows| (count, rows)));
    }
}

/// Reads the links, and the routes from /proc, of the calling thread's namespace.
fn network(host: &Host, netns_id: u64, stats: &mut Accounting) {
    let mut note = |result: Result<(), HostError>| match result {
        // The file is missing if IPv6 is turned off or the protocol is not built in.
        Ok(()) | Err(HostError::Sys(sys::SysError { errno: Errno::NOENT, .. })) => {}
        Err(error) => {
            stats.incomplete(1, error.to_string());
        }
    };
    note(Links::read(host, netns_id, None).and_then(|mut links| Ok(links.read_inet6(host, netns_id, None)?)));
    note(Ifaces::read(host, netns_id).map(drop));
    note(host::routes::Routes6::read(host, netns_id, None).map(drop).map_err(Into::into));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::flags::parser;

    fn parse(line: &str) -> Result<RecordRequest, clap::Error> {
        parser::parse_line(&COMMAND, line, asked)
    }

    #[test]
    fn a_file_and_how_long() {
        let file = PathBuf::from("f");
        assert_eq!(
            parse("f").unwrap(),
            RecordRequest { file: file.clone(), length: LONG, size_max: SIZE_MAX, netns: None }
        );
        assert_eq!(parse("f -N shop").unwrap().netns.as_deref(), Some("shop"));
        assert_eq!(parse("--once f").unwrap().length, Duration::ZERO);
        assert_eq!(parse("f --for 2.5s").unwrap().length, Duration::from_millis(2500));
        assert_eq!(parse("f --max-size 16MiB").unwrap().size_max, 16 << 20);
        for (line, says) in [
            ("", "<FILE>"),
            ("f --once --for 1", "cannot be used with"),
            ("f --for ever", "--for takes seconds"),
            ("f --max-size 1", "--max-size takes bytes"),
            ("f --max-size much", "--max-size takes bytes"),
        ] {
            assert!(parse(line).unwrap_err().to_string().contains(says), "{line}");
        }
    }
}
