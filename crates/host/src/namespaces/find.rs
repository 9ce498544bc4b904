//! Searches namespaces: mounts, links, processes.
use std::path::{Path, PathBuf};

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};
use sys::{Errno, Fd, Host, fs, netns};

use super::held::{self, Holder};
use super::{DOCKER, INIT, INIT_INODE, NAMESPACES_MAX, Namespace, Namespaces, NetnsSearch, inode_in};
use crate::mounts::mounts;

/// Quality of a name, best first. Also the order of preference for entering the namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum NameKind {
    /// A name of `ip netns`.
    IpNetns,
    /// The namespace of process 1.
    Init,
    /// A file made by Docker.
    Docker,
    /// A file made by another program.
    Mount,
    /// A process is in it, or the caller is.
    Process,
}

/// One path into a namespace.
struct FoundNetns {
    inode: u64,
    kind: NameKind,
    path: Box<[u8]>,
    pid: Option<u32>,
}

/// Searches the places in `search`.
pub(super) fn find(host: &Host, own: u64, search: &NetnsSearch<'_>) -> Namespaces {
    let mut found = mounted(host);
    linked(&mut found);
    let processes = Processes::look(host);
    found.extend(processes.lowest.iter().map(|(&inode, lowest)| by_process(inode, Some(lowest.pid))));
    found.push(by_process(own, None));
    let init = processes.of_first.unwrap_or(INIT_INODE);
    if found.iter().any(|one| one.inode == init) {
        found.push(FoundNetns { inode: init, kind: NameKind::Init, path: Box::default(), pid: None });
    }
    let known = found.iter().map(|one| one.inode).collect();
    let held = held::find(host, search, known);
    found.extend(held.found.into_iter().map(|(inode, holder)| match holder {
        Holder::Task(tid) => by_process(inode, Some(tid)),
        Holder::Path(path) => FoundNetns { inode, kind: NameKind::Process, path, pid: None },
    }));
    let mut list = merged(found);
    list.sort_by(|a, b| order(a, own).cmp(&order(b, own)));
    list.truncate(NAMESPACES_MAX);
    Namespaces { list, hidden: processes.hidden, unsearched: held.unsearched }
}

fn by_process(inode: u64, pid: Option<u32>) -> FoundNetns {
    FoundNetns { inode, kind: NameKind::Process, path: Box::default(), pid }
}

fn order(namespace: &Namespace, own: u64) -> (bool, bool, &[u8], u64) {
    (namespace.inode != own, namespace.name.is_empty(), &namespace.name, namespace.inode)
}

/// One entry for each namespace: the best name, the best file, the lowest process.
fn merged(mut found: Vec<FoundNetns>) -> Vec<Namespace> {
    found.sort_by(|a, b| (a.inode, a.kind, &a.path).cmp(&(b.inode, b.kind, &b.path)));
    let mut list: Vec<Namespace> = Vec::new();
    for FoundNetns { inode, kind, path, pid } in found {
        if list.last().is_none_or(|last| last.inode != inode) {
            list.push(Namespace::numbered(inode));
        }
        let Some(last) = list.last_mut() else { continue };
        if last.name.is_empty() {
            last.name = name_of(kind, &path).into();
            last.is_given = matches!(kind, NameKind::IpNetns | NameKind::Init);
        }
        if last.path.is_empty() {
            last.path = path;
        }
        last.pid = match (last.pid, pid) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
    list
}

fn name_of(kind: NameKind, path: &[u8]) -> &[u8] {
    match kind {
        NameKind::Init => INIT,
        NameKind::Process => b"",
        NameKind::IpNetns | NameKind::Docker | NameKind::Mount => {
            path.rsplit(|&b| b == b'/').next().unwrap_or_default()
        }
    }
}

/// Every nsfs mount of a network namespace. The kernel reports its inode, so no file needs to be opened.
fn mounted(host: &Host) -> Vec<FoundNetns> {
    let mut text = Vec::new();
    // If the file is unreadable, the links of /run/netns and the processes remain.
    let _ = fs::read_file(&host.real_path("/proc/self/mountinfo"), &mut text);
    let namespaces = mounts(&text).filter(|mount| mount.kind == b"nsfs");
    let found = namespaces.filter_map(|mount| {
        let inode = inode_in(mount.root)?;
        let kind = kind_of(&mount.place);
        Some(FoundNetns { inode, kind, path: mount.place.into_owned().into(), pid: None })
    });
    found.take(NAMESPACES_MAX).collect()
}

fn kind_of(path: &[u8]) -> NameKind {
    let end = path.iter().rposition(|&b| b == b'/').unwrap_or(0);
    match path.get(..end).unwrap_or_default() {
        b"/run/netns" | b"/var/run/netns" => NameKind::IpNetns,
        dir if dir == DOCKER.as_bytes() => NameKind::Docker,
        _ => NameKind::Mount,
    }
}

/// Names of `ip netns` that are not mounts in our namespace: links to a process, or files mounted where we cannot see
/// it.
fn linked(found: &mut Vec<FoundNetns>) {
    use std::os::unix::ffi::OsStrExt;
    let known: HashSet<Box<[u8]>, RandomState> = found.iter().map(|one| one.path.clone()).collect();
    let names = netns::list_named().into_iter().map(|(_, path)| path);
    let new: Vec<PathBuf> = names.filter(|path| !known.contains(path.as_os_str().as_bytes())).collect();
    if new.is_empty() {
        return;
    }
    // Anything but a namespace (a left-over file) is on another file system.
    let Ok(own) = fs::stat(Path::new("/proc/thread-self/ns/net")) else { return };
    for path in new {
        if let Some(stat) = fs::stat(&path).ok().filter(|stat| stat.device == own.device) {
            let path = path.as_os_str().as_bytes().into();
            found.push(FoundNetns { inode: stat.inode, kind: NameKind::IpNetns, path, pid: None });
        }
    }
}

/// Namespaces found through processes.
#[derive(Default)]
struct Processes {
    /// The process with the lowest number in each namespace.
    lowest: HashMap<u64, Lowest, RandomState>,
    /// The namespace of process 1.
    of_first: Option<u64>,
    /// Number of namespaces whose processes are all unreadable.
    hidden: u64,
}

/// The two processes of a namespace with the lowest numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Lowest {
    pid: u32,
    next: Option<u32>,
}

impl Lowest {
    fn add(&mut self, pid: u32) {
        let (low, high) = (pid.min(self.pid), pid.max(self.pid));
        *self = Lowest { pid: low, next: Some(self.next.map_or(high, |next| next.min(high))) };
    }
}

impl Processes {
    fn look(host: &Host) -> Processes {
        let mut processes = Processes::default();
        let Ok(dir) = fs::open_dir(&host.proc_path("")) else { return processes };
        let (mut entries, mut path) = (fs::Entries::new(), fs::CPath::new());
        let mut unreadable = Vec::new();
        while let Ok(Some(entry)) = entries.next(&dir) {
            let Some(pid) = entry.number() else { continue };
            let mut target = [0; 32];
            match fs::read_link_at(&dir, path.set(&[entry.bytes(), b"/ns/net"]), &mut target) {
                Ok(target) => processes.add(pid, target),
                Err(errno) if errno.is_denied() => unreadable.push(pid),
                // The process has ended since then, or is a zombie.
                Err(_) => {}
            }
        }
        processes.leave_out_visitors(|pid| {
            let mut target = [0; 32];
            let target = fs::read_link_at(&dir, path.set(&[pid.to_string().as_bytes(), b"/ns/net"]), &mut target);
            target.ok().and_then(inode_in)
        });
        if !unreadable.is_empty() {
            processes.compare(&dir, &unreadable);
        }
        processes
    }

    fn add(&mut self, pid: u32, target: &[u8]) {
        let Some(inode) = inode_in(target) else { return };
        if pid == 1 {
            self.of_first = Some(inode);
        }
        if self.lowest.len() < NAMESPACES_MAX {
            let alone = Lowest { pid, next: None };
            self.lowest.entry(inode).and_modify(|lowest| lowest.add(pid)).or_insert(alone);
        }
    }

    /// Replaces the first process of a namespace by the second one if the first has left, and forgets the namespace if
    /// there is no second: a program that reads many namespaces, such as netwren, is in each of them for a moment. A
    /// visitor that has not left yet counts as a process that stays; [`sys::visit_each`] looks for another way in then.
    fn leave_out_visitors(&mut self, mut namespace_of: impl FnMut(u32) -> Option<u64>) {
        self.lowest.retain(|inode, lowest| {
            let has_left = namespace_of(lowest.pid) != Some(*inode);
            match lowest.next {
                Some(next) if has_left => *lowest = Lowest { pid: next, next: None },
                None if has_left => return false,
                _ => {}
            }
            true
        });
    }

    /// Checks whether unreadable processes are in further namespaces.
    ///
    /// /proc/PID/net is readable by every user, and its files exist once per namespace: their inode numbers (of procfs,
    /// not of nsfs) distinguish the namespaces.
    fn compare(&mut self, dir: &Fd, unreadable: &[u32]) {
        let mut path = fs::CPath::new();
        let mut set_of = |pid: u32| {
            let stat = fs::stat_at(dir, path.set(&[pid.to_string().as_bytes(), b"/net/dev"]));
            match stat {
                Ok(stat) => Some(stat.inode),
                // Even that may be hidden (hidepid): then each process counts as a separate namespace.
                Err(Errno::NOENT | Errno::SRCH | Errno::INVAL) => None,
                Err(_) => Some(u64::from(pid) << 32),
            }
        };
        let known: HashMap<u64, u64, RandomState> =
            self.lowest.iter().filter_map(|(&inode, lowest)| Some((set_of(lowest.pid)?, inode))).collect();
        let mut strange: HashSet<u64, RandomState> = HashSet::default();
        for &pid in unreadable {
            match set_of(pid) {
                Some(set) if !known.contains_key(&set) => {
                    strange.insert(set);
                }
                Some(set) if pid == 1 => self.of_first = known.get(&set).copied(),
                _ => {}
            }
        }
        self.hidden = strange.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issue_10_a_namespace_goes_by_a_process_that_stays() {
        let mut processes = Processes::default();
        for (pid, inode) in [(40, 7), (90, 7), (60, 7), (41, 8), (42, 9), (50, 9)] {
            processes.add(pid, format!("net:[{inode}]").as_bytes());
        }
        // 40 has moved from 7 to 8, 41 has ended.
        processes.leave_out_visitors(|pid| [(40, 8), (42, 9)].iter().find(|known| known.0 == pid).map(|known| known.1));
        let pid_of = |inode| processes.lowest.get(&inode).map(|lowest| lowest.pid);
        assert_eq!([7, 8, 9].map(pid_of), [Some(60), None, Some(42)]);
    }
}
