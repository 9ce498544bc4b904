//! The lines of each part of the home screen.

use super::fit::{cell, escape_bytes, format_short};
use super::{NamedCells, ScreenLines, Tone};
use crate::cut::{shorten_end, shorten_middle, width_of};
use crate::native::{bit_rate, byte_rate, put_link_addr};
use record::text::{put_addr, put_seconds};
use record::{OwnedObject, OwnedValue, Value};
use std::fmt::Write;

/// Number of rows of each part that fit on every screen.
const INTERFACES_MAX: usize = 3;
const SOCKET_LINES_MAX: usize = 2;
const FLOWS_MAX: usize = 5;
const CAUSES_MAX: usize = 3;
const REASONS_MAX: usize = 2;

/// Columns of a flow in addition to its ends and its process: protocol, direction, numbers, and the gaps between them.
const FLOW_NUMBERS: usize = 2 + 5 + 4 + 5 + 10 + 10 + 2;
/// Columns for the process of a flow on a screen of 80.
const PROCESS: usize = 15;

/// The host: its name, kernel and uptime, and when and how long it was looked at.
pub(super) fn head(cells: &NamedCells<'_, '_>, lines: &mut ScreenLines) {
    let host = shorten_middle(&word(cells.value("host")), 24).into_owned();
    let mut line = format!("{host}  Linux {}", shorten_middle(&word(cells.value("kernel")), 24));
    if let Value::U64(up) = cells.value("uptime_s") {
        let (days, hours, minutes) = (up / 86_400, up / 3600 % 24, up / 60 % 60);
        let days = if days > 0 { format!("{days} d ") } else { String::new() };
        let _ = write!(line, "  up {days}{hours:02}:{minutes:02}");
    }
    if let Value::Time(ns) = cells.value("time") {
        let mut time = Vec::new();
        put_seconds(&mut time, i64::try_from(ns / 1_000_000_000).unwrap_or(0));
        let _ = write!(line, "  {}", String::from_utf8_lossy(&time));
    }
    if let Value::U64(us) = cells.value("window_us") {
        let _ = write!(line, "  over {}.{} s", us / 1_000_000, us / 100_000 % 10);
    }
    lines.put(Tone::Heading, &line);
}

/// The busiest interfaces.
pub(super) fn interfaces(cells: &NamedCells<'_, '_>, lines: &mut ScreenLines) {
    let (mut all, total) = (cells.objects("interfaces"), cells.number("interfaces_total"));
    all.retain(|one| !is_idle(one));
    let rows = lines.rows(INTERFACES_MAX, all.len());
    let label = label_with_total("ifaces", total, rows);
    if all.is_empty() {
        lines.put_labelled(&label, if total == 0 { "none" } else { "no traffic" });
    }
    let with_netns = has_several_netns(&all);
    let names: Vec<String> = all.iter().take(rows).map(|one| name_in(one, "iface", with_netns)).collect();
    // The numbers stay next to the names on wide screens.
    let longest = names.iter().map(|name| width_of(name)).max().unwrap_or(0);
    let room = longest.clamp(11, 11 + lines.width.saturating_sub(80));
    for (nth, (one, name)) in all.iter().zip(&names).enumerate() {
        let rate = |bits, packets| match (one.get(bits), one.get(packets)) {
            (Value::U64(bits), Value::U64(packets)) => {
                format!("{:>11} {:>5} pkt/s", bit_rate(bits), format_short(packets))
            }
            _ => format!("{:>23}", "rate unknown"),
        };
        let text = format!(
            "{} in {} out {}",
            cell(name, room),
            rate("bits_in_per_s", "packets_in_per_s"),
            rate("bits_out_per_s", "packets_out_per_s")
        );
        lines.put_labelled(if nth == 0 { &label } else { "" }, &text);
    }
}

/// True if an interface is known to carry no packets.
fn is_idle(one: &OwnedObject) -> bool {
    ["packets_in_per_s", "packets_out_per_s"].iter().all(|name| one.get(name) == Value::U64(0))
}

/// Sockets: TCP by state, other protocols by their number.
pub(super) fn sockets(cells: &NamedCells<'_, '_>, lines: &mut ScreenLines) {
    let mut text = String::new();
    let (mut states, mut others): (Vec<String>, Vec<(String, u64)>) = Default::default();
    for one in cells.objects("sockets") {
        let (proto, count) = (word(one.get("proto")), number(one.get("count")));
        if proto == "tcp" {
            states.push(format!("{count} {}", word(one.get("state"))));
            continue;
        }
        match others.iter_mut().find(|(known, _)| *known == proto) {
            Some((_, sum)) => *sum += count,
            None => others.push((proto, count)),
        }
    }
    if !states.is_empty() {
        let _ = write!(text, "tcp {}; ", states.join(", "));
    }
    let others: Vec<String> = others.into_iter().map(|(proto, count)| format!("{proto} {count}")).collect();
    text.push_str(&others.join(", "));
    let text = text.trim_end_matches("; ");
    lines.put_folded("sockets", if text.is_empty() { "none" } else { text }, SOCKET_LINES_MAX);
}

/// The fullest connection-tracking table.
pub(super) fn conntrack(cells: &NamedCells<'_, '_>, lines: &mut ScreenLines) {
    let all = cells.objects("conntrack");
    let Some(one) = all.first() else { return lines.put_labelled("conntrack", "no readable table") };
    let (entries, max) = (number(one.get("entries")), number(one.get("max")));
    let mut text = format!("{entries} of {max} entries ({})", percent(entries, max));
    for (name, words) in
        [("drop", "packets dropped"), ("early_drop", "entries evicted"), ("insert_failed", "entries refused")]
    {
        match number(one.get(name)) {
            0 => {}
            count => {
                let _ = write!(text, ", {count} {words}");
            }
        }
    }
    if all.len() > 1 {
        let _ = write!(text, " in {}", word(one.get("netns")));
    }
    lines.put_labelled("conntrack", &text);
}

/// Retransmitted segments.
pub(super) fn retransmits(cells: &NamedCells<'_, '_>, lines: &mut ScreenLines) {
    let text = match (cells.value("segs_out"), cells.value("retransmits")) {
        (Value::U64(sent), Value::U64(again)) if again > 0 => {
            // The kernel counts retransmitted segments separately.
            format!("{sent} segments sent, {again} retransmitted ({})", percent(again, sent.saturating_add(again)))
        }
        (Value::U64(sent), Value::U64(_)) => format!("{sent} segments sent, none retransmitted"),
        _ => "segments and retransmits unknown: only one reading".to_owned(),
    };
    lines.put_labelled("tcp", &text);
}

/// The flows that carry most, with their owners.
pub(super) fn flows(cells: &NamedCells<'_, '_>, lines: &mut ScreenLines) {
    let all = cells.objects("flows");
    let rows = lines.rows(FLOWS_MAX, all.len());
    let label = label_with_total("flows", cells.number("flows_total"), rows);
    if all.is_empty() {
        return lines.put_labelled(&label, "none");
    }
    let with_netns = has_several_netns(&all);
    let betweens: Vec<String> = all.iter().take(rows).map(|one| ends_of(one, with_netns)).collect();
    let holders: Vec<String> = all.iter().take(rows).map(format_owner).collect();
    let most = PROCESS + lines.width.saturating_sub(80) / 2;
    let process = holders.iter().map(|holder| width_of(holder)).max().unwrap_or(0).min(most);
    // The numbers stay next to the ends on wide screens.
    let longest = betweens.iter().map(|between| width_of(between)).max().unwrap_or(0);
    let ends = lines.width.saturating_sub(FLOW_NUMBERS + process).max(10).min(longest.max(label.len()));
    let title = format!("{:>5} {:>9} {:>9}  {}", "conns", "in/s", "out/s", "process");
    lines.put(Tone::Heading, &format!("{}{title}", cell(&label, 11 + ends)));
    for ((one, between), holder) in all.iter().zip(&betweens).zip(&holders) {
        let (proto, direction) = (word(one.get("proto")), word(one.get("direction")));
        let direction = if direction == "unknown" { "?" } else { &*direction };
        let rate = |name| match one.get(name) {
            Value::U64(bytes) => byte_rate(bytes),
            _ => "-".to_owned(),
        };
        let line = format!(
            "  {proto:<4} {direction:<3} {}{:>5} {:>9} {:>9}  {}",
            cell(between, ends),
            format_short(number(one.get("connections"))),
            rate("bytes_in_per_s"),
            rate("bytes_out_per_s"),
            shorten_middle(holder, process)
        );
        lines.put(Tone::Plain, &line);
    }
}

/// Formats the two ends of a flow, with its network namespace if requested.
fn ends_of(one: &OwnedObject, with_netns: bool) -> String {
    let local = end(one.get("local_addr"), one.get("local_port"));
    let between = format!("{local} > {}", end(one.get("peer_addr"), one.get("peer_port")));
    if with_netns { format!("{}: {between}", word(one.get("netns"))) } else { between }
}

/// Dropped packets, by cause.
pub(super) fn drops(cells: &NamedCells<'_, '_>, lines: &mut ScreenLines) {
    let all = cells.objects("drops");
    let by_counters = matches!(cells.value("drops_via"), Value::Name("counters"));
    let rows = lines.rows(CAUSES_MAX, all.len());
    let label = label_with_total("drops", all.len() as u64, rows);
    if all.is_empty() {
        lines.put_labelled(&label, if by_counters { "none according to the kernel's drop counters" } else { "none" });
    }
    let with_netns = has_several_netns(&all);
    for (nth, one) in all.iter().take(rows).enumerate() {
        let how = if by_counters { " (a counter)" } else { "" };
        let mut text = format!("{} {}{how}", number(one.get("count")), name_in(one, "reason", with_netns));
        for (name, before) in [("place", " at "), ("iface", " on "), ("process", " of "), ("meaning", ": ")] {
            if by_counters && name == "place" || one.get(name).is_null() {
                continue;
            }
            let _ = write!(text, "{before}{}", word(one.get(name)));
        }
        lines.put_labelled(if nth == 0 { &label } else { "" }, &text);
    }
}

/// The worst findings.
pub(super) fn findings(cells: &NamedCells<'_, '_>, lines: &mut ScreenLines) {
    let all = cells.objects("findings");
    let rows = lines.rows(CAUSES_MAX, all.len());
    let label = label_with_total("findings", cells.number("findings_total"), rows);
    if all.is_empty() {
        lines.put_labelled(&label, "none");
    }
    let with_netns = has_several_netns(&all);
    for (nth, one) in all.iter().take(rows).enumerate() {
        let severity = word(one.get("severity"));
        let text =
            format!("{} {}: {}", severity.to_uppercase(), name_in(one, "id", with_netns), word(one.get("title")));
        let tone = match &*severity {
            "critical" => Tone::Bad,
            "warning" => Tone::Halfway,
            _ => Tone::Plain,
        };
        lines.put_labelled_line(if nth == 0 { &label } else { "" }, tone, &text);
    }
    if !all.is_empty() {
        lines.put_labelled("", "run `netwren doctor` for evidence and fixes");
    }
}

/// Reasons why something is missing.
pub(super) fn put_unseen(cells: &NamedCells<'_, '_>, lines: &mut ScreenLines) {
    let mut all = Vec::new();
    cells.value("unseen").for_each_item(&mut |item| all.push(word(item)));
    let label = label_with_total("not seen", all.len() as u64, all.len().min(REASONS_MAX));
    for (nth, text) in all.iter().take(REASONS_MAX).enumerate() {
        lines.put_labelled(if nth == 0 { &label } else { "" }, text);
    }
}

/// Returns the label of a part, with the total number if not all are shown.
fn label_with_total(label: &str, total: u64, shown: usize) -> String {
    if total > shown as u64 { format!("{label} ({})", format_short(total)) } else { label.to_owned() }
}

/// True if the objects are from more than one network namespace.
fn has_several_netns(all: &[OwnedObject]) -> bool {
    let mut names = all.iter().map(|one| one.get("netns")).filter(|netns| !netns.is_null()).map(OwnedValue::from);
    let first = names.next();
    names.any(|name| first.as_ref() != Some(&name))
}

/// Returns the name of an object, after its network namespace if requested.
fn name_in(one: &OwnedObject, name: &str, with_netns: bool) -> String {
    match one.get("netns") {
        netns if with_netns && !netns.is_null() => format!("{} {}", word(netns), word(one.get(name))),
        _ => word(one.get(name)),
    }
}

/// Returns the process of a flow with its pid, and its container.
fn format_owner(one: &OwnedObject) -> String {
    let (process, container) = (one.get("process"), one.get("container"));
    if process.is_null() {
        return "-".to_owned();
    }
    let mut text = format!("{} ({})", word(process), word(one.get("pid")));
    if !container.is_null() {
        let _ = write!(text, " {}", word(container));
    }
    text
}

/// Formats one end of a flow.
fn end(addr: Value<'_>, port: Value<'_>) -> String {
    let (addr, is_v6) = (word(addr), matches!(addr, Value::Addr(record::Addr::V6(_)) | Value::LinkAddr(_)));
    match port {
        Value::U64(port) if is_v6 => format!("[{addr}]:{port}"),
        Value::U64(port) => format!("{addr}:{port}"),
        _ => addr,
    }
}

fn number(value: Value<'_>) -> u64 {
    if let Value::U64(n) = value { n } else { 0 }
}

/// Formats a value for a terminal.
fn word(value: Value<'_>) -> String {
    match value {
        Value::Name(word) | Value::Guess(word) => word.to_owned(),
        Value::Bytes(bytes) => escape_bytes(bytes),
        Value::FirstOf(bytes, others) => format!("{} +{others}", escape_bytes(bytes)),
        Value::U64(n) => n.to_string(),
        Value::Addr(addr) => {
            let mut text = Vec::new();
            put_addr(&mut text, addr);
            String::from_utf8_lossy(&text).into_owned()
        }
        Value::LinkAddr(link) => {
            let mut text = Vec::new();
            put_link_addr(&mut text, link);
            String::from_utf8_lossy(&text).into_owned()
        }
        _ => "-".to_owned(),
    }
}

/// Formats a share in percent, to a tenth.
fn percent(part: u64, whole: u64) -> String {
    let tenths = u128::from(part) * 1000 / u128::from(whole.max(1));
    format!("{}.{} %", tenths / 10, tenths % 10)
}

impl ScreenLines {
    /// Appends a line with a label, cut at its end if it is too long.
    fn put_labelled(&mut self, label: &str, text: &str) {
        self.put_labelled_line(label, Tone::Plain, text);
    }

    /// Appends a text, folded into at most `lines_max` lines.
    fn put_folded(&mut self, label: &str, text: &str, lines_max: usize) {
        let room = self.width.saturating_sub(super::LABEL);
        let mut rest = text;
        for nth in 0..lines_max {
            let is_last = nth + 1 == lines_max || rest.len() <= room;
            let at = if is_last { rest.len() } else { fold_at(rest, room) };
            let (now, after) = rest.split_at(at);
            self.put_labelled(if nth == 0 { label } else { "" }, &shorten_end(now.trim(), room));
            rest = after.trim_start();
            if rest.is_empty() {
                return;
            }
        }
    }
}

/// Returns the position after the last comma or semicolon within the first `columns`. The text is ASCII, from our own
/// words.
fn fold_at(text: &str, columns: usize) -> usize {
    let head = text.get(..columns).unwrap_or(text);
    head.rfind([',', ';']).map_or(head.len(), |at| at + 1)
}
