//! Opening a session at an address: connection, TLS, login.

use super::faults;
use super::password;
use super::wire::Wire;
use crate::postgres_address::AuthMethod;
#[cfg(feature = "tls")]
use crate::transports::encrypted;
use crate::transports::socket::Socket;
use crate::transports::tcp;
use crate::transports::{connect_unix, with_object};
use crate::{PostgresAddress, PostgresHost, SslMode, TlsFiles};
use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::backend::{AuthenticationSaslBody, Message};
use postgres_protocol::message::frontend;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Settings at the start of every session. The server, not this process, waits for locks of other sessions.
const SETTINGS: &str = "SET client_encoding = 'UTF8'; SET standard_conforming_strings = on; SET DateStyle = 'ISO'; \
                        SET lock_timeout = '5s'; SET idle_in_transaction_session_timeout = '60s'";

/// Logs in; returns the connection and the id of the server's process.
pub(super) fn log_in(address: &PostgresAddress, tls: &TlsFiles) -> io::Result<(Wire, i32)> {
    let mut wire = Wire::new(connect(address, tls)?);
    let parameters = [("user", &*address.user), ("database", &address.database), ("application_name", "netwren")];
    frontend::startup_message(parameters, &mut wire.out)?;
    let mut process = 0;
    let mut is_in = false;
    loop {
        match wire.wait().map_err(|error| with_object("cannot log in to", &address.to_string(), &error))? {
            Message::AuthenticationOk => is_in = true,
            Message::AuthenticationMd5Password(body) => {
                let password = password_for(AuthMethod::Md5, address, &wire)?;
                let hash = md5_hash(address.user.as_bytes(), password.as_bytes(), body.salt());
                frontend::password_message(hash.as_bytes(), &mut wire.out)?;
            }
            Message::AuthenticationCleartextPassword => {
                let password = password_for(AuthMethod::Password, address, &wire)?;
                frontend::password_message(password.as_bytes(), &mut wire.out)?;
            }
            Message::AuthenticationSasl(body) => scram(&mut wire, address, &body)?,
            Message::AuthenticationGss | Message::AuthenticationSspi | Message::AuthenticationKerberosV5 => {
                let text = format!(
                    "{address} requires Kerberos, which netwren does not support: use scram-sha-256 in pg_hba.conf"
                );
                return Err(io::Error::new(ErrorKind::Unsupported, text));
            }
            Message::BackendKeyData(body) => process = body.process_id(),
            Message::ErrorResponse(body) => return Err(faults::read(&body).error_at("cannot log in to", address)),
            Message::ReadyForQuery(_) if is_in => break,
            _ => {}
        }
    }
    wire.query(SETTINGS)?.map_err(|error| error.error_at("cannot begin with", address))?;
    Ok((wire, process))
}

/// Returns the password, if the server may ask for it with this method.
fn password_for(method: AuthMethod, address: &PostgresAddress, wire: &Wire) -> io::Result<String> {
    let is_trusted = match &address.host {
        PostgresHost::Tcp(..) => wire.is_encrypted() && address.sslmode == SslMode::VerifyFull,
        PostgresHost::Unix(directory, _) => is_closed(directory),
    };
    if address.allows(method, is_trusted) {
        return password::find_password(address);
    }
    let (what, word) = match method {
        AuthMethod::Scram => ("SCRAM-SHA-256", "scram-sha-256"),
        AuthMethod::Md5 => ("a weak hash of the password (md5)", "md5"),
        AuthMethod::Password => ("the password as clear text", "password"),
    };
    let text = format!(
        "{address} requests {what}, and could be any program: nothing is sent (sslmode=verify-full verifies the \
         server; a server with password_encryption = scram-sha-256 requests neither; require_auth={word} allows it)"
    );
    Err(io::Error::new(ErrorKind::PermissionDenied, text))
}

/// True if the directory is not world-writable: other users then cannot put a socket there.
fn is_closed(directory: &Path) -> bool {
    std::fs::metadata(directory).is_ok_and(|facts| facts.permissions().mode() & 0o002 == 0)
}

/// Most SCRAM rounds; more would take this process seconds.
///
/// Bound: rounds of SCRAM (`login::a_server_cannot_make_us_hash_for_hours`). Beyond: the connection is closed. By: a
/// program that answers in the server's place.
const ROUNDS_MAX: u64 = 1_000_000;

/// True if the server's first SCRAM message (RFC 5802, section 5.1) asks for at most `ROUNDS_MAX` rounds.
fn has_fair_rounds(message: &[u8]) -> bool {
    let rounds = message.split(|byte| *byte == b',').find_map(|part| part.strip_prefix(b"i="));
    let rounds = rounds.and_then(|digits| std::str::from_utf8(digits).ok()?.parse::<u64>().ok());
    rounds.is_some_and(|rounds| rounds <= ROUNDS_MAX)
}

/// Logs in with SCRAM-SHA-256 (RFC 7677), in which the server also proves that it knows the password.
fn scram(wire: &mut Wire, address: &PostgresAddress, body: &AuthenticationSaslBody) -> io::Result<()> {
    let odd = |text: &str| io::Error::new(ErrorKind::InvalidData, format!("{address}: {text}"));
    if !body.mechanisms().any(|word| Ok(word == SCRAM_SHA_256))? {
        return Err(odd("no supported login method: SCRAM-SHA-256"));
    }
    let password = password_for(AuthMethod::Scram, address, wire)?;
    let mut scram = ScramSha256::new(password.as_bytes(), ChannelBinding::unsupported());
    frontend::sasl_initial_response(SCRAM_SHA_256, scram.message(), &mut wire.out)?;
    loop {
        match wire.wait()? {
            Message::AuthenticationSaslContinue(body) if !has_fair_rounds(body.data()) => {
                return Err(odd("it requests too many rounds of SCRAM-SHA-256"));
            }
            Message::AuthenticationSaslContinue(body) => {
                scram.update(body.data()).map_err(|_| odd("its answer during login is malformed"))?;
                frontend::sasl_response(scram.message(), &mut wire.out)?;
            }
            Message::AuthenticationSaslFinal(body) => {
                return scram
                    .finish(body.data())
                    .map_err(|_| odd("it does not know the password either: it is not the right server"));
            }
            Message::ErrorResponse(body) => return Err(faults::read(&body).error_at("cannot log in to", address)),
            Message::NoticeResponse(_) | Message::ParameterStatus(_) => {}
            _ => return Err(odd("its answer during login is malformed")),
        }
    }
}

fn connect(address: &PostgresAddress, tls: &TlsFiles) -> io::Result<Socket> {
    let (host, port) = match &address.host {
        PostgresHost::Unix(directory, port) => {
            let path = directory.join(format!(".s.PGSQL.{port}"));
            let stream = connect_unix(&path);
            return Socket::unix(
                stream.map_err(|error| with_object("cannot connect to", &path.to_string_lossy(), &error))?,
            );
        }
        PostgresHost::Tcp(host, port) => (host, port),
    };
    let receiver = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    let socket = Socket::Tcp(tcp::connect(&receiver)?);
    let _ = tls;
    if address.sslmode == SslMode::Disable || cfg!(not(feature = "tls")) {
        return without_tls(address, socket);
    }
    let mut wire = Wire::new(socket);
    let mut question = BytesMut::new();
    frontend::ssl_request(&mut question);
    wire.out.extend_from_slice(&question);
    match (wire.wait_for_byte()?, address.sslmode) {
        #[cfg(feature = "tls")]
        (b'S', _) => match wire.into_socket() {
            Socket::Tcp(stream) => {
                let is_verified = address.sslmode == SslMode::VerifyFull;
                let socket = encrypted::socket(stream, host, &address.to_string(), is_verified, tls);
                socket.map(|socket| Socket::Tls(Box::new(socket)))
            }
            other => Ok(other),
        },
        (b'N', SslMode::Prefer) => Ok(wire.into_socket()),
        (b'N', _) => {
            let text = format!("{address}: the server has no TLS (ssl = on in postgresql.conf)");
            Err(io::Error::new(ErrorKind::Unsupported, text))
        }
        _ => {
            let text = format!("the program at {receiver} is not a PostgreSQL server");
            Err(io::Error::new(ErrorKind::InvalidData, text))
        }
    }
}

/// Returns the connection without TLS, unless the user requires TLS.
fn without_tls(address: &PostgresAddress, socket: Socket) -> io::Result<Socket> {
    match address.sslmode {
        SslMode::Disable | SslMode::Prefer => Ok(socket),
        SslMode::Require | SslMode::VerifyFull => Err(crate::transports::without_tls()),
    }
}

#[cfg(test)]
mod tests {
    use super::has_fair_rounds;

    #[test]
    fn a_server_cannot_make_us_hash_for_hours() {
        assert!(has_fair_rounds(b"r=nonce,s=salt,i=4096"));
        for unfair in ["r=nonce,s=salt,i=4294967295", "r=nonce,s=salt", "r=nonce,s=salt,i=-1", ""] {
            assert!(!has_fair_rounds(unfair.as_bytes()), "{unfair}");
        }
    }
}
