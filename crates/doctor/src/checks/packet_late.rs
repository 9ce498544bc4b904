//! Programs that get packets late.

use record::rows::{Confidence, Severity};

use super::words::state;
use super::{Check, Findings, Sample};

/// Shortest delay for a finding, in milliseconds: from there on a person who watches notices it.
const LATE_MS: u32 = 100;

pub(super) const CHECK: Check = Check {
    id: "packet-late",
    area: "capture",
    about: "A program gets captured packets a long time after they came.",
    rule: "A packet socket has a ring of TPACKET_V3 whose blocks are given out after 100 ms or more.",
    sources: "the ring of each packet socket by packet_diag: tp_retire_blk_tov",
    refuted_by: "a program that only writes a file: delay does not matter there; or traffic that fills blocks sooner.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    for one in sample.after.late.iter().filter(|one| one.late_ms >= LATE_MS) {
        let who = if one.owner.is_empty() { "a program" } else { &*one.owner };
        found
            .add(Severity::Hint, Confidence::Likely, format!("{who} sees packets up to {} ms late", one.late_ms))
            .object(one.owner.clone())
            .proof([state("milliseconds until a block is given out", one.late_ms, None)])
            .cost("delay, if somebody watches; nothing is lost")
            .remedy(
                "",
                "tcpdump --immediate-mode, or a shorter time to give blocks out, gives each packet at once",
                "",
            );
    }
}
