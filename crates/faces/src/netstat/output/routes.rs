//! `netstat -r` and `netstat -g`: lines of routes and of multicast memberships.

use super::address::{host, mask};
use crate::pieces::{Left, Outside, Right, Written, list, put, when, written};
use record::rows::{Membership, ProcRoute, rtf};
use record::{Addr, Lookups};

/// The options for routes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RouteOptions {
    /// Columns of the IPv4 table.
    pub columns: RouteColumns,
    /// Numbers instead of names.
    pub numeric: bool,
    /// Cut nothing, even with `bug_compatible` (`-W`).
    pub wide: bool,
    /// The old bytes: long names are cut without a mark, control bytes are not escaped.
    pub bug_compatible: bool,
}

/// Columns of the IPv4 table, by the number of `-e`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RouteColumns {
    /// Segment size, window and initial round-trip time: without `-e`.
    Transport,
    /// Metric, references, uses (`-e`).
    Metric,
    /// Every column (`-ee`).
    All,
    /// No column, and not even a line: `-eee`, because of an overflow in netstat.
    Nothing,
}

/// Names that are not in a lookup.
#[derive(Clone, Copy)]
pub struct NetworkNames<'n> {
    /// Returns the name of a network (/etc/networks).
    pub network: &'n dyn Fn([u8; 4]) -> Option<&'n [u8]>,
}

impl RouteColumns {
    fn heading(self) -> &'static str {
        match self {
            RouteColumns::Transport => "Flags   MSS Window  irtt Iface\n",
            RouteColumns::Metric => "Flags Metric Ref    Use Iface\n",
            RouteColumns::All => "Flags Metric Ref    Use Iface    MSS   Window irtt\n",
            RouteColumns::Nothing => "",
        }
    }
}

/// Appends title and heading of the IPv4 table.
pub fn put_routes_heading(out: &mut Vec<u8>, options: &RouteOptions) {
    let front = when(options.columns != RouteColumns::Nothing, "Destination     Gateway         Genmask         ");
    put!(out, "Kernel IP routing table\n", front, options.columns.heading());
}

/// Appends title and heading of the IPv4 routing cache (`-C`), which has been empty since Linux 3.6.
pub fn put_cache_heading(out: &mut Vec<u8>, options: &RouteOptions) {
    let heading = options.columns.heading();
    let front = when(options.columns != RouteColumns::Nothing, "Source          Destination     Gateway         ");
    put!(out, "Kernel IP routing cache\n", front, heading.trim_end());
    match options.columns {
        RouteColumns::Nothing => {}
        RouteColumns::All => put!(out, "  TOS HHRef HHUptod     SpecDst\n"),
        _ => put!(out, "\n"),
    }
}

/// Appends title and heading of the IPv6 table, or of its cache.
pub fn put_routes6_heading(out: &mut Vec<u8>, cache: bool) {
    put!(out, if cache { "Kernel IPv6 routing cache\n" } else { "Kernel IPv6 routing table\n" });
    put!(out, "Destination                    Next Hop                   Flag Met Ref  Use If\n");
}

/// Appends the line of an IPv4 route.
pub fn put_route(
    out: &mut Vec<u8>,
    row: &ProcRoute<'_>,
    options: &RouteOptions,
    names: NetworkNames<'_>,
    lookups: &Lookups<'_>,
) {
    if options.columns == RouteColumns::Nothing {
        return;
    }
    let rejected = row.flags & rtf::REJECT != 0;
    put_cut(out, options, 15, |out| put_target(out, row, options, names, lookups));
    put!(out, " ");
    put_cut(out, options, 15, |out| match rejected {
        true => put!(out, "-"),
        false => put!(out, gateway(row.gateway, options, lookups)),
    });
    // For a rejecting route, netstat omits the letters before the `!`.
    let flags = if rejected { row.flags & !(rtf::UP | rtf::GATEWAY) } else { row.flags };
    put!(out, " ", Left(Addr::V4(mask(row.prefix_len)), 16), Left(letters(flags, LETTERS4), 5));
    put_columns(out, row, options, rejected);
    put!(out, "\n");
}

/// Appends a cell of `width` columns; a longer name is not cut, unless the old bytes are requested.
fn put_cut(out: &mut Vec<u8>, options: &RouteOptions, width: usize, write: impl Fn(&mut Vec<u8>)) {
    let start = out.len();
    put!(out, Left(written(write), width));
    if options.bug_compatible && !options.wide {
        out.truncate(start + width);
    }
}

fn put_target(
    out: &mut Vec<u8>,
    row: &ProcRoute<'_>,
    options: &RouteOptions,
    names: NetworkNames<'_>,
    lookups: &Lookups<'_>,
) {
    let target = match row.target {
        Addr::V4(target) if !options.numeric => target,
        _ => return put!(out, row.target),
    };
    if row.target.is_unspecified() {
        return put!(out, if row.prefix_len == 0 { "default" } else { "0.0.0.0" });
    }
    if is_host(row) {
        return put!(out, host(row.target, options.bug_compatible, lookups));
    }
    let name = (names.network)(target).map(|name| Outside(name, options.bug_compatible));
    put!(out, name.ok_or(row.target));
}

/// True if the target of an IPv4 route is a host, by its flags or by bits outside of its network: then the name of a
/// host is looked up, otherwise the name of a network.
fn is_host(row: &ProcRoute<'_>) -> bool {
    let outside = |target: [u8; 4]| target.iter().zip(mask(row.prefix_len)).any(|(octet, mask)| octet & !mask != 0);
    row.flags & rtf::HOST != 0 || matches!(row.target, Addr::V4(target) if outside(target))
}

/// Returns the addresses of a route whose names netstat looks up.
pub fn named_hosts(row: &ProcRoute<'_>) -> impl Iterator<Item = Addr> {
    let target = matches!(row.target, Addr::V6(_)) || is_host(row);
    let gateway = row.flags & rtf::REJECT == 0 || matches!(row.gateway, Addr::V6(_));
    [target.then_some(row.target), gateway.then_some(row.gateway)]
        .into_iter()
        .flatten()
        .filter(|addr| !addr.is_unspecified())
}

fn gateway<'l>(gateway: Addr, options: &RouteOptions, lookups: &'l Lookups<'_>) -> Result<Outside<'l>, Addr> {
    match options.numeric || gateway.is_unspecified() {
        true => Err(gateway),
        false => host(gateway, options.bug_compatible, lookups),
    }
}

/// Appends the columns after the flags; netstat prints every number as signed.
fn put_columns(out: &mut Vec<u8>, row: &ProcRoute<'_>, options: &RouteOptions, rejected: bool) {
    let [mss, window, rtt, metric, refs, uses] =
        [row.mss, row.window, row.rtt_ms, row.metric, row.refs, row.uses].map(|number| number as i32);
    let iface = Outside(row.iface, options.bug_compatible);
    match (options.columns, rejected) {
        (RouteColumns::Nothing, _) => {}
        (RouteColumns::Transport, true) => put!(out, "     - -          - -"),
        (RouteColumns::Transport, false) => {
            put!(out, " ", Right(mss, 5), " ", Left(window, 5), " ", Right(rtt, 6), " ", iface);
        }
        (RouteColumns::Metric, true) => put!(out, " ", Left(metric, 6), " -  ", Right(uses, 7), " -"),
        (RouteColumns::Metric, false) => {
            put!(out, " ", Left(metric, 6), " ", Left(refs, 2), " ", Right(uses, 7), " ", iface);
        }
        (RouteColumns::All, true) => {
            put!(out, " ", Left(metric, 6), " -  ", Right(uses, 7), " -        -     -      -");
        }
        (RouteColumns::All, false) => {
            put!(out, " ", Left(metric, 6), " ", Left(refs, 3), " ", Right(uses, 6), " ");
            put_cut(out, options, 6, |out| put!(out, Outside(row.iface, options.bug_compatible)));
            put!(out, "   ", Left(mss, 5), " ", Left(window, 6), " ", rtt);
        }
    }
}

/// Appends the line of an IPv6 route.
pub fn put_route6(out: &mut Vec<u8>, row: &ProcRoute<'_>, options: &RouteOptions, lookups: &Lookups<'_>) {
    let target = list!(addr6(row.target, options, lookups), "/", row.prefix_len);
    put!(out, Left(target, 30), " ", Left(addr6(row.gateway, options, lookups), 26), " ");
    put!(out, Left(letters(row.flags, LETTERS6), 4), " ", Left(row.metric as i32, 3), " ", Left(row.refs as i32, 1));
    put!(out, " ", Right(row.uses as i32, 6), " ", Outside(row.iface, options.bug_compatible), "\n");
}

fn addr6<'l>(
    addr: Addr,
    options: &RouteOptions,
    lookups: &'l Lookups<'_>,
) -> Result<&'static str, Result<Outside<'l>, Addr>> {
    match addr.is_unspecified() {
        _ if options.numeric => Err(Err(addr.unmapped())),
        true => Ok("[::]"),
        false => Err(host(addr, options.bug_compatible, lookups)),
    }
}

/// Letters of IPv4 routes.
#[rustfmt::skip]
const LETTERS4: &[(u32, u8)] = &[
    (rtf::UP, b'U'), (rtf::GATEWAY, b'G'), (rtf::REJECT, b'!'), (rtf::HOST, b'H'), (rtf::REINSTATE, b'R'),
    (rtf::DYNAMIC, b'D'), (rtf::MODIFIED, b'M'), (rtf::DEFAULT, b'd'), (rtf::ALLONLINK, b'a'), (rtf::ADDRCONF, b'c'),
    (rtf::NONEXTHOP, b'o'), (rtf::EXPIRES, b'e'), (rtf::CACHE, b'c'), (rtf::FLOW, b'f'), (rtf::POLICY, b'p'),
    (rtf::LOCAL, b'l'), (rtf::MTU, b'u'), (rtf::WINDOW, b'w'), (rtf::IRTT, b'i'), (rtf::NOTCACHED, b'n'),
];

/// Letters of IPv6 routes.
#[rustfmt::skip]
const LETTERS6: &[(u32, u8)] = &[
    (rtf::UP, b'U'), (rtf::REJECT, b'!'), (rtf::GATEWAY, b'G'), (rtf::HOST, b'H'), (rtf::DEFAULT, b'D'),
    (rtf::ADDRCONF, b'A'), (rtf::CACHE, b'C'), (rtf::ALLONLINK, b'a'), (rtf::EXPIRES, b'e'), (rtf::MODIFIED, b'm'),
    (rtf::NONEXTHOP, b'n'), (rtf::FLOW, b'f'),
];

fn letters(flags: u32, letters: &'static [(u32, u8)]) -> Written<impl Fn(&mut Vec<u8>)> {
    written(move |out| out.extend(letters.iter().filter(|(flag, _)| flags & flag != 0).map(|(_, letter)| letter)))
}

/// Title and heading of the memberships in multicast groups, for any requested families.
pub const GROUPS_HEADING: &[u8] = b"\
IPv6/IPv4 Group Memberships
Interface       RefCnt Group
--------------- ------ ---------------------
";

/// Appends the line of a membership.
pub fn put_membership(
    out: &mut Vec<u8>,
    row: &Membership<'_>,
    numeric: bool,
    bug_compatible: bool,
    lookups: &Lookups<'_>,
) {
    put!(out, Left(Outside(row.iface, bug_compatible), 15), " ", Left(row.users, 6), " ");
    let options = RouteOptions { columns: RouteColumns::Nothing, numeric, wide: true, bug_compatible };
    match row.group {
        Addr::V4(_) => put!(out, gateway(row.group, &options, lookups), "\n"),
        Addr::V6(_) => put!(out, addr6(row.group, &options, lookups), "\n"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const PLAIN: RouteOptions =
        RouteOptions { columns: RouteColumns::Transport, numeric: true, wide: false, bug_compatible: false };

    fn route() -> ProcRoute<'static> {
        ProcRoute {
            target: Addr::V4([203, 0, 113, 0]),
            prefix_len: 24,
            gateway: Addr::V4([192, 0, 2, 8]),
            flags: rtf::UP | rtf::GATEWAY,
            metric: 4_000_000_000,
            refs: 0,
            uses: 0,
            iface: b"veth-long",
            mss: 1240,
            window: 10,
            rtt_ms: 200,
        }
    }

    fn network(_: [u8; 4]) -> Option<&'static [u8]> {
        Some(b"a-network-with-a-long-name\x1b")
    }

    fn line(row: &ProcRoute<'_>, options: RouteOptions) -> String {
        let mut out = Vec::new();
        put_route(&mut out, row, &options, NetworkNames { network: &network }, &Lookups::empty());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn ipv4_by_example() {
        let row = route();
        let [metric, all] = [RouteColumns::Metric, RouteColumns::All].map(|columns| RouteOptions { columns, ..PLAIN });
        let front = "203.0.113.0     192.0.2.8       255.255.255.0   UG    ";
        assert_eq!(line(&row, PLAIN), format!("{front} 1240 10       200 veth-long\n"));
        assert_eq!(line(&row, metric), format!("{front}-294967296 0        0 veth-long\n"));
        assert_eq!(line(&row, all), format!("{front}-294967296 0        0 veth-long   1240  10     200\n"));
        let cut = RouteOptions { bug_compatible: true, ..all };
        assert_eq!(line(&row, cut), format!("{front}-294967296 0        0 veth-l   1240  10     200\n"));
        let row = ProcRoute { flags: rtf::UP | rtf::REJECT | rtf::HOST, prefix_len: 32, metric: 7, ..row };
        let front = "203.0.113.0     -               255.255.255.255 !H    ";
        assert_eq!(line(&row, PLAIN), format!("{front}    - -          - -\n"));
        assert_eq!(line(&row, metric), format!("{front}7      -        0 -\n"));
        assert_eq!(line(&row, all), format!("{front}7      -        0 -        -     -      -\n"));
        assert_eq!(line(&row, RouteOptions { columns: RouteColumns::Nothing, ..PLAIN }), "");
    }

    #[test]
    fn names_of_networks() {
        let named = RouteOptions { numeric: false, ..PLAIN };
        let row = route();
        assert!(line(&row, named).starts_with("a-network-with-a-long-name? 192.0.2.8       255"));
        assert!(line(&row, RouteOptions { bug_compatible: true, ..named }).starts_with("a-network-with- 192.0.2.8  "));
        assert_eq!(named_hosts(&row).collect::<Vec<_>>(), [row.gateway]);
        let inside = ProcRoute { target: Addr::V4([203, 0, 113, 1]), ..row };
        assert!(line(&inside, named).starts_with("203.0.113.1     "));
        assert_eq!(named_hosts(&inside).collect::<Vec<_>>(), [inside.target, row.gateway]);
        for (bits, name) in [(0, "default         192"), (1, "0.0.0.0         192")] {
            assert!(line(&ProcRoute { target: Addr::ANY4, prefix_len: bits, ..row }, named).starts_with(name));
        }
    }

    #[test]
    fn ipv6_by_example() {
        let six = |text: &str| text.parse::<Addr>().unwrap();
        let row =
            ProcRoute { target: six("fe80::"), gateway: Addr::ANY6, prefix_len: 64, metric: 256, refs: 12, ..route() };
        let text = |row: &ProcRoute<'_>, options: RouteOptions| {
            let mut out = Vec::new();
            put_route6(&mut out, row, &options, &Lookups::empty());
            String::from_utf8(out).unwrap()
        };
        let plain = "fe80::/64                      ::                         UG   256 12      0 veth-long\n";
        assert_eq!(text(&row, PLAIN), plain);
        let named = RouteOptions { numeric: false, ..PLAIN };
        assert_eq!(text(&row, named), plain.replace("::                         UG", "[::]                       UG"));
        let row = ProcRoute { flags: rtf::REJECT | rtf::NONEXTHOP, metric: u32::MAX, refs: 1, ..row };
        assert!(text(&row, PLAIN).contains(" !n   -1  1      0 veth"), "{}", text(&row, PLAIN));
        let mapped = ProcRoute { target: six("::ffff:192.0.2.1"), ..row };
        assert!(text(&mapped, PLAIN).starts_with("192.0.2.1/64   "));
    }

    #[test]
    fn memberships_by_example() {
        let row = Membership { iface: b"lo", users: 1, group: Addr::V4([224, 0, 0, 1]) };
        let mut out = Vec::new();
        put_membership(&mut out, &row, true, false, &Lookups::empty());
        put_membership(&mut out, &Membership { iface: b"a\n", users: -3, ..row }, false, false, &Lookups::empty());
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "lo              1      224.0.0.1\na?              -3     224.0.0.1\n"
        );
    }
}
