//! The text of packets, compared byte for byte with the tcpdump of this machine: packets that the files here make,
//! whole and cut at every byte, with every switch that changes their lines. Without tcpdump the tests report it and
//! pass.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod build;
mod harness;
mod icmp;
mod ip;
mod link;
mod lldp;
mod protocols;
mod sctp;
mod security;
mod tcp;
mod tunnels;
mod udp;
