//! `netwren support --bundle FILE`: the data for a bug report, in one file of JSON lines.
//!
//! It contains rows of tables, not the kernel bytes of a recording: each cell has a known kind, so that no address or
//! name can slip through in an unexpected form.

use crate::bundle::BundleWriter;
use crate::command::{Command, Commands, Prepared};
use crate::commands::made_rows::MadeRows;
use crate::commands::netns_command::NetnsCommand;
use crate::commands::{counters, flows, home, routes, sockets};
use crate::flags::parser;
use crate::flags::request::Request;
use lookups::long_work::ProgressLine;
use record::rows::{Feature, Features, Routes};
use record::{Table, text};
use runtime::exit::Exit;
use runtime::outcome::Outcome;
use runtime::print;
use std::io;
use std::path::Path;
use sys::{Host, caps};

/// Bound: rows of each table in `support --bundle`. Beyond: further rows are not in the file, which reports it. By: a
/// local user who makes sockets.
const ROWS_MAX: &str = "10000";

/// Descriptions of the file's contents, for its sender and its reader.
const HOLDS: &str = "version, kernel and rights; the table of `netwren support`; interfaces, sockets, \
                     flows, drops, findings, routes and counters of all network namespaces";
const HOLDS_NOT: &str = "addresses (except loopback), client ports, and names of hosts, users, processes, containers, \
                         interfaces, files and namespaces: replaced by pseudonyms, the same one for the same name, \
                         made with a key that was discarded; packets, rules and command lines: left out";

/// A table in the bundle: its command, the words after it, and the function that prepares its run.
struct BundlePart {
    command: &'static Command,
    words: &'static [&'static str],
    prepare: fn(Request) -> Prepared<'static>,
}

/// The tables, in the order of the file.
const PARTS: &[BundlePart] = &[
    BundlePart { command: &home::COMMAND, words: &[], prepare: home::prepare_screen },
    BundlePart {
        command: &sockets::COMMAND,
        words: &["--limit", ROWS_MAX, "--columns", "-cmdline"],
        prepare: sockets::prepare_list,
    },
    BundlePart { command: &flows::COMMAND, words: &["--limit", ROWS_MAX], prepare: flows::prepare_list },
    BundlePart {
        command: &routes::COMMAND,
        words: &["--limit", ROWS_MAX],
        prepare: NetnsCommand::<Routes>::prepare_request,
    },
    BundlePart { command: &counters::COMMAND, words: &["--limit", ROWS_MAX], prepare: counters::prepare_usual },
];

/// Writes the bundle and prints its contents. If a table cannot be read, the others are still written.
pub(super) fn write(path: &Path, made: &MadeRows<Features>, features: &[Feature], commands: Commands) -> Outcome {
    let shown = sys::escape_bytes(path.as_os_str().as_encoded_bytes());
    match written(path, made, features, commands) {
        Ok(exit) => {
            let said = format!(
                "{shown}: written, readable only by you\n  holds      {HOLDS}, at most {ROWS_MAX} rows each\n  holds \
                 not  {HOLDS_NOT}\nRead it before you send it.\n"
            );
            let printed = print::print(&runtime::fold::fold(&said, runtime::width::of_texts()));
            match exit {
                Exit::Ok => printed.into(),
                exit => Outcome::with_message(exit, "a table could not be read: the file shows which"),
            }
        }
        Err(error) => Outcome::with_message(Exit::Failed, format!("cannot write {shown}: {error}")),
    }
}

fn written(path: &Path, made: &MadeRows<Features>, features: &[Feature], commands: Commands) -> io::Result<Exit> {
    let bundle = BundleWriter::create(path)?;
    bundle.line(&head())?;
    let support = bundle.of_table(Features::NAME);
    bundle.line("{\"table\":\"support\"}\n")?;
    let mut exit = made.write_to(&mut *support.sink(), features).exit;
    let line = ProgressLine;
    for part in PARTS {
        line.show(&format!("writing the bundle: {}", part.command.name));
        let table = part.command.tables.first().map_or("", |table| table.name());
        bundle.line(&format!("{{\"table\":\"{table}\"}}\n"))?;
        let words = ["--all-netns", "-o", "json"].iter().chain(part.words).map(Into::into).collect();
        let of_table = bundle.of_table(table);
        let outcome = parser::parse(part.command, words, commands, |words| {
            match (part.prepare)(Request { bundle: Some(of_table), ..Request::of(words)? }) {
                Ok(run) => run(),
                Err(refusal) => refusal.into_outcome(),
            }
        });
        let code = outcome.map_or(Exit::Usage, |outcome| outcome.exit);
        bundle.line(&format!("{{\"end\":\"{table}\",\"exit\":{}}}\n", code as u8))?;
        // Incomplete tables are covered by the message above, because on most hosts something is inaccessible.
        if matches!(code, Exit::Failed | Exit::Usage) {
            exit = Exit::Partial;
        }
    }
    bundle.finish().map(|()| exit)
}

/// The first line: versions, privileges, and the contents of the file.
fn head() -> String {
    let kernel = Host::live().kernel();
    let held = caps::effective().unwrap_or_default();
    let names: Vec<String> =
        caps::Cap::ALL.into_iter().filter(|cap| held.contains(*cap)).map(|cap| format!("\"{}\"", cap.name())).collect();
    format!(
        "{{\"bundle\":1,\"netwren\":\"{}\",\"bpf\":{},\"kernel\":{},\"machine\":{},\"is_root\":{},\"caps\":[{}],\
         \"holds\":{},\"holds_not\":{}}}\n",
        env!("CARGO_PKG_VERSION"),
        cfg!(feature = "bpf"),
        quoted(&kernel.release),
        quoted(&kernel.machine),
        caps::euid() == 0,
        names.join(","),
        quoted(&format!("{HOLDS}, at most {ROWS_MAX} rows each")),
        quoted(HOLDS_NOT),
    )
}

fn quoted(text: &str) -> String {
    let mut out = b"\"".to_vec();
    text::put_json(&mut out, text.as_bytes());
    out.push(b'"');
    String::from_utf8_lossy(&out).into_owned()
}
