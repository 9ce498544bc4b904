//! Paths of control groups: cgroup v2 id → path below the mount.
use record::{Key, Lookup, Value};
use sys::fs::{self, CPath, Entries, FileKind};
use sys::{Errno, Fd, Host, SysError};

use crate::HostError;
use crate::mounts::{self, MountList};
use crate::texts::Texts;
use std::path::PathBuf;

/// Maximum number of directories read. On a host with more groups, the others have no path.
///
/// Bound: cgroups. Beyond: sockets of further cgroups have no path. This also affects other users. By: a user who may
/// make cgroups.
const GROUPS_MAX: usize = 200_000;

/// In a recording: mounted u8, unreadable u32, over u8, then per group id u64, length u16, path; little endian.
const HEAD: usize = 6;

/// cgroup id → path (`/system.slice/ssh.service`).
#[derive(Debug, Default)]
pub struct Cgroups {
    paths: Texts<u64>,
    report: CgroupsReport,
}

/// Result of reading the cgroups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CgroupsReport {
    /// False if no cgroup v2 file system is mounted: then ids have no path.
    pub mounted: bool,
    /// Number of groups found.
    pub groups: u32,
    /// Number of directories that could not be read.
    pub unreadable: u32,
    /// True if there are more than 200,000 groups.
    pub over: bool,
}

impl CgroupsReport {
    /// One line for each missing part, for the end of a run.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.mounted {
            lines.push(
                "paths of cgroups unknown: no cgroup v2 file system is mounted (mount -t cgroup2 none DIRECTORY)"
                    .into(),
            );
        }
        if self.unreadable > 0 {
            lines.push(format!("paths of some cgroups unknown: {} directories unreadable", self.unreadable));
        }
        if self.over {
            lines.push(format!("paths of some cgroups unknown: only the first {GROUPS_MAX} were read"));
        }
        lines
    }
}

impl Cgroups {
    /// Walks the directories of the cgroup v2 file system once. About 40 µs per group, because each of its directories
    /// lists some fifty files.
    ///
    /// If this process does not see the file system (`ip netns exec` covers /sys), uses the one of process 1.
    pub fn read(host: &Host) -> Result<Cgroups, HostError> {
        Cgroups::walked(host, |host| mounts::lists(host).iter().find_map(find_mount))
    }

    /// Like [`Cgroups::read`], but only if this process itself sees the file system, as `ss` does.
    pub fn read_own(host: &Host) -> Result<Cgroups, HostError> {
        Cgroups::walked(host, |host| mounts::own(host).as_ref().and_then(find_mount))
    }

    fn walked(host: &Host, find: impl Fn(&Host) -> Option<PathBuf>) -> Result<Cgroups, HostError> {
        let mut bytes = Vec::new();
        host.bytes("cgroups", "", &mut bytes, |into| walk(find(host), into))?;
        Cgroups::parse(bytes)
    }

    /// The path of a group below the mount point, `/` for the root; `None` if it was removed or could not be read.
    pub fn path(&self, id: u64) -> Option<&[u8]> {
        self.paths.get(id)
    }

    /// Id and path of every group, in ascending order of ids.
    pub fn each(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.paths.each()
    }

    /// The result of the read: which parts are missing.
    pub fn report(&self) -> &CgroupsReport {
        &self.report
    }

    pub(crate) fn parse(bytes: Vec<u8>) -> Result<Cgroups, HostError> {
        const WHAT: &str = "cgroups";
        let Some(&[mounted, u0, u1, u2, u3, over]) = bytes.first_chunk::<HEAD>() else {
            return Err(HostError::Garbled { what: WHAT, at: 0 });
        };
        let mut places = Vec::new();
        let mut at = HEAD;
        while at < bytes.len() {
            let (id, start, end) = group(&bytes, at).ok_or(HostError::Garbled { what: WHAT, at })?;
            // A value in a recording is at most 64 MiB long.
            places.push((id, start as u32, end as u32));
            at = end;
        }
        let paths = Texts::new(bytes, places);
        let report = CgroupsReport {
            mounted: mounted != 0,
            groups: paths.len() as u32,
            unreadable: u32::from_le_bytes([u0, u1, u2, u3]),
            over: over != 0,
        };
        Ok(Cgroups { paths, report })
    }
}

impl Lookup for Cgroups {
    fn value(&self, key: Key) -> Value<'_> {
        match key {
            Key::Id(id) => Value::text(self.path(id)),
            _ => Value::Null,
        }
    }
}

// Id of the group whose record starts at `at`, and start and end of its path.
fn group(bytes: &[u8], at: usize) -> Option<(u64, usize, usize)> {
    let rest = bytes.get(at..)?;
    let (id, rest) = rest.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let length = usize::from(u16::from_le_bytes(*length));
    let start = at + 10;
    (length <= rest.len()).then_some((u64::from_le_bytes(*id), start, start + length))
}

fn put_group(into: &mut Vec<u8>, id: u64, path: &[u8]) {
    // Paths are shorter than PATH_MAX, because they were opened.
    let Ok(length) = u16::try_from(path.len()) else { return };
    into.extend_from_slice(&id.to_le_bytes());
    into.extend_from_slice(&length.to_le_bytes());
    into.extend_from_slice(path);
}

// A cgroup's id is the inode number of its directory (kernfs, 64-bit kernels).
pub(crate) fn walk(place: Option<PathBuf>, into: &mut Vec<u8>) -> Result<(), SysError> {
    into.resize(HEAD, 0);
    let Some(place) = place else { return Ok(()) };
    let root = fs::open_dir(&place)?;
    put_group(into, fs::stat(&place)?.inode, b"/");
    let mut walk = CgroupWalk { groups: 1, over: false, into, entries: Entries::new(), todo: vec![Box::default()] };
    let (mut unreadable, mut path) = (0u32, CPath::new());
    while let Some(parent) = walk.todo.pop() {
        let listed = fs::open_dir_at(&root, path.set(&[b".", &*parent])).and_then(|dir| walk.children(&dir, &parent));
        match listed {
            Ok(()) => {}
            // It was removed after its parent was read.
            Err(errno) if errno.is_missing_object() => {}
            Err(_) => unreadable += 1,
        }
    }
    let over = walk.over;
    if let Some([mounted, counted @ .., more]) = into.first_chunk_mut::<HEAD>() {
        *mounted = 1;
        *counted = unreadable.to_le_bytes();
        *more = u8::from(over);
    }
    Ok(())
}

struct CgroupWalk<'i> {
    into: &'i mut Vec<u8>,
    entries: Entries,
    /// Paths of directories whose children are not read yet; the path of the root is empty.
    todo: Vec<Box<[u8]>>,
    groups: usize,
    over: bool,
}

impl CgroupWalk<'_> {
    fn children(&mut self, dir: &Fd, parent: &[u8]) -> Result<(), Errno> {
        self.entries.begin();
        while let Some(entry) = self.entries.next(dir)? {
            if entry.kind != FileKind::Dir {
                continue;
            }
            if self.groups >= GROUPS_MAX {
                self.over = true;
                break;
            }
            self.groups += 1;
            let child = [parent, b"/", entry.bytes()].concat();
            put_group(self.into, entry.inode, &child);
            self.todo.push(child.into());
        }
        Ok(())
    }
}

// Finds /sys/fs/cgroup, /sys/fs/cgroup/unified next to version 1, or any other mount point.
pub(crate) fn find_mount(list: &MountList) -> Option<PathBuf> {
    let found = mounts::mounts(&list.text).find(|mount| mount.kind == b"cgroup2");
    found.map(|mount| list.path(&mount))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::mounts::mounts;
    use proptest::prelude::*;
    use std::io::Write;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    /// A /proc whose mountinfo has a cgroup2 file system mounted at `place`.
    fn host_with(dir: &Path, mountinfo: &str) -> Host {
        std::fs::create_dir_all(dir.join("proc/self")).unwrap();
        std::fs::write(dir.join("proc/self/mountinfo"), mountinfo).unwrap();
        Host::with_roots(dir.join("proc"), "/sys".into(), "/etc".into())
    }

    fn mounted_at(place: &Path) -> String {
        format!(
            "1 0 0:1 / /v1 rw - cgroup none rw\n2 1 0:2 / {} rw,nosuid shared:9 - cgroup2 none rw\n",
            place.display()
        )
    }

    #[test]
    fn directories_become_paths_and_travel_on_tape() {
        let tmp = tempfile::tempdir().unwrap();
        let place = tmp.path().join("unified");
        std::fs::create_dir_all(place.join("a.slice/b\n.scope/c")).unwrap();
        std::fs::create_dir_all(place.join("d")).unwrap();
        std::fs::write(place.join("cgroup.procs"), "").unwrap();
        let tape = tmp.path().join("tape");
        let host = host_with(tmp.path(), &mounted_at(&place)).recording(&tape).unwrap();
        let live = Cgroups::read(&host).unwrap();
        host.finish().unwrap();
        let replayed = Cgroups::read(&Host::open_replay(&tape).unwrap()).unwrap();
        for cgroups in [live, replayed] {
            for path in ["/", "/a.slice", "/a.slice/b\n.scope", "/a.slice/b\n.scope/c", "/d"] {
                let id = std::fs::metadata(place.join(&path[1..])).unwrap().ino();
                assert_eq!(cgroups.path(id), Some(path.as_bytes()));
                assert_eq!(cgroups.value(Key::Id(id)), Value::Bytes(path.as_bytes()));
            }
            assert_eq!(cgroups.path(0), None);
            let expected = CgroupsReport { mounted: true, groups: 5, unreadable: 0, over: false };
            assert_eq!(*cgroups.report(), expected);
            assert!(cgroups.report().lines().is_empty());
        }
    }

    #[test]
    fn no_mount_is_one_warning() {
        let tmp = tempfile::tempdir().unwrap();
        let cgroups = Cgroups::read(&host_with(tmp.path(), "1 0 0:1 / /v1 rw - cgroup none rw\n")).unwrap();
        assert_eq!(cgroups.path(1), None);
        assert_eq!(
            cgroups.report().lines(),
            ["paths of cgroups unknown: no cgroup v2 file system is mounted (mount -t cgroup2 none DIRECTORY)"]
        );
    }

    #[test]
    fn the_groups_of_this_host() {
        let cgroups = Cgroups::read(&Host::live()).unwrap();
        let text = std::fs::read("/proc/self/mountinfo").unwrap();
        let Some(mount) = mounts(&text).find(|mount| mount.kind == b"cgroup2") else {
            let _ = std::io::stderr().write_all(b"skipped: no cgroup2 file system here\n");
            return;
        };
        let place = std::str::from_utf8(&mount.place).unwrap();
        let own = std::fs::read_to_string("/proc/self/cgroup").unwrap();
        let own = own.lines().find_map(|line| line.strip_prefix("0::")).unwrap();
        let id = std::fs::metadata(format!("{place}{own}")).unwrap().ino();
        assert_eq!(cgroups.path(id), Some(own.as_bytes()));
    }

    proptest! {
        #[test]
        fn any_bytes(bytes in prop::collection::vec(prop_oneof![Just(0u8), Just(1), any::<u8>()], 0..100)) {
            let length = bytes.len();
            match Cgroups::parse(bytes) {
                Ok(cgroups) => cgroups.paths.keys().for_each(|id| assert!(cgroups.path(id).is_some())),
                Err(HostError::Garbled { at, .. }) => prop_assert!(at < length.max(1)),
                Err(other) => panic!("{other}"),
            }
        }
    }
}
