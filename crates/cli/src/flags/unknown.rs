//! Messages about options that do not exist: the one that was meant, a filter, or the face of the tool that has it.

use super::defs::{FLAGS, Flag};
use crate::command::{Command, Commands};
use engine::nearest;
use std::ffi::OsString;

/// Options of other tools and what is done here instead; only where the flag that the text begins with is taken.
const ELSEWHERE: &[(&str, &str)] = &[
    ("--dry-run", "without --yes nothing is done, only shown: leave it out"),
    ("--list", "rows are listed without an option: leave it out"),
    ("--count", "--by FIELD counts rows by a field, --limit N ends after N of them"),
    ("--group-by", "--by FIELD makes a row for each value of a field"),
    ("--order", "--sort FIELD orders by a field"),
    ("--order-by", "--sort FIELD orders by a field"),
    ("--duration", "--for SECONDS ends after so long"),
    ("--timeout", "--for SECONDS ends after so long"),
    ("--time", "--for SECONDS ends after so long"),
    ("--filter", "the filter stands without an option: leave it out"),
    ("--format", "-o chooses the format"),
    ("--fields", "--columns chooses the columns"),
    ("--numeric", "addresses and ports are numbers unless --resolve asks for names: leave it out"),
];

/// Commands and the faces of the tools that their users know.
const FACES: &[(&str, &str)] =
    &[("sockets", "ss"), ("listeners", "ss"), ("nat", "conntrack"), ("capture", "tcpdump"), ("flows", "lstf")];

/// Switches of tools and the fields of the filter that they choose by.
const SWITCHES: &[(&str, &str, &str)] = &[
    ("nat", "-s", "src"),
    ("nat", "-d", "dst"),
    ("nat", "-p", "proto"),
    ("nat delete", "-s", "src"),
    ("nat delete", "-d", "dst"),
    ("nat delete", "-p", "proto"),
];

/// The message where `command` does not take `word`; `words` are all that were given.
pub(crate) fn refusal(word: &str, words: &[OsString], command: &Command, commands: Commands) -> String {
    let word = word.split('=').next().unwrap_or_default();
    let is_it = |flag: &&Flag| match word.strip_prefix("--") {
        Some(long) => flag.long == long,
        None => word.strip_prefix('-').is_some_and(|letter| flag.short.is_some_and(|short| letter.starts_with(short))),
    };
    let because = |text: &str| format!("there is no {} of `netwren {}`: {text}", word.escape_debug(), command.name);
    let as_filter = |name: &str| {
        let value = value_of(word, words);
        because(&format!("it is a field of the filter: netwren {} '{name} = {value}'", command.name))
    };
    if let Some((.., field)) = SWITCHES.iter().find(|(of, switch, _)| *of == command.name && *switch == word) {
        return as_filter(field);
    }
    if let Some(below) = word.strip_prefix("--").and_then(|name| below(name, command, commands)) {
        return because(&format!("it is a command: netwren {below}"));
    }
    if let Some(long) = FLAGS.iter().find(is_it).map(|flag| flag.long) {
        if let Some((_, text)) = command.refusals.iter().find(|(refused, _)| *refused == long) {
            return (*text).to_owned();
        }
        return of_others(long, command, commands);
    }
    let own = |long: &str| FLAGS.iter().any(|flag| flag.long == long && flag.scope.meets(command.scope));
    let is_taken = |text: &str| match text.strip_prefix("--").and_then(|text| text.split(' ').next()) {
        Some(long) => own(long),
        None => !text.starts_with("-o") || own("output"),
    };
    if let Some((_, text)) = ELSEWHERE.iter().find(|(other, text)| *other == word && is_taken(text)) {
        let others: Vec<OsString> = words.iter().filter(|given| *given != word).cloned().collect();
        let without = format!("\nperhaps: netwren {} {}", command.name, line(&others));
        return because(text) + if text.ends_with("leave it out") { without.trim_end() } else { "" };
    }
    if let Some(name) = word.strip_prefix("--").map(|name| name.replace('-', "_")) {
        let knows = |name: &str| command.tables.first().is_some_and(|table| engine::filter::knows(*table, name));
        let single = name.trim_end_matches('s');
        match () {
            () if knows(&name) => return as_filter(&name),
            () if own(&single.replace('_', "-")) => return because(&format!("did you mean --{single}?")),
            () if knows(single) => return as_filter(single),
            () => {}
        }
        if let Some(near) = near_flag(&name, command) {
            return because(&format!("did you mean --{near}?"));
        }
    }
    let face = FACES.iter().find(|(of, _)| *of == command.name).filter(|_| !word.starts_with("--"));
    match face {
        Some((_, face)) => {
            because(&format!("switches of {face} go with `netwren {face}`: netwren {face} {}", line(words)))
        }
        None => because(&format!("`netwren {} --help` lists what there is", command.name)),
    }
}

/// The command below `command` that has the option's name.
fn below<'c>(name: &str, command: &Command, commands: Commands) -> Option<&'c str> {
    let wanted = format!("{} {name}", command.name);
    commands.iter().find(|other| other.name == wanted).map(|other| other.name)
}

/// The flag of the command that `name` is a slip of: its beginning, its name with something behind it, or one slip of
/// the fingers.
fn near_flag(name: &str, command: &Command) -> Option<&'static str> {
    let own = || FLAGS.iter().filter(|flag| flag.scope.meets(command.scope)).map(|flag| flag.long);
    let is_longer = |flag: &&str| {
        let rest = name.strip_prefix(*flag).filter(|_| flag.len() >= 3);
        rest.is_some_and(|rest| rest.starts_with('_') || rest.len() == 1)
    };
    let near = own().find(is_longer).or_else(|| nearest(name, own()))?;
    let plain = near.replace('-', "_");
    let is_beginning = name.len() >= 3 && plain.starts_with(name);
    (is_longer(&near) || is_beginning || is_slip(name.as_bytes(), plain.as_bytes())).then_some(near)
}

/// True if one letter more, less or another one, or two swapped ones, make `a` of `b`, of three letters at least.
pub(super) fn is_slip(a: &[u8], b: &[u8]) -> bool {
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

/// The message about an option of other commands.
fn of_others(long: &str, command: &Command, commands: Commands) -> String {
    let takes = |other: &&&Command| FLAGS.iter().any(|flag| flag.long == long && flag.scope.meets(other.scope));
    let others: Vec<String> = commands.iter().filter(takes).map(|other| format!("`{}`", other.name)).collect();
    let belongs = if others.is_empty() { "`netwren` alone".to_owned() } else { others.join(", ") };
    format!("--{long} does not go with `{}`: it belongs to {belongs}", command.name)
}

/// The value that was given with an option, as a filter has it.
fn value_of(option: &str, words: &[OsString]) -> String {
    let mut words = words.iter().filter_map(|word| word.to_str());
    let value = words.find_map(|word| match word.strip_prefix(option) {
        Some("") => Some(""),
        Some(rest) => rest.strip_prefix('='),
        None => None,
    });
    let value = match value {
        Some("") => words.next().filter(|next| !next.starts_with('-')),
        value => value,
    };
    let is_plain = |text: &&str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._:/-".contains(&b));
    value.filter(is_plain).unwrap_or("…").to_owned()
}

/// The words as a line for the shell, if they are short and of one line.
pub(crate) fn line(words: &[OsString]) -> String {
    let is_plain = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._:/-=".contains(&b));
    let can_be_quoted = |text: &&str| text.bytes().all(|b| matches!(b, b' '..=b'~') && b != b'\'');
    let quoted = |text: &str| if is_plain(text) { text.to_owned() } else { format!("'{text}'") };
    let words: Option<Vec<String>> = words.iter().map(|word| word.to_str().filter(can_be_quoted).map(quoted)).collect();
    words.map_or_else(|| "…".to_owned(), |words| words.join(" "))
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
