//! Reads drops from the kernel's drop monitor (NET_DM, module drop_monitor), if neither BPF nor the kernel's trace is
//! available: a message of generic netlink for each dropped packet. Knows nothing of rows.

mod message;
mod monitor;

pub use message::{DropAlert, OUR_QUEUE};
pub(crate) use message::{ENDS_BYTES, fuzz};
pub use monitor::{DropMonitor, DropOrigins, monitor_losses};
pub(crate) use monitor::{Presence, presence};
