//! Targets: a format and a receiver, as users write them: `syslog+tcp://log.example:6514`, `logemu:/var/log/fw.log`.

use crate::{ClickHouseAddress, KafkaAddress, OtlpAddress, PostgresAddress};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The format of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// RFC 5424; for a unix socket RFC 3164, which local programs write.
    Syslog,
    /// RFC 5424, even for a unix socket.
    Syslog5424,
    /// RFC 3164, for receivers that know only that.
    Syslog3164,
    /// One JSON object per line, with the columns' names as keys.
    Json,
    /// JSON with ulogd2's keys (`eventv0`).
    JsonV0,
    /// JSON with ulogd2's newer keys (`eventv1`).
    JsonV1,
    /// The text of the kernel's LOG target.
    Logemu,
    /// ulogd2's GPRINT.
    Gprint,
    /// ulogd2's OPRINT.
    Oprint,
    /// ulogd2's XML.
    Xml,
    /// Packets as tcpdump writes them.
    Pcap,
    /// Packets with names of interfaces and prefixes.
    Pcapng,
    /// Rows of a table in an SQLite database.
    #[cfg(feature = "sqlite")]
    Sqlite,
    /// Rows of a table in a PostgreSQL database.
    Postgres,
    /// Rows of a table in ClickHouse.
    ClickHouse,
    /// Log records of OpenTelemetry.
    Otlp,
    /// Records for collectors of flows (RFC 7011).
    Ipfix,
}

/// Each format with its word and the wires that carry it.
const FORMATS: &[(&str, Format, &[Wire])] = &[
    ("syslog", Format::Syslog, &[Wire::Tcp, Wire::Tls, Wire::Udp, Wire::Unix]),
    ("syslog-rfc5424", Format::Syslog5424, &[Wire::Tcp, Wire::Tls, Wire::Udp, Wire::Unix]),
    ("syslog-rfc3164", Format::Syslog3164, &[Wire::Tcp, Wire::Tls, Wire::Udp, Wire::Unix]),
    ("json", Format::Json, &[Wire::File, Wire::Tcp, Wire::Tls, Wire::Unix]),
    ("json-v0", Format::JsonV0, &[Wire::File, Wire::Tcp, Wire::Tls, Wire::Unix]),
    ("json-v1", Format::JsonV1, &[Wire::File, Wire::Tcp, Wire::Tls, Wire::Unix]),
    ("logemu", Format::Logemu, &[Wire::File, Wire::Tcp, Wire::Tls, Wire::Unix]),
    ("gprint", Format::Gprint, &[Wire::File]),
    ("oprint", Format::Oprint, &[Wire::File]),
    ("xml", Format::Xml, &[Wire::File]),
    ("pcap", Format::Pcap, &[Wire::File]),
    ("pcapng", Format::Pcapng, &[Wire::File]),
    #[cfg(feature = "sqlite")]
    ("sqlite", Format::Sqlite, &[Wire::File]),
    ("postgres", Format::Postgres, &[Wire::Postgres]),
    ("clickhouse", Format::ClickHouse, &[Wire::ClickHouse]),
    ("ipfix", Format::Ipfix, &[Wire::Udp]),
    ("otlp", Format::Otlp, &[Wire::Http, Wire::Https]),
];

impl Format {
    /// True for the syslog formats.
    fn is_syslog(self) -> bool {
        matches!(self, Format::Syslog | Format::Syslog5424 | Format::Syslog3164)
    }

    /// Returns the word for the format.
    pub fn word(self) -> &'static str {
        FORMATS.iter().find(|(_, format, _)| *format == self).map_or("", |(word, ..)| word)
    }
}

/// The medium that carries messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wire {
    /// A file or FIFO.
    File,
    /// TCP.
    Tcp,
    /// TLS over TCP.
    Tls,
    /// UDP.
    Udp,
    /// A unix socket: datagrams for syslog, a stream for lines.
    Unix,
    /// The protocol of PostgreSQL.
    Postgres,
    /// The HTTP interface of ClickHouse.
    ClickHouse,
    /// HTTP.
    Http,
    /// HTTP over TLS.
    Https,
}

impl Wire {
    fn from_word(word: &str) -> Option<Wire> {
        match word {
            "" => Some(Wire::File),
            "tcp" => Some(Wire::Tcp),
            "tls" => Some(Wire::Tls),
            "udp" => Some(Wire::Udp),
            "unix" => Some(Wire::Unix),
            _ => None,
        }
    }

    fn example(self, word: &str) -> String {
        match self {
            Wire::File => format!("{word}:/PATH"),
            Wire::Tcp => format!("{word}+tcp://HOST:PORT"),
            Wire::Tls => format!("{word}+tls://HOST:PORT"),
            Wire::Udp => format!("{word}+udp://HOST:PORT"),
            Wire::Unix => format!("{word}+unix:/PATH"),
            Wire::Http => format!("{word}+http://HOST:PORT"),
            Wire::Https => format!("{word}+https://HOST:PORT"),
            Wire::Postgres => format!("{word}://USER@HOST:PORT/DATABASE"),
            Wire::ClickHouse => format!("{word}://USER@HOST:PORT/DATABASE, {word}s://USER@HOST:PORT/DATABASE"),
        }
    }
}

/// The receiver.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
    /// A file or FIFO.
    File(PathBuf),
    /// `HOST:PORT` over TCP.
    Tcp(String),
    /// `HOST:PORT` over TLS.
    Tls(String),
    /// `HOST:PORT` over UDP.
    Udp(String),
    /// A unix socket for connections.
    UnixStream(PathBuf),
    /// A unix socket for datagrams.
    UnixDatagrams(PathBuf),
    /// A PostgreSQL database.
    Postgres(Box<PostgresAddress>),
    /// A topic of Kafka.
    Kafka(Box<KafkaAddress>),
    /// A ClickHouse database.
    ClickHouse(Box<ClickHouseAddress>),
    /// A receiver of OpenTelemetry logs.
    Otlp(Box<OtlpAddress>),
}

/// How the end of a syslog message is marked in a stream (RFC 6587).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Framing {
    /// Octet counting for RFC 5424, a newline for RFC 3164.
    #[default]
    OfFormat,
    /// A newline after each message (`?framing=newline`).
    Newline,
    /// The length before each message (`?framing=octet-counting`).
    OctetCounting,
}

const FRAMINGS: [(&str, Framing); 2] = [("newline", Framing::Newline), ("octet-counting", Framing::OctetCounting)];

/// A format and a receiver.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    /// The format of messages.
    pub format: Format,
    /// How the end of a message is marked in a stream.
    pub framing: Framing,
    /// The receiver.
    pub address: Address,
}

impl Target {
    /// True if the connection may use TLS, so that the options about certificates apply.
    pub fn may_use_tls(&self) -> bool {
        match &self.address {
            Address::Tls(_) | Address::Postgres(_) => true,
            Address::Kafka(address) => address.is_encrypted,
            Address::ClickHouse(address) => address.is_encrypted,
            Address::Otlp(address) => address.is_encrypted,
            _ => false,
        }
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Target, String> {
        let Some((scheme, rest)) = text.split_once(':') else {
            return Err(format!("`{text}` is not a receiver: use FORMAT:PATH or FORMAT+tcp://HOST:PORT"));
        };
        if let "postgres" | "postgresql" = scheme {
            let address = Address::Postgres(Box::new(PostgresAddress::parse(rest)?));
            return Ok(Target { format: Format::Postgres, framing: Framing::default(), address });
        }
        if let "kafka" | "kafka+tls" = scheme {
            let address = Address::Kafka(Box::new(KafkaAddress::parse(rest, scheme == "kafka+tls")?));
            return Ok(Target { format: Format::Json, framing: Framing::default(), address });
        }
        if let "clickhouse" | "clickhouses" = scheme {
            let address = Address::ClickHouse(Box::new(ClickHouseAddress::parse(rest, scheme == "clickhouses")?));
            return Ok(Target { format: Format::ClickHouse, framing: Framing::default(), address });
        }
        if let "otlp+http" | "otlp+https" | "otlps+http" = scheme {
            let address = Address::Otlp(Box::new(OtlpAddress::parse(scheme, rest)?));
            return Ok(Target { format: Format::Otlp, framing: Framing::default(), address });
        }
        let (word, wire_word) = scheme.split_once('+').unwrap_or((scheme, ""));
        #[cfg(not(feature = "sqlite"))]
        if word == "sqlite" {
            return Err("this netwren was built without SQLite (cargo feature `sqlite`)".to_owned());
        }
        let Some((_, format, wires)) = FORMATS.iter().find(|(known, ..)| *known == word) else {
            let words: Vec<&str> = FORMATS.iter().map(|(word, ..)| *word).chain(["kafka"]).collect();
            return Err(format!("`{word}` is not a message format; the formats are {}", words.join(", ")));
        };
        let wire = Wire::from_word(wire_word).filter(|wire| wires.contains(wire));
        let Some(wire) = wire else {
            let ways: Vec<String> = wires.iter().map(|wire| wire.example(word)).collect();
            return Err(format!("`{scheme}` does not exist; {word} goes to {}", ways.join(", ")));
        };
        let is_stream = format.is_syslog() && matches!(wire, Wire::Tcp | Wire::Tls);
        let (rest, framing) = match rest.split_once('?').filter(|_| is_stream) {
            Some((rest, query)) => (rest, parse_framing(query)?),
            None => (rest, Framing::default()),
        };
        Ok(Target {
            format: *format,
            framing,
            address: address(wire, *format, rest).ok_or_else(|| wire.usage_error(text, word))?,
        })
    }
}

/// Parses the text after the question mark of a syslog receiver.
fn parse_framing(query: &str) -> Result<Framing, String> {
    let word = query.strip_prefix("framing=");
    let known = word.and_then(|word| FRAMINGS.iter().find(|(known, _)| *known == word));
    let wrong = || format!("`?{}` is unknown: use ?framing=newline or ?framing=octet-counting", query.escape_default());
    known.map(|(_, framing)| *framing).ok_or_else(wrong)
}

impl Wire {
    fn usage_error(self, text: &str, word: &str) -> String {
        format!("`{text}` is not a receiver: use {}", self.example(word))
    }
}

fn address(wire: Wire, format: Format, rest: &str) -> Option<Address> {
    if let Wire::Tcp | Wire::Tls | Wire::Udp = wire {
        let receiver = rest.strip_prefix("//")?.trim_end_matches('/');
        let (host, port) = receiver.rsplit_once(':')?;
        let is_bare_v6 = host.contains(':') && !(host.starts_with('[') && host.ends_with(']'));
        let fits = !host.is_empty() && !is_bare_v6 && port.parse::<u16>().is_ok_and(|port| port != 0);
        let receiver = fits.then(|| receiver.to_owned())?;
        return Some(match wire {
            Wire::Tls => Address::Tls(receiver),
            Wire::Udp => Address::Udp(receiver),
            _ => Address::Tcp(receiver),
        });
    }
    let path = rest.strip_prefix("//").filter(|path| path.starts_with('/')).unwrap_or(rest);
    if path.is_empty() || path.contains('\0') {
        return None;
    }
    let path = PathBuf::from(path);
    Some(match (wire, format) {
        (Wire::File, _) => Address::File(path),
        (_, format) if format.is_syslog() => Address::UnixDatagrams(path),
        _ => Address::UnixStream(path),
    })
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.format.word();
        match &self.address {
            Address::File(path) => write!(f, "{word}:{}", path.display()),
            Address::Tcp(receiver) => write!(f, "{word}+tcp://{receiver}"),
            Address::Tls(receiver) => write!(f, "{word}+tls://{receiver}"),
            Address::Udp(receiver) => write!(f, "{word}+udp://{receiver}"),
            Address::UnixStream(path) | Address::UnixDatagrams(path) => write!(f, "{word}+unix:{}", path.display()),
            Address::Postgres(address) => address.fmt(f),
            Address::Kafka(address) => address.fmt(f),
            Address::ClickHouse(address) => address.fmt(f),
            Address::Otlp(address) => address.fmt(f),
        }?;
        match FRAMINGS.iter().find(|(_, framing)| *framing == self.framing) {
            Some((word, _)) => write!(f, "?framing={word}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn targets_are_written_as_they_were_read() {
        for text in [
            "syslog+tcp://log.example:6514",
            "syslog+tls://log.example:6514",
            "json+tls://[2001:db8::1]:6514",
            "syslog+udp://[2001:db8::1]:514",
            "syslog+unix:/dev/log",
            "syslog-rfc5424+unix:/run/a?b",
            "syslog+tcp://log.example:514?framing=newline",
            "syslog-rfc3164+tls://log.example:514?framing=octet-counting",
            "syslog-rfc3164+udp://192.0.2.1:514",
            "ipfix+udp://collector.example:4739",
            "json:/var/log/fw.json",
            "json+tcp://192.0.2.1:5140",
            "json-v1+unix:/run/collector",
            "logemu:fw.log",
            "pcapng:/tmp/a:b.pcapng",
            "postgres://fw@db.example:5432/logs?table=net.log",
            "kafka://a.example,b.example:9094/netwren.flows?compression=none",
            "kafka+tls://fw@a.example/netwren.flows?sasl=plain",
            "clickhouse://fw@a.example:8123/netwren?table=flows",
            "clickhouses://a.example/netwren",
            "otlp+http://a.example",
            "otlp+https://loki.example:3100/otlp/v1/logs",
        ] {
            let target: Target = text.parse().unwrap();
            assert_eq!(target.to_string(), text);
        }
        let target: Target = "json:///var/log/x".parse().unwrap();
        assert_eq!(target.address, Address::File("/var/log/x".into()));
        let log: Target = "syslog+unix:/dev/log".parse().unwrap();
        assert_eq!(log.address, Address::UnixDatagrams("/dev/log".into()));
    }

    #[test]
    fn what_makes_no_sense_is_answered_with_what_would() {
        for (text, says) in [
            ("/var/log/x", "is not a receiver"),
            ("yaml:/x", "`yaml` is not a message format; the formats are syslog,"),
            ("pcap+tcp://a:1", "`pcap+tcp` does not exist; pcap goes to pcap:/PATH"),
            ("syslog:/var/log/x", "syslog goes to syslog+tcp://HOST:PORT, syslog+tls://HOST:PORT"),
            ("syslog+tcp://log.example", "use syslog+tcp://HOST:PORT"),
            ("ipfix+tcp://a:1", "ipfix goes to ipfix+udp://HOST:PORT"),
            ("clickhouse+tls://a/d", "/DATABASE, clickhouses://USER@HOST:PORT/DATABASE"),
            ("otlp+grpc://a:4317", "otlp goes to otlp+http://HOST:PORT, otlp+https://HOST:PORT"),
            ("syslog+tcp://2001:db8::1:514", "use syslog+tcp://HOST:PORT"),
            ("syslog+tcp://a:0", "is not a receiver: use "),
            ("syslog+tcp:a:1", "is not a receiver: use "),
            ("syslog+tcp://a:1?framing=x", "`?framing=x` is unknown: use ?framing=newline or"),
            ("json+tcp://a:1?framing=newline", "is not a receiver: use "),
            ("json:", "use json:/PATH"),
        ] {
            let said = text.parse::<Target>().unwrap_err();
            assert!(said.contains(says), "{text}: {said}");
        }
    }
}
