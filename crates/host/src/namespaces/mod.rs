//! Every network namespace of this host that can be found, with paths into it and a name.
//!
//! Every search finds namespaces bound to a file (an nsfs mount or a link in /run/netns), the namespaces of processes,
//! and the caller's own. A thread, an open descriptor or a socket can also keep a namespace alive: searching for these
//! costs more and is done on demand ([`NetnsSearch`]). A namespace that only the kernel reports is added with its
//! number ([`Namespaces::also`]) and cannot be entered.
//!
//! `find` and `held` implement the search; `tape` implements the list's format in a recording.
mod find;
mod fingerprint;
mod held;
mod owners;
mod tape;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use record::text::put_u64;
use sys::netns::inode_in;
use sys::{Errno, Host, NetNs, NetnsTarget, SysError};

use crate::HostError;

pub use fingerprint::NetnsFingerprint;
pub use owners::NetnsOwners;

/// `NET_NS_INIT_INO` of include/uapi/linux/nsfs.h: the initial namespace's inode since 6.18. Older kernels only reveal
/// it to users who may inspect process 1.
pub(crate) const INIT_INODE: u64 = 0xefff_fff9;

/// Docker's folder of namespaces; only root can read it.
pub(crate) const DOCKER: &str = "/run/docker/netns";

/// Name of the namespace of process 1.
pub(crate) const INIT: &[u8] = b"init";

/// Prefix of a process id in the name of a namespace without a better name.
pub(crate) const PID_PREFIX: &str = "pid:";

/// Key of the list in a recording.
const KEY: &str = "netns-all";

/// Maximum number of namespaces kept, about 100 bytes each; a host has a few hundred. Others are not read. One user may
/// create about 100,000 (user.max_net_namespaces); each costs the kernel 100 KiB or more, so no host gets here.
///
/// Bound: network namespaces. Beyond: further namespaces are not read. By: a user with 100 GB of kernel memory.
const NAMESPACES_MAX: usize = 1 << 20;

/// A network namespace, the paths into it, and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    /// Inode number, which identifies it.
    pub inode: u64,
    /// The process with the lowest number in it.
    pub pid: Option<u32>,
    path: Box<[u8]>,
    name: Box<[u8]>,
    /// True if a person chose the name: a name of `ip netns`, or `init`. False for the file name of a container
    /// runtime.
    is_given: bool,
}

impl Namespace {
    /// A namespace that only has a number.
    fn numbered(inode: u64) -> Namespace {
        Namespace { inode, pid: None, path: Box::default(), name: Box::default(), is_given: false }
    }

    /// A file of this namespace, if one was found. It may belong to another namespace by now: compare inodes.
    pub fn path(&self) -> Option<&Path> {
        (!self.path.is_empty()).then(|| Path::new(OsStr::from_bytes(&self.path)))
    }

    /// The paths into it for a process in the namespace `own`.
    pub fn target(&self, own: u64) -> NetnsTarget<'_> {
        NetnsTarget { netns_id: self.inode, is_here: self.inode == own, path: self.path(), pid: self.pid }
    }

    /// Opens the namespace to enter it; `None` if that is unnecessary: it is the caller's (`own`), or this is a replay.
    pub fn open(&self, host: &Host, own: u64) -> Result<Option<NetNs>, SysError> {
        if self.inode == own || host.is_replay() {
            return Ok(None);
        }
        NetNs::open_known(self.inode, self.path(), self.pid).map(Some)
    }

    /// Its name, given by `ip netns`, by Docker, or by the program that mounted it; `init` for the namespace of process
    /// 1. Not escaped.
    pub fn name(&self) -> Option<&[u8]> {
        (!self.name.is_empty()).then_some(&*self.name)
    }
}

/// Places to search in addition to files and processes.
#[derive(Debug, Clone, Copy, Default)]
pub struct NetnsSearch<'s> {
    /// Inodes of all namespaces, if the kernel was asked: the search then looks only for the missing ones.
    pub listed: Option<&'s [u64]>,
    /// True to search threads, open descriptors and, for namespaces in `listed`, sockets. Costs about 1 µs per process
    /// and thread and, if something is missing, loading a BPF program and 0.3 µs per open file; without BPF 1.5 µs per
    /// open file.
    pub holders: bool,
    /// The result of an earlier search: threads and descriptors that still lead to a namespace are kept.
    pub before: Option<&'s Namespaces>,
}

/// The namespaces, the caller's first, then those with a name in the order of names, then the others by number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Namespaces {
    list: Vec<Namespace>,
    hidden: u64,
    unsearched: u64,
}

impl Namespaces {
    /// Finds the namespaces, or reads them from a recording; a recording of one namespace contains only that one.
    ///
    /// Reads one file for all mounts, and a link for each process (1.5 µs); nothing is opened or entered. Needs no
    /// privilege, but without CAP_SYS_PTRACE only the user's own processes are readable (see [`Namespaces::hidden`]).
    pub fn read(host: &Host) -> Result<Namespaces, HostError> {
        Namespaces::search(host, &NetnsSearch::default())
    }

    /// Finds the namespaces, also in the places in `search`.
    pub fn search(host: &Host, search: &NetnsSearch<'_>) -> Result<Namespaces, HostError> {
        let own = crate::own_netns::current(host)?;
        let mut bytes = Vec::new();
        let result = host.bytes(KEY, "", &mut bytes, |into| {
            tape::put(into, &find::find(host, own, search));
            Ok(())
        });
        match result {
            Ok(()) => tape::parse(&bytes),
            Err(error) if error.errno == Errno::NOT_RECORDED => Ok(Namespaces::only(own)),
            Err(error) => Err(error.into()),
        }
    }

    /// True if a replay covers all namespaces.
    pub fn are_recorded(host: &Host) -> bool {
        host.contains(KEY)
    }

    /// Only the caller's namespace.
    fn only(own: u64) -> Namespaces {
        let name = if own == INIT_INODE { INIT.into() } else { Box::default() };
        Namespaces {
            list: vec![Namespace { name, is_given: true, ..Namespace::numbered(own) }],
            ..Namespaces::default()
        }
    }

    /// The namespaces in order.
    pub fn list(&self) -> &[Namespace] {
        &self.list
    }

    /// Lower bound of the number of namespaces whose processes are all unreadable.
    pub fn hidden(&self) -> u64 {
        self.hidden
    }

    /// Returns the number of open descriptors that the search skipped because there were too many.
    pub fn unsearched(&self) -> u64 {
        self.unsearched
    }

    /// Adds namespaces reported by the kernel that are not in the list; they cannot be entered.
    pub fn also(&mut self, inodes: &[u64]) {
        let mut known: Vec<u64> = self.list.iter().map(|namespace| namespace.inode).collect();
        known.sort_unstable();
        let mut new: Vec<u64> = inodes.iter().copied().filter(|inode| known.binary_search(inode).is_err()).collect();
        new.sort_unstable();
        new.dedup();
        self.list.extend(new.into_iter().map(Namespace::numbered));
    }

    /// Processes of the namespaces without a given name (a container's name would fit), and the namespaces' inodes.
    pub fn to_be_named(&self) -> impl Iterator<Item = (u32, u64)> {
        let nameless = self.list.iter().filter(|namespace| !namespace.is_given);
        nameless.filter_map(|namespace| Some((namespace.pid?, namespace.inode)))
    }

    /// The name of each namespace for the rows: its given name; otherwise the result of `of_process` (a container's
    /// name); otherwise its file name; otherwise `pid:` and the process; otherwise its number.
    pub fn names(&self, of_process: &dyn Fn(u32) -> Option<Box<[u8]>>) -> impl Iterator<Item = (u64, Box<[u8]>)> {
        self.list.iter().map(move |namespace| {
            let given = namespace.name().filter(|_| namespace.is_given).map(Box::from);
            let container = || namespace.pid.and_then(of_process);
            let file = || namespace.name().map(Box::from);
            let process = || namespace.pid.map(pid_name);
            let name = given.or_else(container).or_else(file).or_else(process);
            (namespace.inode, name.unwrap_or_else(|| number(namespace.inode)))
        })
    }
}

/// True if nobody chose this name of the namespace `inode`: it is [`Namespaces::names`]' process or number.
pub fn is_derived_name(name: &[u8], inode: u64) -> bool {
    name.starts_with(PID_PREFIX.as_bytes()) || name == &*number(inode)
}

fn pid_name(pid: u32) -> Box<[u8]> {
    let mut name = PID_PREFIX.as_bytes().to_vec();
    put_u64(&mut name, pid.into());
    name.into()
}

fn number(inode: u64) -> Box<[u8]> {
    let mut name = Vec::new();
    put_u64(&mut name, inode);
    name.into()
}

#[cfg(test)]
mod tests;
