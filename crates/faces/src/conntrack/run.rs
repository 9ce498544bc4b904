//! Shared parts of running a command: session, writer, messages, exit code.

use super::options::Command;
use super::parse::Line;
use super::stop::{Stop, head};
use super::words::output;
use crate::conntrack::output::{EntryOptions, EntryWriter, Form, LabelNames};
use crate::text::warn;
use conntrack::change::Changes;
use conntrack::{DecodeError, DumpResult, NetnsRef};
use lookups::session::Session;
use netlink::DumpError;
use record::Accounting;
use runtime::local_time::local_time;
use runtime::messages::footer;
use runtime::stdout::Stdout;
use sinks::Out;
use sinks::{Clock, LocalTime};
use sys::Errno;

/// The state of a run, shared by its commands.
pub(super) struct Run<'s> {
    pub(super) session: &'s Session,
    pub(super) changes: Changes<'s>,
    pub(super) stats: Accounting,
}

/// A writer of entries to stdout.
pub(super) type ToStdout<'l> = EntryWriter<'l, Stdout>;

impl<'s> Run<'s> {
    pub(super) fn new(session: &'s Session) -> Run<'s> {
        let place = NetnsRef { netns: None, netns_id: session.netns_id() };
        Run { session, changes: Changes::new(session.host(), place), stats: Accounting::default() }
    }

    /// The namespace of the session.
    pub(super) fn place(&self) -> NetnsRef<'s> {
        NetnsRef { netns: None, netns_id: self.session.netns_id() }
    }

    /// Makes a writer to stdout.
    pub(super) fn writer<'l>(
        &self,
        options: EntryOptions,
        clock: &'l dyn Clock,
        labels: Option<LabelNames<'l>>,
    ) -> ToStdout<'l> {
        EntryWriter::new(options, clock, labels, Out::new(Stdout::new()))
    }

    /// Records the errors of a dump.
    pub(super) fn note(&mut self, dumped: &DumpResult) {
        self.note_nonsense("entries", dumped.malformed, dumped.first_error);
        if dumped.end.interrupted {
            self.stats.incomplete(1, "the table changed while it was read: entries may be missing or duplicated");
        }
    }

    /// Records how many entries could not be decoded, with the first reason.
    pub(super) fn note_nonsense(&mut self, what: &str, count: u64, first_error: Option<DecodeError>) {
        if count > 0 {
            let why = first_error.map_or_else(String::new, |error| error.to_string());
            self.stats.incomplete(count, format!("malformed {what}, the first: {why}"));
        }
    }

    /// Reports the number of entries on stderr; returns the exit code.
    pub(super) fn finish(mut self, line: &Line, count: u64) -> u8 {
        self.session.finish(&mut self.stats);
        footer(&self.stats);
        let is_stream = matches!(line.command, Some(Command::Event | Command::ExpEvent));
        if self.session.interrupted() && !is_stream {
            // The exit code that a shell reports for a program killed by SIGINT.
            return 130;
        }
        // A stream has already reported its losses, and like the tool it still succeeds.
        let partial = u8::from(self.stats.is_partial() && !is_stream);
        let old = line.bug_compatible;
        let what = match line.command {
            Some(Command::List | Command::Get) => "flow entries have been shown",
            Some(Command::Create) => "flow entries have been created",
            Some(Command::Update) => "flow entries have been updated",
            Some(Command::Delete) => "flow entries have been deleted",
            Some(Command::Add) => "flow entries have been added",
            Some(Command::ExpDelete) if !old => "expectations have been deleted",
            Some(Command::ExpList | Command::ExpDelete) => "expectations have been shown",
            _ => return partial,
        };
        // The tool does not count deleted expectations, and therefore fails.
        let count = if old && line.command == Some(Command::ExpDelete) { 0 } else { count };
        warn(&format!("{}{count} {what}.\n", head()));
        let may_be_none = matches!(line.command, Some(Command::List | Command::ExpList | Command::Add));
        partial.max(u8::from(count == 0 && !may_be_none))
    }
}

/// The output format for entries.
pub(super) fn form(line: &Line) -> EntryOptions {
    let form = match line.output {
        bits if bits & output::SAVE != 0 => Form::Save,
        bits if bits & output::XML != 0 => Form::Xml,
        _ => Form::Text,
    };
    EntryOptions {
        form,
        layer3: line.shows(output::EXTENDED),
        id: line.shows(output::ID),
        bug_compatible: line.bug_compatible,
        ..EntryOptions::PLAIN
    }
}

/// An error of the kernel in the tool's words.
pub(super) fn refused(error: &DumpError, command: Option<Command>) -> Stop {
    match error.errno() {
        Some(errno) => Stop::refused(&words(errno, command)),
        None => Stop::other(error.to_string()),
    }
}

/// The tool's words for an errno, which depend on the command.
pub(super) fn words(errno: Errno, command: Option<Command>) -> String {
    use Command::{Add, Create, Delete, ExpCount, ExpCreate, ExpStats, Get, List, Stats};
    /// ETIME and ENOTSUPP; the latter is internal to the kernel.
    const TIME: Errno = Errno(62);
    const NOTSUPP: Errno = Errno(524);
    let is = |commands: &[Command]| command.is_some_and(|command| commands.contains(&command));
    let words = match errno {
        Errno::PERM => "sorry, you must be root or get CAP_NET_ADMIN capability to do this",
        NOTSUPP if is(&[List]) => "function not implemented",
        Errno::INVAL if !is(&[ExpCount, Stats, ExpStats, Add]) => "invalid parameters",
        Errno::EXIST if is(&[Create]) => "Such conntrack exists, try -U to update",
        Errno::NOENT if is(&[Create, Get, Delete, Add]) => "such conntrack doesn't exist",
        Errno::NOENT if is(&[ExpCreate]) => "master conntrack not found",
        Errno::NOMEM if is(&[Create, Get, Add]) => "not enough memory",
        Errno::AFNOSUPPORT if is(&[Get]) => "protocol not supported",
        TIME if is(&[Create, Add]) => "conntrack has expired",
        other => return other.strerror(),
    };
    words.to_owned()
}

/// The host's clock and its time zone.
pub(super) struct Times<'s>(&'s Session);

impl<'s> Times<'s> {
    pub(super) fn new(session: &'s Session) -> Times<'s> {
        Times(session)
    }

    /// Seconds and nanoseconds since 1970.
    pub(super) fn now(&self) -> (i64, u32) {
        let now = self.0.host().now();
        (now.seconds, now.nanos)
    }
}

impl Clock for Times<'_> {
    fn now_s(&self) -> i64 {
        self.now().0
    }

    fn local(&self, seconds: i64) -> Option<LocalTime> {
        local_time(seconds)
    }
}
