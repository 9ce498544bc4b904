//! The dump state machine: one request out, a table in.
//!
//! # How a dump goes
//! ```text
//!   we                                        the kernel
//!   ── request, NLM_F_DUMP ────────────────►  remembers where it is in its table
//!   ── recv ───────────────────────────────►  walks on, fills one buffer (at most 32 KiB)
//!   ◄─────────────── message, message, … ───
//!   ── recv ───────────────────────────────►  walks on from where it was
//!   ◄─────────────── message, NLMSG_DONE ───  the table is through
//! ```
//! A dump is pulled: the kernel walks only when we call recv, so nothing can pile up and be lost.
//! But between two calls it holds no lock, and the table may change. It finds its place again by
//! counting, so what was inserted or removed before that place shifts it: rows come twice, or not
//! at all. That is why [`Answer`] tells in which buffer a message came, and why reading should not
//! dawdle between two buffers.
//!
//! # What can go wrong, and where it ends up
//! * **The kernel refuses.** NLMSG_ERROR instead of the first message; or NLMSG_DONE with a
//!   negative number in it, when it finds out on the way. Both may carry a sentence and the place
//!   in our request that it is about: [`DumpError::Refused`].
//! * **The table changes.** Some families notice and set NLM_F_DUMP_INTR on the messages that
//!   follow. The rows before are already out, so all we can do is tell: [`DumpEnd::interrupted`].
//!   (inet_diag never sets it, not even when it misses rows. Its absence proves nothing.)
//! * **A message belongs to somebody else**: another sequence number. Skipped and counted:
//!   [`DumpEnd::unexpected`].
//! * **A length does not fit.** Nothing behind it can be trusted: [`DumpError::Malformed`].
//! * **The bytes end before the dump does.** Live that cannot be; a recording that was cut, or
//!   that was made by a run which stopped early, ends like this: [`DumpError::CutShort`].
//! * **The kernel dropped something**: NLMSG_OVERRUN or ENOBUFS. Not in a dump, which is pulled;
//!   but if it is said, it is believed: [`DumpError::Overrun`].
//!
//! Live and replayed dumps run through the same code. Only where the blocks come from differs,
//! and that is [`Host::stream`]'s business.
use std::ops::ControlFlow;

use sys::{Blocks, Errno, Host, NetNs, SysError, netns};

use crate::blocks::SocketBlocks;
use crate::error::DumpError;
use crate::extack::Explanation;
use crate::message::{
    HEAD, Message, MessageError, Messages, NLM_F_DUMP_INTR, NLMSG_DONE, NLMSG_ERROR, NLMSG_NOOP, NLMSG_OVERRUN,
};
use crate::prefix;
use crate::request::{Request, SEQ};

mod fuzz;
pub use fuzz::fuzz_dump;

/// What to ask, and how to call it.
#[derive(Debug, Clone, Copy)]
pub struct Query<'r> {
    /// For errors: `tcp sockets`.
    pub what: &'static str,
    /// Netlink protocol: NETLINK_SOCK_DIAG = 4.
    pub protocol: i32,
    /// The request.
    pub request: &'r Request,
    /// Name of the stream on the tape. Two requests that differ in what they mean need two keys;
    /// the namespace belongs into it.
    pub key: &'r str,
    /// Kept with the recording, e.g. that the kernel filtered.
    pub note: &'r str,
    /// The namespace to ask in; `None` is the calling thread's. Not looked at in a replay.
    pub netns: Option<&'r NetNs>,
}

/// One message of the answer; borrows the receive buffer.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'b> {
    /// Message type, in the terms of the family.
    pub kind: u16,
    /// `NLM_F_…`.
    pub flags: u16,
    /// The family's struct and attributes.
    pub payload: &'b [u8],
    /// Number of the receive buffer it came in, from 0: where it grows, the kernel resumed its
    /// walk, and only there a row can come twice.
    pub block: u64,
}

/// How an answer ended that came whole (or was stopped by the caller).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DumpEnd {
    /// Messages handed to the caller.
    pub messages: u64,
    /// Bytes received.
    pub bytes: u64,
    /// Receive buffers.
    pub blocks: u64,
    /// The kernel said that the table changed under it (NLM_F_DUMP_INTR): rows may be missing or doubled.
    pub interrupted: bool,
    /// Messages that were no part of the answer and were skipped.
    pub unexpected: u64,
    /// The caller wanted no more; the rest was not read.
    pub stopped: bool,
}

/// Asks for a table and calls `each` for every message, in the kernel's order.
///
/// Costs four system calls, one per 32 KiB, and nothing per message. `ControlFlow::Break` ends
/// it early, which is no error. An interrupted dump is told in the result, not repeated: the rows
/// are out, and only the caller knows what repeating means.
pub fn dump(
    host: &Host,
    ask: &Query<'_>,
    each: impl FnMut(&Answer<'_>) -> ControlFlow<()>,
) -> Result<DumpEnd, DumpError> {
    read(host, ask, |request| open(ask, request), each)
}

// `live` sends the request and gives the answer's blocks.
#[allow(clippy::needless_lifetimes, reason = "elided, the blocks would be tied to the request")]
pub(crate) fn read<'a>(
    host: &'a Host,
    ask: &Query<'_>,
    live: impl FnOnce(&[u8]) -> Result<Box<dyn Blocks + 'a>, SysError>,
    each: impl FnMut(&Answer<'_>) -> ControlFlow<()>,
) -> Result<DumpEnd, DumpError> {
    let request = ask.request.bytes().map_err(|(attr, bytes)| DumpError::TooLong { what: ask.what, attr, bytes })?;
    // Live, this opens a socket and sends the request; recording, the same with a copy to the
    // tape; replaying, neither. A refused socket (no such protocol, seccomp) fails here.
    let mut blocks = host.stream(ask.key, ask.note, || live(request)).map_err(DumpError::Io)?;
    // Our numbers may change from version to version; a recording keeps those of its own.
    let seq = if host.is_replay() { None } else { Some(SEQ) };
    let mut reading = DumpReader { what: ask.what, request, seq, end: DumpEnd::default(), each };
    // The socket is closed when `blocks` goes, also after an error or an early stop. That is how
    // the kernel learns to forget a dump that was not read to its end.
    reading.run(&mut *blocks)
}

/// Asks for one thing, built with [`Request::one`]: `each` gets its messages, the acknowledgement is the end.
pub fn exchange(
    host: &Host,
    ask: &Query<'_>,
    each: impl FnMut(&Answer<'_>) -> ControlFlow<()>,
) -> Result<DumpEnd, DumpError> {
    // The same machine. What is no dump ends with an acknowledgement instead of NLMSG_DONE; see `special`.
    dump(host, ask, each)
}

// A socket belongs to the namespace it was opened in for as long as it lives, so we are inside
// for three system calls only and read from outside.
fn open<'a>(ask: &Query<'_>, request: &[u8]) -> Result<Box<dyn Blocks + 'a>, SysError> {
    Ok(Box::new(netns::within(ask.netns, || SocketBlocks::open(ask.protocol, request))??))
}

/// Receive buffers in a row without a message of the answer; one more ends the dump with EIO. The kernel sends none
/// such but for acknowledgements: what goes on like this has no end.
const EMPTY_BLOCKS_MAX: u32 = 1024;

/// Receive buffers of 32 KiB with rows that are still read after the user wanted the end: a million rows, which a
/// healthy kernel gives in a second. Callers that show rows stop much sooner; this ends those that only collect.
const BLOCKS_AFTER_INTERRUPT: u32 = 4096;

/// Ends an answer that has no end.
#[derive(Debug, Default)]
struct Endless {
    messages: u64,
    empty: u32,
    after_interrupt: u32,
}

impl Endless {
    /// After each receive buffer: EIO if too many brought nothing, EINTR if the user wanted the end.
    fn block(&mut self, messages: u64, interrupted: bool) -> Result<(), Errno> {
        self.empty = if messages == self.messages { self.empty + 1 } else { 0 };
        self.messages = messages;
        self.after_interrupt += u32::from(interrupted);
        if self.after_interrupt > BLOCKS_AFTER_INTERRUPT || (interrupted && self.empty > 0) {
            return Err(Errno::INTR);
        }
        if self.empty > EMPTY_BLOCKS_MAX { Err(Errno::IO) } else { Ok(()) }
    }
}

/// A dump in progress.
struct DumpReader<'r, F> {
    what: &'static str,
    request: &'r [u8],
    /// The number our answers carry; `None` until the first message of a replay shows it.
    seq: Option<u32>,
    /// Grows while reading; it is also what a whole dump returns.
    end: DumpEnd,
    each: F,
}

/// What one message does to the dump. Errors leave by `?`, so two things are left.
enum Step {
    More,
    End,
}

impl<F: FnMut(&Answer<'_>) -> ControlFlow<()>> DumpReader<'_, F> {
    // The outer loop: one turn per receive buffer. The buffer is one and the same, reused: a
    // block is borrowed until the next turn, and so is everything that `each` gets to see.
    fn run(&mut self, blocks: &mut dyn Blocks) -> Result<DumpEnd, DumpError> {
        let mut endless = Endless::default();
        loop {
            let block = match blocks.next() {
                Ok(Some(block)) => block,
                other => return Err(self.broke_off(other.err())),
            };
            self.end.bytes += block.len() as u64;
            let step = self.block(block);
            self.end.blocks += 1;
            if let Step::End = step? {
                return Ok(self.end);
            }
            let enough = endless.block(self.end.messages, sys::signal::is_requested());
            enough.map_err(|errno| DumpError::Io(SysError::new("recvmsg", self.what, errno)))?;
        }
    }

    // The inner loop, the hot one: 330 turns per buffer. What is common (a part of the answer)
    // costs three comparisons and the call; the rest is out of the way in `special`.
    fn block(&mut self, block: &[u8]) -> Result<Step, DumpError> {
        for message in Messages::new(block) {
            let message = message.map_err(|error| self.malformed(&error))?;
            // First of all whose it is: a foreign NLMSG_DONE must not end our dump.
            if *self.seq.get_or_insert(message.seq) != message.seq {
                self.end.unexpected += 1;
                continue;
            }
            // On any message, NLMSG_DONE included: it stands from where the change was noticed.
            self.end.interrupted |= message.flags & NLM_F_DUMP_INTR != 0;
            // Numbers below 16 are netlink's own, the family's begin above them.
            if message.kind <= NLMSG_OVERRUN {
                match self.special(&message)? {
                    Step::More => continue,
                    Step::End => return Ok(Step::End),
                }
            }
            self.end.messages += 1;
            let Message { kind, flags, payload, .. } = message;
            let part = Answer { kind, flags, payload, block: self.end.blocks };
            if (self.each)(&part).is_break() {
                // Whatever follows is not looked at, so nothing can be said about it, not even
                // that it is whole.
                self.end.stopped = true;
                return Ok(Step::End);
            }
        }
        // The buffer is used up and there was no end in it: more is coming.
        Ok(Step::More)
    }

    // Netlink's own messages.
    fn special(&mut self, message: &Message<'_>) -> Result<Step, DumpError> {
        // Both NLMSG_DONE and NLMSG_ERROR begin with a number: 0, or an errno made negative.
        let code = prefix::i32_at(message.payload, 0);
        match message.kind {
            NLMSG_NOOP => Ok(Step::More),
            // The end. A family that failed half-way says so here. Some old ones leave the number
            // out, or give a positive one that means nothing: only a negative one is an error.
            NLMSG_DONE => match code {
                Some(code) if code < 0 => Err(self.refused(code, message)),
                _ => Ok(Step::End),
            },
            NLMSG_ERROR => match code {
                // An acknowledgement ends what is no dump. A dump goes on after it.
                Some(0) => Ok(if self.is_dump() { Step::More } else { Step::End }),
                Some(code) => Err(self.refused(code, message)),
                None => Err(self.malformed(&MessageError { claims: HEAD + 4, has: HEAD + message.payload.len() })),
            },
            NLMSG_OVERRUN => Err(self.overrun()),
            // 0 is no type of anybody's.
            _ => {
                self.end.unexpected += 1;
                Ok(Step::More)
            }
        }
    }

    fn is_dump(&self) -> bool {
        Request::asks_for_dump(self.request)
    }

    // No further block, by an error or (`None`) by the stream's end: in any case the dump was not
    // through, or we would have stopped at its NLMSG_DONE.
    fn broke_off(&self, error: Option<SysError>) -> DumpError {
        let (what, messages) = (self.what, self.end.messages);
        match error {
            None => DumpError::CutShort { what, messages, errno: Errno::RECORDING_BROKEN },
            Some(error) => match error.errno {
                Errno::RECORDING_BROKEN | Errno::NOT_RECORDED => {
                    DumpError::CutShort { what, messages, errno: error.errno }
                }
                Errno::NOBUFS => self.overrun(),
                _ => DumpError::Io(error),
            },
        }
    }

    fn overrun(&self) -> DumpError {
        DumpError::Overrun { what: self.what, messages: self.end.messages }
    }

    fn malformed(&self, error: &MessageError) -> DumpError {
        DumpError::Malformed { what: self.what, attr: None, claims: error.claims, has: error.has }
    }

    fn refused(&self, code: i32, message: &Message<'_>) -> DumpError {
        // Negative by the book. A positive one would be the kernel's slip, but its meaning is
        // plain; and i32::MIN has no positive counterpart, hence the saturation.
        let errno = Errno(code.saturating_abs());
        let Explanation { says, at_attr } = Explanation::of(message, self.request);
        DumpError::Refused { what: self.what, errno, kernel_says: says, at_attr }
    }
}

#[cfg(test)]
mod tests;
