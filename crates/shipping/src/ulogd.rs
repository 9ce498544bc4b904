//! Writes log records in ulogd2's formats.

use super::row_writer::RowWriter;
use super::syslog::put_words;
use super::tuning::UlogdTuning;
use export::Format;
use record::rows::{LogRecord, LogRecords};
use record::{Lookups, RowCells};
use runtime::local_time::local_time;
use sinks::ulogd::{Gprint, Json, JsonOptions, Logemu, Oprint, Stages, UlogdStyle, XML_HEAD, Xml};

/// The writer for one of ulogd2's formats; without tuning, with all its keys.
pub(super) fn writer(format: Format, tuning: Option<&UlogdTuning>) -> Option<Box<dyn RowWriter<LogRecords>>> {
    let style = style(tuning);
    match (format, tuning) {
        #[cfg(feature = "sqlite")]
        (Format::Sqlite, Some(tuning)) => return Some(super::database::ulogd_writer(tuning, style)),
        (Format::Postgres, Some(tuning)) => return Some(super::database::ulogd_writer(tuning, style)),
        _ => {}
    }
    let all = UlogdTuning { stages: Stages::ALL, gprint_timestamp: true, ..UlogdTuning::default() };
    let tuning = tuning.unwrap_or(&all);
    let json = |v1| {
        let json = JsonOptions {
            device: tuning.json_device.as_bytes(),
            timestamp: tuning.json_timestamp,
            v1,
            boolean_label: tuning.json_boolean_label,
        };
        Box::new(Json::new(json, tuning.stages, style))
    };
    Some(match format {
        Format::Logemu => Box::new(Logemu::new(&sys::fs::host_name(), style)),
        Format::JsonV0 => json(false),
        Format::JsonV1 => json(true),
        Format::Gprint => Box::new(Gprint::new(tuning.gprint_timestamp, tuning.stages, style)),
        Format::Oprint => Box::new(Oprint::new(tuning.stages, style)),
        Format::Xml => Box::new(Xml::new(style)),
        _ => return None,
    })
}

/// Restricts a writer to the records of one group.
pub(super) struct OfGroup {
    pub(super) group: u16,
    pub(super) writer: Box<dyn RowWriter<LogRecords>>,
}

impl RowWriter<LogRecords> for OfGroup {
    fn chooses(&self) -> bool {
        true
    }

    fn takes(&self, row: &LogRecord<'_>) -> bool {
        row.group == self.group
    }

    fn file_header(&mut self) -> Vec<u8> {
        self.writer.file_header()
    }

    fn begin_batch(&mut self) {
        self.writer.begin_batch();
    }

    fn write(&mut self, row: &LogRecord<'_>, cells: &mut dyn RowCells, lookups: &Lookups<'_>, out: &mut Vec<u8>) {
        self.writer.write(row, cells, lookups, out);
    }
}

/// The writer of a syslog message's text: LOGEMU without time and host.
pub(super) fn text_writer(tuning: Option<&UlogdTuning>) -> Box<dyn RowWriter<LogRecords>> {
    Box::new(LogemuText(Logemu::new(b"", style(tuning))))
}

/// Local time, and compatible bytes if the face or the environment requests them.
fn style(tuning: Option<&UlogdTuning>) -> UlogdStyle {
    let by_environment = std::env::var_os("NETWREN_BUG_COMPATIBLE").is_some_and(|value| value == "1");
    UlogdStyle {
        zone: local_time,
        bug_compatible: by_environment || tuning.is_some_and(|tuning| tuning.bug_compatible),
    }
}

struct LogemuText(Logemu);

impl RowWriter<LogRecords> for LogemuText {
    /// Only prefixes and interface names come from outside, and they are escaped.
    fn writes_lines(&self) -> bool {
        true
    }

    fn write(&mut self, row: &LogRecord<'_>, _: &mut dyn RowCells, lookups: &Lookups<'_>, out: &mut Vec<u8>) {
        self.0.write_message(row, lookups, out);
    }
}

/// Writers that need only the row and the names of interfaces.
macro_rules! plain_writers {
    ($($writer:ty),+) => {$(
        impl RowWriter<LogRecords> for $writer {
            fn write(&mut self, row: &LogRecord<'_>, _: &mut dyn RowCells, lookups: &Lookups<'_>, out: &mut Vec<u8>) {
                <$writer>::write(self, row, lookups, out);
            }
        }
    )+};
}

plain_writers!(Json, Gprint, Oprint);

impl RowWriter<LogRecords> for Logemu {
    fn write(&mut self, row: &LogRecord<'_>, _: &mut dyn RowCells, lookups: &Lookups<'_>, out: &mut Vec<u8>) {
        Logemu::write(self, row, lookups, out);
    }

    fn write_noted(
        &mut self,
        row: &LogRecord<'_>,
        _: &mut dyn RowCells,
        lookups: &Lookups<'_>,
        words: &[u8],
        out: &mut Vec<u8>,
    ) {
        Logemu::write(self, row, lookups, out);
        if !words.is_empty() {
            put_words(out, words);
            out.push(b'\n');
        }
    }
}

impl RowWriter<LogRecords> for Xml {
    fn file_header(&mut self) -> Vec<u8> {
        XML_HEAD.to_vec()
    }

    fn write(&mut self, row: &LogRecord<'_>, _: &mut dyn RowCells, lookups: &Lookups<'_>, out: &mut Vec<u8>) {
        Xml::write(self, row, lookups, out);
    }
}
