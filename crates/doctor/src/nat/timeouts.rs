//! The timeout that governs most entries, and how many a lower one would free.
use super::Census;
use super::entry_timeout::lower;
use record::rows::{CtSetting, CtSettings};

/// The timeout that governs most entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeoutAdvice {
    /// The setting.
    pub setting: CtSetting,
    /// Its value in seconds.
    pub seconds: u64,
    /// Entries that it governs.
    pub entries: u64,
    /// Seconds it could be lowered to; `None` if it should be left alone.
    pub advised_s: Option<u64>,
    /// Entries silent for longer than `advised_s`, which that value would already have removed.
    pub frees: Option<u64>,
    /// The reason not to go lower.
    pub why: &'static str,
}

/// Returns the timeout that governs the most entries of the table, if the table has any. Proposes a lower one only if
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
