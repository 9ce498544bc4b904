//! The rules of one namespace that can have dropped packets, listed repeatedly.
//!
//! The packets of a round are compared with two listings: one from before the round began, and one from after it
//! ended. A counter's increase between them is at least the number of packets that its rule dropped in the round.
//! Listings are made after the counts are read, so the one from before the round is the last but one.

use crate::nft::{self, ListingBounds};
use host::drop_rules::{self, DropRule};
use host::rule_changes::{Changed, RuleChanges};
use host::rule_matches::PacketFacts;
use host::rule_texts::RuleTexts;
use record::rows::{DroppingRule, RuleBasis};
use record::text::put_u64;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;
use sys::{Errno, Host, SysError};

/// Limits for listing a namespace other than the run's own, whose owner may try to delay the run.
const OTHERS: ListingBounds = ListingBounds { bytes_max: 256 << 10, patience: Duration::from_millis(200) };
/// Maximum number of rules that can drop in one listing, and maximum length of each rule's text.
///
/// Bound: rules of a listing that can drop packets. Beyond: further rules are not named; counted. By: the owner of a
/// namespace, for that namespace.
const RULES_MAX: usize = 1024;
/// Bound: bytes of the text of such a rule. Beyond: the text is cut. By: the owner of a namespace, for that namespace.
const TEXT_BYTES_MAX: usize = 1024;
/// Maximum number of candidates whose location is shown.
const SHOWN_MAX: usize = 4;

/// The rules at one time.
struct Listing {
    rules: Vec<DropRule>,
    /// Texts of these rules, by table and handle.
    texts: HashMap<(String, u64), Box<str>>,
}

impl Listing {
    fn new(rules: Vec<DropRule>, all: &RuleTexts) -> Listing {
        let text = |rule: &DropRule| {
            let (table, handle) = (rule.table.clone(), rule.handle?);
            let text = all.of(&table, handle).filter(|text| text.len() <= TEXT_BYTES_MAX)?;
            Some(((table, handle), text.into()))
        };
        Listing { texts: rules.iter().filter_map(text).collect(), rules }
    }
}

/// The rules of one namespace.
pub(super) struct DroppingRules {
    pub(super) netns_id: u64,
    /// `None` in a replay.
    changes: Option<RuleChanges>,
    before: Rc<Listing>,
    between: Rc<Listing>,
    now: Rc<Listing>,
    /// True if rules changed between consecutive listings.
    changed_before: bool,
    changed_since: bool,
    bounds: ListingBounds,
}

/// The packets whose rule is sought.
pub(super) struct DroppedPackets<'p> {
    /// Names of the hooks that may have dropped them.
    pub(super) hooks: &'p [&'p str],
    /// Values that the packets share.
    pub(super) facts: PacketFacts,
    /// Their number; `None` if the rules' counters cannot be compared with it.
    pub(super) count: Option<u64>,
}

/// The rule or rules that can have dropped packets.
#[derive(Debug, PartialEq)]
pub(super) struct FoundRule {
    text: Vec<u8>,
    basis: RuleBasis,
    candidates: u64,
    /// The rule, if there is exactly one.
    rule: Option<(String, String, Option<u64>)>,
}

impl FoundRule {
    /// The rule in the form that rows have.
    pub(super) fn shown(&self) -> DroppingRule<'_> {
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

impl DroppingRules {
    /// Lists the rules of the calling thread's namespace, and watches for changes from now on. `is_own` is true for
    /// the run's own namespace.
    pub(super) fn open(host: &Host, netns_id: u64, is_own: bool) -> Result<DroppingRules, SysError> {
        let bounds = if is_own { ListingBounds::USUAL } else { OTHERS };
        let changes = if host.is_replay() { None } else { Some(RuleChanges::open()?) };
        let (_, listing) = list(host, netns_id, bounds, false)?;
        let listing = Rc::new(listing);
        Ok(DroppingRules {
            netns_id,
            changes,
            before: Rc::clone(&listing),
            between: Rc::clone(&listing),
            now: listing,
            changed_before: false,
            changed_since: false,
            bounds,
        })
    }

    /// True if rules have changed since the last call, or if that is unknown.
    pub(super) fn have_changed(&mut self) -> bool {
        self.changes
            .as_mut()
            .is_some_and(|changes| changes.have_come().unwrap_or(Changed::Unlistable) != Changed::Never)
    }

    /// Lists the rules of the calling thread's namespace again.
    pub(super) fn list_again(&mut self, host: &Host) -> Result<(), SysError> {
        let changed = self.have_changed();
        let (changed, listing) = list(host, self.netns_id, self.bounds, changed)?;
        self.changed_before = self.changed_since;
        self.changed_since = changed;
        self.before = std::mem::replace(&mut self.between, std::mem::replace(&mut self.now, Rc::new(listing)));
        Ok(())
    }

    /// Notes that the packets of a round are compared with a listing from before its end, so that counters are
    /// inconclusive.
    pub(super) fn note_change(&mut self) {
        self.changed_since = true;
    }

    /// Forgets the earlier listings, because no packet that arrives from now on can belong to them.
    pub(super) fn forget_earlier(&mut self) {
        (self.before, self.between) = (Rc::clone(&self.now), Rc::clone(&self.now));
        (self.changed_before, self.changed_since) = (false, false);
    }

    /// Finds the rule for these packets; `None` if no listed rule can have dropped them.
    pub(super) fn find(&self, packets: &DroppedPackets<'_>) -> Option<FoundRule> {
        let is_steady = !self.changed_before && !self.changed_since;
        let mut candidates = Vec::new();
        for rule in &self.now.rules {
            let moved = packets.count.filter(|_| is_steady).and_then(|_| self.moved(rule));
            if rule.can_drop(packets.hooks, &packets.facts) && moved != Some(0) {
                candidates.push((rule, moved));
            }
        }
        let gone = [&self.before, &self.between].into_iter().flat_map(|listing| &listing.rules);
        for rule in gone {
            let is_known = candidates.iter().any(|(known, _)| known.is_same(rule));
            let is_still_there = is_known || self.now.rules.iter().any(|now| now.is_same(rule));
            if !is_still_there && rule.can_drop(packets.hooks, &packets.facts) {
                candidates.push((rule, None));
            }
        }
        match candidates.as_slice() {
            [] => None,
            [(rule, _)] => {
                let basis = if is_steady { RuleBasis::Certain } else { RuleBasis::Candidates };
                Some(self.one(rule, basis, 1))
            }
            _ => Some(self.several(packets, &candidates)),
        }
    }

    /// The increase of a rule's counter since before the round; for a new rule, its entire count.
    fn moved(&self, rule: &DropRule) -> Option<u64> {
        let now = rule.counted?;
        // A single listing, made after the packets arrived, shows no movement.
        if Rc::ptr_eq(&self.before, &self.now) {
            return None;
        }
        match self.before.rules.iter().find(|before| before.is_same(rule)) {
            // A counter that was reset is inconclusive.
            Some(before) => now.checked_sub(before.counted?),
            None => Some(now),
        }
    }

    /// Returns how many packets the rule's counter saw between the last two listings. This is close to the round's
    /// count, because a listing follows each reading of the counts.
    fn moved_lately(&self, rule: &DropRule) -> Option<u64> {
        let before = self.between.rules.iter().find(|before| before.is_same(rule))?;
        rule.counted?.checked_sub(before.counted?)
    }

    fn several(&self, packets: &DroppedPackets<'_>, candidates: &[(&DropRule, Option<u64>)]) -> FoundRule {
        let count = candidates.len() as u64;
        let agrees = |(rule, moved): &&(&DropRule, Option<u64>)| {
            let Some(dropped) = packets.count.filter(|_| rule.counts_drops) else { return false };
            *moved == Some(dropped) || self.moved_lately(rule).is_some_and(|lately| is_about(lately, dropped))
        };
        let mut agreeing = candidates.iter().filter(agrees);
        if let (Some((rule, _)), None) = (agreeing.next(), agreeing.next()) {
            return self.one(rule, RuleBasis::Counter, count);
        }
        // A rule with a `drop` verdict explains a drop. Rules that drop only what they fail to process are exceptions.
        let mut saying = candidates.iter().filter(|(rule, _)| !rule.drops_on_failure);
        if let (Some((rule, moved)), None) = (saying.next(), saying.next()) {
            // Its counter saw at least as many packets as were dropped.
            let explains = rule.counts_drops && packets.count.is_some() && *moved >= packets.count;
            let basis = if explains { RuleBasis::Counter } else { RuleBasis::Candidates };
            return self.one(rule, basis, count);
        }
        let mut candidates = candidates.to_vec();
        candidates.sort_by_key(|(rule, _)| rule.drops_on_failure);
        let mut text = b"one of ".to_vec();
        put_u64(&mut text, count);
        let shown = candidates.iter().take(SHOWN_MAX).enumerate();
        for (at, (rule, _)) in shown {
            text.extend_from_slice(if at == 0 { b": " } else { b"; " });
            put_place(&mut text, rule);
        }
        if candidates.len() > SHOWN_MAX {
            text.extend_from_slice(b"; ...");
        }
        FoundRule { text, basis: RuleBasis::Candidates, candidates: count, rule: None }
    }

    fn one(&self, rule: &DropRule, basis: RuleBasis, candidates: u64) -> FoundRule {
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

/// True if a counter that was read a few milliseconds before or after the drops can have counted them. Packets keep
/// arriving between the two readings.
fn is_about(counted: u64, dropped: u64) -> bool {
    counted.abs_diff(dropped) <= (dropped / 8).max(2)
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

/// Lists the rules, or reads a listing from the recording, where it follows a number that is 1 if rules have changed
/// since the previous listing.
fn list(host: &Host, netns_id: u64, bounds: ListingBounds, changed: bool) -> Result<(bool, Listing), SysError> {
    let mut bytes = Vec::new();
    host.bytes(&format!("drop rules@{netns_id}"), "", &mut bytes, |into| {
        into.extend_from_slice(&u64::from(changed).to_ne_bytes());
        nft::put_ruleset(true, bounds, into).inspect_err(|_| into.clear())
    })?;
    let malformed = || SysError::new("read", "nft's list of rules", Errno::INVAL);
    let (changed, listing) = bytes.split_first_chunk().ok_or_else(malformed)?;
    let (json, texts) = nft::split_ruleset(listing).ok_or_else(malformed)?;
    let rules = drop_rules::parse(json).ok_or_else(malformed)?;
    if rules.len() > RULES_MAX {
        return Err(SysError::new("read", "nft's list of rules", Errno::FBIG));
    }
    Ok((u64::from_ne_bytes(*changed) != 0, Listing::new(rules, &RuleTexts::parse(texts))))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn listing(rules: &[(u64, u64)], with_policy: bool) -> Rc<Listing> {
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
        let rules = drop_rules::parse(format!("{{\"nftables\":[{}]}}", objects.join(",")).as_bytes()).unwrap();
        let texts = b"table inet t { # handle 1\n\t\tcounter drop # handle 4\n";
        Rc::new(Listing::new(rules, &RuleTexts::parse(texts)))
    }

    fn rules(before: Rc<Listing>, now: Rc<Listing>) -> DroppingRules {
        DroppingRules {
            netns_id: 1,
            changes: None,
            before,
            between: Rc::clone(&now),
            now,
            changed_before: false,
            changed_since: false,
            bounds: OTHERS,
        }
    }

    fn find(rules: &DroppingRules, count: Option<u64>) -> Option<(String, &'static str, u64)> {
        let packets = DroppedPackets { hooks: &["input"], facts: PacketFacts::default(), count };
        let found = rules.find(&packets)?;
        Some((String::from_utf8(found.text.clone()).unwrap(), found.basis.name(), found.candidates))
    }

    #[test]
    fn counters_exclude_and_agree() {
        let found = |before: &[(u64, u64)], now: &[(u64, u64)], policy, count| {
            find(&rules(listing(before, policy), listing(now, policy)), count)
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
    fn rules_that_change_are_candidates() {
        let mut changed = rules(listing(&[(4, 5)], false), listing(&[(4, 9)], false));
        changed.changed_before = true;
        assert_eq!(find(&changed, Some(4)).unwrap().1, "candidates");
        let gone = rules(listing(&[(4, 5), (9, 1)], false), listing(&[(4, 9)], false));
        assert_eq!(find(&gone, Some(3)).unwrap().0, "one of 2: inet t i?x handle 4; inet t i?x handle 9");
    }
}
