//! The command lines of `netwren nat`, `nat top` and `nat delete`: those of a table, and a few words of their own.

use super::command::{self, Known};
use super::request::{Request, from_matches, grouped_by};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command};
use conntrack::CtTable;
use std::ffi::OsString;

/// The flags of tables that make no sense for entries: `nat events` follows.
const REFUSED: &[&str] = &["follow", "no-hooks"];

/// The flags that `nat delete` takes; what is added to the table is refused until it stands here.
const DELETE_TAKES: &[&str] = &[
    "columns",
    "sort",
    "limit",
    "no-owner",
    "resolve",
    "output",
    "no-header",
    "color",
    "stats",
    "cost",
    "exit-code",
    "netns",
];

const TOP: Known = Known {
    name: "top",
    about: "Who and what fills the table: entries counted by some fields, the most first, with their share",
    is_table: true,
    examples: "\
Examples:
  netwren nat top                                   the clients with the most entries
  netwren nat top state                             by state
  netwren nat top published                         by the address and port that clients connect to
  netwren nat top backend,state 'nat = dnat'        by backend and state, only rewritten destinations
  netwren nat top source --sum bytes_in --limit 3
  netwren nat top snat_port_use                     source ports in use of those there are, by address and destination
  netwren nat top source --watch
",
};

const DELETE: Known = Known {
    name: "delete",
    about: "Delete entries; without --yes only show which",
    is_table: true,
    examples: "\
Examples:
  netwren nat delete 'client = 192.0.2.7'            what would be deleted
  netwren nat delete 'client = 192.0.2.7' --yes      delete it
  netwren nat delete 'proto = udp and status != seen_reply' --yes
  netwren nat delete 'backend = 172.17.0.2:80' --limit 1 --yes
",
};

/// A parsed `nat` or `nat top`.
#[derive(Debug)]
pub(crate) struct NatList {
    /// Which rows and columns.
    pub(crate) request: Request,
    /// `--table`
    pub(crate) table: CtTable,
}

impl NatList {
    /// Reads the words behind `nat`; clap's error knows what to print and where.
    pub(crate) fn parse(args: impl Iterator<Item = OsString>) -> Result<NatList, clap::Error> {
        let words: Vec<OsString> = args.collect();
        // Only help tells of what stands below.
        let helps = words.iter().any(|word| word == "-h" || word == "--help");
        let list = with_table(command::table("nat"));
        command::parse(if helps { below(list) } else { list }, words.into_iter(), |matches| read(matches, from_matches))
    }

    /// Reads the words behind `nat top` and its fields, which make the groups.
    pub(crate) fn parse_top(by: &str, args: impl Iterator<Item = OsString>) -> Result<NatList, clap::Error> {
        command::parse(top_command(), args, |matches| {
            let named = |flag: &str| matches!(flag, "by" | "columns");
            if let Some(flag) = command::given(matches, named) {
                return Err(format!("--{flag} does not go with `nat top`: name the fields behind `top`"));
            }
            read(matches, |matches| grouped_by(matches, Some(by.to_owned())))
        })
    }
}

fn read(matches: &ArgMatches, request: impl FnOnce(&ArgMatches) -> Result<Request, String>) -> Result<NatList, String> {
    refuse(matches, "nat", |flag| REFUSED.contains(&flag))?;
    let word = matches.get_one::<String>("table").map(String::as_str);
    let table = CtTable::ALL.into_iter().find(|table| Some(table.name()) == word).unwrap_or(CtTable::Conntrack);
    Ok(NatList { request: request(matches)?, table })
}

fn refuse(matches: &ArgMatches, name: &str, refused: impl Fn(&str) -> bool) -> Result<(), String> {
    match command::given(matches, refused) {
        None => Ok(()),
        Some("follow") => Err("--follow does not go with `nat`: `netwren nat events` tells what happens".to_owned()),
        Some("replay") => Err("a recording has no entries to delete: leave out --replay".to_owned()),
        Some(flag) => Err(format!("--{flag} does not go with `{name}`")),
    }
}

/// A parsed `nat delete`.
#[derive(Debug)]
pub(crate) struct NatDelete {
    /// What is chosen and how it is shown.
    pub(crate) request: Request,
    /// `--yes`: not only shown.
    pub(crate) yes: bool,
}

impl NatDelete {
    /// Reads the words behind `nat delete`; clap's error knows what to print and where.
    pub(crate) fn parse(args: impl Iterator<Item = OsString>) -> Result<NatDelete, clap::Error> {
        command::parse(delete_command(), args, |matches| {
            refuse(matches, "nat delete", |flag| !DELETE_TAKES.contains(&flag))?;
            let request = from_matches(matches)?;
            let (filter, all) = (request.shown.filter.trim(), matches.get_flag("all"));
            match (filter.is_empty(), all) {
                (true, false) => Err("which entries? Without a filter `nat delete` needs --all".to_owned()),
                (false, true) => Err("--all and a filter exclude each other".to_owned()),
                _ => Ok(NatDelete { request, yes: matches.get_flag("yes") }),
            }
        })
    }
}

/// `nat` with the flag that only it has.
pub(super) fn with_table(command: Command) -> Command {
    let tables = CtTable::ALL.map(CtTable::name);
    command::without(command, |flag| REFUSED.contains(&flag)).arg(
        Arg::new("table")
            .long("table")
            .value_name("WORD")
            .value_parser(PossibleValuesParser::new(tables))
            .help(
                "Which of the kernel's tables: entries, those that are dying, those whose first packet is on its way, \
                 connections that helpers expect",
            )
            .help_heading("Where it is read"),
    )
}

fn top_command() -> Command {
    let command = with_table(command::build(&TOP).bin_name("netwren nat top"));
    command::without(command, |flag| matches!(flag, "by" | "columns"))
}

fn delete_command() -> Command {
    let command = command::build(&DELETE).bin_name("netwren nat delete");
    let switch = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).help(help).help_heading("What is done").action(ArgAction::SetTrue)
    };
    command::without(command, |flag| !DELETE_TAKES.contains(&flag))
        .arg(switch("yes", "Delete the entries; each row says in `result` what became of it"))
        .arg(switch("all", "Every entry of the namespace, instead of a filter"))
}

/// `nat` with the commands below it: for its help, man pages and completions.
pub(super) fn below(command: Command) -> Command {
    use super::{events, nat_advise, nat_stats, stateless};
    let below = [
        top_command(),
        nat_stats::command(),
        events::command(),
        nat_advise::command(),
        delete_command(),
        stateless::command(),
    ];
    command.disable_help_subcommand(true).subcommands(below)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::flags::defs::FLAGS;

    fn words(line: &str) -> impl Iterator<Item = OsString> + '_ {
        line.split_whitespace().map(OsString::from)
    }

    #[test]
    fn the_commands_are_sound() {
        below(with_table(command::table("nat"))).debug_assert();
        assert!(DELETE_TAKES.iter().all(|long| FLAGS.iter().any(|flag| flag.long == *long)));
    }

    #[test]
    fn tables_and_what_does_not_go_together() {
        assert_eq!(NatList::parse(words("--table dying")).unwrap().table, CtTable::Dying);
        assert_eq!(NatList::parse(words("state = established")).unwrap().table, CtTable::Conntrack);
        for (line, says) in [("--follow", "nat events"), ("--table x", "possible values")] {
            assert!(NatList::parse(words(line)).unwrap_err().to_string().contains(says), "{line}");
        }
        for line in ["--columns a", "--by a"] {
            assert!(
                NatList::parse_top("state", words(line)).unwrap_err().to_string().contains("behind `top`"),
                "{line}"
            );
        }
        let top = NatList::parse_top("state", words("--sum bytes_in")).unwrap().request.shown;
        assert_eq!((top.by.as_deref(), top.aggregates[0].as_deref()), (Some("state"), Some("bytes_in")));
    }

    #[test]
    fn nothing_is_deleted_by_accident() {
        assert!(!NatDelete::parse(words("proto = udp")).unwrap().yes);
        assert!(NatDelete::parse(words("proto = udp --yes")).unwrap().yes);
        for (line, says) in [
            ("--yes", "needs --all"),
            ("--all proto = udp", "exclude each other"),
            ("--all --replay f", "a recording has no entries"),
            ("--all --watch", "--watch does not go with"),
            ("--all --all-netns", "--all-netns does not go with"),
        ] {
            assert!(NatDelete::parse(words(line)).unwrap_err().to_string().contains(says), "{line}");
        }
    }
}
