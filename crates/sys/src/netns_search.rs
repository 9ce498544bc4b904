//! Searches /proc for threads and descriptors that lead into network namespaces.
//!
//! Finds namespaces that no process is in. Opens nothing but sockets of other processes, whose namespace the kernel
//! reports only through a copy.
use std::ffi::CStr;
use std::ops::ControlFlow;
use std::path::Path;

use crate::clock;
use crate::fd::Fd;
use crate::fs;
use crate::netns::{NetNs, inode_in};
use crate::netns_holder::netns_of_socket;

/// Bound: of CPU time in which netwren searches threads, descriptors and sockets for namespaces that the process it
/// knew has left. Beyond: a namespace may be left out; counted (exit code 3). By: users with tens of thousands of
/// descriptors.
const SEARCH_NS: u64 = 200_000_000;

/// An open descriptor of a process.
#[derive(Debug, Clone, Copy)]
pub struct HeldDescriptor {
    /// The process.
    pub pid: u32,
    /// The number of the descriptor.
    pub fd: u32,
    /// What it leads to.
    pub target: DescriptorTarget,
}

/// The object that a descriptor leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DescriptorTarget {
    /// A namespace with this inode. It may be of another type if its file was mounted.
    Namespace(u64),
    /// A socket.
    Socket,
    /// Anything else.
    Other,
}

/// Calls `each` with the namespace and number of every thread of processes with several threads, until it breaks.
/// Costs one system call per process, and one per such thread.
pub fn each_thread(proc: &Path, each: &mut dyn FnMut(u64, u32) -> ControlFlow<()>) {
    let Ok(proc) = fs::open_dir(proc) else { return };
    let (mut processes, mut tasks, mut path) = (fs::Entries::new(), fs::Entries::new(), fs::CPath::new());
    processes.begin();
    while let Ok(Some(process)) = processes.next(&proc) {
        let task_path = path.set(&[process.bytes(), b"/task"]);
        // The directory has two links, plus one per thread.
        let has_several = process.number().is_some() && fs::stat_at(&proc, task_path).is_ok_and(|stat| stat.links > 3);
        let Some(dir) = has_several.then(|| fs::open_dir_at(&proc, task_path).ok()).flatten() else { continue };
        tasks.begin();
        while let Ok(Some(task)) = tasks.next(&dir) {
            let Some(tid) = task.number() else { continue };
            let mut target = [0; 32];
            let link = fs::read_link_at(&dir, path.set(&[task.bytes(), b"/ns/net"]), &mut target);
            let inode = link.ok().and_then(inode_in);
            if inode.is_some_and(|inode| each(inode, tid).is_break()) {
                return;
            }
        }
    }
}

/// Calls `each` with the descriptors of all processes until it breaks, but with at most `of_one_max` of a process and
/// `all_max` of all. Returns the number of skipped descriptors. Costs one or two system calls per descriptor.
pub fn each_descriptor(
    proc: &Path,
    (of_one_max, all_max): (u32, u32),
    each: &mut dyn FnMut(HeldDescriptor) -> ControlFlow<()>,
) -> u64 {
    let Ok(proc) = fs::open_dir(proc) else { return 0 };
    let Ok(nsfs) = fs::stat(Path::new("/proc/self/ns/net")).map(|own| own.device) else { return 0 };
    let (mut processes, mut entries, mut path) = (fs::Entries::new(), fs::Entries::new(), fs::CPath::new());
    let (mut all, mut skipped) = (0, 0);
    processes.begin();
    while let Ok(Some(process)) = processes.next(&proc) {
        let Some(pid) = process.number() else { continue };
        let Ok(dir) = fs::open_dir_at(&proc, path.set(&[process.bytes(), b"/fd"])) else { continue };
        let mut seen = 0;
        entries.begin();
        while let Ok(Some(entry)) = entries.next(&dir) {
            let Some(fd) = entry.number() else { continue };
            if seen >= of_one_max || all >= all_max {
                skipped += 1;
                continue;
            }
            (seen, all) = (seen + 1, all + 1);
            let target = target_of(&dir, entry.name, nsfs);
            if each(HeldDescriptor { pid, fd, target }).is_break() {
                return skipped;
            }
        }
    }
    skipped
}

/// Returns the target of a descriptor. `nsfs` is the device of the namespace file system: the link of a namespace that
/// was opened at the path of a mount shows this path.
fn target_of(dir: &Fd, name: &CStr, nsfs: u64) -> DescriptorTarget {
    let mut text = [0; 32];
    let Ok(text) = fs::read_link_at(dir, name, &mut text) else { return DescriptorTarget::Other };
    if text.starts_with(b"socket:[") {
        return DescriptorTarget::Socket;
    }
    let mounted = || fs::cached_identity_at(dir, name).ok().filter(|(device, _)| *device == nsfs);
    let inode = if text.starts_with(b"/") { mounted().map(|(_, inode)| inode) } else { inode_in(text) };
    inode.map_or(DescriptorTarget::Other, DescriptorTarget::Namespace)
}

/// Namespaces that a search has opened through threads, descriptors and sockets.
#[derive(Debug, Default)]
pub(crate) struct OpenedNetns {
    opened: Vec<NetNs>,
    /// True if the search ended early.
    pub(crate) is_cut: bool,
}

impl OpenedNetns {
    /// Searches for the namespaces `wanted`, for at most [`SEARCH_NS`]. Opens each at once: what leads to it may be a
    /// program that closes it again.
    pub(crate) fn search(wanted: &[u64]) -> OpenedNetns {
        let end_ns = clock::thread_cpu_ns() + SEARCH_NS;
        let mut found = OpenedNetns::default();
        each_thread(Path::new("/proc"), &mut |inode, tid| {
            let is_missing = wanted.contains(&inode) && found.find(inode).is_none();
            let opened = is_missing.then(|| NetNs::open_pid(tid).ok()).flatten();
            found.add(wanted, opened)
        });
        if found.are_all(wanted) {
            return found;
        }
        each_descriptor(Path::new("/proc"), (u32::MAX, u32::MAX), &mut |held| {
            if clock::thread_cpu_ns() > end_ns {
                found.is_cut = true;
                return ControlFlow::Break(());
            }
            let opened = match held.target {
                DescriptorTarget::Namespace(inode) if wanted.contains(&inode) && found.find(inode).is_none() => {
                    let path = format!("/proc/{}/fd/{}", held.pid, held.fd);
                    NetNs::open_known(inode, Some(Path::new(&path)), None).ok()
                }
                DescriptorTarget::Socket => netns_of_socket(held.pid, held.fd).and_then(NetNs::of_socket).ok(),
                DescriptorTarget::Namespace(_) | DescriptorTarget::Other => None,
            };
            found.add(wanted, opened)
        });
        found
    }

    /// Keeps the namespace if it is wanted and was not found before; breaks once all are found.
    fn add(&mut self, wanted: &[u64], opened: Option<NetNs>) -> ControlFlow<()> {
        let is_new = |netns: &NetNs| wanted.contains(&netns.inode()) && self.find(netns.inode()).is_none();
        let opened = opened.filter(is_new);
        self.opened.extend(opened);
        if self.are_all(wanted) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn are_all(&self, wanted: &[u64]) -> bool {
        self.opened.len() >= wanted.len()
    }

    /// The namespace with this inode, if it was found.
    pub(crate) fn find(&self, inode: u64) -> Option<&NetNs> {
        self.opened.iter().find(|netns| netns.inode() == inode)
    }
}
