//! Entries of IEEE 802.1 and 802.3. Values that are too short are not printed.

use super::super::bytes::{Cut, Printed, array, be16, be24, be32, behind, part, u8_at};
use super::super::line::Line;
use super::super::pieces::{Flags, HexWide, put, put_last, when};
use super::{text, words};

/// Prints an entry of IEEE 802.1 after its type; returns false if it is not decoded.
pub(super) fn put_802_1(line: &mut Line<'_>, kind: u8, value: &[u8]) -> Printed<bool> {
    let done = match kind {
        1 => put_port_vlan(line, value),
        2 => put_protocol_vlan(line, value),
        3 => put_vlan_name(line, value),
        4 => put_protocol(line, value),
        7 => put_aggregation(line, value),
        8 => put_congestion(line, value),
        9 | 10 => put_transmission(line, kind, value),
        11 => put_flow_control(line, value),
        12 => put_priorities(line, value),
        13 => put_virtual_bridging(line, value),
        14 => put_channels(line, value),
        _ => return Ok(false),
    };
    // Parts that the entry has are printed; missing ones are not an error.
    let _ = done;
    Ok(true)
}

fn put_port_vlan(line: &mut Line<'_>, value: &[u8]) -> Printed {
    put_last!(line, "\n\t    port vlan id (PVID): ", be16(value, 0)?)
}

fn put_protocol_vlan(line: &mut Line<'_>, value: &[u8]) -> Printed {
    let (flags, vlan) = (u8_at(value, 0)?, be16(value, 1)?);
    put!(line, "\n\t    port and protocol vlan id (PPVID): ", vlan, ", flags [");
    put!(line, Flags(&words::PROTOCOL_VLAN, "none", ", ", flags));
    put_last!(line, "] (0x", HexWide(flags, 2), ")")
}

fn put_vlan_name(line: &mut Line<'_>, value: &[u8]) -> Printed {
    put!(line, "\n\t    vlan id (VID): ", be16(value, 0)?);
    let name = part(value, 3, u8_at(value, 2)?.into())?;
    put_last!(line, "\n\t    vlan name: ", text(name))
}

fn put_protocol(line: &mut Line<'_>, value: &[u8]) -> Printed {
    let protocol = part(value, 1, u8_at(value, 0)?.into())?;
    put_last!(line, "\n\t    protocol identity: ", text(protocol))
}

fn put_aggregation(line: &mut Line<'_>, value: &[u8]) -> Printed {
    let (status, port) = (u8_at(value, 0)?, be32(value, 1)?);
    put!(line, "\n\t    aggregation status [", Flags(&words::AGGREGATION, "none", ", ", status));
    put_last!(line, "], aggregation port ID ", port)
}

/// Appends a bit for each priority, beginning with the lowest.
fn put_bits(line: &mut Line<'_>, bits: u8) {
    put!(line, "\n\t     Priority : 0  1  2  3  4  5  6  7\n\t     Value    : ");
    for nth in 0..8 {
        put!(line, bits >> nth & 1, "  ");
    }
}

fn put_congestion(line: &mut Line<'_>, value: &[u8]) -> Printed {
    let [points, ready] = array(value, 0)?;
    put!(line, "\n\t    Pre-Priority CNPV Indicator");
    put_bits(line, points);
    put!(line, "\n\t    Pre-Priority Ready Indicator");
    put_bits(line, ready);
    Ok(())
}

/// Appends numbers in columns of three characters, separated by blanks.
fn put_columns(line: &mut Line<'_>, numbers: [u8; 8]) {
    for (nth, number) in numbers.into_iter().enumerate() {
        put!(line, when(nth > 0, " "), number, when(number < 10, "  "), when((10..100).contains(&number), " "));
    }
}

/// Prints enhanced transmission selection: its configuration or the recommendation.
fn put_transmission(line: &mut Line<'_>, kind: u8, value: &[u8]) -> Printed {
    part(value, 0, 21)?;
    let flags = u8_at(value, 0)?;
    if kind == 9 {
        put!(line, "\n\t    Willing:", flags >> 7, ", CBS:", flags >> 6 & 2, ", RES:", flags >> 3 & 7, ", Max TCs:");
        put!(line, flags & 7);
    } else {
        put!(line, "\n\t    RES: ", flags);
    }
    let priorities = be32(value, 1)?;
    put!(
        line,
        "\n\t    Priority Assignment Table\n\t     Priority : 0   1   2   3   4   5   6   7\n\t     Value    : "
    );
    put_columns(line, [28, 24, 20, 16, 12, 8, 4, 0].map(|shift| (priorities >> shift & 15) as u8));
    put!(line, "\n\t    TC Bandwidth Table\n\t     TC%   : 0   1   2   3   4   5   6   7\n\t     Value : ");
    put_columns(line, array(value, 5)?);
    put!(
        line,
        "\n\t    TSA Assignment Table\n\t     Traffic Class: 0   1   2   3   4   5   6   7\n\t     Value        : "
    );
    put_columns(line, array(value, 13)?);
    Ok(())
}

fn put_flow_control(line: &mut Line<'_>, value: &[u8]) -> Printed {
    let [flags, enabled] = array(value, 0)?;
    put!(line, "\n\t    Willing: ", flags >> 7, ", MBC: ", flags >> 6 & 1, ", RES: ", flags >> 4 & 3, ", PFC cap:");
    put!(line, flags & 15, " \n\t    PFC Enable");
    put_bits(line, enabled);
    Ok(())
}

fn put_priorities(line: &mut Line<'_>, value: &[u8]) -> Printed {
    put!(line, "\n\t    RES: ", u8_at(value, 0)?);
    let table = behind(value, 1);
    if table.is_empty() || table.len() % 3 != 0 {
        return Err(Cut);
    }
    put!(line, "\n\t    Application Priority Table");
    for row in table.chunks_exact(3) {
        let flags = u8_at(row, 0)?;
        put!(line, "\n\t      Priority: ", flags >> 5, ", RES: ", flags >> 3 & 3, ", Sel: ", flags & 7);
        put!(line, ", Protocol ID: ", be16(row, 1)?);
    }
    Ok(())
}

fn put_virtual_bridging(line: &mut Line<'_>, value: &[u8]) -> Printed {
    let [bridge, station, retries, mode, keep] = array(value, 0)?;
    put!(line, "\n\t    EVB Bridge Status\n\t      RES: ", bridge >> 3, ", BGID: ", bridge >> 2 & 1, ", RRCAP: ");
    put!(line, bridge >> 1 & 1, ", RRCTR: ", bridge & 1, "\n\t    EVB Station Status\n\t      RES: ", station >> 4);
    put!(line, ", SGID: ", station >> 3 & 1, ", RRREQ: ", station >> 2 & 1, ",RRSTAT: ", station & 3, "\n\t    R: ");
    put!(line, retries >> 5, ", RTE: ", retries & 31, ", EVB Mode: ");
    let name = words::of(words::EVB_MODES, (mode >> 6).into());
    put!(line, name.unwrap_or("unknown"), " [", mode >> 6, "]\n\t    ROL: ", mode >> 5 & 1, ", RWD: ", mode & 31);
    put_last!(line, ", RES: ", keep >> 6, ", ROL: ", keep >> 5 & 1, ", RKA: ", keep & 31)
}

fn put_channels(line: &mut Line<'_>, value: &[u8]) -> Printed {
    part(value, 0, 4)?;
    let flags = u8_at(value, 0)?;
    put!(line, "\n\t    Role: ", flags >> 7, ", RES: ", flags >> 4 & 7, ", Scomp: ", flags >> 3 & 1);
    put!(line, " ChnCap: ", be16(value, 2)? & 0xfff);
    let channels = behind(value, 4);
    if channels.len() % 3 != 0 {
        return Err(Cut);
    }
    for channel in channels.chunks_exact(3) {
        let channel = be24(channel, 0)?;
        put!(line, "\n\t    SCID: ", channel >> 12, ", SVID: ", channel & 0xfff);
    }
    Ok(())
}

/// Prints an entry of IEEE 802.3 after its type; returns false if it is not decoded.
pub(super) fn put_802_3(line: &mut Line<'_>, kind: u8, value: &[u8]) -> Printed<bool> {
    let done = match kind {
        1 => put_speed(line, value),
        2 => put_power(line, value),
        3 => put_aggregation(line, value),
        4 => be16(value, 0).map(|size| put!(line, "\n\t    MTU size ", size)),
        _ => return Ok(false),
    };
    let _ = done;
    Ok(true)
}

fn put_speed(line: &mut Line<'_>, value: &[u8]) -> Printed {
    let (negotiation, speeds, kind) = (u8_at(value, 0)?, be16(value, 1)?, be16(value, 3)?);
    put!(line, "\n\t    autonegotiation [", Flags(&words::NEGOTIATION, "none", ", ", negotiation), "] (0x");
    put!(line, HexWide(negotiation, 2), ")\n\t    PMD autoneg capability [");
    put!(line, Flags(&words::SPEEDS, "unknown", ", ", speeds));
    let name = words::of(words::TRANSCEIVERS, kind).unwrap_or("unknown");
    put_last!(line, "] (0x", HexWide(speeds, 4), ")\n\t    MAU type ", name, " (0x", HexWide(kind, 4), ")")
}

fn put_power(line: &mut Line<'_>, value: &[u8]) -> Printed {
    let [support, pairs, class] = array(value, 0)?;
    put!(line, "\n\t    MDI power support [", Flags(&words::POWER, "none", ", ", support), "], power pair ");
    put!(line, words::of(words::POWER_PAIRS, pairs.into()).unwrap_or("unknown"), ", power class ");
    put_last!(line, words::of(words::POWER_CLASSES, class.into()).unwrap_or("unknown"))
}
