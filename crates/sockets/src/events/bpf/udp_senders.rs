//! The BPF program that reports the processes that send UDP: loads and attaches it, and empties its ring into blocks.
use bpf::{BpfError, EventProgram, KernelTypes, Link, LoadSpec, LoadedObject, Ring, load_with};
use sys::{Host, SysError, clock};

use super::programs::only_netns;
use super::{HEADER_BYTES, Head};
use crate::events::Follow;

/// Built from crates/bpf/c/udp_senders.bpf.c.
static OBJECT: &[u8] = include_bytes!("../../../../bpf/objects/udp_senders.o");
/// Bound: bytes of ring buffer for UDP senders. Beyond: a packet has an owner only if a reading finds its socket;
/// counted, which also affects other users. By: a local user who sends from new sockets several 100,000 times a second.
const RING_BYTES: u32 = 1 << 20;
const PROGRAM: &str = "on_datagram";

/// The attached program and its ring.
pub(crate) struct UdpProgram {
    loaded: LoadedObject,
    _link: Link,
    ring: Ring,
}

impl UdpProgram {
    /// Attaches the program. Needs kernel 6.3.
    pub(crate) fn open(host: &Host, follow: &Follow<'_>) -> Result<UdpProgram, BpfError> {
        let types = KernelTypes::read(host)?;
        // Reporting no names is better than names of other processes with these pids.
        let pidns = sys::pidns::below_the_first()?.unwrap_or(0);
        let only_netns = only_netns(follow);
        let constants: [(&str, &[u8]); 2] =
            [("only_netns", &only_netns.to_ne_bytes()), ("pidns", &pidns.to_ne_bytes())];
        let spec = LoadSpec {
            object: OBJECT,
            programs: &[PROGRAM],
            constants: &constants,
            entries: &[("events", RING_BYTES)],
        };
        let loaded = load_with(&types, &spec)?;
        let link = loaded.program(PROGRAM)?.attach()?;
        let ring = loaded.map("events")?.ring()?;
        Ok(UdpProgram { loaded, _link: link, ring })
    }
}

impl EventProgram for UdpProgram {
    const HEADER: usize = HEADER_BYTES;

    fn take(&mut self, block: &mut Vec<u8>) -> Result<bool, SysError> {
        let events = self.ring.consume(&mut |event| block.extend_from_slice(event))?;
        Ok(events > 0)
    }

    fn write_header(&mut self, header: &mut [u8]) {
        let head = Head {
            epoch_ns: clock::wall_ns().wrapping_sub(clock::monotonic_ns()),
            lost_ring: self.loaded.counter("lost_ring").unwrap_or(0),
            ..Head::default()
        };
        header.copy_from_slice(&head.bytes());
    }

    fn wait(&self, timeout_ms: i32) -> Result<(), SysError> {
        self.ring.wait(timeout_ms).map(drop)
    }
}
