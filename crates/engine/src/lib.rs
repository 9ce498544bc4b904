//! The engine turns a request into a plan and runs it: filter language, projection, groups, order.
//!
//! It knows tables only by their field tables and sources only by the contract; it reads nothing, decodes nothing and
//! writes no text. A command does the following: [`filter::parse`] and [`filter::bind`] the user's words,
//! [`columns::resolve`] the columns, fill a [`PlanRequest`], make a [`Plan`] of it and [`Plan::run`] it over a
//! [`Feed`]. Start reading at [`run`](mod@run).
#![forbid(unsafe_code)]

mod answers;
pub mod columns;
pub mod diff;
mod explain;
pub mod filter;
mod glob;
mod group;
mod nearest;
mod order;
mod packed_cells;
pub mod plan;
pub mod predicate;
mod rendered_rows;
pub mod resolving_sink;
pub mod run;
#[cfg(test)]
mod testing;
pub mod watch;
pub mod words;

pub use answers::UnansweredField;
pub use diff::{DiffSource, DiffState};
pub use explain::{explain, expr_text};
pub use filter::{Ast, FilterError};
pub use glob::matches as glob_matches;
pub use nearest::find_nearest;
pub use plan::GROUPS_MAX;
pub use plan::{Fold, Plan, PlanError, PlanRequest, SortKey};
pub use predicate::{BadPattern, Predicate};
pub use resolving_sink::{Names, ResolvingSink};
pub use run::{Answers, Feed, FeedPart, FeedState, FixedLookups, OneRound, ReadPart, RenewedLookups, StreamFeed};
pub use run::{CellsOf, Disposition, EachRow, EndReason, ReadRows, RowSink, Run, RunError};
pub use watch::{Rounds, Windows, time_left};
