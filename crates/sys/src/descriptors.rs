//! Messages that carry open files (SCM_RIGHTS, unix(7)).
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use crate::errno::Errno;
use crate::fd::Fd;
use crate::syscall::{call, length, retry};

/// Maximum number of files in one message; the kernel accepts 253 (SCM_MAX_FD).
pub const FILES_MAX: usize = 64;
/// Number of eight-byte words for a control message with that many files: a header of 16 bytes and 4 bytes per file.
const CONTROL_WORDS: usize = (16 + 4 * FILES_MAX) / 8;

/// Sends bytes and at most [`FILES_MAX`] files over a socket, to `address` (a sockaddr) unless it is empty.
pub(crate) fn send_with(
    socket: &impl AsFd,
    address: &[u8],
    bytes: &[u8],
    files: &[BorrowedFd<'_>],
) -> Result<(), Errno> {
    let raw: Vec<i32> = files.iter().map(AsRawFd::as_raw_fd).collect();
    if raw.len() > FILES_MAX {
        return Err(Errno::INVAL);
    }
    let size = size_of_val(raw.as_slice());
    let mut control = [0u64; CONTROL_WORDS];
    // SAFETY: msghdr holds integers and pointers, for which all bits zero is a value.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    if !address.is_empty() {
        header.msg_name = address.as_ptr().cast_mut().cast();
        header.msg_namelen = address.len() as libc::socklen_t;
    }
    if !raw.is_empty() {
        header.msg_control = control.as_mut_ptr().cast();
        // SAFETY: both only compute lengths; FILES_MAX files fit into `control`.
        let (space, whole) = unsafe { (libc::CMSG_SPACE(size as u32), libc::CMSG_LEN(size as u32)) };
        header.msg_controllen = space as _;
        // SAFETY: `header` has `space` bytes of control messages, all ours: the first one's head and the `size` bytes
        // after it lie within, as CMSG_SPACE guarantees.
        unsafe {
            let first = libc::CMSG_FIRSTHDR(&raw const header);
            (*first).cmsg_level = libc::SOL_SOCKET;
            (*first).cmsg_type = libc::SCM_RIGHTS;
            (*first).cmsg_len = whole as _;
            std::ptr::copy_nonoverlapping(raw.as_ptr().cast::<u8>(), libc::CMSG_DATA(first), size);
        }
    }
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: `header` points to `address`, `part`, `bytes` and `control`, which are alive; the kernel only reads them.
    let sent = retry("sendmsg", || unsafe { libc::sendmsg(fd, &raw const header, libc::MSG_NOSIGNAL) } as i64)?;
    if length(sent, bytes.len()) == bytes.len() { Ok(()) } else { Err(Errno::MSGSIZE) }
}

/// Sends bytes and files over a connection; `bytes` must not be empty.
pub fn send_files(connection: &UnixStream, bytes: &[u8], files: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    send_with(connection, &[], bytes, files)
}

/// Receives bytes into `into` and appends the files that came with them; returns the number of bytes, 0 at the end.
pub fn receive_files(connection: &impl AsFd, into: &mut [u8], files: &mut Vec<OwnedFd>) -> Result<usize, Errno> {
    let mut control = [0u64; CONTROL_WORDS];
    // SAFETY: msghdr holds integers and pointers, for which all bits zero is a value.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    let most = into.len();
    let mut part = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: most };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = size_of_val(&control) as _;
    let fd = connection.as_fd().as_raw_fd();
    let flags = libc::MSG_CMSG_CLOEXEC;
    // SAFETY: `header` points to `part`, to `most` exclusively borrowed bytes and to `control`, which are alive.
    let got = call("recvmsg", || unsafe { libc::recvmsg(fd, &raw mut header, flags) } as i64)?;
    // SAFETY: recvmsg has filled in `header`; `control` is alive.
    unsafe { take_files(&header, files) };
    Ok(length(got, most))
}

/// Takes the files out of a received header.
///
/// # Safety
/// `header` was filled in by recvmsg, its control messages are alive, and this is called once for it.
unsafe fn take_files(header: &libc::msghdr, files: &mut Vec<OwnedFd>) {
    // SAFETY: the caller guarantees the header; the result is null or lies in the control messages.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(header) };
    // SAFETY: as above.
    while let Some(message) = unsafe { next.as_ref() } {
        // SAFETY: only computes a length.
        let head = unsafe { libc::CMSG_LEN(0) } as usize;
        if message.cmsg_level == libc::SOL_SOCKET && message.cmsg_type == libc::SCM_RIGHTS {
            // glibc uses size_t there, musl a shorter type.
            #[allow(clippy::unnecessary_cast)]
            let count = (message.cmsg_len as usize).saturating_sub(head) / size_of::<i32>();
            // SAFETY: the kernel put `count` descriptors there, which now belong to this process alone.
            let raw = unsafe { libc::CMSG_DATA(next).cast::<i32>() };
            for index in 0..count {
                // SAFETY: `index` is below `count`; read without alignment; the descriptor is ours alone.
                files.push(unsafe { Fd::take(raw.add(index).read_unaligned().into()) }.into());
            }
        }
        // SAFETY: `next` is a control message of `header`.
        next = unsafe { libc::CMSG_NXTHDR(header, next) };
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn files_arrive_with_their_bytes() {
        let (here, there) = UnixStream::pair().unwrap();
        let (mut pipe_in, pipe_out) = UnixStream::pair().unwrap();
        send_files(&here, b"one", &[pipe_out.as_fd()]).unwrap();
        send_files(&here, b"none", &[]).unwrap();
        drop((here, pipe_out));
        let (mut into, mut files) = ([0; 3], Vec::new());
        assert_eq!((receive_files(&there, &mut into, &mut files), files.len(), &into), (Ok(3), 1, b"one"));
        let mut rest = [0; 9];
        assert_eq!((receive_files(&there, &mut rest, &mut files), files.len()), (Ok(4), 1));
        assert_eq!(receive_files(&there, &mut rest, &mut files), Ok(0));
        std::fs::File::from(files.remove(0)).write_all(b"through").unwrap();
        let mut text = String::new();
        pipe_in.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through");
        let many = vec![there.as_fd(); FILES_MAX + 1];
        assert_eq!(send_files(&there, b"x", &many), Err(Errno::INVAL));
    }
}
