//! Whole lines of plain rows: a prepared line, and stores of fixed width at fixed offsets.
//!
//! Most lines of a big table differ only in two addresses and two ports. Copying a line for the table and state, with
//! its blanks and an empty queue's zeros, plus six stores, costs a third of building the line.

use super::block::{DecodedRow, Hosts, Netid, Ports, octets_len};
use super::options::{Options, show};
use super::widths::Widths;
use record::text::{place_number, place_v4};

/// Length of a prepared line.
const SIZE: usize = 128;
/// Bytes that the last stores may write after their end.
const SLACK: usize = 16;
/// Tables whose rows have IPv4 addresses and ports: the first ones of [`Netid`].
const TABLES: usize = Netid::Mptcp as usize + 1;
const STATES: usize = 16;
/// Longer queues are written without a template.
const QUEUE_MAX: u32 = 1_000_000;

/// Lines by table and state, with the offsets of their variable parts.
pub(super) struct Template {
    lines: Vec<[u8; SIZE]>,
    queues: bool,
    recv: usize,
    send: usize,
    /// Offsets of the two colons.
    local: usize,
    peer: usize,
    /// Offset of the newline.
    end: usize,
}

impl Template {
    /// `leads` are the texts of Netid and State by table and state; returns `None` if lines are too long.
    pub(super) fn new(options: &Options, widths: &Widths, leads: &[Vec<u8>]) -> Option<Template> {
        // A longer lead belongs to a state that no row of the block has.
        let column = |shown: bool, width: usize| if shown { width + 1 } else { 0 };
        let recv = column(options.has(show::NETID), widths.netid) + column(options.has(show::STATE), widths.state);
        let send = recv + widths.recv_q + 1;
        let addresses = if options.has(show::QUEUES) { send + widths.send_q + 1 } else { recv };
        let local = addresses + widths.local.checked_sub(1)?;
        let peer = local + 1 + widths.local_port + 1 + widths.peer.checked_sub(1)?;
        let owners = if options.owners_apart() { widths.owners } else { 0 };
        let end = peer + 1 + widths.peer_port + owners + widths.extras;
        if end + SLACK > SIZE {
            return None;
        }
        let mut template =
            Template { lines: Vec::new(), queues: options.has(show::QUEUES), recv, send, local, peer, end };
        template.lines = leads.iter().take(TABLES * STATES).map(|lead| template.line(lead)).collect();
        Some(template)
    }

    fn line(&self, lead: &[u8]) -> [u8; SIZE] {
        let mut line = [b' '; SIZE];
        line.iter_mut().zip(lead).for_each(|(to, from)| *to = *from);
        let zeros = [(self.recv, b'0'), (self.send, b'0')];
        let colons = [(self.local, b':'), (self.peer, b':')];
        let shown = zeros.into_iter().filter(|_| self.queues).chain(colons);
        for (at, byte) in shown {
            if let Some(place) = line.get_mut(at) {
                *place = byte;
            }
        }
        line
    }

    /// Appends the line of a row; returns false if no line was prepared for it.
    #[inline]
    pub(super) fn put(&self, out: &mut Vec<u8>, row: &DecodedRow<'_>) -> bool {
        let (Hosts::Octets(here, there), Ports::Numbers(from, to)) = (row.hosts, row.ports) else { return false };
        let long = row.queues.0 >= QUEUE_MAX || row.queues.1 >= QUEUE_MAX;
        if !row.owners.is_empty() || !row.extras.is_empty() || long {
            return false;
        }
        let Some(line) = self.lines.get(usize::from(row.netid) * STATES + usize::from(row.state)) else { return false };
        let start = out.len();
        out.extend_from_slice(line);
        let Some(slot) = out.last_chunk_mut::<SIZE>() else { return false };
        if row.queues != (0, 0) && self.queues {
            place_number(slot, self.recv, row.queues.0);
            place_number(slot, self.send, row.queues.1);
        }
        // From left to right: each store may write blanks, or a dot, over the start of the next part.
        put_end(slot, self.local, here, from);
        put_end(slot, self.peer, there, to);
        if let Some(place) = slot.get_mut(self.end) {
            *place = b'\n';
        }
        out.truncate(start + self.end + 1);
        true
    }
}

/// Writes an address that ends at `colon`, and the port after it.
#[inline]
fn put_end(slot: &mut [u8; SIZE], colon: usize, octets: [u8; 4], port: u16) {
    place_v4(slot, colon - octets_len(octets).min(colon), octets);
    if port == 0 {
        if let Some(place) = slot.get_mut(colon..).and_then(|rest| rest.first_chunk_mut()) {
            *place = *b":*      ";
        }
        return;
    }
    place_number(slot, colon + 1, port.into());
    if let Some(place) = slot.get_mut(colon) {
        *place = b':';
    }
}
