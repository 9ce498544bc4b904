//! IP addresses: IPv4 from a table of octets, IPv6 by RFC 5952.

use super::decimal::put_u64;
use crate::Addr;

/// `.`-terminated decimal of every octet: text and its length with the dot.
const OCTETS: [([u8; 4], u8); 256] = {
    let mut table = [([0; 4], 0); 256];
    let mut n = 0;
    while n < 256 {
        table[n] = if n >= 100 {
            ([b'0' + (n / 100) as u8, b'0' + (n / 10 % 10) as u8, b'0' + (n % 10) as u8, b'.'], 4)
        } else if n >= 10 {
            ([b'0' + (n / 10) as u8, b'0' + (n % 10) as u8, b'.', 0], 3)
        } else {
            ([b'0' + n as u8, b'.', 0, 0], 2)
        };
        n += 1;
    }
    table
};

/// Appends an address.
#[inline]
pub fn put_addr(out: &mut Vec<u8>, addr: Addr) {
    match addr {
        Addr::V4(octets) => put_v4(out, octets),
        Addr::V6(octets) => put_v6(out, octets),
    }
}

/// Appends `a.b.c.d`. About 6 ns.
#[inline]
pub fn put_v4(out: &mut Vec<u8>, octets: [u8; 4]) {
    let mut text = [0u8; 16];
    let mut at = 0;
    for octet in octets {
        let (digits, len) = OCTETS[octet as usize];
        text[at..at + 4].copy_from_slice(&digits);
        at += len as usize;
    }
    out.extend_from_slice(&text[..at - 1]);
}

/// Appends an IPv6 address as inet_ntop(3) and RFC 5952 write it: lower case, the longest run of two or more zero
/// groups (the first of equals) as `::`, the last 32 bits of mapped and compatible addresses as IPv4.
pub fn put_v6(out: &mut Vec<u8>, octets: [u8; 16]) {
    let groups: [u16; 8] = std::array::from_fn(|i| u16::from_be_bytes([octets[i * 2], octets[i * 2 + 1]]));
    let (start, len) = longest_zero_run(&groups);
    let v4_tail = start == 0 && (len == 6 || (len == 5 && groups[5] == 0xffff));
    let end = if v4_tail { 6 } else { 8 };
    let mut i = 0;
    while i < end {
        if i == start {
            out.extend_from_slice(b"::");
            i += len;
            continue;
        }
        // Behind the fold stands a colon already.
        if i > 0 && i != start + len {
            out.push(b':');
        }
        put_group(out, groups[i]);
        i += 1;
    }
    if v4_tail {
        if len == 5 {
            out.push(b':');
        }
        put_v4(out, [octets[12], octets[13], octets[14], octets[15]]);
    }
}

fn put_group(out: &mut Vec<u8>, group: u16) {
    if group < 10 {
        return put_u64(out, group.into());
    }
    super::decimal::put_hex(out, group.into());
}

/// Start and length of the longest run of zero groups; beyond all groups and 0 where no run is worth folding.
fn longest_zero_run(groups: &[u16; 8]) -> (usize, usize) {
    let (mut best, mut best_len, mut len) = (0, 0, 0);
    for (i, &group) in groups.iter().enumerate() {
        len = if group == 0 { len + 1 } else { 0 };
        if len > best_len {
            (best, best_len) = (i + 1 - len, len);
        }
    }
    if best_len < 2 { (16, 0) } else { (best, best_len) }
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
