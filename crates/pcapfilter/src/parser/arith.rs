//! Arithmetic, and relations of two numbers.

use super::{ParenthesisContent, Parser};
use crate::ast::{Arith, Operator, Primitive, Relation};
use crate::error::FilterError;
use crate::lexer::TokenKind;
use crate::words::Word;

/// Operators in one relation. They may be nested, so this limits the depth too.
///
/// Bound: operators in one relation of a pcap filter. Beyond: the filter is refused. By: the user.
const OPERATORS_MAX: usize = 400;

/// An operator that waits for its right side.
#[derive(Clone, Copy)]
enum PendingOperator {
    Negate,
    Binary(Operator),
}

/// Returns the precedence of an operator. In libpcap's grammar `%` and `^` lack one: everything after or before them
/// belongs to them.
fn precedence(operator: Operator) -> Option<u8> {
    match operator {
        Operator::Mod | Operator::Xor => None,
        Operator::Or => Some(1),
        Operator::And => Some(2),
        Operator::ShiftLeft | Operator::ShiftRight => Some(3),
        Operator::Add | Operator::Sub => Some(4),
        Operator::Mul | Operator::Div => Some(5),
    }
}

impl PendingOperator {
    /// True if this operator is computed before `next`.
    fn binds_before(self, next: Operator) -> bool {
        let Some(next) = precedence(next) else { return false };
        match self {
            PendingOperator::Negate => true,
            PendingOperator::Binary(operator) => precedence(operator).is_some_and(|rank| rank >= next),
        }
    }

    fn apply(self, operands: &mut Vec<Arith>) {
        let Some(right) = operands.pop() else { return };
        match self {
            PendingOperator::Negate => operands.push(Arith::Negate(Box::new(right))),
            PendingOperator::Binary(operator) => {
                let Some(left) = operands.pop() else { return };
                operands.push(Arith::Binary(operator, Box::new(left), Box::new(right)));
            }
        }
    }
}

impl Parser<'_> {
    /// Parses a relation. `first` is its first operand if that was in parentheses. A number without relation is
    /// returned as a number.
    pub(super) fn relation(&mut self, first: Option<Arith>) -> Result<ParenthesisContent, FilterError> {
        let at = self.position();
        if first.is_none() {
            self.operators = 0;
        }
        let left = self.arith(first)?;
        let Some(relation) = self.relation_sign() else { return Ok(ParenthesisContent::Arith(left)) };
        let right = self.arith(None)?;
        self.last = None;
        Ok(ParenthesisContent::Expr(self.leaf(Primitive::Relation(relation, left, right), at)))
    }

    pub(super) fn relation_sign(&mut self) -> Option<Relation> {
        let relation = match self.peek() {
            TokenKind::Sign(b'>') => Relation::Greater,
            TokenKind::Sign(b'<') => Relation::Less,
            TokenKind::Sign(b'=') => Relation::Equal,
            TokenKind::Pair([b'>', b'=']) => Relation::GreaterOrEqual,
            TokenKind::Pair([b'<', b'=']) => Relation::LessOrEqual,
            TokenKind::Pair([b'!', b'=']) => Relation::NotEqual,
            _ => return None,
        };
        self.advance();
        Some(relation)
    }

    fn operator(&self) -> Option<Operator> {
        Some(match self.peek() {
            TokenKind::Sign(b'+') => Operator::Add,
            TokenKind::Sign(b'-') => Operator::Sub,
            TokenKind::Sign(b'*') => Operator::Mul,
            TokenKind::Sign(b'/') => Operator::Div,
            TokenKind::Sign(b'%') => Operator::Mod,
            TokenKind::Sign(b'&') => Operator::And,
            TokenKind::Sign(b'|') => Operator::Or,
            TokenKind::Sign(b'^') => Operator::Xor,
            TokenKind::Pair([b'<', b'<']) => Operator::ShiftLeft,
            TokenKind::Pair([b'>', b'>']) => Operator::ShiftRight,
            _ => return None,
        })
    }

    /// Parses operands and operators by the precedence of the operators.
    fn arith(&mut self, first: Option<Arith>) -> Result<Arith, FilterError> {
        let mut operands: Vec<Arith> = Vec::new();
        let mut waiting: Vec<PendingOperator> = Vec::new();
        let mut given = first;
        loop {
            match given.take() {
                Some(first) => operands.push(first),
                None => {
                    while self.take(b'-') {
                        self.count_operator()?;
                        waiting.push(PendingOperator::Negate);
                    }
                    operands.push(self.operand()?);
                }
            }
            let Some(operator) = self.operator() else { break };
            while let Some(last) = waiting.last().copied().filter(|last| last.binds_before(operator)) {
                waiting.pop();
                last.apply(&mut operands);
            }
            waiting.push(PendingOperator::Binary(operator));
            self.count_operator()?;
            self.advance();
        }
        while let Some(last) = waiting.pop() {
            last.apply(&mut operands);
        }
        operands.pop().ok_or_else(|| self.unexpected())
    }

    fn count_operator(&mut self) -> Result<(), FilterError> {
        self.operators += 1;
        if self.operators <= OPERATORS_MAX {
            return Ok(());
        }
        Err(FilterError::new("arithmetic expression is too long", self.position()))
    }

    fn operand(&mut self) -> Result<Arith, FilterError> {
        self.enter_level()?;
        let operand = match *self.peek() {
            TokenKind::Num(number) => {
                self.advance();
                Arith::Number(number)
            }
            TokenKind::Word(Word::Len) => {
                self.advance();
                Arith::Len
            }
            TokenKind::Word(Word::Proto(proto)) if self.peek_at(1) == &TokenKind::Sign(b'[') => {
                self.next += 2;
                let offset = Box::new(self.arith(None)?);
                let size = if self.take(b':') { self.number()? } else { 1 };
                self.expect(b']')?;
                Arith::Load { proto, offset, size }
            }
            TokenKind::Sign(b'(') => {
                self.advance();
                let inner = self.arith(None)?;
                self.expect(b')')?;
                inner
            }
            _ => return Err(self.unexpected()),
        };
        self.depth -= 1;
        Ok(operand)
    }
}
