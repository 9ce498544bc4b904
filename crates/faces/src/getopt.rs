//! Parses switches like GNU getopt_long: clusters, attached and separate values, abbreviated long names, `--`, and
//! operands between switches. The error messages are getopt's, because scripts and users know them.

use super::text::printable;
use std::collections::VecDeque;

/// One switch: letter (0 for none), long name (empty for none), whether it takes a value, and its meaning.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spec<T> {
    pub(super) letter: u8,
    pub(super) long: &'static str,
    pub(super) value: bool,
    pub(super) what: T,
}

/// Makes a switch; the arguments are its fields.
pub(super) const fn spec<T>(letter: u8, long: &'static str, value: bool, what: T) -> Spec<T> {
    Spec { letter, long, value, what }
}

/// The switches with their dashes, for completion.
pub(super) fn written<T>(specs: &[Spec<T>]) -> Vec<String> {
    specs.iter().flat_map(|spec| names_of(spec.letter, spec.long)).collect()
}

/// The short and the long form of a switch with their dashes. A letter of 0 or an empty long name yields no form.
pub(super) fn names_of(letter: u8, long: &str) -> impl Iterator<Item = String> {
    let short = (letter.is_ascii_graphic() && letter != b'?').then(|| format!("-{}", char::from(letter)));
    let long = (!long.is_empty()).then(|| format!("--{long}"));
    long.into_iter().chain(short)
}

/// Parses a command line, one switch at a time.
pub(super) struct Getopt<'s, T> {
    specs: &'s [Spec<T>],
    words: VecDeque<Vec<u8>>,
    /// The remaining letters of the current cluster.
    cluster: Vec<u8>,
    /// Operands (words that are not switches), in order.
    rest: Vec<Vec<u8>>,
}

impl<'s, T: Copy + PartialEq> Getopt<'s, T> {
    pub(super) fn new(specs: &'s [Spec<T>], words: Vec<Vec<u8>>) -> Getopt<'s, T> {
        Getopt { specs, words: words.into(), cluster: Vec::new(), rest: Vec::new() }
    }

    /// Returns the next switch and its value, or None at the end. An error is getopt's message without the program's
    /// name.
    pub(super) fn next(&mut self) -> Result<Option<(T, Vec<u8>)>, String> {
        loop {
            if !self.cluster.is_empty() {
                return self.letter().map(Some);
            }
            let Some(word) = self.words.pop_front() else { return Ok(None) };
            if word == b"--" {
                self.rest.extend(self.words.drain(..));
                return Ok(None);
            }
            if let Some(long) = word.strip_prefix(b"--") {
                return self.long(long).map(Some);
            }
            match word.strip_prefix(b"-") {
                Some(letters) if !letters.is_empty() => self.cluster = letters.to_vec(),
                _ => self.rest.push(word),
            }
        }
    }

    /// Returns the operands.
    pub(super) fn into_rest(self) -> Vec<Vec<u8>> {
        self.rest
    }

    fn letter(&mut self) -> Result<(T, Vec<u8>), String> {
        let letter = self.cluster.remove(0);
        let shown = printable(&[letter]);
        let Some(spec) = self.specs.iter().find(|s| s.letter == letter && letter != 0) else {
            self.cluster.clear();
            return Err(format!("invalid option -- '{shown}'"));
        };
        if !spec.value {
            return Ok((spec.what, Vec::new()));
        }
        if !self.cluster.is_empty() {
            return Ok((spec.what, std::mem::take(&mut self.cluster)));
        }
        match self.words.pop_front() {
            Some(value) => Ok((spec.what, value)),
            None => Err(format!("option requires an argument -- '{shown}'")),
        }
    }

    fn long(&mut self, word: &[u8]) -> Result<(T, Vec<u8>), String> {
        let (name, value) = match word.iter().position(|&b| b == b'=') {
            Some(at) => (&word[..at], word.get(at + 1..)),
            None => (word, None),
        };
        let spec = self.find(name, word)?;
        match (spec.value, value) {
            (true, Some(value)) => Ok((spec.what, value.to_vec())),
            (true, None) => match self.words.pop_front() {
                Some(value) => Ok((spec.what, value)),
                None => Err(format!("option '--{}' requires an argument", spec.long)),
            },
            (false, Some(_)) => Err(format!("option '--{}' doesn't allow an argument", spec.long)),
            (false, None) => Ok((spec.what, Vec::new())),
        }
    }

    /// Finds the switch called `name`, or the only one whose name starts with it.
    fn find(&self, name: &[u8], word: &[u8]) -> Result<Spec<T>, String> {
        let named = || self.specs.iter().filter(|s| !s.long.is_empty());
        if let Some(exact) = named().find(|s| s.long.as_bytes() == name) {
            return Ok(*exact);
        }
        let near: Vec<&Spec<T>> = named().filter(|s| s.long.as_bytes().starts_with(name)).collect();
        match near.as_slice() {
            [] => Err(format!("unrecognized option '--{}'", printable(word))),
            [first, others @ ..] if others.iter().all(|o| o.what == first.what) => Ok(**first),
            several => {
                let names: String = several.iter().map(|s| format!(" '--{}'", s.long)).collect();
                Err(format!("option '--{}' is ambiguous; possibilities:{names}", printable(word)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const SPECS: &[Spec<char>] = &[
        spec(b'n', "numeric", false, 'n'),
        spec(b'A', "socket", true, 'A'),
        spec(b'A', "query", true, 'A'),
        spec(b'N', "net", true, 'N'),
        spec(b't', "tcp", false, 't'),
        spec(0, "tos", false, '1'),
    ];

    fn read(line: &str) -> Result<String, String> {
        let words = line.split(' ').filter(|w| !w.is_empty()).map(|w| w.as_bytes().to_vec()).collect();
        let mut getopt = Getopt::new(SPECS, words);
        let mut text = String::new();
        while let Some((what, value)) = getopt.next()? {
            text += &format!("{what}{} ", String::from_utf8(value).unwrap());
        }
        let rest: Vec<String> = getopt.into_rest().into_iter().map(|w| String::from_utf8(w).unwrap()).collect();
        Ok(text + "| " + &rest.join(" "))
    }

    #[test]
    fn words_and_switches() {
        for (line, expected) in [
            ("-tn", "t n | "),
            ("-tAudp x", "t Audp | x"),
            ("-A udp -t", "Audp t | "),
            ("x -t y --tcp z", "t t | x y z"),
            ("--query=udp --so raw", "Audp Araw | "),
            ("--tc - -t -- -n", "t t | - -n"),
            ("--net= -n", "N n | "),
        ] {
            assert_eq!(read(line).unwrap(), expected, "{line}");
        }
    }

    #[test]
    fn messages() {
        for (line, expected) in [
            ("-ty", "invalid option -- 'y'"),
            ("-A", "option requires an argument -- 'A'"),
            ("--foo=1", "unrecognized option '--foo=1'"),
            ("--socket", "option '--socket' requires an argument"),
            ("--tcp=3", "option '--tcp' doesn't allow an argument"),
            ("--n", "option '--n' is ambiguous; possibilities: '--numeric' '--net'"),
            ("-\x1b", "invalid option -- '?'"),
        ] {
            assert_eq!(read(line).unwrap_err(), expected, "{line}");
        }
    }
}
