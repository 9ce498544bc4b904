//! `netwren log check`: checks a configuration and describes its effect. Binds and writes nothing.

use super::{COMMAND as LOG, Log, asked};
use crate::command::{Command, ParsedWords, Positional};
use crate::commands::plan::of_request;
use crate::config::{Config, USUAL};
use crate::flags::defs::Scope;
use crate::flags::parser;
use export::{Address, Control, Target, check_spool};
use lookups::session::Session;
use nflog::GroupTaken;
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
        Err(wrong) => return Ok(Outcome::because(Exit::Usage, wrong)),
    };
    if let Some(ship) = &log.request.ship {
        Shipment::<LogRecords>::check(ship, plan.columns())?;
    }
    let session = match Session::open(log.request.target()) {
        Ok(session) => session,
        Err(error) => return Ok(Outcome::because(error.exit(), error)),
    };
    let exit = print::print_prose(&described(&log));
    let mut messages = troubles(&log);
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
        Some(ship) => describe_outputs(&mut text, ship),
        None => text.push_str("shows rows on standard output\n"),
    }
    text
}

fn describe_outputs(text: &mut String, ship: &ShipRequest) {
    let waits = match &ship.spool {
        Some(spool) => format!("queue of up to {} MiB in {}", spool.bytes_max >> 20, spool.dir.display()),
        None => format!("queue of up to {} MiB in memory", ship.queue_max >> 20),
    };
    for target in &ship.targets {
        let _ = writeln!(text, "ships to {target}: {waits}, when full {}", ship.when_full.word());
    }
    if let Some(path) = &ship.control {
        let _ = writeln!(text, "answers at {}", path.display());
    }
}

/// Problems that would prevent it from working for this user.
fn troubles(log: &Log) -> Vec<String> {
    let Some(ship) = &log.request.ship else { return Vec::new() };
    let mut troubles: Vec<String> = ship.targets.iter().filter_map(file_trouble).collect();
    if let Some(Err(error)) = ship.spool.as_ref().map(|spool| check_spool(&spool.dir)) {
        troubles.push(format!("spool: {error}"));
    }
    if let Some(Err(error)) = ship.control.as_deref().map(Control::check_directory) {
        troubles.push(format!("control: {error}"));
    }
    troubles
}

/// The reason why a file cannot be written.
fn file_trouble(target: &Target) -> Option<String> {
    let Address::File(path) = &target.address else { return None };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (checked, what) = if path.exists() { (path.as_path(), "to it") } else { (parent, "to its directory") };
    match sys::fs::may_write(checked) {
        Ok(()) => None,
        Err(error) => Some(format!("{target}: cannot write {what}: {}", error.errno)),
    }
}

/// Useful notes that may no longer apply when it starts.
fn notes(log: &Log, session: &Session) -> Vec<String> {
    let mut notes = Vec::new();
    if !caps::effective().is_ok_and(|held| held.has(Cap::NetAdmin)) {
        notes.push("this user may not bind log groups: CAP_NET_ADMIN is required".to_owned());
    }
    for group in &log.groups {
        if let Some(taken) = GroupTaken::now(session.host(), *group) {
            notes.push(super::holder_of(session, &taken));
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
