//! Looks for network namespaces while the groups are read: at once when mounts change (`ip netns add`), else once a
//! second.
use std::collections::HashMap;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use sys::netns::within;
use sys::{Errno, MountsWatch, NetNs, SysError};

use super::groups::{Delivery, GroupSocket};
use super::other_netns::{Elsewhere, FindOtherNetns};

/// Most sockets in other namespaces; further groups are not read, and said.
const SOCKETS_MAX: usize = 4096;
/// Time between two searches where no mount changes.
const PERIOD: Duration = Duration::from_secs(1);
/// Least time between two searches.
const PAUSE: Duration = Duration::from_millis(100);
/// Searches take one part in so many of the time at most.
const SHARE_OF_TIME: u32 = 20;
/// A namespace that so many searches in a row have not found has gone: one may miss it, because processes go from
/// namespace to namespace while they are looked at.
const MISSED_MAX: u32 = 2;
/// A namespace of which not all groups could be bound is tried again after so many searches.
const RETRY: u32 = 10;

/// What is known of a namespace.
#[derive(Debug, Default)]
struct KnownNetns {
    bound: Vec<u16>,
    /// Searches in a row that have not found it.
    missed: u32,
    /// Searches until the rest is tried again.
    retry: u32,
    /// Why groups of it are not bound.
    why: Option<String>,
}

/// The namespaces whose groups are bound.
pub(crate) struct Scan {
    find: FindOtherNetns,
    groups: Vec<u16>,
    delivery: Delivery,
    /// See `FollowLog::copy_bytes`.
    copy_bytes: Arc<AtomicU32>,
    known: HashMap<u64, KnownNetns>,
    /// True after the first search.
    begun: bool,
    /// Groups of namespaces that have gone without being read.
    unread_gone: u64,
    elsewhere: Arc<Elsewhere>,
}

impl Scan {
    pub(crate) fn new(
        find: FindOtherNetns,
        groups: &[u16],
        delivery: Delivery,
        copy_bytes: Arc<AtomicU32>,
        elsewhere: Arc<Elsewhere>,
    ) -> Scan {
        let (groups, known) = (groups.to_vec(), HashMap::new());
        Scan { find, groups, delivery, copy_bytes, known, begun: false, unread_gone: 0, elsewhere }
    }

    /// Searches once: binds the groups of namespaces that are new, and tells of those that have gone. Needs
    /// CAP_NET_ADMIN in each, and CAP_SYS_ADMIN to enter them.
    pub(crate) fn search(&mut self) {
        let (known, all) = (&self.known, self.groups.len());
        let is_settled = |known: &KnownNetns| known.bound.len() == all || known.retry > 1;
        let Some(found) = (self.find)(&|inode| known.get(&inode).is_some_and(is_settled)) else { return };
        for known in self.known.values_mut() {
            known.missed += 1;
            known.retry = known.retry.saturating_sub(1);
        }
        for other in &found {
            let known = self.known.entry(other.netns_id).or_default();
            known.missed = 0;
            if known.bound.len() < all && known.retry == 0 {
                self.bind(other.netns_id, other.netns.as_ref());
            }
        }
        self.begun = true;
        let (groups, elsewhere, unread_gone) = (self.groups.len(), &self.elsewhere, &mut self.unread_gone);
        self.known.retain(|netns_id, known| {
            let is_there = known.missed < MISSED_MAX;
            if !is_there {
                *unread_gone += (groups - known.bound.len()) as u64;
                elsewhere.leave(*netns_id);
            }
            is_there
        });
        self.tell_unread();
    }

    /// Binds those groups of a namespace that are not bound yet.
    fn bind(&mut self, netns_id: u64, netns: Option<&NetNs>) {
        let mut known = self.known.remove(&netns_id).unwrap_or_default();
        (known.retry, known.why) = (RETRY, None);
        let bound = match netns {
            None => Err("it cannot be entered".to_owned()),
            Some(_) => within(netns, || self.bind_here(netns_id, &mut known)).map_err(|error| error.to_string()),
        };
        if let Err(why) = bound {
            known.why = Some(why);
        }
        self.known.insert(netns_id, known);
    }

    /// The same in the namespace that the thread is in.
    fn bind_here(&self, netns_id: u64, known: &mut KnownNetns) {
        let delivery = Delivery { copy_bytes: self.copy_bytes.load(Relaxed), ..self.delivery };
        let (mut sockets, mut early) = (Vec::new(), Vec::new());
        for group in &self.groups {
            if known.bound.contains(group) {
                continue;
            }
            if self.elsewhere.len() + sockets.len() >= SOCKETS_MAX {
                known.why.get_or_insert_with(|| format!("more than {SOCKETS_MAX} groups"));
                break;
            }
            match GroupSocket::bind(*group, netns_id, delivery, &mut early) {
                Ok(socket) => {
                    sockets.push(Arc::new(socket));
                    known.bound.push(*group);
                }
                Err(error) => _ = known.why.get_or_insert_with(|| format!("group {group}: {error}")),
            }
        }
        if !sockets.is_empty() {
            let early = early.into_iter().map(|datagram| (netns_id, datagram)).collect();
            self.elsewhere.hand_over(sockets, early, self.begun);
        }
    }

    fn tell_unread(&self) {
        let lacking = |known: &KnownNetns| (self.groups.len() - known.bound.len()) as u64;
        let count = self.known.values().map(lacking).sum::<u64>();
        let why = self
            .known
            .iter()
            .find_map(|(netns_id, known)| Some(format!("in network namespace {netns_id}, {}", known.why.as_ref()?)));
        self.elsewhere.set_unread(count + self.unread_gone, why);
    }
}

/// The thread that searches. Dropped, it ends.
pub(crate) struct Scanner {
    /// Its end stops the thread.
    stopper: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Scanner {
    /// Starts the thread, which goes on with `scan`.
    pub(crate) fn start(mut scan: Scan) -> Result<Scanner, SysError> {
        let failed = |error: std::io::Error| {
            SysError::new("clone", "the search for namespaces", Errno(error.raw_os_error().unwrap_or(0)))
        };
        let (stopper, stopped) = UnixStream::pair().map_err(failed)?;
        let thread = Builder::new().name("netwren-netns".into()).spawn(move || {
            let mounts = MountsWatch::open();
            while !is_stopped(&mounts, &stopped, PERIOD, true) {
                let begin = Instant::now();
                scan.search();
                let pause = PAUSE.max(begin.elapsed() * SHARE_OF_TIME);
                if is_stopped(&mounts, &stopped, pause, false) {
                    break;
                }
            }
        });
        Ok(Scanner { stopper: Some(stopper), thread: Some(thread.map_err(failed)?) })
    }
}

/// Waits so long, or with `by_mounts` until mounts change; true if the thread shall end.
fn is_stopped(mounts: &Result<MountsWatch, SysError>, stop: &UnixStream, wait: Duration, by_mounts: bool) -> bool {
    let ms = i32::try_from(wait.as_millis()).unwrap_or(i32::MAX);
    let mounts = mounts.as_ref().ok().filter(|_| by_mounts);
    // What cannot be waited for would be a loop without a pause.
    MountsWatch::wait(mounts, stop.as_fd(), ms).unwrap_or(true)
}

impl Drop for Scanner {
    fn drop(&mut self) {
        self.stopper = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
