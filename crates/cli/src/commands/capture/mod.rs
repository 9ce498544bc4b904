//! `netwren capture`: shows packets of interfaces as they arrive, and packets of files.

pub(crate) mod cut;
mod file;
mod filter;
pub(crate) mod lateness;
mod live;
pub(crate) mod merge;
mod needs;
mod printed;
mod program;
mod rotation;
pub(crate) mod stats;

use super::all_netns::buffer_total;
use super::follow;
use crate::command::{Command, ParsedWords, Prepared, Refusal, ready};
use crate::flags::comment::ship_notes;
use crate::flags::defs::Scope;
use crate::flags::request::Request;
use capture::{Delivery, Pacing};
use engine::{Plan, RunError};
use export::{Address, Format, Target, WhenFull};
use filter::{JoinedFilter, PcapFilter};
use packet_files::notes::check_fields;
use packet_files::{RotationRequest, UnopenedOutput, is_input, is_pcap};
use record::rows::{CapturedPackets, capture_need};
use record::{Field, Kind, LookupId};
use runtime::exit::Exit;
use runtime::outcome::Outcome;
use runtime::print;
use runtime::run_state::RunState;
use std::path::{Path, PathBuf};
use std::time::Duration;
use sys::packet_ring::StampClock;
use tables::{GroupRate, Repeat};

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    name: "capture",
    about: "Packets of interfaces, live until interrupted, or of files",
    examples: EXAMPLES,
    scope: SCOPE,
    refusals: REFUSALS,
    tables: &[tables::PACKETS],
    group_rates: RATES,
    prepare: Some(prepare),
    ..Command::TABLE
};

const SCOPE: Scope = Scope::ROWS
    .and(Scope::COLUMNS)
    .and(Scope::SORT)
    .and(Scope::BY)
    .and(Scope::FOLDS)
    .and(Scope::NAMES)
    .and(Scope::ALL_NETNS)
    .and(Scope::CAPTURE)
    .and(Scope::SHIP);

/// Rates per second of the groups in a round.
const RATES: &[GroupRate] = &[
    GroupRate { of: "count", name: "packets_per_s", kind: Kind::Count },
    GroupRate { of: "sum_len", name: "bytes_per_s", kind: Kind::Bytes },
];

const REFUSALS: &[(&str, &str)] = &[
    ("record", "capture records packets with --to pcapng:FILE, which other tools can read"),
    ("group", "capture shows packets of interfaces; `netwren log --group N` shows packets logged by rules"),
];

const EXAMPLES: &str = "\
Examples:
  netwren capture --for 1                           all packets of all interfaces for one second
  netwren capture -i lo port 53                     a filter in tcpdump's language
  netwren capture 'tcp port 443 and info ~ syn'     combined with comparisons of netwren's fields
  netwren capture -d 'tcp port 443'                 the BPF program that the kernel runs on each packet
  netwren capture -i lo 'sport = 53 or dport = 53'  DNS queries and answers
  netwren capture 'not iface = lo' -o json --limit 1000   1,000 packets, one object per line
  netwren capture 'tcp_flags ~ syn and dst in 10.0.0.0/8' -c +ttl,vlan   who connects to that network
  netwren capture --for 1 -c +src_process,src_pid,dst_process,dst_pid   sending and receiving processes
  netwren capture --for 1 'process = curl and port 443' -c +container   packets from and to a process
  netwren capture --for 1 'nat != none' -c +client,published,backend   addresses before and after NAT
  netwren capture --by process --watch --for 3      traffic of each process, every second
  netwren capture --by process,dst,dport --watch=5 --for 1 -o json   traffic of each process and service
  netwren capture --all-netns 'proto = icmp'        pings in all network namespaces
  netwren capture -i lo --to pcapng:FILE --rotate-size 100MiB   whole packets into up to eight files
  netwren capture --to json:FILE 'dport in (22, 3389)'  rows into a file; SIGUSR1 reports the counts so far
  netwren capture -r dump.pcap 'proto = tcp' -c +ttl   packets of a file: pcap or pcapng, also .gz and .zst
  netwren capture --for 1 -w all.pcapng port 53         whole packets into a file; .pcap for the older format
  netwren capture --for 1 -w all.pcapng --comment process,container   with processes as comments of each connection
  netwren capture --for 1 -w all.pcap --rotate-age 1h --rotate-keep 24   one file per hour, kept for a day
  netwren capture --for 1 -w all.pcapng --watch         counts every second: received, dropped, written
  netwren capture -r dump.pcap --by proto,dport --sum len   traffic by protocol and port
";

/// Valid range of `--for` in seconds, up to ten years.
const FOR_S: std::ops::RangeInclusive<f64> = 0.001..=315_360_000.0;
/// Valid range of the interval for showing counts.
const WATCH_S: std::ops::RangeInclusive<f64> = 0.1..=86_400.0;
/// Default ring sizes in bytes: for truncated packets, and for whole packets.
///
/// Bound: bytes of ring for each interface or namespace (`--buffer`). Beyond: packets of this interface or namespace
/// are lost and counted to the packet (exit code 3). By: any sender of packets that arrive faster than they are shown.
const BUFFER_BYTES: u32 = 16 << 20;
/// Bound: bytes of ring for whole packets of each interface or namespace. Beyond: packets of this interface or
/// namespace are lost and counted to the packet (exit code 3). By: any sender of packets that arrive faster than they
/// are written.
const WHOLE_BUFFER_BYTES: u32 = 64 << 20;
/// Each ring has the small size if there are more than this.
const RINGS_MANY: usize = 4;
/// Bound: bytes of such a ring where there are more than four. Beyond: packets of this interface or namespace are lost
/// and counted to the packet (exit code 3). By: any sender of packets that arrive faster than they are written.
const SMALL_BUFFER_BYTES: u32 = 4 << 20;
/// Maximum delay of a block of packets for a file in ms. Each block uses a kernel timer, even without packets.
const FILE_RETIRE_MS: u32 = 125;
/// The word for all interfaces.
const ANY: &str = "any";

/// A parsed `capture`.
#[derive(Debug)]
struct Capture {
    /// The selected rows and their format.
    request: Request,
    /// The part of FILTER in pcap-filter's language.
    filter: Option<PcapFilter>,
    /// `-d`, `-dd`, `-ddd`
    printed: Option<u8>,
    /// `-w`
    output: Option<PathBuf>,
    /// `--comment`: true if the columns are its fields.
    has_comments: bool,
    /// The `--rotate-…` flags for `-w`.
    rotation: Option<RotationRequest>,
    /// `-r`
    file: Option<PathBuf>,
    /// `-i`; empty for all.
    ifaces: Vec<String>,
    /// `--latency`
    latency: Latency,
    /// `--buffer`
    buffer_bytes: Option<u32>,
    /// `--buffer-total` in bytes.
    buffer_total: u64,
    /// `--snaplen`
    snaplen: Option<u32>,
    /// False with `--no-promiscuous`.
    promiscuous: bool,
    /// `--time-stamp-type`
    clock: StampClock,
    /// `--for`
    time: Option<Duration>,
    /// `--watch`
    watch: Option<Duration>,
    /// `-Z`
    user: Option<String>,
    /// The allowed delay of packets.
    is_verbose: bool,
}

/// How late packets may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Latency {
    Auto,
    /// Every packet immediately, always.
    None,
    Ms(u32),
}

fn prepare(line: &ParsedWords<'_>) -> Prepared<'static> {
    let capture = asked(line)?;
    if let Some(form) = capture.printed {
        let text = printed::program(&capture, form)?;
        return ready(move || print::print_prose(&text).into());
    }
    let plan = follow::plan_of(&capture.request)?;
    let needs = |bits: u64| plan.demand().need & bits != 0;
    let wrong = match capture.file.is_some() {
        _ if capture.output.is_some() && needs_names(&plan) => {
            "with --write, the filter can test only the contents of packets, not names that are looked up"
        }
        true if needs(capture_need::OWNERS) => {
            "processes are looked up on this host now: they are unknown with --read FILE"
        }
        true if needs(capture_need::ENTRY) => {
            "connections are looked up on this host now: they are unknown with --read FILE"
        }
        _ => {
            return ready(move || match &capture.file {
                Some(path) => file::shown(std::slice::from_ref(path), &capture, &plan),
                None => live::captured(&capture, &plan),
            });
        }
    };
    Err(Refusal::Outcome(Outcome::with_message(Exit::Usage, wrong)))
}

/// True if lookups need names that may appear during the capture.
fn needs_names(plan: &Plan<CapturedPackets>) -> bool {
    LookupId::ALL.into_iter().any(|id| id != LookupId::Netns && plan.needs_lookup(id))
}

fn asked(line: &ParsedWords<'_>) -> Result<Capture, String> {
    let mut request = Request::of(line)?;
    let file = line.file("read").map(PathBuf::from);
    of_one_kind(line, &request, file.is_some())?;
    let mut watch = None;
    if request.repeat != Repeat::Once {
        if request.shown.by.is_some() {
            in_rounds(&mut request);
        } else {
            watch = line.seconds("watch", WATCH_S)?;
            request.repeat = Repeat::Once;
        }
    }
    if let Some(ship) = request.ship.as_mut().filter(|_| file.is_some() && !line.is_given("when-full")) {
        // A file can wait, so data that receivers do not accept at once is not lost.
        ship.when_full = WhenFull::Block;
    }
    let snaplen = line.bytes("snaplen", 16..=capture::SNAPLEN_MAX)?;
    let ifaces: Vec<String> = line.values("interface").iter().map(|name| (*name).to_owned()).collect();
    let joined = JoinedFilter::of(&request)?;
    request.shown.filter = joined.fields;
    Ok(Capture {
        output: line.file("write").map(PathBuf::from),
        has_comments: comments(line, &mut request)?,
        rotation: rotation::parse_rotation(line)?,
        filter: joined.pcap,
        printed: Some(line.count("print-filter")).filter(|count| *count > 0),
        file,
        ifaces: if ifaces.iter().any(|name| name == ANY) { Vec::new() } else { unique(ifaces) },
        latency: latency(line.value("latency").unwrap_or("auto"))?,
        buffer_bytes: line.bytes("buffer", 1 << 16..=1 << 30)?,
        buffer_total: buffer_total(line)?,
        snaplen,
        promiscuous: !line.has("no-promiscuous"),
        clock: match line.value("time-stamp-type") {
            Some("adapter") => StampClock::Adapter,
            Some("adapter_unsynced") => StampClock::AdapterUnsynced,
            _ => StampClock::Host,
        },
        time: line.seconds("for", FOR_S)?,
        watch,
        user: line.value("relinquish-privileges").map(str::to_owned),
        is_verbose: line.has("verbose"),
        request,
    })
}

/// Adds the fields of `--comment` as columns; false if there are none. If packets are only written, uses a column that
/// costs nothing.
fn comments(line: &ParsedWords<'_>, request: &mut Request) -> Result<bool, String> {
    let Some(fields) = line.value("comment") else {
        if line.has_file("write") {
            request.shown.columns = Some(LENGTH.to_owned());
        }
        return Ok(false);
    };
    check_fields::<CapturedPackets>(fields, is_noted, NOTED)?;
    let Some(path) = line.file("write") else {
        ship_notes(request, fields)?;
        return Ok(false);
    };
    if is_pcap(Path::new(path)) {
        return Err("pcap cannot store comments: --comment needs a FILE that does not end in .pcap".to_owned());
    }
    request.shown.columns = Some(fields.to_owned());
    Ok(true)
}

/// True for fields that `--comment` accepts, which are not part of the packet itself.
fn is_noted(field: &Field<CapturedPackets>) -> bool {
    let is_of_ends = field.need & capture_need::OWNERS != 0 && field.kind != Kind::Owners;
    is_of_ends || field.need & capture_need::ENTRY != 0 || matches!(field.name, "netns" | "netns_id")
}

/// The names of these fields.
const NOTED: &str = "fields of both ends (process, pid, uid, user, container, pod, unit, cmdline, state, or these with \
                     src_, dst_), of the connection (nat, client, published, backend, orig_src … reply_dport, \
                     ct_state, ct_direction, ct_status, ct_mark, ct_id) and of the namespace (netns, netns_id)";

/// Groups of rounds show bytes and rates; the largest group comes first.
fn in_rounds(request: &mut Request) {
    let shown = &mut request.shown;
    let [sum, ..] = &mut shown.aggregates;
    match sum {
        Some(sum) if sum.split(',').any(|name| name.trim() == LENGTH) => {}
        Some(sum) => sum.push_str(",len"),
        None => *sum = Some(LENGTH.to_owned()),
    }
    shown.order = Some("sum_len:desc");
    if let Some(sort) = &mut shown.sort {
        // Sorting by a rate is the same as sorting by the value that it is computed from.
        for rate in RATES {
            *sort = sort.replace(rate.name, rate.of);
        }
    }
}

/// The bytes of a packet, which groups add up.
const LENGTH: &str = "len";

/// Rejects flags for interfaces when reading a file, and shipping of groups.
fn of_one_kind(line: &ParsedWords<'_>, request: &Request, is_file: bool) -> Result<(), String> {
    let live = [
        "interface",
        "latency",
        "buffer",
        "buffer-total",
        "no-promiscuous",
        "time-stamp-type",
        "for",
        "watch",
        "all-netns",
        "netns",
        "comment",
    ];
    if let Some(flag) = live.into_iter().find(|flag| is_file && line.is_given(flag)) {
        return Err(format!("--{flag} applies to interfaces, not to --read FILE"));
    }
    let shown = ["to", "by", "sort", "sum", "max", "avg", "columns", "output", "resolve", "no-header"];
    if let Some(flag) = shown.into_iter().find(|flag| line.has_file("write") && line.is_given(flag)) {
        let number = line.value("columns").filter(|value| value.parse::<u32>().is_ok() && flag == "columns");
        let limit = number.map(|number| format!("; --limit {number} (-n {number}) stops after this number of packets"));
        return Err(format!("--{flag} applies to shown rows, not to --write FILE{}", limit.unwrap_or_default()));
    }
    let is_read = |output: &Path| is_input(line.file("read"), output);
    if line.file("write").is_some_and(is_read) {
        return Err("--write would overwrite the input file".to_owned());
    }
    let mut targets = request.ship.iter().flat_map(|ship| &ship.targets);
    if targets.any(|target| matches!(&target.address, Address::File(path) if is_read(path))) {
        return Err("--to would append to the input file".to_owned());
    }
    let ordered = ["by", "sort"].into_iter().find(|flag| line.is_given(flag));
    match ordered.filter(|_| request.ship.is_some()) {
        Some(flag) => Err(format!("--{flag} applies to shown rows: --to ships packets as they arrive")),
        None => Ok(()),
    }
}

fn unique(mut names: Vec<String>) -> Vec<String> {
    names.sort_unstable();
    names.dedup();
    names
}

/// Maximum of `--latency` in milliseconds.
const LATENCY_MAX_MS: u32 = 1000;

fn latency(text: &str) -> Result<Latency, String> {
    let ms = || text.strip_suffix("ms")?.parse().ok().filter(|ms| (1..=LATENCY_MAX_MS).contains(ms));
    match (text, ms()) {
        ("auto", _) => Ok(Latency::Auto),
        ("0" | "0ms", _) => Ok(Latency::None),
        (_, Some(ms)) => Ok(Latency::Ms(ms)),
        _ => Err(format!("--latency takes auto, 0, or 1ms to {LATENCY_MAX_MS}ms, not `{text}`")),
    }
}

impl Capture {
    /// Prepares the output of `-w`; `None` without it.
    fn prepare_output(&self, run: &RunState) -> Result<Option<UnopenedOutput>, RunError> {
        let prepare = |path| UnopenedOutput::prepare(path, self.rotation.as_ref(), self.user.as_deref(), run);
        self.output.as_deref().map(prepare).transpose()
    }

    /// Number of bytes to capture of each packet: whole packets if a target stores packets.
    fn live_snaplen(&self) -> u32 {
        let stores = |target: &Target| matches!(target.format, Format::Pcap | Format::Pcapng);
        let stores =
            self.output.is_some() || self.request.ship.as_ref().is_some_and(|ship| ship.targets.iter().any(stores));
        self.snaplen.unwrap_or(if stores { capture::SNAPLEN_MAX } else { capture::SNAPLEN })
    }

    /// The delivery that the output needs: blocks for files, immediate packets for everything else.
    fn delivery(&self) -> Delivery {
        let sleep = match self.latency {
            Latency::Auto => Some(Pacing::AUTO),
            Latency::None => None,
            Latency::Ms(ms) => Some(Duration::from_millis(ms.into())),
        };
        let to_files = match &self.output {
            Some(path) => path != Path::new("-"),
            None => self.live_snaplen() > capture::SNAPLEN && self.request.ship.is_some(),
        };
        match self.latency {
            _ if !to_files => Delivery::AtOnce(Pacing::new(sleep)),
            Latency::Auto => Delivery::InBlocks { retire_ms: FILE_RETIRE_MS },
            Latency::None => Delivery::InBlocks { retire_ms: 1 },
            Latency::Ms(ms) => Delivery::InBlocks { retire_ms: ms },
        }
    }

    /// Size of each ring in bytes, for this number of rings.
    fn ring_bytes(&self, rings: usize) -> usize {
        let usual = match rings {
            0..=RINGS_MANY if self.live_snaplen() > capture::SNAPLEN => WHOLE_BUFFER_BYTES,
            0..=RINGS_MANY => BUFFER_BYTES,
            _ => SMALL_BUFFER_BYTES,
        };
        self.buffer_bytes.unwrap_or(usual) as usize
    }
}

/// The file that a copy of packets is written to.
fn output_file<'w>(words: &ParsedWords<'w>) -> Result<&'w Path, String> {
    words.file("write").ok_or_else(|| "no output file: add --write FILE".to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::flags::parser;

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
        assert_eq!((capture.live_snaplen(), capture.buffer_bytes, capture.promiscuous), (96, Some(1 << 20), false));
        assert_eq!((capture.time, capture.request.shown.filter.as_str()), (Some(Duration::from_secs(2)), "dport = 22"));
        let plain = parse("").unwrap();
        assert_eq!((plain.latency, plain.live_snaplen(), plain.promiscuous), (Latency::Auto, capture::SNAPLEN, true));
        assert_eq!((plain.ring_bytes(1), plain.ring_bytes(9)), (16 << 20, 4 << 20));
        assert!(parse("-i eth0 -i any").unwrap().ifaces.is_empty());
        assert_eq!(parse("--latency 0").unwrap().latency, Latency::None);
    }

    #[test]
    fn files_of_packets_have_whole_packets() {
        let capture = parse("--to pcapng:/tmp/x").unwrap();
        assert_eq!((capture.live_snaplen(), capture.ring_bytes(1)), (capture::SNAPLEN_MAX, 64 << 20));
        assert_eq!(parse("--to json:/tmp/x").unwrap().live_snaplen(), capture::SNAPLEN);
        let retire = |line: &str| match parse(line).unwrap().delivery() {
            Delivery::InBlocks { retire_ms } => Some(retire_ms),
            Delivery::AtOnce(_) => None,
        };
        assert_eq!(
            (retire("-w x"), retire("-w x --latency 5ms"), retire("--to pcap:x")),
            (Some(125), Some(5), Some(125))
        );
        assert_eq!((retire("-w -"), retire(""), retire("-s 9000"), retire("--to json:x")), (None, None, None, None));
        assert_eq!(parse("--to pcapng:/tmp/x -s 64").unwrap().live_snaplen(), 64);
    }

    #[test]
    fn notes_of_shipped_packets_are_columns() {
        let request = parse("--to pcapng:x -c src --comment nat,src_process,netns").unwrap().request;
        assert_eq!(request.shown.columns.as_deref(), Some("src,+nat,+src_process,+netns"));
        assert_eq!(request.ship.unwrap().comment.as_deref(), Some("nat,src_process,netns"));
    }

    #[test]
    fn groups_of_rounds_have_bytes_and_an_order() {
        let shown = |line: &str| {
            let shown = parse(line).unwrap().request.shown;
            let [sum, ..] = shown.aggregates;
            (sum.unwrap(), shown.sort.or(shown.order.map(str::to_owned)).unwrap())
        };
        let of = |sum: &str, sort: &str| (sum.to_owned(), sort.to_owned());
        assert_eq!(shown("--by process --watch"), of("len", "sum_len:desc"));
        assert_eq!(shown("--by process --watch --sum caplen"), of("caplen,len", "sum_len:desc"));
        assert_eq!(shown("--by pid --watch=2 --sum len --sort packets_per_s:desc,pid"), of("len", "count:desc,pid"));
    }

    #[test]
    fn contradictory_flags_are_refused() {
        for (line, says) in [
            ("--latency 5", "--latency takes auto, 0, or 1ms to 1000ms, not `5`"),
            ("--latency 0.5ms", "--latency takes"),
            ("--snaplen 300000", "--snaplen takes bytes from 16 to 256KiB"),
            ("--buffer 1k", "--buffer takes bytes from 64KiB to"),
            ("--for x", "--for takes seconds"),
            ("-r x -i lo", "--interface applies to interfaces, not to --read FILE"),
            ("-r x --by proto --to json:/tmp/x", "--by applies to shown rows"),
            ("--comment process", "--comment needs a pcapng file"),
            ("--comment process --to json:x", "--comment needs a pcapng file"),
            ("-w x --comment owners", "--comment takes fields of both ends"),
            ("-w x --comment ,", "--comment takes fields, such as process,container"),
            ("-w x.pcap --comment process", "pcap cannot store comments"),
            ("-w x --comment len", "--comment takes fields of both ends"),
            ("-r y -w x --comment process", "--comment applies to interfaces"),
            ("-r x --by proto --watch", "--watch applies to interfaces"),
            ("--to json:x --by proto --watch", "--by applies to shown rows"),
            ("--rotate-packets 5", "--rotate-packets needs --write FILE"),
            ("-w - --rotate-size 1MiB", "--rotate-size needs a file name"),
            ("-w x --rotate-keep 5", "--rotate-keep needs --rotate-size, --rotate-age or --rotate-packets"),
            ("-w x --rotate-command gzip", "--rotate-command needs --rotate-size"),
            ("-w x --rotate-age 1h --rotate-keep 1 --rotate-command gzip", "--rotate-command needs at least 2"),
            ("-w x --rotate-age 1h --rotate-zstd", "--rotate-zstd needs --to; with --write, a FILE that ends in"),
            ("-w x --rotate-packets 0", "--rotate-packets takes a number of packets"),
            ("--record x", "capture records packets with --to pcapng:FILE"),
        ] {
            let said = parse(line).unwrap_err().to_string();
            assert!(said.contains(says), "{line}: {said}");
        }
    }
}
