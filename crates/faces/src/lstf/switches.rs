//! Parses lstf's command line like lstf's flag library. Pure.

use crate::getopt;
use std::ffi::OsString;
use std::fmt;

/// The task that the command line selects.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// Show the flows.
    Show(Switches),
    /// `--help`, `-h`.
    Help,
    /// `--version`, `-v`.
    Version,
    /// `--credits`.
    Credits,
}

/// Options for the flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Switches {
    /// `-n`: addresses instead of names.
    pub(super) numeric: bool,
    /// `-p`.
    pub(super) processes: bool,
    /// `--json`.
    pub(super) json: bool,
    /// `-f`.
    pub(super) peers: Peers,
    /// Seconds between rounds; `None` for one round.
    pub(super) watch: Option<u32>,
}

/// The peers that `-f` selects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Peers {
    #[default]
    All,
    Public,
    Private,
}

/// Errors of the command line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum UsageError {
    /// A switch unknown to lstf.
    Unknown(String),
    /// A switch whose value is missing.
    NoValue(&'static str),
    /// An invalid value: switch, value, and the expected form.
    Value(&'static str, String, &'static str),
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UsageError::Unknown(switch) => {
                write!(
                    f,
                    "unknown switch `{switch}` (`netwren lstf --help` lists them, `netwren flows --help` has more)"
                )
            }
            UsageError::NoValue(name) => write!(f, "`--{name}` needs a value"),
            UsageError::Value(name, value, wanted) => write!(f, "`--{name}` takes {wanted}, not `{value}`"),
        }
    }
}

/// The value that a switch takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// No value, `=true` or `=false`.
    Bool,
    /// A word.
    Word,
    /// `=SECONDS`; 3 without a value.
    Seconds,
}

/// Letter (NUL for none), name, value.
#[rustfmt::skip]
const SWITCHES: &[(char, &str, Takes)] = &[
    ('n', "numeric", Takes::Bool), ('p', "processes", Takes::Bool), ('\0', "json", Takes::Bool),
    ('f', "filter", Takes::Word), ('w', "watch", Takes::Seconds), ('v', "version", Takes::Bool),
    ('h', "help", Takes::Bool), ('\0', "credits", Takes::Bool), ('\0', "debug", Takes::Bool),
];

/// Default interval of `-w` in seconds.
const WATCH_DEFAULT: u32 = 3;

/// Parses the command line. Like lstf, ignores words that are not switches; `--` ends the switches.
pub(super) fn parse(args: &[OsString]) -> Result<Ask, UsageError> {
    let mut parsed = ParsedSwitches::default();
    let mut words = args.iter().map(|word| word.to_string_lossy().into_owned());
    while let Some(word) = words.next() {
        if word == "--" {
            break;
        }
        if let Some(long) = word.strip_prefix("--") {
            let (name, value) = long.split_once('=').map_or((long, None), |(n, v)| (n, Some(v.to_owned())));
            let known = SWITCHES.iter().find(|(_, n, _)| *n == name);
            let &(_, name, takes) = known.ok_or_else(|| UsageError::Unknown(format!("--{name}")))?;
            let value = value.or_else(|| if takes == Takes::Word { words.next() } else { None });
            parsed.set(name, value)?;
        } else if word.len() > 1 && word.starts_with('-') {
            parsed.cluster(&word[1..], &mut words)?;
        }
    }
    Ok(parsed.ask())
}

#[derive(Default)]
struct ParsedSwitches {
    switches: Switches,
    version: bool,
    help: bool,
    credits: bool,
}

impl ParsedSwitches {
    /// Parses letters after a single dash: `-np`, `-w=5`, `-fpublic`, `-f public`.
    fn cluster(&mut self, letters: &str, words: &mut impl Iterator<Item = String>) -> Result<(), UsageError> {
        let mut rest = letters;
        while let Some(letter) = rest.chars().next() {
            rest = &rest[letter.len_utf8()..];
            let known = SWITCHES.iter().find(|(l, ..)| *l == letter && letter != '\0');
            let &(_, name, takes) = known.ok_or_else(|| UsageError::Unknown(format!("-{letter}")))?;
            if let Some(value) = rest.strip_prefix('=') {
                return self.set(name, Some(value.to_owned()));
            }
            if takes == Takes::Word {
                let value = if rest.is_empty() { words.next() } else { Some(rest.to_owned()) };
                return self.set(name, value);
            }
            self.set(name, None)?;
        }
        Ok(())
    }

    fn set(&mut self, name: &'static str, value: Option<String>) -> Result<(), UsageError> {
        match name {
            "filter" => self.switches.peers = peers(value.ok_or(UsageError::NoValue(name))?)?,
            "watch" => self.switches.watch = seconds(value)?,
            "numeric" => self.switches.numeric = yes(name, value)?,
            "processes" => self.switches.processes = yes(name, value)?,
            "json" => self.switches.json = yes(name, value)?,
            "version" => self.version = yes(name, value)?,
            "help" => self.help = yes(name, value)?,
            "credits" => self.credits = yes(name, value)?,
            // `--debug` adds Go's stack to messages, which does not exist here.
            _ => _ = yes(name, value)?,
        }
        Ok(())
    }

    fn ask(self) -> Ask {
        match (self.help, self.version, self.credits) {
            (true, ..) => Ask::Help,
            (_, true, _) => Ask::Version,
            (.., true) => Ask::Credits,
            _ => Ask::Show(self.switches),
        }
    }
}

fn peers(value: String) -> Result<Peers, UsageError> {
    match value.as_str() {
        "all" => Ok(Peers::All),
        "public" => Ok(Peers::Public),
        "private" => Ok(Peers::Private),
        _ => Err(UsageError::Value("filter", value, "`all`, `public` or `private`")),
    }
}

/// Parses seconds. lstf's own help writes `3s`, which lstf rejects; netwren accepts both forms.
fn seconds(value: Option<String>) -> Result<Option<u32>, UsageError> {
    let Some(value) = value else { return Ok(Some(WATCH_DEFAULT)) };
    match value.strip_suffix('s').unwrap_or(&value).parse() {
        Ok(0) => Ok(None),
        Ok(seconds) => Ok(Some(seconds)),
        Err(_) => Err(UsageError::Value("watch", value, "whole seconds")),
    }
}

fn yes(name: &'static str, value: Option<String>) -> Result<bool, UsageError> {
    match value.as_deref() {
        None | Some("1" | "t" | "T" | "true" | "TRUE" | "True") => Ok(true),
        Some("0" | "f" | "F" | "false" | "FALSE" | "False") => Ok(false),
        Some(_) => Err(UsageError::Value(name, value.unwrap_or_default(), "`true` or `false`")),
    }
}

/// The switches with their dashes, for completion.
pub(super) fn written() -> Vec<String> {
    let names = |(letter, long, _): &(char, &'static str, Takes)| getopt::names_of(*letter as u8, long);
    SWITCHES.iter().flat_map(names).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Ask, UsageError> {
        parse(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    /// One line for each form of each switch.
    #[test]
    fn every_switch() {
        let show = |switches| Ok(Ask::Show(switches));
        let none = Switches::default();
        for (line, expected) in [
            ("", show(none)),
            ("-n", show(Switches { numeric: true, ..none })),
            ("--numeric", show(Switches { numeric: true, ..none })),
            ("--numeric=false", show(none)),
            ("-n -n=0", show(none)),
            ("-p", show(Switches { processes: true, ..none })),
            ("--processes", show(Switches { processes: true, ..none })),
            ("-np", show(Switches { numeric: true, processes: true, ..none })),
            ("--json", show(Switches { json: true, ..none })),
            ("-f all", show(none)),
            ("-f public", show(Switches { peers: Peers::Public, ..none })),
            ("-f=public", show(Switches { peers: Peers::Public, ..none })),
            ("-fpublic", show(Switches { peers: Peers::Public, ..none })),
            ("-nfprivate", show(Switches { numeric: true, peers: Peers::Private, ..none })),
            ("--filter private", show(Switches { peers: Peers::Private, ..none })),
            ("--filter=private", show(Switches { peers: Peers::Private, ..none })),
            ("-w", show(Switches { watch: Some(3), ..none })),
            ("-w=5", show(Switches { watch: Some(5), ..none })),
            ("-w=5s", show(Switches { watch: Some(5), ..none })),
            ("-w=0", show(none)),
            // lstf does not treat the next word as this switch's value, and ignores it.
            ("-w 5", show(Switches { watch: Some(3), ..none })),
            ("--watch", show(Switches { watch: Some(3), ..none })),
            ("--watch=7", show(Switches { watch: Some(7), ..none })),
            ("--debug", show(none)),
            ("--version", Ok(Ask::Version)),
            ("-v", Ok(Ask::Version)),
            ("--help", Ok(Ask::Help)),
            ("-h", Ok(Ask::Help)),
            ("--credits", Ok(Ask::Credits)),
            ("-n words -- -x", show(Switches { numeric: true, ..none })),
            ("-", show(none)),
            ("-x", Err(UsageError::Unknown("-x".to_owned()))),
            ("-nx", Err(UsageError::Unknown("-x".to_owned()))),
            ("--nonsense=1", Err(UsageError::Unknown("--nonsense".to_owned()))),
            ("-f", Err(UsageError::NoValue("filter"))),
            ("-f some", Err(UsageError::Value("filter", "some".to_owned(), "`all`, `public` or `private`"))),
            ("-w=x", Err(UsageError::Value("watch", "x".to_owned(), "whole seconds"))),
            ("-w=-1", Err(UsageError::Value("watch", "-1".to_owned(), "whole seconds"))),
            ("--json=maybe", Err(UsageError::Value("json", "maybe".to_owned(), "`true` or `false`"))),
        ] {
            assert_eq!(parsed(line), expected, "{line}");
        }
    }

    #[test]
    fn an_unknown_switch_names_the_native_way() {
        assert!(UsageError::Unknown("-x".to_owned()).to_string().contains("`netwren flows --help`"));
    }
}
