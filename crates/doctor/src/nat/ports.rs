//! Source ports that source NAT uses towards each destination, and those that are free.
//!
//! Two connections from one address to one destination need two source ports. When all ports that a rule allows are in
//! use, the kernel refuses the next connection: `insert_failed` and `drop` grow together even if the table has room
//! (nf_nat_l4proto_unique_tuple() in net/netfilter/nf_nat_core.c, nf_ct_resolve_clash() in nf_conntrack_core.c).
use std::collections::HashMap;

use record::Addr;
use record::rows::{Conntrack, CtState, NatKind, PortRange, SnatPorts, SnatRule, ip_proto};

use super::Evidence;

/// The kernel's own range for a source port of at least 1024, if the rule names none.
const USUAL: PortRange = PortRange { first: 1024, last: u16::MAX };
/// Tenths of a range in use from which on refused connections are attributed to it: in a large range the kernel tries
/// only a few hundred random ports, not all.
const NEARLY_TENTHS: u64 = 9;
/// Most ranges that the advice names, the fullest first; of the others it gives only the number.
const SHOWN: usize = 10;
/// State TIME_WAIT of `enum tcp_conntrack`: kernels since 6.7 take its port for a new connection.
const TIME_WAIT: u8 = 7;

/// The remote end and the address that replaces the clients' there: the reply tuple without its port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Group {
    zone: Option<u16>,
    proto: u8,
    addr: Addr,
    dest: Addr,
    dest_port: u16,
}

/// The ports of a group.
#[derive(Debug, Clone, Copy)]
struct InUse {
    ports: u64,
    /// Ports that the kernel may reuse for a new connection.
    reusable: u64,
    lowest: u16,
    highest: u16,
}

/// Most groups that are counted in each namespace, which take 20 MiB. Clients choose the number of destinations;
/// entries of further ones are not counted, and the advice gives their number. Clients cannot choose which ones those
/// are: the table is read in the order of its hash.
///
/// Bound: destinations of one source address whose ports are counted. Beyond: further destinations are counted in the
/// advice. By: clients of the NAT.
const GROUPS_MAX: usize = 1 << 18;

/// The ports of all groups.
#[derive(Debug, Clone, Default)]
pub struct PortCensus {
    groups: HashMap<Group, InUse>,
    /// Entries of groups beyond the bound.
    uncounted: u64,
}

impl PortCensus {
    /// Counts an entry, if its source is rewritten and it has ports. Reply tuples are unique, so each entry uses
    /// another port.
    pub fn add(&mut self, row: &Conntrack<'_>) {
        // `nat` compares the tuples if a backend has no status.
        let is_snat = matches!(row.nat(), Some(NatKind::Snat | NatKind::Both));
        // An expired entry gives up its port.
        if !is_snat || row.expired == Some(true) {
            return;
        }
        let (Some(port), Some(dest_port)) = (row.reply.dport(), row.reply.sport()) else { return };
        let (proto, addr, dest) = (row.reply.proto, row.reply.dst, row.reply.src);
        let group = Group { zone: row.zone.or(row.reply.zone), proto, addr, dest, dest_port };
        let is_reusable = row.state == Some(CtState::Tcp(TIME_WAIT));
        let first = InUse { ports: 0, reusable: 0, lowest: port, highest: port };
        if self.groups.len() >= GROUPS_MAX && !self.groups.contains_key(&group) {
            self.uncounted += 1;
            return;
        }
        let ports = self.groups.entry(group).or_insert(first);
        ports.ports += 1;
        ports.reusable += u64::from(is_reusable);
        ports.lowest = ports.lowest.min(port);
        ports.highest = ports.highest.max(port);
    }

    /// True if no entry has a rewritten source.
    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }
}

/// The ports that an address uses towards a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortUse {
    /// IP protocol.
    pub proto: u8,
    /// The address that sources are rewritten to.
    pub addr: Addr,
    /// Address of the remote end.
    pub dest: Addr,
    /// Port of the remote end.
    pub dest_port: u16,
    /// Ports in use.
    pub used: u64,
    /// The range of available ports.
    pub range: PortRange,
    /// True if the range comes from a rule or is the kernel's own; false if it is only derived from the entries.
    pub is_by_rule: bool,
}

impl PortUse {
    /// Returns the share in use, in percent, rounded down.
    pub fn percent(&self) -> u64 {
        super::percent(self.used, self.range.count())
    }
}

/// The judgement of a table's source ports.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ports {
    /// Ranges that are exhausted, or nearly so while connections are refused; the fullest first, at most ten.
    pub used_up: Vec<PortUse>,
    /// Number of further used-up ranges.
    pub more: u64,
    /// The range with the largest share in use, if no range is used up.
    pub fullest: Option<PortUse>,
}

/// Returns the range from which `used` entries at `addr`, with source ports from `lowest` to `highest`, get their
/// ports: the smallest range of a rule that contains them, or the kernel's own if a rule for this address names none.
/// `None` if it is unknown.
pub fn range_of(rules: &[SnatRule], addr: Addr, (lowest, highest): (u16, u16), used: u64) -> Option<PortRange> {
    let is_for = |rule: &&SnatRule| rule.addrs.is_none_or(|(first, last)| first <= addr && addr <= last);
    let mut named = None;
    let (mut is_unknown, mut is_any) = (false, false);
    for rule in rules.iter().filter(is_for) {
        match rule.ports {
            SnatPorts::In(range) if range.contains(lowest) && range.contains(highest) && range.count() >= used => {
                let is_smaller = |best: PortRange| range.count() < best.count();
                named = if named.is_none_or(is_smaller) { Some(range) } else { named };
            }
            SnatPorts::In(_) => {}
            SnatPorts::Any => is_any = true,
            SnatPorts::Unknown => is_unknown = true,
        }
    }
    named.or((is_any && !is_unknown && USUAL.contains(lowest)).then_some(USUAL))
}

/// Judges the ports of the evidence; `refused` is the number of connections refused during the samples.
pub(super) fn judge(evidence: &Evidence, refused: u64) -> Ports {
    let rules = evidence.snat_rules.as_deref().unwrap_or_default();
    evidence.census.as_ref().map_or_else(Ports::default, |census| census.ports().judge(rules, refused))
}

impl PortCensus {
    /// Finds the ranges of source ports that are exhausted. `rules` are the source NAT rules; `refused` is the number
    /// of connections refused while the entries were counted.
    pub fn judge(&self, rules: &[SnatRule], refused: u64) -> Ports {
        judge_groups(&self.groups, rules, refused)
    }
}

fn judge_groups(groups: &HashMap<Group, InUse>, rules: &[SnatRule], refused: u64) -> Ports {
    let (mut ports, mut used_up) = (Ports::default(), Vec::new());
    for (group, in_use) in groups {
        let by_rule = range_of(rules, group.addr, (in_use.lowest, in_use.highest), in_use.ports);
        let shown = PortRange { first: in_use.lowest, last: in_use.highest };
        let range = by_rule.unwrap_or(shown);
        let used = PortUse {
            proto: group.proto,
            addr: group.addr,
            dest: group.dest,
            dest_port: group.dest_port,
            used: in_use.ports,
            range,
            is_by_rule: by_rule.is_some(),
        };
        let is_full = match by_rule {
            Some(_) if refused > 0 => used.used * 10 >= range.count() * NEARLY_TENTHS,
            Some(_) => used.used.saturating_sub(in_use.reusable) >= range.count(),
            // Without a rule: ports without a gap, and refused connections. A single port is never a range.
            None => refused > 0 && used.used > 1 && used.used >= range.count(),
        };
        if is_full {
            used_up.push(used);
        } else if by_rule.is_some() && ports.fullest.is_none_or(|fullest| rank(&fullest) > rank(&used)) {
            ports.fullest = Some(used);
        }
    }
    used_up.sort_by_key(rank);
    ports.more = used_up.len().saturating_sub(SHOWN) as u64;
    used_up.truncate(SHOWN);
    if !used_up.is_empty() {
        ports.fullest = None;
    }
    Ports { used_up, ..ports }
}

/// The order of ranges: by the share in use, then by the number of ports, then by address so that it is stable.
fn rank(used: &PortUse) -> (std::cmp::Reverse<(u64, u64)>, u8, Addr, Addr, u16) {
    let part = used.used.saturating_mul(10_000) / used.range.count().max(1);
    (std::cmp::Reverse((part, used.used)), used.proto, used.addr, used.dest, used.dest_port)
}

impl PortUse {
    /// `10.0.0.1 towards 192.0.2.1:80 (tcp)`
    pub fn ends(&self) -> String {
        format!("{} to {} ({})", self.addr, end(self), ip_proto::name(self.proto))
    }
}

/// Appends the sentences about ports, the most serious first.
pub(super) fn of(evidence: &Evidence, ports: &Ports, refused: u64, says: &mut Vec<String>) {
    for used in &ports.used_up {
        says.push(sentence(used));
    }
    if ports.more > 0 {
        says.push(format!("{} more ranges of source ports are exhausted", ports.more));
    }
    let uncounted = evidence.census.as_ref().map_or(0, |census| census.ports().uncounted);
    if uncounted > 0 {
        says.push(format!(
            "source ports of {uncounted} entries were not counted: there are more than {GROUPS_MAX} pairs of address \
             and destination"
        ));
    }
    let is_nat = evidence.census.as_ref().is_some_and(|census| !census.ports().is_empty());
    if refused == 0 || !ports.used_up.is_empty() || !is_nat {
        return;
    }
    says.push(match &ports.fullest {
        Some(used) => format!(
            "no range of source ports is exhausted; the fullest is the range of {} for connections to {}: {} of {}",
            used.addr,
            end(used),
            used.used,
            used.range.count()
        ),
        None if evidence.snat_rules.is_none() => {
            "the source ports that the rules allow are unknown (nft did not list them), and so is whether they are \
             exhausted"
                .to_owned()
        }
        None => "no rule listed by nft defines the source ports".to_owned(),
    });
}

fn sentence(used: &PortUse) -> String {
    let PortUse { addr, used: ports, range, is_by_rule, .. } = used;
    let count = range.count();
    let word = if *ports >= count { "are exhausted" } else { "are nearly exhausted, connections are dropped" };
    let range = match is_by_rule {
        true if *range == USUAL => "no rule sets a range, so the kernel's default applies".to_owned(),
        true => format!("the rule allows {} to {}", range.first, range.last),
        false => format!("no rule shows the range: entries use all ports from {} to {}", range.first, range.last),
    };
    format!(
        "source ports of {addr} for connections to {} {word} ({ports} of {count}): {}, {range}",
        end(used),
        ip_proto::name(used.proto)
    )
}

/// `192.0.2.1:80`, `[2001:db8::1]:80`.
fn end(used: &PortUse) -> String {
    match used.dest {
        Addr::V4(_) => format!("{}:{}", used.dest, used.dest_port),
        Addr::V6(_) => format!("[{}]:{}", used.dest, used.dest_port),
    }
}
