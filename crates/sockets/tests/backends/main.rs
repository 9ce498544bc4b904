//! Tests the backends against the kernel, each other, ss(8) and recorded bytes.
//!
//! `root_…` tests need privileges and create their sockets in a separate namespace; the others run anywhere.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod all_netns;
mod churn;
mod closing;
mod compliance;
mod crafted;
mod destroyed;
mod fallback;
mod fixtures;
mod forged;
#[cfg(feature = "bpf")]
mod identity;
#[cfg(feature = "bpf")]
mod iterator;
mod kernel_filter;
mod odd_sockets;
mod peers;
mod rows;
mod storages;
mod tape;
#[cfg(feature = "bpf")]
mod walk;
#[cfg(feature = "bpf")]
mod walk_churn;
