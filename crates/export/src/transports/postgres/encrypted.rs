//! TLS to a server.

use super::socket::Socket;
use crate::transports::stream::PATIENCE;
use crate::transports::tls;
use crate::{PostgresAddress, SslMode, TlsFiles};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme, StreamOwned};
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

/// A server that has not finished the handshake by then is as good as away.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// The connection after the handshake.
pub(super) fn socket(plain: Socket, host: &str, address: &PostgresAddress, files: &TlsFiles) -> io::Result<Socket> {
    let Socket::Tcp(mut stream) = plain else { return Ok(plain) };
    let shown = address.to_string();
    let name = ServerName::try_from(host.to_owned());
    let name = name.map_err(|_| io::Error::new(ErrorKind::InvalidInput, format!("{host} is no name of a host")))?;
    let config = if address.sslmode == SslMode::VerifyFull { tls::client_config(files)? } else { unverified()? };
    let mut session = ClientConnection::new(config, name).map_err(|error| tls::fault(&error, &shown, files))?;
    stream.set_read_timeout(Some(HANDSHAKE))?;
    while session.is_handshaking() {
        session.complete_io(&mut stream).map_err(|error| {
            let wrong = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
            wrong.map_or_else(
                || io::Error::new(error.kind(), format!("no TLS with {shown}: {error}")),
                |wrong| tls::fault(wrong, &shown, files),
            )
        })?;
    }
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(Socket::Tls(Box::new(StreamOwned::new(session, stream))))
}

/// As `prefer` and `require` mean it: nobody listens on the way, but whoever answers is believed.
fn unverified() -> io::Result<Arc<ClientConfig>> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Arc::new(Anybody(provider.signature_verification_algorithms));
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| io::Error::other(format!("cannot begin TLS: {error}")))?;
    Ok(Arc::new(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()))
}

/// Takes any certificate whose key the server has.
#[derive(Debug)]
struct Anybody(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for Anybody {
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
