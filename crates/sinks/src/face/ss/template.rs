//! Whole lines of plain rows: a prepared line, and stores of fixed width at fixed places.
//!
//! Most lines of a big table differ in two addresses and two ports only. A copy of the line as it is for that table
//! and state, with the blanks and an empty queue's zeros in it, and six stores cost a third of putting it together.

use super::block::{DecodedRow, Hosts, Netid, Ports, octets_len};
use super::options::Options;
use super::widths::Widths;
use record::text::{place_number, place_v4};

/// Bytes of a prepared line.
const SIZE: usize = 128;
/// What the last stores may take behind the place they are for.
const SLACK: usize = 16;
/// Tables whose rows have IPv4 addresses and ports: the first of [`Netid`].
const TABLES: usize = Netid::Mptcp as usize + 1;
const STATES: usize = 16;
/// Queues from here on are put the long way.
const QUEUE_MAX: u32 = 1_000_000;

/// Lines by table and state, and the places in them.
pub(super) struct Template {
    lines: Vec<[u8; SIZE]>,
    queues: bool,
    recv: usize,
    send: usize,
    /// Places of the two colons.
    local: usize,
    peer: usize,
    /// Place of the newline.
    end: usize,
}

impl Template {
    /// `leads` are the texts of Netid and State by table and state; None if lines are too long.
    pub(super) fn new(options: &Options, widths: &Widths, leads: &[Vec<u8>]) -> Option<Template> {
        // A lead is longer only for a state that no row of the block has.
        let column = |shown: bool, width: usize| if shown { width + 1 } else { 0 };
        let recv = column(options.netid, widths.netid) + column(options.state, widths.state);
        let send = recv + widths.recv_q + 1;
        let addresses = if options.queues { send + widths.send_q + 1 } else { recv };
        let local = addresses + widths.local.checked_sub(1)?;
        let peer = local + 1 + widths.local_port + 1 + widths.peer.checked_sub(1)?;
        let owners = if options.owners_apart() { widths.owners } else { 0 };
        let end = peer + 1 + widths.peer_port + owners + widths.extras;
        if end + SLACK > SIZE {
            return None;
        }
        let mut template = Template { lines: Vec::new(), queues: options.queues, recv, send, local, peer, end };
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

    /// Appends the line of a row; false if it is none of those that are prepared for.
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
        // From left to right: each store may write blanks, or a dot, over the start of what comes next.
        put_end(slot, self.local, here, from);
        put_end(slot, self.peer, there, to);
        if let Some(place) = slot.get_mut(self.end) {
            *place = b'\n';
        }
        out.truncate(start + self.end + 1);
        true
    }
}

/// An address that ends at `colon`, and the port behind it.
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
