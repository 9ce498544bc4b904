//! `netwren` alone: the tables of the home screen, who listens and who talks; of a recording: who did then.

use crate::command::{Commands, HomePart};
use crate::dispatch;
use crate::exit::Exit;
use crate::messages::say;
use crate::output;
use std::ffi::OsString;
use std::path::Path;
use sys::{Header, Host};

/// Shows every table that has a place on the home screen; returns the worst of their exit codes. What several of them
/// have to say is said once, at the end.
pub(crate) fn overview(replay: Option<&Path>, commands: Commands) -> Exit {
    let (mut worst, mut messages) = (Exit::Ok, Vec::new());
    if let Some(file) = replay {
        match Host::header_of(file) {
            Ok(header) => worst = output::print(&recorded(&header)),
            Err(error) => {
                say(&error.to_string());
                return Exit::Failed;
            }
        }
    }
    let parts = commands.iter().filter_map(|command| Some((*command, command.home?)));
    for (i, (command, home)) in parts.enumerate() {
        let space = if i == 0 { "" } else { "\n" };
        let title = output::print(&format!("{space}{}\n", home.title));
        let part = dispatch::outcome(command, words(home, replay), commands);
        let new: Vec<String> = part.messages.into_iter().filter(|line| !messages.contains(line)).collect();
        messages.extend(new);
        worst = [worst, title, part.exit].into_iter().max_by_key(|exit| *exit as u8).unwrap_or(worst);
    }
    messages.iter().for_each(|line| say(line));
    worst
}

fn words(home: HomePart, replay: Option<&Path>) -> Vec<OsString> {
    let replay = replay.into_iter().flat_map(|file| ["--replay".into(), file.into()]);
    home.words.iter().map(OsString::from).chain(replay).collect()
}

/// Over the tables of a recording: when they were so, and where.
fn recorded(header: &Header) -> String {
    format!("Recorded at {} on Linux {} ({})\n\n", header.time.rfc3339(), header.kernel.release, header.kernel.machine)
}
