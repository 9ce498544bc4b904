#![allow(clippy::unwrap_used, clippy::panic)]
//! Collects every command that a message about a wrong command line can propose, from the tables that the proposals are
//! made of, and runs each of them.
use super::*;
use crate::command::ParsedWords;
use crate::flags::parser;
use crate::registry::COMMANDS;
use record::{FieldInfo, Kind};
use std::collections::BTreeSet;
use std::process::{Command as Process, Output};
use std::sync::Mutex;
use testkit::netns::Lab;

/// Text after a switch of another tool.
const AFTER: [&str; 3] = ["", " -n 5 --json", " 53 -c state port = 80"];
/// Filters in the words of other tools, slips, and words that mean a process. A filter that a table understands as it
/// is also has an unknown field, so that it is wrong for every table.
const FILTERS: [&str; 16] = [
    "dst port 80 zzz = 2",
    "src host 10.1.2.3 zzz = 2",
    "net 10.0.0.0/8 zzz = 2",
    "10.1.2.3:443 zzz = 2",
    "unreplied zzz = 2",
    "zzz",
    "8080",
    "tcp zzz",
    "statee = x",
    "prot = 1",
    "listn",
    "listening listn",
    "sport = :22 listn",
    "state estab listn",
    "not listn",
    "peer = 1 and zzz = 2",
];
/// Words that a table needs before a filter.
const BEFORE: [(&str, &str); 4] =
    [("sockets", "--follow"), ("flows", "--follow"), ("log", "--group 1"), ("log top", "--group 1")];

fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

/// The lines `did you mean: netwren …` of a message, without `netwren`.
fn lines_of(text: &str) -> Vec<String> {
    let meant = ["did you mean: netwren ", "did you mean the command: netwren "];
    let of = move |line: &str| meant.iter().find_map(|begin| line.split_once(begin).map(|(_, line)| line.to_owned()));
    text.lines().filter_map(of).collect()
}

/// The message about the words after a command; empty if the command takes them.
fn message(command: &'static Command, line: &str) -> String {
    let parsed = parser::parse(command, words(line), COMMANDS, |_: &ParsedWords<'_>| Ok(()));
    let text = parsed.err().and_then(|error| refusal(&error, &words(line), command, COMMANDS)).unwrap_or_default();
    let near = near_subcommand(&words(line), command, COMMANDS);
    near.map_or(text.clone(), |near| format!("{text}\ndid you mean the command: {near}"))
}

/// A value that a filter compares a field of this kind with.
fn value_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Addr => "10.1.2.3",
        Kind::Endpoint => "10.1.2.3:53",
        Kind::Bool => "true",
        Kind::Time => "10:30",
        Kind::Name(names) | Kind::Words(names) => names.first().unwrap_or(&"x"),
        Kind::Text | Kind::Texts => "x",
        _ => "53",
    }
}

/// Options that a command does not have: every letter, options of other tools, its subcommands, and a field of each
/// kind.
fn wrong_options(command: &'static Command) -> Vec<String> {
    let letters = ('a'..='z').chain('A'..='Z').chain('0'..='9');
    let switches = letters.flat_map(|letter| AFTER.map(|after| format!("-{letter}{after}")));
    let clusters = ["-tlnp", "-tul -n 5", "-s 10.1.2.3 -d 10.1.2.4 -p udp", "-o"].map(str::to_owned);
    let others = option::ELSEWHERE.iter().flat_map(|(other, _)| [format!("{other} x"), format!("{other} pid=1")]);
    let below = COMMANDS.iter().filter(|other| other.is_below(command.name)).flat_map(|other| {
        let word = other.word();
        [format!("--{word}"), format!("--{word} pid=1"), word.get(1..).unwrap_or_default().to_owned()]
    });
    let mut kinds = BTreeSet::new();
    let fields = command.tables.first().map(|table| table.fields()).into_iter().flatten();
    let fields = fields.filter(|field| kinds.insert(format!("{:?}", std::mem::discriminant(&field.kind)))).flat_map(
        |FieldInfo { name, kind, .. }| {
            let (option, value) = (name.replace('_', "-"), value_of(kind));
            [format!("--{option} {value}"), format!("--{option}={value} -n 3"), format!("--{option}")]
        },
    );
    switches.chain(clusters).chain(others).chain(below).chain(fields).collect()
}

/// Every proposal about words and options, which needs no run.
fn word_proposals() -> BTreeSet<String> {
    let meant = command_word::MEANT.iter().flat_map(|(words, _)| words.iter().map(|word| (*word).to_owned()));
    let slips = COMMANDS.iter().map(|command| command.name).chain(faces::FACES.iter().map(|face| face.name));
    let slips = slips.filter(|name| !name.contains(' ')).map(|name| format!("{name}q"));
    let mut found: BTreeSet<String> =
        meant.chain(slips).flat_map(|word| lines_of(&unknown_command(&word, COMMANDS))).collect();
    for command in COMMANDS.iter().copied() {
        found.extend(wrong_options(command).iter().flat_map(|line| lines_of(&message(command, line))));
    }
    found
}

/// Runs a line in the lab for at most two seconds.
fn run(lab: &Lab, line: &str) -> Output {
    let mut command: Process = lab.command("timeout");
    command.args(["--signal=INT", "2", "sh", "-c"]).env_remove("NETWREN_FAULTS").env("TZ", "UTC");
    let line = format!("exec {} {line}", testkit::program::netwren().display());
    command.arg(line).current_dir(lab.dir()).output().unwrap()
}

/// Flags that end a proposed line that would otherwise run on.
fn ending(line: &str) -> &'static str {
    let is = |names: &[&str]| names.iter().any(|name| line.starts_with(name));
    match () {
        () if line.contains("--help") => "",
        () if is(&["tcpdump"]) => " -d",
        () if is(&["capture stats", "capture cut", "capture merge", "capture latency"]) => "",
        () if is(&["capture", "drops", "counters", "nat events", "log top", "log tail"]) => " --explain",
        () if is(&["log -", "log '"]) => " --explain",
        () if is(&["doctor"]) || line.contains("--watch") => " --for 0.05",
        () => "",
    }
}

/// The proposals about filters of a table, which only a run makes.
fn filter_proposals(lab: &Lab, command: &Command) -> Vec<String> {
    let before = BEFORE.iter().filter(|(name, _)| *name == command.name).map(|(_, words)| *words);
    let filters = before.chain([""]).flat_map(|before| FILTERS.map(|filter| format!("{before} {filter}")));
    // A recording that does not exist ends the run if the filter is right.
    let line = |filter: String| format!("{} {filter} --replay /nonexistent", command.name);
    let text = |line: String| String::from_utf8_lossy(&run(lab, &line).stderr).into_owned();
    let named = ["lo", "lo port 80"].map(|filter| format!("capture {filter} --explain"));
    let named = named.into_iter().filter(|_| command.name == "capture");
    filters.map(line).chain(named).flat_map(|line| lines_of(&text(line))).collect()
}

/// Calls `each` with every item, four at a time.
fn side_by_side<T: Send>(items: impl IntoIterator<Item = T, IntoIter: Send>, each: impl Fn(T) + Sync) {
    let left = Mutex::new(items.into_iter());
    let next = || left.lock().unwrap().next();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| std::iter::from_fn(next).for_each(&each));
        }
    });
}

/// A line is proposed if and only if a run with it could begin.
#[test]
fn lines_are_judged_by_what_a_run_does_first() {
    for (name, line, is_right) in [
        ("nat advise", "", true),
        ("nat advise", "--yes", false),
        ("log", "--group 1 --latency 1s", true),
        ("log", "--group 1 --latency 5h", false),
        ("log", "--group 1 prefix = x --to json:/tmp/x -c +nonsense", false),
        ("doctor", "tcp", true),
        ("doctor", "tcp nonsense", false),
        ("doctor", "--exit-code=bad", false),
        ("doctor softirq", "--stack innermost = x", true),
        ("doctor softirq", "innermost = x", false),
        ("doctor softirq", "--stack --per-cpu", false),
        ("drops", "-w x.pcapng time>-5m", true),
        ("drops", "time>-5m", false),
        ("drops", "--events --columns help", true),
        ("nat top", "state nat = dnat", true),
        ("nat top", "nonsense", false),
        ("capture", "-r x --watch", false),
        ("capture stats", "x --by src", true),
        ("capture stats", "x --by nonsense", false),
        ("sockets", "--by change", false),
        ("sockets", "--by change --watch", true),
    ] {
        let command = COMMANDS.iter().find(|command| command.name == name).unwrap();
        assert_eq!(own_line::is_understood(command, &words(line)), is_right, "{name} {line}");
    }
    let doctor = COMMANDS.iter().find(|command| command.name == "doctor").unwrap();
    assert_eq!(own_line::line(doctor, &words("tcp"), &[]).as_deref(), Some("netwren doctor tcp"));
}

/// Rows, `--columns help` and the filter of a line refer to the same table.
#[test]
fn the_flags_of_another_table_are_flags_of_the_command() {
    for command in COMMANDS.iter() {
        assert_eq!(command.tables.len() == 2, !command.other_table.is_empty(), "{}", command.name);
        assert!(command.other_table.iter().all(|long| command.takes(long)), "{}", command.name);
    }
    let fields = |name: &str, line: &str| {
        let command = COMMANDS.iter().find(|command| command.name == name).unwrap();
        parser::parse(command, words(line), COMMANDS, |words| Ok(words.table().map(|table| table.name()))).unwrap()
    };
    for (name, line, table) in [
        ("sockets", "", "sockets"),
        ("sockets", "--follow", "sockets --follow"),
        ("flows", "--follow=2", "flows --follow"),
        ("drops", "", "drops"),
        ("drops", "--events", "drops --events"),
        ("drops", "-w x", "drops --events"),
        ("doctor", "--baseline x", "doctor --baseline"),
        ("doctor softirq", "--stack", "doctor softirq --stack"),
        ("capture stats", "x --by src", "capture"),
    ] {
        assert_eq!(fields(name, line), Some(table), "{name} {line}");
    }
}

#[test]
fn root_every_proposed_command_runs() {
    testkit::require_root!();
    let lab = Lab::new("hints");
    lab.connect_v4(2);
    lab.use_conntrack();
    let proposed = Mutex::new(word_proposals());
    let from_words = proposed.lock().unwrap().len();
    let tables = COMMANDS.iter().filter(|command| !command.tables.is_empty() && command.prepare.is_some());
    side_by_side(tables, |command| {
        let lines = filter_proposals(&lab, command);
        proposed.lock().unwrap().extend(lines);
    });
    let proposed = proposed.into_inner().unwrap();
    assert!(from_words > 150 && proposed.len() > from_words + 50, "{from_words} and {}", proposed.len());
    let bad = Mutex::new(Vec::new());
    side_by_side(&proposed, |line| {
        let output = run(&lab, &format!("{line}{}", ending(line)));
        let (code, text) = (output.status.code().unwrap_or(0), String::from_utf8_lossy(&output.stderr).into_owned());
        let is_refused = code == 2 || code == 11 || text.contains("Usage:") || line.contains('…');
        // conntrack exits with 1 if it finds no entry to show or delete, `nat stateless verify` without rules.
        let is_failed = code == 1 && !line.starts_with("conntrack") && line != "nat stateless verify";
        if is_refused || is_failed || line.contains("--yes") {
            bad.lock().unwrap().push(format!("netwren {line}: exit code {code}: {text}"));
        }
    });
    let bad = bad.into_inner().unwrap();
    assert!(bad.is_empty(), "{} of {}\n{}", bad.len(), proposed.len(), bad.join("\n"));
}
