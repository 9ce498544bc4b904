//! Programs that get packets late.

use record::rows::{Confidence, Severity};

use super::words::state;
use super::{Check, Findings, Probe, Sample};

/// Shortest delay for a finding, in milliseconds: from there on a person who watches notices it.
const LATE_MS: u32 = 100;

pub(super) const CHECK: Check = Check {
    id: "packet-late",
    needs: &[Probe::Sockets],
    area: "capture",
    about: "A program receives captured packets long after their arrival.",
    rule: "A packet socket has a TPACKET_V3 ring whose blocks are delivered after 100 ms or more.",
    sources: "the ring of each packet socket via packet_diag: tp_retire_blk_tov",
    refuted_by: "a program that only writes a file: a delay does not matter; or traffic that fills blocks sooner.",
    run,
};

fn run(sample: &Sample, found: &mut Findings<'_>) {
    for one in sample.after.late.iter().filter(|one| one.late_ms >= LATE_MS) {
        let who = &one.owner;
        found
            .add(Severity::Hint, Confidence::Likely, format!("{who} receives packets up to {} ms late", one.late_ms))
            .object(who.name.clone())
            .holder(who)
            .proof([state("milliseconds until a block is delivered", one.late_ms, None)])
            .cost("delay in live output; no packets are lost")
            .remedy(
                "",
                "tcpdump --immediate-mode delivers each packet at once; a shorter block timeout delivers them sooner",
                "",
            );
    }
}
