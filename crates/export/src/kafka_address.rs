//! The address of a Kafka topic: `kafka://[USER@]BROKER[:PORT][,BROKER…]/TOPIC`, with parameters after a `?`.

use crate::url::{UrlParts, decode_percent, receiver_of};
use std::fmt;
use std::path::PathBuf;

/// The usual ports without and with TLS.
const PORTS: [u16; 2] = [9092, 9093];

/// Longest name of a topic (`Topic.MAX_NAME_LENGTH` in Kafka).
///
/// Bound: characters of a topic. Beyond: the target is refused. By: the user.
const TOPIC_MAX: usize = 249;
/// Most brokers that are asked for the topic.
///
/// Bound: brokers of a target. Beyond: the target is refused. By: the user.
const BROKERS_MAX: usize = 32;

/// Ways to log in, with Kafka's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Mechanism {
    /// The password in clear text, which needs TLS.
    Plain,
    /// RFC 7677: the broker also proves that it knows the password, and never receives it.
    ScramSha256,
    /// SCRAM with SHA-512.
    ScramSha512,
}

/// The words of a URL for the mechanisms, and their names in the protocol.
const MECHANISMS: [(&str, &str, Mechanism); 3] = [
    ("scram-sha-512", "SCRAM-SHA-512", Mechanism::ScramSha512),
    ("scram-sha-256", "SCRAM-SHA-256", Mechanism::ScramSha256),
    ("plain", "PLAIN", Mechanism::Plain),
];

impl Mechanism {
    /// The name in the protocol.
    #[cfg(feature = "kafka")]
    pub(crate) fn name(self) -> &'static str {
        MECHANISMS.iter().find(|(.., known)| *known == self).map_or("", |(_, name, _)| name)
    }
}

/// The user, and how it logs in.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct KafkaLogin {
    pub(crate) user: String,
    pub(crate) mechanism: Mechanism,
    /// A file with the password; without it the password is in the environment.
    pub(crate) passfile: Option<PathBuf>,
}

/// A topic, and the brokers that know where it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KafkaAddress {
    /// The brokers to ask first, as `HOST:PORT`.
    pub brokers: Vec<String>,
    /// The topic.
    pub topic: String,
    /// True if all connections use TLS.
    pub is_encrypted: bool,
    /// True if batches are compressed with gzip.
    pub(crate) is_packed: bool,
    pub(crate) login: Option<KafkaLogin>,
    shown: String,
}

impl KafkaAddress {
    /// Parses the text after `kafka:` or, if `is_encrypted`, after `kafka+tls:`. No error contains a password.
    pub(crate) fn parse(rest: &str, is_encrypted: bool) -> Result<KafkaAddress, String> {
        let scheme = if is_encrypted { "kafka+tls" } else { "kafka" };
        let form =
            || format!("a topic is {scheme}://BROKER:PORT,BROKER:PORT/TOPIC, or {scheme}://USER@BROKER:PORT/TOPIC");
        let UrlParts { user, receiver: brokers, path: topic, query } = UrlParts::split(rest).ok_or_else(form)?;
        if user.is_some_and(|user| user.contains(':')) {
            return Err(format!("no password in a topic's URL: use {PASSWORD} or ?passfile=FILE"));
        }
        check_topic(topic)?;
        let port = PORTS[usize::from(is_encrypted)];
        let brokers: Option<Vec<String>> = brokers.split(',').map(|one| receiver_of(one, port)).collect();
        let mut address = KafkaAddress {
            brokers: brokers.filter(|all| all.len() <= BROKERS_MAX).ok_or_else(form)?,
            topic: topic.to_owned(),
            is_encrypted,
            is_packed: true,
            login: None,
            shown: format!("{scheme}:{rest}"),
        };
        if let Some(user) = user {
            let user = decode_percent(user)?;
            if user.is_empty() {
                return Err(form());
            }
            address.login = Some(KafkaLogin { user, mechanism: Mechanism::ScramSha512, passfile: None });
        }
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            address.take(pair)?;
        }
        match &address.login {
            Some(login) if login.mechanism == Mechanism::Plain && !is_encrypted => {
                Err("sasl=plain sends the password in clear text: use kafka+tls:// or sasl=scram-sha-512".to_owned())
            }
            _ => Ok(address),
        }
    }

    /// Applies one parameter after the question mark.
    fn take(&mut self, pair: &str) -> Result<(), String> {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let no_user = || format!("{} needs a user: kafka://USER@…", key.escape_default());
        let login = self.login.as_mut().ok_or_else(no_user);
        match key {
            "format" if value == "json" => Ok(()),
            "format" => Err("the format of messages in Kafka is json".to_owned()),
            "compression" => {
                let is_packed = match value {
                    "gzip" => true,
                    "none" => false,
                    _ => return Err("compression is gzip or none".to_owned()),
                };
                self.is_packed = is_packed;
                Ok(())
            }
            "sasl" => {
                let known = MECHANISMS.iter().find(|(word, ..)| *word == value);
                let words = "sasl is scram-sha-512, scram-sha-256 or plain";
                login?.mechanism = known.map(|(.., mechanism)| *mechanism).ok_or(words)?;
                Ok(())
            }
            "passfile" => {
                login?.passfile = Some(decode_percent(value)?.into());
                Ok(())
            }
            "password" => Err(format!("no password in a topic's URL: use {PASSWORD} or ?passfile=FILE")),
            _ => Err(format!(
                "unknown key `{}` for a topic: the keys are format, compression, sasl, passfile",
                key.escape_default()
            )),
        }
    }
}

/// Fails if Kafka has no such topic names.
fn check_topic(topic: &str) -> Result<(), String> {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if !(1..=TOPIC_MAX).contains(&topic.len()) || !topic.chars().all(is_legal) || matches!(topic, "." | "..") {
        let shown = topic.escape_debug();
        return Err(format!("a topic has 1 to {TOPIC_MAX} letters, digits, `.`, `_` and `-`: {shown}"));
    }
    Ok(())
}

/// The variable of the environment with the password.
pub(crate) const PASSWORD: &str = "NETWREN_KAFKA_PASSWORD";

impl fmt::Display for KafkaAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn topics_are_read() {
        let url = "//fw%40x@a.example,[2001:db8::1]:9094,b:9095/netwren.flows?sasl=scram-sha-256&passfile=/etc/p%20w";
        let address = KafkaAddress::parse(url, true).unwrap();
        assert_eq!(address.brokers, ["a.example:9093", "[2001:db8::1]:9094", "b:9095"]);
        assert_eq!((&*address.topic, address.is_packed), ("netwren.flows", true));
        let login = address.login.as_ref().unwrap();
        assert_eq!((&*login.user, login.mechanism), ("fw@x", Mechanism::ScramSha256));
        assert_eq!(login.passfile.as_deref(), Some("/etc/p w".as_ref()));
        assert_eq!(address.to_string(), format!("kafka+tls:{url}"));
        let plain = KafkaAddress::parse("//a/t?format=json&compression=none", false).unwrap();
        assert_eq!((&*plain.brokers[0], plain.is_packed, plain.login), ("a:9092", false, None));
    }

    #[test]
    fn mistakes_are_answered_with_what_would_work() {
        for (url, says) in [
            ("a/t", "a topic is kafka://"),
            ("//a", "a topic is kafka://"),
            ("///t", "a topic is kafka://"),
            ("//a,,b/t", "a topic is kafka://"),
            ("//a:x/t", "a topic is kafka://"),
            ("//@a/t", "a topic is kafka://"),
            ("//a/t/u", "a topic has 1 to 249"),
            ("//a/", "a topic has 1 to 249"),
            ("//a/..", "a topic has 1 to 249"),
            ("//a/t?sasl=plain", "needs a user"),
            ("//u@a/t?sasl=plain", "in clear text: use kafka+tls://"),
            ("//u@a/t?sasl=gssapi", "sasl is scram-sha-512"),
            ("//a/t?format=protobuf", "is json"),
            ("//a/t?compression=zstd", "compression is gzip or none"),
            ("//a/t?x=1", "unknown key `x`"),
            ("//u:hunter2@a/t", "use NETWREN_KAFKA_PASSWORD or ?passfile"),
            ("//u@a/t?password=hunter2", "use NETWREN_KAFKA_PASSWORD or ?passfile"),
        ] {
            let said = KafkaAddress::parse(url, false).unwrap_err();
            assert!(said.contains(says) && !said.contains("hunter"), "{url}: {said}");
        }
    }
}
