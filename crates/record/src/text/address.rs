//! IP addresses: IPv4 from a table of octets, IPv6 by RFC 5952.

use super::TextBuffer;
use super::decimal::hex_group;
use crate::Addr;

/// The decimal text of every octet followed by `.`, and its length including the dot.
const OCTETS: [([u8; 4], u8); 256] = {
    let mut table = [([0; 4], 0); 256];
    let mut n = 0;
    while n < 256 {
        let (hundreds, tens, ones) = (b'0' + (n / 100) as u8, b'0' + (n / 10 % 10) as u8, b'0' + (n % 10) as u8);
        table[n] = match n {
            100.. => ([hundreds, tens, ones, b'.'], 4),
            10.. => ([tens, ones, b'.', 0], 3),
            _ => ([ones, b'.', 0, 0], 2),
        };
        n += 1;
    }
    table
};

/// Appends an address.
#[inline]
pub fn put_addr(out: &mut Vec<u8>, addr: Addr) {
    put_any(out, addr);
}

/// Appends `a.b.c.d`. About 4 ns.
#[inline]
pub fn put_v4(out: &mut Vec<u8>, octets: [u8; 4]) {
    out.room(|slot| v4(slot, octets));
}

/// Appends an IPv6 address as inet_ntop(3) and RFC 5952 write it: lower case, the longest run of two or more zero
/// groups (the first of equals) as `::`, the last 32 bits of mapped and compatible addresses as IPv4.
pub fn put_v6(out: &mut Vec<u8>, octets: [u8; 16]) {
    out.room(|slot| v6(slot, octets));
}

/// Writes an address to any [`TextBuffer`].
#[inline]
pub(super) fn put_any(out: &mut impl TextBuffer, addr: Addr) {
    match addr {
        Addr::V4(octets) => out.room(|slot| v4(slot, octets)),
        Addr::V6(octets) => out.room(|slot| v6(slot, octets)),
    }
}

/// Stores `a.b.c.d` at an offset in a prepared line, and up to three more bytes after it. Stores nothing beyond the
/// line's end.
#[inline]
pub fn place_v4(line: &mut [u8], at: usize, octets: [u8; 4]) {
    let mut at = at;
    for octet in octets {
        let (digits, len) = OCTETS[octet as usize];
        store(line, at, digits);
        at += len as usize;
    }
}

/// Writes at most fifteen bytes, followed by a dot that is not counted.
#[inline(always)]
pub(super) fn v4(slot: &mut [u8; 16], octets: [u8; 4]) -> usize {
    let mut at = 0;
    for octet in octets {
        let (digits, len) = OCTETS[octet as usize];
        store(slot, at, digits);
        at += len as usize;
    }
    at - 1
}

/// Writes at most 45 bytes.
fn v6(slot: &mut [u8; 48], octets: [u8; 16]) -> usize {
    let groups: [u16; 8] = std::array::from_fn(|i| u16::from_be_bytes([octets[i * 2], octets[i * 2 + 1]]));
    let (start, len) = longest_zero_run(&groups);
    // Mapped (`::ffff:a.b.c.d`) and compatible addresses end in IPv4.
    let v4_tail = start == 0 && (len == 6 || len == 5 && groups[5] == 0xffff);
    let end = if v4_tail { 6 } else { 8 };
    let (mut i, mut at) = (0, 0);
    while i < end {
        if i == start {
            store(slot, at, *b"::");
            at += 2;
            i += len;
            continue;
        }
        if i > 0 && i != start + len {
            store(slot, at, *b":");
            at += 1;
        }
        let (digits, count) = hex_group(groups[i]);
        store(slot, at, (digits >> (8 * (4 - count))).to_le_bytes());
        at += count;
        i += 1;
    }
    if !v4_tail {
        return at;
    }
    if len == 5 {
        store(slot, at, *b":");
        at += 1;
    }
    let mut tail = [0; 16];
    let length = v4(&mut tail, [octets[12], octets[13], octets[14], octets[15]]);
    store(slot, at, tail);
    at + length
}

/// Stores bytes at an offset, or nothing if they would extend beyond the end. The functions above never write that
/// far.
#[inline]
fn store<const N: usize>(slot: &mut [u8], at: usize, bytes: [u8; N]) {
    if let Some(place) = slot.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *place = bytes;
    }
}

/// Start and length of the longest run of two or more zero groups, the first among equals; (8, 0) without such a run.
#[inline]
fn longest_zero_run(groups: &[u16; 8]) -> (usize, usize) {
    // Bit i: a run of `len` zero groups starts at group i.
    let mut runs = groups.iter().rev().fold(0u32, |bits, &g| bits << 1 | u32::from(g == 0));
    let mut len = 1;
    while runs & runs >> 1 != 0 {
        runs &= runs >> 1;
        len += 1;
    }
    if len < 2 { (8, 0) } else { (runs.trailing_zeros() as usize, len) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn v6(octets: [u8; 16]) -> String {
        let mut out = Vec::new();
        put_v6(&mut out, octets);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn ipv6_by_example() {
        for text in [
            "::",
            "::1",
            "1::",
            "2001:db8::1",
            "2001:db8:0:1:1:1:1:1",
            "fe80::ff:fe00:120",
            "::ffff:127.0.0.1",
            "::1.2.3.4",
            "1:0:0:2::3",
            "a:b:c:d:e:f:1:0",
            "0:1:2:3:4:5:6:7",
            "2001:db8:2:0:bbbb:cccc:dddd:eeee",
            "::ffff:255.255.255.255",
            "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        ] {
            let Addr::V6(octets) = text.parse().unwrap() else { continue };
            assert_eq!(v6(octets), text);
        }
    }

    proptest! {
        #[test]
        fn reads_back(octets: [u8; 16], zeros: u16, four: [u8; 4]) {
            let mut holed = octets;
            for (i, octet) in holed.iter_mut().enumerate() {
                if zeros >> i & 1 == 1 { *octet = 0; }
            }
            for o in [octets, holed] {
                prop_assert_eq!(v6(o).parse::<Addr>().unwrap(), Addr::V6(o));
            }
            let mut out = Vec::new();
            put_v4(&mut out, four);
            prop_assert_eq!(String::from_utf8(out).unwrap(), std::net::Ipv4Addr::from(four).to_string());
        }
    }
}
