//! Parsing of a published port in the notation of the command line.

use super::{Impossible, Publish, Transport};
use record::Addr;
use std::str::FromStr;

impl FromStr for Publish {
    type Err = Impossible;

    fn from_str(written: &str) -> Result<Publish, Impossible> {
        let wrong = |why: &'static str| Impossible::NotUnderstood { written: written.to_owned(), why };
        let (body, transport) = match written.rsplit_once('/') {
            None => (written, Transport::Tcp),
            Some((body, "tcp")) => (body, Transport::Tcp),
            Some((body, "udp")) => (body, Transport::Udp),
            Some(_) => return Err(wrong("only /tcp and /udp ports can be rewritten without state")),
        };
        let parts = split(body).ok_or_else(|| wrong("a bracket is not closed"))?;
        let (public, port, backend, backend_port) = match parts.as_slice() {
            [port, backend, backend_port] => (None, *port, *backend, *backend_port),
            [public, port, backend, backend_port] => (Some(*public), *port, *backend, *backend_port),
            _ => return Err(wrong("the format is [ADDR:]PORT:BACKEND:PORT[/tcp|/udp], IPv6 in brackets")),
        };
        let addr = |text: &str| text.parse::<Addr>().ok();
        let number = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
        Ok(Publish {
            transport,
            public: public
                .map(|text| addr(text).ok_or_else(|| wrong("the host's address is not an IP address")))
                .transpose()?,
            port: number(port).ok_or_else(|| wrong("the published port is not a number from 1 to 65535"))?,
            backend: addr(backend).ok_or_else(|| Impossible::Dynamic { written: backend.to_owned() })?,
            backend_port: number(backend_port)
                .ok_or_else(|| wrong("the backend's port is not a number from 1 to 65535"))?,
        })
    }
}

/// Splits at colons, except inside brackets; removes the brackets.
fn split(body: &str) -> Option<Vec<&str>> {
    let (mut parts, mut rest) = (Vec::new(), body);
    loop {
        if let Some(inner) = rest.strip_prefix('[') {
            let (addr, behind) = inner.split_once(']')?;
            parts.push(addr);
            match behind.strip_prefix(':') {
                Some(more) => rest = more,
                None => return behind.is_empty().then_some(parts),
            }
        } else if let Some((part, more)) = rest.split_once(':') {
            parts.push(part);
            rest = more;
        } else {
            parts.push(rest);
            return Some(parts);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn shown(written: &str) -> String {
        match written.parse::<Publish>() {
            Ok(publish) => publish.to_string(),
            Err(wrong) => format!("! {wrong}"),
        }
    }

    #[test]
    fn forms() {
        assert_eq!(shown("8080:172.17.0.2:80"), "8080:172.17.0.2:80/tcp");
        assert_eq!(shown("192.0.2.1:53:172.17.0.2:5353/udp"), "192.0.2.1:53:172.17.0.2:5353/udp");
        assert_eq!(shown("[2001:db8::1]:443:[fd00::2]:8443"), "[2001:db8::1]:443:[fd00::2]:8443/tcp");
        assert_eq!(shown("443:[fd00::2]:8443/tcp"), "443:[fd00::2]:8443/tcp");
    }

    #[test]
    fn what_is_none() {
        for (written, says) in [
            ("", "the format is"),
            ("8080", "the format is"),
            ("0:172.17.0.2:80", "1 to 65535"),
            ("70000:172.17.0.2:80", "1 to 65535"),
            ("8080:172.17.0.2:http", "backend's port"),
            ("8080:172.17.0.2:80/sctp", "only /tcp and /udp"),
            ("8080:web:80", "web"),
            ("8080:[fd00::2:80", "bracket"),
            ("a:8080:172.17.0.2:80", "host's address"),
        ] {
            assert!(shown(written).starts_with("! ") && shown(written).contains(says), "{written}: {}", shown(written));
        }
    }

    proptest! {
        #[test]
        fn any_text_ends(written in "\\PC{0,40}") {
            let _ = written.parse::<Publish>();
        }

        #[test]
        fn what_is_shown_reads_back(v6 in any::<bool>(), a in any::<[u8; 16]>(), p in 1u16.., q in 1u16..,
            named in any::<bool>()) {
            let addr = if v6 { Addr::V6(a) } else { Addr::V4([a[0], a[1], a[2], a[3]]) };
            let publish = Publish { transport: Transport::Udp, public: named.then_some(addr), port: p, backend: addr,
                backend_port: q };
            prop_assert_eq!(publish.to_string().parse::<Publish>().unwrap(), publish);
        }
    }
}
