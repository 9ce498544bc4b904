//! The dump state machine: sends one request and reads a table.
//!
//! # How a dump works
//! ```text
//!   we                                        the kernel
//!   ── request, NLM_F_DUMP ────────────────►  remembers its position in the table
//!   ── recv ───────────────────────────────►  continues, fills one buffer (at most 32 KiB)
//!   ◄─────────────── message, message, … ───
//!   ── recv ───────────────────────────────►  continues from its position
//!   ◄─────────────── message, NLMSG_DONE ───  the table is complete
//! ```
//! A dump is pulled: the kernel continues only when we call recv, so nothing can pile up and be lost. But between two
//! calls it holds no lock, and the table may change. The kernel finds its position again by counting entries, so
//! insertions and removals before that position shift it: rows are then repeated or missing. That is why
//! [`AnswerMessage`] contains the number of the buffer in which a message arrived, and why readers should not delay
//! between two buffers.
//!
//! # Errors and their results
//! * **The kernel refuses.** It sends NLMSG_ERROR instead of the first message, or NLMSG_DONE with a
//!   negative number if it fails later. Both may contain a sentence and the attribute
//!   of our request that it is about: [`DumpError::Refused`].
//! * **The table changes.** Some families notice this and set NLM_F_DUMP_INTR on the messages that
//!   follow. The rows before have been handed out already, so we can only report it: [`DumpEnd::interrupted`].
//!   (inet_diag never sets it, not even when it misses rows. Its absence proves nothing.)
//! * **A message belongs to another request** because it has a different sequence number. It is skipped and
//!   counted: [`DumpEnd::unexpected`].
//! * **A length is invalid.** Nothing after it can be trusted: [`DumpError::Malformed`].
//! * **The bytes end before the dump does.** This cannot happen live; a recording that was truncated, or
//!   was made by a run that stopped early, ends like this: [`DumpError::CutShort`].
//! * **The kernel dropped something**: NLMSG_OVERRUN or ENOBUFS. This should not happen in a dump, which is
//!   pulled, but a report of it is trusted: [`DumpError::Overrun`].
//!
//! Live and replayed dumps run the same code. They differ only in the source of the blocks, which [`Host::stream`]
//! selects.
use std::ops::ControlFlow;

use sys::{Blocks, Errno, Host, NetNs, SysError, netns};

use crate::blocks::SocketBlocks;
use crate::error::DumpError;
use crate::extack::Explanation;
use crate::message::{
    HEADER_BYTES, Message, MessageError, Messages, NLM_F_DUMP_INTR, NLMSG_DONE, NLMSG_ERROR, NLMSG_NOOP, NLMSG_OVERRUN,
};
use crate::prefix;
use crate::request::{Request, SEQ};

mod fuzz;
pub use fuzz::fuzz_dump;

/// The request to send, and its names in errors and recordings.
#[derive(Debug, Clone, Copy)]
pub struct Query<'r> {
    /// Name of the table in errors: `tcp sockets`.
    pub what: &'static str,
    /// Netlink protocol: NETLINK_SOCK_DIAG = 4.
    pub protocol: i32,
    /// The request.
    pub request: &'r Request,
    /// Name of the stream on the tape. Two requests with different meanings need different keys; the key includes the
    /// namespace.
    pub key: &'r str,
    /// Stored in the recording, e.g. that the kernel filtered.
    pub note: &'r str,
    /// The namespace to query; `None` is the calling thread's. Ignored in a replay.
    pub netns: Option<&'r NetNs>,
}

/// One message of the answer; borrows the receive buffer.
#[derive(Debug, Clone, Copy)]
pub struct AnswerMessage<'b> {
    /// Message type, as the family defines it.
    pub kind: u16,
    /// `NLM_F_…`.
    pub flags: u16,
    /// The family's struct and attributes.
    pub payload: &'b [u8],
    /// Number of the receive buffer in which it arrived, from 0. When it increases, the kernel has resumed its walk; a
    /// row can be repeated only across such a boundary.
    pub block: u64,
}

/// The end of an answer that was read completely, or that the caller stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DumpEnd {
    /// Number of messages handed to the caller.
    pub messages: u64,
    /// Number of bytes received.
    pub bytes: u64,
    /// Number of receive buffers.
    pub blocks: u64,
    /// True if the kernel reported that the table changed during the dump (NLM_F_DUMP_INTR): rows may be missing or
    /// repeated.
    pub interrupted: bool,
    /// Number of skipped messages that were not part of the answer.
    pub unexpected: u64,
    /// True if the caller stopped early and the rest was not read.
    pub stopped: bool,
}

/// Requests a table and calls `each` for every message, in the kernel's order.
///
/// Costs four system calls plus one per 32 KiB, and nothing per message. `ControlFlow::Break` ends it early, which is
/// not an error. An interrupted dump is reported in the result, not repeated: the rows have been handed out, and only
/// the caller knows what a repetition means.
pub fn dump(
    host: &Host,
    ask: &Query<'_>,
    each: impl FnMut(&AnswerMessage<'_>) -> ControlFlow<()>,
) -> Result<DumpEnd, DumpError> {
    read(host, ask, |request| open(ask, request), each)
}

// `live` sends the request and returns the answer's blocks.
#[allow(clippy::needless_lifetimes, reason = "elided, the blocks would be tied to the request")]
pub(crate) fn read<'a>(
    host: &'a Host,
    ask: &Query<'_>,
    live: impl FnOnce(&[u8]) -> Result<Box<dyn Blocks + 'a>, SysError>,
    each: impl FnMut(&AnswerMessage<'_>) -> ControlFlow<()>,
) -> Result<DumpEnd, DumpError> {
    let request = ask.request.bytes().map_err(|(attr, bytes)| DumpError::TooLong { what: ask.what, attr, bytes })?;
    // Live, this opens a socket and sends the request; recording does the same and copies the answer to the tape; a
    // replay does neither. A refused socket (missing protocol, seccomp) fails here.
    let mut blocks = host.stream(ask.key, ask.note, || live(request)).map_err(DumpError::Io)?;
    // Our sequence numbers may change between versions; a recording contains the numbers of its version.
    let seq = if host.is_replay() { None } else { Some(SEQ) };
    let mut reading = DumpReader { what: ask.what, request, seq, end: DumpEnd::default(), each };
    // Dropping `blocks` closes the socket, also after an error or an early stop. This is how the kernel learns to
    // discard a dump that was not read to its end.
    reading.run(&mut *blocks)
}

/// Requests one object, with a request built by [`Request::for_one`]: `each` gets its messages, and the acknowledgement
/// ends the answer.
pub fn exchange(
    host: &Host,
    ask: &Query<'_>,
    each: impl FnMut(&AnswerMessage<'_>) -> ControlFlow<()>,
) -> Result<DumpEnd, DumpError> {
    // Uses the same state machine. Requests other than dumps end with an acknowledgement instead of NLMSG_DONE; see
    // `special`.
    dump(host, ask, each)
}

// A socket belongs for its whole life to the namespace in which it was opened, so we are inside for only three system
// calls and read from outside.
fn open<'a>(ask: &Query<'_>, request: &[u8]) -> Result<Box<dyn Blocks + 'a>, SysError> {
    Ok(Box::new(netns::run_within(ask.netns, || SocketBlocks::open(ask.protocol, request))??))
}

/// Maximum number of consecutive receive buffers without a message of the answer; one more ends the dump with EIO. The
/// kernel sends such buffers only for acknowledgements, so a longer series would never end.
///
/// Bound: receive buffers in a row without a message of the answer. Beyond: the dump ends with EIO. By: a broken
/// kernel.
const EMPTY_BLOCKS_MAX: u32 = 1024;

/// Number of receive buffers of 32 KiB with rows that are still read after the user requested the end: a million rows,
/// which a healthy kernel delivers in a second. Callers that show rows stop much earlier; this ends those that only
/// collect.
///
/// Bound: receive buffers that are still read after an interruption. Beyond: the dump ends. By: a broken kernel.
const BLOCKS_AFTER_INTERRUPT: u32 = 4096;

/// Ends an endless answer.
#[derive(Debug, Default)]
struct EndlessAnswer {
    messages: u64,
    empty: u32,
    after_interrupt: u32,
}

impl EndlessAnswer {
    /// Called after each receive buffer: EIO if too many contained no rows, EINTR if the user requested the end.
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
    /// The sequence number of our answers; `None` until the first message of a replay shows it.
    seq: Option<u32>,
    /// Updated while reading; it is also the result of a complete dump.
    end: DumpEnd,
    each: F,
}

/// The effect of one message on the dump. Errors are returned with `?`, so two cases remain.
enum Step {
    More,
    End,
}

impl<F: FnMut(&AnswerMessage<'_>) -> ControlFlow<()>> DumpReader<'_, F> {
    // The outer loop: one iteration per receive buffer. The buffer is reused, so a block is borrowed until the next
    // iteration, and so is everything that `each` receives.
    fn run(&mut self, blocks: &mut dyn Blocks) -> Result<DumpEnd, DumpError> {
        let mut endless = EndlessAnswer::default();
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

    // The inner, hot loop: 330 iterations per buffer. The common case (a part of the answer) costs three comparisons
    // and the call; the rest is handled in `special`.
    fn block(&mut self, block: &[u8]) -> Result<Step, DumpError> {
        for message in Messages::new(block) {
            let message = message.map_err(|error| self.malformed(&error))?;
            // Check first whether the message is ours: a foreign NLMSG_DONE must not end our dump.
            if *self.seq.get_or_insert(message.seq) != message.seq {
                self.end.unexpected += 1;
                continue;
            }
            // Any message can have this flag, including NLMSG_DONE: it is set from the point where the change was
            // noticed.
            self.end.interrupted |= message.flags & NLM_F_DUMP_INTR != 0;
            // Types below 16 belong to netlink itself; the family's types begin above them.
            if message.kind <= NLMSG_OVERRUN {
                match self.handle_control_message(&message)? {
                    Step::More => continue,
                    Step::End => return Ok(Step::End),
                }
            }
            self.end.messages += 1;
            let Message { kind, flags, payload, .. } = message;
            let part = AnswerMessage { kind, flags, payload, block: self.end.blocks };
            if (self.each)(&part).is_break() {
                // The rest is not inspected, so nothing can be said about it, not even whether it is complete.
                self.end.stopped = true;
                return Ok(Step::End);
            }
        }
        // The buffer is used up without an end: more will follow.
        Ok(Step::More)
    }

    // Netlink's own messages.
    fn handle_control_message(&mut self, message: &Message<'_>) -> Result<Step, DumpError> {
        // Both NLMSG_DONE and NLMSG_ERROR begin with a number: 0, or a negated errno.
        let code = prefix::i32_at(message.payload, 0);
        match message.kind {
            NLMSG_NOOP => Ok(Step::More),
            // The end. A family that failed midway reports it here. Some old ones omit the number or send a
            // meaningless positive one: only a negative one is an error.
            NLMSG_DONE => match code {
                Some(code) if code < 0 => Err(self.refusal_error(code, message)),
                _ => Ok(Step::End),
            },
            NLMSG_ERROR => match code {
                // An acknowledgement ends a request that is not a dump. A dump continues after it.
                Some(0) => Ok(if self.is_dump() { Step::More } else { Step::End }),
                Some(code) => Err(self.refusal_error(code, message)),
                None => Err(self
                    .malformed(&MessageError { claims: HEADER_BYTES + 4, has: HEADER_BYTES + message.payload.len() })),
            },
            NLMSG_OVERRUN => Err(self.overrun_error()),
            // 0 is not a valid type.
            _ => {
                self.end.unexpected += 1;
                Ok(Step::More)
            }
        }
    }

    fn is_dump(&self) -> bool {
        Request::requests_dump(self.request)
    }

    // There are no more blocks, because of an error or (`None`) because the stream ended. In both cases the dump is
    // incomplete, otherwise we would have stopped at its NLMSG_DONE.
    fn broke_off(&self, error: Option<SysError>) -> DumpError {
        let (what, messages) = (self.what, self.end.messages);
        match error {
            None => DumpError::CutShort { what, messages, errno: Errno::RECORDING_BROKEN },
            Some(error) => match error.errno {
                Errno::RECORDING_BROKEN | Errno::NOT_RECORDED => {
                    DumpError::CutShort { what, messages, errno: error.errno }
                }
                Errno::NOBUFS => self.overrun_error(),
                _ => DumpError::Io(error),
            },
        }
    }

    fn overrun_error(&self) -> DumpError {
        DumpError::Overrun { what: self.what, messages: self.end.messages }
    }

    fn malformed(&self, error: &MessageError) -> DumpError {
        DumpError::Malformed { what: self.what, attr: None, claims: error.claims, has: error.has }
    }

    fn refusal_error(&self, code: i32, message: &Message<'_>) -> DumpError {
        // Negative by definition. A positive one would be a kernel bug, but its meaning is clear; and i32::MIN has no
        // positive counterpart, hence the saturation.
        let errno = Errno(code.saturating_abs());
        let Explanation { says, at_attr } = Explanation::read(message, self.request);
        DumpError::Refused { what: self.what, errno, kernel_says: says, at_attr }
    }
}

#[cfg(test)]
mod tests;
