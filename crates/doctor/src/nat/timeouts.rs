//! Which timeout keeps most entries, and what a lower one would let go.
use super::Census;
use super::entry_timeout::lower;
use record::rows::{CtSetting, CtSettings};

/// The timeout that keeps most entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeoutAdvice {
    /// Which one.
    pub setting: CtSetting,
    /// Its seconds.
    pub seconds: u64,
    /// Entries that it keeps.
    pub entries: u64,
    /// Seconds it could be lowered to; `None` if it should be left alone.
    pub advised_s: Option<u64>,
    /// Entries that have been silent for longer than that: they would be gone now.
    pub frees: Option<u64>,
    /// Why not lower still.
    pub why: &'static str,
}

/// The timeout that governs the most entries of the table, if the table has any. Proposes a lower one only if
/// `is_wanted`.
pub(super) fn advise(census: &Census, settings: &CtSettings, is_wanted: bool) -> Option<TimeoutAdvice> {
    let all = CtSetting::ALL.into_iter().map(|setting| (setting, census.group(setting)));
    let (setting, group) = all.max_by_key(|(_, group)| group.entries).filter(|(_, group)| group.entries > 0)?;
    let seconds = settings.get(setting)?;
    let lower = lower(setting, seconds).filter(|_| is_wanted);
    Some(TimeoutAdvice {
        setting,
        seconds,
        entries: group.entries,
        advised_s: lower.map(|(seconds, _)| seconds),
        frees: lower.map(|_| group.idle),
        why: lower.map_or("", |(_, why)| why),
    })
}
