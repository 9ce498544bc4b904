//! The session of a run, and what rows get that their source does not carry: owners, names, rules, connections.
#![forbid(unsafe_code)]

mod append_map;
pub mod asked;
pub mod enrich;
pub mod filter_names;
pub mod followed;
mod followed_ifaces;
pub mod kernel_counters;
pub mod lazy_ifaces;
pub mod log_groups;
pub mod long_work;
pub mod losses;
pub mod names;
pub mod nft;
pub mod owners;
pub mod packet_delays;
pub mod packet_entries;
pub mod pillars;
mod process_cache;
pub mod record_annotators;
pub mod recording_file;
mod refreshing_lookups;
pub mod rules;
pub mod session;
