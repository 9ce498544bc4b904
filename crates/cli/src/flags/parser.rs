//! Builds clap commands from the registry and the flag table; finds, parses and rejects words.
//!
//! A run builds only the command that it names: the whole tree would cost 0.2 ms at every start.

use super::defs::{FLAGS, Flag, Scope, Takes};
use crate::command::{Command, Commands, ParsedWords, Positional};
use clap::builder::PossibleValuesParser;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, value_parser};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// The whole tree, for man pages, completions and `netwren --help`.
pub(crate) fn tree(commands: Commands) -> clap::Command {
    let root = clap::Command::new("netwren")
        .version(env!("CARGO_PKG_VERSION"))
        .disable_version_flag(true)
        .arg(
            Arg::new("version")
                .short('V')
                .long("version")
                .action(ArgAction::Version)
                .display_order(usize::MAX)
                .help("Print version; with -v also the features that are built in"),
        )
        .about("A host's network at a glance: sockets, flows, and the processes that own them")
        .long_about(
            "A host's network at a glance. Without a command: the whole host on one screen, after a second.\n\
             \n\
             The following commands take the switches of the tools that they replace and print the same output: \
             `netwren ss …`, `netwren netstat …`, `netwren nstat …`, `netwren lstf …`, `netwren conntrack …`, `netwren \
             ulogd …`, `netwren dropwatch …`, or a link with the tool's name to this program.",
        )
        .args(of_scope(alone_scope(commands)).map(arg))
        .args_conflicts_with_subcommands(true)
        .after_help(
            "`netwren COMMAND --help` shows a command's flags and examples, `netwren help filters` describes the \
             filter language, `netwren help columns TABLE` lists the fields of a table.",
        );
    with_below(root, "", commands)
}

/// The scope of `netwren` without a command, which is the home screen's.
pub(crate) fn alone_scope(commands: Commands) -> Scope {
    commands.iter().map(|command| command.scope).find(|scope| scope.meets(Scope::HOME)).unwrap_or(Scope::HOME)
}

/// Adds the subcommands of `name` to `clap`.
fn with_below(clap: clap::Command, name: &str, commands: Commands) -> clap::Command {
    let mut below = commands.iter().filter(|command| command.is_below(name)).peekable();
    if below.peek().is_none() {
        return clap;
    }
    let clap = below.fold(clap, |clap, command| clap.subcommand(with_below(alone(command), command.name, commands)));
    if name.is_empty() { clap } else { clap.disable_help_subcommand(true) }
}

/// The command as required for a run, without subcommands.
fn alone(command: &Command) -> clap::Command {
    let mut clap = clap::Command::new(command.word())
        .bin_name(format!("netwren {}", command.name))
        .about(command.about)
        .subcommand_required(command.prepare.is_none())
        .args(positional(command.positional))
        .args(of_scope(command.scope).map(arg));
    if !command.examples.is_empty() {
        clap = clap.after_help(command.examples);
    }
    clap
}

/// The positional arguments in clap's form.
fn positional(positional: Positional) -> Vec<Arg> {
    let file = |help| Arg::new("file").value_name("FILE").value_parser(value_parser!(PathBuf)).help(help);
    match positional {
        Positional::None => Vec::new(),
        Positional::File => vec![file("File to write").required(true)],
        Positional::MaybeFile(usual) => vec![file("File to read").default_value(usual)],
        Positional::Files(help) => {
            let files = Arg::new("files").value_name("FILE").required(true).num_args(1..);
            vec![files.value_parser(value_parser!(PathBuf)).help(help)]
        }
        Positional::FileAndFilter(help) => vec![file(help).required(true), filter()],
        Positional::Filter => vec![filter()],
    }
}

fn filter() -> Arg {
    Arg::new("filter").value_name("FILTER").num_args(0..).trailing_var_arg(false).help(
        "Rows to show: `field op value`, combined with and, or, not and parentheses; see `netwren help filters`, and \
             `--columns help` for the fields",
    )
}

fn of_scope(scope: Scope) -> impl Iterator<Item = &'static Flag> {
    FLAGS.iter().filter(move |flag| flag.scope.meets(scope))
}

/// A flag in clap's form.
fn arg(flag: &Flag) -> Arg {
    let mut arg = Arg::new(flag.long).long(flag.long).help(flag.help);
    if let Some(short) = flag.short {
        arg = arg.short(short);
    }
    if !flag.group.is_empty() {
        arg = arg.help_heading(flag.group);
    }
    if !flag.default.is_empty() {
        arg = arg.default_value(flag.default);
    }
    match flag.takes {
        Takes::Nothing => arg.action(ArgAction::SetTrue),
        Takes::Counted => arg.action(ArgAction::Count),
        // A value may begin with a dash: `--columns -pid`.
        Takes::Value(name) => arg.value_name(name).allow_hyphen_values(true),
        Takes::Values(name) => arg.value_name(name).allow_hyphen_values(true).action(ArgAction::Append),
        Takes::File(name) => arg.value_name(name).value_parser(value_parser!(PathBuf)),
        Takes::Maybe(name, default) => {
            arg.value_name(name).num_args(0..=1).require_equals(true).default_missing_value(default)
        }
        Takes::Word(words) => arg.value_name("WORD").value_parser(PossibleValuesParser::new(words)),
    }
}

/// The index of the first word that is neither a flag nor a flag's value.
pub(crate) fn first_operand(words: &[OsString]) -> Option<usize> {
    let mut words = words.iter().enumerate();
    while let Some((place, word)) = words.next() {
        let word = word.to_str().unwrap_or_default();
        if !word.starts_with('-') || word == "-" {
            return Some(place);
        }
        if word == "--" {
            return None;
        }
        if takes_next_word(word) {
            words.next();
        }
    }
    None
}

/// True if the flag or cluster of short flags in this word takes the next word as its value.
fn takes_next_word(word: &str) -> bool {
    // A letter may differ between commands (-w of `capture`); then it does not take the next word.
    let takes = |is: &dyn Fn(&Flag) -> bool| {
        let mut found = FLAGS.iter().filter(|flag| is(flag)).peekable();
        found.peek().is_some() && found.all(|flag| flag.takes.takes_next_word())
    };
    match word.strip_prefix("--") {
        Some(long) => takes(&|flag| flag.long == long),
        // The first flag that takes a value uses the rest of the word, if any.
        None => word
            .char_indices()
            .skip(1)
            .find(|(_, c)| takes(&|flag| flag.short == Some(*c)))
            .is_some_and(|(at, c)| at + c.len_utf8() == word.len()),
    }
}

/// Removes `-n` and `-nn`, with which users of other tools request numbers. netwren shows names only with `--resolve`.
/// `-n` before a number is a limit.
pub(crate) fn without_numeric(words: Vec<OsString>, command: &Command) -> Vec<OsString> {
    if !command.scope.meets(Scope::ROWS) {
        return words;
    }
    let mut kept = Vec::with_capacity(words.len());
    let mut words = words.into_iter().peekable();
    while let Some(word) = words.next() {
        let begins_number = |next: &OsString| next.as_encoded_bytes().first().is_some_and(u8::is_ascii_digit);
        match word.to_str() {
            Some("-nn") => continue,
            Some("-n") if !words.peek().is_some_and(begins_number) => continue,
            Some("--") => {
                kept.push(word);
                kept.extend(words);
                break;
            }
            _ => {}
        }
        let takes_next = word.to_str().is_some_and(|word| word.starts_with('-') && takes_next_word(word));
        kept.push(word);
        kept.extend(words.next_if(|_| takes_next));
    }
    kept
}

/// Removes the words of a command from the others, in any position among the flags; None if the first operand is not a
/// command.
pub(crate) fn find(words: &mut Vec<OsString>, commands: Commands) -> Option<&'static Command> {
    let mut found: Option<&'static Command> = None;
    while let Some(place) = first_operand(words) {
        let above = found.map_or("", |command| command.name);
        let is_named = |command: &&&'static Command| {
            command.is_below(above) && words.get(place).is_some_and(|word| word == OsStr::new(command.word()))
        };
        let Some(command) = commands.iter().find(is_named) else { break };
        words.remove(place);
        found = Some(command);
    }
    found
}

/// Parses the words of a command, then calls `read`. Errors of either are returned in a form that can be printed as
/// help or as a message.
pub(crate) fn parse<T>(
    command: &'static Command,
    words: Vec<OsString>,
    commands: Commands,
    read: impl FnOnce(&ParsedWords<'_>) -> Result<T, String>,
) -> Result<T, clap::Error> {
    // Only help mentions subcommands.
    let helps = words.iter().any(|word| word == "-h" || word == "--help");
    let mut clap = alone(command);
    if helps || command.prepare.is_none() {
        clap = with_below(clap, command.name, commands);
    }
    let name = OsString::from(command.word());
    let parsed = clap.try_get_matches_from_mut(std::iter::once(&name).chain(&words));
    match parsed {
        Ok(matches) => read(&ParsedWords::new(&matches, command, commands))
            .map_err(|text| clap.error(ErrorKind::ValueValidation, text)),
        Err(error) => Err(error),
    }
}

/// Returns an error with this text and the command's usage.
pub(crate) fn error(command: &Command, text: &str) -> clap::Error {
    alone(command).error(ErrorKind::ValueValidation, text)
}

/// For tests: parses a line of words with [`parse`] and returns the errors that users see. Other commands are unknown.
#[cfg(test)]
pub(crate) fn parse_line<T>(
    command: &'static Command,
    line: &str,
    read: impl FnOnce(&ParsedWords<'_>) -> Result<T, String>,
) -> Result<T, clap::Error> {
    let words: Vec<OsString> = line.split_whitespace().map(Into::into).collect();
    parse(command, words.clone(), &[], read).map_err(|refused| {
        let text = crate::hints::refusal(&refused, &words, command, &[]);
        text.map_or(refused, |text| error(command, &text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn n_without_a_number_asks_for_numbers() {
        let command = &crate::commands::sockets::COMMAND;
        for (line, kept) in [
            ("-n", ""),
            ("-nn port 80", "port 80"),
            ("-n state = listen", "state = listen"),
            ("-n 5 -nn", "-n 5"),
            ("--columns -n pid", "--columns -n pid"),
            ("-- -n", "-- -n"),
        ] {
            assert_eq!(without_numeric(words(line), command), words(kept), "{line}");
        }
    }

    #[test]
    fn operands_are_found_after_flags_and_their_values() {
        fn first(line: &str) -> Option<&str> {
            first_operand(&words(line)).and_then(|at| line.split_whitespace().nth(at))
        }
        for (line, word) in [
            ("state = listen", Some("state")),
            ("-o json state", Some("state")),
            ("-ojson state", Some("state")),
            ("-Ho json state", Some("state")),
            ("--output=json state", Some("state")),
            ("--columns -pid state", Some("state")),
            ("--watch state", Some("state")),
            ("--watch=5 --stats -w state", Some("state")),
            ("--limit 3 --nonsense state", Some("state")),
            ("-o json", None),
            ("-o json -- state", None),
            ("--limit", None),
            ("", None),
        ] {
            assert_eq!(first(line), word, "{line}");
        }
    }
}
