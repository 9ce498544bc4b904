//! The tests of the whole program: `replay_*` and `golden_*` run anywhere, `root_*` make namespaces of their own.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod bad_days;
mod contract;
mod examples;
mod flow_direction;
mod fold;
mod follow;
mod going;
mod goldens;
mod identity;
mod kill;
mod lab;
mod lacking_fields;
mod live;
mod log;
mod log_netns;
mod log_owners;
mod log_rules;
mod log_watching;
mod namespaces;
mod nat;
mod nat_backends;
mod nat_events;
mod nat_session_log;
mod nat_sizes;
mod nat_stateless;
mod owners;
mod packet_files;
mod postgres;
mod receivers;
mod recordings;
mod routes;
mod run;
mod script;
mod security;
mod service;
mod service_unit;
mod shipping;
mod sqlite;
mod syscalls;
mod syslog_receivers;
mod trust;
mod ulogd_formats;
mod ulogd_packets;
mod watch;
