//! Adds the rule that dropped packets to rows, before filter and columns see them. Only for runs that display rules or
//! filter by them.

use super::candidates::{DropRules, DroppedPackets, FoundRule, find};
use super::namespaces::NetnsRules;
use crate::session::Session;
use host::rule_matches::PacketFacts;
use record::rows::{DropEvent, DropEvents, Drops, NetfilterHook, PacketDrop, drop_need};
use record::{Accounting, Addr, Annotate, Each, Misses, Next, Offer};
use std::cell::RefCell;
use std::collections::HashMap;
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
    /// Why packets that a rule dropped have none.
    enum NoRule {
        Unknown = Note("packets were dropped, but not by a rule that nft listed at that time"),
        Late = Incomplete("packets without their rule: rules changed too often to list them each time"),
    }
}

/// The rules, and the packets that were compared with them.
#[derive(Default)]
struct DropHistory {
    namespaces: NetnsRules<DropRules>,
    kinds: HashMap<PacketKind, Option<Rc<FoundRule>>>,
    misses: Misses<NoRule>,
    /// Number of packets whose rules could not be listed.
    failed: u64,
    /// Number of blocks of events since rules changed.
    blocks: u32,
}

/// Rules of a session's namespaces, starting with its first round.
#[derive(Default)]
pub struct OpenRules(RefCell<DropHistory>);

impl OpenRules {
    /// Lists the rules of the session's own namespace, if no rules are listed yet. Must be called before packets are
    /// counted, so that its counters' increase corresponds to the drops of the run. An error is reported for packets
    /// that need the rules.
    pub fn open(&self, session: &Session) {
        let namespaces = &mut self.0.borrow_mut().namespaces;
        if namespaces.histories.is_empty() && namespaces.trouble.is_none() {
            namespaces.open(session, session.netns_id());
        }
    }
}

impl DropHistory {
    /// Lists the rules of a namespace for the first time.
    fn open(&mut self, session: &Session, netns_id: u64) {
        self.namespaces.open(session, netns_id);
        if self.namespaces.histories.len() > NAMESPACES_MAX {
            self.namespaces.histories.retain(|id, _| [netns_id, session.netns_id()].contains(id));
        }
    }

    /// Lists the rules of a namespace once per round.
    fn list_once(&mut self, session: &Session, netns_id: u64) {
        let namespaces = &mut self.namespaces;
        if !namespaces.histories.contains_key(&netns_id) {
            self.open(session, netns_id);
        } else if namespaces.tried.insert(netns_id) && !namespaces.list_again(session, netns_id) {
            namespaces.histories.remove(&netns_id);
        }
    }

    /// Lists changed rules again. Must be called before each block of events.
    fn refresh(&mut self, session: &Session) {
        self.blocks = self.blocks.saturating_add(1);
        self.namespaces.check_changes();
        let histories = self.namespaces.histories.iter();
        let stale: Vec<u64> = histories.filter(|(_, history)| history.is_stale()).map(|(id, _)| *id).collect();
        for netns_id in &stale {
            self.blocks = 0;
            self.namespaces.list_again(session, *netns_id);
        }
        for (netns_id, history) in &mut self.namespaces.histories {
            if stale.contains(netns_id) {
                // The listing itself notes whether rules changed before it.
                history.listings.note_change();
            } else if self.blocks == 2 {
                // Packets that arrive from now on were dropped after the listing.
                history.listings.forget_earlier();
            }
        }
        if matches!(self.blocks, 0 | 2) {
            self.kinds.clear();
        }
    }

    /// Finds the rule for a row. With `is_one` the row is a single packet with its own addresses and ports; otherwise
    /// they are those of the first packet.
    fn find(&mut self, row: &PacketDrop<'_>, is_one: bool) -> Option<Rc<FoundRule>> {
        let facts = PacketFacts {
            ethertype: (row.ethertype != 0).then_some(row.ethertype),
            l4: row.l4,
            ends: row.ends.filter(|_| is_one),
            ports: row.ports.filter(|_| is_one),
        };
        let count = Some(row.count).filter(|_| !is_one);
        let kind = (row.netns_id, row.route_hook, row.ethertype, row.l4, facts.ends, facts.ports, count);
        let Some(history) = self.namespaces.histories.get(&row.netns_id) else {
            match self.namespaces.trouble {
                Some(_) => self.failed += row.count,
                None => self.misses.add(NoRule::Late, row.count),
            }
            return None;
        };
        if self.kinds.len() >= KINDS_MAX {
            self.kinds.clear();
        }
        let found = self.kinds.entry(kind).or_insert_with(|| {
            find(&history.listings, &DroppedPackets { hooks: hooks_of(row.route_hook), facts, count }).map(Rc::new)
        });
        if found.is_none() {
            self.misses.add(NoRule::Unknown, row.count);
        }
        found.clone()
    }

    /// Reports the number of packets without a rule, and the reasons.
    fn report(&mut self, stats: &mut Accounting) {
        let failed = std::mem::take(&mut self.failed);
        if let Some(error) = self.namespaces.trouble.take().filter(|_| failed > 0) {
            stats.incomplete(failed, format!("packets dropped by a rule are shown without the rule: {error}"));
        }
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
}

impl<'a> DroppingRules<'a> {
    /// Adds rules of the session's namespaces. They are listed when the first round begins, unless they are open.
    pub fn new(session: &'a Session, rules: &'a OpenRules) -> DroppingRules<'a> {
        DroppingRules { session, rules, is_needed: false, is_first: false }
    }
}

impl Annotate<Drops> for DroppingRules<'_> {
    fn begin(&mut self, need: u64, _: &mut Each<'_, Drops>) -> Next {
        self.is_needed = need & drop_need::RULE != 0;
        if self.is_needed {
            self.rules.open(self.session);
            let mut history = self.rules.0.borrow_mut();
            history.namespaces.tried.clear();
            history.kinds.clear();
        }
        Next::More
    }

    fn row(&mut self, row: &PacketDrop<'_>, each: &mut Each<'_, Drops>) -> Next {
        let mut found = None;
        if self.is_needed && is_by_rule(row) {
            let mut history = self.rules.0.borrow_mut();
            history.list_once(self.session, row.netns_id);
            found = history.find(row, false);
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
            if !history.namespaces.histories.contains_key(&packet.netns_id) {
                history.open(self.session, packet.netns_id);
            }
            found = history.find(packet, true);
        }
        drop(history);
        let rule = found.as_ref().map(|found| found.to_row());
        each(&DropEvent { packet: PacketDrop { rule: rule.as_ref(), ..*packet }, ..*event })
    }

    fn close(&mut self, stats: &mut Accounting) {
        self.rules.0.borrow_mut().report(stats);
    }
}
