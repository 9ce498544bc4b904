//! Sizes of the table, from two sysctls.
use std::path::PathBuf;

use sys::{Errno, Fd, Host, NetNs, SysError, netns};

use crate::table::NetnsRef;

/// Buffer size for a number and its newline.
const NUMBER: usize = 32;

/// A sysctl of connection tracking that is read repeatedly: the file stays open.
pub(crate) struct Size<'h> {
    host: &'h Host,
    netns: Option<&'h NetNs>,
    /// Name in the recording. It contains the namespace's number, because the value depends on the namespace.
    key: String,
    path: PathBuf,
    file: Option<Fd>,
    text: Vec<u8>,
}

impl<'h> Size<'h> {
    /// Buckets of the host's hash table. The kernel reports the size in use and changes it under the same locks under
    /// which it moves the entries (nf_conntrack_hash_resize, 6.18).
    pub(crate) fn of_buckets(host: &'h Host, place: NetnsRef<'h>) -> Size<'h> {
        Size::new(host, place, "nf_conntrack_buckets")
    }

    /// Entries of the namespace, expired ones included.
    pub(crate) fn of_entries(host: &'h Host, place: NetnsRef<'h>) -> Size<'h> {
        Size::new(host, place, "nf_conntrack_count")
    }

    fn new(host: &'h Host, place: NetnsRef<'h>, name: &str) -> Size<'h> {
        let path = format!("/proc/sys/net/netfilter/{name}");
        Size {
            host,
            netns: place.netns,
            key: format!("{path}@{}", place.netns_id),
            path: host.real_path(&path),
            file: None,
            text: Vec::with_capacity(NUMBER),
        }
    }

    /// The current number; `None` without connection tracking. One system call, three the first time.
    pub(crate) fn read(&mut self) -> Option<u64> {
        let (file, path, netns) = (&mut self.file, &self.path, self.netns);
        let failed = |errno| SysError::on_bytes("read", path.as_os_str().as_encoded_bytes(), errno);
        let read = self.host.bytes(&self.key, "", &mut self.text, |into| {
            let fd = match file {
                Some(fd) => fd,
                None => file.insert(netns::run_within(netns, || sys::fs::open(path))??),
            };
            into.resize(NUMBER, 0);
            let got = sys::fs::read_at(fd, into, 0).map_err(failed)?;
            if got == 0 {
                return Err(failed(Errno::INVAL));
            }
            into.truncate(got);
            Ok(())
        });
        read.ok()?;
        std::str::from_utf8(&self.text).ok()?.trim().parse().ok()
    }
}
