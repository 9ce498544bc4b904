//! Events for new conntrack entries, triggered by the packets that create them.
//!
//! A netfilter program in the calling thread's namespace, for both families, writes an event for each entry that is
//! about to be added to the table. Needs Linux 6.4, BTF, CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN. It is detached when
//! the value is dropped or the process ends. Start reading at [`NewEntries::open`].
use sys::bpf::NetfilterPlace;
use sys::{Host, SysError};

use crate::conntrack_table::MODULE;
use crate::{BpfError, KernelTypes, Link, LoadSpec, LoadedObject, Ring, load_with};

static OBJECT: &[u8] = include_bytes!("../objects/conntrack_new.o");

/// `NFPROTO_IPV4`, `NFPROTO_IPV6`
const FAMILIES: [u32; 2] = [2, 10];
/// `NF_INET_LOCAL_IN`, `NF_INET_POST_ROUTING`: the hooks at which entries are confirmed.
const HOOKS: [u32; 2] = [1, 4];
/// Confirmation has the last priority, INT_MAX, and for IPv6 at LOCAL_IN the one before it (`ipv6_conntrack_ops` in
/// net/netfilter/nf_conntrack_proto.c). Each priority can be used by one program, so a second run takes the one
/// before.
const PRIORITIES: std::ops::RangeInclusive<i32> = i32::MAX - 5..=i32::MAX - 2;

/// The attached program, and the ring that it fills.
#[derive(Debug)]
pub struct NewEntries {
    loaded: LoadedObject,
    _links: Vec<Link>,
    ring: Ring,
}

impl NewEntries {
    /// Loads the program and attaches it. From here on no new entry is missed. Costs some milliseconds.
    ///
    /// `ring_bytes` (a power of two, whole pages) is the size of the ring for unread events: an event takes 64 bytes,
    /// 128 with IPv6.
    pub fn open(host: &Host, ring_bytes: u32) -> Result<NewEntries, BpfError> {
        let spec =
            LoadSpec { object: OBJECT, programs: &["on_packet"], constants: &[], entries: &[("events", ring_bytes)] };
        let loaded = load_with(&KernelTypes::read(host)?.with_module(host, MODULE)?, &spec)?;
        let program = loaded.program("on_packet")?;
        let mut links = Vec::new();
        for (family, hook) in FAMILIES.into_iter().flat_map(|family| HOOKS.map(|hook| (family, hook))) {
            let mut link = Err(BpfError::Taken { hook: "of netfilter", priority: *PRIORITIES.end() });
            for priority in PRIORITIES.rev() {
                link = program.attach_netfilter(NetfilterPlace { family, hook, priority });
                if !matches!(link, Err(BpfError::Taken { .. })) {
                    break;
                }
            }
            links.push(link?);
        }
        let ring = loaded.map("events")?.ring()?;
        Ok(NewEntries { loaded, _links: links, ring })
    }

    /// Appends every waiting event to `into`; true if there was one. Makes no system call.
    pub fn take(&mut self, into: &mut Vec<u8>) -> Result<bool, SysError> {
        Ok(self.ring.consume(&mut |event| into.extend_from_slice(event))? > 0)
    }

    /// Waits at most `timeout_ms` until 64 KiB of events are available. Read the ring after that time in any case:
    /// fewer events do not wake the reader.
    pub fn wait(&self, timeout_ms: i32) -> Result<(), SysError> {
        self.ring.wait(timeout_ms).map(drop)
    }

    /// Number of events lost so far because the ring was full. One system call.
    pub fn lost_events(&self) -> Result<u64, BpfError> {
        self.loaded.counter("lost")
    }
}
