//! The command line of `netwren nat advise`.

use super::command::{self, arg};
use super::defs::FLAGS;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// The flags that mean the same as for tables.
const SHARED: &[&str] = &["netns", "all-netns", "record", "replay"];

/// Most samples of a run: they are kept.
const SAMPLES_MAX: u32 = 100_000;

const EXAMPLES: &str = "\
Examples:
  netwren nat advise                              the whole host; three samples, a second apart
  netwren nat advise --samples 60 --interval 1    a minute
  netwren nat advise -o json | jq 'select(.verdict != \"roomy\")'
  netwren nat advise --netns /proc/self/ns/net    only the network namespace that it runs in
  netwren nat advise --memory 2GiB                a table of up to 2 GiB may be advised
  netwren nat advise --apply                      what would be set and written
  netwren nat advise --apply --yes                set it, and keep it over a restart
  netwren nat advise --apply --timeouts           and the timeouts that are advised: what would be set
";

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
    /// True for `-o json`.
    pub(crate) json: bool,
    /// `--memory`: bytes that the advised table may take.
    pub(crate) memory_bytes: Option<u64>,
    /// `--apply`
    pub(crate) apply: bool,
    /// `--timeouts`: they are set as well.
    pub(crate) timeouts: bool,
    /// `--yes`: not only shown.
    pub(crate) yes: bool,
    /// `--record`
    pub(crate) record: Option<PathBuf>,
    /// `--replay`
    pub(crate) replay: Option<PathBuf>,
}

impl NatAdvise {
    /// Reads the words behind `nat advise`; clap's error knows what to print and where.
    pub(crate) fn parse(args: impl Iterator<Item = OsString>) -> Result<NatAdvise, clap::Error> {
        command::parse(command(), args, from_words)
    }
}

fn from_words(matches: &ArgMatches) -> Result<NatAdvise, String> {
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    let samples = text("samples").unwrap_or_default();
    let samples = match samples.parse() {
        Ok(n) if (1..=SAMPLES_MAX).contains(&n) => n,
        _ => return Err(format!("--samples takes a number from 1 to {SAMPLES_MAX}, not `{samples}`")),
    };
    let interval = text("interval").unwrap_or_default();
    let interval = match interval.strip_suffix('s').unwrap_or(&interval).parse::<f64>() {
        Ok(seconds) if (0.1..=86_400.0).contains(&seconds) => Duration::from_secs_f64(seconds),
        _ => return Err(format!("--interval takes seconds from 0.1 to 86400, not `{interval}`")),
    };
    let asked = NatAdvise {
        netns: text("netns"),
        all_netns: matches.get_flag("all-netns"),
        samples,
        interval,
        json: text("output").is_some_and(|word| word == "json"),
        memory_bytes: match text("memory") {
            None => None,
            Some(written) => Some(bytes(&written).ok_or_else(|| {
                format!("--memory takes bytes with or without a unit (512MiB, 2GB), not `{written}`")
            })?),
        },
        apply: matches.get_flag("apply"),
        timeouts: matches.get_flag("timeouts"),
        yes: matches.get_flag("yes"),
        record: text("record").map(PathBuf::from),
        replay: text("replay").map(PathBuf::from),
    };
    asked.check().map_or(Ok(asked), |wrong| Err(wrong.to_owned()))
}

/// `512MiB`, `2GB`, `1G`, `1000000`.
fn bytes(written: &str) -> Option<u64> {
    let digits = written.find(|c: char| !c.is_ascii_digit()).unwrap_or(written.len());
    let (number, unit) = written.split_at_checked(digits)?;
    let scale: u64 = match unit.strip_suffix('B').unwrap_or(unit) {
        "" => 1,
        "k" | "K" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "Ti" => 1 << 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(scale).filter(|bytes| *bytes > 0)
}

impl NatAdvise {
    fn check(&self) -> Option<&'static str> {
        let wrongs = [
            (self.yes && !self.apply, "--yes goes with --apply"),
            (self.timeouts && !self.apply, "--timeouts goes with --apply"),
            (self.apply && self.replay.is_some(), "a recording has no settings to change: leave out --replay"),
            (self.record.is_some() && self.replay.is_some(), "--record and --replay exclude each other"),
            (self.netns.is_some() && self.all_netns, "--netns and --all-netns exclude each other"),
            (
                self.netns.is_some() && self.replay.is_some(),
                "a recording holds the namespaces it was made in: leave out --netns",
            ),
        ];
        wrongs.into_iter().find_map(|(wrong, words)| wrong.then_some(words))
    }
}

fn memory() -> Arg {
    Arg::new("memory")
        .long("memory")
        .value_name("SIZE")
        .help("Memory that the advised table may take (512MiB, 2GB); otherwise a tenth of the host's")
        .help_heading("What is looked at")
}

/// The clap command.
pub(crate) fn command() -> Command {
    let value = |name: &'static str, value: &'static str, default: &'static str, help: &'static str| {
        let arg = Arg::new(name).long(name).value_name(value).default_value(default).help(help);
        arg.help_heading("What is looked at")
    };
    let switch = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).help(help).help_heading("What is done").action(ArgAction::SetTrue)
    };
    let output = Arg::new("output").long("output").short('o').value_name("WORD");
    Command::new("advise")
        .bin_name("netwren nat advise")
        .about(
            "How full the connection-tracking table is, where that leads, what limit it should have, what that costs",
        )
        .after_help(EXAMPLES)
        .arg(value(
            "samples",
            "N",
            "3",
            "How often counters are read; growth needs two that are a second apart, a forecast three",
        ))
        .arg(value("interval", "SECONDS", "1", "Time between samples"))
        .args(FLAGS.iter().filter(|flag| SHARED.contains(&flag.long)).map(arg))
        .mut_arg("netns", |arg| {
            arg.help("Only the network namespace of that name, of that process or behind that path")
        })
        .mut_arg("all-netns", |arg| {
            arg.help("Every network namespace of this host, as without it; with --timeouts they are set in all of them")
        })
        .arg(memory())
        .arg(
            output
                .value_parser(PossibleValuesParser::new(["table", "json"]))
                .default_value("table")
                .help("table: in words; json: one object a namespace")
                .help_heading("How it is shown"),
        )
        .arg(switch(
            "apply",
            "Set limit and buckets as advised and keep them in /etc/sysctl.d; without --yes only show it",
        ))
        .arg(switch("timeouts", "With --apply: also the timeouts that are advised, each in its network namespace"))
        .arg(switch("yes", "With --apply: do it"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn parse(line: &str) -> Result<NatAdvise, clap::Error> {
        NatAdvise::parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn the_command_is_sound() {
        command().debug_assert();
        assert!(SHARED.iter().all(|long| FLAGS.iter().any(|flag| flag.long == *long)));
    }

    #[test]
    fn words_and_what_is_meant() {
        let asked = parse("").unwrap();
        assert_eq!((asked.samples, asked.interval, asked.json), (3, Duration::from_secs(1), false));
        let asked = parse("--samples 5 --interval=0.5s -o json --all-netns").unwrap();
        assert_eq!(
            (asked.samples, asked.interval, asked.json, asked.all_netns),
            (5, Duration::from_millis(500), true, true)
        );
        assert_eq!(parse("").unwrap().memory_bytes, None);
        for (size, means) in
            [("2GiB", 2 << 30), ("512MB", 512_000_000), ("1k", 1000), ("77", 77), ("3G", 3_000_000_000)]
        {
            assert_eq!(parse(&format!("--memory {size}")).unwrap().memory_bytes, Some(means), "{size}");
        }
        let asked = parse("--apply --yes").unwrap();
        assert!(asked.yes && !asked.timeouts && parse("--apply --timeouts").unwrap().timeouts);
        for (line, says) in [
            ("--yes", "goes with --apply"),
            ("--timeouts", "goes with --apply"),
            ("--apply --replay f", "no settings to change"),
            ("--samples 0", "takes a number"),
            ("--interval 0", "takes seconds"),
            ("-o csv", "invalid value"),
            ("--memory 0", "takes bytes"),
            ("--memory 10%", "takes bytes"),
            ("--memory 99999999999TiB", "takes bytes"),
            ("--netns a --all-netns", "exclude each other"),
        ] {
            assert!(parse(line).unwrap_err().to_string().contains(says), "{line}");
        }
    }
}
