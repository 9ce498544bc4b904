//! Entries as elements.

use super::clock::{age_s, put_when, seconds};
use super::layout::{Change, Layout, Origin};
use super::line_writer::{Element, LineWriter, OutsideXml};
use super::words;
use crate::pieces::{Hex, list, put, when};
use record::rows::{Conntrack, CtCounters, CtStatus, CtTuple, ip_proto};

/// Appends declaration and root, before the first element.
pub(super) fn put_head(line: &mut LineWriter<'_>, root: &str) {
    put!(line, "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<", root, ">");
    line.end();
}

/// Appends `<flow>`, with the type of the event if there is one.
pub(super) fn put_flow(line: &mut LineWriter<'_>, change: Option<Change>) {
    match change {
        None | Some(Change::Unknown) => put!(line, "<flow>"),
        Some(Change::New) => put!(line, "<flow type=\"new\">"),
        Some(Change::Update) => put!(line, "<flow type=\"update\">"),
        Some(Change::Destroy) => put!(line, "<flow type=\"destroy\">"),
    }
}

/// Appends an entry. `origin` is the process that caused the event, if it belongs in the element.
pub(super) fn put_entry(
    line: &mut LineWriter<'_>,
    row: &Conntrack<'_>,
    change: Option<Change>,
    origin: Option<&Origin<'_>>,
    layout: &Layout<'_>,
) {
    let outside = |text| OutsideXml(text, layout.options.bug_compatible);
    put_flow(line, change);
    // The tool tests the counters of the original direction for both.
    let counted = row.counters_orig.is_some();
    put_direction(line, "original", &row.orig, row.family, counted.then_some(row.counters_orig), layout);
    put_direction(line, "reply", &row.reply, row.family, counted.then_some(row.counters_reply), layout);
    if has_more(row) {
        put!(line, "<meta direction=\"independent\">");
        put_more(line, row, layout);
        put!(line, "</meta>");
    }
    if change.is_some() && layout.options.time {
        put_when(line, layout.clock);
    }
    put!(line, row.helper.map(|helper| Element("helper", outside(helper))));
    if let Some(origin) = origin {
        let program = origin.program.map(|program| ("\" progname=\"", outside(program)));
        put!(line, "<userspace portid=\"", origin.portid, program, "\"/>");
    }
    put!(line, "</flow>");
}

fn put_direction(
    line: &mut LineWriter<'_>,
    name: &str,
    tuple: &CtTuple,
    family: u8,
    counters: Option<Option<CtCounters>>,
    layout: &Layout<'_>,
) {
    put!(line, "<meta direction=\"", name, "\">");
    put_layer(line, "3", family, words::family(family));
    put!(line, Element("src", tuple.src), Element("dst", tuple.dst), "</layer3>");
    put_layer(line, "4", tuple.proto, words::protocol(tuple.proto));
    put_parts(line, tuple, layout.options.bug_compatible);
    put!(line, "</layer4>", tuple.zone.map(|zone| Element("zone", zone)));
    if let Some(counters) = counters {
        let CtCounters { packets, bytes } = counters.unwrap_or(CtCounters { packets: 0, bytes: 0 });
        put!(line, Element("counters", list!(Element("packets", packets), Element("bytes", bytes))));
    }
    put!(line, "</meta>");
}

/// Appends `<layer3 protonum="2" protoname="ipv4">`.
pub(super) fn put_layer(line: &mut LineWriter<'_>, layer: &str, number: u8, name: &str) {
    put!(line, "<layer", layer, " protonum=\"", number, "\" protoname=\"", name, "\">");
}

/// Appends the protocol's parts in addition to the addresses. The tool has none for ICMP.
pub(super) fn put_parts(line: &mut LineWriter<'_>, tuple: &CtTuple, bug_compatible: bool) {
    if tuple.has_ports() {
        put!(line, Element("sport", tuple.src_part), Element("dport", tuple.dst_part));
    } else if tuple.proto == ip_proto::GRE {
        let [src, dst] = [tuple.src_part, tuple.dst_part].map(|key| ("0x", Hex(key)));
        put!(line, Element("srckey", src), Element("dstkey", dst));
    } else if let (Some(part), false) = (tuple.icmp(), bug_compatible) {
        put!(line, Element("type", part.kind), Element("code", part.code), Element("id", part.id));
    }
}

fn has_more(row: &Conntrack<'_>) -> bool {
    let numbers = [row.timeout_s, row.mark, row.uses, row.id].iter().any(Option::is_some);
    let times = row.start_ns.is_some() || row.stop_ns.is_some();
    numbers || times || row.state.is_some() || row.zone.is_some() || row.status.is_some() || row.labels.is_some()
}

fn put_more(line: &mut LineWriter<'_>, row: &Conntrack<'_>, layout: &Layout<'_>) {
    let outside = |text| OutsideXml(text, layout.options.bug_compatible);
    let word = if layout.options.bug_compatible { words::state_in_old_xml } else { words::state };
    put!(line, row.state.map(|state| Element("state", word(state))));
    put!(line, row.timeout_s.map(|timeout| Element("timeout", timeout)), row.mark.map(|mark| Element("mark", mark)));
    if let (Some(names), Some(labels)) = (layout.labels, row.labels) {
        put!(line, "<labels>");
        layout.each_label(names, labels, |name| put!(line, Element("label", outside(name))));
        put!(line, "</labels>");
    }
    put!(line, row.secctx.map(|secctx| Element("secctx", outside(secctx))), row.zone.map(|zone| Element("zone", zone)));
    put!(line, row.uses.map(|uses| Element("use", uses)), row.id.map(|id| Element("id", id)));
    if let Some(status) = row.status {
        put!(line, when(status.contains(CtStatus::ASSURED), "<assured/>"));
        put!(line, when(!status.contains(CtStatus::SEEN_REPLY), "<unreplied/>"));
    }
    let (start, stop) = (row.start_ns, row.stop_ns);
    if layout.options.ktimestamp && (start.is_some() || stop.is_some()) {
        let [start, stop] = [("start", start), ("stop", stop)].map(|(name, at)| at.map(|at| Element(name, at)));
        put!(line, Element("timestamp", (start, stop)));
    }
    let age = match (start, stop) {
        (Some(start), Some(stop)) => Some(stop.saturating_sub(start) / 1_000_000_000),
        (Some(start), None) => Some(age_s(seconds(start), layout.clock.now_s(), layout.options.bug_compatible)),
        _ => None,
    };
    put!(line, age.map(|age| Element("deltatime", age)));
}
