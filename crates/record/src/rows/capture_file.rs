//! Capture files (`capture stats`), one row per file.

use crate::table::table;
use crate::{Kind, List, Member, Object, Show, Value};

/// A capture file and a summary of its contents.
#[derive(Clone, Copy)]
pub struct CaptureFile<'b> {
    /// The file name.
    pub file: &'b [u8],
    /// One of the words in [`CaptureFile::FORMATS`].
    pub format: &'static str,
    /// True if it is compressed with gzip or zstd.
    pub packed: bool,
    /// Number of bytes read from it, after decompression.
    pub file_bytes: u64,
    /// Number of pcapng sections.
    pub sections: u64,
    /// Names of its link types.
    pub link_types: &'b Vec<String>,
    /// Number of packets.
    pub packets: u64,
    /// Sum of the original lengths of the packets, in bytes.
    pub bytes: u64,
    /// Number of packet bytes that are in the file.
    pub captured_bytes: u64,
    /// Earliest and latest time stamp, in ns since 1970.
    pub times_ns: Option<(i128, i128)>,
    /// Number of truncated packets.
    pub cut: u64,
    /// Number of packets without a time stamp.
    pub untimed: u64,
    /// Number of packets with an earlier time stamp than the packet before.
    pub backwards: u64,
    /// The largest such difference, in ns.
    pub backwards_max_ns: u128,
    /// Lengths of the shortest and the longest packet.
    pub lengths: Option<(u32, u32)>,
    /// Number of packets with a comment.
    pub commented: u64,
    /// Number of packets that interfaces dropped.
    pub dropped_by_iface: Option<u64>,
    /// Number of packets that the system dropped.
    pub dropped_by_system: Option<u64>,
    /// Its interfaces.
    pub ifaces: &'b Vec<CaptureFileIface>,
    /// Description of the damage; empty for an intact file.
    pub broken: &'b [u8],
    /// Offset of the damage.
    pub broken_offset: Option<u64>,
}

/// An interface described in a capture file.
#[derive(Clone, Debug, Default)]
pub struct CaptureFileIface {
    /// Its name; empty if the file has no name for it.
    pub iface: Box<[u8]>,
    /// Name of its link type.
    pub link_type: String,
    /// The maximum number of bytes captured per packet; 0 if unlimited.
    pub snaplen: u32,
    /// Number of packets.
    pub packets: u64,
    /// Sum of the original lengths of the packets, in bytes.
    pub bytes: u64,
    /// Packets that the interface received and dropped, packets that passed the filter, and packets that the system
    /// dropped.
    pub counts: [Option<u64>; 4],
}

const OF_IFACES: &[Member] = &[
    Member { name: "iface", kind: Kind::Text },
    Member { name: "link_type", kind: Kind::Text },
    Member { name: "snaplen", kind: Kind::Bytes },
    Member { name: "packets", kind: Kind::Count },
    Member { name: "bytes", kind: Kind::Bytes },
    Member { name: "received", kind: Kind::Count },
    Member { name: "dropped_by_iface", kind: Kind::Count },
    Member { name: "accepted", kind: Kind::Count },
    Member { name: "dropped_by_system", kind: Kind::Count },
];

impl Object for CaptureFileIface {
    fn for_each(&self, each: &mut dyn FnMut(&'static str, Value<'_>)) {
        let own = [
            Value::nonempty(&self.iface),
            Value::Bytes(self.link_type.as_bytes()),
            Value::number(Some(self.snaplen).filter(|snaplen| *snaplen != 0)),
            Value::U64(self.packets),
            Value::U64(self.bytes),
        ];
        let values = own.into_iter().chain(self.counts.iter().map(|count| Value::number(*count)));
        OF_IFACES.iter().zip(values).for_each(|(member, value)| each(member.name, value));
    }
}

impl CaptureFile<'_> {
    /// Names of the file formats.
    pub const FORMATS: &'static [&'static str] = &["pcap", "pcapng"];

    /// Time from the earliest to the latest packet.
    pub fn duration_ns(&self) -> Option<u128> {
        self.times_ns.map(|(first, last)| first.abs_diff(last))
    }

    /// Divides `count` by that time in seconds; `None` if all packets have the same time.
    pub fn per_second(&self, count: u64) -> Option<u64> {
        let duration_ns = self.duration_ns().filter(|ns| *ns > 0)?;
        u64::try_from(u128::from(count) * 1_000_000_000 / duration_ns).ok()
    }

    /// Mean length of the packets.
    pub fn mean_length(&self) -> Option<u64> {
        self.bytes.checked_div(self.packets)
    }
}

fn lengths<'r>(row: &CaptureFile<'_>, get: impl Fn((u32, u32)) -> u32) -> Value<'r> {
    Value::number(row.lengths.map(get))
}

/// Whole microseconds; null for more than 64 bits hold, 584,942 years.
fn microseconds(ns: Option<u128>) -> Value<'static> {
    Value::number(ns.and_then(|ns| u64::try_from(ns / 1000).ok()))
}

fn list<'r>(list: &'r dyn List) -> Value<'r> {
    Value::List(list)
}

table! {
    /// The table of capture files (`capture stats`).
    pub enum CaptureFiles of CaptureFile = "capture stats";

    /// The file.
    file: Text = own(|row| Value::Bytes(row.file)), show Show::Default;
    /// Its format.
    format: Name(CaptureFile::FORMATS) = own(|row| Value::Name(row.format)), show Show::Default;
    /// True if the file is compressed with gzip or zstd.
    packed: Bool = own(|row| Value::Bool(row.packed)), show Show::Wide;
    /// Uncompressed bytes that were read, up to the end of the file or to the damaged part.
    file_bytes: Bytes = own(|row| Value::U64(row.file_bytes)), show Show::Wide;
    /// Sections of a pcapng file: one per capture that was written to it.
    sections: Count = own(|row| Value::U64(row.sections)), show Show::Wide;
    /// Link types of its packets.
    link_types: Texts = own(|row| list(row.link_types)), show Show::Default;
    /// Packets in the file.
    packets: Count = own(|row| Value::U64(row.packets)), show Show::Default;
    /// Original length of all packets with their link-layer headers.
    bytes: Bytes = own(|row| Value::U64(row.bytes)), show Show::Default;
    /// Bytes of packets that are in the file.
    captured_bytes: Bytes = own(|row| Value::U64(row.captured_bytes)), show Show::Wide;
    /// Time of the earliest packet.
    first_time: Time = own(|row| row.times_ns.map_or(Value::Null, |times| Value::time(times.0))), show Show::Default;
    /// Time of the latest packet.
    last_time: Time = own(|row| row.times_ns.map_or(Value::Null, |times| Value::time(times.1))), show Show::Default;
    /// Time between `first_time` and `last_time`.
    duration_us: DurationUs = own(|row| microseconds(row.duration_ns())), show Show::Default;
    /// Average number of packets per second over that time.
    packets_per_s: Count = own(|row| Value::number(row.per_second(row.packets))), show Show::Default;
    /// Average bits per second over that time.
    bits_per_s: BitsPerSecond = own(|row| Value::number(row.per_second(row.bytes.saturating_mul(8)))),
        show Show::Default;
    /// Length of the shortest packet.
    len_min: Bytes = own(|row| lengths(row, |lengths| lengths.0)), show Show::Wide;
    /// Mean length of the packets.
    len_mean: Bytes = own(|row| Value::number(row.mean_length())), show Show::Wide;
    /// Length of the longest packet.
    len_max: Bytes = own(|row| lengths(row, |lengths| lengths.1)), show Show::Wide;
    /// Truncated packets: the file holds fewer bytes than the packet had.
    cut: Count = own(|row| Value::U64(row.cut)), show Show::Wide;
    /// Packets that are older than the packet before them in the file.
    backwards: Count = own(|row| Value::U64(row.backwards)), show Show::Wide;
    /// Largest step backwards in time between two packets.
    backwards_max_us: DurationUs = own(|row| match row.backwards {
        0 => Value::Null,
        _ => microseconds(Some(row.backwards_max_ns)),
    }), show Show::Wide;
    /// Packets without a time.
    untimed: Count = own(|row| Value::U64(row.untimed)), show Show::Wide;
    /// Packets with a comment.
    commented: Count = own(|row| Value::U64(row.commented)), show Show::Wide;
    /// Packets that the interfaces dropped, according to the statistics in the file; null if the file has no such
    /// statistics.
    dropped_by_iface: Count = own(|row| Value::number(row.dropped_by_iface)), show Show::Wide;
    /// Packets that the system dropped for lack of buffer space, according to the statistics in the file.
    dropped_by_system: Count = own(|row| Value::number(row.dropped_by_system)), show Show::Wide;
    /// Interfaces in the file, with their packets and their statistics.
    ifaces: Objects(OF_IFACES) = own(|row| list(row.ifaces)), show Show::Wide;
    /// Description of the damage, if the file is damaged.
    broken: Text = own(|row| Value::nonempty(row.broken)), show Show::Wide;
    /// Offset of the damage: the number of bytes before it.
    broken_offset: Bytes = own(|row| Value::number(row.broken_offset)), show Show::Wide;
}
