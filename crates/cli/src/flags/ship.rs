//! Parses `--to` and its related flags.

use super::rotation::{ROTATE_FLAGS, ROTATE_SIZES, rotate_age, rotate_keep};
use crate::command::ParsedWords;
use export::{Address, Rate, Rotation, SyncWhen, Target, TlsFiles};
use shipping::{QUEUE_MAX, RateBy, RepeatRequest, ShipRequest, SpoolRequest, has_words};
use std::path::PathBuf;
use std::time::Duration;

/// Less memory would not hold the messages that the kernel sends at once.
const QUEUE_MIN: u64 = 4 << 20;

/// Default disk space for messages waiting for one receiver, in bytes.
///
/// Bound: bytes of a spool (`--spool-max`). Beyond: messages of the rule with the most are dropped (`--when-full`) and
/// counted (exit code 3). A file that cannot be read or rewritten is dropped whole, which also affects other users. By:
/// any sender of packets that a rule logs, while a receiver is away.
const SPOOL_MAX: u64 = 1 << 30;
/// Less space would fill up immediately.
const SPOOL_MIN: u64 = 16 << 20;

/// Flags for receivers with TLS.
const TLS_FLAGS: [&str; 3] = ["tls-ca", "tls-cert", "tls-key"];

/// This program, even if its file has been renamed.
const PACKER: &str = "/proc/self/exe";
/// Default number of rotated files to keep.
const ROTATE_KEEP: u32 = 7;

fn spool(words: &ParsedWords<'_>) -> Result<Option<SpoolRequest>, String> {
    let Some(dir) = words.file("spool") else {
        let alone = ["spool-max", "spool-age", "spool-sync"].into_iter().find(|flag| words.is_given(flag));
        return alone.map_or(Ok(None), |flag| Err(format!("--{flag} needs --spool DIR")));
    };
    let bytes_max = words.bytes("spool-max", SPOOL_MIN..=u64::MAX)?.unwrap_or(SPOOL_MAX);
    let sync = match words.value("spool-sync") {
        Some("never") => SyncWhen::Never,
        Some("always") => SyncWhen::Always,
        _ => SyncWhen::EverySecond,
    };
    Ok(Some(SpoolRequest { dir: dir.to_owned(), bytes_max, age_max: words.seconds("spool-age", 1.0..=1e9)?, sync }))
}

/// Parses the request from a command line; None without `--to`.
pub(crate) fn ship_request(words: &ParsedWords<'_>) -> Result<Option<ShipRequest>, String> {
    let mut targets: Vec<Target> = Vec::new();
    for text in words.values("to") {
        let target: Target = text.parse().map_err(|error| format!("--to: {error}"))?;
        let is_same = |other: &Target| other.address == target.address || other.to_string() == target.to_string();
        if targets.iter().any(is_same) {
            return Err(format!("--to {target}: two outputs to one receiver would be mixed"));
        }
        targets.push(target);
    }
    if targets.is_empty() {
        let mut alone = ["when-full", "queue-max", "spool", "control", "fold", "rate", "rate-by"]
            .into_iter()
            .chain(TLS_FLAGS)
            .chain(ROTATE_FLAGS.into_iter().filter(|_| !words.has_file("write")));
        let alone = alone.find(|flag| words.is_given(flag));
        return match alone {
            Some(flag) => Err(format!("--{flag} needs --to: without it nothing is shipped")),
            None => Ok(None),
        };
    }
    let by_tls = targets.iter().any(Target::may_use_tls);
    if let Some(flag) = TLS_FLAGS.into_iter().find(|flag| !by_tls && words.is_given(flag)) {
        return Err(format!("--{flag} needs a TLS receiver: --to FORMAT+tls://HOST:PORT"));
    }
    let queue_max = words.bytes("queue-max", QUEUE_MIN..=u64::MAX)?;
    let [authorities, certificate, key] = TLS_FLAGS.map(|flag| words.file(flag).map(PathBuf::from));
    Ok(Some(ShipRequest {
        comment: None,
        rotation: rotation(words, &targets)?,
        repeats: repeats(words, &targets)?,
        targets,
        spool: spool(words)?,
        control: words.file("control").map(PathBuf::from),
        tls: TlsFiles { authorities, certificate, key },
        tuning: Vec::new(),
        when_full: words.value("when-full").and_then(|word| word.parse().ok()).unwrap_or_default(),
        queue_max: queue_max.map_or(QUEUE_MAX, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
    }))
}

/// Valid folding windows in seconds: a shorter one would fold nothing, a longer one would hide current events.
const FOLD_S: std::ops::RangeInclusive<u64> = 1..=3600;
/// Maximum number of records per second, and of a burst.
const RATE_MAX: u64 = 1_000_000;

fn repeats(words: &ParsedWords<'_>, targets: &[Target]) -> Result<RepeatRequest, String> {
    let fold = words.value("fold").map(|text| {
        let time = seconds(text).filter(|seconds| FOLD_S.contains(seconds)).map(Duration::from_secs);
        let (least, most) = (FOLD_S.start(), FOLD_S.end() / 3600);
        time.ok_or_else(|| format!("--fold takes {least}s to {most}h, such as 10s or 5m, not `{text}`"))
    });
    let fold = fold.transpose()?;
    let without = targets.iter().filter(|target| !has_words(target.format)).count();
    if fold.is_some() && without == targets.len() {
        return Err("--fold: no target of this run can store the count of folded rows: json, syslog, logemu and \
                    databases can; packet files and the formats of ulogd2 cannot"
            .to_owned());
    }
    let rate = words.value("rate").map(|text| {
        let rate = rate(text).ok_or_else(|| {
            format!("--rate takes RECORDS/TIME[:BURST], such as 100/s, 6000/m or 100/s:500, not `{text}`")
        });
        rate.map(|rate| (rate, words.value("rate-by").map_or(RateBy::Rule, RateBy::of)))
    });
    let rate = rate.transpose()?;
    if rate.is_none() && words.is_given("rate-by") {
        return Err("--rate-by needs --rate RECORDS/TIME".to_owned());
    }
    Ok(RepeatRequest { fold, rate })
}

/// Parses seconds, minutes or hours.
fn seconds(text: &str) -> Option<u64> {
    let units = [('s', 1), ('m', 60), ('h', 3600)];
    let (digits, unit) = units.into_iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)))?;
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// Parses `100/s:500`. Without a burst, the records of one time unit may arrive at once.
fn rate(text: &str) -> Option<Rate> {
    let (rate, burst) = text.split_once(':').map_or((text, None), |(rate, burst)| (rate, Some(burst)));
    let (records, unit) = rate.split_once('/')?;
    let unit_ns = match unit {
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000_u64,
        _ => return None,
    };
    let number = |text: &str| text.parse::<u64>().ok().filter(|number| (1..=RATE_MAX).contains(number));
    let records = number(records)?;
    let burst = burst.map_or(Some(records), number)?;
    Some(Rate { ns_per_record: (unit_ns / records).max(1), burst })
}

fn rotation(words: &ParsedWords<'_>, targets: &[Target]) -> Result<Option<Rotation>, String> {
    let Some(given) = ROTATE_FLAGS.into_iter().find(|flag| words.is_given(flag)) else { return Ok(None) };
    if !targets.iter().any(|target| matches!(target.address, Address::File(_))) {
        return Err(format!("--{given} needs a file: --to FORMAT:PATH"));
    }
    let bytes_max = words.bytes("rotate-size", ROTATE_SIZES)?;
    let age_max = words.value("rotate-age").map(|text| rotate_age(text, 60)).transpose()?;
    if bytes_max.is_none() && age_max.is_none() {
        return Err(format!("--{given} needs --rotate-size or --rotate-age, which start new files"));
    }
    let keep = words.value("rotate-keep").map_or(Ok(ROTATE_KEEP), rotate_keep)?;
    let packer = words.is_given("rotate-zstd").then_some(PACKER);
    Ok(Some(Rotation { bytes_max, age_max, keep, packer }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_a_unit_and_may_have_a_burst() {
        let of = |text| rate(text).map(|rate| (rate.ns_per_record, rate.burst));
        assert_eq!(of("100/s"), Some((10_000_000, 100)));
        assert_eq!(of("100/s:500"), Some((10_000_000, 500)));
        assert_eq!(of("6/m:1"), Some((10_000_000_000, 1)));
        for wrong in ["", "100", "0/s", "100/d", "100/s:", "100/s:0", "-1/s", "1/s:2:3", "9999999/s"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        assert_eq!(
            ["10s", "5m", "1h", "10", "s", "-1s"].map(seconds),
            [Some(10), Some(300), Some(3600), None, None, None]
        );
    }
}
