//! `netwren drops [FILTER]`: packets that the kernel drops while the command runs, counted or individually.

mod counted;
mod events;
mod file;

use super::{follow, table};
use crate::command::{Command, ParsedWords, Prepared, SavedPart, ready};
use crate::flags::defs::Scope;
use crate::flags::request::{PERIODS_S, Request};
use ::drops::{DropsVia, SNAPLEN_MAX};
use counted::DropProvider;
use events::EventRequest;
use packet_files::is_pcap;
use record::Kind;
use record::rows::Drops;
use std::path::PathBuf;
use std::time::Duration;
use tables::{GroupRate, Repeat};

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    name: "drops",
    about: "Packets that the kernel drops: how many, why and where, and what that means",
    examples: EXAMPLES,
    scope: Scope::TABLE
        .without(Scope::LASTS)
        .without(Scope::WATCH)
        .and(Scope::OWNERS)
        .and(Scope::OWNERS_VIA)
        .and(Scope::USERS)
        .and(Scope::DROPS),
    refusals: &[("follow", "`drops` has no --follow: --watch shows rounds, --events each packet")],
    tables: &[tables::DROPS, tables::DROP_EVENTS],
    other_table: &OF_EVENTS,
    group_rates: &[GroupRate { of: "count", name: "per_s", kind: Kind::Thousandths }],
    recorded: Some(SavedPart { rows: None, is_large: true, open: counted::save_rounds }),
    prepare: Some(prepare),
    ..Command::TABLE
};

const EXAMPLES: &str = "\
Examples:
  netwren drops                                      until Ctrl-C: every second on a terminal, otherwise one table
  netwren drops --for 5                              drops of five seconds in this network namespace
  netwren drops --for 5 --all-netns -o wide          in all network namespaces, with remedies
  netwren drops 'reason = NETFILTER_DROP' --for 5    drops by rules and connection tracking
  netwren drops 'hook = forward or proto = udp' --for 5 --stack
  netwren drops --for 5 --all-netns -c count,reason,pid,container pid != null
  netwren drops --for 5 --by reason,place            groups with their packet counts
  netwren drops --for 5 --all 'benign = true'        routine drops only
  netwren drops --watch=2 --for 6 -o json
  netwren drops --for 5 'counted_in != packet'       losses that only counters show: SYNs, network cards, captures
  netwren drops --for 5 'counted_in in (driver, trap)'    drops by drivers and devices
  netwren drops --for 5 --via counters               without BPF: only the kernel's drop counters
  netwren drops --events --for 5 'dport = 53'        each packet: time, reason, place, addresses, ports
  netwren drops --events --for 5 --by src,dst,dport --limit 10    the flows with the most drops
  netwren drops -w drops.pcapng --for 5 'hook != null'    packets for Wireshark, with reason and place as comments
  netwren drops --for 5 'rule != null' -c count,rule,rule_basis,src,dport     drops by nft rule
Counting costs about 0.2 us per dropped packet, and nothing while no packets are dropped. It needs CAP_BPF and
CAP_PERFMON; function names need CAP_SYSLOG, nft rules CAP_NET_ADMIN. Without BPF, root can use the kernel's trace:
reason, place and EtherType only, for all network namespaces; otherwise its drop monitor (NET_DM), one message per
packet and one user at a time, with --events --via net-dm also for packets that hardware drops or traps. Without any of
these, the drop counters remain.
";

/// The flags that show single packets.
const OF_EVENTS: [&str; 2] = ["events", "write"];

/// The default of `--sum` with `--by`.
const SUMS: &str = "count,bytes";

fn prepare(words: &ParsedWords<'_>) -> Prepared<'static> {
    let mut request = Request::of(words)?;
    request.sample = words.seconds("for", PERIODS_S)?;
    if words.has("stack") {
        let columns = request.shown.columns.take();
        request.shown.columns = Some(columns.map_or("+stack".to_owned(), |columns| format!("{columns},stack")));
    }
    if OF_EVENTS.iter().any(|flag| words.is_given(flag)) {
        return prepare_events(request, words);
    }
    if words.value("snaplen").is_some() {
        return Err("--snaplen needs -w FILE".to_owned().into());
    }
    if words.value("exit-after").is_some() {
        return Err("--exit-after needs --events: counts have no order".to_owned().into());
    }
    let is_replay = request.replay.is_some();
    let is_endless = request.sample.is_none() && !is_replay && request.repeat == Repeat::Once;
    if is_endless && sys::term::is_terminal(sys::term::STDOUT) {
        request.repeat = Repeat::Every(Duration::from_secs(1));
    }
    if request.shown.by.is_some() && request.shown.aggregates.iter().all(Option::is_none) {
        request.shown.aggregates[0] = Some(SUMS.to_owned());
    }
    let (all, via) = (words.has("all"), via(words));
    table::prepare::<Drops, _>(request, |plan| Ok(DropProvider::new(all, via, plan.demand())))
}

fn prepare_events(mut request: Request, words: &ParsedWords<'_>) -> Prepared<'static> {
    if request.repeat != Repeat::Once && request.shown.by.is_none() {
        return Err("--watch with --events shows groups: it needs --by".to_owned().into());
    }
    if let Some(text) = words.value("exit-after") {
        if request.shown.limit.is_some() || request.shown.by.is_some() || request.shown.sort.is_some() {
            return Err("--exit-after cannot be used with --limit, --by and --sort".to_owned().into());
        }
        let packets = text.parse().ok().filter(|packets| *packets > 0);
        let wrong = || format!("--exit-after takes a number of packets, not `{text}`");
        request.shown.limit = Some(packets.ok_or_else(wrong)?);
    }
    if via(words) == Some(DropsVia::Counters) {
        return Err("--via counters shows no single packets: leave out --events and -w".to_owned().into());
    }
    let is_grouped = request.shown.by.is_some() || request.shown.sort.is_some();
    if request.ship.is_some() && is_grouped {
        return Err("--to ships each packet as it is dropped: leave out --by and --sort".to_owned().into());
    }
    let file = output_file(&mut request, words)?;
    let events = EventRequest { all: words.has("all"), file, via: via(words) };
    let plan = follow::plan_of(&request)?;
    ready(move || events::followed(&request, &plan, &events))
}

/// The file of `-w`, and the bytes of each packet. Its plan has the columns for comments.
fn output_file(request: &mut Request, words: &ParsedWords<'_>) -> Result<Option<(PathBuf, u32)>, String> {
    let snaplen = words.value("snaplen");
    let Some(path) = words.file("write") else {
        return if snaplen.is_some() { Err("--snaplen needs -w FILE".to_owned()) } else { Ok(None) };
    };
    if request.shown.by.is_some() || request.shown.sort.is_some() || request.repeat != Repeat::Once {
        return Err(
            "-w cannot be used with --by, --sort and --watch: a file holds all packets in order of arrival".to_owned()
        );
    }
    if request.ship.is_some() {
        return Err("-w cannot be used with --to: a run writes a file or ships rows".to_owned());
    }
    if words.has("stack") {
        return Err("-w cannot be used with --stack: a file holds packets only".to_owned());
    }
    if is_pcap(path) {
        return Err("-w writes pcapng, which has room for reasons: name the file .pcapng".to_owned());
    }
    let bytes = snaplen.map_or(Some(SNAPLEN), |text| text.parse().ok());
    let bytes = bytes.filter(|bytes| (1..=SNAPLEN_MAX).contains(bytes));
    let bytes = bytes.ok_or_else(|| format!("--snaplen takes 1 to {SNAPLEN_MAX} bytes"))?;
    let usual = format!("{}{}", file::COLUMNS, if request.all_netns { ",netns" } else { "" });
    request.shown.columns = Some(match request.shown.columns.take() {
        None => usual,
        Some(columns) => match columns.strip_prefix('+') {
            Some(more) => format!("{usual},{more}"),
            None => format!("iface,{columns}"),
        },
    });
    Ok(Some((path.to_owned(), bytes)))
}

/// Default number of bytes of each packet in a file: the headers, and some more.
const SNAPLEN: u32 = 128;

/// The interface named by `--via`.
fn via(words: &ParsedWords<'_>) -> Option<DropsVia> {
    words.value("via").and_then(DropsVia::of_name)
}
