//! Finds the rules that can have dropped packets.
//!
//! The packets of a round are compared with two listings: one from before the round began, and one from after it
//! ended. A counter's increase between them is at least the number of packets that its rule dropped in the round.
//! Listings are made after the counts are read, so the one from before the round is the last but one.

use super::listings::{Listings, RuleSet};
use crate::nft::ListingBounds;
use host::drop_rules::{self, DropRule};
use host::rule_matches::PacketFacts;
use host::rule_texts::RuleTexts;
use record::rows::{DroppingRule, RuleBasis};
use record::text::put_u64;
use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;
use sys::Errno;

/// Bound: rules of a listing that can drop packets. Beyond: the listing fails, and rows of the namespace have no rule;
/// counted (exit code 3). By: the owner of a namespace, for that namespace.
const DROP_RULES_MAX: usize = 1024;
/// Bound: bytes of the text of such a rule. Beyond: only its table, chain and handle are shown. By: the owner of a
/// namespace, for that namespace.
const TEXT_BYTES_MAX: usize = 1024;
/// Maximum number of candidates whose location is shown.
const SHOWN_MAX: usize = 4;

/// The rules that can drop packets.
pub(super) struct DropRules {
    rules: Vec<DropRule>,
    /// Texts of these rules, by table and handle.
    texts: HashMap<(String, u64), Box<str>>,
}

impl RuleSet for DropRules {
    const NAME: &'static str = "drop";
    const HEAD: Range<usize> = 3..4;
    const OTHERS: ListingBounds = ListingBounds { bytes_max: 256 << 10, patience: Duration::from_millis(200) };
    const LISTINGS_MAX: usize = 3;

    fn parse(json: &[u8], all: &RuleTexts) -> Result<DropRules, Errno> {
        let rules = drop_rules::parse(json).ok_or(Errno::INVAL)?;
        if rules.len() > DROP_RULES_MAX {
            return Err(Errno::FBIG);
        }
        let text = |rule: &DropRule| {
            let (table, handle) = (rule.table.clone(), rule.handle?);
            let text = all.of(&table, handle).filter(|text| text.len() <= TEXT_BYTES_MAX)?;
            Some(((table, handle), text.into()))
        };
        Ok(DropRules { texts: rules.iter().filter_map(text).collect(), rules })
    }

    fn count(&self) -> usize {
        self.rules.len()
    }
}

impl DropRules {
    fn get(&self, other: &DropRule) -> Option<&DropRule> {
        self.rules.iter().find(|rule| rule.is_same(other))
    }
}

/// The packets whose rule is sought.
pub(super) struct DroppedPackets<'p> {
    /// Names of the hooks that may have dropped them.
    pub(super) hooks: &'p [&'p str],
    /// Values that the packets share.
    pub(super) facts: PacketFacts,
    /// Their number; `None` if the rules' counters cannot be compared with it.
    pub(super) count: Option<u64>,
    /// True if only the rule of the first packet is sought, whose values are in `facts`.
    pub(super) is_first: bool,
}

/// The rule or rules that can have dropped packets.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FoundRule {
    text: Vec<u8>,
    basis: RuleBasis,
    candidates: u64,
    /// The rule, if there is exactly one.
    rule: Option<(String, String, Option<u64>)>,
}

impl FoundRule {
    /// True if it is one rule, not several places.
    pub(super) fn is_one_rule(&self) -> bool {
        self.rule.is_some()
    }

    /// This rule as one of several candidates.
    pub(super) fn as_guess(&self) -> FoundRule {
        FoundRule { basis: RuleBasis::Candidates, candidates: self.candidates.max(2), ..self.clone() }
    }

    /// The rule in the form that rows have.
    pub(super) fn to_row(&self) -> DroppingRule<'_> {
        let rule = self.rule.as_ref();
        DroppingRule {
            text: &self.text,
            basis: self.basis,
            candidates: self.candidates,
            table: rule.map(|(table, ..)| table.as_str()),
            chain: rule.map(|(_, chain, _)| chain.as_str()),
            handle: rule.and_then(|(.., handle)| *handle),
        }
    }
}

/// A rule that can have dropped the packets, and the increase of its counter since before the round, if known.
type Candidate<'l> = (&'l DropRule, Option<u64>);

/// The rules that packets are compared with.
struct Candidates<'l> {
    /// At most three listings; of two, the first is also the one from before the round.
    listings: &'l Listings<DropRules>,
    now: &'l DropRules,
    /// True if rules did not change between these listings.
    is_steady: bool,
}

/// Finds the rule for these packets; `None` if no listed rule can have dropped them.
pub(super) fn find(listings: &Listings<DropRules>, packets: &DroppedPackets<'_>) -> Option<FoundRule> {
    let now = &listings.list.back()?.rules;
    let is_steady = !listings.list.iter().rev().take(2).any(|listing| listing.is_after_change);
    let candidates = Candidates { listings, now, is_steady };
    match candidates.list(packets).as_slice() {
        [] => None,
        [(rule, _)] => {
            let basis = if is_steady { RuleBasis::Certain } else { RuleBasis::Candidates };
            Some(candidates.name(rule, basis, 1))
        }
        several => Some(candidates.choose(packets, several)),
    }
}

impl<'l> Candidates<'l> {
    /// The rules of earlier listings, the oldest first.
    fn earlier(&self) -> impl Iterator<Item = &'l DropRules> {
        let list = &self.listings.list;
        list.iter().take(list.len().saturating_sub(1)).map(|listing| &listing.rules)
    }

    /// Lists the rules that can have dropped these packets: present ones, and then removed ones.
    fn list(&self, packets: &DroppedPackets<'_>) -> Vec<Candidate<'l>> {
        let mut candidates = Vec::new();
        for rule in &self.now.rules {
            let increase = packets.count.filter(|_| self.is_steady).and_then(|_| self.increase(rule));
            if rule.can_drop(packets.hooks, &packets.facts) && increase != Some(0) {
                candidates.push((rule, increase));
            }
        }
        for rule in self.earlier().flat_map(|listed| &listed.rules) {
            let is_known = candidates.iter().any(|(known, _)| known.is_same(rule)) || self.now.get(rule).is_some();
            if !is_known && rule.can_drop(packets.hooks, &packets.facts) {
                candidates.push((rule, None));
            }
        }
        if packets.is_first {
            remove_later(&mut candidates, &packets.facts);
        }
        candidates
    }

    /// The increase of a rule's counter since before the round; for a new rule, its entire count. A single listing,
    /// made after the packets arrived, shows no increase.
    fn increase(&self, rule: &DropRule) -> Option<u64> {
        let (now, before) = (rule.counted?, self.earlier().next()?);
        match before.get(rule) {
            // A counter that was reset is inconclusive.
            Some(before) => now.checked_sub(before.counted?),
            None => Some(now),
        }
    }

    /// The increase of a rule's counter between the last two listings. This is close to the number of packets of the
    /// round, because a listing follows each reading of the counts.
    fn last_increase(&self, rule: &DropRule) -> Option<u64> {
        let before = self.earlier().last().unwrap_or(self.now).get(rule)?;
        rule.counted?.checked_sub(before.counted?)
    }

    /// Chooses among several rules.
    fn choose(&self, packets: &DroppedPackets<'_>, candidates: &[Candidate<'_>]) -> FoundRule {
        let agrees = |(rule, increase): &&Candidate<'_>| {
            let Some(dropped) = packets.count.filter(|_| rule.counts_drops) else { return false };
            *increase == Some(dropped) || self.last_increase(rule).is_some_and(|last| is_about(last, dropped))
        };
        let count = candidates.len() as u64;
        if let Some((rule, _)) = only(candidates.iter().filter(agrees)) {
            return self.name(rule, RuleBasis::Counter, count);
        }
        // A rule with a `drop` verdict explains a drop. Rules that drop only what they fail to process are exceptions.
        if let Some((rule, increase)) = only(candidates.iter().filter(|(rule, _)| !rule.drops_on_failure)) {
            // Its counter saw at least as many packets as were dropped.
            let explains = rule.counts_drops && packets.count.is_some() && *increase >= packets.count;
            let basis = if explains { RuleBasis::Counter } else { RuleBasis::Candidates };
            return self.name(rule, basis, count);
        }
        FoundRule { text: places_of(candidates), basis: RuleBasis::Candidates, candidates: count, rule: None }
    }

    fn name(&self, rule: &DropRule, basis: RuleBasis, candidates: u64) -> FoundRule {
        let mut text = Vec::new();
        put_place(&mut text, rule);
        let words = rule.handle.and_then(|handle| self.now.texts.get(&(rule.table.clone(), handle)));
        if let Some(words) = words {
            text.extend_from_slice(b": ");
            text.extend_from_slice(words.as_bytes());
        }
        let rule = Some((rule.table.clone(), rule.chain.clone(), rule.handle));
        FoundRule { text, basis, candidates, rule }
    }
}

/// Removes the rules and the policy of a chain that a packet cannot reach, because an earlier rule certainly drops it.
fn remove_later(candidates: &mut Vec<Candidate<'_>>, facts: &PacketFacts) {
    let Some(at) = candidates.iter().position(|(rule, _)| rule.must_drop(facts)) else { return };
    let Some((first, _)) = candidates.get(at).cloned() else { return };
    let mut index = 0;
    candidates.retain(|(rule, _)| {
        let is_same_chain = (&rule.table, &rule.chain) == (&first.table, &first.chain);
        let is_later = index > at || rule.handle.is_none();
        index += 1;
        !(is_same_chain && is_later)
    });
}

/// The only item; `None` if there are several or none.
fn only<T>(mut items: impl Iterator<Item = T>) -> Option<T> {
    let first = items.next()?;
    items.next().is_none().then_some(first)
}

/// True if a counter that was read a few milliseconds before or after the drops can have counted them. Packets keep
/// arriving between the two readings.
fn is_about(counted: u64, dropped: u64) -> bool {
    counted.abs_diff(dropped) <= (dropped / 8).max(2)
}

/// The places of several rules; those that drop only what they fail to process come last.
fn places_of(candidates: &[Candidate<'_>]) -> Vec<u8> {
    let mut candidates = candidates.to_vec();
    candidates.sort_by_key(|(rule, _)| rule.drops_on_failure);
    let mut text = b"one of ".to_vec();
    put_u64(&mut text, candidates.len() as u64);
    for (at, (rule, _)) in candidates.iter().take(SHOWN_MAX).enumerate() {
        text.extend_from_slice(if at == 0 { b": " } else { b"; " });
        put_place(&mut text, rule);
    }
    if candidates.len() > SHOWN_MAX {
        text.extend_from_slice(b"; ...");
    }
    text
}

/// The location of a rule: `inet t chain handle 4`, `inet t chain policy drop`. Bytes that nft does not accept in
/// names become question marks, so that no name can look like several locations.
fn put_place(text: &mut Vec<u8>, rule: &DropRule) {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_./\\-".contains(byte);
    let (family, table) = rule.table.split_once(' ').unwrap_or_default();
    for name in [family, table, &rule.chain] {
        text.extend(name.bytes().map(|byte| if is_plain(&byte) { byte } else { b'?' }));
        text.push(b' ');
    }
    match rule.handle {
        Some(handle) => {
            text.extend_from_slice(b"handle ");
            put_u64(text, handle);
        }
        None => text.extend_from_slice(b"policy drop"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::listings::Listing;
    use super::*;

    fn rules(rules: &[(u64, u64)], with_policy: bool) -> DropRules {
        let mut objects = vec![format!(
            "{{\"chain\":{{\"family\":\"inet\",\"table\":\"t\",\"name\":\"i;x\",\"hook\":\"input\",\
             \"policy\":\"{}\"}}}}",
            if with_policy { "drop" } else { "accept" }
        )];
        let of_rule = |(handle, packets): &(u64, u64)| {
            format!(
                "{{\"rule\":{{\"family\":\"inet\",\"table\":\"t\",\"chain\":\"i;x\",\"handle\":{handle},\"expr\":\
                 [{{\"counter\":{{\"packets\":{packets}}}}},{{\"drop\":null}}]}}}}"
            )
        };
        objects.extend(rules.iter().map(of_rule));
        let texts = b"table inet t { # handle 1\n\t\tcounter drop # handle 4\n";
        let json = format!("{{\"nftables\":[{}]}}", objects.join(","));
        DropRules::parse(json.as_bytes(), &RuleTexts::parse(texts)).unwrap()
    }

    /// Listings from before the round, from its end, and from shortly after that.
    fn listings(before: &[(u64, u64)], now: &[(u64, u64)], with_policy: bool) -> Listings<DropRules> {
        let mut listings = Listings::default();
        for listed in [before, now, now] {
            listings.add(Listing::new(0, false, rules(listed, with_policy)));
        }
        listings
    }

    fn found(listings: &Listings<DropRules>, count: Option<u64>) -> Option<(String, &'static str, u64)> {
        let packets = DroppedPackets { hooks: &["input"], facts: PacketFacts::default(), count, is_first: false };
        let found = find(listings, &packets)?;
        Some((String::from_utf8(found.text.clone()).unwrap(), found.basis.name(), found.candidates))
    }

    #[test]
    fn counters_exclude_and_agree() {
        let found = |before: &[(u64, u64)], now: &[(u64, u64)], with_policy, count| {
            found(&listings(before, now, with_policy), count)
        };
        let one = |basis, candidates| Some(("inet t i?x handle 4: counter drop".to_owned(), basis, candidates));
        assert_eq!(found(&[(4, 5), (5, 9)], &[(4, 15), (5, 9)], false, Some(10)), one("certain", 1));
        assert_eq!(found(&[(4, 5), (5, 9)], &[(4, 15), (5, 19)], true, Some(20)).unwrap().1, "candidates");
        assert_eq!(found(&[(4, 5), (5, 9)], &[(4, 15), (5, 20)], true, Some(10)), one("counter", 3));
        let several = "one of 2: inet t i?x policy drop; inet t i?x handle 4".to_owned();
        assert_eq!(found(&[(4, 5)], &[(4, 15)], true, Some(9)), Some((several, "candidates", 2)));
        assert_eq!(found(&[(4, 5)], &[(4, 5)], false, Some(9)), None, "another one dropped them");
        assert_eq!(found(&[(4, 5)], &[(4, 5)], false, None), one("certain", 1), "counters of another time");
        assert_eq!(found(&[(4, 50)], &[(4, 5)], false, Some(5)), one("certain", 1), "set back");
    }

    #[test]
    fn the_rule_of_the_first_packet_comes_before_the_policy() {
        let listings = listings(&[(4, 5), (5, 7)], &[(4, 15), (5, 8)], true);
        let text = |is_first| {
            let (facts, count) = (PacketFacts::default(), Some(20));
            find(&listings, &DroppedPackets { hooks: &["input"], facts, count, is_first }).unwrap().text
        };
        assert!(text(false).starts_with(b"one of 3"));
        assert_eq!(text(true), b"inet t i?x handle 4: counter drop");
    }

    #[test]
    fn rules_that_change_are_candidates() {
        let mut changed = listings(&[(4, 5)], &[(4, 9)], false);
        assert_eq!(found(&changed, Some(4)).unwrap().1, "certain");
        changed.note_change();
        assert_eq!(found(&changed, Some(4)).unwrap().1, "candidates");
        changed.forget_earlier();
        assert_eq!(found(&changed, Some(4)).unwrap().1, "certain");
        let removed = listings(&[(4, 5), (9, 1)], &[(4, 9)], false);
        assert_eq!(found(&removed, Some(3)).unwrap().0, "one of 2: inet t i?x handle 4; inet t i?x handle 9");
    }
}
