//! UDP: one datagram per message. A datagram counts as delivered if it is sent and not refused for a while.

use super::stream::{WRITE_TIMEOUT, closed_error};
use super::{TakenPart, Transport, is_later, resolve, with_object};
use crate::Batch;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// A datagram counts as delivered if the receiver's host does not refuse it (ICMP) within this time.
const REFUSAL: Duration = Duration::from_millis(250);
/// A name is resolved again after this time, in case the receiver has moved.
const LOOKUP_INTERVAL: Duration = Duration::from_secs(60);

/// Why a message is refused.
pub(super) const TOO_LONG: &str = "too long for a datagram";

/// Sends a datagram.
pub(super) type SendDatagram<'s> = dyn FnMut(&[u8]) -> io::Result<usize> + 's;

/// A connected UDP socket: if no program receives, the host answers with ICMP and the socket reports an error.
pub(super) struct Udp {
    receiver: String,
    socket: Option<UdpSocket>,
    /// Resolves the receiver to addresses.
    resolve: fn(&str) -> io::Result<Vec<SocketAddr>>,
    /// When the name was last resolved.
    looked_up: Instant,
    /// Index of the next address to try.
    turn: usize,
    /// Send times and bytes of the datagrams that may still be refused.
    recent: VecDeque<(Instant, usize)>,
    /// A refusal that the next call must report.
    refusal: Option<io::Error>,
    /// When a datagram was last refused; `None` again once a later one was not.
    refused_at: Option<Instant>,
}

impl Udp {
    /// Sends to `HOST:PORT`.
    pub(super) fn new(receiver: String) -> Udp {
        Udp {
            receiver,
            socket: None,
            resolve,
            looked_up: Instant::now(),
            turn: 0,
            recent: VecDeque::new(),
            refusal: None,
            refused_at: None,
        }
    }

    fn connect(&mut self, address: SocketAddr) -> io::Result<()> {
        let any = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
        socket.connect(address)?;
        socket.set_write_timeout(Some(WRITE_TIMEOUT))?;
        self.socket = Some(socket);
        Ok(())
    }

    /// Resolves the name again now and then. On failure keeps the address, which may still be right.
    fn follow_name(&mut self) -> io::Result<()> {
        let is_address = self.receiver.parse::<SocketAddr>().is_ok();
        if is_address || self.looked_up.elapsed() < LOOKUP_INTERVAL || self.socket.is_none() {
            return Ok(());
        }
        self.looked_up = Instant::now();
        let (Some(socket), Ok(found)) = (&self.socket, (self.resolve)(&self.receiver)) else { return Ok(()) };
        let Ok(now) = socket.peer_addr() else { return Ok(()) };
        match found.first() {
            Some(first) if !found.contains(&now) => self.connect(*first),
            _ => Ok(()),
        }
    }

    /// Sends messages by `send_all`, which gets a function that sends a datagram.
    pub(super) fn send_by(
        &mut self,
        send_all: &mut dyn FnMut(&mut SendDatagram<'_>) -> io::Result<TakenPart>,
    ) -> io::Result<TakenPart> {
        self.take_refusal()?;
        let socket = self.socket.as_ref().ok_or_else(closed_error)?;
        let mut refusal = None;
        let taken = send_all(&mut |datagram| {
            // The kernel reports a refusal only once, so keep it.
            socket.send(datagram).inspect_err(|error| {
                refusal = Some(io::Error::from(error.kind())).filter(|_| is_refusal(error));
            })
        });
        let taken = taken.or_else(|error| if refusal.is_some() { Ok(TakenPart::default()) } else { Err(error) })?;
        self.refusal = refusal;
        if taken.bytes > 0 {
            self.recent.push_back((Instant::now(), taken.bytes));
        }
        Ok(taken)
    }

    /// Returns the error if the receiver's host refused an earlier datagram.
    fn take_refusal(&mut self) -> io::Result<()> {
        let told = match (self.refusal.take(), &self.socket) {
            (Some(error), _) => Some(error),
            (None, Some(socket)) => socket.take_error()?,
            (None, None) => None,
        };
        let Some(error) = told else { return Ok(()) };
        (self.refused_at, self.turn) = (Some(Instant::now()), self.turn.wrapping_add(1));
        Err(with_object("cannot send to", &self.receiver, &error))
    }
}

impl Transport for Udp {
    /// Connects to one of the addresses; after a refusal starts with the next one.
    fn open(&mut self) -> io::Result<()> {
        let found = (self.resolve)(&self.receiver)?;
        self.looked_up = Instant::now();
        self.recent.clear();
        self.refusal = None;
        let mut failed = None;
        for turn in 0..found.len() {
            let Some(address) = found.get(self.turn.wrapping_add(turn) % found.len()) else { break };
            match self.connect(*address) {
                Ok(()) => {
                    self.turn = self.turn.wrapping_add(turn);
                    return Ok(());
                }
                Err(error) => failed = Some(error),
            }
        }
        Err(with_object("cannot send to", &self.receiver, &failed.unwrap_or_else(|| ErrorKind::NotFound.into())))
    }

    fn send(&mut self, batch: &Batch, at: usize) -> io::Result<TakenPart> {
        self.send_by(&mut |send| send_each(batch, at, send))
    }

    /// Returns the bytes of the datagrams sent in the last 250 ms, which may still be refused.
    fn unconfirmed_bytes(&mut self) -> io::Result<u64> {
        self.take_refusal()?;
        while let Some((sent, _)) = self.recent.front().copied().filter(|(sent, _)| sent.elapsed() >= REFUSAL) {
            self.recent.pop_front();
            self.refused_at = self.refused_at.filter(|refused| *refused >= sent);
        }
        Ok(self.recent.iter().map(|(_, bytes)| *bytes as u64).sum())
    }

    fn check(&mut self) -> io::Result<()> {
        self.take_refusal()?;
        self.follow_name()
    }

    fn take_refusal_reason(&mut self) -> Option<String> {
        Some(TOO_LONG.to_owned())
    }

    fn is_proven(&self) -> bool {
        self.refused_at.is_none()
    }

    fn close(&mut self) {
        self.socket = None;
    }
}

fn is_refusal(error: &io::Error) -> bool {
    !is_too_long(error) && !is_later(error)
}

/// Sends each message from byte `at` on as one datagram, until the buffer is full. A message that is too long for a
/// datagram counts as refused.
pub(super) fn send_each(batch: &Batch, at: usize, send: &mut SendDatagram<'_>) -> io::Result<TakenPart> {
    let mut taken = TakenPart::default();
    let first = batch.count_complete(at);
    for index in first..batch.message_ends().len() {
        let message = batch.message(index).unwrap_or_default();
        match send(message) {
            Ok(_) => {}
            Err(error) if is_too_long(&error) => taken.refused += 1,
            Err(error) if is_later(&error) => break,
            // Report the sent messages first; the next call gets the error again.
            Err(error) if taken.bytes == 0 => return Err(error),
            Err(_) => break,
        }
        taken.bytes += message.len();
    }
    Ok(taken)
}

pub(super) fn is_too_long(error: &io::Error) -> bool {
    error.kind() == ErrorKind::InvalidInput || error.raw_os_error() == Some(sys::Errno::MSGSIZE.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::sync::atomic::{AtomicU16, Ordering::SeqCst};

    /// The port that the test's name resolves to.
    static PORT: AtomicU16 = AtomicU16::new(0);

    fn found(_: &str) -> io::Result<Vec<SocketAddr>> {
        Ok(vec![([127, 0, 0, 1], PORT.load(SeqCst)).into()])
    }

    #[test]
    fn a_name_is_looked_up_again() {
        let [first, second] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let port = |socket: &UdpSocket| socket.local_addr().unwrap().port();
        let mut batch = Batch::new();
        batch.bytes_mut().push(b'x');
        batch.end_message();
        let mut udp = Udp { resolve: found, ..Udp::new("moving.example:514".to_owned()) };
        PORT.store(port(&first), SeqCst);
        udp.open().unwrap();
        udp.send(&batch, 0).unwrap();
        PORT.store(port(&second), SeqCst);
        udp.check().unwrap();
        udp.send(&batch, 0).unwrap();
        udp.looked_up -= LOOKUP_INTERVAL;
        udp.check().unwrap();
        udp.send(&batch, 0).unwrap();
        let mut place = [0; 9];
        assert_eq!(
            [first.recv(&mut place), first.recv(&mut place), second.recv(&mut place)].map(Result::unwrap),
            [1; 3]
        );
    }
}
