//! Every system call, file descriptor and namespace; the tape that records and replays what was read.
//!
//! The one crate with `unsafe` in it: each wrapper is a few lines with its reason.
//! Knows no netlink message, no /proc format, no socket. Start reading at [`Host`]: everything
//! that a run reads goes through it.
mod alarm;
pub mod allocator;
pub mod alternate_screen;
mod arp_socket;
mod blocks;
pub mod bpf;
pub mod caps;
pub mod clock;
pub mod connection;
pub mod cost;
mod crc32c;
pub mod descriptors;
mod errno;
mod ethernet_link;
pub mod fault;
mod fd;
pub mod folder;
pub mod fs;
mod host;
mod kernel;
mod lines;
pub mod memory;
mod modules;
mod netlink;
pub mod netns;
mod netns_targets;
pub mod out;
pub mod packet_ring;
pub mod perf;
pub mod pidns;
pub mod priority;
mod program_cache;
pub mod pty;
pub mod rights;
mod ring_blocks;
pub mod sandbox;
pub mod service;
pub mod signal;
pub mod socket;
pub mod symbols;
mod syscall;
mod tape;
pub mod term;

pub use alarm::Alarm;
pub use arp_socket::{ARP_ADDRESSES_MAX, ArpSender, ArpSocket};
pub use blocks::Blocks;
pub use crc32c::crc32c;
pub use errno::{Errno, SysError, escaped};
pub use ethernet_link::has_link;
pub use fd::Fd;
pub use fs::{FileBlocks, MountsWatch};
pub use host::{Host, Mode};
pub use kernel::{Kernel, page_bytes};
pub use lines::{Lines, open_proc_net};
pub use modules::{KernelPart, Modules, Presence};
pub use netlink::{NetlinkSocket, Received, wait_any};
pub use netns::NetNs;
pub use netns_targets::{NetnsTarget, NotEntered, Unreadable};
pub use out::{Out, OutError};
pub use program_cache::{ProgramCache, WITHOUT_BPF, WalkError, lacks_bpf_rights};
pub use ring_blocks::{EventProgram, RingBlocks};
pub use signal::Interrupt;
pub use tape::{Header, Integrity, TapeError};
