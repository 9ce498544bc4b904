//! Entry point for the fuzzer: any bytes as a file.

use super::reader::PacketFile;
use super::records::FileRecord;
use super::summary::{FileSummary, IFACES_MAX};

/// Reads any bytes as a packet file, and other files' unpacked bytes. None of these may cause a panic, or yield more
/// packets than they have room for.
pub fn fuzz_packet_file(data: &[u8]) {
    fuzz_records(data);
    let Ok(mut file) = PacketFile::read("fuzz".into(), Box::new(std::io::Cursor::new(data.to_vec()))) else { return };
    let is_packed = data.starts_with(&[0x1f, 0x8b]) || data.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
    let mut bytes = 0;
    while let Ok(Some(packet)) = file.next_packet() {
        bytes += packet.bytes.len() + 1;
        let (iface, link_type) = (packet.iface as usize, packet.link_type);
        assert!(is_packed || bytes <= data.len(), "{bytes} bytes of packets in {}", data.len());
        assert_eq!(file.ifaces().get(iface).map(|iface| iface.link_type), Some(link_type));
        if file.offset() > 1 << 26 {
            // Highly compressible bytes take long to unpack.
            return;
        }
    }
}

/// Reads the same bytes as records. The packets must be the same as without the other records, and every option must be
/// copyable.
fn fuzz_records(data: &[u8]) {
    let open = || PacketFile::read("fuzz".into(), Box::new(std::io::Cursor::new(data.to_vec()))).ok();
    let (Some(mut records), Some(mut packets), Some(mut summed)) = (open(), open(), open()) else { return };
    let mut copied = Vec::new();
    while let Ok(Some(record)) = records.next_record() {
        copied.clear();
        match record {
            FileRecord::Packet(packet) => {
                let other = packets.next_packet().ok().flatten();
                assert_eq!(Some(packet), other);
                packet.options.put_little_endian(6, &mut copied);
            }
            FileRecord::Section(options) | FileRecord::Iface { options, .. } => {
                options.put_little_endian(1, &mut copied);
            }
            FileRecord::Statistics(found) => found.options.put_little_endian(5, &mut copied),
            FileRecord::Other(block) => _ = block.put_little_endian(&mut copied),
        }
        if records.offset() > 1 << 26 {
            return;
        }
    }
    let summary = FileSummary::read(&mut summed, &|| false);
    assert!(summary.ifaces.len() <= IFACES_MAX && summary.captured_bytes <= summary.file_bytes);
}
