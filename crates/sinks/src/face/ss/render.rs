//! Lines from rows and widths.

use super::block::{DecodedRow, Host, Netid, Port, octets_len, port_len};
use super::families::sctp_state;
use super::template::Template;
use super::writer::{Layout, Options, state_name};
use record::text::{put_u64, put_v4, u64_len};

/// Columns of the table.
const COLUMNS: usize = 10;
/// States that a block can hold (four bits).
const STATES: usize = 16;

/// Length of each cell: of one row, or the longest of all rows so far.
#[derive(Clone, Copy, Default)]
pub(super) struct Widths {
    pub(super) netid: usize,
    pub(super) state: usize,
    pub(super) recv_q: usize,
    pub(super) send_q: usize,
    pub(super) local: usize,
    pub(super) local_port: usize,
    pub(super) peer: usize,
    pub(super) peer_port: usize,
    pub(super) owners: usize,
    pub(super) extras: usize,
}

impl Widths {
    /// The lengths of the heading's words.
    pub(super) fn of_header(options: &Options) -> Widths {
        Widths {
            netid: 5,
            state: 5,
            recv_q: 6,
            send_q: 6,
            local: 14,
            local_port: 4,
            peer: 13,
            peer_port: 4,
            owners: 7,
            extras: if options.layout == Layout::V6_1 { 7 } else { 0 },
        }
    }

    /// Takes over what is longer in `row`.
    #[inline]
    pub(super) fn grow(&mut self, row: &Widths) {
        self.netid = self.netid.max(row.netid);
        self.state = self.state.max(row.state);
        self.recv_q = self.recv_q.max(row.recv_q);
        self.send_q = self.send_q.max(row.send_q);
        self.local = self.local.max(row.local);
        self.local_port = self.local_port.max(row.local_port);
        self.peer = self.peer.max(row.peer);
        self.peer_port = self.peer_port.max(row.peer_port);
        self.owners = self.owners.max(row.owners);
        self.extras = self.extras.max(row.extras);
    }

    /// The widths on a terminal: what is left of each of its lines is shared out among the columns there, the last ones
    /// first where it does not come out even. Columns that do not fit begin the next line. As `render_calc_width` of
    /// ss does it.
    pub(super) fn on_screen(mut self, options: &Options) -> Widths {
        let Some(screen) = options.screen.filter(|screen| *screen > 0) else { return self };
        let Options { netid, state, queues, .. } = *options;
        // Whether the column is there, and the blanks before it.
        let mut columns = [
            (&mut self.netid, netid, 0),
            (&mut self.state, state, 1),
            (&mut self.recv_q, queues, 1),
            (&mut self.send_q, queues, 1),
            (&mut self.local, true, 1),
            (&mut self.local_port, true, 0),
            (&mut self.peer, true, 1),
            (&mut self.peer_port, true, 0),
            (&mut self.owners, options.owners_apart(), 0),
            (&mut self.extras, true, 0),
        ];
        let mut cells = [0; COLUMNS];
        let mut first = true;
        for ((width, shown, blanks), cell) in columns.iter_mut().zip(&mut cells) {
            if first || **width == 0 {
                *blanks = 0;
            }
            *cell = if *shown { (**width + *blanks).min(screen) } else { 0 };
            first &= *cell == 0;
        }
        stretch(&mut cells, screen);
        for ((width, shown, blanks), cell) in columns.iter_mut().zip(cells) {
            if *shown {
                **width = cell.saturating_sub(*blanks);
            }
        }
        self
    }

    /// The cells that ss keeps of a row, without the last one, and how many they are.
    #[inline]
    pub(super) fn cells(&self, options: &Options) -> ([usize; 9], usize) {
        let mut cells = [0; 9];
        let mut used = 0;
        let mut add = |shown: bool, len: usize| {
            if shown {
                cells[used] = len;
                used += 1;
            }
        };
        add(options.netid, self.netid);
        add(options.state, self.state);
        add(options.queues, self.recv_q);
        add(options.queues, self.send_q);
        add(true, self.local);
        add(true, self.local_port);
        add(true, self.peer);
        add(true, self.peer_port);
        add(options.owners_apart(), self.owners);
        (cells, used)
    }
}

/// Shares out what is left of each line of a screen among the columns that stand in it. No cell is wider than the
/// screen.
fn stretch(cells: &mut [usize; COLUMNS], screen: usize) {
    let mut start = 0;
    while start < COLUMNS {
        // The columns of this line: up to the first that does not fit, or that fills it.
        let (mut end, mut len) = (start, 0);
        for (i, &cell) in cells.iter().enumerate().skip(start) {
            if len + cell > screen || len == screen {
                break;
            }
            (end, len) = (i + 1, len + cell);
        }
        let line = cells.get_mut(start..end).unwrap_or_default();
        let used = line.iter().filter(|cell| **cell > 0).count();
        let (each, mut rest) = match (used, screen - len) {
            (0, _) => (0, 0),
            (used, left) => (left / used, left % used),
        };
        for cell in line.iter_mut().rev().filter(|cell| **cell > 0) {
            let more = usize::from(rest > 0);
            rest -= more;
            *cell += each + more;
        }
        // A cell is at most as wide as the screen, so every line has one.
        start = end.max(start + 1);
    }
}

/// Everything about a block that is the same in all its lines.
pub(super) struct BlockLayout {
    widths: Widths,
    options: Options,
    /// Netid and state, padded, by netid × state.
    leads: Vec<Vec<u8>>,
    /// Both queues of a row with nothing in them.
    zeros: Vec<u8>,
    /// Whole lines, for those that fit into one.
    template: Option<Template>,
}

impl BlockLayout {
    pub(super) fn new(options: &Options, widths: Widths) -> BlockLayout {
        let mut layout =
            BlockLayout { widths, options: *options, leads: Vec::new(), zeros: Vec::new(), template: None };
        let lines =
            Netid::NAMES.iter().zip(0..).flat_map(|(name, netid)| (0..STATES as u8).map(move |s| (*name, netid, s)));
        let lead = |(name, netid, state): (&str, u8, u8)| match netid == Netid::Association as u8 {
            true => layout.lead(name, &format!("`- {}", sctp_state(state))),
            false => layout.lead(name, state_name(state)),
        };
        layout.leads = lines.map(lead).collect();
        if options.queues {
            put_left(&mut layout.zeros, b"0", widths.recv_q, true);
            put_left(&mut layout.zeros, b"0", widths.send_q, true);
        }
        layout.template = Template::new(options, &widths, &layout.leads);
        layout
    }

    fn lead(&self, netid: &str, state: &str) -> Vec<u8> {
        let mut lead = Vec::new();
        if self.options.netid {
            put_left(&mut lead, netid.as_bytes(), self.widths.netid, true);
        }
        if self.options.state {
            put_left(&mut lead, state.as_bytes(), self.widths.state, true);
        }
        lead
    }

    pub(super) fn put_header(&self, out: &mut Vec<u8>) {
        let widths = &self.widths;
        out.extend_from_slice(&self.lead("Netid", "State"));
        if self.options.queues {
            put_left(out, b"Recv-Q", widths.recv_q, true);
            put_left(out, b"Send-Q", widths.send_q, true);
        }
        pad(out, widths.local, 14);
        out.extend_from_slice(b"Local Address:");
        put_left(out, b"Port", widths.local_port, true);
        pad(out, widths.peer, 13);
        out.extend_from_slice(b"Peer Address:");
        put_left(out, b"Port", widths.peer_port, false);
        if self.options.owners_apart() {
            put_left(out, b"Process", widths.owners, false);
        }
        let extras: &[u8] = if self.options.layout == Layout::V6_1 { b"Process" } else { b"" };
        put_left(out, extras, widths.extras, false);
        out.push(b'\n');
    }

    #[inline]
    pub(super) fn put_row(&self, out: &mut Vec<u8>, row: &DecodedRow<'_>) {
        if self.template.as_ref().is_some_and(|template| template.put(out, row)) {
            return;
        }
        let widths = &self.widths;
        if let Some(lead) = self.leads.get(usize::from(row.netid) * STATES + usize::from(row.state)) {
            out.extend_from_slice(lead);
        }
        match row.queues {
            (0, 0) => out.extend_from_slice(&self.zeros),
            queues => self.put_queues(out, queues),
        }
        let (here, there) = row.hosts.split();
        let (port_here, port_there) = row.ports.split();
        let delim = if Netid::is_unix(row.netid) { b' ' } else { b':' };
        // What stands for an end that is not there.
        let none = if Netid::is_tipc(row.netid) { b'-' } else { b'*' };
        put_host(out, here, widths.local, delim, none);
        put_port(out, port_here, widths.local_port);
        out.push(b' ');
        put_host(out, there, widths.peer, delim, none);
        put_port(out, port_there, widths.peer_port);
        if self.options.owners_apart() {
            put_left(out, row.owners, widths.owners, false);
        }
        put_left(out, row.extras, widths.extras, false);
        out.push(b'\n');
    }

    fn put_queues(&self, out: &mut Vec<u8>, (recv, send): (u32, u32)) {
        if !self.options.queues {
            return;
        }
        for (n, width) in [(recv, self.widths.recv_q), (send, self.widths.send_q)] {
            put_queue(out, n);
            pad(out, width, queue_len(n));
            out.push(b' ');
        }
    }
}

/// Length of a queue. ss shows it as a signed number, and the kernel gives -1 for a UDP socket that ends.
#[inline]
pub(super) fn queue_len(n: u32) -> usize {
    if n <= i32::MAX as u32 { u64_len(n.into()) } else { 1 + u64_len(n.wrapping_neg().into()) }
}

fn put_queue(out: &mut Vec<u8>, n: u32) {
    if n <= i32::MAX as u32 {
        return put_u64(out, n.into());
    }
    out.push(b'-');
    put_u64(out, n.wrapping_neg().into());
}

#[inline]
fn put_host(out: &mut Vec<u8>, host: Host<'_>, width: usize, delim: u8, none: u8) {
    match host {
        Host::Octets(octets) => {
            pad(out, width, octets_len(octets) + 1);
            put_v4(out, octets);
        }
        // A socket that cannot be connected has no peer, and a `*` where others have a colon.
        Host::Text(b"") => {
            pad(out, width, 1);
            return out.push(none);
        }
        Host::Text(text) => {
            pad(out, width, text.len() + 1);
            out.extend_from_slice(text);
        }
    }
    out.push(delim);
}

#[inline]
fn put_port(out: &mut Vec<u8>, port: Port<'_>, width: usize) {
    match port {
        Port::Number(0) => put_left(out, b"*", width, false),
        Port::Number(n) => {
            put_u64(out, n.into());
            pad(out, width, port_len(n));
        }
        Port::Text(text) => put_left(out, text, width, false),
    }
}

/// A cell that starts at the left, and the blank before the next cell if there is one.
#[inline]
fn put_left(out: &mut Vec<u8>, text: &[u8], width: usize, blank: bool) {
    out.extend_from_slice(text);
    pad(out, width, text.len());
    if blank {
        out.push(b' ');
    }
}

/// Blanks for a cell of `len` bytes in `width`.
#[inline]
fn pad(out: &mut Vec<u8>, width: usize, len: usize) {
    out.resize(out.len() + width.saturating_sub(len), b' ');
}
