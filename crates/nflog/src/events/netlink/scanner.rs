//! Scans for network namespaces while the groups are read: immediately when mounts change (`ip netns add`), otherwise
//! once per second.
use std::collections::HashMap;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use sys::netns::run_within;
use sys::{BufferBudget, BufferLimits, Errno, FoundNetns, MountsWatch, NetnsOwner, Share, SysError, clock};

use super::groups::{DeliveryOptions, GroupSocket};
use super::other_netns::{FindOtherNetns, OtherNetnsSockets};
use crate::events::wanted::WantedParts;

/// Maximum number of sockets in other namespaces; the namespaces share them like the memory.
///
/// Bound: log groups of other namespaces with `--all-netns`, shared out like memory
/// (`scanner::root_a_namespace_of_the_host_takes_the_memory_that_a_users_one_had`). Beyond: further namespaces are left
/// out and counted (exit code 3). By: a user who makes namespaces, for that user's namespaces.
pub(crate) const SOCKETS_MAX: usize = 4096;
/// The smallest useful receive buffer: it holds a few datagrams of the size that the kernel fills.
///
/// Bound: bytes of the smallest buffer for a log group of another namespace
/// (`netns_budget::root_a_users_namespaces_take_their_share_of_a_log_and_no_more`). Beyond: further namespaces are left
/// out and counted (exit code 3). By: a user who makes namespaces, for that user's namespaces.
const BUFFER_BYTES_MIN: u64 = 512 << 10;
/// Time between two scans while no mount changes.
const PERIOD: Duration = Duration::from_secs(1);
/// Minimum time between two scans.
const PAUSE_NS: u64 = 100_000_000;
/// Scans take at most one part in this many of the time.
const SHARE_OF_TIME: u64 = 21;
/// Number of consecutive scans without a namespace after which it counts as removed. A single scan may miss one,
/// because processes move between namespaces during the scan.
const MISSED_MAX: u32 = 2;
/// Number of scans after which a namespace with unbound groups is tried again.
const RETRY: u32 = 10;

/// State of a known namespace.
#[derive(Debug, Default)]
struct KnownNetns {
    bound: Vec<u16>,
    /// Number of consecutive scans that have not found it.
    missed: u32,
    /// Number of scans until the remaining groups are tried again.
    retry: u32,
    /// Size of each receive buffer in bytes; 0 if the namespace gets no memory.
    buffer_bytes: u32,
    /// Why some of its groups are not bound.
    why: Option<String>,
}

impl KnownNetns {
    /// Changes the size of the namespace's receive buffers; 0 releases its groups.
    fn set_share(&mut self, netns_id: u64, bytes: u32, elsewhere: &OtherNetnsSockets) {
        if self.buffer_bytes == bytes {
            return;
        }
        self.buffer_bytes = bytes;
        if bytes > 0 {
            return elsewhere.make_room(netns_id, bytes);
        }
        if !self.bound.is_empty() {
            elsewhere.add_removed(netns_id);
            self.bound.clear();
        }
        // The sockets are closed by the time of the retry.
        (self.retry, self.why) = (RETRY, None);
    }
}

/// How to find and read the groups of other namespaces.
pub(crate) struct OtherGroups {
    pub(crate) find: FindOtherNetns,
    pub(crate) wanted: Arc<WantedParts>,
    pub(crate) buffers: BufferLimits,
}

/// The namespaces whose groups are bound.
pub(crate) struct Scan {
    find: FindOtherNetns,
    groups: Vec<u16>,
    delivery: DeliveryOptions,
    budget: BufferBudget,
    wanted: Arc<WantedParts>,
    known: HashMap<u64, KnownNetns>,
    /// True after the first scan.
    begun: bool,
    /// Number of unbound groups of namespaces removed since then.
    unbound_removed: u64,
    elsewhere: Arc<OtherNetnsSockets>,
}

impl Scan {
    /// `buffers` limits the receive buffers of all other namespaces together.
    pub(crate) fn new(
        OtherGroups { find, wanted, buffers }: OtherGroups,
        groups: &[u16],
        delivery: DeliveryOptions,
        elsewhere: Arc<OtherNetnsSockets>,
    ) -> Scan {
        let (groups, known) = (groups.to_vec(), HashMap::new());
        let count = groups.len().max(1) as u64;
        let budget = BufferBudget {
            total: buffers.bytes,
            buffer: delivery.buffer_bytes.into(),
            buffer_min: BUFFER_BYTES_MIN.min(delivery.buffer_bytes.into()),
            buffers: count,
            namespaces_max: buffers.sockets.min(SOCKETS_MAX as u64) / count,
        };
        Scan { find, groups, delivery, budget, wanted, known, begun: false, unbound_removed: 0, elsewhere }
    }

    /// Scans once: binds the groups of new namespaces, and reports removed ones. Needs CAP_NET_ADMIN in each namespace,
    /// and CAP_SYS_ADMIN to enter it.
    pub(crate) fn search(&mut self) {
        let Some(found) = (self.find)() else { return };
        for known in self.known.values_mut() {
            known.missed += 1;
            known.retry = known.retry.saturating_sub(1);
        }
        let owners: Vec<NetnsOwner> = found.iter().map(|other| other.owner).collect();
        let shares = self.budget.share_out(&owners);
        self.elsewhere.note_shortage(self.budget.count_shortage(&shares));
        for (other, bytes) in found.iter().zip(shares) {
            let known = self.known.entry(other.netns_id).or_default();
            known.missed = 0;
            known.set_share(other.netns_id, u32::try_from(bytes).unwrap_or(u32::MAX), &self.elsewhere);
            if known.buffer_bytes > 0 && known.bound.len() < self.groups.len() && known.retry == 0 {
                self.bind(other);
            }
        }
        self.begun = true;
        let (groups, elsewhere, unbound_removed) = (self.groups.len(), &self.elsewhere, &mut self.unbound_removed);
        self.known.retain(|netns_id, known| {
            let is_there = known.missed < MISSED_MAX;
            if !is_there {
                *unbound_removed += if known.buffer_bytes > 0 { (groups - known.bound.len()) as u64 } else { 0 };
                elsewhere.add_removed(*netns_id);
            }
            is_there
        });
        self.report_unbound();
    }

    /// Binds the groups of a namespace that are not bound yet.
    fn bind(&mut self, other: &FoundNetns) {
        let netns_id = other.netns_id;
        let mut known = self.known.remove(&netns_id).unwrap_or_default();
        (known.retry, known.why) = (RETRY, None);
        let bound = match other.netns() {
            None => Err("it cannot be entered".to_owned()),
            netns => run_within(netns.as_ref(), || self.bind_in_thread(netns_id, &mut known))
                .map_err(|error| error.to_string()),
        };
        if let Err(why) = bound {
            known.why = Some(why);
        }
        self.known.insert(netns_id, known);
    }

    /// Does so in the calling thread's namespace.
    fn bind_in_thread(&self, netns_id: u64, known: &mut KnownNetns) {
        let (copy_bytes, buffer_bytes) = (self.wanted.copy_bytes.load(Relaxed), known.buffer_bytes);
        let delivery = DeliveryOptions { copy_bytes, buffer_bytes, ..self.delivery };
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

    fn report_unbound(&self) {
        // Namespaces without memory are counted separately.
        let lacking = |known: &KnownNetns| (self.groups.len() - known.bound.len()) as u64;
        let count = self.known.values().filter(|known| known.buffer_bytes > 0).map(lacking).sum::<u64>();
        let why = self
            .known
            .iter()
            .find_map(|(netns_id, known)| Some(format!("in network namespace {netns_id}, {}", known.why.as_ref()?)));
        self.elsewhere.set_unbound(count + self.unbound_removed, why);
    }
}

/// The scanning thread. It ends when this value is dropped.
pub(crate) struct Scanner {
    /// Dropping it stops the thread.
    stopper: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Scanner {
    /// Starts the thread, which continues with `scan`.
    pub(crate) fn start(mut scan: Scan) -> Result<Scanner, SysError> {
        let failed = |error: std::io::Error| {
            SysError::new("clone", "the search for namespaces", Errno(error.raw_os_error().unwrap_or(0)))
        };
        let (stopper, stopped) = UnixStream::pair().map_err(failed)?;
        let thread = Builder::new().name("netwren-netns".into()).spawn(move || {
            let mounts = MountsWatch::open();
            while !is_stopped(&mounts, &stopped, PERIOD, true) {
                let begun_ns = clock::monotonic_ns();
                scan.search();
                let pause_ns = Share::pause_ns(SHARE_OF_TIME, clock::monotonic_ns().saturating_sub(begun_ns));
                if is_stopped(&mounts, &stopped, Duration::from_nanos(pause_ns.max(PAUSE_NS)), false) {
                    break;
                }
            }
        });
        Ok(Scanner { stopper: Some(stopper), thread: Some(thread.map_err(failed)?) })
    }
}

/// Waits for `wait`, or with `by_mounts` until mounts change; true if the thread must end.
fn is_stopped(mounts: &Result<MountsWatch, SysError>, stop: &UnixStream, wait: Duration, by_mounts: bool) -> bool {
    let ms = i32::try_from(wait.as_millis()).unwrap_or(i32::MAX);
    let mounts = mounts.as_ref().ok().filter(|_| by_mounts);
    // Ends on an error: without waiting, this would be a busy loop.
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::events::netlink::groups::LATENCY;
    use std::sync::Mutex;
    use sys::{NetNs, ShortShares};
    use testkit::netns::Lab;

    const KIB: u32 = 1 << 10;

    /// Returns buffer sizes (as the kernel counts them) of groups bound since the last call, and released namespaces.
    fn arrived(elsewhere: &OtherNetnsSockets) -> (Vec<(u64, u32)>, Vec<u64>) {
        let Some(arrivals) = elsewhere.take_arrivals() else { return Default::default() };
        let bound = arrivals.bound.iter();
        (bound.map(|socket| (socket.netns_id, socket.netlink.room().unwrap())).collect(), arrivals.gone)
    }

    #[test]
    fn root_a_namespace_of_the_host_takes_the_memory_that_a_users_one_had() {
        testkit::require_root!();
        let labs = [Lab::new("logusers"), Lab::new("loghosts")];
        let [user, host] = labs.each_ref().map(|lab| sys::netns::inode_of(&lab.path()).unwrap());
        let listed = Arc::new(Mutex::new(vec![(user, NetnsOwner::User(7), labs[0].path())]));
        let find = {
            let listed = Arc::clone(&listed);
            move || {
                let one = |(netns_id, owner, path): &(u64, NetnsOwner, std::path::PathBuf)| {
                    let path = path.clone();
                    let open: Box<dyn Fn() -> Option<NetNs> + Send> = Box::new(move || NetNs::open_path(&path).ok());
                    FoundNetns { netns_id: *netns_id, owner: *owner, open: Some(open) }
                };
                Some(listed.lock().unwrap().iter().map(one).collect())
            }
        };
        let buffers = BufferLimits { bytes: u64::from(768 * KIB), sockets: 10 };
        let others = OtherGroups { find: Box::new(find), wanted: Arc::default(), buffers };
        let delivery = DeliveryOptions { copy_bytes: 64, latency: LATENCY, buffer_bytes: 1024 * KIB, entries: false };
        let elsewhere = Arc::<OtherNetnsSockets>::default();
        let mut scan = Scan::new(others, &[47_117], delivery, Arc::clone(&elsewhere));
        scan.search();
        assert_eq!(arrived(&elsewhere), (vec![(user, 2 * 512 * KIB)], vec![]));
        assert_eq!(elsewhere.largest_shortage(), ShortShares { left_out: 0, reduced: 1 });
        listed.lock().unwrap().push((host, NetnsOwner::Host, labs[1].path()));
        scan.search();
        assert_eq!(arrived(&elsewhere), (vec![(host, 2 * 512 * KIB)], vec![user]));
        assert_eq!(
            (elsewhere.largest_shortage(), elsewhere.unbound_groups().0),
            (ShortShares { left_out: 1, reduced: 1 }, 0)
        );
        // The user's group is bound again once there is room and its socket is closed.
        let sockets: Vec<_> = std::mem::take(&mut *elsewhere.locked_sockets());
        drop(sockets);
        listed.lock().unwrap().truncate(1);
        (0..=RETRY).for_each(|_| scan.search());
        assert_eq!(arrived(&elsewhere), (vec![(user, 2 * 512 * KIB)], vec![host]));
    }
}
