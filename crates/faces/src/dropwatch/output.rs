//! The lines of dropwatch.

use crate::conntrack::output::put_moment;
use crate::pieces::{Hex, Outside, Padded, put};
use sinks::LocalTime;

/// Packets dropped at one address.
#[derive(Clone, Copy, Debug)]
pub struct DropsAt<'d> {
    /// Number of packets.
    pub count: u64,
    /// The address.
    pub address: u64,
    /// The function and the offset in it, if they are requested and known.
    pub place: Option<(&'d [u8], u64)>,
}

/// Appends `3 drops at nf_hook_slow+7d (0xffffffff81f2afcd) [software]`; without the place, `3 drops at location
/// 0xffffffff81f2afcd [software]`.
pub fn put_drops(out: &mut Vec<u8>, drops: &DropsAt<'_>) {
    put!(out, drops.count, " drops at ");
    match drops.place {
        Some((name, offset)) => put!(out, Outside(name, false), "+", Hex(offset), " (0x", Hex(drops.address), ")"),
        None => put!(out, "location 0x", Hex(drops.address)),
    }
    put!(out, " [software]\n");
}

/// Appends `3 drops at source_mac_is_multicast [hardware]`, for packets that hardware dropped with a trap.
pub fn put_hardware_drops(out: &mut Vec<u8>, count: u64, trap: &[u8]) {
    put!(out, count, " drops at ", Outside(trap, false), " [hardware]\n");
}

/// The function in which a packet was dropped, or the trap with which hardware dropped it.
#[derive(Clone, Copy, Debug)]
pub enum AlertPlace<'d> {
    /// The function in the form of `%pS`, and the address in it.
    Function(&'d [u8], u64),
    /// The trap and its group.
    Trap(&'d [u8], &'d [u8]),
}

/// A dropped packet, in the form of `set alertmode packet`. Values that are 0 or empty have no line.
#[derive(Clone, Copy, Debug)]
pub struct PacketAlert<'d> {
    /// The function or trap that dropped it.
    pub place: AlertPlace<'d>,
    /// Number and name of its input interface.
    pub port: (u32, &'d [u8]),
    /// The second in local time, `None` if it is unknown, and the nanoseconds in it.
    pub time: (Option<LocalTime>, u64),
    /// EtherType.
    pub ethertype: u16,
    /// The number of copied bytes, and its original length.
    pub lengths: (usize, u32),
    /// The kernel's name for the reason.
    pub reason: &'d [u8],
}

/// Appends the lines of a packet and an empty line.
pub fn put_packet(out: &mut Vec<u8>, alert: &PacketAlert<'_>) {
    put!(out, "drop at: ");
    let origin: &[u8] = match alert.place {
        AlertPlace::Function(symbol, address) => {
            put!(out, Outside(symbol, false), " (0x", Hex(address));
            b")\norigin: software\n"
        }
        AlertPlace::Trap(trap, group) => {
            put!(out, Outside(trap, false), " (", Outside(group, false));
            b")\norigin: hardware\n"
        }
    };
    out.extend_from_slice(origin);
    let mut put = |name: &[u8], is_there: bool, value: &dyn Fn(&mut Vec<u8>)| {
        if is_there {
            out.extend_from_slice(name);
            value(out);
            put!(out, "\n");
        }
    };
    let number = |number: u64| move |out: &mut Vec<u8>| put!(out, number);
    let (index, name) = alert.port;
    put(b"input port ifindex: ", index != 0, &number(index.into()));
    put(b"input port name: ", !name.is_empty(), &|out| put!(out, Outside(name, false)));
    put(b"timestamp: ", alert.time.0.is_some(), &|out| {
        alert.time.0.into_iter().for_each(|at| put_moment(out, at));
        put!(out, " ", Padded(alert.time.1, 9), " nsec");
    });
    put(b"protocol: 0x", true, &|out| put!(out, Hex(alert.ethertype)));
    put(b"length: ", alert.lengths.0 > 0, &number(alert.lengths.0 as u64));
    put(b"original length: ", true, &number(alert.lengths.1.into()));
    put(b"drop reason: ", !alert.reason.is_empty(), &|out| put!(out, Outside(alert.reason, false)));
    put!(out, "\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_and_without_a_place() {
        let mut out = Vec::new();
        let drops = DropsAt { count: 3, address: 0xffff_ffff_81f2_afcd, place: Some((b"nf_hook_slow", 0x7d)) };
        put_drops(&mut out, &drops);
        put_drops(&mut out, &DropsAt { place: None, ..drops });
        let expected = "3 drops at nf_hook_slow+7d (0xffffffff81f2afcd) [software]\n\
                        3 drops at location 0xffffffff81f2afcd [software]\n";
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }
    #[test]
    fn packets_of_software_and_of_hardware() {
        let at =
            LocalTime { year: 2026, month: 11, day: 8, hour: 1, minute: 2, second: 3, weekday: 0, utc_offset_s: 0 };
        let alert = PacketAlert {
            place: AlertPlace::Function(b"tcp_v4_rcv+0x9a/0xf20", 0xffff_ffff_81b3_a20a),
            port: (1, b""),
            time: (Some(at), 1_000_042),
            ethertype: 0x0800,
            lengths: (60, 74),
            reason: b"NO_SOCKET",
        };
        let mut out = Vec::new();
        put_packet(&mut out, &alert);
        let trap = AlertPlace::Trap(b"source_mac_is_multicast", b"l2_drops");
        let no_time = (None, 0);
        let hardware = PacketAlert { place: trap, port: (2, b"eni1\x1b"), time: no_time, reason: b"", ..alert };
        put_packet(&mut out, &hardware);
        put_hardware_drops(&mut out, 7, b"source_mac_is_multicast");
        let expected = "\
drop at: tcp_v4_rcv+0x9a/0xf20 (0xffffffff81b3a20a)
origin: software
input port ifindex: 1
timestamp: Sun Nov  8 01:02:03 2026 001000042 nsec
protocol: 0x800
length: 60
original length: 74
drop reason: NO_SOCKET

drop at: source_mac_is_multicast (l2_drops)
origin: hardware
input port ifindex: 2
input port name: eni1?
protocol: 0x800
length: 60
original length: 74

7 drops at source_mac_is_multicast [hardware]
";
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }
}
