//! The entry point of the fuzzer: messages of any record keep their form.

use super::{Gprint, Json, JsonOptions, Logemu, Oprint, Stages, UlogdStyle, Xml};
use crate::LocalTime;
use record::Lookups;
use record::rows::LogRecord;

fn zone(seconds: i64) -> Option<LocalTime> {
    let second = u8::try_from(seconds.rem_euclid(60)).ok()?;
    Some(LocalTime { year: 2026, month: 11, day: 9, hour: 1, minute: 2, second, weekday: 1, utc_offset_s: 3600 })
}

/// Writes a record in every format, with new and old bytes, and checks that each message is one line of text (OPRINT:
/// lines with one key each).
pub fn fuzz_ulogd_formats(row: &LogRecord<'_>) {
    for bug_compatible in [false, true] {
        let options = UlogdStyle { zone, bug_compatible };
        let lookups = Lookups::empty();
        let written = |write: &mut dyn FnMut(&mut Vec<u8>)| {
            let mut out = Vec::new();
            write(&mut out);
            String::from_utf8(out).unwrap_or_default()
        };
        let emu = written(&mut |out| Logemu::new(b"vm", options).write(row, &lookups, out));
        let gprint = written(&mut |out| Gprint::new(true, Stages::ALL, options).write(row, &lookups, out));
        let xml = written(&mut |out| Xml::new(options).write(row, &lookups, out));
        let json = JsonOptions { v1: bug_compatible, ..JsonOptions::default() };
        let json = written(&mut |out| Json::new(json, Stages::ALL, options).write(row, &lookups, out));
        let ends = [(emu, " \n"), (gprint, "\n"), (xml, "</log>\n"), (json, "}\n")];
        for (text, end) in &ends {
            assert!(text.ends_with(end) && text.matches('\n').count() == 1, "{text:?}");
            assert!(!text.trim_end_matches('\n').chars().any(char::is_control), "{text:?}");
        }
        let oprint = written(&mut |out| Oprint::new(Stages::ALL, options).write(row, &lookups, out));
        assert!(oprint.lines().skip(1).all(|line| line.contains('=')), "{oprint:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Found by the fuzzer: the sum of both overflowed.
    #[test]
    fn the_largest_interface_numbers_are_written() {
        let row = LogRecord { in_ifindex: Some(u32::MAX), out_ifindex: Some(u32::MAX), ..LogRecord::default() };
        fuzz_ulogd_formats(&row);
    }
}
