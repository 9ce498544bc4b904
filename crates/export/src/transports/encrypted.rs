//! TLS connections to databases and brokers.

use super::stream::WRITE_TIMEOUT;
use super::{is_later, tls};
use crate::TlsFiles;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest time for the handshake; after it the server counts as away.
///
/// Bound: for the TLS handshake of a database or broker (`postgres::a_handshake_has_one_time_as_a_whole`). Beyond: it
/// counts as away. By: a program that answers in the server's place.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// Does the handshake and returns the encrypted connection to `host`, called `shown` in errors. The server's
/// certificate is checked if `is_verified`.
pub(super) fn socket(
    stream: TcpStream,
    host: &str,
    shown: &str,
    is_verified: bool,
    files: &TlsFiles,
) -> io::Result<TlsSocket> {
    let name = ServerName::try_from(host.to_owned());
    let name = name.map_err(|_| io::Error::new(ErrorKind::InvalidInput, format!("{host} is not a host name")))?;
    let config = if is_verified { tls::client_config(files)? } else { unverified_config()? };
    let session = ClientConnection::new(config, name).map_err(|error| tls::fault(&error, shown, files))?;
    stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
    let mut socket = TlsSocket { session, stream };
    socket.shake_hands().map_err(|error| {
        let wrong = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
        wrong.map_or_else(
            || io::Error::new(error.kind(), format!("no TLS with {shown}: {error}")),
            |wrong| tls::fault(wrong, shown, files),
        )
    })?;
    Ok(socket)
}

/// TLS over TCP. Each call reads or writes the socket only a few times, so a server that sends single bytes cannot
/// block its reader.
pub(super) struct TlsSocket {
    session: ClientConnection,
    pub(super) stream: TcpStream,
}

impl TlsSocket {
    /// Completes the handshake, or fails after 5 s in total.
    fn shake_hands(&mut self) -> io::Result<()> {
        let until = Instant::now() + HANDSHAKE;
        while self.session.is_handshaking() || self.session.wants_write() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let text = format!("the handshake was not finished within {} s", HANDSHAKE.as_secs());
                return Err(io::Error::new(ErrorKind::TimedOut, text));
            }
            self.stream.set_read_timeout(Some(left))?;
            let outcome = if self.session.wants_write() {
                self.session.write_tls(&mut self.stream).map(drop)
            } else {
                self.receive().map(drop)
            };
            match outcome {
                Err(error) if is_later(&error) => {}
                outcome => outcome?,
            }
        }
        Ok(())
    }

    /// Reads from the socket once; returns false at end of stream.
    fn receive(&mut self) -> io::Result<bool> {
        if self.session.read_tls(&mut self.stream)? == 0 {
            let closed = || io::Error::new(ErrorKind::UnexpectedEof, "the server has closed the connection");
            return if self.session.is_handshaking() { Err(closed()) } else { Ok(false) };
        }
        let state = self.session.process_new_packets();
        state.map(|_| true).map_err(|error| {
            // Send the TLS alert, so that the server learns what is wrong with its certificate.
            let _ = self.session.write_tls(&mut self.stream);
            io::Error::new(ErrorKind::InvalidData, error)
        })
    }
}

impl Read for TlsSocket {
    fn read(&mut self, place: &mut [u8]) -> io::Result<usize> {
        match self.session.reader().read(place) {
            Err(error) if is_later(&error) => {}
            read => return read,
        }
        if !self.receive()? {
            return Ok(0);
        }
        self.session.reader().read(place)
    }
}

impl Write for TlsSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.flush()?;
        self.session.writer().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        let until = Instant::now() + WRITE_TIMEOUT;
        while self.session.wants_write() {
            self.session.write_tls(&mut self.stream)?;
            if Instant::now() >= until && self.session.wants_write() {
                return Err(ErrorKind::WouldBlock.into());
            }
        }
        Ok(())
    }
}

/// The TLS settings of `prefer` and `require`: the connection is encrypted, but any server is accepted.
fn unverified_config() -> io::Result<Arc<ClientConfig>> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Arc::new(AnyCertificate(provider.signature_verification_algorithms));
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| io::Error::other(format!("cannot begin TLS: {error}")))?;
    Ok(Arc::new(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()))
}

/// Accepts any certificate whose key the server has.
#[derive(Debug)]
struct AnyCertificate(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}
