//! Checks who created the directories of cgroups: a cgroup's name is only as trustworthy as its creator.
//!
//! In a directory that was delegated to a user, that user may create a cgroup with any name, for example
//! `docker-<id>.scope`. A name is believed if only root or the caller can have created it: they own every directory
//! above it, and no one else can write there. The owner of the named directory itself does not matter, because runtimes
//! hand it over to the container.
use std::cell::OnceCell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use hashbrown::HashMap;
use sys::{Errno, Host, SysError, fs};

use crate::mounts::{self, MountList};

/// Write permission bits of group and others.
const WRITABLE: u32 = 0o022;

/// A cgroup hierarchy: the controllers of version 1 as in /proc/PID/cgroup; empty for version 2.
pub(super) type Hierarchy<'p> = &'p [u8];

/// The hierarchy of version 2.
pub(super) const UNIFIED: Hierarchy<'static> = b"";

/// Caches the check of each cgroup directory.
pub(super) struct Makers<'h> {
    host: &'h Host,
    /// Read on first use.
    mounts: OnceCell<Vec<MountList>>,
    known: HashMap<Box<[u8]>, Option<bool>, foldhash::fast::FixedState>,
    /// Number of directories that could not be checked.
    pub(super) unchecked: u32,
    #[cfg(test)]
    all: bool,
}

impl<'h> Makers<'h> {
    /// A cache for `host`. Reads nothing yet.
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

    /// Treats every directory as root's, for paths that are not cgroups of this host.
    #[cfg(test)]
    pub(super) fn all_root(host: &'h Host) -> Makers<'h> {
        Makers { all: true, ..Makers::new(host) }
    }

    /// True if every entry of the directory made of `parts` was created by root or by the caller. A directory that
    /// cannot be checked is counted, and its entries are not believed.
    pub(super) fn made(&mut self, hierarchy: Hierarchy<'_>, parts: &[&[u8]]) -> bool {
        #[cfg(test)]
        if self.all {
            return true;
        }
        // From the top down: directories below another user's need no check.
        (0..=parts.len()).all(|depth| self.own(hierarchy, parts.get(..depth).unwrap_or_default()) == Some(true))
    }

    // Whether this one directory belongs to root or the caller.
    fn own(&mut self, hierarchy: Hierarchy<'_>, parts: &[&[u8]]) -> Option<bool> {
        let path = parts.join(&b'/');
        let key = [hierarchy, b":/", &path].concat();
        if let Some(known) = self.known.get(&*key) {
            return *known;
        }
        let mut answer = Vec::new();
        let read = self.host.bytes(&format!("cgroup-maker {}", sys::escape_bytes(&key)), "", &mut answer, |into| {
            into.push(u8::from(self.look(hierarchy, &path)?));
            Ok(())
        });
        let own = match (read, answer.first()) {
            (Ok(()), Some(own)) => Some(*own != 0),
            // It was removed since then, so no process is in it.
            (Err(error), _) if error.errno.is_missing_object() => None,
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
        // The path is outside of our cgroup namespace.
        if path.split(|&byte| byte == b'/').any(|part| part == b"..") {
            return Err(failed(Errno::ACCES));
        }
        let directory = self.directory(hierarchy, path).ok_or_else(|| failed(Errno::INVAL))?;
        let stat = fs::stat(&directory)?;
        let is_trusted = stat.uid == 0 || stat.uid == sys::caps::euid();
        Ok(is_trusted && stat.mode & WRITABLE == 0)
    }

    // The directory of the group, if the mount of its hierarchy includes it.
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

// The part of the path below the mounted directory.
fn below<'p>(path: &'p [u8], root: &[u8]) -> Option<&'p [u8]> {
    let root = root.strip_prefix(b"/").unwrap_or(root);
    match path.strip_prefix(root)? {
        below if root.is_empty() || below.is_empty() => Some(below),
        below => below.strip_prefix(b"/"),
    }
}
