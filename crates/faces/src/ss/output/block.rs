//! Rows that wait for their column widths, each in a few bytes.
//!
//! An IPv4 row without extras takes 14 bytes: numbers are kept as numbers and converted to text once, when the block
//! is rendered. The text of a row takes 70 bytes in ss, five times as much, so here a block of about 60 000 rows stays
//! below a megabyte.

/// The socket table, in the form of the first column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Netid {
    Tcp = 0,
    Udp,
    Raw,
    Mptcp,
    Netlink,
    PacketRaw,
    PacketDatagram,
    UnixStream,
    UnixSeqpacket,
    UnixDatagram,
    Dccp,
    Sctp,
    /// An SCTP association below its socket, which has no word and separate states.
    Association,
    VsockStream,
    VsockDatagram,
    TipcStream,
    TipcDatagram,
    TipcRdm,
    TipcSeqpacket,
    Xdp,
    /// Types for which ss has no word.
    VsockOther,
    TipcOther,
    /// Raw sockets of ICMPv6, and of protocols for which ss has no word.
    Icmp6,
    RawOther,
}

impl Netid {
    pub(super) const NAMES: [&'static str; 24] = [
        "tcp", "udp", "raw", "mptcp", "nl", "p_raw", "p_dgr", "u_str", "u_seq", "u_dgr", "dccp", "sctp", "", "v_str",
        "v_dgr", "ti_st", "ti_dg", "ti_rd", "ti_sq", "xdp", "???", "???", "icmp6", "???",
    ];

    /// True for the three types of unix sockets.
    pub(super) fn is_unix(netid: u8) -> bool {
        (Netid::UnixStream as u8..=Netid::UnixDatagram as u8).contains(&netid)
    }

    /// True for the types of TIPC sockets.
    pub(super) fn is_tipc(netid: u8) -> bool {
        (Netid::TipcStream as u8..=Netid::TipcSeqpacket as u8).contains(&netid) || netid == Netid::TipcOther as u8
    }
}

/// Two queues follow, of four bytes each; otherwise both are 0.
const QUEUES: u8 = 1;
/// Both addresses are four octets; otherwise texts.
const OCTETS: u8 = 2;
/// Both ports are texts; otherwise numbers of two bytes.
const NAMED: u8 = 4;
/// Owners and extras follow as texts.
const TAIL: u8 = 8;
/// The table's number does not fit into its four bits: add 16.
const RARE: u8 = 16;
/// A length byte with this value means that the length follows in four bytes.
const LONG: u8 = 255;

/// The two addresses of a row.
#[derive(Clone, Copy)]
pub(super) enum Hosts<'a> {
    Octets([u8; 4], [u8; 4]),
    Texts(&'a [u8], &'a [u8]),
}

/// The two ports of a row. Number 0 is printed as `*`.
#[derive(Clone, Copy)]
pub(super) enum Ports<'a> {
    Numbers(u16, u16),
    Texts(&'a [u8], &'a [u8]),
}

/// An address.
#[derive(Clone, Copy)]
pub(super) enum Host<'a> {
    Octets([u8; 4]),
    Text(&'a [u8]),
}

/// A port.
#[derive(Clone, Copy)]
pub(super) enum Port<'a> {
    Number(u16),
    Text(&'a [u8]),
}

impl<'a> Hosts<'a> {
    /// Returns the local and the peer's address.
    #[inline]
    pub(super) fn split(self) -> (Host<'a>, Host<'a>) {
        match self {
            Hosts::Octets(here, there) => (Host::Octets(here), Host::Octets(there)),
            Hosts::Texts(here, there) => (Host::Text(here), Host::Text(there)),
        }
    }
}

impl<'a> Ports<'a> {
    /// Returns the local and the peer's port.
    #[inline]
    pub(super) fn split(self) -> (Port<'a>, Port<'a>) {
        match self {
            Ports::Numbers(here, there) => (Port::Number(here), Port::Number(there)),
            Ports::Texts(here, there) => (Port::Text(here), Port::Text(there)),
        }
    }
}

/// Length of each octet in decimal.
const OCTET_LEN: [u8; 256] = {
    let mut len = [3; 256];
    let mut n = 0;
    while n < 100 {
        len[n] = if n < 10 { 1 } else { 2 };
        n += 1;
    }
    len
};

/// Returns the length of an IPv4 address.
#[inline]
pub(super) fn octets_len(octets: [u8; 4]) -> usize {
    octets.iter().map(|&o| usize::from(OCTET_LEN[usize::from(o)])).sum::<usize>() + 3
}

/// Returns the length of a port; 0 is printed as `*`.
#[inline]
pub(super) fn port_len(port: u16) -> usize {
    1 + [10, 100, 1_000, 10_000].map(|power| usize::from(port >= power)).iter().sum::<usize>()
}

/// A decoded row.
#[derive(Clone, Copy)]
pub(super) struct DecodedRow<'a> {
    pub(super) netid: u8,
    pub(super) state: u8,
    pub(super) queues: (u32, u32),
    pub(super) hosts: Hosts<'a>,
    pub(super) ports: Ports<'a>,
    pub(super) owners: &'a [u8],
    pub(super) extras: &'a [u8],
}

/// The rows of a block.
#[derive(Default)]
pub(super) struct Block {
    bytes: Vec<u8>,
}

impl Block {
    /// Keeps a row.
    pub(super) fn push(&mut self, row: &DecodedRow<'_>) {
        let mut flags = 0;
        flags |= if row.queues == (0, 0) { 0 } else { QUEUES };
        flags |= if matches!(row.hosts, Hosts::Octets(..)) { OCTETS } else { 0 };
        flags |= if matches!(row.ports, Ports::Texts(..)) { NAMED } else { 0 };
        flags |= if row.owners.is_empty() && row.extras.is_empty() { 0 } else { TAIL };
        flags |= if row.netid < 16 { 0 } else { RARE };
        let head = row.netid << 4 | row.state & 15;
        if let (OCTETS, Hosts::Octets([a, b, c, d], [e, f, g, h]), Ports::Numbers(here, there)) =
            (flags, row.hosts, row.ports)
        {
            let ([i, j], [k, l]) = (here.to_le_bytes(), there.to_le_bytes());
            return self.bytes.extend_from_slice(&[head, flags, a, b, c, d, e, f, g, h, i, j, k, l]);
        }
        self.bytes.extend_from_slice(&[head, flags]);
        if flags & QUEUES != 0 {
            self.bytes.extend_from_slice(&row.queues.0.to_le_bytes());
            self.bytes.extend_from_slice(&row.queues.1.to_le_bytes());
        }
        match row.hosts {
            Hosts::Octets(here, there) => self.bytes.extend(here.iter().chain(&there)),
            Hosts::Texts(here, there) => self.texts(here, there),
        }
        match row.ports {
            Ports::Numbers(here, there) => self.bytes.extend(here.to_le_bytes().iter().chain(&there.to_le_bytes())),
            Ports::Texts(here, there) => self.texts(here, there),
        }
        if flags & TAIL != 0 {
            self.texts(row.owners, row.extras);
        }
    }

    /// Keeps a row with empty queues, IPv4 addresses, numeric ports, and nothing else.
    #[inline]
    pub(super) fn push_plain(&mut self, netid: u8, state: u8, hosts: [[u8; 4]; 2], ports: [u16; 2]) {
        let [[a, b, c, d], [e, f, g, h]] = hosts;
        let [[i, j], [k, l]] = ports.map(u16::to_le_bytes);
        self.bytes.extend_from_slice(&[netid << 4 | state & 15, OCTETS, a, b, c, d, e, f, g, h, i, j, k, l]);
    }

    fn texts(&mut self, one: &[u8], other: &[u8]) {
        for text in [one, other] {
            match u8::try_from(text.len()) {
                Ok(len) if len < LONG => self.bytes.push(len),
                _ => {
                    self.bytes.push(LONG);
                    // Cells are far shorter than 4 GiB.
                    self.bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
                }
            }
            self.bytes.extend_from_slice(text);
        }
    }

    /// Returns the rows in order.
    pub(super) fn rows(&self) -> Rows<'_> {
        Rows { rest: &self.bytes }
    }

    /// Forgets all rows, but keeps the memory for the next block.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }
}

/// Decodes the rows of a block.
pub(super) struct Rows<'a> {
    rest: &'a [u8],
}

impl<'a> Rows<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*bytes)
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let [short] = self.take()?;
        let len = if short == LONG { u32::from_le_bytes(self.take()?) as usize } else { usize::from(short) };
        let (text, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(text)
    }
}

impl<'a> Iterator for Rows<'a> {
    type Item = DecodedRow<'a>;

    #[inline]
    fn next(&mut self) -> Option<DecodedRow<'a>> {
        if let Some((&[head, OCTETS, a, b, c, d, e, f, g, h, i, j, k, l], rest)) = self.rest.split_first_chunk() {
            self.rest = rest;
            return Some(DecodedRow {
                netid: head >> 4,
                state: head & 15,
                queues: (0, 0),
                hosts: Hosts::Octets([a, b, c, d], [e, f, g, h]),
                ports: Ports::Numbers(u16::from_le_bytes([i, j]), u16::from_le_bytes([k, l])),
                owners: b"",
                extras: b"",
            });
        }
        let [head, flags] = self.take()?;
        let mut queues = (0, 0);
        if flags & QUEUES != 0 {
            queues = (u32::from_le_bytes(self.take()?), u32::from_le_bytes(self.take()?));
        }
        let hosts = match flags & OCTETS {
            0 => Hosts::Texts(self.text()?, self.text()?),
            _ => Hosts::Octets(self.take()?, self.take()?),
        };
        let ports = match flags & NAMED {
            0 => Ports::Numbers(u16::from_le_bytes(self.take()?), u16::from_le_bytes(self.take()?)),
            _ => Ports::Texts(self.text()?, self.text()?),
        };
        let (owners, extras) = match flags & TAIL {
            0 => (&[][..], &[][..]),
            _ => (self.text()?, self.text()?),
        };
        let netid = head >> 4 | flags & RARE;
        Some(DecodedRow { netid, state: head & 15, queues, hosts, ports, owners, extras })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_as_they_were() {
        let long = vec![b'x'; 70_000];
        let plain = DecodedRow {
            netid: 1,
            state: 13,
            queues: (0, 0),
            hosts: Hosts::Octets([1, 2, 3, 4], [5, 6, 7, 8]),
            ports: Ports::Numbers(65535, 0),
            owners: b"",
            extras: b"",
        };
        let rows = [
            plain,
            DecodedRow { queues: (0, u32::MAX), ..plain },
            DecodedRow { netid: 21, ..plain },
            DecodedRow { netid: 16, extras: b" x", ..plain },
            DecodedRow { hosts: Hosts::Texts(b"*", &long[..254]), ..plain },
            DecodedRow { hosts: Hosts::Texts(b"*", &long[..255]), ports: Ports::Texts(b"ssh", b""), ..plain },
            DecodedRow { extras: &long, ..plain },
            DecodedRow { owners: b" users", queues: (7, 0), ..plain },
        ];
        let mut block = Block::default();
        rows.iter().for_each(|row| block.push(row));
        let text = |r: &DecodedRow<'_>| {
            let hosts = match r.hosts {
                Hosts::Octets(a, b) => (a.to_vec(), b.to_vec()),
                Hosts::Texts(a, b) => (a.to_vec(), b.to_vec()),
            };
            let ports = match r.ports {
                Ports::Numbers(a, b) => format!("{a} {b}"),
                Ports::Texts(a, b) => format!("{a:?} {b:?}"),
            };
            (r.netid, r.state, r.queues, hosts, ports, r.owners.to_vec(), r.extras.to_vec())
        };
        let back: Vec<_> = block.rows().map(|r| text(&r)).collect();
        assert_eq!(back, rows.iter().map(text).collect::<Vec<_>>());
        block.clear();
        block.push(&plain);
        assert_eq!(block.bytes.len(), 14);
    }
}
