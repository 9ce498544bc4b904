//! Local time, and the clock that gives it.

/// A point in local time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LocalTime {
    /// Year, e.g. 2026.
    pub year: i32,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 60.
    pub second: u8,
    /// 0 = Sunday.
    pub weekday: u8,
    /// Seconds east of UTC.
    pub utc_offset_s: i32,
}

/// A clock.
pub trait Clock {
    /// Returns seconds since 1970. Called only for entries that have a time.
    fn now_s(&self) -> i64;
    /// Converts seconds since 1970 to local time; `None` if it is unknown.
    fn local(&self, seconds: i64) -> Option<LocalTime>;
}
