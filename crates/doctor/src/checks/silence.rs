//! Causes on this host for neighbours that do not answer. A neighbour with such a cause is a consequence.

use record::Addr;
use record::rows::NetfilterHook;

use super::Sample;
use super::dropped::Dropped;
use crate::seen::cause::cause_of;
use crate::seen::{DropSeen, NeighbourSeen, OwnMacvlan, RedirectSeen};

/// Returns the neighbours that do not answer although nothing on this host explains it.
pub(super) fn unexplained(sample: &Sample) -> Vec<&NeighbourSeen> {
    let is_unexplained = |one: &&NeighbourSeen| {
        redirect_to(sample, one).is_none() && macvlan_of(sample, one).is_none() && !is_unheard(sample, one)
    };
    sample.around.neighbours.iter().filter(is_unexplained).collect()
}

/// Returns a redirect that leads to the neighbour.
pub(super) fn redirect_to<'s>(sample: &'s Sample, one: &NeighbourSeen) -> Option<&'s RedirectSeen> {
    sample.around.redirects.iter().find(|redirect| (redirect.gateway, redirect.ifindex) == (one.addr, one.ifindex))
}

/// Returns the macvlan of this host that has the neighbour's address.
pub(super) fn macvlan_of<'s>(sample: &'s Sample, one: &NeighbourSeen) -> Option<&'s OwnMacvlan> {
    sample.around.own_macvlans.iter().find(|macvlan| (macvlan.addr, macvlan.ifindex) == (one.addr, one.ifindex))
}

/// True if a rule of this host drops the requests for the neighbour's hardware address, or the answers.
fn is_unheard(sample: &Sample, one: &NeighbourSeen) -> bool {
    dropped(sample, Discovery::Own).all.iter().any(|drop| Discovery::Own.explains(drop, one))
}

/// Fewest dropped messages: the kernel asks for a hardware address once a second until it is answered.
const SOME: u64 = 2;

/// Returns the drops of messages of this kind; none if they are too few. One message is enough if it certainly asks for
/// a neighbour that does not answer, or comes from it.
pub(super) fn dropped(sample: &Sample, kind: Discovery) -> Dropped<'_> {
    let dropped = sample.around.dropped("rule-drop").only(|one| discovery(sample, one) == Some(kind));
    let is_proof = |drop: &&DropSeen| {
        let of_silent = |addr| sample.around.neighbours.iter().any(|one| one.addr == addr);
        let is_it = |(from, to)| is_solicitation(to) || of_silent(from);
        kind == Discovery::Own && drop.ends.is_some_and(is_it)
    };
    let is_enough = dropped.count >= SOME || dropped.all.iter().any(is_proof);
    dropped.only(|_| is_enough)
}

/// Messages that ask for a hardware address or answer with one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Discovery {
    /// Requests of this host, or answers to them.
    Own,
    /// Requests of other hosts for an address of this host.
    Others,
    /// Requests that this host would forward as a bridge.
    Bridged,
}

impl Discovery {
    /// True if these drops explain that the neighbour is silent.
    pub(super) fn explains(self, drop: &DropSeen, one: &NeighbourSeen) -> bool {
        self == Discovery::Own && is_on(drop, one)
    }
}

/// Returns the kind of messages, if rules dropped messages that ask for hardware addresses or answer with them.
///
/// The type of an ICMPv6 message is not known, and only the first message of a kind of drops has addresses. The groups
/// of ff02::1:ff00:0/104 receive requests only, and a host whose hardware address is not known can send this host
/// little else than the answer. Other messages for groups of the link are rare: their first may hide requests and
/// answers. ARP messages have no addresses here; they count only if a neighbour is silent.
pub(super) fn discovery(sample: &Sample, drop: &DropSeen) -> Option<Discovery> {
    use NetfilterHook::{Egress, Forward, Output, Postrouting};
    if cause_of(&drop.reason, &drop.place, drop.proto) != "rule-drop" {
        return None;
    }
    let (from, to) = match (drop.proto, drop.ends) {
        ("arp", _) => (Addr::ANY4, Addr::ANY4),
        ("icmpv6", Some(ends)) => ends,
        _ => return None,
    };
    if drop.hook == Some(Forward) {
        return is_solicitation(to).then_some(Discovery::Bridged);
    }
    let is_sent = matches!(drop.hook, Some(Output | Postrouting | Egress));
    let mut silent = sample.around.neighbours.iter().filter(|one| is_on(drop, one)).peekable();
    let is_any = silent.peek().is_some();
    match drop.proto == "arp" || is_for_link(to) || silent.any(|one| one.addr == from) {
        true if is_any => Some(Discovery::Own),
        _ if is_solicitation(to) && !is_sent => Some(Discovery::Others),
        _ => None,
    }
}

/// True if the drop is of the neighbour's family and on its interface.
fn is_on(drop: &DropSeen, one: &NeighbourSeen) -> bool {
    let proto = if matches!(one.addr, Addr::V6(_)) { "icmpv6" } else { "arp" };
    drop.proto == proto && [0, one.ifindex].contains(&drop.ifindex)
}

/// True for a group of the link (RFC 4291).
fn is_for_link(to: Addr) -> bool {
    matches!(to, Addr::V6([0xff, 0x02, ..]))
}

/// True for a solicited-node group (RFC 4291): only requests for a hardware address are sent there.
fn is_solicitation(to: Addr) -> bool {
    matches!(to, Addr::V6([0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, ..]))
}
