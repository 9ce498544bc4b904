//! Names of Ethernet addresses, from /etc/ethers.
use sys::Host;

use crate::HostError;
use crate::texts::Texts;
use crate::words::words;

/// Ethernet address → name.
#[derive(Debug, Default)]
pub struct Ethers {
    names: Texts<[u8; 6]>,
}

impl Ethers {
    /// Reads /etc/ethers. Skips malformed lines; the first line of an address wins, as in ether_ntohost(3).
    pub fn read(host: &Host) -> Result<Ethers, HostError> {
        let mut text = Vec::new();
        host.read_file("/etc/ethers", &mut text)?;
        Ok(Ethers::parse(&text))
    }

    fn parse(text: &[u8]) -> Ethers {
        let (mut arena, mut places) = (Vec::new(), Vec::new());
        for (address, name) in text.split(|&b| b == b'\n').filter_map(entry) {
            let start = arena.len() as u32;
            arena.extend_from_slice(name);
            // Files are at most 64 MiB long.
            places.push((address, start, arena.len() as u32));
        }
        Ethers { names: Texts::new(arena, places) }
    }

    /// The name of an address.
    pub fn name(&self, address: [u8; 6]) -> Option<&[u8]> {
        self.names.get(address)
    }
}

// Parses `address name # comment`; an octet has one or two digits.
fn entry(line: &[u8]) -> Option<([u8; 6], &[u8])> {
    let mut words = words(line.split(|&b| b == b'#').next()?);
    let (address, name) = (std::str::from_utf8(words.next()?).ok()?, words.next()?);
    let mut octets = [0; 6];
    let mut parts = address.split(':');
    for octet in &mut octets {
        let part = parts.next().filter(|part| part.len() <= 2 && !part.starts_with('+'))?;
        *octet = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some((octets, name))
}

/// Parses any bytes as the files with names. It must not panic, and names contain neither spaces nor line breaks.
pub fn fuzz_name_files(text: &[u8]) {
    let (ethers, services) = (Ethers::parse(text), crate::services::Services::parse(text.to_vec()));
    let names = ethers.names.each().map(|(_, name)| name).chain(services.names());
    for name in names.chain(crate::hosts::hosts_names(text)) {
        assert!(!name.is_empty() && !name.iter().any(u8::is_ascii_whitespace), "{}", name.escape_ascii());
    }
    for kind in ["hosts", "services", "ethers"] {
        let _ = crate::name_switch::NamePlaces::parse(text, kind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_file_with_odd_lines() {
        let ethers = Ethers::parse(
            b"# c\n02:00:00:00:00:01 one # x\n2:0:0:0:0:A ten\n02:00:00:00:00:01 again\n1:2:3:4:5 short\n\
              1:2:3:4:5:6:7 long\n001:2:3:4:5:6 wide\n1:2:3:4:5:g no\n+1:2:3:4:5:6 no\n1:2:3:4:5:6\n",
        );
        assert_eq!(ethers.name([2, 0, 0, 0, 0, 1]), Some(&b"one"[..]));
        assert_eq!(ethers.name([2, 0, 0, 0, 0, 10]), Some(&b"ten"[..]));
        assert_eq!(ethers.names.len(), 2);
    }

    proptest! {
        #[test]
        fn any_bytes(text in "[0-9a-f:# \n]{0,120}") {
            let ethers = Ethers::parse(text.as_bytes());
            for (_, name) in ethers.names.each() {
                prop_assert!(!name.is_empty() && name.iter().all(|b| !b.is_ascii_whitespace() && *b != b'#'));
            }
        }
    }
}
