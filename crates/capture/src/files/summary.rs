//! The figures of a file: what `capture stats` says of it.

use super::error::FileError;
use super::interface::FileIface;
use super::packet::FilePacket;
use super::reader::{FileFormat, PacketFile};
use super::records::{FileRecord, FileStatistics, IfaceCounts};

/// Interfaces with figures of their own. Those beyond are counted, with their packets, together.
pub const IFACES_MAX: usize = 256;
/// `opt_comment`
const COMMENT: u16 = 1;
/// Packets between two questions whether the run shall end.
const BATCH: u32 = 4096;
/// Upper ends of the classes that packets are counted in by length; the last class has no end.
pub const LENGTH_CLASSES: [u32; 6] = [64, 127, 255, 511, 1023, 1518];

/// The figures of a file. Memory: [`IFACES_MAX`] interfaces, whatever the file has.
#[derive(Debug, Default)]
pub struct FileSummary {
    /// pcap or pcapng; `None` for a file that could not be opened.
    pub format: Option<FileFormat>,
    /// True if it is packed by gzip or zstd.
    pub is_packed: bool,
    /// Bytes of the file, unpacked, up to its end or to what is broken.
    pub file_bytes: u64,
    /// Sections of pcapng.
    pub sections: u64,
    /// Packets.
    pub packets: u64,
    /// Bytes that the packets had.
    pub bytes: u64,
    /// Bytes of them that the file has.
    pub captured_bytes: u64,
    /// Packets of which it has less than all.
    pub cut: u64,
    /// Earliest and latest stamp of a packet, in ns since 1970.
    pub times_ns: Option<(u64, u64)>,
    /// Packets without a stamp.
    pub untimed: u64,
    /// Packets that are earlier than the one before them.
    pub backwards: u64,
    /// By how many ns at most.
    pub backwards_max_ns: u64,
    /// Length of the shortest and of the longest packet.
    pub lengths: Option<(u32, u32)>,
    /// Packets by length, see [`LENGTH_CLASSES`].
    pub by_length: [u64; LENGTH_CLASSES.len() + 1],
    /// Packets with a comment.
    pub commented: u64,
    /// Interfaces, in the order of the file. One that several sections describe alike is one.
    pub ifaces: Vec<IfaceSummary>,
    /// The interfaces beyond [`IFACES_MAX`], as one.
    pub others: Option<IfaceSummary>,
    /// The first thing in the file that is broken.
    pub fault: Option<FileError>,
}

/// An interface as a file tells of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IfaceSummary {
    /// Its name; empty where the file has none.
    pub name: Box<[u8]>,
    /// `LINKTYPE_…`
    pub link_type: u32,
    /// Bytes of each packet that were captured at most; 0 for all.
    pub snaplen: u32,
    /// Its packets.
    pub packets: u64,
    /// Bytes that they had.
    pub bytes: u64,
    /// Counts of its capture; of several sections added up.
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
    /// Reads the file to its end, or until `stop` says true. What is broken ends it, and stands in `fault`.
    pub fn read(file: &mut PacketFile, stop: &dyn Fn() -> bool) -> FileSummary {
        let mut summing = Summing::default();
        summing.file.format = Some(file.format());
        summing.file.is_packed = file.is_packed();
        while !stop() {
            match summing.read_batch(file) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) if error.is_interrupted() => {}
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
    /// Of each interface of the section its place in `file.ifaces`; [`IFACES_MAX`] for the others.
    places: Vec<u32>,
    /// By place: this section has described it.
    in_section: Vec<bool>,
    /// Counts of interfaces in the section, by place.
    counts: Vec<IfaceCounts>,
    last_ns: u64,
}

impl Summing {
    /// False at the end of the file.
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
                // What was counted last includes what was counted before.
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
        self.add_time(packet.time_ns);
    }

    #[inline]
    fn add_time(&mut self, time_ns: u64) {
        let file = &mut self.file;
        if time_ns == 0 {
            file.untimed += 1;
            return;
        }
        let times = file.times_ns.unwrap_or((time_ns, time_ns));
        file.times_ns = Some((times.0.min(time_ns), times.1.max(time_ns)));
        if time_ns < self.last_ns {
            file.backwards += 1;
            file.backwards_max_ns = file.backwards_max_ns.max(self.last_ns - time_ns);
        }
        self.last_ns = time_ns;
    }

    /// An interface of the section: one of those before, unless this section has described that already.
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

    /// Adds the counts of the section, whose interfaces are forgotten.
    fn end_section(&mut self) {
        for (iface, counts) in self.file.ifaces.iter_mut().zip(&self.counts) {
            iface.counts.add(counts);
        }
        self.counts.clear();
        self.places.clear();
        self.in_section.fill(false);
    }
}
