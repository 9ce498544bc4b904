//! A fast path of a few dozen instructions for common rows: IPv4, numbers, empty queues, nothing after the ports.
//!
//! The lengths of their cells are one byte each in one word, so that all of them are compared, or added up, at once.

use super::block::{octets_len, port_len};
use super::chunks::HEAD;
use super::options::{Layout, Options, show};
use super::state::state_name;
use super::widths::Widths;

/// Lengths of the cells: state, receive queue, send queue, local address, port, peer's address, port.
type Lengths = [u8; 8];

/// Number of states, whose names' lengths are stored.
const STATES: usize = 16;
/// Length of an empty queue's cell.
const QUEUE: u8 = 6;

/// The facts that all plain rows of a run share, and the widest cells so far.
pub(super) struct Plain {
    widest: Lengths,
    /// All bits set where a cell is shown.
    shown: u64,
    /// Bytes in ss's buffer that do not depend on the row.
    base: usize,
    /// Bytes in ss's buffer at the end of a row.
    pub(super) closing: usize,
    states: [u8; STATES],
    /// True if ports and addresses are printed as numbers.
    pub(super) numbers: bool,
}

impl Plain {
    pub(super) fn new(options: &Options) -> Plain {
        let lane = |shown: bool| if shown { 0xff } else { 0 };
        let queue = lane(options.has(show::QUEUES));
        let lanes = [lane(options.has(show::STATE)), queue, queue, 0xff, 0xff, 0xff, 0xff, 0];
        let cells = lanes.iter().filter(|lane| **lane != 0).count();
        // A name of three letters takes four bytes; a cell for owners is empty.
        let netid = if options.has(show::NETID) { HEAD + 4 } else { 0 };
        let owners = if options.owners_apart() { HEAD } else { 0 };
        Plain {
            widest: [0; 8],
            shown: u64::from_le_bytes(lanes),
            base: cells * HEAD + netid + owners,
            // 6.1 has an empty cell after the cell Process.
            closing: if options.layout == Layout::V6_1 { 2 * HEAD } else { HEAD },
            states: std::array::from_fn(|state| state_name(state as u8).len() as u8),
            numbers: options.has(show::NUMERIC) && !options.has(show::RESOLVE),
        }
    }

    /// Returns the lengths of a row's cells.
    #[inline]
    pub(super) fn lengths(&self, state: u8, hosts: [[u8; 4]; 2], ports: [u16; 2]) -> Option<Lengths> {
        let state = *self.states.get(usize::from(state))?;
        let [local, peer] = hosts.map(|octets| octets_len(octets) as u8 + 1);
        let [here, there] = ports.map(|port| port_len(port) as u8);
        Some([state, QUEUE, QUEUE, local, here, peer, there, 0])
    }

    /// Returns the bytes that these cells take in ss's buffer: each length is rounded up to an even number.
    #[inline]
    pub(super) fn bytes(&self, lengths: Lengths) -> usize {
        const ONES: u64 = 0x0101_0101_0101_0101;
        let even = (u64::from_le_bytes(lengths) + ONES) & !ONES & self.shown;
        self.base + (even.wrapping_mul(ONES) >> 56) as usize
    }

    /// Updates the widest cells.
    #[inline]
    pub(super) fn grow(&mut self, lengths: Lengths) {
        self.widest.iter_mut().zip(lengths).for_each(|(widest, length)| *widest = (*widest).max(length));
    }

    /// Merges the widest cells into the widths of all rows.
    pub(super) fn settle(&mut self, widths: &mut Widths) {
        let [state, recv_q, send_q, local, local_port, peer, peer_port, _] =
            std::mem::take(&mut self.widest).map(usize::from);
        if local == 0 {
            return;
        }
        let row = Widths { netid: 3, state, recv_q, send_q, local, local_port, peer, peer_port, owners: 0, extras: 0 };
        widths.grow(&row);
    }
}
