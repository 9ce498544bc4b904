//! Where the table of connection tracking is, and whether it is still there.
//!
//! Nothing tells where it is: it is no symbol that the kernel shows. But whoever reads /proc/net/nf_conntrack has it
//! noted in the open file ([`CtTableFile`]), and a BPF program finds our open file. Reading it anew shows a table of
//! another size, and waits for a change of size that is under way.
//!
//! That reading stops at the first entry of one's own, so where there is hardly one it goes through the whole table.
//! [`ResizeProbe`] does the same by two cheap calls, but does not tell the address.
use std::os::fd::AsRawFd;

use sys::clock::thread_cpu_ns;
use sys::{Errno, Fd, Host, NetlinkSocket, SysError, fs};

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

/// NETLINK_NETFILTER.
const NETFILTER: i32 = 12;
/// A request of ctnetlink for the entry UDP 0.0.0.0:0 > 0.0.0.0:0, which nobody has (IPCTNL_MSG_CT_GET;
/// CTA_TUPLE_ORIG of CTA_TUPLE_IP and CTA_TUPLE_PROTO): `struct nlmsghdr`, `struct nfgenmsg`, attributes.
const LOOK_UP: [u8; 72] = {
    const fn attr(bytes: &mut [u8; 72], at: usize, length: u8, kind: u8, is_nested: bool) {
        let [low, high] = (kind as u16 | if is_nested { 0x8000 } else { 0 }).to_ne_bytes();
        let [short, long] = (length as u16).to_ne_bytes();
        (bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]) = (short, long, low, high);
    }
    let mut bytes = [0; 72];
    // Length 72; message 1 of subsystem 1; NLM_F_REQUEST.
    attr(&mut bytes, 0, 72, 0, false);
    let [low, high] = 0x0101u16.to_ne_bytes();
    (bytes[4], bytes[5]) = (low, high);
    let [low, high] = 1u16.to_ne_bytes();
    (bytes[6], bytes[7]) = (low, high);
    // AF_INET.
    bytes[16] = 2;
    attr(&mut bytes, 20, 52, 1, true);
    attr(&mut bytes, 24, 20, 1, true);
    attr(&mut bytes, 28, 8, 1, false);
    attr(&mut bytes, 36, 8, 2, false);
    attr(&mut bytes, 44, 28, 2, true);
    attr(&mut bytes, 48, 5, 1, false);
    bytes[52] = 17;
    attr(&mut bytes, 56, 6, 2, false);
    attr(&mut bytes, 64, 6, 3, false);
    bytes
};
/// Where an answer says the error (`struct nlmsgerr`).
const ERROR_AT: usize = 16;

/// Tells the size of the table once no change of it is under way.
///
/// A look-up waits for the end of a change (`nf_conntrack_get_ht`, under `nf_conntrack_generation`), and then the
/// sysctl tells the new size. Needs CAP_NET_ADMIN and ctnetlink.
#[derive(Debug)]
pub(crate) struct ResizeProbe {
    socket: NetlinkSocket,
    size: Fd,
}

impl ResizeProbe {
    /// `None` where it cannot be had.
    pub(crate) fn open(host: &Host) -> Option<ResizeProbe> {
        let size = fs::open(&host.proc_path("sys/net/netfilter/nf_conntrack_buckets")).ok()?;
        let resize_probe = ResizeProbe { socket: NetlinkSocket::open(NETFILTER).ok()?, size };
        resize_probe.buckets().map(|_| resize_probe)
    }

    /// Buckets of the table. Four system calls.
    pub(crate) fn buckets(&self) -> Option<u32> {
        self.socket.send(&LOOK_UP).ok()?;
        let mut answer = [0; 256];
        let length = self.socket.recv(&mut answer).ok()?;
        let error = answer.get(..length)?.get(ERROR_AT..)?.first_chunk()?;
        if i32::from_ne_bytes(*error) != -Errno::NOENT.0 {
            return None;
        }
        let mut text = [0; 16];
        let length = fs::read_at(&self.size, &mut text, 0).ok()?;
        std::str::from_utf8(text.get(..length)?).ok()?.trim().parse().ok()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use sys::caps::Cap;

    #[test]
    fn root_the_witness_tells_the_size() {
        testkit::require_root!();
        let lab = testkit::netns::Lab::new("witness");
        lab.inside(|| {
            let host = Host::live();
            let resize_probe = ResizeProbe::open(&host).unwrap();
            for _ in 0..5 {
                let buckets = resize_probe.buckets().unwrap();
                assert!(buckets >= 512 && buckets % 512 == 0);
            }
            let mut reader = CtTableFile::open(&host).unwrap();
            reader.look().unwrap();
            assert!(reader.takes < u64::MAX);
        });
    }

    #[test]
    fn root_without_the_right_there_is_no_witness() {
        testkit::require_root!();
        let refused = std::thread::spawn(|| {
            sys::sandbox::drop_caps(&[Cap::NetAdmin]).unwrap();
            ResizeProbe::open(&Host::live()).is_none()
        });
        assert!(refused.join().unwrap());
    }
}
