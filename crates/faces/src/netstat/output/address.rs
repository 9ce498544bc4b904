//! The cells "Local Address" and "Foreign Address".

use super::options::{Names, SocketLayout};
use record::rows::Endpoint;
use record::{Addr, Key, LookupId, Lookups, Proto, Value, text};

/// Fewest columns of an address with its port.
const WIDTH: usize = 23;
/// Most columns of an address with its port before netstat cuts them.
const CUT: usize = WIDTH - 1;
/// Fewest columns that a cut leaves to the address.
const ADDRESS_LEFT: usize = 4;

/// Appends `ADDRESS:PORT`, padded to 23 columns. IPv4-mapped addresses are written as IPv4, and without brackets.
pub(super) fn put_endpoint(
    out: &mut Vec<u8>,
    end: Endpoint,
    proto: Proto,
    options: &SocketLayout,
    names: &Names<'_>,
    lookups: &Lookups<'_>,
) {
    let start = out.len();
    put_host(out, end.addr, options, lookups);
    let address = out.len() - start;
    out.push(b':');
    put_port(out, end.port, proto, options, names);
    let port = out.len() - start - address - 1;
    if options.bug_compatible && !options.wide && address + port > CUT {
        cut(out, start, address, port);
    }
    fill(out, start, WIDTH);
}

/// Appends blanks until there are `width` bytes after `start`, like printf's `%-*s`.
pub(super) fn fill(out: &mut Vec<u8>, start: usize, width: usize) {
    let end = start + width;
    if out.len() < end {
        out.resize(end, b' ');
    }
}

fn put_host(out: &mut Vec<u8>, addr: Addr, options: &SocketLayout, lookups: &Lookups<'_>) {
    if options.numeric_hosts {
        return text::put_addr(out, addr.unmapped());
    }
    if addr == Addr::ANY6 {
        return out.extend_from_slice(b"[::]");
    }
    if addr == Addr::ANY4 {
        return text::put_addr(out, addr);
    }
    match lookups.value(LookupId::Hosts, Key::Addr(addr.unmapped())) {
        Value::Bytes(name) => text::put_face(out, name, options.bug_compatible),
        _ => text::put_addr(out, addr.unmapped()),
    }
}

fn put_port(out: &mut Vec<u8>, port: u16, proto: Proto, options: &SocketLayout, names: &Names<'_>) {
    if port == 0 {
        return out.push(b'*');
    }
    let name = if options.numeric_ports { None } else { (names.service)(proto, port) };
    match name {
        Some(name) => text::put_face(out, name, options.bug_compatible),
        None => text::put_u64(out, port.into()),
    }
}

/// Cuts the end of the address, then of the port, without a mark: the old bytes.
fn cut(out: &mut Vec<u8>, start: usize, address: usize, port: usize) {
    let port = port.min(CUT - ADDRESS_LEFT);
    let kept = (CUT - port).min(address);
    out.drain(start + kept..start + address);
    out.truncate(start + kept + 1 + port);
}
