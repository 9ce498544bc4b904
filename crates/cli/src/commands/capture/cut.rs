//! `netwren capture cut`: copies a part of a packet file, with all its metadata.

use super::copying::CopyWriter;
use super::filter::{JoinedFilter, OwnTest, own_test};
use super::program::Programs;
use crate::command::{Command, ParsedWords, Positional};
use crate::flags::defs::Scope;
use crate::flags::request::Request;
use capture::{FileError, FileRecord, PacketFile, UnreadFile, complete};
use lookups::long_work::Ticker;
use lookups::session::Session;
use record::Lookups;
use record::rows::CapturedPacket;
use runtime::exit::Exit;
use runtime::outcome::Outcome;
use runtime::packet_files::{is_same, words_of};
use runtime::rights::NeededRights;
use std::path::Path;

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    name: "capture cut",
    about: "Write part of a packet file to another file: by time, FILTER, number or length of packets",
    examples: EXAMPLES,
    scope: Scope::COPIES.and(Scope::CUT),
    positional: Positional::FileAndFilter("File to read: pcap or pcapng, also compressed; - for standard input"),
    check: Some(|words| super::output_file(words).map(drop)),
    run: Some(run),
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
/// Number of packets between checks whether the run must end.
const BATCH: u64 = 4096;

/// The part of a file to copy.
struct FilePart {
    filter: JoinedFilter,
    /// The test on fields.
    fields: Option<OwnTest>,
    snaplen: Option<u32>,
    limit: u64,
}

fn run(words: &ParsedWords<'_>) -> Result<Outcome, String> {
    let path = words.file("file").ok_or("which file?")?;
    let output = super::output_file(words)?;
    let part = asked(words)?;
    if is_same(path, output) {
        return Err("--write would overwrite the input file".to_owned());
    }
    let session = match Session::open(Request::of(words)?.target()) {
        Ok(session) => session,
        Err(error) => return Ok(Outcome::because(error.exit(), error)),
    };
    let opened = match UnreadFile::open(path) {
        Ok(opened) => opened,
        Err(error) => return Ok(Outcome::because(Exit::Failed, error)),
    };
    let writer = match CopyWriter::create(output) {
        Ok(writer) => writer,
        Err(error) => return Ok(cannot_write(output, &error)),
    };
    let needed = NeededRights::default();
    needed.drop_capabilities(None, None)?;
    needed.confine();
    Ok(match opened.read() {
        Ok(mut file) => part.cut(&mut file, writer, &|| session.interrupted()),
        Err(error) => Outcome::because(Exit::Failed, error),
    })
}

/// The outcome if the output cannot be opened.
pub(super) fn cannot_write(output: &Path, error: &std::io::Error) -> Outcome {
    Outcome::because(Exit::Failed, format!("cannot write {}: {}", output.display(), words_of(error)))
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
    fn cut(&self, file: &mut PacketFile, mut writer: CopyWriter, stop: &dyn Fn() -> bool) -> Outcome {
        let link_type = file.ifaces().first().map_or(1, |iface| iface.link_type);
        let pcap = self.filter.pcap.as_ref();
        let programs = match pcap.map(|pcap| Programs::of_file(pcap, link_type, file.is_swapped())).transpose() {
            Ok(programs) => programs,
            Err(refusal) => return Outcome::because(Exit::Usage, refusal),
        };
        let (mut read, mut taken, mut info, mut faults) = (0, 0, Vec::new(), Vec::new());
        let ticker = Ticker::new("cutting", None);
        let goes_on = |read| {
            ticker.tick(|| format!("{read} packets read"));
            !stop()
        };
        while taken < self.limit && !writer.is_closed() && (read % BATCH != 0 || goes_on(read)) {
            let is_swapped = file.is_swapped();
            let record = match file.next_record() {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(error) if error.is_interrupted() => continue,
                Err(error) => {
                    faults.push(error);
                    break;
                }
            };
            let FileRecord::Packet(packet) = record else {
                self.copy_beside(&record, &mut writer);
                continue;
            };
            read += 1;
            let whole = packet.row(usize::MAX);
            let is_wanted = programs.as_ref().is_none_or(|programs| programs.passes(&whole, is_swapped))
                && self.fields.as_ref().is_none_or(|test| passes(test, whole, &mut info));
            if is_wanted {
                taken += 1;
                let row = packet.row(self.snaplen.map_or(usize::MAX, |bytes| bytes as usize));
                writer.copy(&packet, row, packet.iface);
            }
        }
        programs.iter().for_each(Programs::say_behind_tags);
        finished(writer, read, taken, link_type, &faults)
    }

    /// Copies a record other than a packet.
    fn copy_beside(&self, record: &FileRecord<'_>, writer: &mut CopyWriter) {
        match record {
            FileRecord::Section(options) => writer.copy_section(*options),
            FileRecord::Iface { iface, options, .. } => {
                writer.iface(iface, *options, self.snaplen);
            }
            FileRecord::Statistics(found) => {
                let mut options = Vec::new();
                found.options.put_little_endian(capture::blocks::STATISTICS, &mut options);
                writer.statistics(found.iface, found.stamp, &options);
            }
            FileRecord::Other(block) => writer.other(block),
            FileRecord::Packet(_) => {}
        }
    }
}

fn finished(writer: CopyWriter, read: u64, taken: u64, link_type: u32, faults: &[FileError]) -> Outcome {
    writer.finish(&format!("{read} packets read, {} filtered", read - taken), link_type, faults)
}

fn passes(test: &OwnTest, row: CapturedPacket<'_>, info: &mut Vec<u8>) -> bool {
    test.predicate.matches(&complete(row, test.need, info), &Lookups::none())
}
