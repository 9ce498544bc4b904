//! `netwren capture merge`: merges packet files into one, by time.

use crate::command::{Command, ParsedWords, Positional, Prepared};
use crate::flags::defs::Scope;
use crate::flags::request::Request;
use capture::{FileError, PacketFile, UnreadFile};
use lookups::long_work::Ticker;
use lookups::session::{Session, SessionTarget};
use packet_files::{CopyWriter, cannot_write, check_link_types, is_input, merge};
use runtime::exit::Exit;
use runtime::outcome::Outcome;
use runtime::rights::NeededRights;
use std::path::{Path, PathBuf};

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    name: "capture merge",
    about: "Merge packet files into one, in the order of their timestamps",
    examples: EXAMPLES,
    scope: Scope::COPIES,
    positional: Positional::Files("Files to read: pcap or pcapng, also compressed; - for standard input"),
    prepare: Some(prepare),
    ..Command::TABLE
};

const EXAMPLES: &str = "\
Examples:
  netwren capture merge dump.pcap dns.pcapng -w all.pcapng   the interfaces of each file stay separate
";

fn prepare<'w>(words: &'w ParsedWords<'w>) -> Prepared<'w> {
    let paths = words.files("files");
    let output = super::output_file(words)?;
    if is_input(paths.iter().map(PathBuf::as_path), output) {
        return Err("--write would overwrite an input file".to_owned().into());
    }
    let target = Request::of(words)?.target();
    Ok(Box::new(move || merge_files(target, &paths, output)))
}

fn merge_files(target: SessionTarget, paths: &[PathBuf], output: &Path) -> Result<Outcome, String> {
    let session = match Session::open(target) {
        Ok(session) => session,
        Err(error) => return Ok(Outcome::with_message(error.exit(), error)),
    };
    let files = match opened(paths) {
        Ok(files) => files,
        Err(error) => return Ok(Outcome::with_message(Exit::Failed, error)),
    };
    check_link_types(&files, output)?;
    let writer = match CopyWriter::create(output) {
        Ok(writer) => writer,
        Err(error) => return Ok(Outcome::with_message(Exit::Failed, cannot_write(output, &error))),
    };
    let needed = NeededRights::default();
    needed.drop_capabilities(None, None)?;
    needed.confine();
    let ticker = Ticker::new("merging", None);
    Ok(merge(files, writer, &|read| {
        ticker.tick(|| format!("{read} packets read"));
        !session.interrupted()
    }))
}

/// Opens all files, or returns the error of one that cannot be read.
fn opened(paths: &[PathBuf]) -> Result<Vec<PacketFile>, FileError> {
    paths.iter().map(|path| UnreadFile::open(path)?.read()).collect()
}
