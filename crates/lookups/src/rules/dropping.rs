//! Adds the rule that dropped packets to rows, before filter and columns see them. Only for runs that display rules or
//! filter by them.

use super::candidates::{DropRules, DroppedPackets, FoundRule, find};
use super::namespaces::{FailedRows, NetnsRules, NotListed};
use crate::session::Session;
use host::rule_matches::PacketFacts;
use record::rows::{DropEvent, DropEvents, Drops, NetfilterHook, PacketDrop, drop_need};
use record::{Accounting, Addr, Annotate, Each, Misses, Next, Offer};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Maximum number of namespaces whose rules are kept. At the limit all except the run's own are forgotten and listed
/// again when needed.
///
/// Bound: namespaces whose rules `drops` keeps. Beyond: all but the host's are listed again when needed. By: the owners
/// of namespaces.
const NAMESPACES_MAX: usize = 32;
/// Maximum number of packet kinds whose rule is remembered between listings; at the limit all are forgotten.
///
/// Bound: kinds of packets whose rule is remembered between two listings. Beyond: all are forgotten and looked up
/// again. By: anyone whose packets are dropped.
const KINDS_MAX: usize = 4096;

/// The reason and the location of drops by nft rules since Linux 6.12. In earlier versions connection tracking has the
/// same location.
const BY_RULE: (&[u8], &[u8]) = (b"NETFILTER_DROP", b"nft_do_chain");

/// Known values of a dropped packet, and its namespace.
type PacketKind = (u64, Option<NetfilterHook>, u16, Option<u8>, Option<(Addr, Addr)>, Option<(u16, u16)>, Option<u64>);

record::reasons! {
    /// Why the rule of packets that a rule dropped is missing or uncertain.
    enum NoRule {
        Unknown = Note("packets were dropped, but not by a rule that nft listed at that time"),
        Changed = Incomplete(
            "packets whose rule is missing or from an earlier listing: rules changed too often to list them each time"
        ),
        New = Incomplete("packets without their rule: network namespaces were new, and their rules not listed in time"),
    }
}

/// The packets of a row whose rule is sought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packets {
    /// Every packet of the row. Only the first packet has the row's addresses and ports.
    All,
    /// The first packet.
    First,
    /// The row is a single packet.
    One,
}

/// The rules, and the packets that were compared with them.
#[derive(Default)]
struct DropHistory {
    namespaces: NetnsRules<DropRules>,
    kinds: HashMap<PacketKind, Option<Rc<FoundRule>>>,
    /// Namespaces whose rules were listed in this round.
    listed: HashSet<u64>,
    misses: Misses<NoRule>,
    failed: FailedRows,
}

/// Rules of a session's namespaces, starting with its first round.
#[derive(Default)]
pub struct OpenRules(RefCell<DropHistory>);

impl OpenRules {
    /// Lists the rules of the session's own namespace, if they are not listed yet. Must be called before packets are
    /// counted, so that its counters' increase corresponds to the drops of the run. An error is reported for packets
    /// that need the rules.
    pub fn open(&self, session: &Session) {
        self.0.borrow_mut().open(session, session.netns_id());
    }
}

impl DropHistory {
    /// Lists the rules of a namespace, unless they were listed before.
    fn open(&mut self, session: &Session, netns_id: u64) {
        if self.namespaces.history(netns_id).is_some() {
            return;
        }
        self.namespaces.list(session, netns_id);
        if self.namespaces.len() > NAMESPACES_MAX {
            self.namespaces.keep_only(|id| [netns_id, session.netns_id()].contains(&id));
        }
    }

    /// Begins a round.
    fn begin_round(&mut self, session: &Session) {
        self.open(session, session.netns_id());
        self.namespaces.forget_unused(session);
        self.listed.clear();
        self.kinds.clear();
    }

    /// Lists the rules of a namespace once per round.
    fn list_once(&mut self, session: &Session, netns_id: u64) {
        if !self.listed.insert(netns_id) {
            return;
        }
        match self.namespaces.history(netns_id) {
            Some(_) => _ = self.namespaces.list(session, netns_id),
            None => self.open(session, netns_id),
        }
    }

    /// Lists changed rules again. Must be called before each block of events.
    fn refresh(&mut self, session: &Session) {
        if self.namespaces.begin_block(session) {
            self.kinds.clear();
        }
    }

    /// Finds the rule for a row.
    fn find(&mut self, row: &PacketDrop<'_>, of: Packets) -> Option<Rc<FoundRule>> {
        let has_ends = of != Packets::All;
        let facts = PacketFacts {
            ethertype: (row.ethertype != 0).then_some(row.ethertype),
            l4: row.l4,
            ends: row.ends.filter(|_| has_ends),
            ports: row.ports.filter(|_| has_ends),
        };
        let count = Some(row.count).filter(|_| of != Packets::One);
        let is_first = of == Packets::First;
        let kind = (row.netns_id, row.route_hook, row.ethertype, row.l4, facts.ends, facts.ports, count);
        let (history, not_listed) = self.namespaces.for_row(row.netns_id);
        match not_listed {
            _ if of == Packets::First => {}
            Some(NotListed::Changed) => self.misses.add(NoRule::Changed, row.count),
            Some(NotListed::New) => self.misses.add(NoRule::New, row.count),
            Some(failure) => {
                self.failed.add(failure, row.count);
                return None;
            }
            None => {}
        }
        let history = history?;
        if self.kinds.len() >= KINDS_MAX {
            self.kinds.clear();
        }
        let found = self.kinds.entry(kind).or_insert_with(|| {
            find(&history.listings, &DroppedPackets { hooks: hooks_of(row.route_hook), facts, count, is_first })
                .map(Rc::new)
        });
        if found.is_none() && not_listed.is_none() && of != Packets::First {
            self.misses.add(NoRule::Unknown, row.count);
        }
        found.clone()
    }

    /// Reports the number of packets without a rule, and the reasons.
    fn report(&mut self, stats: &mut Accounting) {
        self.failed.report("packets dropped by a rule", stats);
        self.misses.report(stats);
    }
}

/// The hooks that may have dropped a packet, derived from its route. A loopback packet has a route before it arrives,
/// and a packet sent back the way it came looks as if it had already been forwarded.
fn hooks_of(hook: Option<NetfilterHook>) -> &'static [&'static str] {
    match hook {
        Some(NetfilterHook::Prerouting | NetfilterHook::Ingress) => &["prerouting", "ingress"],
        Some(NetfilterHook::Input) => &["input", "prerouting", "ingress"],
        Some(NetfilterHook::Forward) => &["forward", "postrouting", "egress"],
        Some(NetfilterHook::Output) => &["output", "postrouting", "egress"],
        Some(NetfilterHook::Postrouting | NetfilterHook::Egress) => &["postrouting", "egress", "forward", "output"],
        None => &["prerouting", "input", "forward", "output", "postrouting", "ingress", "egress"],
    }
}

fn is_by_rule(row: &PacketDrop<'_>) -> bool {
    (row.reason, row.place) == BY_RULE && row.netns_id != 0
}

/// The rules that dropped packets.
pub struct DroppingRules<'a> {
    session: &'a Session,
    rules: &'a OpenRules,
    /// True if the demand includes rules.
    is_needed: bool,
    /// True before the first event of a batch.
    is_first: bool,
    /// True to name the rule of the first packet if several rules can have dropped the packets of a row.
    names_first: bool,
}

impl<'a> DroppingRules<'a> {
    /// Adds rules of the session's namespaces. They are listed when the first round begins, unless they are open.
    pub fn new(session: &'a Session, rules: &'a OpenRules) -> DroppingRules<'a> {
        DroppingRules { session, rules, is_needed: false, is_first: false, names_first: false }
    }

    /// If several rules can have dropped the packets of a row, names the rule of the first packet.
    pub fn naming_first(self) -> DroppingRules<'a> {
        DroppingRules { names_first: true, ..self }
    }
}

impl Annotate<Drops> for DroppingRules<'_> {
    fn begin(&mut self, need: u64, _: &mut Each<'_, Drops>) -> Next {
        self.is_needed = need & drop_need::RULE != 0;
        if self.is_needed {
            self.rules.0.borrow_mut().begin_round(self.session);
        }
        Next::More
    }

    fn row(&mut self, row: &PacketDrop<'_>, each: &mut Each<'_, Drops>) -> Next {
        let mut found = None;
        if self.is_needed && is_by_rule(row) {
            let mut history = self.rules.0.borrow_mut();
            history.list_once(self.session, row.netns_id);
            found = history.find(row, Packets::All);
            if self.names_first && found.as_ref().is_some_and(|found| !found.is_one_rule()) {
                let of_first = history.find(row, Packets::First).filter(|found| found.is_one_rule());
                found = of_first.map(|found| Rc::new(found.as_guess())).or(found);
            }
        }
        let rule = found.as_ref().map(|found| found.to_row());
        each(&PacketDrop { rule: rule.as_ref(), ..*row })
    }

    fn close(&mut self, stats: &mut Accounting) {
        self.rules.0.borrow_mut().report(stats);
    }
}

impl Annotate<DropEvents> for DroppingRules<'_> {
    fn explain(&self, offer: &mut Offer) {
        offer.explain.push("rules via nft: listed now and whenever they change".to_owned());
    }

    fn begin(&mut self, _: u64, _: &mut Each<'_, DropEvents>) -> Next {
        self.is_first = true;
        Next::More
    }

    fn row(&mut self, event: &DropEvent<'_>, each: &mut Each<'_, DropEvents>) -> Next {
        let (packet, mut history) = (&event.packet, self.rules.0.borrow_mut());
        if std::mem::take(&mut self.is_first) {
            history.refresh(self.session);
        }
        let mut found = None;
        if is_by_rule(packet) {
            history.open(self.session, packet.netns_id);
            found = history.find(packet, Packets::One);
        }
        drop(history);
        let rule = found.as_ref().map(|found| found.to_row());
        each(&DropEvent { packet: PacketDrop { rule: rule.as_ref(), ..*packet }, ..*event })
    }

    fn close(&mut self, stats: &mut Accounting) {
        self.rules.0.borrow_mut().report(stats);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::session::SessionTarget;

    /// A packet is not reported as dropped by no rule if its namespace's rules are unknown.
    #[test]
    fn unlisted_rules_make_the_result_incomplete() {
        const REMOVED: u64 = 1;
        let session = Session::open(SessionTarget::default()).unwrap();
        let mut history = DropHistory::default();
        let row = PacketDrop { netns_id: REMOVED, count: 5, ..PacketDrop::default() };
        let mut reports = |is_listed: bool| {
            if is_listed {
                history.list_once(&session, REMOVED);
            }
            assert!(history.find(&row, Packets::All).is_none());
            let mut stats = Accounting::default();
            history.report(&mut stats);
            assert_eq!((stats.incomplete, stats.why.len(), stats.why[0].count), (true, 1, 5), "{stats:?}");
            stats.why[0].text.to_string()
        };
        assert!(reports(false).contains("not listed in time"));
        assert!(reports(true).contains("their network namespace was removed or cannot be entered"));
    }
}
