//! Parses a command line like getopt_long(3) as conntrack uses it: optional values, long names added by a protocol,
//! operands between switches, and an error message that names the word before the current one.

use super::stop::Stop;
use std::collections::VecDeque;

/// Whether a switch has a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Value {
    None,
    Needed,
    /// Allowed, but only attached to the switch.
    Glued,
}

/// A long name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Long {
    pub(super) name: &'static str,
    pub(super) value: Value,
    /// The letter, or a protocol's code above 255.
    pub(super) code: u16,
}

/// A switch and its value.
pub(super) type Switch = (u16, Option<Vec<u8>>);

/// Parses the words of one command line.
pub(super) struct Args {
    words: VecDeque<Vec<u8>>,
    cluster: VecDeque<u8>,
    /// The word that contains the current cluster.
    current: Vec<u8>,
    longs: Vec<Long>,
    /// The last word consumed, and the last operand: getopt moves operands ahead of the words that follow.
    taken: Vec<u8>,
    stray: Option<Vec<u8>>,
}

impl Args {
    pub(super) fn new(words: Vec<Vec<u8>>, longs: &[Long]) -> Args {
        Args {
            words: words.into(),
            cluster: VecDeque::new(),
            current: Vec::new(),
            longs: longs.to_vec(),
            taken: b"conntrack".to_vec(),
            stray: None,
        }
    }

    /// Appends more long names.
    pub(super) fn add(&mut self, longs: impl Iterator<Item = Long>) {
        self.longs.extend(longs);
    }

    /// Returns the next switch; None at the end.
    pub(super) fn next(&mut self) -> Result<Option<Switch>, Stop> {
        loop {
            if !self.cluster.is_empty() {
                return self.letter().map(Some);
            }
            let Some(word) = self.words.pop_front() else { return Ok(None) };
            if word == b"--" {
                return Ok(None);
            }
            if let Some(long) = word.strip_prefix(b"--") {
                let long = long.to_vec();
                self.taken = word;
                return self.long(&long).map(Some);
            }
            match word.strip_prefix(b"-") {
                Some(letters) if !letters.is_empty() => {
                    self.cluster = letters.iter().copied().collect();
                    self.current = word;
                }
                _ => self.stray = Some(word),
            }
        }
    }

    /// Consumes the word after a switch without an attached value, if that word can be its value.
    pub(super) fn word_behind(&mut self, glued: &Option<Vec<u8>>) -> Option<Vec<u8>> {
        let is_switch = |word: &Vec<u8>| matches!(word.first(), Some(b'-' | b'!'));
        // In the middle of a cluster, the next word is still the cluster itself.
        if glued.is_some() || !self.cluster.is_empty() || self.words.front().is_none_or(is_switch) {
            return None;
        }
        let word = self.words.pop_front()?;
        self.taken.clone_from(&word);
        Some(word)
    }

    fn letter(&mut self) -> Result<Switch, Stop> {
        let letter = self.cluster.pop_front().unwrap_or(0);
        let is_last = self.cluster.is_empty();
        if is_last {
            self.taken.clone_from(&self.current);
        }
        let code = u16::from(letter);
        match value_of(letter) {
            None => Err(self.unknown()),
            Some(Value::None) => Ok((code, None)),
            Some(Value::Glued) if is_last => Ok((code, None)),
            Some(Value::Needed) if is_last => match self.words.pop_front() {
                Some(value) => {
                    self.taken.clone_from(&value);
                    Ok((code, Some(value)))
                }
                None => Err(self.missing()),
            },
            Some(_) => {
                self.taken.clone_from(&self.current);
                Ok((code, Some(self.cluster.drain(..).collect())))
            }
        }
    }

    fn long(&mut self, word: &[u8]) -> Result<Switch, Stop> {
        let (name, value) = match word.iter().position(|&b| b == b'=') {
            Some(at) => (word.get(..at).unwrap_or_default(), word.get(at + 1..).map(<[u8]>::to_vec)),
            None => (word, None),
        };
        let Some(long) = self.find(name) else { return Err(self.unknown()) };
        match (long.value, value) {
            (Value::None, Some(_)) => Err(self.unknown()),
            (Value::Needed, None) => match self.words.pop_front() {
                Some(value) => {
                    self.taken.clone_from(&value);
                    Ok((long.code, Some(value)))
                }
                None => Err(self.missing()),
            },
            (_, value) => Ok((long.code, value)),
        }
    }

    /// Finds a long name, or the only one that starts with `name`. Synonyms count as one.
    fn find(&self, name: &[u8]) -> Option<Long> {
        if let Some(exact) = self.longs.iter().find(|long| long.name.as_bytes() == name) {
            return Some(*exact);
        }
        let mut near = self.longs.iter().filter(|long| long.name.as_bytes().starts_with(name));
        let first = near.next()?;
        near.all(|other| other.value == first.value && other.code == first.code).then_some(*first)
    }

    fn unknown(&self) -> Stop {
        Stop::about("unknown option `%'", self.before())
    }

    fn missing(&self) -> Stop {
        Stop::about("option `%' requires an argument", self.before())
    }

    fn before(&self) -> &[u8] {
        // A cluster counts as consumed only at its end.
        let in_cluster = !self.cluster.is_empty();
        match &self.stray {
            Some(stray) if in_cluster => stray,
            _ => &self.taken,
        }
    }
}

/// Implements the option string `:L::I::U::D::G::E::F::A::hVs:d:…`.
fn value_of(letter: u8) -> Option<Value> {
    Some(match letter {
        b'L' | b'I' | b'U' | b'D' | b'G' | b'E' | b'F' | b'A' | b'C' | b'n' | b'g' | b'j' | b'>' => Value::Glued,
        b'h' | b'V' | b'z' | b'S' => Value::None,
        b's' | b'd' | b'r' | b'q' | b'p' | b't' | b'u' | b'e' | b'a' | b'm' | b'i' | b'f' | b'o' | b'c' | b'b' => {
            Value::Needed
        }
        b'[' | b']' | b'{' | b'}' | b'w' | b'l' | b'<' | b'(' | b')' => Value::Needed,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGS: &[Long] = &[
        Long { name: "dump", value: Value::Glued, code: b'L' as u16 },
        Long { name: "src", value: Value::Needed, code: b's' as u16 },
        Long { name: "src-nat", value: Value::Glued, code: b'n' as u16 },
        Long { name: "zero", value: Value::None, code: b'z' as u16 },
        Long { name: "zone", value: Value::Needed, code: b'w' as u16 },
    ];

    fn read(line: &str) -> Result<String, String> {
        let mut args = Args::new(line.split_whitespace().map(|w| w.as_bytes().to_vec()).collect(), LONGS);
        let mut text = String::new();
        while let Some((code, value)) = args.next().map_err(|stop| stop.text())? {
            let letter = char::from(u8::try_from(code).unwrap_or(b'?'));
            let behind = if "LnSC".contains(letter) { args.word_behind(&value) } else { None };
            let show =
                |value: Option<Vec<u8>>| value.map_or(String::new(), |v| String::from_utf8_lossy(&v).into_owned());
            text += &format!("{letter}[{}]{{{}}} ", show(value), show(behind));
        }
        Ok(text.trim_end().to_owned())
    }

    #[test]
    fn switches_and_values() {
        for (line, expected) in [
            ("-L expect", "L[]{expect}"),
            ("-Lexpect x", "L[expect]{}"),
            ("--dump=expect x", "L[expect]{}"),
            ("--dum -z", "L[]{} z[]{}"),
            ("-L -s 1 --src=2 --src 3", "L[]{} s[1]{} s[2]{} s[3]{}"),
            ("-zs1 x -z", "z[]{} s[1]{} z[]{}"),
            ("-n !x", "n[]{}"),
            ("--src-nat=a b", "n[a]{}"),
            ("-z -- -q", "z[]{}"),
            ("-SC 5", "S[]{} C[]{5}"),
        ] {
            assert_eq!(read(line).as_deref(), Ok(expected), "{line}");
        }
    }

    #[test]
    fn mistakes_name_the_word_that_getopt_names() {
        for (line, expected) in [
            ("-L -xz", "unknown option `-L'"),
            ("-L -x", "unknown option `-x'"),
            ("-xz", "unknown option `conntrack'"),
            ("--zone", "option `--zone' requires an argument"),
            ("-L -s", "option `-s' requires an argument"),
            ("-zs", "option `-zs' requires an argument"),
            ("--z 1", "unknown option `--z'"),
            ("--zero=1", "unknown option `--zero=1'"),
            ("--nothing", "unknown option `--nothing'"),
            ("foo -xz", "unknown option `foo'"),
        ] {
            let message = read(line).err().unwrap_or_default();
            assert!(
                message.starts_with(&format!("conntrack v1.4.7 (conntrack-tools): {expected}\nTry ")),
                "{line}: {message}"
            );
        }
    }
}
