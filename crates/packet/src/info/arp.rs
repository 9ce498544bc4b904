//! Describes ARP packets.

use super::put_number;
use crate::mac::mac_text;
use record::rows::ArpHeader;
use record::text::put_v4;

/// Writes `who-has 10.0.0.2 tell 10.0.0.1`, `10.0.0.2 is-at 02:00:00:00:00:02`
pub(super) fn put(arp: &ArpHeader, out: &mut Vec<u8>) {
    match arp.operation {
        1 => {
            out.extend_from_slice(b"who-has ");
            put_v4(out, arp.target.1);
            out.extend_from_slice(b" tell ");
            put_v4(out, arp.sender.1);
        }
        2 => {
            put_v4(out, arp.sender.1);
            out.extend_from_slice(b" is-at ");
            out.extend_from_slice(&mac_text(arp.sender.0));
        }
        other => put_number(out, b"operation", other.into()),
    }
}
