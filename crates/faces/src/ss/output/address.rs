//! Addresses, ports and names of sockets.

use crate::pieces::{Outside, put};
use record::rows::{Endpoint, Socket};
use record::{Addr, Key, LookupId, Lookups, Value};

/// AF_INET6, include/linux/socket.h.
const AF_INET6: u8 = 10;

/// The notation of addresses.
#[derive(Clone, Copy)]
pub(super) struct Style {
    /// True if text from outside is not escaped.
    pub(super) raw: bool,
    /// True for host names in place of addresses, if the lookup has one.
    pub(super) resolve: bool,
}

/// Appends the local address; the interface that the socket is bound to is outside the brackets.
pub(super) fn put_local(out: &mut Vec<u8>, row: &Socket<'_>, lookups: &Lookups<'_>, style: Style) {
    put_host(out, row, &row.local, lookups, style);
    if row.ifindex == 0 {
        return;
    }
    put!(out, "%");
    put_iface(out, row.netns_id, row.ifindex, lookups, style.raw);
}

/// Appends the name of an interface, or `ifN` if the name is unknown.
pub(super) fn put_iface(out: &mut Vec<u8>, netns_id: u64, ifindex: u32, lookups: &Lookups<'_>, raw: bool) {
    match lookups.value(LookupId::Ifaces, Key::Pair(netns_id, ifindex)) {
        Value::Bytes(name) => put!(out, Outside(name, raw)),
        _ => put!(out, "if", ifindex),
    }
}

/// Appends the peer's address.
pub(super) fn put_peer(out: &mut Vec<u8>, row: &Socket<'_>, lookups: &Lookups<'_>, style: Style) {
    put_host(out, row, &row.peer, lookups, style);
}

fn put_host(out: &mut Vec<u8>, row: &Socket<'_>, end: &Endpoint, lookups: &Lookups<'_>, style: Style) {
    let v6only = row.family == AF_INET6 && row.v6only == Some(true);
    // A dual-stack wildcard is neither 0.0.0.0 nor [::].
    if end.addr == Addr::ANY6 && !v6only {
        return put!(out, "*");
    }
    if style.resolve {
        if let Value::Bytes(name) = lookups.value(LookupId::Hosts, Key::Addr(end.addr.unmapped())) {
            return put!(out, Outside(name, style.raw));
        }
    }
    match end.addr {
        Addr::V4(_) => put!(out, end.addr),
        Addr::V6(_) => put!(out, "[", end.addr, "]"),
    }
}

/// Appends the name of a unix socket: `*` without a name, `@` for every NUL of an abstract one.
pub(super) fn put_path(out: &mut Vec<u8>, path: Option<&[u8]>, raw: bool) {
    match path {
        None => put!(out, "*"),
        Some([0, rest @ ..]) => {
            put!(out, "@");
            for part in rest.split_inclusive(|&b| b == 0) {
                match part.split_last() {
                    Some((0, before)) => put!(out, Outside(before, raw), "@"),
                    _ => put!(out, Outside(part, raw)),
                }
            }
        }
        Some(path) => put!(out, Outside(path.split(|&b| b == 0).next().unwrap_or_default(), raw)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names_of_unix_sockets() {
        for (path, expected) in [
            (None, "*"),
            (Some(&b"/run/x\0"[..]), "/run/x"),
            (Some(b"\0name"), "@name"),
            (Some(b"\0a\0b\0"), "@a@b@"),
            (Some(b""), ""),
            (Some(b"/a\x1b[31m\n"), "/a?[31m?"),
        ] {
            let mut out = Vec::new();
            put_path(&mut out, path, false);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
        let mut out = Vec::new();
        put_path(&mut out, Some(b"/a\x1b"), true);
        assert_eq!(out, b"/a\x1b");
    }
}
