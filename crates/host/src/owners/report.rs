//! What a reading of owners saw, what it missed, and how that is said.
use sys::{Errno, SysError};

use super::OwnersBackend;

/// What a reading of owners saw and missed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnersReport {
    /// Where it was read.
    pub backend: OwnersBackend,
    /// Why BPF was not, if it was tried.
    pub refused: Option<Box<str>>,
    /// Processes that /proc listed; by BPF those that hold sockets.
    pub processes: u32,
    /// Of these, how many did not show their descriptors, or not all.
    pub unreadable: u32,
    /// Why the first of them did not.
    pub refusal: Option<Errno>,
    /// Processes that ended while they were read.
    pub vanished: u32,
    /// Descriptors looked at.
    pub fds: u64,
    /// (socket, process, descriptor) found.
    pub sockets: u64,
    /// Sockets beyond the bound of 16 Mi, not kept.
    pub over: u64,
    /// True if /proc is mounted so that it hides processes of other users from us.
    pub hidden: bool,
    /// Why the reading ended early, if it did.
    pub ended: Option<SysError>,
}

impl OwnersReport {
    /// The backend in a word, for `--cost`.
    pub fn via(&self) -> &'static str {
        match (self.backend, &self.refused) {
            (backend, None) => backend.stream(),
            (_, Some(_)) => "owners@proc (bpf refused)",
        }
    }

    /// True if owners may be missing for a reason other than that there are none.
    pub fn is_partial(&self) -> bool {
        self.unreadable > 0 || self.over > 0 || self.hidden || self.ended.is_some()
    }

    /// One line for each thing that is missing, for the end of a run; empty if nothing is.
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
