//! Tables by name, and how a request for one becomes rows.
//!
//! A [`TableRequest`] has the user's words. [`plan`](mod@plan) makes an [`engine::Plan`] of them, a [`SourceProvider`]
//! makes the source of each round, and [`rounds::read`] reads the rounds into a sink through a session. [`TABLES`] is
//! the list of all tables; `examples/run_a_table.rs` runs one of them.
#![forbid(unsafe_code)]

pub mod counters;
mod error;
pub mod flows;
mod list;
pub mod nat;
pub mod netns;
pub mod plan;
mod provider;
mod request;
pub mod rounds;
pub mod sockets;
mod stream_rounds;
pub mod streams;

pub use error::TableError;
pub use list::*;
pub use netns::NetnsProvider;
pub use provider::{Intervals, RoundTime, SourceProvider, Subject};
pub use request::{CommandLine, Repeat, Selection, TableRequest};
pub use stream_rounds::GroupRate;
