//! The filter language: one for all tables.
//!
//! ```text
//! state = established and peer in 10.0.0.0/8 and rtt > 20ms and not process ~ "^nginx"
//! ```
//! Words become an [`Ast`] without knowing any table ([`parse`]), then an [`Expr`] over one table's
//! fields ([`bind`]). Between the two a command may [`split`] the tree between two tables. Evaluation is the job of
//! [`Predicate`](crate::Predicate).
//!
//! | form | means |
//! |---|---|
//! | `field op value` | `=` `==` `!=` `<` `<=` `>` `>=` `~` (regular expression) `!~` |
//! | `field in value`, `field in (a, b-c)` | one of; addresses take prefixes, numbers take ranges; `not in` |
//! | `field = null` | the value is absent; any other comparison with an absent value is false |
//! | `and` `or` `not` `( )`, `&&` `\|\|` `!` | `not` binds before `and` before `or` |
//! | `20ms` `1.5s` `1MiB` `10k` `10Mbps` `0x1f` | numbers in the unit of the field |
//! | `local = 10.1.2.3:443`, `peer = [2001:db8::1]:443`, `peer = :443` | address, port or both |
//! | `local_port = https`, `peer = :https` | service names of ports, see [`name_ports`] |
//! | `owners.pid = 7` | a member of the objects in a list: any object may match, with `!=` none may |
//! | `10:30` `-5m` `now` `2026-11-22T10:30:00Z` | points in time: today, relative, RFC 3339; see [`resolve_times`] |
//! | `"quoted \"text\"\n\x00"`, `'so too'` | text with blanks or signs; after `~` only quotes are unescaped |
mod ast;
mod bind;
mod cursor;
mod endpoint;
mod error;
mod fuzz;
mod links;
mod literal;
mod meant;
mod meant_as;
mod names;
mod parser;
mod services;
mod split;
mod time;

pub use ast::Ast;
pub use bind::bind;
pub use error::{Fault, FilterError};
pub use fuzz::fuzz_filter;
pub use meant::{meant_surely, suggest_filter, with_proposal};
pub use names::is_known_name;
pub use parser::parse;
pub use services::{ServicePorts, name_ports};
pub use split::split;
pub use time::{Clock, resolve_times};

use record::{Expr, Schema};

/// Parses and binds in one go: the conjuncts of `text` over `table`. Empty text gives none.
pub fn conjuncts(table: Schema, text: &str) -> Result<Vec<Expr>, FilterError> {
    Ok(bind(table, &parse(text)?)?.into_conjuncts())
}

#[cfg(test)]
mod tests;
