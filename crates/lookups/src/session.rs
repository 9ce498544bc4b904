//! The basis of every run: the host (live, recorded or replayed), the namespace, the interruption flag.
//!
//! A session lives on the main thread: entering a namespace moves that thread, so everything read through the session
//! is read there, including /proc/net.

use crate::recording_file;
use host::{HostError, Namespace, Namespaces, NetnsFingerprint, NetnsSearch, OwnersReader, Resolver};
use record::Accounting;
use runtime::exit::Exit;
use runtime::run_state::RunState;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use sys::netns::{NetnsGuard, run_within};
use sys::{Errno, Host, NetnsTarget, Share, SignalHandlers, SysError, TapeError, clock};

/// The message about namespaces that exist but cannot be entered through any visible process.
const HIDDEN: &str = "a network namespace was not read: no permission to inspect its processes (needs CAP_SYS_PTRACE)";

const SECOND_NS: u64 = 1_000_000_000;

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

/// Describes what a session reads, as plain owned data. A program may hold several, and hand each to a separate
/// thread, which opens the session; the session then stays on that thread.
#[derive(Clone, Debug, Default)]
pub struct SessionTarget {
    /// Network namespace by name, process or path; None for the caller's.
    pub netns: Option<String>,
    /// True to read every network namespace of the host.
    pub all_netns: bool,
    /// File to save everything to that is read.
    pub record: Option<PathBuf>,
    /// Maximum size of that file in bytes; None for no limit.
    pub size_max: Option<u64>,
    /// File to read instead of the kernel.
    pub replay: Option<PathBuf>,
    /// True if host names will be resolved.
    pub resolve: bool,
    /// The backend that finds owners; None for the cheaper one.
    pub owners_via: Option<host::OwnersBackend>,
    /// True if the request does not name containers, pods or units. Unknown ones are then not reported.
    pub is_silent_on_places: bool,
    /// How long to measure the delays of packet sockets; None for the default time.
    pub sample: Option<Duration>,
}

/// Compile-time check: a thread can own a target.
const _: fn() = || {
    fn can_be_sent<T: Send + Sync + 'static>() {}
    can_be_sent::<SessionTarget>();
};

/// Namespaces found by a thread, until the session takes them over.
pub type FoundNamespaces = Arc<Mutex<Option<Namespaces>>>;

/// Backends that stay open during a session, such as loaded BPF programs.
#[derive(Default)]
pub struct OpenBackends {
    /// Backends of sockets.
    pub sockets: sockets::BackendCache,
    /// Backends of conntrack entries.
    pub conntrack: conntrack::BackendCache,
}

/// An opened target.
pub struct Session {
    host: Host,
    netns_id: u64,
    all_netns: Option<RefCell<Rc<Namespaces>>>,
    /// Namespaces found later by another thread.
    found: FoundNamespaces,
    /// See [`Session::take_others`].
    others: RefCell<Vec<u64>>,
    /// The share of the time for searches of threads and descriptors.
    holder_searches: Share,
    /// The state from which the namespaces were found.
    fingerprint: RefCell<Option<NetnsFingerprint>>,
    /// The signal handlers; the error if they could not be installed.
    interrupt: Result<SignalHandlers, SysError>,
    /// The error of a failed wait between rounds, see [`Session::wait_failure`].
    wait_failed: RefCell<Option<SysError>>,
    resolver: Option<Resolver>,
    owners: OwnersReader,
    sample: Option<Duration>,
    is_silent_on_places: bool,
    troubles: Vec<String>,
    /// True if all namespaces are requested from a recording of a single one.
    lacks_namespaces: bool,
    /// See [`Session::keep_namespaces`].
    has_final_namespaces: Cell<bool>,
    backends: OpenBackends,
    run: Arc<RunState>,
    inside: RefCell<Option<NetnsGuard>>,
    /// Called on each turn while the run waits or works.
    each_turn: RefCell<Option<Box<dyn Fn()>>>,
    /// See [`Session::at_each_second`].
    each_second: RefCell<Option<Box<dyn Fn()>>>,
}

impl Session {
    /// Opens the recording, enters the namespace and installs signal handlers.
    pub fn open(target: SessionTarget) -> Result<Session, OpenError> {
        let host = match (&target.replay, &target.record) {
            (Some(file), _) => recording_file::replayed(file).map_err(OpenError::Tape)?,
            (None, Some(file)) => {
                let recording = match target.size_max {
                    Some(size_max) => Host::live().record_everything(file, size_max),
                    None => Host::live().recording(file),
                };
                recording.map_err(OpenError::Tape)?
            }
            (None, None) => Host::live(),
        };
        let (mut resolver, mut troubles) = (None, Vec::new());
        if target.resolve {
            // Must start before another namespace is entered, to use the caller's name servers.
            match Resolver::start(&host, &host::hosts::ResolverOptions::default()) {
                Ok(started) => resolver = Some(started),
                Err(error) => troubles.push(error.to_string()),
            }
        }
        let (run, mut inside) = (RunState::begin(), None);
        if let Some(written) = target.netns.as_deref() {
            let found = host::netns::resolve_selector(&host, written).map_err(|error| match error {
                HostError::Sys(error) if error.errno == Errno::INVAL => {
                    OpenError::Enter { written: written.into(), error }
                }
                error => OpenError::Host(error),
            })?;
            if let Some(handle) = &found.handle {
                let origin = run.keep_origin();
                origin.map_err(|error| OpenError::Enter { written: written.into(), error })?;
                inside = Some(handle.enter().map_err(|error| OpenError::Enter { written: written.into(), error })?);
            }
        }
        let netns_id = host::netns::current(&host).map_err(OpenError::Host)?;
        // Without the handlers Ctrl-C still ends the run, but abruptly; waiting is impossible, and a wait reports
        // that.
        let interrupt = SignalHandlers::install();
        let all_are_there = !host.is_replay() || Namespaces::are_recorded(&host);
        let all = target.all_netns || (host.is_replay() && all_are_there);
        let (all_netns, fingerprint) = (all.then(RefCell::default), RefCell::default());
        let owners = OwnersReader::new(target.owners_via);
        Ok(Session {
            host,
            netns_id,
            all_netns,
            found: FoundNamespaces::default(),
            others: RefCell::default(),
            fingerprint,
            holder_searches: Share::one_in(SEARCH_SHARE, SEARCH_CREDIT_NS),
            interrupt,
            wait_failed: RefCell::default(),
            resolver,
            owners,
            sample: target.sample,
            is_silent_on_places: target.is_silent_on_places,
            troubles,
            lacks_namespaces: target.all_netns && !all_are_there,
            has_final_namespaces: Cell::new(false),
            backends: OpenBackends::default(),
            run,
            inside: RefCell::new(inside),
            each_turn: RefCell::default(),
            each_second: RefCell::default(),
        })
    }

    /// Finds the current namespaces, if all are read. Called once per round, because they appear and disappear.
    /// `listed` are the namespaces that the kernel lists, if it was used; processes and names do not lead to all of
    /// them.
    pub fn find_namespaces(&self, listed: Option<Vec<u64>>, stats: &mut Accounting) {
        let Some(all_netns) = self.all_netns.as_ref().filter(|_| !self.has_final_namespaces.get()) else { return };
        // The search looks at every process of the host, which in later rounds costs most of the time not spent on
        // sockets.
        let before = self.fingerprint.take();
        let fingerprint = listed.clone().and_then(|all| NetnsFingerprint::read(&self.host, all, before.as_ref()));
        let same =
            before.is_some_and(|before| fingerprint.as_ref().is_some_and(|fingerprint| fingerprint.matches(&before)));
        self.fingerprint.replace(fingerprint);
        if same && all_netns.borrow().are_settled(&self.host) {
            return;
        }
        let mut found = match self.search_namespaces(listed.as_deref()) {
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
            Some(all) => found.also(&all),
            None if found.hidden() > 0 => {
                stats.incomplete(found.hidden(), HIDDEN);
            }
            None => {}
        }
        all_netns.replace(Rc::new(found));
    }

    /// Searches for namespaces. The first search also looks at threads and descriptors; later searches do so only
    /// while that takes a small part of the time.
    fn search_namespaces(&self, listed: Option<&[u64]>) -> Result<Namespaces, HostError> {
        let before = self.namespaces().filter(|known| !known.list().is_empty());
        let begun_ns = clock::monotonic_ns();
        let holders = self.holder_searches.may_start(begun_ns) || before.is_none();
        let search = NetnsSearch { listed, holders, before: before.as_deref() };
        let found = Namespaces::search(&self.host, &search);
        if holders {
            self.holder_searches.charge(clock::monotonic_ns().saturating_sub(begun_ns));
        }
        found
    }

    /// Stops searching for namespaces: the set found so far is final.
    pub fn keep_namespaces(&self) {
        self.has_final_namespaces.set(true);
    }

    /// Keeps the thread in the entered namespace, even when the session ends, because it lacks the privilege to
    /// return.
    pub fn stay_inside(&self) {
        if let Some(inside) = self.inside.take() {
            inside.stay();
        }
    }

    /// The namespaces that [`Session::find_namespaces`] found; None if only one is read.
    pub fn namespaces(&self) -> Option<Rc<Namespaces>> {
        self.all_netns.as_ref().map(|all_netns| Rc::clone(&all_netns.borrow()))
    }

    /// The place where another thread puts namespaces that it finds.
    pub fn found(&self) -> FoundNamespaces {
        Arc::clone(&self.found)
    }

    /// Takes over the namespaces found by another thread; returns true if they differ from the previous ones.
    pub fn take_found(&self) -> bool {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (Some(found), Some(all_netns)) = (found, &self.all_netns) else { return false };
        let found = Rc::new(found);
        let before = all_netns.replace(Rc::clone(&found));
        let is_other = |namespace: &&host::Namespace| !found.list().contains(namespace);
        self.others.borrow_mut().extend(before.list().iter().filter(is_other).map(|namespace| namespace.inode));
        true
    }

    /// Inodes of namespaces that were removed or renamed since the last call; a new namespace may reuse the inode.
    pub fn take_others(&self) -> Vec<u64> {
        self.others.take()
    }

    /// Targets for entering the namespaces to read: those of `namespaces`, or the session's own.
    pub fn targets<'n>(&self, namespaces: Option<&'n Namespaces>) -> Vec<NetnsTarget<'n>> {
        match namespaces {
            None => vec![NetnsTarget::current(self.netns_id)],
            Some(namespaces) => namespaces.list().iter().map(|namespace| namespace.target(self.netns_id)).collect(),
        }
    }

    /// The host to read.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The resolver of host names, if [`SessionTarget::resolve`] is set and its thread could be started.
    pub fn resolver(&self) -> Option<&Resolver> {
        self.resolver.as_ref()
    }

    /// See [`SessionTarget::sample`].
    pub fn sample(&self) -> Option<Duration> {
        self.sample
    }

    /// See [`SessionTarget::is_silent_on_places`].
    pub fn is_silent_on_places(&self) -> bool {
        self.is_silent_on_places
    }

    /// The reader of owners, which keeps its state between rounds.
    pub fn owners(&self) -> &OwnersReader {
        &self.owners
    }

    /// Inode of the session's network namespace.
    pub fn netns_id(&self) -> u64 {
        self.netns_id
    }

    /// The backends that stay open between readings.
    pub fn backends(&self) -> &OpenBackends {
        &self.backends
    }

    /// The note of `--cost` on the backends used.
    pub fn cost_note(&self) -> Option<String> {
        self.backends.sockets.passed_over().map(|why| format!("TCP was not read via BPF: {why}"))
    }

    /// Calls `each` inside every namespace of the session that can be entered; the socket source reports the others. A
    /// replay enters no namespace.
    pub fn in_each_namespace(&self, each: &mut dyn FnMut(u64)) {
        let Some(namespaces) = self.namespaces() else { return each(self.netns_id) };
        for namespace in namespaces.list() {
            let Ok(netns) = namespace.open(&self.host, self.netns_id) else { continue };
            let _ = run_within(netns.as_ref(), || each(namespace.inode));
        }
    }

    /// Calls `visit` inside the namespace with this inode, which belongs to the session or was found by another thread
    /// since then. Returns an error without a call if it cannot be entered. A replay enters no namespace.
    pub fn in_namespace<R>(&self, inode: u64, visit: impl FnOnce() -> R) -> Result<R, SysError> {
        if inode == self.netns_id || self.host.is_replay() {
            return Ok(visit());
        }
        let unknown = || SysError::new("openat", format!("net:[{inode}]"), Errno::NOENT);
        let netns = self.namespace(inode).ok_or_else(unknown)?.open(&self.host, self.netns_id)?;
        run_within(netns.as_ref(), visit)
    }

    /// Finds the current namespaces, if all are read and none of those known has this inode.
    pub fn find_namespace(&self, inode: u64) {
        if !self.host.is_replay() && self.namespace(inode).is_none() {
            // A namespace that is not found cannot be entered, which is reported then.
            self.find_namespaces(None, &mut Accounting::default());
        }
    }

    fn namespace(&self, inode: u64) -> Option<Namespace> {
        let of = |namespaces: &Namespaces| namespaces.list().iter().find(|other| other.inode == inode).cloned();
        let in_found = || of(self.found.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?);
        self.namespaces().and_then(|namespaces| of(&namespaces)).or_else(in_found)
    }

    /// Nanoseconds of a clock for intervals between rounds: one that does not jump, or in a replay the recorded time.
    pub fn steady_ns(&self) -> u64 {
        if !self.host.is_replay() {
            return sys::clock::monotonic_ns();
        }
        self.host.now().since_1970_ns()
    }

    /// The state shared by the threads of the run.
    pub fn run(&self) -> &Arc<RunState> {
        &self.run
    }

    /// True once Ctrl-C, a termination signal or a successor requested the end.
    pub fn interrupted(&self) -> bool {
        self.turn();
        sys::signal::end_on_quit();
        self.run.is_handing_over() || self.interrupt.as_ref().is_ok_and(|i| i.signal_number().is_some())
    }

    /// True once the end of a replay was requested. The rows of a replay follow each other without a wait, while a live
    /// stream itself knows when to end.
    pub fn is_replay_interrupted(&self) -> bool {
        self.host.is_replay() && self.interrupted()
    }

    /// True if Ctrl-C was pressed to end a part of the run, which then continues.
    pub fn take_interrupt(&self) -> bool {
        self.interrupt.as_ref().is_ok_and(|interrupt| interrupt.take_interrupt())
    }

    /// Calls `turn` repeatedly from now on while the run waits or works, to update a terminal: in
    /// [`Session::interrupted`], and in [`Session::sleep_until`] after the terminal was resized or the process
    /// continued.
    pub fn at_each_turn(&self, turn: Box<dyn Fn()>) {
        self.each_turn.replace(Some(turn));
    }

    /// Calls `tick` from now on in the same places, and once a second in [`Session::sleep_until`]; `None` ends that.
    pub fn at_each_second(&self, tick: Option<Box<dyn Fn()>>) {
        self.each_second.replace(tick);
    }

    fn turn(&self) {
        for turn in [&self.each_turn, &self.each_second] {
            if let Some(turn) = &*turn.borrow() {
                turn();
            }
        }
    }

    /// Sleeps until `deadline_ns` of the monotonic clock. Returns false if the run must end instead: the user
    /// requested it, or the wait failed, which [`Session::wait_failure`] then returns and [`Session::finish`] notes.
    pub fn sleep_until(&self, deadline_ns: u64) -> bool {
        let interrupt = match &self.interrupt {
            Ok(interrupt) => interrupt,
            Err(error) => return self.cannot_wait(error.clone()),
        };
        let ticks = self.each_second.borrow().is_some();
        loop {
            if ticks {
                // A wait may be one of many short ones.
                self.turn();
            }
            let second_ns = clock::monotonic_ns().saturating_add(SECOND_NS);
            let until_ns = if ticks { second_ns.min(deadline_ns) } else { deadline_ns };
            match interrupt.wait_until(until_ns) {
                Ok(sys::signal::WakeReason::Deadline) if until_ns == deadline_ns => return true,
                Ok(sys::signal::WakeReason::Deadline) => {}
                Ok(sys::signal::WakeReason::Resized) => self.turn(),
                Ok(sys::signal::WakeReason::Interrupted) => return false,
                Err(error) => return self.cannot_wait(error),
            }
        }
    }

    fn cannot_wait(&self, error: SysError) -> bool {
        self.wait_failed.replace(Some(error));
        false
    }

    /// A sentence on why the last wait ended before its deadline without a request by the user.
    pub fn wait_failure(&self) -> Option<String> {
        self.wait_failed.borrow().as_ref().map(|error| format!("ended early: {error}"))
    }

    /// Closes a recording, and adds errors of the recording written or read to `stats`.
    pub fn finish(&self, stats: &mut Accounting) {
        if self.lacks_namespaces {
            stats.unanswered = true;
            stats.add_reason(0, ONE_NAMESPACE);
        }
        if let Err(error) = self.host.finish() {
            stats.incomplete(1, error.to_string());
        }
        if let Some(why) = self.wait_failure() {
            stats.incomplete(1, why);
        }
        // Missing names do not cause exit code 3, because every row is there.
        let names = self.resolver.iter().flat_map(|resolver| resolver.report().lines());
        names.chain(self.troubles.iter().cloned()).for_each(|line| stats.add_reason(1, line));
    }
}

/// The reason why a session could not be opened.
#[derive(Debug)]
pub enum OpenError {
    /// The recording could not be opened.
    Tape(TapeError),
    /// The namespace was not found.
    Host(host::HostError),
    /// The namespace could not be entered.
    Enter {
        /// The name or path as the user wrote it.
        written: Box<str>,
        /// The kernel's error.
        error: SysError,
    },
}

impl OpenError {
    /// The native commands' exit code for it.
    pub fn exit(&self) -> Exit {
        Exit::Failed
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Tape(error) => error.fmt(f),
            OpenError::Host(error) => error.fmt(f),
            OpenError::Enter { written, error } => {
                write!(f, "cannot enter network namespace `{written}`: {error}")?;
                match error.errno {
                    errno if errno.is_denied() => f.write_str(" (needs CAP_SYS_ADMIN)"),
                    // setns(2): the file does not refer to a namespace, or to one of another type.
                    Errno::INVAL => f.write_str(" (not a network namespace)"),
                    _ => Ok(()),
                }
            }
        }
    }
}

impl std::error::Error for OpenError {}
