//! Splits an expression into words: arguments are split at blanks, and a backslash makes the next byte literal.

use std::collections::VecDeque;

/// A token of the grammar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Token {
    Not,
    And,
    Or,
    Open,
    Close,
    Field(Subject),
    Compare(Compare),
    Autobound,
    /// Anything else: the right side of a comparison.
    Word,
}

/// The left side of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Subject {
    Dst,
    Src,
    Dport,
    Sport,
    Dev,
    Fwmark,
    Cgroup,
}

/// The comparison operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// The words of the grammar.
#[rustfmt::skip]
const WORDS: &[(&str, Token)] = &[
    ("!", Token::Not), ("not", Token::Not), ("&", Token::And), ("&&", Token::And), ("and", Token::And),
    ("|", Token::Or), ("||", Token::Or), ("or", Token::Or), ("(", Token::Open), (")", Token::Close),
    ("dst", Token::Field(Subject::Dst)), ("src", Token::Field(Subject::Src)), ("dport", Token::Field(Subject::Dport)),
    ("sport", Token::Field(Subject::Sport)), ("dev", Token::Field(Subject::Dev)),
    ("fwmark", Token::Field(Subject::Fwmark)), ("cgroup", Token::Field(Subject::Cgroup)),
    (">=", Token::Compare(Compare::Ge)), ("ge", Token::Compare(Compare::Ge)), ("geq", Token::Compare(Compare::Ge)),
    ("<=", Token::Compare(Compare::Le)), ("le", Token::Compare(Compare::Le)), ("leq", Token::Compare(Compare::Le)),
    ("!=", Token::Compare(Compare::Ne)), ("ne", Token::Compare(Compare::Ne)), ("neq", Token::Compare(Compare::Ne)),
    ("=", Token::Compare(Compare::Eq)), ("==", Token::Compare(Compare::Eq)), ("eq", Token::Compare(Compare::Eq)),
    (">", Token::Compare(Compare::Gt)), ("gt", Token::Compare(Compare::Gt)), ("<", Token::Compare(Compare::Lt)),
    ("lt", Token::Compare(Compare::Lt)), ("autobound", Token::Autobound),
];

/// The words of the arguments, in order.
pub(super) fn split(args: &[Vec<u8>]) -> VecDeque<Vec<u8>> {
    let mut words = VecDeque::new();
    for arg in args {
        let mut word: Option<Vec<u8>> = None;
        let mut bytes = arg.iter();
        while let Some(&byte) = bytes.next() {
            match byte {
                b' ' | b'\t' => words.extend(word.take()),
                b'\\' => word.get_or_insert_default().extend(bytes.next()),
                _ => word.get_or_insert_default().push(byte),
            }
        }
        words.extend(word);
    }
    words
}

/// The token that a word stands for.
pub(super) fn token(word: &[u8]) -> Token {
    WORDS.iter().find(|(text, _)| text.as_bytes() == word).map_or(Token::Word, |(_, token)| *token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_at_blanks_and_unescaped() {
        let args = ["( sport  =", "22\t)", "", r"a\ b", r"\(", r"x\\", r"\"].map(|a| a.as_bytes().to_vec());
        let words: Vec<String> = split(&args).iter().map(|w| String::from_utf8_lossy(w).into_owned()).collect();
        assert_eq!(words, ["(", "sport", "=", "22", ")", "a b", "(", "x\\", ""]);
    }
}
