//! The parser of filters: recursive descent, one function per level of binding.

use super::ast::{Ast, Cmp, Comparison, Node};
use super::cursor::Cursor;
use super::error::{Fault, FilterError, Span};

/// Parses a filter. Names are not resolved yet; the empty text is the filter that passes every row.
///
/// Fails on text that is not a filter, is longer than [`FilterError::TEXT_MAX`] or nests deeper than
/// [`FilterError::DEPTH_MAX`].
pub fn parse(text: &str) -> Result<Ast, FilterError> {
    if text.len() > FilterError::TEXT_MAX {
        let shown: String = text.chars().take(100).collect();
        let message = format!("the filter has {} bytes; the limit is {}", text.len(), FilterError::TEXT_MAX);
        return Err(FilterError::new(&shown, Span { start: 0, end: 1 }, Fault::TooLong, message));
    }
    let mut parser = Parser { text, cursor: Cursor::new(text), depth: 0 };
    let root = if parser.cursor.at_end() { Node::And(Vec::new()) } else { parser.parse_or()? };
    if !parser.cursor.at_end() {
        return Err(parser.unexpected());
    }
    Ok(Ast { text: text.into(), root })
}

/// The state of a parse. `either`, `both` and `not` are the levels of binding, from the loosest to the tightest.
struct Parser<'t> {
    /// The whole filter, for messages.
    text: &'t str,
    cursor: Cursor<'t>,
    /// Open levels of brackets and `not`; limited, because each is a call on the stack.
    depth: usize,
}

impl Parser<'_> {
    /// Parses parts joined by `or`.
    fn parse_or(&mut self) -> Result<Node, FilterError> {
        let mut parts = Vec::new();
        loop {
            match self.parse_and()? {
                Node::Or(inner) => parts.extend(inner),
                part => parts.push(part),
            }
            if !(self.cursor.take_sign("||") || self.cursor.take_word("or")) {
                break;
            }
        }
        Ok(join_nodes(parts, Node::Or))
    }

    /// Parses parts joined by `and`.
    fn parse_and(&mut self) -> Result<Node, FilterError> {
        let mut parts = Vec::new();
        loop {
            match self.not()? {
                Node::And(inner) => parts.extend(inner),
                part => parts.push(part),
            }
            if !(self.cursor.take_sign("&&") || self.cursor.take_word("and")) {
                break;
            }
        }
        Ok(join_nodes(parts, Node::And))
    }

    /// Parses `not`, brackets, or a comparison.
    fn not(&mut self) -> Result<Node, FilterError> {
        let here = self.cursor.next_char_span();
        let negated = self.cursor.take_word("not") || self.cursor.take_sign("!");
        if !negated && !self.cursor.take_sign("(") {
            return self.comparison();
        }
        self.depth += 1;
        if self.depth > FilterError::DEPTH_MAX {
            let message = format!("nested more than {} levels deep", FilterError::DEPTH_MAX);
            return Err(FilterError::new(self.text, here, Fault::TooDeep, message));
        }
        let node = if negated { Node::Not(Box::new(self.not()?)) } else { self.parse_brackets(here)? };
        self.depth -= 1;
        Ok(node)
    }

    /// Parses the content of brackets; `opened` is the position of the opening one.
    fn parse_brackets(&mut self, opened: Span) -> Result<Node, FilterError> {
        let inner = self.parse_or()?;
        if self.cursor.take_sign(")") {
            return Ok(inner);
        }
        if self.cursor.at_end() {
            return Err(FilterError::new(self.text, opened, Fault::Syntax, "this bracket is not closed"));
        }
        Err(self.unexpected())
    }

    /// Parses `name op value` or `name in (value, …)`.
    ///
    /// Whether the name is a field, and whether the value fits it, is checked later: that depends on the table.
    fn comparison(&mut self) -> Result<Node, FilterError> {
        let name = self.cursor.peek_name().filter(|(name, _)| !is_keyword(name));
        let Some((name, name_span)) = name else {
            let here = self.cursor.next_word();
            return Err(FilterError::new(self.text, here, Fault::Syntax, "a field name is missing here"));
        };
        self.cursor.take(name_span);
        let Some((cmp, cmp_span)) = self.cursor.comparison() else {
            let here = if self.cursor.at_end() { name_span } else { self.cursor.next_word() };
            let message =
                format!("an operator is missing after `{name}`; the operators are = != < <= > >= ~ !~ in, not in");
            return Err(FilterError::new(self.text, here, Fault::Syntax, message));
        };
        let opened = self.cursor.next_char_span();
        let is_list = self.cursor.take_sign("(");
        if is_list && cmp.is_match() {
            let message = "put a regular expression with brackets, spaces or signs in quotes";
            return Err(FilterError::new(self.text, opened, Fault::Syntax, message));
        }
        if is_list && !matches!(cmp, Cmp::In | Cmp::NotIn) {
            let word = if cmp == Cmp::Ne { "not in" } else { "in" };
            let message = format!("a list can be used only with `in` and `not in`, not with `{cmp}`");
            return Err(FilterError::new(self.text, cmp_span, Fault::Syntax, message).hint(Some(word)));
        }
        let mut values = vec![self.cursor.value(cmp)?];
        while is_list && self.cursor.take_sign(",") {
            values.push(self.cursor.value(cmp)?);
        }
        if is_list && !self.cursor.take_sign(")") {
            if self.cursor.at_end() {
                return Err(FilterError::new(self.text, opened, Fault::Syntax, "this list is not closed"));
            }
            let here = self.cursor.next_word();
            return Err(FilterError::new(self.text, here, Fault::Syntax, "expected `,` or `)` in the list"));
        }
        Ok(Node::Test(Comparison { name: name.into(), name_span, cmp, cmp_span, values, is_list }))
    }

    /// The error for text where the filter could have ended.
    fn unexpected(&mut self) -> FilterError {
        let here = self.cursor.next_word();
        let message = match self.cursor.slice(here) {
            ")" => "this bracket has no opening bracket".to_owned(),
            word => format!("expected `and` or `or` before `{word}`; a value with spaces or signs needs quotes"),
        };
        FilterError::new(self.text, here, Fault::Syntax, message)
    }
}

/// True for words, in any case, that cannot be the name of a field.
fn is_keyword(name: &str) -> bool {
    ["and", "or", "not", "in"].iter().any(|word| name.eq_ignore_ascii_case(word))
}

/// Joins parts; a single part is returned unchanged.
fn join_nodes(mut parts: Vec<Node>, join: fn(Vec<Node>) -> Node) -> Node {
    if parts.len() == 1 {
        return parts.remove(0);
    }
    join(parts)
}
