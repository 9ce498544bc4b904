//! The command line of `netwren nat stateless`.

use super::command;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::ffi::OsString;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  netwren nat stateless plan --publish 8080:172.17.0.2:8080       the rules, for nft(8); nothing is changed
  netwren nat stateless plan --publish 192.0.2.1:443:10.0.0.2:8443 --publish 53:10.0.0.3:53/udp
  netwren nat stateless plan --publish 8080:172.17.0.2:8080 --apply --yes
  netwren nat stateless verify --within 10                        watch until packets move both ways
  netwren nat stateless plan --undo --yes                         take the rules away again
";

/// A parsed `nat stateless`.
#[derive(Debug)]
pub(crate) struct Stateless {
    /// What is to be done.
    pub(crate) task: Task,
    /// `--netns`
    pub(crate) netns: Option<String>,
}

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Write the rules, or apply them.
    Plan {
        /// `--publish`, as written.
        publishes: Vec<String>,
        /// `--no-helper`
        no_helper: bool,
        /// `--apply`: not only written.
        apply: bool,
        /// `--yes`: not only shown.
        yes: bool,
        /// `--probe`: how long packets are watched after the rules are in place.
        probe: Duration,
        /// `--no-undo`: the rules stay if only one direction moves.
        no_undo: bool,
    },
    /// Take the rules away.
    Undo {
        /// `--yes`: not only shown.
        yes: bool,
    },
    /// Look whether packets were seen in both directions.
    Verify {
        /// `--within`: how long packets are watched.
        within: Duration,
        /// `-o json`
        json: bool,
    },
}

impl Stateless {
    /// Reads the words behind `nat stateless`; clap's error knows what to print and where.
    pub(crate) fn parse(args: impl Iterator<Item = OsString>) -> Result<Stateless, clap::Error> {
        let read = |matches: &ArgMatches| match matches.subcommand() {
            Some(("plan", words)) => planned(words),
            Some(("verify", words)) => verified(words),
            _ => Err("`nat stateless` needs a word: plan or verify"),
        };
        command::parse(command(), args, |matches| read(matches).map_err(str::to_owned))
    }
}

fn netns(matches: &ArgMatches) -> Option<String> {
    matches.get_one::<String>("netns").cloned()
}

fn planned(words: &ArgMatches) -> Result<Stateless, &'static str> {
    let publishes: Vec<String> = words.get_many::<String>("publish").into_iter().flatten().cloned().collect();
    let [undo, apply, yes, no_helper, no_undo] =
        ["undo", "apply", "yes", "no-helper", "no-undo"].map(|flag| words.get_flag(flag));
    let probe = seconds(words, "probe", "--probe takes seconds, at most a day's")?;
    let task = match (undo, publishes.is_empty()) {
        (true, false) => return Err("--undo takes everything away: leave out --publish"),
        (true, true) if apply => return Err("--undo and --apply exclude each other"),
        (true, true) => Task::Undo { yes },
        (false, true) => return Err("what is to be published? --publish [ADDR:]PORT:BACKEND:PORT[/tcp|/udp]"),
        (false, false) if no_undo && !apply => return Err("--no-undo goes with --apply"),
        (false, false) if yes && !apply => return Err("--yes goes with --apply or --undo"),
        (false, false) => Task::Plan { publishes, no_helper, apply, yes, probe, no_undo },
    };
    Ok(Stateless { task, netns: netns(words) })
}

/// How long packets are watched if nobody says.
const WATCHED: Duration = Duration::from_secs(5);

fn seconds(words: &ArgMatches, flag: &str, wrong: &'static str) -> Result<Duration, &'static str> {
    let Some(text) = words.get_one::<String>(flag) else { return Ok(WATCHED) };
    let seconds = text.trim_end_matches('s').parse::<f64>().ok();
    seconds.filter(|seconds| (0.0..=86_400.0).contains(seconds)).map(Duration::from_secs_f64).ok_or(wrong)
}

fn verified(words: &ArgMatches) -> Result<Stateless, &'static str> {
    let within = seconds(words, "within", "--within takes seconds, at most a day's")?;
    let json = words.get_one::<String>("output").is_some_and(|word| word == "json");
    Ok(Stateless { task: Task::Verify { within, json }, netns: netns(words) })
}

/// The clap command.
pub(super) fn command() -> Command {
    let switch =
        |name: &'static str, help: &'static str| Arg::new(name).long(name).help(help).action(ArgAction::SetTrue);
    let netns = || {
        Arg::new("netns")
            .long("netns")
            .value_name("NAME|PID|PATH")
            .help("The network namespace whose packets are rewritten, instead of one's own")
    };
    let plan = Command::new("plan")
        .about("Write the rules; with --apply --yes let nft(8) put them in place")
        .after_help(EXAMPLES)
        .arg(
            Arg::new("publish")
                .long("publish")
                .short('p')
                .value_name("[ADDR:]PORT:BACKEND:PORT[/tcp|/udp]")
                .action(ArgAction::Append)
                .help("A port of this host and where it really is; may be given several times; IPv6 in brackets"),
        )
        .arg(switch("no-helper", "Publish ports of FTP and the like all the same: something else is spoken there"))
        .arg(switch("apply", "Put the rules in place of those applied before; without --yes only show them"))
        .arg(switch("undo", "Take the rules away again; without --yes only show them"))
        .arg(switch("yes", "Really change the rules"))
        .arg(Arg::new("probe").long("probe").value_name("SECONDS").help(
            "How long packets are watched after --apply --yes (5): if they move in one direction only, what was before is \
             put back. 0 watches none",
        ))
        .arg(switch("no-undo", "Leave the rules in place even if packets move in one direction only"))
        .arg(netns());
    let verify = Command::new("verify")
        .about("Look whether packets are rewritten in both directions from now on; exit code 1 if not")
        .arg(Arg::new("within").long("within").value_name("SECONDS").help("Watch at most so long, until it is so (5)"))
        .arg(
            Arg::new("output")
                .long("output")
                .short('o')
                .value_name("WORD")
                .value_parser(PossibleValuesParser::new(["table", "json"]))
                .help("How it is shown"),
        )
        .arg(netns());
    Command::new("stateless")
        .bin_name("netwren nat stateless")
        .about("Publish ports without connection tracking: every packet is rewritten by itself")
        .after_help(EXAMPLES)
        .disable_help_subcommand(true)
        .subcommand_required(true)
        .subcommands([plan, verify])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn parse(line: &str) -> Result<Stateless, clap::Error> {
        Stateless::parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn the_command_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn nothing_changes_by_accident() {
        let Task::Plan { apply, yes, publishes, .. } = parse("plan -p 80:10.0.0.2:80 -p 81:10.0.0.2:81").unwrap().task
        else {
            panic!("a plan")
        };
        assert_eq!((apply, yes, publishes.len()), (false, false, 2));
        assert_eq!(parse("plan --undo").unwrap().task, Task::Undo { yes: false });
        let within = Duration::from_millis(1500);
        assert_eq!(parse("verify --within 1.5s").unwrap().task, Task::Verify { within, json: false });
        for (line, says) in [
            ("", "Usage"),
            ("plan", "what is to be published"),
            ("plan --undo -p 80:10.0.0.2:80", "leave out --publish"),
            ("plan --undo --apply", "exclude each other"),
            ("plan -p 80:10.0.0.2:80 --yes", "goes with --apply"),
            ("verify --within soon", "takes seconds"),
            ("verify --within -1", "'-1'"),
        ] {
            let said = parse(line).unwrap_err().to_string();
            assert!(said.contains(says), "{line}: {said}");
        }
    }
}
