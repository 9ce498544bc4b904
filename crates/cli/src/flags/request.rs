//! A parsed command line, before any name in it is looked up.

use clap::ArgMatches;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// How rows are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    /// Aligned on a terminal, tab-separated in a pipe.
    Table,
    /// JSON, one object a line.
    Json,
    /// RFC 4180.
    Csv,
}

/// Which columns, and which rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shown {
    /// The words of the filter, joined by blanks.
    pub(crate) filter: String,
    /// `--columns`
    pub(crate) columns: Option<String>,
    /// True for `-o wide` and JSON.
    pub(crate) wide: bool,
    /// `--no-owner`
    pub(crate) no_owner: bool,
    /// `--by`
    pub(crate) by: Option<String>,
    /// `--sum`, `--max`, `--avg`
    pub(crate) aggregates: [Option<String>; 3],
    /// `--sort`
    pub(crate) sort: Option<String>,
    /// The order if `--sort` asks for none; its fields are not shown.
    pub(crate) order: Option<&'static str>,
    /// `--limit`
    pub(crate) limit: Option<u64>,
}

/// Once, or again and again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Repeat {
    /// One round.
    Once,
    /// A round every so often.
    Every(Duration),
}

/// What the user asked of a table.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// Which columns and rows.
    pub(crate) shown: Shown,
    /// `-o`
    pub(crate) format: Format,
    /// True unless `-H`.
    pub(crate) header: bool,
    /// `--color`: always, never, or as the terminal is.
    pub(crate) color: Option<bool>,
    /// `--watch`
    pub(crate) repeat: Repeat,
    /// `--follow`: how often flows are summed up.
    pub(crate) follow: Option<Duration>,
    /// `--no-hooks`
    pub(crate) no_hooks: bool,
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
    /// `--record`
    pub(crate) record: Option<PathBuf>,
    /// `--replay`
    pub(crate) replay: Option<PathBuf>,
    /// `--explain`
    pub(crate) explain: bool,
    /// `--cost`
    pub(crate) cost: bool,
    /// `--stats`
    pub(crate) stats: bool,
    /// `--exit-code`
    pub(crate) exit_code: bool,
}

impl Request {
    /// Reads the command line of table `name`; clap's error knows what to print and where.
    pub(crate) fn parse(name: &str, args: impl Iterator<Item = OsString>) -> Result<Request, clap::Error> {
        let words: Vec<OsString> = args.collect();
        // Only help tells of what stands below.
        let helps = words.iter().any(|word| word == "-h" || word == "--help");
        let Some(command) = (if helps { super::one(name) } else { super::command::alone(name) }) else {
            return Err(clap::Error::new(clap::error::ErrorKind::InvalidSubcommand));
        };
        super::command::parse(command, words.into_iter(), from_matches)
    }
}

fn text(matches: &ArgMatches, name: &str) -> Option<String> {
    matches.get_one::<String>(name).cloned()
}

/// The request of parsed words.
pub(super) fn from_matches(matches: &ArgMatches) -> Result<Request, String> {
    grouped_by(matches, text(matches, "by"))
}

/// The same with the fields of groups from elsewhere.
pub(super) fn grouped_by(matches: &ArgMatches, by: Option<String>) -> Result<Request, String> {
    let output = text(matches, "output").unwrap_or_else(|| "table".to_owned());
    let format = match output.as_str() {
        "json" => Format::Json,
        "csv" => Format::Csv,
        _ => Format::Table,
    };
    let repeat = seconds(matches, "watch")?.map_or(Repeat::Once, Repeat::Every);
    let request = Request {
        shown: Shown { by, ..shown(matches, output == "wide" || format == Format::Json)? },
        format,
        header: !matches.get_flag("no-header"),
        color: text(matches, "color").and_then(|word| match word.as_str() {
            "always" => Some(true),
            "never" => Some(false),
            _ => None,
        }),
        repeat,
        follow: seconds(matches, "follow")?,
        no_hooks: matches.get_flag("no-hooks"),
        resolve: seconds(matches, "resolve")?,
        netns: text(matches, "netns"),
        all_netns: matches.get_flag("all-netns"),
        via: text(matches, "via").and_then(|word| match word.as_str() {
            "proc" => Some(record::Via::Proc),
            "netlink" => Some(record::Via::Netlink),
            "bpf" => Some(record::Via::Bpf),
            _ => None,
        }),
        owners_via: text(matches, "owners-via").and_then(|word| match word.as_str() {
            "bpf" => Some(host::OwnersBackend::Bpf),
            "proc" => Some(host::OwnersBackend::Proc),
            _ => None,
        }),
        record: text(matches, "record").map(PathBuf::from),
        replay: text(matches, "replay").map(PathBuf::from),
        explain: matches.get_flag("explain"),
        cost: matches.get_flag("cost"),
        stats: matches.get_flag("stats"),
        exit_code: matches.get_flag("exit-code"),
    };
    request.check()?;
    Ok(request)
}

impl Request {
    fn check(&self) -> Result<(), String> {
        if self.replay.is_some() && self.record.is_some() {
            return Err("--record and --replay exclude each other".to_owned());
        }
        if self.replay.is_some() && self.netns.is_some() {
            return Err("a recording holds the namespaces it was made in: leave out --netns".to_owned());
        }
        if self.all_netns && self.netns.is_some() {
            return Err("--netns and --all-netns exclude each other".to_owned());
        }
        if self.follow.is_some() && self.repeat != Repeat::Once {
            return Err("--follow and --watch exclude each other".to_owned());
        }
        if self.follow.is_some() && (self.shown.by.is_some() || self.shown.sort.is_some()) {
            return Err("--follow shows rows as they come: leave out --by and --sort".to_owned());
        }
        if self.no_hooks && self.follow.is_none() {
            return Err("--no-hooks needs --follow: nothing else has hooks".to_owned());
        }
        if self.shown.by.is_none() && self.shown.aggregates.iter().any(Option::is_some) {
            return Err("--sum, --max and --avg need --by".to_owned());
        }
        Ok(())
    }
}

fn shown(matches: &ArgMatches, wide: bool) -> Result<Shown, String> {
    let words: Vec<&str> = matches.get_many::<String>("filter").into_iter().flatten().map(String::as_str).collect();
    let limit = match text(matches, "limit") {
        None => None,
        Some(n) => Some(n.parse().map_err(|_| format!("--limit takes a number, not `{n}`"))?),
    };
    Ok(Shown {
        filter: words.join(" "),
        columns: text(matches, "columns"),
        wide,
        no_owner: matches.get_flag("no-owner"),
        by: None,
        aggregates: ["sum", "max", "avg"].map(|name| text(matches, name)),
        sort: text(matches, "sort"),
        order: None,
        limit,
    })
}

/// The value of a flag that takes seconds.
pub(super) fn seconds(matches: &ArgMatches, name: &str) -> Result<Option<Duration>, String> {
    let Some(written) = text(matches, name) else { return Ok(None) };
    let number = written.strip_suffix('s').unwrap_or(&written);
    match number.parse::<f64>() {
        Ok(n) if (0.01..=86_400.0).contains(&n) => Ok(Some(Duration::from_secs_f64(n))),
        _ => Err(format!("--{name} takes seconds from 0.01 to 86400, not `{written}`")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn parse(line: &str) -> Result<Request, clap::Error> {
        Request::parse("sockets", line.split_whitespace().map(OsString::from))
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
    fn values_may_be_left_out_or_begin_with_a_dash() {
        assert_eq!(parse("--watch").unwrap().repeat, Repeat::Every(Duration::from_secs(1)));
        assert_eq!(parse("--watch=0.5s state = listen").unwrap().repeat, Repeat::Every(Duration::from_millis(500)));
        assert_eq!(parse("--columns -pid,-process").unwrap().shown.columns.as_deref(), Some("-pid,-process"));
    }

    #[test]
    fn what_cannot_be_together_is_said() {
        for (line, says) in [
            ("--record a --replay b", "exclude each other"),
            ("--all-netns --netns a", "exclude each other"),
            ("--follow --watch", "exclude each other"),
            ("--follow --sort pid", "as they come"),
            ("--sum recv_q", "need --by"),
            ("--no-hooks", "needs --follow"),
            ("--limit x", "takes a number"),
            ("--watch=0", "takes seconds"),
        ] {
            assert!(parse(line).unwrap_err().to_string().contains(says), "{line}");
        }
    }
}
