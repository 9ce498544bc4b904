//! Completes words inside a filter.

use super::names;
use super::proposal::Proposal;
use crate::command::Command;
use record::{FieldInfo, Kind, Show};

/// Words for ends that are proposed with the fields, if a table supports them.
const ENDS: [(&str, &str); 6] = [
    ("port", "port of either endpoint"),
    ("addr", "address of either endpoint"),
    ("local", "local endpoint: address, port or both"),
    ("peer", "peer: address, port or both"),
    ("source", "source: address, port or both"),
    ("destination", "destination: address, port or both"),
];

/// The next element of the filter.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Expected {
    Field,
    /// An operator after this field.
    Operator(String),
    /// A value of this field.
    Value(String),
    /// `and` or `or`.
    Joint,
}

/// The fields available in a command's filters and lists.
pub(super) fn fields(command: &'static Command) -> Vec<FieldInfo> {
    let mut fields: Vec<FieldInfo> = Vec::new();
    for field in command.tables.iter().flat_map(|table| table.fields()) {
        if fields.iter().all(|known| known.name != field.name) {
            fields.push(field);
        }
    }
    fields
}

/// The proposals for the word `current` of a filter that begins with `before`.
pub(super) fn proposals(command: &'static Command, before: &str, current: &str) -> Vec<Proposal> {
    let begun =
        current.rfind(|c: char| !is_part_of_word(c)).map_or(0, |at| at + current.get(at..).map_or(1, first_length));
    let (written, word) = current.split_at_checked(begun).unwrap_or(("", current));
    let expected = expected(&format!("{before} {written}"));
    let words = match expected {
        Expected::Field => of_fields(command, word),
        Expected::Operator(name) => operators(command, &name),
        Expected::Value(name) => values(command, &name),
        Expected::Joint => ["and", "or"].map(Proposal::named).to_vec(),
    };
    words.into_iter().map(|word| word.behind(written)).collect()
}

fn first_length(text: &str) -> usize {
    text.chars().next().map_or(1, char::len_utf8)
}

fn is_part_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | ':' | '/' | '@')
}

/// Words for ends come first. For an empty word, fields that are shown only on request are left out, because there are
/// many.
fn of_fields(command: &'static Command, word: &str) -> Vec<Proposal> {
    let fields = fields(command);
    let is_no_field = |word: &&(&str, &str)| fields.iter().all(|field| field.name != word.0);
    let is_known =
        |word: &&(&str, &str)| command.tables.iter().any(|table| engine::filter::is_known_name(*table, word.0));
    let ends = ENDS.iter().filter(is_no_field).filter(is_known);
    let is_proposed = |field: &&FieldInfo| !word.is_empty() || field.show != Show::Asked;
    let words = fields.iter().filter(is_proposed).map(|field| Proposal::new(field.name, field.doc));
    let words = ends.map(|(word, about)| Proposal::new(*word, *about)).chain(words);
    words.chain([Proposal::new("not", "negates the comparison that follows")]).collect()
}

fn kind_of(command: &'static Command, name: &str) -> Option<Kind> {
    fields(command).iter().find(|field| field.name == name).map(|field| field.kind)
}

fn operators(command: &'static Command, name: &str) -> Vec<Proposal> {
    let kind = kind_of(command, name);
    let more: &[&str] = match kind {
        Some(Kind::Text | Kind::Texts) => &["~", "!~"],
        Some(kind) if kind.is_number() => &[">", "<", ">=", "<="],
        _ => &[],
    };
    ["=", "!=", "in"].iter().chain(more).map(|word| Proposal::named(*word)).collect()
}

fn values(command: &'static Command, name: &str) -> Vec<Proposal> {
    let words: &[&str] = match kind_of(command, name) {
        Some(Kind::Name(words) | Kind::Words(words)) => words,
        Some(Kind::Bool) => &["true", "false"],
        _ => &[],
    };
    let names = match name {
        _ if !words.is_empty() => words.iter().map(|word| Proposal::named(*word)).collect(),
        "netns" => names::namespaces(),
        "container" => names::containers(),
        "user" => names::users(),
        "process" => names::processes(),
        _ => Vec::new(),
    };
    // Other names require quotes inside the filter.
    names.into_iter().filter(|name| name.word.chars().all(is_part_of_word)).collect()
}

/// The element that follows this part of a filter.
fn expected(text: &str) -> Expected {
    let (mut expected, mut is_list, mut rest) = (Expected::Field, false, text.trim_start());
    while let Some(c) = rest.chars().next() {
        let (token, behind) = rest.split_at_checked(token_length(rest, c)).unwrap_or((rest, ""));
        rest = behind.trim_start();
        expected = match (expected, token) {
            (Expected::Field, "not" | "(" | "!") => Expected::Field,
            (Expected::Field, name) => Expected::Operator(name.to_owned()),
            (Expected::Operator(name), "not") => Expected::Operator(name),
            (Expected::Operator(name), "in") => {
                is_list = true;
                Expected::Value(name)
            }
            (Expected::Operator(name), _) => Expected::Value(name),
            (Expected::Value(name), "(" | ",") => Expected::Value(name),
            (Expected::Value(_), ")") => {
                is_list = false;
                Expected::Joint
            }
            (Expected::Value(name), _) if is_list => Expected::Value(name),
            (Expected::Value(_), _) => Expected::Joint,
            (Expected::Joint, "and" | "or" | "&&" | "||") => Expected::Field,
            (Expected::Joint, _) => Expected::Joint,
        };
    }
    expected
}

/// The length of the token that starts with `c`.
fn token_length(rest: &str, c: char) -> usize {
    let end_of = |is_part: &dyn Fn(char) -> bool| rest.find(|c| !is_part(c)).unwrap_or(rest.len());
    match c {
        '"' | '\'' => rest.char_indices().skip(1).find(|(_, next)| *next == c).map_or(rest.len(), |(at, _)| at + 1),
        '(' | ')' | ',' => 1,
        _ if "=!<>~&|".contains(c) => end_of(&|c| "=!<>~&|".contains(c)),
        _ if is_part_of_word(c) => end_of(&is_part_of_word),
        _ => c.len_utf8(),
    }
}
