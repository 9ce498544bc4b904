//! Adds the rule that dropped packets to rows, before filter and columns see them. Only for runs that display rules or
//! filter by them.

mod listing;

use crate::session::Session;
use host::rule_matches::PacketFacts;
use listing::{DroppedPackets, DroppingRules, FoundRule};
use record::rows::{DropEvent, DropEvents, Drops, NetfilterHook, PacketDrop, drop_need};
use record::{Accounting, Addr, Annotate, Each, Misses, Next, Offer};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use sys::{Share, SysError, clock};

/// Maximum number of namespaces whose rules are kept. At the limit all except the run's own are forgotten and listed
/// again when needed.
///
/// Bound: namespaces whose rules `drops` keeps. Beyond: all but the host's are listed again when needed. By: the owners
/// of namespaces.
const NAMESPACES_MAX: usize = 32;
/// Listing rules may take one part in `SHARE_OF_TIME` of the time, and up to `CREDIT_NS_MAX` at once after a pause:
/// once for the run's own namespace, and once for all others together.
const SHARE_OF_TIME: u64 = 10;
const CREDIT_NS_MAX: u64 = 1_000_000_000;
/// Maximum number of packet kinds whose rule is remembered between listings; at the limit all are forgotten.
///
/// Bound: kinds of packets whose rule is remembered between two listings. Beyond: all are forgotten and looked up
/// again. By: anyone whose packets are dropped.
const KINDS_MAX: usize = 4096;

/// The reason and the location of drops by nft rules since Linux 6.12. In earlier versions connection tracking has the
/// same location.
const BY_RULE: (&[u8], &[u8]) = (b"NETFILTER_DROP", b"nft_do_chain");

/// Rules of a session's namespaces, starting with its first round.
#[derive(Default)]
pub struct OpenRules(RefCell<Netnses>);

/// Known values of a dropped packet, and its namespace.
type PacketKind = (u64, Option<NetfilterHook>, u16, Option<u8>, Option<(Addr, Addr)>, Option<(u16, u16)>, Option<u64>);

struct Netnses {
    rules: Vec<DroppingRules>,
    /// Time shares for the run's own namespace, and for others.
    shares: [Share; 2],
    /// Namespaces whose rules were listed in this round, or could not be listed.
    listed: Vec<u64>,
    kinds: HashMap<PacketKind, Option<Rc<FoundRule>>>,
    misses: Misses<NoRule>,
    /// Number of packets whose rules could not be listed, and the first error.
    failed: u64,
    trouble: Option<SysError>,
    /// Number of blocks of events since rules changed.
    blocks: u32,
}

impl Default for Netnses {
    fn default() -> Netnses {
        let shares = [(); 2].map(|()| Share::one_in(SHARE_OF_TIME, CREDIT_NS_MAX));
        let (rules, listed, kinds, misses) = Default::default();
        Netnses { rules, shares, listed, kinds, misses, failed: 0, trouble: None, blocks: 0 }
    }
}

record::reasons! {
    /// Why packets that a rule dropped have none.
    enum NoRule {
        Unknown = Note("packets were dropped, but not by a rule that nft listed at that time"),
        Late = Incomplete("packets without their rule: rules changed too often to list them each time"),
    }
}

impl OpenRules {
    /// Lists the rules of the session's own namespace before packets are counted, so that its counters' increase
    /// corresponds to the drops of the run. An error is reported for packets that need the rules.
    pub fn open(&self, session: &Session) {
        let mut all = self.0.borrow_mut();
        if all.rules.is_empty() && all.trouble.is_none() {
            all.open_netns(session, session.netns_id());
        }
    }

    fn begin_round(&self) {
        let mut all = self.0.borrow_mut();
        all.listed.clear();
        all.kinds.clear();
    }

    /// Finds the rule for the packets of a round.
    fn of_row(&self, session: &Session, row: &PacketDrop<'_>) -> Option<Rc<FoundRule>> {
        let mut all = self.0.borrow_mut();
        all.list_once(session, row.netns_id);
        all.find(row, false)
    }

    /// Finds the rule for one packet.
    fn of_event(&self, session: &Session, row: &PacketDrop<'_>) -> Option<Rc<FoundRule>> {
        let mut all = self.0.borrow_mut();
        if !all.rules.iter().any(|rules| rules.netns_id == row.netns_id) && !all.listed.contains(&row.netns_id) {
            all.listed.push(row.netns_id);
            all.open_netns(session, row.netns_id);
        }
        all.find(row, true)
    }

    /// Lists changed rules again. Must be called before each block of events.
    fn refresh(&self, session: &Session) {
        let mut all = self.0.borrow_mut();
        let all = &mut *all;
        all.blocks = all.blocks.saturating_add(1);
        for rules in &mut all.rules {
            if rules.have_changed() {
                all.blocks = 0;
                if let Err(error) = relisted(session, &all.shares, rules) {
                    all.trouble.get_or_insert(error);
                }
                // The listing itself notes whether rules changed before it.
                rules.note_change();
                all.kinds.clear();
            } else if all.blocks == 2 {
                // Packets that arrive from now on were dropped after the listing.
                rules.forget_earlier();
                all.kinds.clear();
            }
        }
    }

    /// Reports the number of packets without a rule, and the reasons.
    fn tell(&self, stats: &mut Accounting) {
        let mut all = self.0.borrow_mut();
        let failed = std::mem::take(&mut all.failed);
        if let Some(error) = all.trouble.take().filter(|_| failed > 0) {
            stats.incomplete(failed, format!("packets dropped by a rule are shown without the rule: {error}"));
        }
        all.misses.report(stats);
    }
}

/// Lists the rules of a namespace again; if it is too soon for that, keeps the previous ones and notes a possible
/// change.
fn relisted(session: &Session, shares: &[Share; 2], rules: &mut DroppingRules) -> Result<(), SysError> {
    let netns_id = rules.netns_id;
    let mut listed = Ok(());
    let is_allowed = in_time(session, shares, netns_id, &mut || {
        in_netns(session, netns_id, &mut || listed = rules.list_again(session.host()));
    });
    if !is_allowed {
        rules.note_change();
    }
    listed
}

/// Calls `list` if the share allows it; returns false if not.
fn in_time(session: &Session, shares: &[Share; 2], netns_id: u64, list: &mut dyn FnMut()) -> bool {
    let [own, others] = shares;
    let share = if netns_id == session.netns_id() { own } else { others };
    // A recording contains the listings that were within the share.
    if session.host().is_replay() {
        list();
        return true;
    }
    share.spend(clock::monotonic_ns, list)
}

fn in_netns(session: &Session, netns_id: u64, visit: &mut dyn FnMut()) {
    if netns_id == session.netns_id() { visit() } else { session.in_namespace(netns_id, visit) }
}

impl Netnses {
    /// Lists the rules of a namespace for the first time.
    fn open_netns(&mut self, session: &Session, netns_id: u64) {
        let own = session.netns_id();
        if self.rules.len() >= NAMESPACES_MAX {
            self.rules.retain(|rules| rules.netns_id == own);
        }
        let (rules, trouble) = (&mut self.rules, &mut self.trouble);
        in_time(session, &self.shares, netns_id, &mut || {
            in_netns(session, netns_id, &mut || match DroppingRules::open(session.host(), netns_id, netns_id == own) {
                Ok(opened) => rules.push(opened),
                Err(error) => _ = trouble.get_or_insert(error),
            });
        });
    }

    /// Lists the rules of a namespace once per round.
    fn list_once(&mut self, session: &Session, netns_id: u64) {
        if self.listed.contains(&netns_id) {
            return;
        }
        self.listed.push(netns_id);
        let known = self.rules.iter_mut().find(|rules| rules.netns_id == netns_id);
        match known.map(|rules| relisted(session, &self.shares, rules)) {
            None => self.open_netns(session, netns_id),
            Some(Ok(())) => {}
            Some(Err(error)) => {
                self.rules.retain(|rules| rules.netns_id != netns_id);
                self.trouble.get_or_insert(error);
            }
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
        let Some(rules) = self.rules.iter().find(|rules| rules.netns_id == row.netns_id) else {
            match self.trouble {
                Some(_) => self.failed += row.count,
                None => self.misses.add(NoRule::Late, row.count),
            }
            return None;
        };
        if self.kinds.len() >= KINDS_MAX {
            self.kinds.clear();
        }
        let found = self.kinds.entry(kind).or_insert_with(|| {
            rules.find(&DroppedPackets { hooks: hooks_of(row.route_hook), facts, count }).map(Rc::new)
        });
        if found.is_none() {
            self.misses.add(NoRule::Unknown, row.count);
        }
        found.clone()
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
pub struct DropRules<'a> {
    session: &'a Session,
    rules: &'a OpenRules,
    /// True if the demand includes rules.
    is_needed: bool,
    /// True before the first event of a batch.
    is_first: bool,
}

impl<'a> DropRules<'a> {
    /// Adds the rules of the session's namespaces, which are listed when the first round begins.
    pub fn new(session: &'a Session, rules: &'a OpenRules) -> DropRules<'a> {
        DropRules { session, rules, is_needed: false, is_first: false }
    }

    /// Adds the rules of the session's namespaces, which are listed now.
    pub fn open(session: &'a Session, rules: &'a OpenRules) -> DropRules<'a> {
        rules.open(session);
        DropRules::new(session, rules)
    }
}

impl Annotate<Drops> for DropRules<'_> {
    fn begin(&mut self, need: u64, _: &mut Each<'_, Drops>) -> Next {
        self.is_needed = need & drop_need::RULE != 0;
        if self.is_needed {
            self.rules.open(self.session);
            self.rules.begin_round();
        }
        Next::More
    }

    fn row(&mut self, row: &PacketDrop<'_>, each: &mut Each<'_, Drops>) -> Next {
        let found = if self.is_needed && is_by_rule(row) { self.rules.of_row(self.session, row) } else { None };
        let rule = found.as_ref().map(|found| found.shown());
        each(&PacketDrop { rule: rule.as_ref(), ..*row })
    }

    fn close(&mut self, stats: &mut Accounting) {
        self.rules.tell(stats);
    }
}

impl Annotate<DropEvents> for DropRules<'_> {
    fn explain(&self, offer: &mut Offer) {
        offer.explain.push("rules via nft: listed now and whenever they change".to_owned());
    }

    fn begin(&mut self, _: u64, _: &mut Each<'_, DropEvents>) -> Next {
        self.is_first = true;
        Next::More
    }

    fn row(&mut self, event: &DropEvent<'_>, each: &mut Each<'_, DropEvents>) -> Next {
        if std::mem::take(&mut self.is_first) {
            self.rules.refresh(self.session);
        }
        let packet = &event.packet;
        let found = if is_by_rule(packet) { self.rules.of_event(self.session, packet) } else { None };
        let rule = found.as_ref().map(|found| found.shown());
        each(&DropEvent { packet: PacketDrop { rule: rule.as_ref(), ..*packet }, ..*event })
    }

    fn close(&mut self, stats: &mut Accounting) {
        self.rules.tell(stats);
    }
}
