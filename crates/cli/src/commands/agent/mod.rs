//! `netwren agent`: runs several commands in one process and ships their rows, as one file says.

pub(crate) mod check;
pub(crate) mod status;

use super::nat::events;
use super::{counters, doctor, drops, flows, log, sockets};
use crate::command::{AgentPart, Command, Commands, ParsedWords, PartKind, Positional, Prepared, Refusal, ready};
use crate::config::agent::{AgentFile, with_words};
use crate::flags::defs::Scope;
use export::Control;
use runtime::exit::Exit;
use runtime::messages::print_message;
use runtime::notifier::Notifier;
use runtime::outcome::Outcome;
use runtime::run_group::RunGroup;
use runtime::run_state::RunState;
use shipping::{group_report, group_status_line};
use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;
use sys::SignalHandlers;

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    name: "agent",
    about: "Ship log records, flows, connections, listeners, NAT events, drops, findings and counters from one process",
    examples: EXAMPLES,
    scope: Scope::AGENT,
    positional: Positional::MaybeFile(USUAL),
    prepare: Some(prepare),
    ..Command::TABLE
};

const EXAMPLES: &str = "\
Examples:
  netwren agent /etc/netwren/agent.toml         this is the usual file; docs/agent.toml explains every key
  netwren agent check ./agent.toml              is the file right, and what would run?
  netwren agent status                          what each part has shipped, and what waits
";

/// The usual file.
const USUAL: &str = "/etc/netwren/agent.toml";

/// The parts. Only `log` needs settings, because a host's log groups are not known.
static PARTS: [PartKind; 8] = [
    PartKind { name: "log", command: &log::COMMAND, usual: &[] },
    PartKind { name: "flows", command: &flows::COMMAND, usual: &[("follow", Some("60"))] },
    PartKind { name: "connections", command: &sockets::COMMAND, usual: &[("follow", None)] },
    PartKind {
        name: "listeners",
        command: &sockets::LISTENERS_COMMAND,
        // The first round ships all listeners, the others ship changes.
        usual: &[("watch", Some("60")), ("columns", Some("+change")), ("filter", Some("not change = kept"))],
    },
    PartKind { name: "nat", command: &events::COMMAND, usual: &[] },
    PartKind { name: "drops", command: &drops::COMMAND, usual: &[("watch", Some("60"))] },
    // A reading takes about 0.2 s of CPU.
    PartKind { name: "findings", command: &doctor::COMMAND, usual: &[("watch", Some("300"))] },
    PartKind {
        name: "counters",
        command: &counters::COMMAND,
        usual: &[("watch", Some("60")), ("filter", Some("delta != 0"))],
    },
];

/// Pause before a part that has ended is run again, doubled each time.
const PAUSE: Duration = Duration::from_secs(5);
/// Longest of these pauses.
///
/// Bound: for the pause before a part of the agent that has ended is run again. Beyond: this long. By: a user who makes
/// the part fail.
const PAUSE_MAX: Duration = Duration::from_secs(300);
/// How often the agent looks for signals.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// The file that the line names: as the operand, or by `-c` as other programs.
fn file_of<'w>(line: &'w ParsedWords<'w>) -> &'w Path {
    line.file("config").or(line.file("file")).unwrap_or(Path::new(USUAL))
}

/// Reads that file.
fn read_file(line: &ParsedWords<'_>) -> Result<AgentFile, Outcome> {
    let path = file_of(line);
    AgentFile::read(path, &PARTS).map_err(|mut outcome| {
        if path == Path::new(USUAL) && outcome.exit == Exit::Failed {
            outcome.messages.push("`netwren agent FILE` reads another file; docs/agent.toml is an example".to_owned());
        }
        outcome
    })
}

fn prepare<'w>(line: &'w ParsedWords<'w>) -> Prepared<'w> {
    let file = read_file(line).map_err(Refusal::Outcome)?;
    check::check(&file, line.commands).map_err(Refusal::Outcome)?;
    ready(move || run(file, file_of(line), line.commands))
}

fn run(file: AgentFile, path: &Path, commands: Commands) -> Outcome {
    file.warn();
    if let Err(error) = SignalHandlers::install() {
        return Outcome::with_message(Exit::Failed, error);
    }
    sys::signal::reopen_on_hangup();
    if let Some(Err(error)) = file.spool.as_deref().map(make_directory) {
        return Outcome::with_message(Exit::Failed, format!("spool: {error}"));
    }
    let (group, state) = (RunGroup::default(), RunState::begin());
    let control = file.control.as_deref().map(|path| {
        let group = group.clone();
        Control::start(path, move || group_report(&group), Err)
    });
    let _control = match control.transpose() {
        Ok(control) => control,
        Err(error) => return Outcome::with_message(Exit::Failed, format!("control: {error}")),
    };
    let names: Vec<&str> = file.parts.iter().map(|(kind, _)| kind.name).collect();
    print_message(&format!("agent: {}, until Ctrl-C", names.join(", ")));
    let part = |kind: &'static PartKind| AgentPart {
        kind,
        handle: group.add(kind.name),
        file: path.to_owned(),
        kinds: &PARTS,
    };
    let parts: Vec<AgentPart> = file.parts.iter().map(|(kind, _)| part(kind)).collect();
    thread::scope(|scope| {
        let threads: Vec<_> = parts
            .iter()
            .map(|part| {
                let name = format!("netwren-{}", part.kind.name);
                // The main thread's stack has this size.
                let thread = thread::Builder::new().name(name).stack_size(8 << 20);
                thread.spawn_scoped(scope, || run_part(part, &file, commands))
            })
            .collect();
        let of_group = group.clone();
        let notifier = Notifier::start_group(&state, &group, move || group_status_line(&of_group));
        follow_file(&file, path, &threads);
        notifier.iter().for_each(Notifier::report_stopping);
        threads.into_iter().zip(&parts).fold(Exit::Ok.into(), |all, (thread, part)| add(all, part, thread))
    })
}

/// Makes a directory that only this user may enter, unless it exists.
fn make_directory(path: &Path) -> std::io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Waits until the end is requested. Reports changes of the file that take effect at the next start.
fn follow_file(file: &AgentFile, path: &Path, threads: &[std::io::Result<ScopedJoinHandle<'_, Outcome>>]) {
    let mut hangups = sys::signal::hangup_count();
    while !sys::signal::is_requested() && threads.iter().flatten().any(|thread| !thread.is_finished()) {
        thread::park_timeout(CHECK_INTERVAL);
        if std::mem::replace(&mut hangups, sys::signal::hangup_count()) == hangups {
            continue;
        }
        match AgentFile::read(path, &PARTS) {
            Ok(new) => {
                let changed = new.differences(file, &log::COMMAND);
                if !changed.is_empty() {
                    print_message(&format!("{}: a change takes effect at the next start", changed.join(", ")));
                }
            }
            // The part `log` reports it.
            Err(_) if file.parts.iter().any(|(kind, _)| kind.name == log::COMMAND.name) => {}
            Err(wrong) => wrong.messages.iter().for_each(|text| {
                print_message(&format!("the new configuration is rejected, the previous one stays in effect: {text}"));
            }),
        }
    }
}

/// Runs a part of `file` until the end is requested; again and again if it ends before.
fn run_part(part: &AgentPart, file: &AgentFile, commands: Commands) -> Outcome {
    let mut pause = PAUSE;
    loop {
        let began_ns = sys::clock::monotonic_ns();
        let outcome = run_once(part, file, commands);
        if sys::signal::is_requested() {
            return outcome;
        }
        let lasted = Duration::from_nanos(sys::clock::monotonic_ns() - began_ns);
        pause = if lasted > PAUSE_MAX { PAUSE } else { pause };
        let why = outcome.messages.join("; ");
        print_message(&format!("[{}] has ended, and runs again in {} s: {why}", part.kind.name, pause.as_secs()));
        part.handle.set_trouble(Some(why));
        let end_ns = sys::clock::monotonic_ns() + pause.as_nanos() as u64;
        while sys::clock::monotonic_ns() < end_ns {
            if sys::signal::is_requested() {
                return outcome;
            }
            thread::park_timeout(CHECK_INTERVAL);
        }
        part.handle.set_trouble(None);
        pause = (2 * pause).min(PAUSE_MAX);
    }
}

fn run_once(part: &AgentPart, file: &AgentFile, commands: Commands) -> Outcome {
    let run = |words: &ParsedWords<'_>| words.prepare()?().map_err(Refusal::Words);
    let settings = file.parts.iter().find(|(kind, _)| kind.name == part.kind.name);
    let outcome = settings.map(|settings| with_words(settings, commands, Some(part), run));
    outcome.map_or_else(|| Exit::Ok.into(), |outcome| outcome.unwrap_or_else(|refused| refused))
}

/// Adds the outcome of a part: the agent's exit code is the worst one.
fn add(mut all: Outcome, part: &AgentPart, thread: std::io::Result<ScopedJoinHandle<'_, Outcome>>) -> Outcome {
    let failed = |text: String| Outcome::with_message(Exit::Failed, text);
    let outcome = match thread.map(ScopedJoinHandle::join) {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_)) => failed("its thread failed".to_owned()),
        Err(error) => failed(format!("cannot start a thread: {error}")),
    };
    if outcome.exit as u8 > all.exit as u8 {
        all.exit = outcome.exit;
    }
    all.messages.extend(outcome.messages.into_iter().map(|text| format!("[{}] {text}", part.kind.name)));
    all
}
