//! Rules of nftables that log to groups, from the kernel's own listing, with the number of packets they have logged if
//! a counter shows it.
//!
//! [`crate::log_rules`] reads nft's listing, with comments and verdicts; this module needs no nft, and takes some
//! microseconds per rule. It includes rules of iptables-nft, but not of iptables-legacy. All text was chosen by the
//! author of the rules.
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use netlink::{AnswerMessage, Attr, Attrs, Query, Request, prefix};
use sys::{Host, KernelPart, NetNs};

use crate::HostError;

/// NETLINK_NETFILTER, include/uapi/linux/netlink.h.
const PROTOCOL: i32 = 12;
/// `NFNL_SUBSYS_NFTABLES`, include/uapi/linux/netfilter/nfnetlink.h.
const SUBSYSTEM: u16 = 10;
/// `struct nfgenmsg`: family u8, version u8, resource u16.
const NFGENMSG: usize = 4;

// include/uapi/linux/netfilter/nf_tables.h
const NFT_MSG_NEWCHAIN: u16 = SUBSYSTEM << 8 | 3;
const NFT_MSG_GETCHAIN: u16 = SUBSYSTEM << 8 | 4;
const NFT_MSG_NEWRULE: u16 = SUBSYSTEM << 8 | 6;
const NFT_MSG_GETRULE: u16 = SUBSYSTEM << 8 | 7;
const NFTA_CHAIN_TABLE: u16 = 1;
const NFTA_CHAIN_NAME: u16 = 3;
const NFTA_CHAIN_HOOK: u16 = 4;
const NFTA_RULE_TABLE: u16 = 1;
const NFTA_RULE_CHAIN: u16 = 2;
const NFTA_RULE_HANDLE: u16 = 3;
const NFTA_RULE_EXPRESSIONS: u16 = 4;
const NFTA_EXPR_NAME: u16 = 1;
const NFTA_EXPR_DATA: u16 = 2;
const NFTA_COUNTER_PACKETS: u16 = 2;
const NFTA_LOG_GROUP: u16 = 1;
const NFTA_LOG_PREFIX: u16 = 2;
const NFTA_IMMEDIATE_DATA: u16 = 2;
const NFTA_DATA_VERDICT: u16 = 2;
const NFTA_VERDICT_CHAIN: u16 = 2;
// include/uapi/linux/netfilter/nf_tables_compat.h
const NFTA_TARGET_NAME: u16 = 1;
const NFTA_TARGET_INFO: u16 = 3;

/// File in which the kernel lists the bound log groups. Without its module no rule can log to a group.
pub const BOUND_GROUPS: &str = "/proc/thread-self/net/netfilter/nfnetlink_log";
/// The kernel part that lists rules; [`read`] makes the kernel load it.
pub const RULES: KernelPart = KernelPart { module: "nf_tables", function: "nft_immediate_dump" };

/// Maximum number of attempts at a dump that a change of the rules interrupted.
const TRIES: u32 = 3;
/// Bound: rules that log to groups. Beyond: further rules are not checked, counted (exit code 3). By: the owner of a
/// namespace, for that namespace.
pub const RULES_MAX: usize = 1024;
/// Bound: jumps between nftables chains. Beyond: rules beyond count as unreached. By: the owner of a namespace, for
/// that namespace.
const JUMPS_MAX: usize = 65_536;

/// A rule that logs to a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupRule {
    /// Family of the table, in nft's format: `inet`.
    pub family: &'static str,
    /// Name of the table.
    pub table: String,
    /// Name of the chain.
    pub chain: String,
    /// Number of the rule in its table.
    pub handle: u64,
    /// The log group.
    pub group: u16,
    /// Prefix of its records; empty without one.
    pub prefix: String,
    /// Lower bound of the number of logged packets, from the rule's counter; `None` without a suitable counter.
    pub logged: Option<u64>,
    /// True if packets reach its chain: it has a hook, or rules lead there from a chain with a hook. False if only a
    /// verdict map may lead there.
    pub is_reached: bool,
}

impl GroupRule {
    /// True if it is the same rule in another read of the same namespace.
    pub fn is_same(&self, other: &GroupRule) -> bool {
        (self.handle, self.group, self.family, &self.table, &self.chain)
            == (other.handle, other.group, other.family, &other.table, &other.chain)
    }
}

/// A chain: family, table, name.
type ChainName = (u8, Vec<u8>, Vec<u8>);

/// One pass over the rules.
#[derive(Default)]
struct RuleReading {
    rules: Vec<(ChainName, GroupRule)>,
    /// Pairs of chains: from, to.
    jumps: BTreeSet<(ChainName, ChainName)>,
    /// Chains with a hook.
    hooked: BTreeSet<ChainName>,
    over: u64,
}

/// Reads the rules of the namespace with inode `netns` (of `inside`, or of the calling thread's). Returns them, and the
/// number of rules beyond the maximum.
///
/// Dumps all rules, and the chains if a rule logs to a group. Needs CAP_NET_ADMIN. Makes the kernel load its module
/// nf_tables: check with [`sys::Modules`] first.
pub fn read(host: &Host, netns: u64, inside: Option<&NetNs>) -> Result<(Vec<GroupRule>, u64), HostError> {
    let mut reading = RuleReading::default();
    for _ in 0..TRIES {
        reading = RuleReading::default();
        let mut of_rules = |part: &AnswerMessage<'_>| reading.add_rule(part);
        if !dump(host, netns, inside, NFT_MSG_GETRULE, &mut of_rules)? {
            break;
        }
    }
    if reading.rules.is_empty() {
        return Ok((Vec::new(), reading.over));
    }
    // A chain that comes or goes during this has rules that are not known yet anyway.
    dump(host, netns, inside, NFT_MSG_GETCHAIN, &mut |part| reading.add_chain(part))?;
    Ok(reading.finish())
}

/// Returns true if the table changed during the dump.
fn dump(
    host: &Host,
    netns: u64,
    inside: Option<&NetNs>,
    kind: u16,
    each: &mut dyn FnMut(&AnswerMessage<'_>),
) -> Result<bool, HostError> {
    let mut request = Request::dump(kind);
    // All zeros: every family.
    request.append(&[0; NFGENMSG]);
    let (what, key) = match kind {
        NFT_MSG_GETCHAIN => ("nftables chains", format!("nft chains@{netns}")),
        _ => ("nftables rules", format!("nft rules@{netns}")),
    };
    let ask = Query { what, protocol: PROTOCOL, request: &request, key: &key, note: "", netns: inside };
    let end = netlink::dump(host, &ask, |part| {
        each(part);
        ControlFlow::Continue(())
    })?;
    Ok(end.interrupted)
}

impl RuleReading {
    fn add_chain(&mut self, part: &AnswerMessage<'_>) {
        let Some(family) = prefix::u8_at(part.payload, 0).filter(|_| part.kind == NFT_MSG_NEWCHAIN) else { return };
        let (mut table, mut name, mut is_hooked) = (&b""[..], &b""[..], false);
        for attr in Attrs::new(part.payload.get(NFGENMSG..).unwrap_or_default()).flatten() {
            match attr.kind {
                NFTA_CHAIN_TABLE => table = attr.c_str(),
                NFTA_CHAIN_NAME => name = attr.c_str(),
                NFTA_CHAIN_HOOK => is_hooked = true,
                _ => {}
            }
        }
        if is_hooked && self.hooked.len() < JUMPS_MAX {
            self.hooked.insert((family, table.to_vec(), name.to_vec()));
        }
    }

    fn add_rule(&mut self, part: &AnswerMessage<'_>) {
        let Some(family) = prefix::u8_at(part.payload, 0).filter(|_| part.kind == NFT_MSG_NEWRULE) else { return };
        let (mut table, mut chain, mut handle, mut expressions) = (&b""[..], &b""[..], 0, None);
        for attr in Attrs::new(part.payload.get(NFGENMSG..).unwrap_or_default()).flatten() {
            match attr.kind {
                NFTA_RULE_TABLE => table = attr.c_str(),
                NFTA_RULE_CHAIN => chain = attr.c_str(),
                NFTA_RULE_HANDLE => handle = attr.be64().unwrap_or(0),
                NFTA_RULE_EXPRESSIONS => expressions = Some(attr),
                _ => {}
            }
        }
        let Some(expressions) = expressions else { return };
        let parts = parts_of(&expressions);
        let place = |name: &[u8]| (family, table.to_vec(), name.to_vec());
        if let Some(target) = parts.leads_to.filter(|_| self.jumps.len() < JUMPS_MAX) {
            self.jumps.insert((place(chain), place(target)));
        }
        for (at, group, words) in &parts.logs {
            if self.rules.len() == RULES_MAX {
                self.over += 1;
                continue;
            }
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let rule = GroupRule {
                family: family_name(family),
                table: text(table),
                chain: text(chain),
                handle,
                group: *group,
                prefix: text(words),
                logged: parts.logged_at(*at),
                is_reached: false,
            };
            self.rules.push((place(chain), rule));
        }
    }

    /// Computes which rules are reached.
    fn finish(self) -> (Vec<GroupRule>, u64) {
        let mut reached = self.hooked;
        let mut waiting: Vec<ChainName> = reached.iter().cloned().collect();
        while let Some(from) = waiting.pop() {
            let first = (from.clone(), (0, Vec::new(), Vec::new()));
            for (_, to) in self.jumps.range(first..).take_while(|(of, _)| *of == from) {
                if reached.insert(to.clone()) {
                    waiting.push(to.clone());
                }
            }
        }
        let with_reach = |(chain, rule)| GroupRule { is_reached: reached.contains(&chain), ..rule };
        (self.rules.into_iter().map(with_reach).collect(), self.over)
    }
}

/// The relevant expressions of a rule.
#[derive(Default)]
struct RuleParts<'r> {
    /// Position, group and prefix of each log expression.
    logs: Vec<(usize, u16, &'r [u8])>,
    /// Position and packets of each counter.
    counters: Vec<(usize, u64)>,
    /// Positions of expressions at which a packet may leave the rule.
    exits: Vec<usize>,
    /// The chain of its verdict.
    leads_to: Option<&'r [u8]>,
}

impl RuleParts<'_> {
    /// Lower bound of the number of packets that the log at this position has seen. A counter after it only saw logged
    /// packets; so did a counter before it, if no packet may leave the rule between the two.
    fn logged_at(&self, log: usize) -> Option<u64> {
        let tells = |at: usize| at > log || !self.exits.iter().any(|exit| (at..log).contains(exit));
        self.counters.iter().filter(|(at, _)| tells(*at)).map(|(_, packets)| *packets).max()
    }
}

/// True if this message reports a new rule that logs to a group, or is malformed.
pub(crate) fn adds_logging(kind: u16, payload: &[u8]) -> bool {
    let mut attrs = Attrs::new(payload.get(NFGENMSG..).unwrap_or_default());
    kind == NFT_MSG_NEWRULE
        && attrs.any(|attr| match attr {
            Ok(attr) => attr.kind == NFTA_RULE_EXPRESSIONS && !parts_of(&attr).logs.is_empty(),
            Err(_) => true,
        })
}

fn parts_of<'r>(expressions: &Attr<'r>) -> RuleParts<'r> {
    let mut parts = RuleParts::default();
    for (at, expression) in expressions.nested().flatten().enumerate() {
        let (mut name, mut data) = (&b""[..], Attrs::new(&[]));
        for attr in expression.nested().flatten() {
            match attr.kind {
                NFTA_EXPR_NAME => name = attr.c_str(),
                NFTA_EXPR_DATA => data = attr.nested(),
                _ => {}
            }
        }
        match name {
            b"log" => {
                let (mut group, mut words) = (None, &b""[..]);
                for attr in data.flatten() {
                    match attr.kind {
                        NFTA_LOG_GROUP => group = attr.be16().ok(),
                        NFTA_LOG_PREFIX => words = attr.c_str(),
                        _ => {}
                    }
                }
                // Without a group it logs to the kernel log.
                parts.logs.extend(group.map(|group| (at, group, words)));
            }
            b"counter" => {
                let packets = find(data, NFTA_COUNTER_PACKETS);
                parts.counters.extend(packets.and_then(|attr| attr.be64().ok()).map(|packets| (at, packets)));
            }
            b"target" => match target_group(data) {
                Some((group, words)) => parts.logs.push((at, group, words)),
                None => parts.exits.push(at),
            },
            b"immediate" => parts.leads_to = verdict_chain(data).or(parts.leads_to),
            _ => parts.exits.push(at),
        }
    }
    parts
}

/// The chain that a verdict leads to.
fn verdict_chain(data: Attrs<'_>) -> Option<&[u8]> {
    let inner = find(data, NFTA_IMMEDIATE_DATA)?.nested();
    let verdict = find(inner, NFTA_DATA_VERDICT)?.nested();
    find(verdict, NFTA_VERDICT_CHAIN).map(|attr| attr.c_str())
}

fn find(attrs: Attrs<'_>, kind: u16) -> Option<Attr<'_>> {
    attrs.flatten().find(|attr| attr.kind == kind)
}

/// Group and prefix of the iptables target NFLOG: `struct xt_nflog_info` (include/uapi/linux/netfilter/xt_NFLOG.h) has
/// length u32, group u16, threshold u16, flags u16, padding u16, prefix.
fn target_group(data: Attrs<'_>) -> Option<(u16, &[u8])> {
    let (mut is_log, mut info) = (false, &b""[..]);
    for attr in data.flatten() {
        match attr.kind {
            NFTA_TARGET_NAME => is_log = attr.c_str() == b"NFLOG",
            NFTA_TARGET_INFO => info = attr.payload,
            _ => {}
        }
    }
    let group = prefix::u16_at(info, 4).filter(|_| is_log)?;
    let words = info.get(12..).unwrap_or_default();
    Some((group, words.split(|byte| *byte == 0).next().unwrap_or_default()))
}

/// Name of `NFPROTO_…` (include/uapi/linux/netfilter.h) in nft's format.
fn family_name(family: u8) -> &'static str {
    match family {
        1 => "inet",
        2 => "ip",
        3 => "arp",
        5 => "netdev",
        7 => "bridge",
        10 => "ip6",
        _ => "unknown",
    }
}

/// Decodes any bytes as messages about rules and chains. For the fuzzer: it must neither panic nor loop forever.
pub fn fuzz_group_rules(data: &[u8]) {
    let mut reading = RuleReading::default();
    let part = |kind| AnswerMessage { kind, flags: 0, payload: data, block: 0 };
    reading.add_rule(&part(NFT_MSG_NEWRULE));
    reading.add_chain(&part(NFT_MSG_NEWCHAIN));
    let (rules, _) = reading.finish();
    assert!(rules.len() <= RULES_MAX);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;
    use testkit::netns::Lab;

    fn attr(kind: u16, payload: &[u8]) -> Vec<u8> {
        let mut bytes = ((payload.len() + 4) as u16).to_ne_bytes().to_vec();
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(payload);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn expression(name: &str, data: &[u8]) -> Vec<u8> {
        attr(1, &[attr(NFTA_EXPR_NAME, name.as_bytes()), attr(NFTA_EXPR_DATA, data)].concat())
    }

    fn counter(packets: u64) -> Vec<u8> {
        expression("counter", &[attr(1, &[0; 8]), attr(NFTA_COUNTER_PACKETS, &packets.to_be_bytes())].concat())
    }

    fn log() -> Vec<u8> {
        expression("log", &[attr(NFTA_LOG_GROUP, &5u16.to_be_bytes()), attr(NFTA_LOG_PREFIX, b"a\0")].concat())
    }

    fn read_rule(expressions: &[Vec<u8>]) -> Vec<GroupRule> {
        let payload = [
            vec![1, 0, 0, 0],
            attr(NFTA_RULE_TABLE, b"t\0"),
            attr(NFTA_RULE_CHAIN, b"c\0"),
            attr(NFTA_RULE_HANDLE, &7u64.to_be_bytes()),
            attr(NFTA_RULE_EXPRESSIONS, &expressions.concat()),
        ];
        let mut reading = RuleReading::default();
        let payload = payload.concat();
        reading.add_rule(&AnswerMessage { kind: NFT_MSG_NEWRULE, flags: 0, payload: &payload, block: 0 });
        reading.finish().0
    }

    #[test]
    fn which_counter_tells_of_a_log() {
        let logged = |expressions: &[Vec<u8>]| read_rule(expressions).first().unwrap().logged;
        let test = || expression("cmp", &[]);
        assert_eq!(logged(&[log()]), None);
        assert_eq!(logged(&[test(), counter(9), log()]), Some(9));
        assert_eq!(logged(&[counter(9), test(), log()]), None, "some of these were not logged");
        assert_eq!(logged(&[log(), test(), counter(4)]), Some(4), "all of these were logged");
        assert_eq!(logged(&[counter(9), test(), log(), counter(4)]), Some(4));
        let whole = read_rule(&[log()]);
        assert_eq!((whole[0].prefix.as_str(), whole[0].group, whole[0].handle), ("a", 5, 7));
        let to_kernel_log = expression("log", &attr(NFTA_LOG_PREFIX, b"a\0"));
        assert_eq!(read_rule(&[to_kernel_log]), []);
    }

    #[test]
    fn the_target_of_iptables() {
        let mut info = vec![0, 0, 0, 0, 9, 0, 1, 0, 0, 0, 0, 0];
        info[4..6].copy_from_slice(&9u16.to_ne_bytes());
        info.extend_from_slice(b"drop: \0rest");
        let target = |name: &[u8]| {
            let data = [attr(NFTA_TARGET_NAME, name), attr(2, &[0; 4]), attr(NFTA_TARGET_INFO, &info)];
            read_rule(&[counter(3), expression("target", &data.concat())])
        };
        let found = target(b"NFLOG\0");
        assert_eq!((found[0].group, found[0].prefix.as_str(), found[0].logged), (9, "drop: ", Some(3)));
        assert_eq!(target(b"MARK\0"), []);
    }

    #[test]
    fn root_rules_of_a_namespace_and_their_replay() {
        testkit::require_root!();
        testkit::require_tool!("nft");
        let lab = Lab::new("grouprules");
        lab.nft(
            "table inet f {\n chain led { log group 6; }\n chain lost { log group 7; }\n \
             chain c { type filter hook output priority 0; udp dport 9 counter log prefix \"nine \" group 5 drop; \
             meta l4proto tcp jump led; counter ct state new log group 8; log prefix \"no group\"; }\n}\n",
        );
        let tmp = tempfile::tempdir().unwrap();
        let tape = tmp.path().join("tape");
        let (host, netns) = (Host::live().recording(&tape).unwrap(), NetNs::open_path(&lab.path()).unwrap());
        lab.run_inside(|| {
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            for _ in 0..3 {
                let _ = socket.send_to(b"x", "127.0.0.1:9");
            }
        });
        let live = read(&host, 1, Some(&netns)).unwrap().0;
        host.finish().unwrap();
        let of = |group: u16| live.iter().find(|rule| rule.group == group).unwrap();
        let five = of(5);
        assert_eq!((five.family, five.table.as_str(), five.chain.as_str()), ("inet", "f", "c"));
        assert_eq!((five.prefix.as_str(), five.logged, five.is_reached), ("nine ", Some(3), true));
        assert_eq!((of(6).logged, of(6).is_reached, of(7).is_reached), (None, true, false));
        assert_eq!((of(8).logged, live.len()), (None, 4));
        assert_eq!(read(&Host::open_replay(&tape).unwrap(), 1, None).unwrap().0, live);
    }

    proptest! {
        #[test]
        fn any_bytes(bytes: Vec<u8>) {
            fuzz_group_rules(&bytes);
            fuzz_group_rules(&[&[2, 0, 0, 0][..], &attr(NFTA_RULE_EXPRESSIONS, &attr(1, &bytes))].concat());
        }
    }
}
