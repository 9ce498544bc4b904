//! Socket owners of an earlier read, each checked again before it is shown.
//!
//! A screen shows some forty of a host's sockets, once per second, and most of the cost of a frame would be reading
//! every descriptor of every process. Instead, this checks whether the processes that held a socket still hold it, with
//! the same descriptor and under the same name. If one does not, or a socket is new, everything is read again. A
//! process that got a further copy of a socket's descriptor goes unnoticed until the next full read, at most
//! [`WHOLE_EVERY_NS`] later.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{HashMap, HashSet};

use record::text::put_u64;
use record::{Comm, Key, Lookup, Owner, Value};
use sys::fs::{self, CPath};
use sys::{Fd, Host, Mode};

use super::walk::{OpenFile, open_file, read_comm};
use super::{Owners, OwnersReader};
use crate::HostError;

/// Time after which everything is read again.
///
/// Bound: between two full readings of owners on a screen. Beyond: a new holder of a socket is shown after this time
/// (docs/adr/0008). By: a process that receives a socket from another process.
const WHOLE_EVERY_NS: u64 = 5_000_000_000;

/// Maximum number of descriptors checked in one round: beyond it a full read is cheaper.
///
/// Bound: descriptors that a frame of a screen checks. Beyond: all descriptors are read in each frame. By: a user who
/// holds a socket on the screen with as many descriptors.
const LOOKS_MAX: u32 = 256;

/// Number of open descriptors on a host from which checking single ones pays off. With fewer, a full read takes some
/// milliseconds.
const WORTH_FDS: u64 = 8_192;

/// The owners found by an earlier read, as far as they still hold their sockets; otherwise the owners of a new read. A
/// closed socket keeps its former owners if rows show those.
///
/// Checking costs some 3 µs per descriptor the first time, and 5 µs more for each process. After 256 descriptors, and
/// after the first that is no longer held, everything is read again.
pub struct CheckedOwners<'h> {
    reader: &'h OwnersReader,
    host: &'h Host,
    before: Owners,
    are_for_gone: bool,
    now: OnceCell<Result<Owners, HostError>>,
    /// Sockets whose owners were confirmed.
    checked: RefCell<HashSet<u64>>,
    looks: RefCell<Looks>,
    too_many: Cell<bool>,
}

/// State at the end of a round.
pub struct CheckedEnd {
    /// The newest read.
    pub owners: Owners,
    /// True if it was made in this round.
    pub is_new: bool,
    /// Why a necessary read failed: some rows have no owners.
    pub failed: Option<HostError>,
    /// True if too many sockets were requested to check single ones.
    pub too_many: bool,
}

/// Processes whose descriptors are checked.
#[derive(Default)]
struct Looks {
    count: u32,
    /// The directory of their descriptors and their names; `None` if the process has ended or is unreadable.
    processes: HashMap<u32, Option<(Fd, Comm)>>,
    path: CPath,
    digits: Vec<u8>,
}

impl<'h> CheckedOwners<'h> {
    /// False if an earlier read cannot be reused: it was incomplete or is too old, the host has few descriptors, or the
    /// run is recorded or replayed.
    pub fn are_possible(host: &Host, before: &Owners) -> bool {
        host.mode() == Mode::Live && is_of_use(before, sys::clock::boottime_ns())
    }

    /// Checks owners against the earlier read `before`. `are_for_gone`: closed sockets keep their owners of that read.
    pub fn new(reader: &'h OwnersReader, host: &'h Host, before: Owners, are_for_gone: bool) -> CheckedOwners<'h> {
        let (now, checked, looks, too_many) = Default::default();
        CheckedOwners { reader, host, before, are_for_gone, now, checked, looks, too_many }
    }

    /// The newest read, and how it was made.
    pub fn end(self) -> CheckedEnd {
        let too_many = self.too_many.get();
        let end = CheckedEnd { owners: self.before, is_new: false, failed: None, too_many };
        match self.now.into_inner() {
            None => end,
            Some(Ok(owners)) => CheckedEnd { owners, is_new: true, ..end },
            Some(Err(error)) => CheckedEnd { owners: Owners::default(), failed: Some(error), ..end },
        }
    }

    /// The read that has this socket's owners.
    fn of(&self, inode: u64) -> Option<&Owners> {
        if self.now.get().is_none() && self.is_true(inode) {
            return Some(&self.before);
        }
        self.now.get_or_init(|| self.reader.read(self.host)).as_ref().ok()
    }

    /// The current owners of a socket; the former ones if it was closed.
    fn owners_of(&self, inode: u64) -> &[Owner] {
        match self.of(inode).map_or(&[][..], |owners| owners.of(inode)) {
            [] if self.are_for_gone => self.before.of(inode),
            owners => owners,
        }
    }

    /// True if each process that held the socket still does, without exceeding the limit.
    fn is_true(&self, inode: u64) -> bool {
        if self.checked.borrow().contains(&inode) {
            return true;
        }
        let owners = self.before.of(inode);
        let mut looks = self.looks.borrow_mut();
        looks.count += u32::try_from(owners.len()).unwrap_or(u32::MAX).min(LOOKS_MAX + 1);
        if looks.count > LOOKS_MAX {
            self.too_many.set(true);
            return false;
        }
        let is_held = |owner: &Owner| {
            // Threads with their own descriptors are rare, and in another directory.
            self.before.index.thread(inode << 32 | u64::from(owner.pid), owner.fd) == owner.pid
                && looks.finds(self.host, owner, inode)
        };
        let is_true = !owners.is_empty() && owners.iter().all(is_held);
        if is_true {
            self.checked.borrow_mut().insert(inode);
        }
        is_true
    }
}

impl Lookup for CheckedOwners<'_> {
    /// Like the lookup of [`Owners`].
    fn value(&self, key: Key) -> Value<'_> {
        match key {
            Key::Id(inode) => match self.owners_of(inode) {
                [] => Value::Null,
                owners => Value::Owners(owners),
            },
            Key::Pair(socket, _) => self.of(socket >> 32).map_or(Value::Null, |owners| owners.value(key)),
            _ => Value::Null,
        }
    }

    fn owners(&self, key: Key) -> &[Owner] {
        match key {
            Key::Id(inode) => self.owners_of(inode),
            _ => &[],
        }
    }
}

impl Looks {
    /// True if the process holds the socket with that descriptor and under that name.
    fn finds(&mut self, host: &Host, owner: &Owner, inode: u64) -> bool {
        let open = || {
            let descriptors = fs::open_dir(&host.proc_path(&format!("{}/fd", owner.pid))).ok()?;
            let comm = read_comm(&descriptors, &mut Vec::new());
            Some((descriptors, comm))
        };
        let process = self.processes.entry(owner.pid).or_insert_with(open);
        let Some((descriptors, comm)) = process else { return false };
        // Only a whole reading finds holders without a descriptor.
        let Some(fd) = owner.descriptor() else { return false };
        self.digits.clear();
        put_u64(&mut self.digits, fd.into());
        // Truncated like the inodes in the index.
        let is_it = |found: u64| u64::from(found as u32) == inode;
        let name = self.path.set(&[&self.digits]);
        *comm == owner.process && matches!(open_file(descriptors, name), Ok(OpenFile::Socket(found)) if is_it(found))
    }
}

/// True if single checks can replace a full read, after an earlier one like this.
fn is_of_use(before: &Owners, now_ns: u64) -> bool {
    let report = before.report();
    let is_fresh = now_ns.saturating_sub(before.seen_ns()) < WHOLE_EVERY_NS;
    is_fresh && !report.is_partial() && report.fds >= WORTH_FDS
}

#[cfg(test)]
mod tests;
