//! Sockets among the files that are registered with an io_uring.
//!
//! A process may register a socket and close its descriptor, or accept connections into the ring's table right away:
//! then /proc/PID/fd has the ring, and the ring's /proc/PID/fdinfo/N has the sockets. Since Linux 6.14 that file names
//! their inodes; before, it only has the names of their protocols. The kernel writes it while it holds the ring's lock,
//! and leaves the files out if a thread of the process holds that lock.
use sys::Host;

use super::index::Gather;
use super::process::FdTable;
use super::report::{OwnersReport, RingRefusal};
use super::walk::socket_inode;

/// Maximum number of io_urings that are read.
///
/// Bound: io_urings whose registered sockets are known. Beyond: sockets registered with further io_urings have no
/// owner; reported (exit code 3). This also affects other users. By: a user with as many io_urings.
const RINGS_MAX: u32 = 4096;

/// Maximum size of their files together. A registered socket takes some 25 bytes.
///
/// Bound: bytes in which the kernel lists the files registered with io_urings. Beyond: sockets registered with further
/// io_urings have no owner; reported (exit code 3). This also affects other users. By: a user with 2.5 million
/// registered files.
const BYTES_MAX: usize = 64 << 20;

/// Attempts to read a ring while a thread of its process holds the lock.
const ATTEMPTS: u32 = 4;

/// The first kernel that writes nothing at all if the ring is locked (`io_uring_show_fdinfo`). Earlier kernels then
/// write the size of the table without its files.
const WHOLE_OR_NOTHING: (u32, u32) = (6, 15);

/// Names of sockets of old kernels: `sk_prot_creator->name`.
const PROTOCOLS: [&[u8]; 20] = [
    b"TCP",
    b"TCPv6",
    b"UDP",
    b"UDPv6",
    b"UDP-Lite",
    b"UDPLITEv6",
    b"RAW",
    b"RAWv6",
    b"PING",
    b"PINGv6",
    b"MPTCP",
    b"MPTCPv6",
    b"UNIX",
    b"UNIX-STREAM",
    b"UNIX-DGRAM",
    b"NETLINK",
    b"PACKET",
    b"SCTP",
    b"SCTPv6",
    b"AF_VSOCK",
];

/// Adds the sockets that are registered with the io_urings in `gather`. A ring costs 10 µs, and 1 µs more for each
/// registered file, during which its process cannot submit anything to it.
pub(super) fn add_registered(host: &Host, gather: &mut Gather, report: &mut OwnersReport) {
    let is_whole = host.kernel().version() >= WHOLE_OR_NOTHING;
    let (mut text, mut rings, mut bytes) = (Vec::new(), 0, 0);
    gather.add_registered(|table, fd, each| {
        rings += 1;
        let is_over = rings > RINGS_MAX || bytes >= BYTES_MAX;
        let read = if is_over { Err(RingRefusal::TooMany) } else { read(host, table, fd, is_whole, &mut text) };
        bytes += text.len();
        match read {
            Ok(()) => registered(&text).filter_map(socket_inode).for_each(each),
            // The process has ended, or closed the ring.
            Err(RingRefusal::Failed(errno)) if errno.is_missing_object() => {}
            Err(refusal) => {
                report.rings_unread += 1;
                report.ring_refusal.get_or_insert(refusal);
            }
        }
    });
}

/// Reads the file of a ring that lists its registered files.
fn read(host: &Host, table: &FdTable, fd: u32, is_whole: bool, text: &mut Vec<u8>) -> Result<(), RingRefusal> {
    let FdTable { pid, tid, .. } = *table;
    let path = format!("/proc/{pid}/task/{tid}/fdinfo/{fd}");
    for _ in 0..ATTEMPTS {
        host.read_file(&path, text).map_err(|error| RingRefusal::Failed(error.errno))?;
        if registered(text).any(|name| PROTOCOLS.contains(&name)) {
            return Err(RingRefusal::Nameless);
        }
        match table_size(text) {
            Some(0) => return Ok(()),
            Some(_) if is_whole || registered(text).next().is_some() => return Ok(()),
            _ => std::thread::yield_now(),
        }
    }
    Err(RingRefusal::Busy)
}

const TABLE: &[u8] = b"UserFiles:";

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n')
}

/// Returns the size of the table of registered files; `None` if the kernel left it out.
fn table_size(text: &[u8]) -> Option<u32> {
    let size = lines(text).find_map(|line| line.strip_prefix(TABLE))?;
    std::str::from_utf8(size.trim_ascii()).ok()?.parse().ok()
}

/// Returns the names of the registered files, from lines like `    3: socket:[4711]`.
fn registered(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let name = |line| {
        let colon = <[u8]>::iter(line).position(|byte| *byte == b':')?;
        let (number, name) = line.split_at_checked(colon)?;
        let is_number = number.trim_ascii().iter().all(u8::is_ascii_digit);
        is_number.then(|| name.strip_prefix(b": ").unwrap_or_default())
    };
    lines(text).skip_while(|line| !line.starts_with(TABLE)).skip(1).map_while(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Linux 6.18 writes it.
    const TEXT: &[u8] = b"pos:\t0\nflags:\t02000002\nmnt_id:\t16\nino:\t2052\nSqMask:\t0x7\nSqHead:\t0\nSQEs:\t1\n\
        0: opcode:NOP, fd:-1\nCQEs:\t0\nSqThread:\t-1\nUserFiles:\t5\n    0: socket:[4711]\n    2: /tmp/a\\040b:\\134\n\
        \x20   3: socket:[8]\n    4: pipe:[9]\nUserBufs:\t1\n    0: 0x7f0000000000/4096\nPollList:\n";

    #[test]
    fn sockets_among_registered_files() {
        let names: Vec<_> = registered(TEXT).collect();
        assert_eq!(names, [&b"socket:[4711]"[..], b"/tmp/a\\040b:\\134", b"socket:[8]", b"pipe:[9]"]);
        assert_eq!(names.into_iter().filter_map(socket_inode).collect::<Vec<_>>(), [4711, 8]);
        assert_eq!((table_size(TEXT), table_size(b"pos:\t0\n"), table_size(b"UserFiles:\tx")), (Some(5), None, None));
        assert_eq!((registered(b"pos:\t0\n").count(), registered(b"UserFiles:\t3").count()), (0, 0));
    }

    /// Reads a ring with this text; returns its number of sockets.
    fn read_text(text: &str, is_whole: bool) -> Result<usize, RingRefusal> {
        let tmp = tempfile::tempdir().map_err(|_| RingRefusal::Busy)?;
        let dir = tmp.path().join("7/task/7/fdinfo");
        let written = std::fs::create_dir_all(&dir).and_then(|()| std::fs::write(dir.join("5"), text));
        written.map_err(|_| RingRefusal::Busy)?;
        let host = Host::with_roots(tmp.path().into(), "/sys".into(), "/etc".into());
        let table = FdTable { pid: 7, tid: 7, ..FdTable::default() };
        let mut bytes = Vec::new();
        read(&host, &table, 5, is_whole, &mut bytes)?;
        Ok(registered(&bytes).filter_map(socket_inode).count())
    }

    #[test]
    fn what_the_kernel_does_not_tell_is_unknown() {
        let busy = Err(RingRefusal::Busy);
        assert_eq!(read_text("pos:\t0\n", true), busy, "locked, since 6.15");
        assert_eq!(read_text("UserFiles:\t3\nUserBufs:\t0\n", false), busy, "locked, before");
        assert_eq!(read_text("UserFiles:\t3\nUserBufs:\t0\n", true), Ok(0), "a table of free places");
        assert_eq!(read_text("UserFiles:\t0\nUserBufs:\t0\n", false), Ok(0));
        assert_eq!(read_text("UserFiles:\t2\n    0: <none>\n    1: data.log\nUserBufs:\t0\n", false), Ok(0));
        assert_eq!(read_text("UserFiles:\t2\n    0: data.log\n    1: TCPv6\n", false), Err(RingRefusal::Nameless));
        assert_eq!(read_text("UserFiles:\t2\n    1: socket:[9]\n", true), Ok(1));
    }
}
