//! The backends against the kernel, against each other, against ss(8), and against recorded bytes.
//!
//! `root_…` needs privileges and makes its sockets in a namespace of its own; the rest runs anywhere.
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
