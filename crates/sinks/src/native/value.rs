//! Values as JSON, and the parts that all formats share.

use record::text::{self, Line};
use record::{Addr, LinkAddr, List, Object, Owner, Value, Words};

/// Appends any value as JSON. Text and CSV also write lists and objects with it.
pub fn put_json_value(buf: &mut Vec<u8>, cell: Value<'_>) {
    match cell {
        Value::Name(word) | Value::Guess(word) => put_word(buf, word),
        Value::Bytes(bytes) | Value::FirstOf(bytes, _) => put_string(buf, bytes),
        Value::Bool(yes) => buf.extend_from_slice(if yes { b"true" } else { b"false" }),
        Value::I64(n) => text::put_i64(buf, n),
        Value::Owners(owners) => put_owners(buf, owners),
        Value::Thousandths(n) => put_thousandths(buf, n),
        Value::List(list) => put_list(buf, list),
        Value::Object(object) => put_object(buf, object),
        words @ (Value::Bits(..) | Value::Words(_)) => put_words(buf, words.words()),
        Value::Endpoint(addr, port) => {
            let mut line = Line::new();
            line.byte(b'"');
            put_endpoint(&mut line, addr, port);
            line.byte(b'"');
            line.drain(buf);
        }
        Value::Prefix(..) => {
            buf.push(b'"');
            put_prefix(buf, cell);
            buf.push(b'"');
        }
        Value::Null => buf.extend_from_slice(b"null"),
        Value::U64(n) => text::put_u64(buf, n),
        Value::Time(ns) => {
            buf.push(b'"');
            text::put_timestamp(buf, ns);
            buf.push(b'"');
        }
        Value::FarTime(time) => {
            buf.push(b'"');
            text::put_far_time(buf, time);
            buf.push(b'"');
        }
        Value::Addr(addr) => put_string(buf, addr.to_string().as_bytes()),
        Value::LinkAddr(link) => {
            buf.push(b'"');
            text::put_addr(buf, link.addr());
            buf.push(b'%');
            text::put_json(buf, link.iface());
            buf.push(b'"');
        }
    }
}

/// Appends a link-local address with its interface, escaped: `fe80::2%eth0`.
pub(crate) fn put_link_addr(buf: &mut Vec<u8>, link: LinkAddr) {
    text::put_addr(buf, link.addr());
    buf.push(b'%');
    text::put_text(buf, link.iface());
}

/// Writes a network in CIDR notation: `10.1.0.0/16`. Writes nothing for any other value.
pub(crate) fn put_prefix(buf: &mut Vec<u8>, cell: Value<'_>) {
    if let Value::Prefix(addr, len) = cell {
        text::put_addr(buf, addr);
        buf.push(b'/');
        text::put_u64(buf, len.into());
    }
}

fn put_list(buf: &mut Vec<u8>, list: &dyn List) {
    let mut before = b'[';
    list.for_each(&mut |item| {
        buf.push(before);
        put_json_value(buf, item);
        before = b',';
    });
    if before == b'[' {
        buf.push(before);
    }
    buf.push(b']');
}

fn put_object(buf: &mut Vec<u8>, object: &dyn Object) {
    let mut before = b'{';
    object.for_each(&mut |name, value| {
        buf.push(before);
        put_word(buf, name);
        buf.push(b':');
        put_json_value(buf, value);
        before = b',';
    });
    if before == b'{' {
        buf.push(before);
    }
    buf.push(b'}');
}

/// Appends owners as a list of objects, without a call for each member: rows of sockets have owners.
fn put_owners(buf: &mut Vec<u8>, owners: &[Owner]) {
    buf.push(b'[');
    for (i, owner) in owners.iter().enumerate() {
        buf.extend_from_slice(if i == 0 { b"{\"pid\":" } else { b",{\"pid\":" });
        text::put_u64(buf, owner.pid.into());
        buf.extend_from_slice(b",\"process\":");
        put_string(buf, owner.process.as_bytes());
        buf.extend_from_slice(b",\"fd\":");
        match owner.descriptor() {
            None => buf.extend_from_slice(b"null"),
            Some(fd) => text::put_u64(buf, fd.into()),
        }
        buf.extend_from_slice(b",\"started_ms\":");
        match owner.started {
            0 => buf.extend_from_slice(b"null"),
            ticks => text::put_u64(buf, u64::from(ticks) * 10),
        }
        buf.push(b'}');
    }
    buf.push(b']');
}

fn put_words(buf: &mut Vec<u8>, words: Words<'_>) {
    buf.push(b'[');
    for (i, word) in words.iter().enumerate() {
        if i > 0 {
            buf.push(b',');
        }
        put_string(buf, word);
    }
    buf.push(b']');
}

/// Appends one of our own words, which needs no escaping.
pub(super) fn put_word(buf: &mut Vec<u8>, word: &str) {
    buf.push(b'"');
    buf.extend_from_slice(word.as_bytes());
    buf.push(b'"');
}

pub(super) fn put_string(buf: &mut Vec<u8>, bytes: &[u8]) {
    buf.push(b'"');
    text::put_json(buf, bytes);
    buf.push(b'"');
}

/// Appends `10.0.0.1:443`, `[2001:db8::1]:443`, `10.0.0.1`.
#[inline]
pub(super) fn put_endpoint(line: &mut Line, addr: Addr, port: Option<u16>) {
    let Some(port) = port else { return line.addr(addr) };
    if let Addr::V6(_) = addr {
        line.byte(b'[');
        line.addr(addr);
        line.byte(b']');
    } else {
        line.addr(addr);
    }
    line.byte(b':');
    line.decimal(port.into());
}

/// Appends a number in thousandths with three decimals: `1.500`.
pub(super) fn put_thousandths(out: &mut Vec<u8>, n: u64) {
    text::put_u64(out, n / 1000);
    let rest = n % 1000;
    out.extend([b'.', b'0' + (rest / 100) as u8, b'0' + (rest / 10 % 10) as u8, b'0' + (rest % 10) as u8]);
}
