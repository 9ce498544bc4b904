//! Whether a search for namespaces would find anything new: cheaper than the search, for rounds that follow each other.
use std::path::PathBuf;

use sys::{Host, Mode, fs, netns};

use super::find::inode_in;
use super::{Namespace, Namespaces};

/// What a search depends on and is cheap to look at: the kernel's list, the mounts, the names of `ip netns`. Two that
/// are equal tell of the same namespaces under the same names, if the processes do, too ([`Namespaces::are_settled`]).
#[derive(Debug, PartialEq, Eq)]
pub struct Glance {
    kernel: Vec<u64>,
    mounts: Vec<u8>,
    names: Vec<(Box<[u8]>, PathBuf)>,
}

impl Glance {
    /// One look; `kernel` are the numbers that the kernel told. A file and a directory, some 50 µs. `None` where a tape
    /// is written or read, which has every round whole, and where the mounts cannot be read.
    pub fn take(host: &Host, kernel: Vec<u64>) -> Option<Glance> {
        if host.mode() != Mode::Live {
            return None;
        }
        let mut mounts = Vec::new();
        fs::read_file(&host.real_path("/proc/self/mountinfo"), &mut mounts).ok()?;
        let names = netns::named().into_iter().map(|(name, path)| (Box::from(&name[..]), path)).collect();
        Some(Glance { kernel, mounts, names })
    }
}

impl Namespaces {
    /// True if no process can have changed how these are entered or called: each has a file and a name that was given,
    /// or the process that it goes by is still in it. One that nothing leads to may get a process any time.
    pub fn are_settled(&self, host: &Host) -> bool {
        self.list.iter().all(|namespace| match namespace.pid {
            _ if namespace.is_given && namespace.path().is_some() => true,
            Some(pid) => is_in(host, pid, namespace),
            None => false,
        })
    }
}

fn is_in(host: &Host, pid: u32, namespace: &Namespace) -> bool {
    let mut target = Vec::new();
    let read = fs::read_link(&host.proc_path(&format!("{pid}/ns/net")), &mut target);
    read.is_ok() && inode_in(&target) == Some(namespace.inode)
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
        let settled = |namespace| Namespaces { list: vec![namespace], hidden: 0 }.are_settled(&host);
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
        let glance = |kernel: &[u64]| Glance::take(&host, kernel.to_vec()).map(|glance| glance.kernel);
        assert_eq!(glance(&[1, 2]), Some(vec![1, 2]));
        assert_ne!(Glance::take(&host, vec![1]), Glance::take(&host, vec![1, 2]));
    }
}
