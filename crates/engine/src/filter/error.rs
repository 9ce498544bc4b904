//! Errors in filters, with their position.

use std::fmt;

/// Characters of a long filter that are shown on each side of the mistake.
const CONTEXT_CHARS: usize = 60;

/// The class of a mistake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The text is not a sentence of the language.
    Syntax,
    /// The table has no such field.
    UnknownField,
    /// The field has no such word.
    UnknownWord,
    /// The value does not fit the field.
    BadValue,
    /// The operator does not fit the field.
    BadOperator,
    /// The text is longer than [`FilterError::TEXT_MAX`].
    TooLong,
    /// The nesting is deeper than [`FilterError::DEPTH_MAX`].
    TooDeep,
    /// One part needs fields of two tables.
    Mixed,
}

/// A mistake in a filter. Displayed as the message, the text and a mark below the mistake.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilterError {
    /// The user's whole filter (for [`Fault::TooLong`] its beginning).
    pub text: Box<str>,
    /// Character at which the mistake starts; the first is 1.
    pub column: usize,
    /// Number of characters of the mistake; at least 1.
    pub len: usize,
    /// The class.
    pub fault: Fault,
    /// The message: lower case, no full stop.
    pub message: Box<str>,
    /// The word that was probably meant.
    pub hint: Option<Box<str>>,
    /// The command with the filter that was probably meant.
    pub command: Option<Box<str>>,
}

impl FilterError {
    /// Longest filter, in bytes; an argument of a command line cannot be much longer.
    ///
    /// Bound: bytes of a filter. Beyond: the filter is refused. By: the user.
    pub const TEXT_MAX: usize = 64 * 1024;
    /// Deepest nesting of brackets and `not`: the tree is walked by recursion.
    ///
    /// Bound: levels of nesting in a filter. Beyond: the filter is refused. By: the user.
    pub const DEPTH_MAX: usize = 100;

    pub(super) fn new(text: &str, span: Span, fault: Fault, message: impl Into<Box<str>>) -> FilterError {
        let before = text.get(..span.start).unwrap_or(text);
        let inside = text.get(span.start..span.end).unwrap_or("");
        FilterError {
            text: text.into(),
            column: before.chars().count() + 1,
            len: inside.chars().count().max(1),
            fault,
            message: message.into(),
            hint: None,
            command: None,
        }
    }

    pub(super) fn hint(mut self, hint: Option<&str>) -> FilterError {
        self.hint = hint.map(Box::from);
        self
    }

    /// Returns the part of the text around the mistake, and the mistake's offset in it. Control characters become `?`.
    fn window(&self) -> (String, usize) {
        let start = (self.column - 1).saturating_sub(CONTEXT_CHARS);
        let shown = CONTEXT_CHARS + self.len.min(CONTEXT_CHARS) + (self.column - 1 - start);
        let mut out = String::new();
        if start > 0 {
            out.push('…');
        }
        out.extend(self.text.chars().skip(start).take(shown).map(|c| if c.is_control() { '?' } else { c }));
        if self.text.chars().nth(start + shown).is_some() {
            out.push('…');
        }
        (out, self.column - 1 - start + usize::from(start > 0))
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "filter, column {}: {}", self.column, self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, "; did you mean `{hint}`?")?;
        }
        let (text, offset) = self.window();
        write!(f, "\n  {text}\n  {:offset$}{:^<len$}", "", "", len = self.len.min(CONTEXT_CHARS))?;
        match &self.command {
            Some(command) => write!(f, "\ndid you mean: {command}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for FilterError {}

/// A range of bytes in the filter's text. All spans are equal, so that trees that differ only in spans are equal.
#[derive(Clone, Copy, Debug, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
}

impl PartialEq for Span {
    fn eq(&self, _: &Span) -> bool {
        true
    }
}
