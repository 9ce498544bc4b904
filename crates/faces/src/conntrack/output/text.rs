//! Entries as lines of text, and the parts that expectations share.

use super::clock::{age_s, put_ctime, seconds};
use super::layout::Layout;
use super::line_writer::LineWriter;
use super::words;
use record::rows::{Conntrack, CtCounters, CtStatus, CtTuple, ip_proto};

/// Appends an entry without the newline.
pub(super) fn put_entry(line: &mut LineWriter<'_>, row: &Conntrack<'_>, layout: &Layout<'_>) {
    if layout.options.layer3 {
        put_family(line, row.family);
    }
    match words::head(row.orig.proto) {
        Some(head) => line.word(head),
        None => line.item("unknown  ", row.orig.proto.into()),
    }
    if let Some(timeout) = row.timeout_s {
        line.item(" ", timeout.into());
    }
    if let Some(state) = row.state {
        line.byte(b' ');
        line.word(words::state(state));
    }
    put_tuple(line, &row.orig, "src", "dst");
    put_zone_of(line, " zone-orig=", &row.orig);
    put_counters(line, row.counters_orig);
    if row.status.is_some_and(|status| !status.has(CtStatus::SEEN_REPLY)) {
        line.word(" [UNREPLIED]");
    }
    put_tuple(line, &row.reply, "src", "dst");
    put_zone_of(line, " zone-reply=", &row.reply);
    put_counters(line, row.counters_reply);
    if let Some(status) = row.status {
        put_assured(line, status);
    }
    if let Some(mark) = row.mark {
        line.item(" mark=", mark.into());
    }
    put_rest(line, row, layout);
}

/// Appends the items after the mark.
fn put_rest(line: &mut LineWriter<'_>, row: &Conntrack<'_>, layout: &Layout<'_>) {
    if let Some(secctx) = row.secctx {
        line.word(" secctx=");
        line.outside(secctx);
    }
    if let Some(zone) = row.zone {
        line.item(" zone=", zone.into());
    }
    put_times(line, row, layout);
    if let Some(helper) = row.helper {
        line.word(" helper=");
        line.outside(helper);
    }
    if let Some(uses) = row.uses {
        line.item(" use=", uses.into());
    }
    if let (true, Some(id)) = (layout.options.id, row.id) {
        line.item(" id=", id.into());
    }
    if let (Some(names), Some(labels)) = (layout.labels, row.labels) {
        line.word(" labels");
        let mut between = b'=';
        layout.each_label(names, labels, |name| {
            line.byte(between);
            line.outside(name);
            between = b',';
        });
    }
}

fn put_times(line: &mut LineWriter<'_>, row: &Conntrack<'_>, layout: &Layout<'_>) {
    let stop = row.stop_ns.filter(|stop| *stop != 0).map(seconds);
    if let Some(start) = row.start_ns.map(seconds) {
        let end = stop.unwrap_or_else(|| layout.clock.now_s());
        line.item(" delta-time=", age_s(start, end, layout.options.bug_compatible));
    }
    if !layout.options.ktimestamp {
        return;
    }
    for (name, moment) in [(" [start=", row.start_ns), (" [stop=", row.stop_ns)] {
        if let Some(moment) = moment {
            line.word(name);
            put_ctime(line, layout.clock, seconds(moment));
            line.byte(b']');
        }
    }
}

fn put_family(line: &mut LineWriter<'_>, family: u8) {
    match family {
        2 => line.word("ipv4     2 "),
        10 => line.word("ipv6     10 "),
        other => {
            line.item("unknown  ", other.into());
            line.byte(b' ');
        }
    }
}

/// Appends ` src=… dst=…` and the protocol's other parts, optionally with other names.
#[inline]
pub(super) fn put_tuple(line: &mut LineWriter<'_>, tuple: &CtTuple, src: &str, dst: &str) {
    line.byte(b' ');
    line.word(src);
    line.byte(b'=');
    line.addr(tuple.src);
    line.byte(b' ');
    line.word(dst);
    line.byte(b'=');
    line.addr(tuple.dst);
    put_parts(line, tuple);
}

#[inline]
pub(super) fn put_parts(line: &mut LineWriter<'_>, tuple: &CtTuple) {
    if tuple.has_ports() {
        line.item(" sport=", tuple.src_part.into());
        line.item(" dport=", tuple.dst_part.into());
    } else if let Some(part) = tuple.icmp() {
        line.item(" type=", part.kind.into());
        line.item(" code=", part.code.into());
        line.item(" id=", part.id.into());
    } else if tuple.proto == ip_proto::GRE {
        line.word(" srckey=0x");
        line.hex(tuple.src_part.into());
        line.word(" dstkey=0x");
        line.hex(tuple.dst_part.into());
    }
}

fn put_zone_of(line: &mut LineWriter<'_>, name: &str, tuple: &CtTuple) {
    if let Some(zone) = tuple.zone {
        line.item(name, zone.into());
    }
}

fn put_counters(line: &mut LineWriter<'_>, counters: Option<CtCounters>) {
    if let Some(CtCounters { packets, bytes }) = counters {
        line.item(" packets=", packets);
        line.item(" bytes=", bytes);
    }
}

fn put_assured(line: &mut LineWriter<'_>, status: CtStatus) {
    if status.has(CtStatus::HW_OFFLOAD) {
        line.word(" [HW_OFFLOAD]");
    } else if status.has(CtStatus::OFFLOAD) {
        line.word(" [OFFLOAD]");
    } else if status.has(CtStatus::ASSURED) {
        line.word(" [ASSURED]");
    }
}
