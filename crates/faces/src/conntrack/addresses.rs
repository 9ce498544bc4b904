//! Parses addresses, prefixes and ports of the command line.

use super::options::long_name;
use super::stop::Stop;
use super::want::{number, wide_and_rest};
use record::Addr;

/// An address, and the mask after its slash if present.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MaskedAddr {
    pub(super) addr: Addr,
    /// None without a slash, and for a mask that covers the whole address.
    pub(super) mask: Option<Addr>,
}

impl MaskedAddr {
    /// The address family: 2 (IPv4) or 10 (IPv6).
    pub(super) fn family(&self) -> u8 {
        if matches!(self.addr, Addr::V4(_)) { 2 } else { 10 }
    }
}

/// Parses the value of the switch `letter`; accepts a prefix only where the switch supports one.
pub(super) fn parse(letter: u8, word: &[u8]) -> Result<MaskedAddr, Stop> {
    // The tool reads at most 45 bytes.
    let seen = word.get(..45).unwrap_or(word);
    let (text, length) = match seen.iter().position(|&b| b == b'/') {
        Some(at) => (seen.get(..at).unwrap_or_default(), Some(bits(seen.get(at + 1..).unwrap_or_default()))),
        None => (seen, None),
    };
    let addr = address(text).ok_or_else(|| Stop::about("Invalid IP address `%'", word))?;
    let takes_prefix = matches!(letter, b's' | b'd' | b'[' | b']');
    let Some(length) = length else { return Ok(MaskedAddr { addr, mask: None }) };
    if !takes_prefix {
        return Err(Stop::usage(format!("CIDR notation unavailable for `--{}'", long_name(letter))));
    }
    match length {
        Some(length) if length <= addr.bits() => Ok(MaskedAddr { addr, mask: mask(addr, length) }),
        _ => Err(Stop::usage("Invalid netmask")),
    }
}

/// The prefix length after the slash; None if it contains anything but digits.
fn bits(text: &[u8]) -> Option<u8> {
    text.iter().all(u8::is_ascii_digit).then(|| u8::try_from(number(text)).ok()).flatten()
}

/// The mask for a prefix length; None if it covers the whole address.
fn mask(addr: Addr, length: u8) -> Option<Addr> {
    let byte = |at: usize| {
        let covered = usize::from(length).saturating_sub(at * 8).min(8);
        !(0xffu16 >> covered) as u8
    };
    match addr {
        _ if length == addr.bits() => None,
        Addr::V4(_) => Some(Addr::V4(std::array::from_fn(byte))),
        Addr::V6(_) => Some(Addr::V6(std::array::from_fn(byte))),
    }
}

/// `addr & mask`; the address itself if the families differ.
pub(super) fn masked(addr: Addr, mask: Addr) -> Addr {
    match (addr, mask) {
        (Addr::V4(a), Addr::V4(m)) => Addr::V4(std::array::from_fn(|i| a[i] & m[i])),
        (Addr::V6(a), Addr::V6(m)) => Addr::V6(std::array::from_fn(|i| a[i] & m[i])),
        _ => addr,
    }
}

/// Parses an address like inet_aton(3) or inet_pton(3).
fn address(text: &[u8]) -> Option<Addr> {
    if let Some(octets) = aton(text) {
        return Some(Addr::V4(octets));
    }
    let text = std::str::from_utf8(text).ok()?;
    text.parse::<std::net::Ipv6Addr>().ok().map(|addr| Addr::V6(addr.octets()))
}

/// One to four numbers; the last one fills the remaining bytes.
fn aton(text: &[u8]) -> Option<[u8; 4]> {
    let mut value = 0u64;
    let mut rest = text;
    for place in 0..4u32 {
        if !rest.first()?.is_ascii_digit() {
            return None;
        }
        let (number, behind) = wide_and_rest(rest);
        match behind.split_first() {
            Some((b'.', next)) if place < 3 && number <= 0xff => {
                value |= number << (24 - 8 * place);
                rest = next;
            }
            // inet_aton ignores text after a blank.
            end if end.is_none_or(|(b, _)| b.is_ascii_whitespace()) => {
                let room = 32 - 8 * place;
                return (number >> room == 0).then(|| ((value | number) as u32).to_be_bytes());
            }
            _ => return None,
        }
    }
    None
}

/// Splits the value of `-n`, `-g` and `-j` into address and port: `1.2.3.4:80`, `[fd00::1]:80`, `:80`.
pub(super) fn split_port(word: &[u8]) -> Result<(Vec<u8>, Option<u16>), Stop> {
    let find = |text: &[u8], byte: u8| text.iter().position(|&b| b == byte);
    let (address, port) = if let Some(open) = find(word, b'[') {
        let start = word.get(open + 1..).unwrap_or_default();
        let close = match find(start, b']') {
            Some(0) => return Err(Stop::usage("No IPv6 address specified")),
            None => return Err(Stop::usage("No closing ']' around IPv6 address")),
            Some(close) => close,
        };
        let (inside, behind) = start.split_at(close);
        match find(behind, b':') {
            Some(colon) => (inside, behind.get(colon + 1..)),
            None => (word, None),
        }
    } else {
        match find(word, b':') {
            Some(colon) if find(word.get(colon + 1..).unwrap_or_default(), b':').is_none() => {
                (word.get(..colon).unwrap_or_default(), word.get(colon + 1..))
            }
            _ => (word, None),
        }
    };
    let port = port.map(port_of).transpose()?;
    Ok((address.to_vec(), port))
}

fn port_of(text: &[u8]) -> Result<u16, Stop> {
    if text.is_empty() {
        return Err(Stop::usage("No port specified after `:'"));
    }
    let valid = text.iter().all(u8::is_ascii_digit);
    let port = valid.then(|| u16::try_from(number(text)).ok()).flatten();
    port.ok_or_else(|| Stop::about("Invalid port `%'", text))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn v4(a: u8, b: u8, c: u8, d: u8) -> Addr {
        Addr::V4([a, b, c, d])
    }

    #[test]
    fn addresses_as_the_c_library_reads_them() {
        let parsed = |word: &str| parse(b's', word.as_bytes()).map(|p| (p.addr, p.mask)).map_err(|stop| stop.text());
        for (word, addr) in [
            ("10.1", v4(10, 0, 0, 1)),
            ("0x0a000001", v4(10, 0, 0, 1)),
            ("010.1.2.3", v4(8, 1, 2, 3)),
            ("7", v4(0, 0, 0, 7)),
        ] {
            assert_eq!(parsed(word), Ok((addr, None)), "{word}");
        }
        assert_eq!(parsed("fd00::1").unwrap().0, "fd00::1".parse().unwrap());
        assert_eq!(parsed("10.0.0.0/9").unwrap().1, Some(v4(255, 128, 0, 0)));
        assert_eq!(parsed("10.0.0.0/").unwrap().1, Some(v4(0, 0, 0, 0)));
        assert_eq!(parsed("10.0.0.0/32").unwrap().1, None);
        assert_eq!(parsed("fd00::/10").unwrap().1, Some("ffc0::".parse().unwrap()));
        for (word, says) in [
            ("1.2.3.4.5", "Invalid IP address `1.2.3.4.5'"),
            ("1.2.3.256", "Invalid IP address"),
            ("x", "Invalid IP address `x'"),
            ("1.2.3.4/33", "Invalid netmask"),
            ("1.2.3.4/x", "Invalid netmask"),
        ] {
            assert!(parsed(word).unwrap_err().contains(says), "{word}");
        }
        let refused = parse(b'r', b"10.0.0.0/8").unwrap_err().text();
        assert!(refused.contains("CIDR notation unavailable for `--reply-src'"), "{refused}");
    }

    #[test]
    fn ports_after_addresses() {
        let split = |word: &str| split_port(word.as_bytes()).map_err(|stop| stop.text());
        for (word, address, port) in [
            ("1.2.3.4:80", "1.2.3.4", Some(80)),
            (":80", "", Some(80)),
            ("[fd00::1]:80", "fd00::1", Some(80)),
            ("fd00::1", "fd00::1", None),
            ("[fd00::1]", "[fd00::1]", None),
        ] {
            assert_eq!(split(word), Ok((address.as_bytes().to_vec(), port)), "{word}");
        }
        for (word, says) in [
            ("1.2.3.4:", "No port specified after `:'"),
            ("1.2.3.4:65536", "Invalid port `65536'"),
            ("[]:1", "No IPv6 address specified"),
            ("[fd00::1", "No closing ']'"),
        ] {
            assert!(split(word).unwrap_err().contains(says), "{word}");
        }
    }
}
