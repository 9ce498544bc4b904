//! Finds the rule that logged or dropped a packet, in listings of nft made over time.
//!
//! No packet names its rule. So a run lists the rules of each namespace (`namespaces.rs`), lists them again when they
//! change (`history.rs`), and keeps the listings that packets may still need (`listings.rs`). [`LoggingRules`] looks up
//! the group, prefix and hook of a log record in the listings of its time. [`DroppingRules`] compares the last listings
//! with the known values and the number of dropped packets (`candidates.rs`). [`setup`] installs rules that log.

mod candidates;
mod dropping;
mod history;
mod listings;
mod logging;
mod namespaces;
pub mod setup;

pub use dropping::{DroppingRules, OpenRules};
pub use logging::LoggingRules;
