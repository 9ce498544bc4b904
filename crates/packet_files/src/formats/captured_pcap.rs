//! Captured packets as pcap: one link type, nanoseconds, no interface names.

use record::rows::{CapturedFrame, FramePlace, LinkType, SimilarFrames, UnusualTime};

/// Magic numbers of files with nanoseconds, and with microseconds; the version.
const MAGIC: u32 = 0xa1b2_3c4d;
const MAGIC_MICROSECONDS: u32 = 0xa1b2_c3d4;
const VERSION: u32 = 4 << 16 | 2;
const SECOND_NS: u64 = 1_000_000_000;

/// Writes rows as records of a pcap file. The file gets the first row's link type.
#[derive(Debug)]
pub struct CapturedPcap {
    link_type: Option<LinkType>,
    /// Upper bits of the header's link-type field, above the link type.
    link_bits: u32,
    snaplen: u32,
    magic: u32,
    /// The unit of the stamps in nanoseconds.
    unit_ns: u64,
}

impl Default for CapturedPcap {
    fn default() -> CapturedPcap {
        CapturedPcap::new()
    }
}

impl CapturedPcap {
    /// A writer at the beginning of a file.
    pub fn new() -> CapturedPcap {
        CapturedPcap { link_type: None, link_bits: 0, snaplen: super::blocks::SNAPLEN, magic: MAGIC, unit_ns: 1 }
    }

    /// Sets the header's snapshot length to `snaplen` bytes.
    pub fn cut_to(self, snaplen: u32) -> CapturedPcap {
        CapturedPcap { snaplen, ..self }
    }

    /// Sets the upper bits of the header's link-type field, which give the length of the frame check sequence.
    pub fn with_link_bits(self, link_bits: u32) -> CapturedPcap {
        CapturedPcap { link_bits, ..self }
    }

    /// Returns a writer with stamps in microseconds, which every reader knows.
    pub fn in_microseconds(self) -> CapturedPcap {
        CapturedPcap { magic: MAGIC_MICROSECONDS, unit_ns: 1000, ..self }
    }

    /// The next record begins another file with the same header.
    pub fn begin_file(&mut self) {
        self.link_type = None;
    }

    /// Appends the header of the file, unless a packet already did.
    pub fn begin(&mut self, link_type: LinkType, out: &mut Vec<u8>) {
        if self.link_type.is_none() {
            self.link_type = Some(link_type);
            let link_type = if link_type == LinkType::UNKNOWN { super::captured::LINKTYPE_USER0 } else { link_type.0 };
            for number in [self.magic, VERSION, 0, 0, self.snaplen, u32::from(link_type) | self.link_bits] {
                out.extend_from_slice(&number.to_le_bytes());
            }
        }
    }

    /// Records that the file already has a header with this link type.
    pub(super) fn skip_header(&mut self, link_type: LinkType) {
        self.link_type = Some(link_type);
    }

    /// True if the file can hold the packet's time: its seconds have 32 bits, which end in 2106. The record of another
    /// packet has the lower 32 bits, as libpcap writes it.
    #[inline]
    pub fn holds_time_of(row: &CapturedFrame<'_>) -> bool {
        row.unusual_time.is_none() && row.time_ns < SECOND_NS << 32
    }

    /// Appends a record; false for a packet of another link type, for which the file has no place. See
    /// [`CapturedPcap::holds_time_of`] about its time.
    #[inline]
    pub fn write(&mut self, row: &CapturedFrame<'_>, out: &mut Vec<u8>) -> bool {
        self.begin(row.link_type, out);
        if self.link_type != Some(row.link_type) {
            return false;
        }
        let place = row.frame_place();
        match row.unusual_time.and_then(UnusualTime::to_far_time) {
            None => self.put_record(&place, row.frame, out),
            Some(time) => {
                let second = time.second().rem_euclid(1 << 32) as u64;
                let time_ns = second * SECOND_NS + u64::from(time.nanos());
                self.put_record(&FramePlace { time_ns, ..place }, row.frame, out);
            }
        }
        true
    }

    /// Appends records of several similar packets to `out`, and the end offset of each to `ends`; returns false for
    /// packets of another link type.
    pub fn write_similar(&mut self, packets: &SimilarFrames<'_>, ends: &mut Vec<usize>, out: &mut Vec<u8>) -> bool {
        self.begin(packets.first.link_type, out);
        if self.link_type != Some(packets.first.link_type) {
            return false;
        }
        for place in packets.places {
            self.put_record(place, packets.bytes(place), out);
            ends.push(out.len());
        }
        true
    }

    /// Appends a record; `frame` is the captured part of its packet.
    #[inline(always)]
    fn put_record(&self, place: &FramePlace, frame: &[u8], out: &mut Vec<u8>) {
        let captured = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        let time = [(place.time_ns / SECOND_NS) as u32, (place.time_ns % SECOND_NS / self.unit_ns) as u32];
        for number in [time[0], time[1], captured, place.len.max(captured)] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        super::put_bytes(frame, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::FarTime;

    #[test]
    fn one_link_type_has_a_place() {
        let (mut writer, mut out) = (CapturedPcap::new(), Vec::new());
        let row = CapturedFrame {
            time_ns: 1_795_265_034_699_260_999,
            link_type: LinkType::ETHERNET,
            len: 60,
            frame: b"abc",
            ..CapturedFrame::default()
        };
        assert!(writer.write(&row, &mut out));
        assert!(!writer.write(&CapturedFrame { link_type: LinkType::RAW, ..row }, &mut out));
        let numbers = [0xa1b2_3c4d, 0x4_0002, 0, 0, 262_144, 1, 1_795_265_034, 699_260_999, 3, 60u32];
        let expected: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).chain(*b"abc").collect();
        assert_eq!(out, expected);
        let mut out = Vec::new();
        CapturedPcap::new().cut_to(96).in_microseconds().write(&row, &mut out);
        let numbers = [0xa1b2_c3d4, 0x4_0002, 0, 0, 96, 1, 1_795_265_034, 699_260, 3, 60u32];
        let expected: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).chain(*b"abc").collect();
        assert_eq!(out, expected);
    }

    #[test]
    fn times_beyond_32_bits_of_seconds_have_the_lower_ones() {
        let far = |ns| CapturedFrame {
            unusual_time: FarTime::split(ns).err().map(UnusualTime::Far),
            ..CapturedFrame::default()
        };
        let late = CapturedFrame { time_ns: SECOND_NS << 32, ..CapturedFrame::default() };
        for (row, is_held, time) in [
            (CapturedFrame::default(), true, [0, 0]),
            (CapturedFrame { time_ns: (SECOND_NS << 32) - 1, ..late }, true, [u32::MAX, 999_999_999]),
            (late, false, [0, 0]),
            (far(-1), false, [u32::MAX, 999_999_999]),
            (far((1 << 90) + 5), false, [651_596_978, 899_124_229]),
        ] {
            let mut out = Vec::new();
            assert!(CapturedPcap::new().write(&row, &mut out));
            assert_eq!(CapturedPcap::holds_time_of(&row), is_held, "{row:?}");
            assert_eq!(out.get(24..32), Some([time[0].to_le_bytes(), time[1].to_le_bytes()].concat().as_slice()));
        }
    }
}
