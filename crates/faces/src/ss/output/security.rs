//! MD5 keys and upper layer protocols (TLS, MPTCP) of TCP sockets, from nested attributes of the kernel.

use super::options::Layout;
use crate::pieces::{Hex, HexWide, Outside, list, put, when, word_of};
use record::Addr;

/// Size of a key, include/uapi/linux/tcp.h `struct tcp_diag_md5sig`: family, prefix length, key length, address, key.
const MD5_LEN: usize = 100;
const MD5_ADDR: usize = 4;
const MD5_KEY: usize = 20;
const AF_INET6: u8 = 10;

/// Appends `␠md5keys:ADDR/LEN=KEY,…`.
pub(super) fn put_md5(out: &mut Vec<u8>, keys: &[u8]) {
    for (i, sig) in keys.chunks_exact(MD5_LEN).enumerate() {
        put!(out, if i > 0 { "," } else { " md5keys:" });
        put_key(out, sig);
    }
}

fn put_key(out: &mut Vec<u8>, sig: &[u8]) {
    let [family, prefix, low, high, ..] = *sig else { return };
    let octets = sig.get(MD5_ADDR..MD5_KEY).and_then(|b| <[u8; 16]>::try_from(b).ok()).unwrap_or_default();
    let addr = match octets {
        octets if family == AF_INET6 => Addr::V6(octets),
        [a, b, c, d, ..] => Addr::V4([a, b, c, d]),
    };
    put!(out, addr, "/", prefix, "=");
    let key = sig.get(MD5_KEY..).unwrap_or_default();
    for &byte in key.iter().take(u16::from_ne_bytes([low, high]).into()) {
        match byte {
            b'\\' | b' ' | b',' | 0..0x20 | 0x7f.. => {
                out.extend_from_slice(&[b'\\', b'0' + (byte >> 6), b'0' + (byte >> 3 & 7), b'0' + (byte & 7)]);
            }
            _ => out.push(byte),
        }
    }
}

/// Iterates over the types and payloads of nested attributes; ends at the first that does not fit.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    /// Masks the nested and byte-order flags of a type, include/uapi/linux/netlink.h.
    const TYPE_MASK: u16 = 0x3fff;
    std::iter::from_fn(move || {
        let (head, _) = bytes.split_first_chunk::<4>()?;
        let len = usize::from(u16::from_ne_bytes([head[0], head[1]]));
        let payload = bytes.get(4..len)?;
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([head[2], head[3]]) & TYPE_MASK, payload))
    })
}

fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).filter(|(k, _)| *k == kind).map(|(_, payload)| payload).last()
}

/// Returns a number with the attribute's own length.
fn number(bytes: &[u8], kind: u16) -> Option<u64> {
    let payload = attribute(bytes, kind)?;
    match payload.len() {
        1 => payload.first().map(|&n| n.into()),
        2 => payload.try_into().ok().map(|b| u16::from_ne_bytes(b).into()),
        4 => payload.try_into().ok().map(|b| u32::from_ne_bytes(b).into()),
        8 => payload.try_into().ok().map(u64::from_ne_bytes),
        _ => None,
    }
}

/// Appends `␠tcp-ulp-NAME` and the protocol's items (include/uapi/linux/inet_diag.h, `INET_ULP_INFO_*`).
pub(super) fn put_ulp(out: &mut Vec<u8>, ulp: &[u8], layout: Layout, raw: bool) {
    if let Some(name) = attribute(ulp, 1) {
        put!(out, " tcp-ulp-", Outside(name.split(|&b| b == 0).next().unwrap_or_default(), raw));
    }
    if let Some(tls) = attribute(ulp, 2) {
        put_tls(out, tls, layout);
    }
    if let Some(subflow) = attribute(ulp, 3) {
        put_subflow(out, subflow, layout);
    }
}

/// Appends the items of include/uapi/linux/tls.h, `TLS_INFO_*`.
fn put_tls(out: &mut Vec<u8>, tls: &[u8], layout: Layout) {
    match number(tls, 1) {
        None => {}
        Some(0x0303) => put!(out, " version: 1.2"),
        Some(0x0304) => put!(out, " version: 1.3"),
        Some(other) => put!(out, " version: unknown(", other, ")"),
    }
    match number(tls, 2) {
        Some(51) => put!(out, " cipher: aes-gcm-128"),
        Some(52) => put!(out, " cipher: aes-gcm-256"),
        _ => {}
    }
    for (words, kind) in [(" rxconf: ", 4), (" txconf: ", 3)] {
        let Some(n) = number(tls, kind) else { continue };
        const MODES: [(u64, &str); 4] = [(1, "none"), (2, "sw"), (3, "hw"), (4, "hw-record")];
        put!(out, words, word_of(&MODES, n).ok_or(list!("unknown(", n, ")")));
    }
    put!(out, when(attribute(tls, 5).is_some(), " zc_ro_tx"));
    put!(out, when(layout == Layout::V6_15 && attribute(tls, 6).is_some(), " no_pad_rx"));
}

/// Letters of the flags, the lowest bit first, include/uapi/linux/mptcp.h `MPTCP_SUBFLOW_FLAG_*`.
const SUBFLOW_FLAGS: &[u8; 9] = b"MmJjBbecv";

/// Appends the items of include/uapi/linux/mptcp.h, `MPTCP_SUBFLOW_ATTR_*`.
fn put_subflow(out: &mut Vec<u8>, subflow: &[u8], layout: Layout) {
    if let Some(flags) = number(subflow, 8).filter(|&flags| flags != 0) {
        put!(out, " flags:");
        out.extend(SUBFLOW_FLAGS.iter().enumerate().filter(|(i, _)| flags >> i & 1 == 1).map(|(_, letter)| letter));
    }
    let tokens = (number(subflow, 1), number(subflow, 9), number(subflow, 2), number(subflow, 10));
    if let (Some(remote), Some(remote_id), Some(local), Some(local_id)) = tokens {
        put!(out, " token:", HexWide(remote, 4), "(id:", remote_id, ")/", HexWide(local, 4), "(id:", local_id, ")");
    }
    for (words, kind) in [(" seq:", 4), (" sfseq:", 5), (" ssnoff:", 6), (" maplen:", 7)] {
        let Some(n) = number(subflow, kind) else { continue };
        match layout {
            Layout::V6_1 => put!(out, words, Hex(n)),
            Layout::V6_15 => put!(out, words, n),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn attr(kind: u16, payload: &[u8]) -> Vec<u8> {
        let mut bytes = ((payload.len() + 4) as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(payload);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn ulp(bytes: &[u8], layout: Layout) -> String {
        let mut out = Vec::new();
        put_ulp(&mut out, bytes, layout, false);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn tls_by_its_words() {
        let nested = [
            attr(1, &0x0304u16.to_ne_bytes()),
            attr(2, &52u16.to_ne_bytes()),
            attr(3, &2u16.to_ne_bytes()),
            attr(4, &9u16.to_ne_bytes()),
            attr(5, &[]),
            attr(6, &[]),
        ];
        let bytes = [attr(1, b"tls\0"), attr(2 | 0x8000, &nested.concat())].concat();
        let common = " tcp-ulp-tls version: 1.3 cipher: aes-gcm-256 rxconf: unknown(9) txconf: sw zc_ro_tx";
        assert_eq!(ulp(&bytes, Layout::V6_1), common);
        assert_eq!(ulp(&bytes, Layout::V6_15), format!("{common} no_pad_rx"));
    }

    #[test]
    fn mptcp_subflow_in_hex_and_decimal() {
        let nested = [
            attr(8, &0x143u32.to_ne_bytes()),
            attr(1, &0x12u32.to_ne_bytes()),
            attr(9, &[1]),
            attr(2, &0xabcdeu32.to_ne_bytes()),
            attr(10, &[0]),
            attr(4, &255u64.to_ne_bytes()),
        ];
        let bytes = attr(3, &nested.concat());
        assert_eq!(ulp(&bytes, Layout::V6_1), " flags:Mmev token:0012(id:1)/abcde(id:0) seq:ff");
        assert_eq!(ulp(&bytes, Layout::V6_15), " flags:Mmev token:0012(id:1)/abcde(id:0) seq:255");
    }

    #[test]
    fn garbage_ends_quietly() {
        for bytes in [&[][..], &[1], &[0; 4], &[3, 0, 1, 0], &[200, 0, 1, 0, 1], &[255; 9]] {
            let _ = ulp(bytes, Layout::V6_15);
            put_md5(&mut Vec::new(), bytes);
        }
    }

    #[test]
    fn md5_keys_are_escaped() {
        let mut sig = vec![2, 32, 6, 0, 192, 0, 2, 1];
        sig.resize(MD5_KEY, 0);
        sig.extend(b"a, \\\x01b");
        sig.resize(MD5_LEN, 0);
        let mut out = Vec::new();
        put_md5(&mut out, &[sig.clone(), sig].concat());
        let one = r"192.0.2.1/32=a\054\040\134\001b";
        assert_eq!(String::from_utf8(out).unwrap(), format!(" md5keys:{one},{one}"));
    }
}
