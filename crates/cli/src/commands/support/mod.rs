//! `netwren support`: shows what this kernel and these privileges allow, and what is used instead; `--bundle FILE`
//! writes it with the host's tables, without names and addresses, for a bug report.

mod bundle;
mod features;
mod state;

use super::made_rows::MadeRows;
use crate::command::{Command, Commands, ParsedWords, Prepared, ready};
use crate::flags::defs::Scope;
use crate::flags::request::Request;
use record::rows::{Feature, FeatureState, Features};
use record::text;
use runtime::exit::Exit;
use runtime::fold::fold;
use runtime::outcome::Outcome;
use runtime::print;
use std::path::Path;
use sys::{Host, Kernel, Modules, caps};

/// Tables that every suitable kernel has; a kernel may be built without the others.
const ALWAYS_THERE: [record::Proto; 3] = [record::Proto::Tcp, record::Proto::Udp, record::Proto::Unix];

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    name: "support",
    about: "Features available with this kernel and these privileges, and their substitutes",
    examples: EXAMPLES,
    scope: Scope::SUPPORT.and(Scope::COLUMNS).and(Scope::SORT).and(Scope::BY),
    tables: &[tables::FEATURES],
    prepare: Some(prepare),
    ..Command::TABLE
};

const EXAMPLES: &str = "\
Examples:
  netwren support                                  all features: whether and how they work, and remedies
  netwren support 'works = false' -o json          features that do not work, with reason and remedy
  netwren support --bundle report.json             for a bug report, without names and addresses of this host
";

fn prepare<'w>(words: &'w ParsedWords<'w>) -> Prepared<'w> {
    let asked = MadeRows::<Features>::plan(Request::of(words)?)?;
    let file = words.file("bundle");
    if file.is_some() && !asked.wants_text() {
        let wrong = "--bundle writes complete tables as JSON: leave out filter, columns, order and format";
        return Err(wrong.to_owned().into());
    }
    ready(move || run(&asked, file, words.commands))
}

/// Exit code 0 if TCP, UDP and unix sockets can be read by some backend, otherwise 4.
fn run(asked: &MadeRows<Features>, bundle: Option<&Path>, commands: Commands) -> Outcome {
    let host = Host::live();
    let modules = Modules::new(&host);
    let backends = sockets::try_backends(&host, &modules);
    let blind: Vec<&str> = ALWAYS_THERE
        .iter()
        .filter(|proto| !backends.iter().any(|backend| backend.tried.is_working() && backend.proto == **proto))
        .map(|proto| proto.name())
        .collect();
    let features = features::all(&host, &modules, backends);
    if let Some(file) = bundle {
        return bundle::write(file, asked, &features, commands);
    }
    let outcome = match asked.wants_text() {
        true => match runtime::width::of_terminal() {
            Some(width) => print::print(&aligned(&features, width)).into(),
            None => print::print(&text_of(&features)).into(),
        },
        false => asked.write(&features),
    };
    if blind.is_empty() {
        return outcome;
    }
    Outcome::with_message(Exit::Failed, format!("sockets cannot be read: {}", blind.join(", ")))
}

/// The text for a terminal: names, then yes or no, then sentences with indented continuation lines.
fn aligned(features: &[Feature], width: usize) -> String {
    /// Width of the names; longer ones shift their line to the right.
    const NAMES: usize = 32;
    let mut out =
        format!("kernel {}, uid {}\n", sys::escape_bytes(Kernel::read_running().release.as_bytes()), caps::euid());
    for Feature { feature, backend, state, words, remedy } in features {
        let mut name = sys::escape_bytes(feature.as_bytes()).to_string();
        if !backend.is_empty() {
            name.push_str(&format!(" via {backend}"));
        }
        let works = *state == FeatureState::Works;
        let mut said = sys::escape_bytes(words.as_bytes()).to_string();
        if !works {
            let remedy = if remedy.is_empty() { String::new() } else { format!(": {remedy}") };
            said.push_str(&format!(" ({}{})", state.name(), sys::escape_bytes(remedy.as_bytes())));
        }
        // Double blanks would change the indentation of folded lines.
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = format!("{name:<NAMES$}  {:<3}  {said}\n", if works { "yes" } else { "no" });
        out.push_str(&fold(&line, width));
    }
    out
}

/// The text for a pipe: the kernel and the user, then a line per feature.
fn text_of(features: &[Feature]) -> String {
    let mut out = b"kernel\t".to_vec();
    text::put_text(&mut out, Kernel::read_running().release.as_bytes());
    out.extend_from_slice(format!("\tuid {}\n", caps::euid()).as_bytes());
    for Feature { feature, backend, state, words, remedy } in features {
        text::put_text(&mut out, feature.as_bytes());
        if !backend.is_empty() {
            out.extend_from_slice(format!(" via {backend}").as_bytes());
        }
        out.extend_from_slice(if *state == FeatureState::Works { b"\tyes\t" } else { b"\tno\t" });
        text::put_text(&mut out, words.as_bytes());
        if *state != FeatureState::Works {
            let remedy = if remedy.is_empty() { String::new() } else { format!(": {remedy}") };
            out.extend_from_slice(format!("\t{}", state.name()).as_bytes());
            text::put_text(&mut out, remedy.as_bytes());
        }
        out.push(b'\n');
    }
    String::from_utf8_lossy(&out).into_owned()
}
