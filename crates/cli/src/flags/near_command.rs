//! Finds the command that the second word of a command line misspells.

use super::parser::first_operand;
use crate::command::{Command, Commands};
use std::ffi::OsString;

/// The subcommand of `command` that its first operand misspells: `evnts` for `nat`.
pub(crate) fn near_command(words: &[OsString], command: &Command, commands: Commands) -> Option<&'static Command> {
    let word = words.get(first_operand(words)?)?.to_str()?;
    let mut below = commands.iter().copied().filter(|other| other.is_below(command.name));
    below.find(|other| is_slip(word.as_bytes(), other.word().as_bytes()))
}

/// True if `a` and `b` differ by one added, missing or replaced letter or by two swapped letters, and both have at
/// least three letters.
pub(crate) fn is_slip(a: &[u8], b: &[u8]) -> bool {
    let same_from = |a: &mut dyn Iterator<Item = &u8>, b: &mut dyn Iterator<Item = &u8>| -> usize {
        a.zip(b).take_while(|(a, b)| a == b).count()
    };
    let (shorter, longer) = (a.len().min(b.len()), a.len().max(b.len()));
    let before = same_from(&mut a.iter(), &mut b.iter());
    let behind = same_from(&mut a.iter().rev(), &mut b.iter().rev()).min(shorter - before.min(shorter));
    let differs = longer - before - behind;
    let swapped = || match (a.get(before..before + 2), b.get(before..before + 2)) {
        (Some([a, b]), Some([c, d])) => a == d && b == c,
        _ => false,
    };
    shorter >= 3 && longer - shorter <= 1 && (differs <= 1 || differs == 2 && shorter == longer && swapped())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issue_15_a_slip_is_one_letter_or_two_that_are_swapped() {
        for (a, b) in [("jsn", "json"), ("json2", "json"), ("lmiit", "limit"), ("colums", "columns"), ("sart", "sort")]
        {
            assert!(is_slip(a.as_bytes(), b.as_bytes()) && is_slip(b.as_bytes(), a.as_bytes()), "{a} {b}");
        }
        for (a, b) in
            [("counts", "columns"), ("to", "top"), ("ports", "sort"), ("", "by"), ("fix", "for"), ("aaa", "a")]
        {
            assert!(!is_slip(a.as_bytes(), b.as_bytes()), "{a} {b}");
        }
    }
}
