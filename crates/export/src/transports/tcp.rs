//! The transport over TCP. Bytes acknowledged by the receiver's kernel count as delivered.

use super::stream::{NonBlockingStream, WRITE_TIMEOUT, closed_error, drain, end, write_some};
use super::{CONNECT, DirectDelivery, TakenPart, Transport, resolve, with_object};
use crate::Batch;
use std::io::{self, ErrorKind};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use sys::connection::{peer_progress, set_user_timeout, unacknowledged};

/// A receiver that acknowledges nothing for this time, in ms, is away.
///
/// Bound: without an acknowledgement from a TCP receiver. Beyond: the receiver counts as away. By: a receiver.
const USER_TIMEOUT_MS: u32 = 30_000;
/// Upper limit for the estimated window: this many delivered bytes are kept in memory.
///
/// Bound: bytes that a receiver may have acknowledged without reading them. Beyond: older messages are not sent again
/// after a broken connection. By: a receiver.
const UNREAD_MAX: u64 = 4 << 20;

/// A TCP connection.
pub(super) struct Tcp {
    receiver: String,
    stream: Option<TcpStream>,
    window: LargestWindow,
    /// True if the receiver had sent data at the last check.
    talks: bool,
}

impl Tcp {
    /// Connects to `HOST:PORT`.
    pub(super) fn new(receiver: String) -> Tcp {
        Tcp { receiver, stream: None, window: LargestWindow::default(), talks: false }
    }

    fn stream(&mut self) -> io::Result<&mut TcpStream> {
        self.stream.as_mut().ok_or_else(closed_error)
    }
}

/// Time limit for connecting to any address of a name.
///
/// Bound: for a connection to any address of a receiver. Beyond: the receiver counts as away. By: a receiver.
const CONNECT_ALL: Duration = Duration::from_secs(10);

/// Connects to the first address of `HOST:PORT` that accepts a connection.
fn connect_any(receiver: &str) -> io::Result<TcpStream> {
    let (addresses, begun) = (resolve(receiver)?, Instant::now());
    let mut failed = None;
    for address in &addresses {
        let left = CONNECT_ALL.saturating_sub(begun.elapsed());
        if left.is_zero() {
            break;
        }
        match TcpStream::connect_timeout(address, left.min(CONNECT)) {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = Some(error),
        }
    }
    let error = with_object("cannot connect to", receiver, &failed.unwrap_or_else(|| ErrorKind::TimedOut.into()));
    match addresses.len() {
        0 | 1 => Err(error),
        count => Err(io::Error::new(error.kind(), format!("{error} ({count} addresses tried)"))),
    }
}

/// Connects to `HOST:PORT`. A write to the connection waits 0.2 s at most.
pub(super) fn connect(receiver: &str) -> io::Result<TcpStream> {
    let stream = connect_any(receiver)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
    let _ = set_user_timeout(stream.as_fd(), USER_TIMEOUT_MS);
    Ok(stream)
}

/// The largest receive window that the receiver may have announced.
#[derive(Debug, Default)]
pub(super) struct LargestWindow {
    bytes: u64,
    /// Bytes that the receiver had acknowledged at the last [`LargestWindow::look`].
    acknowledged: u64,
}

impl LargestWindow {
    /// Looks at the connection. Between two looks the kernel sends waiting data, and the window may have been larger
    /// than at either of them. But a receiver never takes back a window that it has announced (RFC 9293, section
    /// 3.8.6), so the window was at most the bytes acknowledged since the last look plus the window announced now.
    pub(super) fn update_window(&mut self, stream: &TcpStream) {
        let Ok(now) = peer_progress(stream.as_fd()) else { return };
        let since = now.acknowledged.saturating_sub(self.acknowledged);
        self.bytes = self.bytes.max(since + u64::from(now.window));
        self.acknowledged = now.acknowledged;
    }

    /// Most bytes that may be unread at the receiver. A window is announced for the free part of a buffer, which grows
    /// to up to twice its first size while it fills: the kernel learns how much of its memory is data (scaling_ratio
    /// in net/ipv4/tcp_input.c).
    pub(super) fn unread_max(&self) -> u64 {
        self.bytes.saturating_mul(2).min(UNREAD_MAX)
    }
}

impl Transport for Tcp {
    fn open(&mut self) -> io::Result<()> {
        self.stream = Some(connect(&self.receiver)?);
        (self.window, self.talks) = (LargestWindow::default(), false);
        Ok(())
    }

    fn send(&mut self, batch: &Batch, at: usize) -> io::Result<TakenPart> {
        let stream = self.stream()?;
        let taken = write_some(stream, batch, at)?;
        if taken.bytes == 0 {
            // The receiver may wait until its own data is read.
            self.check()?;
        }
        Ok(taken)
    }

    fn direct_delivery(&self) -> DirectDelivery {
        // The output's thread must read the receiver's data until everything is confirmed.
        if self.talks { DirectDelivery::Never } else { DirectDelivery::WithoutWait }
    }

    fn send_without_waiting(&mut self, batch: &Batch, at: usize) -> io::Result<TakenPart> {
        write_some(&mut NonBlockingStream(self.stream()?), batch, at)
    }

    fn unconfirmed_bytes(&mut self) -> io::Result<u64> {
        let stream = self.stream.as_ref().ok_or_else(closed_error)?;
        let bytes = unacknowledged(stream.as_fd()).map_err(|errno| io::Error::from_raw_os_error(errno.0))?;
        // Look afterwards, so that everything acknowledged above is covered.
        self.window.update_window(stream);
        Ok(bytes)
    }

    fn unread_max(&mut self) -> u64 {
        self.window.unread_max()
    }

    /// A receiver that closes its socket with unread data resets the connection. One that has read everything ends it
    /// in order (RFC 1122, section 4.2.2.13), and the next write fails with EPIPE.
    fn unread_after(&mut self, error: &io::Error) -> u64 {
        if error.kind() == ErrorKind::BrokenPipe { 0 } else { self.unread_max() }
    }

    fn check(&mut self) -> io::Result<()> {
        self.talks = drain(&mut NonBlockingStream(self.stream()?))?;
        Ok(())
    }

    fn close(&mut self) {
        let has_everything = matches!(self.unconfirmed_bytes(), Ok(0)) && self.check().is_ok();
        if let Some(stream) = self.stream.take().filter(|_| has_everything) {
            end(&stream);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::net::TcpListener;
    use sys::socket;

    /// The receiver's window grows while the kernel sends data written before; then the receiver closes with much
    /// unread. The connection is not looked at in between.
    #[test]
    fn what_lies_unread_is_never_more_than_was_thought() {
        /// Bytes of buffer for the receiver (SO_RCVLOWAT makes room at once).
        const ROOM: i32 = 600_000;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut tcp = Tcp::new(listener.local_addr().unwrap().to_string());
        tcp.open().unwrap();
        let receiver = sys::Fd::from(std::os::fd::OwnedFd::from(listener.accept().unwrap().0));
        let mut batch = Batch::new();
        batch.bytes_mut().resize(16 << 20, b'x');
        batch.end_message();
        let mut written = 0;
        let mut write = |tcp: &mut Tcp| written += tcp.send_without_waiting(&batch, written).unwrap().bytes;
        write(&mut tcp);
        tcp.unconfirmed_bytes().unwrap();
        let before = tcp.window.unread_max();
        socket::set_number(&receiver, socket::SOL_SOCKET, socket::SO_RCVLOWAT, ROOM).unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        let unread = |tcp: &Tcp| peer_progress(tcp.stream.as_ref().unwrap().as_fd()).unwrap().acknowledged - 1;
        while unread(&tcp) <= before && Instant::now() < until {
            write(&mut tcp);
            std::thread::yield_now();
        }
        drop(receiver);
        let unread = unread(&tcp);
        assert!(unread > before, "the buffer has grown: {unread} of {written}");
        tcp.unconfirmed_bytes().unwrap();
        let error = io::Error::from(ErrorKind::ConnectionReset);
        assert!(tcp.unread_after(&error) >= unread, "{unread} unread, {:?}", tcp.window);
    }
}
