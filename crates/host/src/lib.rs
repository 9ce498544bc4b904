//! The context of rows: processes, users, cgroups, network namespaces, interfaces, names of addresses and ports.
//!
//! Each module reads one type of data once, into a value that is queried by key; the lookups among them are
//! [`record::Lookup`]s. Everything is read through a [`sys::Host`], so it can be recorded and replayed. This crate
//! knows no socket, no flow, no filter and no output; texts are unchanged, and hostile until a sink has escaped them.
//! Missing data costs cells, never the run.
#![forbid(unsafe_code)]

pub mod addresses;
pub mod arp_claims;
mod bounded_dump;
pub mod cgroup_programs;
pub mod cgroups;
pub mod containers;
pub mod dns_watch;
pub mod drop_rules;
mod error;
pub mod ethers;
pub mod group_rules;
pub mod groups;
pub mod hosts;
pub mod ifaces;
mod inside;
pub mod ipsec;
mod link_kinds;
pub mod link_modes;
pub mod links;
pub mod log_rules;
pub mod mac_moves;
mod mounts;
pub mod name_switch;
pub mod namespaces;
pub mod nat_rules;
pub mod neighbours;
pub mod netns;
mod netns_containers;
mod netns_table;
pub mod networks;
mod own_netns;
pub mod owners;
pub mod ports;
pub mod processes;
pub mod routes;
pub mod routing_rules;
mod rule_chains;
pub mod rule_changes;
pub mod rule_matches;
pub mod rule_texts;
pub mod services;
pub mod snat_rules;
pub mod tcp_resets;
mod texts;
mod unhashed;
pub mod users;
mod words;

pub use cgroups::{Cgroups, CgroupsReport};
pub use containers::Containers;
pub use error::HostError;
pub use ethers::Ethers;
pub use groups::Groups;
pub use hosts::{HostNames, Resolver};
pub use ifaces::Ifaces;
pub use links::{Links, LinksReader};
pub use namespaces::{Namespace, Namespaces, NetnsFingerprint, NetnsOwners, NetnsSearch};
pub use netns::NetnsNames;
pub use netns_table::{NetnsSource, NetnsTable};
pub use networks::Networks;
pub use owners::{CheckedEnd, CheckedOwners, Owners, OwnersBackend, OwnersReader, OwnersReport, RingRefusal};
pub use ports::{LocalPorts, PortRanges};
pub use processes::{Contexts, Identity, ProcessParts, Processes};
pub use services::{Services, ports_named};
pub use unhashed::{UnhashedTcp, unhashed_tcp};
pub use users::Users;
