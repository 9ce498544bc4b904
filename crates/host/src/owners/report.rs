//! Report of reading owners: what was read, what is missing, and the text about it.
use std::fmt;

use sys::{Errno, SysError};

use super::OwnersBackend;

/// Why the files that are registered with an io_uring are unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingRefusal {
    /// Its file could not be read.
    Failed(Errno),
    /// It was in use each time.
    Busy,
    /// The kernel does not name sockets.
    Nameless,
    /// There are more io_urings than are read.
    TooMany,
}

impl fmt::Display for RingRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RingRefusal::Failed(errno) if errno.is_denied() => {
                write!(f, "{errno} (needs CAP_SYS_PTRACE or root; `netwren support` lists what works)")
            }
            RingRefusal::Failed(errno) => write!(f, "{errno}"),
            RingRefusal::Busy => f.write_str("the kernel does not name them while they are in use (run netwren again)"),
            RingRefusal::Nameless => f.write_str("the kernel does not name them before Linux 6.14"),
            RingRefusal::TooMany => f.write_str("there are too many of them"),
        }
    }
}

/// Result of reading owners.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnersReport {
    /// The backend that was used.
    pub backend: OwnersBackend,
    /// Why BPF was not used, if it was tried.
    pub refused: Option<Box<str>>,
    /// Number of processes in /proc; with BPF, of processes that hold sockets.
    pub processes: u32,
    /// Number of these processes whose descriptors were unreadable, at least in part.
    pub unreadable: u32,
    /// The reason for the first of them.
    pub refusal: Option<Errno>,
    /// Number of processes that ended while they were read.
    pub vanished: u32,
    /// Number of descriptors read.
    pub fds: u64,
    /// Number of (socket, process, descriptor) found.
    pub sockets: u64,
    /// Number of sockets beyond the limit of 16 Mi, which are not kept.
    pub over: u64,
    /// True if the mount of /proc hides processes of other users.
    pub hidden: bool,
    /// Why the read ended early, if it did.
    pub ended: Option<SysError>,
    /// io_urings whose registered files could not be read.
    pub rings_unread: u32,
    /// Why the first of them could not.
    pub ring_refusal: Option<RingRefusal>,
    /// True if descriptors are in flight over unix sockets.
    pub in_flight: bool,
    /// Unix sockets whose queue is too long to look for all sockets in flight.
    pub queues_unread: u64,
    /// Why sockets in flight could not be looked for.
    pub in_flight_ended: Option<SysError>,
}

impl OwnersReport {
    /// Name of the backend, for `--cost`.
    pub fn via(&self) -> &'static str {
        match (self.backend, &self.refused) {
            (backend, None) => backend.stream(),
            (_, Some(_)) => "owners@proc (bpf refused)",
        }
    }

    /// True if existing owners may be missing.
    pub fn is_partial(&self) -> bool {
        self.unreadable > 0
            || self.over > 0
            || self.hidden
            || self.ended.is_some()
            || self.rings_unread > 0
            || self.queues_unread > 0
            || self.in_flight_ended.is_some()
    }

    /// One line for each missing part, for the end of a run; empty if the read is complete.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.unreadable > 0 {
            let processes = if self.unreadable == 1 { "process" } else { "processes" };
            let why = self.refusal.unwrap_or(Errno::ACCES);
            let rights = if why.is_denied() { "needs CAP_SYS_PTRACE or root; " } else { "" };
            lines.push(format!(
                "owners of {} {processes} unreadable: {why} ({rights}`netwren support` lists what works)",
                self.unreadable
            ));
        }
        if self.hidden {
            lines.push(
                "/proc hides processes of other users (mounted with hidepid): their sockets are shown without owner \
                 (needs CAP_SYS_PTRACE or root; `netwren support` lists what works)"
                    .into(),
            );
        }
        if self.over > 0 {
            lines.push(format!("owners of {} sockets left out: the limit is {}", self.over, self.sockets));
        }
        if let Some(error) = &self.ended {
            lines.push(format!("owners of sockets are incomplete: {error}"));
        }
        lines.extend(self.lines_without_descriptor());
        lines
    }

    /// The lines about sockets that processes hold without a descriptor.
    fn lines_without_descriptor(&self) -> impl Iterator<Item = String> {
        let rings = (self.rings_unread > 0).then(|| {
            let rings = if self.rings_unread == 1 { "io_uring" } else { "io_urings" };
            let why = self.ring_refusal.map(|why| format!(": {why}")).unwrap_or_default();
            format!("owners of sockets registered with {} {rings} are missing{why}", self.rings_unread)
        });
        let queues = (self.queues_unread > 0).then(|| {
            let sockets = if self.queues_unread == 1 { "unix socket" } else { "unix sockets" };
            format!("owners of sockets in flight are missing: {} {sockets} with too many messages", self.queues_unread)
        });
        let ended = self.in_flight_ended.as_ref();
        let ended = ended.map(|error| format!("owners of sockets in flight over unix sockets are missing: {error}"));
        [rings, queues, ended].into_iter().flatten()
    }
}
