//! The basis of every run: the host (live, recorded or replayed), the namespace, the interruption flag.
//!
//! A session lives on the main thread: entering a namespace moves that thread, so everything read through the session
//! is read there, including /proc/net.

mod namespaces;
mod waits;

pub use namespaces::{FoundNamespaces, SessionNamespaces};
pub use waits::Waits;

use crate::recording_file;
use host::{HostError, Namespaces, OwnersReader, Resolver};
use record::Accounting;
use runtime::exit::Exit;
use runtime::run_group::Part;
use runtime::run_state::RunState;
use std::cell::RefCell;
use std::fmt;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use sys::netns::{NetnsGuard, run_within};
use sys::{Errno, Host, NetnsTarget, SysError, TapeError};

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
    /// The part of an agent that reads.
    pub part: Option<Part>,
}

/// Compile-time check: a thread can own a target.
const _: fn() = || {
    fn can_be_sent<T: Send + Sync + 'static>() {}
    can_be_sent::<SessionTarget>();
};

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
    found: SessionNamespaces,
    waits: Waits,
    resolver: Option<Resolver>,
    owners: OwnersReader,
    sample: Option<Duration>,
    is_silent_on_places: bool,
    troubles: Vec<String>,
    backends: OpenBackends,
    run: Arc<RunState>,
    inside: RefCell<Option<NetnsGuard>>,
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
        let (run, mut inside) = (RunState::begin_part(target.part.clone()), None);
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
        let (found, waits) = (SessionNamespaces::new(&host, target.all_netns), Waits::begin());
        let owners = OwnersReader::new(target.owners_via);
        Ok(Session {
            host,
            netns_id,
            found,
            waits,
            resolver,
            owners,
            sample: target.sample,
            is_silent_on_places: target.is_silent_on_places,
            troubles,
            backends: OpenBackends::default(),
            run,
            inside: RefCell::new(inside),
        })
    }

    /// Finds the current namespaces, if all are read. Called once per round, because they appear and disappear.
    /// `listed` are the namespaces that the kernel lists, if it was used; processes and names do not lead to all of
    /// them.
    pub fn find_namespaces(&self, listed: Option<Vec<u64>>, stats: &mut Accounting) {
        self.found.find(&self.host, listed, stats);
    }

    /// The namespaces that [`Session::find_namespaces`] found; `None` if only one is read.
    pub fn namespaces(&self) -> Option<Rc<Namespaces>> {
        self.found.current()
    }

    /// The namespaces that the searches of this session and other threads find.
    pub fn found(&self) -> &SessionNamespaces {
        &self.found
    }

    /// Keeps the thread in the entered namespace, even when the session ends, because it lacks the privilege to
    /// return.
    pub fn stay_inside(&self) {
        if let Some(inside) = self.inside.take() {
            inside.stay();
        }
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
        let netns = self.found.with_inode(inode).ok_or_else(unknown)?.open(&self.host, self.netns_id)?;
        run_within(netns.as_ref(), visit)
    }

    /// Finds the current namespaces, if all are read and none of those known has this inode.
    pub fn find_namespace(&self, inode: u64) {
        if !self.host.is_replay() && self.found.with_inode(inode).is_none() {
            // A namespace that is not found cannot be entered, which is reported then.
            self.find_namespaces(None, &mut Accounting::default());
        }
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
        self.waits.turn();
        sys::signal::end_on_quit();
        self.run.is_handing_over() || self.waits.are_ended()
    }

    /// True once the end of a replay was requested. The rows of a replay follow each other without a wait, while a live
    /// stream itself knows when to end.
    pub fn is_replay_interrupted(&self) -> bool {
        self.host.is_replay() && self.interrupted()
    }

    /// The waits of this session, and the work done meanwhile.
    pub fn waits(&self) -> &Waits {
        &self.waits
    }

    /// See [`Waits::sleep_until`].
    pub fn sleep_until(&self, deadline_ns: u64) -> bool {
        self.waits.sleep_until(deadline_ns)
    }

    /// Closes a recording, and adds errors of the recording written or read to `stats`.
    pub fn finish(&self, stats: &mut Accounting) {
        self.found.finish(stats);
        if let Err(error) = self.host.finish() {
            stats.incomplete(1, error.to_string());
        }
        if let Some(why) = self.waits.failure() {
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
