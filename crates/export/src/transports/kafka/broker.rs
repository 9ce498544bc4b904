//! A connection to one broker: requests, answers and the login.

use super::error_code::ErrorCode;
use super::requests::{self, Api};
use super::scram::{Hash, Scram};
use super::values::{malformed, put_string};
use crate::kafka_address::{KafkaLogin, Mechanism, PASSWORD};
use crate::transports::exchange::{Exchange, MESSAGE_MAX, Protocol, excerpt};
use crate::transports::socket::Socket;
use crate::transports::{secret_file, tcp, with_object};
use crate::{KafkaAddress, TlsFiles};
use bytes::{Buf, BytesMut};
use std::io::{self, ErrorKind};
use std::time::Duration;

/// The name of this program in the logs and metrics of brokers.
const CLIENT: &str = "netwren";
/// Bytes of random text in a login.
const NONCE_BYTES: usize = 24;

/// The protocol of Kafka: an answer has its length in front.
enum Kafka {}

impl Protocol for Kafka {
    type Message = BytesMut;
    const SERVER: &'static str = "Kafka broker";

    fn parse(input: &mut BytesMut) -> Result<Option<BytesMut>, ()> {
        let Some(length) = input.first_chunk().copied().map(i32::from_be_bytes) else { return Ok(None) };
        let length = usize::try_from(length).ok().filter(|length| (4..=MESSAGE_MAX).contains(length)).ok_or(())?;
        if input.len() - 4 < length {
            return Ok(None);
        }
        input.advance(4);
        Ok(Some(input.split_to(length)))
    }
}

/// A connection to a broker.
pub(super) struct Broker {
    wire: Exchange<Kafka>,
    /// `HOST:PORT`.
    pub(super) place: String,
    /// The number of the last request. Answers come in order, each with its request's number.
    last: i32,
}

impl Broker {
    /// Connects to a broker at `place`, logs in, and checks that it knows the requests.
    pub(super) fn open(place: &str, address: &KafkaAddress, tls: &TlsFiles) -> io::Result<Broker> {
        let stream = tcp::connect(place)?;
        let socket = match address.is_encrypted {
            false => Socket::Tcp(stream),
            #[cfg(feature = "tls")]
            true => {
                let host = crate::url::host_of(place);
                let socket = crate::transports::encrypted::socket(stream, host, place, true, tls)?;
                Socket::Tls(Box::new(socket))
            }
            #[cfg(not(feature = "tls"))]
            true => return Err(crate::transports::without_tls()),
        };
        let _ = tls;
        let mut broker = Broker { wire: Exchange::new(socket), place: place.to_owned(), last: 0 };
        let named = |error: io::Error| with_object("no answers from", place, &error);
        if let Some(login) = &address.login {
            broker.log_in(login).map_err(|error| with_object("cannot log in to", place, &error))?;
        }
        let answer = broker.ask(requests::VERSIONS, &[]).map_err(named)?;
        if let Some(missing) = requests::missing_api(&answer).map_err(named)? {
            let text = format!("{place} does not support {missing}: netwren needs Kafka 2.4 or later");
            return Err(io::Error::new(ErrorKind::Unsupported, text));
        }
        Ok(broker)
    }

    /// Adds a request to what waits to be written.
    pub(super) fn request(&mut self, api: Api, body: &[u8]) {
        self.last = self.last.wrapping_add(1);
        let mut head = Vec::with_capacity(32);
        head.extend_from_slice(&api.key.to_be_bytes());
        head.extend_from_slice(&api.version.to_be_bytes());
        head.extend_from_slice(&self.last.to_be_bytes());
        put_string(&mut head, CLIENT);
        let length = i32::try_from(head.len() + body.len()).unwrap_or(i32::MAX);
        for part in [&length.to_be_bytes(), &head[..], body] {
            self.wire.out.extend_from_slice(part);
        }
    }

    /// Returns the answer to the last request, if it arrives within `wait`.
    pub(super) fn answer(&mut self, wait: Duration) -> io::Result<Option<BytesMut>> {
        let answer = self.wire.next(wait)?;
        answer.map(|answer| self.body(answer)).transpose()
    }

    /// Sends a request while the connection is opened, and returns the answer.
    pub(super) fn ask(&mut self, api: Api, body: &[u8]) -> io::Result<BytesMut> {
        self.request(api, body);
        let answer = self.wire.wait()?;
        self.body(answer)
    }

    /// Gives the answers that follow the time of an opened connection.
    pub(super) fn begin_again(&mut self) {
        self.wire.restart();
    }

    /// Checks that an answer belongs to the last request, and returns the rest of it.
    fn body(&self, mut answer: BytesMut) -> io::Result<BytesMut> {
        let number = answer.first_chunk().copied().map(i32::from_be_bytes);
        if number != Some(self.last) {
            return Err(malformed());
        }
        answer.advance(4);
        Ok(answer)
    }

    /// Checks that the broker has not closed the connection. It says nothing without a request.
    pub(super) fn check_open(&mut self) -> io::Result<()> {
        match self.wire.next(Duration::ZERO)? {
            None => Ok(()),
            Some(_) => Err(malformed()),
        }
    }

    fn log_in(&mut self, login: &KafkaLogin) -> io::Result<()> {
        let password = password(login)?;
        let mut body = Vec::new();
        put_string(&mut body, login.mechanism.name());
        let (code, known) = requests::read_handshake(&self.ask(requests::SASL_HANDSHAKE, &body)?)?;
        if code == ErrorCode::NO_MECHANISM {
            let text = format!("the broker does not support {}; it supports {}", login.mechanism.name(), words(&known));
            return Err(io::Error::new(ErrorKind::Unsupported, text));
        }
        if !code.is_none() {
            return Err(code.error("SaslHandshake"));
        }
        let hash = match login.mechanism {
            Mechanism::Plain if !self.wire.is_encrypted() => {
                return Err(io::Error::new(ErrorKind::PermissionDenied, "the password would be sent in clear text"));
            }
            Mechanism::Plain => {
                return self.prove(&format!("\0{}\0{password}", login.user)).map(drop);
            }
            Mechanism::ScramSha256 => Hash::Sha256,
            Mechanism::ScramSha512 => Hash::Sha512,
        };
        let mut nonce = [0; NONCE_BYTES];
        sys::random::fill(&mut nonce).map_err(|errno| io::Error::from_raw_os_error(errno.0))?;
        let scram = Scram::new(hash, &login.user, &nonce);
        let answer = self.prove(&scram.first_message())?;
        let proof = scram.prove(&answer, &password)?;
        let answer = self.prove(&proof.message)?;
        if proof.is_answered_by(&answer) {
            return Ok(());
        }
        let text = "the broker does not know the password either: it is not the right one";
        Err(io::Error::new(ErrorKind::PermissionDenied, text))
    }

    /// Sends a message of the login, and returns the broker's.
    fn prove(&mut self, message: &str) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        super::values::put_length(&mut body, message.len());
        body.extend_from_slice(message.as_bytes());
        let answer = self.ask(requests::SASL, &body)?;
        match requests::read_sasl(&answer)? {
            Ok(bytes) => Ok(bytes.to_vec()),
            Err((code, words)) => Err(code.error(&excerpt(&words))),
        }
    }
}

/// Names that a broker sent, for a message.
fn words(known: &[String]) -> String {
    let known: Vec<String> = known.iter().take(8).map(|word| excerpt(word)).collect();
    if known.is_empty() { "none".to_owned() } else { known.join(", ") }
}

/// The password: from a file, or from the environment.
fn password(login: &KafkaLogin) -> io::Result<String> {
    let found = secret_file::password(login.passfile.as_deref(), PASSWORD)?;
    if found.is_empty() {
        let text =
            format!("the password is missing: use {PASSWORD}, or ?passfile=FILE with the password in its first line");
        return Err(io::Error::new(ErrorKind::PermissionDenied, text));
    }
    Ok(found)
}
