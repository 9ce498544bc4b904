//! Whose an entry is: the process that holds the socket at the end which is in the entry's namespace, or else the one
//! that holds the backend's socket in another namespace that is read.
//!
//! A socket sees the connection as it is on its side of the rewriting: the client's socket is connected to what it
//! asked for (the original direction), the server's to what the answers go to (the reply direction). UDP servers, and
//! TCP connections that nobody holds any more, are found by what listens at their address; then that address must be
//! this namespace's own, for a box that forwards to port 53 of another host may well listen at its own port 53.
//!
//! A backend in another namespace is found by its address. Any user may make a namespace with any address in it, so one
//! counts only if root made it, or the user who made the entry's own; and if two have the address, neither is named.

use super::owner_checksum::{OwnerChecksum, Sums};
use crate::pillars;
use crate::session::Session;
use record::rows::{Conntrack, CtTuple, Nat, Socket, Sockets, ip_proto};
use record::{
    Accounting, Addr, Demand, Each, Expr, Key, Lookups, Next, Offer, Op, Operand, Owner, Proto, RowCache, Scan, Scope,
    Source, SourceError, Test, field_index,
};
use std::collections::{HashMap, HashSet};
use std::hash::RandomState;
use sys::NetNs;

/// The sockets of the namespaces that are read, by their ends.
pub(super) struct SocketIndex {
    /// Namespace and connection as the socket sees it → inode.
    connected: HashMap<(u64, Connection), u32>,
    /// Namespace, protocol, address and port of sockets that take what comes → inode; without an address: any of ours.
    bound: HashMap<(u64, u8, Option<Addr>, u16), u32>,
    /// Addresses of the namespaces.
    ours: HashSet<(u64, Addr)>,
    /// Where each address is; those of loopback are everywhere and left out. Empty if one namespace is read.
    homes: HashMap<Addr, Vec<u64>>,
    /// Who made the namespaces; none where that is not known.
    makers: HashMap<u64, u32>,
}

/// Protocol, own address and port, the other's.
type Connection = (u8, Addr, u16, Addr, u16);

impl SocketIndex {
    /// Reads the sockets of TCP and UDP. What cannot be read costs owners, and a line.
    pub(super) fn read(session: &Session, stats: &mut Accounting) -> SocketIndex {
        let mut index = SocketIndex {
            connected: HashMap::new(),
            bound: HashMap::new(),
            ours: HashSet::new(),
            homes: HashMap::new(),
            makers: HashMap::new(),
        };
        let read = pillars::with_sockets(session, None, &|_| true, |sockets| {
            sockets.run(&demand(), &mut |socket| {
                index.add(socket);
                Next::More
            })
        });
        match read {
            Ok(read) => {
                stats.incomplete |= read.is_partial();
                read.why.iter().for_each(|why| stats.add_reason(why.count, format!("owners: {}", why.text)));
            }
            Err(error) => {
                stats.incomplete = true;
                stats.add_reason(1, format!("owners are missing: {error}"));
            }
        }
        index.read_addresses(session, stats);
        index
    }

    fn read_addresses(&mut self, session: &Session, stats: &mut Accounting) {
        let reads_many = session.namespaces().is_some();
        session.in_each_namespace(&mut |netns_id| {
            let (ours, homes) = (&mut self.ours, &mut self.homes);
            let read = host::addresses::read(session.host(), netns_id, None, &mut |addr| {
                let addr = addr.unmapped();
                let is_new = ours.insert((netns_id, addr));
                if reads_many && is_new && !matches!(addr.scope(), Scope::Loopback | Scope::Link) {
                    homes.entry(addr).or_default().push(netns_id);
                }
            });
            if let Some(uid) = maker(session, netns_id).filter(|_| reads_many) {
                self.makers.insert(netns_id, uid);
            }
            match read {
                Err(error) if !error.is_not_recorded() => {
                    stats.incomplete = true;
                    stats.add_reason(1, format!("{error}; owners of what listens are missing"));
                }
                _ => {}
            }
        });
    }

    fn add(&mut self, socket: &Socket<'_>) {
        let Some(proto) = number_of(socket.proto).filter(|_| socket.inode != 0) else { return };
        let (local, peer) = (socket.local, socket.peer);
        let (own, netns) = (local.addr.unmapped(), socket.netns_id);
        if peer.port != 0 {
            let connection = (proto, own, local.port, peer.addr.unmapped(), peer.port);
            self.connected.insert((netns, connection), socket.inode);
            return;
        }
        let at = Some(own).filter(|own| !own.is_unspecified());
        // Of several at one port (SO_REUSEPORT) any will do; an IPv6 wildcard is one for both families.
        self.bound.entry((netns, proto, at, local.port)).or_insert(socket.inode);
    }

    /// True if an end of the entry is here, or its backend in a namespace that is read, as addresses tell.
    pub(super) fn is_here(&self, row: &Conntrack<'_>) -> bool {
        self.home_of_backend(row).is_some()
            || [&row.orig, &row.reply].into_iter().any(|tuple| self.is_ours(row.netns_id, tuple.src.unmapped()))
    }

    /// The inode of the socket at the local end; the client's, if both are here. Else that of the backend's socket.
    pub(super) fn inode(&self, row: &Conntrack<'_>) -> Option<u32> {
        self.local_inode(row).or_else(|| self.backend_inode(row))
    }

    /// The inode of the socket that answers in another namespace which is read.
    fn backend_inode(&self, row: &Conntrack<'_>) -> Option<u32> {
        let home = self.home_of_backend(row)?;
        let connected = self.connected.get(&(home, connection(&row.reply)?));
        connected.or_else(|| self.bound_at(home, &row.reply)).copied()
    }

    /// The one other namespace that has the backend's address.
    fn home_of_backend(&self, row: &Conntrack<'_>) -> Option<u64> {
        let mut homes = self.homes_of_backend(row);
        let (home, None) = (homes.next()?, homes.next()) else { return None };
        Some(home)
    }

    /// True if several other namespaces have it.
    fn is_shared(&self, row: &Conntrack<'_>) -> bool {
        self.homes_of_backend(row).nth(1).is_some()
    }

    fn homes_of_backend(&self, row: &Conntrack<'_>) -> impl Iterator<Item = u64> {
        let (addr, of_entry) = (row.reply.src.unmapped(), row.netns_id);
        let is_away = !self.homes.is_empty() && !self.is_ours(of_entry, addr);
        let homes = if is_away { self.homes.get(&addr) } else { None };
        homes.into_iter().flatten().copied().filter(move |home| self.is_trusted(*home, of_entry))
    }

    /// True if a namespace was made by root, or by the user who made the namespace of the entry.
    fn is_trusted(&self, home: u64, of_entry: u64) -> bool {
        let maker = self.makers.get(&home);
        maker.is_some_and(|uid| *uid == 0 || Some(uid) == self.makers.get(&of_entry))
    }

    /// True if the backend is elsewhere and no namespace that is read has it.
    fn is_away(&self, row: &Conntrack<'_>) -> bool {
        let has_socket = matches!(row.orig.proto, ip_proto::TCP | ip_proto::UDP);
        has_socket && !self.is_here(row)
    }

    fn local_inode(&self, row: &Conntrack<'_>) -> Option<u32> {
        let ends = [&row.orig, &row.reply];
        let connected = ends.into_iter().find_map(|tuple| self.connected.get(&(row.netns_id, connection(tuple)?)));
        // Who listens is at the end of the answers; a UDP client that is not connected sends from a bound port, too.
        connected
            .or_else(|| [&row.reply, &row.orig].into_iter().find_map(|tuple| self.bound_at(row.netns_id, tuple)))
            .copied()
    }

    /// What owners follow from, by the ports of the sockets.
    fn sums(&self, lookups: &Lookups<'_>, secret: &RandomState) -> Sums {
        let mut sums = Sums::new(secret);
        let owners = |inode: u32| {
            let owners = lookups.owners(Key::Id(inode.into())).iter();
            owners.map(|owner| (owner.pid, owner.fd, owner.process.as_bytes())).collect::<Vec<_>>()
        };
        for (of, inode) in &self.connected {
            let (_, (_, _, port, ..)) = of;
            sums.at_port(*port, (of, inode, owners(*inode)));
        }
        for (of, inode) in &self.bound {
            let (.., port) = of;
            sums.at_port(*port, (of, inode, owners(*inode)));
        }
        self.ours.iter().for_each(|address| sums.at_all_ports(address));
        self.makers.iter().for_each(|maker| sums.at_all_ports(maker));
        sums
    }

    fn bound_at(&self, netns: u64, tuple: &CtTuple) -> Option<&u32> {
        let (own, port) = (tuple.src.unmapped(), tuple.sport()?);
        let at = |addr| self.bound.get(&(netns, tuple.proto, addr, port));
        at(Some(own)).or_else(|| if self.is_ours(netns, own) { at(None) } else { None })
    }

    fn is_ours(&self, netns: u64, addr: Addr) -> bool {
        addr.is_loopback() || self.ours.contains(&(netns, addr))
    }
}

fn connection(tuple: &CtTuple) -> Option<Connection> {
    Some((tuple.proto, tuple.src.unmapped(), tuple.sport()?, tuple.dst.unmapped(), tuple.dport()?))
}

fn number_of(proto: Proto) -> Option<u8> {
    Some(match proto {
        Proto::Tcp => ip_proto::TCP,
        Proto::Udp => ip_proto::UDP,
        _ => return None,
    })
}

// TCP and UDP: asking for the others makes the kernel load modules.
fn demand() -> Demand<Sockets> {
    let fields = ["proto", "local_addr", "local_port", "peer_addr", "peer_port", "inode"];
    let shown: Vec<usize> = fields.iter().filter_map(|name| field_index::<Sockets>(name)).collect();
    let words = [Proto::Tcp, Proto::Udp].map(|proto| proto.name().as_bytes().into());
    let of = field_index::<Sockets>("proto");
    let test = |field| Expr::Test(Test { field, op: Op::Eq, operand: Operand::Words(words.to_vec()) });
    Demand::new(&shown, of.map(test).into_iter().collect())
}

/// Who made the namespace that the calling thread is in; none if the kernel does not tell.
fn maker(session: &Session, netns_id: u64) -> Option<u32> {
    let mut bytes = Vec::new();
    let read = session.host().bytes(&format!("netns maker/{netns_id}"), "", &mut bytes, |into| {
        into.extend_from_slice(&NetNs::current()?.owner_uid()?.to_ne_bytes());
        Ok(())
    });
    read.ok()?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

/// What is said where backends lie elsewhere and one namespace is read.
const AWAY: &str = "some entries are between other hosts or network namespaces and have no owner here: --all-netns names \
                    the processes of backends in the other namespaces of this host";

/// What is said where an address does not lead to one namespace.
const SHARED: &str = "several network namespaces have the address of a backend: which one answers is not known, and its \
                      owner is not named";

/// The source between: puts the owners into each row.
pub(super) struct WithOwners<'o> {
    source: &'o dyn Source<Nat>,
    index: &'o SocketIndex,
    lookups: Lookups<'o>,
    secret: &'o RandomState,
    /// One namespace is read.
    reads_one: bool,
}

impl<'o> WithOwners<'o> {
    /// Rows of `source` with the owners that `lookups` knows for the sockets of `index`. `secret` is the same in all
    /// rounds.
    pub(super) fn new(
        source: &'o dyn Source<Nat>,
        index: &'o SocketIndex,
        lookups: Lookups<'o>,
        secret: &'o RandomState,
        reads_one: bool,
    ) -> WithOwners<'o> {
        WithOwners { source, index, lookups, secret, reads_one }
    }
}

impl Source<Nat> for WithOwners<'_> {
    fn prepare(&self, demand: &Demand<Nat>) -> Box<dyn Scan<Nat> + '_> {
        Box::new(WithOwnersScan { inner: self.source.prepare(demand), source: self })
    }
}

struct WithOwnersScan<'o> {
    inner: Box<dyn Scan<Nat> + 'o>,
    source: &'o WithOwners<'o>,
}

impl WithOwnersScan<'_> {
    /// Runs the inner scan by `run` and puts the owners into its rows.
    fn owning(
        &mut self,
        each: &mut Each<'_, Nat>,
        run: impl FnOnce(&mut dyn Scan<Nat>, &mut Each<'_, Nat>) -> Result<Accounting, SourceError>,
    ) -> Result<Accounting, SourceError> {
        let WithOwners { index, lookups, reads_one, .. } = self.source;
        let (mut is_away, mut is_shared) = (false, false);
        let mut stats = run(&mut *self.inner, &mut |row| {
            let inode = index.inode(row);
            if inode.is_none() {
                is_away = is_away || (*reads_one && index.is_away(row));
                is_shared = is_shared || (!*reads_one && index.is_shared(row));
            }
            owned(inode, lookups, row, each)
        })?;
        if is_away {
            stats.add_reason(0, AWAY);
        }
        if is_shared {
            stats.add_reason(0, SHARED);
        }
        Ok(stats)
    }
}

impl Scan<Nat> for WithOwnersScan<'_> {
    fn offer(&self) -> Offer {
        self.inner.offer()
    }

    fn run(&mut self, each: &mut Each<'_, Nat>) -> Result<Accounting, SourceError> {
        self.owning(each, |inner, each| inner.run(each))
    }

    fn run_cached(&mut self, cache: &dyn RowCache, each: &mut Each<'_, Nat>) -> Result<Accounting, SourceError> {
        let WithOwners { index, lookups, secret, .. } = self.source;
        let same = OwnerChecksum { cache, sums: index.sums(lookups, secret) };
        self.owning(each, |inner, each| inner.run_cached(&same, each))
    }
}

fn owned(inode: Option<u32>, lookups: &Lookups<'_>, row: &Conntrack<'_>, each: &mut Each<'_, Nat>) -> Next {
    let owners: &[Owner] = match inode {
        Some(inode) => lookups.owners(Key::Id(inode.into())),
        None => &[],
    };
    if owners.is_empty() { each(row) } else { each(&Conntrack { owners, ..*row }) }
}
