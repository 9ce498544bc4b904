//! The stages of each hook, and the places at their ends.
//!
//! The kernel's own functions have fixed priorities (include/uapi/linux/netfilter_ipv4.h), and chains of nftables and
//! iptables mostly use the same ones. A chain with a different priority belongs to the stage whose range contains it.
use record::rows::{NetfilterHook, StageName};

use StageName::{Conntrack, Defrag, Dstnat, Empty, Filter, Late, Mangle, Raw, Srcnat};

/// The lowest priority that a program can have.
pub(crate) const LOWEST: i32 = i32::MIN + 1;
/// The highest one. The function that confirms conntrack entries runs after it.
const HIGHEST: i32 = i32::MAX - 1;

/// A hook and its stages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HookLayout {
    pub(crate) hook: NetfilterHook,
    /// `enum nf_inet_hooks`
    pub(crate) number: u32,
    /// The stages, each with the priority of the place at its end.
    pub(crate) stages: &'static [(StageName, i32)],
}

/// All hooks, in the order of their numbers.
pub(crate) const HOOKS: [HookLayout; 5] = [
    HookLayout { hook: NetfilterHook::Prerouting, number: 0, stages: ENTRY },
    HookLayout { hook: NetfilterHook::Input, number: 1, stages: EXIT },
    HookLayout { hook: NetfilterHook::Forward, number: 2, stages: &[(Mangle, -101), (Filter, 49), (Late, HIGHEST)] },
    HookLayout { hook: NetfilterHook::Output, number: 3, stages: ENTRY },
    HookLayout { hook: NetfilterHook::Postrouting, number: 4, stages: EXIT },
];

/// The stages of the hooks at which packets begin.
const ENTRY: &[(StageName, i32)] = &[
    (Empty, LOWEST + 1),
    (Defrag, -351),
    (Raw, -201),
    (Conntrack, -199),
    (Mangle, -101),
    (Dstnat, -51),
    (Filter, 49),
    (Late, HIGHEST),
];
/// The stages of the hooks at which packets end.
const EXIT: &[(StageName, i32)] = &[(Mangle, -101), (Filter, 99), (Srcnat, 199), (Late, HIGHEST)];

/// Indexes of one hook's places in the list of all places of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HookPlaces {
    pub(crate) first: usize,
    pub(crate) last: usize,
}

/// Returns the places of each hook, in the order of [`HOOKS`]. `before` is the number of places before this family's.
pub(crate) fn hook_places(before: usize) -> [HookPlaces; 5] {
    let mut next = before;
    HOOKS.map(|hook| {
        let first = next;
        next += hook.stages.len() + 1;
        HookPlaces { first, last: next - 1 }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_ascend_and_places_follow_one_another() {
        for hook in HOOKS {
            let mut before = LOWEST;
            for (stage, priority) in hook.stages {
                assert!(*priority > before, "{hook:?} {stage:?}");
                before = *priority;
            }
        }
        let places = hook_places(32);
        assert_eq!(places[0], HookPlaces { first: 32, last: 40 });
        assert!(places.windows(2).all(|two| two[0].last + 1 == two[1].first));
        assert_eq!(places[4].last, 63);
    }
}
