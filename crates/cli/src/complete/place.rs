//! Completes the word at the cursor: a command, an option, its value, or part of a filter.

use super::proposal::{Proposal, Proposals};
use super::{filter, lists, names, quotes};
use crate::command::{Command, Positional};
use crate::flags::defs::{FLAGS, Flag, Takes};
use crate::flags::parser;
use crate::registry::COMMANDS;
use std::ffi::OsString;

/// The parsed line up to the current word.
struct TypedLine {
    command: Option<&'static Command>,
    /// Operands after the command's words.
    operands: Vec<String>,
    /// The option whose value is being completed.
    awaits: Option<&'static Flag>,
    /// True after `--`: the following words are operands.
    is_over: bool,
}

/// The proposals for the word `current` after the words `before`, which still have their quotes.
pub(super) fn proposals(before: &[String], current: &str) -> Proposals {
    let before: Vec<String> = before.iter().map(|word| quotes::removed(word)).collect();
    match before.first().map(String::as_str) {
        Some("help") => return Proposals::Words(help_topics(&before)),
        Some(name) if faces::find(name).is_some() => return Proposals::Words(switches(name, current)),
        _ => {}
    }
    let line = TypedLine::of(before);
    if let Some(flag) = line.awaits {
        return of_value(&line, flag, current);
    }
    if current.starts_with('-') && !line.is_over {
        return of_option(&line, current);
    }
    let mut words = below(&line);
    match line.command.map_or(Positional::None, |command| command.positional) {
        Positional::File | Positional::Files(_) | Positional::MaybeFile(_) => return Proposals::Files,
        Positional::FileAndFilter(_) if line.operands.is_empty() => return Proposals::Files,
        Positional::FileAndFilter(_) => words.extend(filter_words(&line, 1, current)),
        Positional::Filter => words.extend(filter_words(&line, 0, current)),
        Positional::None => {}
    }
    Proposals::Words(words)
}

impl TypedLine {
    fn of(before: Vec<String>) -> TypedLine {
        let mut words: Vec<OsString> = before.into_iter().map(OsString::from).collect();
        let command = parser::find(&mut words, COMMANDS);
        let mut line = TypedLine { command, operands: Vec::new(), awaits: None, is_over: false };
        for word in words {
            let word = word.to_string_lossy().into_owned();
            if line.awaits.take().is_some() {
                continue;
            }
            match word.as_str() {
                _ if line.is_over => line.operands.push(word),
                "--" => line.is_over = true,
                option if option.starts_with('-') => line.awaits = line.flag_before_its_value(option),
                _ => line.operands.push(word),
            }
        }
        line
    }

    fn flags(&self) -> impl Iterator<Item = &'static Flag> + use<> {
        let scope = self.command.map_or(parser::alone_scope(COMMANDS), |command| command.scope);
        FLAGS.iter().filter(move |flag| flag.scope.meets(scope))
    }

    /// The flag that takes the next word as its value, if any.
    fn flag_before_its_value(&self, option: &str) -> Option<&'static Flag> {
        let flag = match option.strip_prefix("--") {
            Some(long) => self.flags().find(|flag| flag.long == long),
            None => self.flags().find(|flag| flag.short.is_some() && flag.short == option.chars().last()),
        };
        flag.filter(|flag| flag.takes.takes_next_word())
    }
}

/// The commands that the word can name.
fn below(line: &TypedLine) -> Vec<Proposal> {
    let above = line.command.map_or("", |command| command.name);
    if !line.operands.is_empty() || line.is_over {
        return Vec::new();
    }
    let commands = COMMANDS.iter().filter(|command| command.is_below(above));
    let mut words: Vec<Proposal> = commands.map(|command| Proposal::new(command.word(), command.about)).collect();
    if above.is_empty() {
        words.extend(faces::FACES.iter().map(|face| face.name).map(|name| Proposal::new(name, format!("from {name}"))));
        words.push(Proposal::new("help", "help on a command, filters or columns"));
    }
    words
}

/// Topics after `help`.
fn help_topics(before: &[String]) -> Vec<Proposal> {
    let tables = COMMANDS.iter().filter(|command| before.len() == 1 || !command.tables.is_empty());
    let commands = tables.filter(|command| !command.name.contains(' '));
    let commands = commands.map(|command| Proposal::new(command.name, command.about));
    match before.get(1).map(String::as_str) {
        None => {
            let topics = [("filters", "the filter language"), ("columns", "the fields of a table")];
            topics.into_iter().map(|(word, about)| Proposal::new(word, about)).chain(commands).collect()
        }
        Some("columns") if before.len() == 2 => commands.collect(),
        _ => Vec::new(),
    }
}

/// The switches of a face's tool.
fn switches(face: &str, current: &str) -> Vec<Proposal> {
    if !current.starts_with('-') {
        return Vec::new();
    }
    faces::find(face).map_or(Vec::new(), |face| face.switches()).into_iter().map(Proposal::named).collect()
}

/// Proposals for an option, or for `--option=value`.
fn of_option(line: &TypedLine, current: &str) -> Proposals {
    if let Some((long, value)) = current.strip_prefix("--").and_then(|word| word.split_once('=')) {
        let Some(flag) = line.flags().find(|flag| flag.long == long) else { return Proposals::NONE };
        let written = format!("--{long}=");
        let behind = |words: Vec<Proposal>| words.into_iter().map(|word| word.behind(&written)).collect();
        return match of_value(line, flag, value) {
            Proposals::Files => Proposals::Files,
            Proposals::Words(words) => Proposals::Words(behind(words)),
            Proposals::Parts(words) => Proposals::Parts(behind(words)),
        };
    }
    let mut words: Vec<Proposal> =
        line.flags().map(|flag| Proposal::new(format!("--{}", flag.long), flag.help)).collect();
    words.push(Proposal::new("--help", "flags and examples"));
    words.sort_by(|a, b| a.word.cmp(&b.word));
    Proposals::Words(words)
}

/// Proposals for the value of an option.
fn of_value(line: &TypedLine, flag: &Flag, current: &str) -> Proposals {
    match (flag.takes, flag.long) {
        (Takes::File(_), _) => Proposals::Files,
        (Takes::Word(words), _) => Proposals::Words(words.iter().map(|word| Proposal::named(*word)).collect()),
        (_, "netns") => Proposals::Words(names::namespaces()),
        (_, "container") => Proposals::Words(names::containers()),
        (_, "user") => Proposals::Words(names::users()),
        (_, "process") => Proposals::Words(names::processes()),
        (_, "columns" | "by" | "sum" | "max" | "avg" | "sort") => {
            let fields = line.command.map(filter::fields).unwrap_or_default();
            lists::proposals(flag.long, &fields, current)
        }
        _ => Proposals::NONE,
    }
}

/// Proposals for the filter, which starts after `skipped` operands.
fn filter_words(line: &TypedLine, skipped: usize, current: &str) -> Vec<Proposal> {
    let Some(command) = line.command else { return Vec::new() };
    let before: Vec<&str> = line.operands.iter().skip(skipped).map(String::as_str).collect();
    filter::proposals(command, &before.join(" "), current)
}
