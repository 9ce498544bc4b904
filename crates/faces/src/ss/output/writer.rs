//! The writer of ss's rows, in blocks of aligned lines.

use super::address::{Style, put_iface, put_local, put_path, put_peer};
use super::block::{Block, DecodedRow, Hosts, Netid, Ports, octets_len, port_len};
use super::chunks::Chunks;
use super::extras;
use super::families;
use super::options::{Layout, Options, Processes, Services, Tasks, show};
use super::owners;
use super::plain::Plain;
use super::rare;
use super::render::{BlockLayout, queue_len};
use super::state::{sctp_state, state_name};
use super::widths::Widths;
use crate::pieces::{Outside, put};
use record::rows::{Endpoint, NetlinkPart, PacketPart, PacketType, SockType, Socket, UnixPart, UnixType};
use record::text::put_u64;
use record::{Addr, Lookups, Owner, Proto, SinkError, State};
use sinks::Out;
use std::io::Write;

/// The last cell of the newest row: ss counts it only when the next row starts.
#[derive(Clone, Copy)]
enum OpenCell {
    Nothing,
    Header,
    Row { extras: usize },
}

/// Writes rows like ss. Rows wait until their block is full, so nothing is written before [`Writer::finish`] or about
/// 60 000 rows. Memory: one megabyte for IPv4 rows without extras, about five at most.
pub struct Writer<'s, W> {
    options: Options,
    /// The shared data of plain rows, if only the fixed columns are written.
    plain: Option<Plain>,
    style: Style,
    services: Services<'s>,
    processes: Option<Processes<'s>>,
    tasks: Option<&'s dyn Tasks>,
    out: Out<W>,
    block: Block,
    chunks: Chunks,
    widths: Widths,
    header_waits: bool,
    open: OpenCell,
    local: Vec<u8>,
    peer: Vec<u8>,
    local_port: Vec<u8>,
    peer_port: Vec<u8>,
    owners: Vec<u8>,
    extras: Vec<u8>,
    sorted: Vec<Owner>,
    /// Inode of the last SCTP socket: associations that follow belong to it.
    sctp_inode: u32,
}

impl<'s, W: Write> Writer<'s, W> {
    /// Writes to `to`, which should not be buffered itself.
    pub fn new(options: Options, services: Services<'s>, to: W) -> Writer<'s, W> {
        let mut writer = Writer {
            options,
            plain: options.is_plain().then(|| Plain::new(&options)),
            style: Style { raw: options.bug_compatible, resolve: options.has(show::RESOLVE) },
            services,
            processes: None,
            tasks: None,
            out: Out::new(to),
            block: Block::default(),
            chunks: Chunks::default(),
            widths: Widths::default(),
            header_waits: options.has(show::HEADER),
            open: OpenCell::Nothing,
            local: Vec::new(),
            peer: Vec::new(),
            local_port: Vec::new(),
            peer_port: Vec::new(),
            owners: Vec::new(),
            extras: Vec::new(),
            sorted: Vec::new(),
            sctp_inode: 0,
        };
        if options.has(show::HEADER) {
            writer.header();
        }
        writer
    }

    /// Adds a source of names for the addresses of netlink sockets, which are usually pids.
    pub fn naming(mut self, processes: Processes<'s>) -> Writer<'s, W> {
        self.processes = Some(processes);
        self
    }

    /// Adds a source of threads and security contexts.
    pub fn tasks(mut self, tasks: &'s dyn Tasks) -> Writer<'s, W> {
        self.tasks = Some(tasks);
        self
    }

    /// Disables the fast paths.
    #[cfg(test)]
    pub(super) fn slowly(mut self) -> Writer<'s, W> {
        self.plain = None;
        self
    }

    fn header(&mut self) {
        self.widths = Widths::of_header(&self.options);
        let widths = self.widths;
        self.count(&widths, if self.options.layout == Layout::V6_1 { widths.extras } else { 0 });
        self.open = OpenCell::Header;
    }

    /// Takes one row. `lookups` supply interfaces, owners, cgroups and host names.
    #[inline]
    pub fn row(&mut self, row: &Socket<'_>, lookups: &Lookups<'_>) -> Result<(), SinkError> {
        if self.keep_usual(row) {
            return Ok(());
        }
        self.close_row()?;
        if self.plain.is_some() && self.keep_plain(row) {
            return Ok(());
        }
        self.keep(row, lookups);
        Ok(())
    }

    /// Writes the waiting rows and flushes the output.
    pub fn finish(&mut self) -> Result<(), SinkError> {
        self.render()?;
        self.out.flush()
    }

    /// Returns the output itself.
    pub fn into_inner(self) -> W {
        self.out.into_inner()
    }

    /// The fastest path, see [`Plain`]. Returns false if the row is not plain, or ss might render before it.
    #[inline]
    fn keep_usual(&mut self, row: &Socket<'_>) -> bool {
        let (Addr::V4(here), Addr::V4(there)) = (row.local.addr, row.peer.addr) else { return false };
        let Some(plain) = &mut self.plain else { return false };
        let queues = row.rqueue | row.wqueue.unwrap_or(0);
        let follows = matches!(self.open, OpenCell::Row { extras: 0 });
        let named = matches!(row.proto, Proto::Tcp | Proto::Udp);
        if queues != 0 || row.ifindex != 0 || !plain.numbers || !follows || !named {
            return false;
        }
        let (hosts, ports) = ([here, there], [row.local.port, row.peer.port]);
        let Some(lengths) = plain.lengths(row.state.0, hosts, ports) else { return false };
        if !self.chunks.plain_row(plain.closing, plain.bytes(lengths)) {
            return false;
        }
        plain.grow(lengths);
        self.block.push_plain(netid(row) as u8, row.state.0, hosts, ports);
        true
    }

    /// The fast path for IPv4 rows with numbers and nothing else; returns false for other rows.
    #[inline]
    fn keep_plain(&mut self, row: &Socket<'_>) -> bool {
        let (Addr::V4(here), Addr::V4(there)) = (row.local.addr, row.peer.addr) else { return false };
        if matches!(row.proto, Proto::Sctp | Proto::Dccp | Proto::Raw) {
            return false;
        }
        if row.ifindex != 0 || !row.is_inet() || !self.options.has(show::NUMERIC) || self.options.has(show::RESOLVE) {
            return false;
        }
        let queues = (row.rqueue, row.wqueue.unwrap_or(0));
        let widths = Widths {
            netid: Netid::NAMES.get(netid(row) as usize).map_or(0, |name| name.len()),
            state: state_name(row.state.0).len(),
            recv_q: queue_len(queues.0).max(6),
            send_q: queue_len(queues.1).max(6),
            local: octets_len(here) + 1,
            local_port: port_len(row.local.port),
            peer: octets_len(there) + 1,
            peer_port: port_len(row.peer.port),
            owners: 0,
            extras: 0,
        };
        self.block.push(&DecodedRow {
            netid: netid(row) as u8,
            state: row.state.0,
            queues,
            hosts: Hosts::Octets(here, there),
            ports: Ports::Numbers(row.local.port, row.peer.port),
            owners: b"",
            extras: b"",
        });
        self.widths.grow(&widths);
        self.count(&widths, 0);
        self.open = OpenCell::Row { extras: 0 };
        true
    }

    /// Takes any row: its cells become text, except ports without names.
    fn keep(&mut self, row: &Socket<'_>, lookups: &Lookups<'_>) {
        for cell in [&mut self.local, &mut self.peer, &mut self.local_port, &mut self.peer_port] {
            cell.clear();
        }
        self.owners.clear();
        self.extras.clear();
        let named = match (&row.unix, row.extras.and_then(|r| r.packet), row.extras.and_then(|r| r.netlink)) {
            (Some(unix), ..) => self.name_unix(row, unix),
            (_, Some(packet), _) => self.name_packet(row, &packet, lookups),
            _ if matches!(row.proto, Proto::Vsock | Proto::Tipc | Proto::Xdp) => self.name_family(row, lookups),
            (.., Some(netlink)) => self.name_netlink(&netlink),
            _ => self.name_inet(row, lookups),
        };
        self.tail(row, lookups);
        let (netid, state) = self.kind(row);
        let queues = (row.rqueue, row.wqueue.unwrap_or(0));
        let (here, there) = (row.local.port, row.peer.port);
        let widths = Widths {
            netid: Netid::NAMES.get(netid as usize).map_or(0, |name| name.len()),
            state: match netid {
                Netid::Association => 3 + sctp_state(state).len(),
                _ => state_name(state).len(),
            },
            recv_q: queue_len(queues.0).max(6),
            send_q: queue_len(queues.1).max(6),
            local: self.local.len() + 1,
            local_port: if named { self.local_port.len() } else { port_len(here) },
            peer: self.peer.len() + 1,
            peer_port: if named { self.peer_port.len() } else { port_len(there) },
            owners: self.owners.len(),
            extras: 0,
        };
        self.block.push(&DecodedRow {
            netid: netid as u8,
            state,
            queues,
            hosts: Hosts::Texts(&self.local, &self.peer),
            ports: match named {
                true => Ports::Texts(&self.local_port, &self.peer_port),
                false => Ports::Numbers(here, there),
            },
            owners: &self.owners,
            extras: &self.extras,
        });
        self.widths.grow(&widths);
        self.count(&widths, self.extras.len());
        self.open = OpenCell::Row { extras: self.extras.len() };
    }

    fn name_unix(&mut self, row: &Socket<'_>, unix: &UnixPart<'_>) -> bool {
        put_path(&mut self.local, unix.path, self.style.raw);
        self.peer.push(b'*');
        put_u64(&mut self.local_port, row.inode.into());
        put_u64(&mut self.peer_port, unix.peer_inode.unwrap_or(0).into());
        true
    }

    fn name_packet(&mut self, row: &Socket<'_>, packet: &PacketPart<'_>, lookups: &Lookups<'_>) -> bool {
        rare::put_ethertype(&mut self.local, packet.ethertype, self.options.has(show::NUMERIC));
        match row.ifindex {
            0 => self.local_port.push(b'*'),
            index => put_iface(&mut self.local_port, row.netns_id, index, lookups, self.style.raw),
        }
        true
    }

    /// Returns the table of a row, and its state as ss's number. An SCTP association is recognised by the socket
    /// before it, like in ss: without that socket, its state would be read as a TCP state.
    fn kind(&mut self, row: &Socket<'_>) -> (Netid, u8) {
        let state = row.extras.and_then(|rare| rare.sctp).and_then(|sctp| sctp.state);
        let follows = self.sctp_inode != 0 && self.sctp_inode == row.inode;
        self.sctp_inode = if row.proto == Proto::Sctp { row.inode } else { 0 };
        match state {
            Some(state) if follows || !self.options.bug_compatible => (Netid::Association, state.0 & 15),
            Some(state) => (Netid::Sctp, state.0 & 15),
            None if self.options.bug_compatible => (raw_netid(row), shown_state(row)),
            None => (netid(row), shown_state(row)),
        }
    }

    fn name_family(&mut self, row: &Socket<'_>, lookups: &Lookups<'_>) -> bool {
        let Some(rare) = row.extras else { return true };
        if let Some(vsock) = rare.vsock {
            families::put_vsock(&mut self.local, vsock.local.0);
            families::put_vsock(&mut self.local_port, vsock.local.1);
            families::put_vsock(&mut self.peer, vsock.peer.0);
            families::put_vsock(&mut self.peer_port, vsock.peer.1);
        }
        if let Some(tipc) = rare.tipc {
            put_u64(&mut self.local, tipc.node.into());
            put_u64(&mut self.local_port, tipc.port.into());
            if let Some(peer) = tipc.connection {
                put_u64(&mut self.peer, peer.node.into());
                put_u64(&mut self.peer_port, peer.port.into());
            }
        }
        if let (Some(xdp), true) = (rare.xdp, row.ifindex != 0) {
            put_iface(&mut self.local, row.netns_id, row.ifindex, lookups, self.style.raw);
            self.local_port.push(b'q');
            put_u64(&mut self.local_port, xdp.queue.unwrap_or(0).into());
        }
        true
    }

    fn name_netlink(&mut self, netlink: &NetlinkPart<'_>) -> bool {
        rare::put_protocol(&mut self.local, netlink.protocol, self.options.has(show::NUMERIC));
        let processes = self.processes.filter(|_| !self.options.has(show::NUMERIC));
        rare::put_portid(&mut self.local_port, netlink.portid, processes, self.options.bug_compatible);
        if (netlink.dst_portid, netlink.dst_group) != (0, 0) {
            put_u64(&mut self.peer, netlink.dst_group.into());
            rare::put_signed(&mut self.peer_port, netlink.dst_portid);
        }
        true
    }

    /// True if one of the ports has a name: both are text then.
    fn name_inet(&mut self, row: &Socket<'_>, lookups: &Lookups<'_>) -> bool {
        put_local(&mut self.local, row, lookups, self.style);
        put_peer(&mut self.peer, row, lookups, self.style);
        if self.options.has(show::NUMERIC) {
            return false;
        }
        let name = |end: &Endpoint| if end.port == 0 { None } else { (self.services)(row.proto, end.port) };
        let names = (name(&row.local), name(&row.peer));
        if row.proto == Proto::Raw {
            rare::put_ip_protocol(&mut self.local_port, row.local.port, names.0);
            rare::put_ip_protocol(&mut self.peer_port, row.peer.port, names.1);
            return true;
        }
        if names == (None, None) {
            return false;
        }
        put_port(&mut self.local_port, row.local.port, names.0);
        put_port(&mut self.peer_port, row.peer.port, names.1);
        true
    }

    fn tail(&mut self, row: &Socket<'_>, lookups: &Lookups<'_>) {
        // For a TIPC socket, the identity comes before the owners.
        let early = row.proto == Proto::Tipc;
        if early {
            extras::put(&mut self.extras, row, lookups, &self.options);
        }
        // ss does not look up owners of netlink sockets.
        if self.options.owners() && row.proto != Proto::Netlink {
            let cell = if self.options.owners_apart() { &mut self.owners } else { &mut self.extras };
            owners::put(cell, row, lookups, &mut self.sorted, &self.options, self.tasks);
        }
        // With a column for owners, their other items are in that column.
        let apart = row.proto == Proto::Netlink && self.options.owners_apart();
        match row.extras.and_then(|rare| rare.tipc) {
            _ if apart => extras::put(&mut self.owners, row, lookups, &self.options),
            Some(tipc) if self.options.has(show::TIPC) => {
                families::put_tipc(&mut self.extras, &tipc, self.options.has(show::ONE_LINE))
            }
            _ if early => {}
            _ => extras::put(&mut self.extras, row, lookups, &self.options),
        }
    }

    /// Adds the cells of a row, or of the heading, to the model of ss's buffer.
    fn count(&mut self, widths: &Widths, extras: usize) {
        let (cells, used) = widths.cells(&self.options);
        let cells = cells.get(..used).unwrap_or_default();
        self.chunks.row(cells, extras);
    }

    /// Completes the newest row, and renders if ss would do so before the next one.
    fn close_row(&mut self) -> Result<(), SinkError> {
        let extras = match self.open {
            OpenCell::Nothing => return Ok(()),
            OpenCell::Header if self.options.layout == Layout::V6_1 => self.widths.extras,
            OpenCell::Header => 0,
            OpenCell::Row { extras } => extras,
        };
        self.open = OpenCell::Nothing;
        let mut last = extras;
        if self.options.layout == Layout::V6_1 {
            // An empty cell follows the cell Process and is the last.
            self.widths.extras = self.widths.extras.max(extras);
            self.chunks.close_last(extras);
            last = 0;
        }
        if self.chunks.is_full() {
            return self.render();
        }
        self.widths.extras = self.widths.extras.max(last);
        self.chunks.close_last(last);
        Ok(())
    }

    /// Writes the block. Widths only grow: ss keeps them for the next block.
    fn render(&mut self) -> Result<(), SinkError> {
        if let Some(plain) = &mut self.plain {
            plain.settle(&mut self.widths);
        }
        let layout = BlockLayout::new(&self.options, self.widths.on_screen(&self.options));
        if std::mem::take(&mut self.header_waits) {
            layout.put_header(self.out.buf());
            self.out.line_done()?;
        }
        for row in self.block.rows() {
            layout.put_row(self.out.buf(), &row);
            self.out.line_done()?;
        }
        self.block.clear();
        self.chunks.clear();
        self.open = OpenCell::Nothing;
        Ok(())
    }
}

fn put_port(out: &mut Vec<u8>, port: u16, name: Option<&[u8]>) {
    match name {
        Some(name) => put!(out, Outside(name, false)),
        None if port == 0 => put!(out, "*"),
        None => put!(out, port),
    }
}

/// ss shows every netlink socket as unconnected.
fn shown_state(row: &Socket<'_>) -> u8 {
    if row.proto == Proto::Netlink { State::CLOSE.0 } else { row.state.0 }
}

/// Returns the table of a raw socket: ss takes it from the protocol that raw_diag reports.
fn raw_netid(row: &Socket<'_>) -> Netid {
    // /proc reports no protocol and no cookie.
    let protocol = row.extras.and_then(|rare| rare.ip_protocol).filter(|_| row.proto == Proto::Raw && row.cookie != 0);
    match protocol {
        None | Some(0) => netid(row),
        Some(6) => Netid::Tcp,
        Some(17) => Netid::Udp,
        Some(33) => Netid::Dccp,
        Some(58) => Netid::Icmp6,
        Some(132) => Netid::Sctp,
        Some(_) => Netid::RawOther,
    }
}

fn netid(row: &Socket<'_>) -> Netid {
    match (row.proto, row.unix.map(|u| u.kind)) {
        (Proto::Tcp, _) => Netid::Tcp,
        (Proto::Udp | Proto::UdpLite, _) => Netid::Udp,
        (Proto::Raw, _) => Netid::Raw,
        (Proto::Mptcp, _) => Netid::Mptcp,
        (Proto::Netlink, _) => Netid::Netlink,
        (Proto::Packet, _) if row.extras.and_then(|r| r.packet).is_some_and(|p| p.kind == PacketType::RAW) => {
            Netid::PacketRaw
        }
        (Proto::Packet, _) => Netid::PacketDatagram,
        (Proto::Unix, Some(UnixType(1))) => Netid::UnixStream,
        (Proto::Unix, Some(UnixType(5))) => Netid::UnixSeqpacket,
        (Proto::Unix, _) => Netid::UnixDatagram,
        (Proto::Dccp, _) => Netid::Dccp,
        (Proto::Sctp, _) => Netid::Sctp,
        (Proto::Xdp, _) => Netid::Xdp,
        (Proto::Vsock, _) => match row.extras.and_then(|rare| rare.vsock).map(|vsock| vsock.kind) {
            Some(SockType::STREAM) => Netid::VsockStream,
            Some(SockType::DGRAM) => Netid::VsockDatagram,
            _ => Netid::VsockOther,
        },
        (Proto::Tipc, _) => match row.extras.and_then(|rare| rare.tipc).map(|tipc| tipc.kind) {
            Some(SockType::STREAM) => Netid::TipcStream,
            Some(SockType::DGRAM) => Netid::TipcDatagram,
            Some(SockType::RDM) => Netid::TipcRdm,
            Some(SockType::SEQPACKET) => Netid::TipcSeqpacket,
            _ => Netid::TipcOther,
        },
    }
}
