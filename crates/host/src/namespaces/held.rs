//! Namespaces that only a thread, a socket or an open descriptor keeps alive: they have no file and no process.
use foldhash::fast::RandomState;
use hashbrown::hash_map::Entry;
use hashbrown::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::Path;
use sys::netns_search::{DescriptorTarget, each_descriptor, each_thread};
use sys::{Host, NetNs};

use super::{NAMESPACES_MAX, Namespace, NetnsSearch};
use crate::owners::netns_holders;

/// Maximum number of descriptors that one search reads in one process, and in all processes (1.5 µs each). Any user can
/// open thousands, which must not keep the search from the descriptors of other users.
///
/// Bound: descriptors of a process in a search for namespaces without BPF
/// (`held::root_a_process_with_too_many_descriptors_hides_only_its_own`). Beyond: further descriptors are not searched;
/// counted (exit code 3). By: a local user, for that user's processes.
const DESCRIPTORS_OF_ONE_MAX: u32 = 1 << 16;
/// Bound: descriptors of all processes in such a search. Beyond: further descriptors are not searched; counted (exit
/// code 3). This also hides namespaces of other users. By: a local user with 16 such processes.
const DESCRIPTORS_MAX: u32 = 1 << 20;

/// A holder that keeps a namespace alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Holder {
    /// A thread that has left its process's namespace. /proc/TID leads to it.
    Task(u32),
    /// A descriptor: /proc/PID/fd/N.
    Path(Box<[u8]>),
}

/// The result of a search.
#[derive(Debug, Default)]
pub(super) struct Held {
    pub(super) found: HashMap<u64, Holder, RandomState>,
    /// Number of descriptors that were skipped because there are too many.
    pub(super) unsearched: u64,
}

/// Finds holders of the namespaces that are not in `known`: of the listed ones if the kernel was asked, otherwise of
/// all.
pub(super) fn find(host: &Host, search: &NetnsSearch<'_>, known: HashSet<u64, RandomState>) -> Held {
    let listed = search.listed.map(|listed| {
        let unknown = listed.iter().copied().filter(|inode| !known.contains(inode));
        unknown.collect::<HashSet<u64, RandomState>>()
    });
    let mut held = Searching { known, listed, held: Held::default(), of_one_max: DESCRIPTORS_OF_ONE_MAX };
    let before = search.before.into_iter().flat_map(|before| before.list());
    before.filter(|namespace| is_held(namespace)).for_each(|namespace| held.keep(host, namespace));
    if search.holders && !held.is_over() {
        held.search(host);
    }
    held.held
}

/// True if a thread or a descriptor is the only known way into the namespace: such a namespace has no name.
fn is_held(namespace: &Namespace) -> bool {
    namespace.name().is_none() && (namespace.pid.is_some() || namespace.path().is_some())
}

struct Searching {
    known: HashSet<u64, RandomState>,
    /// Inodes of the missing namespaces; `None` if the kernel was not asked.
    listed: Option<HashSet<u64, RandomState>>,
    held: Held,
    /// Maximum number of descriptors searched in one process.
    of_one_max: u32,
}

impl Searching {
    /// True if the search has found all listed namespaces or reached its limit.
    fn is_over(&self) -> bool {
        self.listed.as_ref().is_some_and(|listed| listed.len() <= self.held.found.len())
            || self.held.found.len() >= NAMESPACES_MAX
    }

    fn is_wanted(&self, inode: u64) -> bool {
        let is_listed = self.listed.as_ref().is_none_or(|listed| listed.contains(&inode));
        is_listed && !self.known.contains(&inode)
    }

    fn add(&mut self, inode: u64, holder: impl FnOnce() -> Holder) {
        if self.is_wanted(inode) {
            if let Entry::Vacant(entry) = self.held.found.entry(inode) {
                entry.insert(holder());
            }
        }
    }

    /// Keeps the holder that an earlier search found, if it still leads to the namespace.
    fn keep(&mut self, host: &Host, namespace: &Namespace) {
        if self.is_wanted(namespace.inode) && matches!(namespace.open(host, 0), Ok(Some(_))) {
            let by_path = || Holder::Path(namespace.path.clone());
            let holder = namespace.pid.filter(|_| namespace.path.is_empty()).map_or_else(by_path, Holder::Task);
            self.add(namespace.inode, || holder);
        }
    }

    /// Searches threads first, because they cost least, then descriptors. If the kernel listed the namespaces, one pass
    /// of a BPF program reads all descriptors, including sockets. Otherwise they are read one by one, without sockets.
    fn search(&mut self, host: &Host) {
        self.threads(host);
        if self.is_over() {
            return;
        }
        match self.listed.as_ref().map(|_| netns_holders(&Host::live(), &|inode| self.is_wanted(inode))) {
            Some(Ok(holders)) => {
                for (inode, holder) in holders {
                    let path = format!("/proc/{}/fd/{}", holder.tid, holder.fd);
                    self.add(inode, || Holder::Path(path.into_bytes().into()));
                }
            }
            Some(Err(_)) | None => self.descriptors(host),
        }
    }

    fn threads(&mut self, host: &Host) {
        each_thread(&host.proc_path(""), &mut |inode, tid| {
            self.add(inode, || Holder::Task(tid));
            ControlFlow::Continue(())
        });
    }

    fn descriptors(&mut self, host: &Host) {
        let bounds = (self.of_one_max, DESCRIPTORS_MAX);
        let unsearched = each_descriptor(&host.proc_path(""), bounds, &mut |held| {
            if let DescriptorTarget::Namespace(inode) = held.target
                && self.is_wanted(inode)
            {
                let path = format!("/proc/{}/fd/{}", held.pid, held.fd);
                if NetNs::open_known(inode, Some(Path::new(&path)), None).is_ok() {
                    self.add(inode, || Holder::Path(path.into_bytes().into()));
                }
            }
            ControlFlow::Continue(())
        });
        self.held.unsearched += unsearched;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use std::process::{Child, Command};
    use testkit::netns::Lab;

    /// Starts a process with `descriptors` descriptors of /dev/null, followed by one of the namespace of `lab`, and
    /// removes every other way to this namespace.
    fn hold(lab: &Lab, descriptors: u32) -> Child {
        let script = "import os,sys,time\nn=os.open('/dev/null',os.O_RDONLY)\n\
                      [os.dup(n) for _ in range(int(sys.argv[2]))]\n\
                      f=os.open(sys.argv[1],os.O_RDONLY)\nopen(sys.argv[3],'w').close()\ntime.sleep(600)";
        let ready = lab.dir().join("ready");
        let mut holder = Command::new("python3");
        let holder = holder.args(["-c", script]).arg(lab.path()).arg(descriptors.to_string()).arg(&ready);
        let holder = holder.spawn().unwrap();
        testkit::wait_until("the descriptors are open", || ready.exists());
        // A lazy unmount leaves the descriptor open.
        assert!(Command::new("umount").arg("-l").arg(lab.path()).status().unwrap().success());
        holder
    }

    /// Without the kernel's list, descriptors are searched one by one. A process with too many descriptors cannot hide
    /// the descriptors of other processes.
    #[test]
    fn root_a_process_with_too_many_descriptors_hides_only_its_own() {
        testkit::require_root!();
        if !testkit::tool::require("python3") {
            return;
        }
        let labs = [Lab::new("heldbyfd"), Lab::new("crowded")];
        let inodes = labs.each_ref().map(|lab| sys::NetNs::open_path(&lab.path()).unwrap().inode());
        let holders = [hold(&labs[0], 1), hold(&labs[1], 500)];
        let search = |listed: Option<&[u64]>| {
            let listed = listed.map(|listed| listed.iter().copied().collect());
            let known = HashSet::default();
            let mut searching = Searching { known, listed, held: Held::default(), of_one_max: 400 };
            searching.search(&Host::live());
            (inodes.map(|inode| searching.held.found.get(&inode).cloned()), searching.held.unsearched)
        };
        let one_by_one = search(None);
        // The kernel lists the missing namespaces, so the BPF program reads every descriptor.
        let listed = search(Some(&inodes));
        for mut holder in holders {
            holder.kill().unwrap();
            holder.wait().unwrap();
        }
        let ([found, hidden], unsearched) = one_by_one;
        assert!(matches!(&found, Some(Holder::Path(path)) if path.starts_with(b"/proc/")), "{found:?}");
        assert!(hidden.is_none() && unsearched >= 100, "{unsearched}");
        assert_eq!(listed.0[1].is_some(), cfg!(feature = "bpf"));
    }
}
