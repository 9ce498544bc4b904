//! Selects socket tables, families and states, following ss's own rules one by one.

use super::states;
use crate::ss::output::Layout;

/// A socket table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Db {
    Tcp,
    Mptcp,
    Dccp,
    Udp,
    Raw,
    UnixDatagram,
    UnixStream,
    UnixSeqpacket,
    PacketDatagram,
    PacketRaw,
    Netlink,
    Sctp,
    VsockStream,
    VsockDatagram,
    Tipc,
    Xdp,
}

/// An address family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Family {
    Inet,
    Inet6,
    Unix,
    Packet,
    Netlink,
    Vsock,
    Tipc,
    Xdp,
}

const fn bit(db: Db) -> u32 {
    1 << db as u32
}

const INET: u32 = bit(Db::Tcp) | bit(Db::Mptcp) | bit(Db::Udp) | bit(Db::Dccp) | bit(Db::Sctp) | bit(Db::Raw);
/// The three tables of unix sockets.
pub(super) const UNIX: u32 = bit(Db::UnixDatagram) | bit(Db::UnixStream) | bit(Db::UnixSeqpacket);
/// The two tables of packet sockets.
pub(super) const PACKET: u32 = bit(Db::PacketDatagram) | bit(Db::PacketRaw);
/// The two tables of vsock sockets.
pub(super) const VSOCK: u32 = bit(Db::VsockStream) | bit(Db::VsockDatagram);
/// Like ss, `all` excludes TIPC.
const ALL: u32 = INET | UNIX | PACKET | VSOCK | bit(Db::Netlink) | bit(Db::Xdp);

/// The words of `-A`.
#[rustfmt::skip]
const WORDS: &[(&str, u32)] = &[
    ("all", ALL), ("inet", INET), ("udp", bit(Db::Udp)), ("dccp", bit(Db::Dccp)), ("tcp", bit(Db::Tcp)),
    ("mptcp", bit(Db::Mptcp)), ("sctp", bit(Db::Sctp)), ("raw", bit(Db::Raw)), ("unix", UNIX),
    ("unix_stream", bit(Db::UnixStream)), ("u_str", bit(Db::UnixStream)), ("unix_dgram", bit(Db::UnixDatagram)),
    ("u_dgr", bit(Db::UnixDatagram)), ("unix_seqpacket", bit(Db::UnixSeqpacket)), ("u_seq", bit(Db::UnixSeqpacket)),
    ("packet", PACKET), ("packet_raw", bit(Db::PacketRaw)), ("p_raw", bit(Db::PacketRaw)),
    ("packet_dgram", bit(Db::PacketDatagram)), ("p_dgr", bit(Db::PacketDatagram)), ("netlink", bit(Db::Netlink)),
    ("tipc", bit(Db::Tipc)), ("vsock", VSOCK), ("vsock_stream", bit(Db::VsockStream)), ("v_str", bit(Db::VsockStream)),
    ("vsock_dgram", bit(Db::VsockDatagram)), ("v_dgr", bit(Db::VsockDatagram)), ("xdp", bit(Db::Xdp)),
];

/// The words of `-f`.
#[rustfmt::skip]
pub(super) const FAMILIES: &[(&str, Family)] = &[
    ("inet", Family::Inet), ("inet6", Family::Inet6), ("link", Family::Packet), ("unix", Family::Unix),
    ("netlink", Family::Netlink), ("tipc", Family::Tipc), ("vsock", Family::Vsock), ("xdp", Family::Xdp),
];

const fn family_bit(family: Family) -> u32 {
    1 << family as u32
}

/// The families of a table.
fn families_of(db: u32) -> u32 {
    match db {
        db if db & INET != 0 => family_bit(Family::Inet) | family_bit(Family::Inet6),
        db if db & UNIX != 0 => family_bit(Family::Unix),
        db if db & PACKET != 0 => family_bit(Family::Packet),
        db if db & VSOCK != 0 => family_bit(Family::Vsock),
        db if db & bit(Db::Netlink) != 0 => family_bit(Family::Netlink),
        db if db & bit(Db::Tipc) != 0 => family_bit(Family::Tipc),
        _ => family_bit(Family::Xdp),
    }
}

/// The tables of a family.
fn tables_of(family: Family) -> u32 {
    match family {
        Family::Inet | Family::Inet6 => INET,
        Family::Unix => UNIX,
        Family::Packet => PACKET,
        Family::Netlink => bit(Db::Netlink),
        Family::Vsock => VSOCK,
        Family::Tipc => bit(Db::Tipc),
        Family::Xdp => bit(Db::Xdp),
    }
}

/// The current selection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Selection {
    /// Bits of [`Db`].
    pub(super) tables: u32,
    /// Bits of [`Family`].
    pub(super) families: u32,
    /// Bits of the kernel's state mask.
    pub(super) states: u32,
    /// The family named last: bare addresses are parsed as its addresses.
    pub(super) preferred: Option<Family>,
    /// True if nothing was named, which selects everything.
    pub(super) by_default: bool,
    layout: Layout,
}

impl Selection {
    pub(super) fn nothing(layout: Layout) -> Selection {
        Selection { tables: 0, families: 0, states: 0, preferred: None, by_default: true, layout }
    }

    /// Adds tables and their usual states.
    fn add_tables(&mut self, tables: u32) {
        for db in (0..16).map(|n| 1 << n).filter(|db| tables & db != 0) {
            self.tables |= db;
            self.states |= match db {
                db if db & (bit(Db::Udp) | bit(Db::Raw)) != 0 => states::ESTABLISHED,
                db if db & (bit(Db::UnixDatagram) | PACKET | bit(Db::Netlink) | bit(Db::Xdp)) != 0 => {
                    states::UNCONNECTED
                }
                db if db & bit(Db::Tipc) != 0 => states::ESTABLISHED | states::SERVERS,
                _ => states::connected(self.layout),
            };
        }
        self.by_default = false;
    }

    /// `-t`, `-u`, `-w`, `-M`.
    pub(super) fn add_table(&mut self, db: Db) {
        self.add_tables(bit(db));
    }

    /// `-4`, `-6`, `-x`, `-0`, `-f`.
    pub(super) fn add_family(&mut self, family: Family) {
        self.states |= match family {
            Family::Packet | Family::Netlink | Family::Xdp => states::UNCONNECTED,
            Family::Tipc => states::ESTABLISHED | states::SERVERS,
            _ => states::connected(self.layout),
        };
        self.families |= family_bit(family);
        self.preferred = Some(family);
        self.by_default = false;
    }

    /// Restricts the selection to the family of an address in the expression.
    pub(super) fn only_family(&mut self, family: Family) {
        self.families = family_bit(family);
        self.preferred = Some(family);
        self.by_default = false;
    }

    /// Drops the tables named so far, when `-A` is first given.
    pub(super) fn forget_tables(&mut self) {
        self.tables = 0;
        self.by_default = false;
    }

    /// Applies one word of `-A`; false for an unknown one.
    pub(super) fn table_word(&mut self, word: &[u8]) -> bool {
        let (word, remove) = match word.strip_prefix(b"!") {
            Some(word) => (word, true),
            None => (word, false),
        };
        let Some((_, tables)) = WORDS.iter().find(|(name, _)| name.as_bytes() == word) else { return false };
        match remove {
            true => self.tables &= !tables,
            false => self.add_tables(*tables),
        }
        self.by_default = false;
        true
    }

    /// Fills in defaults after all switches and words are parsed.
    pub(super) fn settle(&mut self, states: u32) {
        let mut states = states;
        if self.by_default {
            if states == 0 {
                states = states::connected(self.layout);
            }
            self.add_tables(ALL);
        }
        if states != 0 {
            self.states = states;
        }
        for db in (0..16).map(|n| 1 << n).filter(|db| self.tables & db != 0) {
            if families_of(db) & self.families == 0 {
                self.families |= families_of(db);
            }
        }
        for (_, family) in FAMILIES {
            if self.shows(*family) && tables_of(*family) & self.tables == 0 {
                self.tables |= tables_of(*family);
            }
        }
    }

    /// True if sockets of this family are shown.
    pub(super) fn shows(&self, family: Family) -> bool {
        self.families & family_bit(family) != 0
    }

    /// True if this table is shown.
    pub(super) fn has(&self, db: Db) -> bool {
        self.tables & bit(db) != 0
    }

    /// Whether IPv4 and IPv6 rows are shown. ss reads the family named last, as far as the other switches allow it.
    pub(super) fn inet(&self) -> (bool, bool) {
        let (v4, v6) = (self.shows(Family::Inet), self.shows(Family::Inet6));
        match self.preferred {
            Some(Family::Inet) => (v4, false),
            Some(Family::Inet6) => (false, v6),
            _ => (v4, v6),
        }
    }

    /// True if more than one table is shown, so that rows name their table.
    pub(super) fn several_tables(&self) -> bool {
        self.tables.count_ones() > 1
    }

    /// True if more than one state is shown, so that rows name their state.
    pub(super) fn several_states(&self) -> bool {
        self.states.count_ones() > 1
    }
}
