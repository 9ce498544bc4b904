#![allow(clippy::unwrap_used)]
//! Tests with generated files, whole and broken.
use std::io::Write;

use super::*;
use proptest::prelude::*;
use record::rows::PktType;

/// A packet as read: time, number of its interface, length, bytes.
type Read = (u64, u32, u32, Vec<u8>);

fn open(bytes: &[u8]) -> Result<PacketFile, FileError> {
    PacketFile::read("x".into(), Box::new(std::io::Cursor::new(bytes.to_vec())))
}

/// The packets of a file, and how reading it ended.
fn read(bytes: &[u8]) -> (Vec<Read>, String) {
    let mut file = match open(bytes) {
        Ok(file) => file,
        Err(error) => return (Vec::new(), error.to_string()),
    };
    let mut packets = Vec::new();
    loop {
        match file.next_packet() {
            Ok(Some(packet)) => {
                packets.push((packet.time_ns, packet.number, packet.len, packet.bytes.to_vec()));
            }
            Ok(None) => return (packets, String::new()),
            Err(error) => return (packets, error.to_string()),
        }
    }
}

/// Writes numbers in one byte order.
struct Made(Vec<u8>, bool);

impl Made {
    fn u16(&mut self, number: u16) -> &mut Made {
        self.0.extend(if self.1 { number.to_be_bytes() } else { number.to_le_bytes() });
        self
    }

    fn u32(&mut self, number: u32) -> &mut Made {
        self.0.extend(if self.1 { number.to_be_bytes() } else { number.to_le_bytes() });
        self
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Made {
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    fn block(&mut self, kind: u32, body: impl FnOnce(&mut Made)) -> &mut Made {
        let mut inner = Made(Vec::new(), self.1);
        body(&mut inner);
        let length = inner.0.len() as u32 + 12;
        self.u32(kind).u32(length).bytes(&inner.0).u32(length)
    }

    fn section(&mut self) -> &mut Made {
        self.block(0x0a0d_0d0a, |body| _ = body.u32(0x1a2b_3c4d).u16(1).u16(0).u32(u32::MAX).u32(u32::MAX))
    }

    /// An interface with snapshot length 96 and these options.
    fn iface(&mut self, link_type: u16, options: &[(u16, &[u8])]) -> &mut Made {
        self.block(1, |body| {
            body.u16(link_type).u16(0).u32(96);
            options.iter().for_each(|(code, value)| _ = body.u16(*code).u16(value.len() as u16).bytes(value));
        })
    }

    fn packet(&mut self, iface: u32, stamp: u64, len: u32, bytes: &[u8]) -> &mut Made {
        self.block(6, |body| {
            body.u32(iface).u32((stamp >> 32) as u32).u32(stamp as u32).u32(bytes.len() as u32).u32(len).bytes(bytes);
        })
    }
}

/// A pcap file with two packets.
fn pcap(is_big_endian: bool, magic: u32) -> Vec<u8> {
    let mut made = Made(Vec::new(), is_big_endian);
    made.u32(magic).u16(2).u16(4).u32(0).u32(0).u32(65_535).u32(0xf400_0001);
    for (fraction, bytes) in [(7, &b"four"[..]), (8, b"five5")] {
        made.u32(1_700_000_000).u32(fraction).u32(bytes.len() as u32).u32(60);
        if magic == 0xa1b2_cd34 {
            made.u32(2).u32(0);
        }
        made.0.extend_from_slice(bytes);
    }
    made.0
}

#[test]
fn pcap_is_read_in_every_order_and_unit() {
    for is_big_endian in [false, true] {
        for (magic, unit) in [(0xa1b2_c3d4, 1000), (0xa1b2_3c4d, 1), (0xa1b2_cd34, 1000)] {
            let bytes = pcap(is_big_endian, magic);
            let time = 1_700_000_000_000_000_000;
            let packets = vec![(time + 7 * unit, 1, 60, b"four".to_vec()), (time + 8 * unit, 1, 60, b"five5".to_vec())];
            assert_eq!(read(&bytes), (packets, String::new()), "{magic:x} {is_big_endian}");
            let file = open(&bytes).unwrap();
            assert_eq!((file.format(), file.is_swapped()), (FileFormat::Pcap, is_big_endian));
            let iface = &file.ifaces()[0];
            assert_eq!(
                (iface.link_type, iface.snaplen, &*iface.name),
                (1, 65_535, &b""[..]),
                "not the checksum's length"
            );
        }
    }
}

/// Before version 2.3 the two lengths were swapped; in 2.3 either order occurs.
#[test]
fn old_pcap_has_its_lengths_swapped() {
    for (minor, lengths) in [(2, [60, 4]), (3, [60, 4]), (3, [4, 60]), (4, [4, 60])] {
        let mut made = Made(Vec::new(), false);
        made.u32(0xa1b2_c3d4).u16(2).u16(minor).u32(0).u32(0).u32(0).u32(1);
        made.u32(1).u32(0).u32(lengths[0]).u32(lengths[1]).bytes(b"four");
        assert_eq!(read(&made.0), (vec![(1_000_000_000, 1, 60, b"four".to_vec())], String::new()), "2.{minor}");
    }
}

/// Two sections of different byte order, with every relevant block type and an irrelevant one.
fn pcapng() -> Vec<u8> {
    let mut made = Made(Vec::new(), true);
    made.section().block(4, |names| _ = names.u32(0)).iface(1, &[(2, b"eth0\0"), (9, &[9])]);
    made.iface(101, &[(14, &[0, 0, 0, 0, 0, 0, 0, 2])]);
    made.packet(0, 5_000_000_007, 99, b"a").packet(1, 3, 2, b"bc");
    made.block(0x0bad, |body| _ = body.u32(9)).block(3, |body| _ = body.u32(5).bytes(b"fives"));
    made.block(2, |body| _ = body.u16(1).u16(7).u32(0).u32(9).u32(1).u32(1).bytes(b"o"));
    made.block(5, |body| _ = body.u32(0).u32(0).u32(0));
    let mut second = Made(Vec::new(), false);
    second.section().iface(113, &[(2, b"any")]).packet(0, 1, 1, b"z");
    [made.0, second.0].concat()
}

#[test]
fn pcapng_is_read_with_all_its_blocks() {
    let packets = vec![
        (5_000_000_007, 1, 99, b"a".to_vec()),
        (2_000_003_000, 2, 2, b"bc".to_vec()),
        (0, 1, 5, b"fives".to_vec()),
        (2_000_009_000, 2, 1, b"o".to_vec()),
        (1000, 3, 1, b"z".to_vec()),
    ];
    assert_eq!(read(&pcapng()), (packets, String::new()));
    let mut file = open(&pcapng()).unwrap();
    assert_eq!((file.format(), file.is_swapped(), file.ifaces().len()), (FileFormat::Pcapng, true, 1));
    let mut names = Vec::new();
    while let Some(packet) = file.next_packet().unwrap() {
        names.push((packet.iface_name.to_vec(), packet.link_type));
    }
    let name = |name: &[u8], link_type| (name.to_vec(), link_type);
    assert_eq!(names, [name(b"eth0", 1), name(b"", 101), name(b"eth0", 1), name(b"", 101), name(b"any", 113)]);
}

/// Every stamp is valid: 0, and times before 1970 or after 2554. A simple packet block is the only record without a
/// time.
#[test]
fn every_stamp_is_a_time() {
    let mut made = Made(Vec::new(), false);
    let offset = |seconds: i64| seconds.to_le_bytes();
    made.section().iface(1, &[]).iface(1, &[(14, &offset(-10))]).iface(1, &[(9, &[0])]);
    made.packet(0, 0, 1, b"a").packet(1, 1, 1, b"b").packet(1, 10_000_000, 1, b"c").packet(2, 1 << 40, 1, b"d");
    made.block(3, |body| _ = body.u32(1).bytes(b"e"));
    let times = [Some(0), Some(-9_999_999_000), Some(0), Some((1 << 40) * 1_000_000_000), None];
    let mut file = open(&made.0).unwrap();
    for time in times {
        let packet = file.next_packet().unwrap().unwrap();
        assert_eq!((packet.time(), packet.unusual_time.is_some()), (time, !matches!(time, Some(0))));
    }
    let summary = FileSummary::read(&mut open(&made.0).unwrap(), &|| false);
    assert_eq!((summary.untimed, summary.times_ns), (1, Some((-9_999_999_000, (1 << 40) * 1_000_000_000))));
    assert_eq!((summary.backwards, summary.backwards_max_ns), (1, 9_999_999_000));
}

#[test]
fn flags_say_whom_a_packet_is_for() {
    let packet_type_of = |flags: u32| {
        let mut made = Made(Vec::new(), false);
        made.section().iface(1, &[]).block(6, |body| {
            body.u32(0).u32(0).u32(0).u32(1).u32(1).bytes(b"x").u16(1).u16(2).bytes(b"hi").u16(2).u16(4).u32(flags);
        });
        let mut file = open(&made.0).unwrap();
        file.next_packet().unwrap().unwrap().packet_type
    };
    for (flags, packet_type) in [
        (0, None),
        (1, Some(PktType::Host)),
        (2, Some(PktType::Outgoing)),
        (1 << 2, Some(PktType::Host)),
        (2 << 2 | 1, Some(PktType::Multicast)),
        (3 << 2 | 1, Some(PktType::Broadcast)),
        (4 << 2 | 1, Some(PktType::OtherHost)),
    ] {
        assert_eq!(packet_type_of(flags), packet_type, "{flags}");
    }
}

/// Packets before the fault are returned, and the offset of the fault.
#[test]
fn broken_files_say_where() {
    let whole = pcap(false, 0xa1b2_c3d4);
    for (bytes, packets, says) in [
        (&whole[..], 2, ""),
        (&whole[..whole.len() - 1], 1, "x, byte 44: the file ends within a packet: 4 of 5 bytes"),
        (&whole[..50], 1, "x, byte 44: the file ends within the header of a packet: 6 of 16 bytes"),
        (&whole[..24], 0, ""),
        (&whole[..20], 0, "x, byte 0: the file ends within its header: 20 of 24 bytes"),
        (&whole[..2], 0, "x: neither pcap nor pcapng: it begins with d4 c3 00 00"),
        (b"", 0, "x: the file is empty"),
        (b"GET / HTTP", 0, "x: neither pcap nor pcapng: it begins with 47 45 54 20"),
    ] {
        let (read, said) = read(bytes);
        assert_eq!((read.len(), said.as_str()), (packets, says));
    }
    let mut long = whole.clone();
    long[44 + 8..44 + 12].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(read(&long).1, "x, byte 44: a packet claims a length of 4294967295 bytes");
    let begin = |made: &mut Made| _ = made.section().iface(1, &[]).packet(0, 1, 1, b"x");
    let broken = |then: &dyn Fn(&mut Made)| {
        let mut made = Made(Vec::new(), false);
        begin(&mut made);
        then(&mut made);
        let (packets, said) = read(&made.0);
        assert_eq!(packets.len(), 1, "{said}");
        said
    };
    assert_eq!(broken(&|_| {}), "");
    assert_eq!(
        broken(&|made| _ = made.packet(7, 1, 1, b"x")),
        "x, byte 84: a packet of interface 7, which the file does not describe"
    );
    assert_eq!(broken(&|made| _ = made.u32(6).u32(13)), "x, byte 84: a block claims a length of 13 bytes");
    assert_eq!(broken(&|made| _ = made.u32(6).u32(1 << 31)), "x, byte 84: a block claims a length of 2147483648 bytes");
    assert_eq!(
        broken(&|made| _ = made.u32(6).u32(16).u32(0)),
        "x, byte 84: the file ends within a block: 12 of 16 bytes"
    );
    assert_eq!(
        broken(&|made| _ = made.u32(6).u32(16).u32(0).u32(20)),
        "x, byte 84: a block has a length of 16 bytes at its start and 20 at its end"
    );
    let short = |made: &mut Made| _ = made.block(6, |body| _ = body.u32(0).u32(0).u32(0).u32(99).u32(99));
    assert_eq!(broken(&short), "x, byte 84: a block of type 6 is shorter than its contents");
    assert_eq!(broken(&|made| _ = made.u16(6)), "x, byte 84: the file ends within the header of a block: 2 of 8 bytes");
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

#[test]
fn packed_files_are_unpacked() {
    let (plain, half) = (pcapng(), pcapng().len() / 2);
    for pack in [gzip, zstd] {
        assert_eq!(read(&pack(&plain)), read(&plain));
        let parts = [pack(&plain[..half]), pack(&plain[half..])].concat();
        assert_eq!(read(&parts), read(&plain), "two parts");
        let cut = pack(&plain);
        let (packets, said) = read(&cut[..cut.len() - 6]);
        assert!(packets.len() <= 5 && said.starts_with("x"), "{said}");
    }
    // The unpacked data is longer than any buffer.
    let many = [&pcap(false, 0xa1b2_c3d4)[..24], &pcap(false, 0xa1b2_c3d4)[24..].repeat(100_000)].concat();
    assert_eq!(read(&gzip(&many)).0.len(), 200_000);
}

/// A file of any size is read in constant memory; records across the end of the buffer are complete.
#[test]
fn records_are_whole_across_the_buffer() {
    let mut made = Made(Vec::new(), false);
    made.section().iface(1, &[]);
    for len in (0..4000).step_by(7).cycle().take(3000) {
        made.packet(0, len, len as u32, &vec![len as u8; len as usize]);
    }
    let (packets, said) = read(&made.0);
    assert_eq!((packets.len(), said.as_str()), (3000, ""));
    assert!(packets.iter().all(|packet| packet.3 == vec![packet.2 as u8; packet.2 as usize]));
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        fuzz_packet_file(&bytes);
    }

    #[test]
    fn changed_files_are_survived(at in any::<prop::sample::Index>(), to in any::<u8>(), kind in 0..4) {
        let mut bytes = match kind {
            0 => pcap(false, 0xa1b2_c3d4),
            1 => pcapng(),
            2 => gzip(&pcapng()),
            _ => zstd(&pcapng()),
        };
        let at = at.index(bytes.len());
        bytes[at] = to;
        fuzz_packet_file(&bytes);
    }
}
