//! clap commands made from the flag table.

use super::defs::{FLAGS, Flag, Takes};
use clap::builder::PossibleValuesParser;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::ffi::OsString;

/// Name, one line, examples.
pub struct Known {
    /// The word of the command line.
    pub name: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// True if it takes a filter and the flags of tables.
    pub is_table: bool,
    pub(super) examples: &'static str,
}

/// The native commands.
pub const COMMANDS: &[Known] = &[
    Known {
        name: "sockets",
        about: "Sockets of every family with their owners",
        is_table: true,
        examples: "\
Examples:
  netwren sockets                                       every socket
  netwren sockets state = listen                        who listens
  netwren sockets 'peer in 10.0.0.0/8 and rtt > 20ms'   slow peers
  netwren sockets 'process ~ \"nginx\"' --by peer_addr --limit 10
  netwren sockets proto = tcp -o json | jq .peer_addr
  netwren sockets --columns +cwnd,rtt_us,retrans_total --sort retrans_total:desc
  netwren sockets --columns help                        every field
  netwren sockets kill 'peer = 192.0.2.7'               what would be closed; with --yes it is
",
    },
    Known {
        name: "flows",
        about: "Host-to-host flows: who talks to whom, who opened it, how many connections",
        is_table: true,
        examples: "\
Examples:
  netwren flows                                   every flow, the largest first
  netwren flows 'peer_scope = public'             what leaves the site
  netwren flows 'direction = in and connections > 100'
  netwren flows --columns +bytes_in,bytes_out --sort bytes_out:desc --limit 10
  netwren flows --by peer_addr,process --sum connections
",
    },
    Known {
        name: "nat",
        about: "Connection tracking: who talks through this host, whose addresses are rewritten, who answers",
        is_table: true,
        examples: "\
Examples:
  netwren nat                                           every entry: client, what it connects to, who answers
  netwren nat 'nat = dnat and backend = 172.17.0.2:80'  what reaches a container
  netwren nat 'state = established and timeout > 1h'    what stays long
  netwren nat 'status != seen_reply' --by published     what nobody answers
  netwren nat top                                       who fills the table
  netwren nat 'bytes_in > 1MB' --sort bytes_in:desc --limit 10
  netwren nat --table expect                            what helpers wait for
  netwren nat delete 'client = 192.0.2.7'               what would be deleted; with --yes it is
",
    },
    super::record::RECORD,
    Known {
        name: "support",
        about: "What this kernel and these privileges allow, and what is used instead",
        is_table: false,
        examples: "",
    },
];

/// The command called `name` as a run needs it: what stands below it is taken off before, and costs a quarter of the
/// start if it is built.
pub(super) fn alone(name: &str) -> Option<Command> {
    COMMANDS.iter().find(|known| known.name == name).map(build)
}

/// The clap command called `name`, with everything that belongs to it.
pub fn one(name: &str) -> Option<Command> {
    COMMANDS.iter().find(|known| known.name == name).map(|known| below(known, build(known)))
}

/// The whole tree: for man pages, completions and `netwren --help`.
pub fn all() -> Command {
    let root = Command::new("netwren")
        .version(env!("CARGO_PKG_VERSION"))
        .about("One look at a host's network: sockets, flows, and who owns them")
        .long_about(
            "One look at a host's network. Without a command: listeners and flows with their owners.\n\n\
             The faces of old tools take the tools' own switches and print their bytes: `netwren ss …`, \
             `netwren netstat …`, `netwren lstf …`, `netwren conntrack …`, or a link of that name to the binary.",
        )
        .arg(
            Arg::new("replay")
                .long("replay")
                .value_name("FILE")
                .value_parser(clap::value_parser!(std::path::PathBuf))
                .help("Listeners and flows of a recording, as they were then (`netwren record FILE` makes one)"),
        )
        .args_conflicts_with_subcommands(true)
        .after_help("`netwren COMMAND --help` shows a command's flags and examples.");
    COMMANDS.iter().fold(root, |root, known| root.subcommand(below(known, build(known))))
}

/// The command of a table without those below it.
pub(super) fn table(name: &'static str) -> Command {
    COMMANDS.iter().find(|known| known.name == name).map_or_else(|| Command::new(name), build)
}

/// The commands below one: for its help, man pages and completions. Their words never get to clap through here, see
/// `commands::run`; behind the filter's first word they are words of the filter.
fn below(known: &Known, command: Command) -> Command {
    match known.name {
        "sockets" => command.disable_help_subcommand(true).subcommand(super::kill::command(build(known))),
        "nat" => super::nat::below(super::nat::with_table(command)),
        _ => command,
    }
}

/// The clap command of one, with the flags of tables if it is one.
pub(super) fn build(known: &Known) -> Command {
    let mut command = Command::new(known.name)
        .bin_name(format!("netwren {}", known.name))
        .about(known.about)
        .after_help(known.examples);
    if known.name == super::record::RECORD.name {
        return super::record::arguments(command);
    }
    if !known.is_table {
        return command.args(FLAGS.iter().filter(|flag| flag.long == "output").map(arg));
    }
    command = command.args(FLAGS.iter().map(arg)).arg(
        Arg::new("filter")
            .value_name("FILTER")
            .num_args(0..)
            .trailing_var_arg(false)
            .help("Which rows: `field op value`, joined by and, or, not, ( ); see `--columns help` for the fields"),
    );
    if known.name == "flows" {
        command.mut_arg("columns", |a| a.help("Columns, by name: `a,b`; `+a`, `-a`, `all`, `help`"))
    } else {
        command
    }
}

/// Reads the words behind a command: clap first, then `read`. What either has against them is an error that knows what to
/// print and where.
pub(super) fn parse<T>(
    mut command: Command,
    args: impl Iterator<Item = OsString>,
    read: impl FnOnce(&ArgMatches) -> Result<T, String>,
) -> Result<T, clap::Error> {
    let name = OsString::from(command.get_name());
    let matches = command.try_get_matches_from_mut(std::iter::once(name).chain(args))?;
    read(&matches).map_err(|text| command.error(clap::error::ErrorKind::ValueValidation, text))
}

/// The first flag of tables that was given though it is among the `refused` ones.
pub(super) fn given(matches: &ArgMatches, refused: impl Fn(&str) -> bool) -> Option<&'static str> {
    let is_given = |flag: &&str| matches.value_source(flag) == Some(ValueSource::CommandLine);
    FLAGS.iter().map(|flag| flag.long).filter(|long| refused(long)).find(is_given)
}

/// A command whose help says nothing of the `refused` flags of tables.
pub(super) fn without(command: Command, refused: impl Fn(&str) -> bool) -> Command {
    let refused = FLAGS.iter().filter(|flag| refused(flag.long));
    refused.fold(command, |command, flag| command.mut_arg(flag.long, |arg| arg.hide(true)))
}

/// A flag as clap has it.
pub(super) fn arg(flag: &Flag) -> Arg {
    let mut arg = Arg::new(flag.long).long(flag.long).help(flag.help).help_heading(flag.group);
    if let Some(short) = flag.short {
        arg = arg.short(short);
    }
    match flag.takes {
        Takes::Nothing => arg.action(ArgAction::SetTrue),
        // A value may begin with a dash: `--columns -pid`.
        Takes::Value(name) => arg.value_name(name).allow_hyphen_values(true),
        Takes::Maybe(name, default) => {
            arg.value_name(name).num_args(0..=1).require_equals(true).default_missing_value(default)
        }
        Takes::Word(words) => arg.value_name("WORD").value_parser(PossibleValuesParser::new(words)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_tree_is_sound() {
        all().debug_assert();
    }

    #[test]
    fn closing_has_its_place_and_is_still_a_word_of_filters() {
        let mut sockets = one("sockets").unwrap();
        let help = sockets.render_long_help().to_string();
        assert!(help.contains("kill  Close TCP"), "{help}");
        let matches = sockets.try_get_matches_from(["sockets", "process", "=", "kill"]).unwrap();
        assert!(matches.subcommand().is_none());
        assert_eq!(matches.get_many::<String>("filter").unwrap().count(), 3);
        assert!(all().find_subcommand("sockets").unwrap().find_subcommand("kill").is_some());
    }

    #[test]
    fn every_flag_is_taken() {
        for flag in FLAGS {
            let word = match flag.takes {
                Takes::Nothing | Takes::Maybe(..) => format!("--{}", flag.long),
                Takes::Value(_) => format!("--{}=1", flag.long),
                Takes::Word(words) => format!("--{}={}", flag.long, words[0]),
            };
            let matches = one("sockets").unwrap().try_get_matches_from(["sockets", &word]);
            assert!(matches.is_ok(), "{word}");
        }
    }
}
