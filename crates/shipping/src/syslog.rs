//! Writes rows as syslog messages, with the framing of their transport.

use super::row_writer::{RowWriter, Shipped};
use super::text_cache::TextCache;
use super::tuning::UlogdTuning;
use export::{Address, Format, Target};
use record::{Columns, Lookups, RowCells};
use sinks::syslog::{Message, Origin, Priority, Rfc3164, Rfc5424, SEQUENCE_ID_MAX, frame_line, frame_octets};
use sinks::{Clock, LocalTime};

/// The framing of messages.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Framing {
    /// One message per datagram.
    Datagram,
    /// RFC 6587, 3.4.1, and RFC 5425.
    Octets,
    /// RFC 6587, 3.4.2: for receivers that only support the old format.
    Line,
}

/// Either message format.
enum SyslogForm {
    New(Box<Rfc5424>),
    Old(Box<Rfc3164<LocalClock>>),
}

impl SyslogForm {
    #[inline]
    fn put(&mut self, message: &Message<'_>, cells: &mut dyn RowCells, out: &mut Vec<u8>) {
        match self {
            SyslogForm::New(form) => form.put_cells(message, cells, out),
            SyslogForm::Old(form) => form.put_cells(message, cells, out),
        }
    }
}

/// Writes rows as syslog messages.
pub(super) struct SyslogWriter<T: Shipped> {
    form: SyslogForm,
    framing: Framing,
    /// The sequence number of the last message.
    pub(super) written: u64,
    /// Makes the human-readable text, if the table has its own.
    text: Option<Box<dyn RowWriter<T>>>,
    /// The text's [`RowWriter::writes_lines`].
    is_line: bool,
    line: Vec<u8>,
    /// The cache of shared texts, if the columns allow one.
    cache: Option<TextCache>,
}

/// The writer for a target with a syslog format.
pub(super) fn writer<T: Shipped>(
    table: &str,
    target: &Target,
    tuning: Option<&UlogdTuning>,
    columns: &Columns,
) -> Box<dyn RowWriter<T>> {
    Box::new(writer_with(table, target, tuning, columns, TextCache::new::<T>(columns)))
}

/// Like [`writer`], with the given cache; without `cache` every message is rendered in full.
pub(super) fn writer_with<T: Shipped>(
    table: &str,
    target: &Target,
    tuning: Option<&UlogdTuning>,
    columns: &Columns,
    cache: Option<TextCache>,
) -> SyslogWriter<T> {
    let priority = tuning.map_or(Priority::default(), |tuning| tuning.priority);
    let is_local = matches!(target.address, Address::UnixDatagrams(_));
    let hostname = String::from_utf8(sys::fs::host_name()).unwrap_or_default();
    // The local syslog accepts what libc's syslog(3) writes: old-format messages without a host name. rsyslog and
    // journald would take RFC 5424 messages there as coming from a program called `1`.
    let is_old = target.format == Format::Syslog3164 || is_local && target.format == Format::Syslog;
    let hostname = if is_local && is_old { "" } else { &*hostname };
    let origin = Origin { hostname, pid: std::process::id(), priority };
    let is_datagram = is_local || matches!(target.address, Address::Udp(_));
    let text = T::text_writer(tuning);
    SyslogWriter {
        form: match is_old {
            true => SyslogForm::Old(Box::new(Rfc3164::new(&origin, columns, LocalClock))),
            false => SyslogForm::New(Box::new(Rfc5424::new(&origin, table, columns))),
        },
        framing: match target.framing {
            _ if is_datagram => Framing::Datagram,
            export::Framing::Newline => Framing::Line,
            export::Framing::OfFormat if is_old => Framing::Line,
            export::Framing::OctetCounting | export::Framing::OfFormat => Framing::Octets,
        },
        written: 0,
        is_line: text.as_ref().is_some_and(|text| text.writes_lines()),
        text,
        line: Vec::new(),
        cache,
    }
}

impl<T: Shipped> RowWriter<T> for SyslogWriter<T> {
    #[inline]
    fn write(&mut self, row: &T::Row<'_>, cells: &mut dyn RowCells, lookups: &Lookups<'_>, out: &mut Vec<u8>) {
        self.count();
        let SyslogWriter { form, framing, written, text, is_line, line, cache } = self;
        let mut body = Body { form, text, is_line: *is_line, line };
        framed(*framing, out, |out| match cache {
            None => body.put(row, cells, lookups, *written, out),
            Some(cache) => cache.put::<T>(row, cells, *written, out, &mut |row, cells, number, out| {
                body.put(row, cells, lookups, number, out);
            }),
        });
    }

    fn write_noted(
        &mut self,
        row: &T::Row<'_>,
        cells: &mut dyn RowCells,
        lookups: &Lookups<'_>,
        words: &[u8],
        out: &mut Vec<u8>,
    ) {
        self.put_text(row, cells, lookups);
        put_words(&mut self.line, words);
        self.put(row, cells, out);
    }
}

/// The parts that make a message without its frame.
struct Body<'b, T: Shipped> {
    form: &'b mut SyslogForm,
    text: &'b mut Option<Box<dyn RowWriter<T>>>,
    is_line: bool,
    line: &'b mut Vec<u8>,
}

impl<T: Shipped> Body<'_, T> {
    #[inline]
    fn put(
        &mut self,
        row: &T::Row<'_>,
        cells: &mut dyn RowCells,
        lookups: &Lookups<'_>,
        number: u64,
        out: &mut Vec<u8>,
    ) {
        let (SyslogForm::New(form), Some(writer)) = (&mut *self.form, &mut *self.text) else {
            self.line.clear();
            if let Some(text) = &mut *self.text {
                text.write(row, cells, lookups, self.line);
            }
            let message = message_of::<T>(row, number, self.text.is_some().then_some(&*self.line));
            return self.form.put(&message, cells, out);
        };
        let message = message_of::<T>(row, number, None);
        let text = |cells: &mut dyn RowCells, out: &mut Vec<u8>| writer.write(row, cells, lookups, out);
        match self.is_line {
            true => _ = form.put_with_line(&message, cells, out, text),
            false => form.put_with(&message, cells, out, text),
        }
    }
}

impl<T: Shipped> SyslogWriter<T> {
    /// Advances the sequence number.
    #[inline]
    fn count(&mut self) {
        self.written = self.written % SEQUENCE_ID_MAX + 1;
    }

    /// Makes the human-readable text if the table has one.
    #[inline]
    fn put_text(&mut self, row: &T::Row<'_>, cells: &mut dyn RowCells, lookups: &Lookups<'_>) {
        self.line.clear();
        if let Some(text) = &mut self.text {
            text.write(row, cells, lookups, &mut self.line);
        }
    }

    /// Appends the message; its human-readable text must have been made.
    #[inline]
    fn put(&mut self, row: &T::Row<'_>, cells: &mut dyn RowCells, out: &mut Vec<u8>) {
        self.count();
        let message = message_of::<T>(row, self.written, self.text.is_some().then_some(&self.line));
        let form = &mut self.form;
        framed(self.framing, out, |out| form.put(&message, cells, out));
    }
}

/// The message of a row, without its cells.
#[inline]
fn message_of<'m, T: Shipped>(row: &T::Row<'_>, sequence_id: u64, text: Option<&'m [u8]>) -> Message<'m> {
    Message { time_ns: T::time_ns(row), sequence_id, msgid: T::msgid(row), cells: &[], text }
}

#[inline]
fn framed(framing: Framing, out: &mut Vec<u8>, put: impl FnOnce(&mut Vec<u8>)) {
    match framing {
        Framing::Datagram => put(out),
        Framing::Octets => frame_octets(out, put),
        Framing::Line => frame_line(out, put),
    }
}

/// Appends words to a line of LOGEMU, before its trailing blank.
pub(super) fn put_words(line: &mut Vec<u8>, words: &[u8]) {
    if !words.is_empty() {
        line.truncate(line.trim_ascii_end().len());
        line.extend_from_slice(words);
    }
}

/// Local time for message formats without a time zone.
struct LocalClock;

impl Clock for LocalClock {
    fn now_s(&self) -> i64 {
        i64::try_from(sys::clock::wall_ns() / 1_000_000_000).unwrap_or(i64::MAX)
    }

    fn local(&self, seconds: i64) -> Option<LocalTime> {
        runtime::local_time::local_time(seconds)
    }
}
