//! FTP and TFTP control connections without a conntrack helper.

use doctor::seen::{CONTROLS_MAX, Control, ControlKind, DropSeen, Sample};
use record::Accounting;
use record::rows::{Conntrack, CtTuple, ip_proto};

use crate::counter_window::Samples;
use crate::entries::EntriesPass;
use crate::probe::{ProbeReader, Round};

/// The entries to read: those at the ports of [`ControlKind`]. Backends that can filter send no others.
const ENTRIES: EntriesPass = EntriesPass {
    fields: &[
        "proto",
        "orig_src",
        "orig_sport",
        "orig_dst",
        "orig_dport",
        "reply_src",
        "reply_dst",
        "reply_dport",
        "helper",
    ],
    filter: "orig_dport in (21, 69)",
    lack: "connections without a helper are not searched for",
};

/// Reads the control connections of namespaces where rules dropped packets that may be their data.
pub(crate) struct ControlReader;

impl ProbeReader for ControlReader {
    fn follow(&mut self, round: &Round<'_>, samples: &mut Samples, stats: &mut Accounting) {
        let mut over = 0;
        let has_data = |sample: &Sample| sample.around.drops.iter().flatten().any(DropSeen::may_be_data);
        let add = |sample: &mut Sample, row: &Conntrack<'_>| {
            let controls = &mut sample.around.controls;
            match read_control(row) {
                Some(control) if controls.len() < CONTROLS_MAX => controls.push(control),
                Some(_) => over += 1,
                None => {}
            }
        };
        ENTRIES.run(round.session, samples, has_data, add, stats);
        if over > 0 {
            let text = format!("FTP and TFTP connections after the first {CONTROLS_MAX} are not checked for a helper");
            stats.incomplete(over, text);
        }
    }
}

/// The control connection of an entry, if it has no helper.
fn read_control(row: &Conntrack<'_>) -> Option<Control> {
    let is_of = |kind: &ControlKind| {
        let proto = match kind {
            ControlKind::Ftp => ip_proto::TCP,
            ControlKind::Tftp => ip_proto::UDP,
        };
        row.orig.proto == proto && row.orig.dport() == Some(kind.port())
    };
    let kind = ControlKind::ALL.into_iter().find(is_of).filter(|_| row.helper.is_none())?;
    let CtTuple { src, dst, src_part, .. } = row.orig;
    Some(Control {
        kind,
        client: src.unmapped(),
        server: dst.unmapped(),
        real_server: row.reply.src.unmapped(),
        outside: row.reply.dst.unmapped(),
        client_ports: [src_part, row.reply.dst_part],
    })
}
