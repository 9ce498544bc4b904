//! Finds the socket at one of the ends of a conntrack entry.
//!
//! It is the socket at the end in the entry's namespace, or else the backend's socket in another namespace that is
//! read. A socket sees the connection as it is on its side of the NAT: the client's socket is connected to the address
//! that it requested (the original direction), the server's socket to the destination of the replies (the reply
//! direction). UDP servers, and TCP connections without an owner, are found by the socket that listens at their
//! address. That address must then be one of the namespace's own, because a host that forwards to port 53 of another
//! host may listen at its own port 53.
//!
//! A backend in another namespace is found by its address. Any user may create a namespace with any address in it, so
//! a namespace counts only if it was created by root, or by the user who created the entry's own; and if two
//! namespaces have the address, neither is used.

use crate::checksum::PortSums;
use crate::port_set::PortSet;
use crate::secret_hash::SecretHash;
use record::rows::{Conntrack, CtTuple, Socket, Sockets, ip_proto};
use record::{Addr, Demand, Expr, Op, Operand, Owner, Proto, Scope, Test, field_index};
use std::collections::{HashMap, HashSet};
use std::hash::RandomState;

/// The sockets of the namespaces that are read, by their addresses and ports. About 100 bytes per socket; a lookup
/// costs two loads if no socket has a port of the entry, otherwise up to eight probes.
#[derive(Debug)]
pub struct SocketIndex {
    /// True if sockets of several namespaces are added.
    several: bool,
    /// Every port that is a socket's local port: on a host that forwards, most lookups end here.
    ports: PortSet,
    /// Namespace, interface and connection as the socket sees it → inode.
    connected: HashMap<(u64, u32, Connection), u32, SecretHash>,
    /// Namespace, interface, protocol, address and port of sockets without a peer → inode. A wildcard means all
    /// addresses of its family; [`BOTH`] means all IPv4 addresses, for an IPv6 socket.
    bound: HashMap<(u64, u32, u8, Addr, u16), u32, SecretHash>,
    /// True if a socket is bound to an interface.
    has_ifaces: bool,
    /// Addresses of the namespaces.
    ours: HashSet<(u64, Addr), SecretHash>,
    /// The namespaces of each address; loopback addresses are omitted because they are everywhere. Empty if only one
    /// namespace is read.
    homes: HashMap<Addr, Vec<u64>>,
    /// The creators of the namespaces, as far as known.
    makers: HashMap<u64, u32>,
}

/// Replaces the IPv6 wildcard for a socket that also accepts IPv4 (IPV6_V6ONLY is off). No socket has this address,
/// because the index stores IPv4-mapped addresses as IPv4.
const BOTH: Addr = Addr::V6([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0]);

/// The wildcard addresses to which a socket that accepts packets for `addr` may be bound.
fn wildcards(addr: Addr) -> &'static [Addr] {
    match addr {
        Addr::V4(_) => &[Addr::ANY4, BOTH],
        Addr::V6(_) => &[Addr::ANY6],
    }
}

/// The interface of a socket that is bound to any one. A packet that was seen at a part of it (a port of a bridge, a
/// device of a VRF) is not at that interface itself.
const ANY_IFACE: u32 = u32::MAX;

/// Protocol, local address and port, peer address and port.
pub(crate) type Connection = (u8, Addr, u16, Addr, u16);

impl SocketIndex {
    /// An empty index. `several` is true if sockets of more than one namespace will be added, with the namespaces'
    /// creators.
    pub fn new(several: bool) -> SocketIndex {
        SocketIndex {
            several,
            ports: PortSet::default(),
            connected: HashMap::default(),
            bound: HashMap::default(),
            has_ifaces: false,
            ours: HashSet::default(),
            homes: HashMap::default(),
            makers: HashMap::default(),
        }
    }

    /// The demand for the sockets' source: TCP and UDP only, because reading other protocols makes the kernel load
    /// modules.
    pub fn demand() -> Demand<Sockets> {
        let fields = ["proto", "local_addr", "local_port", "peer_addr", "peer_port", "v6only", "inode"];
        let shown: Vec<usize> = fields.iter().filter_map(|name| field_index::<Sockets>(name)).collect();
        let words = [Proto::Tcp, Proto::Udp].map(|proto| proto.name().as_bytes().into());
        let of = field_index::<Sockets>("proto");
        let test = |field| Expr::Test(Test { field, op: Op::Eq, operand: Operand::Words(words.to_vec()) });
        Demand::new(&shown, of.map(test).into_iter().collect())
    }

    /// Adds a socket. Ignores other protocols, and sockets that are no longer files.
    pub fn add_socket(&mut self, socket: &Socket<'_>) {
        let Some(proto) = number_of(socket.proto).filter(|_| socket.inode != 0) else { return };
        let (local, peer) = (socket.local, socket.peer);
        let (own, netns) = (local.addr.unmapped(), socket.netns_id);
        self.ports.add(local.port);
        self.has_ifaces |= socket.ifindex != 0;
        let ifaces = [Some(socket.ifindex), (socket.ifindex != 0).then_some(ANY_IFACE)];
        if peer.port != 0 {
            let connection = (proto, own, local.port, peer.addr.unmapped(), peer.port);
            for iface in ifaces.into_iter().flatten() {
                self.connected.insert((netns, iface, connection), socket.inode);
            }
            return;
        }
        // /proc does not report v6only. Unless it is known to be on, the socket accepts both families.
        let takes_both = own == Addr::ANY6 && socket.v6only != Some(true);
        for at in [Some(own), takes_both.then_some(BOTH)].into_iter().flatten() {
            // If several sockets share a port (SO_REUSEPORT), any of them will do.
            for iface in ifaces.into_iter().flatten() {
                self.bound.entry((netns, iface, proto, at, local.port)).or_insert(socket.inode);
            }
        }
    }

    /// What `find` gives for the interface `ifindex` (0: not known), else for sockets that are bound to none, else for
    /// those that are bound to any.
    fn on_iface<F>(&self, ifindex: u32, find: impl Fn(u32) -> Option<F>) -> Option<F> {
        let bound = || if self.has_ifaces && ifindex != 0 { find(ifindex) } else { None };
        bound().or_else(|| find(0)).or_else(|| if self.has_ifaces { find(ANY_IFACE) } else { None })
    }

    /// Adds an address of a namespace.
    pub fn add_address(&mut self, netns_id: u64, addr: Addr) {
        let addr = addr.unmapped();
        let is_new = self.ours.insert((netns_id, addr));
        if self.several && is_new && !matches!(addr.scope(), Scope::Loopback | Scope::Link) {
            self.homes.entry(addr).or_default().push(netns_id);
        }
    }

    /// Adds the user who created a namespace.
    pub fn add_maker(&mut self, netns_id: u64, uid: u32) {
        self.makers.insert(netns_id, uid);
    }

    /// True if, by its address, an end of the entry is here, or its backend is in a namespace that is read.
    pub fn is_here(&self, row: &Conntrack<'_>) -> bool {
        self.home_of_backend(row).is_some()
            || [&row.orig, &row.reply].into_iter().any(|tuple| self.is_ours(row.netns_id, tuple.src.unmapped()))
    }

    /// The inode of the local socket; if both ends are local, the client's. Otherwise, the inode of the backend's
    /// socket in another namespace being read, or of the client's if this namespace forwards or masquerades its
    /// connection. `ifindex` is the interface in the entry's namespace, 0 if it is not known.
    pub(crate) fn inode(&self, row: &Conntrack<'_>, ifindex: u32) -> Option<u32> {
        self.local_inode(row, ifindex).or_else(|| self.backend_inode(row)).or_else(|| self.client_inode(row))
    }

    /// True if only one namespace is read and both ends of the entry are elsewhere.
    pub(crate) fn is_away(&self, row: &Conntrack<'_>) -> bool {
        !self.several && has_socket(row) && !self.is_here(row)
    }

    /// True if several other namespaces have the backend's address.
    pub(crate) fn is_shared(&self, row: &Conntrack<'_>) -> bool {
        self.homes_of_backend(row).nth(1).is_some()
    }

    /// Sums of the data that owners depend on, by the ports of the sockets; `of_inode` returns a socket's owners.
    pub(crate) fn sums<'o>(&self, of_inode: impl Fn(u32) -> &'o [Owner], secret: &RandomState) -> PortSums {
        let mut sums = PortSums::new(secret);
        let owners = |inode: u32| {
            let owners = of_inode(inode).iter();
            owners.map(|owner| (owner.pid, owner.fd, owner.process.as_bytes())).collect::<Vec<_>>()
        };
        for (of, inode) in &self.connected {
            let (_, _, (_, _, port, ..)) = of;
            sums.add_at_port(*port, (of, inode, owners(*inode)));
        }
        for (of, inode) in &self.bound {
            let (.., port) = of;
            sums.add_at_port(*port, (of, inode, owners(*inode)));
        }
        self.ours.iter().for_each(|address| sums.add_for_all(address));
        self.makers.iter().for_each(|maker| sums.add_for_all(maker));
        sums
    }

    /// The inode of the replying socket in another namespace that is read.
    fn backend_inode(&self, row: &Conntrack<'_>) -> Option<u32> {
        let home = self.home_of_backend(row)?;
        self.connected_at(home, 0, &row.reply).or_else(|| self.bound_at(home, 0, &row.reply)).copied()
    }

    /// The inode of the client's socket in another namespace being read. Returns `None` if the backend may be on this
    /// host: the client must not take precedence over it.
    fn client_inode(&self, row: &Conntrack<'_>) -> Option<u32> {
        if self.homes_of_backend(row).next().is_some() {
            return None;
        }
        let home = only(self.homes_of(row, row.orig.src))?;
        self.connected_at(home, 0, &row.orig).or_else(|| self.bound_at(home, 0, &row.orig)).copied()
    }

    /// The only other namespace that has the backend's address.
    fn home_of_backend(&self, row: &Conntrack<'_>) -> Option<u64> {
        only(self.homes_of_backend(row))
    }

    fn homes_of_backend(&self, row: &Conntrack<'_>) -> impl Iterator<Item = u64> {
        self.homes_of(row, row.reply.src)
    }

    /// The other namespaces that have the address `addr` of an entry.
    fn homes_of(&self, row: &Conntrack<'_>, addr: Addr) -> impl Iterator<Item = u64> {
        let (addr, of_entry) = (addr.unmapped(), row.netns_id);
        let is_away = !self.homes.is_empty() && !self.is_ours(of_entry, addr);
        let homes = if is_away { self.homes.get(&addr) } else { None };
        homes.into_iter().flatten().copied().filter(move |home| self.is_trusted(*home, of_entry))
    }

    /// True if a namespace was created by root, or by the user who created the namespace of the entry.
    fn is_trusted(&self, home: u64, of_entry: u64) -> bool {
        let maker = self.makers.get(&home);
        maker.is_some_and(|uid| *uid == 0 || Some(uid) == self.makers.get(&of_entry))
    }

    fn local_inode(&self, row: &Conntrack<'_>, ifindex: u32) -> Option<u32> {
        let ends = [&row.orig, &row.reply];
        let connected = ends.into_iter().find_map(|tuple| self.connected_at(row.netns_id, ifindex, tuple));
        // A listener is at the source of the replies; an unconnected UDP client also sends from a bound port.
        connected
            .or_else(|| [&row.reply, &row.orig].into_iter().find_map(|of| self.bound_at(row.netns_id, ifindex, of)))
            .copied()
    }

    /// The inode of the socket of this connection, seen from its own end (the source).
    pub(crate) fn connected_inode(&self, netns: u64, ifindex: u32, from: &CtTuple) -> Option<u32> {
        self.connected_at(netns, ifindex, from).copied()
    }

    /// The inode of the socket that receives packets from any sender at the source address of `from`.
    pub(crate) fn bound_inode(&self, netns: u64, ifindex: u32, from: &CtTuple) -> Option<u32> {
        self.bound_at(netns, ifindex, from).copied()
    }

    /// The socket that receives packets sent to a multicast or broadcast address, which is not a local address.
    pub(crate) fn inode_of_group(&self, netns: u64, ifindex: u32, proto: u8, group: Addr, port: u16) -> Option<u32> {
        let at = |addr: &Addr| self.on_iface(ifindex, |iface| self.bound.get(&(netns, iface, proto, *addr, port)));
        wildcards(group.unmapped()).iter().find_map(at).copied()
    }

    fn connected_at(&self, netns: u64, ifindex: u32, tuple: &CtTuple) -> Option<&u32> {
        let port = self.own_port(tuple)?;
        let connection = (tuple.proto, tuple.src.unmapped(), port, tuple.dst.unmapped(), tuple.dport()?);
        self.on_iface(ifindex, |iface| self.connected.get(&(netns, iface, connection)))
    }

    fn bound_at(&self, netns: u64, ifindex: u32, tuple: &CtTuple) -> Option<&u32> {
        let (own, port) = (tuple.src.unmapped(), self.own_port(tuple)?);
        let at =
            |addr: &Addr| self.on_iface(ifindex, |iface| self.bound.get(&(netns, iface, tuple.proto, *addr, port)));
        at(&own).or_else(|| if self.is_ours(netns, own) { wildcards(own).iter().find_map(at) } else { None })
    }

    /// The source port of a direction, if it is the local port of a socket.
    #[inline]
    fn own_port(&self, tuple: &CtTuple) -> Option<u16> {
        tuple.sport().filter(|port| self.ports.has(*port))
    }

    /// True if the address, which must be unmapped, belongs to the namespace.
    pub(crate) fn is_ours(&self, netns: u64, addr: Addr) -> bool {
        addr.is_loopback() || self.ours.contains(&(netns, addr))
    }
}

/// Returns the only item; `None` if there are several.
fn only<I>(mut found: impl Iterator<Item = I>) -> Option<I> {
    let (one, None) = (found.next()?, found.next()) else { return None };
    Some(one)
}

/// True if the sockets of entries with this protocol can be found.
pub(crate) fn has_socket(entry: &Conntrack<'_>) -> bool {
    matches!(entry.orig.proto, ip_proto::TCP | ip_proto::UDP)
}

fn number_of(proto: Proto) -> Option<u8> {
    Some(match proto {
        Proto::Tcp => ip_proto::TCP,
        Proto::Udp => ip_proto::UDP,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::rows::Endpoint;

    const CLIENT: Addr = Addr::V4([192, 0, 2, 7]);
    const HERE: Addr = Addr::V4([10, 0, 0, 1]);
    const BACKEND: Addr = Addr::V4([172, 17, 0, 2]);

    fn socket(netns_id: u64, inode: u32, local: (Addr, u16), peer: Option<(Addr, u16)>) -> Socket<'static> {
        let end = |(addr, port)| Endpoint { addr, port };
        let peer = peer.map_or(Socket::EMPTY.peer, end);
        Socket { proto: Proto::Tcp, netns_id, inode, local: end(local), peer, ..Socket::EMPTY }
    }

    fn tuple(src: (Addr, u16), dst: (Addr, u16)) -> CtTuple {
        let ports = CtTuple { src_part: src.1, dst_part: dst.1, ..CtTuple::EMPTY };
        CtTuple { src: src.0, dst: dst.0, proto: ip_proto::TCP, ..ports }
    }

    fn entry(orig: CtTuple, reply: CtTuple) -> Conntrack<'static> {
        Conntrack { netns_id: 1, orig, reply, ..Conntrack::EMPTY }
    }

    #[test]
    fn each_end_finds_its_own_socket() {
        let mut index = SocketIndex::new(false);
        index.add_address(1, HERE);
        index.add_socket(&socket(1, 11, (HERE, 4000), Some((CLIENT, 443))));
        index.add_socket(&socket(1, 12, (HERE, 80), Some((CLIENT, 5000))));
        index.add_socket(&socket(1, 13, (Socket::EMPTY.local.addr, 53), None));
        index.add_socket(&socket(1, 0, (HERE, 6000), None));
        let inode = |from: (Addr, u16), to: (Addr, u16)| index.inode(&entry(tuple(from, to), tuple(to, from)), 0);
        assert_eq!(inode((HERE, 4000), (CLIENT, 443)), Some(11), "the client is here");
        assert_eq!(inode((CLIENT, 5000), (HERE, 80)), Some(12), "the server is here");
        assert_eq!(inode((CLIENT, 5000), (HERE, 53)), Some(13), "a listener of any address");
        assert_eq!(inode((CLIENT, 5000), (BACKEND, 53)), None, "which is not this one");
        assert_eq!(inode((HERE, 4000), (CLIENT, 80)), None, "another connection from that port");
        assert_eq!(inode((CLIENT, 5000), (HERE, 6000)), None, "no file any more");
        assert!(index.is_away(&entry(tuple((CLIENT, 1), (BACKEND, 2)), tuple((BACKEND, 2), (CLIENT, 1)))));
    }

    #[test]
    fn sockets_with_equal_ends_are_distinguished_by_interface() {
        let here = Addr::V6([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        let there = Addr::V6([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        let mut index = SocketIndex::new(false);
        [here, HERE].into_iter().for_each(|addr| index.add_address(1, addr));
        for (ifindex, inode) in [(3, 13), (4, 14)] {
            index.add_socket(&Socket { ifindex, ..socket(1, inode, (here, 4000), Some((there, 22))) });
            index.add_socket(&Socket { ifindex, ..socket(1, inode + 10, (Addr::ANY4, 80), None) });
        }
        index.add_socket(&socket(1, 30, (Addr::ANY4, 81), None));
        let at = |ifindex, own, port, peer, peer_port| {
            let from = tuple((own, port), (peer, peer_port));
            index.connected_inode(1, ifindex, &from).or_else(|| index.bound_inode(1, ifindex, &from))
        };
        assert_eq!((at(3, here, 4000, there, 22), at(4, here, 4000, there, 22)), (Some(13), Some(14)));
        assert_eq!((at(3, HERE, 80, CLIENT, 5), at(4, HERE, 80, CLIENT, 5)), (Some(23), Some(24)));
        assert!(at(9, here, 4000, there, 22).is_some(), "a port of a bridge, say");
        assert_eq!((at(3, HERE, 81, CLIENT, 5), at(0, HERE, 81, CLIENT, 5)), (Some(30), Some(30)));
    }

    #[test]
    fn a_masqueraded_client_in_one_other_namespace_of_a_trusted_maker_is_found() {
        const CONTAINER: Addr = BACKEND;
        let masqueraded = entry(tuple((CONTAINER, 5000), (CLIENT, 443)), tuple((CLIENT, 443), (HERE, 61_000)));
        let found = |maker, others: &[u64]| {
            let mut index = SocketIndex::new(true);
            index.add_address(1, HERE);
            index.add_maker(1, 0);
            for netns_id in others {
                index.add_maker(*netns_id, maker);
                index.add_address(*netns_id, CONTAINER);
                index.add_socket(&socket(*netns_id, 21, (CONTAINER, 5000), Some((CLIENT, 443))));
            }
            index.inode(&masqueraded, 0)
        };
        assert_eq!(found(0, &[2]), Some(21));
        assert_eq!(found(1000, &[2]), None, "any user may take that address");
        assert_eq!(found(0, &[2, 3]), None, "either may be it");
    }

    #[test]
    fn a_wildcard_takes_what_its_family_does() {
        const HERE6: Addr = Addr::V6([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        let mut index = SocketIndex::new(false);
        [HERE, HERE6].into_iter().for_each(|addr| index.add_address(1, addr));
        let wildcard = |inode, addr, port, v6only| Socket { v6only, ..socket(1, inode, (addr, port), None) };
        for of in [
            wildcard(11, Addr::ANY6, 53, Some(true)),
            wildcard(12, Addr::ANY6, 54, Some(false)),
            wildcard(13, Addr::ANY6, 55, None),
            wildcard(14, Addr::ANY4, 56, None),
            wildcard(15, Addr::ANY6, 57, Some(true)),
            wildcard(16, Addr::ANY4, 57, None),
            wildcard(17, Addr::ANY6, 58, Some(false)),
            wildcard(18, Addr::ANY4, 58, None),
        ] {
            index.add_socket(&of);
        }
        let inode = |own, port| index.bound_inode(1, 0, &tuple((own, port), (CLIENT, 9)));
        let both = |port| (inode(HERE, port), inode(HERE6, port));
        assert_eq!(both(53), (None, Some(11)), "IPv6 only");
        assert_eq!((both(54), both(55)), ((Some(12), Some(12)), (Some(13), Some(13))), "IPv6 and IPv4");
        assert_eq!(both(56), (Some(14), None), "IPv4");
        assert_eq!((both(57), both(58)), ((Some(16), Some(15)), (Some(18), Some(17))), "each its own");
        let group = |addr, port| index.inode_of_group(1, 0, ip_proto::TCP, addr, port);
        assert_eq!(group(Addr::V4([224, 0, 0, 251]), 53), None);
        assert_eq!(group(Addr::V4([224, 0, 0, 251]), 54), Some(12));
    }

    #[test]
    fn a_backend_in_one_other_namespace_of_a_trusted_maker_is_found() {
        let published = entry(tuple((CLIENT, 5000), (HERE, 8080)), tuple((BACKEND, 80), (CLIENT, 5000)));
        let index = |makers: [u32; 2], others: &[u64]| {
            let mut index = SocketIndex::new(true);
            index.add_address(1, HERE);
            makers.into_iter().zip(1..).for_each(|(uid, netns_id)| index.add_maker(netns_id, uid));
            index.add_maker(3, 0);
            for netns_id in others {
                index.add_address(*netns_id, BACKEND);
                index.add_socket(&socket(*netns_id, 21, (BACKEND, 80), None));
            }
            index
        };
        let found = |makers, others: &[u64]| index(makers, others).inode(&published, 0);
        assert_eq!(found([0, 0], &[2]), Some(21));
        assert_eq!(found([1000, 0], &[2]), Some(21), "root's");
        assert_eq!(found([1000, 1000], &[2]), Some(21), "the same user's");
        assert_eq!(found([0, 1000], &[2]), None, "any user may take that address");
        assert_eq!(found([0, 1000], &[2, 3]), Some(21), "which does not hide root's");
        assert_eq!(found([0, 0], &[2, 3]), None, "either may be it");
        assert!(index([0, 0], &[2, 3]).is_shared(&published) && index([0, 0], &[2]).is_here(&published));
    }
}
