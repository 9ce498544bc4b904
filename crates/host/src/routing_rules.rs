//! Rules of policy routing (`ip rule`), from dumps of rtnetlink.

use netlink::{AnswerMessage, Attr, Attrs, Query, Request, prefix};
use record::Addr;
use record::rows::ip_proto;
use std::fmt::Write;
use sys::Host;

use crate::{HostError, bounded_dump};

/// NETLINK_ROUTE, include/uapi/linux/netlink.h.
const PROTOCOL: i32 = 0;

// include/uapi/linux/rtnetlink.h
const RTM_NEWRULE: u16 = 32;
const RTM_GETRULE: u16 = 34;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;

// include/uapi/linux/fib_rules.h
const FRA_DST: u16 = 1;
const FRA_SRC: u16 = 2;
const FRA_IIFNAME: u16 = 3;
const FRA_PRIORITY: u16 = 6;
const FRA_FWMARK: u16 = 10;
const FRA_SUPPRESS_IFGROUP: u16 = 13;
const FRA_SUPPRESS_PREFIXLEN: u16 = 14;
const FRA_TABLE: u16 = 15;
const FRA_FWMASK: u16 = 16;
const FRA_OIFNAME: u16 = 17;
const FRA_L3MDEV: u16 = 19;
const FRA_UID_RANGE: u16 = 20;
const FRA_IP_PROTO: u16 = 22;
const FRA_SPORT_RANGE: u16 = 23;
const FRA_DPORT_RANGE: u16 = 24;
const FR_ACT_TO_TBL: u8 = 1;
const FIB_RULE_INVERT: u32 = 2;
/// The value of FRA_SUPPRESS_… that suppresses nothing.
const NONE: u32 = u32::MAX;
/// `struct fib_rule_hdr`: family, destination bits, source bits, tos, table, two bytes, action: u8 each; flags u32.
const HEAD: usize = 12;

/// Bound: rules of policy routing that `doctor` reads of each family. Beyond: further rules are not checked, counted
/// (exit code 3). By: anyone who may add rules there.
pub const ROUTING_RULES_MAX: usize = 4096;

/// A rule of policy routing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutingRule {
    /// Rules are tried in ascending order of this number.
    pub priority: u32,
    /// Packets from this prefix; the length 0 stands for all.
    pub from: (Addr, u8),
    /// Packets to this prefix; the length 0 stands for all.
    pub to: (Addr, u8),
    /// The transport protocol (`IPPROTO_…`); `None` for all.
    pub proto: Option<u8>,
    /// The first and the last destination port; `None` for all.
    pub dports: Option<(u16, u16)>,
    /// True if there is a further condition: an interface, a mark, a user, a source port, a TOS, or `not`.
    pub has_more: bool,
    /// `FR_ACT_…`, such as 6 (blackhole), 7 (unreachable) and 8 (prohibit).
    pub action: u8,
    /// The table that it leads to; `None` for other actions, and for one that suppresses routes or depends on a VRF.
    pub table: Option<u32>,
    /// The condition in the words of `ip rule`: `from all to 192.0.2.7`.
    pub text: String,
}

/// Reads the rules of the calling thread's namespace, whose inode is `netns`, for IPv4 or IPv6. Returns
/// them in ascending order of priority, and the number of rules beyond the maximum. Fails on a kernel without such
/// rules.
///
/// One dump, some microseconds. Needs no privilege.
pub fn read(host: &Host, netns: u64, is_v6: bool) -> Result<(Vec<RoutingRule>, u64), HostError> {
    let family = if is_v6 { AF_INET6 } else { AF_INET };
    let mut request = Request::dump(RTM_GETRULE);
    request.append(&[family, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let key = format!("{} rules@{netns}", if is_v6 { "ipv6" } else { "ipv4" });
    let ask = Query { what: "routing rules", protocol: PROTOCOL, request: &request, key: &key, note: "", netns: None };
    bounded_dump::read(host, &ask, ROUTING_RULES_MAX, |part| rule(part, family))
}

/// `None` for other messages, and for those that are too short.
fn rule(part: &AnswerMessage<'_>, family: u8) -> Option<RoutingRule> {
    let &[of, to_len, from_len, tos, table, _, _, action, ref flags @ ..] = part.payload.get(..HEAD)? else {
        return None;
    };
    if part.kind != RTM_NEWRULE || of != family {
        return None;
    }
    let any = if family == AF_INET { Addr::ANY4 } else { Addr::ANY6 };
    let is_inverted = prefix::u32_at(flags, 0)? & FIB_RULE_INVERT != 0;
    let mut rule = RoutingRule {
        priority: 0,
        from: (any, from_len.min(any.bits())),
        to: (any, to_len.min(any.bits())),
        proto: None,
        dports: None,
        has_more: is_inverted || tos != 0,
        action,
        table: (action == FR_ACT_TO_TBL).then_some(table.into()),
        text: String::new(),
    };
    let (mut more, mut is_special, mut mark) = (String::new(), false, (0, NONE));
    for attr in Attrs::new(part.payload.get(HEAD..)?).flatten() {
        match attr.kind {
            FRA_DST => rule.to.0 = address(&attr).unwrap_or(any),
            FRA_SRC => rule.from.0 = address(&attr).unwrap_or(any),
            FRA_PRIORITY => rule.priority = attr.u32().ok()?,
            FRA_TABLE => rule.table = rule.table.and(attr.u32().ok()),
            FRA_FWMARK => mark.0 = attr.u32().ok()?,
            FRA_FWMASK => mark.1 = attr.u32().ok()?,
            FRA_IP_PROTO => rule.proto = attr.u8().ok(),
            FRA_DPORT_RANGE => rule.dports = ports(&attr),
            FRA_SUPPRESS_IFGROUP | FRA_SUPPRESS_PREFIXLEN => is_special |= attr.u32().ok()? != NONE,
            FRA_L3MDEV => is_special |= attr.u8().ok()? != 0,
            _ => put_condition(&mut more, &attr),
        }
    }
    if mark.0 != 0 || mark.1 != NONE {
        let _ = write!(more, " fwmark {:#x}", mark.0);
    }
    rule.has_more |= !more.is_empty();
    rule.table = rule.table.filter(|_| !is_special);
    rule.text = text(&rule, is_inverted, &more);
    Some(rule)
}

/// Adds a condition that packets are not compared with.
fn put_condition(more: &mut String, attr: &Attr<'_>) {
    let name = || String::from_utf8_lossy(attr.c_str());
    let _ = match attr.kind {
        FRA_IIFNAME => write!(more, " iif {}", name()),
        FRA_OIFNAME => write!(more, " oif {}", name()),
        FRA_SPORT_RANGE => ports(attr).map_or(Ok(()), |(first, last)| write!(more, " sport {first}-{last}")),
        // `struct fib_rule_uid_range`: first and last, u32 each.
        FRA_UID_RANGE => {
            let of = |at| prefix::u32_at(attr.payload, at).unwrap_or(0);
            write!(more, " uidrange {}-{}", of(0), of(4))
        }
        _ => Ok(()),
    };
}

/// `struct fib_rule_port_range`: first and last, u16 each.
fn ports(attr: &Attr<'_>) -> Option<(u16, u16)> {
    Some((prefix::u16_at(attr.payload, 0)?, prefix::u16_at(attr.payload, 2)?))
}

fn address(attr: &Attr<'_>) -> Option<Addr> {
    let v4 = || Some(Addr::V4(attr.payload.try_into().ok()?));
    attr.payload.try_into().ok().map(Addr::V6).or_else(v4)
}

fn text(rule: &RoutingRule, is_inverted: bool, more: &str) -> String {
    let prefix = |(addr, len): (Addr, u8)| match len {
        0 => "all".to_owned(),
        len if len == addr.bits() => addr.to_string(),
        len => format!("{addr}/{len}"),
    };
    let mut text = format!("{}from {}", if is_inverted { "not " } else { "" }, prefix(rule.from));
    if rule.to.1 > 0 {
        let _ = write!(text, " to {}", prefix(rule.to));
    }
    text.push_str(more);
    if let Some(proto) = rule.proto {
        let name = ip_proto::name(proto);
        let _ = if name.is_empty() { write!(text, " ipproto {proto}") } else { write!(text, " ipproto {name}") };
    }
    if let Some((first, last)) = rule.dports {
        let _ = if first == last { write!(text, " dport {first}") } else { write!(text, " dport {first}-{last}") };
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn messages_that_end_early_and_other_families() {
        let payload = [AF_INET, 32, 0, 0, 254, 0, 0, 1, 0, 0, 0, 0, 8, 0, 1, 0, 192, 0, 2, 7, 8, 0, 6, 0, 5, 0, 0, 0];
        let of = |end: usize, family| {
            rule(&AnswerMessage { kind: RTM_NEWRULE, flags: 0, payload: &payload[..end], block: 0 }, family)
        };
        let whole = of(28, AF_INET).unwrap();
        assert_eq!((whole.text.as_str(), whole.priority, whole.table), ("from all to 192.0.2.7", 5, Some(254)));
        assert_eq!((of(11, AF_INET), of(28, AF_INET6)), (None, None));
    }

    #[test]
    fn root_rules_in_the_words_of_ip() {
        testkit::require_root!();
        let lab = testkit::netns::Lab::new("rules");
        for words in [
            "add priority 7 to 192.0.2.0/24 prohibit",
            "add priority 8 from 192.0.2.9 iif lo fwmark 0x5/0xff lookup 100",
            "add priority 9 ipproto tcp dport 80 unreachable",
            "add priority 10 not from 192.0.2.9 lookup 300 suppress_prefixlength 0",
        ] {
            lab.ip(&["rule"].into_iter().chain(words.split(' ')).collect::<Vec<_>>());
        }
        let rules = lab.run_inside(|| read(&Host::live(), 0, false).unwrap().0);
        let seen: Vec<_> = rules.iter().map(|one| (one.priority, one.text.as_str(), one.action, one.table)).collect();
        assert_eq!(
            seen,
            [
                (0, "from all", 1, Some(255)),
                (7, "from all to 192.0.2.0/24", 8, None),
                (8, "from 192.0.2.9 iif lo fwmark 0x5", 1, Some(100)),
                (9, "from all ipproto tcp dport 80", 7, None),
                (10, "not from 192.0.2.9", 1, None),
                (32766, "from all", 1, Some(254)),
                (32767, "from all", 1, Some(253)),
            ]
        );
        assert_eq!(rules.iter().map(|one| one.has_more).collect::<Vec<_>>()[1..5], [false, true, false, true]);
    }
}
