//! The process that looks up sockets and their owners.

use super::events;
use super::outbox::{EventsOf, Outbox};
use super::reading::SocketReader;
use crate::session::{Session, SessionTarget};
use runtime::exit::Exit;
use runtime::helper_process::Helper;
use std::ffi::OsString;
use std::sync::mpsc;
use std::time::Duration;
use sys::caps::{Cap, CapSet};
use sys::{Share, clock, rights};

/// The program name that selects this process.
pub const NAME: &str = "netwren-owners";

/// Minimum time between two readings.
const PAUSE_NS: u64 = 50_000_000;
/// Maximum time between two readings, for any number of sockets, because packets wait for a reading.
///
/// Bound: between two readings of sockets for `capture`. Beyond: a UDP port that changes hands within this time may be
/// shown as its former holder's. By: a local user who opens sockets.
const PAUSE_NS_MAX: u64 = 1_000_000_000;
/// Readings take at most one part in this many of the time.
const SHARE_OF_TIME: u64 = 4;

/// Capabilities for descriptors of other users' processes, other namespaces, sockets and their events.
const NEEDED: [Cap; 6] = [Cap::DacReadSearch, Cap::NetAdmin, Cap::SysPtrace, Cap::SysAdmin, Cap::Perfmon, Cap::Bpf];

/// The options of the process, passed on its command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnerOptions {
    /// True to look in every network namespace.
    pub all_netns: bool,
    /// Bits of `capture_need`.
    pub need: u64,
}

impl OwnerOptions {
    /// The options as words of a command line.
    pub(super) fn words(self) -> [String; 2] {
        [u8::from(self.all_netns).to_string(), self.need.to_string()]
    }

    fn parse(mut words: impl Iterator<Item = OsString>) -> Option<OwnerOptions> {
        let mut number = || words.next()?.to_str()?.parse::<u64>().ok();
        Some(OwnerOptions { all_netns: number()? == 1, need: number()? })
    }
}

/// Looks up sockets whenever the main process requests it by an empty message, and sends them until the main process
/// closes its end.
pub fn run(words: impl Iterator<Item = OsString>) -> Exit {
    let Some(options) = OwnerOptions::parse(words) else { return Exit::Usage };
    let Some(requests) = Helper::serve(NAME) else { return Exit::Usage };
    let Ok(messages) = requests.try_clone() else { return Exit::Failed };
    let _ = rights::keep_only(CapSet::from_caps(&NEEDED));
    match send_owners(options, &Outbox::new(messages), &requests) {
        Some(()) => Exit::Ok,
        None => Exit::Failed,
    }
}

fn send_owners(options: OwnerOptions, messages: &Outbox, requests: &Helper) -> Option<()> {
    for events in [EventsOf::Connections, EventsOf::Senders] {
        follow_events(options, events, messages.clone());
    }
    let target = SessionTarget { all_netns: options.all_netns, ..SessionTarget::default() };
    let session = Session::open(target).ok()?;
    let mut reader = SocketReader::new(&session, options.need);
    loop {
        let begun_ns = clock::monotonic_ns();
        if !reader.read(messages) {
            return Some(());
        }
        let lasted_ns = clock::monotonic_ns().saturating_sub(begun_ns);
        let pause_ns = Share::pause_ns(SHARE_OF_TIME, lasted_ns).clamp(PAUSE_NS, PAUSE_NS_MAX);
        let end_ns = clock::monotonic_ns().saturating_add(pause_ns);
        if !requests.receive(0, &mut Vec::new()).unwrap_or(false) {
            return Some(());
        }
        std::thread::sleep(Duration::from_nanos(end_ns.saturating_sub(clock::monotonic_ns())));
    }
}

/// Follows events in a separate thread, starting before the first reading. Without BPF, readings alone provide the
/// data.
fn follow_events(options: OwnerOptions, events: EventsOf, messages: Outbox) {
    let (begun, has_begun) = mpsc::channel();
    let thread = std::thread::Builder::new().name("events".into());
    let started = thread.spawn(move || {
        events::follow(options.all_netns, options.need, events, &messages, &|| _ = begun.send(()));
        messages.note_sent(events, u64::MAX);
    });
    if started.is_ok() {
        // An error means that the thread has ended without starting.
        let _ = has_begun.recv();
    }
}
