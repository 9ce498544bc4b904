//! Evaluates the rules of NAT for a flow, from the output of `nft -j list ruleset`.
//!
//! Three-valued: a match that is not understood (marks, named sets, maps, iptables modules) makes the answer unknown,
//! never a guess, unless another match of the same rule excludes the flow. All text was chosen by the author of the
//! rules.

use crate::rule_chains::{table_of, word};
use record::Addr;
use serde_json::Value as Json;
use std::cell::Cell;
use std::collections::BTreeMap;

/// Bound: rules of a namespace that are compared with flows. Beyond: the rules are unknown. By: the owner of a
/// namespace, for that namespace.
const RULES_MAX: usize = 4096;
/// Bound: jumps between chains that one flow follows. Beyond: the rules are unknown. By: the owner of a namespace, for
/// that namespace.
const JUMPS_MAX: u32 = 16;
/// Bound: rules and values that all flows of a namespace are compared with: about a tenth of a second of CPU time.
/// Beyond: the rules are unknown (exit code 3). By: the owner of a namespace, whose chains may lead to each other many
/// times.
const STEPS_MAX: u64 = 5_000_000;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// A flow in the direction of its first packet, as it is at a hook.
#[derive(Clone, Copy, Debug)]
pub struct NatFlow<'f> {
    /// IP protocol.
    pub l4: u8,
    /// Source address and port.
    pub from: (Addr, u16),
    /// Destination address and port.
    pub to: (Addr, u16),
    /// Name of the interface that it enters through; `None` if it is unknown.
    pub iif: Option<&'f str>,
    /// Name of the interface that it leaves by; `None` if it is unknown.
    pub oif: Option<&'f str>,
    /// True if the destination is an address of this host.
    pub is_to_us: bool,
}

/// A hook at which rules rewrite addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NatHook {
    /// Packets that arrive.
    Prerouting,
    /// Packets of this host.
    Output,
    /// Packets that leave.
    Postrouting,
}

/// How the rules rewrite a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rewrite {
    /// They leave it as it is.
    None,
    /// A match or a target is not understood.
    Unknown,
    /// Another destination, or source at [`NatHook::Postrouting`].
    To(RewriteTarget),
    /// The source becomes an address of the outgoing interface. Has the place of the rule: `ip nat post handle 4`.
    Masquerade(String),
}

/// The target of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RewriteTarget {
    /// First and last address; `None` if the rule changes the port only, or for an address of this host.
    pub addrs: Option<(Addr, Addr)>,
    /// First and last port; `None` if the rule leaves the port alone.
    pub ports: Option<(u16, u16)>,
    /// The place of the rule: `ip nat pre handle 4`.
    pub place: String,
}

/// The chains that rewrite addresses, and those that they lead to.
#[derive(Debug, Default)]
pub struct NatRules {
    chains: Vec<Chain>,
    /// The index of each chain, by table and name.
    places: BTreeMap<(String, String), usize>,
    /// Rules and values that flows were compared with.
    steps: Cell<u64>,
}

#[derive(Debug)]
struct Chain {
    table: String,
    /// `None` for a chain that only rules lead to.
    hook: Option<(NatHook, i64)>,
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    tests: Vec<Test>,
    action: Action,
}

#[derive(Debug)]
enum Action {
    /// The next rule follows.
    Continue,
    /// The chain ends without a rewrite.
    Accept,
    Return,
    Jump(String),
    Goto(String),
    Rewrite(Rewrite),
}

#[derive(Debug)]
struct Test {
    field: Field,
    is_not: bool,
    /// `None` if they are unknown.
    values: Option<Vec<MatchValue>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Protocol,
    Family,
    From,
    To,
    /// The protocol that the header must have; 0 for any.
    FromPort(u8),
    ToPort(u8),
    Iif,
    Oif,
    ToUs,
    /// True for every new flow.
    Always,
    Unknown,
}

#[derive(Debug, PartialEq, Eq)]
enum MatchValue {
    Numbers(u64, u64),
    Addrs(Addr, Addr),
    /// An interface, or the beginning of its name.
    Name(String),
    NameStart(String),
}

impl NatRules {
    /// Parses a listing; `None` if it is malformed or has too many rules.
    pub fn parse(listing: &[u8]) -> Option<NatRules> {
        let listing: Json = serde_json::from_slice(listing).ok()?;
        let (mut rules, mut count) = (NatRules::default(), 0);
        for object in listing.get("nftables")?.as_array()? {
            if let Some(chain) = object.get("chain") {
                rules.add_chain(chain);
            } else if let Some(rule) = object.get("rule") {
                count += 1;
                if count > RULES_MAX {
                    return None;
                }
                rules.add_rule(rule);
            }
        }
        Some(rules)
    }

    /// True if the bound of comparisons is reached: the answers since then are [`Rewrite::Unknown`].
    pub fn is_exhausted(&self) -> bool {
        self.steps.get() >= STEPS_MAX
    }

    /// True if a rule translates sources.
    pub fn has_source_nat(&self) -> bool {
        let of_source = |chain: &&Chain| chain.hook.is_none_or(|(hook, _)| hook == NatHook::Postrouting);
        let mut rules = self.chains.iter().filter(of_source).flat_map(|chain| &chain.rules);
        let is_it = |rule: &Rule| matches!(&rule.action, Action::Rewrite(Rewrite::To(_) | Rewrite::Masquerade(_)));
        self.chains.iter().any(|chain| chain.hook.is_some_and(|(hook, _)| hook == NatHook::Postrouting))
            && rules.any(is_it)
    }

    fn add_chain(&mut self, chain: &Json) {
        let hook = match word(chain, "hook") {
            "prerouting" => Some(NatHook::Prerouting),
            "output" => Some(NatHook::Output),
            "postrouting" => Some(NatHook::Postrouting),
            "" => None,
            _ => return,
        };
        if hook.is_some() && word(chain, "type") != "nat" {
            return;
        }
        let hook = hook.map(|hook| (hook, chain.get("prio").and_then(Json::as_i64).unwrap_or(0)));
        let (table, name) = (table_of(chain), word(chain, "name").to_owned());
        self.places.insert((table.clone(), name), self.chains.len());
        self.chains.push(Chain { table, hook, rules: Vec::new() });
    }

    fn add_rule(&mut self, rule: &Json) {
        let key = (table_of(rule), word(rule, "chain").to_owned());
        let Some(chain) = self.places.get(&key).and_then(|at| self.chains.get_mut(*at)) else { return };
        let handle = rule.get("handle").and_then(Json::as_u64).unwrap_or(0);
        let place = format!("{} {} handle {handle}", key.0, key.1);
        let statements = rule.get("expr").and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
        chain.rules.push(Rule {
            tests: statements.iter().filter_map(|one| one.get("match")).map(test).collect(),
            action: statements.iter().find_map(|one| action(one, &place)).unwrap_or(Action::Continue),
        });
    }

    /// How the rules rewrite the flow at this hook.
    pub fn rewrite(&self, hook: NatHook, flow: &NatFlow<'_>) -> Rewrite {
        let family = if matches!(flow.to.0.unmapped(), Addr::V4(_)) { "ip " } else { "ip6 " };
        let is_here = |chain: &&Chain| {
            chain.hook.is_some_and(|(of, _)| of == hook)
                && (chain.table.starts_with(family) || chain.table.starts_with("inet "))
        };
        let mut chains: Vec<&Chain> = self.chains.iter().filter(is_here).collect();
        // Chains of one hook are taken in the order of their priorities.
        chains.sort_by_key(|chain| chain.hook.map(|(_, priority)| priority));
        for chain in chains {
            match self.follow(chain, flow, JUMPS_MAX) {
                Some(Rewrite::None) | None => {}
                Some(rewrite) => return rewrite,
            }
        }
        Rewrite::None
    }

    /// The result of a chain; `None` if it returns.
    fn follow(&self, chain: &Chain, flow: &NatFlow<'_>, jumps: u32) -> Option<Rewrite> {
        for rule in &chain.rules {
            self.steps.set(self.steps.get().saturating_add(rule.weight()));
            if self.is_exhausted() {
                return Some(Rewrite::Unknown);
            }
            if matches!(rule.action, Action::Continue) || rule.tests.iter().any(|test| test.passes(flow) == Some(false))
            {
                continue;
            }
            if rule.tests.iter().any(|test| test.passes(flow).is_none()) || jumps == 0 {
                return Some(Rewrite::Unknown);
            }
            let target = |name: &String| {
                let place = self.places.get(&(chain.table.clone(), name.clone()))?;
                self.chains.get(*place)
            };
            let leads = |name| target(name).map_or(Some(Rewrite::Unknown), |to| self.follow(to, flow, jumps - 1));
            match &rule.action {
                Action::Continue => {}
                Action::Accept => return Some(Rewrite::None),
                Action::Return => return None,
                Action::Rewrite(rewrite) => return Some(rewrite.clone()),
                Action::Goto(name) => return leads(name),
                Action::Jump(name) => {
                    if let Some(rewrite) = leads(name) {
                        return Some(rewrite);
                    }
                }
            }
        }
        None
    }
}

impl Rule {
    /// Returns the rule and its values as a number of steps.
    fn weight(&self) -> u64 {
        let values = |test: &Test| test.values.as_ref().map_or(0, |values| values.len() as u64);
        1 + self.tests.iter().map(values).sum::<u64>()
    }
}

/// The action of a statement; `None` for a match and for statements that let the packet pass.
fn action(statement: &Json, place: &str) -> Option<Action> {
    let (name, of) = statement.as_object()?.iter().next()?;
    let target = || word(of, "target").to_owned();
    Some(match name.as_str() {
        "match" | "counter" | "log" | "comment" | "limit" | "quota" => return None,
        "accept" | "drop" | "reject" => Action::Accept,
        "return" => Action::Return,
        "jump" => Action::Jump(target()),
        "goto" => Action::Goto(target()),
        "masquerade" => Action::Rewrite(Rewrite::Masquerade(place.to_owned())),
        "dnat" | "snat" | "redirect" => Action::Rewrite(rewrite_of(of, place)),
        _ => Action::Rewrite(Rewrite::Unknown),
    })
}

fn rewrite_of(of: &Json, place: &str) -> Rewrite {
    let addrs = of.get("addr").map(addresses);
    let ports = of.get("port").map(numbers);
    if addrs == Some(None) || ports == Some(None) {
        return Rewrite::Unknown;
    }
    let port = |number: u64| u16::try_from(number).unwrap_or(u16::MAX);
    let ports = ports.flatten().map(|(first, last)| (port(first), port(last)));
    Rewrite::To(RewriteTarget { addrs: addrs.flatten(), ports, place: place.to_owned() })
}

fn test(of: &Json) -> Test {
    let (left, right) = (of.get("left").unwrap_or(&Json::Null), of.get("right").unwrap_or(&Json::Null));
    let (op, mut field) = (word(of, "op"), field(left, right));
    if !matches!(op, "==" | "!=") && field != Field::Always {
        field = Field::Unknown;
    }
    Test { field, is_not: op == "!=", values: values(right) }
}

/// The field that a match looks at.
fn field(left: &Json, right: &Json) -> Field {
    let key = |kind: &str, member: &str| left.get(kind).and_then(|of| of.get(member)).and_then(Json::as_str);
    if let Some(protocol) = key("payload", "protocol") {
        let number = match protocol {
            "tcp" => TCP,
            "udp" => UDP,
            "th" | "ip" | "ip6" => 0,
            _ => return Field::Unknown,
        };
        return match (protocol, key("payload", "field")) {
            ("ip" | "ip6", Some("saddr")) => Field::From,
            ("ip" | "ip6", Some("daddr")) => Field::To,
            ("ip" | "ip6", Some("protocol" | "nexthdr")) => Field::Protocol,
            ("tcp" | "udp" | "th", Some("sport")) => Field::FromPort(number),
            ("tcp" | "udp" | "th", Some("dport")) => Field::ToPort(number),
            _ => Field::Unknown,
        };
    }
    let has = |wanted: &str| match right {
        Json::Array(all) => all.iter().any(|one| one == wanted),
        one => one == wanted,
    };
    match (key("meta", "key"), key("ct", "key"), key("fib", "result")) {
        (Some("l4proto"), ..) => Field::Protocol,
        (Some("nfproto" | "protocol"), ..) => Field::Family,
        (Some("iif" | "iifname"), ..) => Field::Iif,
        (Some("oif" | "oifname"), ..) => Field::Oif,
        (_, Some("state"), _) if has("new") => Field::Always,
        (_, Some("direction"), _) if has("original") => Field::Always,
        (.., Some("type")) if left.pointer("/fib/flags") == Some(&serde_json::json!(["daddr"])) => {
            if right == "local" {
                Field::ToUs
            } else {
                Field::Unknown
            }
        }
        _ => Field::Unknown,
    }
}

/// The values of a match; `None` if one is unknown.
fn values(right: &Json) -> Option<Vec<MatchValue>> {
    match right.get("set") {
        Some(Json::Array(all)) => all.iter().map(value).collect(),
        Some(_) => None,
        None => Some(vec![value(right)?]),
    }
}

fn value(value: &Json) -> Option<MatchValue> {
    if let Some((first, last)) = addresses(value) {
        return Some(MatchValue::Addrs(first, last));
    }
    if let Some((first, last)) = numbers(value) {
        return Some(MatchValue::Numbers(first, last));
    }
    let name = value.as_str().filter(|name| !name.starts_with('@'))?;
    Some(match (name, name.strip_suffix('*')) {
        ("tcp", _) => MatchValue::Numbers(TCP.into(), TCP.into()),
        ("udp", _) => MatchValue::Numbers(UDP.into(), UDP.into()),
        (_, Some(start)) => MatchValue::NameStart(start.to_owned()),
        _ => MatchValue::Name(name.to_owned()),
    })
}

/// Parses an address, a prefix or a range.
fn addresses(value: &Json) -> Option<(Addr, Addr)> {
    let one = |addr: &Json| addr.as_str()?.parse::<Addr>().ok();
    if let Some(range) = value.get("range") {
        return Some((one(range.get(0)?)?, one(range.get(1)?)?));
    }
    if let Some(prefix) = value.get("prefix") {
        let length = u32::try_from(prefix.get("len")?.as_u64()?).ok()?;
        return Some(match one(prefix.get("addr")?)? {
            Addr::V4(first) => {
                let rest = u32::MAX.checked_shr(length).unwrap_or(0);
                let last = u32::from_be_bytes(first) | rest;
                (Addr::V4(first), Addr::V4(last.to_be_bytes()))
            }
            Addr::V6(first) => {
                let rest = u128::MAX.checked_shr(length).unwrap_or(0);
                let last = u128::from_be_bytes(first) | rest;
                (Addr::V6(first), Addr::V6(last.to_be_bytes()))
            }
        });
    }
    one(value).map(|addr| (addr, addr))
}

/// Parses a number or a range.
fn numbers(value: &Json) -> Option<(u64, u64)> {
    match value.get("range") {
        Some(range) => Some((range.get(0)?.as_u64()?, range.get(1)?.as_u64()?)),
        None => value.as_u64().map(|number| (number, number)),
    }
}

impl Test {
    /// Whether the flow passes the test; `None` if that is unknown.
    fn passes(&self, flow: &NatFlow<'_>) -> Option<bool> {
        let is_other = |number: u8| number != 0 && number != flow.l4;
        let is_met = match self.field {
            Field::Always => return Some(true),
            Field::Unknown => return None,
            // The packet lacks the header that is tested.
            Field::FromPort(number) | Field::ToPort(number) if is_other(number) => return Some(false),
            Field::ToUs => flow.is_to_us,
            Field::Protocol => self.has_number(flow.l4.into())?,
            Field::FromPort(_) => self.has_number(flow.from.1.into())?,
            Field::ToPort(_) => self.has_number(flow.to.1.into())?,
            Field::From => self.has_addr(flow.from.0)?,
            Field::To => self.has_addr(flow.to.0)?,
            Field::Iif => self.has_name(flow.iif?)?,
            Field::Oif => self.has_name(flow.oif?)?,
            Field::Family => match flow.to.0.unmapped() {
                Addr::V4(_) => self.has_name("ipv4")? || self.has_name("ip")?,
                Addr::V6(_) => self.has_name("ipv6")? || self.has_name("ip6")?,
            },
        };
        Some(is_met != self.is_not)
    }

    fn has_number(&self, number: u64) -> Option<bool> {
        let mut values = self.values.as_ref()?.iter();
        values.try_fold(false, |is_met, value| match value {
            MatchValue::Numbers(first, last) => Some(is_met || (*first..=*last).contains(&number)),
            _ => None,
        })
    }

    fn has_addr(&self, addr: Addr) -> Option<bool> {
        let addr = addr.unmapped();
        let is_in = |first: &Addr, last: &Addr| first.bits() == addr.bits() && (*first..=*last).contains(&addr);
        let mut values = self.values.as_ref()?.iter();
        values.try_fold(false, |is_met, value| match value {
            MatchValue::Addrs(first, last) => Some(is_met || is_in(first, last)),
            _ => None,
        })
    }

    fn has_name(&self, name: &str) -> Option<bool> {
        let mut values = self.values.as_ref()?.iter();
        values.try_fold(false, |is_met, value| match value {
            MatchValue::Name(other) => Some(is_met || other == name),
            MatchValue::NameStart(start) => Some(is_met || name.starts_with(start.as_str())),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// Rules in the format of nft 1.0.6.
    fn rules(of_pre: &[&str], of_post: &[&str], of_x: &[&str]) -> NatRules {
        let chain =
            |name: &str, hook: &str| format!(r#"{{"chain":{{"family":"ip","table":"n","name":"{name}"{hook}}}}}"#);
        let hook = |hook: &str| format!(r#","type":"nat","hook":"{hook}","prio":-100"#);
        let mut objects = vec![chain("x", ""), chain("c", &hook("prerouting")), chain("p", &hook("postrouting"))];
        for (name, all) in [("c", of_pre), ("p", of_post), ("x", of_x)] {
            objects.extend(all.iter().map(|expressions| {
                format!(
                    r#"{{"rule":{{"family":"ip","table":"n","chain":"{name}","handle":7,"expr":[{expressions}]}}}}"#
                )
            }));
        }
        NatRules::parse(format!(r#"{{"nftables":[{}]}}"#, objects.join(",")).as_bytes()).unwrap()
    }

    fn flow() -> NatFlow<'static> {
        let (from, to) = ((Addr::V4([192, 0, 2, 10]), 40_000), (Addr::V4([192, 0, 2, 1]), 514));
        NatFlow { l4: UDP, from, to, iif: Some("c1"), oif: Some("s1"), is_to_us: true }
    }

    fn to(rewrite: &Rewrite) -> String {
        match rewrite {
            Rewrite::None => "none".to_owned(),
            Rewrite::Unknown => "unknown".to_owned(),
            Rewrite::Masquerade(_) => "masquerade".to_owned(),
            Rewrite::To(RewriteTarget { addrs, ports, .. }) => {
                format!("{} {ports:?}", addrs.map_or("own".to_owned(), |(first, _)| first.to_string()))
            }
        }
    }

    const PORT: &str = r#"{"match":{"op":"==","left":{"payload":{"protocol":"udp","field":"dport"}},"right":514}}"#;
    const OTHER: &str = r#"{"match":{"op":"==","left":{"payload":{"protocol":"tcp","field":"dport"}},"right":514}}"#;
    const MARK: &str = r#"{"match":{"op":"==","left":{"meta":{"key":"mark"}},"right":5}}"#;
    const IIF: &str = r#"{"match":{"op":"==","left":{"meta":{"key":"iifname"}},"right":"c*"}}"#;
    const NET: &str = r#"{"match":{"op":"!=","left":{"payload":{"protocol":"ip","field":"saddr"}},
                         "right":{"set":[{"prefix":{"addr":"10.0.0.0","len":8}},"192.0.2.9"]}}}"#;
    const LOCAL: &str = r#"{"match":{"op":"==","left":{"fib":{"result":"type","flags":["daddr"]}},"right":"local"}}"#;
    const NEW: &str = r#"{"match":{"op":"in","left":{"ct":{"key":"state"}},"right":"new"}}"#;
    const DNAT: &str = r#"{"counter":{"packets":0,"bytes":0}},{"dnat":{"addr":"10.1.1.1","port":80}}"#;
    const MAP: &str = r#"{"dnat":{"addr":{"map":{"key":{"payload":{}},"data":{"set":[[77,"10.0.0.3"]]}}}}}"#;

    #[test]
    fn the_first_rule_that_matches() {
        for (of_pre, expected) in [
            (vec![format!("{OTHER},{DNAT}"), format!("{PORT},{DNAT}")], "10.1.1.1 Some((80, 80))"),
            (vec![format!("{IIF},{NET},{LOCAL},{NEW},{DNAT}")], "10.1.1.1 Some((80, 80))"),
            (
                vec![format!("{MARK},{OTHER},{DNAT}"), format!(r#"{PORT},{{"redirect":{{"port":5353}}}}"#)],
                "own Some((5353, 5353))",
            ),
            (vec![format!("{MARK},{DNAT}")], "unknown"),
            (vec![format!(r#"{MARK},{{"counter":null}}"#), PORT.to_owned()], "none"),
            (vec![MAP.to_owned()], "unknown"),
            (vec![format!(r#"{PORT},{{"jump":{{"target":"x"}}}}"#)], "10.9.9.9 None"),
            (vec![format!(r#"{PORT},{{"jump":{{"target":"y"}}}}"#)], "unknown"),
            (vec![format!(r#"{PORT},{{"accept":null}}"#), DNAT.to_owned()], "none"),
            (vec![r#"{"xt":null}"#.to_owned()], "unknown"),
            (vec![], "none"),
        ] {
            let of_pre: Vec<&str> = of_pre.iter().map(String::as_str).collect();
            let rules = rules(&of_pre, &[], &[r#"{"dnat":{"addr":"10.9.9.9"}}"#]);
            assert_eq!(to(&rules.rewrite(NatHook::Prerouting, &flow())), expected, "{of_pre:?}");
        }
    }

    #[test]
    fn sources_and_interfaces() {
        let oif = r#"{"match":{"op":"==","left":{"meta":{"key":"oif"}},"right":"s1"}},{"masquerade":null}"#;
        let rules = rules(&[], &[oif], &[]);
        assert_eq!(to(&rules.rewrite(NatHook::Postrouting, &flow())), "masquerade");
        assert_eq!(to(&rules.rewrite(NatHook::Prerouting, &flow())), "none");
        assert_eq!(to(&rules.rewrite(NatHook::Postrouting, &NatFlow { oif: None, ..flow() })), "unknown");
        assert_eq!(to(&rules.rewrite(NatHook::Postrouting, &NatFlow { oif: Some("s2"), ..flow() })), "none");
        let six = (Addr::V6([1; 16]), 514);
        assert_eq!(to(&rules.rewrite(NatHook::Postrouting, &NatFlow { to: six, ..flow() })), "none", "another family");
    }

    #[test]
    fn chains_that_multiply_end() {
        // 12 chains, each with 40 jumps to the next: 40^12 ways.
        let name = |at: usize| if at == 0 { "c".to_owned() } else { format!("y{at}") };
        let chain = |at: usize| {
            let hook = if at == 0 { r#","type":"nat","hook":"prerouting","prio":-100"# } else { "" };
            format!(r#"{{"chain":{{"family":"ip","table":"n","name":"{}"{hook}}}}}"#, name(at))
        };
        let rule = |at: usize| {
            let (from, to) = (name(at), name(at + 1));
            let jump = format!(r#"{{"jump":{{"target":"{to}"}}}}"#);
            format!(r#"{{"rule":{{"family":"ip","table":"n","chain":"{from}","handle":7,"expr":[{jump}]}}}}"#)
        };
        let mut objects: Vec<String> = (0..=12).map(chain).collect();
        objects.extend((0..12).flat_map(|at| std::iter::repeat_n(rule(at), 40)));
        let rules = NatRules::parse(format!(r#"{{"nftables":[{}]}}"#, objects.join(",")).as_bytes()).unwrap();
        assert!(!rules.is_exhausted());
        assert_eq!(to(&rules.rewrite(NatHook::Prerouting, &flow())), "unknown");
        assert!(rules.is_exhausted());
    }

    proptest! {
        #[test]
        fn any_text(text in "[\\[\\]{}\":,a-z0-9]{0,60}") {
            let _ = NatRules::parse(text.as_bytes());
        }
    }
}
