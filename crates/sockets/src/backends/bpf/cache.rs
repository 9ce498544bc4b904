//! Loaded programs that read TCP sockets, kept from one scan to the next.
use std::cell::{Cell, OnceCell};
use std::hash::{BuildHasher, Hasher, RandomState};

use netlink::DecodeError;
use record::RowVisitor;
use record::rows::Sockets;
use sys::{Blocks, Host, ProgramCache, SysError, WalkError, lacks_bpf_rights};

use super::programs::{TcpIterator, TcpWalk};
use super::rows::{WalkDecoder, part};
use crate::backends::row_keys::Keys;
use crate::choose::Via;

/// Resources that are expensive to open, kept for the whole run: `--watch` loads its program once.
#[derive(Debug, Default)]
pub struct BackendCache {
    pub(super) walk: ProgramCache<TcpWalk>,
    /// Loaded if the kernel refuses the walk.
    pub(super) iterator: ProgramCache<TcpIterator>,
    /// Why the last scan did not use the walk although there were enough sockets.
    no_walk: Cell<Option<&'static str>>,
    /// The backend of the first round. A recording keeps using it, because a table must not change its recorded stream.
    first: Cell<Option<Via>>,
    /// Mixed into the keys of rows; the same in every round.
    secret: Cell<Option<u64>>,
    /// Hide kernel addresses in the output of programs. The same for each that is loaded, so that a socket keeps its
    /// number.
    #[cfg_attr(not(feature = "bpf"), allow(dead_code))]
    pub(super) salts: OnceCell<[u64; 2]>,
    /// Number of blocks after which a walk is interrupted, for tests.
    #[cfg_attr(not(feature = "bpf"), allow(dead_code))]
    pub(super) breaks_after: Cell<Option<u32>>,
}

/// The sockets that a walk reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WalkScope {
    /// Connections of the calling thread's namespace.
    Own,
    /// Connections of the namespace with this inode.
    One(u32),
    /// Connections of every namespace that shares a hash table with the namespace of this inode.
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
    /// The walk of the connections. Netlink reads the listeners.
    Walk,
    /// The kernel's iterator over connections and listeners.
    Iterator,
}

/// Parameters of a program run.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "bpf"), allow(dead_code))]
pub(crate) struct WalkRequest<'k> {
    pub(crate) scope: WalkScope,
    /// Parts of a row ([`part`]).
    pub(crate) parts: u32,
    /// Bits of the wanted states.
    pub(crate) states: u32,
    pub(crate) v4: bool,
    pub(crate) v6: bool,
    /// Local and remote port; 0 for any.
    pub(crate) sport: u16,
    pub(crate) dport: u16,
    /// Name of the stream in a recording, and its note.
    pub(crate) key: &'k str,
    pub(crate) note: &'k str,
    /// Inode of the namespace, for rows whose block does not contain it.
    pub(crate) netns_id: u64,
}

impl BackendCache {
    /// A cache without a loaded program.
    pub fn new() -> BackendCache {
        BackendCache::default()
    }

    /// A cache that behaves as on a kernel that refuses the walk, for tests of the fallback.
    #[doc(hidden)]
    pub fn without_walk() -> BackendCache {
        BackendCache { walk: ProgramCache::new_refused("the walk is not wanted"), ..BackendCache::default() }
    }

    /// A cache whose walk is interrupted after this number of blocks, for tests of what completes it.
    #[doc(hidden)]
    pub fn breaking_off_after(blocks: u32) -> BackendCache {
        BackendCache { breaks_after: Cell::new(Some(blocks)), ..BackendCache::default() }
    }

    /// The error, if loading a program was tried and failed.
    pub fn refusal(&self) -> Option<Box<str>> {
        if self.iterator.has_program(|_| true) {
            return None;
        }
        self.iterator.refusal().or_else(|| self.walk.refusal())
    }

    /// Why TCP was not read with BPF although that would have paid off: for `--cost`.
    pub fn passed_over(&self) -> Option<Box<str>> {
        self.refusal().or_else(|| self.no_walk.get().map(Into::into))
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
        if self.walk.was_refused() { Some(NOT_TRIED_AGAIN) } else { lacks_bpf_rights() }
    }

    /// Why neither walk nor iterator can be used. One of them suffices for the calling thread's namespace.
    pub(crate) fn why_no_program(&self) -> Option<&'static str> {
        if self.iterator.was_refused() { Some(NOT_TRIED_AGAIN) } else { lacks_bpf_rights() }
    }

    /// Inodes of all network namespaces of the kernel, including those that no path leads into; `None` if the kernel
    /// cannot be queried. Loads the program that then reads the sockets of all of them.
    pub fn every_namespace(&self, host: &Host) -> Option<Vec<u64>> {
        let possible = match host.is_replay() {
            true => host.contains("bpf/namespaces"),
            false => cfg!(feature = "bpf") && self.why_no_walk().is_none(),
        };
        let parts = part::BOUND | part::QUEUES | part::NETNS | part::INODE;
        let found = if possible { self.namespaces(host, parts).ok() } else { None };
        found.map(|found| found.into_iter().map(|(netns_id, _)| netns_id.into()).collect())
    }

    /// A random number for the keys of rows, the same for the life of this cache.
    pub(crate) fn random_key(&self) -> u64 {
        let secret = self.secret.get().unwrap_or_else(random);
        self.secret.set(Some(secret));
        secret
    }

    pub(crate) fn first_backend(&self) -> &Cell<Option<Via>> {
        &self.first
    }

    /// Reads the table in `request`; returns true if `visitor` stopped it.
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

    /// Decodes `blocks` row by row; returns true if `visitor` stopped it.
    pub(super) fn visit_blocks<'a>(
        &self,
        mut blocks: Box<dyn Blocks + 'a>,
        request: &WalkRequest<'_>,
        visitor: &mut impl RowVisitor<Sockets, Keys, DecodeError>,
    ) -> Result<bool, WalkError> {
        let mut decoder = WalkDecoder::new(request.netns_id, self.random_key());
        while let Some(block) = blocks.next()? {
            if decoder.visit(block, visitor).is_break() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Why a program is not tried a second time.
const NOT_TRIED_AGAIN: &str = "the BPF program could not be loaded, and is not tried again in this run";

fn not_recorded() -> SysError {
    SysError::new("bpf_prog_run", "the walk of the TCP table", sys::Errno::NOSYS)
}

/// A number that no other user can predict: the keys of the standard library's hasher come from the kernel.
pub(super) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
