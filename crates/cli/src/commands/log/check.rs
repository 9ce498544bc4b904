//! `netwren log check`: checks a configuration and describes its effect. Binds and writes nothing.

use super::{COMMAND as LOG, Log, asked_and_planned};
use crate::command::{Command, ParsedWords, Positional, Prepared};
use crate::config::{Config, USUAL};
use crate::flags::defs::Scope;
use crate::flags::parser;
use lookups::log_groups::describe_holder;
use lookups::session::Session;
use nflog::GroupReader;
use runtime::exit::Exit;
use runtime::outcome::Outcome;
use runtime::print;
use shipping::ShipRequest;
use std::fmt::Write;
use std::path::Path;
use sys::caps::{self, Cap};

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    name: "log check",
    about: "Check a configuration of `log` without binding groups, and show what it would do",
    examples: EXAMPLES,
    scope: Scope::NONE,
    positional: Positional::MaybeFile(USUAL),
    prepare: Some(prepare),
    ..Command::TABLE
};

const EXAMPLES: &str = "\
Examples:
  netwren log check /etc/netwren/log.toml && systemctl reload netwren-log
";

fn prepare<'w>(words: &'w ParsedWords<'w>) -> Prepared<'w> {
    Ok(Box::new(|| {
        let file = words.file("file").unwrap_or(Path::new(USUAL));
        let config = match Config::read(file, &LOG) {
            Ok(config) => config,
            Err(outcome) => return Ok(outcome),
        };
        config.warn();
        let parsed = parser::parse(&LOG, Vec::new(), words.commands, |line| Ok(config.parse(line, asked_and_planned)));
        match parsed.map_err(|error| error.to_string())? {
            Ok((log, _)) => Ok(look_over(&log)),
            Err(outcome) => Ok(outcome),
        }
    }))
}

fn look_over(log: &Log) -> Outcome {
    let session = match Session::open(log.request.target()) {
        Ok(session) => session,
        Err(error) => return Outcome::with_message(error.exit(), error),
    };
    let exit = print::print_prose(&described(log));
    let mut messages = log.request.ship.as_ref().map(ShipRequest::find_troubles).unwrap_or_default();
    let exit = if messages.is_empty() { exit } else { Exit::Failed };
    messages.extend(notes(log, &session));
    Outcome { exit, messages }
}

/// Describes what the configuration would do, line by line.
fn described(log: &Log) -> String {
    let groups: Vec<String> = log.groups.iter().map(u16::to_string).collect();
    let mut text = format!(
        "listens to group {}: {} bytes of each packet, records wait up to {} ms, buffer of {} KiB\n",
        groups.join(", "),
        log.copy_bytes,
        log.latency.as_millis(),
        log.buffer_bytes >> 10
    );
    if !log.request.shown.filter.is_empty() {
        let _ = writeln!(text, "takes only {}", log.request.shown.filter);
    }
    match &log.request.ship {
        Some(ship) => text.push_str(&ship.describe()),
        None => text.push_str("shows rows on standard output\n"),
    }
    text
}

/// Useful notes that may no longer apply when it starts.
fn notes(log: &Log, session: &Session) -> Vec<String> {
    let mut notes = Vec::new();
    if !caps::effective().is_ok_and(|held| held.contains(Cap::NetAdmin)) {
        notes.push("this user may not bind log groups: CAP_NET_ADMIN is required".to_owned());
    }
    for group in &log.groups {
        if let Some(taken) = GroupReader::find_reader(session.host(), *group) {
            notes.push(describe_holder(session, &taken));
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::asked;
    use super::*;
    use crate::command::Refusal;

    /// Parses the request and clears the words it was made from.
    fn wordless(words: &ParsedWords<'_>) -> Result<String, Refusal> {
        let mut log = asked(words)?;
        log.request.flags = None;
        Ok(format!("{log:#?}"))
    }

    /// The request of a file with this text and these flags.
    fn of_file(text: &str, flags: &str) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let Ok(config) = Config::read(file.path(), &LOG) else { return "unreadable".to_owned() };
        let parsed = parser::parse_line(&LOG, flags, |line| Ok(config.parse(line, wordless))).unwrap();
        parsed.unwrap_or_else(|outcome| outcome.messages.join("\n"))
    }

    #[test]
    fn a_file_asks_for_what_flags_ask_for() {
        let of_flags =
            |line: &str| parser::parse_line(&LOG, line, |words| wordless(words).map_err(Refusal::into_text)).unwrap();
        let text = "group = [1, 5]\nlatency = '1s'\ncopy = 64\nbuffer = '1MiB'\nfilter = 'dport = 22'\n\
                    columns = ['+ttl', '-prefix']\nto = ['json:/tmp/x', 'syslog+tcp://a:1']\nspool = '/tmp/y'\n\
                    spool-max = '32MiB'\nspool-sync = 'always'\nwhen-full = 'block'\nqueue-max = '8MiB'\n\
                    rotate-size = '1MiB'\nrotate-keep = 3\ncontrol = '/tmp/z'\nstats = true\nlimit = 7\n";
        let flags = "--group 1,5 --latency 1s --copy 64 --buffer 1MiB dport = 22 --columns +ttl,-prefix \
                     --to json:/tmp/x --to syslog+tcp://a:1 --spool /tmp/y --spool-max 32MiB --spool-sync always \
                     --when-full block --queue-max 8MiB --rotate-size 1MiB --rotate-keep 3 --control /tmp/z --stats \
                     --limit 7";
        assert_eq!(of_file(text, ""), of_flags(flags));
        let given = "--group 9 --to json:/tmp/q dport = 23 --limit 1 --columns -prefix";
        assert_eq!(
            of_file(text, given),
            of_flags(
                &flags
                    .replace("--group 1,5", "--group 9")
                    .replace("22", "23")
                    .replace("--to json:/tmp/x --to syslog+tcp://a:1", "--to json:/tmp/q")
                    .replace("--limit 7", "--limit 1")
                    .replace("+ttl,", "")
            )
        );
        assert_eq!(of_file("group = 3\nstats = false\nto = []\nresolve = true\n", ""), of_flags("--group 3 --resolve"));
    }
}
