//! The ids after qualifiers: names, numbers and addresses, also several in parentheses.

use super::Parser;
use crate::ast::{Expr, Id, Primitive};
use crate::error::FilterError;
use crate::lexer::TokenKind;
use crate::words::{IdKind, Word};

impl Parser<'_> {
    /// True if the text after `and` or `or` has no qualifiers of its own and inherits those of the previous primitive.
    pub(super) fn is_id(&self) -> bool {
        let skipped = |what: &TokenKind| matches!(what, TokenKind::Sign(b'(') | TokenKind::Word(Word::Not));
        let ahead = (0..).take_while(|ahead| skipped(self.peek_at(*ahead))).count();
        match self.peek_at(ahead) {
            TokenKind::Name(_) => self.extra_word_at(ahead).is_none(),
            TokenKind::Ipv4(_) | TokenKind::Ipv6(..) | TokenKind::Ether(_) | TokenKind::Arcnet => true,
            TokenKind::Num(_) => self.is_no_operand(ahead + 1),
            _ => false,
        }
    }

    /// True if the number before `ahead` is not part of a relation.
    fn is_no_operand(&self, mut ahead: usize) -> bool {
        while self.peek_at(ahead) == &TokenKind::Sign(b')') {
            ahead += 1;
        }
        !matches!(self.peek_at(ahead), TokenKind::Sign(_) | TokenKind::Pair(_))
    }

    /// An id with the qualifiers of [`Parser::last`].
    pub(super) fn id(&mut self) -> Result<Expr, FilterError> {
        self.enter_level()?;
        let found = match self.peek() {
            TokenKind::Word(Word::Not) => {
                self.advance();
                Expr::Not(Box::new(self.id()?))
            }
            TokenKind::Sign(b'(') => self.ids()?,
            _ => self.parse_id()?,
        };
        self.depth -= 1;
        Ok(found)
    }

    /// `(a or b and c)`
    fn ids(&mut self) -> Result<Expr, FilterError> {
        self.advance();
        let first = self.id()?;
        let mut rest = Vec::new();
        while let Some(join) = self.join() {
            rest.push((join, self.id()?));
        }
        self.expect(b')')?;
        Ok(if rest.is_empty() { first } else { Expr::Chain(Box::new(first), rest) })
    }

    fn parse_id(&mut self) -> Result<Expr, FilterError> {
        let at = self.position();
        let id = match self.peek().clone() {
            TokenKind::Name(name) => Id::Name(name),
            TokenKind::Num(number) => Id::Number(number),
            TokenKind::Ipv4(text) => return self.ipv4(text, at),
            TokenKind::Ipv6(text, address) => {
                self.advance();
                let prefix = if self.take(b'/') { self.number()? } else { 128 };
                return Ok(self.leaf(Primitive::Id(self.last, Id::Ipv6(text, address, prefix)), at));
            }
            TokenKind::Ether(address) => Id::Ether(address),
            TokenKind::Arcnet => Id::Arcnet,
            _ => return Err(self.unexpected()),
        };
        self.advance();
        Ok(self.leaf(Primitive::Id(self.last, id), at))
    }

    fn ipv4(&mut self, text: String, at: usize) -> Result<Expr, FilterError> {
        self.advance();
        let id = if self.take(b'/') {
            Id::Ipv4Prefix(text, self.number()?)
        } else if self.peek() == &TokenKind::Word(Word::Mask) {
            self.advance();
            let TokenKind::Ipv4(mask) = self.peek().clone() else { return Err(self.unexpected()) };
            self.advance();
            Id::Ipv4Mask(text, mask)
        } else {
            if let Some(word) = self.last.and_then(|last| no_address(last.kind)) {
                return Err(FilterError::new(format!("'{word}' modifier applied to ip host"), at));
            }
            Id::Ipv4(text)
        };
        Ok(self.leaf(Primitive::Id(self.last, id), at))
    }
}

/// Returns the word of a qualifier that no address can follow.
fn no_address(kind: IdKind) -> Option<&'static str> {
    match kind {
        IdKind::Port => Some("port"),
        IdKind::Portrange => Some("portrange"),
        IdKind::Proto => Some("proto"),
        IdKind::Protochain => Some("protochain"),
        _ => None,
    }
}
