//! Entries as elements.

use super::clock::{age_s, put_when, seconds};
use super::layout::{Change, Layout, Origin};
use super::line_writer::LineWriter;
use super::words;
use record::Addr;
use record::rows::{Conntrack, CtCounters, CtStatus, CtTuple, ip_proto};

/// Appends declaration and root, before the first element.
pub(super) fn put_head(line: &mut LineWriter<'_>, root: &str) {
    line.word("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n");
    line.open(root);
    line.end();
}

/// Appends `<flow>`, with the type of the event if there is one.
pub(super) fn put_flow(line: &mut LineWriter<'_>, change: Option<Change>) {
    line.word(match change {
        None | Some(Change::Unknown) => "<flow>",
        Some(Change::New) => "<flow type=\"new\">",
        Some(Change::Update) => "<flow type=\"update\">",
        Some(Change::Destroy) => "<flow type=\"destroy\">",
    });
}

/// Appends an entry. `origin` is the process that caused the event, if it belongs in the element.
pub(super) fn put_entry(
    line: &mut LineWriter<'_>,
    row: &Conntrack<'_>,
    change: Option<Change>,
    origin: Option<&Origin<'_>>,
    layout: &Layout<'_>,
) {
    put_flow(line, change);
    // The tool tests the counters of the original direction for both.
    let counted = row.counters_orig.is_some();
    put_direction(line, "original", &row.orig, row.family, counted.then_some(row.counters_orig), layout);
    put_direction(line, "reply", &row.reply, row.family, counted.then_some(row.counters_reply), layout);
    if has_more(row) {
        line.word("<meta direction=\"independent\">");
        put_more(line, row, layout);
        line.close("meta");
    }
    if change.is_some() && layout.options.time {
        put_when(line, layout.clock);
    }
    if let Some(helper) = row.helper {
        line.open("helper");
        line.outside_xml(helper);
        line.close("helper");
    }
    if let Some(origin) = origin {
        line.item("<userspace portid=\"", origin.portid.into());
        if let Some(program) = origin.program {
            line.word("\" progname=\"");
            line.outside_xml(program);
        }
        line.word("\"/>");
    }
    line.close("flow");
}

fn put_direction(
    line: &mut LineWriter<'_>,
    name: &str,
    tuple: &CtTuple,
    family: u8,
    counters: Option<Option<CtCounters>>,
    layout: &Layout<'_>,
) {
    line.word("<meta direction=\"");
    line.word(name);
    line.word("\">");
    put_layer(line, "3", family, words::family(family));
    put_addr(line, "src", tuple.src);
    put_addr(line, "dst", tuple.dst);
    line.close("layer3");
    put_layer(line, "4", tuple.proto, words::protocol(tuple.proto));
    put_parts(line, tuple, layout.options.bug_compatible);
    line.close("layer4");
    if let Some(zone) = tuple.zone {
        line.element("zone", zone.into());
    }
    if let Some(counters) = counters {
        let CtCounters { packets, bytes } = counters.unwrap_or(CtCounters { packets: 0, bytes: 0 });
        line.open("counters");
        line.element("packets", packets);
        line.element("bytes", bytes);
        line.close("counters");
    }
    line.close("meta");
}

/// Appends `<layer3 protonum="2" protoname="ipv4">`.
pub(super) fn put_layer(line: &mut LineWriter<'_>, layer: &str, number: u8, name: &str) {
    line.word("<layer");
    line.word(layer);
    line.item(" protonum=\"", number.into());
    line.word("\" protoname=\"");
    line.word(name);
    line.word("\">");
}

pub(super) fn put_addr(line: &mut LineWriter<'_>, name: &str, addr: Addr) {
    line.open(name);
    line.addr(addr);
    line.close(name);
}

/// Appends the protocol's parts in addition to the addresses. The tool has none for ICMP.
pub(super) fn put_parts(line: &mut LineWriter<'_>, tuple: &CtTuple, bug_compatible: bool) {
    if tuple.has_ports() {
        line.element("sport", tuple.src_part.into());
        line.element("dport", tuple.dst_part.into());
    } else if tuple.proto == ip_proto::GRE {
        for (name, key) in [("srckey", tuple.src_part), ("dstkey", tuple.dst_part)] {
            line.open(name);
            line.word("0x");
            line.hex(key.into());
            line.close(name);
        }
    } else if let (Some(part), false) = (tuple.icmp(), bug_compatible) {
        line.element("type", part.kind.into());
        line.element("code", part.code.into());
        line.element("id", part.id.into());
    }
}

fn has_more(row: &Conntrack<'_>) -> bool {
    let numbers = [row.timeout_s, row.mark, row.uses, row.id].iter().any(Option::is_some);
    let times = row.start_ns.is_some() || row.stop_ns.is_some();
    numbers || times || row.state.is_some() || row.zone.is_some() || row.status.is_some() || row.labels.is_some()
}

fn put_more(line: &mut LineWriter<'_>, row: &Conntrack<'_>, layout: &Layout<'_>) {
    if let Some(state) = row.state {
        line.open("state");
        let old = layout.options.bug_compatible;
        line.word(if old { words::state_in_old_xml(state) } else { words::state(state) });
        line.close("state");
    }
    put_number(line, "timeout", row.timeout_s);
    put_number(line, "mark", row.mark);
    if let (Some(names), Some(labels)) = (layout.labels, row.labels) {
        line.open("labels");
        layout.each_label(names, labels, |name| {
            line.open("label");
            line.outside_xml(name);
            line.close("label");
        });
        line.close("labels");
    }
    if let Some(secctx) = row.secctx {
        line.open("secctx");
        line.outside_xml(secctx);
        line.close("secctx");
    }
    put_number(line, "zone", row.zone.map(u32::from));
    put_number(line, "use", row.uses);
    put_number(line, "id", row.id);
    if let Some(status) = row.status {
        if status.has(CtStatus::ASSURED) {
            line.word("<assured/>");
        }
        if !status.has(CtStatus::SEEN_REPLY) {
            line.word("<unreplied/>");
        }
    }
    put_times(line, row, layout);
}

fn put_number(line: &mut LineWriter<'_>, name: &str, number: Option<u32>) {
    if let Some(number) = number {
        line.element(name, number.into());
    }
}

fn put_times(line: &mut LineWriter<'_>, row: &Conntrack<'_>, layout: &Layout<'_>) {
    let old = layout.options.bug_compatible;
    if layout.options.ktimestamp && (row.start_ns.is_some() || row.stop_ns.is_some()) {
        line.open("timestamp");
        for (name, moment) in [("start", row.start_ns), ("stop", row.stop_ns)] {
            if let Some(moment) = moment {
                line.element(name, moment);
            }
        }
        line.close("timestamp");
    }
    match (row.start_ns, row.stop_ns) {
        (Some(start), Some(stop)) => line.element("deltatime", stop.saturating_sub(start) / 1_000_000_000),
        (Some(start), None) => line.element("deltatime", age_s(seconds(start), layout.clock.now_s(), old)),
        _ => {}
    }
}
