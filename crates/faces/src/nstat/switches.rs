//! The switches of nstat.

use crate::getopt::{self, Getopt, Spec, spec};
use crate::nstat::output::NstatStyle;

/// The task that the command line selects.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NstatTask {
    /// Show counters.
    Counters(NstatOptions),
    /// `-V`
    Version,
    /// `-h`
    Help,
}

/// Selects counters and controls the history.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NstatOptions {
    /// `-z`: include counters that are 0.
    pub(super) zeros: bool,
    /// `-r`: remove the history first.
    pub(super) reset: bool,
    /// `-a`: show totals and ignore the history.
    pub(super) ignore: bool,
    /// `-s`: leave the history unchanged.
    pub(super) no_update: bool,
    /// `-n`: print nothing.
    pub(super) no_output: bool,
    /// `-j`, `-p`
    pub(super) style: NstatStyle,
    /// Shell patterns in lower case; an empty list matches every counter.
    patterns: Vec<Vec<u8>>,
}

impl NstatOptions {
    /// True if a pattern matches the name, ignoring case.
    pub(super) fn matches(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        self.patterns.is_empty() || self.patterns.iter().any(|one| engine::glob_matches(one, name.as_bytes()))
    }
}

/// Errors of the command line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// getopt's message.
    Usage(String),
    /// `-t` requires a positive number.
    Interval,
    /// `-d` would start a daemon.
    Daemon,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum NstatSwitch {
    Help,
    Version,
    Zeros,
    Reset,
    NoOutput,
    Ignore,
    NoUpdate,
    Scan,
    Interval,
    Json,
    Pretty,
}

#[rustfmt::skip]
const SPECS: &[Spec<NstatSwitch>] = &[
    spec(b'h', "help", false, NstatSwitch::Help), spec(b'?', "", false, NstatSwitch::Help),
    spec(b'a', "ignore", false, NstatSwitch::Ignore), spec(b'd', "scan", true, NstatSwitch::Scan),
    spec(b'n', "nooutput", false, NstatSwitch::NoOutput), spec(b'j', "json", false, NstatSwitch::Json),
    spec(b'r', "reset", false, NstatSwitch::Reset), spec(b'p', "pretty", false, NstatSwitch::Pretty),
    spec(b's', "noupdate", false, NstatSwitch::NoUpdate), spec(b't', "interval", true, NstatSwitch::Interval),
    spec(b'v', "", false, NstatSwitch::Version), spec(b'V', "version", false, NstatSwitch::Version),
    spec(b'z', "zeros", false, NstatSwitch::Zeros),
];

/// Parses the command line.
pub(super) fn parse(words: Vec<Vec<u8>>) -> Result<NstatTask, Refusal> {
    let mut options = NstatOptions {
        zeros: false,
        reset: false,
        ignore: false,
        no_update: false,
        no_output: false,
        style: NstatStyle::Lines,
        patterns: Vec::new(),
    };
    let (mut getopt, mut json, mut pretty, mut scans) = (Getopt::new(SPECS, words), false, false, false);
    while let Some((switch, value)) = getopt.next().map_err(Refusal::Usage)? {
        match switch {
            NstatSwitch::Help => return Ok(NstatTask::Help),
            NstatSwitch::Version => return Ok(NstatTask::Version),
            NstatSwitch::Zeros => options.zeros = true,
            NstatSwitch::Reset => options.reset = true,
            NstatSwitch::NoOutput => options.no_output = true,
            NstatSwitch::Ignore => options.ignore = true,
            NstatSwitch::NoUpdate => options.no_update = true,
            NstatSwitch::Json => json = true,
            NstatSwitch::Pretty => pretty = true,
            NstatSwitch::Scan => scans = number(&value) > 0,
            NstatSwitch::Interval if number(&value) <= 0 => return Err(Refusal::Interval),
            // The averaging time of the daemon, which is unused here.
            NstatSwitch::Interval => {}
        }
    }
    if scans {
        return Err(Refusal::Daemon);
    }
    options.style = match (json, pretty) {
        (true, true) => NstatStyle::PrettyJson,
        (true, false) => NstatStyle::Json,
        _ => NstatStyle::Lines,
    };
    options.patterns = getopt.into_rest().into_iter().map(|word| word.to_ascii_lowercase()).collect();
    Ok(NstatTask::Counters(options))
}

/// The number at the start of a text, as in atoi(3); 0 without digits.
fn number(text: &[u8]) -> i64 {
    let text = text.trim_ascii_start();
    let (sign, digits) = match text {
        [b'-', rest @ ..] => (-1, rest),
        [b'+', rest @ ..] => (1, rest),
        _ => (1, text),
    };
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    sign * digits.fold(0i64, |sum, digit| sum.saturating_mul(10).saturating_add(i64::from(digit - b'0')))
}

/// The switches with their dashes, for completion.
pub(super) fn written() -> Vec<String> {
    getopt::written(SPECS)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn asked(line: &str) -> Result<NstatTask, Refusal> {
        parse(line.split_whitespace().map(|word| word.as_bytes().to_vec()).collect())
    }

    #[test]
    fn switches_and_patterns() {
        let Ok(NstatTask::Counters(options)) = asked("-az UDP* --json -t 5 tcp -s -d 0") else { unreachable!() };
        assert!(options.ignore && options.zeros && options.no_update && !options.reset && !options.no_output);
        assert_eq!(options.style, NstatStyle::Json);
        assert!(options.matches("UdpNoPorts") && options.matches("Tcp") && !options.matches("TcpExtTW"));
        assert_eq!(asked("-t 0"), Err(Refusal::Interval));
        assert_eq!(asked("-t x -h"), Err(Refusal::Interval));
        assert_eq!(asked("-d 3"), Err(Refusal::Daemon));
        assert_eq!((asked("-?"), asked("-v")), (Ok(NstatTask::Help), Ok(NstatTask::Version)));
        assert_eq!(asked("-x"), Err(Refusal::Usage("invalid option -- 'x'".to_owned())));
    }
}
