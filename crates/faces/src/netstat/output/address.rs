//! The cells "Local Address" and "Foreign Address".

use super::options::{Names, SocketLayout};
use crate::pieces::{Left, Outside, put, written};
use record::rows::Endpoint;
use record::{Addr, Key, LookupId, Lookups, Proto, Value};

/// Fewest columns of an address with its port.
const WIDTH: usize = 23;
/// Most columns of an address with its port before netstat cuts them.
const CUT: usize = WIDTH - 1;
/// Fewest columns that a cut leaves to the address.
const ADDRESS_LEFT: usize = 4;

/// Appends a blank and `ADDRESS:PORT`, padded to 23 columns. IPv4-mapped addresses are written as IPv4, and without
/// brackets.
pub(super) fn put_endpoint(
    out: &mut Vec<u8>,
    end: Endpoint,
    proto: Proto,
    options: &SocketLayout,
    names: &Names<'_>,
    lookups: &Lookups<'_>,
) {
    let write = |out: &mut Vec<u8>| {
        let start = out.len();
        put_host(out, end.addr, options, lookups);
        let address = out.len() - start;
        put!(out, ":");
        put_port(out, end.port, proto, options, names);
        let port = out.len() - start - address - 1;
        if options.bug_compatible && !options.wide && address + port > CUT {
            cut(out, start, address, port);
        }
    };
    put!(out, " ", Left(written(write), WIDTH));
}

fn put_host(out: &mut Vec<u8>, addr: Addr, options: &SocketLayout, lookups: &Lookups<'_>) {
    match addr {
        _ if options.numeric_hosts => put!(out, addr.unmapped()),
        Addr::ANY6 => put!(out, "[::]"),
        Addr::ANY4 => put!(out, addr),
        _ => put!(out, host(addr, options.bug_compatible, lookups)),
    }
}

/// Returns the name of a host, or its address without a name.
pub(super) fn host<'l>(addr: Addr, raw: bool, lookups: &'l Lookups<'_>) -> Result<Outside<'l>, Addr> {
    match lookups.value(LookupId::Hosts, Key::Addr(addr.unmapped())) {
        Value::Bytes(name) => Ok(Outside(name, raw)),
        _ => Err(addr.unmapped()),
    }
}

/// Returns the network mask of a prefix length.
pub(super) fn mask(bits: u8) -> [u8; 4] {
    u32::MAX.checked_shl(32u32.saturating_sub(bits.into())).unwrap_or(0).to_be_bytes()
}

fn put_port(out: &mut Vec<u8>, port: u16, proto: Proto, options: &SocketLayout, names: &Names<'_>) {
    if port == 0 {
        return put!(out, "*");
    }
    let name = if options.numeric_ports { None } else { (names.service)(proto, port) };
    put!(out, name.map(|name| Outside(name, options.bug_compatible)).ok_or(port));
}

/// Cuts the end of the address, then of the port, without a mark: the old bytes.
fn cut(out: &mut Vec<u8>, start: usize, address: usize, port: usize) {
    let port = port.min(CUT - ADDRESS_LEFT);
    let kept = (CUT - port).min(address);
    out.drain(start + kept..start + address);
    out.truncate(start + kept + 1 + port);
}
