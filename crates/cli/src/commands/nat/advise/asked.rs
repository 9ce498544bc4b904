//! The options of `nat advise`.

use crate::command::ParsedWords;
use crate::flags::request::Request;
use probes::nat::{ApplyOptions, Sampling};

/// Maximum number of samples, which are all kept in memory.
///
/// Bound: samples of `nat advise`. Beyond: more samples are refused. By: the user.
const SAMPLES_MAX: u32 = 100_000;

/// A parsed `nat advise`.
#[derive(Debug)]
pub(super) struct NatAdvise {
    /// `--samples`, `--interval`, `--memory`
    pub(super) sampling: Sampling,
    /// `--apply`, with `--yes` and `--timeouts`
    pub(super) apply: Option<ApplyOptions>,
}

impl NatAdvise {
    /// Parses the options; the error describes invalid words.
    pub(super) fn of(words: &ParsedWords<'_>, request: &Request) -> Result<NatAdvise, String> {
        let samples = words.value("samples").unwrap_or_default();
        let samples = match samples.parse() {
            Ok(n) if (1..=SAMPLES_MAX).contains(&n) => n,
            _ => return Err(format!("--samples takes a number from 1 to {SAMPLES_MAX}, not `{samples}`")),
        };
        let interval = words.seconds("interval", 0.1..=86_400.0)?.unwrap_or_default();
        let sampling = Sampling { samples, interval, memory_bytes_max: words.bytes("memory", 1..=u64::MAX)? };
        let [apply, yes, timeouts] = ["apply", "yes", "timeouts"].map(|flag| words.has(flag));
        let wrong = match apply {
            false if yes => "--yes needs --apply",
            false if timeouts => "--timeouts needs --apply",
            true if request.replay.is_some() => "a recording has no settings to change: leave out --replay",
            true if !request.shown.filter.is_empty() => {
                "a filter selects rows to show, not settings to change: leave it out with --apply"
            }
            _ => {
                let options = ApplyOptions { yes, timeouts, all_netns: request.all_netns };
                return Ok(NatAdvise { sampling, apply: apply.then_some(options) });
            }
        };
        Err(wrong.to_owned())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::flags::parser;
    use std::time::Duration;

    fn parse(line: &str) -> Result<NatAdvise, clap::Error> {
        parser::parse_line(&super::super::COMMAND, line, |words| NatAdvise::of(words, &Request::of(words)?))
    }

    #[test]
    fn words_and_what_is_meant() {
        let sampling = |line: &str| parse(line).unwrap().sampling;
        let Sampling { samples, interval, memory_bytes_max } = sampling("");
        assert_eq!((samples, interval, memory_bytes_max), (3, Duration::from_secs(1), None));
        let Sampling { samples, interval, .. } = sampling("--samples 5 --interval=0.5s -o json --all-netns");
        assert_eq!((samples, interval), (5, Duration::from_millis(500)));
        for (size, means) in [("2GiB", 2 << 30), ("512MB", 512 << 20), ("1k", 1024), ("77", 77), ("3G", 3 << 30)] {
            assert_eq!(sampling(&format!("--memory {size}")).memory_bytes_max, Some(means), "{size}");
        }
        let options = |line: &str| parse(line).unwrap().apply.unwrap();
        let ApplyOptions { yes, timeouts, all_netns } = options("--apply --yes");
        assert!(yes && !timeouts && !all_netns && options("--apply --timeouts").timeouts);
        for (line, says) in [
            ("--yes", "needs --apply"),
            ("--timeouts", "needs --apply"),
            ("--apply --replay f", "no settings to change"),
            ("--samples 0", "takes a number"),
            ("--interval 0", "takes seconds"),
            ("-o xml", "invalid value"),
            ("--memory 0", "takes bytes"),
            ("--memory 10%", "takes bytes"),
            ("--memory 99999999999TiB", "takes bytes"),
            ("--netns a --all-netns", "cannot be used with"),
        ] {
            assert!(parse(line).unwrap_err().to_string().contains(says), "{line}");
        }
    }
}
