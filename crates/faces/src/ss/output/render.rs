//! Rendering of lines from rows and widths.

use super::block::{DecodedRow, Host, Netid, Port, octets_len, port_len};
use super::options::{Layout, Options, show};
use super::state::sctp_state;
use super::state::state_name;
use super::template::Template;
use super::widths::Widths;
use crate::pieces::put;
use record::Addr;
use record::text::u64_len;

/// Number of states that a block can have (four bits).
const STATES: usize = 16;

/// The data that all lines of a block share.
pub(super) struct BlockLayout {
    widths: Widths,
    options: Options,
    /// Netid and state, padded, for each netid × state.
    leads: Vec<Vec<u8>>,
    /// Both queues of a row, if they are empty.
    zeros: Vec<u8>,
    /// Whole lines, if they are short enough.
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
        if options.has(show::QUEUES) {
            put_left(&mut layout.zeros, b"0", widths.recv_q, true);
            put_left(&mut layout.zeros, b"0", widths.send_q, true);
        }
        layout.template = Template::new(options, &widths, &layout.leads);
        layout
    }

    fn lead(&self, netid: &str, state: &str) -> Vec<u8> {
        let mut lead = Vec::new();
        if self.options.has(show::NETID) {
            put_left(&mut lead, netid.as_bytes(), self.widths.netid, true);
        }
        if self.options.has(show::STATE) {
            put_left(&mut lead, state.as_bytes(), self.widths.state, true);
        }
        lead
    }

    pub(super) fn put_header(&self, out: &mut Vec<u8>) {
        let widths = &self.widths;
        out.extend_from_slice(&self.lead("Netid", "State"));
        if self.options.has(show::QUEUES) {
            put_left(out, b"Recv-Q", widths.recv_q, true);
            put_left(out, b"Send-Q", widths.send_q, true);
        }
        pad(out, widths.local, 14);
        put!(out, "Local Address:");
        put_left(out, b"Port", widths.local_port, true);
        pad(out, widths.peer, 13);
        put!(out, "Peer Address:");
        put_left(out, b"Port", widths.peer_port, false);
        if self.options.owners_apart() {
            put_left(out, b"Process", widths.owners, false);
        }
        let extras: &[u8] = if self.options.layout == Layout::V6_1 { b"Process" } else { b"" };
        put_left(out, extras, widths.extras, false);
        put!(out, "\n");
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
        // The mark for a missing end.
        let none = if Netid::is_tipc(row.netid) { b'-' } else { b'*' };
        put_host(out, here, widths.local, delim, none);
        put_port(out, port_here, widths.local_port);
        put!(out, " ");
        put_host(out, there, widths.peer, delim, none);
        put_port(out, port_there, widths.peer_port);
        if self.options.owners_apart() {
            put_left(out, row.owners, widths.owners, false);
        }
        put_left(out, row.extras, widths.extras, false);
        put!(out, "\n");
    }

    fn put_queues(&self, out: &mut Vec<u8>, (recv, send): (u32, u32)) {
        if !self.options.has(show::QUEUES) {
            return;
        }
        for (n, width) in [(recv, self.widths.recv_q), (send, self.widths.send_q)] {
            put_queue(out, n);
            pad(out, width, queue_len(n));
            put!(out, " ");
        }
    }
}

/// Returns the length of a queue. ss prints it as signed, and the kernel reports -1 for a UDP socket that is closing.
#[inline]
pub(super) fn queue_len(n: u32) -> usize {
    if n <= i32::MAX as u32 { u64_len(n.into()) } else { 1 + u64_len(n.wrapping_neg().into()) }
}

fn put_queue(out: &mut Vec<u8>, n: u32) {
    if n <= i32::MAX as u32 {
        return put!(out, n);
    }
    put!(out, "-", n.wrapping_neg());
}

#[inline]
fn put_host(out: &mut Vec<u8>, host: Host<'_>, width: usize, delim: u8, none: u8) {
    match host {
        Host::Octets(octets) => {
            pad(out, width, octets_len(octets) + 1);
            put!(out, Addr::V4(octets));
        }
        // A socket that cannot be connected has no peer, and a `*` in place of the colon.
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
            put!(out, n);
            pad(out, width, port_len(n));
        }
        Port::Text(text) => put_left(out, text, width, false),
    }
}

/// Appends a left-aligned cell, and the blank before the next cell if there is one.
#[inline]
fn put_left(out: &mut Vec<u8>, text: &[u8], width: usize, blank: bool) {
    out.extend_from_slice(text);
    pad(out, width, text.len());
    if blank {
        put!(out, " ");
    }
}

/// Appends the blanks for a cell of `len` bytes in `width`.
#[inline]
fn pad(out: &mut Vec<u8>, width: usize, len: usize) {
    out.resize(out.len() + width.saturating_sub(len), b' ');
}
