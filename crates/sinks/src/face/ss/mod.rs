//! The bytes of ss (iproute2), in the layouts of 6.1 and 6.15.
//!
//! Typed rows in, aligned text out. ss collects rows until its buffer is full, then aligns them; the same block
//! boundaries are kept here, so the widths are ss's, but rows are kept in a fraction of the memory. Knows no switch,
//! no filter and no table order: `cli::faces::ss` does. Start reading at [`Writer`].
mod address;
mod block;
mod chunks;
mod extras;
mod families;
mod float;
mod item;
mod options;
mod owners;
mod plain;
mod rare;
mod render;
mod security;
mod state;
mod summary;
mod tcp;
mod template;
#[cfg(test)]
mod tests;
mod widths;
mod writer;

pub use options::{Context, Layout, Options, Processes, Services, Tasks};
pub use rare::{ethertype_of, netlink_protocol_of};
pub use summary::{OwnTcp, SockStat, put_summary};
pub use writer::Writer;
