//! Finds the address of the conntrack table, and detects whether it has been replaced.
//!
//! The kernel does not publish the address: it is not a symbol that every kernel shows. But reading
//! /proc/net/nf_conntrack stores it in the open file ([`CtTableFile`]), and a BPF program can find our open file.
//! Reading the file again shows whether the table has been resized, and waits for a resize that is in progress.
//!
//! Such a read stops at the first entry of the reader's namespace, so if there are hardly any it goes through the
//! whole table. And the same size at the same address does not prove that it is the same table: after some resizes the
//! kernel reuses that memory. [`CtVariables`] gives a certain answer and costs next to nothing.
use std::os::fd::AsRawFd;

use sys::clock::thread_cpu_ns;
use sys::{Errno, Fd, Host, Share, SysError, fs, socket};

/// Name of the conntrack module in distribution kernels; its types are in a file of that name.
pub(crate) const MODULE: &str = "nf_conntrack";

/// A read that takes at most this long is cheap; other reads may take one part in `READ_SHARE` of the time.
const CHEAP_READ_NS: u64 = 1_000_000;
const READ_SHARE: u64 = 5;

/// Address and size of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CtTable {
    pub(crate) address: u64,
    pub(crate) buckets: u32,
}

/// /proc/net/nf_conntrack, open.
#[derive(Debug)]
pub(crate) struct CtTableFile {
    file: Fd,
    /// Time of the last read, and the minimum duration of a read (sometimes it waits for a resize); ns of CPU time.
    looked: u64,
    takes: u64,
}

impl CtTableFile {
    /// Opens the file for the calling thread's namespace.
    pub(crate) fn open(host: &Host) -> Result<CtTableFile, SysError> {
        let file = fs::open(&host.proc_path("thread-self/net/nf_conntrack"))?;
        Ok(CtTableFile { file, looked: 0, takes: u64::MAX })
    }

    /// The descriptor, by which the program finds the open file.
    pub(crate) fn number(&self) -> u32 {
        self.file.as_raw_fd().unsigned_abs()
    }

    /// Makes the kernel store the current table in the open file.
    pub(crate) fn refresh(&mut self) -> Result<(), SysError> {
        let begin = thread_cpu_ns();
        let read = fs::read_at(&self.file, &mut [0], 0);
        read.map_err(|errno| SysError::new("pread64", "/proc/net/nf_conntrack", errno))?;
        self.looked = thread_cpu_ns();
        self.takes = self.takes.min(self.looked.saturating_sub(begin));
        Ok(())
    }

    /// True if a read costs little.
    pub(crate) fn is_cheap(&self) -> bool {
        self.takes < CHEAP_READ_NS
    }

    /// True if another read costs little in total.
    pub(crate) fn is_due(&self) -> bool {
        let since = thread_cpu_ns().saturating_sub(self.looked);
        self.is_cheap() || since >= Share::pause_ns(READ_SHARE, self.takes)
    }
}

/// IPPROTO_IP, and SO_ORIGINAL_DST of include/uapi/linux/netfilter_ipv4.h.
const SOL_IP: i32 = 0;
const ORIGINAL_DST: i32 = 80;

/// The kernel's conntrack variables, among them the count of resizes: while they are unchanged, the table is the same
/// one. The BPF program finds them via the module parameter `hashsize` and hashes them.
///
/// A hash belongs to a table if it is the same before and after waiting for the end of any resize. Looking up an entry
/// waits for that (`nf_conntrack_get_ht`, under `nf_conntrack_generation`), and every user may trigger a lookup by
/// asking for a socket's address before NAT.
#[derive(Debug)]
pub(crate) struct CtVariables {
    hashsize: Fd,
    socket: Fd,
}

impl CtVariables {
    /// Opens the parameter; `None` if the variables are unavailable.
    pub(crate) fn open(host: &Host) -> Option<CtVariables> {
        let hashsize = fs::open(&host.sys_path("module/nf_conntrack/parameters/hashsize")).ok()?;
        let variables = CtVariables { hashsize, socket: socket::open(socket::AF_INET, socket::SOCK_STREAM, 0).ok()? };
        variables.wait().then_some(variables)
    }

    /// The descriptor of the parameter, by which the program finds the variables.
    pub(crate) fn number(&self) -> u32 {
        self.hashsize.as_raw_fd().unsigned_abs()
    }

    /// Waits for the end of a resize that is in progress. One system call; false if the kernel performs no lookup.
    pub(crate) fn wait(&self) -> bool {
        // The socket has no address, so no entry matches.
        socket::get_bytes(&self.socket, SOL_IP, ORIGINAL_DST, &mut [0; 16]) == Err(Errno::NOENT)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn root_the_table_is_looked_up_and_read() {
        testkit::require_root!();
        let lab = testkit::netns::Lab::new("variables");
        lab.run_inside(|| {
            let host = Host::live();
            assert!(CtVariables::open(&host).unwrap().wait());
            let mut reader = CtTableFile::open(&host).unwrap();
            reader.refresh().unwrap();
            assert!(reader.takes < u64::MAX);
        });
    }
}
