//! Handles switches of ss, conntrack, tcpdump and lstf typed at our commands. Proposes the line of the tool's face, or
//! our own line that asks the same.

use super::own_line;
use super::pieces::{WordPiece, pieces};
use crate::command::{Command, Commands};
use crate::flags::shell_line::shell_line;
use std::ffi::OsString;

/// The meaning of a tool's letter in a line of ours.
#[derive(Clone, Copy)]
enum LetterMeaning {
    /// The letter asks for something that is shown anyway.
    Usual,
    /// The letter selects a value of `proto`.
    Proto(&'static str),
    /// The letter adds this test to the filter.
    Test(&'static str),
    /// The letter tests this field against the next word.
    Field(&'static str),
    /// The letter selects the command `listeners`.
    Listening,
}

/// A tool whose users may try one of our commands.
struct Tool {
    /// Our commands that its users may try.
    commands: &'static [&'static str],
    /// The name of its face; empty if no face does what the command does.
    name: &'static str,
    /// Long names of our flags, each with the tool's equivalent switch.
    flags: &'static [(&'static str, &'static str)],
    /// The tool's letters, each with its meaning in our words.
    letters: &'static [(char, LetterMeaning)],
}

const OF_SS: &[(char, LetterMeaning)] = &[
    ('t', LetterMeaning::Proto("tcp")),
    ('u', LetterMeaning::Proto("udp")),
    ('w', LetterMeaning::Proto("raw")),
    ('x', LetterMeaning::Proto("unix")),
    ('S', LetterMeaning::Proto("sctp")),
    ('M', LetterMeaning::Proto("mptcp")),
    ('4', LetterMeaning::Test("family = inet")),
    ('6', LetterMeaning::Test("family = inet6")),
    ('l', LetterMeaning::Listening),
    ('a', LetterMeaning::Usual),
    ('n', LetterMeaning::Usual),
    ('p', LetterMeaning::Usual),
];
const OF_CONNTRACK: &[(char, LetterMeaning)] = &[
    ('L', LetterMeaning::Usual),
    ('s', LetterMeaning::Field("src")),
    ('d', LetterMeaning::Field("dst")),
    ('p', LetterMeaning::Field("proto")),
    ('n', LetterMeaning::Usual),
];
const TOOLS: &[Tool] = &[
    Tool {
        commands: &["sockets", "listeners"],
        name: "ss",
        flags: &[("netns", "-N"), ("no-header", "-H")],
        letters: OF_SS,
    },
    Tool { commands: &["nat"], name: "conntrack", flags: &[], letters: OF_CONNTRACK },
    Tool { commands: &["nat delete"], name: "", flags: &[], letters: OF_CONNTRACK },
    Tool {
        commands: &["capture"],
        name: "tcpdump",
        flags: &[
            ("limit", "-c"),
            ("interface", "-i"),
            ("read", "-r"),
            ("write", "-w"),
            ("snaplen", "-s"),
            ("no-promiscuous", "-p"),
            ("relinquish-privileges", "-Z"),
            ("verbose", "-v"),
            ("time-stamp-type", "-j"),
        ],
        letters: &[],
    },
    Tool { commands: &["flows"], name: "lstf", flags: &[], letters: &[] },
];

fn tool_of(command: &Command) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.commands.contains(&command.name))
}

/// Returns the face whose users may try the command.
pub(super) fn of(command: &Command) -> Option<&'static str> {
    tool_of(command).map(|tool| tool.name).filter(|name| !name.is_empty())
}

/// True if the word, `-x` or a cluster, starts with a switch of the tool that our line supports or the face has.
pub(super) fn has(word: &str, command: &Command) -> bool {
    let Some((tool, letter)) = tool_of(command).zip(word.chars().nth(1)) else { return false };
    let is_of_face = || faces::find(tool.name).is_some_and(|face| face.switches().contains(&format!("-{letter}")));
    tool.letters.iter().any(|(known, _)| *known == letter) || is_of_face()
}

/// Returns the face's line for these words after `command`, or else ours; `None` if neither can express them.
pub(super) fn line(words: &[OsString], command: &'static Command, commands: Commands) -> Option<String> {
    let (tool, pieces) = (tool_of(command)?, pieces(words, command)?);
    of_face(tool, command, &pieces).or_else(|| of_ours(tool, command, pieces, commands))
}

fn of_face(tool: &Tool, command: &Command, pieces: &[WordPiece]) -> Option<String> {
    let mut line: Vec<OsString> = Vec::new();
    // The interface `any` has no monitor mode.
    let is_monitor = |piece: &WordPiece| matches!(piece, WordPiece::Letters(letters) if letters.contains('I'));
    let is_placed = |piece: &WordPiece| matches!(piece, WordPiece::Own { long: "interface" | "read", .. });
    match command.name {
        "listeners" => line.push("-l".into()),
        // tcpdump uses the first interface unless one is named.
        "capture" if pieces.iter().any(is_monitor) => return None,
        "capture" if !pieces.iter().any(is_placed) => line.extend(["-i".into(), "any".into()]),
        _ => {}
    }
    for piece in pieces {
        match piece {
            WordPiece::Own { long, value, .. } => {
                line.push(tool.flags.iter().find(|(ours, _)| ours == long)?.1.into());
                line.extend(value.as_ref().map(OsString::from));
            }
            WordPiece::Letters(letters) => line.push(format!("-{letters}").into()),
            // lstf ignores words that are not switches.
            WordPiece::Operand(word) if tool.name != "lstf" => line.push(word.into()),
            WordPiece::Operand(_) | WordPiece::Long(_) => return None,
        }
    }
    let words = shell_line(&line).filter(|_| faces::find(tool.name).is_some_and(|face| face.accepts(line)))?;
    Some(format!("netwren {} {words}", tool.name))
}

fn of_ours(tool: &Tool, command: &'static Command, pieces: Vec<WordPiece>, commands: Commands) -> Option<String> {
    let (mut kept, mut protos, mut tests, mut command) = (Vec::new(), Vec::new(), Vec::new(), command);
    let mut pieces = pieces.into_iter().peekable();
    while let Some(piece) = pieces.next() {
        let WordPiece::Letters(letters) = piece else {
            kept.push(piece);
            continue;
        };
        for letter in letters.chars() {
            match tool.letters.iter().find(|(known, _)| *known == letter)?.1 {
                LetterMeaning::Usual => {}
                LetterMeaning::Proto(name) => protos.push(name),
                LetterMeaning::Test(test) => tests.push(test.to_owned()),
                LetterMeaning::Field(field) => match pieces.next()? {
                    WordPiece::Operand(value) => tests.push(test_of(field, &value)),
                    _ => return None,
                },
                LetterMeaning::Listening => command = commands.iter().find(|other| other.name == "listeners")?,
            }
        }
    }
    match *protos {
        [] => {}
        [proto] => tests.insert(0, format!("proto = {proto}")),
        _ => tests.insert(0, format!("proto in ({})", protos.join(", "))),
    }
    own_line::of_pieces(command, &kept, &tests)
}

/// Returns a test of the field for a value as the user typed it.
pub(super) fn test_of(field: &str, value: &str) -> String {
    let is_plain = !value.is_empty() && value.bytes().all(|b| b.is_ascii_alphanumeric() || b"._:/-".contains(&b));
    let sign = if is_plain && value.contains('/') && value.parse::<u64>().is_err() { "in" } else { "=" };
    match is_plain {
        true => format!("{field} {sign} {value}"),
        false => format!("{field} = \"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}
