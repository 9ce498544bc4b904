//! Names of addresses, looked up while rows are read: /etc/hosts, then netwren's own PTR queries.
//!
//! A worker thread queries the name servers of /etc/resolv.conf over UDP. Callers request names with
//! [`Resolver::want`], never wait for the network unless they choose to ([`Resolver::wait_until`]), and get the known
//! names as a [`HostNames`]. Everything is bounded: concurrent queries, tries, remembered addresses (also without a
//! name). The owner of an address chooses its name, so the resolver ignores a name that no host can have or that looks
//! like an address, and never looks up the addresses of a name. It does not use the name service switch: it does not
//! query mDNS, NIS and the like. Start reading at [`Resolver::start`].
mod files;
mod names;
mod worker;

pub use names::HostNames;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use record::Addr;
use sys::{Errno, Host, SysError};

use crate::HostError;
use worker::Worker;

/// Maximum length of a name; a longer one (escapes of hostile bytes) counts as no name.
///
/// Bound: bytes of a host name. Beyond: the name counts as none. By: the name servers.
const NAME_MAX: usize = 255;

/// Maximum wait for the worker to drop its capabilities, which takes it a few µs.
const RIGHTS_WAIT: Duration = Duration::from_secs(5);

/// The names of a hosts file.
pub(crate) fn hosts_names(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    files::hosts_entries(text).map(|(_, name)| name)
}

/// Options of the queries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolverOptions {
    /// Name servers; `None` for the ones in /etc/resolv.conf.
    pub servers: Option<Vec<SocketAddr>>,
    /// True to read /etc/hosts first.
    pub reads_hosts: bool,
    /// How long to wait for an answer before the next try.
    pub timeout: Duration,
    /// Maximum number of queries per address, alternating between the servers.
    pub tries: u32,
    /// Maximum number of concurrent queries.
    pub in_flight_max: usize,
    /// Maximum number of addresses remembered, with or without a name.
    pub addresses_max: usize,
    /// True to forget answers of servers when `addresses_max` is reached, and to ask again; false to stop asking.
    pub forgets: bool,
}

impl Default for ResolverOptions {
    fn default() -> ResolverOptions {
        ResolverOptions {
            servers: None,
            reads_hosts: true,
            timeout: Duration::from_millis(500),
            tries: 2,
            in_flight_max: 64,
            addresses_max: 10_000,
            forgets: false,
        }
    }
}

/// Outcome of the requested addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamesReport {
    /// Addresses with a name from a name server.
    pub found: u64,
    /// Addresses without a name, according to a server.
    pub nameless: u64,
    /// Addresses without an answer from any server.
    pub failed: u64,
    /// Addresses whose queries are pending.
    pub waiting: u64,
    /// Addresses not asked for because the limit was reached.
    pub over: u64,
}

impl NamesReport {
    /// One line for each type of missing names, for the end of a run. Addresses without a name do not count as missing.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.waiting > 0 {
            lines
                .push(format!("names of {} addresses did not arrive in time (allow more: --resolve=5s)", self.waiting));
        }
        if self.failed > 0 {
            lines.push(format!("names of {} addresses unknown: no name server answered", self.failed));
        }
        if self.over > 0 {
            lines.push(format!("names of {} addresses not requested: too many", self.over));
        }
        lines
    }
}

/// State of an address.
#[derive(Clone, Debug)]
enum Slot {
    Waiting,
    /// The name from a server.
    Name(Box<[u8]>),
    Nameless,
    Failed,
}

/// Result of [`Resolver::known`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KnownName {
    /// Its name, not escaped: treat it as hostile.
    Name(Box<[u8]>),
    /// A query is pending.
    Waiting,
    /// It has no name, or no server answered; this is final.
    None,
    /// It was not requested.
    Unasked,
}

/// State shared by the caller and the worker.
#[derive(Debug, Default)]
struct ResolverState {
    slots: HashMap<Addr, Slot, RandomState>,
    queue: VecDeque<Addr>,
    report: NamesReport,
    closed: bool,
    rights: WorkerRights,
}

/// Whether the worker thread has its capabilities.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum WorkerRights {
    #[default]
    Held,
    /// The worker has them and must drop them.
    Unwanted,
    GivenUp,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<ResolverState>,
    /// Signals work for the worker.
    work: Condvar,
    /// Signals that work is done.
    done: Condvar,
}

impl Shared {
    // If the worker panicked, the state is still consistent: each change is one assignment.
    fn lock(&self) -> MutexGuard<'_, ResolverState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks up names in the background; its thread ends when this is dropped.
#[derive(Debug)]
pub struct Resolver {
    shared: Arc<Shared>,
    addresses_max: usize,
    forgets: bool,
    /// The names in /etc/hosts.
    listed: HashMap<Addr, Box<[u8]>, RandomState>,
    /// `None` in a replay, which sends no queries.
    worker: Option<JoinHandle<()>>,
}

impl Resolver {
    /// Reads /etc/hosts and /etc/resolv.conf and starts the worker, in the calling thread's network namespace.
    ///
    /// Fails only if the thread cannot be started. If name servers are unreachable, names are missing.
    pub fn start(host: &Host, options: &ResolverOptions) -> Result<Resolver, HostError> {
        let shared = Arc::new(Shared::default());
        let mut resolver = Resolver {
            shared,
            addresses_max: options.addresses_max,
            forgets: options.forgets,
            listed: HashMap::default(),
            worker: None,
        };
        if host.is_replay() {
            return Ok(resolver);
        }
        if options.reads_hosts {
            resolver.read_hosts(host);
        }
        let servers = options.servers.clone().unwrap_or_else(|| files::name_servers(host));
        let worker = Worker::new(resolver.shared.clone(), &servers, options);
        let failed = |error: std::io::Error| {
            SysError::new("clone", "a thread for names", Errno(error.raw_os_error().unwrap_or(0)))
        };
        let thread = std::thread::Builder::new().name("names".into()).spawn(move || worker.run()).map_err(failed)?;
        resolver.worker = Some(thread);
        Ok(resolver)
    }

    fn read_hosts(&mut self, host: &Host) {
        let mut text = Vec::new();
        if host.read_file("/etc/hosts", &mut text).is_err() {
            return;
        }
        for (addr, name) in files::hosts_entries(&text) {
            // Leaves room for answers if the file is long, for example a list of blocked advertisers.
            if self.listed.len() >= self.addresses_max / 2 {
                break;
            }
            self.listed.entry(addr).or_insert_with(|| name.into());
        }
    }

    /// Makes the worker thread drop its capabilities now, and waits until it has: each thread has its own. The program
    /// cannot become another user afterwards.
    pub fn drop_rights(&self) {
        if self.worker.is_none() {
            return;
        }
        let mut state = self.shared.lock();
        if state.rights == WorkerRights::Held {
            state.rights = WorkerRights::Unwanted;
            self.shared.work.notify_one();
        }
        let is_held = |state: &mut ResolverState| state.rights != WorkerRights::GivenUp;
        let _ = self.shared.done.wait_timeout_while(state, RIGHTS_WAIT, is_held);
    }

    /// Requests the name of an address, unless that was done before. Returns immediately.
    pub fn want(&self, addr: Addr) {
        let addr = addr.unmapped();
        // Name servers cannot know names of these addresses.
        if self.worker.is_none() || addr.is_unspecified() || addr.is_link_local_v6() {
            return;
        }
        if self.listed.contains_key(&addr) {
            return;
        }
        let mut state = self.shared.lock();
        if state.slots.contains_key(&addr) {
            return;
        }
        let room = self.addresses_max.saturating_sub(self.listed.len());
        // Forgets half of them at a time: going through all of them for each new address would be too slow in a flood.
        let settled = (state.slots.len() as u64).saturating_sub(state.report.waiting);
        if self.forgets && state.slots.len() >= room && settled >= room as u64 / 2 {
            state.slots.retain(|_, slot| matches!(slot, Slot::Waiting));
        }
        if state.slots.len() >= room {
            state.report.over += 1;
            return;
        }
        state.slots.insert(addr, Slot::Waiting);
        state.queue.push_back(addr);
        state.report.waiting += 1;
        drop(state);
        self.shared.work.notify_one();
    }

    /// The name of an address as far as it is known now. Returns immediately.
    pub fn known(&self, addr: Addr) -> KnownName {
        let addr = addr.unmapped();
        if let Some(name) = self.listed.get(&addr) {
            return KnownName::Name(name.clone());
        }
        match self.shared.lock().slots.get(&addr) {
            Some(Slot::Name(name)) => KnownName::Name(name.clone()),
            Some(Slot::Waiting) => KnownName::Waiting,
            Some(Slot::Nameless | Slot::Failed) => KnownName::None,
            None => KnownName::Unasked,
        }
    }

    /// The name of a requested address, once it is final or `deadline` is reached.
    pub fn wait_for(&self, addr: Addr, deadline: Instant) -> KnownName {
        let mut state = self.shared.lock();
        while matches!(state.slots.get(&addr.unmapped()), Some(Slot::Waiting)) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let woken = self.shared.done.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(state);
        self.known(addr)
    }

    /// Waits until every requested address is final, or until `deadline`.
    pub fn wait_until(&self, deadline: Instant) {
        let mut state = self.shared.lock();
        while state.report.waiting > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let woken = self.shared.done.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The names known now. They are recorded, and a replay reads them from the recording.
    pub fn names(&self, host: &Host) -> Result<HostNames, HostError> {
        let mut bytes = Vec::new();
        host.bytes("names@dns", "", &mut bytes, |into| {
            self.listed.iter().for_each(|(addr, name)| names::put(into, *addr, name));
            for (addr, slot) in &self.shared.lock().slots {
                if let Slot::Name(name) = slot {
                    names::put(into, *addr, name);
                }
            }
            Ok(())
        })?;
        HostNames::parse(bytes)
    }

    /// Outcome of the addresses so far.
    pub fn report(&self) -> NamesReport {
        self.shared.lock().report
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.work.notify_one();
        if let Some(worker) = self.worker.take() {
            // The thread never blocks for more than a few milliseconds. If it panicked, this thread must not panic as
            // well.
            let _ = worker.join();
        }
    }
}

#[cfg(test)]
mod tests;
