//! `netwren nat stateless`: publishes ports without connection tracking.

use crate::command::{Command, ParsedWords, Positional, Prepared, ready};
use crate::flags::defs::Scope;
use lookups::session::{Session, SessionTarget};
use probes::nat::stateless;
use probes::stateless::Plan;
use runtime::outcome::Outcome;
use runtime::print;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The registry's entry for the common prefix of the next two commands.
pub(crate) static COMMAND: Command = Command {
    name: "nat stateless",
    about: "Publish ports without connection tracking: each packet is rewritten on its own",
    examples: EXAMPLES,
    scope: Scope::NONE,
    positional: Positional::None,
    ..Command::TABLE
};

/// The registry's entry of `nat stateless plan`.
pub(crate) static PLAN: Command = Command {
    name: "nat stateless plan",
    about: "Write the rules; with --apply --yes install them with nft(8)",
    examples: EXAMPLES,
    scope: Scope::RULES,
    positional: Positional::None,
    prepare: Some(|words| prepare(words, plan_asked(words)?)),
    ..Command::TABLE
};

/// The registry's entry of `nat stateless verify`.
pub(crate) static VERIFY: Command = Command {
    name: "nat stateless verify",
    about: "Check that packets are rewritten in both directions; exit with 1 if not",
    scope: Scope::VERIFY,
    positional: Positional::None,
    prepare: Some(|words| prepare(words, verify_asked(words)?)),
    ..Command::TABLE
};

const EXAMPLES: &str = "\
Examples:
  netwren nat stateless plan --publish 8080:172.17.0.2:8080       show the rules for nft(8), change nothing
  netwren nat stateless plan --publish 80:10.0.0.2:80 --publish 53:10.0.0.3:53
  netwren nat stateless plan --publish 8080:172.17.0.2:8080 --apply --yes
  netwren nat stateless verify --within 10                        wait until packets pass in both directions
  netwren nat stateless plan --undo --yes                         remove the rules
";

/// Default time to wait for packets.
///
/// Bound: in which the packets of new stateless rules are watched. Beyond: a silent port gets no verdict; reported. A
/// peer that sends packets to the port during this time can cause its rule to be removed again (`--no-undo`). By: a
/// remote peer.
const WATCHED: Duration = Duration::from_secs(5);
/// Valid times in seconds.
const WATCHED_S: RangeInclusive<f64> = 0.0..=86_400.0;

/// The task of the command.
#[derive(Debug, PartialEq, Eq)]
enum Task {
    /// Print the rules, or apply them.
    Plan {
        /// `--publish` in the user's notation.
        publishes: Vec<String>,
        /// `--no-helper`
        no_helper: bool,
        /// `--apply`: install the rules instead of only printing them.
        apply: bool,
        /// `--yes`: make the changes instead of only describing them.
        yes: bool,
        /// `--probe`: how long to watch packets after the rules are installed.
        probe: Duration,
        /// `--no-undo`: keep the rules even if only one direction moves.
        no_undo: bool,
    },
    /// Remove the rules.
    Undo {
        /// `--yes`: make the changes instead of only describing them.
        yes: bool,
    },
    /// Check whether packets were seen in both directions.
    Verify {
        /// `--within`: how long to watch packets.
        within: Duration,
        /// `-o json`
        json: bool,
    },
}

fn plan_asked(words: &ParsedWords<'_>) -> Result<Task, String> {
    let publishes: Vec<String> = words.values("publish").into_iter().map(str::to_owned).collect();
    let [undo, apply, yes, no_helper, no_undo] =
        ["undo", "apply", "yes", "no-helper", "no-undo"].map(|flag| words.has(flag));
    let probe = words.seconds("probe", WATCHED_S)?.unwrap_or(WATCHED);
    let wrong = match (undo, publishes.is_empty()) {
        (true, false) => "--undo removes all rules: leave out --publish",
        (true, true) if apply => "--undo cannot be used with --apply",
        (true, true) => return Ok(Task::Undo { yes }),
        (false, true) => "no port to publish: add --publish [ADDR:]PORT:BACKEND:PORT[/tcp|/udp]",
        (false, false) if no_undo && !apply => "--no-undo needs --apply",
        (false, false) if yes && !apply => "--yes needs --apply or --undo",
        (false, false) => return Ok(Task::Plan { publishes, no_helper, apply, yes, probe, no_undo }),
    };
    Err(wrong.to_owned())
}

fn verify_asked(words: &ParsedWords<'_>) -> Result<Task, String> {
    let within = words.seconds("within", WATCHED_S)?.unwrap_or(WATCHED);
    Ok(Task::Verify { within, json: words.output() == Some("json") })
}

fn prepare(words: &ParsedWords<'_>, task: Task) -> Prepared<'static> {
    let target = SessionTarget { netns: words.text("netns"), ..SessionTarget::default() };
    ready(move || done(target, task))
}

fn done(target: SessionTarget, task: Task) -> Outcome {
    let session = match Session::open(target) {
        Ok(session) => session,
        Err(error) => return Outcome::with_message(error.exit(), error),
    };
    match task {
        Task::Plan { publishes, no_helper, apply, yes, probe, no_undo } => {
            let planned = match stateless::make_plan(&session, &publishes, no_helper) {
                Ok(planned) => planned,
                Err(outcome) => return outcome,
            };
            if apply && yes {
                stateless::put_in_place(&session, &planned, probe, no_undo)
            } else {
                shown(&planned, apply)
            }
        }
        Task::Undo { yes } => stateless::undo(yes),
        Task::Verify { within, json } => stateless::verify(&session, within, json),
    }
}

fn shown(plan: &Plan, apply: bool) -> Outcome {
    let exit = print::print(&plan.ruleset());
    let mut messages = plan.warnings.clone();
    if apply {
        messages.push("nothing was changed, --yes applies these rules".to_owned());
    }
    Outcome { exit, messages }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::flags::parser;

    fn parse(line: &str) -> Result<Task, clap::Error> {
        static COMMANDS: [&Command; 3] = [&COMMAND, &PLAN, &VERIFY];
        let mut words: Vec<std::ffi::OsString> = line.split_whitespace().map(Into::into).collect();
        let mut command = &COMMAND;
        if let Some(name) = words.first().and_then(|word| word.to_str()).map(|word| format!("nat stateless {word}")) {
            command = COMMANDS.iter().find(|command| command.name == name).unwrap();
            words.remove(0);
        }
        let read = if command.name == PLAN.name { plan_asked } else { verify_asked };
        parser::parse(command, words, &COMMANDS, read)
    }

    #[test]
    fn nothing_changes_by_accident() {
        let Task::Plan { apply, yes, publishes, .. } = parse("plan -p 80:10.0.0.2:80 -p 81:10.0.0.2:81").unwrap()
        else {
            panic!("a plan")
        };
        assert_eq!((apply, yes, publishes.len()), (false, false, 2));
        assert_eq!(parse("plan --undo").unwrap(), Task::Undo { yes: false });
        let within = Duration::from_millis(1500);
        assert_eq!(parse("verify --within 1.5s").unwrap(), Task::Verify { within, json: false });
        for (line, says) in [
            ("", "Usage"),
            ("plan", "no port to publish"),
            ("plan --undo -p 80:10.0.0.2:80", "leave out --publish"),
            ("plan --undo --apply", "cannot be used with"),
            ("plan -p 80:10.0.0.2:80 --yes", "needs --apply"),
            ("verify --within soon", "takes seconds"),
            ("verify --within -1", "not `-1`"),
        ] {
            let said = parse(line).unwrap_err().to_string();
            assert!(said.contains(says), "{line}: {said}");
        }
    }
}
