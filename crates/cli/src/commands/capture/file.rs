//! `capture --read`, and the groups of `capture stats --by`: shows packets of files.

use super::Capture;
use super::copying::{LOST_CHECKSUM_LENGTH, least_snaplen};
use super::live::refused;
use super::opening::Opened;
use super::program::Programs;
use super::writing::{PacketWriter, finished, written};
use crate::commands::follow::{self, StreamNotes};
use capture::{FileError, FileIface, FilePackets, PacketFile, PassesInFile, ReadPackets, SkippedRecords, UnreadFile};
use engine::{Ended, Plan, Run, RunError};
use lookups::long_work;
use record::rows::{CapturedPacket, CapturedPackets};
use record::{Accounting, Demand, Each, Lookups, Offer, SourceError, SourceFault, Stream, StreamState};
use runtime::messages::say;
use runtime::outcome::Outcome;
use runtime::rights::Confined;
use std::collections::VecDeque;
use std::path::PathBuf;

/// Wait for the first bytes of a pipe before checking again whether the run must end, in ms.
const IDLE_MS: i32 = 100;

/// Shows the packets of all files in turn.
pub(super) fn shown(paths: &[PathBuf], capture: &Capture, plan: &Plan<CapturedPackets>) -> Outcome {
    follow::run(&capture.request, plan, |session, then| {
        let stop = || follow::is_over(&capture.request, session);
        let Some((path, others)) = paths.split_first() else {
            return Ok(Run { stats: Accounting::default(), ended: Ended::Whole });
        };
        let unreadable = |error: FileError| {
            RunError::Source(SourceError { what: "packets", fault: SourceFault::Io, cause: Box::new(error) })
        };
        let needed = capture.needed_rights(plan).map_err(refused)?;
        let file = UnreadFile::open(path).map_err(unreadable)?;
        while !file.is_ready(IDLE_MS) {
            if stop() {
                return Ok(Run { stats: Accounting::default(), ended: Ended::Stopped });
            }
        }
        let others = others.iter().map(|path| UnreadFile::open(path)).collect();
        let output = if capture.request.explain { None } else { Opened::of(capture, session.run())? };
        needed.drop_capabilities(session.resolver(), Some(session.run())).map_err(refused)?;
        let output = output.map(Opened::writer).transpose()?;
        if capture.request.ship.is_none() {
            // This happens before the header is parsed. The shipping threads are started later and must open their
            // files.
            needed.confine();
        }
        let file = file.read().map_err(unreadable)?;
        let link_type = file.ifaces().first().map_or(1, |iface| iface.link_type);
        let (output, loses) = output.map(|writer| like(writer, file.ifaces(), capture.snaplen)).unzip();
        let programs = capture.filter.as_ref().map(|filter| Programs::of_file(filter, link_type, file.is_swapped()));
        let programs = programs.transpose().map_err(refused)?;
        let judge = |row: &CapturedPacket<'_>, is_swapped| {
            programs.as_ref().is_none_or(|programs| programs.passes(row, is_swapped))
        };
        let passes: Option<&PassesInFile<'_>> = if programs.is_some() { Some(&judge) } else { None };
        let packets = |file| FilePackets::new(ReadPackets { file, snaplen: capture.snaplen, passes, stop: &stop });
        let stats = Accounting::default();
        let mut stream = FilesInTurn { file: packets(file), others, packets: &packets, stop: &stop, stats };
        let run = match output {
            Some(mut writer) => {
                let progress = long_work::progress(session, "copying packets", None, String::new);
                let mut run = written(&mut writer, plan, &mut stream, Lookups::none())?;
                drop(progress);
                let line = finished(writer, &mut run);
                say(&format!("{} packets read; {line}", run.stats.seen));
                say_left_out(stream.file.left_out());
                loses.flatten().iter().for_each(|lost: &&str| say(lost));
                run
            }
            None if capture.request.ship.is_none() => then(&mut stream, StreamNotes::default())?,
            None => then(&mut Confined::new(&mut stream, &needed), StreamNotes::default())?,
        };
        programs.iter().for_each(Programs::say_behind_tags);
        Ok(run)
    })
}

/// Returns the writer whose files have what the header of a pcap file says, or at least the snapshot length that the
/// user asked for, and a message about what of the header has no place there.
fn like(writer: PacketWriter, ifaces: &[FileIface], snaplen: Option<u32>) -> (PacketWriter, Option<&'static str>) {
    let of_pcap = ifaces.first().and_then(|iface| Some((least_snaplen(iface, snaplen), iface.pcap_bits?)));
    let Some((snaplen, bits)) = of_pcap.or(snaplen.map(|snaplen| (snaplen, 0))) else { return (writer, None) };
    let lost = (bits != 0 && !writer.is_pcap()).then_some(LOST_CHECKSUM_LENGTH);
    (writer.with_header(snaplen, bits), lost)
}

/// Reports which parts of the input file the written file lacks.
fn say_left_out((comments, skipped): (u64, SkippedRecords)) {
    let SkippedRecords { descriptions, others } = skipped;
    if comments + descriptions + others > 0 {
        say(&format!(
            "not written: {comments} packet comments, {descriptions} descriptions of interfaces and sections, and \
             {others} blocks with names, counts or secrets: `netwren capture cut FILE --write OUTPUT` copies them"
        ));
    }
}

/// The packets of several files. Files that cannot be opened or are not packet files are skipped and reported.
struct FilesInTurn<'f, 'h> {
    file: FilePackets<'h>,
    others: VecDeque<Result<UnreadFile, FileError>>,
    packets: &'f dyn Fn(PacketFile) -> FilePackets<'h>,
    stop: &'f dyn Fn() -> bool,
    /// Counts of the previous files.
    stats: Accounting,
}

impl FilesInTurn<'_, '_> {
    /// Opens the next file; false if there are no more.
    fn open_next(&mut self) -> bool {
        while let Some(opened) = self.others.pop_front() {
            match opened.and_then(UnreadFile::read) {
                Ok(file) => {
                    let before = std::mem::replace(&mut self.file, (self.packets)(file)).close();
                    self.stats.add(&before);
                    return true;
                }
                Err(error) => {
                    self.stats.incomplete(0, error.to_string());
                }
            }
        }
        false
    }
}

impl Stream<CapturedPackets> for FilesInTurn<'_, '_> {
    fn offer(&self, demand: &Demand<CapturedPackets>) -> Offer {
        let mut offer = self.file.offer(demand);
        if !self.others.is_empty() {
            offer.explain.push(format!("then packets of {} more files", self.others.len()));
        }
        offer
    }

    fn next(
        &mut self,
        demand: &Demand<CapturedPackets>,
        each: &mut Each<'_, CapturedPackets>,
    ) -> Result<StreamState, SourceError> {
        match self.file.next(demand, each)? {
            StreamState::Ended if !(self.stop)() && self.open_next() => Ok(StreamState::Open),
            state => Ok(state),
        }
    }

    fn close(&mut self) -> Accounting {
        let mut stats = std::mem::take(&mut self.stats);
        stats.add(&self.file.close());
        stats
    }
}
