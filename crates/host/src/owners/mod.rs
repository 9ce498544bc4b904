//! Who holds which socket: inode → processes, from /proc/*/fd.
//!
//! Threads with descriptors of their own (`CLONE_THREAD` without `CLONE_FILES`) are not looked at: /proc/PID/fd is
//! the leader's table. Start reading at [`Owners::read`].
mod block;
mod hidden;
mod index;
mod probe;
mod walk;

use record::{Key, Lookup, Owner, Value};
use sys::{Errno, Host, SysError};

use crate::HostError;
use block::Part;
use index::{Gather, Index};
use walk::Walk;

/// Name of the stream on a recording.
const STREAM: &str = "owners@proc";

/// Socket inode → owners, ascending by pid and descriptor.
#[derive(Debug, Default)]
pub struct Owners {
    index: Index,
    report: OwnersReport,
}

impl Owners {
    /// Reads the descriptors of every process that lets us.
    ///
    /// Costs about 3 µs a descriptor and 28 bytes a socket. Fails only if /proc cannot be read at all, or a recording
    /// holds no owners or garbled ones; whatever one process refuses is counted in the report.
    pub fn read(host: &Host) -> Result<Owners, HostError> {
        let mut blocks = host.stream(STREAM, "", || Ok(Box::new(Walk::open(host)?)))?;
        let mut gather = Gather::default();
        let mut report = OwnersReport::default();
        loop {
            match blocks.next() {
                Ok(Some(block)) => add(block, &mut gather, &mut report)?,
                Ok(None) => break,
                // What came before is good: a recording that breaks off here, or /proc that did.
                Err(error) => {
                    report.ended = Some(error);
                    break;
                }
            }
        }
        let (index, over) = gather.finish();
        report.sockets = index.len() as u64;
        report.over = over;
        Ok(Owners { index, report })
    }

    /// What was read and what was not.
    pub fn report(&self) -> &OwnersReport {
        &self.report
    }

    /// The owners of the socket with this inode; empty if there are none or they are unknown.
    pub fn of(&self, inode: u64) -> &[Owner] {
        self.index.get(inode)
    }
}

impl Lookup for Owners {
    fn value(&self, key: Key) -> Value<'_> {
        match self.owners(key) {
            [] => Value::Null,
            owners => Value::List(owners),
        }
    }

    fn owners(&self, key: Key) -> &[Owner] {
        match key {
            Key::Id(inode) => self.of(inode),
            _ => &[],
        }
    }
}

fn add(block: &[u8], gather: &mut Gather, report: &mut OwnersReport) -> Result<(), HostError> {
    for part in block::parts(block) {
        match part.map_err(|at| HostError::Garbled { what: "owners of sockets", at })? {
            Part::Process { pid, comm, held } => {
                gather.process(pid, comm);
                held.for_each(|(fd, inode)| gather.socket(fd, inode));
            }
            Part::Totals(totals) => {
                report.processes = totals.processes;
                report.unreadable = totals.unreadable;
                report.vanished = totals.vanished;
                report.fds = totals.fds;
                report.hidden = totals.hidden;
                report.refusal = totals.refusal;
            }
        }
    }
    Ok(())
}

/// Takes any bytes as a recorded block and indexes what it holds. For the fuzzer: it must neither panic nor fail to end.
pub fn fuzz_owners(data: &[u8]) {
    let (mut gather, mut report) = (Gather::default(), OwnersReport::default());
    if let Err(error) = add(data, &mut gather, &mut report) {
        assert!(!error.to_string().is_empty());
    }
    let (index, over) = gather.finish();
    assert!((index.len() as u64 + over) * 12 <= data.len() as u64);
    let _ = (index.get(0), index.get(u64::from(u32::MAX)), report.lines());
}

/// What a reading of owners saw and missed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnersReport {
    /// Processes that /proc listed.
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

#[cfg(test)]
mod tests;
