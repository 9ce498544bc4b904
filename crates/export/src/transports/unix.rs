//! The transports to unix sockets: streams, and datagrams for receivers like /dev/log.

use super::stream::{NonBlockingStream, WRITE_TIMEOUT, closed_error, drain, write_some};
use super::udp::send_each;
use super::{TakenPart, Transport, connect_unix, with_object};
use crate::Batch;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::PathBuf;
use sys::connection::unacknowledged;

/// A connection to a unix socket.
pub(super) struct UnixConnection {
    path: PathBuf,
    stream: Option<UnixStream>,
    /// Bytes taken since the receiver had last read everything. The kernel reports whether there are unread bytes
    /// (SIOCOUTQ), but counts memory instead of message bytes.
    unread: u64,
}

impl UnixConnection {
    /// Connects to the socket at `path`.
    pub(super) fn new(path: PathBuf) -> UnixConnection {
        UnixConnection { path, stream: None, unread: 0 }
    }
}

impl Transport for UnixConnection {
    fn open(&mut self) -> io::Result<()> {
        let stream = connect_unix(&self.path);
        let stream = stream.map_err(|error| with_object("cannot connect to", &self.path.to_string_lossy(), &error))?;
        stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
        self.stream = Some(stream);
        self.unread = 0;
        Ok(())
    }

    fn send(&mut self, batch: &Batch, at: usize) -> io::Result<TakenPart> {
        let stream = self.stream.as_mut().ok_or_else(closed_error)?;
        let taken = write_some(stream, batch, at)?;
        if taken.bytes == 0 {
            // The receiver may wait until its own data is read.
            self.check()?;
        }
        self.unread += taken.bytes as u64;
        Ok(taken)
    }

    fn unconfirmed_bytes(&mut self) -> io::Result<u64> {
        let stream = self.stream.as_ref().ok_or_else(closed_error)?;
        let unread = unacknowledged(stream.as_fd()).map_err(|errno| io::Error::from_raw_os_error(errno.0))?;
        // When a receiver closes its end, unread bytes also vanish from the queue: an empty queue means that they were
        // read only if the receiver is still there.
        if unread == 0 && self.check().is_ok() {
            self.unread = 0;
        }
        Ok(self.unread)
    }

    fn check(&mut self) -> io::Result<()> {
        drain(&mut NonBlockingStream(self.stream.as_ref().ok_or_else(closed_error)?)).map(drop)
    }

    fn close(&mut self) {
        self.stream = None;
    }
}

/// Datagrams to a unix socket.
pub(super) struct UnixDatagrams {
    path: PathBuf,
    socket: Option<UnixDatagram>,
}

impl UnixDatagrams {
    /// Sends to the socket at `path`.
    pub(super) fn new(path: PathBuf) -> UnixDatagrams {
        UnixDatagrams { path, socket: None }
    }
}

impl Transport for UnixDatagrams {
    fn open(&mut self) -> io::Result<()> {
        let socket = UnixDatagram::unbound()?;
        let connected = socket.connect(&self.path);
        connected.map_err(|error| with_object("cannot connect to", &self.path.to_string_lossy(), &error))?;
        socket.set_write_timeout(Some(WRITE_TIMEOUT))?;
        self.socket = Some(socket);
        Ok(())
    }

    fn send(&mut self, batch: &Batch, at: usize) -> io::Result<TakenPart> {
        let socket = self.socket.as_ref().ok_or_else(closed_error)?;
        send_each(batch, at, &mut |message| socket.send(message))
    }

    fn close(&mut self) {
        self.socket = None;
    }
}
