//! The registry's description of a command, and the parsed command line that runs it.

use crate::flags::defs::{FLAGS, Flag, Scope, Takes};
use crate::flags::sizes::{format_bytes, parse_bytes};
use clap::ArgMatches;
use engine::FilterError;
use lookups::session::Session;
use record::{Accounting, Schema};
use runtime::exit::Exit;
use runtime::outcome::Outcome;
use runtime::print;
use runtime::run_group::Part;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tables::GroupRate;
use tables::plan::PlanError;

/// One command: the registry's entry, which is the basis for dispatch, help, man page, completion and schema.
pub(crate) struct Command {
    /// Its words on the command line, such as `nat stats`.
    pub(crate) name: &'static str,
    /// The purpose of the command, in one line.
    pub(crate) about: &'static str,
    /// The examples at the end of its help.
    pub(crate) examples: &'static str,
    /// The flags that it takes.
    pub(crate) scope: Scope,
    /// Its positional arguments.
    pub(crate) positional: Positional,
    /// Messages for flags of other commands. Without an entry, the message names the commands that take the flag.
    pub(crate) refusals: &'static [(&'static str, &'static str)],
    /// The tables whose rows it shows: the usual table, then the table that `other_table` selects.
    pub(crate) tables: &'static [Schema],
    /// The flags with which a line reads the second table.
    pub(crate) other_table: &'static [&'static str],
    /// Words shown for null in some columns, for example because a summarized value is not unknown.
    pub(crate) null_words: &'static [(&'static str, &'static str)],
    /// Columns that replace the addresses in the plain table if the filter admits only this protocol.
    pub(crate) columns_of_proto: &'static [(&'static str, &'static [&'static str])],
    /// Columns of the groups in `--watch` over a stream that are also shown per second.
    pub(crate) group_rates: &'static [GroupRate],
    /// Its part of `netwren record`.
    pub(crate) recorded: Option<SavedPart>,
    /// Prepares a run. `None` if the command is only a prefix of others.
    pub(crate) prepare: Option<PrepareCommand>,
}

/// Prepares a run of a command: resolves all of its words, but reads no rows and changes nothing. Messages propose a
/// line only if this succeeds.
pub(crate) type PrepareCommand = for<'w> fn(&'w ParsedWords<'w>) -> Prepared<'w>;

/// A run that can begin.
pub(crate) type Prepared<'w> = Result<PreparedRun<'w>, Refusal>;

/// Runs a command whose words are resolved. The error describes words that turn out to be invalid on this host.
pub(crate) type PreparedRun<'w> = Box<dyn FnOnce() -> Result<Outcome, String> + 'w>;

/// Returns a prepared run that calls `run`.
pub(crate) fn ready<'w>(run: impl FnOnce() -> Outcome + 'w) -> Prepared<'w> {
    Ok(Box::new(|| Ok(run())))
}

/// The reason why a command does not run with its words.
pub(crate) enum Refusal {
    /// Invalid words; the message comes with the command's usage.
    Words(String),
    /// The same, with a message that depends on the host; it is made only if it is shown.
    OfHost(fn() -> String),
    /// The result without a run.
    Outcome(Outcome),
}

impl Refusal {
    /// Returns the result of the command. The error describes invalid words.
    pub(crate) fn into_outcome(self) -> Result<Outcome, String> {
        match self {
            Refusal::Words(text) => Err(text),
            Refusal::OfHost(text) => Err(text()),
            Refusal::Outcome(outcome) => Ok(outcome),
        }
    }
}

#[cfg(test)]
impl Refusal {
    /// The message.
    pub(crate) fn into_text(self) -> String {
        self.into_outcome().map_or_else(|text| text, |outcome| outcome.messages.join("\n"))
    }
}

impl From<String> for Refusal {
    fn from(text: String) -> Refusal {
        Refusal::Words(text)
    }
}

impl From<PlanError> for Refusal {
    fn from(wrong: PlanError) -> Refusal {
        Refusal::Outcome(Outcome::with_message(Exit::Usage, wrong))
    }
}

impl From<FilterError> for Refusal {
    fn from(wrong: FilterError) -> Refusal {
        PlanError::from(wrong).into()
    }
}

impl Command {
    /// A table with a filter and no special features: the base of all entries.
    pub(crate) const TABLE: Command = Command {
        name: "",
        about: "",
        examples: "",
        scope: Scope::TABLE,
        positional: Positional::Filter,
        refusals: &[],
        tables: &[],
        other_table: &[],
        null_words: &[],
        columns_of_proto: &[],
        group_rates: &[],
        recorded: None,
        prepare: None,
    };

    /// True if the command takes the flag with this long name. clap itself knows this only in debug builds.
    pub(crate) fn takes(&self, long: &str) -> bool {
        FLAGS.iter().any(|flag| flag.long == long && flag.scope.meets(self.scope))
    }

    /// The last of its words, such as `stats`.
    pub(crate) fn word(&self) -> &'static str {
        self.name.rsplit(' ').next().unwrap_or(self.name)
    }

    /// True if this command consists of `above` and one more word.
    pub(crate) fn is_below(&self, above: &str) -> bool {
        match self.name.rsplit_once(' ') {
            Some((parent, _)) => parent == above,
            None => above.is_empty(),
        }
    }
}

/// The commands of the registry.
pub(crate) type Commands = &'static [&'static Command];

/// The positional arguments of a command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Positional {
    /// The command takes no positional arguments.
    None,
    /// The words of a filter.
    Filter,
    /// One file.
    File,
    /// An optional file, with the meaning of its absence.
    MaybeFile(&'static str),
    /// At least one file, with a description.
    Files(&'static str),
    /// One file with a description, followed by the words of a filter.
    FileAndFilter(&'static str),
}

#[cfg(test)]
impl Positional {
    /// True if the command does not run without them.
    pub(crate) fn is_required(self) -> bool {
        matches!(self, Positional::File | Positional::Files(_) | Positional::FileAndFilter(_))
    }
}

/// The part of a command that `netwren record` saves.
#[derive(Clone, Copy)]
pub(crate) struct SavedPart {
    /// The plural noun for its rows, if their number should be reported.
    pub(crate) rows: Option<&'static str>,
    /// True if any user of the host can make it large. Such parts are recorded after all small ones.
    pub(crate) is_large: bool,
    /// Makes the function that is called in each round of the recording.
    pub(crate) open: fn() -> SaveRound,
}

/// Reads a part of the recording; returns the number of rows.
pub(crate) type SaveRound = Box<dyn FnMut(&Session, &mut Accounting) -> u64>;

/// A part that an agent can have.
pub(crate) struct PartKind {
    /// The name of its table in the file.
    pub(crate) name: &'static str,
    /// The command that it runs.
    pub(crate) command: &'static Command,
    /// The settings that it has unless the file has others: flags with their values.
    pub(crate) usual: &'static [(&'static str, Option<&'static str>)],
}

/// A part of a running agent.
pub(crate) struct AgentPart {
    pub(crate) kind: &'static PartKind,
    /// The name under which its runs report.
    pub(crate) handle: Part,
    /// The agent's file.
    pub(crate) file: PathBuf,
    /// The kinds of parts that the file may have.
    pub(crate) kinds: &'static [PartKind],
}

/// The parsed words of a command.
pub(crate) struct ParsedWords<'w> {
    matches: &'w ArgMatches,
    /// The part of an agent that runs the command.
    pub(crate) part: Option<&'w AgentPart>,
    /// The command that they belong to.
    pub(crate) command: &'static Command,
    /// The commands of the registry.
    pub(crate) commands: &'static [&'static Command],
}

impl<'w> ParsedWords<'w> {
    /// Wraps the words parsed by clap.
    pub(crate) fn new(
        matches: &'w ArgMatches,
        command: &'static Command,
        commands: &'static [&'static Command],
    ) -> ParsedWords<'w> {
        ParsedWords { matches, part: None, command, commands }
    }

    /// Returns the words for a run by this part of an agent.
    pub(crate) fn of_part<'p>(&self, part: Option<&'p AgentPart>) -> ParsedWords<'p>
    where
        'w: 'p,
    {
        ParsedWords { matches: self.matches, part, command: self.command, commands: self.commands }
    }

    /// True if the flag is given; false also for a flag that the command does not take.
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.matches.try_get_one::<bool>(flag).ok().flatten().is_some_and(|given| *given)
    }

    /// How often the flag is given.
    pub(crate) fn count(&self, flag: &str) -> u8 {
        self.matches.try_get_one::<u8>(flag).ok().flatten().copied().unwrap_or(0)
    }

    /// The table that the line reads; `None` for a command without tables.
    pub(crate) fn table(&self) -> Option<Schema> {
        let Command { tables, other_table, .. } = self.command;
        let other = tables.get(1).filter(|_| other_table.iter().any(|flag| self.is_given(flag)));
        other.or(tables.first()).copied()
    }

    /// Prepares the run of the command with these words, see [`PrepareCommand`].
    pub(crate) fn prepare(&'w self) -> Prepared<'w> {
        if let Some(table) = self.table().filter(|_| self.list("columns").as_deref() == Some("help")) {
            return ready(move || print::print_prose(&engine::columns::help(table)).into());
        }
        match self.command.prepare {
            Some(prepare) => prepare(self),
            None => Err(format!("`{}` needs another word", self.command.name).into()),
        }
    }

    /// True if the flag was given on the command line, regardless of its default.
    pub(crate) fn is_given(&self, flag: &str) -> bool {
        let source = self.command.takes(flag).then(|| self.matches.value_source(flag)).flatten();
        source == Some(clap::parser::ValueSource::CommandLine)
    }

    /// The value of a flag, or its default.
    pub(crate) fn value(&self, flag: &str) -> Option<&'w str> {
        self.matches.try_get_one::<String>(flag).ok().flatten().map(String::as_str)
    }

    /// The output format: `--json`, `--csv`, or the value of `-o` or its default.
    pub(crate) fn output(&self) -> Option<&'w str> {
        ["json", "csv"].into_iter().find(|word| self.has(word)).or_else(|| self.value("output"))
    }

    /// The values of a repeatable flag as one comma-separated list.
    pub(crate) fn list(&self, flag: &str) -> Option<String> {
        let values = self.values(flag);
        (!values.is_empty()).then(|| values.join(","))
    }

    /// Like [`ParsedWords::value`], as an owned string.
    pub(crate) fn text(&self, flag: &str) -> Option<String> {
        self.value(flag).map(str::to_owned)
    }

    /// The values of a repeatable flag, or the words of the filter.
    pub(crate) fn values(&self, flag: &str) -> Vec<&'w str> {
        self.matches.try_get_many::<String>(flag).ok().flatten().into_iter().flatten().map(String::as_str).collect()
    }

    /// The given flags with their values, as words, without those named in `but`.
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

    /// The files given as positional arguments.
    pub(crate) fn files(&self, name: &str) -> Vec<std::path::PathBuf> {
        self.matches.try_get_many(name).ok().flatten().into_iter().flatten().cloned().collect()
    }

    /// True if the flag names a file.
    pub(crate) fn has_file(&self, flag: &str) -> bool {
        self.file(flag).is_some()
    }

    /// The value of a flag in seconds.
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

    /// The value of a flag in bytes.
    pub(crate) fn bytes<N>(&self, flag: &str, range: std::ops::RangeInclusive<N>) -> Result<Option<N>, String>
    where
        N: Copy + PartialOrd + TryFrom<u64> + Into<u64>,
    {
        let Some(written) = self.value(flag) else { return Ok(None) };
        let number = parse_bytes(written).and_then(|number| N::try_from(number).ok());
        number.filter(|number| range.contains(number)).map(Some).ok_or_else(|| {
            let (least, most): (u64, u64) = ((*range.start()).into(), (*range.end()).into());
            let least = format_bytes(least);
            match most {
                u64::MAX => format!("--{flag} takes bytes, at least {least}, not `{written}`"),
                _ => format!("--{flag} takes bytes from {least} to {}, not `{written}`", format_bytes(most)),
            }
        })
    }
}
