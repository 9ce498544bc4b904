//! A parsed command line, before its names are resolved.

use super::defs::Scope;
#[cfg(test)]
use super::parser;
use super::shell_line::shell_line;
use super::ship::ship_request;
use crate::bundle::BundleWriter;
use crate::command::ParsedWords;
#[cfg(test)]
use crate::command::{Command, ready};
use lookups::session::SessionTarget;
use record::{FieldInfo, Schema, Show};
use runtime::run_group::Part;
use shipping::ShipRequest;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tables::{CommandLine, GroupRate, Repeat, Selection, TableRequest};

/// Valid range of periods in seconds.
pub(crate) const PERIODS_S: RangeInclusive<f64> = 0.01..=86_400.0;

/// The output format of rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    /// Aligned on a terminal, tab-separated in a pipe.
    Table,
    /// Aligned everywhere, with exact values.
    Plain,
    /// JSON, one object per line.
    Json,
    /// RFC 4180.
    Csv,
    /// Tab-separated values, exact even on a terminal.
    Tsv,
    /// Log records as sentences (`log tail`).
    LogTail,
    /// The home screen (`netwren` alone).
    Home,
}

impl Format {
    /// True if rows in this format are aligned, for people; only then columns depend on rows.
    pub(crate) fn is_aligned(self, color: Option<bool>) -> bool {
        // watch(1) and scripts that draw a screen set its width.
        let is_drawn =
            || sys::term::is_terminal(1) || runtime::width::requested_width().is_some() || color == Some(true);
        self == Format::Plain || self == Format::Table && is_drawn()
    }

    /// True for human-readable tables.
    pub(crate) fn is_table(self) -> bool {
        matches!(self, Format::Table | Format::Plain)
    }
}

/// The columns that stay longest on a narrow terminal, see [`sinks::TableRoom`].
#[derive(Clone, Debug, Default)]
pub(crate) struct KeptColumns {
    /// Columns that the user named.
    pub(crate) named: Vec<&'static str>,
    /// Other columns, the most important one first.
    pub(crate) keeps: Vec<&'static str>,
    /// True if `--columns` can name them.
    pub(crate) can_be_named: bool,
    /// The option that shows all columns; empty if none does.
    pub(crate) see_by: &'static str,
    /// Columns that are written only if a row has them ([`Show::Unusual`]). Formats of machines have none: there a
    /// column is a column, whatever the rows.
    pub(crate) unusual: Vec<&'static str>,
}

impl KeptColumns {
    /// The columns for a command's tables.
    fn of(words: &ParsedWords<'_>, shown: &Selection, table: Option<Schema>) -> KeptColumns {
        let see_by = match words.command.takes("output") {
            false => "",
            true if shown.wide => "-o json",
            true => "-o plain | less -S",
        };
        if shown.by.is_some() {
            return KeptColumns { see_by, ..KeptColumns::default() };
        }
        let columns = shown.columns.as_deref().unwrap_or("").split(',');
        let columns = columns.map(str::trim).filter(|item| !item.starts_with('-'));
        let keys = engine::SortKey::parse_list(shown.sort.as_deref().unwrap_or(""));
        let keys = keys.iter().map(|key| &*key.name);
        // Columns that a switch implies also count as requested.
        let implied = [("all-netns", "netns"), ("yes", "result"), ("stack", "stack")];
        let implied = implied.into_iter().filter(|(flag, _)| words.has(flag)).map(|(_, column)| column);
        let asked = columns.chain(keys).chain(implied).map(|word| word.trim().trim_start_matches('+'));
        let asked: Vec<&str> = asked.filter(|word| !word.is_empty()).collect();
        let tables = words.command.tables;
        let named = |table: &Schema| asked.iter().flat_map(|word| names_of(*table, word)).collect::<Vec<_>>();
        let named: Vec<&'static str> = tables.iter().flat_map(named).collect();
        KeptColumns {
            unusual: table.map_or_else(Vec::new, |table| unusual(table, shown, &named)),
            named,
            keeps: tables.iter().flat_map(|table| table.kept_columns()).copied().collect(),
            can_be_named: words.command.takes("columns"),
            see_by,
        }
    }
}

/// The columns that `table` has only if a row needs them, where the user lets the command choose columns.
fn unusual(table: Schema, shown: &Selection, named: &[&'static str]) -> Vec<&'static str> {
    let spec = shown.columns.as_deref().unwrap_or("").trim();
    let has_sets = spec.split(',').any(|item| matches!(item.trim().trim_start_matches('+'), "all" | "wide"));
    if has_sets || !(spec.is_empty() || spec.starts_with(['+', '-'])) {
        return Vec::new();
    }
    let left_out: Vec<&str> = spec
        .split(',')
        .filter_map(|item| item.trim().strip_prefix('-'))
        .flat_map(|word| names_of(table, word))
        .collect();
    let is_unusual = |field: &FieldInfo| {
        field.show == Show::Unusual && !named.contains(&field.name) && !left_out.contains(&field.name)
    };
    table.fields().filter(is_unusual).map(|field| field.name).collect()
}

/// The names of the fields that a word stands for.
fn names_of(table: Schema, word: &str) -> Vec<&'static str> {
    let fields = engine::words::fields(table, word).into_iter();
    fields.filter_map(|index| table.field(index)).map(|field| field.name).collect()
}

/// The user's request for a table.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// Words of the command, such as `nat stats`.
    pub(crate) command: &'static str,
    /// The flags on the command line, quoted for the shell; `None` if they cannot be written on one line.
    pub(crate) flags: Option<String>,
    /// The selected columns and rows.
    pub(crate) shown: Selection,
    /// The columns that stay on a narrow terminal.
    pub(crate) kept: KeptColumns,
    /// `-o`
    pub(crate) format: Format,
    /// True unless `-H`.
    pub(crate) header: bool,
    /// `--color`: always, never, or None to decide by the terminal.
    pub(crate) color: Option<bool>,
    /// `--watch`
    pub(crate) repeat: Repeat,
    /// `--for`: when rounds or a stream end, on the monotonic clock.
    pub(crate) ends_ns: Option<u64>,
    /// `--follow`: the interval at which flows are summed up.
    pub(crate) follow: Option<Duration>,
    /// `--no-hooks`
    pub(crate) no_hooks: bool,
    /// `--to`
    pub(crate) ship: Option<ShipRequest>,
    /// `--resolve`
    pub(crate) resolve: Option<Duration>,
    /// `--netns`
    pub(crate) netns: Option<String>,
    /// `--all-netns`
    pub(crate) all_netns: bool,
    /// `--via`
    pub(crate) via: Option<record::Via>,
    /// `--owners-via`
    pub(crate) owners_via: Option<host::OwnersBackend>,
    /// `--for` of `capture latency`: the duration of the measurement.
    pub(crate) sample: Option<Duration>,
    /// `--record`
    pub(crate) record: Option<PathBuf>,
    /// `--replay`
    pub(crate) replay: Option<PathBuf>,
    /// `--explain`
    pub(crate) explain: bool,
    /// The bundle that receives rows instead of standard output (`support --bundle`).
    pub(crate) bundle: Option<BundleWriter>,
    /// `--cost`
    pub(crate) cost: bool,
    /// `--stats`
    pub(crate) stats: bool,
    /// `--exit-code`
    pub(crate) exit_code: bool,
    /// Words shown for null in some columns of the command's rows.
    pub(crate) null_words: &'static [(&'static str, &'static str)],
    /// Columns that replace the addresses, by protocol, see [`Command::columns_of_proto`](crate::command::Command).
    pub(crate) columns_of_proto: &'static [(&'static str, &'static [&'static str])],
    /// Columns of groups that are also shown per second.
    pub(crate) group_rates: &'static [GroupRate],
    /// The part of an agent that the run belongs to.
    pub(crate) part: Option<Part>,
}

impl Request {
    /// Makes a request from a command's words; the error describes invalid words.
    pub(crate) fn of(words: &ParsedWords<'_>) -> Result<Request, String> {
        Request::grouped_by(words, words.text("by"), &words.values("filter"))
    }

    /// Like [`Request::of`], with the given group fields and filter words.
    pub(crate) fn grouped_by(words: &ParsedWords<'_>, by: Option<String>, filter: &[&str]) -> Result<Request, String> {
        let written = words.output().unwrap_or("table");
        let format = match written {
            "json" => Format::Json,
            "csv" => Format::Csv,
            "plain" => Format::Plain,
            "tsv" => Format::Tsv,
            _ => Format::Table,
        };
        let ship = ship_request(words)?;
        let (repeat, filter) = period(words, "watch", filter)?;
        let (follow, filter) = period(words, "follow", filter)?;
        let wide = written == "wide" || format == Format::Json || ship.is_some();
        let filter = understood(words, filter.join(" "));
        let shown = Selection { by, filter: narrowed(filter, words)?, ..selection(words, wide)? };
        let color = match words.value("color") {
            Some("always") => Some(true),
            Some("never") => Some(false),
            _ => None,
        };
        let table = words.table().filter(|_| format.is_aligned(color));
        let request = Request {
            command: words.command.name,
            flags: shell_line(&words.given_words(&SHORT_FILTERS)),
            kept: KeptColumns::of(words, &shown, table),
            shown,
            format,
            header: !words.has("no-header"),
            color,
            repeat: repeat.map_or(Repeat::Once, Repeat::Every),
            ends_ns: ends_ns(words, repeat, follow)?,
            follow,
            no_hooks: words.has("no-hooks"),
            ship,
            resolve: words.seconds("resolve", PERIODS_S)?,
            netns: words.text("netns"),
            all_netns: words.has("all-netns"),
            via: match words.value("via") {
                Some("proc") => Some(record::Via::Proc),
                Some("netlink") => Some(record::Via::Netlink),
                Some("bpf") => Some(record::Via::Bpf),
                _ => None,
            },
            owners_via: match words.value("owners-via") {
                Some("bpf") => Some(host::OwnersBackend::Bpf),
                Some("proc") => Some(host::OwnersBackend::Proc),
                _ => None,
            },
            sample: None,
            record: words.file("record").map(Path::to_path_buf),
            replay: words.file("replay").map(Path::to_path_buf),
            explain: words.has("explain"),
            bundle: None,
            cost: words.has("cost"),
            stats: words.has("stats"),
            exit_code: words.has("exit-code"),
            null_words: words.command.null_words,
            columns_of_proto: words.command.columns_of_proto,
            group_rates: words.command.group_rates,
            part: words.part.map(|part| part.handle.clone()),
        };
        request.check()?;
        Ok(request)
    }

    /// The part of the request that a plan is made of.
    pub(crate) fn table(&self) -> TableRequest<'_> {
        TableRequest {
            shown: &self.shown,
            unusual: &self.kept.unusual,
            columns_of_proto: self.columns_of_proto,
            group_rates: self.group_rates,
            is_for_people: self.format.is_table() && self.ship.is_none(),
            repeat: self.repeat,
            ends_ns: self.ends_ns,
            resolve: self.resolve,
            all_netns: self.all_netns,
            via: self.via,
            replay: self.replay.as_deref(),
            line: self,
        }
    }

    /// The session target of the request.
    pub(crate) fn target(&self) -> SessionTarget {
        SessionTarget {
            netns: self.netns.clone(),
            all_netns: self.all_netns,
            record: self.record.clone(),
            size_max: None,
            replay: self.replay.clone(),
            resolve: self.resolve.is_some(),
            owners_via: self.owners_via,
            sample: self.sample,
            is_silent_on_places: !self.names_places(),
            part: self.part.clone(),
        }
    }

    /// True if columns, groups, the order or the filter name a container, pod or unit.
    fn names_places(&self) -> bool {
        let shown = &self.shown;
        let texts = [&shown.columns, &shown.by, &shown.sort].into_iter().flatten().chain([&shown.filter]);
        let mut words = texts.flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
        words.any(|word| ["container", "pod", "unit"].contains(&word))
    }

    fn check(&self) -> Result<(), String> {
        if self.replay.is_some() && self.record.is_some() {
            return Err("--record cannot be used with --replay".to_owned());
        }
        if self.replay.is_some() && self.netns.is_some() {
            return Err("a recording has a fixed set of namespaces: leave out --netns".to_owned());
        }
        if self.all_netns && self.netns.is_some() {
            return Err("--netns cannot be used with --all-netns".to_owned());
        }
        if self.follow.is_some() && self.repeat != Repeat::Once {
            return Err("--follow cannot be used with --watch".to_owned());
        }
        if self.follow.is_some() && (self.shown.by.is_some() || self.shown.sort.is_some()) {
            return Err("--follow shows rows as they occur: leave out --by and --sort".to_owned());
        }
        if self.follow.is_some() && self.via == Some(record::Via::Proc) {
            return Err("/proc reports no events: --via takes netlink or bpf with --follow".to_owned());
        }
        if self.no_hooks && self.follow.is_none() {
            return Err("--no-hooks needs --follow, which uses the hooks".to_owned());
        }
        if self.ship.is_some() && self.resolve.is_some() {
            return Err("--resolve cannot be used with --to: host names arrive later than rows".to_owned());
        }
        if self.shown.by.is_none() && self.shown.aggregates.iter().any(Option::is_some) {
            return Err("--sum, --max and --avg need --by".to_owned());
        }
        Ok(())
    }
}

impl CommandLine for Request {
    fn with_filter(&self, filter: &str) -> Option<String> {
        let filter = shell_line(&[filter.into()]).filter(|_| !filter.is_empty());
        let parts = [Some(format!("netwren {}", self.command)), filter, self.flags.clone()?.into()];
        Some(parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" "))
    }
}

/// The selection of columns and rows, without a filter and groups.
fn selection(words: &ParsedWords<'_>, wide: bool) -> Result<Selection, String> {
    let limit = match words.value("limit") {
        None => None,
        Some(n) => Some(n.parse().map_err(|_| format!("--limit takes a number, not `{n}`"))?),
    };
    Ok(Selection {
        filter: String::new(),
        columns: words.list("columns"),
        wide,
        no_owner: words.has("no-owner"),
        by: None,
        aggregates: ["sum", "max", "avg"].map(|name| words.text(name)),
        sort: words.text("sort"),
        order: None,
        limit,
    })
}

/// A larger number after `--watch` is more likely a port.
const SECONDS_BEHIND_MAX: f64 = 60.0;

/// The seconds of a flag, and the words of the filter. `--watch 2` means `--watch=2`, because no filter begins with a
/// number.
fn period<'f, 'w>(
    words: &ParsedWords<'_>,
    flag: &str,
    filter: &'f [&'w str],
) -> Result<(Option<Duration>, &'f [&'w str]), String> {
    let usual = words.seconds(flag, PERIODS_S)?;
    let Some((number, rest)) = filter.split_first().filter(|_| usual.is_some()) else { return Ok((usual, filter)) };
    match number.strip_suffix('s').unwrap_or(number).parse::<f64>() {
        Ok(seconds) if (*PERIODS_S.start()..=SECONDS_BEHIND_MAX).contains(&seconds) => {
            Ok((Some(Duration::from_secs_f64(seconds)), rest))
        }
        _ => Ok((usual, filter)),
    }
}

/// When `--for` ends the run. Fails for a table that is read once.
fn ends_ns(words: &ParsedWords<'_>, repeat: Option<Duration>, follow: Option<Duration>) -> Result<Option<u64>, String> {
    let scope = words.command.scope;
    if !(scope.meets(Scope::LASTS) || scope.meets(Scope::WINDOWS) && repeat.is_some()) {
        return Ok(None);
    }
    // `capture latency --for 0` measures no delays.
    let least = if scope.meets(Scope::LATENCY) { 0.0 } else { *PERIODS_S.start() };
    let lasts = words.seconds("for", least..=*PERIODS_S.end())?.filter(|lasts| !lasts.is_zero());
    let Some(lasts) = lasts else { return Ok(None) };
    if words.command.takes("watch") && repeat.is_none() && follow.is_none() {
        return Err("--for needs --watch or --follow: the table is read once".to_owned());
    }
    let lasts_ns = u64::try_from(lasts.as_nanos()).unwrap_or(u64::MAX);
    Ok(Some(sys::clock::monotonic_ns().saturating_add(lasts_ns)))
}

/// Translates words of other tools that have only one reading into a filter: `port 80`, `dst 10.1.2.3`, `listen`,
/// `:80`. Commands that change the host accept only filters; `capture` uses pcap-filter's words.
fn understood(words: &ParsedWords<'_>, filter: String) -> String {
    let is_exact = words.command.scope.meets(Scope::CLOSING.and(Scope::DELETING).and(Scope::CAPTURE));
    let is_wrong = !is_exact && engine::filter::parse(&filter).is_err();
    let table = words.table().filter(|_| is_wrong);
    table.and_then(|table| engine::filter::meant_surely(table, &filter)).unwrap_or(filter)
}

/// Flags that abbreviate a comparison in the filter.
const SHORT_FILTERS: [&str; 4] = ["process", "pid", "container", "user"];

/// Adds the short forms to the filter: `--process nginx` is `process in ("nginx")`.
fn narrowed(mut filter: String, words: &ParsedWords<'_>) -> Result<String, String> {
    for field in SHORT_FILTERS {
        let Some(list) = words.list(field) else { continue };
        let values = list.split(',').map(str::trim).filter(|value| !value.is_empty());
        let values: Vec<String> = values.map(|value| short_value(field, value)).collect::<Result<_, _>>()?;
        if values.is_empty() {
            return Err(format!("--{field} takes names, such as --{field} a,b"));
        }
        let test = format!("{field} in ({})", values.join(", "));
        filter = if filter.trim().is_empty() { test } else { format!("({filter}) and {test}") };
    }
    Ok(filter)
}

/// A value in the filter's syntax: quoted text, or a number for a pid.
fn short_value(field: &str, value: &str) -> Result<String, String> {
    if field == "pid" {
        let number: u32 =
            value.parse().map_err(|_| format!("--pid takes numbers, not `{value}`; --process takes names"))?;
        return Ok(number.to_string());
    }
    if value.contains('*') {
        return Err(format!("--{field} takes whole names, not `{value}`; a filter takes patterns: `{field} ~ REGEX`"));
    }
    Ok(format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"")))
}

#[cfg(test)]
impl Request {
    /// Makes a request from the words after a table command that takes all table flags.
    pub(crate) fn of_line(line: &str) -> Result<Request, clap::Error> {
        static TABLE: Command = Command {
            name: "sockets",
            scope: Scope::OWNED_TABLE.and(Scope::USERS).and(Scope::FOLLOW),
            other_table: &["follow"],
            prepare: Some(|_| ready(|| runtime::exit::Exit::Ok.into())),
            ..Command::TABLE
        };
        parser::parse_line(&TABLE, line, Request::of)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn parse(line: &str) -> Result<Request, clap::Error> {
        Request::of_line(line)
    }

    #[test]
    fn filter_words_and_flags_mix() {
        let request = parse("state = listen --limit 3 and local_port < 1024 -o json").unwrap();
        assert_eq!(request.shown.filter, "state = listen and local_port < 1024");
        assert_eq!(request.shown.limit, Some(3));
        assert_eq!(request.format, Format::Json);
        assert!(request.shown.wide);
    }

    #[test]
    fn issue_15_short_filters_add_to_the_filter() {
        for (line, filter) in [
            ("--process nginx", "process in (\"nginx\")"),
            ("--pid 1,2 --user root", "(pid in (1, 2)) and user in (\"root\")"),
            ("state = listen or pid = 7 --container web", "(state = listen or pid = 7) and container in (\"web\")"),
            ("--process a\"b\\", "process in (\"a\\\"b\\\\\")"),
        ] {
            assert_eq!(parse(line).unwrap().shown.filter, filter, "{line}");
        }
        for (line, says) in [("--pid nginx", "--process takes names"), ("--process ,", "--process takes names")] {
            assert!(parse(line).unwrap_err().to_string().contains(says), "{line}");
        }
    }

    #[test]
    fn issue_15_what_is_named_stays_on_a_narrow_terminal() {
        use crate::commands::sockets::COMMAND;
        let kept = |line: &str| parser::parse_line(&COMMAND, line, Request::of).unwrap().kept;
        let named = |line: &str| {
            let mut named = kept(line).named;
            named.sort_unstable();
            named.dedup();
            named.join(" ")
        };
        assert_eq!(named("--columns +rtt,-pid --sort recv_q:desc,inode,-cwnd"), "cwnd inode recv_q rtt_us");
        assert_eq!(named("--columns peer"), "peer_addr peer_port");
        assert_eq!(named("--columns wide"), "");
        assert!(kept("").keeps.starts_with(&["change", "process"]) && kept("").can_be_named);
        assert!(!kept("--by state").can_be_named, "columns of groups have other names");
        assert_eq!((kept("").see_by, kept("-o wide").see_by), ("-o plain | less -S", "-o json"));
    }

    #[test]
    fn issue_15_what_is_repeated_adds_up() {
        assert_eq!(parse("-c state -c pid,uid").unwrap().shown.columns.as_deref(), Some("state,pid,uid"));
        assert_eq!((parse("--json").unwrap().format, parse("--csv").unwrap().format), (Format::Json, Format::Csv));
        assert!(parse("--json").unwrap().shown.wide);
    }

    #[test]
    fn values_may_be_left_out_or_begin_with_a_dash() {
        let two_seconds = Repeat::Every(Duration::from_secs(2));
        assert_eq!(parse("--watch").unwrap().repeat, Repeat::Every(Duration::from_secs(1)));
        assert_eq!(parse("--watch=0.5s state = listen").unwrap().repeat, Repeat::Every(Duration::from_millis(500)));
        for line in ["-w 2 state = listen", "--watch 2s state = listen", "--watch=2 state = listen"] {
            let request = parse(line).unwrap();
            assert_eq!((request.repeat, &*request.shown.filter), (two_seconds, "state = listen"), "{line}");
        }
        assert_eq!(parse("--watch 8080").unwrap().shown.filter, "8080", "that is rather a port");
        assert_eq!(parse("--columns -pid,-process").unwrap().shown.columns.as_deref(), Some("-pid,-process"));
    }

    #[test]
    fn flags_that_exclude_each_other_are_refused() {
        for (line, says) in [
            ("--record a --replay b", "cannot be used with"),
            ("--all-netns --netns a", "cannot be used with"),
            ("--follow --watch", "cannot be used with"),
            ("--follow --sort pid", "as they occur"),
            ("--follow --via proc", "/proc reports no events"),
            ("--sum recv_q", "need --by"),
            ("--no-hooks", "needs --follow"),
            ("--limit x", "takes a number"),
            ("--watch=0", "takes seconds"),
        ] {
            assert!(parse(line).unwrap_err().to_string().contains(says), "{line}");
        }
    }
}
