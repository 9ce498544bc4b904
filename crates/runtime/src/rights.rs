//! Drops privileges once all privileged resources are open, before the first byte of a packet is parsed
//! (docs/adr/0026).

use crate::messages::print_message;
use crate::run_state::RunState;
use host::hosts::Resolver;
use host::users::Account;
use record::{Demand, Each, Offer, SourceError, Stream, StreamState, Table};
use std::path::{Path, PathBuf};
use sys::Host;
use sys::caps::{Cap, CapSet};
use sys::rights::{self, CallGroups, FileRules};

/// The privileges required while packets are parsed. Empty: only memory, open descriptors, and rtnetlink.
#[derive(Debug, Default)]
pub struct NeededRights {
    /// The user that the process becomes (`-Z`).
    pub account: Option<Account>,
    /// Capabilities to keep.
    pub caps: CapSet,
    /// True if files are read: names of namespaces, of users.
    pub reads_files: bool,
    /// Directories that the parsing thread writes to.
    pub writable: Vec<PathBuf>,
    /// Directories in which it creates and removes files, and reads none.
    pub makes_files_in: Vec<PathBuf>,
    /// True if other threads open files, and create and remove them.
    pub ships_files: bool,
    /// True if sockets are opened: for receivers, for names.
    pub uses_network: bool,
    /// True if other programs are started, such as the file compressor.
    pub starts_programs: bool,
    /// True to report on stderr what was dropped.
    pub is_verbose: bool,
}

impl NeededRights {
    /// Drops capabilities and, with `-Z`, changes the user. Call this before starting any thread except the threads
    /// of the resolver and of `run`, which drop theirs as well. Fails if the user cannot be changed.
    pub fn drop_capabilities(&self, resolver: Option<&Resolver>, run: Option<&RunState>) -> Result<(), String> {
        self.print_if_verbose(rights::forbid_new().err().map(|error| error.to_string()));
        self.become_user()?;
        if let Some(resolver) = resolver {
            resolver.drop_rights();
        }
        self.keep_needed();
        if let Some(run) = run {
            let caps = self.caps;
            let dropped = run.at_origin(move || rights::forbid_new().and_then(|()| rights::keep_only(caps)));
            self.print_if_verbose(
                dropped.and_then(|dropped| dropped).err().map(|error| format!("capabilities are not dropped: {error}")),
            );
        }
        let others = if self.is_verbose { rights::threads_with_more(self.caps) } else { 0 };
        self.print_if_verbose((others > 0).then(|| format!("{others} other threads keep their capabilities")));
        Ok(())
    }

    /// Drops the capabilities of a process that starts programs, which may gain privileges of their own.
    pub fn become_account(&self) -> Result<(), String> {
        self.become_user()?;
        self.keep_needed();
        Ok(())
    }

    fn become_user(&self) -> Result<(), String> {
        if let Some(account) = &self.account {
            rights::become_user(&account.ids)
                .map_err(|error| format!("cannot become {}: {}", account.name, error.errno))?;
            self.print_if_verbose(Some(format!("now running as user {}", account.name)));
        }
        Ok(())
    }

    fn keep_needed(&self) {
        self.print_if_verbose(Some(match rights::keep_only(self.caps) {
            Err(error) => format!("capabilities are not dropped: {error}"),
            Ok((_, false)) => "there were no capabilities to drop".to_owned(),
            Ok((CapSet(0), true)) => "all capabilities were dropped".to_owned(),
            Ok((left, true)) => format!("all capabilities were dropped except {}", names(left)),
        }));
    }

    /// Drops access to files and system calls. Must be called on the parsing thread after other threads were started:
    /// system calls are restricted for all threads, files only for this one.
    pub fn confine(&self) {
        if sys::term::is_terminal(sys::term::STDOUT) {
            // Times on a terminal are local, so the zone is read before files become inaccessible.
            let _ = sys::clock::local_time(0);
        }
        let root = [Path::new("/")];
        let readable: &[&Path] = if self.reads_files { &root } else { &[] };
        let writable: Vec<&Path> = self.writable.iter().map(PathBuf::as_path).collect();
        let makeable: Vec<&Path> = self.makes_files_in.iter().map(PathBuf::as_path).collect();
        self.print_if_verbose(Some(
            match rights::restrict_files(&FileRules { readable, writable: &writable, makeable: &makeable }) {
                Err(error) => format!("files can still be opened: {error}"),
                Ok(None) => "files can still be opened: this kernel has no Landlock".to_owned(),
                Ok(Some(_)) if writable.is_empty() && makeable.is_empty() => match readable {
                    [] => "no file can be opened".to_owned(),
                    _ => "no file can be opened for writing".to_owned(),
                },
                Ok(Some(_)) => {
                    let paths = writable.iter().chain(&makeable);
                    let names: Vec<String> = paths.map(|path| path.display().to_string()).collect();
                    format!("no file can be opened for writing except below {}", names.join(", "))
                }
            },
        ));
        let groups = CallGroups {
            reads_files: self.reads_files,
            writes_files: self.ships_files || !writable.is_empty(),
            makes_files: !makeable.is_empty(),
            uses_network: self.uses_network,
            starts_programs: self.starts_programs,
        };
        self.print_if_verbose(Some(match rights::restrict_calls(groups) {
            Err(error) => format!("all system calls can still be made: {error}"),
            Ok(false) => "all system calls can still be made: this kernel has no seccomp".to_owned(),
            Ok(true) => "unneeded system calls are blocked".to_owned(),
        }));
    }

    fn print_if_verbose(&self, text: Option<String>) {
        if let Some(text) = text.filter(|_| self.is_verbose) {
            print_message(&format!("rights: {text}"));
        }
    }
}

fn names(set: CapSet) -> String {
    let all = std::iter::once(Cap::DacOverride).chain(Cap::ALL);
    all.filter(|cap| set.contains(*cap)).map(Cap::name).collect::<Vec<_>>().join(", ")
}

/// The account for `-Z`; the error is a sentence for the user.
pub fn account(name: &str) -> Result<Account, String> {
    let found = Account::find(&Host::live(), name).map_err(|error| error.to_string())?;
    found.ok_or_else(|| format!("there is no user {} in /etc/passwd", sys::escape_bytes(name.as_bytes())))
}

/// A stream that calls [`NeededRights::confine`] when its first rows are requested.
pub struct ConfiningStream<'s, T: Table> {
    stream: &'s mut dyn Stream<T>,
    /// `None` once privileges are dropped.
    rights: Option<&'s NeededRights>,
}

impl<'s, T: Table> ConfiningStream<'s, T> {
    /// Wraps `stream`; drops nothing yet.
    pub fn new(stream: &'s mut dyn Stream<T>, rights: &'s NeededRights) -> ConfiningStream<'s, T> {
        ConfiningStream { stream, rights: Some(rights) }
    }
}

impl<T: Table> Stream<T> for ConfiningStream<'_, T> {
    fn offer(&self, demand: &Demand<T>) -> Offer {
        self.stream.offer(demand)
    }

    fn next(&mut self, demand: &Demand<T>, each: &mut Each<'_, T>) -> Result<StreamState, SourceError> {
        if let Some(rights) = self.rights.take() {
            rights.confine();
        }
        self.stream.next(demand, each)
    }

    fn close(&mut self) -> record::Accounting {
        self.stream.close()
    }
}
