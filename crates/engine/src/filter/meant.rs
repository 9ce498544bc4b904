//! Guesses of a filter from words of ss, conntrack and tcpdump that are not in our language: `dst 10.1.2.3`, `tcp port
//! 80`, `listen`, `sport = :22`.

use super::ast::Cmp;
use super::bind::bind;
use super::endpoint;
use super::error::FilterError;
use super::literal;
use super::names::{PortsKind, ports};
use super::parser::parse;
use crate::nearest::find_nearest;
use crate::words;
use record::{Kind, Schema};

/// Words before a filter that request a list; a table is a list anyway.
const LISTING: &[&str] = &["list", "lst", "ls", "show", "dump", "all", "get"];
/// Most words of a guess; more are not a habit from another tool.
const WORDS_MAX: usize = 64;

/// Adds the command with the filter of `table` that was probably meant ([`suggest_filter`]) to an error without a hint.
/// `command` turns the filter, which may be empty, into a command line.
pub fn with_proposal(table: Schema, error: FilterError, command: &dyn Fn(&str) -> Option<String>) -> FilterError {
    let guess = if error.hint.is_none() { suggest_filter(table, &error.text) } else { None };
    FilterError { command: guess.and_then(|filter| command(&filter)).map(String::into_boxed_str), ..error }
}

/// Returns the filter of `table` that `text` was probably meant to be; `None` if no guess binds. Text with quotes is
/// not guessed at.
pub fn suggest_filter(table: Schema, text: &str) -> Option<String> {
    guess_filter(table, text, Guess::Near)
}

/// Like [`suggest_filter`], but only if the words have one reading: exact names and words of the table, addresses,
/// `:80`.
pub fn meant_surely(table: Schema, text: &str) -> Option<String> {
    guess_filter(table, text, Guess::Sure)
}

/// The guesses that are allowed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Guess {
    /// Accepts words only as they are spelled.
    Sure,
    /// Also accepts slips, a number as a port, and a word as a process.
    Near,
}

fn guess_filter(table: Schema, text: &str, how: Guess) -> Option<String> {
    let spaced = text.replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    if words.len() > WORDS_MAX || text.contains(['"', '\'']) {
        return None;
    }
    let mut rest = words.as_slice();
    if rest.first().is_some_and(|word| LISTING.contains(word)) {
        rest = rest.get(1..)?;
    }
    let mut guess = String::new();
    let mut is_complete = false;
    while let Some((word, after)) = rest.split_first() {
        let (part, taken) = match joining_word(word) {
            Some(joins) => (joins.to_owned(), 1),
            None => comparison(table, word, after, how)?,
        };
        let begins = joining_word(word).is_none() || matches!(*word, "not" | "!" | "(");
        if is_complete && begins {
            guess.push_str(" and");
        }
        if !guess.is_empty() {
            guess.push(' ');
        }
        guess.push_str(&part);
        is_complete = joining_word(word).is_none() || *word == ")";
        rest = rest.get(taken..)?;
    }
    let is_better = guess != text.trim() && parse(&guess).and_then(|ast| bind(table, &ast)).is_ok();
    is_better.then_some(guess)
}

/// Returns the word in our language if it joins comparisons.
fn joining_word(word: &str) -> Option<&'static str> {
    let known = [("and", "and"), ("&&", "and"), ("or", "or"), ("||", "or"), ("not", "not"), ("!", "not")];
    let known = known.into_iter().chain([("(", "("), (")", ")")]);
    known.into_iter().find(|(written, _)| word.eq_ignore_ascii_case(written)).map(|(_, joins)| joins)
}

/// Returns the comparison that begins with `word`, and its number of words.
fn comparison(table: Schema, word: &str, after: &[&str], how: Guess) -> Option<(String, usize)> {
    if let Some((name, sign, value)) = split(word) {
        return match (value, after.first()) {
            ("", Some(value)) => Some((write_comparison(table, name, sign, value, how)?, 2)),
            _ => Some((write_comparison(table, name, sign, value, how)?, 1)),
        };
    }
    // `dst port 80`, `src host 10.1.2.3`
    if let (Some(name), Some(value)) = (of_two(word, after.first().copied()), after.get(1)) {
        return Some((write_comparison(table, name, "=", value, how)?, 3));
    }
    let is_name = !words::fields(table, word).is_empty() || translate_name(word) != word;
    match after {
        [sign, value, ..] if is_sign(sign) => Some((write_comparison(table, word, sign, value, how)?, 3)),
        [signed, ..] if is_name && split(signed).is_some_and(|(name, ..)| name.is_empty()) => {
            let (_, sign, value) = split(signed)?;
            Some((write_comparison(table, word, sign, value, how)?, 2))
        }
        [value, ..] if is_name && joining_word(value).is_none() => {
            Some((write_comparison(table, word, "=", value, how)?, 2))
        }
        _ => Some((comparison_of_word(table, word, how)?, 1)),
    }
}

/// Splits `port=80` into its three parts.
fn split(word: &str) -> Option<(&str, &'static str, &str)> {
    let at = word.find(['=', '!', '<', '>', '~'])?;
    let (name, rest) = word.split_at(at);
    let (sign, _) = Cmp::SIGNS.iter().find(|(sign, _)| rest.starts_with(sign))?;
    Some((name, sign, rest.get(sign.len()..)?))
}

fn is_sign(word: &str) -> bool {
    Cmp::SIGNS.iter().any(|(sign, _)| *sign == word)
}

/// Returns our word for an end, given two words of tcpdump.
fn of_two(first: &str, second: Option<&str>) -> Option<&'static str> {
    match (first, second?) {
        ("src" | "source", "port") => Some("sport"),
        ("dst" | "dest" | "destination", "port") => Some("dport"),
        ("src" | "source", "host" | "net") => Some("saddr"),
        ("dst" | "dest" | "destination", "host" | "net") => Some("daddr"),
        _ => None,
    }
}

/// Translates words of other tools for fields with a different name here.
fn translate_name(word: &str) -> &str {
    match word {
        "net" => "addr",
        "listening" | "status" => "state",
        other => other,
    }
}

/// Returns `name sign value` in our language; `None` for an unknown name.
fn write_comparison(table: Schema, name: &str, sign: &str, value: &str, how: Guess) -> Option<String> {
    let name = if words::fields(table, name).is_empty() { translate_name(name) } else { name };
    let fields = words::fields(table, name);
    let kind = fields.first().and_then(|index| table.field(*index)).map(|field| field.kind)?;
    let (name, value) = match ports(table, name) {
        // ss writes a port as `:22`; an address refers to the ends.
        Some(PortsKind::Alone) => (name, value.trim_start_matches(['*', ':']).to_owned()),
        _ => match kind {
            Kind::Name(known) | Kind::Words(known) if !known.is_empty() => {
                (name, word_of(known, value, how)?.to_owned())
            }
            _ => (name, value.to_owned()),
        },
    };
    let is_prefix = value.contains('/') && kind == Kind::Addr && literal::prefix(&value).is_some();
    let sign = match sign {
        "=" | "==" if is_prefix => "in",
        "!=" if is_prefix => "not in",
        sign => sign,
    };
    Some(format!("{name} {sign} {value}"))
}

/// Returns the comparison that a single word stands for.
fn comparison_of_word(table: Schema, word: &str, how: Guess) -> Option<String> {
    let knows = |name: &str| !words::fields(table, name).is_empty();
    let port = word.strip_prefix(':').unwrap_or(word);
    let is_port = how == Guess::Near || port.len() < word.len();
    if knows("port") && is_port && port.parse::<u16>().is_ok() {
        return Some(format!("port = {port}"));
    }
    let addr = word.split_once('%').map_or(word, |(addr, _)| addr);
    if knows("addr") && literal::prefix(addr).is_some() {
        return Some(format!("addr {} {word}", if word.contains('/') { "in" } else { "=" }));
    }
    if knows("peer") && endpoint::parse(word).is_some() {
        return Some(format!("(source = {word} or destination = {word})"));
    }
    let of_words = |name: &str| match table.find_field(name)?.kind {
        // Short words are near too many others.
        Kind::Name(known) | Kind::Words(known) => {
            let found = word_of(known, word, how)?;
            (word.len() >= 4 || found.starts_with(&*word.to_ascii_lowercase())).then(|| format!("{name} = {found}"))
        }
        _ => None,
    };
    if word.eq_ignore_ascii_case("unreplied") && of_words("status").is_none() && knows("status") {
        return Some("not status = seen_reply".to_owned());
    }
    let is_plain =
        !word.starts_with('-') && word.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'));
    let of_process = || (how == Guess::Near && is_plain && knows("process")).then(|| format!("process = {word}"));
    ["proto", "state", "status", "nat", "event", "area"].into_iter().find_map(of_words).or_else(of_process)
}

/// Returns the word among `known` that equals or is near `written`.
fn word_of(known: &[&'static str], written: &str, how: Guess) -> Option<&'static str> {
    let plain = written.to_ascii_lowercase().replace('-', "_");
    let plain = plain.trim_end_matches("ing");
    let same = known.iter().copied().find(|word| *word == plain);
    let near = || known.iter().copied().find(|word| Some(*word) == find_nearest(plain, known.iter().copied()));
    same.or_else(|| if how == Guess::Near { near() } else { None })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use record::rows::{Nat, Routes, Sockets};

    #[test]
    fn issue_15_words_of_other_tools_lead_to_filters() {
        for (written, guess) in [
            ("listen", "state = listen"),
            ("state established", "state = established"),
            ("state estab", "state = established"),
            ("listening", "state = listen"),
            ("dst 10.1.2.3", "dst = 10.1.2.3"),
            ("dst 10.0.0.0/8", "dst in 10.0.0.0/8"),
            ("sport = :22", "sport = 22"),
            ("( sport = :22 or dport = :22 )", "( sport = 22 or dport = 22 )"),
            ("tcp port 80", "proto = tcp and port = 80"),
            ("host 10.1.2.3 and port 443", "host = 10.1.2.3 and port = 443"),
            ("dst port 53", "dport = 53"),
            ("net 10.0.0.0/8", "addr in 10.0.0.0/8"),
            ("8080", "port = 8080"),
            (":8080", "port = 8080"),
            ("10.1.2.3", "addr = 10.1.2.3"),
            ("10.1.2.3:443", "(source = 10.1.2.3:443 or destination = 10.1.2.3:443)"),
            ("tcp listen", "proto = tcp and state = listen"),
            ("nginx", "process = nginx"),
            ("list state=listen", "state = listen"),
            ("peer=10.0.0.0/8 close-wait", "peer in 10.0.0.0/8 and state = close_wait"),
            ("not listen", "not state = listen"),
        ] {
            assert_eq!(suggest_filter(Schema::from_table::<Sockets>(), written).as_deref(), Some(guess), "{written}");
        }
        assert_eq!(
            suggest_filter(Schema::from_table::<Nat>(), "list dport 53 unreplied").as_deref(),
            Some("dport = 53 and not status = seen_reply")
        );
        for none in ["process = \"a b\" listen", "state = listen", "a b c d = =", "-t"] {
            assert_eq!(suggest_filter(Schema::from_table::<Sockets>(), none), None, "{none}");
        }
        assert_eq!(suggest_filter(Schema::from_table::<Routes>(), "8080"), None);
        for (written, guess) in [
            ("port 80", Some("port = 80")),
            ("dst 10.1.2.3", Some("dst = 10.1.2.3")),
            ("tcp listening", Some("proto = tcp and state = listen")),
            (":80", Some("port = 80")),
            ("10.1.2.3", Some("addr = 10.1.2.3")),
            ("8080", None),
            ("lisen", None),
            ("nginx", None),
            ("state lisen", None),
        ] {
            assert_eq!(meant_surely(Schema::from_table::<Sockets>(), written).as_deref(), guess, "{written}");
        }
        let error = parse("lst").unwrap_err();
        assert_eq!(
            with_proposal(Schema::from_table::<Nat>(), error, &|filter| Some(format!("nat {filter}")))
                .command
                .as_deref(),
            Some("nat ")
        );
    }
}
