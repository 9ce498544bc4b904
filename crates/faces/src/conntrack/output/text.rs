//! Entries as lines of text, and the parts that expectations share.

use super::clock::{age_s, put_ctime, seconds};
use super::layout::Layout;
use super::line_writer::LineWriter;
use super::words;
use crate::pieces::{Hex, Outside, Put, list, put, when};
use record::rows::{Conntrack, CtCounters, CtStatus, CtTuple, ip_proto};

/// Appends an entry without the newline.
pub(super) fn put_entry(line: &mut LineWriter<'_>, row: &Conntrack<'_>, layout: &Layout<'_>) {
    match row.family {
        _ if !layout.options.layer3 => {}
        2 => put!(line, "ipv4     2 "),
        10 => put!(line, "ipv6     10 "),
        other => put!(line, "unknown  ", other, " "),
    }
    put!(line, words::head(row.orig.proto).ok_or(("unknown  ", row.orig.proto)));
    put!(line, row.timeout_s.map(|timeout| (" ", timeout)), row.state.map(|state| (" ", words::state(state))));
    put_tuple(line, &row.orig, "src", "dst");
    put!(line, row.orig.zone.map(|zone| (" zone-orig=", zone)), counters(row.counters_orig));
    put!(line, when(row.status.is_some_and(|status| !status.contains(CtStatus::SEEN_REPLY)), " [UNREPLIED]"));
    put_tuple(line, &row.reply, "src", "dst");
    put!(line, row.reply.zone.map(|zone| (" zone-reply=", zone)), counters(row.counters_reply));
    put!(line, row.status.map(assured), row.mark.map(|mark| (" mark=", mark)));
    put_rest(line, row, layout);
}

/// Appends the items after the mark.
fn put_rest(line: &mut LineWriter<'_>, row: &Conntrack<'_>, layout: &Layout<'_>) {
    let outside = |text| Outside(text, layout.options.bug_compatible);
    put!(line, row.secctx.map(|secctx| (" secctx=", outside(secctx))), row.zone.map(|zone| (" zone=", zone)));
    put_times(line, row, layout);
    put!(line, row.helper.map(|helper| (" helper=", outside(helper))), row.uses.map(|uses| (" use=", uses)));
    put!(line, row.id.filter(|_| layout.options.id).map(|id| (" id=", id)));
    if let (Some(names), Some(labels)) = (layout.labels, row.labels) {
        put!(line, " labels");
        let mut between = "=";
        layout.each_label(names, labels, |name| put!(line, std::mem::replace(&mut between, ","), outside(name)));
    }
}

fn put_times(line: &mut LineWriter<'_>, row: &Conntrack<'_>, layout: &Layout<'_>) {
    let stop = row.stop_ns.filter(|stop| *stop != 0).map(seconds);
    if let Some(start) = row.start_ns.map(seconds) {
        let end = stop.unwrap_or_else(|| layout.clock.now_s());
        put!(line, " delta-time=", age_s(start, end, layout.options.bug_compatible));
    }
    if !layout.options.ktimestamp {
        return;
    }
    for (name, moment) in [(" [start=", row.start_ns), (" [stop=", row.stop_ns)] {
        if let Some(moment) = moment {
            put!(line, name);
            put_ctime(line, layout.clock, seconds(moment));
            put!(line, "]");
        }
    }
}

/// Appends ` src=… dst=…` and the protocol's other parts, optionally with other names.
#[inline]
pub(super) fn put_tuple(line: &mut LineWriter<'_>, tuple: &CtTuple, src: &str, dst: &str) {
    put!(line, " ", src, "=", tuple.src, " ", dst, "=", tuple.dst);
    if tuple.has_ports() {
        put!(line, " sport=", tuple.src_part, " dport=", tuple.dst_part);
    } else if let Some(part) = tuple.icmp() {
        put!(line, " type=", part.kind, " code=", part.code, " id=", part.id);
    } else if tuple.proto == ip_proto::GRE {
        put!(line, " srckey=0x", Hex(tuple.src_part), " dstkey=0x", Hex(tuple.dst_part));
    }
}

fn counters(counters: Option<CtCounters>) -> Option<impl for<'a> Put<LineWriter<'a>>> {
    counters.map(|CtCounters { packets, bytes }| list!(" packets=", packets, " bytes=", bytes))
}

fn assured(status: CtStatus) -> &'static str {
    let words =
        [(CtStatus::HW_OFFLOAD, " [HW_OFFLOAD]"), (CtStatus::OFFLOAD, " [OFFLOAD]"), (CtStatus::ASSURED, " [ASSURED]")];
    words.into_iter().find(|(bit, _)| status.contains(*bit)).map_or("", |(_, word)| word)
}
