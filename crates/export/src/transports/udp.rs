//! UDP: a datagram a message, delivered once it is written.

use super::stream::{PATIENCE, closed};
use super::{Taken, Transport, is_later, named, resolve};
use crate::Batch;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};

/// A connected UDP socket: a receiver that is not there answers by ICMP, and that is an error here.
pub(super) struct Udp {
    receiver: String,
    socket: Option<UdpSocket>,
}

impl Udp {
    /// To `HOST:PORT`.
    pub(super) fn new(receiver: String) -> Udp {
        Udp { receiver, socket: None }
    }
}

impl Transport for Udp {
    fn open(&mut self) -> io::Result<()> {
        let address = resolve(&self.receiver)?;
        let any = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = UdpSocket::bind(std::net::SocketAddr::new(any, 0))?;
        socket.connect(address).map_err(|error| named("cannot send to", &self.receiver, &error))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        self.socket = Some(socket);
        Ok(())
    }

    fn send(&mut self, batch: &Batch, at: usize) -> io::Result<Taken> {
        let socket = self.socket.as_ref().ok_or_else(closed)?;
        send_each(batch, at, &mut |message| socket.send(message))
    }

    fn close(&mut self) {
        self.socket = None;
    }
}

/// Sends each message from byte `at` on as a datagram, until the buffer is full. One that is too long for a datagram is
/// refused.
pub(super) fn send_each(
    batch: &Batch,
    at: usize,
    send: &mut dyn FnMut(&[u8]) -> io::Result<usize>,
) -> io::Result<Taken> {
    let mut taken = Taken::default();
    let first = batch.whole_in(at);
    for index in first..batch.ends().len() {
        let message = batch.message(index).unwrap_or_default();
        match send(message) {
            Ok(_) => {}
            Err(error) if is_too_long(&error) => taken.refused += 1,
            Err(error) if is_later(&error) => break,
            // What went before is told first; the error comes again.
            Err(error) if taken.bytes == 0 => return Err(error),
            Err(_) => break,
        }
        taken.bytes += message.len();
    }
    Ok(taken)
}

fn is_too_long(error: &io::Error) -> bool {
    error.kind() == ErrorKind::InvalidInput || error.raw_os_error() == Some(sys::Errno::MSGSIZE.0)
}
