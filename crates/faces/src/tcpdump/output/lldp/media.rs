//! Entries of ANSI/TIA-1057, media endpoints. Values that are too short are not printed.

use super::super::bytes::{Cut, Printed, array, at_most, be16, be32, behind, part, u8_at};
use super::super::dump::put_hex_lines;
use super::super::line::Line;
use super::super::pieces::{Flags, Hex, HexWide, put, put_last};
use super::{text, words};

/// Powers from this one on are reserved; in tenths of a watt.
const POWER_MAX: u16 = 1024;

/// Prints an entry after its type; returns false if it is not decoded.
pub(super) fn put(line: &mut Line<'_>, kind: u8, value: &[u8]) -> Printed<bool> {
    let done = match kind {
        1 => put_capabilities(line, value),
        2 => put_policy(line, value),
        3 => put_location(line, value),
        4 => put_power(line, value),
        5..=11 => {
            let name = words::of(words::INVENTORY, kind.into()).unwrap_or("unknown");
            put_last!(line, "\n\t  ", name, " ", text(value))
        }
        _ => return Ok(false),
    };
    // Parts that the entry has are printed; missing ones are not an error.
    let _ = done;
    Ok(true)
}

fn put_capabilities(line: &mut Line<'_>, value: &[u8]) -> Printed {
    let (has, device) = (be16(value, 0)?, u8_at(value, 2)?);
    put!(line, "\n\t    Media capabilities [", Flags(&words::MEDIA_CAPABILITIES, "none", ", ", has));
    let name = words::of(words::DEVICES, device.into()).unwrap_or("unknown");
    put!(line, "] (0x", HexWide(has, 4), ")\n\t    Device type [", name, "] (0x", HexWide(device, 2), ")");
    Ok(())
}

fn put_policy(line: &mut Line<'_>, value: &[u8]) -> Printed {
    part(value, 0, 4)?;
    let (application, flags, vlan, rest) = (u8_at(value, 0)?, u8_at(value, 1)?, be16(value, 1)?, be16(value, 2)?);
    let name = words::of(words::APPLICATIONS, application.into()).unwrap_or("none");
    put!(line, "\n\t    Application type [", name, "] (0x", HexWide(application, 2), "), Flags [");
    put!(line, Flags(&words::POLICY, "none", ", ", flags));
    put_last!(line, "]\n\t    Vlan id ", vlan >> 1 & 0xfff, ", L2 priority ", rest >> 6 & 7, ", DSCP value ", rest & 63)
}

fn put_location(line: &mut Line<'_>, value: &[u8]) -> Printed {
    let (format, place) = (u8_at(value, 0)?, behind(value, 1));
    let name = words::of(words::LOCATIONS, format.into()).unwrap_or("unknown");
    put!(line, "\n\t    Location data format ", name, " (0x", HexWide(format, 2), ")");
    match format {
        1 => put_coordinates(line, place),
        2 => put_address(line, place),
        3 => put_last!(line, "\n\t    ECS ELIN id ", text(place)),
        _ => {
            put!(line, "\n\t    Location ID ");
            put_hex_lines(line.out, "\n\t      ", place, false);
            Ok(())
        }
    }
}

fn put_coordinates(line: &mut Line<'_>, place: &[u8]) -> Printed {
    part(place, 0, 16)?;
    for (at, name) in [(0, "Latitude"), (5, "Longitude")] {
        let (first, rest) = (u8_at(place, at)?, be32(place, at + 1)?);
        put!(line, "\n\t    ", name, " resolution ", first >> 2, ", ");
        put!(
            line,
            if at == 0 { "latitude" } else { "longitude" },
            " value ",
            u64::from(first & 3) << 32 | u64::from(rest)
        );
    }
    let (kind, resolution, altitude) = (u8_at(place, 10)? >> 4, be16(place, 10)? >> 6 & 63, be32(place, 11)?);
    let name = words::of(words::ALTITUDES, kind.into()).unwrap_or("unknown");
    put!(line, "\n\t    Altitude type ", name, " (", kind, ")\n\t    Altitude resolution ", resolution);
    put!(line, ", altitude value 0x", Hex(altitude & 0x3fff_ffff));
    let datum = u8_at(place, 15)?;
    let name = words::of(words::DATUMS, datum.into()).unwrap_or("unknown");
    put_last!(line, "\n\t    Datum ", name, " (0x", HexWide(datum, 2), ")")
}

fn put_address(line: &mut Line<'_>, place: &[u8]) -> Printed {
    let len = usize::from(u8_at(place, 0)?);
    if len < 3 {
        return Err(Cut);
    }
    let what = u8_at(part(place, 1, len + 1)?, 0)?;
    let name = words::of(words::PLACES, what.into()).unwrap_or("unknown");
    put!(line, "\n\t    LCI length ", len, ", LCI what ", name, " (0x", HexWide(what, 2), "), Country-code ");
    put!(line, text(part(place, 2, 2)?));
    let mut rest = at_most(behind(place, 4), len - 3);
    while !rest.is_empty() {
        let [kind, len] = array(rest, 0)?;
        rest = behind(rest, 2);
        let name = words::of(words::CIVIC, kind.into()).unwrap_or("unknown");
        put!(line, "\n\t      CA type '", name, "' (", kind, "), length ", len, ": ");
        if kind == 0 || len == 0 {
            return Err(Cut);
        }
        put!(line, text(part(rest, 0, len.into())?));
        rest = behind(rest, len.into());
    }
    Ok(())
}

fn put_power(line: &mut Line<'_>, value: &[u8]) -> Printed {
    let (flags, power) = (u8_at(value, 0)?, be16(value, 1)?);
    // The tool reads the wrong bits.
    put!(line, "\n\t    Power type [", if flags & 3 != 0 { "PD device" } else { "PSE device" }, "], Power source [");
    let source = words::of(words::POWER_SOURCES, (flags >> 4 & 3).into()).unwrap_or("none");
    let priority = words::of(words::POWER_PRIORITIES, (flags & 15).into()).unwrap_or("none");
    put!(line, source, "]\n\t    Power priority [", priority, "] (0x", HexWide(flags & 15, 2), "), Power ");
    if power < POWER_MAX {
        put!(line, power / 10, ".", power % 10, " Watts");
    } else {
        put!(line, power, " (Reserved)");
    }
    Ok(())
}
