//! Completes the row of a packet from its bytes.
use packet::{mac_text, put_info, read_frame};
use record::rows::{CapturedPacket, capture_need};

/// True for a packet that was captured here, not read from a file.
pub fn is_of_interface(row: &CapturedPacket<'_>) -> bool {
    row.netns_id != 0
}

/// Decides whether a packet passes, before its headers are decoded.
pub type Passes<'p> = dyn Fn(&CapturedPacket<'_>) -> bool + 'p;

/// Decodes the packet's headers into the row, and writes the descriptions that `need` requests.
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
