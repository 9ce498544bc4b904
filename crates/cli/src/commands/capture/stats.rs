//! `netwren capture stats`: summarizes packet files, in one pass and constant memory.

use super::file;
use crate::command::{Command, ParsedWords, Positional, Prepared, ready};
use crate::commands::follow;
use crate::commands::made_rows::MadeRows;
use crate::flags::defs::Scope;
use crate::flags::request::Request;
use capture::{FileError, UnreadFile};
use lookups::long_work::Ticker;
use packet_files::{ReadFile, render_summary};
use record::Accounting;
use record::rows::{CaptureFile, CaptureFiles};
use runtime::exit::Exit;
use runtime::messages::cost_line;
use runtime::outcome::Outcome;
use runtime::print;
use runtime::rights::NeededRights;
use std::path::{Path, PathBuf};
use sys::cost;

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    name: "capture stats",
    about: "Summary of packet files: times, rates, sizes, interfaces, drops and damage",
    examples: EXAMPLES,
    scope: Scope::ROWS.and(Scope::COLUMNS).and(Scope::SORT).and(Scope::BY).and(Scope::FOLDS).and(Scope::NAMES),
    positional: Positional::Files("Files to read: pcap or pcapng, also compressed; - for standard input"),
    refusals: &[("netns", "--netns applies to interfaces, not to files")],
    tables: &[tables::CAPTURE_FILES, tables::PACKETS],
    other_table: &["by"],
    prepare: Some(prepare),
    ..Command::TABLE
};

const EXAMPLES: &str = "\
Examples:
  netwren capture stats dump.pcap                    a summary in words
  netwren capture stats *.pcap -o json               one object per file, for programs
  netwren capture stats *.pcap -c file,packets,first_time,last_time,broken   rows with these columns
  netwren capture stats dump.pcap --by src,dst --limit 10   top talkers: fields as in `netwren capture`
";

/// Shows packets if groups are requested, otherwise files.
fn prepare(words: &ParsedWords<'_>) -> Prepared<'static> {
    let files = words.files("files");
    if words.is_given("netns") {
        return Err("--netns applies to interfaces, not to files".to_owned().into());
    }
    if words.is_given("by") {
        return prepare_talkers(words, files);
    }
    if words.is_given("resolve") {
        return Err("--resolve needs --by: files have no addresses of their own".to_owned().into());
    }
    let request = Request::of(words)?;
    let (shows_cost, wants_code) = (request.cost, request.exit_code);
    let asked = MadeRows::<CaptureFiles>::plan(request)?;
    Ok(Box::new(move || summarize(&files, &asked, shows_cost, wants_code)))
}

/// Shows a row or a summary in words for each file.
fn summarize(
    files: &[PathBuf],
    asked: &MadeRows<CaptureFiles>,
    shows_cost: bool,
    wants_code: bool,
) -> Result<Outcome, String> {
    let before = cost::measure();
    let mut messages = Vec::new();
    // All files are opened before the first byte is parsed, because no others can be opened after that.
    let opened: Vec<_> = files.iter().map(|path| UnreadFile::open(path)).collect();
    let needed = NeededRights::default();
    needed.drop_capabilities(None, None)?;
    needed.confine();
    let read: Vec<ReadFile> = files.iter().zip(opened).map(|(path, opened)| read_file(path, opened)).collect();
    let rows: Vec<CaptureFile<'_>> = read.iter().filter_map(ReadFile::row).collect();
    let mut outcome = match asked.wants_text() {
        true => print::print_prose(&read.iter().map(render_summary).collect::<String>()).into(),
        false => asked.write(&rows),
    };
    messages.extend(read.iter().filter_map(|file| file.summary.fault.as_ref()).map(ToString::to_string));
    if shows_cost {
        let stats = Accounting { seen: rows.len() as u64, ..Accounting::default() };
        messages.push(cost_line(&cost::measure().since(&before), &stats));
    }
    let is_whole = read.iter().all(|file| file.summary.fault.is_none());
    outcome.exit = match outcome.exit {
        Exit::Ok if rows.is_empty() => Exit::Failed,
        Exit::Ok if !is_whole => Exit::Partial,
        Exit::Ok if wants_code && rows.iter().all(|row| row.packets == 0) => Exit::NoMatch,
        other => other,
    };
    outcome.messages.extend(messages);
    Ok(outcome)
}

fn read_file(path: &Path, opened: Result<UnreadFile, FileError>) -> ReadFile {
    let ticker = Ticker::new(format!("reading {}", sys::escape_bytes(path.as_os_str().as_encoded_bytes())), None);
    ReadFile::read(path, opened, &|| ticker.tick(String::new))
}

/// `--by`: groups the packets of all files, with their bytes.
fn prepare_talkers(words: &ParsedWords<'_>, files: Vec<PathBuf>) -> Prepared<'static> {
    let mut capture = super::asked(words)?;
    let folds = &mut capture.request.shown.aggregates;
    if folds.iter().all(Option::is_none) {
        folds[0] = Some("len".to_owned());
    }
    let plan = follow::plan_of(&capture.request)?;
    ready(move || file::shown(&files, &capture, &plan))
}
