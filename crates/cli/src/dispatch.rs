//! Runs the command that the command line names.

use crate::command::{Command, Commands, ParsedWords};
use crate::flags::parser;
use crate::hints;
use crate::output;
use runtime::exit::Exit;
use runtime::messages::print_message;
use runtime::outcome::Outcome;
use std::ffi::OsString;

/// Runs the command that the words name, and prints its messages; `None` if they name no command.
pub(crate) fn run(mut words: Vec<OsString>, commands: Commands) -> Option<Exit> {
    let command = parser::find(&mut words, commands)?;
    Some(run_command(command, words, commands))
}

/// Runs a command with its words, and prints its messages.
pub(crate) fn run_command(command: &'static Command, words: Vec<OsString>, commands: Commands) -> Exit {
    let words = parser::without_numeric(words, command);
    let near = hints::near_subcommand(&words, command, commands);
    let Outcome { exit, messages } = outcome(command, words, commands);
    messages.iter().for_each(|line| print_message(line));
    if let Some(near) = near.filter(|_| exit == Exit::Usage) {
        print_message(&format!("did you mean the command: {near}"));
    }
    exit
}

/// Runs a command with its words; its messages are left to the caller.
fn outcome(command: &'static Command, words: Vec<OsString>, commands: Commands) -> Outcome {
    parser::parse(command, words.clone(), commands, parsed).unwrap_or_else(|error| {
        let text = hints::refusal(&error, &words, command, commands);
        output::refused(&text.map_or(error, |text| parser::error(command, &text))).into()
    })
}

fn parsed(words: &ParsedWords<'_>) -> Result<Outcome, String> {
    let outcome = match words.prepare() {
        Ok(run) => run(),
        Err(refusal) => refusal.into_outcome(),
    };
    outcome.map(|outcome| without_done_advice(words, outcome))
}

/// The advice at the end of messages about data that a recording lacks.
const ADVICE: &str = " (`netwren record FILE` records everything)";

/// Removes the advice to record everything if the recording already holds everything.
fn without_done_advice(words: &ParsedWords<'_>, mut outcome: Outcome) -> Outcome {
    if !outcome.messages.iter().any(|line| line.contains(ADVICE)) {
        return outcome;
    }
    let holds_everything = |flag| {
        let file = words.has_file(flag).then(|| words.file(flag)).flatten();
        file.is_some_and(|file| lookups::recording_file::header_of(file).is_ok_and(|header| header.holds_everything))
    };
    if ["replay", "baseline"].into_iter().any(holds_everything) {
        outcome.messages.iter_mut().for_each(|line| *line = line.replace(ADVICE, ""));
    }
    outcome
}
