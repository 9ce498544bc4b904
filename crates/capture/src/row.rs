//! The row of a packet, from its bytes and what is known about it.
use packet::{mac_text, put_info, read_frame};
use record::rows::{CapturedPacket, capture_need};

/// True for a packet that was captured here, not read from a file.
pub fn is_of_interface(row: &CapturedPacket<'_>) -> bool {
    row.netns_id != 0
}

/// Judges a packet before its headers are read.
pub type Passes<'p> = dyn Fn(&CapturedPacket<'_>) -> bool + 'p;

/// Reads the packet's headers into the row, and puts into words what `need` asks for.
#[inline]
pub fn complete<'r>(mut row: CapturedPacket<'r>, need: u64, info: &'r mut Vec<u8>) -> CapturedPacket<'r> {
    read_frame(&mut row);
    if need & capture_need::MACS != 0 {
        if let Some([dst, src]) = row.link.addresses {
            row.macs = [mac_text(src), mac_text(dst)];
        }
    }
    if need & capture_need::INFO != 0 {
        info.clear();
        put_info(&row, info);
        row.info = info;
    }
    row
}
