//! The native commands: a file each, with its entry of the registry at the top.

mod acting;
pub(crate) mod flows;
mod follow;
pub(crate) mod kill;
pub(crate) mod nat;
pub(crate) mod overview;
mod ownerless;
mod plan;
pub(crate) mod record;
mod saved;
pub(crate) mod sockets;
pub(crate) mod support;
mod table;
