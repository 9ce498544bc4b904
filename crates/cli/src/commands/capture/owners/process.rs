//! The process that looks up sockets and their owners.

use super::events;
use super::options::OwnerOptions;
use super::outbox::{EventsOf, Outbox};
use super::reading::SocketReader;
use lookups::session::{Session, SessionTarget};
use runtime::exit::Exit;
use runtime::helper_process;
use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::time::Duration;
use sys::caps::{Cap, CapSet};
use sys::{Share, clock, rights};

/// The program name that selects this process.
pub(crate) const NAME: &str = "netwren-owners";

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

/// Looks up sockets whenever a byte arrives on stdin, a socket, and writes messages there until its other end is
/// closed.
pub(crate) fn run(words: impl Iterator<Item = OsString>) -> Exit {
    let Some(options) = OwnerOptions::parse(words) else { return Exit::Usage };
    let Some(stream) = helper_process::begin(NAME) else { return Exit::Usage };
    let Ok(asked) = stream.try_clone() else { return Exit::Failed };
    let _ = rights::keep_only(CapSet::of(&NEEDED));
    match told(options, &Outbox::new(stream), asked) {
        Some(()) => Exit::Ok,
        None => Exit::Failed,
    }
}

fn told(options: OwnerOptions, messages: &Outbox, mut asked: UnixStream) -> Option<()> {
    for of in [EventsOf::Connections, EventsOf::Senders] {
        follow_events(options, of, messages.clone());
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
        match asked.read(&mut [0; 1]) {
            Ok(0) => return Some(()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Some(()),
        }
        std::thread::sleep(Duration::from_nanos(end_ns.saturating_sub(clock::monotonic_ns())));
    }
}

/// Follows events in a separate thread, starting before the first reading. Without BPF, readings alone provide the
/// data.
fn follow_events(options: OwnerOptions, of: EventsOf, messages: Outbox) {
    let (begun, has_begun) = mpsc::channel();
    let thread = std::thread::Builder::new().name("events".into());
    let started = thread.spawn(move || {
        events::follow(options, of, &messages, &|| _ = begun.send(()));
        messages.note_sent(of, u64::MAX);
    });
    if started.is_ok() {
        // An error means that the thread has ended without starting.
        let _ = has_begun.recv();
    }
}
