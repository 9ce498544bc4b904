//! A description of each counter that the kernel has, up to 6.18: one table per source, in the kernel's order.

mod driver;
mod host;
mod icmp;
mod icmp6;
mod iface;
mod ip;
mod ip6;
mod mptcp;
mod sockstat;
mod tcp;
mod tcp_ext;
mod udp;
mod xfrm;

use record::rows::{CounterKind, CounterSource, NatStats, is_numbered};
use record::{Field, Table};

/// The meaning of a counter.
#[derive(Debug, PartialEq, Eq)]
pub struct CounterMeaning {
    /// Its name, spelled as `nstat` spells it.
    pub name: &'static str,
    /// Whether it is a counter or a gauge.
    pub kind: CounterKind,
    /// The description, a sentence.
    pub text: &'static str,
}

/// A counter, which only grows.
const fn c(name: &'static str, text: &'static str) -> CounterMeaning {
    CounterMeaning { name, kind: CounterKind::Counter, text }
}

/// A gauge, which goes up and down, or a setting.
const fn g(name: &'static str, text: &'static str) -> CounterMeaning {
    CounterMeaning { name, kind: CounterKind::Gauge, text }
}

/// The tables of a source, in the order of its file.
fn tables(source: CounterSource) -> &'static [&'static [CounterMeaning]] {
    match source {
        CounterSource::Snmp => &[ip::IP, icmp::ICMP, tcp::TCP, udp::UDP, udp::UDPLITE],
        CounterSource::Netstat => &[tcp_ext::TCP_EXT, ip::IP_EXT, mptcp::MPTCP_EXT],
        CounterSource::Snmp6 => &[ip6::IP6, icmp6::ICMP6, udp::UDP6, udp::UDPLITE6],
        CounterSource::Sockstat => &[sockstat::SOCKSTAT],
        CounterSource::Sockstat6 => &[sockstat::SOCKSTAT6],
        CounterSource::Xfrm => &[xfrm::XFRM],
        CounterSource::Softnet => &[host::SOFTNET],
        CounterSource::Neigh => &[host::NEIGH],
        CounterSource::Iface => &[iface::IFACE],
        CounterSource::Qdisc => &[iface::QDISC],
        CounterSource::Driver => &[driver::DRIVER],
        CounterSource::Trap => &[driver::TRAP],
        CounterSource::Conntrack => &[CONNTRACK],
    }
}

/// Counters of connection tracking; their descriptions come from the table `nat stats`.
const CONNTRACK: &[CounterMeaning] = &[
    of_nat_stats("entries", CounterKind::Gauge),
    of_nat_stats("max", CounterKind::Gauge),
    of_nat_stats("drop", CounterKind::Counter),
    of_nat_stats("early_drop", CounterKind::Counter),
    of_nat_stats("insert_failed", CounterKind::Counter),
    of_nat_stats("invalid", CounterKind::Counter),
    of_nat_stats("search_restart", CounterKind::Counter),
    of_nat_stats("clash_resolve", CounterKind::Counter),
    of_nat_stats("chaintoolong", CounterKind::Counter),
    of_nat_stats("error", CounterKind::Counter),
    of_nat_stats("expect_new", CounterKind::Counter),
    of_nat_stats("expect_create", CounterKind::Counter),
    of_nat_stats("expect_delete", CounterKind::Counter),
    of_nat_stats("found", CounterKind::Counter),
    of_nat_stats("insert", CounterKind::Counter),
    of_nat_stats("new", CounterKind::Counter),
    of_nat_stats("ignore", CounterKind::Counter),
    of_nat_stats("delete", CounterKind::Counter),
];

const fn of_nat_stats(name: &'static str, kind: CounterKind) -> CounterMeaning {
    let fields: &[Field<NatStats>] = NatStats::FIELDS;
    let mut at = 0;
    while !are_equal(fields[at].name.as_bytes(), name.as_bytes()) {
        at += 1;
    }
    CounterMeaning { name, kind, text: fields[at].doc }
}

const fn are_equal(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len()
}

/// The meaning of the counter `name` of `source`; `None` if it is unknown.
pub fn describe(source: CounterSource, name: &str) -> Option<&'static CounterMeaning> {
    tables(source).iter().copied().flatten().find(|meaning| meaning.name == name)
}

/// Like [`describe`]. `at` is the index after the last counter found: in the kernel's order the next one is there.
pub(crate) fn find(source: CounterSource, name: &str, at: &mut usize) -> Option<&'static CounterMeaning> {
    let all = || tables(source).iter().copied().flatten();
    if let Some(next) = meaning_at(source, *at).filter(|next| next.name == name) {
        *at += 1;
        return Some(next);
    }
    let (place, found) = all().enumerate().find(|(_, meaning)| meaning.name == name)?;
    *at = place + 1;
    Some(found)
}

fn meaning_at(source: CounterSource, mut at: usize) -> Option<&'static CounterMeaning> {
    for table in tables(source) {
        match at.checked_sub(table.len()) {
            Some(rest) => at = rest,
            None => return table.get(at),
        }
    }
    None
}

/// Counters outside the tables, because their name contains a number, written as `#`.
const NUMBERED: &[(&str, &str)] = &[
    ("IcmpMsgInType#", "ICMP messages received of the type at the end of the name."),
    ("IcmpMsgOutType#", "ICMP messages sent of the type at the end of the name."),
    ("Icmp6InType#", "ICMPv6 messages received of the type at the end of the name."),
    ("Icmp6OutType#", "ICMPv6 messages sent of the type at the end of the name."),
    driver::XDP_DROPS,
];

/// The meaning of a counter with a number in its name, or of a trap; the description of other counters is empty. An
/// unknown counter is assumed to be a count, as nearly all are.
pub(crate) fn of_numbered(name: &str) -> (CounterKind, &'static str) {
    let found = NUMBERED.iter().find(|(pattern, _)| is_numbered(pattern, name.as_bytes())).map(|(_, text)| *text);
    let of_trap = || driver::TRAP.iter().find(|end| name.ends_with(end.name)).map(|end| end.text);
    (CounterKind::Counter, found.or_else(of_trap).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_stands_once_with_a_sentence() {
        for source in CounterSource::ALL {
            let all: Vec<&CounterMeaning> = tables(source).iter().copied().flatten().collect();
            assert!(!all.is_empty());
            for (at, meaning) in all.iter().enumerate() {
                assert!(meaning.text.len() > 10 && meaning.text.ends_with('.'), "{}: {}", meaning.name, meaning.text);
                assert!(all[..at].iter().all(|other| other.name != meaning.name), "{} stands twice", meaning.name);
                let mut next = at;
                assert_eq!(find(source, meaning.name, &mut next), Some(*meaning));
                assert_eq!((next, find(source, meaning.name, &mut 100_000)), (at + 1, Some(*meaning)));
            }
        }
    }

    #[test]
    fn names_with_numbers() {
        assert!(of_numbered("IcmpMsgInType3").1.contains("received"));
        assert!(of_numbered("Icmp6OutType143").1.contains("sent"));
        assert_eq!([of_numbered("IcmpMsgInType").1, of_numbered("Icmp6InType1x").1], ["", ""]);
        assert!(of_numbered("rx_queue_12_xdp_drops").1.contains("XDP"));
        assert_eq!([of_numbered("rx_queue__xdp_drops").1, of_numbered("rx_queue_#_xdp_drops").1], ["", ""]);
    }
}
