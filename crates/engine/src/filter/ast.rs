//! The tree of a filter before its table is known, and its printed form.

use super::error::Span;
use std::fmt;
use std::sync::Arc;

/// A filter whose names are not resolved to fields. Keeps its text for messages; prints as a filter that parses to the
/// same tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Ast {
    /// The user's text; spans are positions in it.
    pub(super) text: Arc<str>,
    pub(super) root: Node,
}

/// A node; `And` and `Or` have no direct child of their own kind.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    /// All of them hold; no parts for the empty filter.
    And(Vec<Node>),
    /// Any of them holds.
    Or(Vec<Node>),
    /// The part does not hold.
    Not(Box<Node>),
    /// A comparison.
    Test(Comparison),
}

/// `name op value`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Comparison {
    /// The user's name: a field, a member (`owners.pid`), or `local` or `peer`.
    pub(super) name: Box<str>,
    /// Position of the name.
    pub(super) name_span: Span,
    /// The operator.
    pub(super) cmp: Cmp,
    /// Position of the operator.
    pub(super) cmp_span: Span,
    /// The values that the field is compared with; several for a list.
    pub(super) values: Vec<Literal>,
    /// True if the values are in brackets.
    pub(super) is_list: bool,
}

/// A value of the user's text, with escapes resolved.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Literal {
    /// The bytes to compare. Quoted text may have any bytes (`\x00`).
    pub(super) bytes: Box<[u8]>,
    /// True if the value was in quotes: then `null` is text.
    pub(super) quoted: bool,
    /// Position of the value, including its quotes.
    pub(super) span: Span,
}

/// The operators of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cmp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Match,
    NotMatch,
    In,
    NotIn,
}

impl Cmp {
    /// The signs, longer ones first, so that `<=` is not read as `<`.
    pub(super) const SIGNS: &'static [(&'static str, Cmp)] = &[
        ("==", Cmp::Eq),
        ("!=", Cmp::Ne),
        ("<=", Cmp::Le),
        (">=", Cmp::Ge),
        ("!~", Cmp::NotMatch),
        ("=", Cmp::Eq),
        ("<", Cmp::Lt),
        (">", Cmp::Gt),
        ("~", Cmp::Match),
    ];

    /// True for the operators that take a regular expression.
    pub(super) fn is_match(self) -> bool {
        matches!(self, Cmp::Match | Cmp::NotMatch)
    }
}

impl fmt::Display for Cmp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cmp::Eq => "=",
            Cmp::Ne => "!=",
            Cmp::Lt => "<",
            Cmp::Le => "<=",
            Cmp::Gt => ">",
            Cmp::Ge => ">=",
            Cmp::Match => "~",
            Cmp::NotMatch => "!~",
            Cmp::In => "in",
            Cmp::NotIn => "not in",
        })
    }
}

impl Literal {
    /// The bare word, or the quoted text if it is UTF-8.
    pub(super) fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.bytes).ok()
    }

    /// True for the unquoted word `null`.
    pub(super) fn is_null(&self) -> bool {
        !self.quoted && &*self.bytes == b"null"
    }
}

impl Ast {
    /// True if the filter has no comparison.
    pub fn is_empty(&self) -> bool {
        matches!(&self.root, Node::And(parts) if parts.is_empty())
    }

    /// Returns the text that was parsed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the parts of the top-level `and`, each as a filter with the whole text.
    pub fn conjuncts(&self) -> Vec<Ast> {
        let one = |root: &Node| Ast { text: Arc::clone(&self.text), root: root.clone() };
        match &self.root {
            Node::And(parts) => parts.iter().map(one).collect(),
            root => vec![one(root)],
        }
    }

    /// Returns every compared name, in order, including duplicates.
    pub fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.root.for_each_test(&mut |test| names.push(&*test.name));
        names
    }
}

impl Node {
    /// Calls `each` with every comparison, from left to right.
    pub(super) fn for_each_test<'n>(&'n self, each: &mut dyn FnMut(&'n Comparison)) {
        match self {
            Node::And(parts) | Node::Or(parts) => parts.iter().for_each(|part| part.for_each_test(each)),
            Node::Not(part) => part.for_each_test(each),
            Node::Test(test) => each(test),
        }
    }
}

impl fmt::Display for Ast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.root.fmt(f)
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Node::And(parts) => put_joined(f, parts, " and "),
            Node::Or(parts) => put_joined(f, parts, " or "),
            Node::Not(part) => {
                f.write_str("not ")?;
                put_nested(f, part)
            }
            Node::Test(test) => test.fmt(f),
        }
    }
}

/// Writes parts with `word` between them. `and` binds tighter and needs no brackets inside `or`: the printed text must
/// not be nested deeper than the original.
fn put_joined(f: &mut fmt::Formatter<'_>, parts: &[Node], word: &str) -> fmt::Result {
    for (i, part) in parts.iter().enumerate() {
        if i > 0 {
            f.write_str(word)?;
        }
        match part {
            Node::Or(_) => put_nested(f, part)?,
            _ => write!(f, "{part}")?,
        }
    }
    Ok(())
}

/// Writes a part, in brackets if it would bind differently without.
fn put_nested(f: &mut fmt::Formatter<'_>, part: &Node) -> fmt::Result {
    match part {
        Node::And(_) | Node::Or(_) => write!(f, "({part})"),
        Node::Not(_) | Node::Test(_) => write!(f, "{part}"),
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", self.name, self.cmp)?;
        if self.is_list {
            f.write_str("(")?;
        }
        for (i, value) in self.values.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            put_literal(f, value, self.cmp.is_match())?;
        }
        if self.is_list {
            f.write_str(")")?;
        }
        Ok(())
    }
}

/// Writes a value in its original form: bare, or in quotes. `raw` is for regular expressions, whose backslashes are
/// literal.
fn put_literal(f: &mut fmt::Formatter<'_>, value: &Literal, raw: bool) -> fmt::Result {
    match value.as_str() {
        Some(word) if !value.quoted => f.write_str(word),
        Some(text) if raw => put_raw(f, text),
        _ => put_quoted(f, &value.bytes),
    }
}

/// Writes a quoted regular expression: pairs with a backslash stay, a quote gets a backslash.
fn put_raw(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => write!(f, "\\{}", chars.next().unwrap_or('\\'))?,
            c => write!(f, "{c}")?,
        }
    }
    f.write_str("\"")
}

/// Writes bytes in quotes. Everything except printable ASCII is escaped, so the result is one line of ASCII.
fn put_quoted(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    f.write_str("\"")?;
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => write!(f, "\\{}", byte as char)?,
            b' '..=b'~' => write!(f, "{}", byte as char)?,
            _ => write!(f, "\\x{byte:02x}")?,
        }
    }
    f.write_str("\"")
}
