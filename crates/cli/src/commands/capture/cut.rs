//! `netwren capture cut`: copies a part of a packet file, with all its metadata.

use super::filter::{JoinedFilter, OwnTest, own_test};
use super::program::Programs;
use crate::command::{Command, ParsedWords, Positional, Prepared};
use crate::flags::defs::Scope;
use crate::flags::request::Request;
use capture::{PacketFile, UnreadFile, complete};
use lookups::long_work::Ticker;
use lookups::session::{Session, SessionTarget};
use packet_files::{CopyWriter, CutRequest, cannot_write, is_input};
use record::Lookups;
use record::rows::CapturedPacket;
use runtime::exit::Exit;
use runtime::outcome::Outcome;
use runtime::rights::NeededRights;
use std::path::Path;

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    name: "capture cut",
    about: "Write part of a packet file to another file: by time, FILTER, number or length of packets",
    examples: EXAMPLES,
    scope: Scope::COPIES.and(Scope::CUT),
    positional: Positional::FileAndFilter("File to read: pcap or pcapng, also compressed; - for standard input"),
    prepare: Some(prepare),
    ..Command::TABLE
};

const EXAMPLES: &str = "\
Examples:
  netwren capture cut dump.pcap -w dns.pcapng port 53    FILTER as in `netwren capture`
  netwren capture cut dump.pcap -w a.pcapng --until 2026-11-22T11:00:00Z
  netwren capture cut dump.pcap -w heads.pcap -s 96 --limit 1000   the first 96 bytes of 1,000 packets
";

/// The error for a field that files do not have.
const LOOKED_UP: &str = "is looked up on this host, but files can be filtered only by the contents of packets";

/// The part of a file to copy.
struct FilePart {
    filter: JoinedFilter,
    /// The test on fields.
    fields: Option<OwnTest>,
    snaplen: Option<u32>,
    limit: u64,
}

fn prepare<'w>(words: &'w ParsedWords<'w>) -> Prepared<'w> {
    let path = words.file("file").ok_or_else(|| "which file?".to_owned())?;
    let output = super::output_file(words)?;
    let part = asked(words)?;
    if is_input([path], output) {
        return Err("--write would overwrite the input file".to_owned().into());
    }
    let target = Request::of(words)?.target();
    Ok(Box::new(move || cut_file(target, path, output, &part)))
}

fn cut_file(target: SessionTarget, path: &Path, output: &Path, part: &FilePart) -> Result<Outcome, String> {
    let session = match Session::open(target) {
        Ok(session) => session,
        Err(error) => return Ok(Outcome::with_message(error.exit(), error)),
    };
    let opened = match UnreadFile::open(path) {
        Ok(opened) => opened,
        Err(error) => return Ok(Outcome::with_message(Exit::Failed, error)),
    };
    let writer = match CopyWriter::create(output) {
        Ok(writer) => writer,
        Err(error) => return Ok(Outcome::with_message(Exit::Failed, cannot_write(output, &error))),
    };
    let needed = NeededRights::default();
    needed.drop_capabilities(None, None)?;
    needed.confine();
    Ok(match opened.read() {
        Ok(mut file) => part.cut(&mut file, writer, &|| session.interrupted()),
        Err(error) => Outcome::with_message(Exit::Failed, error),
    })
}

fn asked(words: &ParsedWords<'_>) -> Result<FilePart, String> {
    let request = Request::of(words)?;
    let mut filter = JoinedFilter::of(&request)?;
    let mut tests = Vec::new();
    if !filter.fields.is_empty() {
        tests.push(format!("({})", std::mem::take(&mut filter.fields)));
    }
    for (flag, sign) in [("from", ">="), ("until", "<")] {
        let Some(time) = words.value(flag) else { continue };
        if time.contains(['"', '\\', '\'']) {
            return Err(format!("--{flag} takes a time: 10:30, -5m, 2026-11-22T10:30:00Z"));
        }
        let test = format!("time {sign} \"{time}\"");
        own_test(&request, &test, LOOKED_UP).map_err(|error| format!("--{flag}: {error}"))?;
        tests.push(test);
    }
    let limit =
        words.value("limit").map(|text| text.parse().map_err(|_| format!("--limit takes a number, not `{text}`")));
    Ok(FilePart {
        fields: if tests.is_empty() { None } else { Some(own_test(&request, &tests.join(" and "), LOOKED_UP)?) },
        filter,
        snaplen: words.bytes("snaplen", 1..=u32::MAX)?,
        limit: limit.transpose()?.unwrap_or(u64::MAX),
    })
}

impl FilePart {
    fn cut(&self, file: &mut PacketFile, writer: CopyWriter, stop: &dyn Fn() -> bool) -> Outcome {
        let link_type = file.ifaces().first().map_or(1, |iface| iface.link_type);
        let pcap = self.filter.pcap.as_ref();
        let programs = match pcap.map(|pcap| Programs::of_file(pcap, link_type, file.is_swapped())).transpose() {
            Ok(programs) => programs,
            Err(refusal) => return Outcome::with_message(Exit::Usage, refusal),
        };
        let (mut info, ticker) = (Vec::new(), Ticker::new("cutting", None));
        let cut = CutRequest {
            is_wanted: &mut |row, is_swapped| {
                programs.as_ref().is_none_or(|programs| programs.passes(&row, is_swapped))
                    && self.fields.as_ref().is_none_or(|test| passes(test, row, &mut info))
            },
            snaplen: self.snaplen,
            limit: self.limit,
            goes_on: &|read| {
                ticker.tick(|| format!("{read} packets read"));
                !stop()
            },
        };
        let outcome = cut.copy(file, writer);
        programs.iter().for_each(Programs::say_behind_tags);
        outcome
    }
}

fn passes(test: &OwnTest, row: CapturedPacket<'_>, info: &mut Vec<u8>) -> bool {
    test.predicate.matches(&complete(row, test.need, info), &Lookups::empty())
}
