//! Resets that sockets send and receive (`c/resets.bpf.c`).
//!
//! Needs Linux 5.10, BTF, CAP_BPF and CAP_PERFMON. Ends when the value is dropped or the process ends.
use sys::bpf::Ring;
use sys::{Host, SysError};

use crate::error::BpfError;
use crate::kernel_types::KernelTypes;
use crate::link::Link;
use crate::load::{LoadSpec, LoadedObject, load_with};

const OBJECT: &[u8] = include_bytes!("../objects/resets.o");
const PROGRAMS: [&str; 2] = ["on_received", "on_sent"];
/// Bound: bytes of ring buffer for resets of connections, 8,000 of them. Beyond: further ones are counted as lost (exit
/// code 3), which also affects other users. By: anyone who may open and reset connections.
const RING_BYTES: u32 = 1 << 20;

/// Size of `struct event`.
pub const RESET_EVENT_BYTES: usize = 112;

/// The attached programs.
#[derive(Debug)]
pub struct Resets {
    loaded: LoadedObject,
    _links: Vec<Link>,
    ring: Ring,
}

impl Resets {
    /// Loads the programs and attaches them. From here on, resets in the namespace with this inode, or in all
    /// namespaces, wait in the ring. Costs about 10 ms.
    pub fn open(host: &Host, only_netns: Option<u32>) -> Result<Resets, BpfError> {
        let types = KernelTypes::read(host)?;
        let pidns = sys::pidns::below_the_first()?.unwrap_or(0);
        let constants: [(&str, &[u8]); 2] =
            [("only_netns", &only_netns.unwrap_or(0).to_ne_bytes()), ("pidns", &pidns.to_ne_bytes())];
        let spec =
            LoadSpec { object: OBJECT, programs: &PROGRAMS, constants: &constants, entries: &[("events", RING_BYTES)] };
        let loaded = load_with(&types, &spec)?;
        let links = PROGRAMS.iter().map(|name| loaded.program(name)?.attach()).collect::<Result<_, _>>()?;
        let ring = loaded.map("events")?.ring()?;
        Ok(Resets { loaded, _links: links, ring })
    }

    /// Calls `each` with every waiting event, of [`RESET_EVENT_BYTES`]. Makes no system call.
    pub fn take(&mut self, each: &mut dyn FnMut(&[u8])) -> Result<u64, SysError> {
        self.ring.consume(each)
    }

    /// Number of resets lost because the ring was full. One system call.
    pub fn lost(&self) -> Result<u64, BpfError> {
        self.loaded.counter("lost_ring")
    }
}
