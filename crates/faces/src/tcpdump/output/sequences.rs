//! The first sequence numbers of connections. Later numbers are printed relative to them.

use record::Addr;
use record::rows::TcpHeader;
use record::rows::tcp_flag::SYN;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Most connections whose first numbers are kept. With more, the table is emptied, and the next packet of each
/// connection is shown with absolute numbers, like the first packet of a new connection.
///
/// Bound: TCP connections with relative sequence numbers in tcpdump's text. Beyond: all connections are forgotten and
/// start again. By: any sender of packets.
pub(super) const CONNECTIONS_MAX: usize = 1 << 17;

/// Both ends of a connection, the lower one first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Ends {
    addresses: [Addr; 2],
    ports: [u16; 2],
}

impl Ends {
    /// Returns the ends, and whether the packet goes from the higher to the lower.
    pub(super) fn new(source: Addr, dest: Addr, (sport, dport): (u16, u16)) -> (Ends, bool) {
        let reverse = (sport, source) > (dport, dest);
        let (addresses, ports) =
            if reverse { ([dest, source], [dport, sport]) } else { ([source, dest], [sport, dport]) };
        (Ends { addresses, ports }, reverse)
    }
}

/// The numbers that a packet's numbers are shown relative to: 0 for absolute numbers.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Base {
    /// For its sequence number.
    pub(super) sequence: u32,
    /// For its acknowledgement number.
    pub(super) acknowledgement: u32,
    /// For the numbers in its SACK option.
    pub(super) sacked: u32,
}

/// The first numbers of each connection, in the direction from the lower end.
#[derive(Default, Debug)]
pub(super) struct Sequences {
    first: HashMap<Ends, (u32, u32)>,
}

impl Sequences {
    /// Returns the numbers that the numbers of a packet with ACK are relative to. The first packet of a connection, or
    /// one with SYN, sets them and is shown with absolute numbers.
    pub(super) fn base(&mut self, (ends, reverse): (Ends, bool), tcp: &TcpHeader) -> Base {
        let (seq, ack) = (tcp.seq, tcp.ack);
        if self.first.len() >= CONNECTIONS_MAX && !self.first.contains_key(&ends) {
            self.first.clear();
        }
        let of_this = if reverse { (ack.wrapping_sub(1), seq) } else { (seq, ack.wrapping_sub(1)) };
        match self.first.entry(ends) {
            Entry::Occupied(known) if tcp.flags & SYN == 0 => {
                let (lower, higher) = *known.get();
                let (sequence, acknowledgement) = if reverse { (higher, lower) } else { (lower, higher) };
                Base { sequence, acknowledgement, sacked: acknowledgement }
            }
            entry => {
                entry.insert_entry(of_this);
                Base { sacked: ack.wrapping_sub(1), ..Base::default() }
            }
        }
    }
}
