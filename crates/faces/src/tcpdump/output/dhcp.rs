//! BOOTP and DHCP (RFC 951, RFC 2131): a request's sender, and the length of the message; with `-v` all of it.

mod names;
mod options;
use super::bytes::{Printed, array, be16, be32, behind, part, u8_at};
use super::line::{Ethernet, Host4, Line};
use super::pieces::{Hex, HexWide, PacketText, put, put_last};

const REQUEST: u8 = 1;
const REPLY: u8 = 2;
const ETHERNET: u8 = 1;
/// Offsets of the parts of a message.
const FLAGS: usize = 10;
const ADDRESS: usize = 28;
const ADDRESS_BYTES: usize = 6;
const SERVER_NAME: (usize, usize) = (44, 64);
const BOOT_FILE: (usize, usize) = (108, 128);
const VENDOR: usize = 236;
/// The bytes before options of DHCP (RFC 1048) and of Carnegie Mellon.
const DHCP: [u8; 4] = [99, 130, 83, 99];
const CMU: [u8; 4] = *b"CMU\0";

/// Prints a message of `length` bytes.
pub(super) fn print(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    line.protocol = "bootp";
    line.or_cut(|line| put_message(line, bytes, length));
    Ok(())
}

fn put_message(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    let operation = u8_at(bytes, 0)?;
    put!(line, "BOOTP/DHCP, ");
    match operation {
        REQUEST => put!(line, "Request"),
        REPLY => put!(line, "Reply"),
        _ => put!(line, "unknown (0x", HexWide(operation, 2), ")"),
    }
    let (kind, len) = (u8_at(bytes, 1)?, usize::from(u8_at(bytes, 2)?));
    if (kind, len, operation) == (ETHERNET, ADDRESS_BYTES, REQUEST) {
        let address: [u8; ADDRESS_BYTES] = array(bytes, ADDRESS)?;
        put!(line, " from ", Ethernet(&address));
    }
    put!(line, ", length ", length);
    if line.verbose() == 0 {
        return Ok(());
    }
    put_numbers(line, kind, len, bytes)?;
    for (at, what) in [(12, "Client-IP"), (16, "Your-IP"), (20, "Server-IP"), (24, "Gateway-IP")] {
        put_unless_zero(line, "\n\t  ", what, " ", array(bytes, at)?);
    }
    if (kind, len) == (ETHERNET, ADDRESS_BYTES) {
        let address: [u8; ADDRESS_BYTES] = array(bytes, ADDRESS)?;
        put!(line, "\n\t  Client-Ethernet-Address ", Ethernet(&address));
    }
    put_text(line, "sname", bytes, SERVER_NAME)?;
    put_text(line, "file", bytes, BOOT_FILE)?;
    match array(bytes, VENDOR)? {
        DHCP => options::print(line, behind(bytes, VENDOR)),
        CMU => put_cmu(line, behind(bytes, VENDOR)),
        [0, 0, 0, 0] => Ok(()),
        other => put_last!(line, "\n\t  Vendor-#0x", Hex(u32::from_be_bytes(other))),
    }
}

/// Prints the fields of the header that differ from most messages.
fn put_numbers(line: &mut Line<'_>, kind: u8, len: usize, bytes: &[u8]) -> Printed {
    let [hops, id @ .., _, _] = array::<7>(bytes, 3)?;
    let seconds = be16(bytes, 8)?;
    if kind != ETHERNET {
        put!(line, ", htype ", kind);
    }
    if (kind, len) != (ETHERNET, ADDRESS_BYTES) {
        put!(line, ", hlen ", len);
    }
    if hops != 0 {
        put!(line, ", hops ", hops);
    }
    if id != [0; 4] {
        put!(line, ", xid 0x", Hex(u32::from_be_bytes(id)));
    }
    if seconds != 0 {
        put!(line, ", secs ", seconds);
    }
    let flags = be16(bytes, FLAGS)?;
    put!(line, ", Flags [", if flags & 0x8000 != 0 { "Broadcast" } else { "none" }, "]");
    if line.verbose() > 1 {
        put!(line, " (0x", HexWide(flags, 4), ")");
    }
    Ok(())
}

/// Prints a name and an address, unless the address is zero.
fn put_unless_zero(line: &mut Line<'_>, before: &str, what: &str, between: &str, address: [u8; 4]) {
    if address != [0; 4] {
        put!(line, before, what, between, Host4(address));
    }
}

/// Prints text that ends with a zero within `len` bytes.
fn put_text(line: &mut Line<'_>, what: &str, bytes: &[u8], (at, len): (usize, usize)) -> Printed {
    if u8_at(bytes, at)? == 0 {
        return Ok(());
    }
    let field = super::bytes::at_most(behind(bytes, at), len);
    let end = field.iter().position(|byte| *byte == 0);
    put!(line, "\n\t  ", what, " \"", PacketText(field.get(..end.unwrap_or(field.len())).unwrap_or(field)), "\"");
    end.map(|_| ()).ok_or(super::bytes::Cut)
}

/// Prints the extensions of Carnegie Mellon.
fn put_cmu(line: &mut Line<'_>, bytes: &[u8]) -> Printed {
    put!(line, " vend-cmu");
    be32(bytes, 4)?;
    let flags = u8_at(bytes, 4)?;
    if flags & !1 != 0 {
        put!(line, " F:0x", Hex(flags));
    }
    let mask = if flags & 1 != 0 { "SM" } else { "SM*" };
    let parts = [(12, "DG"), (8, mask), (16, "NS1"), (20, "NS2"), (24, "IEN1"), (28, "IEN2"), (32, "TS1"), (36, "TS2")];
    for (at, what) in parts {
        put_unless_zero(line, " ", what, ":", array(part(bytes, at, 4)?, 0)?);
    }
    Ok(())
}
