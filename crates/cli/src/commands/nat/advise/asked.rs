//! The options of `nat advise`.

use crate::command::ParsedWords;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum number of samples, which are all kept in memory.
///
/// Bound: samples of `nat advise`. Beyond: more samples are refused. By: the user.
const SAMPLES_MAX: u32 = 100_000;

/// A parsed `nat advise`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NatAdvise {
    /// `--netns`
    pub(crate) netns: Option<String>,
    /// `--all-netns`
    pub(crate) all_netns: bool,
    /// `--samples`
    pub(crate) samples: u32,
    /// `--interval`
    pub(crate) interval: Duration,
    /// `--memory`: bytes that the advised table may take.
    pub(crate) memory_bytes: Option<u64>,
    /// `--apply`
    pub(crate) apply: bool,
    /// `--timeouts`: also apply timeouts.
    pub(crate) timeouts: bool,
    /// `--yes`: make the changes instead of only describing them.
    pub(crate) yes: bool,
    /// `--record`
    pub(crate) record: Option<PathBuf>,
    /// `--replay`
    pub(crate) replay: Option<PathBuf>,
}

impl NatAdvise {
    /// Parses the options; the error describes invalid words.
    pub(super) fn of(words: &ParsedWords<'_>) -> Result<NatAdvise, String> {
        let samples = words.value("samples").unwrap_or_default();
        let samples = match samples.parse() {
            Ok(n) if (1..=SAMPLES_MAX).contains(&n) => n,
            _ => return Err(format!("--samples takes a number from 1 to {SAMPLES_MAX}, not `{samples}`")),
        };
        let asked = NatAdvise {
            netns: words.text("netns"),
            all_netns: words.has("all-netns"),
            samples,
            interval: words.seconds("interval", 0.1..=86_400.0)?.unwrap_or_default(),
            memory_bytes: words.bytes("memory", 1..=u64::MAX)?,
            apply: words.has("apply"),
            timeouts: words.has("timeouts"),
            yes: words.has("yes"),
            record: words.file("record").map(Path::to_path_buf),
            replay: words.file("replay").map(Path::to_path_buf),
        };
        asked.check().map_or(Ok(asked), |wrong| Err(wrong.to_owned()))
    }
}

impl NatAdvise {
    fn check(&self) -> Option<&'static str> {
        let wrongs = [
            (self.yes && !self.apply, "--yes needs --apply"),
            (self.timeouts && !self.apply, "--timeouts needs --apply"),
            (self.apply && self.replay.is_some(), "a recording has no settings to change: leave out --replay"),
            (self.record.is_some() && self.replay.is_some(), "--record cannot be used with --replay"),
            (self.netns.is_some() && self.all_netns, "--netns cannot be used with --all-netns"),
            (
                self.netns.is_some() && self.replay.is_some(),
                "a recording has a fixed set of namespaces: leave out --netns",
            ),
        ];
        wrongs.into_iter().find_map(|(wrong, words)| wrong.then_some(words))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::command::{Command, Positional};
    use crate::flags::defs::Scope;
    use crate::flags::parser;
    use runtime::exit::Exit;

    fn parse(line: &str) -> Result<NatAdvise, clap::Error> {
        static COMMAND: Command = Command {
            name: "nat advise",
            scope: Scope::ADVICE,
            positional: Positional::None,
            run: Some(|_| Ok(Exit::Ok.into())),
            ..Command::TABLE
        };
        parser::parse_line(&COMMAND, line, NatAdvise::of)
    }

    #[test]
    fn words_and_what_is_meant() {
        let asked = parse("").unwrap();
        assert_eq!((asked.samples, asked.interval), (3, Duration::from_secs(1)));
        let asked = parse("--samples 5 --interval=0.5s -o json --all-netns").unwrap();
        assert_eq!((asked.samples, asked.interval, asked.all_netns), (5, Duration::from_millis(500), true));
        assert_eq!(parse("").unwrap().memory_bytes, None);
        for (size, means) in [("2GiB", 2 << 30), ("512MB", 512 << 20), ("1k", 1024), ("77", 77), ("3G", 3 << 30)] {
            assert_eq!(parse(&format!("--memory {size}")).unwrap().memory_bytes, Some(means), "{size}");
        }
        let asked = parse("--apply --yes").unwrap();
        assert!(asked.yes && !asked.timeouts && parse("--apply --timeouts").unwrap().timeouts);
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
