//! An entry as an element.

use super::clock::{age_s, put_when, seconds};
use super::pen::Pen;
use super::words;
use super::writer::{Change, Look, Origin};
use record::Addr;
use record::rows::{Conntrack, CtCounters, CtStatus, CtTuple, ip_proto};

/// Declaration and root, in front of the first element.
pub(super) fn put_head(pen: &mut Pen<'_>, root: &str) {
    pen.word("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n");
    pen.open(root);
    pen.end();
}

/// `<flow>`, with the kind of event if it is one.
pub(super) fn put_flow(pen: &mut Pen<'_>, change: Option<Change>) {
    pen.word(match change {
        None | Some(Change::Unknown) => "<flow>",
        Some(Change::New) => "<flow type=\"new\">",
        Some(Change::Update) => "<flow type=\"update\">",
        Some(Change::Destroy) => "<flow type=\"destroy\">",
    });
}

/// An entry. `origin` is whose doing the event was, where that belongs into the element.
pub(super) fn put_entry(
    pen: &mut Pen<'_>,
    row: &Conntrack<'_>,
    change: Option<Change>,
    origin: Option<&Origin<'_>>,
    look: &Look<'_>,
) {
    put_flow(pen, change);
    // The tool looks at the counters of the original direction for both.
    let counted = row.counters_orig.is_some();
    put_direction(pen, "original", &row.orig, row.family, counted.then_some(row.counters_orig), look);
    put_direction(pen, "reply", &row.reply, row.family, counted.then_some(row.counters_reply), look);
    if has_more(row) {
        pen.word("<meta direction=\"independent\">");
        put_more(pen, row, look);
        pen.close("meta");
    }
    if change.is_some() && look.options.time {
        put_when(pen, look.clock);
    }
    if let Some(helper) = row.helper {
        pen.open("helper");
        pen.outside_xml(helper);
        pen.close("helper");
    }
    if let Some(origin) = origin {
        pen.item("<userspace portid=\"", origin.portid.into());
        if let Some(program) = origin.program {
            pen.word("\" progname=\"");
            pen.outside_xml(program);
        }
        pen.word("\"/>");
    }
    pen.close("flow");
}

fn put_direction(
    pen: &mut Pen<'_>,
    name: &str,
    tuple: &CtTuple,
    family: u8,
    counters: Option<Option<CtCounters>>,
    look: &Look<'_>,
) {
    pen.word("<meta direction=\"");
    pen.word(name);
    pen.word("\">");
    put_layer(pen, "3", family, words::family(family));
    put_addr(pen, "src", tuple.src);
    put_addr(pen, "dst", tuple.dst);
    pen.close("layer3");
    put_layer(pen, "4", tuple.proto, words::protocol(tuple.proto));
    put_parts(pen, tuple, look.options.bug_compatible);
    pen.close("layer4");
    if let Some(zone) = tuple.zone {
        pen.element("zone", zone.into());
    }
    if let Some(counters) = counters {
        let CtCounters { packets, bytes } = counters.unwrap_or(CtCounters { packets: 0, bytes: 0 });
        pen.open("counters");
        pen.element("packets", packets);
        pen.element("bytes", bytes);
        pen.close("counters");
    }
    pen.close("meta");
}

/// `<layer3 protonum="2" protoname="ipv4">`
pub(super) fn put_layer(pen: &mut Pen<'_>, layer: &str, number: u8, name: &str) {
    pen.word("<layer");
    pen.word(layer);
    pen.item(" protonum=\"", number.into());
    pen.word("\" protoname=\"");
    pen.word(name);
    pen.word("\">");
}

pub(super) fn put_addr(pen: &mut Pen<'_>, name: &str, addr: Addr) {
    pen.open(name);
    pen.addr(addr);
    pen.close(name);
}

/// What the protocol has beside the addresses. The tool has nothing for ICMP.
pub(super) fn put_parts(pen: &mut Pen<'_>, tuple: &CtTuple, bug_compatible: bool) {
    if tuple.has_ports() {
        pen.element("sport", tuple.src_part.into());
        pen.element("dport", tuple.dst_part.into());
    } else if tuple.proto == ip_proto::GRE {
        for (name, key) in [("srckey", tuple.src_part), ("dstkey", tuple.dst_part)] {
            pen.open(name);
            pen.word("0x");
            pen.hex(key.into());
            pen.close(name);
        }
    } else if let (Some(part), false) = (tuple.icmp(), bug_compatible) {
        pen.element("type", part.kind.into());
        pen.element("code", part.code.into());
        pen.element("id", part.id.into());
    }
}

fn has_more(row: &Conntrack<'_>) -> bool {
    let numbers = [row.timeout_s, row.mark, row.uses, row.id].iter().any(Option::is_some);
    let times = row.start_ns.is_some() || row.stop_ns.is_some();
    numbers || times || row.state.is_some() || row.zone.is_some() || row.status.is_some() || row.labels.is_some()
}

fn put_more(pen: &mut Pen<'_>, row: &Conntrack<'_>, look: &Look<'_>) {
    if let Some(state) = row.state {
        pen.open("state");
        let old = look.options.bug_compatible;
        pen.word(if old { words::state_in_old_xml(state) } else { words::state(state) });
        pen.close("state");
    }
    put_number(pen, "timeout", row.timeout_s);
    put_number(pen, "mark", row.mark);
    if let (Some(names), Some(labels)) = (look.labels, row.labels) {
        pen.open("labels");
        look.each_label(names, labels, |name| {
            pen.open("label");
            pen.outside_xml(name);
            pen.close("label");
        });
        pen.close("labels");
    }
    if let Some(secctx) = row.secctx {
        pen.open("secctx");
        pen.outside_xml(secctx);
        pen.close("secctx");
    }
    put_number(pen, "zone", row.zone.map(u32::from));
    put_number(pen, "use", row.uses);
    put_number(pen, "id", row.id);
    if let Some(status) = row.status {
        if status.has(CtStatus::ASSURED) {
            pen.word("<assured/>");
        }
        if !status.has(CtStatus::SEEN_REPLY) {
            pen.word("<unreplied/>");
        }
    }
    put_times(pen, row, look);
}

fn put_number(pen: &mut Pen<'_>, name: &str, number: Option<u32>) {
    if let Some(number) = number {
        pen.element(name, number.into());
    }
}

fn put_times(pen: &mut Pen<'_>, row: &Conntrack<'_>, look: &Look<'_>) {
    let old = look.options.bug_compatible;
    if look.options.ktimestamp && (row.start_ns.is_some() || row.stop_ns.is_some()) {
        pen.open("timestamp");
        for (name, moment) in [("start", row.start_ns), ("stop", row.stop_ns)] {
            if let Some(moment) = moment {
                pen.element(name, moment);
            }
        }
        pen.close("timestamp");
    }
    match (row.start_ns, row.stop_ns) {
        (Some(start), Some(stop)) => pen.element("deltatime", stop.saturating_sub(start) / 1_000_000_000),
        (Some(start), None) => pen.element("deltatime", age_s(seconds(start), look.clock.now_s(), old)),
        _ => {}
    }
}
