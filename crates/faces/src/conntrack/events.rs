//! `-E`: shows entries or expectations as they are created, changed and destroyed.

use super::filter::Filter;
use super::options::{Command, switch};
use super::origin::Origins;
use super::parse::Line;
use super::run::{Run, Times, ToStdout, form};
use super::stop::{Stop, head};
use super::table::wrote;
use super::words::{event, output};
use crate::conntrack::output::{Change, EntryOptions, Origin};
use crate::text::warn;
use conntrack::events::{BUFFER_BYTES, EventMessage, NetlinkEvents, SubscribeOptions, groups};
use conntrack::{CtDecoder, DecodeError, ExpectDecoder};
use record::rows::NatEventKind;
use record::{Next, SinkError, StreamState};
use sys::SysError;

/// The smallest receive buffer that the kernel gives a socket, in bytes.
const LEAST_ROOM: i64 = 2304;

/// The tool's message after an event was lost.
const LOSING: &str = "WARNING: We have hit ENOBUFS! We are losing events.
This message means that the current netlink socket buffer size is too small.
Please, check --buffer-size in conntrack(8) manpage.
";

/// Shows events until the user stops the run or the reader closes the pipe.
pub(super) fn follow(run: &mut Run<'_>, line: &Line) -> Result<(), Stop> {
    let filter = Filter::new(line)?;
    let (session, clock) = (run.session, Times::new(run.session));
    let expectations = line.command == Some(Command::ExpEvent);
    let stop = || session.interrupted();
    let buffer_bytes = buffer_bytes(line);
    let listen = SubscribeOptions {
        groups: groups_of(line, expectations),
        buffer_bytes,
        netns_id: session.netns_id(),
        find: None,
        stop: &stop,
    };
    let mut events = NetlinkEvents::open(session.host(), listen).map_err(|error| not_opened(&error, expectations))?;
    let names = |bit: u16| line.labels.as_ref().and_then(|labels| labels.name(bit));
    let options =
        EntryOptions { ktimestamp: line.shows(output::KTIMESTAMP), time: line.shows(output::TIMESTAMP), ..form(line) };
    let writer = run.writer(options, &clock, line.labels.is_some().then_some(&names));
    let mut show = Show {
        line,
        filter,
        writer,
        origins: Origins::new(session),
        entries: CtDecoder::new(session.netns_id()),
        expectations: ExpectDecoder::new(session.netns_id()),
        shown: 0,
        failed: 0,
        first_error: None,
        lost: 0,
    };
    let result = loop {
        let mut written = Ok(());
        let state = events.next(&mut |event| {
            written = show.one(event);
            if written.is_ok() { Next::More } else { Next::Stop }
        });
        show.lost(events.lost_messages());
        // Events that arrived together are written together and flushed at once.
        match (state, written.and_then(|()| show.writer.flush())) {
            (Ok(StreamState::Open), Ok(())) => {}
            (Ok(_), written) => break wrote(written),
            (Err(error), _) => break Err(Stop::other(format!("failed to received netlink event: {}", error.errno))),
        }
    };
    let written = show.writer.finish();
    run.stats.add(&events.close());
    run.note_nonsense("events", show.failed, show.first_error);
    result?;
    wrote(written)?;
    let kind = if expectations { "expectation" } else { "flow" };
    warn(&format!("{}{} {kind} events have been shown.\n", head(), show.shown));
    Ok(())
}

fn not_opened(error: &SysError, expectations: bool) -> Stop {
    if expectations {
        return Stop::other("Can't open handler");
    }
    let step = if error.call == "socket" { "mnl_socket_open" } else { "mnl_socket_bind" };
    warn(&format!("{step}: {}\n", error.errno.strerror()));
    Stop::other("Can't open netlink socket")
}

/// Size of the receive buffer in bytes. The tool reports the size that it got, which is twice the size requested.
fn buffer_bytes(line: &Line) -> u32 {
    if !line.has(switch::BUFFER_SIZE) {
        return BUFFER_BYTES;
    }
    let asked = line.buffer_bytes.clamp(0, i64::from(i32::MAX / 2));
    let got = (asked * 2).max(LEAST_ROOM);
    warn(&format!("NOTICE: Netlink socket buffer size has been set to {got} bytes.\n"));
    u32::try_from(asked).unwrap_or(BUFFER_BYTES)
}

fn groups_of(line: &Line, expectations: bool) -> u32 {
    if expectations {
        return groups::EXPECT_NEW | groups::EXPECT_UPDATE | groups::EXPECT_DESTROY;
    }
    if !line.has(switch::EVENT_MASK) {
        return groups::ALL;
    }
    let pairs = [(event::NEW, groups::NEW), (event::UPDATES, groups::UPDATE), (event::DESTROY, groups::DESTROY)];
    pairs.iter().filter(|(bit, _)| line.events & bit != 0).fold(0, |all, (_, group)| all | group)
}

struct Show<'l, 's> {
    line: &'l Line,
    filter: Filter<'l>,
    writer: ToStdout<'l>,
    origins: Origins<'s>,
    entries: CtDecoder,
    expectations: ExpectDecoder,
    shown: u64,
    /// Number of events that could not be decoded, and the reason for the first.
    failed: u64,
    first_error: Option<DecodeError>,
    lost: u64,
}

impl Show<'_, '_> {
    fn one(&mut self, event: &EventMessage<'_>) -> Result<(), SinkError> {
        let change = match event.kind {
            NatEventKind::New => Change::New,
            NatEventKind::Update => Change::Update,
            NatEventKind::Destroy => Change::Destroy,
            NatEventKind::Live => Change::Unknown,
        };
        let seconds = i64::try_from(event.received_ns / 1_000_000_000).unwrap_or(0);
        let at = (seconds, (event.received_ns % 1_000_000_000) as u32);
        if event.is_expectation {
            let row = match self.expectations.decode(event.message.payload) {
                Ok(row) => row,
                Err(error) => return self.nonsense(error),
            };
            self.shown += 1;
            return self.writer.expectation(&row, Some(change), at);
        }
        let row = match self.entries.decode(event.message.payload) {
            Ok(row) => row,
            Err(error) => return self.nonsense(error),
        };
        let family = self.line.family;
        if family != 0 && family != row.family || !self.filter.passes(&row) {
            return Ok(());
        }
        self.shown += 1;
        let origin =
            (event.portid != 0).then(|| Origin { portid: event.portid, program: self.origins.program(event.portid) });
        self.writer.event(&row, change, at, origin.as_ref())
    }

    fn nonsense(&mut self, error: DecodeError) -> Result<(), SinkError> {
        self.failed += 1;
        self.first_error.get_or_insert(error);
        Ok(())
    }

    /// Prints a warning whenever the kernel has dropped more events; the total is reported at the end.
    fn lost(&mut self, lost: u64) {
        if lost > self.lost {
            warn(LOSING);
        }
        self.lost = lost;
    }
}
