//! `-R FILE`: runs one command per line.

use super::commands;
use super::options::Command;
use super::parse::parse;
use super::run::Run;
use super::stop::Stop;
use lookups::session::Session;
use runtime::messages::footer;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use sys::infile;

/// The tool rejects more words or longer ones.
const WORDS_MAX: usize = 253;
const WORD_MAX: usize = 1023;
/// A million entries written by `-o save` take 180 MB. A larger file is rejected as a whole.
///
/// Bound: bytes of the file of `conntrack -R`. Beyond: the file is refused. By: the author of the file.
const BYTES_MAX: u64 = 512 << 20;

/// Executes all lines of a file, or none if one of them is invalid.
pub(super) fn file(session: &Session, name: &[u8], bug_compatible: bool) -> Result<u8, Stop> {
    let text = read(name)?;
    let parsed = |line: &[u8]| {
        let words = split(line)?;
        if words.is_empty() { Ok(None) } else { parse(session.host(), words, bug_compatible).map(Some) }
    };
    for line in lines(&text) {
        if let Some(line) = parsed(line)? {
            allowed(line.command)?;
        }
    }
    // Lines are parsed again, because a parsed line is larger than its text.
    let mut run = Run::new(session);
    for line in lines(&text) {
        if let Some(line) = parsed(line)? {
            commands::execute(&mut run, &line)?;
        }
        if session.interrupted() {
            break;
        }
    }
    session.finish(&mut run.stats);
    footer(&run.stats);
    // The exit code that a shell reports for a program killed by SIGINT.
    Ok(if session.interrupted() { 130 } else { u8::from(run.stats.is_partial()) })
}

fn read(name: &[u8]) -> Result<Vec<u8>, Stop> {
    let shown = if name == b"-" { b"/dev/stdin" } else { name };
    let text = match name {
        b"-" => infile::read_input(std::io::stdin().lock(), BYTES_MAX),
        _ => infile::read(Path::new(OsStr::from_bytes(name)), BYTES_MAX),
    };
    text.map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge => Stop::other("the file is too large"),
        _ => Stop::about("Failed to open file % for reading", shown),
    })
}

/// The lines that are not blank or comments.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let blank = |b: &u8| matches!(b, b' ' | b'\t');
    text.split(|&b| b == b'\n').filter(move |line| {
        let first = line.iter().find(|b| !blank(b));
        first.is_some_and(|first| *first != b'#')
    })
}

/// Splits a line into words. Quotation marks keep blanks, and a backslash inside them makes the next byte literal.
fn split(line: &[u8]) -> Result<Vec<Vec<u8>>, Stop> {
    let (mut words, mut word): (Vec<Vec<u8>>, Vec<u8>) = (Vec::new(), Vec::new());
    let (mut quoted, mut escaped) = (false, false);
    for &byte in line {
        match byte {
            _ if escaped => {
                word.push(byte);
                escaped = false;
            }
            b'\\' if quoted => escaped = true,
            // A quoted word counts even if it is empty.
            b'"' if quoted => {
                quoted = false;
                words.push(std::mem::take(&mut word));
            }
            b'"' => quoted = true,
            b' ' | b'\t' if !quoted => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            _ => word.push(byte),
        }
        if word.len() > WORD_MAX {
            return Err(Stop::usage("Parameter too long!"));
        }
        if words.len() > WORDS_MAX {
            return Err(Stop::usage("too many arguments"));
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    Ok(words)
}

/// Accepts only commands that change the table.
fn allowed(command: Option<Command>) -> Result<(), Stop> {
    let name = match command {
        Some(Command::Create | Command::Add | Command::Update | Command::Delete | Command::Flush) => return Ok(()),
        Some(Command::List) => "-L",
        Some(Command::Get) => "-G",
        Some(Command::Event) => "-E",
        Some(Command::Version) => "-V",
        Some(Command::Help) => "-h",
        Some(Command::ExpList) => "-L expect",
        // The tool's name for this command.
        Some(Command::ExpCreate) => "-C expect",
        Some(Command::ExpDelete) => "-D expect",
        Some(Command::ExpGet) => "-G expect",
        Some(Command::ExpFlush) => "-F expect",
        Some(Command::ExpEvent) => "-E expect",
        Some(Command::Count) => "-C",
        Some(Command::ExpCount) => "-C expect",
        Some(Command::Stats) => "-S",
        Some(Command::ExpStats) => "-S expect",
        None => "unknown",
    };
    Err(Stop::usage(format!("Cannot use command `{name}' with --load-file")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn words_of_a_line() {
        let words = |line: &str| {
            let words = split(line.as_bytes()).unwrap();
            words.into_iter().map(|word| String::from_utf8(word).unwrap()).collect::<Vec<_>>().join("|")
        };
        assert_eq!(words("-A  -s\t1.2.3.4 "), "-A|-s|1.2.3.4");
        assert_eq!(words("-l \"a b\" -m 1"), "-l|a b|-m|1");
        assert_eq!(words("a\"b c\"d \"x\\\"y\" \"\""), "ab c|d|x\"y|");
        assert!(split(&[b'x'; 1024]).is_err() && split(&[b'x'; 1023]).is_ok());
        assert!(split(&b"x ".repeat(255)).is_err());
        let all: Vec<&[u8]> = lines(b"# no\n\n  -F\n \t# no\n-A x\n   \n").collect();
        assert_eq!(all, [&b"  -F"[..], b"-A x"]);
    }
}
