//! The end of the process that reads packets.

use super::message::{MESSAGE_MAX, MessageDecoder};
use super::process::{NAME, OwnerOptions};
use ::owners::{PacketSockets, SocketNews};
use capture::WakeUp;
use record::Accounting;
use record::rows::capture_need;
use runtime::helper_process::{EMPTY_MESSAGE, Helper, Inbox};
use std::cell::Cell;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::rc::Rc;
use std::time::Duration;
use sys::clock;

/// Bytes to process at a time: some 2,000 sockets, or half a millisecond.
const PORTION: usize = 256 << 10;
/// If nothing wakes the reader, messages are processed at this interval.
const TURN_NS: u64 = 20_000_000;
/// Time limit for the first reading.
const FIRST: Duration = Duration::from_secs(60);

/// The message if the helper process has ended early.
const ENDED: &str = "owners are missing: the lookup process has ended";

/// The process that looks up owners, and the sockets known before the first packet.
pub struct OwnerHelper {
    /// Receives what the process sends.
    pub feed: OwnerFeed,
    /// The first reading.
    pub sockets: PacketSockets,
}

impl OwnerHelper {
    /// Starts the helper process in the calling thread's network namespace, and waits for its first reading. `None` if
    /// `options` need no owners.
    pub fn start(options: OwnerOptions) -> Result<Option<OwnerHelper>, String> {
        if options.need & capture_need::OWNERS == 0 {
            return Ok(None);
        }
        let failed = |error: io::Error| format!("cannot look up owners of packets: {error}");
        let helper = Helper::start(NAME, options.words()).map_err(failed)?;
        let mut feed = OwnerFeed {
            helper: Rc::new(helper),
            is_ready: Rc::default(),
            taken_ns: 0,
            inbox: Inbox::new(PORTION, MESSAGE_MAX),
            decoder: MessageDecoder::new(),
            is_alive: true,
        };
        let mut sockets = PacketSockets::default();
        feed.helper.limit_time(FIRST).map_err(failed)?;
        while sockets.taken_ns() == 0 && feed.is_alive {
            if !feed.read_portion(&mut sockets) {
                return Err(format!("cannot look up owners of packets: no answer for {} s", FIRST.as_secs()));
            }
        }
        feed.helper.forbid_waiting().map_err(failed)?;
        Ok(Some(OwnerHelper { feed, sockets }))
    }
}

/// Ends a wait for packets when the helper process sends something.
pub struct Wake {
    helper: Rc<Helper>,
    is_ready: Rc<Cell<bool>>,
}

impl Wake {
    /// The wake-up in the form that the packet stream needs.
    pub fn wake_up(&self) -> WakeUp<'_> {
        WakeUp { file: self.helper.as_fd(), is_ready: &self.is_ready }
    }
}

/// Sockets and connections reported by the helper process.
pub struct OwnerFeed {
    helper: Rc<Helper>,
    is_ready: Rc<Cell<bool>>,
    taken_ns: u64,
    inbox: Inbox,
    decoder: MessageDecoder,
    is_alive: bool,
}

impl OwnerFeed {
    /// The socket that a wait for packets also waits for.
    pub fn wake(&self) -> Wake {
        Wake { helper: Rc::clone(&self.helper), is_ready: Rc::clone(&self.is_ready) }
    }

    /// Processes a part of the received data. False if there was none.
    fn read_portion(&mut self, into: &mut PacketSockets) -> bool {
        match self.inbox.fill(&self.helper) {
            Ok(0) => self.is_alive = false,
            Ok(_) => self.is_alive = self.decode(into).is_some(),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            Err(_) => self.is_alive = false,
        }
        true
    }

    /// Adds the content of all complete messages. `None` for bytes that netwren does not write.
    fn decode(&mut self, into: &mut PacketSockets) -> Option<()> {
        while let Some(message) = self.inbox.take().ok()? {
            self.decoder.add(message, into)?;
        }
        Some(())
    }
}

impl SocketNews for OwnerFeed {
    fn take(&mut self, into: &mut PacketSockets, is_awaited: bool) {
        let now_ns = clock::monotonic_ns();
        let is_due = is_awaited || self.is_ready.get() || now_ns.saturating_sub(self.taken_ns) > TURN_NS;
        if !is_due || !self.is_alive {
            return;
        }
        self.taken_ns = now_ns;
        let may_be_more = self.read_portion(into) && self.is_alive;
        self.is_ready.set(may_be_more);
    }

    fn ask(&mut self) {
        if self.decoder.is_asked || !self.is_alive {
            return;
        }
        // There is always room for a request, because at most one is on its way.
        match self.helper.send(&EMPTY_MESSAGE) {
            Ok(()) => self.decoder.is_asked = true,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => self.is_alive = false,
        }
    }

    fn is_alive(&self) -> bool {
        self.is_alive
    }

    fn now_ns(&self) -> u64 {
        clock::monotonic_ns()
    }

    fn wait(&mut self) {
        let _ = sys::wait_any(&[self.helper.as_fd()], 10, &mut Vec::new());
    }

    fn close(&mut self) -> Accounting {
        let mut stats = std::mem::take(&mut self.decoder.troubles);
        if !self.is_alive {
            stats.incomplete(1, ENDED);
        }
        stats
    }
}
