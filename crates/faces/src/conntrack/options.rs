//! Commands, switches, and their valid combinations.

use super::args::{Long, Value};
use super::stop::Stop;
use crate::getopt;

/// The action of a command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Command {
    List,
    Create,
    Update,
    Delete,
    Get,
    Flush,
    Event,
    Version,
    Help,
    ExpList,
    ExpCreate,
    ExpDelete,
    ExpGet,
    ExpFlush,
    ExpEvent,
    Count,
    ExpCount,
    Stats,
    ExpStats,
    Add,
}

impl Command {
    /// The command of a letter, for entries or for expectations; None if the letter is not a command.
    pub(super) fn of(letter: u8, expectations: bool) -> Option<Command> {
        use Command::{
            Add, Count, Create, Delete, Event, ExpCount, ExpCreate, ExpDelete, ExpEvent, ExpFlush, ExpGet, ExpList,
            ExpStats, Flush, Get, Help, List, Stats, Update, Version,
        };
        let (entries, of_expectations) = match letter {
            b'L' => (List, Some(ExpList)),
            b'I' => (Create, Some(ExpCreate)),
            b'D' => (Delete, Some(ExpDelete)),
            b'G' => (Get, Some(ExpGet)),
            b'F' => (Flush, Some(ExpFlush)),
            b'E' => (Event, Some(ExpEvent)),
            b'V' => (Version, Some(Version)),
            b'h' => (Help, Some(Help)),
            b'C' => (Count, Some(ExpCount)),
            b'S' => (Stats, Some(ExpStats)),
            b'U' => (Update, None),
            b'A' => (Add, None),
            _ => return None,
        };
        if expectations { of_expectations } else { Some(entries) }
    }

    /// The rules for each switch, in the order of [`NAMES`]: 0 forbidden, 1 required, 2 optional, 3 one pair is
    /// required.
    fn switches(self) -> &'static str {
        match self {
            Command::List => "22222022000220202222202220022",
            Command::Create | Command::Add => "33331120000002200220000202022",
            Command::Update => "22222220000220222222000022200",
            Command::Delete => "22222220000220222222000220022",
            Command::Get => "33331000000000020002000020000",
            Command::Flush => "00000000000000002000000000000",
            Command::Event => "22222000200220202222222220022",
            Command::Help => "00002000000000000000000000000",
            Command::ExpList => "00000000000000002002000000000",
            Command::ExpCreate => "11221120011110000000000000000",
            Command::ExpDelete | Command::ExpGet => "11221000000000000000000000000",
            Command::ExpEvent => "00000000000000000002000000000",
            _ => NONE,
        }
    }
}

/// Rules for a command line without a command: every switch is forbidden.
const NONE: &str = "00000000000000000000000000000";

/// One bit per switch.
pub(super) mod switch {
    pub(in super::super) const ORIG_SRC: u32 = 1;
    pub(in super::super) const ORIG_DST: u32 = 1 << 1;
    pub(in super::super) const REPLY_SRC: u32 = 1 << 2;
    pub(in super::super) const REPLY_DST: u32 = 1 << 3;
    pub(in super::super) const PROTO: u32 = 1 << 4;
    pub(in super::super) const TIMEOUT: u32 = 1 << 5;
    pub(in super::super) const STATUS: u32 = 1 << 6;
    pub(in super::super) const ZERO: u32 = 1 << 7;
    pub(in super::super) const EVENT_MASK: u32 = 1 << 8;
    pub(in super::super) const EXP_SRC: u32 = 1 << 9;
    pub(in super::super) const EXP_DST: u32 = 1 << 10;
    pub(in super::super) const MASK_SRC: u32 = 1 << 11;
    pub(in super::super) const MASK_DST: u32 = 1 << 12;
    pub(in super::super) const MARK: u32 = 1 << 14;
    pub(in super::super) const ID: u32 = 1 << 15;
    pub(in super::super) const FAMILY: u32 = 1 << 16;
    pub(in super::super) const SRC_NAT: u32 = 1 << 17;
    pub(in super::super) const DST_NAT: u32 = 1 << 18;
    pub(in super::super) const OUTPUT: u32 = 1 << 19;
    pub(in super::super) const SECMARK: u32 = 1 << 20;
    pub(in super::super) const BUFFER_SIZE: u32 = 1 << 21;
    pub(in super::super) const ANY_NAT: u32 = 1 << 22;
    pub(in super::super) const ZONE: u32 = 1 << 23;
    pub(in super::super) const LABEL: u32 = 1 << 24;
    pub(in super::super) const ADD_LABEL: u32 = 1 << 25;
    pub(in super::super) const DEL_LABEL: u32 = 1 << 26;
    pub(in super::super) const ORIG_ZONE: u32 = 1 << 27;
    pub(in super::super) const REPLY_ZONE: u32 = 1 << 28;
    pub(in super::super) const ORIG: u32 = ORIG_SRC | ORIG_DST;
    pub(in super::super) const REPLY: u32 = REPLY_SRC | REPLY_DST;
    /// The values by which the tool compares entries.
    pub(in super::super) const COMPARISON: u32 =
        PROTO | ORIG | REPLY | MARK | SECMARK | STATUS | ID | ZONE | LABEL | ORIG_ZONE | REPLY_ZONE;
}

/// Names of the switches in messages.
#[rustfmt::skip]
const NAMES: [&str; 29] = [
    "src", "dst", "reply-src", "reply-dst", "protonum", "timeout", "status", "zero", "event-mask", "tuple-src",
    "tuple-dst", "mask-src", "mask-dst", "nat-range", "mark", "id", "family", "src-nat", "dst-nat", "output", "secmark",
    "buffer-size", "any-nat", "zone", "label", "label-add", "label-del", "orig-zone", "reply-zone",
];

const fn long(name: &'static str, value: Value, letter: u8) -> Long {
    Long { name, value, code: letter as u16 }
}

/// Long names that are available without a protocol.
#[rustfmt::skip]
pub(super) const LONGS: &[Long] = &[
    long("dump", Value::Glued, b'L'), long("create", Value::Glued, b'I'), long("add", Value::Glued, b'A'),
    long("delete", Value::Glued, b'D'), long("update", Value::Glued, b'U'), long("get", Value::Glued, b'G'),
    long("flush", Value::Glued, b'F'), long("event", Value::Glued, b'E'), long("counter", Value::Glued, b'C'),
    long("stats", Value::None, b'S'), long("version", Value::None, b'V'), long("help", Value::None, b'h'),
    long("orig-src", Value::Needed, b's'), long("src", Value::Needed, b's'), long("orig-dst", Value::Needed, b'd'),
    long("dst", Value::Needed, b'd'), long("reply-src", Value::Needed, b'r'), long("reply-dst", Value::Needed, b'q'),
    long("protonum", Value::Needed, b'p'), long("timeout", Value::Needed, b't'), long("status", Value::Needed, b'u'),
    long("zero", Value::None, b'z'), long("event-mask", Value::Needed, b'e'), long("tuple-src", Value::Needed, b'['),
    long("tuple-dst", Value::Needed, b']'), long("mask-src", Value::Needed, b'{'),
    long("mask-dst", Value::Needed, b'}'), long("nat-range", Value::Needed, b'a'), long("mark", Value::Needed, b'm'),
    long("secmark", Value::Needed, b'c'), long("id", Value::Glued, b'i'), long("family", Value::Needed, b'f'),
    long("src-nat", Value::Glued, b'n'), long("dst-nat", Value::Glued, b'g'), long("output", Value::Needed, b'o'),
    long("buffer-size", Value::Needed, b'b'), long("any-nat", Value::Glued, b'j'), long("zone", Value::Needed, b'w'),
    long("label", Value::Needed, b'l'), long("label-add", Value::Needed, b'<'), long("label-del", Value::Glued, b'>'),
    long("orig-zone", Value::Needed, b'('), long("reply-zone", Value::Needed, b')'),
];

/// The long name for a letter.
pub(super) fn long_name(letter: u8) -> &'static str {
    LONGS.iter().find(|long| long.code == u16::from(letter)).map_or("unknown", |long| long.name)
}

/// Checks the given switches against a command.
pub(super) fn check(command: Option<Command>, switches: u32) -> Result<(), Stop> {
    let rules = command.map_or(NONE, Command::switches);
    let pairs = [switch::ORIG, switch::REPLY];
    let words = ["you have to specify `--src' and `--dst'", "you have to specify `--reply-src' and `--reply-dst'"];
    check_against(rules, &NAMES, switches, Some((pairs, words)))
}

/// Checks the switch bits in `switches` against the rules of a command. If a rule is 3, one of the pairs must be
/// present.
pub(super) fn check_against(
    rules: &str,
    names: &[&str],
    switches: u32,
    pairs: Option<([u32; 2], [&str; 2])>,
) -> Result<(), Stop> {
    for (bit, (rule, name)) in rules.bytes().zip(names).enumerate() {
        match (rule, switches >> bit & 1) {
            (b'1', 0) => return Err(Stop::usage(format!("You need to supply the `--{name}' option for this command"))),
            (b'0', 1) => return Err(Stop::usage(format!("Illegal option `--{name}' with this command"))),
            _ => {}
        }
    }
    let (Some((pairs, words)), true) = (pairs, rules.contains('3')) else { return Ok(()) };
    if pairs.iter().any(|pair| switches & pair == *pair) {
        return Ok(());
    }
    // The pair of which a part was given, else the first.
    let begun = pairs.iter().position(|pair| switches & pair != 0).unwrap_or(0);
    Err(Stop::usage(words.get(begun).copied().unwrap_or_default()))
}

/// The switches with their dashes, for completion.
pub(super) fn written() -> Vec<String> {
    let letter = |long: &Long| u8::try_from(long.code).unwrap_or(0);
    LONGS.iter().flat_map(|long| getopt::names_of(letter(long), long.name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_as_long_as_the_names() {
        for letter in *b"LIDGFEVhCSUA" {
            for command in [false, true].into_iter().filter_map(|table| Command::of(letter, table)) {
                assert_eq!(command.switches().len(), NAMES.len(), "{command:?}");
            }
        }
    }
}
