//! Permanently gives up rights: the rights needed to open sockets and files are not needed to parse packets.
//!
//! Each function works if the kernel and the caller's rights allow it, and returns whether it did. Call them in this
//! order: [`forbid_new`], [`become_user`], [`keep_only`], then [`restrict_files`] and [`restrict_calls`]. Capabilities
//! and file access belong to the calling thread and to threads that it starts later.
mod calls;
mod files;
mod limits;
mod program;

pub use calls::{CallGroups, restrict_calls};
pub use files::{FileRules, restrict_files};
pub use limits::{raise_locked_memory, use_open_files};

use crate::caps::{self, CapSet, Sets};
use std::path::Path;

use crate::errno::{Errno, SysError};
use crate::fs;
use crate::syscall::call;

/// `include/uapi/linux/prctl.h`
const PR_CAP_AMBIENT_CLEAR_ALL: libc::c_ulong = 4;
/// Capability numbers fit in one 64-bit word.
const CAPS: u8 = 64;

/// The user and groups of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserIds {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// Every group, including `gid`.
    pub groups: Vec<u32>,
}

/// Leaves the process its memory, its open descriptors and the capabilities `keep`: it can open no file, and no socket
/// but rtnetlink. Skips what the kernel does not support. Call it before starting threads.
pub fn keep_open_only(keep: CapSet) {
    let _ = forbid_new();
    let _ = keep_only(keep);
    let _ = restrict_files(&FileRules::default());
    let _ = restrict_calls(CallGroups::default());
}

/// Ensures that programs started from now on have no more rights than the caller (`PR_SET_NO_NEW_PRIVS`).
pub fn forbid_new() -> Result<(), SysError> {
    // SAFETY: takes integers only.
    call("prctl", || unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }.into())
        .map(|_| ())
        .map_err(|errno| SysError::new("prctl", "PR_SET_NO_NEW_PRIVS", errno))
}

/// Changes the user of all threads of the process. Its capabilities stay until [`keep_only`]. Needs CAP_SETUID and
/// CAP_SETGID.
pub fn become_user(user: &UserIds) -> Result<(), SysError> {
    let failed = |what| move |errno| SysError::new(what, "another user", errno);
    // SAFETY: takes integers only. Without it no capability would be left for `keep_only` to keep.
    call("prctl", || unsafe { libc::prctl(libc::PR_SET_KEEPCAPS, 1, 0, 0, 0) }.into()).map_err(failed("prctl"))?;
    let (groups, count) = (user.groups.as_ptr(), user.groups.len());
    // SAFETY: `groups` points to `count` live group ids.
    call("setgroups", || unsafe { libc::setgroups(count, groups) }.into()).map_err(failed("setgroups"))?;
    // SAFETY: takes three integers.
    call("setresgid", || unsafe { libc::setresgid(user.gid, user.gid, user.gid) }.into())
        .map_err(failed("setresgid"))?;
    // SAFETY: takes three integers.
    call("setresuid", || unsafe { libc::setresuid(user.uid, user.uid, user.uid) }.into())
        .map_err(failed("setresuid"))?;
    // The kept capabilities are permitted but no longer effective, and dropping the bounding set requires an effective
    // one.
    let sets = caps::read().map_err(failed("capget"))?;
    caps::write(Sets { effective: sets.permitted, ..sets }).map_err(failed("capset"))
}

/// Counts the other threads of this process that have capabilities beyond `keep`: each thread has its own.
pub fn threads_with_more(keep: CapSet) -> u64 {
    let (mut entries, mut text, mut count) = (fs::Entries::new(), Vec::new(), 0);
    let Ok(dir) = fs::open_dir(Path::new("/proc/self/task")) else { return 0 };
    while let Ok(Some(entry)) = entries.next(&dir) {
        let Some(thread) = entry.number() else { continue };
        text.clear();
        if fs::read_file(Path::new(&format!("/proc/self/task/{thread}/status")), &mut text).is_err() {
            // The thread has ended.
            continue;
        }
        let permitted = text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"CapPrm:"));
        let digits = permitted.and_then(|digits| std::str::from_utf8(digits).ok());
        let held = digits.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).unwrap_or(0);
        count += u64::from(held & !keep.0 != 0);
    }
    count
}

/// Gives up all capabilities of the calling thread except `keep`; returns the remaining ones, and whether it had any
/// others.
pub fn keep_only(keep: CapSet) -> Result<(CapSet, bool), SysError> {
    let failed = |errno| SysError::new("capset", "own capabilities", errno);
    let before = caps::read().map_err(failed)?;
    drop_bounding(keep);
    // SAFETY: takes integers only. Kernels before 4.3 have no ambient capabilities.
    let _ = call("prctl", || unsafe { libc::prctl(libc::PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) }.into());
    let left = before.permitted & keep.0;
    caps::write(Sets { effective: left, permitted: left, inheritable: 0 }).map_err(failed)?;
    Ok((CapSet(left), before.permitted != left))
}

/// Drops all capabilities of the calling thread's bounding set except `keep`, if it has the privilege to do so:
/// programs that it starts cannot get them. The thread keeps the capabilities that it holds itself.
pub fn drop_bounding(keep: CapSet) {
    for number in (0..CAPS).filter(|number| keep.0 & 1 << number == 0) {
        let number = libc::c_ulong::from(number);
        // SAFETY: takes integers only. Needs CAP_SETPCAP: without it the bounding set stays, and no capability is
        // effective.
        if call("prctl", || unsafe { libc::prctl(libc::PR_CAPBSET_DROP, number, 0, 0, 0) }.into()).is_err() {
            // The privilege is missing, or this number is beyond the last capability.
            break;
        }
    }
}

/// True if the kernel does not know the call, or has it disabled.
fn is_missing(errno: Errno) -> bool {
    matches!(errno.0, libc::ENOSYS | libc::EOPNOTSUPP | libc::EINVAL)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::caps::Cap;
    use std::path::Path;
    use testkit::root::root_or_skip;

    /// The lines of a thread's status, and whether it could still use its former right.
    fn in_a_thread<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
        std::thread::spawn(work).join().unwrap()
    }

    fn status(name: &str) -> String {
        let text = String::from_utf8(file("/proc/thread-self/status")).unwrap();
        text.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned()
    }

    fn file(path: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        crate::fs::read_file(Path::new(path), &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn root_no_capability_is_left_but_those_that_are_kept() {
        if !root_or_skip("dropping capabilities") {
            return;
        }
        for keep in [CapSet::default(), CapSet::from_caps(&[Cap::DacOverride])] {
            let (left, sets) = in_a_thread(move || {
                forbid_new().unwrap();
                let left = keep_only(keep).unwrap();
                (left, ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:", "NoNewPrivs:"].map(status))
            });
            assert_eq!(left, (keep, true));
            let shown = format!("{:016x}", keep.0);
            let none = "0".repeat(16);
            assert_eq!(sets, [&none, &shown, &shown, &shown, &none, "1"]);
        }
    }

    /// Giving up rights succeeds for a thread without rights.
    #[test]
    fn root_a_thread_without_rights_has_none_to_give_up() {
        if !root_or_skip("dropping capabilities") {
            return;
        }
        let twice = in_a_thread(|| (keep_only(CapSet::default()).unwrap().1, keep_only(CapSet::default()).unwrap()));
        assert_eq!(twice, (true, (CapSet::default(), false)));
    }

    #[test]
    fn files_are_out_of_reach_but_those_of_the_rules() {
        let dir = tempfile::tempdir().unwrap();
        let (inner, beside) = (dir.path().join("in"), dir.path().join("beside"));
        std::fs::create_dir(&inner).unwrap();
        std::fs::write(&beside, "x").unwrap();
        let (place, other) = (inner.clone(), beside.clone());
        let kind = |result: std::io::Result<()>| result.err().map(|error| error.kind());
        let tried = in_a_thread(move || {
            forbid_new().unwrap();
            let before = std::fs::File::open(&other).unwrap();
            let abi = restrict_files(&FileRules { writable: &[&place], ..FileRules::default() }).unwrap()?;
            let write = kind(std::fs::write(place.join("new"), "y"));
            let read = kind(std::fs::read(&other).map(drop));
            Some((abi, write, read, std::io::read_to_string(before).unwrap()))
        });
        let Some((abi, write, read, before)) = tried else { return };
        assert!(abi >= 1);
        assert_eq!((write, read, before.as_str()), (None, Some(std::io::ErrorKind::PermissionDenied), "x"));
        let place = beside.clone();
        let readable = in_a_thread(move || {
            forbid_new().unwrap();
            restrict_files(&FileRules { readable: &[Path::new("/")], ..FileRules::default() }).unwrap();
            (std::fs::read(&place).is_ok(), kind(std::fs::write(&place, "z")))
        });
        assert_eq!(readable, (true, Some(std::io::ErrorKind::PermissionDenied)));
    }

    #[test]
    fn where_files_are_made_none_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let (inner, beside) = (dir.path().join("in"), dir.path().join("beside"));
        std::fs::create_dir(&inner).unwrap();
        std::fs::write(inner.join("there"), "x").unwrap();
        let kind = |result: std::io::Result<()>| result.err().map(|error| error.kind());
        let place = inner.clone();
        let tried = in_a_thread(move || {
            forbid_new().unwrap();
            restrict_files(&FileRules { makeable: &[&place], ..FileRules::default() }).unwrap()?;
            Some([
                kind(std::fs::write(place.join("new"), "y")),
                kind(std::fs::write(place.join("there"), "y")),
                kind(std::fs::remove_file(place.join("there"))),
                kind(std::fs::read(place.join("new")).map(drop)),
                kind(std::fs::write(&beside, "y")),
                kind(std::fs::create_dir(place.join("dir"))),
            ])
        });
        let denied = Some(std::io::ErrorKind::PermissionDenied);
        assert!(tried.is_none_or(|tried| tried == [None, None, None, denied, denied, denied]), "{tried:?}");
        assert_eq!(std::fs::read(inner.join("new")).unwrap(), b"y");
    }
}
