//! The network namespaces of a session, which appear and disappear while it runs.

use host::{HostError, Namespace, Namespaces, NetnsFingerprint, NetnsSearch};
use record::Accounting;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use sys::{Host, Share, clock};

/// The message about namespaces that exist but cannot be entered through any visible process.
const HIDDEN: &str = "a network namespace was not read: no permission to inspect its processes (needs CAP_SYS_PTRACE)";

/// Searches of threads and descriptors take at most one part in `SEARCH_SHARE` of the time, and up to
/// `SEARCH_CREDIT_NS` at once after a pause.
///
/// Bound: parts of the time of `--watch`: at most one is spent on searching threads and descriptors for namespaces.
/// Beyond: a namespace without a process appears later. By: a local user with many descriptors.
const SEARCH_SHARE: u64 = 20;
const SEARCH_CREDIT_NS: u64 = 100_000_000;

/// The message about descriptors that the search left out.
const UNSEARCHED: &str = "open descriptors were not searched for network namespaces: too many on this host";

/// The message if `--all-netns` needs more namespaces than the recording has.
const ONE_NAMESPACE: &str = "the recording holds one network namespace, others are missing (`--all-netns` with \
                             `--record FILE` records all, and so does `netwren record FILE`)";

/// Namespaces found by a thread, until the session takes them over.
pub type FoundNamespaces = Arc<Mutex<Option<Namespaces>>>;

/// The namespaces that a session reads.
pub struct SessionNamespaces {
    /// Those of the last search; `None` if only one is read.
    all: Option<RefCell<Rc<Namespaces>>>,
    /// Those found later by other threads.
    from_threads: FoundNamespaces,
    /// See [`SessionNamespaces::take_others`].
    others: RefCell<Vec<u64>>,
    /// The share of the time for searches of threads and descriptors.
    searches: Share,
    /// The state from which the namespaces were found.
    fingerprint: RefCell<Option<NetnsFingerprint>>,
    /// See [`SessionNamespaces::keep`].
    are_final: Cell<bool>,
    /// True if all namespaces are requested from a recording of a single one.
    are_missing: bool,
}

impl SessionNamespaces {
    /// All namespaces of the host if `are_requested`; a recording of all of them is always read whole.
    pub(super) fn new(host: &Host, are_requested: bool) -> SessionNamespaces {
        let are_there = !host.is_replay() || Namespaces::are_recorded(host);
        let are_read = are_requested || (host.is_replay() && are_there);
        SessionNamespaces {
            all: are_read.then(RefCell::default),
            from_threads: FoundNamespaces::default(),
            others: RefCell::default(),
            searches: Share::one_in(SEARCH_SHARE, SEARCH_CREDIT_NS),
            fingerprint: RefCell::default(),
            are_final: Cell::new(false),
            are_missing: are_requested && !are_there,
        }
    }

    /// Finds the current namespaces, if all are read. Called once per round, because they appear and disappear.
    /// `listed` are the namespaces that the kernel lists, if it was used; processes and names do not lead to all of
    /// them.
    pub(super) fn find(&self, host: &Host, listed: Option<Vec<u64>>, stats: &mut Accounting) {
        let Some(all) = self.all.as_ref().filter(|_| !self.are_final.get()) else { return };
        // The search looks at every process of the host, which in later rounds costs most of the time not spent on
        // sockets.
        let before = self.fingerprint.take();
        let fingerprint = listed.clone().and_then(|listed| NetnsFingerprint::read(host, listed, before.as_ref()));
        let same =
            before.is_some_and(|before| fingerprint.as_ref().is_some_and(|fingerprint| fingerprint.matches(&before)));
        self.fingerprint.replace(fingerprint);
        if same && all.borrow().are_settled(host) {
            return;
        }
        let mut found = match self.search(host, listed.as_deref()) {
            Ok(found) => found,
            Err(error) => {
                self.fingerprint.take();
                return stats.incomplete(1, error.to_string());
            }
        };
        if found.unsearched() > 0 {
            stats.incomplete(found.unsearched(), UNSEARCHED);
        }
        match listed {
            Some(listed) => found.also(&listed),
            None if found.hidden() > 0 => {
                stats.incomplete(found.hidden(), HIDDEN);
            }
            None => {}
        }
        all.replace(Rc::new(found));
    }

    /// Searches for namespaces. The first search also looks at threads and descriptors; later searches do so only
    /// while that takes a small part of the time.
    fn search(&self, host: &Host, listed: Option<&[u64]>) -> Result<Namespaces, HostError> {
        let before = self.current().filter(|known| !known.list().is_empty());
        let begun_ns = clock::monotonic_ns();
        let holders = self.searches.may_start(begun_ns) || before.is_none();
        let search = NetnsSearch { listed, holders, before: before.as_deref() };
        let found = Namespaces::search(host, &search);
        if holders {
            self.searches.charge(clock::monotonic_ns().saturating_sub(begun_ns));
        }
        found
    }

    /// Stops searching: the set found so far is final.
    pub fn keep(&self) {
        self.are_final.set(true);
    }

    /// Those of the last search; `None` if only one is read.
    pub(super) fn current(&self) -> Option<Rc<Namespaces>> {
        self.all.as_ref().map(|all| Rc::clone(&all.borrow()))
    }

    /// The place where another thread puts the namespaces that it finds.
    pub fn from_threads(&self) -> FoundNamespaces {
        Arc::clone(&self.from_threads)
    }

    /// Takes over the namespaces found by another thread; returns true if they differ from the previous ones.
    pub fn take_found(&self) -> bool {
        let found = self.from_threads.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (Some(found), Some(all)) = (found, &self.all) else { return false };
        let found = Rc::new(found);
        let before = all.replace(Rc::clone(&found));
        let is_other = |namespace: &&Namespace| !found.list().contains(namespace);
        self.others.borrow_mut().extend(before.list().iter().filter(is_other).map(|namespace| namespace.inode));
        true
    }

    /// Inodes of namespaces that were removed or renamed since the last call; a new namespace may reuse the inode.
    pub fn take_others(&self) -> Vec<u64> {
        self.others.take()
    }

    /// The namespace with this inode, which belongs to the session or was found by another thread since then.
    pub(super) fn with_inode(&self, inode: u64) -> Option<Namespace> {
        let of = |namespaces: &Namespaces| namespaces.list().iter().find(|other| other.inode == inode).cloned();
        let in_found = || of(self.from_threads.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?);
        self.current().and_then(|namespaces| of(&namespaces)).or_else(in_found)
    }

    /// Adds to `stats` that the recording lacks requested namespaces.
    pub(super) fn finish(&self, stats: &mut Accounting) {
        if self.are_missing {
            stats.unanswered = true;
            stats.add_reason(0, ONE_NAMESPACE);
        }
    }
}
