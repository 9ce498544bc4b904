//! The command line of `netwren nat stats`: that of a table, less what makes no sense, and one flag more.

use super::command::{self, Known};
use super::request::{Format, Repeat, Request, from_matches};
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::ffi::OsString;

/// The flags of tables that make no sense here.
const REFUSED: &[&str] = &["no-owner", "resolve", "follow", "no-hooks", "owners-via"];

const STATS: Known = Known {
    name: "stats",
    about: "What connection tracking counts: entries, limits, what was dropped and what could not go in",
    is_table: true,
    examples: "\
Examples:
  netwren nat stats                                  this namespace
  netwren nat stats --all-netns 'fill_percent > 80'  the full ones
  netwren nat stats --per-cpu
  netwren nat stats --watch 'drop_delta > 0'         rounds in which packets were dropped
  netwren nat stats --columns netns,tcp_timeout_established_s,udp_timeout_s --all-netns
  netwren nat stats --columns help                   every counter and setting
",
};

/// What each round adds to the usual columns.
const OF_ROUNDS: &str = "drop_delta,early_drop_delta,insert_failed_delta,invalid_delta";

/// A parsed `nat stats`.
#[derive(Debug)]
pub(crate) struct NatStats {
    /// Which rows and columns.
    pub(crate) request: Request,
    /// `--per-cpu`
    pub(crate) per_cpu: bool,
}

impl NatStats {
    /// Reads the words behind `nat stats`; clap's error knows what to print and where.
    pub(crate) fn parse(args: impl Iterator<Item = OsString>) -> Result<NatStats, clap::Error> {
        command::parse(command(), args, from_words)
    }
}

fn from_words(matches: &ArgMatches) -> Result<NatStats, String> {
    if let Some(flag) = command::given(matches, |flag| REFUSED.contains(&flag)) {
        return Err(format!("--{flag} does not go with `nat stats`"));
    }
    let mut request = from_matches(matches)?;
    if request.via == Some(record::Via::Bpf) {
        return Err("counters come by netlink or proc: leave out --via bpf".to_owned());
    }
    let per_cpu = matches.get_flag("per-cpu");
    request.shown.columns = columns(&request, per_cpu);
    Ok(NatStats { request, per_cpu })
}

/// The columns that are meant: sizes are no CPU's, and rounds show what counters grew by.
fn columns(request: &Request, per_cpu: bool) -> Option<String> {
    let spec = request.shown.columns.as_deref().unwrap_or("").trim();
    let is_plain = request.format == Format::Table && !request.shown.wide;
    if !(spec.is_empty() || spec.starts_with(['+', '-'])) || request.shown.by.is_some() {
        return request.shown.columns.clone();
    }
    let mut parts = Vec::new();
    if per_cpu && is_plain {
        // Begun without a sign, so what else is added unasked must be said.
        let change = (request.repeat != Repeat::Once).then_some("change");
        let netns = request.all_netns.then_some("netns");
        parts.extend(change.into_iter().chain(netns));
        parts.push("cpu,default,-entries,-max,-fill_percent");
    }
    let deltas = format!("+{}", OF_ROUNDS.replace(',', ",+"));
    if request.repeat != Repeat::Once {
        parts.push(&deltas);
    }
    // The user's last: what he leaves out is out.
    parts.extend((!spec.is_empty()).then_some(spec));
    (!parts.is_empty()).then(|| parts.join(","))
}

/// The clap command.
pub(crate) fn command() -> Command {
    let command = command::build(&STATS).bin_name("netwren nat stats");
    command::without(command, |flag| REFUSED.contains(&flag)).arg(
        Arg::new("per-cpu")
            .long("per-cpu")
            .help("One row a CPU; sizes and settings are the namespace's and null then")
            .help_heading("What is shown")
            .action(ArgAction::SetTrue),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::flags::defs::FLAGS;

    fn parse(line: &str) -> Result<NatStats, clap::Error> {
        NatStats::parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn the_command_is_sound() {
        command().debug_assert();
        assert!(REFUSED.iter().all(|long| FLAGS.iter().any(|flag| flag.long == *long)));
    }

    #[test]
    fn columns_fit_the_rows() {
        let columns = |line: &str| parse(line).unwrap().request.shown.columns.unwrap_or_default();
        assert_eq!(columns(""), "");
        assert_eq!(columns("--per-cpu"), "cpu,default,-entries,-max,-fill_percent");
        assert_eq!(columns("--per-cpu -o json"), "", "machines get the same keys");
        assert!(columns("--watch").starts_with("+drop_delta,+early_drop_delta"));
        assert!(columns("--watch --columns -drop_delta").ends_with(",-drop_delta"));
        assert!(columns("--per-cpu --watch --all-netns").starts_with("change,netns,cpu,default,"));
        assert_eq!(columns("--watch --columns drop"), "drop");
        assert!(parse("--per-cpu drop > 0").unwrap().per_cpu);
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        for (line, says) in
            [("--via bpf", "leave out"), ("--follow", "does not go with"), ("--no-owner", "does not go")]
        {
            assert!(parse(line).unwrap_err().to_string().contains(says), "{line}");
        }
    }
}
