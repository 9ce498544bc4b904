//! The command line of `netwren sockets kill`: that of the table, less what makes no sense, and two flags more.

use super::command;
use super::request::{Request, from_matches};
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::ffi::OsString;

/// The flags of the table that make sense here. Flags that are added to the table are refused until they stand here.
const TAKEN: &[&str] = &[
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

const EXAMPLES: &str = "\
Examples:
  netwren sockets kill 'peer = 192.0.2.7'                 what would be closed
  netwren sockets kill 'peer = 192.0.2.7' --yes           close it
  netwren sockets kill 'state = close_wait and process = \"java\"' --yes
  netwren sockets kill local_port = 8080 and state = established --limit 1 --yes
";

/// A parsed `sockets kill`.
#[derive(Debug)]
pub(crate) struct Kill {
    /// What is chosen and how it is shown.
    pub(crate) request: Request,
    /// `--yes`: not only shown.
    pub(crate) yes: bool,
}

impl Kill {
    /// Reads the words behind `sockets kill`; clap's error knows what to print and where.
    pub(crate) fn parse(args: impl Iterator<Item = OsString>) -> Result<Kill, clap::Error> {
        command::parse(command(command::table("sockets")), args, from_words)
    }
}

fn from_words(matches: &ArgMatches) -> Result<Kill, String> {
    match command::given(matches, |flag| !TAKEN.contains(&flag)) {
        None => {}
        Some("replay") => return Err("a recording has no sockets to close: leave out --replay".to_owned()),
        Some(flag) => return Err(format!("--{flag} does not go with `sockets kill`")),
    }
    let request = from_matches(matches)?;
    let (filter, all) = (request.shown.filter.trim(), matches.get_flag("all"));
    if filter.is_empty() && !all {
        return Err("which sockets? Without a filter `sockets kill` needs --all".to_owned());
    }
    if !filter.is_empty() && all {
        return Err("--all and a filter exclude each other".to_owned());
    }
    Ok(Kill { request, yes: matches.get_flag("yes") })
}

/// The clap command, from that of the table.
pub(super) fn command(table: Command) -> Command {
    let command = table
        .name("kill")
        .bin_name("netwren sockets kill")
        .about("Close TCP and UDP sockets, whoever holds them; without --yes only show which")
        .after_help(EXAMPLES);
    let switch = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).help(help).help_heading("What is done").action(ArgAction::SetTrue)
    };
    command::without(command, |flag| !TAKEN.contains(&flag))
        .arg(switch("yes", "Close the sockets; each row says in `result` what became of it"))
        .arg(switch("all", "Every TCP and UDP socket of the namespace, instead of a filter"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::flags::defs::FLAGS;

    fn parse(line: &str) -> Result<Kill, clap::Error> {
        Kill::parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn the_command_is_sound() {
        command(super::super::command::table("sockets")).debug_assert();
        assert!(TAKEN.iter().all(|long| FLAGS.iter().any(|flag| flag.long == *long)));
    }

    #[test]
    fn nothing_is_closed_by_accident() {
        assert!(!parse("state = established").unwrap().yes);
        assert!(parse("state = established --yes --limit 1").unwrap().yes);
        assert!(parse("--all").unwrap().request.shown.filter.is_empty());
        for (line, says) in [
            ("--yes", "needs --all"),
            ("--all state = listen", "exclude each other"),
            ("--all --replay f", "a recording has no sockets"),
            ("--all --watch", "--watch does not go with"),
            ("--all --by state", "--by does not go with"),
            ("--all --record f", "--record does not go with"),
        ] {
            assert!(parse(line).unwrap_err().to_string().contains(says), "{line}");
        }
    }
}
