//! The transport over TLS (RFC 5425 for syslog). A record is delivered once the receiver's kernel has acknowledged it
//! completely.
//!
//! The files are read and certificates are checked whenever a connection is opened. Start reading at [`Tls`].

mod config;
mod faults;
mod records;
mod session;

pub(crate) use config::check;

use super::stream::closed_error;
use super::tcp::connect;
use super::{TakenPart, Transport};
use crate::{Batch, TlsFiles};
use config::Config;
use rustls::pki_types::ServerName;
use session::Session;
use std::io::{self, ErrorKind};

/// Most bytes of messages that are encrypted at once; the receiver must take them before more are encrypted.
const SEALED_AT_ONCE: usize = 256 << 10;
/// Bytes that the receiver's TLS may have read from its kernel but not passed on: it loses them if it is killed.
const RECEIVER_BUFFER_BYTES: u64 = 64 << 10;

/// The TLS settings for a connection of another protocol, to a server with a certificate for its host.
#[cfg(any(feature = "http", feature = "kafka", feature = "postgres"))]
pub(super) fn client_config(files: &TlsFiles) -> io::Result<std::sync::Arc<rustls::ClientConfig>> {
    Ok(Config::read(files)?.client)
}

#[cfg(any(feature = "http", feature = "kafka", feature = "postgres"))]
pub(super) use faults::io_error as fault;

/// A connection over TLS.
pub(super) struct Tls {
    receiver: String,
    files: TlsFiles,
    session: Option<Session>,
}

impl Tls {
    /// Connects to `HOST:PORT`, with certificates from `files`.
    pub(super) fn new(receiver: String, files: TlsFiles) -> Tls {
        Tls { receiver, files, session: None }
    }

    /// The name that the receiver's certificate must have.
    fn name(&self) -> io::Result<ServerName<'static>> {
        let host = self.receiver.rsplit_once(':').map_or(&*self.receiver, |(host, _)| host);
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        ServerName::try_from(bare.to_owned()).map_err(|_| {
            io::Error::new(ErrorKind::InvalidInput, format!("{host} is not a valid name for a certificate"))
        })
    }

    fn session(&mut self) -> io::Result<&mut Session> {
        self.session.as_mut().ok_or_else(closed_error)
    }
}

impl Transport for Tls {
    fn open(&mut self) -> io::Result<()> {
        self.session = None;
        let name = self.name()?;
        let config = Config::read(&self.files)?;
        let stream = connect(&self.receiver)?;
        self.session = Some(Session::begin(stream, name, config, &self.receiver, &self.files)?);
        Ok(())
    }

    fn send(&mut self, batch: &Batch, at: usize) -> io::Result<TakenPart> {
        let session = self.session()?;
        session.check_usable()?;
        session.push_out(true);
        if session.has_unsent_bytes() {
            // The receiver may wait until its own data is read.
            session.pull();
            return session.check_usable().map(|()| TakenPart::default());
        }
        let bytes = batch.bytes().get(at..).unwrap_or_default();
        let bytes = bytes.get(..SEALED_AT_ONCE).unwrap_or(bytes);
        session.seal(bytes)?;
        // The next call reports any fault from here on: these bytes count as taken.
        session.push_out(true);
        Ok(TakenPart { bytes: bytes.len(), ..TakenPart::default() })
    }

    fn unconfirmed_bytes(&mut self) -> io::Result<u64> {
        let session = self.session()?;
        session.push_out(false);
        session.unconfirmed_bytes()
    }

    fn unread_max(&mut self) -> u64 {
        self.session.as_ref().map_or(0, |session| session.unread_max() + RECEIVER_BUFFER_BYTES)
    }

    /// Only a receiver that has ended TLS in order, and then TCP, has certainly read everything: anyone on the path
    /// can end TCP.
    fn unread_after(&mut self, error: &io::Error) -> u64 {
        if error.kind() == ErrorKind::BrokenPipe { 0 } else { self.unread_max() }
    }

    fn check(&mut self) -> io::Result<()> {
        let session = self.session()?;
        session.pull();
        session.push_out(false);
        session.check_usable()
    }

    fn close(&mut self) {
        if let Some(session) = self.session.take() {
            session.end();
        }
    }
}
