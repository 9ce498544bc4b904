//! Names of IPv4 networks, from /etc/networks.
use sys::Host;

use crate::HostError;
use crate::texts::Texts;
use crate::words::words;

/// Network → name.
#[derive(Debug, Default)]
pub struct Networks {
    names: Texts<[u8; 4]>,
}

impl Networks {
    /// Reads /etc/networks. Skips malformed lines; the first line of a network wins, as in getnetbyaddr(3).
    pub fn read(host: &Host) -> Result<Networks, HostError> {
        let mut text = Vec::new();
        host.read_file("/etc/networks", &mut text)?;
        Ok(Networks::parse(&text))
    }

    fn parse(text: &[u8]) -> Networks {
        let (mut arena, mut places) = (Vec::new(), Vec::new());
        for (network, name) in text.split(|&b| b == b'\n').filter_map(entry) {
            let start = arena.len() as u32;
            arena.extend_from_slice(name);
            // Files are at most 64 MiB long.
            places.push((network, start, arena.len() as u32));
        }
        Networks { names: Texts::new(arena, places) }
    }

    /// The name of a network.
    pub fn name(&self, network: [u8; 4]) -> Option<&[u8]> {
        self.names.get(network)
    }
}

// Parses `name number aliases # comment`; numbers may be short: 169.254 is 169.254.0.0.
fn entry(line: &[u8]) -> Option<([u8; 4], &[u8])> {
    let mut words = words(line.split(|&b| b == b'#').next()?);
    let (name, number) = (words.next()?, std::str::from_utf8(words.next()?).ok()?);
    let mut octets = [0; 4];
    let mut parts = number.split('.');
    for octet in &mut octets {
        match parts.next() {
            Some(part) => *octet = part.parse().ok()?,
            None => break,
        }
    }
    parts.next().is_none().then_some((octets, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_file_with_odd_lines() {
        let networks = Networks::parse(
            b"# c\ndefault\t\t0.0.0.0\nlink-local 169.254 x\nten 10.0.0.0\nother 10\nbad 1.2.3.4.5\nz\n 1.2\nodd 300.1",
        );
        assert_eq!(networks.name([0; 4]), Some(&b"default"[..]));
        assert_eq!(networks.name([169, 254, 0, 0]), Some(&b"link-local"[..]));
        assert_eq!(networks.name([10, 0, 0, 0]), Some(&b"ten"[..]));
        assert_eq!(networks.names.len(), 3);
    }

    proptest! {
        #[test]
        fn any_text(text in "([a-z]{0,3}[ \t#]{0,2}[0-9.]{0,12}\n?){0,5}") {
            let networks = Networks::parse(text.as_bytes());
            for network in networks.names.keys() {
                prop_assert!(networks.name(network).is_some_and(|name| !name.is_empty()));
            }
        }
    }
}
