//! LOGEMU, and the text that SYSLOG sends: one line in the style of the kernel's log.

use super::UlogdStyle;
use super::clock::{SecondText, put_ctime};
use super::names::IfaceNames;
use super::packet::{HeaderExtent, Layer4, arp, ip, layer4, ports, word};
use record::rows::{LogRecord, PacketHeaders, Transport};
use record::text::{Cursor, Line, put_log_text, put_x};
use record::{Addr, Lookups};

/// Writes lines like `Nov 21 12:43:54 vm fwd: IN=eth0 OUT= MAC=… SRC=192.0.2.10 … MARK=0x0 `.
pub struct Logemu {
    /// ` HOST `, escaped.
    host: Vec<u8>,
    time: SecondText,
    begins: Box<[LineBeginning; BEGINS]>,
    names: IfaceNames,
    line: Line,
    bug_compatible: bool,
}

/// Number of line beginnings that are kept.
const BEGINS: usize = 32;
/// Longest prefixes and headers that are compared.
const KEPT_BYTES: usize = 128;

/// The beginning of a line, from the time to the link-layer header. Lines of one rule and one neighbour share it for a
/// second: comparing is cheaper than formatting it again.
#[derive(Default)]
struct LineBeginning {
    /// Offset of the prefix.
    message_at: usize,
    second: u64,
    netns_id: u64,
    ifindexes: (Option<u32>, Option<u32>),
    prefix: Vec<u8>,
    hw_header: Vec<u8>,
    text: Vec<u8>,
}

impl Logemu {
    /// A writer for the host with this name, of which the tool shows the part before the first dot.
    pub fn new(host: &[u8], options: UlogdStyle) -> Logemu {
        let mut shown = vec![b' '];
        put_log_text(&mut shown, host.split(|byte| *byte == b'.').next().unwrap_or_default());
        shown.push(b' ');
        Logemu {
            host: shown,
            time: SecondText::new(options.zone, put_ctime),
            begins: Box::default(),
            names: IfaceNames::new(),
            line: Line::new(),
            bug_compatible: options.bug_compatible,
        }
    }

    /// Appends the record's line.
    pub fn write(&mut self, row: &LogRecord<'_>, lookups: &Lookups<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.begin(row, lookups).text);
        self.put_packet(row, out);
        self.line.byte(b'\n');
        self.line.drain(out);
    }

    /// Appends the record's text without time, host and newline, in the form that SYSLOG passes to the system's log.
    pub fn write_message(&mut self, row: &LogRecord<'_>, lookups: &Lookups<'_>, out: &mut Vec<u8>) {
        let begin = self.begin(row, lookups);
        out.extend_from_slice(begin.text.get(begin.message_at..).unwrap_or_default());
        self.put_packet(row, out);
        self.line.drain(out);
    }

    /// Returns the beginning of the record's line.
    #[inline]
    fn begin(&mut self, row: &LogRecord<'_>, lookups: &Lookups<'_>) -> &LineBeginning {
        self.time.advance(row.time_ns);
        let byte = |bytes: &[u8], at: usize| usize::from(bytes.get(at).copied().unwrap_or(0));
        let mix = byte(row.prefix, 0)
            + 5 * row.prefix.len()
            + byte(row.prefix, row.prefix.len() / 2)
            + byte(row.hw_header, 11)
            // Distinguishes IPv4 and IPv6 of one neighbour.
            + 7 * byte(row.hw_header, 13)
            + 3 * (row.in_ifindex.unwrap_or(0).wrapping_add(row.out_ifindex.unwrap_or(0)) as usize % BEGINS);
        let slot = mix % BEGINS;
        if !self.begins[slot].is_of(row, self.time.second()) {
            self.write_begin(slot, row, lookups);
        }
        &self.begins[slot]
    }

    #[inline(never)]
    fn write_begin(&mut self, slot: usize, row: &LogRecord<'_>, lookups: &Lookups<'_>) {
        let (begin, second) = (&mut self.begins[slot], self.time.second());
        begin.text.clear();
        begin.text.extend_from_slice(self.time.text());
        begin.text.extend_from_slice(&self.host);
        begin.message_at = begin.text.len();
        let mark = (!self.bug_compatible).then_some(b'=');
        put_marked(&mut begin.text, row.prefix, mark, put_log_text);
        begin.text.extend_from_slice(b" IN=");
        let name = self.names.name(lookups, row.netns_id, row.in_ifindex, second);
        put_marked(&mut begin.text, name, mark, Vec::extend_from_slice);
        begin.text.extend_from_slice(b" OUT=");
        let name = self.names.name(lookups, row.netns_id, row.out_ifindex, second);
        put_marked(&mut begin.text, name, mark, Vec::extend_from_slice);
        begin.text.extend_from_slice(b" MAC=");
        put_hardware(&mut self.line, &mut begin.text, row.hw_header);
        self.line.byte(b' ');
        self.line.drain(&mut begin.text);
        (begin.second, begin.netns_id) = (second, row.netns_id);
        begin.ifindexes = (row.in_ifindex, row.out_ifindex);
        begin.prefix.clear();
        begin.prefix.extend_from_slice(row.prefix.get(..KEPT_BYTES).unwrap_or(row.prefix));
        begin.hw_header.clear();
        begin.hw_header.extend_from_slice(row.hw_header.get(..KEPT_BYTES).unwrap_or(row.hw_header));
    }

    #[inline]
    fn put_packet(&mut self, row: &LogRecord<'_>, out: &mut Vec<u8>) {
        // All parts have a limited length, so two checks for room are enough.
        self.line.make_room(out);
        if let Some(ip) = ip(row, self.bug_compatible) {
            let mut line = Cursor::new(&mut self.line);
            put_ip(&mut line, ip);
            line.make_room(out);
            put_layer4(&mut line, ip, self.bug_compatible);
            put_end(&mut line, row);
            line.finish();
        } else {
            self.put_arp_or_zeros(row);
            let mut line = Cursor::new(&mut self.line);
            put_end(&mut line, row);
            line.finish();
        }
    }

    /// Appends ARP, or the zeros of an IPv4 packet that ends after its header, which the tool does not read.
    #[cold]
    fn put_arp_or_zeros(&mut self, row: &LogRecord<'_>) {
        let line = &mut self.line;
        if let Some(arp) = arp(row, self.bug_compatible) {
            return put_arp(line, &arp);
        }
        let unread = row.packet.is_some() && matches!(row.family, 2 | 7);
        if self.bug_compatible && unread {
            line.put_short(b"LEN=0 TOS=00 PREC=0x00 TTL=0 ID=");
            line.put_short(b"0 PROTO=0 ");
        }
    }
}

impl LineBeginning {
    #[inline]
    fn is_of(&self, row: &LogRecord<'_>, second: u64) -> bool {
        (self.second, self.netns_id) == (second, row.netns_id)
            && self.ifindexes == (row.in_ifindex, row.out_ifindex)
            && self.prefix == row.prefix
            && self.hw_header == row.hw_header
            && !self.text.is_empty()
    }
}

/// Appends bytes of any length that are known to be harmless.
#[inline]
pub(super) fn put(line: &mut Line, out: &mut Vec<u8>, text: &[u8]) {
    line.make_room(out);
    if text.len() <= Line::SHORT {
        return line.put_short(text);
    }
    line.drain(out);
    out.extend_from_slice(text);
}

/// Appends text from outside, of any length.
#[inline]
pub(super) fn put_outside(line: &mut Line, out: &mut Vec<u8>, text: &[u8]) {
    line.make_room(out);
    // The fold does not stop early, so the compiler compares many bytes at once.
    let plain = text.iter().fold(true, |plain, byte| plain & (0x20..0x7f).contains(byte));
    if plain && text.len() <= Line::SHORT {
        return line.put_short(text);
    }
    line.drain(out);
    put_log_text(out, text);
}

/// Writes text from outside with `put`, but writes `mark` as `\xNN`: readers find fields by it, so the text cannot
/// forge one.
pub(super) fn put_marked(out: &mut Vec<u8>, text: &[u8], mark: Option<u8>, put: fn(&mut Vec<u8>, &[u8])) {
    let Some(mark) = mark else { return put(out, text) };
    for (nth, part) in text.split(|byte| *byte == mark).enumerate() {
        if nth > 0 {
            put_x(out, mark);
        }
        put(out, part);
    }
}

/// Appends a link-layer header or address of any length.
#[inline]
pub(super) fn put_hardware(line: &mut Line, out: &mut Vec<u8>, header: &[u8]) {
    line.make_room(out);
    line.hex_pairs(header);
    let rest = header.get(Line::HEX_PAIRS..).unwrap_or_default();
    for part in rest.chunks(Line::HEX_PAIRS) {
        line.make_room(out);
        line.byte(b':');
        line.hex_pairs(part);
    }
}

/// Appends the end of a line.
#[inline(always)]
fn put_end(line: &mut Cursor<'_>, row: &LogRecord<'_>) {
    if let Some(uid) = row.uid {
        line.item(b"UID=", uid);
    }
    if let Some(gid) = row.gid {
        line.item(b"GID=", gid);
    }
    line.put_short(b"MARK=0x");
    line.hex(row.mark.unwrap_or(0).into());
    line.byte(b' ');
}

/// Appends `NAME=number `.
#[inline(always)]
fn item(line: &mut Line, name: &[u8], n: impl Into<u32>) {
    line.item(name, n.into());
}

#[inline(always)]
fn put_ip(line: &mut Cursor<'_>, ip: &PacketHeaders<'_>) {
    line.put_short(b"SRC=");
    line.addr(ip.src);
    line.put_short(b" DST=");
    line.addr(ip.dst);
    match ip.src {
        Addr::V4(_) => put_v4(line, ip),
        Addr::V6(_) => line.with_line(|line| put_v6(line, ip)),
    }
}

#[inline(always)]
fn put_v4(line: &mut Cursor<'_>, ip: &PacketHeaders<'_>) {
    line.item(b" LEN=", ip.length);
    if ip.tos == 0 {
        line.put_short(b"TOS=00 PREC=0x00");
    } else {
        line.with_line(|line| put_tos(line, ip.tos));
    }
    line.item(b" TTL=", ip.ttl.into());
    line.item(b"ID=", ip.id);
    match ip.v4_fragment_bits().unwrap_or(0) {
        0 => {}
        0x4000 => line.put_short(b"DF "),
        bits => line.with_line(|line| put_fragment_bits(line, bits)),
    }
}

#[inline(never)]
fn put_tos(line: &mut Line, tos: u8) {
    line.put_short(b"TOS=");
    line.upper_hex2(tos & 0x1e);
    line.put_short(b" PREC=0x");
    line.upper_hex2(tos & 0xe0);
}

#[inline(never)]
fn put_fragment_bits(line: &mut Line, bits: u16) {
    if bits & 0x8000 != 0 {
        line.put_short(b"CE ");
    }
    if bits & 0x4000 != 0 {
        line.put_short(b"DF ");
    }
    if bits & 0x2000 != 0 {
        line.put_short(b"MF ");
    }
    if bits & 0x1fff != 0 {
        item(line, b"FRAG:", bits & 0x1fff);
    }
}

#[inline(never)]
fn put_v6(line: &mut Line, ip: &PacketHeaders<'_>) {
    item(line, b" LEN=", ip.length);
    item(line, b"TC=", ip.tos);
    item(line, b"HOPLIMIT=", ip.ttl);
    item(line, b"FLOWLBL=", ip.flow_label().unwrap_or(0));
    if let Some(fragment) = ip.fragment {
        item(line, b"FRAG: ", fragment.offset);
        line.put_short(b"ID: ");
        line.hex4((ip.id >> 16) as u16);
        line.hex4(ip.id as u16);
        line.byte(b' ');
    }
}

#[inline(always)]
fn put_layer4(line: &mut Cursor<'_>, ip: &PacketHeaders<'_>, bug_compatible: bool) {
    match layer4(ip, bug_compatible) {
        (Layer4::Tcp, HeaderExtent::Whole) => put_tcp(line, ip),
        (Layer4::Udp, HeaderExtent::Whole) => {
            line.put_short(b"PROTO=UDP ");
            put_ports(line, ip);
            line.item(b"LEN=", ip.udp_length().unwrap_or(0).into());
        }
        (layer, captured) => line.with_line(|line| put_rarer_layer4(line, ip, layer, captured, bug_compatible)),
    }
}

#[inline(never)]
fn put_rarer_layer4(
    line: &mut Line,
    ip: &PacketHeaders<'_>,
    layer: Layer4,
    captured: HeaderExtent,
    bug_compatible: bool,
) {
    match layer {
        Layer4::Tcp => line.put_short(b"PROTO=TCP "),
        Layer4::Udp => line.put_short(b"PROTO=UDP "),
        Layer4::Icmp => line.put_short(b"PROTO=ICMP "),
        Layer4::Icmp6 => line.put_short(b"PROTO=ICMPv6 "),
        Layer4::Sctp => line.put_short(b"PROTO=SCTP "),
        // The tool shows ESP over IPv6 as AH.
        Layer4::Esp if bug_compatible && matches!(ip.src, Addr::V6(_)) => line.put_short(b"PROTO=AH "),
        Layer4::Esp => line.put_short(b"PROTO=ESP "),
        Layer4::Ah => line.put_short(b"PROTO=AH "),
        Layer4::Other => item(line, b"PROTO=", ip.proto),
    }
    match captured {
        HeaderExtent::Whole => {}
        HeaderExtent::Short if bug_compatible => return line.put_short(b"INCOMPLETE"),
        HeaderExtent::Short => return line.put_short(b"INCOMPLETE "),
        HeaderExtent::LaterFragment => return,
    }
    match layer {
        Layer4::Icmp if bug_compatible => put_icmp_by_code(line, ip),
        Layer4::Icmp => put_icmp(line, ip),
        Layer4::Icmp6 => put_icmp6(line, ip),
        Layer4::Esp => put_spi(line, word(ip, 0)),
        Layer4::Ah => put_spi(line, word(ip, 4)),
        Layer4::Sctp => {
            let (sport, dport) = ports(ip);
            item(line, b"SPT=", sport);
            item(line, b"DPT=", dport);
        }
        Layer4::Tcp | Layer4::Udp | Layer4::Other => {}
    }
}

#[inline(always)]
fn put_ports(line: &mut Cursor<'_>, ip: &PacketHeaders<'_>) {
    let (sport, dport) = ports(ip);
    line.item(b"SPT=", sport.into());
    line.item(b"DPT=", dport.into());
}

#[inline(always)]
fn put_tcp(line: &mut Cursor<'_>, ip: &PacketHeaders<'_>) {
    line.put_short(b"PROTO=TCP ");
    let Some(head) = ip.payload.first_chunk::<20>() else { return };
    put_ports(line, ip);
    line.item(b"SEQ=", u32::from_be_bytes([head[4], head[5], head[6], head[7]]));
    line.item(b"ACK=", u32::from_be_bytes([head[8], head[9], head[10], head[11]]));
    line.item(b"WINDOW=", u16::from_be_bytes([head[14], head[15]]).into());
    let (names, len) = &TCP_FLAGS[usize::from(head[13] & 0x3f)];
    line.chunk(names, usize::from(*len));
    line.item(b"URGP=", u16::from_be_bytes([head[18], head[19]]).into());
}

/// The names of the six flags in every combination, with their length.
static TCP_FLAGS: [([u8; 24], u8); 64] = {
    const NAMES: [&[u8; 3]; 6] = [b"URG", b"ACK", b"PSH", b"RST", b"SYN", b"FIN"];
    let mut table = [([b' '; 24], 0); 64];
    let mut flags = 0;
    while flags < 64 {
        let mut bit = 0;
        while bit < 6 {
            if flags & (32 >> bit) != 0 {
                let at = table[flags].1 as usize;
                table[flags].0[at] = NAMES[bit][0];
                table[flags].0[at + 1] = NAMES[bit][1];
                table[flags].0[at + 2] = NAMES[bit][2];
                table[flags].1 += 4;
            }
            bit += 1;
        }
        flags += 1;
    }
    table
};

fn put_spi(line: &mut Line, spi: u32) {
    line.put_short(b"SPI=0x");
    line.hex(spi.into());
    line.byte(b' ');
}

fn put_kind(line: &mut Line, ip: &PacketHeaders<'_>) -> (u8, u8) {
    let (kind, code) = match ip.transport {
        Transport::Icmp(icmp) => (icmp.kind, icmp.code),
        _ => ip.payload.first_chunk().map_or((0, 0), |[kind, code]| (*kind, *code)),
    };
    item(line, b"TYPE=", kind);
    item(line, b"CODE=", code);
    (kind, code)
}

fn put_echo(line: &mut Line, rest: [u8; 4]) {
    item(line, b"ID=", u16::from_be_bytes([rest[0], rest[1]]));
    item(line, b"SEQ=", u16::from_be_bytes([rest[2], rest[3]]));
}

/// Appends ICMP with the fields of its type (RFC 792, RFC 1191).
fn put_icmp(line: &mut Line, ip: &PacketHeaders<'_>) {
    let rest = ip.icmp_rest().unwrap_or_default();
    match put_kind(line, ip) {
        (0 | 8 | 13 | 14, _) => put_echo(line, rest),
        (5, _) => put_gateway(line, rest),
        (12, _) => item(line, b"PARAMETER=", rest[0]),
        (3, 4) => item(line, b"MTU=", u16::from_be_bytes([rest[2], rest[3]])),
        _ => {}
    }
}

fn put_gateway(line: &mut Line, address: [u8; 4]) {
    line.put_short(b"GATEWAY=");
    line.addr(Addr::V4(address));
    line.byte(b' ');
}

/// Appends ICMP like the tool: the code is used as the type, and fields that the packet does not have are 0.
fn put_icmp_by_code(line: &mut Line, ip: &PacketHeaders<'_>) {
    let rest = ip.icmp_rest().unwrap_or_default();
    let (kind, code) = put_kind(line, ip);
    let of_types = |types: [u8; 2]| if types.contains(&kind) { rest } else { [0; 4] };
    match code {
        0 | 8 => put_echo(line, of_types([0, 8])),
        5 => put_gateway(line, of_types([5, 12])),
        12 => item(line, b"PARAMETER=", of_types([5, 12])[0]),
        _ => {}
    }
}

fn put_icmp6(line: &mut Line, ip: &PacketHeaders<'_>) {
    if let (128 | 129, _) = put_kind(line, ip) {
        put_echo(line, ip.icmp_rest().unwrap_or_default());
    }
}

fn put_arp(line: &mut Line, arp: &record::rows::ArpHeader) {
    line.put_short(b"SRC=");
    line.addr(Addr::V4(arp.sender.1));
    line.put_short(b" DST=");
    line.addr(Addr::V4(arp.target.1));
    line.put_short(b" PROTO=ARP ");
    match arp.operation {
        1 => line.put_short(b"REQUEST "),
        2 => {
            line.put_short(b"REPLY REPLY_MAC=");
            line.hex_pairs(&arp.sender.0);
            line.byte(b' ');
        }
        other => item(line, b"OPERATION=", other),
    }
}
