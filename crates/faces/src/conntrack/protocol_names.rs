//! Looks up protocols in /etc/protocols.

use sys::Host;

/// The number of a protocol by its name or an alias; case-sensitive.
pub(super) fn number(host: &Host, wanted: &[u8]) -> Option<u8> {
    find(host, |number, names| names.contains(&wanted).then_some(number))
}

/// The primary name of a protocol.
pub(super) fn name(host: &Host, wanted: u8) -> Option<String> {
    find(host, |number, names| {
        let first = names.first().filter(|_| number == wanted)?;
        Some(super::super::text::printable(first))
    })
}

/// Calls `look` with the number and the names of each line until it returns a value.
fn find<T>(host: &Host, look: impl Fn(u8, &[&[u8]]) -> Option<T>) -> Option<T> {
    let mut text = Vec::new();
    host.read_file("/etc/protocols", &mut text).ok()?;
    text.split(|&b| b == b'\n').find_map(|line| {
        let line = line.split(|&b| b == b'#').next().unwrap_or_default();
        let mut names: Vec<&[u8]> = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
        if names.len() < 2 {
            return None;
        }
        let number = std::str::from_utf8(names.remove(1)).ok()?.parse().ok()?;
        look(number, &names)
    })
}
