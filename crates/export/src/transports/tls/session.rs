//! One TLS connection: what was encrypted, what the socket has taken of it, what came back.

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

/// A receiver that has not finished the handshake by then is as good as away.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// By TLS 1.3 a receiver judges our certificate after the handshake: how long its word is waited for.
const JUDGEMENT: Duration = Duration::from_secs(1);
/// How long the end of TCP is waited for after that of TLS.
const END_OF_TCP: Duration = Duration::from_millis(200);
/// Messages are encrypted in pieces that make one record each (RFC 8446, section 5.1).
const RECORD: usize = 16 << 10;
/// A receiver that talks without end has others waiting: some 2 MiB at once are enough.
const READS_MAX: usize = 512;

/// What came of reading.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Heard {
    Something,
    Nothing,
}

/// A connection after its handshake.
pub(super) struct Session {
    tls: ClientConnection,
    stream: TcpStream,
    receiver: String,
    files: TlsFiles,
    /// Encrypted bytes, those before `out_at` are in the socket.
    out: Vec<u8>,
    out_at: usize,
    /// Bytes that the socket has taken.
    wire: u64,
    records: Records,
    window: LargestWindow,
    /// Why it cannot be used any more.
    fault: Option<(ErrorKind, String)>,
}

impl Session {
    /// Shakes hands; the error says what is wrong with whose certificate.
    pub(super) fn begin(
        stream: TcpStream,
        name: ServerName<'static>,
        config: Config,
        receiver: &str,
        files: &TlsFiles,
    ) -> io::Result<Session> {
        let tls = ClientConnection::new(Arc::clone(&config.client), name);
        let tls = tls.map_err(|error| faults::of(&error, receiver, files))?;
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
        while self.tls.is_handshaking() || self.is_behind() {
            self.collect();
            self.push_out(true);
            if self.tls.is_handshaking() {
                self.hear_until(until);
            }
            self.usable()?;
            if Instant::now() >= until {
                let text = format!("{} did not finish the TLS handshake within 5 s", self.receiver);
                return Err(io::Error::new(ErrorKind::TimedOut, text));
            }
            self.collect();
        }
        if own.was_asked() && self.tls.protocol_version() == Some(rustls::ProtocolVersion::TLSv1_3) {
            self.hear_until(Instant::now() + JUDGEMENT);
            self.usable()?;
        }
        Ok(())
    }

    /// The reason why the connection cannot be used, if there is one.
    pub(super) fn usable(&self) -> io::Result<()> {
        match &self.fault {
            None => Ok(()),
            Some((kind, text)) => Err(io::Error::new(*kind, text.clone())),
        }
    }

    /// Encrypted bytes wait for the socket.
    pub(super) fn is_behind(&self) -> bool {
        self.out_at < self.out.len() || self.tls.wants_write()
    }

    /// Most bytes that may lie unread in the receiver's kernel.
    pub(super) fn unread_max(&self) -> u64 {
        self.window.unread_max()
    }

    /// Encrypts `bytes`, for [`Session::push_out`].
    pub(super) fn seal(&mut self, bytes: &[u8]) -> io::Result<()> {
        for piece in bytes.chunks(RECORD) {
            self.tls.writer().write_all(piece)?;
            self.collect();
            self.records.sealed(piece.len(), self.wire + (self.out.len() - self.out_at) as u64);
        }
        Ok(())
    }

    /// Takes what TLS wants to have sent.
    fn collect(&mut self) {
        while self.tls.wants_write() {
            // Writing to memory does not fail.
            if self.tls.write_tls(&mut self.out).is_err() {
                break;
            }
        }
    }

    /// Gives the socket what it takes; with `patient` it is waited for, 0.2 s for each part.
    pub(super) fn push_out(&mut self, patient: bool) {
        self.collect();
        if self.fault.is_some() || self.out_at == self.out.len() {
            return;
        }
        let outcome = self.stream.set_nonblocking(!patient).and_then(|()| self.write_out());
        let outcome = outcome.and(self.stream.set_nonblocking(false));
        if let Err(error) = outcome {
            // The receiver may have said why before it went away.
            self.pull();
            self.fail(ErrorKind::ConnectionReset, || format!("the connection has ended: {error}"));
        }
    }

    fn write_out(&mut self) -> io::Result<()> {
        let until = Instant::now() + stream::PATIENCE;
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

    /// Bytes of messages that the receiver's kernel has not acknowledged in whole records.
    pub(super) fn unconfirmed(&mut self) -> io::Result<u64> {
        let unacknowledged = unacknowledged(self.stream.as_fd());
        let unacknowledged = unacknowledged.map_err(|errno| io::Error::from_raw_os_error(errno.0))?;
        // After it: what is acknowledged by then is looked at.
        self.window.look(&self.stream);
        self.records.acknowledged(self.wire.saturating_sub(unacknowledged));
        Ok(self.records.unconfirmed())
    }

    /// Reads what the receiver has sent: the end of the connection, new keys, or its reason for refusing us.
    pub(super) fn pull(&mut self) {
        if let Err(error) = self.stream.set_nonblocking(true) {
            return self.fail(error.kind(), || error.to_string());
        }
        for _ in 0..READS_MAX {
            if self.fault.is_some() || self.hear() == Heard::Nothing {
                break;
            }
        }
        if let Err(error) = self.stream.set_nonblocking(false) {
            self.fail(error.kind(), || error.to_string());
        }
    }

    /// Reads once, waiting until `until` at the latest.
    fn hear_until(&mut self, until: Instant) {
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        match self.stream.set_read_timeout(Some(left)) {
            Ok(()) => _ = self.hear(),
            Err(error) => self.fail(error.kind(), || error.to_string()),
        }
    }

    fn hear(&mut self) -> Heard {
        match self.tls.read_tls(&mut self.stream) {
            Ok(0) => self.ended(),
            Ok(_) => {
                self.understand();
                return Heard::Something;
            }
            Err(error) if is_later(&error) => {}
            Err(error) => self.fail(ErrorKind::ConnectionReset, || format!("the connection has ended: {error}")),
        }
        Heard::Nothing
    }

    fn understand(&mut self) {
        match self.tls.process_new_packets() {
            Ok(state) if state.peer_has_closed() => self.wait_for_end(),
            Ok(_) => self.forget_answers(),
            Err(error) => {
                let fault = faults::of(&error, &self.receiver, &self.files);
                self.fail(fault.kind(), || fault.to_string());
                // The receiver is told what we think of it, if it still listens.
                self.collect();
                let _ = self.write_out();
            }
        }
    }

    /// Nothing that a receiver of messages says is of interest.
    fn forget_answers(&mut self) {
        let mut place = [0; 4096];
        while matches!(self.tls.reader().read(&mut place), Ok(1..)) {}
    }

    /// The receiver has ended TLS. Whether it has read everything shows in how it ends TCP: a socket that is closed
    /// with bytes unread is reset.
    fn wait_for_end(&mut self) {
        let mut place = [0; 4096];
        let _ = self.stream.set_nonblocking(false).and(self.stream.set_read_timeout(Some(END_OF_TCP)));
        let has_ended = matches!(self.stream.read(&mut place), Ok(0));
        let kind = if has_ended { ErrorKind::BrokenPipe } else { ErrorKind::ConnectionAborted };
        self.fail(kind, || "the receiver has closed the connection".to_owned());
    }

    /// TCP has ended without an end of TLS.
    fn ended(&mut self) {
        let when = if self.tls.is_handshaking() { " during the TLS handshake" } else { "" };
        let text = format!("{} has closed the connection{when}", self.receiver);
        self.fail(ErrorKind::ConnectionAborted, || text);
    }

    /// The first fault is the reason for those after it.
    fn fail(&mut self, kind: ErrorKind, text: impl FnOnce() -> String) {
        if self.fault.is_none() {
            self.fault = Some((kind, text()));
        }
    }

    /// Ends TLS in order, and TCP.
    pub(super) fn end(mut self) {
        self.pull();
        if self.fault.is_none() {
            self.tls.send_close_notify();
            self.push_out(true);
        }
        if self.fault.is_none() && !self.is_behind() {
            stream::end(&self.stream);
        }
    }
}
