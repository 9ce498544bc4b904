//! ARP and RARP (RFC 826, RFC 903).

use super::bytes::{Cut, Printed, array, be16, part, u8_at};
use super::line::Line;
use super::undecoded::always_print;

const IPV4: u16 = 0x0800;
const TRAILERS: u16 = 0x1000;

/// Prints an ARP packet.
pub(super) fn print(line: &mut Line<'_>, bytes: &[u8], length: usize) -> Printed {
    line.protocol = "arp";
    let arp = Arp::read(bytes)?;
    if !line.options.link_header {
        line.put("ARP, ");
    }
    if line.verbose() > 0 || !arp.is_usual() {
        put_lengths(line, &arp);
    }
    // Unusual header fields are printed with `-v`.
    if line.verbose() > 0 || arp.is_usual() {
        put_operation(line, &arp)?;
        if !matches!(arp.operation, 1..=4 | 8 | 9) {
            always_print(line, bytes);
            return Ok(());
        }
    }
    line.put(", length ");
    line.len(length);
    Ok(())
}

struct Arp<'a> {
    hardware: u16,
    protocol: u16,
    operation: u16,
    hardware_bytes: usize,
    protocol_bytes: usize,
    /// Hardware and protocol address of the sender, then of the target.
    addresses: [&'a [u8]; 4],
}

impl<'a> Arp<'a> {
    fn read(bytes: &'a [u8]) -> Printed<Arp<'a>> {
        let (hardware_bytes, protocol_bytes) = (usize::from(u8_at(bytes, 4)?), usize::from(u8_at(bytes, 5)?));
        let (mut addresses, mut at) = ([&[][..]; 4], 8);
        for (address, len) in addresses.iter_mut().zip([hardware_bytes, protocol_bytes].iter().cycle()) {
            *address = part(bytes, at, *len)?;
            at += len;
        }
        let arp = Arp {
            hardware: be16(bytes, 0)?,
            protocol: be16(bytes, 2)?,
            operation: be16(bytes, 6)?,
            hardware_bytes,
            protocol_bytes,
            addresses,
        };
        Ok(arp)
    }

    /// True for IPv4, or its trailers, over hardware that has addresses.
    fn is_usual(&self) -> bool {
        matches!(self.protocol, IPV4 | TRAILERS) && self.protocol_bytes == 4 && self.hardware_bytes != 0
    }
}

fn put_lengths(line: &mut Line<'_>, arp: &Arp<'_>) {
    match hardware_name(arp.hardware) {
        Some(name) => line.put(name),
        None => {
            line.item("Unknown Hardware (", arp.hardware);
            line.byte(b')');
        }
    }
    line.put(" (len ");
    line.len(arp.hardware_bytes);
    line.put("), ");
    match super::ethertype_names::name(arp.protocol) {
        Some(name) => line.put(name),
        None => {
            line.put("Unknown Protocol (0x");
            line.hex_padded(arp.protocol, 4);
            line.byte(b')');
        }
    }
    line.put(" (len ");
    line.len(arp.protocol_bytes);
    line.byte(b')');
    if line.verbose() > 0 {
        line.put(", ");
    }
}

fn hardware_name(hardware: u16) -> Option<&'static str> {
    Some(match hardware {
        1 => "Ethernet",
        6 => "TokenRing",
        7 => "ArcNet",
        15 => "FrameRelay",
        23 => "Strip",
        24 => "IEEE 1394",
        32 => "InfiniBand",
        _ => return None,
    })
}

fn put_operation(line: &mut Line<'_>, arp: &Arp<'_>) -> Printed {
    let [sender_hardware, sender, target_hardware, target] = arp.addresses;
    let hardware = |line: &mut Line<'_>, address: &[u8]| put_hardware(line, address);
    match arp.operation {
        1 => {
            line.put("Request who-has ");
            put_protocol(line, arp, target)?;
            if target_hardware.iter().any(|byte| *byte != 0) {
                line.put(" (");
                hardware(line, target_hardware);
                line.byte(b')');
            }
            line.put(" tell ");
            put_protocol(line, arp, sender)?;
        }
        2 => {
            line.put("Reply ");
            put_protocol(line, arp, sender)?;
            line.put(" is-at ");
            hardware(line, sender_hardware);
        }
        3 => {
            line.put("Reverse Request who-is ");
            hardware(line, target_hardware);
            line.put(" tell ");
            hardware(line, sender_hardware);
        }
        4 => {
            line.put("Reverse Reply ");
            hardware(line, target_hardware);
            line.put(" at ");
            put_protocol(line, arp, target)?;
        }
        8 => {
            line.put("Inverse Request who-is ");
            hardware(line, target_hardware);
            line.put(" tell ");
            hardware(line, sender_hardware);
        }
        9 => {
            line.put("Inverse Reply ");
            hardware(line, sender_hardware);
            line.put(" at ");
            put_protocol(line, arp, sender)?;
        }
        10 => line.put("NACK Reply "),
        operation => {
            line.item("Unknown (", operation);
            line.put(") ");
        }
    }
    Ok(())
}

fn put_hardware(line: &mut Line<'_>, address: &[u8]) {
    if address.is_empty() {
        return line.put("<empty>");
    }
    line.ethernet(address);
}

fn put_protocol(line: &mut Line<'_>, arp: &Arp<'_>, address: &[u8]) -> Printed {
    if !matches!(arp.protocol, IPV4 | TRAILERS) {
        line.put("<wrong proto type>");
    } else if address.len() != 4 {
        line.put("<wrong len>");
    } else {
        line.v4(array(address, 0).map_err(|_| Cut)?);
    }
    Ok(())
}
