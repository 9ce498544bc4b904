//! Going into many network namespaces, one after the other.
//!
//! ctnetlink and /proc answer for the namespace of whoever asks. One namespace that cannot be entered or that has gone
//! costs its own rows and a line, not the run. Knows nothing of how namespaces are found.
use std::error::Error;
use std::fmt;
use std::path::Path;

use record::{Accounting, SourceError, SourceFault};
use sys::netns::Inside;
use sys::{Errno, Host, Mode, NetNs, SysError};

/// Names told of namespaces that could not be read; the others are counted.
const NAMES_TOLD: usize = 3;

/// A namespace and the ways into it.
#[derive(Debug, Clone, Copy)]
pub struct Way<'p> {
    /// Its inode: it goes into every row and names the recording's streams.
    pub netns_id: u64,
    /// True for the namespace that the calling thread is in: nothing needs to be entered.
    pub is_here: bool,
    /// A file that is the namespace.
    pub path: Option<&'p Path>,
    /// A process in it, if there is no file or it turns out to be another one.
    pub pid: Option<u32>,
}

/// Whether to go on with the next namespace.
pub type Visit<'v> = dyn FnMut(u64, &mut Accounting) -> Result<(), SourceError> + 'v;

/// Calls `visit` inside each namespace, on the calling thread, in the order of `ways`. What could not be entered or read
/// stands in the books; the error is the first one, if nothing at all was read. Entering needs CAP_SYS_ADMIN.
pub fn in_each(host: &Host, ways: &[Way<'_>], visit: &mut Visit<'_>) -> Result<Accounting, SourceError> {
    let mut round = Round::default();
    for way in ways {
        match enter(host, way) {
            Ok(inside) => {
                let read = visit(way.netns_id, &mut round.books);
                drop(inside);
                round.visited(read);
            }
            Err(error) => round.not_entered(way, error),
        }
    }
    round.finish()
}

/// Goes into a namespace. The outcome is recorded: a replay enters nothing, but fails where the run had failed.
fn enter(host: &Host, way: &Way<'_>) -> Result<Option<Inside>, SysError> {
    if way.is_here {
        return Ok(None);
    }
    let go = || NetNs::open_known(way.netns_id, way.path, way.pid)?.enter();
    if host.mode() == Mode::Live {
        return go().map(Some);
    }
    let mut inside = None;
    host.bytes(&format!("netns-enter@{}", way.netns_id), "", &mut Vec::new(), |_| {
        inside = Some(go()?);
        Ok(())
    })?;
    Ok(inside)
}

/// The books of all namespaces.
#[derive(Default)]
struct Round {
    books: Accounting,
    has_read: bool,
    gone: u64,
    refused: Vec<Refused>,
    failure: Option<SourceError>,
}

/// Namespaces that could not be entered for one reason.
struct Refused {
    error: SysError,
    names: Vec<String>,
    count: u64,
}

impl Round {
    fn visited(&mut self, read: Result<(), SourceError>) {
        match read {
            Ok(()) => self.has_read = true,
            Err(error) => {
                self.books.incomplete = true;
                self.books.because(1, error.to_string());
                self.failure.get_or_insert(error);
            }
        }
    }

    fn not_entered(&mut self, way: &Way<'_>, error: SysError) {
        if error.errno.is_gone() && (way.path.is_some() || way.pid.is_some()) {
            self.gone += 1;
            return;
        }
        let name = match (way.path, way.pid) {
            (Some(path), _) => path.display().to_string(),
            (None, Some(pid)) => format!("/proc/{pid}/ns/net"),
            (None, None) => format!("net:[{}]", way.netns_id),
        };
        match self.refused.iter_mut().find(|known| known.error.errno == error.errno) {
            Some(known) => {
                known.count += 1;
                if known.names.len() < NAMES_TOLD {
                    known.names.push(name);
                }
            }
            None => self.refused.push(Refused { error, names: vec![name], count: 1 }),
        }
    }

    fn finish(mut self) -> Result<Accounting, SourceError> {
        if self.gone > 0 {
            // What they had went with them: the table is as whole as one read a moment later.
            self.books.because(self.gone, "a network namespace went away before it was read");
        }
        for refused in self.refused {
            self.books.incomplete = true;
            let unreadable = Unreadable(refused);
            self.books.because(0, unreadable.to_string());
            self.failure.get_or_insert_with(|| {
                let fault = if unreadable.0.error.errno.is_denied() { SourceFault::Denied } else { SourceFault::Io };
                SourceError { what: "network namespaces", fault, cause: Box::new(unreadable) }
            });
        }
        match self.failure {
            Some(error) if !self.has_read => Err(error),
            _ => Ok(self.books),
        }
    }
}

/// Namespaces that could not be entered, as a sentence.
struct Unreadable(Refused);

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refused { error, names, count } = &self.0;
        let needs = if error.errno.is_denied() { " (needs CAP_SYS_ADMIN)" } else { "" };
        let more = if *count > names.len() as u64 { ", …" } else { "" };
        let why = match error.errno {
            Errno::NOENT => "nothing leads into it",
            errno => errno.words(),
        };
        match count {
            1 => write!(f, "one network namespace was not read ({}): {why}{needs}", names.join(", ")),
            _ => write!(f, "{count} network namespaces were not read ({}{more}): {why}{needs}", names.join(", ")),
        }
    }
}

impl fmt::Debug for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for Unreadable {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0.error)
    }
}
