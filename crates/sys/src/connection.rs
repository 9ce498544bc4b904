//! The state of a TCP connection in the kernel: how much the other end has not acknowledged, and how much it accepts.
//! Non-blocking sending and receiving.
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::errno::Errno;
use crate::socket;
use crate::syscall::{call, length};

/// Offsets in struct tcp_info (include/uapi/linux/tcp.h): `tcpi_bytes_acked` (since 4.1) and `tcpi_snd_wnd` (since
/// 5.4).
const BYTES_ACKED: usize = 120;
const SND_WND: usize = 228;

/// Number of written bytes that the other end's kernel has not acknowledged (SIOCOUTQ, tcp(7)). One system call.
pub fn unacknowledged(connection: BorrowedFd<'_>) -> Result<u64, Errno> {
    let mut bytes: libc::c_int = 0;
    let to = &raw mut bytes;
    // SAFETY: TIOCOUTQ, which is SIOCOUTQ, writes one int to `to`, which is ours.
    call("ioctl", || unsafe { libc::ioctl(connection.as_raw_fd(), libc::TIOCOUTQ, to) }.into())?;
    Ok(u64::try_from(bytes).unwrap_or(0))
}

/// The progress of a connection's other end at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PeerProgress {
    /// Bytes that its kernel has acknowledged since the connection was opened.
    pub acknowledged: u64,
    /// The receive window that it announced, in bytes.
    pub window: u32,
}

/// The progress of the other end; an error on kernels before 5.4. Also works for a connection that was reset. One
/// system call.
pub fn peer_progress(connection: BorrowedFd<'_>) -> Result<PeerProgress, Errno> {
    let mut info = [0u8; SND_WND + 4];
    let (to, mut size) = (info.as_mut_ptr().cast(), info.len() as libc::socklen_t);
    let (level, option) = (libc::IPPROTO_TCP, libc::TCP_INFO);
    let fd = connection.as_raw_fd();
    // SAFETY: `to` points to `size` bytes that are ours; the kernel writes no more and stores their number in `size`.
    call("getsockopt", || unsafe { libc::getsockopt(fd, level, option, to, &raw mut size).into() })?;
    if (size as usize) < info.len() {
        return Ok(PeerProgress::default());
    }
    let acknowledged = info.get(BYTES_ACKED..).and_then(|bytes| bytes.first_chunk());
    Ok(PeerProgress {
        acknowledged: acknowledged.map_or(0, |bytes| u64::from_ne_bytes(*bytes)),
        window: info.last_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes)),
    })
}

/// Maximum length of a unix socket's path: the size of sun_path without its terminating zero byte.
const UNIX_PATH_MAX: usize = 107;

/// Connects to the unix stream socket at `path`. If the listener's backlog is full, waits for at most `patience`, then
/// fails with ETIMEDOUT; connect(2) itself would wait forever.
pub fn connect_unix(path: &Path, patience: Duration) -> Result<UnixStream, Errno> {
    let name = path.as_os_str().as_bytes();
    if name.is_empty() || name.len() > UNIX_PATH_MAX || name.contains(&0) {
        return Err(Errno::INVAL);
    }
    let address = [&(libc::AF_UNIX as u16).to_ne_bytes(), name, &[0]].concat();
    let connection = socket::open(libc::AF_UNIX, libc::SOCK_STREAM, 0).map_err(|error| error.errno)?;
    let timeout = |wait: Duration| {
        let parts = [wait.as_secs() as libc::time_t, libc::time_t::from(wait.subsec_micros())];
        let bytes = parts.map(libc::time_t::to_ne_bytes).concat();
        socket::set_bytes(&connection, libc::SOL_SOCKET, libc::SO_SNDTIMEO, &bytes).map_err(|error| error.errno)
    };
    timeout(patience)?;
    match socket::connect_bytes(&connection, &address) {
        Err(Errno::AGAIN) => return Err(Errno::TIMEDOUT),
        connected => connected?,
    }
    timeout(Duration::ZERO)?;
    Ok(OwnedFd::from(connection).into())
}

/// Sends as much as possible without waiting, even on a blocking socket; returns the number of bytes. A closed
/// connection is an error and raises no signal. One system call.
pub fn send_without_waiting(connection: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno> {
    let (fd, from, size) = (connection.as_raw_fd(), bytes.as_ptr().cast(), bytes.len());
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: `from` points to `size` borrowed bytes.
    let sent = call("send", || unsafe { libc::send(fd, from, size, flags) } as i64)?;
    Ok(length(sent, size))
}

/// Receives the available bytes without waiting, even on a blocking socket; 0 after the other end has closed the
/// connection. One system call.
pub fn receive_without_waiting(connection: BorrowedFd<'_>, into: &mut [u8]) -> Result<usize, Errno> {
    let (fd, to, size) = (connection.as_raw_fd(), into.as_mut_ptr().cast(), into.len());
    // SAFETY: `to` points to `size` exclusively borrowed bytes; the kernel writes no more.
    let received = call("recv", || unsafe { libc::recv(fd, to, size, libc::MSG_DONTWAIT) } as i64)?;
    Ok(length(received, size))
}

/// Ends the connection if the other end acknowledges nothing for this time (TCP_USER_TIMEOUT).
pub fn set_user_timeout(connection: BorrowedFd<'_>, ms: u32) -> Result<(), Errno> {
    let bytes = ms.to_ne_bytes();
    let (from, size) = (bytes.as_ptr().cast(), bytes.len() as libc::socklen_t);
    let (level, option) = (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT);
    // SAFETY: `from` points to `size` borrowed bytes.
    call("setsockopt", || unsafe { libc::setsockopt(connection.as_raw_fd(), level, option, from, size) }.into())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    #[test]
    fn unread_data_stays_unacknowledged() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (_receiver, _) = listener.accept().unwrap();
        assert_eq!(unacknowledged(sender.as_fd()), Ok(0));
        assert!(peer_progress(sender.as_fd()).unwrap().window > 1000);
        set_user_timeout(sender.as_fd(), 5000).unwrap();
        let mut written = 0u64;
        let last = loop {
            match send_without_waiting(sender.as_fd(), &[7; 65_536]) {
                Ok(bytes) => written += bytes as u64,
                Err(errno) => break errno,
            }
        };
        assert_eq!((last, receive_without_waiting(sender.as_fd(), &mut [0; 8])), (Errno::AGAIN, Err(Errno::AGAIN)));
        let waiting = unacknowledged(sender.as_fd()).unwrap();
        assert!(waiting > 0 && waiting < written, "{waiting} of {written}");
        let acknowledged = peer_progress(sender.as_fd()).unwrap().acknowledged;
        // The SYN counts as one byte.
        assert!((written - waiting..=written + 1).contains(&acknowledged), "{acknowledged} of {written}");
        assert_eq!(unacknowledged(std::fs::File::open("/dev/null").unwrap().as_fd()), Err(Errno(libc::ENOTTY)));
    }
    #[test]
    fn what_is_there_is_received_without_waiting() {
        let (mut ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        ours.write_all(b"word").unwrap();
        let mut place = [0; 8];
        assert_eq!((receive_without_waiting(theirs.as_fd(), &mut place), &place[..4]), (Ok(4), &b"word"[..]));
        assert_eq!(receive_without_waiting(theirs.as_fd(), &mut place), Err(Errno::AGAIN));
        drop(ours);
        assert_eq!(receive_without_waiting(theirs.as_fd(), &mut place), Ok(0));
        assert_eq!(send_without_waiting(theirs.as_fd(), b"word"), Err(Errno(libc::EPIPE)));
    }
}
