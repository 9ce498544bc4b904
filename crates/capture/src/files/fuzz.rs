//! Any bytes as a file, for the fuzzer.

use super::reader::PacketFile;

/// Reads any bytes as a file of packets, and unpacked bytes of others. They must neither panic, nor give more packets
/// than they have room for.
pub fn fuzz_packet_file(data: &[u8]) {
    let Ok(mut file) = PacketFile::read("fuzz".into(), Box::new(std::io::Cursor::new(data.to_vec()))) else { return };
    let is_packed = data.starts_with(&[0x1f, 0x8b]) || data.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
    let mut bytes = 0;
    while let Ok(Some(packet)) = file.next_packet() {
        bytes += packet.bytes.len() + 1;
        let (iface, link_type) = (packet.iface as usize, packet.link_type);
        assert!(is_packed || bytes <= data.len(), "{bytes} bytes of packets in {}", data.len());
        assert_eq!(file.ifaces().get(iface).map(|iface| iface.link_type), Some(link_type));
        if file.offset() > 1 << 26 {
            // What packs well unpacks for long.
            return;
        }
    }
}
