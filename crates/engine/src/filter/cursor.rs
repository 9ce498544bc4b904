//! Reading words from the filter's text. The extent of a word depends on its position: `10.0.0.0/8` is one word as a
//! value but not as a name, so there is no separate list of tokens.

use super::ast::{Cmp, Literal};
use super::error::{Fault, FilterError, Span};

/// A position in the text.
pub(super) struct Cursor<'t> {
    /// The whole filter.
    text: &'t str,
    /// Offset in bytes of the next character; always on a character boundary.
    at: usize,
}

impl<'t> Cursor<'t> {
    /// Starts at the beginning of the text.
    pub(super) fn new(text: &'t str) -> Cursor<'t> {
        Cursor { text, at: 0 }
    }

    /// Returns the text that is not taken yet.
    fn remaining_text(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or("")
    }

    /// Moves to the next non-blank character.
    fn skip_blanks(&mut self) {
        self.at = self.text.len() - self.remaining_text().trim_start().len();
    }

    /// True if only blanks are left.
    pub(super) fn at_end(&mut self) -> bool {
        self.skip_blanks();
        self.remaining_text().is_empty()
    }

    /// Returns the position of the next character, for messages.
    pub(super) fn next_char_span(&mut self) -> Span {
        self.skip_blanks();
        let len = self.remaining_text().chars().next().map_or(0, char::len_utf8);
        Span { start: self.at, end: self.at + len }
    }

    /// Returns the position of the next word or sign, for messages.
    pub(super) fn next_word(&mut self) -> Span {
        let here = self.next_char_span();
        let len = self.remaining_text().find(ends_bare).unwrap_or(self.remaining_text().len());
        Span { start: here.start, end: here.end.max(here.start + len) }
    }

    /// Returns the text at a position.
    pub(super) fn slice(&self, span: Span) -> &'t str {
        self.text.get(span.start..span.end).unwrap_or("")
    }

    /// Takes `sign` if it comes next.
    pub(super) fn take_sign(&mut self, sign: &str) -> bool {
        self.skip_blanks();
        let found = self.remaining_text().starts_with(sign);
        if found {
            self.at += sign.len();
        }
        found
    }

    /// Returns the next name without taking it.
    pub(super) fn peek_name(&mut self) -> Option<(&'t str, Span)> {
        self.skip_blanks();
        let rest = self.remaining_text();
        let len = rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.')).count();
        let name = rest.get(..len)?;
        let starts_well = name.bytes().next().is_some_and(|b| !b.is_ascii_digit() && b != b'.');
        starts_well.then_some((name, Span { start: self.at, end: self.at + len }))
    }

    /// Takes the keyword `word` (in any case) if it comes next as a whole word.
    pub(super) fn take_word(&mut self, word: &str) -> bool {
        match self.peek_name() {
            Some((name, span)) if name.eq_ignore_ascii_case(word) => {
                self.at = span.end;
                true
            }
            _ => false,
        }
    }

    /// Takes everything up to the end of `span`.
    pub(super) fn take(&mut self, span: Span) {
        self.at = span.end;
    }

    /// Takes a comparison operator, including the words `in` and `not in`.
    pub(super) fn comparison(&mut self) -> Option<(Cmp, Span)> {
        let start = self.next_char_span().start;
        let cmp = Cmp::SIGNS.iter().find(|(sign, _)| self.take_sign(sign)).map(|&(_, cmp)| cmp);
        let cmp = cmp.or_else(|| self.take_word("in").then_some(Cmp::In)).or_else(|| {
            let before = self.at;
            if self.take_word("not") && self.take_word("in") {
                return Some(Cmp::NotIn);
            }
            self.at = before;
            None
        })?;
        Some((cmp, Span { start, end: self.at }))
    }

    /// Takes a value. After `~` a quoted value keeps its backslashes.
    pub(super) fn value(&mut self, after: Cmp) -> Result<Literal, FilterError> {
        let here = self.next_char_span();
        if let Some(quote) = self.remaining_text().chars().next().filter(|c| matches!(c, '"' | '\'')) {
            return self.take_quoted(quote, after.is_match());
        }
        let len = bare_len(self.remaining_text());
        let span = Span { start: here.start, end: here.start + len };
        let word = self.slice(span);
        if word.is_empty() || ["and", "or", "not"].iter().any(|k| word.eq_ignore_ascii_case(k)) {
            let span = if word.is_empty() { here } else { span };
            let message =
                format!("a value is missing after `{after}`; put text with special characters and keywords in quotes");
            return Err(FilterError::new(self.text, span, Fault::Syntax, message));
        }
        self.at = span.end;
        Ok(Literal { bytes: word.as_bytes().into(), quoted: false, span })
    }

    fn take_quoted(&mut self, quote: char, raw: bool) -> Result<Literal, FilterError> {
        let start = self.at;
        self.at += 1;
        let mut bytes = Vec::new();
        loop {
            let from = self.at;
            let Some(c) = self.next_char() else {
                let span = Span { start, end: start + 1 };
                return Err(FilterError::new(self.text, span, Fault::Syntax, format!("this {quote} is not closed")));
            };
            if c == quote {
                break;
            }
            if c == '\\' {
                self.escape(from, raw, &mut bytes)?;
            } else {
                bytes.extend_from_slice(self.text.get(from..self.at).unwrap_or("").as_bytes());
            }
        }
        Ok(Literal { bytes: bytes.into(), quoted: true, span: Span { start, end: self.at } })
    }

    fn next_char(&mut self) -> Option<char> {
        let c = self.remaining_text().chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// Takes the escape after a backslash at `from`. The forms are those of printed text, so that output can be
    /// pasted.
    fn escape(&mut self, from: usize, raw: bool, out: &mut Vec<u8>) -> Result<(), FilterError> {
        let c = self.next_char();
        match c {
            Some(quote @ ('"' | '\'')) => out.push(quote as u8),
            _ if raw => out.extend_from_slice(self.text.get(from..self.at).unwrap_or("").as_bytes()),
            Some('\\') => out.push(b'\\'),
            Some('n') => out.push(b'\n'),
            Some('t') => out.push(b'\t'),
            Some('r') => out.push(b'\r'),
            Some('0') => out.push(0),
            Some('x') => match self.remaining_text().get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
                Some(byte) => {
                    self.at += 2;
                    out.push(byte);
                }
                None => return Err(self.bad_escape(from)),
            },
            Some('u') => match self.code_point() {
                Some(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
                None => return Err(self.bad_escape(from)),
            },
            _ => return Err(self.bad_escape(from)),
        }
        Ok(())
    }

    /// Takes `{1F600}` after `\u`.
    fn code_point(&mut self) -> Option<char> {
        let (hex, _) = self.remaining_text().strip_prefix('{')?.split_once('}')?;
        if hex.len() > 6 {
            return None;
        }
        let c = char::from_u32(u32::from_str_radix(hex, 16).ok()?)?;
        self.at += hex.len() + 2;
        Some(c)
    }

    fn bad_escape(&self, from: usize) -> FilterError {
        let span = Span { start: from, end: self.at };
        let message = "unknown escape; valid ones are \\\\ \\\" \\' \\n \\t \\r \\0 \\xNN \\u{N}";
        FilterError::new(self.text, span, Fault::Syntax, message)
    }
}

fn ends_bare(c: char) -> bool {
    c.is_whitespace() || matches!(c, '(' | ')' | ',' | '"' | '\'' | '=' | '<' | '>' | '!' | '~')
}

/// Returns the length of an unquoted value: up to a blank, a bracket, a comma, a quote, an operator, `&&` or `||`.
fn bare_len(text: &str) -> usize {
    let signs = ["&&", "||"].iter().filter_map(|sign| text.find(sign)).min().unwrap_or(text.len());
    text.find(ends_bare).unwrap_or(text.len()).min(signs)
}
