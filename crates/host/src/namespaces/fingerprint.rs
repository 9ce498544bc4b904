//! Checks cheaply whether a search for namespaces would find anything new, for consecutive rounds.
use std::path::{Path, PathBuf};
use std::rc::Rc;

use sys::{Fd, Host, Mode, fs, netns};

use super::{Namespace, Namespaces, inode_in};

/// The cheap inputs of a search: the kernel's list, the mounts, the names of `ip netns`. If two fingerprints match, a
/// search would find the same namespaces under the same names, provided that the processes also lead to the same result
/// ([`Namespaces::are_settled`]).
#[derive(Debug)]
pub struct NetnsFingerprint {
    kernel: Vec<u64>,
    mounts: Rc<Mounts>,
    names: Vec<(Box<[u8]>, PathBuf)>,
}

/// The mounts as they were read, and the file, which signals changes.
#[derive(Debug)]
struct Mounts {
    text: Vec<u8>,
    file: Fd,
}

impl Mounts {
    fn read(host: &Host) -> Option<Rc<Mounts>> {
        let mut text = Vec::new();
        // The file signals every change after it was opened: at worst it is read once more than needed.
        let file = fs::read_opened(&host.real_path("/proc/self/mountinfo"), &mut text).ok()?;
        Some(Rc::new(Mounts { text, file }))
    }
}

impl NetnsFingerprint {
    /// Takes a fingerprint; `kernel` are the numbers that the kernel reported, `before` is the previous fingerprint.
    /// Reads a directory, and a file if it has changed, in some 50 µs. `None` if the mounts are unreadable, and while
    /// recording or replaying, where every round is complete.
    pub fn read(host: &Host, kernel: Vec<u64>, before: Option<&NetnsFingerprint>) -> Option<NetnsFingerprint> {
        if host.mode() != Mode::Live {
            return None;
        }
        let unchanged = before.filter(|before| !fs::mounts_have_changed(&before.mounts.file));
        let mounts = match unchanged {
            Some(before) => Rc::clone(&before.mounts),
            None => Mounts::read(host)?,
        };
        let names = netns::list_named().into_iter().map(|(name, path)| (Box::from(&name[..]), path)).collect();
        Some(NetnsFingerprint { kernel, mounts, names })
    }

    /// True if both fingerprints are the same.
    pub fn matches(&self, other: &NetnsFingerprint) -> bool {
        let mounts = Rc::ptr_eq(&self.mounts, &other.mounts) || self.mounts.text == other.mounts.text;
        mounts && self.kernel == other.kernel && self.names == other.names
    }
}

impl Namespaces {
    /// True if no process can have changed how these namespaces are entered or named: each has a file and a given name,
    /// or the process that identifies it is still in it. A namespace without a path may get a process at any time.
    pub fn are_settled(&self, host: &Host) -> bool {
        self.list.iter().all(|namespace| match namespace.pid {
            _ if namespace.is_given && namespace.path().is_some() => true,
            Some(pid) => is_in(host, pid, namespace),
            None => namespace.path().is_some_and(|path| is_descriptor_of(path, namespace)),
        })
    }
}

fn is_in(host: &Host, pid: u32, namespace: &Namespace) -> bool {
    let mut target = Vec::new();
    let read = fs::read_link(&host.proc_path(&format!("{pid}/ns/net")), &mut target);
    read.is_ok() && inode_in(&target) == Some(namespace.inode)
}

/// True if `path` is a descriptor of the namespace itself. A socket's descriptor does not show the socket's namespace.
fn is_descriptor_of(path: &Path, namespace: &Namespace) -> bool {
    let mut target = Vec::new();
    path.starts_with("/proc") && fs::read_link(path, &mut target).is_ok() && inode_in(&target) == Some(namespace.inode)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn settled_are_those_with_a_file_and_a_name_or_a_process_that_is_there() {
        let host = Host::live();
        let own = netns::current_inode().unwrap();
        let namespace = |inode, pid, path: &str, is_given| Namespace {
            pid,
            path: path.as_bytes().into(),
            name: b"x"[..].into(),
            is_given,
            ..Namespace::numbered(inode)
        };
        let settled = |namespace| Namespaces { list: vec![namespace], ..Namespaces::default() }.are_settled(&host);
        let us = Some(std::process::id());
        assert!(settled(namespace(7, None, "/run/netns/x", true)));
        assert!(settled(namespace(own, us, "", false)));
        assert!(!settled(namespace(own + 1, us, "", false)), "it is elsewhere now");
        assert!(!settled(namespace(7, None, "/run/x", false)), "a container's name may come");
        assert!(!settled(Namespace::numbered(7)));
    }

    #[test]
    fn a_new_namespace_is_seen() {
        let host = Host::live();
        let fingerprint = |kernel: &[u64], before: Option<&NetnsFingerprint>| {
            NetnsFingerprint::read(&host, kernel.to_vec(), before).unwrap()
        };
        let first = fingerprint(&[1, 2], None);
        assert!(first.matches(&NetnsFingerprint {
            kernel: vec![1, 2],
            mounts: Rc::clone(&first.mounts),
            names: first.names.clone()
        }));
        assert!(!fingerprint(&[1], Some(&first)).matches(&first));
    }

    #[test]
    fn root_mounts_are_read_again_only_when_they_have_changed() {
        testkit::require_root!();
        let host = Host::live();
        // Other programs also mount file systems.
        let mut first = NetnsFingerprint::read(&host, Vec::new(), None).unwrap();
        testkit::wait_until("a moment without changes", || {
            let next = NetnsFingerprint::read(&host, Vec::new(), Some(&first)).unwrap();
            let same = Rc::ptr_eq(&next.mounts, &first.mounts);
            first = next;
            same
        });
        let lab = testkit::netns::Lab::new("fingerprint");
        let second = NetnsFingerprint::read(&host, Vec::new(), Some(&first)).unwrap();
        let path = format!("/{} ", lab.name());
        assert!(String::from_utf8_lossy(&second.mounts.text).contains(&path) && !second.matches(&first));
    }
}
