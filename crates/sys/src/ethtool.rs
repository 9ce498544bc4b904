//! Queries to the drivers of interfaces via ioctl (include/uapi/linux/ethtool.h, net_tstamp.h).
use std::mem::size_of;
use std::ptr::NonNull;

use crate::errno::{Errno, SysError};
use crate::fd::Fd;
use crate::kernel::page_bytes;
use crate::socket;
use crate::syscall::call;

/// include/uapi/linux/sockios.h
pub(crate) const SIOCETHTOOL: libc::Ioctl = 0x8946;

// include/uapi/linux/ethtool.h
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSTATS: u32 = 0x1d;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETH_SS_STATS: u32 = 1;
/// Size of a statistic's name in bytes, padded with zeros.
pub const STATISTIC_NAME_BYTES: usize = 32;

/// Maximum number of statistics read per interface: the largest drivers have some thousands (a few per queue).
///
/// Bound: statistics of an interface that its driver reports. Beyond: the statistics of this interface are left out and
/// counted (exit code 3). By: anyone who may change the queues of an interface.
pub const STATISTICS_MAX: usize = 16_384;

/// Size of a name in bytes, including its terminating zero (include/uapi/linux/if.h).
const IFNAMSIZ: usize = 16;

/// `struct ifreq` with a pointer, padded to its 40 bytes.
#[repr(C)]
struct NamedRequest {
    name: [u8; IFNAMSIZ],
    value: *mut libc::c_void,
    rest: [u64; 2],
}

const _: () = assert!(size_of::<NamedRequest>() == 40 || size_of::<usize>() != 8);

/// Queries the driver of `iface`, an interface of the socket's network namespace.
///
/// # Safety
/// `value` points to live, exclusively borrowed memory in which the kernel may write everything that this command
/// writes.
pub(crate) unsafe fn query(
    socket: i32,
    command: libc::Ioctl,
    iface: &[u8],
    value: *mut libc::c_void,
) -> Result<(), Errno> {
    let mut request = NamedRequest { name: [0; IFNAMSIZ], value, rest: [0; 2] };
    let place = request.name.get_mut(..iface.len()).filter(|_| iface.len() < IFNAMSIZ);
    place.ok_or(Errno(libc::ENODEV))?.copy_from_slice(iface);
    // SAFETY: `request` is live for the whole call, and the kernel reads 40 bytes of it; the caller guarantees
    // `value`.
    call("ioctl", || unsafe { libc::ioctl(socket, command, &raw mut request) }.into()).map(|_| ())
}

/// Memory that the kernel may fill beyond the requested length: it is followed by a page that cannot be written.
///
/// Kernels ignore the size of the buffer: they write as many statistics as the driver has at that moment, which may be
/// more than it had at the previous query. A write beyond this memory fails with EFAULT.
#[derive(Debug)]
struct GuardedMemory {
    start: NonNull<u8>,
    /// Number of writable bytes, and number of mapped bytes.
    bytes: usize,
    mapped: usize,
}

impl GuardedMemory {
    fn new(bytes: usize) -> Result<GuardedMemory, Errno> {
        let page = page_bytes();
        let bytes = bytes.div_ceil(page) * page;
        let (mapped, flags) = (bytes + page, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE);
        // SAFETY: a new mapping at an address that the kernel chooses overlaps no memory of ours.
        let start =
            call("mmap", || unsafe { libc::mmap(std::ptr::null_mut(), mapped, libc::PROT_NONE, flags, -1, 0) as i64 })?;
        let start = NonNull::new(start as *mut u8).ok_or(Errno::NOMEM)?;
        let memory = GuardedMemory { start, bytes, mapped };
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the first `bytes` bytes of the mapping just made, to which no reference exists.
        call("mprotect", || unsafe { libc::mprotect(memory.start.as_ptr().cast(), bytes, rights) }.into())?;
        Ok(memory)
    }

    fn as_mut(&mut self) -> &mut [u8] {
        // SAFETY: the first `bytes` bytes are mapped for reading and writing as long as `self`, zeros at first; `self`
        // is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for GuardedMemory {
    fn drop(&mut self) {
        // SAFETY: made by `new` with this length; no slice outlives `self`.
        let _ = call("munmap", || unsafe { libc::munmap(self.start.as_ptr().cast(), self.mapped) }.into());
    }
}

/// Statistics that drivers keep (`ethtool -S`), for the interfaces of one network namespace.
#[derive(Debug)]
pub struct DriverStatistics {
    socket: Fd,
    memory: GuardedMemory,
}

impl DriverStatistics {
    /// Opens a socket in the calling thread's network namespace, and maps 513 KiB that take no memory until a driver
    /// fills them.
    pub fn open() -> Result<DriverStatistics, SysError> {
        let failed = |errno| SysError::new("socket", "for statistics of drivers", errno);
        // The socket stays unbound: a query to a driver takes no port.
        let socket = socket::open(libc::AF_INET, libc::SOCK_DGRAM, 0).map_err(|error| failed(error.errno))?;
        let memory = GuardedMemory::new(16 + STATISTICS_MAX * STATISTIC_NAME_BYTES).map_err(failed)?;
        Ok(DriverStatistics { socket, memory })
    }

    /// Appends the statistics of `iface`'s driver to `into`: their number as u32, their names of
    /// [`STATISTIC_NAME_BYTES`] bytes each, their values as u64 each. Appends nothing if the driver has no statistics
    /// or the interface no longer exists.
    ///
    /// Takes three ioctls, each under the kernel's lock for all interfaces: about 2 µs for a virtual interface;
    /// drivers that query their adapter take as long as the adapter does. Needs no privilege. EAGAIN if the number of
    /// statistics changed in the meantime; E2BIG if it exceeds [`STATISTICS_MAX`].
    pub fn read(&mut self, iface: &[u8], into: &mut Vec<u8>) -> Result<(), SysError> {
        let failed = |errno| SysError::new("ioctl", "statistics of a driver", errno);
        let count = match self.count(iface) {
            Ok(0) | Err(Errno::OPNOTSUPP | Errno::NODEV) => return Ok(()),
            other => other.map_err(failed)?,
        };
        let many = usize::try_from(count).unwrap_or(usize::MAX);
        if many > STATISTICS_MAX {
            return Err(failed(Errno(libc::E2BIG)));
        }
        let begin = into.len();
        into.extend_from_slice(&count.to_ne_bytes());
        // `struct ethtool_gstrings`: command, set, number, followed by the names.
        let names =
            self.query_words(iface, [ETHTOOL_GSTRINGS, ETH_SS_STATS, count], 2, 12, many * STATISTIC_NAME_BYTES);
        // `struct ethtool_stats`: command, number, followed by the values.
        let read = names.map(|names| into.extend_from_slice(names)).and_then(|()| {
            let values = self.query_words(iface, [ETHTOOL_GSTATS, count, 0], 1, 8, many * 8);
            values.map(|values| into.extend_from_slice(values))
        });
        read.map_err(|errno| {
            into.truncate(begin);
            failed(errno)
        })
    }

    /// The number of statistics that the driver has.
    fn count(&mut self, iface: &[u8]) -> Result<u32, Errno> {
        // `struct ethtool_sset_info`: command, reserved, mask of sets as u64, a number for each set that exists.
        let set = 1 << ETH_SS_STATS;
        let answer = self.ask_with(iface, &[ETHTOOL_GSSET_INFO, 0, set, 0, 0])?;
        let word = |at: usize| answer.get(at * 4..at * 4 + 4).and_then(|word| word.try_into().ok());
        let [is_there, count] = [word(2), word(4)].map(|word| word.map_or(0, u32::from_ne_bytes));
        Ok(if is_there & set == 0 { 0 } else { count })
    }

    /// Sends `words` and returns `len` bytes of the answer from offset `at`. EAGAIN if word `count_at`, the number of
    /// items in the answer, has changed.
    fn query_words(
        &mut self,
        iface: &[u8],
        words: [u32; 3],
        count_at: usize,
        at: usize,
        len: usize,
    ) -> Result<&[u8], Errno> {
        let answer = self.ask_with(iface, &words)?;
        let place = count_at * 4..count_at * 4 + 4;
        let asked = words.get(count_at).map(|count| count.to_ne_bytes());
        if answer.get(place) != asked.as_ref().map(|count| &count[..]) {
            return Err(Errno::AGAIN);
        }
        answer.get(at..at + len).ok_or(Errno::AGAIN)
    }

    fn ask_with(&mut self, iface: &[u8], words: &[u32]) -> Result<&[u8], Errno> {
        let memory = self.memory.as_mut();
        for (place, word) in memory.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        let value = memory.as_mut_ptr().cast();
        // SAFETY: `value` is the beginning of the guarded memory, exclusively borrowed: the kernel writes inside it or
        // fails at the page after it.
        unsafe { query(self.socket.raw(), SIOCETHTOOL, iface, value) }?;
        Ok(memory)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn interfaces_without_statistics_have_none() {
        let mut statistics = DriverStatistics::open().unwrap();
        let mut bytes = vec![7];
        for iface in [&b"lo"[..], b"nobody0", b"a name that is too long"] {
            statistics.read(iface, &mut bytes).unwrap();
        }
        assert_eq!(bytes, [7]);
    }

    #[test]
    fn the_page_after_the_memory_stops_the_kernel() {
        let mut memory = GuardedMemory::new(1).unwrap();
        let (bytes, start) = (memory.bytes, memory.as_mut().as_mut_ptr());
        let read = |into: *mut u8, len: usize| {
            let file = std::fs::File::open("/dev/zero").unwrap();
            // SAFETY: the kernel writes into the mapping or not at all: it is followed by the page that cannot be
            // written.
            unsafe { libc::read(file.as_raw_fd(), into.cast(), len) }
        };
        assert_eq!(read(start, bytes + 1), isize::try_from(bytes).unwrap(), "no byte more");
        assert_eq!(read(start.wrapping_add(bytes), 1), -1);
    }
}
