//! Checks whether packets can be captured here, for `netwren support`.
use sys::caps::{self, Cap};
use sys::{Missing, Tried};

/// Whether packets can be captured and how, or why not. Opens nothing.
pub fn probe() -> Tried {
    match caps::effective().is_ok_and(|held| held.has(Cap::NetRaw)) {
        true => Tried::works("via AF_PACKET, with one ring per interface"),
        false => Tried::fails(Missing::Right, "packet sockets need CAP_NET_RAW"),
    }
}
