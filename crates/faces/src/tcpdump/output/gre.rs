//! Generic routing encapsulation (RFC 2784, 2890), and version 1, which PPTP uses (RFC 2637).

use super::bytes::{Cut, Printed, be16, be32, behind, part};
use super::ethertype_names;
use super::line::{Inner, Line};
use super::pieces::{Flags, Hex, HexWide, put, put_last};
use record::Addr;

const CHECKSUM: u16 = 0x8000;
const ROUTING: u16 = 0x4000;
const KEY: u16 = 0x2000;
const SEQUENCE: u16 = 0x1000;
const ACKNOWLEDGEMENT: u16 = 0x0080;
#[rustfmt::skip]
const FLAGS: [(u32, &str); 6] = [
    (CHECKSUM as u32, "checksum present"), (ROUTING as u32, "routing present"), (KEY as u32, "key present"),
    (SEQUENCE as u32, "sequence# present"), (0x0800, "source routing present"), (ACKNOWLEDGEMENT as u32, "ack present"),
];
/// An Ethernet frame within.
const BRIDGING: u16 = 0x6558;

/// The bytes of a packet that have not been read yet. A header that does not fit in the length counts as cut.
struct Unread<'r> {
    bytes: &'r [u8],
    length: usize,
}

impl Unread<'_> {
    /// Skips `len` bytes, after `read` has read them.
    fn take<T>(&mut self, len: usize, read: impl FnOnce(&[u8]) -> Printed<T>) -> Printed<T> {
        let found = read(part(self.bytes, 0, len)?)?;
        self.length = self.length.checked_sub(len).ok_or(Cut)?;
        self.bytes = behind(self.bytes, len);
        Ok(found)
    }

    fn be16(&mut self) -> Printed<u16> {
        self.take(2, |bytes| be16(bytes, 0))
    }

    fn be32(&mut self) -> Printed<u32> {
        self.take(4, |bytes| be32(bytes, 0))
    }
}

/// Prints a packet of `length` bytes.
pub(super) fn print(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    line.protocol = "gre";
    match put_header(line, Unread { bytes, length }) {
        Ok(Some((kind, rest))) => put_payload(line, kind, rest),
        Ok(None) => Ok(()),
        Err(Cut) => line.end_cut(),
    }
}

/// Returns the type of the packet within and its bytes, if it is printed.
fn put_header<'r>(line: &mut Line<'_>, rest: Unread<'r>) -> Printed<Option<(u16, Unread<'r>)>> {
    let flags = be16(rest.bytes, 0)?;
    let version = flags & 7;
    put!(line, "GREv", version);
    match version {
        0 => put_header_0(line, flags, rest).map(Some),
        1 => put_header_1(line, flags, rest).map(|()| None),
        _ => {
            put!(line, " ERROR: unknown-version");
            Ok(None)
        }
    }
}

fn put_header_0<'r>(line: &mut Line<'_>, flags: u16, mut rest: Unread<'r>) -> Printed<(u16, Unread<'r>)> {
    let length = rest.length;
    put_flags(line, flags);
    rest.be16()?;
    let kind = rest.be16()?;
    if flags & (CHECKSUM | ROUTING) != 0 {
        let sum = rest.be16()?;
        if line.verbose() > 0 {
            put!(line, ", sum 0x", Hex(sum));
        }
        let offset = rest.be16()?;
        put!(line, ", off 0x", Hex(offset));
    }
    if flags & KEY != 0 {
        let key = rest.be32()?;
        put!(line, ", key=0x", Hex(key));
    }
    if flags & SEQUENCE != 0 {
        let sequence = rest.be32()?;
        put!(line, ", seq ", sequence);
    }
    if flags & ROUTING != 0 {
        put_routes(line, &mut rest)?;
    }
    put_kind(line, kind);
    put!(line, ", length ", length, if line.verbose() > 0 { "\n\t" } else { ": " });
    Ok((kind, rest))
}

/// Prints source routes (RFC 1701), up to the entry without a route.
fn put_routes(line: &mut Line<'_>, rest: &mut Unread<'_>) -> Printed {
    loop {
        let [high, low, offset, len] = rest.be32()?.to_be_bytes();
        let family = u16::from_be_bytes([high, low]);
        if (family, len) == (0, 0) {
            return Ok(());
        }
        let route = Route { offset: offset.into(), len: len.into() };
        match family {
            0x0800 => put_hops::<4>(line, "ip", route, rest)?,
            0xfffe => put_hops::<2>(line, "asn", route, rest)?,
            _ => put!(line, ", (rtaf=0x", Hex(family), ")"),
        }
        rest.take(len.into(), |_| Ok(()))?;
    }
}

/// The length of a source route, and the offset of its next hop.
struct Route {
    offset: usize,
    len: usize,
}

/// Prints hops of `SIZE` bytes: addresses, or numbers of autonomous systems.
fn put_hops<const SIZE: usize>(line: &mut Line<'_>, family: &str, route: Route, rest: &Unread<'_>) -> Printed {
    put!(line, ", (rtaf=", family);
    let mut whole = true;
    if route.offset % SIZE != 0 {
        put!(line, ", badoffset=", route.offset);
    } else if route.len % SIZE != 0 {
        put!(line, ", badlength=", route.len);
    } else if route.offset >= route.len {
        put!(line, ", badoff/len=", route.offset, "/", route.len);
    } else {
        whole = (0..route.len).step_by(SIZE).all(|at| put_hop::<SIZE>(line, route.offset == at, rest, at).is_ok());
    }
    put!(line, ")");
    if whole { Ok(()) } else { Err(Cut) }
}

fn put_hop<const SIZE: usize>(line: &mut Line<'_>, is_next: bool, rest: &Unread<'_>, at: usize) -> Printed {
    let hop = part(rest.bytes, at, SIZE)?;
    if rest.length < at + SIZE {
        return Err(Cut);
    }
    put!(line, if is_next { " *" } else { " " });
    match hop.first_chunk::<4>() {
        Some(address) => put!(line, Addr::V4(*address)),
        None => put!(line, Hex(be16(hop, 0)?)),
    }
    Ok(())
}

fn put_header_1(line: &mut Line<'_>, flags: u16, mut rest: Unread<'_>) -> Printed {
    let length = rest.length;
    put_flags(line, flags);
    rest.be16()?;
    let kind = rest.be16()?;
    if flags & KEY != 0 {
        let key = rest.be32()?;
        put!(line, ", call ", key & 0xffff);
    }
    if flags & SEQUENCE != 0 {
        let sequence = rest.be32()?;
        put!(line, ", seq ", sequence);
    }
    if flags & ACKNOWLEDGEMENT != 0 {
        let acknowledgement = rest.be32()?;
        put!(line, ", ack ", acknowledgement);
    }
    if flags & SEQUENCE == 0 {
        put!(line, ", no-payload");
    }
    put_kind(line, kind);
    put!(line, ", length ", length);
    if flags & SEQUENCE == 0 {
        return Ok(());
    }
    put_last!(line, if line.verbose() > 0 { "\n\t" } else { ": " }, "gre-proto-0x", Hex(kind))
}

fn put_flags(line: &mut Line<'_>, flags: u16) {
    if line.verbose() > 0 {
        put!(line, ", Flags [", Flags(&FLAGS, "none", ", ", flags), "]");
    }
}

fn put_kind(line: &mut Line<'_>, kind: u16) {
    if line.options.link_header {
        let name = ethertype_names::name(kind).unwrap_or("unknown");
        put!(line, ", proto ", name, " (0x", HexWide(kind, 4), ")");
    }
}

fn put_payload(line: &mut Line<'_>, kind: u16, rest: Unread<'_>) -> Printed {
    let inner = match kind {
        0x0800 => Inner::V4,
        0x86dd => Inner::V6,
        BRIDGING => Inner::Ethernet,
        _ => return put_last!(line, "gre-proto-0x", Hex(kind)),
    };
    line.inner(inner, rest.bytes, rest.length).map(|_| ())
}
