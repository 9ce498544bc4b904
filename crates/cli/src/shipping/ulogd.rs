//! Log records in the formats of ulogd2.

use super::row_writer::RowWriter;
use export::Format;
use record::rows::{LogRecord, LogRecords};
use record::{Lookups, Value};
use sinks::face::ulogd::{Gprint, Json, JsonOptions, LocalTime, Logemu, Oprint, Stages, UlogdStyle, XML_HEAD, Xml};

/// The writer of a format that ulogd2 has, with all its keys.
pub(super) fn writer(format: Format) -> Option<Box<dyn RowWriter<LogRecords>>> {
    let options = options();
    Some(match format {
        Format::Logemu => Box::new(Logemu::new(&hostname(), options)),
        Format::JsonV0 => Box::new(Json::new(JsonOptions::default(), Stages::ALL, options)),
        Format::JsonV1 => {
            let json = JsonOptions { v1: true, ..JsonOptions::default() };
            Box::new(Json::new(json, Stages::ALL, options))
        }
        Format::Gprint => Box::new(Gprint::new(true, Stages::ALL, options)),
        Format::Oprint => Box::new(Oprint::new(Stages::ALL, options)),
        Format::Xml => Box::new(Xml::new(options)),
        _ => return None,
    })
}

/// The text of a syslog message: that of LOGEMU without time and host.
pub(super) fn text_writer() -> Box<dyn RowWriter<LogRecords>> {
    Box::new(LogemuText(Logemu::new(b"", options())))
}

/// Local time, and old bytes where the environment wants them.
fn options() -> UlogdStyle {
    UlogdStyle { zone, bug_compatible: std::env::var_os("NETWREN_BUG_COMPATIBLE").is_some_and(|value| value == "1") }
}

fn hostname() -> Vec<u8> {
    std::fs::read("/proc/sys/kernel/hostname").unwrap_or_default().trim_ascii().to_vec()
}

fn zone(seconds: i64) -> Option<LocalTime> {
    let at = sys::clock::local_time(seconds)?;
    Some(LocalTime {
        year: at.year,
        month: at.month,
        day: at.day,
        hour: at.hour,
        minute: at.minute,
        second: at.second,
        weekday: at.weekday,
        utc_offset_s: at.utc_offset_s,
    })
}

struct LogemuText(Logemu);

impl RowWriter<LogRecords> for LogemuText {
    fn write(&mut self, row: &LogRecord<'_>, _: &[Value<'_>], lookups: &Lookups<'_>, out: &mut Vec<u8>) {
        self.0.write_message(row, lookups, out);
    }
}

/// Writers that need nothing but the row and names of interfaces.
macro_rules! plain_writers {
    ($($writer:ty),+) => {$(
        impl RowWriter<LogRecords> for $writer {
            fn write(&mut self, row: &LogRecord<'_>, _: &[Value<'_>], lookups: &Lookups<'_>, out: &mut Vec<u8>) {
                <$writer>::write(self, row, lookups, out);
            }
        }
    )+};
}

plain_writers!(Logemu, Json, Gprint, Oprint);

impl RowWriter<LogRecords> for Xml {
    fn file_header(&mut self) -> Vec<u8> {
        XML_HEAD.to_vec()
    }

    fn write(&mut self, row: &LogRecord<'_>, _: &[Value<'_>], lookups: &Lookups<'_>, out: &mut Vec<u8>) {
        Xml::write(self, row, lookups, out);
    }
}
