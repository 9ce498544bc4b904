//! What surrounds rows: processes, users, cgroups, network namespaces, interfaces, names of addresses and ports.
//!
//! Each module reads one thing, once, into a value that answers by key; the lookups among them are
//! [`record::Lookup`]s. Everything is read through a [`sys::Host`], so it can be recorded and replayed. Knows no socket,
//! no flow, no filter and no output; all text is as it was found, hostile until a sink has escaped it. What is missing
//! costs cells, never the run.
#![forbid(unsafe_code)]

pub mod addresses;
pub mod cgroups;
pub mod containers;
pub mod counters;
mod error;
pub mod hosts;
pub mod ifaces;
mod inside;
mod mounts;
pub mod namespaces;
pub mod netns;
pub mod owners;
pub mod ports;
pub mod processes;
pub mod services;
mod texts;
pub mod users;

pub use cgroups::{Cgroups, CgroupsReport};
pub use containers::Containers;
pub use counters::Counters;
pub use error::HostError;
pub use hosts::{HostNames, Resolver};
pub use ifaces::Ifaces;
pub use namespaces::{Namespace, Namespaces};
pub use netns::NetnsNames;
pub use owners::{Door, Owners, OwnersReader, OwnersReport};
pub use ports::LocalPorts;
pub use processes::{ProcessParts, Processes};
pub use services::Services;
pub use users::Users;
