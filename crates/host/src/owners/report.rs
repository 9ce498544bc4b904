//! Report of reading owners: what was read, what is missing, and the text about it.
use sys::{Errno, SysError};

use super::OwnersBackend;

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
        self.unreadable > 0 || self.over > 0 || self.hidden || self.ended.is_some()
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
                "/proc hides processes of other users (mounted with hidepid): their sockets show no owner \
                 (needs CAP_SYS_PTRACE or root; `netwren support` lists what works)"
                    .into(),
            );
        }
        if self.over > 0 {
            lines.push(format!("owners of {} sockets left out: only {} are kept", self.over, self.sockets));
        }
        if let Some(error) = &self.ended {
            lines.push(format!("owners of sockets are incomplete: {error}"));
        }
        lines
    }
}
