//! Parses the values of `--rotate-…`, which are used with `--to` and with `--write`.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Flags for rotated files and file series.
pub(crate) const ROTATE_FLAGS: [&str; 4] = ["rotate-size", "rotate-age", "rotate-keep", "rotate-zstd"];
/// Valid values of `--rotate-size`: smaller files would not hold a batch of messages.
pub(crate) const ROTATE_SIZES: RangeInclusive<u64> = 1 << 20..=u64::MAX;
/// Most days of `--rotate-age`.
const ROTATE_DAYS_MAX: u64 = 3650;
/// Most files of `--rotate-keep`.
const ROTATE_KEEP_MAX: u32 = 9999;

/// `--rotate-age`, with a minimum in seconds.
pub(crate) fn rotate_age(text: &str, least_s: u64) -> Result<Duration, String> {
    let least = if least_s < 60 { "1s" } else { "1m" };
    let age = age(text).filter(|age| age.as_secs() >= least_s);
    age.ok_or_else(|| format!("--rotate-age takes {least} to {ROTATE_DAYS_MAX}d, such as 90m, 12h or 1d, not `{text}`"))
}

/// `--rotate-keep`
pub(crate) fn rotate_keep(text: &str) -> Result<u32, String> {
    let number = text.parse::<u32>().ok().filter(|number| (1..=ROTATE_KEEP_MAX).contains(number));
    number.ok_or_else(|| format!("--rotate-keep takes 1 to {ROTATE_KEEP_MAX} files, not `{text}`"))
}

fn age(text: &str) -> Option<Duration> {
    let (digits, unit_s) = [('s', 1), ('m', 60), ('h', 3600), ('d', 86_400)]
        .into_iter()
        .find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)))?;
    let seconds = digits.parse::<u64>().ok()?.checked_mul(unit_s)?;
    (1..=ROTATE_DAYS_MAX * 86_400).contains(&seconds).then(|| Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_a_unit() {
        let seconds = |text| rotate_age(text, 60).ok().map(|age| age.as_secs());
        assert_eq!(["90m", "12h", "1d", "60s"].map(seconds), [Some(5400), Some(43_200), Some(86_400), Some(60)]);
        assert_eq!(["", "m", "0m", "60", "59s", "-1d", "4000d", "99999999999999999999d"].map(seconds), [None; 8]);
        assert_eq!(rotate_age("1s", 1), Ok(Duration::from_secs(1)));
        assert!(rotate_age("0s", 1).is_err());
    }
}
