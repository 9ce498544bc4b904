//! Splits the words after a command, some of which belong to another tool.

use crate::command::Command;
use crate::flags::defs::{FLAGS, Flag, Takes};
use std::ffi::OsString;

/// A part of the command line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WordPiece {
    /// A flag of the command.
    Own {
        /// Its long name.
        long: &'static str,
        /// Its value.
        value: Option<String>,
        /// The words as the user wrote them.
        words: Vec<String>,
    },
    /// Letters of one word that are not flags of the command.
    Letters(String),
    /// A long option that the command does not have, without its dashes.
    Long(String),
    /// Any other word.
    Operand(String),
}

/// Splits the words into pieces; `None` if a word is not UTF-8. A letter counts as the command's own only if the flag
/// takes its value: `-n 5` is a limit, `-n` and `-np` are not.
pub(super) fn pieces(words: &[OsString], command: &Command) -> Option<Vec<WordPiece>> {
    let words: Vec<&str> = words.iter().map(|word| word.to_str()).collect::<Option<_>>()?;
    let (mut found, mut rest) = (Vec::new(), words.as_slice());
    while let Some((word, after)) = rest.split_first() {
        rest = after;
        if *word == "--" {
            found.extend(rest.iter().map(|word| WordPiece::Operand((*word).to_owned())));
            break;
        }
        let took_next = match word.strip_prefix("--") {
            Some(long) => of_long(word, long, rest.first().copied(), command, &mut found),
            None if word.len() > 1 && word.starts_with('-') => {
                of_letters(word.get(1..)?, rest.first().copied(), command, &mut found)
            }
            None => {
                found.push(WordPiece::Operand((*word).to_owned()));
                false
            }
        };
        rest = rest.get(usize::from(took_next)..).unwrap_or_default();
    }
    Some(found)
}

/// Returns the command's flags.
fn own(command: &Command) -> impl Iterator<Item = &'static Flag> {
    let scope = command.scope;
    FLAGS.iter().filter(move |flag| flag.scope.meets(scope))
}

/// Adds a long option. Returns true if the next word is its value.
fn of_long(word: &str, long: &str, next: Option<&str>, command: &Command, found: &mut Vec<WordPiece>) -> bool {
    let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
    let Some(flag) = own(command).find(|flag| flag.long == name) else {
        found.push(WordPiece::Long(long.to_owned()));
        return false;
    };
    let next = next.filter(|_| value.is_none() && flag.takes.takes_next_word());
    let words = [word].into_iter().chain(next).map(str::to_owned).collect();
    found.push(WordPiece::Own { long: flag.long, value: value.or(next).map(str::to_owned), words });
    next.is_some()
}

/// Adds a cluster of letters. Returns true if the next word is the value of the last letter.
fn of_letters(letters: &str, next: Option<&str>, command: &Command, found: &mut Vec<WordPiece>) -> bool {
    let mut others = String::new();
    let mut took_next = false;
    for (at, letter) in letters.char_indices() {
        let glued = letters.get(at + letter.len_utf8()..).filter(|rest| !rest.is_empty());
        let flag = own(command).find(|flag| flag.short == Some(letter));
        let value = glued.or(next).filter(|_| flag.is_some_and(|flag| flag.takes.takes_next_word()));
        let Some(flag) = flag.filter(|flag| fits(flag.takes, flag.long, value)) else {
            others.push(letter);
            continue;
        };
        let words = [format!("-{letter}")].into_iter().chain(value.map(str::to_owned)).collect();
        found.push(WordPiece::Own { long: flag.long, value: value.map(str::to_owned), words });
        if value.is_some() {
            took_next = glued.is_none();
            break;
        }
    }
    if !others.is_empty() {
        found.push(WordPiece::Letters(others));
    }
    took_next
}

/// True if a one-letter flag takes the value.
fn fits(takes: Takes, long: &str, value: Option<&str>) -> bool {
    match (takes, value) {
        (Takes::Word(known), Some(value)) => known.contains(&value),
        (Takes::Value(_), Some(value)) if long == "limit" => value.bytes().all(|byte| byte.is_ascii_digit()),
        (takes, value) => value.is_some() || !takes.takes_next_word(),
    }
}
