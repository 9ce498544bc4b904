//! The walk of TCP's tables and the kernel's iterator over them as backends: what is loaded is kept here from one reading
//! to the next.
use std::cell::{Cell, RefCell};
use std::error::Error;
use std::hash::{BuildHasher, Hasher, RandomState};

use sys::caps::{self, CapSet};
use sys::{Blocks, Host, SysError};

use crate::backends::bpf::rows::{RowVisitor, WalkDecoder, part};
use crate::choose::Via;

/// BackendCache that are dear to open: kept for as long as a session lasts, so that `--watch` opens them once.
#[derive(Debug, Default)]
pub struct BackendCache {
    #[cfg(feature = "bpf")]
    walk: RefCell<Option<bpf::sockets_walk::Walk>>,
    /// What is loaded where the walk cannot be.
    #[cfg(feature = "bpf")]
    iterator: RefCell<Option<bpf::sockets_iter::TcpIterator>>,
    /// Why the walk could not be loaded, when it was tried.
    refused: RefCell<Option<Box<str>>>,
    /// Why not even the iterator.
    iterator_refused: RefCell<Option<Box<str>>>,
    /// Why another backend was taken though there are so many sockets.
    passed_over: Cell<Option<&'static str>>,
    /// The backend of the first round, while a recording is made: a table must not change its stream on the tape.
    first: Cell<Option<Via>>,
    /// What keys of rows are mixed with, the same in every round.
    secret: Cell<Option<u64>>,
    /// Blocks after which a walk breaks off: for tests.
    #[cfg(feature = "bpf")]
    breaks_after: Cell<Option<u32>>,
}

/// WalkScope sockets are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WalkScope {
    /// Connections of the namespace that the calling thread is in.
    Own,
    /// Connections of the namespace with this number.
    One(u32),
    /// Connections of every namespace that shares a table with the one of this number.
    Shared(u32),
    /// Listeners of the namespace with this number.
    ListenersOf(u32),
    /// Listeners of every namespace.
    AllListeners,
}

impl WalkScope {
    #[cfg(feature = "bpf")]
    fn table(self) -> bpf::sockets_walk::Table {
        match self {
            WalkScope::ListenersOf(_) | WalkScope::AllListeners => bpf::sockets_walk::Table::Listeners,
            _ => bpf::sockets_walk::Table::Connections,
        }
    }

    #[cfg(feature = "bpf")]
    fn netns(self) -> Option<u32> {
        match self {
            WalkScope::Own | WalkScope::AllListeners => None,
            WalkScope::One(number) | WalkScope::Shared(number) | WalkScope::ListenersOf(number) => Some(number),
        }
    }

    #[cfg(feature = "bpf")]
    fn reach(self) -> bpf::sockets_walk::Reach {
        if self == WalkScope::Own {
            bpf::sockets_walk::Reach::Connections
        } else {
            bpf::sockets_walk::Reach::Everywhere
        }
    }
}

/// What reads the sockets of the namespace that one is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "bpf"), allow(dead_code))]
pub(crate) enum Program {
    /// The walk of the connections. Listeners are netlink's.
    Walk,
    /// The kernel's iterator over connections and listeners.
    Iterator,
}

/// What is read.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "bpf"), allow(dead_code))]
pub(crate) struct Ask<'k> {
    pub(crate) scope: WalkScope,
    /// Parts of a row (`bpf_rows::part`).
    pub(crate) parts: u32,
    pub(crate) states: u32,
    pub(crate) v4: bool,
    pub(crate) v6: bool,
    pub(crate) sport: u16,
    pub(crate) dport: u16,
    /// Name of the stream on the tape, and its note.
    pub(crate) key: &'k str,
    pub(crate) note: &'k str,
    /// Of rows whose namespace the block does not tell.
    pub(crate) netns_id: u64,
}

/// Why the walk ended before its end.
#[derive(Debug)]
pub(crate) enum WalkError {
    /// The program could not be loaded: no row came.
    Unavailable(Box<dyn Error + Send + Sync>),
    /// The reading broke off.
    Broken(SysError),
}

impl BackendCache {
    /// All closed.
    pub fn new() -> BackendCache {
        BackendCache::default()
    }

    /// As on a kernel that refuses the walk: for tests of what stands in for it.
    #[doc(hidden)]
    pub fn without_walk() -> BackendCache {
        BackendCache { refused: RefCell::new(Some("the walk is not wanted".into())), ..BackendCache::default() }
    }

    /// As on a kernel whose walk breaks off after so many blocks: for tests of what finishes it.
    #[cfg(feature = "bpf")]
    #[doc(hidden)]
    pub fn breaking_off_after(blocks: u32) -> BackendCache {
        BackendCache { breaks_after: Cell::new(Some(blocks)), ..BackendCache::default() }
    }

    /// Why no program could be loaded, if it was tried in vain.
    pub fn refused(&self) -> Option<Box<str>> {
        if self.has_iterator() {
            return None;
        }
        self.iterator_refused.borrow().clone().or_else(|| self.refused.borrow().clone())
    }

    /// Why TCP was read by another backend than BPF though that would have paid: for `--cost`.
    pub fn passed_over(&self) -> Option<Box<str>> {
        self.refused().or_else(|| self.passed_over.get().map(Into::into))
    }

    pub(crate) fn pass_over(&self, why: Option<&'static str>) {
        self.passed_over.set(why);
    }

    /// True if the walk was tried in vain.
    pub(crate) fn was_refused(&self) -> bool {
        self.refused.borrow().is_some()
    }

    /// Why the walk is not to be loaded here, in words; `None` if it may be tried.
    pub(crate) fn why_not(&self) -> Option<&'static str> {
        if self.was_refused() { Some(REFUSED) } else { lacks_rights() }
    }

    /// The same of walk and iterator: one of them will do for the sockets of one's own namespace.
    pub(crate) fn why_neither(&self) -> Option<&'static str> {
        if self.iterator_refused.borrow().is_some() { Some(REFUSED) } else { lacks_rights() }
    }

    /// Numbers of all network namespaces that the kernel has, also of those that nothing leads to; `None` where it cannot
    /// be asked. Loads the program that then reads the sockets of all.
    pub fn every_namespace(&self, host: &Host) -> Option<Vec<u64>> {
        let possible = match host.is_replay() {
            true => host.holds("bpf/namespaces"),
            false => cfg!(feature = "bpf") && self.why_not().is_none(),
        };
        let parts = part::BOUND | part::QUEUES | part::NETNS | part::INODE;
        let found = if possible { self.namespaces(host, parts).ok() } else { None };
        found.map(|found| found.into_iter().map(|(number, _)| number.into()).collect())
    }

    /// For keys of rows, the same for as long as these are kept.
    pub(crate) fn secret(&self) -> u64 {
        let secret = self.secret.get().unwrap_or_else(random);
        self.secret.set(Some(secret));
        secret
    }

    pub(crate) fn first(&self) -> &Cell<Option<Via>> {
        &self.first
    }

    /// What is there already and will do.
    #[cfg(feature = "bpf")]
    pub(crate) fn loaded(&self, parts: u32) -> Option<Program> {
        use bpf::sockets_walk::Reach;
        if self.walk.borrow().as_ref().is_some_and(|walk| walk.covers(Reach::Connections, parts)) {
            return Some(Program::Walk);
        }
        self.iterator.borrow().as_ref().is_some_and(|door| door.covers(parts)).then_some(Program::Iterator)
    }

    #[cfg(feature = "bpf")]
    fn has_iterator(&self) -> bool {
        self.iterator.borrow().is_some()
    }

    /// Loads what reads these `parts` of the sockets of one's own namespace: the walk, and if the kernel refuses it and
    /// `or_iterator` has nothing against it, the iterator.
    #[cfg(feature = "bpf")]
    pub(crate) fn open(
        &self,
        host: &Host,
        parts: u32,
        or_iterator: impl FnOnce() -> bool,
    ) -> Result<Program, WalkError> {
        use bpf::sockets_walk::Reach;
        if let Some(own) = self.loaded(parts) {
            return Ok(own);
        }
        let refused = match self.was_refused() {
            true => WalkError::Unavailable(self.refused().unwrap_or_default().into_string().into()),
            false => match self.load(host, Reach::Connections, parts) {
                Ok(()) => return Ok(Program::Walk),
                Err(error) => error,
            },
        };
        if or_iterator() { self.load_iterator(host, parts).map(|()| Program::Iterator) } else { Err(refused) }
    }

    #[cfg(feature = "bpf")]
    fn load_iterator(&self, host: &Host, parts: u32) -> Result<(), WalkError> {
        // The kernel may hand out a socket of the iterator's twice: each says which one it is.
        match bpf::sockets_iter::TcpIterator::load(host, parts | part::IDENTITY, [random(), random()]) {
            Ok(door) => {
                *self.iterator.borrow_mut() = Some(door);
                Ok(())
            }
            Err(error) => {
                *self.iterator_refused.borrow_mut() = Some(error.to_string().into());
                Err(WalkError::Unavailable(Box::new(error)))
            }
        }
    }

    /// Reads the sockets of one's own namespace, whatever `ask` says of others, by what [`BackendCache::open`] has loaded.
    /// True if `visitor` wanted no more.
    #[cfg(feature = "bpf")]
    pub(crate) fn iterate(&self, host: &Host, ask: &Ask<'_>, visitor: &mut impl RowVisitor) -> Result<bool, WalkError> {
        let kept = self.iterator.borrow();
        let Some(door) = kept.as_ref() else { return Err(WalkError::Broken(not_here())) };
        let reading = door.read(wanted(ask)).map_err(|error| WalkError::Unavailable(Box::new(error)))?;
        let blocks = host.stream(ask.key, ask.note, || Ok(Box::new(reading) as Box<dyn Blocks>));
        rows(blocks.map_err(WalkError::Broken)?, ask, self.secret(), visitor)
    }

    /// Reads the table of connections; `visitor` gets every row with its key. True if it wanted no more.
    #[cfg(feature = "bpf")]
    pub(crate) fn walk(&self, host: &Host, ask: &Ask<'_>, visitor: &mut impl RowVisitor) -> Result<bool, WalkError> {
        if host.is_replay() {
            let blocks = host.stream(ask.key, ask.note, || Err(not_here())).map_err(WalkError::Broken)?;
            return rows(blocks, ask, self.secret(), visitor);
        }
        self.load(host, ask.scope.reach(), ask.parts)?;
        let kept = self.walk.borrow();
        let Some(walk) = kept.as_ref() else { return Err(WalkError::Broken(not_here())) };
        let walking =
            walk.read(ask.scope.table(), wanted(ask)).map_err(|error| WalkError::Unavailable(Box::new(error)))?;
        let walking = MayBreak { blocks: walking, left: &self.breaks_after };
        let blocks = host.stream(ask.key, ask.note, || Ok(Box::new(walking) as Box<dyn Blocks>));
        rows(blocks.map_err(WalkError::Broken)?, ask, self.secret(), visitor)
    }

    /// Every network namespace of the kernel: its number, and a number that those have in common who share a table of
    /// connections. What is loaded for it will do for reading these `parts` of the sockets of all.
    #[cfg(feature = "bpf")]
    pub(crate) fn namespaces(&self, host: &Host, parts: u32) -> Result<Vec<(u32, u64)>, WalkError> {
        let found = if host.is_replay() {
            bpf::sockets_walk::namespaces(host, [0, 0])
        } else {
            self.load(host, bpf::sockets_walk::Reach::Everywhere, parts)?;
            let kept = self.walk.borrow();
            let Some(walk) = kept.as_ref() else { return Err(WalkError::Broken(not_here())) };
            walk.namespaces(host)
        };
        let found = found.map_err(|error| WalkError::Unavailable(Box::new(error)))?;
        Ok(found.into_iter().map(|namespace| (namespace.netns_id, namespace.table)).collect())
    }

    /// Nobody tells without BPF.
    #[cfg(not(feature = "bpf"))]
    pub(crate) fn namespaces(&self, _host: &Host, _parts: u32) -> Result<Vec<(u32, u64)>, WalkError> {
        Err(WalkError::Unavailable(WITHOUT_BPF.into()))
    }

    #[cfg(feature = "bpf")]
    fn load(&self, host: &Host, reach: bpf::sockets_walk::Reach, parts: u32) -> Result<(), WalkError> {
        use bpf::sockets_walk::Walk;
        if self.walk.borrow().as_ref().is_some_and(|walk| walk.covers(reach, parts)) {
            return Ok(());
        }
        match Walk::load(host, reach, parts, [random(), random()]) {
            Ok(walk) => {
                *self.walk.borrow_mut() = Some(walk);
                Ok(())
            }
            Err(error) => {
                *self.refused.borrow_mut() = Some(error.to_string().into());
                Err(WalkError::Unavailable(Box::new(error)))
            }
        }
    }

    #[cfg(not(feature = "bpf"))]
    pub(crate) fn loaded(&self, _parts: u32) -> Option<Program> {
        None
    }

    #[cfg(not(feature = "bpf"))]
    fn has_iterator(&self) -> bool {
        false
    }

    #[cfg(not(feature = "bpf"))]
    pub(crate) fn open(
        &self,
        _: &Host,
        _parts: u32,
        _or_iterator: impl FnOnce() -> bool,
    ) -> Result<Program, WalkError> {
        Err(WalkError::Unavailable(WITHOUT_BPF.into()))
    }

    #[cfg(not(feature = "bpf"))]
    pub(crate) fn iterate(&self, _: &Host, _: &Ask<'_>, _: &mut impl RowVisitor) -> Result<bool, WalkError> {
        Err(WalkError::Unavailable(WITHOUT_BPF.into()))
    }

    /// Without BPF a recording can still be read.
    #[cfg(not(feature = "bpf"))]
    pub(crate) fn walk(&self, host: &Host, ask: &Ask<'_>, visitor: &mut impl RowVisitor) -> Result<bool, WalkError> {
        if !host.is_replay() {
            return Err(WalkError::Unavailable(WITHOUT_BPF.into()));
        }
        let blocks = host.stream(ask.key, ask.note, || Err(not_here())).map_err(WalkError::Broken)?;
        rows(blocks, ask, self.secret(), visitor)
    }
}

/// In words, why nothing is tried any more.
const REFUSED: &str = "the BPF program could not be loaded";

fn lacks_rights() -> Option<&'static str> {
    let may = caps::effective().is_ok_and(CapSet::may_trace);
    (!may).then_some("bpf needs CAP_BPF and CAP_PERFMON")
}

#[cfg(feature = "bpf")]
fn wanted(ask: &Ask<'_>) -> bpf::sockets_walk::Wanted {
    let Ask { states, v4, v6, sport, dport, .. } = *ask;
    let all = matches!(ask.scope, WalkScope::Shared(_) | WalkScope::AllListeners);
    bpf::sockets_walk::Wanted { states, v4, v6, sport, dport, netns: ask.scope.netns(), all }
}

/// Blocks that end in an error once there were so many, if a test wants that.
#[cfg(feature = "bpf")]
struct MayBreak<'a, B> {
    blocks: B,
    left: &'a Cell<Option<u32>>,
}

#[cfg(feature = "bpf")]
impl<B: Blocks> Blocks for MayBreak<'_, B> {
    fn next(&mut self) -> Result<Option<&[u8]>, SysError> {
        match self.left.get() {
            Some(0) => return Err(SysError::new("bpf_prog_run", "the walk of the TCP table", sys::Errno::AGAIN)),
            left => self.left.set(left.map(|left| left - 1)),
        }
        self.blocks.next()
    }
}

fn rows<'a>(
    mut blocks: Box<dyn Blocks + 'a>,
    ask: &Ask<'_>,
    secret: u64,
    visitor: &mut impl RowVisitor,
) -> Result<bool, WalkError> {
    let mut decoder = WalkDecoder::new(ask.netns_id, secret);
    while let Some(block) = blocks.next().map_err(WalkError::Broken)? {
        if decoder.hand(block, visitor).is_break() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn not_here() -> SysError {
    SysError::new("bpf_prog_run", "the walk of the TCP table", sys::Errno::NOSYS)
}

/// Unforeseeable for strangers; the standard library's keys come from the kernel.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(not(feature = "bpf"))]
pub(crate) const WITHOUT_BPF: &str = "this netwren was built without BPF";
