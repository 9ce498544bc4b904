//! Where the table of connection tracking is, and whether it is still there.
//!
//! Nothing tells where it is: it is no symbol that every kernel shows. But whoever reads /proc/net/nf_conntrack has it
//! noted in the open file ([`CtTableFile`]), and a BPF program finds our open file. Reading it anew shows a table of
//! another size, and waits for a change of size that is under way.
//!
//! That reading stops at the first entry of one's own, so where there is hardly one it goes through the whole table.
//! And the same size at the same address is not the same table: after some resizes the kernel hands out that memory
//! again. [`CtVariables`] tells for certain, and costs next to nothing.
use std::os::fd::AsRawFd;

use sys::clock::thread_cpu_ns;
use sys::{Errno, Fd, Host, SysError, fs, socket};

/// What distributions build connection tracking as; its types are in a file of that name.
pub(crate) const MODULE: &str = "nf_conntrack";

/// A reading that takes so long at most is cheap; any other may take no more than a fourth of the time since.
const LOOK_CHEAP_NS: u64 = 1_000_000;
const LOOK_SHARE: u64 = 4;

/// Where the table is and how large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CtTable {
    pub(crate) address: u64,
    pub(crate) buckets: u32,
}

/// /proc/net/nf_conntrack, open.
#[derive(Debug)]
pub(crate) struct CtTableFile {
    file: Fd,
    /// When it was read last, and what that takes at least (sometimes it waits for a change of size); ns of CPU.
    looked: u64,
    takes: u64,
}

impl CtTableFile {
    /// The file of the namespace that the calling thread is in.
    pub(crate) fn open(host: &Host) -> Result<CtTableFile, SysError> {
        let file = fs::open(&host.proc_path("thread-self/net/nf_conntrack"))?;
        Ok(CtTableFile { file, looked: 0, takes: u64::MAX })
    }

    /// By which the program finds it.
    pub(crate) fn number(&self) -> u32 {
        self.file.as_raw_fd().unsigned_abs()
    }

    /// Has the kernel note the table anew.
    pub(crate) fn look(&mut self) -> Result<(), SysError> {
        let begin = thread_cpu_ns();
        let read = fs::read_at(&self.file, &mut [0], 0);
        read.map_err(|errno| SysError::new("pread64", "/proc/net/nf_conntrack", errno))?;
        self.looked = thread_cpu_ns();
        self.takes = self.takes.min(self.looked.saturating_sub(begin));
        Ok(())
    }

    /// Whether reading it costs little.
    pub(crate) fn is_cheap(&self) -> bool {
        self.takes < LOOK_CHEAP_NS
    }

    /// Whether reading it again costs little, altogether.
    pub(crate) fn is_due(&self) -> bool {
        let since = thread_cpu_ns().saturating_sub(self.looked);
        self.is_cheap() || since >= self.takes.saturating_mul(LOOK_SHARE)
    }
}

/// IPPROTO_IP, and SO_ORIGINAL_DST of include/uapi/linux/netfilter_ipv4.h.
const SOL_IP: i32 = 0;
const ORIGINAL_DST: i32 = 80;

/// The kernel's variables of connection tracking, among them the count of resizes: while they are unchanged, the table
/// is the same one. The BPF program finds them by the module's parameter `hashsize` and hashes them.
///
/// A hash belongs to a table if it is the same before and after a wait for the end of any resize. A look-up of an entry
/// waits for that (`nf_conntrack_get_ht`, under `nf_conntrack_generation`), and every user may ask for one: for a
/// socket's address before NAT.
#[derive(Debug)]
pub(crate) struct CtVariables {
    hashsize: Fd,
    socket: Fd,
}

impl CtVariables {
    /// `None` where they cannot be had.
    pub(crate) fn open(host: &Host) -> Option<CtVariables> {
        let hashsize = fs::open(&host.sys_path("module/nf_conntrack/parameters/hashsize")).ok()?;
        let variables = CtVariables { hashsize, socket: socket::open(socket::AF_INET, socket::SOCK_STREAM, 0).ok()? };
        variables.wait().then_some(variables)
    }

    /// The open parameter, by which the program finds them.
    pub(crate) fn number(&self) -> u32 {
        self.hashsize.as_raw_fd().unsigned_abs()
    }

    /// Waits for the end of a resize that is under way. One system call; false if the kernel looks nothing up.
    pub(crate) fn wait(&self) -> bool {
        // The socket has no address, and no entry is like that.
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
        lab.inside(|| {
            let host = Host::live();
            assert!(CtVariables::open(&host).unwrap().wait());
            let mut reader = CtTableFile::open(&host).unwrap();
            reader.look().unwrap();
            assert!(reader.takes < u64::MAX);
        });
    }
}
