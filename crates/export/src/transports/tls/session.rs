//! One TLS connection: encrypted bytes that wait, bytes in the socket, and received answers.

use super::config::{Config, OwnCertificate};
use super::faults;
use super::records::Records;
use crate::TlsFiles;
use crate::transports::tcp::LargestWindow;
use crate::transports::{is_later, stream};
use rustls::ClientConnection;
use rustls::pki_types::ServerName;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};
use sys::connection::unacknowledged;

/// Longest time for the handshake; after it the receiver counts as away.
///
/// Bound: for a TLS handshake. Beyond: the receiver counts as away. By: a receiver.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// How long to wait for the receiver's verdict: with TLS 1.3 it checks our certificate after the handshake.
const JUDGEMENT: Duration = Duration::from_secs(1);
/// How long to wait for the end of TCP after the end of TLS.
const END_OF_TCP: Duration = Duration::from_millis(200);
/// Messages are encrypted in pieces that make one record each (RFC 8446, section 5.1).
const RECORD: usize = 16 << 10;
/// Most reads at once, about 2 MiB: a receiver that sends without end must not block other work.
///
/// Bound: reads in a row of unrequested data from a TLS receiver. Beyond: netwren first sends what waits. By: a
/// receiver.
const READS_MAX: usize = 512;

/// The result of a read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReadResult {
    Something,
    Nothing,
}

/// A connection after its handshake.
pub(super) struct Session {
    tls: ClientConnection,
    stream: TcpStream,
    receiver: String,
    files: TlsFiles,
    /// Encrypted bytes; those before `out_at` are in the socket.
    out: Vec<u8>,
    out_at: usize,
    /// Bytes that the socket has taken.
    wire: u64,
    records: Records,
    window: LargestWindow,
    /// The fault after which the connection cannot be used any more.
    fault: Option<(ErrorKind, String)>,
}

impl Session {
    /// Does the handshake. An error names the certificate and its fault.
    pub(super) fn begin(
        stream: TcpStream,
        name: ServerName<'static>,
        config: Config,
        receiver: &str,
        files: &TlsFiles,
    ) -> io::Result<Session> {
        let tls = ClientConnection::new(Arc::clone(&config.client), name);
        let tls = tls.map_err(|error| faults::io_error(&error, receiver, files))?;
        let mut session = Session {
            tls,
            stream,
            receiver: receiver.to_owned(),
            files: files.clone(),
            out: Vec::new(),
            out_at: 0,
            wire: 0,
            records: Records::default(),
            window: LargestWindow::default(),
            fault: None,
        };
        session.shake_hands(&config.own)?;
        Ok(session)
    }

    fn shake_hands(&mut self, own: &OwnCertificate) -> io::Result<()> {
        let until = Instant::now() + HANDSHAKE;
        while self.tls.is_handshaking() || self.has_unsent_bytes() {
            self.collect();
            self.push_out(true);
            if self.tls.is_handshaking() {
                self.read_until(until);
            }
            self.check_usable()?;
            if Instant::now() >= until {
                let seconds = HANDSHAKE.as_secs();
                let text = format!("{} did not finish the TLS handshake within {seconds} s", self.receiver);
                return Err(io::Error::new(ErrorKind::TimedOut, text));
            }
            self.collect();
        }
        if own.was_requested() && self.tls.protocol_version() == Some(rustls::ProtocolVersion::TLSv1_3) {
            self.read_until(Instant::now() + JUDGEMENT);
            self.check_usable()?;
        }
        Ok(())
    }

    /// Fails if the connection cannot be used any more.
    pub(super) fn check_usable(&self) -> io::Result<()> {
        match &self.fault {
            None => Ok(()),
            Some((kind, text)) => Err(io::Error::new(*kind, text.clone())),
        }
    }

    /// True if encrypted bytes wait for the socket.
    pub(super) fn has_unsent_bytes(&self) -> bool {
        self.out_at < self.out.len() || self.tls.wants_write()
    }

    /// Most bytes that may be unread in the receiver's kernel.
    pub(super) fn unread_max(&self) -> u64 {
        self.window.unread_max()
    }

    /// Encrypts `bytes`; [`Session::push_out`] sends them.
    pub(super) fn seal(&mut self, bytes: &[u8]) -> io::Result<()> {
        for piece in bytes.chunks(RECORD) {
            self.tls.writer().write_all(piece)?;
            self.collect();
            self.records.add_encrypted(piece.len(), self.wire + (self.out.len() - self.out_at) as u64);
        }
        Ok(())
    }

    /// Moves the bytes that TLS wants to send to the buffer.
    fn collect(&mut self) {
        while self.tls.wants_write() {
            // Writing to memory cannot fail.
            if self.tls.write_tls(&mut self.out).is_err() {
                break;
            }
        }
    }

    /// Writes as much as the socket takes; with `patient`, waits for it up to 0.2 s per write.
    pub(super) fn push_out(&mut self, patient: bool) {
        self.collect();
        if self.fault.is_some() || self.out_at == self.out.len() {
            return;
        }
        let outcome = self.stream.set_nonblocking(!patient).and_then(|()| self.write_out());
        let outcome = outcome.and(self.stream.set_nonblocking(false));
        if let Err(error) = outcome {
            // The receiver may have sent a reason before it closed.
            self.pull();
            self.fail(ErrorKind::ConnectionReset, || format!("the connection has ended: {error}"));
        }
    }

    fn write_out(&mut self) -> io::Result<()> {
        let until = Instant::now() + stream::WRITE_TIMEOUT;
        while let Some(rest) = self.out.get(self.out_at..).filter(|rest| !rest.is_empty()) {
            match self.stream.write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(bytes) => {
                    self.out_at += bytes;
                    self.wire += bytes as u64;
                    // A receiver that takes only a few bytes at a time must not block the thread.
                    if Instant::now() >= until {
                        break;
                    }
                }
                Err(error) if is_later(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        if self.out_at == self.out.len() {
            self.out.clear();
            self.out_at = 0;
        }
        Ok(())
    }

    /// Bytes of messages in records that the receiver's kernel has not acknowledged completely.
    pub(super) fn unconfirmed_bytes(&mut self) -> io::Result<u64> {
        let unacknowledged = unacknowledged(self.stream.as_fd());
        let unacknowledged = unacknowledged.map_err(|errno| io::Error::from_raw_os_error(errno.0))?;
        // Look afterwards, so that everything acknowledged above is covered.
        self.window.update_window(&self.stream);
        self.records.add_acknowledged(self.wire.saturating_sub(unacknowledged));
        Ok(self.records.unconfirmed_bytes())
    }

    /// Reads what the receiver has sent: the end of the connection, new keys, or its reason for refusing us.
    pub(super) fn pull(&mut self) {
        if let Err(error) = self.stream.set_nonblocking(true) {
            return self.fail(error.kind(), || error.to_string());
        }
        for _ in 0..READS_MAX {
            if self.fault.is_some() || self.read_available() == ReadResult::Nothing {
                break;
            }
        }
        if let Err(error) = self.stream.set_nonblocking(false) {
            self.fail(error.kind(), || error.to_string());
        }
    }

    /// Reads once; waits until `until` at the latest.
    fn read_until(&mut self, until: Instant) {
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        match self.stream.set_read_timeout(Some(left)) {
            Ok(()) => _ = self.read_available(),
            Err(error) => self.fail(error.kind(), || error.to_string()),
        }
    }

    fn read_available(&mut self) -> ReadResult {
        match self.tls.read_tls(&mut self.stream) {
            Ok(0) => self.handle_tcp_end(),
            Ok(_) => {
                self.understand();
                return ReadResult::Something;
            }
            Err(error) if is_later(&error) => {}
            Err(error) => self.fail(ErrorKind::ConnectionReset, || format!("the connection has ended: {error}")),
        }
        ReadResult::Nothing
    }

    fn understand(&mut self) {
        match self.tls.process_new_packets() {
            Ok(state) if state.peer_has_closed() => self.wait_for_end(),
            Ok(_) => self.discard_answers(),
            Err(error) => {
                let fault = faults::io_error(&error, &self.receiver, &self.files);
                self.fail(fault.kind(), || fault.to_string());
                // Send the alert that explains the error, in case the receiver still reads.
                self.collect();
                let _ = self.write_out();
            }
        }
    }

    /// Discards data from the receiver, which is never needed.
    fn discard_answers(&mut self) {
        let mut place = [0; 4096];
        while matches!(self.tls.reader().read(&mut place), Ok(1..)) {}
    }

    /// Handles the end of TLS. The end of TCP then shows whether the receiver has read everything: a socket that is
    /// closed with unread bytes is reset.
    fn wait_for_end(&mut self) {
        let mut place = [0; 4096];
        let _ = self.stream.set_nonblocking(false).and(self.stream.set_read_timeout(Some(END_OF_TCP)));
        let has_ended = matches!(self.stream.read(&mut place), Ok(0));
        let kind = if has_ended { ErrorKind::BrokenPipe } else { ErrorKind::ConnectionAborted };
        self.fail(kind, || "the receiver has closed the connection".to_owned());
    }

    /// Handles an end of TCP without an end of TLS.
    fn handle_tcp_end(&mut self) {
        let when = if self.tls.is_handshaking() { " during the TLS handshake" } else { "" };
        let text = format!("{} has closed the connection{when}", self.receiver);
        self.fail(ErrorKind::ConnectionAborted, || text);
    }

    /// Records a fault. The first one explains those after it, so it is kept.
    fn fail(&mut self, kind: ErrorKind, text: impl FnOnce() -> String) {
        if self.fault.is_none() {
            self.fault = Some((kind, text()));
        }
    }

    /// Ends TLS and then TCP in order.
    pub(super) fn end(mut self) {
        self.pull();
        if self.fault.is_none() {
            self.tls.send_close_notify();
            self.push_out(true);
        }
        if self.fault.is_none() && !self.has_unsent_bytes() {
            stream::end(&self.stream);
        }
    }
}
