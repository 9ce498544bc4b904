//! Hardware addresses that move back and forth between the ports of a bridge.

use record::rows::{Confidence, Severity};

use super::words::{argument, state};
use super::{Check, Findings, Probe, Sample};
use crate::seen::MacMoved;

/// Fewest moves for a finding: a guest that is migrated, a wireless client that roams and a service that fails over
/// move once, or there and back.
const SOME: u32 = 3;
/// Most addresses that a finding names.
const SHOWN_MAX: usize = 4;

pub(super) const CHECK: Check = Check {
    id: "mac-moves",
    needs: &[Probe::Links, Probe::MacMoves],
    area: "interfaces",
    about: "A hardware address moves back and forth between ports of a bridge: two hosts have it, or frames circulate.",
    rule: "Within the window a bridge learned an address at another port at least 3 times. With one such address two \
           hosts probably have it; with several, frames probably come back through a loop.",
    sources: "notifications of rtnetlink: RTM_NEWNEIGH of the family AF_BRIDGE",
    refuted_by: "`bridge monitor fdb` that does not show the address at two ports in turn; a host with two cards that \
                 sends through both on purpose (a bond without LACP).",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    let around = &sample.around;
    let bridges = around.links.iter().filter(|link| link.is_bridge);
    for bridge in bridges {
        let is_often = |one: &&MacMoved| one.bridge == bridge.index && one.count >= SOME;
        let mut moves: Vec<&MacMoved> = around.moves.iter().filter(is_often).collect();
        moves.sort_by_key(|one| std::cmp::Reverse(one.count));
        let Some(first) = moves.first() else { continue };
        let text = |one: &MacMoved| one.hardware.map(|byte| format!("{byte:02x}")).join(":");
        let [one_port, other_port] = first.ports.map(|index| around.iface(index));
        let between = format!("between the ports {one_port} and {other_port} of {}", bridge.name);
        let (title, next) = match moves.len() {
            1 => (
                format!("{} moves {between}: two hosts have this hardware address", text(first)),
                "give one of the two hosts another hardware address (cloned guests have the same one)",
            ),
            all => (
                format!("{all} hardware addresses move {between}: frames come back through a loop"),
                "remove one of the links between the two ports, or turn on STP at all bridges of the loop",
            ),
        };
        let lost = moves.iter().map(|one| u64::from(one.count)).sum::<u64>();
        let name = argument(&bridge.name, "BRIDGE");
        found
            .add(Severity::Warning, Confidence::Likely, title)
            .object(bridge.name.clone())
            .proof(
                moves
                    .iter()
                    .take(SHOWN_MAX)
                    .map(|one| state(format!("moves of {} {between}", text(one)), one.count, None)),
            )
            .cost(format!("{lost} moves in {:.1} s; frames for the address reach one port only", sample.seconds()))
            .remedy(format!("bridge fdb show br {name}"), "shows the addresses at each port", "")
            .remedy("", next, "");
    }
}
