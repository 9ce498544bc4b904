//! The summary of a file, for `capture stats`.

use super::blocks::COMMENT;
use super::error::FileError;
use super::interface::FileIface;
use super::packet::FilePacket;
use super::reader::{FileFormat, PacketFile};
use super::records::{FileRecord, FileStatistics, IfaceCounts};

/// Maximum number of interfaces with a summary. Further interfaces and their packets are counted together.
///
/// Bound: interfaces of a file with figures of their own in `capture stats`
/// (`capture_stats::sections_that_describe_one_interface_are_added_up`). Beyond: the figures of further interfaces are
/// added up. By: the author of the file.
pub const IFACES_MAX: usize = 256;
/// Number of packets between two calls of `stop`.
const BATCH: u32 = 4096;
/// Upper bounds of the packet length classes; the last class is unbounded.
pub const LENGTH_CLASSES: [u32; 6] = [64, 127, 255, 511, 1023, 1518];

/// The summary of a file. Memory: at most [`IFACES_MAX`] interfaces.
#[derive(Debug, Default)]
pub struct FileSummary {
    /// pcap or pcapng; `None` for a file that could not be opened.
    pub format: Option<FileFormat>,
    /// True if it is compressed with gzip or zstd.
    pub is_packed: bool,
    /// Size of the unpacked file in bytes, up to its end or its first fault.
    pub file_bytes: u64,
    /// Number of pcapng sections.
    pub sections: u64,
    /// Number of packets.
    pub packets: u64,
    /// Sum of the original packet lengths, in bytes.
    pub bytes: u64,
    /// Sum of the captured bytes.
    pub captured_bytes: u64,
    /// Number of packets that were captured incompletely.
    pub cut: u64,
    /// Earliest and latest time stamp of a packet, in ns since 1970.
    pub times_ns: Option<(i128, i128)>,
    /// Number of packets without a time stamp.
    pub untimed: u64,
    /// Number of packets with an earlier time stamp than the packet before.
    pub backwards: u64,
    /// The largest such step back, in ns.
    pub backwards_max_ns: u128,
    /// Length of the shortest and of the longest packet.
    pub lengths: Option<(u32, u32)>,
    /// Number of packets per class of [`LENGTH_CLASSES`].
    pub by_length: [u64; LENGTH_CLASSES.len() + 1],
    /// Number of packets with a comment.
    pub commented: u64,
    /// Interfaces, in the order of the file. Identical descriptions in several sections count as one interface.
    pub ifaces: Vec<IfaceSummary>,
    /// The interfaces beyond [`IFACES_MAX`], combined.
    pub others: Option<IfaceSummary>,
    /// The first fault in the file.
    pub fault: Option<FileError>,
}

/// Summary of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IfaceSummary {
    /// Its name; empty if the file does not contain it.
    pub name: Box<[u8]>,
    /// `LINKTYPE_…`
    pub link_type: u32,
    /// Maximum number of captured bytes per packet; 0 for all.
    pub snaplen: u32,
    /// Number of its packets.
    pub packets: u64,
    /// Sum of their original lengths, in bytes.
    pub bytes: u64,
    /// Counters of its captures, added up over the sections.
    pub counts: IfaceCounts,
}

impl IfaceSummary {
    fn of(iface: &FileIface) -> IfaceSummary {
        let (name, link_type, snaplen) = (iface.name.clone(), iface.link_type, iface.snaplen);
        IfaceSummary { name, link_type, snaplen, ..IfaceSummary::default() }
    }

    fn is(&self, iface: &FileIface) -> bool {
        (&self.name, self.link_type, self.snaplen) == (&iface.name, iface.link_type, iface.snaplen)
    }

    fn add(&mut self, packet: &FilePacket<'_>) {
        self.packets += 1;
        self.bytes += u64::from(packet.len);
    }
}

impl FileSummary {
    /// Reads the file to its end, or until `stop` returns true. A fault ends it and is stored in `fault`.
    pub fn read(file: &mut PacketFile, stop: &dyn Fn() -> bool) -> FileSummary {
        let mut summing = Summing::default();
        summing.file.format = Some(file.format());
        summing.file.is_packed = file.is_packed();
        while !stop() {
            match summing.read_batch(file) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    summing.file.fault = Some(error);
                    break;
                }
            }
        }
        summing.end_section();
        FileSummary { file_bytes: file.offset(), ..summing.file }
    }
}

#[derive(Default)]
struct Summing {
    file: FileSummary,
    /// Index in `file.ifaces` for each interface of the section; [`IFACES_MAX`] for the others.
    places: Vec<u32>,
    /// Whether this section has described the interface, by index.
    in_section: Vec<bool>,
    /// Counters of the section's interfaces, by index.
    counts: Vec<IfaceCounts>,
    last_ns: Option<i128>,
}

impl Summing {
    /// Returns false at the end of the file.
    fn read_batch(&mut self, file: &mut PacketFile) -> Result<bool, FileError> {
        for _ in 0..BATCH {
            match file.next_record()? {
                None => return Ok(false),
                Some(FileRecord::Packet(packet)) => self.add(&packet),
                Some(FileRecord::Section(_)) => {
                    self.end_section();
                    self.file.sections += 1;
                }
                Some(FileRecord::Iface { iface, .. }) => self.describe(iface),
                // Later counters include the earlier ones.
                Some(FileRecord::Statistics(found)) => self.count(&found),
                Some(FileRecord::Other(_)) => {}
            }
        }
        Ok(true)
    }

    #[inline]
    fn add(&mut self, packet: &FilePacket<'_>) {
        let file = &mut self.file;
        let (len, captured) = (packet.len, packet.bytes.len() as u64);
        file.packets += 1;
        file.bytes += u64::from(len);
        file.captured_bytes += captured;
        file.cut += u64::from(captured < u64::from(len));
        file.lengths = Some(file.lengths.map_or((len, len), |(least, most)| (least.min(len), most.max(len))));
        let class: usize = LENGTH_CLASSES.iter().map(|end| usize::from(len > *end)).sum();
        if let Some(count) = file.by_length.get_mut(class) {
            *count += 1;
        }
        let place = self.places.get(packet.iface as usize).copied().unwrap_or(u32::MAX);
        match file.ifaces.get_mut(place as usize) {
            Some(iface) => iface.add(packet),
            None => file.others.get_or_insert_default().add(packet),
        }
        if !packet.options.is_empty() {
            file.commented += u64::from(packet.options.has(COMMENT));
        }
        self.add_time(packet.time());
    }

    #[inline]
    fn add_time(&mut self, time: Option<i128>) {
        let file = &mut self.file;
        let Some(time_ns) = time else {
            file.untimed += 1;
            return;
        };
        let times = file.times_ns.unwrap_or((time_ns, time_ns));
        file.times_ns = Some((times.0.min(time_ns), times.1.max(time_ns)));
        if let Some(last_ns) = self.last_ns.replace(time_ns).filter(|last_ns| time_ns < *last_ns) {
            file.backwards += 1;
            file.backwards_max_ns = file.backwards_max_ns.max(last_ns.abs_diff(time_ns));
        }
    }

    /// Adds an interface of the section: reuses a known interface, unless this section has already described it.
    fn describe(&mut self, iface: &FileIface) {
        let (ifaces, in_section) = (&mut self.file.ifaces, &mut self.in_section);
        let mut known = ifaces.iter().zip(in_section.iter());
        let place = known.position(|(known, is_taken)| !is_taken && known.is(iface)).unwrap_or(ifaces.len());
        if place == IFACES_MAX {
            self.file.others.get_or_insert_default();
        } else if place == ifaces.len() {
            ifaces.push(IfaceSummary::of(iface));
            in_section.push(false);
        }
        if let Some(is_taken) = in_section.get_mut(place) {
            *is_taken = true;
        }
        self.places.push(place as u32);
    }

    fn count(&mut self, found: &FileStatistics<'_>) {
        let place = self.places.get(found.iface as usize).copied().unwrap_or(u32::MAX) as usize;
        if place < self.file.ifaces.len() && self.counts.len() <= place {
            self.counts.resize(place + 1, IfaceCounts::default());
        }
        match self.counts.get_mut(place) {
            Some(counts) => *counts = found.counts,
            None => self.file.others.get_or_insert_default().counts.add(&found.counts),
        }
    }

    /// Adds the counters of the section and forgets its interfaces.
    fn end_section(&mut self) {
        for (iface, counts) in self.file.ifaces.iter_mut().zip(&self.counts) {
            iface.counts.add(counts);
        }
        self.counts.clear();
        self.places.clear();
        self.in_section.fill(false);
    }
}
