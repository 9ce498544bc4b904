//! `netwren log check`: checks a configuration and describes its effect. Binds and writes nothing.

use super::{COMMAND as LOG, Log, asked};
use crate::command::{Command, ParsedWords, Positional};
use crate::commands::plan::of_request;
use crate::config::{Config, USUAL};
use crate::flags::defs::Scope;
use crate::flags::parser;
use lookups::log_groups::describe_holder;
use lookups::session::Session;
use nflog::GroupReader;
use record::rows::LogRecords;
use runtime::exit::Exit;
use runtime::outcome::Outcome;
use runtime::print;
use shipping::ShipRequest;
use shipping::Shipment;
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
    run: Some(run),
    ..Command::TABLE
};

const EXAMPLES: &str = "\
Examples:
  netwren log check /etc/netwren/log.toml && systemctl reload netwren-log
";

fn run(words: &ParsedWords<'_>) -> Result<Outcome, String> {
    let file = words.file("file").unwrap_or(Path::new(USUAL));
    let config = match Config::read(file, &LOG) {
        Ok(config) => config,
        Err(outcome) => return Ok(outcome),
    };
    let looked = parser::parse(&LOG, Vec::new(), words.commands, |line| config.run(line, looked_over));
    looked.map_err(|error| error.to_string())
}

fn looked_over(words: &ParsedWords<'_>) -> Result<Outcome, String> {
    let log = asked(words)?;
    let plan = match of_request::<LogRecords>(&log.request) {
        Ok(plan) => plan,
        Err(wrong) => return Ok(Outcome::with_message(Exit::Usage, wrong)),
    };
    if let Some(ship) = &log.request.ship {
        Shipment::<LogRecords>::check(ship, plan.columns())?;
    }
    let session = match Session::open(log.request.target()) {
        Ok(session) => session,
        Err(error) => return Ok(Outcome::with_message(error.exit(), error)),
    };
    let exit = print::print_prose(&described(&log));
    let mut messages = log.request.ship.as_ref().map(ShipRequest::find_troubles).unwrap_or_default();
    let exit = if messages.is_empty() { exit } else { Exit::Failed };
    messages.extend(notes(&log, &session));
    Ok(Outcome { exit, messages })
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
    use super::*;
    use std::cell::RefCell;

    /// Parses the request and clears the words it was made from.
    fn wordless(words: &ParsedWords<'_>) -> Result<Log, String> {
        let mut log = asked(words)?;
        log.request.flags = None;
        Ok(log)
    }

    /// The request of a file with this text and these flags.
    fn of_file(text: &str, flags: &str) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let asked_for = RefCell::default();
        let run = |words: &ParsedWords<'_>| {
            asked_for.replace(format!("{:#?}", wordless(words)?));
            Ok(Exit::Ok.into())
        };
        let Ok(config) = Config::read(file.path(), &LOG) else { return "unreadable".to_owned() };
        let outcome = parser::parse_line(&LOG, flags, |line| config.run(line, run)).unwrap();
        assert_eq!(outcome.messages, [""; 0]);
        asked_for.into_inner()
    }

    #[test]
    fn a_file_asks_for_what_flags_ask_for() {
        let of_flags = |line: &str| format!("{:#?}", parser::parse_line(&LOG, line, wordless).unwrap());
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
