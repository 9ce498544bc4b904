//! Checks whether packets can be captured here, for `netwren support`.
use sys::caps::{self, Cap};
use sys::{Missing, Trial};

/// Whether packets can be captured and how, or why not. Opens nothing.
pub fn try_capturing() -> Trial {
    match caps::effective().is_ok_and(|held| held.contains(Cap::NetRaw)) {
        true => Trial::new_working("via AF_PACKET, with one ring per interface"),
        false => Trial::new_missing(Missing::Right, "packet sockets need CAP_NET_RAW"),
    }
}
