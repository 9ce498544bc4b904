//! Local time for texts without a time zone.

use sinks::LocalTime;

/// The date and time in the host's zone; `None` if the zone is unknown.
pub fn local_time(seconds: i64) -> Option<LocalTime> {
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
