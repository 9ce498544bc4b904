//! Merges packet files into one, by time.
//!
//! Each input is read in its own order, and the earliest of the next packets is written. Memory: one buffer and one
//! packet per input, regardless of their lengths.

use super::copy::{CopyWriter, ONE_LINK_TYPE, PacketCopy, each_option};
use super::cut::BATCH;
use super::formats::{CopiedPacket, put_counts};
use super::packing::is_pcap;
use capture::{FileError, FileFormat, FileIface, FileOptions, FileRecord, IfaceCounts, PacketFile, blocks};
use record::rows::{CapturedPacket, LinkType, UnusualTime};
use runtime::outcome::Outcome;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::path::Path;

/// Maximum number of interfaces in the output: as many as readers remember, see `IFACES_MAX` of their section.
///
/// Bound: interfaces of a merged file. Beyond: packets of further interfaces are not written; counted (exit code 3).
/// By: the author of a file.
const IFACES_MAX: usize = 1 << 16;
/// The number for interfaces beyond the maximum.
const NO_PLACE: u32 = u32::MAX;
/// Maximum number of bytes of a description that is compared with others; longer ones count as different each time.
const DESCRIPTION_MAX: usize = 4096;

/// Checks that the packets of these files fit into one file of that name.
pub fn check_link_types(files: &[PacketFile], output: &Path) -> Result<(), String> {
    let mut types = files.iter().filter_map(|file| Some(file.ifaces().first()?.link_type));
    let first = types.next();
    match is_pcap(output) && types.any(|other| Some(other) != first) {
        true => Err(format!("the files have packets of several link types, and {ONE_LINK_TYPE}")),
        false => Ok(()),
    }
}

/// Merges the packets of these files by time. `goes_on` is called now and then with the number of packets read, and
/// returns false to end the work. Returns the messages and the exit code.
pub fn merge(files: Vec<PacketFile>, writer: CopyWriter, goes_on: &dyn Fn(u64) -> bool) -> Outcome {
    Merging { writer, ifaces: Vec::new(), faults: Vec::new(), read: 0, is_over: false }.merge(files, goes_on)
}

/// An input file, and its next packet.
struct Input {
    file: PacketFile,
    /// Maps interface numbers of the section to numbers in the output.
    numbers: Vec<u32>,
    described: Descriptions,
    /// Counts of this section, by interface number in the output.
    counts: HashMap<u32, IfaceCounts>,
    next: NextPacket,
}

/// The interfaces described by a file.
#[derive(Default)]
struct Descriptions {
    /// The snapshot length to write for each interface: libpcap rejects files whose interfaces have different ones.
    snaplen: u32,
    /// Their interface numbers in the output, by description.
    known: HashMap<Vec<u8>, u32>,
    /// Number of times that this section contains each description.
    in_section: HashMap<Vec<u8>, u32>,
}

/// The packet to write once it is the earliest.
#[derive(Default)]
struct NextPacket {
    /// Time in ns since 1970; packets without one come first.
    time_ns: i128,
    unusual_time: Option<UnusualTime>,
    stamp: u64,
    iface: u32,
    link_type: u32,
    len: u32,
    bytes: Vec<u8>,
    options: Vec<u8>,
}

/// An interface of the output, with its counts of lost packets.
#[derive(Default)]
struct MergedIface {
    counts: IfaceCounts,
    stamp: u64,
}

struct Merging {
    writer: CopyWriter,
    ifaces: Vec<MergedIface>,
    faults: Vec<FileError>,
    read: u64,
    /// True once the run was asked to stop.
    is_over: bool,
}

impl Merging {
    fn merge(mut self, files: Vec<PacketFile>, goes_on: &dyn Fn(u64) -> bool) -> Outcome {
        let link_type = files.iter().find_map(|file| Some(file.ifaces().first()?.link_type)).unwrap_or(1);
        let snaplens = files.iter().filter_map(|file| Some(file.ifaces().first()?.snaplen));
        // 0 means unlimited.
        let snaplen = snaplens.max_by_key(|snaplen| snaplen.wrapping_sub(1)).unwrap_or(0);
        let mut inputs: Vec<Input> = files.into_iter().map(|file| Input::new(file, snaplen)).collect();
        self.begin(&mut inputs);
        let mut heap = BinaryHeap::with_capacity(inputs.len());
        for (place, input) in inputs.iter_mut().enumerate() {
            if self.advance(input) {
                heap.push(Reverse((input.next.time_ns, place)));
            }
        }
        while let Some(Reverse((_, place))) = heap.pop().filter(|_| !self.is_over) {
            let Some(input) = inputs.get_mut(place) else { break };
            match input.next.iface {
                NO_PLACE => self.writer.refuse("too many interfaces for one file"),
                _ => self.writer.packet(&input.next.copy()),
            }
            self.read += 1;
            if self.writer.is_closed() || self.read % BATCH == 0 && !goes_on(self.read) {
                break;
            }
            if self.advance(input) {
                heap.push(Reverse((input.next.time_ns, place)));
            }
        }
        inputs.iter_mut().for_each(|input| self.end_section(input));
        self.finish(link_type)
    }

    /// Starts the only section, with the comments of each file's first section.
    fn begin(&mut self, inputs: &mut [Input]) {
        let mut options = Vec::new();
        for input in inputs {
            // In pcapng the first record is the section. If it is broken, the next record reports it again.
            let is_pcapng = input.file.format() == FileFormat::Pcapng;
            if let Some(Ok(Some(FileRecord::Section(found)))) = is_pcapng.then(|| input.file.next_record()) {
                put_comments(found, &mut options);
            }
        }
        self.writer.begin_section(&options);
    }

    /// Reads up to the file's next packet; false at the end, and if the run was asked to stop.
    fn advance(&mut self, input: &mut Input) -> bool {
        loop {
            let Input { file, numbers, described, counts, next } = input;
            match file.next_record() {
                Ok(None) => return false,
                Err(error) if error.is_interrupted() => {
                    self.is_over = true;
                    return false;
                }
                Err(error) => {
                    self.faults.push(error);
                    return false;
                }
                Ok(Some(FileRecord::Packet(packet))) => {
                    let Some(number) = numbers.get(packet.iface as usize) else { return false };
                    next.take(&packet, *number);
                    return true;
                }
                Ok(Some(FileRecord::Iface { iface, options, .. })) => {
                    numbers.push(described.number(iface, options, &mut self.ifaces, &mut self.writer));
                }
                Ok(Some(FileRecord::Statistics(found))) => {
                    // The latest counts include the earlier ones.
                    let number = numbers.get(found.iface as usize).copied().unwrap_or(NO_PLACE);
                    if let Some(iface) = self.ifaces.get_mut(number as usize) {
                        iface.stamp = found.stamp;
                        counts.insert(number, found.counts);
                    }
                }
                Ok(Some(FileRecord::Other(block))) => self.writer.other(&block),
                Ok(Some(FileRecord::Section(_))) => self.end_section(input),
            }
        }
    }

    /// Adds the counts of the file's section, and forgets its interfaces.
    fn end_section(&mut self, input: &mut Input) {
        for (number, counts) in input.counts.drain() {
            if let Some(iface) = self.ifaces.get_mut(number as usize) {
                iface.counts.add(&counts);
            }
        }
        input.numbers.clear();
        input.described.in_section.clear();
    }

    fn finish(mut self, link_type: u32) -> Outcome {
        for (number, iface) in
            self.ifaces.iter().enumerate().filter(|(_, iface)| iface.counts != IfaceCounts::default())
        {
            let mut options = Vec::new();
            let IfaceCounts { received, dropped_by_iface, accepted, dropped_by_system, delivered } = iface.counts;
            put_counts([received, dropped_by_iface, accepted, dropped_by_system, delivered], &mut options);
            self.writer.statistics(number as u32, iface.stamp, &options);
        }
        self.writer.finish(&format!("{} packets read", self.read), link_type, &self.faults)
    }
}

fn put_comments(options: FileOptions<'_>, out: &mut Vec<u8>) {
    let mut all = Vec::new();
    options.put_little_endian(blocks::SECTION, &mut all);
    each_option(&all)
        .filter(|(code, _)| *code == blocks::COMMENT)
        .for_each(|(_, option)| out.extend_from_slice(option));
}

impl Descriptions {
    /// The number of an interface: that of an equal description in another section of this file, or a new one.
    /// `NO_PLACE` if there are too many.
    fn number(
        &mut self,
        iface: &FileIface,
        options: FileOptions<'_>,
        ifaces: &mut Vec<MergedIface>,
        writer: &mut CopyWriter,
    ) -> u32 {
        let mut key = [iface.link_type.to_le_bytes(), iface.snaplen.to_le_bytes()].concat();
        options.put_little_endian(blocks::INTERFACE, &mut key);
        let is_compared = key.len() <= DESCRIPTION_MAX;
        if is_compared {
            // Two equal descriptions within one section are two interfaces.
            let nth = self.in_section.entry(key.clone()).or_default();
            key.extend_from_slice(&nth.to_le_bytes());
            *nth += 1;
        }
        if let Some(number) = self.known.get(&key) {
            return *number;
        }
        if ifaces.len() >= IFACES_MAX {
            return NO_PLACE;
        }
        let number = ifaces.len() as u32;
        let mut with_snaplen = iface.clone();
        with_snaplen.snaplen = self.snaplen;
        writer.iface(&with_snaplen, options, None);
        ifaces.push(MergedIface::default());
        if is_compared {
            self.known.insert(key, number);
        }
        number
    }
}

impl Input {
    fn new(file: PacketFile, snaplen: u32) -> Input {
        let described = Descriptions { snaplen, ..Descriptions::default() };
        let (counts, next) = (HashMap::new(), NextPacket::default());
        Input { file, numbers: Vec::new(), described, counts, next }
    }
}

impl NextPacket {
    fn take(&mut self, packet: &capture::FilePacket<'_>, iface: u32) {
        (self.time_ns, self.unusual_time) = (packet.time().unwrap_or(i128::MIN), packet.unusual_time);
        (self.stamp, self.iface) = (packet.stamp, iface);
        (self.link_type, self.len) = (packet.link_type, packet.len);
        self.bytes.clear();
        self.bytes.extend_from_slice(packet.bytes);
        self.options.clear();
        packet.options.put_little_endian(blocks::PACKET, &mut self.options);
    }

    fn copy(&self) -> PacketCopy<'_> {
        let NextPacket { time_ns, unusual_time, stamp, iface, link_type, len, bytes, options } = self;
        let row = CapturedPacket {
            time_ns: u64::try_from(*time_ns).unwrap_or(0),
            unusual_time: *unusual_time,
            link_type: u16::try_from(*link_type).map_or(LinkType::UNKNOWN, LinkType),
            len: *len,
            frame: bytes,
            ..CapturedPacket::default()
        };
        PacketCopy { row, copied: CopiedPacket { iface: *iface, stamp: *stamp, len: *len, bytes, options } }
    }
}
