//! Who made the directories of cgroups: a name is worth as much as its maker.
//!
//! Any user may make a cgroup with any name in a directory that was handed over to it, also `docker-<id>.scope`. A name
//! is believed where only root, or the caller itself, may have put it there: every directory above it is theirs, and
//! writable by no other. The owner of the named directory itself tells nothing: runtimes hand it over to what is
//! inside.
use std::cell::OnceCell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use hashbrown::HashMap;
use sys::{Errno, Host, SysError, fs};

use crate::mounts::{self, MountList};

/// Permission bits of group and others to write.
const WRITABLE: u32 = 0o022;

/// A hierarchy of cgroups: the controllers of version 1 as /proc/PID/cgroup names them; empty for version 2.
pub(super) type Hierarchy<'p> = &'p [u8];

/// Version 2.
pub(super) const UNIFIED: Hierarchy<'static> = b"";

/// Directories of cgroups, each looked at once.
pub(super) struct Makers<'h> {
    host: &'h Host,
    /// Read when they are first needed.
    mounts: OnceCell<Vec<MountList>>,
    known: HashMap<Box<[u8]>, Option<bool>, foldhash::fast::FixedState>,
    /// Directories that could not be looked at.
    pub(super) unchecked: u32,
    #[cfg(test)]
    all: bool,
}

impl<'h> Makers<'h> {
    /// Of `host`. Reads nothing yet.
    pub(super) fn new(host: &'h Host) -> Makers<'h> {
        Makers {
            host,
            mounts: OnceCell::new(),
            known: HashMap::default(),
            unchecked: 0,
            #[cfg(test)]
            all: false,
        }
    }

    /// Takes every directory for root's: of paths that are no cgroups of this host.
    #[cfg(test)]
    pub(super) fn all_root(host: &'h Host) -> Makers<'h> {
        Makers { all: true, ..Makers::new(host) }
    }

    /// True if whatever stands directly in the directory made of `parts` was put there by root or by the caller. A
    /// directory that cannot be looked at is counted, and not believed.
    pub(super) fn made(&mut self, hierarchy: Hierarchy<'_>, parts: &[&[u8]]) -> bool {
        #[cfg(test)]
        if self.all {
            return true;
        }
        // From the top down: below a directory of somebody else nothing needs to be looked at.
        (0..=parts.len()).all(|depth| self.own(hierarchy, parts.get(..depth).unwrap_or_default()) == Some(true))
    }

    // Whether this one directory is root's or the caller's.
    fn own(&mut self, hierarchy: Hierarchy<'_>, parts: &[&[u8]]) -> Option<bool> {
        let path = parts.join(&b'/');
        let key = [hierarchy, b":/", &path].concat();
        if let Some(known) = self.known.get(&*key) {
            return *known;
        }
        let mut answer = Vec::new();
        let read = self.host.bytes(&format!("cgroup-maker {}", sys::escaped(&key)), "", &mut answer, |into| {
            into.push(u8::from(self.look(hierarchy, &path)?));
            Ok(())
        });
        let own = match (read, answer.first()) {
            (Ok(()), Some(own)) => Some(*own != 0),
            // Removed since: then nobody is in it.
            (Err(error), _) if error.errno.is_gone() => None,
            _ => {
                self.unchecked += 1;
                None
            }
        };
        self.known.insert(key.into(), own);
        own
    }

    fn look(&self, hierarchy: Hierarchy<'_>, path: &[u8]) -> Result<bool, SysError> {
        let failed = |errno| SysError::on_bytes("find the cgroup file system of", path, errno);
        // Outside of our cgroup namespace.
        if path.split(|&byte| byte == b'/').any(|part| part == b"..") {
            return Err(failed(Errno::ACCES));
        }
        let directory = self.directory(hierarchy, path).ok_or_else(|| failed(Errno::INVAL))?;
        let stat = fs::stat(&directory)?;
        let is_trusted = stat.uid == 0 || stat.uid == sys::caps::euid();
        Ok(is_trusted && stat.mode & WRITABLE == 0)
    }

    // Where the group lies, if its hierarchy is mounted so far up.
    fn directory(&self, hierarchy: Hierarchy<'_>, path: &[u8]) -> Option<PathBuf> {
        let is_it = |kind: &[u8], has: &dyn Fn(&[u8]) -> bool| match hierarchy {
            UNIFIED => kind == b"cgroup2",
            controllers => kind == b"cgroup" && controllers.split(|&byte| byte == b',').all(has),
        };
        let mut lists = self.mounts.get_or_init(|| mounts::lists(self.host)).iter();
        lists.find_map(|list| {
            let mut mounts = mounts::mounts(&list.text);
            mounts.find_map(|mount| {
                let fits = is_it(mount.kind, &|option| mount.has_option(option));
                let below = below(path, mount.root).filter(|_| fits)?;
                Some(list.path(&mount).join(OsStr::from_bytes(below)))
            })
        })
    }
}

// What of the path lies below the directory that is mounted.
fn below<'p>(path: &'p [u8], root: &[u8]) -> Option<&'p [u8]> {
    let root = root.strip_prefix(b"/").unwrap_or(root);
    match path.strip_prefix(root)? {
        below if root.is_empty() || below.is_empty() => Some(below),
        below => below.strip_prefix(b"/"),
    }
}
