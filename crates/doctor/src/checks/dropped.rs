//! The drops that a check explains.

use record::Addr;
use record::rows::Evidence;

use super::words::state;
use crate::seen::cause::cause_of;
use crate::seen::{DropSeen, Surroundings};

/// Drops that one check explains.
pub(super) struct Dropped<'s> {
    /// The drops, the most frequent first.
    pub(super) all: Vec<&'s DropSeen>,
    /// Number of packets.
    pub(super) count: u64,
}

/// Most drops and packets that a finding names.
const SHOWN_MAX: usize = 4;

impl<'s> Dropped<'s> {
    /// Returns the drops for which `is_it` is true.
    pub(super) fn of(drops: &'s [DropSeen], is_it: impl Fn(&DropSeen) -> bool) -> Dropped<'s> {
        let mut all: Vec<&DropSeen> = drops.iter().filter(|one| is_it(one)).collect();
        all.sort_by_key(|one| std::cmp::Reverse(one.count));
        let count = all.iter().fold(0, |sum: u64, one| sum.saturating_add(one.count));
        Dropped { all, count }
    }

    /// Returns their numbers as evidence.
    pub(super) fn evidence(&self) -> Vec<Evidence> {
        let of = |one: &&DropSeen| {
            let packet = one.packet().map_or(String::new(), |packet| format!(", such as {packet}"));
            state(format!("drops: {}{packet}", one.at()), i64::try_from(one.count).unwrap_or(i64::MAX), None)
        };
        self.all.iter().take(SHOWN_MAX).map(of).collect()
    }

    /// Returns how many of `counted` packets were for one host: those that are known to be for a group or for all hosts
    /// are left out.
    pub(super) fn for_hosts(&self, counted: u64) -> u64 {
        let for_groups = self.all.iter().filter(|one| one.is_to_group()).map(|one| one.count).sum();
        counted.saturating_sub(for_groups)
    }

    /// Returns the drops for which `is_it` is true.
    pub(super) fn only(self, is_it: impl Fn(&DropSeen) -> bool) -> Dropped<'s> {
        let all: Vec<&DropSeen> = self.all.into_iter().filter(|one| is_it(one)).collect();
        let count = all.iter().fold(0, |sum: u64, one| sum.saturating_add(one.count));
        Dropped { all, count }
    }

    /// Returns the first packet of the most frequent drop as part of a sentence: `: 10.0.0.1 to 10.0.0.2 (icmp)`.
    pub(super) fn example(&self) -> String {
        let packet = self.all.iter().find_map(|one| one.packet());
        packet.map_or(String::new(), |packet| format!(", such as {packet}"))
    }
}

impl Surroundings {
    /// Returns the drops of received frames that need no finding of the interface: their protocol is unsupported, or a
    /// CPU's backlog was full. Returns `None` if drops were not counted.
    pub(super) fn explained(&self, iface: &[u8]) -> Option<u64> {
        let index = self.links.iter().find(|link| link.name.as_bytes() == iface).map_or(0, |link| link.index);
        let is_known = |one: &DropSeen| ["", "softnet-drop"].contains(&cause_of(&one.reason, &one.place, one.proto));
        let is_here = |one: &&DropSeen| one.ifindex == index && is_known(one);
        Some(self.drops.as_ref()?.iter().filter(is_here).map(|one| one.count).sum())
    }

    /// Returns all drops.
    pub(super) fn all_drops(&self) -> Dropped<'_> {
        Dropped::of(self.drops.as_deref().unwrap_or_default(), |_| true)
    }

    /// Returns the drops that the check `id` explains.
    pub(super) fn dropped(&self, id: &str) -> Dropped<'_> {
        Dropped::of(self.drops.as_deref().unwrap_or_default(), |one| cause_of(&one.reason, &one.place, one.proto) == id)
    }
}

/// Returns the number of received IPv6 packets to hosts that had no route. Packets to multicast groups are left out: a
/// router that does not forward such groups has no route for them.
pub(super) fn to_hosts(drops: &[DropSeen]) -> u64 {
    let is_one = |one: &&DropSeen| {
        let to = one.ends.map(|(_, to)| to);
        one.reason == "IP_INNOROUTES" && to.is_some_and(|to| matches!(to, Addr::V6(_)) && !to.is_multicast())
    };
    drops.iter().filter(is_one).map(|one| one.count).sum()
}
