//! Listens for hardware addresses that move between the ports of a bridge.

use doctor::seen::{MacMoved, Sample};
use host::mac_moves::{self, MacMove, MoveWatch};
use record::Accounting;
use std::collections::BTreeMap;
use sys::Errno;

use crate::probe::{ChosenNetns, InNetns, ProbeReader};

/// Maximum number of namespaces to listen in; each takes one descriptor.
///
/// Bound: namespaces in which `doctor` receives notifications of bridges: the host's first, then equal parts for each
/// user. Beyond: further namespaces are counted (exit code 3). By: a user who makes namespaces, for that user's
/// namespaces.
const NAMESPACES_MAX: usize = 256;

/// Listens during the window.
#[derive(Default)]
pub(crate) struct MoveReader {
    /// Listeners by namespace.
    open: BTreeMap<u64, MoveWatch>,
    /// The namespaces to listen in.
    chosen: ChosenNetns,
}

impl ProbeReader for MoveReader {
    fn first(&mut self, netns: &InNetns<'_>, stats: &mut Accounting) {
        // Without the kernel's bridge there is nothing to hear.
        if netns.host().is_replay() || sys::fs::stat(&netns.host().sys_path("module/bridge")).is_err() {
            return;
        }
        if !self.chosen.has(netns, NAMESPACES_MAX) {
            let text = format!(
                "hardware addresses that move between ports are searched for in {NAMESPACES_MAX} network namespaces, \
                 but not in this one"
            );
            stats.incomplete(1, text);
            return;
        }
        match MoveWatch::open() {
            Ok(watch) => drop(self.open.insert(netns.netns_id, watch)),
            Err(error) => {
                stats.incomplete(0, format!("hardware addresses that move are not searched for: {error}"));
            }
        }
    }

    fn second(&mut self, netns: &InNetns<'_>, sample: &mut Sample, stats: &mut Accounting) {
        let watch = self.open.remove(&netns.netns_id);
        let mut bytes = Vec::new();
        let mut over = 0;
        let heard = netns.host().bytes(&format!("mac moves@{}", netns.netns_id), "", &mut bytes, |into| {
            let (moves, further) = watch.as_ref().map_or(Ok(Default::default()), MoveWatch::moves)?;
            over = further;
            moves.iter().for_each(|one| one.put(into));
            Ok(())
        });
        match heard {
            Ok(()) => {}
            // Recordings of earlier versions do not contain them.
            Err(error) if error.errno == Errno::NOT_RECORDED => {}
            Err(error) => {
                stats.incomplete(1, format!("hardware addresses that move are not searched for: {error}"));
            }
        }
        if over > 0 {
            stats.incomplete(over, "hardware addresses that bridges learned were too many to follow all");
        }
        let seen = |MacMove { hardware, bridge, ports, count }| MacMoved { hardware, bridge, ports, count };
        sample.around.moves = mac_moves::parse(&bytes).into_iter().map(seen).collect();
    }

    /// A recording of everything has no window to listen in.
    fn save(&mut self, _: &InNetns<'_>, _: &mut Accounting) {}
}
