//! Describes the ClientHello of TLS, which is not encrypted (RFC 8446, 4.1.2): the server's name, and the offered
//! protocols (RFC 6066, RFC 7301).

use super::put_word;
use crate::bytes::{array, be16};

/// A handshake record of any TLS version, and the message in it.
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const MESSAGE: usize = 5;
/// Offset after the message's type and length, its version and random bytes.
const SESSION: usize = MESSAGE + 4 + 2 + 32;
const SERVER_NAME: u16 = 0;
const PROTOCOLS: u16 = 16;
/// Maximum bytes of a server name, number of protocols, and bytes of each protocol in the description.
const NAME_BYTES: usize = 255;
const PROTOCOLS_MAX: usize = 4;
const PROTOCOL_BYTES: usize = 32;

/// Appends `tls client hello example.org alpn h2,http/1.1` if `data`, the payload of a segment, starts with a
/// ClientHello. Its continuation in the next segment is not read.
pub(super) fn put(data: &[u8], out: &mut Vec<u8>) {
    let Some([HANDSHAKE, 3, 0..=4, _, _, CLIENT_HELLO]) = array(data, 0) else { return };
    put_word(out, b"tls client hello");
    let mut extensions = extensions(data).unwrap_or_default();
    let (mut name, mut protocols) = (None, None);
    // Each extension has at least four bytes.
    while let Some((kind, value, rest)) = extension(extensions) {
        match kind {
            SERVER_NAME => name = name.or_else(|| host_name(value)),
            PROTOCOLS => protocols = protocols.or_else(|| value.get(2..)),
            _ => {}
        }
        extensions = rest;
    }
    if let Some(name) = name {
        out.push(b' ');
        put_shown(name, NAME_BYTES, out);
    }
    if let Some(protocols) = protocols {
        put_protocols(protocols, out);
    }
}

/// The bytes after session, ciphers and compression methods, as far as they were captured.
fn extensions(data: &[u8]) -> Option<&[u8]> {
    let ciphers = SESSION + 1 + usize::from(*data.get(SESSION)?);
    let compressions = ciphers + 2 + usize::from(be16(data, ciphers)?);
    let extensions = compressions + 1 + usize::from(*data.get(compressions)?);
    let length = usize::from(be16(data, extensions)?);
    let rest = data.get(extensions + 2..)?;
    Some(rest.get(..length).unwrap_or(rest))
}

/// The first extension, and the bytes after it.
fn extension(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let (kind, length) = (be16(bytes, 0)?, usize::from(be16(bytes, 2)?));
    let (value, rest) = bytes.get(4..)?.split_at_checked(length)?;
    Some((kind, value, rest))
}

/// The first name of a list, if it is a host name.
fn host_name(list: &[u8]) -> Option<&[u8]> {
    const HOST: u8 = 0;
    let length = usize::from(be16(list, 3)?);
    list.get(5..)?.get(..length).filter(|name| list.get(2) == Some(&HOST) && !name.is_empty())
}

fn put_protocols(mut list: &[u8], out: &mut Vec<u8>) {
    put_word(out, b"alpn");
    for nth in 0..=PROTOCOLS_MAX {
        let Some((&length, rest)) = list.split_first() else { return };
        let Some((protocol, rest)) = rest.split_at_checked(length.into()) else { return };
        out.push(if nth == 0 { b' ' } else { b',' });
        if nth == PROTOCOLS_MAX {
            return out.extend_from_slice(b"...");
        }
        put_shown(protocol, PROTOCOL_BYTES, out);
        list = rest;
    }
}

/// Appends text from outside: bytes that are not printable as `\027`, and three dots if it is too long.
fn put_shown(text: &[u8], bytes_max: usize, out: &mut Vec<u8>) {
    for &byte in text.iter().take(bytes_max) {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'!'..=b'~' => out.push(byte),
            _ => out.extend_from_slice(&[b'\\', b'0' + byte / 100, b'0' + byte / 10 % 10, b'0' + byte % 10]),
        }
    }
    if text.len() > bytes_max {
        out.extend_from_slice(b"...");
    }
}

// A name and the protocols, with four characters per byte.
const _: () = assert!(4 * (NAME_BYTES + PROTOCOLS_MAX * PROTOCOL_BYTES) + 256 < super::INFO_BYTES_MAX);
