//! TCP. What the receiver's kernel has acknowledged is delivered.

use super::stream::{PATIENCE, closed, drain, end, write_some};
use super::{AtOnce, Taken, Transport, named, resolve};
use crate::Batch;
use std::io::{self, ErrorKind};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::Duration;
use sys::connection::{peer_window, set_user_timeout, unacknowledged};

const CONNECT: Duration = Duration::from_secs(3);
/// A receiver that acknowledges nothing for so long is away.
const USER_TIMEOUT_MS: u32 = 30_000;
/// Larger windows are not believed: what was delivered is kept in memory for so long.
const UNREAD_MAX: u64 = 4 << 20;

/// A TCP connection.
pub(super) struct Tcp {
    receiver: String,
    stream: Option<TcpStream>,
    /// The largest receive window that was announced.
    window: u64,
    /// True if it has said something when somebody last listened.
    talks: bool,
}

impl Tcp {
    /// To `HOST:PORT`.
    pub(super) fn new(receiver: String) -> Tcp {
        Tcp { receiver, stream: None, window: 0, talks: false }
    }

    fn stream(&mut self) -> io::Result<&mut TcpStream> {
        self.stream.as_mut().ok_or_else(closed)
    }
}

/// A connection to `HOST:PORT`, on which writing waits 0.2 s at most.
pub(super) fn connect(receiver: &str) -> io::Result<TcpStream> {
    let address = resolve(receiver)?;
    let stream = TcpStream::connect_timeout(&address, CONNECT);
    let stream = stream.map_err(|error| named("cannot connect to", receiver, &error))?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let _ = set_user_timeout(stream.as_fd(), USER_TIMEOUT_MS);
    Ok(stream)
}

/// The larger of `window` and what the receiver announces now.
pub(super) fn largest_window(window: u64, stream: &TcpStream) -> u64 {
    let now = peer_window(stream.as_fd()).map_or(0, u64::from);
    window.max(now)
}

/// Most bytes that may lie unread at a receiver whose largest window was `window`. A window is announced for the free
/// part of a buffer that is up to twice as large as at first while it fills: the kernel learns how much of its memory
/// is data (scaling_ratio in net/ipv4/tcp_input.c).
pub(super) fn unread_behind(window: u64) -> u64 {
    window.saturating_mul(2).min(UNREAD_MAX)
}

impl Transport for Tcp {
    fn open(&mut self) -> io::Result<()> {
        self.stream = Some(connect(&self.receiver)?);
        (self.window, self.talks) = (0, false);
        Ok(())
    }

    fn send(&mut self, batch: &Batch, at: usize) -> io::Result<Taken> {
        let stream = self.stream()?;
        let taken = write_some(stream, batch, at)?;
        if taken.bytes == 0 {
            // It may wait until somebody reads what it says.
            self.check()?;
        }
        self.window = largest_window(self.window, self.stream()?);
        Ok(taken)
    }

    fn at_once(&self) -> AtOnce {
        // Somebody must listen until everything is confirmed.
        if self.talks { AtOnce::Never } else { AtOnce::WithoutWait }
    }

    fn send_at_once(&mut self, batch: &Batch, at: usize) -> io::Result<Taken> {
        let stream = self.stream()?;
        stream.set_nonblocking(true)?;
        let taken = write_some(stream, batch, at);
        stream.set_nonblocking(false)?;
        let taken = taken?;
        self.window = largest_window(self.window, self.stream()?);
        Ok(taken)
    }

    fn unconfirmed(&mut self) -> io::Result<u64> {
        unacknowledged(self.stream()?.as_fd()).map_err(|errno| io::Error::from_raw_os_error(errno.0))
    }

    fn unread_max(&mut self) -> u64 {
        unread_behind(self.window)
    }

    /// A receiver that closes its socket with data unread resets the connection; one that has read everything ends it
    /// in order (RFC 1122, section 4.2.2.13), and writing then is EPIPE.
    fn unread_after(&mut self, error: &io::Error) -> u64 {
        if error.kind() == ErrorKind::BrokenPipe { 0 } else { self.unread_max() }
    }

    fn check(&mut self) -> io::Result<()> {
        let stream = self.stream()?;
        stream.set_nonblocking(true)?;
        let outcome = drain(stream);
        stream.set_nonblocking(false)?;
        self.talks = outcome?;
        Ok(())
    }

    fn close(&mut self) {
        let has_everything = matches!(self.unconfirmed(), Ok(0)) && self.check().is_ok();
        if let Some(stream) = self.stream.take().filter(|_| has_everything) {
            end(&stream);
        }
    }
}
