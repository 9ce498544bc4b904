//! Obstacles on this host for the packets of a plan: forwarding that is off, and rules that drop untracked packets or
//! packets with the backend's address.
//!
//! A rule set is read in the form that `nft list ruleset` prints. For each rule the code decides whether it matches
//! the plan's packets. If that depends on something unknown here (an interface, a set, a match of iptables), the
//! obstacle is only a warning, and each packet decides.

use super::plan::{Plan, Rewrite};
use super::ruleset::{PRIORITY, TABLE};
use record::{Addr, Prefix};
use std::cell::Cell;

/// Something that can stop packets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Obstacle {
    /// Description, with advice.
    pub text: String,
    /// False if it depends on the packet.
    pub is_certain: bool,
}

/// Settings of the network namespace; `None` where one cannot be read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// net.ipv4.ip_forward
    pub forwards_v4: Option<bool>,
    /// net.ipv6.conf.all.forwarding
    pub forwards_v6: Option<bool>,
    /// True if an interface has a strict reverse path filter (net.ipv4.conf.*.rp_filter is 1).
    pub strict_rp_filter: bool,
}

/// Deepest nesting of jumps that is followed; deeper chains may or may not drop, which is reported as a warning.
///
/// Bound: jumps between chains that `nat stateless plan` follows. Beyond: deeper rules may drop the packets; reported.
/// By: root.
const DEPTH: u32 = 16;

/// Most rules that are evaluated for one packet in one base chain, counting called chains each time. Later rules may
/// or may not drop, which is reported as a warning.
const RULES: u32 = 1 << 16;

/// Returns everything that can stop the packets of `plan`, each obstacle once.
pub fn obstacles(plan: &Plan, ruleset: &str, settings: Settings) -> Vec<Obstacle> {
    let mut found = of_settings(plan, settings);
    let chains = parse(ruleset);
    for rewrite in &plan.rewrites {
        for chain in chains.iter().filter(|chain| chain.is_asked()) {
            for packet in packets(rewrite, chain) {
                let Some(obstacle) = of_chain(chain, &chains, &packet) else { continue };
                if !found.contains(&obstacle) {
                    found.push(obstacle);
                }
            }
        }
    }
    found
}

fn of_settings(plan: &Plan, settings: Settings) -> Vec<Obstacle> {
    let has = |v4: bool| plan.rewrites.iter().any(|rewrite| matches!(rewrite.backend, Addr::V4(_)) == v4);
    let mut found = Vec::new();
    let mut add = |is_certain, text: &str| found.push(Obstacle { text: text.to_owned(), is_certain });
    if has(true) && settings.forwards_v4 == Some(false) {
        add(true, "net.ipv4.ip_forward is 0: this host forwards no packets to the backend; set it to 1");
    }
    if has(false) && settings.forwards_v6 == Some(false) {
        add(true, "net.ipv6.conf.all.forwarding is 0: this host forwards no packets to the backend; set it to 1");
    }
    if has(true) && settings.strict_rp_filter {
        add(
            false,
            "rp_filter is 1 on some interface: packets of clients whose route uses another interface are dropped",
        );
    }
    found
}

/// A chain of a rule set.
#[derive(Default)]
struct Chain<'r> {
    family: &'r str,
    table: &'r str,
    name: &'r str,
    hook: &'r str,
    is_filter: bool,
    priority: i32,
    drops: bool,
    rules: Vec<&'r str>,
}

impl Chain<'_> {
    /// True if forwarded packets pass through it and it may drop them.
    fn is_asked(&self) -> bool {
        let is_ours = TABLE.split_once(' ') == Some((self.family, self.table));
        let is_ip = matches!(self.family, "ip" | "ip6" | "inet");
        is_ip && !is_ours && self.is_filter && matches!(self.hook, "prerouting" | "forward" | "postrouting")
    }

    fn takes(&self, addr: Addr) -> bool {
        match self.family {
            "ip" => matches!(addr, Addr::V4(_)),
            "ip6" => !matches!(addr, Addr::V4(_)),
            _ => true,
        }
    }
}

fn parse(ruleset: &str) -> Vec<Chain<'_>> {
    let mut chains: Vec<Chain<'_>> = Vec::new();
    let (mut family, mut table) = ("", "");
    let mut is_in_chain = false;
    for line in ruleset.lines().map(str::trim) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["table", of, name, "{", ..] => (family, table, is_in_chain) = (of, name, false),
            ["chain", name, "{", ..] => {
                chains.push(Chain { family, table, name, ..Chain::default() });
                is_in_chain = true;
            }
            ["}", ..] => is_in_chain = false,
            ["type", kind, "hook", hook, "priority", rest @ ..] if is_in_chain => {
                let Some(chain) = chains.last_mut() else { continue };
                (chain.hook, chain.is_filter) = (hook, *kind != "nat");
                chain.priority = priority(rest);
                chain.drops = line.contains("policy drop");
            }
            [] => {}
            _ if is_in_chain => chains.extend_last(line),
            _ => {}
        }
    }
    chains
}

trait ExtendLast<'r> {
    fn extend_last(&mut self, rule: &'r str);
}

impl<'r> ExtendLast<'r> for Vec<Chain<'r>> {
    fn extend_last(&mut self, rule: &'r str) {
        if let Some(chain) = self.last_mut() {
            chain.rules.push(rule);
        }
    }
}

/// Parses a priority: `filter;`, `raw + 10;`, `-150;`
fn priority(words: &[&str]) -> i32 {
    let word = |at: usize| words.get(at).copied().unwrap_or("").trim_end_matches(';');
    let base: i32 = match word(0) {
        "raw" => -300,
        "mangle" => -150,
        "dstnat" => -100,
        "filter" => 0,
        "security" => 50,
        "srcnat" => 100,
        number => number.parse().unwrap_or(0),
    };
    let more: i32 = word(2).parse().unwrap_or(0);
    match word(1) {
        "+" => base.saturating_add(more),
        "-" => base.saturating_sub(more),
        _ => base,
    }
}

/// A packet, as seen by a chain.
struct Packet {
    transport: &'static str,
    source: Option<(Addr, u16)>,
    dest: Option<(Addr, u16)>,
    /// Its state in conntrack: `untracked`, but `invalid` before our rules have marked it.
    state: &'static str,
    is_inward: bool,
    /// Rules that may still be evaluated.
    left: Cell<u32>,
}

/// Returns the packets of both directions, as seen by this chain.
fn packets(rewrite: &Rewrite, chain: &Chain<'_>) -> Vec<Packet> {
    let Rewrite { transport, public, port, backend, backend_port } = *rewrite;
    if !chain.takes(backend) {
        return Vec::new();
    }
    let is_before = chain.hook == "prerouting" && chain.priority <= PRIORITY;
    let state = if is_before { "invalid" } else { "untracked" };
    let dest = Some(if is_before { (public, port) } else { (backend, backend_port) });
    let source = Some((backend, backend_port));
    let transport = transport.name();
    let inward = Packet { transport, source: None, dest, state, is_inward: true, left: Cell::new(RULES) };
    vec![inward, Packet { transport, source, dest: None, state, is_inward: false, left: Cell::new(RULES) }]
}

/// The effect of a chain on a packet.
enum Fate<'r> {
    Accepted,
    /// Dropped by this rule, or by the policy.
    Dropped(&'r str),
    /// Maybe dropped by this rule.
    Perhaps(&'r str),
    /// Evaluation continues in the calling chain.
    Returned,
}

fn of_chain(chain: &Chain<'_>, chains: &[Chain<'_>], packet: &Packet) -> Option<Obstacle> {
    let (rule, is_certain) = match fate(chain, chains, packet, DEPTH) {
        Fate::Dropped(rule) => (rule, true),
        Fate::Perhaps(rule) => (rule, false),
        Fate::Accepted | Fate::Returned => return None,
    };
    let Chain { family, table, name, .. } = chain;
    let which = if packet.is_inward { "packets to the backend" } else { "answers of the backend" };
    let drops = if is_certain { "drops" } else { "may drop" };
    let text = format!(
        "`{rule}` in the chain {family} {table} {name} {drops} {which}: accept `ct state untracked` and the backend's \
            address before it"
    );
    Some(Obstacle { text, is_certain })
}

fn fate<'r>(chain: &Chain<'r>, chains: &[Chain<'r>], packet: &Packet, depth: u32) -> Fate<'r> {
    let (mut may_pass, mut may_drop) = (false, None);
    for rule in &chain.rules {
        let Some(left) = packet.left.get().checked_sub(1) else { return Fate::Perhaps(rule) };
        packet.left.set(left);
        let holds = holds(rule, packet);
        if holds == Holds::No {
            continue;
        }
        let fate = match verdict(rule, packet) {
            Verdict::Accept => Fate::Accepted,
            Verdict::Drop => Fate::Dropped(rule),
            Verdict::Return => Fate::Returned,
            Verdict::Call(name) => called(chain, chains, name, packet, depth, rule),
            Verdict::None => continue,
        };
        match (fate, holds) {
            (Fate::Accepted, Holds::Yes) => return may_drop.map_or(Fate::Accepted, Fate::Perhaps),
            (Fate::Accepted, _) => may_pass = true,
            (Fate::Dropped(rule), Holds::Yes) if !may_pass => return Fate::Dropped(rule),
            (Fate::Dropped(rule), Holds::Yes) => return Fate::Perhaps(rule),
            (Fate::Dropped(rule) | Fate::Perhaps(rule), _) => may_drop = may_drop.or(Some(rule)),
            (Fate::Returned, Holds::Yes) if matches!(verdict(rule, packet), Verdict::Return) => break,
            (Fate::Returned, _) => {}
        }
    }
    match (chain.drops, may_pass, may_drop) {
        (true, false, _) => Fate::Dropped("policy drop"),
        (true, true, _) => Fate::Perhaps("policy drop"),
        (false, _, Some(rule)) => Fate::Perhaps(rule),
        (false, ..) => Fate::Returned,
    }
}

fn called<'r>(
    from: &Chain<'r>,
    chains: &[Chain<'r>],
    name: &str,
    packet: &Packet,
    depth: u32,
    rule: &'r str,
) -> Fate<'r> {
    let is_it = |chain: &&Chain<'r>| (chain.family, chain.table, chain.name) == (from.family, from.table, name);
    match (depth.checked_sub(1), chains.iter().find(is_it)) {
        (Some(depth), Some(chain)) => fate(chain, chains, packet, depth),
        _ => Fate::Perhaps(rule),
    }
}

enum Verdict<'r> {
    Accept,
    Drop,
    Return,
    /// `jump` or `goto`.
    Call(&'r str),
    /// The rule only counts, logs or marks.
    None,
}

fn verdict<'r>(rule: &'r str, packet: &Packet) -> Verdict<'r> {
    if let Some(verdict) = mapped(rule, packet) {
        return verdict;
    }
    let words: Vec<&str> = rule.split_whitespace().collect();
    let last =
        words.iter().rposition(|word| matches!(*word, "accept" | "drop" | "reject" | "return" | "jump" | "goto"));
    match last.and_then(|at| Some((*words.get(at)?, words.get(at + 1).copied().unwrap_or("")))) {
        Some(("accept", _)) => Verdict::Accept,
        Some(("drop" | "reject", _)) => Verdict::Drop,
        Some(("return", _)) => Verdict::Return,
        Some(("jump" | "goto", name)) => Verdict::Call(name),
        _ => Verdict::None,
    }
}

/// Parses `ct state vmap { established : accept, invalid : drop }`.
fn mapped<'r>(rule: &'r str, packet: &Packet) -> Option<Verdict<'r>> {
    let (_, map) = rule.split_once("ct state vmap {")?;
    let pairs = map.split('}').next()?.split(',').filter_map(|pair| pair.split_once(':'));
    let mut verdicts = pairs.filter(|(state, _)| state.trim() == packet.state).map(|(_, verdict)| verdict.trim());
    Some(match verdicts.next().map(|verdict| verdict.split_once(' ').unwrap_or((verdict, ""))) {
        Some(("accept", _)) => Verdict::Accept,
        Some(("drop", _)) => Verdict::Drop,
        Some(("jump" | "goto", name)) => Verdict::Call(name),
        _ => Verdict::None,
    })
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Holds {
    No,
    Perhaps,
    Yes,
}

impl From<bool> for Holds {
    fn from(yes: bool) -> Holds {
        if yes { Holds::Yes } else { Holds::No }
    }
}

/// Evaluates a rule's conditions for the packet.
fn holds(rule: &str, packet: &Packet) -> Holds {
    let words: Vec<&str> = rule.split_whitespace().collect();
    let mut all = Holds::Yes;
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let (taken, one) = condition(word, words.get(at + 1..).unwrap_or_default(), packet);
        all = all.min(one);
        at += taken;
    }
    all
}

/// Evaluates the condition that begins with `word`; returns its number of words and the result.
fn condition(word: &str, rest: &[&str], packet: &Packet) -> (usize, Holds) {
    let next = |at: usize| rest.get(at).copied().unwrap_or("");
    let behind = rest.get(1..).unwrap_or_default();
    match (word, next(0)) {
        ("counter", "packets") => (5, Holds::Yes),
        ("counter" | "accept" | "drop" | "return", _) => (1, Holds::Yes),
        ("jump" | "goto", _) => (2, Holds::Yes),
        // The rest of the rule only refines this.
        ("reject" | "log", _) => (1 + rest.len(), Holds::Yes),
        ("comment", _) => (1 + rest.len(), Holds::Yes),
        ("ct", "state") if next(1) == "vmap" => (1 + rest.len(), Holds::Yes),
        ("ct", "state") => compared(behind, 2, |value| Some(value.split(',').any(|one| one.trim() == packet.state))),
        ("ip" | "ip6", "saddr") => compared(behind, 2, |value| same_address(value, packet.source, packet.dest)),
        ("ip" | "ip6", "daddr") => compared(behind, 2, |value| same_address(value, packet.dest, packet.source)),
        ("tcp" | "udp", "sport") if word == packet.transport => {
            compared(behind, 2, |value| Some(value.parse::<u16>().ok()? == packet.source?.1))
        }
        ("tcp" | "udp", "dport") if word == packet.transport => {
            compared(behind, 2, |value| Some(value.parse::<u16>().ok()? == packet.dest?.1))
        }
        ("tcp" | "udp", "sport" | "dport") => (3, Holds::No),
        ("meta", "l4proto") => compared(behind, 2, |value| one_of(value, packet.transport)),
        ("ip", "protocol") => compared(behind, 2, |value| one_of(value, packet.transport)),
        // A client's packet does not arrive on the backend's interface; whether the rule names that interface is
        // unknown here.
        ("iifname" | "iif", "!=") if packet.is_inward => (3, Holds::Yes),
        ("iifname" | "iif" | "oifname" | "oif", _) => compared(rest, 1, |_| None),
        _ => (1, Holds::Perhaps),
    }
}

/// Parses `VALUE`, `!= VALUE` or `{ A, B }` after `before` words, and compares the value with the packet's using `is`.
fn compared(rest: &[&str], before: usize, is: impl Fn(&str) -> Option<bool>) -> (usize, Holds) {
    let is_not = rest.first() == Some(&"!=");
    let rest = rest.get(usize::from(is_not)..).unwrap_or_default();
    let (value, len) = match rest.first() {
        Some(&"{") => {
            let end = rest.iter().position(|word| *word == "}").unwrap_or(rest.len());
            (rest.get(1..end).unwrap_or_default().concat(), end + 1)
        }
        Some(word) => ((*word).to_owned(), 1),
        None => (String::new(), 0),
    };
    let holds = is(&value).map_or(Holds::Perhaps, |same| Holds::from(same != is_not));
    (before + usize::from(is_not) + len, holds)
}

/// True if `end` is among the addresses or networks of `value`; `None` if it is unknown. The client's end is unknown,
/// but differs from the backend's, which is `other`.
fn same_address(value: &str, end: Option<(Addr, u16)>, other: Option<(Addr, u16)>) -> Option<bool> {
    let one = |word: &str| -> Option<bool> {
        match (word.parse::<Addr>().ok(), end) {
            (Some(addr), Some(end)) => Some(addr == end.0),
            (Some(addr), None) => (Some(addr) == other.map(|other| other.0)).then_some(false),
            (None, end) => Some(word.parse::<Prefix>().ok()?.contains(end?.0)),
        }
    };
    value.split(',').try_fold(false, |any, word| Some(one(word.trim())? || any))
}

fn one_of(value: &str, word: &str) -> Option<bool> {
    let known = |one: &str| one.chars().all(|c| c.is_ascii_lowercase() || c == '-' || c.is_ascii_digit());
    let mut words = value.split(',').map(str::trim);
    words.clone().all(known).then(|| words.any(|one| one == word))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::stateless::{HostRoutes, Publish, plan};

    const OPEN: Settings = Settings { forwards_v4: Some(true), forwards_v6: Some(true), strict_rp_filter: false };

    fn planned() -> Plan {
        let publish: Publish = "192.0.2.1:8080:172.17.0.2:80".parse().unwrap();
        plan(&[publish], &HostRoutes { addresses: &[], towards: &[], no_helper: false }).unwrap()
    }

    /// Returns whether packets are dropped: certainly, maybe, or not at all.
    fn judged(hook: &str, rules: &str) -> Option<bool> {
        let ruleset = format!("table ip other {{\n\tchain c {{\n\t\ttype filter hook {hook}\n{rules}\n\t}}\n}}\n");
        let found = obstacles(&planned(), &ruleset, OPEN);
        found.iter().map(|obstacle| obstacle.is_certain).reduce(|one, other| one || other)
    }

    #[test]
    fn issue_10_rules_that_drop_what_is_untracked() {
        let forward = |policy: &str| format!("forward priority filter; policy {policy};");
        let (drops, accepts) = (forward("drop"), forward("accept"));
        for (hook, rules, wanted) in [
            (&drops, "ct state established,related accept", Some(true)),
            (&drops, "ct state { established, related, untracked } accept", None),
            (
                &drops,
                "ct state established,related counter packets 1 bytes 2 accept\noifname \"docker0\" accept",
                Some(false),
            ),
            (&drops, "ip daddr 172.17.0.2 tcp dport 80 accept\nip saddr 172.17.0.0/16 accept", None),
            (&drops, "ip daddr 172.17.0.2 tcp dport 80 accept", Some(true)),
            (&drops, "ip daddr 172.17.0.3 accept\nip saddr 172.17.0.3 accept", Some(false)),
            (&accepts, "ct state invalid drop", None),
            (&accepts, "ct state { invalid, untracked } counter packets 0 bytes 0 drop", Some(true)),
            (&accepts, "ct state != { established, related } drop", Some(true)),
            (&accepts, "ct state vmap { established : accept, untracked : drop }", Some(true)),
            (&accepts, "ct state vmap { established : accept, invalid : drop }", None),
            (&accepts, "udp dport 80 drop", None),
            (&accepts, "iifname \"eth0\" drop", Some(false)),
            (&accepts, "jump elsewhere", Some(false)),
            (&accepts, "tcp dport 80 reject with tcp reset", Some(true)),
        ] {
            assert_eq!(judged(hook, rules), wanted, "{hook} {rules}");
        }
    }

    /// Docker drops packets to a container's address from outside, before tracking.
    #[test]
    fn issue_10_rules_that_see_the_rewritten_address() {
        let direct = "ip daddr 172.17.0.2 iifname != \"docker0\" counter packets 0 bytes 0 drop";
        assert_eq!(judged("prerouting priority raw; policy accept;", direct), None, "it comes before ours");
        assert_eq!(judged("prerouting priority mangle; policy accept;", direct), Some(true));
        assert_eq!(judged("prerouting priority -200; policy accept;", direct), Some(true));
        assert_eq!(judged("output priority mangle; policy drop;", direct), None);
    }

    #[test]
    fn issue_10_settings_that_stop_packets() {
        let found = |settings| obstacles(&planned(), "", settings);
        assert!(found(OPEN).is_empty());
        let off = found(Settings { forwards_v4: Some(false), forwards_v6: Some(false), ..OPEN });
        assert!(off.len() == 1 && off[0].is_certain && off[0].text.contains("net.ipv4.ip_forward is 0"), "{off:?}");
        let strict = found(Settings { strict_rp_filter: true, ..OPEN });
        assert!(strict.len() == 1 && !strict[0].is_certain, "{strict:?}");
    }

    #[test]
    fn chains_that_call_each_other_end() {
        let ruleset = "table ip o {\n chain a {\n type filter hook forward priority 0; policy accept;\n jump b\n }\n \
                       chain b {\n jump b\n ct state untracked drop\n }\n}\n";
        assert!(!obstacles(&planned(), ruleset, OPEN).is_empty());
        let call = |from: u32| format!("chain c{from} {{\n{}}}\n", format!("jump c{}\n", from + 1).repeat(10));
        let many: String = (0..20).map(call).collect();
        let many = format!("table ip o {{\nchain a {{\ntype filter hook forward priority 0;\njump c0\n}}\n{many}}}\n");
        assert!(!obstacles(&planned(), &many, OPEN).is_empty(), "ten to the twentieth calls are too many to look at");
        for garbage in
            ["", "table", "chain x {\ntype filter hook forward priority\nct state\nip daddr {", "}\n}\nct state drop"]
        {
            let _ = obstacles(&planned(), garbage, OPEN);
        }
    }
}
