//! Loaded programs that read TCP sockets, kept from one reading to the next.
use std::cell::Cell;
use std::hash::{BuildHasher, Hasher, RandomState};

use netlink::DecodeError;
use record::RowVisitor;
use record::rows::Sockets;
use sys::{Blocks, Host, ProgramCache, SysError, WalkError, lacks_bpf_rights};

use super::programs::{TcpIterator, TcpWalk};
use super::rows::{Keys, WalkDecoder, part};
use crate::choose::Via;

/// What is expensive to open, kept for as long as a session lasts: `--watch` loads its program once.
#[derive(Debug, Default)]
pub struct BackendCache {
    pub(super) walk: ProgramCache<TcpWalk>,
    /// Loaded where the kernel refuses the walk.
    pub(super) iterator: ProgramCache<TcpIterator>,
    /// Why the walk was not used in the latest reading although there are so many sockets.
    no_walk: Cell<Option<&'static str>>,
    /// The backend of the first round. A recording keeps to it, because a table must not change its stream on the tape.
    first: Cell<Option<Via>>,
    /// Mixed into the keys of rows, the same in every round.
    secret: Cell<Option<u64>>,
    /// Blocks after which a walk breaks off, for tests.
    #[cfg_attr(not(feature = "bpf"), allow(dead_code))]
    pub(super) breaks_after: Cell<Option<u32>>,
}

/// Whose sockets a walk reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WalkScope {
    /// Connections of the calling thread's namespace.
    Own,
    /// Connections of the namespace with this inode.
    One(u32),
    /// Connections of every namespace that shares a hash table with the one of this inode.
    Shared(u32),
    /// Listeners of the namespace with this inode.
    ListenersOf(u32),
    /// Listeners of every namespace.
    AllListeners,
}

/// The program that reads the sockets of the calling thread's namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "bpf"), allow(dead_code))]
pub(crate) enum Program {
    /// The walk of the connections. Listeners are left to netlink.
    Walk,
    /// The kernel's iterator over connections and listeners.
    Iterator,
}

/// What a program is to read.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "bpf"), allow(dead_code))]
pub(crate) struct WalkRequest<'k> {
    pub(crate) scope: WalkScope,
    /// Parts of a row ([`part`]).
    pub(crate) parts: u32,
    /// Bits of the states that are wanted.
    pub(crate) states: u32,
    pub(crate) v4: bool,
    pub(crate) v6: bool,
    /// Local and remote port; 0 for any.
    pub(crate) sport: u16,
    pub(crate) dport: u16,
    /// Name of the stream on the tape, and its note.
    pub(crate) key: &'k str,
    pub(crate) note: &'k str,
    /// Inode of the namespace of rows whose block does not name it.
    pub(crate) netns_id: u64,
}

impl BackendCache {
    /// Nothing is loaded.
    pub fn new() -> BackendCache {
        BackendCache::default()
    }

    /// A cache as on a kernel that refuses the walk, for tests of what replaces it.
    #[doc(hidden)]
    pub fn without_walk() -> BackendCache {
        BackendCache { walk: ProgramCache::refusing("the walk is not wanted"), ..BackendCache::default() }
    }

    /// A cache as on a kernel whose walk breaks off after so many blocks, for tests of what finishes it.
    #[doc(hidden)]
    pub fn breaking_off_after(blocks: u32) -> BackendCache {
        BackendCache { breaks_after: Cell::new(Some(blocks)), ..BackendCache::default() }
    }

    /// Why no program could be loaded, if that was tried and failed.
    pub fn refused(&self) -> Option<Box<str>> {
        if self.iterator.has(|_| true) {
            return None;
        }
        self.iterator.refused().or_else(|| self.walk.refused())
    }

    /// Why TCP was not read by BPF although that would have paid: for `--cost`.
    pub fn passed_over(&self) -> Option<Box<str>> {
        self.refused().or_else(|| self.no_walk.get().map(Into::into))
    }

    pub(crate) fn pass_over(&self, why: Option<&'static str>) {
        self.no_walk.set(why);
    }

    /// True if loading the walk was tried and failed.
    pub(crate) fn was_refused(&self) -> bool {
        self.walk.was_refused()
    }

    /// Why the walk cannot be used, in words; `None` if it may be tried.
    pub(crate) fn why_no_walk(&self) -> Option<&'static str> {
        if self.walk.was_refused() { Some(REFUSED) } else { lacks_bpf_rights() }
    }

    /// Why neither walk nor iterator can be used. One of them suffices for the namespace of the calling thread.
    pub(crate) fn why_no_program(&self) -> Option<&'static str> {
        if self.iterator.was_refused() { Some(REFUSED) } else { lacks_bpf_rights() }
    }

    /// Inodes of all network namespaces of the kernel, also of those that no path leads to; `None` where it cannot be
    /// asked. Loads the program that then reads the sockets of all.
    pub fn every_namespace(&self, host: &Host) -> Option<Vec<u64>> {
        let possible = match host.is_replay() {
            true => host.holds("bpf/namespaces"),
            false => cfg!(feature = "bpf") && self.why_no_walk().is_none(),
        };
        let parts = part::BOUND | part::QUEUES | part::NETNS | part::INODE;
        let found = if possible { self.namespaces(host, parts).ok() } else { None };
        found.map(|found| found.into_iter().map(|(netns_id, _)| netns_id.into()).collect())
    }

    /// A random number for the keys of rows, the same for the life of this cache.
    pub(crate) fn secret(&self) -> u64 {
        let secret = self.secret.get().unwrap_or_else(random);
        self.secret.set(Some(secret));
        secret
    }

    pub(crate) fn first(&self) -> &Cell<Option<Via>> {
        &self.first
    }

    /// Reads the table that `request` names; true if `visitor` stopped the reading.
    pub(crate) fn walk(
        &self,
        host: &Host,
        request: &WalkRequest<'_>,
        visitor: &mut impl RowVisitor<Sockets, Keys, DecodeError>,
    ) -> Result<bool, WalkError> {
        if !host.is_replay() {
            return self.walk_kernel(host, request, visitor);
        }
        let blocks = host.stream(request.key, request.note, || Err(not_recorded()))?;
        self.visit_blocks(blocks, request, visitor)
    }

    /// Decodes `blocks` row by row; true if `visitor` stopped the reading.
    pub(super) fn visit_blocks<'a>(
        &self,
        mut blocks: Box<dyn Blocks + 'a>,
        request: &WalkRequest<'_>,
        visitor: &mut impl RowVisitor<Sockets, Keys, DecodeError>,
    ) -> Result<bool, WalkError> {
        let mut decoder = WalkDecoder::new(request.netns_id, self.secret());
        while let Some(block) = blocks.next()? {
            if decoder.visit(block, visitor).is_break() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Why no program is tried a second time.
const REFUSED: &str = "the BPF program could not be loaded, and is not tried again in this run";

fn not_recorded() -> SysError {
    SysError::new("bpf_prog_run", "the walk of the TCP table", sys::Errno::NOSYS)
}

/// A number that no other user can predict: the keys of the standard library's hasher come from the kernel.
pub(super) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
