//! The end of the process that reads packets.

use super::super::Capture;
use super::message::{First, OwnerMessage, SharedWords, ToldEvent, first};
use super::options::OwnerOptions;
use super::process;
use ::owners::{PacketSockets, SocketNews};
use capture::WakeUp;
use engine::Plan;
use record::Accounting;
use record::rows::{CapturedPackets, capture_need};
use runtime::helper_process;
use std::cell::Cell;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
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
pub(in crate::commands::capture) struct Owners {
    pub(in crate::commands::capture) feed: OwnerFeed,
    pub(in crate::commands::capture) sockets: PacketSockets,
}

impl Owners {
    /// Starts to look up owners if the plan, or the written file, needs them.
    pub(in crate::commands::capture) fn of(
        capture: &Capture,
        plan: &Plan<CapturedPackets>,
    ) -> Result<Option<Owners>, String> {
        let need = plan.demand().need;
        if need & capture_need::OWNERS == 0 || capture.request.explain {
            return Ok(None);
        }
        OwnerFeed::start(OwnerOptions { all_netns: capture.request.all_netns, need }).map(Some)
    }
}

/// Ends a wait for packets when the helper process sends something.
pub(in crate::commands::capture) struct Wake {
    stream: Rc<UnixStream>,
    has_come: Rc<Cell<bool>>,
}

impl Wake {
    /// The wake-up in the form that the packet stream needs.
    pub(in crate::commands::capture) fn of_capture(&self) -> WakeUp<'_> {
        WakeUp { file: self.stream.as_fd(), has_come: &self.has_come }
    }
}

/// Sockets and connections reported by the helper process.
pub(in crate::commands::capture) struct OwnerFeed {
    stream: Rc<UnixStream>,
    has_come: Rc<Cell<bool>>,
    taken_ns: u64,
    portion: Vec<u8>,
    /// Received bytes of an incomplete message.
    bytes: Vec<u8>,
    shared: SharedWords,
    is_asked: bool,
    is_alive: bool,
    /// Errors of the newest reading.
    troubles: Accounting,
}

impl OwnerFeed {
    /// Starts the helper process in the calling thread's network namespace, and waits for its first reading.
    fn start(options: OwnerOptions) -> Result<Owners, String> {
        let failed = |error: io::Error| format!("cannot look up owners of packets: {error}");
        let stream = helper_process::start(process::NAME, options.words()).map_err(failed)?;
        let mut feed = OwnerFeed {
            stream: Rc::new(stream),
            has_come: Rc::default(),
            taken_ns: 0,
            portion: vec![0; PORTION],
            bytes: Vec::new(),
            shared: SharedWords::default(),
            is_asked: true,
            is_alive: true,
            troubles: Accounting::default(),
        };
        let mut sockets = PacketSockets::default();
        feed.stream.set_read_timeout(Some(FIRST)).map_err(failed)?;
        while sockets.taken_ns() == 0 && feed.is_alive {
            if !feed.read_portion(&mut sockets) {
                return Err(format!("cannot look up owners of packets: no answer for {} s", FIRST.as_secs()));
            }
        }
        feed.stream.set_nonblocking(true).map_err(failed)?;
        Ok(Owners { feed, sockets })
    }

    /// The socket that a wait for packets also waits for.
    pub(in crate::commands::capture) fn wake(&self) -> Wake {
        Wake { stream: Rc::clone(&self.stream), has_come: Rc::clone(&self.has_come) }
    }

    /// Processes a part of the received data. False if there was none.
    fn read_portion(&mut self, into: &mut PacketSockets) -> bool {
        let read = (&*self.stream).read(&mut self.portion);
        let taken = self.portion.get(..*read.as_ref().unwrap_or(&0)).unwrap_or_default();
        self.bytes.extend_from_slice(taken);
        match read {
            Ok(0) => self.is_alive = false,
            Ok(_) => self.decode(into),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
            Err(_) => self.is_alive = false,
        }
        true
    }

    fn decode(&mut self, into: &mut PacketSockets) {
        let mut at = 0;
        loop {
            let bytes = self.bytes.get(at..).unwrap_or_default();
            let (message, taken) = match first(bytes, &mut self.shared) {
                First::Whole(message, taken) => (message, taken),
                First::Part => break,
                First::Broken => {
                    self.is_alive = false;
                    break;
                }
            };
            at += taken;
            match message {
                OwnerMessage::Begin(taken_ns) => {
                    self.troubles = Accounting::default();
                    into.begin(taken_ns);
                }
                OwnerMessage::Address(netns_id, addr) => into.add_address(netns_id, addr),
                OwnerMessage::Socket(told) => into.add_socket(&told.ends(), told.known),
                OwnerMessage::End => {
                    self.is_asked = false;
                    into.end();
                }
                OwnerMessage::Event(what, at_ns, told) => match what {
                    ToldEvent::Opened => into.opened(&told.ends(), told.known, at_ns),
                    ToldEvent::Closed => into.closed(&told.ends(), told.known, at_ns),
                    ToldEvent::Sends => into.sends(&told.ends(), told.known, at_ns),
                },
                OwnerMessage::Trouble(count, text) => {
                    self.troubles.incomplete(count, String::from_utf8_lossy(text).into_owned());
                }
            }
        }
        self.bytes.drain(..at);
    }
}

impl SocketNews for OwnerFeed {
    fn take(&mut self, into: &mut PacketSockets, is_awaited: bool) {
        let now_ns = clock::monotonic_ns();
        let is_due = is_awaited || self.has_come.get() || now_ns.saturating_sub(self.taken_ns) > TURN_NS;
        if !is_due || !self.is_alive {
            return;
        }
        self.taken_ns = now_ns;
        let may_be_more = self.read_portion(into) && self.is_alive;
        self.has_come.set(may_be_more);
    }

    fn ask(&mut self) {
        if self.is_asked || !self.is_alive {
            return;
        }
        // There is always room for a byte, because at most one is on its way.
        match (&*self.stream).write(&[1]) {
            Ok(_) => self.is_asked = true,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
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
        let _ = sys::wait_any(&[self.stream.as_fd()], 10, &mut Vec::new());
    }

    fn close(&mut self) -> Accounting {
        let mut stats = std::mem::take(&mut self.troubles);
        if !self.is_alive {
            stats.incomplete(1, ENDED);
        }
        stats
    }
}
