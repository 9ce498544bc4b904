//! Parses tokens to a tree: the grammar of pcap-filter(7), as in libpcap's parser.
//!
//! `and` and `or` have the same precedence and are evaluated from left to right. A bare name, number or address after
//! them inherits the qualifiers of the previous primitive. Depth is limited, so that no text overflows the stack.

mod arith;
mod id;

use crate::ast::{Arith, Expr, Join, Leaf, Primitive, Qualifiers};
use crate::error::FilterError;
use crate::lexer::{self, Token, TokenKind};
use crate::words::{Dir, IdKind, Proto, Word};

/// Maximum depth of nested parentheses, `not` and arithmetic.
///
/// Bound: levels of nesting in a pcap filter (`refusals::what_is_too_long_or_too_deep_is_refused`). Beyond: the filter
/// is refused. By: the user.
const DEPTH_MAX: usize = 200;

/// A word that the caller adds to the language, valid wherever a primitive is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtraWord {
    /// The word, in lower case.
    pub name: &'static str,
    /// True if a name, number or address follows it.
    pub takes_argument: bool,
}

/// The result of parsing: leaves in order, and the tree over them or the error.
pub(crate) struct ParseResult {
    pub(crate) leaves: Vec<Leaf>,
    /// The tree is None for an empty expression.
    pub(crate) tree: Result<Option<Expr>, FilterError>,
}

/// Parses an expression. If parsing fails, the leaves before the failure are still returned: an error in one of them
/// is reported instead.
pub(crate) fn parse(text: &str, extra: &[ExtraWord]) -> ParseResult {
    let (tokens, leaves) = (lexer::tokens(text), Vec::new());
    let mut parser = Parser { tokens, next: 0, extra, leaves, depth: 0, operators: 0, last: None };
    let tree = parser.parse_all();
    ParseResult { leaves: parser.leaves, tree }
}

struct Parser<'a> {
    tokens: Vec<Token>,
    next: usize,
    extra: &'a [ExtraWord],
    leaves: Vec<Leaf>,
    depth: usize,
    /// Operators in the current relation.
    operators: usize,
    /// Qualifiers that a bare name would inherit.
    last: Option<Qualifiers>,
}

/// The content of parentheses.
enum ParenthesisContent {
    Expr(Expr),
    Arith(Arith),
}

impl Parser<'_> {
    fn parse_all(&mut self) -> Result<Option<Expr>, FilterError> {
        if self.peek() == &TokenKind::End {
            return Ok(None);
        }
        let tree = self.expr()?;
        if self.peek() == &TokenKind::End { Ok(Some(tree)) } else { Err(self.unexpected()) }
    }

    fn peek(&self) -> &TokenKind {
        self.peek_at(0)
    }

    fn peek_at(&self, ahead: usize) -> &TokenKind {
        self.tokens.get(self.next + ahead).map_or(&TokenKind::End, |token| &token.what)
    }

    fn position(&self) -> usize {
        self.tokens.get(self.next).or(self.tokens.last()).map_or(0, |token| token.at)
    }

    fn advance(&mut self) {
        self.next += 1;
    }

    fn unexpected(&self) -> FilterError {
        let token = self.tokens.get(self.next).or(self.tokens.last());
        token.map_or_else(|| FilterError::syntax(0), lexer::unexpected)
    }

    /// Consumes the token if it is this sign.
    fn take(&mut self, sign: u8) -> bool {
        let is_next = self.peek() == &TokenKind::Sign(sign);
        self.next += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, sign: u8) -> Result<(), FilterError> {
        if self.take(sign) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// Enters one more level, or fails.
    fn enter_level(&mut self) -> Result<(), FilterError> {
        self.depth += 1;
        if self.depth <= DEPTH_MAX {
            Ok(())
        } else {
            Err(FilterError::new("expression is nested too deeply", self.position()))
        }
    }

    fn leaf(&mut self, primitive: Primitive, at: usize) -> Expr {
        self.leaves.push(Leaf { primitive, at });
        Expr::Leaf(self.leaves.len() - 1)
    }

    /// Terms joined by `and` and `or`.
    fn expr(&mut self) -> Result<Expr, FilterError> {
        match self.term()? {
            ParenthesisContent::Expr(first) => self.chain(first),
            ParenthesisContent::Arith(_) => Err(self.unexpected()),
        }
    }

    fn join(&mut self) -> Option<Join> {
        let join = match self.peek() {
            TokenKind::Word(Word::And) => Join::And,
            TokenKind::Word(Word::Or) => Join::Or,
            _ => return None,
        };
        self.advance();
        Some(join)
    }

    fn chain(&mut self, first: Expr) -> Result<Expr, FilterError> {
        let mut rest = Vec::new();
        while let Some(join) = self.join() {
            let next = if self.is_id() {
                self.id()?
            } else {
                match self.term()? {
                    ParenthesisContent::Expr(next) => next,
                    ParenthesisContent::Arith(_) => return Err(self.unexpected()),
                }
            };
            rest.push((join, next));
        }
        Ok(if rest.is_empty() { first } else { Expr::Chain(Box::new(first), rest) })
    }

    /// A primitive, `not`, or parentheses. Those may contain a number, which is returned if no relation follows.
    fn term(&mut self) -> Result<ParenthesisContent, FilterError> {
        self.enter_level()?;
        let found = match self.peek() {
            TokenKind::Word(Word::Not) => {
                self.advance();
                match self.term()? {
                    ParenthesisContent::Expr(inner) => ParenthesisContent::Expr(Expr::Not(Box::new(inner))),
                    ParenthesisContent::Arith(_) => return Err(self.unexpected()),
                }
            }
            TokenKind::Sign(b'(') => self.parse_parenthesis()?,
            TokenKind::Num(_) | TokenKind::Sign(b'-') | TokenKind::Word(Word::Len) => self.relation(None)?,
            TokenKind::Word(Word::Proto(_)) if self.peek_at(1) == &TokenKind::Sign(b'[') => self.relation(None)?,
            _ => ParenthesisContent::Expr(self.primitive()?),
        };
        self.depth -= 1;
        Ok(found)
    }

    fn parse_parenthesis(&mut self) -> Result<ParenthesisContent, FilterError> {
        let outer = self.last;
        self.advance();
        let inner = match self.term()? {
            ParenthesisContent::Expr(first) => ParenthesisContent::Expr(self.chain(first)?),
            arith => arith,
        };
        self.expect(b')')?;
        match inner {
            ParenthesisContent::Expr(inner) => {
                self.last = outer;
                Ok(ParenthesisContent::Expr(inner))
            }
            ParenthesisContent::Arith(first) => self.relation(Some(first)),
        }
    }

    /// A primitive that begins with a word.
    fn primitive(&mut self) -> Result<Expr, FilterError> {
        let at = self.position();
        if let Some(index) = self.extra_word() {
            return self.extra_primitive(index);
        }
        let TokenKind::Word(word) = *self.peek() else { return Err(self.unexpected()) };
        let proto = match word {
            Word::Proto(proto) => {
                self.advance();
                proto
            }
            _ => Proto::Default,
        };
        match *self.peek() {
            TokenKind::Word(Word::Dir(_) | Word::Kind(_)) => return self.parse_qualified(proto),
            TokenKind::Word(next @ (Word::Broadcast | Word::Multicast)) => {
                self.advance();
                self.last = None;
                let is_broadcast = next == Word::Broadcast;
                let primitive = if is_broadcast { Primitive::Broadcast(proto) } else { Primitive::Multicast(proto) };
                return Ok(self.leaf(primitive, at));
            }
            TokenKind::Word(Word::Foreign(word)) if word.refusal.contains("802.11") => {
                self.advance();
                self.skip_argument()?;
                self.last = None;
                return Ok(self.leaf(Primitive::Foreign(word.refusal), at));
            }
            _ => {}
        }
        self.last = None;
        if proto != Proto::Default {
            return Ok(self.leaf(Primitive::Proto(proto), at));
        }
        let primitive = self.parse_other(word)?;
        Ok(self.leaf(primitive, at))
    }

    fn parse_other(&mut self, word: Word) -> Result<Primitive, FilterError> {
        if !matches!(word, Word::And | Word::Or | Word::Mask) {
            self.advance();
        }
        Ok(match word {
            Word::Less => Primitive::Less(self.number()?),
            Word::Greater => Primitive::Greater(self.number()?),
            Word::Byte => {
                let offset = self.number()?;
                let TokenKind::Sign(sign @ (b'&' | b'|' | b'<' | b'>' | b'=')) = *self.peek() else {
                    return Err(self.unexpected());
                };
                self.advance();
                Primitive::Byte(offset, sign, self.number()?)
            }
            Word::Inbound => Primitive::Inbound,
            Word::Outbound => Primitive::Outbound,
            Word::Ifindex => Primitive::Ifindex(self.number()?),
            Word::Vlan => Primitive::Vlan(self.optional_number()?),
            Word::Mpls => Primitive::Mpls(self.optional_number()?),
            Word::Pppoed => Primitive::Pppoed,
            Word::Pppoes => Primitive::Pppoes(self.optional_number()?),
            Word::Geneve => Primitive::Geneve(self.optional_number()?),
            Word::Llc => Primitive::Llc(self.llc_type()),
            Word::Foreign(word) => {
                if word.takes_argument {
                    self.skip_argument()?;
                }
                Primitive::Foreign(word.refusal)
            }
            _ => return Err(self.unexpected()),
        })
    }

    fn llc_type(&mut self) -> Option<String> {
        let name = match self.peek() {
            TokenKind::Name(name) => name.clone(),
            // Elsewhere it is a word of its own.
            TokenKind::Word(Word::Foreign(word)) if word.refusal.starts_with("rnr") => "rnr".to_owned(),
            _ => return None,
        };
        self.advance();
        Some(name)
    }

    /// Skips the argument of a word that is refused. Words of ATM and SS7 also accept a relation.
    fn skip_argument(&mut self) -> Result<(), FilterError> {
        _ = self.relation_sign();
        if !matches!(self.peek(), TokenKind::Name(_) | TokenKind::Num(_)) {
            return Err(self.unexpected());
        }
        self.advance();
        Ok(())
    }

    fn number(&mut self) -> Result<u32, FilterError> {
        let TokenKind::Num(number) = *self.peek() else { return Err(self.unexpected()) };
        self.advance();
        Ok(number)
    }

    /// A number, with or without parentheses, if one follows.
    fn optional_number(&mut self) -> Result<Option<u32>, FilterError> {
        let mut open = 0;
        while self.take(b'(') {
            open += 1;
        }
        if open == 0 && !matches!(self.peek(), TokenKind::Num(_)) {
            return Ok(None);
        }
        let number = self.number()?;
        for _ in 0..open {
            self.expect(b')')?;
        }
        Ok(Some(number))
    }

    /// Returns the caller's word at the current token.
    fn extra_word(&self) -> Option<usize> {
        self.extra_word_at(0)
    }

    /// Returns the caller's word `ahead` tokens further on. After a backslash it is a name.
    fn extra_word_at(&self, ahead: usize) -> Option<usize> {
        let token = self.tokens.get(self.next + ahead)?;
        match &token.what {
            TokenKind::Name(name) if !token.is_escaped => self.extra.iter().position(|word| word.name == name),
            _ => None,
        }
    }

    fn extra_primitive(&mut self, index: usize) -> Result<Expr, FilterError> {
        let at = self.position();
        self.advance();
        self.last = None;
        let takes_argument = self.extra.get(index).is_some_and(|word| word.takes_argument);
        let argument = match self.peek() {
            _ if !takes_argument => String::new(),
            TokenKind::Name(text) | TokenKind::Ipv4(text) | TokenKind::Ipv6(text, _) => text.clone(),
            TokenKind::Num(number) => number.to_string(),
            _ => return Err(self.unexpected()),
        };
        self.next += usize::from(takes_argument);
        Ok(self.leaf(Primitive::Extra(index, argument), at))
    }

    /// Directions: `src`, `src or dst`, `ta`.
    fn direction(&mut self) -> Option<Dir> {
        let TokenKind::Word(Word::Dir(first)) = *self.peek() else { return None };
        self.advance();
        let both = match (self.peek(), self.peek_at(1)) {
            (TokenKind::Word(Word::Or), TokenKind::Word(Word::Dir(second))) => Some((Dir::SrcOrDst, *second)),
            (TokenKind::Word(Word::And), TokenKind::Word(Word::Dir(second))) => Some((Dir::SrcAndDst, *second)),
            _ => None,
        };
        if let Some((both, Dir::Src | Dir::Dst)) = both.filter(|(_, second)| is_other(first, *second)) {
            self.next += 2;
            return Some(both);
        }
        Some(first)
    }

    /// The remaining qualifiers and their id, after the protocol.
    fn parse_qualified(&mut self, proto: Proto) -> Result<Expr, FilterError> {
        let dir = self.direction();
        let mut kind = IdKind::Default;
        if let TokenKind::Word(Word::Kind(next)) = *self.peek() {
            let takes_dir = matches!(next, IdKind::Host | IdKind::Net | IdKind::Port | IdKind::Portrange);
            if dir.is_some() && !takes_dir {
                return Err(self.unexpected());
            }
            self.advance();
            kind = next;
        }
        self.last = Some(Qualifiers { proto, dir: dir.unwrap_or(Dir::Default), kind });
        self.id()
    }
}

fn is_other(first: Dir, second: Dir) -> bool {
    matches!((first, second), (Dir::Src, Dir::Dst) | (Dir::Dst, Dir::Src))
}
