//! The bytes of lstf 0.7.2: flows as a table aligned with tabs, or as one JSON array.
//!
//! The table's widths depend on all rows, so a row's text is kept until [`LstfTable::write`]: about 50 bytes per flow.

use crate::pieces::{put, when};
use crate::quoted::put_quoted;
use record::rows::{Direction, Flow};
use record::text::{put_face, put_u64};
use record::{Addr, Owner, SinkError};
use sinks::Out;
use std::io::Write;

/// Returns the host name of an address, if it has one.
pub type NameOf<'a> = dyn Fn(Addr) -> Option<&'a [u8]> + 'a;
/// Returns the process group of a process; 0 if it is unknown.
pub type GroupOf<'a> = dyn Fn(u32) -> u32 + 'a;

/// The requested layout of lstf.
#[derive(Clone, Copy, Default)]
pub struct LstfStyle<'a> {
    /// The source of host names; `None` for `-n`.
    pub names: Option<&'a NameOf<'a>>,
    /// The source of process groups, to show processes with their group (`-p`).
    pub groups: Option<&'a GroupOf<'a>>,
    /// The old bytes: no tab after a cell that fills its column, the width of the Connections column taken only from
    /// the neighbouring lines, raw names, no newline after JSON.
    pub bug_compatible: bool,
}

/// Columns that are padded; the last column of a line never is.
const PADDED: usize = 4;
/// Index of the Connections column, the last one of a line without a process.
const CONNECTIONS: usize = 3;
const HEADS: [&str; 5] = ["Local Address:Port", "<-->", "Peer Address:Port", "Connections", "Process"];
/// Width of a tab stop, in characters.
const STOP: usize = 8;
/// Text is kept in pieces of about this size, so that growing does not copy earlier text.
const PIECE: usize = 64 << 10;

/// Consecutive lines that all have a process, or all have none.
struct LineRun {
    lines: usize,
    processes: bool,
    /// Width of the widest Connections cell.
    width: usize,
}

/// A table of flows, which is complete once every row is known.
pub struct LstfTable<'a> {
    style: LstfStyle<'a>,
    /// Lines with a tab between cells and a newline at the end; neither can occur in a cell.
    pieces: Vec<Vec<u8>>,
    widths: [usize; PADDED],
    runs: Vec<LineRun>,
    cell: Vec<u8>,
}

impl<'a> LstfTable<'a> {
    /// A table with its heading.
    pub fn new(style: LstfStyle<'a>) -> LstfTable<'a> {
        let mut table =
            LstfTable { style, pieces: vec![Vec::new()], widths: [0; PADDED], runs: Vec::new(), cell: Vec::new() };
        let columns = if style.groups.is_some() { 5 } else { 4 };
        for (i, head) in HEADS[..columns].iter().enumerate() {
            table.cell.extend_from_slice(head.as_bytes());
            table.end_cell(i, i + 1 == columns);
        }
        table.end_line(HEADS[CONNECTIONS].len(), columns > PADDED);
        table
    }

    /// Adds a flow.
    pub fn row(&mut self, flow: &Flow<'_>) {
        self.put_end(flow.local_addr, flow.local_port);
        self.end_cell(0, false);
        self.cell.extend_from_slice(arrow(flow.direction));
        self.end_cell(1, false);
        self.put_end(flow.peer_addr, flow.peer_port);
        self.end_cell(2, false);
        put_u64(&mut self.cell, flow.connections);
        let digits = self.cell.len();
        let owner = shown_owner(flow, self.style);
        let held = self.style.groups.and_then(|group_of| owner.map(|owner| (owner, group_of(owner.pid))));
        self.end_cell(CONNECTIONS, held.is_none());
        if let Some((owner, group)) = held {
            self.cell.extend_from_slice(b"(\"");
            put_process(&mut self.cell, owner.process.as_bytes(), self.style.bug_compatible);
            self.cell.extend_from_slice(b"\",pgid=");
            put_u64(&mut self.cell, group.into());
            self.cell.push(b')');
            self.end_cell(PADDED, true);
        }
        self.end_line(digits, held.is_some());
    }

    fn put_end(&mut self, addr: Addr, port: Option<u16>) {
        let name = self.style.names.and_then(|name_of| name_of(addr));
        match name {
            Some(name) => put_face(&mut self.cell, name, false),
            None => put_joinable(&mut self.cell, addr),
        }
        self.cell.push(b':');
        put_port(&mut self.cell, port);
    }

    /// Moves the cell into the line. The last cell of a line does not affect the width of its column.
    fn end_cell(&mut self, column: usize, last: bool) {
        if !last {
            let width = characters(&self.cell);
            if let Some(widest) = self.widths.get_mut(column) {
                *widest = width.max(*widest);
            }
        }
        if let Some(piece) = self.pieces.last_mut() {
            piece.append(&mut self.cell);
            piece.push(if last { b'\n' } else { b'\t' });
        }
    }

    fn end_line(&mut self, digits: usize, processes: bool) {
        match self.runs.last_mut() {
            Some(run) if run.processes == processes => {
                run.lines += 1;
                run.width = run.width.max(digits);
            }
            _ => self.runs.push(LineRun { lines: 1, processes, width: digits }),
        }
        if self.pieces.last().is_some_and(|piece| piece.len() >= PIECE) {
            self.pieces.push(Vec::with_capacity(PIECE + PIECE / 8));
        }
    }

    /// Writes the table. The output is not flushed.
    pub fn write<W: Write>(&self, out: &mut Out<W>) -> Result<(), SinkError> {
        let mut runs = self.runs.iter();
        let (mut left, mut widths) = (0, self.widths);
        for line in self.pieces.iter().flat_map(|piece| piece.split_inclusive(|&b| b == b'\n')) {
            if left == 0 {
                let Some(run) = runs.next() else { break };
                left = run.lines;
                if self.style.bug_compatible {
                    widths[CONNECTIONS] = run.width;
                }
            }
            left -= 1;
            self.write_line(line, &widths, out.buf());
            out.line_done()?;
        }
        Ok(())
    }

    fn write_line(&self, line: &[u8], widths: &[usize; PADDED], buf: &mut Vec<u8>) {
        for (i, cell) in line.split_inclusive(|&b| b == b'\t').enumerate() {
            let Some(text) = cell.strip_suffix(b"\t") else {
                return buf.extend_from_slice(cell);
            };
            buf.extend_from_slice(text);
            let column = stop_after(widths.get(i).copied().unwrap_or(0), self.style.bug_compatible);
            let missing = column.saturating_sub(characters(text)).div_ceil(STOP);
            buf.extend(std::iter::repeat_n(b'\t', missing));
        }
    }
}

/// Returns the tab stop where the next column begins. lstf uses a stop that a widest cell of 8, 16, … characters has
/// already reached, so that the columns run together.
fn stop_after(width: usize, bug_compatible: bool) -> usize {
    if bug_compatible { width.next_multiple_of(STOP) } else { (width / STOP + 1) * STOP }
}

/// Returns the width that lstf assumes for a text: one for each character and for each invalid byte.
fn characters(text: &[u8]) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    text.utf8_chunks().map(|chunk| chunk.valid().chars().count() + chunk.invalid().len()).sum()
}

fn arrow(direction: Direction) -> &'static [u8] {
    match direction {
        Direction::In => b"<--",
        Direction::Out => b"-->",
        // lstf knows only two directions; it would have printed "active".
        Direction::Unknown => b"<->",
    }
}

/// Appends an address in the form that is used before `:port`.
fn put_joinable(out: &mut Vec<u8>, addr: Addr) {
    if matches!(addr, Addr::V4(_)) {
        return put!(out, addr);
    }
    put!(out, "[", addr, "]");
}

fn put_port(out: &mut Vec<u8>, port: Option<u16>) {
    put!(out, port.ok_or("many"));
}

/// Returns the holder to show. lstf itself finds holders by their descriptors only.
fn shown_owner<'f>(flow: &Flow<'f>, style: LstfStyle<'_>) -> Option<&'f Owner> {
    flow.owners.iter().find(|owner| !style.bug_compatible || owner.descriptor().is_some())
}

/// Appends a process name. lstf splits it into words, so any white space becomes a single blank.
fn put_process(out: &mut Vec<u8>, name: &[u8], bug_compatible: bool) {
    if !bug_compatible {
        return put_quoted(out, name);
    }
    let mut blank = false;
    for &byte in name {
        let space = matches!(byte, b' ' | 9..=13);
        if !(space && blank) {
            out.push(if space { b' ' } else { byte });
        }
        blank = space;
    }
}

/// Writes flows as one JSON array on one line, as they arrive.
pub struct LstfJson<'a> {
    style: LstfStyle<'a>,
    rows: u64,
}

impl<'a> LstfJson<'a> {
    /// Starts an empty array.
    pub fn new(style: LstfStyle<'a>) -> LstfJson<'a> {
        LstfJson { style, rows: 0 }
    }

    /// Appends a flow.
    pub fn row<W: Write>(&mut self, flow: &Flow<'_>, out: &mut Out<W>) -> Result<(), SinkError> {
        let buf = out.buf();
        buf.push(if self.rows == 0 { b'[' } else { b',' });
        self.rows += 1;
        put!(buf, "{\"direction\":\"");
        buf.extend_from_slice(match flow.direction {
            Direction::In => b"passive",
            Direction::Out => b"active",
            Direction::Unknown => b"unknown",
        });
        put!(buf, "\",\"local\":");
        self.put_end(buf, flow.local_addr, flow.local_port);
        put!(buf, ",\"peer\":");
        self.put_end(buf, flow.peer_addr, flow.peer_port);
        put!(buf, ",\"connections\":", flow.connections);
        if let (Some(group_of), Some(owner)) = (self.style.groups, shown_owner(flow, self.style)) {
            let mut name = Vec::with_capacity(16);
            put_process(&mut name, owner.process.as_bytes(), true);
            put!(buf, ",\"process\":{\"name\":\"");
            put_go_json(buf, &name);
            put!(buf, "\",\"pgid\":", group_of(owner.pid), "}");
        }
        put!(buf, "}");
        // This is not the end of a line, but the block may be full.
        out.line_done()
    }

    fn put_end(&self, buf: &mut Vec<u8>, addr: Addr, port: Option<u16>) {
        put!(buf, "{\"name\":\"");
        match self.style.names.map(|name_of| name_of(addr)) {
            None => {}
            Some(Some(name)) => put_go_json(buf, name),
            // An address without a name stands for itself.
            Some(None) => put!(buf, addr),
        }
        put!(buf, "\",\"addr\":\"", addr, "\",\"port\":\"");
        put_port(buf, port);
        put!(buf, "\"}");
    }

    /// Closes the array.
    pub fn end<W: Write>(&mut self, out: &mut Out<W>) -> Result<(), SinkError> {
        let buf = out.buf();
        put!(buf, when(self.rows == 0, "["), "]", when(!self.style.bug_compatible, "\n"));
        self.rows = 0;
        out.line_done()
    }
}

/// Appends the contents of a JSON string like Go's encoder: `<`, `>` and `&` are escaped, so that the text can be used
/// in a web page; non-ASCII characters are not, except the two that end a line in scripts.
fn put_go_json(out: &mut Vec<u8>, text: &[u8]) {
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' => put!(out, "\\\""),
                '\\' => put!(out, "\\\\"),
                '\n' => put!(out, "\\n"),
                '\r' => put!(out, "\\r"),
                '\t' => put!(out, "\\t"),
                '\u{8}' => put!(out, "\\b"),
                '\u{c}' => put!(out, "\\f"),
                '\0'..='\x1f' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => put_escape(out, c),
                _ => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        chunk.invalid().iter().for_each(|_| put_escape(out, char::REPLACEMENT_CHARACTER));
    }
}

fn put_escape(out: &mut Vec<u8>, c: char) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let code = u32::from(c);
    put!(out, "\\u");
    out.extend([12, 8, 4, 0].map(|shift| DIGITS[(code >> shift & 15) as usize]));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use record::{Comm, Owner};

    fn flow(direction: Direction, local: &str, peer: &str, connections: u64) -> Flow<'static> {
        let end = |text: &str| {
            let (addr, port) = text.rsplit_once(':').unwrap();
            (addr.trim_matches(['[', ']']).parse().unwrap(), port.parse().ok())
        };
        let ((local_addr, local_port), (peer_addr, peer_port)) = (end(local), end(peer));
        Flow { direction, local_addr, local_port, peer_addr, peer_port, connections, ..Flow::EMPTY }
    }

    fn owner(name: &[u8], pid: u32) -> Owner {
        Owner { pid, fd: 3, process: Comm::new(name), started: 0 }
    }

    fn table(style: LstfStyle<'_>, flows: &[Flow<'_>]) -> String {
        let mut table = LstfTable::new(style);
        flows.iter().for_each(|flow| table.row(flow));
        let mut out = Out::new(Vec::new());
        table.write(&mut out).unwrap();
        out.flush().unwrap();
        String::from_utf8(out.into_inner()).unwrap()
    }

    fn json(style: LstfStyle<'_>, flows: &[Flow<'_>]) -> String {
        let (mut json, mut out) = (LstfJson::new(style), Out::new(Vec::new()));
        flows.iter().for_each(|flow| json.row(flow, &mut out).unwrap());
        json.end(&mut out).unwrap();
        out.flush().unwrap();
        String::from_utf8(out.into_inner()).unwrap()
    }

    fn both<'a>(style: LstfStyle<'a>) -> [LstfStyle<'a>; 2] {
        [style, LstfStyle { bug_compatible: true, ..style }]
    }

    /// The example from the format's description: both modes give the same bytes.
    #[test]
    fn columns_end_at_tab_stops() {
        let flows = [
            flow(Direction::In, "198.51.100.20:80", "198.51.100.1:many", 12),
            flow(Direction::In, "[2001:db8:2::20]:443", "[2001:db8:1::10]:many", 5),
            flow(Direction::Out, "192.0.2.10:many", "192.0.2.1:8080", 6),
        ];
        for style in both(LstfStyle::default()) {
            assert_eq!(
                table(style, &flows),
                "Local Address:Port\t<-->\tPeer Address:Port\tConnections\n\
                 198.51.100.20:80\t<--\t198.51.100.1:many\t12\n\
                 [2001:db8:2::20]:443\t<--\t[2001:db8:1::10]:many\t5\n\
                 192.0.2.10:many\t\t-->\t192.0.2.1:8080\t\t6\n"
            );
        }
        assert_eq!(table(LstfStyle::default(), &[]), "Local Address:Port\t<-->\tPeer Address:Port\tConnections\n");
    }

    /// A widest cell of 24 characters, which lstf lets run into the next column.
    #[test]
    fn a_cell_that_fills_its_column() {
        let flows = [
            flow(Direction::In, "[2001:db8:1234::100]:443", "192.0.2.1:many", 2),
            flow(Direction::Out, "192.0.2.10:many", "192.0.2.1:8080", 1),
        ];
        let [right, old] = both(LstfStyle::default());
        assert_eq!(
            table(right, &flows),
            "Local Address:Port\t\t<-->\tPeer Address:Port\tConnections\n\
             [2001:db8:1234::100]:443\t<--\t192.0.2.1:many\t\t2\n\
             192.0.2.10:many\t\t\t-->\t192.0.2.1:8080\t\t1\n"
        );
        assert_eq!(
            table(old, &flows),
            "Local Address:Port\t<-->\tPeer Address:Port\tConnections\n\
             [2001:db8:1234::100]:443<--\t192.0.2.1:many\t\t2\n\
             192.0.2.10:many\t\t-->\t192.0.2.1:8080\t\t1\n"
        );
    }

    /// A line without a process ends a column of the old layout: after it, the column is as narrow as possible.
    #[test]
    fn processes() {
        let (nginx, psql) = ([owner(b"nginx", 7)], [owner(b"a \n\x1b b", 8)]);
        let one = flow(Direction::In, "192.0.2.1:80", "192.0.2.2:many", 3);
        let flows = [
            Flow { owners: &nginx, ..one },
            Flow { connections: 2, ..one },
            Flow { owners: &psql, connections: 1, ..one },
        ];
        let groups = |pid: u32| pid * 10;
        let [right, old] = both(LstfStyle { groups: Some(&groups), ..LstfStyle::default() });
        assert_eq!(
            table(right, &flows),
            "Local Address:Port\t<-->\tPeer Address:Port\tConnections\tProcess\n\
             192.0.2.1:80\t\t<--\t192.0.2.2:many\t\t3\t\t(\"nginx\",pgid=70)\n\
             192.0.2.1:80\t\t<--\t192.0.2.2:many\t\t2\n\
             192.0.2.1:80\t\t<--\t192.0.2.2:many\t\t1\t\t(\"a ?? b\",pgid=80)\n"
        );
        assert_eq!(
            table(old, &flows),
            "Local Address:Port\t<-->\tPeer Address:Port\tConnections\tProcess\n\
             192.0.2.1:80\t\t<--\t192.0.2.2:many\t\t3\t\t(\"nginx\",pgid=70)\n\
             192.0.2.1:80\t\t<--\t192.0.2.2:many\t\t2\n\
             192.0.2.1:80\t\t<--\t192.0.2.2:many\t\t1\t(\"a \x1b b\",pgid=80)\n"
        );
    }

    #[test]
    fn issue_10_a_process_name_cannot_end_its_quotation_marks() {
        let name = [owner(b"x\\\",pgid=1),(\"y", 7)];
        let flows = [Flow { owners: &name, ..flow(Direction::In, "192.0.2.1:80", "192.0.2.2:many", 3) }];
        let [right, old] = both(LstfStyle { groups: Some(&|_| 70), ..LstfStyle::default() });
        let shown = |style| table(style, &flows).rsplit('\t').next().unwrap().to_owned();
        assert_eq!(shown(right), "(\"x\\\\\\\",pgid=1),(\\\"y\",pgid=70)\n");
        assert_eq!(shown(old), "(\"x\\\",pgid=1),(\"y\",pgid=70)\n");
    }

    #[test]
    fn names_where_there_are_some() {
        let v4: Addr = "192.0.2.1".parse().unwrap();
        let names = move |addr: Addr| (addr == v4).then_some(&b"h\xc3\xb6st\x1b"[..]);
        let flows = [flow(Direction::In, "192.0.2.1:80", "[2001:db8::2]:many", 3)];
        let style = LstfStyle { names: Some(&names), ..LstfStyle::default() };
        assert_eq!(table(style, &flows).lines().nth(1).unwrap(), "höst?:80\t\t<--\t[2001:db8::2]:many\t3");
        assert_eq!(
            json(style, &flows),
            "[{\"direction\":\"passive\",\"local\":{\"name\":\"höst\\u001b\",\"addr\":\"192.0.2.1\",\"port\":\"80\"},\
             \"peer\":{\"name\":\"2001:db8::2\",\"addr\":\"2001:db8::2\",\"port\":\"many\"},\"connections\":3}]\n"
        );
    }

    #[test]
    fn json_is_one_array_on_one_line() {
        let flows = [
            flow(Direction::In, "198.51.100.20:80", "198.51.100.1:many", 12),
            flow(Direction::Out, "198.51.100.20:many", "198.51.100.1:22", 1),
            flow(Direction::Unknown, "198.51.100.20:9", "198.51.100.1:9", 1),
        ];
        let [right, old] = both(LstfStyle::default());
        let expected = concat!(
            r#"[{"direction":"passive","local":{"name":"","addr":"198.51.100.20","port":"80"},"#,
            r#""peer":{"name":"","addr":"198.51.100.1","port":"many"},"connections":12},"#,
            r#"{"direction":"active","local":{"name":"","addr":"198.51.100.20","port":"many"},"#,
            r#""peer":{"name":"","addr":"198.51.100.1","port":"22"},"connections":1},"#,
            r#"{"direction":"unknown","local":{"name":"","addr":"198.51.100.20","port":"9"},"#,
            r#""peer":{"name":"","addr":"198.51.100.1","port":"9"},"connections":1}]"#,
        );
        assert_eq!(json(old, &flows), expected);
        assert_eq!(json(right, &flows), format!("{expected}\n"));
        assert_eq!(json(old, &[]), "[]");
    }

    #[test]
    fn json_processes_are_escaped_as_go_does() {
        let owners = [owner(b"<a>&\"\\\x01\x7f\xff", 7)];
        let one = Flow { owners: &owners, ..flow(Direction::In, "192.0.2.1:80", "192.0.2.2:many", 3) };
        let groups = |_| 0;
        let text = json(LstfStyle { groups: Some(&groups), ..LstfStyle::default() }, &[one]);
        let expected = r#""connections":3,"process":{"name":"\u003ca\u003e\u0026\"\\\u0001"#;
        assert!(text.contains(&format!("{expected}\x7f\\ufffd\",\"pgid\":0}}}}]")), "{text}");
    }

    /// Many rows go through several pieces of kept text.
    #[test]
    fn no_row_is_lost_between_pieces() {
        let one = flow(Direction::In, "192.0.2.1:80", "192.0.2.2:many", 3);
        let flows: Vec<_> = (0..5_000).map(|n| Flow { connections: n, ..one }).collect();
        let text = table(LstfStyle::default(), &flows);
        let connections: Vec<u64> =
            text.lines().skip(1).map(|l| l.rsplit('\t').next().unwrap().parse().unwrap()).collect();
        assert_eq!(connections, (0..5_000).collect::<Vec<_>>());
    }
}
