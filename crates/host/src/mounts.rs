//! Parses /proc/self/mountinfo, proc_pid_mountinfo(5).
use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sys::{Host, fs};

/// One mount; borrows the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount<'l> {
    /// The mounted part of the file system: a directory in it, or the name of a namespace.
    pub(crate) root: &'l [u8],
    /// Mount point.
    pub(crate) place: Cow<'l, [u8]>,
    /// Type of the file system.
    pub(crate) kind: &'l [u8],
    /// Options of the file system, separated by commas.
    pub(crate) options: &'l [u8],
}

impl Mount<'_> {
    /// True if the file system has this option.
    pub(crate) fn has_option(&self, option: &[u8]) -> bool {
        self.options.split(|&b| b == b',').any(|o| o == option)
    }
}

/// A list of mounts, and the path under which this process reaches its file systems.
pub(crate) struct MountList {
    pub(crate) text: Vec<u8>,
    root: PathBuf,
}

impl MountList {
    /// Path of a mount in this list, as seen from this process.
    pub(crate) fn path(&self, mount: &Mount<'_>) -> PathBuf {
        let place = Path::new(OsStr::from_bytes(&mount.place));
        self.root.join(place.strip_prefix("/").unwrap_or(place))
    }
}

/// The mounts that this process sees, then the ones that process 1 sees if it is root's: `ip netns exec` covers /sys,
/// with everything mounted below it. Unreadable lists are left out.
pub(crate) fn lists(host: &Host) -> Vec<MountList> {
    let root = host.proc_path("1/root");
    // The second check needs the privilege to look into process 1.
    let is_there = fs::stat(&host.proc_path("1")).is_ok_and(|stat| stat.uid == 0) && fs::stat(&root).is_ok();
    let first = || is_there.then(|| list(host, "1", root)).flatten();
    own(host).into_iter().chain(first()).collect()
}

/// The mounts that this process sees, if they can be read.
pub(crate) fn own(host: &Host) -> Option<MountList> {
    list(host, "self", PathBuf::from("/"))
}

fn list(host: &Host, process: &str, root: PathBuf) -> Option<MountList> {
    let mut text = Vec::new();
    fs::read_file(&host.proc_path(&format!("{process}/mountinfo")), &mut text).ok()?;
    Some(MountList { text, root })
}

/// The mounts in order; if two have the same mount point, the last is visible. Malformed lines are skipped.
pub(crate) fn mounts(text: &[u8]) -> impl Iterator<Item = Mount<'_>> {
    text.split(|&b| b == b'\n').filter_map(|line| {
        let mut words = line.split(|&b| b == b' ');
        let root = words.nth(3)?;
        let place = unescaped(words.next()?);
        // Optional fields end with a dash.
        let mut words = words.skip_while(|&word| word != b"-").skip(1);
        let kind = words.next()?;
        Some(Mount { root, place, kind, options: words.nth(1)? })
    })
}

// Spaces and backslashes in names are escaped as `\040`, three octal digits.
fn unescaped(word: &[u8]) -> Cow<'_, [u8]> {
    if !word.contains(&b'\\') {
        return Cow::Borrowed(word);
    }
    let mut plain = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match (byte, after) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) => {
                plain.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = after;
            }
            _ => plain.push(byte),
        }
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_with_and_without_optional_fields() {
        let text = b"21 1 0:20 / /proc rw shared:12 master:3 - proc proc rw,hidepid=2\n\
            bad\n22 1 0:21 / /a\\040b\\134c\\\\x rw - tmpfs none rw\n23 1 0:21 / /x rw - tmpfs\n";
        let found: Vec<Mount<'_>> = mounts(text).collect();
        assert_eq!(found.len(), 2);
        assert_eq!(
            (&*found[0].place, found[0].kind, found[0].options),
            (&b"/proc"[..], &b"proc"[..], &b"rw,hidepid=2"[..])
        );
        assert!(found[0].has_option(b"hidepid=2") && !found[0].has_option(b"hidepid"));
        assert_eq!(&*found[1].place, br"/a b\c\\x");
    }

    proptest! {
        #[test]
        fn any_line(line in "[0-9a-z/ \\\\:-]{0,80}") {
            for mount in mounts(line.as_bytes()) {
                prop_assert!(mount.place.len() <= line.len());
            }
        }
    }
}
