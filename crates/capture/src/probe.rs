//! Whether packets could be captured here: for `netwren support`.
use sys::caps::{self, Cap};

/// True if packets could be captured, and how, or why not. Opens nothing.
pub fn probe() -> (bool, String) {
    match caps::effective().is_ok_and(|held| held.has(Cap::NetRaw)) {
        true => (true, "by AF_PACKET, each packet in a ring of its interface".to_owned()),
        false => (false, "packet sockets need CAP_NET_RAW".to_owned()),
    }
}
