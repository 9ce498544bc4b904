//! `netwren log`: shows packets that rules log, as they arrive.

pub(crate) mod check;
mod missing_group;
pub(crate) mod setup;
pub(crate) mod status;
pub(crate) mod tail;
pub(crate) mod top;

use super::all_netns::{buffer_total, descriptors_for_netns};
use super::follow::{self, StreamNotes};
use super::reloading::Reread;
use crate::command::{Command, ParsedWords, Prepared, Refusal, ready};
use crate::config::Config;
use crate::flags::comment::ship_notes;
use crate::flags::defs::Scope;
use crate::flags::request::Request;
use engine::{Plan, RunError};
use export::{Format, Target};
use lookups::log_groups;
use lookups::packet_entries::RecordEntries;
use lookups::record_annotators::RecordAnnotators;
use lookups::session::Session;
use nflog::{FollowLog, LogStream, Preview, WantedParts};
use packet_files::notes::check_fields;
use record::rows::LogRecords;
use record::{Accounting, Field, Kind, SourceError, SourceFault};
use runtime::messages::print_message;
use runtime::outcome::Outcome;
use shipping::RepeatRequest;
use shipping::ShipRequest;
use shipping::service::Inheritance;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use sys::BufferLimits;

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    name: "log",
    about: "Packets logged by rules (nft `log group`, iptables NFLOG), until interrupted",
    examples: EXAMPLES,
    scope: Scope::ROWS
        .and(Scope::LASTS)
        .and(Scope::COLUMNS)
        .and(Scope::NAMES)
        .and(Scope::PLACES)
        .and(Scope::ALL_NETNS)
        .and(Scope::LOG)
        .and(Scope::LOG_SERVICE)
        .and(Scope::SHIP),
    tables: &[tables::LOG_RECORDS],
    prepare: Some(prepare),
    ..Command::TABLE
};

const EXAMPLES: &str = "\
Examples:
  netwren log --group 1                             packets logged by rules with `log group 1`
  netwren log --group 1,5 'hook = input and dport = 22'   two groups: attempts to connect to ssh
  netwren log --group 1 -o json --limit 1000        1,000 records, one object per line
  netwren log --group 1 -c +mark,user,ttl --resolve     more columns, and host names
  netwren log --group 1 -c +rule_comment,rule 'rule_chain = input'   the rule that logged the packet, from nft
  netwren log --group 1 -c +ct_state,nat,client,published,backend   the packet's connection, before and after NAT
  netwren log --group 1 -c +process,pid,container   the process that sent or receives the packet
  netwren log --group 100 --all-netns -c +netns     that group in all network namespaces
  netwren log --group 1 --latency 1s --buffer 64MiB     cheaper, with room for longer bursts
  netwren log --group 1 --to json:FILE --fold 10s --rate 1000/s   a port scan becomes a few rows
  netwren log --config /etc/netwren/log.toml        options from a file; docs/log.toml explains every key
  netwren log --group 1 --record FILE               for later analysis with --replay FILE
";

/// A parsed `log`.
#[derive(Debug)]
struct Log {
    /// The selected rows and their format.
    request: Request,
    /// `--group`
    groups: Vec<u16>,
    /// `--latency`
    latency: Duration,
    /// `--copy` in bytes.
    copy_bytes: u32,
    /// The part of each packet to read; a reload may change it.
    wanted: Arc<WantedParts>,
    /// `--buffer` in bytes.
    buffer_bytes: u32,
    /// `--buffer-total` in bytes.
    buffer_total: u64,
    /// `--take-over`
    take_over: bool,
}

/// True if packets are only stored, unchanged, in files of these formats.
fn stores_only(request: &Request, formats: &[Format]) -> bool {
    let (Some(ship), shown) = (&request.ship, &request.shown) else { return false };
    ship.targets.iter().all(|target| formats.contains(&target.format))
        && ship.repeats == RepeatRequest::default()
        && shown.filter.is_empty()
        && shown.columns.is_none()
}

impl Log {
    /// Adds the parts of records that the outputs need to what the reader wants. A reload removes none except bytes of
    /// packets, because if it is refused, the previous outputs continue.
    fn add_wanted(&self, wanted: &WantedParts) {
        wanted.copy_bytes.store(self.copy_bytes, Relaxed);
        wanted.headers.fetch_or(!stores_only(&self.request, &[Format::Pcap, Format::Pcapng]), Relaxed);
        // Blocks of pcapng contain their interface's name.
        wanted.link.fetch_or(!stores_only(&self.request, &[Format::Pcap]), Relaxed);
    }

    /// Returns how many sockets other namespaces may use.
    fn other_sockets(&self) -> u64 {
        if self.request.all_netns { descriptors_for_netns(1) } else { 0 }
    }

    /// The log stream to follow, until `stop`.
    fn follow<'h>(
        &self,
        session: &Session,
        annotators: &'h RecordAnnotators<'_>,
        stop: &'h dyn Fn() -> bool,
    ) -> FollowLog<'h> {
        self.add_wanted(&self.wanted);
        FollowLog {
            groups: self.groups.clone(),
            wanted: Arc::clone(&self.wanted),
            latency: self.latency,
            buffer_bytes: self.buffer_bytes,
            netns_id: session.netns_id(),
            others: log_groups::find_other_netns(session),
            other_buffers: BufferLimits { bytes: self.buffer_total, sockets: self.other_sockets() },
            stop,
            lost: session.run().count_lost(),
            succession: Default::default(),
            entries: annotators.entries.as_ref().is_some_and(RecordEntries::are_sent),
            preview: annotators.entries.as_ref().map(|entries| entries as &dyn Preview),
        }
    }
}

fn prepare<'w>(line: &'w ParsedWords<'w>) -> Prepared<'w> {
    let read: Box<ReadConfig<'w>> = match (line.part, line.file("config")) {
        (Some(part), _) => Box::new(|| part.read()),
        (None, Some(file)) => Box::new(|| Config::read(file, &COMMAND)),
        (None, None) => {
            let (log, plan) = asked_and_planned(line)?;
            return ready(move || followed(&log, &plan, None));
        }
    };
    let config = read().map_err(Refusal::Outcome)?;
    let (log, plan) = config.parse(line, asked_and_planned).map_err(Refusal::Outcome)?;
    ready(move || {
        if line.part.is_none() {
            // The agent warns about its file.
            config.warn();
        }
        let (wanted, config) = (Arc::clone(&log.wanted), RefCell::new(config));
        followed(&log, &plan, Some(&|| reread(&read, line, &config, &wanted)))
    })
}

/// Reads the configuration.
type ReadConfig<'r> = dyn Fn() -> Result<Config, Outcome> + 'r;

/// Settings that a reload changes: those of outputs, and the part of each packet for them.
const RELOADED: [&str; 15] = [
    "copy",
    "to",
    "when-full",
    "queue-max",
    "spool",
    "spool-max",
    "spool-age",
    "spool-sync",
    "tls-ca",
    "tls-cert",
    "tls-key",
    "rotate-size",
    "rotate-age",
    "rotate-keep",
    "rotate-zstd",
];

/// Reads the file again, to replace `before`. Reports changed settings that require a restart. New packet files get
/// whole packets.
fn reread(
    read: &ReadConfig<'_>,
    line: &ParsedWords<'_>,
    before: &RefCell<Config>,
    wanted: &WantedParts,
) -> Result<Request, String> {
    let said = |outcome: Outcome| outcome.messages.join("\n");
    let now = read().map_err(said)?;
    now.warn();
    let (log, _) = now.parse(line, asked_and_planned).map_err(said)?;
    log.add_wanted(wanted);
    let waiting: Vec<&str> = now.changed(&before.borrow()).into_iter().filter(|key| !RELOADED.contains(key)).collect();
    if !waiting.is_empty() {
        let keys = waiting.join("`, `");
        print_message(&format!(
            "`{keys}`: a change takes effect at the next start (restarting the service loses no record)"
        ));
    }
    before.replace(now);
    Ok(log.request)
}

/// Runs `log` with these words, but ships according to `ship`, for the ulogd2 face.
pub(crate) fn run_shipping(line: &ParsedWords<'_>, ship: &ShipRequest) -> Result<Outcome, String> {
    let planned = || {
        let mut log = asked(line)?;
        log.request.ship = Some(ship.clone());
        let plan = follow::plan_of(&log.request)?;
        Ok::<_, Refusal>((log, plan))
    };
    match planned() {
        Ok((log, plan)) => Ok(followed(&log, &plan, None)),
        Err(refusal) => refusal.into_outcome(),
    }
}

/// Parses the words and makes the plan of their rows.
fn asked_and_planned(line: &ParsedWords<'_>) -> Result<(Log, Plan<LogRecords>), Refusal> {
    let log = asked(line)?;
    let plan = follow::plan_of(&log.request)?;
    Ok((log, plan))
}

fn asked(line: &ParsedWords<'_>) -> Result<Log, Refusal> {
    let mut request = Request::of(line)?;
    if let Some(fields) = line.value("comment") {
        let is_text = |field: &Field<LogRecords>| !matches!(field.kind, Kind::Owners | Kind::Time);
        check_fields::<LogRecords>(
            fields,
            is_text,
            "fields except time and owners, such as process,container,nat,client",
        )?;
        ship_notes(&mut request, fields)?;
    }
    if line.has("take-over") && request.ship.as_ref().is_none_or(|ship| ship.control.is_none()) {
        let wrong = "--take-over needs --to, and --control FILE of the run whose groups it takes over";
        return Err(wrong.to_owned().into());
    }
    Ok(Log {
        take_over: line.has("take-over"),
        buffer_total: buffer_total(line)?,
        groups: groups(line)?,
        latency: line.value("latency").map_or(Ok(nflog::LATENCY), latency)?,
        copy_bytes: match line.bytes("copy", 20..=COPY_MAX)?.filter(|_| line.is_given("copy")) {
            Some(bytes) => bytes,
            None => copy_bytes(&request),
        },
        wanted: Arc::default(),
        buffer_bytes: line.bytes("buffer", 1 << 12..=1 << 30)?.unwrap_or(nflog::BUFFER_BYTES),
        request,
    })
}

/// Maximum number of bytes that the kernel copies of a packet.
const COPY_MAX: u32 = 65_535;

/// The default number of bytes: headers, unless a target stores packets.
fn copy_bytes(request: &Request) -> u32 {
    let stores = |target: &Target| matches!(target.format, Format::Pcap | Format::Pcapng);
    let stores = request.ship.as_ref().is_some_and(|ship| ship.targets.iter().any(stores));
    if stores { COPY_MAX } else { nflog::COPY_BYTES }
}

/// The message about `--all-netns` at the start.
const AS_FOUND: &str = "network namespaces that are created later are read once they are found, which may take a \
                        second: records before that are not counted";

/// Parses the numbers of `--group`.
fn groups(line: &ParsedWords<'_>) -> Result<Vec<u16>, Refusal> {
    let Some(list) = line.value("group") else {
        let is_here = !["netns", "all-netns", "replay", "config"].iter().any(|flag| line.is_given(flag));
        return Err(Refusal::OfHost(match is_here {
            true => || missing_group::describe(&log_groups::list_groups()),
            false => || missing_group::describe(&BTreeMap::new()),
        }));
    };
    let number = |word: &str| {
        let number = word.trim().parse::<u16>();
        number.map_err(|_| format!("--group takes numbers from 0 to 65535, separated by commas, not `{list}`"))
    };
    let mut groups: Vec<u16> = list.split(',').map(number).collect::<Result<_, _>>()?;
    groups.sort_unstable();
    groups.dedup();
    if groups.len() > GROUPS_MAX {
        return Err(format!("--group takes at most {GROUPS_MAX} groups, not {}", groups.len()).into());
    }
    Ok(groups)
}

/// Limited, because each group has a socket with a buffer.
///
/// Bound: log groups of a run. Beyond: further groups are refused. By: the user.
const GROUPS_MAX: usize = 1000;

/// Valid values of `--latency` in milliseconds.
const LATENCY_MS: std::ops::RangeInclusive<u64> = 10..=10_000;

fn latency(text: &str) -> Result<Duration, String> {
    let number = |digits: &str| digits.parse::<u64>().ok();
    let ms = match text.strip_suffix("ms") {
        Some(digits) => number(digits),
        None => text.strip_suffix('s').and_then(number).and_then(|seconds| seconds.checked_mul(1000)),
    };
    let (least, most) = (LATENCY_MS.start(), LATENCY_MS.end() / 1000);
    let ms = ms.filter(|ms| LATENCY_MS.contains(ms));
    ms.map(Duration::from_millis)
        .ok_or_else(|| format!("--latency takes {least}ms to {most}s, such as 50ms or 1s, not `{text}`"))
}

fn followed(log: &Log, plan: &Plan<LogRecords>, reread: Option<&Reread<'_>>) -> Outcome {
    follow::run(&log.request, plan, |session, then| {
        if reread.is_some() && log.request.ship.is_some() {
            session.run().expect_reloads();
        }
        let mut inheritance = inheritance(log, session).map_err(RunError::Source)?;
        // Errors are reported when lookups are read.
        session.find_namespaces(None, &mut Accounting::default());
        let annotators = RecordAnnotators::open(session, plan.demand(), log.latency);
        let stop = || {
            annotators.refresh();
            follow::is_over(&log.request, session)
        };
        let follow = FollowLog {
            succession: inheritance.as_mut().map(Inheritance::succession).unwrap_or_default(),
            ..log.follow(session, &annotators, &stop)
        };
        let opened = LogStream::open(session.host(), follow);
        let mut stream = opened.map_err(|error| RunError::Source(log_groups::name_holder(session, error)))?;
        if let Some(inheritance) = &mut inheritance {
            inheritance.settle(&stream, &stop);
        }
        let caveat = log.request.all_netns.then(|| AS_FOUND.to_owned());
        let notes = StreamNotes { caveat, cost: Vec::new(), reread };
        then(&mut *annotators.annotate(&mut stream), notes)
    })
}

/// The sockets left by an earlier run; None in a replay, or with `--explain`.
fn inheritance(log: &Log, session: &Session) -> Result<Option<Inheritance>, SourceError> {
    if session.host().is_replay() || log.request.explain {
        return Ok(None);
    }
    let mut found = Inheritance::kept(session.run(), session.netns_id());
    let control = log.request.ship.as_ref().and_then(|ship| ship.control.as_deref());
    if let Some(control) = control.filter(|_| log.take_over) {
        let failed = |text: String| SourceError { what: "log records", fault: SourceFault::Io, cause: text.into() };
        found.take_over(control, &|| session.interrupted()).map_err(failed)?;
    }
    Ok(Some(found))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::flags::parser;

    fn parse(line: &str) -> Result<Log, clap::Error> {
        parser::parse_line(&COMMAND, line, |words| asked(words).map_err(Refusal::into_text))
    }

    #[test]
    fn words_become_numbers() {
        let log = parse("--group 5,1,5 dport = 22 --latency 1s --copy 1KiB --buffer 64k").unwrap();
        assert_eq!((log.groups, log.latency), (vec![1, 5], Duration::from_secs(1)));
        assert_eq!((log.copy_bytes, log.buffer_bytes, log.request.shown.filter.as_str()), (1024, 65_536, "dport = 22"));
        let plain = parse("--group 0").unwrap();
        assert_eq!((plain.groups, plain.latency), (vec![0], nflog::LATENCY));
        assert_eq!((plain.copy_bytes, plain.buffer_bytes), (nflog::COPY_BYTES, nflog::BUFFER_BYTES));
    }

    #[test]
    fn files_of_packets_have_whole_packets() {
        let copied = |line: &str| parse(line).unwrap().copy_bytes;
        assert_eq!(copied("--group 1 --to json:/tmp/x"), nflog::COPY_BYTES);
        assert_eq!(copied("--group 1 --to json:/tmp/x --to pcap:/tmp/y"), COPY_MAX);
        assert_eq!(copied("--group 1 --to pcapng:/tmp/y --copy 64"), 64);
        for (line, headers, link) in [
            ("--group 1", true, true),
            ("--group 1 --to pcap:/tmp/y", false, false),
            ("--group 1 --to pcap:/tmp/y --to pcapng:/tmp/z", false, true),
            ("--group 1 --to pcap:/tmp/y dport = 53", true, true),
            ("--group 1 --to pcap:/tmp/y -c +rule", true, true),
            ("--group 1 --to pcap:/tmp/y --rate 10/s", true, true),
            ("--group 1 --to pcap:/tmp/y --to json:/tmp/x", true, true),
        ] {
            let log = parse(line).unwrap();
            log.add_wanted(&log.wanted);
            let wanted = &log.wanted;
            assert_eq!((wanted.headers.load(Relaxed), wanted.link.load(Relaxed)), (headers, link), "{line}");
        }
    }

    #[test]
    fn contradictory_flags_are_refused() {
        for (line, says) in [
            ("", "log needs --group N"),
            ("--group 65536", "--group takes numbers from 0 to 65535"),
            ("--group 1,", "--group takes numbers"),
            ("--group 1 --latency 5ms", "--latency takes 10ms to 10s"),
            ("--group 1 --latency soon", "--latency takes 10ms to 10s"),
            ("--group 1 --copy 1", "--copy takes bytes from 20 to 65535"),
            ("--group 1 --buffer 1", "--buffer takes bytes from 4KiB to"),
            ("--group 1 --comment nat", "--comment needs a pcapng file"),
            ("--group 1 --to pcapng:x --comment tea", "--comment takes fields except time and owners"),
            ("--group 1 --take-over", "--take-over needs --to, and --control FILE"),
            ("--group 1 --rotate-age 1d", "--rotate-age needs --to"),
            ("--group 1 --to json+tcp://a:1 --rotate-age 1d", "--rotate-age needs a file"),
            ("--group 1 --to json:x --rotate-keep 3", "--rotate-keep needs --rotate-size or --rotate-age"),
            ("--group 1 --to json:x --rotate-size 1k", "--rotate-size takes bytes, at least 1MiB"),
            ("--group 1 --to json:x --rotate-age 5s", "--rotate-age takes 1m to 3650d"),
            ("--group 1 --to json:x --tls-ca x", "--tls-ca needs a TLS receiver"),
            ("--group 1 --watch", "--watch cannot be used with"),
        ] {
            let said = parse(line).unwrap_err().to_string();
            assert!(said.contains(says), "{line}: {said}");
        }
    }
}
