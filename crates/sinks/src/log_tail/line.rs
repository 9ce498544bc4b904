//! One log record in words: `in 10.1.2.3 → 10.0.0.1:22 tcp SYN dropped by "fw: " (inet filter input #12 "no ssh")`.

use crate::native::put_link_addr;
use record::text::{put_addr, put_text, put_u64};
use record::{Addr, Value};

/// The columns that a line needs, in the order of `cell`.
pub const COLUMNS: [&str; 18] = [
    "time",
    "netns",
    "direction",
    "proto",
    "src",
    "dst",
    "dport",
    "tcp_flags",
    "icmp_type",
    "ether_type",
    "hook",
    "prefix",
    "rule_table",
    "rule_chain",
    "rule_handle",
    "rule_comment",
    "rule_verdict",
    "group",
];

/// Indexes into [`COLUMNS`].
pub(super) mod cell {
    pub(in crate::log_tail) const TIME: usize = 0;
    pub(super) const NETNS: usize = 1;
    pub(in crate::log_tail) const DIRECTION: usize = 2;
    pub(super) const PROTO: usize = 3;
    pub(super) const SRC: usize = 4;
    pub(super) const DST: usize = 5;
    pub(super) const DPORT: usize = 6;
    pub(super) const TCP_FLAGS: usize = 7;
    pub(super) const ICMP_TYPE: usize = 8;
    pub(super) const ETHER_TYPE: usize = 9;
    pub(super) const HOOK: usize = 10;
    pub(super) const PREFIX: usize = 11;
    pub(super) const TABLE: usize = 12;
    pub(super) const CHAIN: usize = 13;
    pub(super) const HANDLE: usize = 14;
    pub(super) const COMMENT: usize = 15;
    pub(in crate::log_tail) const VERDICT: usize = 16;
    pub(super) const GROUP: usize = 17;
}

/// Appends the text of a record, without its time. All text from outside is escaped.
pub(super) fn put_record(out: &mut Vec<u8>, cells: &[Value<'_>], with_netns: bool) {
    let at = |place: usize| cells.get(place).copied().unwrap_or(Value::Null);
    if with_netns {
        put_word(out, at(cell::NETNS));
        out.extend_from_slice(b": ");
    }
    match at(cell::DIRECTION) {
        Value::Name(word) => out.extend_from_slice(word.as_bytes()),
        _ => put_word(out, at(cell::HOOK)),
    }
    out.push(b' ');
    put_packet(out, &at);
    out.extend_from_slice(verdict_words(at(cell::VERDICT)).as_bytes());
    match at(cell::PREFIX) {
        Value::Bytes(prefix) => {
            out.push(b' ');
            put_quoted(out, prefix);
        }
        _ => {
            out.extend_from_slice(b" group ");
            put_word(out, at(cell::GROUP));
        }
    }
    put_rule(out, &at);
}

/// Appends addresses, protocol and the type of the packet.
fn put_packet<'v>(out: &mut Vec<u8>, at: &impl Fn(usize) -> Value<'v>) {
    if at(cell::SRC).is_null() {
        match at(cell::ETHER_TYPE) {
            Value::U64(0x0806) => out.extend_from_slice(b"arp "),
            Value::U64(number) => {
                out.extend_from_slice(b"EtherType 0x");
                record::text::put_hex(out, number);
                out.push(b' ');
            }
            _ => out.extend_from_slice(b"a packet without IP "),
        }
        return;
    }
    put_word(out, at(cell::SRC));
    out.extend_from_slice(" → ".as_bytes());
    match (at(cell::DST), at(cell::DPORT)) {
        (Value::Addr(addr @ Addr::V6(_)), Value::U64(port)) => {
            out.push(b'[');
            put_addr(out, addr);
            out.extend_from_slice(b"]:");
            put_u64(out, port);
        }
        (dst, Value::U64(port)) => {
            put_word(out, dst);
            out.push(b':');
            put_u64(out, port);
        }
        (dst, _) => put_word(out, dst),
    }
    out.push(b' ');
    put_word(out, at(cell::PROTO));
    out.push(b' ');
    if let Value::Bits(..) = at(cell::TCP_FLAGS) {
        for (n, flag) in at(cell::TCP_FLAGS).words().iter().enumerate() {
            if n > 0 {
                out.push(b',');
            }
            out.extend(flag.iter().map(u8::to_ascii_uppercase));
        }
        out.push(b' ');
    }
    if let Value::U64(kind) = at(cell::ICMP_TYPE) {
        match icmp_words(at(cell::PROTO), kind) {
            Some(words) => out.extend_from_slice(words.as_bytes()),
            None => {
                out.extend_from_slice(b"type ");
                put_u64(out, kind);
            }
        }
        out.push(b' ');
    }
}

/// Appends the rule, as far as it is known: `(inet filter input #12 "no ssh")`.
fn put_rule<'v>(out: &mut Vec<u8>, at: &impl Fn(usize) -> Value<'v>) {
    let start = out.len();
    for place in [cell::TABLE, cell::CHAIN, cell::HANDLE, cell::COMMENT] {
        let value = at(place);
        if value.is_null() {
            continue;
        }
        out.push(b' ');
        match value {
            Value::Bytes(comment) if place == cell::COMMENT => put_quoted(out, comment),
            Value::U64(handle) => {
                out.push(b'#');
                put_u64(out, handle);
            }
            other => put_word(out, other),
        }
    }
    if out.len() > start {
        out.insert(start + 1, b'(');
        out.push(b')');
    }
}

fn verdict_words(verdict: Value<'_>) -> &'static str {
    match verdict {
        Value::Name("drop") => "dropped by",
        Value::Name("reject") => "rejected by",
        Value::Name("accept") => "accepted by",
        Value::Name("queue") => "queued by",
        _ => "logged by",
    }
}

/// Common types of ICMP (RFC 792) and ICMPv6 (RFC 4443, 4861).
fn icmp_words(proto: Value<'_>, kind: u64) -> Option<&'static str> {
    Some(match (proto, kind) {
        (Value::Name("icmp"), 8) | (Value::Name("icmpv6"), 128) => "echo request",
        (Value::Name("icmp"), 0) | (Value::Name("icmpv6"), 129) => "echo reply",
        (Value::Name("icmp"), 3) | (Value::Name("icmpv6"), 1) => "unreachable",
        (Value::Name("icmp"), 11) | (Value::Name("icmpv6"), 3) => "time exceeded",
        (Value::Name("icmp"), 5) | (Value::Name("icmpv6"), 137) => "redirect",
        (Value::Name("icmpv6"), 2) => "packet too big",
        (Value::Name("icmpv6"), 133) => "router solicitation",
        (Value::Name("icmpv6"), 134) => "router advertisement",
        (Value::Name("icmpv6"), 135) => "neighbour solicitation",
        (Value::Name("icmpv6"), 136) => "neighbour advertisement",
        _ => return None,
    })
}

fn put_word(out: &mut Vec<u8>, value: Value<'_>) {
    match value {
        Value::Name(word) | Value::Guess(word) => out.extend_from_slice(word.as_bytes()),
        Value::Bytes(text) | Value::FirstOf(text, _) => put_text(out, text),
        Value::Addr(addr) => put_addr(out, addr),
        Value::LinkAddr(link) => put_link_addr(out, link),
        Value::U64(number) => put_u64(out, number),
        _ => out.push(b'-'),
    }
}

/// Appends text in quotes. A quote inside gets a backslash, so that it cannot end the text.
fn put_quoted(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    for (n, part) in text.split(|byte| *byte == b'"').enumerate() {
        if n > 0 {
            out.extend_from_slice(b"\\\"");
        }
        put_text(out, part);
    }
    out.push(b'"');
}
