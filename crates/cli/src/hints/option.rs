//! Messages about options that a command does not take. They propose the intended option, a filter, or the tool that
//! has the option.

use super::{other_tool, own_line};
use crate::command::{Command, Commands};
use crate::flags::defs::FLAGS;
use crate::flags::near_command::is_slip;
use engine::find_nearest;
use std::ffi::OsString;

/// Options of other tools, each with advice on what to do here. Advice is used only if the command takes the flag that
/// its text starts with.
pub(super) const ELSEWHERE: &[(&str, &str)] = &[
    ("--dry-run", "without --yes, changes are only shown: leave it out"),
    ("--list", "rows are listed without an option: leave it out"),
    ("--count", "--by FIELD counts rows by a field, --limit N stops after N rows"),
    ("--group-by", "--by FIELD makes one row per value of a field"),
    ("--order", "--sort FIELD sorts by a field"),
    ("--order-by", "--sort FIELD sorts by a field"),
    ("--duration", "--for SECONDS sets the duration"),
    ("--timeout", "--for SECONDS sets the duration"),
    ("--time", "--for SECONDS sets the duration"),
    ("--filter", "a filter needs no option: leave it out"),
    ("--format", "-o chooses the format"),
    ("--fields", "--columns chooses the columns"),
    ("--numeric", "addresses and ports are numeric by default (--resolve shows names): leave it out"),
];

/// Returns the message for `word`, which `command` does not take; `words` are all words that were given.
pub(super) fn refusal(word: &str, words: &[OsString], command: &'static Command, commands: Commands) -> String {
    let word = word.split('=').next().unwrap_or_default();
    let given = GivenOption { word, words, command, commands };
    let answer = match word.strip_prefix("--") {
        Some(long) => given.of_long(long),
        None => given.of_letter(),
    };
    answer.unwrap_or_else(|| given.because(&format!("`netwren {} --help` lists the options", command.name), None))
}

/// An option that a command does not take.
struct GivenOption<'w> {
    /// The option without its value.
    word: &'w str,
    /// The words after the command, including the option.
    words: &'w [OsString],
    command: &'static Command,
    commands: Commands,
}

impl GivenOption<'_> {
    /// Returns the message: what is wrong, why, and the correct line.
    fn because(&self, text: &str, line: Option<String>) -> String {
        let (command, word) = (self.command.name, self.word.escape_debug());
        let line = line.map_or_else(String::new, |line| format!("\ndid you mean: {line}"));
        format!("`netwren {command}` has no option {word}: {text}{line}")
    }

    fn of_letter(&self) -> Option<String> {
        if other_tool::has(self.word, self.command) {
            let line = other_tool::line(self.words, self.command, self.commands);
            return Some(match other_tool::of(self.command) {
                Some(tool) => self.because(&format!("use `netwren {tool}` for the switches of {tool}"), line),
                None => self.because("the filter selects", line),
            });
        }
        let letter = self.word.chars().nth(1)?;
        FLAGS.iter().find(|flag| flag.short == Some(letter)).map(|flag| self.of_others(flag.long))
    }

    fn of_long(&self, long: &str) -> Option<String> {
        let wanted = format!("{} {long}", self.command.name);
        if let Some(below) = self.commands.iter().copied().find(|other| other.name == wanted) {
            let line = own_line::line(below, &self.others(), &[]);
            return Some(self.because(&format!("it is a command: `netwren {wanted}`"), line));
        }
        if FLAGS.iter().any(|flag| flag.long == long) {
            return Some(self.of_others(long));
        }
        if let Some((_, text)) = ELSEWHERE.iter().find(|(other, text)| *other == self.word && self.is_taken(text)) {
            let line = own_line::line(self.command, &self.others(), &[]);
            return Some(self.because(text, line.filter(|_| text.ends_with("leave it out"))));
        }
        let name = long.replace('-', "_");
        let knows = |name: &str| self.command.tables.iter().any(|table| engine::filter::is_known_name(*table, name));
        let single = name.trim_end_matches('s');
        match () {
            () if knows(&name) => Some(self.as_filter(&name)),
            () if self.command.takes(&single.replace('_', "-")) => {
                Some(self.because(&format!("did you mean --{single}?"), None))
            }
            () if knows(single) => Some(self.as_filter(single)),
            () => near_flag(&name, self.command).map(|near| self.because(&format!("did you mean --{near}?"), None)),
        }
    }

    /// Returns the message about an option of other commands.
    fn of_others(&self, long: &str) -> String {
        if let Some((_, text)) = self.command.refusals.iter().find(|(refused, _)| *refused == long) {
            return (*text).to_owned();
        }
        let others = self.commands.iter().filter(|other| other.takes(long));
        let others: Vec<String> = others.map(|other| format!("`{}`", other.name)).collect();
        let belongs = if others.is_empty() { "`netwren` alone".to_owned() } else { others.join(", ") };
        format!("--{long} cannot be used with `{}`: it belongs to {belongs}", self.command.name)
    }

    /// Returns the message about an option that is a field of the filter.
    fn as_filter(&self, name: &str) -> String {
        let (value, rest) = self.value();
        let line = value.and_then(|value| own_line::line(self.command, &rest, &[other_tool::test_of(name, &value)]));
        self.because(&format!("it is a field of the filter: '{name} = VALUE'"), line)
    }

    /// Returns the value that was given with the option, and the words without the option and its value.
    fn value(&self) -> (Option<String>, Vec<OsString>) {
        let Some(at) = self.words.iter().position(|word| self.is_here(word)) else { return (None, self.others()) };
        let glued =
            self.words.get(at).and_then(|word| word.to_str()?.split_once('=').map(|(_, value)| value.to_owned()));
        let next = self.words.get(at + 1).and_then(|word| word.to_str()).filter(|next| !next.starts_with('-'));
        let taken = if glued.is_none() && next.is_some() { at..at + 2 } else { at..at + 1 };
        let rest = self.words.iter().enumerate().filter(|(place, _)| !taken.contains(place));
        (glued.or(next.map(str::to_owned)), rest.map(|(_, word)| word.clone()).collect())
    }

    /// Returns the words without the option.
    fn others(&self) -> Vec<OsString> {
        self.words.iter().filter(|word| !self.is_here(word)).cloned().collect()
    }

    fn is_here(&self, word: &OsString) -> bool {
        word.to_str().is_some_and(|word| word.split('=').next() == Some(self.word))
    }

    /// True if the command takes the flag that a text of [`ELSEWHERE`] starts with.
    fn is_taken(&self, text: &str) -> bool {
        match text.strip_prefix("--").and_then(|text| text.split(' ').next()) {
            Some(long) => self.command.takes(long),
            None => !text.starts_with("-o") || self.command.takes("output"),
        }
    }
}

/// Returns the command's flag that `name` misspells: `name` is an abbreviation, has extra characters at the end, or has
/// one typing error.
fn near_flag(name: &str, command: &Command) -> Option<&'static str> {
    let own = || FLAGS.iter().filter(|flag| flag.scope.meets(command.scope)).map(|flag| flag.long);
    let is_longer = |flag: &&str| {
        let rest = name.strip_prefix(*flag).filter(|_| flag.len() >= 3);
        rest.is_some_and(|rest| rest.starts_with('_') || rest.len() == 1)
    };
    let near = own().find(is_longer).or_else(|| find_nearest(name, own()))?;
    let plain = near.replace('-', "_");
    let is_beginning = name.len() >= 3 && plain.starts_with(name);
    (is_longer(&near) || is_beginning || is_slip(name.as_bytes(), plain.as_bytes())).then_some(near)
}
