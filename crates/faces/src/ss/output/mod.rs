//! The bytes of ss (iproute2), in the layouts of 6.1 and 6.15.
//!
//! The writer takes typed rows and writes aligned text. ss collects rows until its buffer is full, then aligns them.
//! The writer uses the same block boundaries, so its widths equal ss's, but keeps rows in a fraction of the memory. It
//! knows no switch, no filter and no table order. Start reading at [`Writer`].
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

pub use options::{Context, Layout, Options, Processes, Services, Tasks, show};
pub use rare::{ethertype_of, netlink_protocol_of};
pub use summary::{OwnTcp, SockStat, put_summary};
pub use writer::Writer;
