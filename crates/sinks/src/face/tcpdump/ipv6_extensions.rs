//! Extension headers of IPv6 (RFC 8200, RFC 8754).

use super::bytes::{Printed, array, be16, be32, behind, part, u8_at};
use super::line::Line;

/// Hop-by-hop and destination options; returns the bytes of the header.
pub(super) fn options(line: &mut Line<'_>, name: &str, bytes: &[u8]) -> Printed<usize> {
    line.protocol = if name == "HBH " { "hbhopt" } else { "dstopt" };
    let len = (usize::from(u8_at(bytes, 1)?) + 1) * 8;
    let header = part(bytes, 0, len)?;
    line.put(name);
    if line.verbose() > 0 {
        put_options(line, behind(header, 2), len - 2)?;
        line.byte(b' ');
    }
    Ok(len)
}

fn put_options(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    let mut at = 0;
    while at < length {
        let kind = u8_at(bytes, at)?;
        if kind == 0 {
            line.put("(pad1)");
            at += 1;
            continue;
        }
        if at + 1 >= length {
            line.put("(padn: trunc)");
            return Ok(());
        }
        let len = usize::from(u8_at(bytes, at + 1)?);
        match kind {
            1 => line.put("(padn)"),
            5 if len == 2 => {
                line.put("(rtalert: 0x");
                line.hex_padded(be16(bytes, at + 2)?, 4);
                line.put(") ");
            }
            5 => {
                line.put("(rtalert: invalid len ");
                line.len(len);
                line.byte(b')');
            }
            0xc2 => {
                line.item("(jumbo: ", be32(bytes, at + 2)?);
                line.put(") ");
            }
            0xc9 => {
                line.put("(homeaddr: ");
                line.v6(array(bytes, at + 2)?);
                line.byte(b')');
            }
            _ => {
                line.item("(opt_type 0x", 0_u8);
                line.out.pop();
                line.hex_padded(kind, 2);
                line.put(": len=");
                line.len(len);
                line.byte(b')');
            }
        }
        at += 2 + len;
    }
    Ok(())
}

/// A routing header; returns its bytes.
pub(super) fn routing(line: &mut Line<'_>, bytes: &[u8]) -> Printed<usize> {
    line.protocol = "rt6";
    let [_, len, kind, left] = array(bytes, 0)?;
    line.item("srcrt (len=", len);
    line.item(", type=", kind);
    if kind == 4 {
        line.put("[Segment Routing]");
    }
    line.item(", segleft=", left);
    let at_most = usize::from(len) / 2;
    match kind {
        0 | 2 => {
            let reserved = be32(bytes, 4)?;
            if reserved != 0 || line.verbose() > 1 {
                line.put(", rsv=0x");
                line.hex(reserved);
            }
            for nth in 0..at_most {
                line.item(", [", nth as u64);
                line.byte(b']');
                line.v6(array(bytes, 8 + nth * 16)?);
            }
        }
        _ => {}
    }
    line.put(") ");
    Ok((usize::from(len) + 1) * 8)
}

/// A fragment header; its bytes, or none if it is not the first fragment, of which nothing more is printed.
/// `left` is what the packet has from this header on.
pub(super) fn fragment(line: &mut Line<'_>, bytes: &[u8], left: usize) -> Printed<Option<usize>> {
    line.protocol = "frag6";
    let offset = be16(bytes, 2)?;
    let id = if line.verbose() > 0 { Some(be32(bytes, 4)?) } else { None };
    line.put("frag (");
    if let Some(id) = id {
        line.put("0x");
        line.hex_padded(id, 8);
        line.byte(b':');
    }
    line.dec(offset & 0xfff8);
    line.byte(b'|');
    line.len(left.saturating_sub(8));
    line.byte(b')');
    if offset & 0xfff8 != 0 {
        return Ok(None);
    }
    line.byte(b' ');
    if bytes.len() <= 8 {
        return Ok(None);
    }
    Ok(Some(8))
}
