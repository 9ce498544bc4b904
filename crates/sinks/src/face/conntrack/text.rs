//! An entry as a line of text, and the pieces that expectations share.

use super::clock::{age_s, put_ctime, seconds};
use super::pen::Pen;
use super::words;
use super::writer::Look;
use record::rows::{Conntrack, CtCounters, CtStatus, CtTuple, ip_proto};

/// An entry without the end of its line.
pub(super) fn put_entry(pen: &mut Pen<'_>, row: &Conntrack<'_>, look: &Look<'_>) {
    if look.options.layer3 {
        put_family(pen, row.family);
    }
    match words::head(row.orig.proto) {
        Some(head) => pen.word(head),
        None => pen.item("unknown  ", row.orig.proto.into()),
    }
    if let Some(timeout) = row.timeout_s {
        pen.item(" ", timeout.into());
    }
    if let Some(state) = row.state {
        pen.byte(b' ');
        pen.word(words::state(state));
    }
    put_tuple(pen, &row.orig, "src", "dst");
    put_zone_of(pen, " zone-orig=", &row.orig);
    put_counters(pen, row.counters_orig);
    if row.status.is_some_and(|status| !status.has(CtStatus::SEEN_REPLY)) {
        pen.word(" [UNREPLIED]");
    }
    put_tuple(pen, &row.reply, "src", "dst");
    put_zone_of(pen, " zone-reply=", &row.reply);
    put_counters(pen, row.counters_reply);
    if let Some(status) = row.status {
        put_assured(pen, status);
    }
    if let Some(mark) = row.mark {
        pen.item(" mark=", mark.into());
    }
    put_rest(pen, row, look);
}

/// What stands behind the mark.
fn put_rest(pen: &mut Pen<'_>, row: &Conntrack<'_>, look: &Look<'_>) {
    if let Some(secctx) = row.secctx {
        pen.word(" secctx=");
        pen.outside(secctx);
    }
    if let Some(zone) = row.zone {
        pen.item(" zone=", zone.into());
    }
    put_times(pen, row, look);
    if let Some(helper) = row.helper {
        pen.word(" helper=");
        pen.outside(helper);
    }
    if let Some(uses) = row.uses {
        pen.item(" use=", uses.into());
    }
    if let (true, Some(id)) = (look.options.id, row.id) {
        pen.item(" id=", id.into());
    }
    if let (Some(names), Some(labels)) = (look.labels, row.labels) {
        pen.word(" labels");
        let mut between = b'=';
        look.each_label(names, labels, |name| {
            pen.byte(between);
            pen.outside(name);
            between = b',';
        });
    }
}

fn put_times(pen: &mut Pen<'_>, row: &Conntrack<'_>, look: &Look<'_>) {
    let stop = row.stop_ns.filter(|stop| *stop != 0).map(seconds);
    if let Some(start) = row.start_ns.map(seconds) {
        let end = stop.unwrap_or_else(|| look.clock.now_s());
        pen.item(" delta-time=", age_s(start, end, look.options.bug_compatible));
    }
    if !look.options.ktimestamp {
        return;
    }
    for (name, moment) in [(" [start=", row.start_ns), (" [stop=", row.stop_ns)] {
        if let Some(moment) = moment {
            pen.word(name);
            put_ctime(pen, look.clock, seconds(moment));
            pen.byte(b']');
        }
    }
}

fn put_family(pen: &mut Pen<'_>, family: u8) {
    match family {
        2 => pen.word("ipv4     2 "),
        10 => pen.word("ipv6     10 "),
        other => {
            pen.item("unknown  ", other.into());
            pen.byte(b' ');
        }
    }
}

/// ` src=… dst=…` and what the protocol has beside them, under other names too.
#[inline]
pub(super) fn put_tuple(pen: &mut Pen<'_>, tuple: &CtTuple, src: &str, dst: &str) {
    pen.byte(b' ');
    pen.word(src);
    pen.byte(b'=');
    pen.addr(tuple.src);
    pen.byte(b' ');
    pen.word(dst);
    pen.byte(b'=');
    pen.addr(tuple.dst);
    put_parts(pen, tuple);
}

#[inline]
pub(super) fn put_parts(pen: &mut Pen<'_>, tuple: &CtTuple) {
    if tuple.has_ports() {
        pen.item(" sport=", tuple.src_part.into());
        pen.item(" dport=", tuple.dst_part.into());
    } else if let Some(part) = tuple.icmp() {
        pen.item(" type=", part.kind.into());
        pen.item(" code=", part.code.into());
        pen.item(" id=", part.id.into());
    } else if tuple.proto == ip_proto::GRE {
        pen.word(" srckey=0x");
        pen.hex(tuple.src_part.into());
        pen.word(" dstkey=0x");
        pen.hex(tuple.dst_part.into());
    }
}

fn put_zone_of(pen: &mut Pen<'_>, name: &str, tuple: &CtTuple) {
    if let Some(zone) = tuple.zone {
        pen.item(name, zone.into());
    }
}

fn put_counters(pen: &mut Pen<'_>, counters: Option<CtCounters>) {
    if let Some(CtCounters { packets, bytes }) = counters {
        pen.item(" packets=", packets);
        pen.item(" bytes=", bytes);
    }
}

fn put_assured(pen: &mut Pen<'_>, status: CtStatus) {
    if status.has(CtStatus::HW_OFFLOAD) {
        pen.word(" [HW_OFFLOAD]");
    } else if status.has(CtStatus::OFFLOAD) {
        pen.word(" [OFFLOAD]");
    } else if status.has(CtStatus::ASSURED) {
        pen.word(" [ASSURED]");
    }
}
