//! Entering network namespaces that are known by their inode, and reporting the ones that could not be entered.
//!
//! Does not know how namespaces are found, or what is read in them.
use std::error::Error;
use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;

use crate::errno::{Errno, SysError, escape_bytes};
use crate::host::{Host, Mode};
use crate::netns::{NetNs, NetnsGuard};
use crate::netns_search::OpenedNetns;

/// Maximum number of namespaces named in a message about failures; the others are counted.
const NAMES_MAX: usize = 3;

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
    pub fn current(netns_id: u64) -> NetnsTarget<'static> {
        NetnsTarget { netns_id, is_here: true, path: None, pid: None }
    }

    /// False for a namespace for which only the inode is known.
    pub fn can_be_entered(&self) -> bool {
        self.is_here || self.path.is_some() || self.pid.is_some()
    }

    /// Enters the namespace; `None` if it need not be entered. Needs CAP_SYS_ADMIN. The outcome is recorded: a replay
    /// enters nothing, but fails where the recorded run failed.
    pub fn enter(&self, host: &Host) -> Result<Option<NetnsGuard>, SysError> {
        self.enter_for(host, "")
    }

    /// Enters the namespace for one of several readers in a recording: each enters separately, and the namespace may
    /// disappear between two of them. `purpose` names the reader.
    pub fn enter_for(&self, host: &Host, purpose: &str) -> Result<Option<NetnsGuard>, SysError> {
        if self.is_here {
            return Ok(None);
        }
        self.enter_recorded(host, purpose, || NetNs::open_known(self.netns_id, self.path, self.pid)?.enter())
    }

    fn enter_recorded(
        &self,
        host: &Host,
        purpose: &str,
        go: impl FnOnce() -> Result<NetnsGuard, SysError>,
    ) -> Result<Option<NetnsGuard>, SysError> {
        if host.mode() == Mode::Live {
            return go().map(Some);
        }
        let (mut inside, key) = (None, format!("netns-enter{purpose}@{}", self.netns_id));
        // Recordings of version 1 have one key for all readers.
        let key = if host.contains(&key) { key } else { format!("netns-enter@{}", self.netns_id) };
        host.bytes(&key, "", &mut Vec::new(), |_| {
            inside = Some(go()?);
            Ok(())
        })?;
        Ok(inside)
    }

    /// True if a process or one of its descriptors was the way in, so that there may be others.
    fn may_be_left(&self) -> bool {
        self.pid.is_some() || self.path.is_some_and(|path| path.starts_with("/proc"))
    }

    /// The user's name for it, escaped.
    fn name(&self) -> Box<str> {
        match (self.path, self.pid) {
            (Some(path), _) => escape_bytes(path.as_os_str().as_encoded_bytes()),
            (None, Some(pid)) => format!("/proc/{pid}/ns/net").into(),
            (None, None) => format!("net:[{}]", self.netns_id).into(),
        }
    }
}

/// Calls `visit` inside each namespace, on the calling thread, until it breaks. Returns those that it could not enter.
/// `purpose` names the reader, see [`NetnsTarget::enter_for`].
///
/// A process that was seen in a namespace, or that held it open, may only have passed through, as programs that read
/// many namespaces do. If it has left, and no other process is there, threads, descriptors and sockets that lead there
/// are searched, once for all such namespaces.
pub fn visit_each(
    host: &Host,
    targets: &[NetnsTarget<'_>],
    purpose: &str,
    visit: &mut dyn FnMut(&NetnsTarget<'_>) -> ControlFlow<()>,
) -> UnenteredNetns {
    let (mut not_entered, mut left) = (UnenteredNetns::default(), Vec::new());
    for target in targets {
        match target.enter_for(host, purpose) {
            Ok(_inside) => {
                if visit(target).is_break() {
                    return not_entered;
                }
            }
            Err(error) if error.errno.is_missing_object() && target.may_be_left() => left.push((target, error)),
            Err(error) => not_entered.add(target, error),
        }
    }
    if !left.is_empty() {
        visit_left(host, &left, purpose, visit, &mut not_entered);
    }
    not_entered
}

/// Visits the namespaces whose known holder has left, through other holders.
fn visit_left(
    host: &Host,
    left: &[(&NetnsTarget<'_>, SysError)],
    purpose: &str,
    visit: &mut dyn FnMut(&NetnsTarget<'_>) -> ControlFlow<()>,
    not_entered: &mut UnenteredNetns,
) {
    let inodes: Vec<u64> = left.iter().map(|(target, _)| target.netns_id).collect();
    let found = if host.is_replay() { OpenedNetns::default() } else { OpenedNetns::search(&inodes) };
    let purpose = format!("{purpose}/holder");
    let is_recorded = |target: &NetnsTarget<'_>| host.contains(&format!("netns-enter{purpose}@{}", target.netns_id));
    for (target, error) in left {
        let missing = || SysError::new("openat", target.name(), Errno::NOENT);
        let go = || found.find(target.netns_id).ok_or_else(missing)?.enter();
        let entered = is_recorded(target).then(|| target.enter_recorded(host, &purpose, go)).and_then(Result::ok);
        match entered {
            Some(_inside) if visit(target).is_break() => return,
            Some(_) => {}
            None if found.is_cut => not_entered.add(target, SysError::new("search", target.name(), Errno::TIMEDOUT)),
            None => not_entered.add(target, error.clone()),
        }
    }
}

/// The namespaces that could not be entered.
#[derive(Debug, Default)]
pub struct UnenteredNetns {
    /// Number of namespaces that no longer existed; their contents disappeared with them.
    pub gone: u64,
    /// The others, grouped by reason.
    pub unreadable: Vec<UnreadableNetns>,
}

impl UnenteredNetns {
    /// Adds a namespace with the error of [`NetnsTarget::enter`].
    pub fn add(&mut self, target: &NetnsTarget<'_>, error: SysError) {
        if error.errno.is_missing_object() && target.can_be_entered() {
            self.gone += 1;
            return;
        }
        self.add_unreadable(UnreadableNetns { error, names: vec![target.name()], count: 1 });
    }

    /// Adds the namespaces of another reading.
    pub fn append(&mut self, other: UnenteredNetns) {
        self.gone += other.gone;
        other.unreadable.into_iter().for_each(|unreadable| self.add_unreadable(unreadable));
    }

    fn add_unreadable(&mut self, unreadable: UnreadableNetns) {
        match self.unreadable.iter_mut().find(|known| known.error.errno == unreadable.error.errno) {
            Some(known) => {
                known.count += unreadable.count;
                let room = NAMES_MAX.saturating_sub(known.names.len());
                known.names.extend(unreadable.names.into_iter().take(room));
            }
            None => self.unreadable.push(unreadable),
        }
    }
}

/// Namespaces that could not be entered for the same reason; displayed as a sentence with the names of the first few.
#[derive(Debug)]
pub struct UnreadableNetns {
    /// The error of the first namespace.
    pub error: SysError,
    names: Vec<Box<str>>,
    count: u64,
}

impl fmt::Display for UnreadableNetns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (errno, names) = (self.error.errno, self.names.join(", "));
        let more = if self.count > self.names.len() as u64 { ", …" } else { "" };
        match self.count {
            1 => write!(f, "one network namespace was not read ({names}): ")?,
            count => write!(f, "{count} network namespaces were not read ({names}{more}): ")?,
        }
        match errno {
            Errno::NOENT => write!(f, "cannot enter {}", if self.count == 1 { "it" } else { "them" }),
            Errno::TIMEDOUT => write!(f, "its process has ended, and the search for another process took too long"),
            _ if errno.is_denied() => write!(f, "{errno} (needs CAP_SYS_ADMIN)"),
            _ => write!(f, "{errno}"),
        }
    }
}

impl Error for UnreadableNetns {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.error)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn describe_targets(targets: &[NetnsTarget<'_>], errno: Errno) -> (u64, Vec<String>) {
        let mut not_entered = UnenteredNetns::default();
        for target in targets {
            not_entered.add(target, SysError::new("setns", "it", errno));
        }
        (not_entered.gone, not_entered.unreadable.iter().map(UnreadableNetns::to_string).collect())
    }

    #[test]
    fn what_has_gone_is_counted_and_the_rest_is_named() {
        let path = Path::new("/run/netns/a\n\x1b[1mb");
        let by_path = NetnsTarget { netns_id: 7, is_here: false, path: Some(path), pid: Some(1) };
        let by_pid = NetnsTarget { path: None, ..by_path };
        let by_number = NetnsTarget { pid: None, ..by_pid };
        assert_eq!(
            describe_targets(&[by_path, by_pid, by_number], Errno::NOENT),
            (2, vec!["one network namespace was not read (net:[7]): cannot enter it".to_owned()])
        );
        assert_eq!(
            describe_targets(&[by_path], Errno::MFILE),
            (
                0,
                vec!["one network namespace was not read (/run/netns/a\\n\\u{1b}[1mb): too many open files".to_owned()]
            )
        );
        assert_eq!(
            describe_targets(&[by_pid, by_pid, by_number, by_path], Errno::PERM),
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

    /// A process was seen in the namespaces, but has left them. A thread, a descriptor and a socket still lead there.
    #[test]
    fn root_a_namespace_that_a_process_has_left_is_visited_through_its_holder() {
        if !testkit::root::root_or_skip("making a network namespace") {
            return;
        }
        let (send, receive) = std::sync::mpsc::channel();
        let (end, wait) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let home = NetNs::current().unwrap();
            let make = || {
                crate::netns::unshare_net().unwrap();
                NetNs::current().unwrap()
            };
            let by_descriptor = make();
            let by_socket = make().inode();
            let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
            let gone = make().inode();
            let by_thread = make().inode();
            let inodes = [by_descriptor.inode(), by_socket, by_thread, gone];
            send.send((inodes, home.inode(), by_descriptor, socket)).unwrap();
            let _ = wait.recv();
        });
        let (inodes, home, _descriptor, _socket) = receive.recv().unwrap();
        let pid = Some(std::process::id());
        let targets = inodes.map(|netns_id| NetnsTarget { netns_id, is_here: false, path: None, pid });
        let mut visited = Vec::new();
        let not_entered = visit_each(&Host::live(), &targets, "", &mut |target| {
            assert_eq!(crate::netns::current_inode().unwrap(), target.netns_id);
            visited.push(target.netns_id);
            ControlFlow::Continue(())
        });
        assert_eq!((visited, crate::netns::current_inode().unwrap()), (inodes[..3].to_vec(), home));
        assert_eq!((not_entered.gone, not_entered.unreadable.len()), (1, 0));
        drop(end);
        thread.join().unwrap();
    }

    #[test]
    fn ones_own_needs_no_entering() {
        let host = Host::live();
        assert!(NetnsTarget::current(7).enter(&host).unwrap().is_none());
        assert!(NetnsTarget::current(7).can_be_entered());
        let number_alone = NetnsTarget { is_here: false, ..NetnsTarget::current(7) };
        assert!(!number_alone.can_be_entered());
        assert_eq!(number_alone.enter(&host).unwrap_err().errno, Errno::NOENT);
    }
}
