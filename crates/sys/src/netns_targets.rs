//! Entering network namespaces that are known by their inode, and reporting the ones that could not be entered.
//!
//! Does not know how namespaces are found, or what is read in them.
use std::error::Error;
use std::fmt;
use std::path::Path;

use crate::errno::{Errno, SysError, escaped};
use crate::host::{Host, Mode};
use crate::netns::{Inside, NetNs};

/// Maximum number of namespaces named in a message about failures; the others are counted.
const NAMES_SHOWN: usize = 3;

/// A network namespace and the ways to enter it.
#[derive(Debug, Clone, Copy)]
pub struct NetnsTarget<'p> {
    /// Its inode: it goes into every row and into the names of the recording's streams.
    pub netns_id: u64,
    /// True for the calling thread's namespace, which need not be entered.
    pub is_here: bool,
    /// A file that refers to the namespace.
    pub path: Option<&'p Path>,
    /// A process in it, used without a file or if the file turns out to be a different namespace.
    pub pid: Option<u32>,
}

impl NetnsTarget<'_> {
    /// The calling thread's own namespace, which needs no file and no process.
    pub fn here(netns_id: u64) -> NetnsTarget<'static> {
        NetnsTarget { netns_id, is_here: true, path: None, pid: None }
    }

    /// False for a namespace for which only the inode is known.
    pub fn can_be_entered(&self) -> bool {
        self.is_here || self.path.is_some() || self.pid.is_some()
    }

    /// Enters the namespace; `None` if it need not be entered. Needs CAP_SYS_ADMIN. The outcome is recorded: a replay
    /// enters nothing, but fails where the recorded run failed.
    pub fn enter(&self, host: &Host) -> Result<Option<Inside>, SysError> {
        self.enter_for(host, "")
    }

    /// Enters the namespace for one of several readers in a recording: each enters separately, and the namespace may
    /// disappear between two of them. `purpose` names the reader.
    pub fn enter_for(&self, host: &Host, purpose: &str) -> Result<Option<Inside>, SysError> {
        if self.is_here {
            return Ok(None);
        }
        let go = || NetNs::open_known(self.netns_id, self.path, self.pid)?.enter();
        if host.mode() == Mode::Live {
            return go().map(Some);
        }
        let (mut inside, key) = (None, format!("netns-enter{purpose}@{}", self.netns_id));
        // Recordings of version 1 have one key for all readers.
        let key = if host.holds(&key) { key } else { format!("netns-enter@{}", self.netns_id) };
        host.bytes(&key, "", &mut Vec::new(), |_| {
            inside = Some(go()?);
            Ok(())
        })?;
        Ok(inside)
    }

    /// The user's name for it, escaped.
    fn name(&self) -> Box<str> {
        match (self.path, self.pid) {
            (Some(path), _) => escaped(path.as_os_str().as_encoded_bytes()),
            (None, Some(pid)) => format!("/proc/{pid}/ns/net").into(),
            (None, None) => format!("net:[{}]", self.netns_id).into(),
        }
    }
}

/// The namespaces that could not be entered.
#[derive(Debug, Default)]
pub struct NotEntered {
    /// Number of namespaces that no longer existed; their contents disappeared with them.
    pub gone: u64,
    /// The others, grouped by reason.
    pub unreadable: Vec<Unreadable>,
}

impl NotEntered {
    /// Adds a namespace with the error of [`NetnsTarget::enter`].
    pub fn add(&mut self, target: &NetnsTarget<'_>, error: SysError) {
        if error.errno.is_gone() && target.can_be_entered() {
            self.gone += 1;
            return;
        }
        match self.unreadable.iter_mut().find(|known| known.error.errno == error.errno) {
            Some(known) => {
                known.count += 1;
                if known.names.len() < NAMES_SHOWN {
                    known.names.push(target.name());
                }
            }
            None => self.unreadable.push(Unreadable { error, names: vec![target.name()], count: 1 }),
        }
    }
}

/// Namespaces that could not be entered for the same reason; displayed as a sentence with the names of the first few.
#[derive(Debug)]
pub struct Unreadable {
    /// The error of the first namespace.
    pub error: SysError,
    names: Vec<Box<str>>,
    count: u64,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (errno, names) = (self.error.errno, self.names.join(", "));
        let more = if self.count > self.names.len() as u64 { ", …" } else { "" };
        match self.count {
            1 => write!(f, "one network namespace was not read ({names}): ")?,
            count => write!(f, "{count} network namespaces were not read ({names}{more}): ")?,
        }
        match errno {
            Errno::NOENT => write!(f, "nothing leads into {}", if self.count == 1 { "it" } else { "them" }),
            _ if errno.is_denied() => write!(f, "{errno} (needs CAP_SYS_ADMIN)"),
            _ => write!(f, "{errno}"),
        }
    }
}

impl Error for Unreadable {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.error)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn told(targets: &[NetnsTarget<'_>], errno: Errno) -> (u64, Vec<String>) {
        let mut not_entered = NotEntered::default();
        for target in targets {
            not_entered.add(target, SysError::new("setns", "it", errno));
        }
        (not_entered.gone, not_entered.unreadable.iter().map(Unreadable::to_string).collect())
    }

    #[test]
    fn what_has_gone_is_counted_and_the_rest_is_named() {
        let path = Path::new("/run/netns/a\n\x1b[1mb");
        let by_path = NetnsTarget { netns_id: 7, is_here: false, path: Some(path), pid: Some(1) };
        let by_pid = NetnsTarget { path: None, ..by_path };
        let by_number = NetnsTarget { pid: None, ..by_pid };
        assert_eq!(
            told(&[by_path, by_pid, by_number], Errno::NOENT),
            (2, vec!["one network namespace was not read (net:[7]): nothing leads into it".to_owned()])
        );
        assert_eq!(
            told(&[by_path], Errno::MFILE),
            (
                0,
                vec!["one network namespace was not read (/run/netns/a\\n\\u{1b}[1mb): too many open files".to_owned()]
            )
        );
        assert_eq!(
            told(&[by_pid, by_pid, by_number, by_path], Errno::PERM),
            (
                0,
                vec![
            "4 network namespaces were not read (/proc/1/ns/net, /proc/1/ns/net, net:[7], …): operation not permitted \
             (needs CAP_SYS_ADMIN)"
                .to_owned()
        ]
            )
        );
    }

    #[test]
    fn ones_own_needs_no_entering() {
        let host = Host::live();
        assert!(NetnsTarget::here(7).enter(&host).unwrap().is_none());
        assert!(NetnsTarget::here(7).can_be_entered());
        let number_alone = NetnsTarget { is_here: false, ..NetnsTarget::here(7) };
        assert!(!number_alone.can_be_entered());
        assert_eq!(number_alone.enter(&host).unwrap_err().errno, Errno::NOENT);
    }
}
