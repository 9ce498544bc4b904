//! The native commands: one file each, with its registry entry at the top.

mod acting;
pub(crate) mod agent;
mod all_netns;
pub(crate) mod capture;
pub(crate) mod counters;
pub(crate) mod doctor;
pub(crate) mod drops;
mod elsewhere;
mod finish;
pub(crate) mod flows;
mod follow;
pub(crate) mod home;
pub(crate) mod kill;
pub(crate) mod log;
mod made_rows;
pub(crate) mod nat;
mod netns_command;
mod plan;
pub(crate) mod record;
mod reloading;
pub(crate) mod routes;
mod saved;
pub(crate) mod sockets;
pub(crate) mod support;
mod table;
