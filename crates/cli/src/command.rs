//! What the registry knows of a command, and the parsed words that it is called with.

use crate::flags::defs::{FLAGS, Flag, Scope, Takes};
use crate::outcome::Outcome;
use crate::session::Session;
use clap::ArgMatches;
use record::{Accounting, Kind, Schema};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// A column of groups that is shown by the second in a column of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GroupRate {
    /// The column.
    pub(crate) of: &'static str,
    /// Name of its rate.
    pub(crate) name: &'static str,
    /// Unit of its rate.
    pub(crate) kind: Kind,
}

/// One command: the registry's entry, from which dispatch, help, man page, completion and schema come.
pub(crate) struct Command {
    /// Its words on the command line: `nat stats`.
    pub(crate) name: &'static str,
    /// The purpose of the command, in one line.
    pub(crate) about: &'static str,
    /// The examples at the end of its help.
    pub(crate) examples: &'static str,
    /// Which flags it takes.
    pub(crate) scope: Scope,
    /// The words that it takes besides flags.
    pub(crate) positional: Positional,
    /// Flags of other commands and what to say where they are given; without an entry the commands that take the flag
    /// are named.
    pub(crate) refusals: &'static [(&'static str, &'static str)],
    /// The tables whose rows it shows: the usual one, then the one of `--follow`.
    pub(crate) tables: &'static [Schema],
    /// ParsedWords for null in some columns: what is folded is not unknown.
    pub(crate) null_words: &'static [(&'static str, &'static str)],
    /// Columns that stand in the plain table in place of the addresses, if the filter lets only this protocol through.
    pub(crate) columns_of_proto: &'static [(&'static str, &'static [&'static str])],
    /// Columns of the groups of `--watch` over a stream that are shown by the second, too.
    pub(crate) group_rates: &'static [GroupRate],
    /// Its part of `netwren record`.
    pub(crate) recorded: Option<SavedPart>,
    /// Runs the command. The error says what is wrong with the words. `None`: the command is a word before others.
    pub(crate) run: Option<RunCommand>,
}

/// Runs a command with its words; the error says what is wrong with them.
pub(crate) type RunCommand = fn(&ParsedWords<'_>) -> Result<Outcome, String>;

impl Command {
    /// A table with a filter, without anything of its own: what an entry begins with.
    pub(crate) const TABLE: Command = Command {
        name: "",
        about: "",
        examples: "",
        scope: Scope::TABLE,
        positional: Positional::Filter,
        refusals: &[],
        tables: &[],
        null_words: &[],
        columns_of_proto: &[],
        group_rates: &[],
        recorded: None,
        run: None,
    };

    /// The last of its words: `stats`.
    pub(crate) fn word(&self) -> &'static str {
        self.name.rsplit(' ').next().unwrap_or(self.name)
    }

    /// True if this command is one word longer than `above`, and begins with it.
    pub(crate) fn is_below(&self, above: &str) -> bool {
        match self.name.rsplit_once(' ') {
            Some((parent, _)) => parent == above,
            None => above.is_empty(),
        }
    }
}

/// The commands of the registry.
pub(crate) type Commands = &'static [&'static Command];

/// The words that a command takes besides flags.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Positional {
    /// Nothing.
    None,
    /// The words of a filter.
    Filter,
    /// One file.
    File,
    /// One file, or none: what is meant then.
    MaybeFile(&'static str),
    /// Files, one at least; with what is said of them.
    Files(&'static str),
    /// One file, with what is said of it, then the words of a filter.
    FileAndFilter(&'static str),
}

#[cfg(test)]
impl Positional {
    /// True if the command does not run without.
    pub(crate) fn is_required(self) -> bool {
        matches!(self, Positional::File | Positional::Files(_) | Positional::FileAndFilter(_))
    }
}

/// The part of a command that `netwren record` saves.
#[derive(Clone, Copy)]
pub(crate) struct SavedPart {
    /// What is counted, if the number of rows shall be said.
    pub(crate) rows: Option<&'static str>,
    /// True if any user of the host can make it large: it is recorded after all that is small.
    pub(crate) is_large: bool,
    /// Reads it for the recording; returns how many rows there were.
    pub(crate) read: fn(&Session, &mut Accounting) -> u64,
}

/// The parsed words of a command.
pub(crate) struct ParsedWords<'w> {
    matches: &'w ArgMatches,
    /// The command that they stand behind.
    pub(crate) command: &'static Command,
    /// Every command of the registry.
    pub(crate) commands: &'static [&'static Command],
}

impl<'w> ParsedWords<'w> {
    /// The words that clap has parsed.
    pub(crate) fn new(
        matches: &'w ArgMatches,
        command: &'static Command,
        commands: &'static [&'static Command],
    ) -> ParsedWords<'w> {
        ParsedWords { matches, command, commands }
    }

    /// True if the flag is given. False also for a flag that the command does not take.
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.matches.try_get_one::<bool>(flag).ok().flatten().is_some_and(|given| *given)
    }

    /// How often the flag is given.
    pub(crate) fn count(&self, flag: &str) -> u8 {
        self.matches.try_get_one::<u8>(flag).ok().flatten().copied().unwrap_or(0)
    }

    /// True if the command takes the flag.
    pub(crate) fn takes(&self, flag: &str) -> bool {
        self.matches.try_contains_id(flag).is_ok()
    }

    /// True if the flag stands on the command line, whatever is meant without it.
    pub(crate) fn is_given(&self, flag: &str) -> bool {
        let source = self.matches.try_contains_id(flag).ok().and_then(|_| self.matches.value_source(flag));
        source == Some(clap::parser::ValueSource::CommandLine)
    }

    /// The value of a flag, or the one that is meant without it.
    pub(crate) fn value(&self, flag: &str) -> Option<&'w str> {
        self.matches.try_get_one::<String>(flag).ok().flatten().map(String::as_str)
    }

    /// The word of the format: `--json`, `--csv`, or what `-o` says or means without being given.
    pub(crate) fn output(&self) -> Option<&'w str> {
        ["json", "csv"].into_iter().find(|word| self.has(word)).or_else(|| self.value("output"))
    }

    /// The values of a flag that may be given several times, as one list: each adds to those before.
    pub(crate) fn list(&self, flag: &str) -> Option<String> {
        let values = self.values(flag);
        (!values.is_empty()).then(|| values.join(","))
    }

    /// The same, to be kept.
    pub(crate) fn text(&self, flag: &str) -> Option<String> {
        self.value(flag).map(str::to_owned)
    }

    /// The values of a flag that may be given several times, or the words of the filter.
    pub(crate) fn values(&self, flag: &str) -> Vec<&'w str> {
        self.matches.try_get_many::<String>(flag).ok().flatten().into_iter().flatten().map(String::as_str).collect()
    }

    /// The flags that stand on the command line, with their values, as words; without those named in `but`.
    pub(crate) fn given_words(&self, but: &[&str]) -> Vec<OsString> {
        let takes = |flag: &&Flag| flag.scope.meets(self.command.scope) && !but.contains(&flag.long);
        let mut words = Vec::new();
        for flag in FLAGS.iter().filter(takes).filter(|flag| self.is_given(flag.long)) {
            if matches!(flag.takes, Takes::Nothing | Takes::Counted) {
                words.push(format!("--{}", flag.long).into());
                continue;
            }
            let raw = self.matches.try_get_raw(flag.long).ok().flatten();
            words.extend(raw.into_iter().flatten().map(|value| {
                let mut word = OsString::from(format!("--{}=", flag.long));
                word.push(value);
                word
            }));
        }
        words
    }

    /// The file that a flag names.
    pub(crate) fn file(&self, flag: &str) -> Option<&'w Path> {
        self.matches.try_get_one::<std::path::PathBuf>(flag).ok().flatten().map(|path| path.as_path())
    }

    /// The files that stand on the command line besides flags.
    pub(crate) fn files(&self, name: &str) -> Vec<std::path::PathBuf> {
        self.matches.try_get_many(name).ok().flatten().into_iter().flatten().cloned().collect()
    }

    /// True if the flag names a file.
    pub(crate) fn has_file(&self, flag: &str) -> bool {
        self.file(flag).is_some()
    }

    /// The value of a flag that takes seconds.
    pub(crate) fn seconds(&self, flag: &str, range: std::ops::RangeInclusive<f64>) -> Result<Option<Duration>, String> {
        let Some(written) = self.value(flag) else { return Ok(None) };
        let number = written.strip_suffix('s').unwrap_or(written);
        match number.parse::<f64>() {
            Ok(n) if range.contains(&n) => Ok(Some(Duration::from_secs_f64(n))),
            _ => {
                let (least, most) = (range.start(), range.end());
                Err(format!("--{flag} takes seconds from {least} to {most}, not `{written}`"))
            }
        }
    }
}
