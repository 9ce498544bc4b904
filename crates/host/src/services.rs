//! Names of ports, from /etc/services.
use record::Proto;
use sys::Host;

use crate::HostError;
use crate::texts::Texts;

/// (protocol, port) → name.
#[derive(Debug, Default)]
pub struct Services {
    names: Texts<(Proto, u16)>,
    protocols: Texts<u16>,
}

impl Services {
    /// Reads /etc/services. Skips malformed lines; the first line of a port wins, as in getservbyport(3).
    pub fn read(host: &Host) -> Result<Services, HostError> {
        let mut text = Vec::new();
        host.read_file("/etc/services", &mut text)?;
        Ok(Services::parse(text))
    }

    /// Adds the IP protocols of /etc/protocols, under [`Proto::Raw`] and their number.
    pub fn add_protocols(&mut self, host: &Host) -> Result<(), HostError> {
        let mut text = Vec::new();
        host.read_file("/etc/protocols", &mut text)?;
        let places = places(&text, protocol);
        self.protocols = Texts::new(text, places);
        Ok(())
    }

    pub(crate) fn parse(text: Vec<u8>) -> Services {
        let places = places(&text, entry);
        Services { names: Texts::new(text, places), protocols: Texts::default() }
    }

    /// Every name of a port.
    pub(crate) fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.names.each().map(|(_, name)| name)
    }

    /// The name of a protocol's port; for raw sockets the name of the IP protocol.
    pub fn name(&self, proto: Proto, port: u16) -> Option<&[u8]> {
        if proto == Proto::Raw { self.protocols.get(port) } else { self.names.get((proto, port)) }
    }
}

/// The (protocol, port) pairs with the name or alias `name` in a text like /etc/services, in the order of the lines,
/// without duplicates.
pub fn ports_named(text: &[u8], name: &[u8]) -> Vec<(Proto, u16)> {
    let mut found = Vec::new();
    for line in text.split(|&b| b == b'\n') {
        let Some((key, ..)) = entry(line) else { continue };
        let line = line.split(|&b| b == b'#').next().unwrap_or_default();
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).enumerate();
        // The second word is the port.
        if words.any(|(at, word)| at != 1 && word == name) && !found.contains(&key) {
            found.push(key);
        }
    }
    found
}

/// Key of a line, offset of the name in it, length of the name.
type NameInLine<K> = (K, usize, usize);

// The keys of a file's lines, with the places of their names.
fn places<K>(text: &[u8], entry: fn(&[u8]) -> Option<NameInLine<K>>) -> Vec<(K, u32, u32)> {
    let mut places = Vec::new();
    let mut start = 0;
    for line in text.split(|&b| b == b'\n') {
        if let Some((key, from, length)) = entry(line) {
            // Files are at most 64 MiB long.
            places.push((key, (start + from) as u32, (start + from + length) as u32));
        }
        start += line.len() + 1;
    }
    places
}

// Parses `name number aliases # comment`: number, offset and length of the name.
fn protocol(line: &[u8]) -> Option<NameInLine<u16>> {
    let line = line.split(|&b| b == b'#').next()?;
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let name = words.next()?;
    let number = std::str::from_utf8(words.next()?).ok()?.parse().ok()?;
    let from = line.iter().position(|b| !b.is_ascii_whitespace())?;
    Some((number, from, name.len()))
}

// Parses `name port/protocol aliases # comment`: key, offset and length of the name.
fn entry(line: &[u8]) -> Option<NameInLine<(Proto, u16)>> {
    let line = line.split(|&b| b == b'#').next()?;
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let name = words.next()?;
    let (port, proto) = std::str::from_utf8(words.next()?).ok()?.split_once('/')?;
    let proto = match proto {
        "tcp" => Proto::Tcp,
        "udp" => Proto::Udp,
        _ => return None,
    };
    let from = line.iter().position(|b| !b.is_ascii_whitespace())?;
    Some(((proto, port.parse().ok()?), from, name.len()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_file_with_odd_lines() {
        let services = Services::parse(
            b"# c\nssh\t\t22/tcp\t\t# SSH\n  domain 53/tcp\ndomain\t53/udp dns\nother 22/tcp\nx 70000/tcp\ny \
              1/sctp\nz\n\
              #no 9/tcp\nodd\x1b 7/udp"
                .to_vec(),
        );
        assert_eq!(services.name(Proto::Tcp, 22), Some(&b"ssh"[..]));
        assert_eq!(services.name(Proto::Tcp, 53), Some(&b"domain"[..]));
        assert_eq!(services.name(Proto::Udp, 53), Some(&b"domain"[..]));
        assert_eq!(services.name(Proto::Udp, 7), Some(&b"odd\x1b"[..]));
        assert_eq!(services.name(Proto::Udp, 22), None);
        assert_eq!(services.name(Proto::Tcp, 9), None);
        assert_eq!(services.names.len(), 4);
    }

    #[test]
    fn ports_by_name_and_alias() {
        let text =
            b"# x\nssh 22/tcp secure # no\nssh 2222/udp\nx y/tcp\nbig 70000/tcp\nssh 22/tcp\n\nz 9/sctp secure\n";
        assert_eq!(ports_named(text, b"ssh"), [(Proto::Tcp, 22), (Proto::Udp, 2222)]);
        assert_eq!(ports_named(text, b"secure"), [(Proto::Tcp, 22)]);
        for name in ["no", "x", "big", "", "22/tcp", "z"] {
            assert_eq!(ports_named(text, name.as_bytes()), [], "{name}");
        }
    }

    #[test]
    fn protocols_stand_under_raw() {
        let text = b"# c\nicmp\t1\tICMP # x\n  ospf 89 OSPFIGP\nbad x\nhuge 70000\nfirst 1\n";
        let places = places(text, protocol);
        let services = Services { names: Texts::default(), protocols: Texts::new(text.to_vec(), places) };
        assert_eq!(services.name(Proto::Raw, 1), Some(&b"icmp"[..]));
        assert_eq!(services.name(Proto::Raw, 89), Some(&b"ospf"[..]));
        assert_eq!((services.name(Proto::Raw, 2), services.name(Proto::Tcp, 1)), (None, None));
    }

    proptest! {
        #[test]
        fn any_bytes(text in "[a-z0-9/#\\n\t ]{0,80}|[a-z]{1,5} [0-9]{1,5}/tcp") {
            let services = Services::parse(text.into_bytes());
            for (proto, port) in services.names.keys() {
                let name = services.name(proto, port).unwrap();
                prop_assert!(!name.is_empty() && name.iter().all(|b| !b.is_ascii_whitespace() && *b != b'#'));
            }
        }
    }
}
