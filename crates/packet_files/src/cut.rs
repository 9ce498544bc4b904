//! Copies a part of a packet file, with all its metadata.

use super::copy::CopyWriter;
use capture::{FileRecord, PacketFile, blocks};
use record::rows::CapturedPacket;
use runtime::outcome::Outcome;

/// Number of packets between checks whether the run must end.
pub(super) const BATCH: u64 = 4096;

/// The part of a file to copy.
pub struct CutRequest<'r> {
    /// True for a packet to copy. The second argument is true if the file has the other byte order.
    pub is_wanted: &'r mut dyn FnMut(CapturedPacket<'_>, bool) -> bool,
    /// The maximum number of bytes to copy of a packet.
    pub snaplen: Option<u32>,
    /// The maximum number of packets to copy.
    pub limit: u64,
    /// Called now and then with the number of packets read; false ends the copy.
    pub goes_on: &'r dyn Fn(u64) -> bool,
}

impl CutRequest<'_> {
    /// Copies the part. Returns the messages and the exit code.
    pub fn copy(self, file: &mut PacketFile, mut writer: CopyWriter) -> Outcome {
        let link_type = file.ifaces().first().map_or(1, |iface| iface.link_type);
        let (mut read, mut taken, mut faults) = (0, 0, Vec::new());
        while taken < self.limit && !writer.is_closed() && (read % BATCH != 0 || (self.goes_on)(read)) {
            let is_swapped = file.is_swapped();
            let record = match file.next_record() {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(error) if error.is_interrupted() => break,
                Err(error) => {
                    faults.push(error);
                    break;
                }
            };
            let FileRecord::Packet(packet) = record else {
                copy_other_record(&record, self.snaplen, &mut writer);
                continue;
            };
            read += 1;
            if (self.is_wanted)(packet.row(usize::MAX), is_swapped) {
                taken += 1;
                let row = packet.row(self.snaplen.map_or(usize::MAX, |bytes| bytes as usize));
                writer.copy(&packet, row, packet.iface);
            }
        }
        writer.finish(&format!("{read} packets read, {} filtered", read - taken), link_type, &faults)
    }
}

/// Copies a record other than a packet.
fn copy_other_record(record: &FileRecord<'_>, snaplen: Option<u32>, writer: &mut CopyWriter) {
    match record {
        FileRecord::Section(options) => writer.copy_section(*options),
        FileRecord::Iface { iface, options, .. } => writer.iface(iface, *options, snaplen),
        FileRecord::Statistics(found) => {
            let mut options = Vec::new();
            found.options.put_little_endian(blocks::STATISTICS, &mut options);
            writer.statistics(found.iface, found.stamp, &options);
        }
        FileRecord::Other(block) => writer.other(block),
        FileRecord::Packet(_) => {}
    }
}
