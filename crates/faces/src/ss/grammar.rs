//! The expression grammar: a sequence of conditions joined by `and`, `or` or nothing, evaluated from left to right.
//!
//! `and` does not bind tighter than `or`: `a or b and c` is `(a or b) and c`. `not` applies to the next condition
//! only.

use super::Stop;
use super::condition::{Condition, Side};
use super::environment::Environment;
use super::operand::{self, Kind};
use super::tables::Selection;
use super::token::{Compare, Subject, Token, split, token};
use crate::text::printable;
use std::collections::VecDeque;

/// The limit for nested brackets, `not`, and switches between `and` and `or` in one expression, so that parsing fits a
/// stack of 2 MiB. ss gives up at some thousands.
///
/// Bound: levels of nesting in an expression of `ss`. Beyond: the expression is refused. By: the user.
const DEPTH_MAX: usize = 100;

/// Parses the expression; returns None if it is empty. Families named in it narrow `selection`.
pub(super) fn parse(
    args: &[Vec<u8>],
    selection: &mut Selection,
    environment: &dyn Environment,
) -> Result<Option<Condition>, Stop> {
    let mut parser = Parser { words: split(args), ahead: None, kind: Kind::Address, selection, environment, depth: 0 };
    if parser.peek()?.is_none() {
        return Ok(None);
    }
    let condition = parser.list()?;
    match parser.peek()? {
        None => Ok(Some(condition)),
        Some(_) => Err(Stop::syntax("syntax error")),
    }
}

/// The parser's lookahead.
#[derive(Clone, PartialEq, Debug)]
enum Ahead {
    Token(Token),
    /// A right side that was already parsed: ss reports a bad operand before a syntax error.
    Operand(operand::Operand),
}

struct Parser<'p> {
    words: VecDeque<Vec<u8>>,
    ahead: Option<Ahead>,
    /// The kind of the next bare word, set by the left side of a comparison.
    kind: Kind,
    selection: &'p mut Selection,
    environment: &'p dyn Environment,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&mut self) -> Result<Option<&Ahead>, Stop> {
        if self.ahead.is_none() {
            let Some(word) = self.words.pop_front() else { return Ok(None) };
            let token = token(&word);
            self.ahead = Some(match token {
                Token::Word => Ahead::Operand(operand::read(&word, self.kind, self.selection, self.environment)?),
                Token::Field(subject) => {
                    self.kind = kind_of(subject);
                    Ahead::Token(token)
                }
                _ => Ahead::Token(token),
            });
        }
        Ok(self.ahead.as_ref())
    }

    fn next(&mut self) -> Result<Option<Ahead>, Stop> {
        self.peek()?;
        Ok(self.ahead.take())
    }

    fn next_is(&mut self, token: Token) -> Result<bool, Stop> {
        Ok(self.peek()? == Some(&Ahead::Token(token)))
    }

    fn list(&mut self) -> Result<Condition, Stop> {
        let mut left = self.one()?;
        loop {
            let or = match self.peek()? {
                None | Some(Ahead::Token(Token::Close)) => return Ok(left),
                Some(Ahead::Token(joint @ (Token::Or | Token::And))) => {
                    let or = *joint == Token::Or;
                    self.next()?;
                    or
                }
                // Two adjacent conditions are joined by an implicit `and`.
                Some(_) => false,
            };
            let right = self.one()?;
            left = match (left, or) {
                (Condition::And(mut parts), false) => {
                    parts.push(right);
                    Condition::And(parts)
                }
                (Condition::Or(mut parts), true) => {
                    parts.push(right);
                    Condition::Or(parts)
                }
                (left, or) => {
                    // A switch between `and` and `or` nests like a bracket.
                    self.deeper()?;
                    let parts = vec![left, right];
                    if or { Condition::Or(parts) } else { Condition::And(parts) }
                }
            };
        }
    }

    fn deeper(&mut self) -> Result<(), Stop> {
        self.depth += 1;
        if self.depth > DEPTH_MAX { Err(Stop::syntax("memory exhausted")) } else { Ok(()) }
    }

    fn one(&mut self) -> Result<Condition, Stop> {
        let condition = match self.next()? {
            Some(Ahead::Token(Token::Open)) => {
                self.deeper()?;
                let inside = self.list()?;
                if !self.next_is(Token::Close)? {
                    return Err(Stop::syntax("syntax error"));
                }
                self.next()?;
                inside
            }
            Some(Ahead::Token(Token::Not)) => {
                self.deeper()?;
                Condition::Not(Box::new(self.one()?))
            }
            Some(Ahead::Token(Token::Autobound)) => Condition::Autobound,
            Some(Ahead::Token(Token::Field(subject))) => self.comparison(subject)?,
            _ => return Err(Stop::syntax("syntax error")),
        };
        Ok(condition)
    }

    fn comparison(&mut self, subject: Subject) -> Result<Condition, Stop> {
        let compare = match self.peek()? {
            Some(Ahead::Token(Token::Compare(compare))) => {
                let compare = *compare;
                if !allowed(subject, compare) {
                    return Err(Stop::syntax("syntax error"));
                }
                self.next()?;
                compare
            }
            _ => Compare::Eq,
        };
        let Some(Ahead::Operand(operand)) = self.next()? else { return Err(Stop::syntax("syntax error")) };
        build(subject, compare, operand).ok_or_else(|| Stop::syntax("syntax error"))
    }
}

fn kind_of(subject: Subject) -> Kind {
    match subject {
        Subject::Dst | Subject::Src => Kind::Address,
        Subject::Dport | Subject::Sport => Kind::Port,
        Subject::Dev => Kind::Dev,
        Subject::Fwmark => Kind::Mark,
        Subject::Cgroup => Kind::Cgroup,
    }
}

fn allowed(subject: Subject, compare: Compare) -> bool {
    match subject {
        Subject::Dst | Subject::Src => compare == Compare::Eq,
        Subject::Dport | Subject::Sport => true,
        Subject::Dev | Subject::Fwmark | Subject::Cgroup => matches!(compare, Compare::Eq | Compare::Ne),
    }
}

fn build(subject: Subject, compare: Compare, operand: operand::Operand) -> Option<Condition> {
    let side = match subject {
        Subject::Dst | Subject::Dport => Side::Peer,
        _ => Side::Local,
    };
    let condition = match operand {
        operand::Operand::Host(host) if matches!(compare, Compare::Eq | Compare::Ne) => Condition::Host(side, host),
        // An inequality compares only the port; without a port, every port is large enough and none is small enough.
        operand::Operand::Host(host) => return Some(Condition::Port(side, compare, host.port.unwrap_or(-1))),
        operand::Operand::Dev(index) => Condition::Dev(index),
        operand::Operand::Mark { value, mask } => Condition::Mark { value, mask },
        operand::Operand::Cgroup(id) => Condition::Cgroup(id),
    };
    Some(match compare {
        Compare::Ne => Condition::Not(Box::new(condition)),
        _ => condition,
    })
}

impl Stop {
    /// The message of ss's bison parser, followed by the usage.
    fn syntax(what: &str) -> Stop {
        Stop::usage(format!("ss: bison bellows (while parsing filter): \"{what}!\" Sorry."))
    }

    /// An invalid operand: exit code 1, no usage.
    pub(super) fn operand(lines: &str) -> Stop {
        Stop::fail(lines.to_owned(), 1)
    }

    /// Makes messages like `Cannot parse mark x.`.
    pub(super) fn cannot_parse(what: &str, word: &[u8]) -> Stop {
        Stop::operand(&format!("Cannot parse {what} {}.", printable(word)))
    }
}
