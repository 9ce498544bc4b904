//! A ring that this thread or a separate thread reads.

use std::os::fd::{AsFd, BorrowedFd};

use sys::packet_ring::{AlikeFrames, Frame, PacketRing, RingStatistics, StampClock};
use sys::{Errno, SysError};

use super::reader_thread::ReaderThread;
use super::successor::Successor;
use crate::pace::Pacing;

/// A ring and its reader.
#[derive(Debug)]
pub(super) enum ReadRing {
    Here(PacketRing),
    Thread(Box<ReaderThread>),
}

impl ReadRing {
    /// Starts a thread that reads the ring from now on; a ring with a thread keeps it.
    pub(super) fn on_thread(self, pace: Pacing, late_ns: u64) -> Result<ReadRing, std::io::Error> {
        match self {
            ReadRing::Here(ring) => {
                ReaderThread::start(ring, pace, late_ns).map(|thread| ReadRing::Thread(Box::new(thread)))
            }
            thread @ ReadRing::Thread(_) => Ok(thread),
        }
    }

    #[inline]
    pub(super) fn next_ns(&mut self) -> Option<u64> {
        match self {
            ReadRing::Here(ring) => ring.next_ns(),
            ReadRing::Thread(thread) => thread.next_ns(),
        }
    }

    #[inline]
    pub(super) fn take_many(&mut self, most: u64, take: impl FnMut(&Frame<'_>) -> bool) -> u64 {
        match self {
            ReadRing::Here(ring) => ring.take_many(most, take),
            ReadRing::Thread(thread) => thread.take_many(most, take),
        }
    }

    /// Like [`PacketRing::take_alike`]; `None` for a thread, whose packets are not in the ring's memory.
    #[inline]
    pub(super) fn take_alike(&mut self, most: u64, each: impl FnMut(usize, &Frame<'_>)) -> Option<AlikeFrames<'_>> {
        match self {
            ReadRing::Here(ring) => ring.take_alike(most, each),
            ReadRing::Thread(_) => None,
        }
    }

    /// The time up to which no more packets can arrive, while no packet waits. There is no limit for a ring read by
    /// this thread, whose packets are visible as soon as they arrive.
    pub(super) fn quiet_ns(&mut self) -> u64 {
        match self {
            ReadRing::Here(_) => u64::MAX,
            ReadRing::Thread(thread) => thread.quiet_ns(),
        }
    }

    pub(super) fn give_back(&mut self) {
        if let ReadRing::Here(ring) = self {
            ring.give_back();
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            ReadRing::Here(ring) => ring.bytes(),
            ReadRing::Thread(thread) => thread.bytes(),
        }
    }

    pub(super) fn reject_all(&self) -> Result<(), SysError> {
        match self {
            ReadRing::Here(ring) => ring.reject_all(),
            ReadRing::Thread(thread) => {
                thread.end();
                Ok(())
            }
        }
    }

    pub(super) fn statistics(&mut self) -> Option<RingStatistics> {
        match self {
            ReadRing::Here(ring) => ring.statistics().ok(),
            ReadRing::Thread(thread) => Some(thread.statistics()),
        }
    }

    /// True unless a thread is still reading: its counters are old, and it holds packets.
    pub(super) fn is_settled(&mut self) -> bool {
        match self {
            ReadRing::Here(_) => true,
            ReadRing::Thread(thread) => thread.is_over(),
        }
    }

    /// Call it after this ring ended a wait.
    pub(super) fn woken(&mut self) {
        match self {
            ReadRing::Here(ring) => {
                if ring.next_ns().is_none() {
                    // Its interface went down or was removed, and the pending error would end every wait; notifications
                    // report the interface.
                    ring.take_error();
                    ring.keep_early();
                }
            }
            ReadRing::Thread(thread) => thread.woken(),
        }
    }

    /// Takes the pending error of the socket; a thread does that itself.
    pub(super) fn take_error(&self) -> Option<Errno> {
        match self {
            ReadRing::Here(ring) => ring.take_error(),
            ReadRing::Thread(_) => None,
        }
    }

    /// Binds the ring to another interface; the error is a sentence.
    ///
    /// A ring that shares packets cannot be bound again: `successor` replaces it, once.
    pub(super) fn bind(
        &mut self,
        ifindex: u32,
        promiscuous: bool,
        successor: &mut Option<Successor>,
    ) -> Result<(), String> {
        match self {
            ReadRing::Here(ring) => {
                ring.bind(ifindex).map_err(|error| error.to_string())?;
                if promiscuous {
                    let _ = ring.see_all(ifindex);
                }
                Ok(())
            }
            ReadRing::Thread(thread) => thread.bind(ifindex, promiscuous, successor),
        }
    }

    pub(super) fn stamp_by(&self, clock: StampClock, iface: Option<&[u8]>) -> Result<(), SysError> {
        match self {
            ReadRing::Here(ring) => ring.stamp_by(clock, iface),
            ReadRing::Thread(_) => Ok(()),
        }
    }
}

impl AsFd for ReadRing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            ReadRing::Here(ring) => ring.as_fd(),
            ReadRing::Thread(thread) => thread.as_fd(),
        }
    }
}
