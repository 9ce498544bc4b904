//! The items after the ports: owners, timer, identity, and the second line of `-m` and `-i`.

use super::families;
use super::item::{HexItem, Item, line_break};
use super::options::{Layout, Options, show};
use super::rare;
use super::security::{put_md5, put_ulp};
use super::tcp;
use crate::pieces::{Hex, Outside, Padded, list, put, when};
use record::rows::{SkMem, Socket, UnixPart};
use record::{Key, LookupId, Lookups, Proto, State, Value};

/// AF_INET6, include/linux/socket.h.
const AF_INET6: u8 = 10;

/// Appends everything except the owners.
pub(super) fn put(out: &mut Vec<u8>, row: &Socket<'_>, lookups: &Lookups<'_>, options: &Options) {
    if let Some(unix) = &row.unix {
        return put_unix(out, row, unix, options);
    }
    match row.proto {
        Proto::Packet => return put_packet(out, row, lookups, options),
        Proto::Netlink => return put_netlink(out, row, options),
        Proto::Vsock => return,
        Proto::Tipc if options.has(show::DETAILS) => return put_details(out, row, lookups, options),
        Proto::Tipc => return,
        Proto::Xdp => return put_xdp(out, row, lookups, options),
        // With /proc, ss shows nothing except the owners; with netlink, a socket has a cookie.
        Proto::Raw if row.cookie == 0 => return,
        _ => {}
    }
    if options.has(show::TIMERS) {
        put_timer(out, row, options);
    }
    if options.has(show::DETAILS) {
        put_details(out, row, lookups, options);
    }
    if options.has(show::TOS) {
        put_tos(out, row);
    }
    if options.has(show::CGROUP) {
        put_cgroup(out, row, lookups, options.bug_compatible);
    }
    if options.has(show::SOCKOPT) {
        put_sockopt(out, row, options.has(show::ONE_LINE));
    }
    if options.has(show::MEMORY) || (options.has(show::INFO) && !matches!(row.proto, Proto::Udp | Proto::UdpLite)) {
        put_second_line(out, row, options);
    }
}

fn put_unix(out: &mut Vec<u8>, row: &Socket<'_>, unix: &UnixPart<'_>, options: &Options) {
    if options.has(show::MEMORY) {
        put_skmem(out, row.skmem);
    }
    if !options.has(show::DETAILS) {
        return;
    }
    put!(out, arrows(row.shutdown));
    if let Some((device, inode)) = unix.vfs {
        // The kernel's device number, split like the C library splits its own, because ss prints it like that.
        put!(out, " ino:", inode, " dev:", device >> 8 & 0xfff, "/", device & 0xff | device >> 12 & !0xff);
    }
    // The sockets that wait to be accepted.
    if row.state == State::LISTEN {
        put!(out, " peers:");
        for icon in unix.icons.unwrap_or_default().chunks_exact(4) {
            put!(out, " ", icon.try_into().map_or(0, u32::from_ne_bytes));
        }
    }
}

/// Appends the identity, then one line each for the ring's version, the rings, the fanout group and the filter.
fn put_packet(out: &mut Vec<u8>, row: &Socket<'_>, lookups: &Lookups<'_>, options: &Options) {
    let Some(packet) = row.extras.and_then(|rare| rare.packet) else { return };
    if options.has(show::DETAILS) {
        put_details(out, row, lookups, options);
        rare::put_rings(out, &packet, options.has(show::ONE_LINE));
    }
    if options.has(show::FILTERS) {
        rare::put_filter(out, packet.filter, options.has(show::ONE_LINE));
    }
    if options.has(show::MEMORY) {
        put_skmem(out, row.skmem);
    }
}

fn put_netlink(out: &mut Vec<u8>, row: &Socket<'_>, options: &Options) {
    let Some(netlink) = row.extras.and_then(|rare| rare.netlink).filter(|_| options.shows_netlink()) else { return };
    if options.has(show::DETAILS) {
        // Netlink has no addresses of the socket and of its callback, so ss prints zeros.
        put!(out, " sk=0 cb=0 groups=0x");
        rare::put_groups(out, netlink.groups);
    }
    if options.has(show::MEMORY) {
        put!(out, "\t");
        put_skmem(out, row.skmem);
    }
}

/// Appends the identity, then one line each for the rings, the memory and the counters.
fn put_xdp(out: &mut Vec<u8>, row: &Socket<'_>, lookups: &Lookups<'_>, options: &Options) {
    if options.has(show::DETAILS) {
        put_details(out, row, lookups, options);
        if let Some(xdp) = row.extras.and_then(|rare| rare.xdp) {
            families::put_xdp(out, &xdp, options);
        }
    }
    if options.has(show::MEMORY) {
        put_skmem(out, row.skmem);
    }
}

/// Appends `␠timer:(KIND,TIME,RETRANSMISSIONS)`; nothing if no timer runs.
fn put_timer(out: &mut Vec<u8>, row: &Socket<'_>, options: &Options) {
    let kind = match row.timer.0 {
        0 => return,
        // The only timer of SCTP, which has another number in the kernel.
        _ if row.proto == Proto::Sctp => "T3_RTX",
        1 => "on",
        2 => "keepalive",
        3 => "timewait",
        4 => "persist",
        _ => "unknown",
    };
    put!(out, " timer:(", kind, ",");
    let wrong_unit = options.bug_compatible && options.layout == Layout::V6_1;
    put_time(out, row.timer_ms, wrong_unit);
    put!(out, ",", row.retrans, ")");
}

/// Appends `712ms`, `2.004sec`, `29sec`, `1min29sec`, `66min`; nothing for 0. ss 6.1 writes `2.004ms` for two seconds.
fn put_time(out: &mut Vec<u8>, ms: u32, wrong_unit: bool) {
    let (minutes, seconds, rest) = (ms / 60_000, ms / 1000 % 60, ms % 1000);
    if minutes > 0 {
        put!(out, minutes, "min");
    }
    let seconds = if minutes > 9 { 0 } else { seconds };
    let rest = if minutes > 0 || seconds > 9 { 0 } else { rest };
    if seconds > 0 {
        put!(out, seconds, if rest > 0 { "." } else { "sec" });
    }
    if rest > 0 {
        put!(out, Padded(rest, 3), if seconds > 0 && !wrong_unit { "sec" } else { "ms" });
    }
}

fn put_details(out: &mut Vec<u8>, row: &Socket<'_>, lookups: &Lookups<'_>, options: &Options) {
    put!(out, Item(" uid:", row.uid), " ino:", row.inode, " sk:", Hex(row.cookie), HexItem(" fwmark:0x", row.mark));
    put_cgroup(out, row, lookups, options.bug_compatible);
    let v6only = row.v6only.filter(|_| row.family == AF_INET6);
    put!(out, v6only.map(|v6only| (" v6only:", u8::from(v6only))), arrows(row.shutdown));
}

/// A cgroup without a path (not mounted, or removed) is omitted; ss prints its number as a path.
fn put_cgroup(out: &mut Vec<u8>, row: &Socket<'_>, lookups: &Lookups<'_>, bug_compatible: bool) {
    let Some(id) = row.cgroup_id.filter(|&id| id != 0) else { return };
    match lookups.value(LookupId::Cgroups, Key::Id(id)) {
        Value::Bytes(path) => put!(out, " cgroup:", Outside(path, bug_compatible)),
        _ if bug_compatible => put!(out, " cgroup:unreachable:", Hex(id)),
        _ => {}
    }
}

fn arrows(shutdown: Option<u8>) -> &'static str {
    match shutdown.map(|bits| bits & 3) {
        None => "",
        Some(0) => " <->",
        Some(1) => " -->",
        Some(2) => " <--",
        Some(_) => " ---",
    }
}

fn put_tos(out: &mut Vec<u8>, row: &Socket<'_>) {
    let items =
        [(" tos:", row.tos.map(u32::from)), (" tclass:", row.tclass.map(u32::from)), (" class_id:", row.class_id)];
    for (words, n) in items {
        // C's %#x has no prefix for 0.
        put!(out, n.map(|n| list!(words, when(n > 0, "0x"), Hex(n))));
    }
}

/// The bits of INET_DIAG_SOCKOPT, the lowest first, include/uapi/linux/inet_diag.h `struct inet_diag_sockopt`.
#[rustfmt::skip]
const SOCKOPTS: [&str; 11] = [
    " recverr", " is_icsk", " freebind", " hdrincl", " mc_loop", " transparent", " mc_all", " nodefrag",
    " bind_addr_no_port", " recverr_rfc4884", " defer_connect",
];

fn put_sockopt(out: &mut Vec<u8>, row: &Socket<'_>, one_line: bool) {
    let Some([low, high]) = row.sockopt else { return };
    let bits = u16::from_le_bytes([low, high]);
    put!(out, line_break(one_line), "inet-sockopt: (");
    for (i, word) in SOCKOPTS.iter().enumerate() {
        put!(out, when(bits >> i & 1 == 1, word));
    }
    put!(out, ")");
}

fn put_second_line(out: &mut Vec<u8>, row: &Socket<'_>, options: &Options) {
    put!(out, when(!options.has(show::ONE_LINE), "\n\t"));
    if options.has(show::MEMORY) {
        put_skmem(out, row.skmem);
    }
    // ss prints the addresses even if only -m is given.
    if let Some(sctp) = row.extras.and_then(|rare| rare.sctp) {
        return families::put_sctp(out, &sctp);
    }
    if !options.has(show::INFO) {
        return;
    }
    if let Some(mptcp) = row.extras.and_then(|rare| rare.mptcp) {
        return rare::put_mptcp(out, &mptcp, options.layout);
    }
    if let Some(info) = &row.tcp_info {
        tcp::put(out, row, info, options);
    }
    if let Some(keys) = row.md5sig {
        put_md5(out, keys);
    }
    if let Some(ulp) = row.ulp {
        put_ulp(out, ulp, options.layout, options.bug_compatible);
    }
}

/// Letters of the nine numbers (include/uapi/linux/sock_diag.h, `SK_MEMINFO_*`).
const SKMEM: [&str; 9] = [" skmem:(r", ",rb", ",t", ",tb", ",f", ",w", ",o", ",bl", ",d"];

fn put_skmem(out: &mut Vec<u8>, skmem: Option<SkMem<'_>>) {
    let Some(skmem) = skmem else { return };
    for (i, letter) in SKMEM.iter().enumerate() {
        // Older kernels do not send backlog and drops.
        match skmem.get(i) {
            Some(n) => put!(out, *letter, n),
            None if i < 7 => put!(out, *letter, "0"),
            None => {}
        }
    }
    put!(out, ")");
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn times_of_timers() {
        for (ms, right, wrong) in [
            (0, "", ""),
            (712, "712ms", "712ms"),
            (4, "004ms", "004ms"),
            (2_004, "2.004sec", "2.004ms"),
            (4_000, "4sec", "4sec"),
            (29_999, "29sec", "29sec"),
            (89_000, "1min29sec", "1min29sec"),
            (61_500, "1min1sec", "1min1sec"),
            (66 * 60_000 + 5_000, "66min", "66min"),
        ] {
            for (expected, wrong_unit) in [(right, false), (wrong, true)] {
                let mut out = Vec::new();
                put_time(&mut out, ms, wrong_unit);
                assert_eq!(String::from_utf8(out).unwrap(), expected);
            }
        }
    }
}
