//! Captures packets of interfaces via AF_PACKET: a ring of memory that the kernel fills and the caller reads.
//!
//! The socket is opened for no protocol. It then gets its version, headroom, ring and filter, and is bound last, so
//! that no packet arrives before the filter is attached (packet(7), Documentation/networking/packet_mmap.rst). Start
//! reading at [`PacketRing::open`].
mod blocks;
mod frame;
mod mapping;
mod program;
mod slots;
mod socket;
mod stamps;
mod whole;

pub use frame::{Frame, FrameStatus, PacketType, SimilarFrames};
pub use program::{Instruction, PROGRAM_MAX, accept_all, accepts_all_whole, one_direction, without_own_echo};
pub(crate) use socket::attach_filter;
pub use socket::{PacketRing, RingKind, RingRequest, RingStatistics};
pub use stamps::{StampClock, stamp_clocks};

/// Makes the calling thread's sleeps late by at most 1 µs instead of 50 µs: `PR_SET_TIMERSLACK`.
pub fn sleep_precisely() {
    const SLACK_NS: libc::c_ulong = 1000;
    // SAFETY: prctl takes integers here. If it fails, sleeps stay as they are.
    let _ = crate::syscall::call("prctl", || unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, SLACK_NS) }.into());
}

#[cfg(test)]
mod tests;
