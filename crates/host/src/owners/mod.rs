//! Finds the processes that hold each socket: inode → processes, with BPF or from /proc/*/fd.
//!
//! Start reading at [`OwnersReader::read`].
mod block;
#[cfg(feature = "bpf")]
mod bpf_backend;
#[cfg(not(feature = "bpf"))]
#[path = "no_bpf_backend.rs"]
mod bpf_backend;
mod checked;
mod choose;
mod hidden;
mod index;
mod io_uring;
mod netns_holders;
mod probe;
mod process;
mod report;
mod rows;
mod thread_tables;
mod walk;

use record::{Comm, Key, Lookup, Owner, Value};
use sys::{Blocks, Errno, Host, SysError};

use crate::HostError;
use block::BlockPart;
use bpf_backend::BpfBackend;
pub use checked::{CheckedEnd, CheckedOwners};
pub use choose::OwnersBackend;
use choose::{Facts, choose};
use index::{Gather, Index};
pub(crate) use netns_holders::netns_holders;
use process::{FdTable, Process};
pub use report::{OwnersReport, RingRefusal};
use rows::Row;
use walk::DescriptorWalk;

/// Reads owners, repeatedly if needed: a loaded BPF program stays loaded.
#[derive(Default)]
pub struct OwnersReader {
    via: Option<OwnersBackend>,
    bpf: BpfBackend,
}

impl OwnersReader {
    /// A reader with this backend, or with the cheaper one.
    pub fn new(via: Option<OwnersBackend>) -> OwnersReader {
        OwnersReader { via, bpf: BpfBackend::default() }
    }

    /// Reads the descriptors of every visible process.
    ///
    /// /proc costs about 3 µs per descriptor, BPF 0.3 µs and 5 ms at the first time; a socket takes 28 bytes. If BPF is
    /// refused, /proc is read instead and the report says so. Fails only if the requested backend cannot be opened, or
    /// if a recording holds no owners or malformed ones; unreadable processes are counted in the report.
    pub fn read(&self, host: &Host) -> Result<Owners, HostError> {
        let backend = match self.via {
            Some(backend) => backend,
            None => choose(&Facts::read(host)?),
        };
        match (backend, self.via) {
            (OwnersBackend::Bpf, None) => self.read_by_bpf_or_proc(host),
            (backend, _) => self.read_by(host, backend),
        }
    }

    fn read_by_bpf_or_proc(&self, host: &Host) -> Result<Owners, HostError> {
        let read = self.read_by(host, OwnersBackend::Bpf);
        let why = match &read {
            Ok(owners) => match &owners.report.ended {
                None => return read,
                Some(error) => error.to_string(),
            },
            Err(error) => error.to_string(),
        };
        match self.read_by(host, OwnersBackend::Proc) {
            Ok(mut owners) => {
                owners.report.refused = Some(why.into());
                Ok(owners)
            }
            // Incomplete data is better than no data.
            Err(error) => read.map_err(|_| error),
        }
    }

    fn read_by(&self, host: &Host, backend: OwnersBackend) -> Result<Owners, HostError> {
        let mut blocks = host.stream(backend.stream(), "", || match backend {
            OwnersBackend::Bpf => self.bpf.open(host),
            OwnersBackend::Proc => Ok(Box::new(DescriptorWalk::open(host)?)),
        })?;
        let mut gather = Gather::default();
        let mut report = OwnersReport { backend, ..OwnersReport::default() };
        report.ended = for_each_block(&mut *blocks, |block| add(backend, block, &mut gather, &mut report))?;
        // Every pass of the program ends with the number of files seen, which includes our own.
        if backend == OwnersBackend::Bpf && report.fds == 0 && report.ended.is_none() {
            report.ended = Some(SysError::new("read", "owners via BPF", Errno::IO));
        }
        if report.in_flight {
            report.in_flight_ended = self.read_in_flight(host, &mut gather, &mut report)?;
        }
        io_uring::add_registered(host, &mut gather, &mut report);
        gather.name_nameless(|pid| name_by_cmdline(host, pid));
        let now_ns = time_of_reading(host);
        let (index, over) = gather.finish(|pid| Process::read(host, pid), now_ns);
        report.sockets = index.len() as u64;
        report.over = over;
        // A recording has another clock, so times are not compared.
        let seen_ns = if host.is_replay() { u64::MAX } else { now_ns };
        Ok(Owners { index, report, seen_ns })
    }

    /// Reads sockets in flight over unix sockets; returns why some are missing.
    fn read_in_flight(
        &self,
        host: &Host,
        gather: &mut Gather,
        report: &mut OwnersReport,
    ) -> Result<Option<SysError>, HostError> {
        match host.stream(IN_FLIGHT, "", || self.bpf.open_in_flight(host)) {
            Ok(mut blocks) => for_each_block(&mut *blocks, |block| add_in_flight(block, gather, report)),
            Err(error) => Ok(Some(error)),
        }
    }
}

/// Name of the stream of sockets in flight on a recording.
const IN_FLIGHT: &str = "owners-in-flight@bpf";

/// Passes each block to `add`. Returns the error that ended the blocks early: a recording that breaks off, or the
/// kernel that did. The blocks before it are good.
fn for_each_block(
    blocks: &mut dyn Blocks,
    mut add: impl FnMut(&[u8]) -> Result<(), HostError>,
) -> Result<Option<SysError>, HostError> {
    loop {
        match blocks.next() {
            Ok(Some(block)) => add(block)?,
            Ok(None) => return Ok(None),
            Err(error) => return Ok(Some(error)),
        }
    }
}

/// Maps socket inodes to owners: the owner to show comes first, and entries of each process ascend by descriptor.
#[derive(Debug, Default)]
pub struct Owners {
    index: Index,
    report: OwnersReport,
    seen_ns: u64,
}

impl Owners {
    /// Reads once, through the cheaper backend; see [`OwnersReader::read`].
    pub fn read(host: &Host) -> Result<Owners, HostError> {
        OwnersReader::default().read(host)
    }

    /// The result of the read: which parts are missing.
    pub fn report(&self) -> &OwnersReport {
        &self.report
    }

    /// End of the read, in ns of CLOCK_BOOTTIME; `u64::MAX` in a replay. A process that started later is not one of
    /// these owners, even if it has the same number.
    pub fn seen_ns(&self) -> u64 {
        self.seen_ns
    }

    /// Returns the owners of the socket with this inode. The first one is shown: the oldest process that does more than
    /// pass the socket on. Empty if the socket has no owners or they are unknown.
    pub fn of(&self, inode: u64) -> &[Owner] {
        self.index.get(inode)
    }

    /// Returns the inode of every socket with its first owner, ascending by inode.
    pub fn firsts(&self) -> impl Iterator<Item = (u32, &Owner)> {
        self.index.firsts()
    }

    /// Every process that holds a socket, in ascending order.
    pub fn pids(&self) -> Vec<u32> {
        self.index.pids()
    }
}

impl Lookup for Owners {
    /// The owners of an inode; for (inode << 32 | pid, fd) of one of them, the thread whose descriptor it is.
    fn value(&self, key: Key) -> Value<'_> {
        match (self.owners(key), key) {
            ([], Key::Pair(socket, fd)) => Value::U64(self.index.thread(socket, fd).into()),
            ([], _) => Value::Null,
            (owners, _) => Value::Owners(owners),
        }
    }

    fn owners(&self, key: Key) -> &[Owner] {
        match key {
            Key::Id(inode) => self.of(inode),
            _ => &[],
        }
    }
}

/// Returns the time in ns of CLOCK_BOOTTIME. In a replay this is the time of recording, or `u64::MAX` if it is missing.
fn time_of_reading(host: &Host) -> u64 {
    let mut bytes = Vec::new();
    let read = host.bytes("owners-time", "", &mut bytes, |into| {
        into.extend_from_slice(&sys::clock::boottime_ns().to_le_bytes());
        Ok(())
    });
    read.ok().and_then(|()| bytes.first_chunk().map(|ns| u64::from_le_bytes(*ns))).unwrap_or(u64::MAX)
}

/// Names a process that has no name (`prctl(PR_SET_NAME, "")`) using the first word of its command line.
fn name_by_cmdline(host: &Host, pid: u32) -> Comm {
    let mut words = Vec::new();
    if crate::processes::read_cmdline(host, pid, u64::MAX, &mut words).is_err() {
        return Comm::default();
    }
    let first = words.split(|&byte| byte == 0).next().unwrap_or_default();
    Comm::new(first.rsplit(|&byte| byte == b'/').next().unwrap_or_default())
}

fn add(backend: OwnersBackend, block: &[u8], gather: &mut Gather, report: &mut OwnersReport) -> Result<(), HostError> {
    let added = match backend {
        OwnersBackend::Bpf => add_rows(block, gather, report),
        OwnersBackend::Proc => add_parts(block, gather, report),
    };
    added.map_err(garbled)
}

fn garbled(at: usize) -> HostError {
    HostError::Garbled { what: "owners of sockets", at }
}

fn add_rows(block: &[u8], gather: &mut Gather, report: &mut OwnersReport) -> Result<(), usize> {
    for row in rows::rows(block) {
        match row? {
            Row::Socket { inode, fd } => gather.socket(fd, inode.into()),
            Row::Task(table) => {
                // The tables of its threads follow it.
                report.processes += u32::from(table.tid == table.pid);
                gather.table(table);
            }
            Row::IoUring { fd } => gather.ring(fd),
            Row::End { files, in_flight } => {
                report.fds = files;
                report.in_flight = in_flight;
            }
        }
    }
    Ok(())
}

/// Adds rows of sockets in flight: each is in the table of the task that will receive it.
fn add_in_flight(block: &[u8], gather: &mut Gather, report: &mut OwnersReport) -> Result<(), HostError> {
    for row in rows::rows(block) {
        match row.map_err(garbled)? {
            Row::Socket { inode, fd } => gather.in_flight(fd, inode.into()),
            Row::Task(table) => gather.table(table),
            Row::IoUring { .. } => {}
            Row::End { files, .. } => report.queues_unread = files,
        }
    }
    Ok(())
}

fn add_parts(block: &[u8], gather: &mut Gather, report: &mut OwnersReport) -> Result<(), usize> {
    for part in block::parts(block) {
        match part? {
            BlockPart::Table { pid, tid, comm, held } => {
                gather.table(FdTable { pid, tid, comm, process: Process::default() });
                held.for_each(|(fd, inode)| match inode {
                    0 => gather.ring(fd),
                    inode => gather.socket(fd, inode),
                });
            }
            BlockPart::Totals(totals) => {
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

/// Decodes any bytes as a recorded block of either backend, and indexes it. For the fuzzer: it must neither panic nor
/// loop forever.
pub fn fuzz_owners(data: &[u8]) {
    for (backend, least) in [(OwnersBackend::Proc, 12), (OwnersBackend::Bpf, 8)] {
        let (mut gather, mut report) = (Gather::default(), OwnersReport::default());
        if let Err(error) = add(backend, data, &mut gather, &mut report) {
            assert!(!error.to_string().is_empty());
        }
        let (index, over) = gather.finish(|_| Process::default(), u64::MAX);
        assert!((index.len() as u64 + over) * least <= data.len() as u64);
        assert!(index.pids().len() <= index.len());
        let _ = (index.get(0), index.get(u64::from(u32::MAX)), index.thread(u64::MAX, 0), report.lines());
    }
}

#[cfg(test)]
mod tests;
