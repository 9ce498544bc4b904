//! The services of this host, which determine who opened a connection.

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use record::rows::Socket;
use record::{Addr, Proto};
use std::hash::{BuildHasher, Hasher};

/// One service: a TCP listener or an unconnected UDP socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Service {
    /// Inode of its network namespace.
    pub netns_id: u64,
    /// TCP or UDP.
    pub proto: Proto,
    /// The port where it accepts connections.
    pub port: u16,
    /// Its address, unmapped; may be a wildcard.
    pub addr: Addr,
    /// True if a wildcard IPv6 service does not accept IPv4.
    pub v6only: bool,
    /// Interface that it is bound to; 0 for any.
    pub ifindex: u32,
    /// Inode of the socket, by which its owners are found.
    pub inode: u32,
}

/// Words of a bitmap with a bit for every port.
const PORT_WORDS: usize = 65_536 / 64;

/// A set of ports.
struct Ports(Box<[u64; PORT_WORDS]>);

impl Default for Ports {
    fn default() -> Self {
        Ports(Box::new([0; PORT_WORDS]))
    }
}

impl Ports {
    fn add(&mut self, port: u16) {
        self.0[port as usize / 64] |= 1 << (port % 64);
    }

    #[inline]
    fn has(&self, port: u16) -> bool {
        self.0[port as usize / 64] >> (port % 64) & 1 == 1
    }
}

/// A set of services that finds the service of a local address and port. 24 KiB of bitmaps, plus 64 bytes per service.
///
/// A lookup of a port without a listener costs one load, any other up to three probes (address, wildcards).
pub struct Listeners {
    services: HashTable<Service>,
    /// Ports of all services, ignoring the rest of the key: most lookups end here.
    ports: Ports,
    /// Ports of services bound to one address; the probe for an address is skipped for all other ports.
    exact_ports: Ports,
    /// Ports that lstf knows (see [`crate::direction_of_lstf`]).
    lstf_ports: Ports,
    /// Protocols whose services may be incomplete.
    incomplete: Vec<Proto>,
    seed: RandomState,
}

impl Default for Listeners {
    fn default() -> Self {
        Listeners {
            services: HashTable::new(),
            ports: Ports::default(),
            exact_ports: Ports::default(),
            lstf_ports: Ports::default(),
            incomplete: Vec::new(),
            seed: RandomState::default(),
        }
    }
}

impl Listeners {
    /// Creates an empty set.
    pub fn new() -> Listeners {
        Listeners::default()
    }

    /// Number of different services. Sockets that share one (SO_REUSEPORT) count once.
    pub fn len(&self) -> usize {
        self.services.len()
    }

    /// True if the set contains no services.
    pub fn is_empty(&self) -> bool {
        self.services.is_empty()
    }

    /// Removes all services, keeps the memory.
    pub fn clear(&mut self) {
        self.services.clear();
        self.ports = Ports::default();
        self.exact_ports = Ports::default();
        self.lstf_ports = Ports::default();
        self.incomplete.clear();
    }

    /// Records that services of `proto` may be missing, so that a port without a service proves nothing.
    pub fn lacks_some_of(&mut self, proto: Proto) {
        if !self.are_complete(proto) {
            return;
        }
        self.incomplete.push(proto);
    }

    /// True unless services of `proto` may be missing ([`Listeners::lacks_some_of`]).
    #[inline]
    pub fn are_complete(&self, proto: Proto) -> bool {
        // At most two protocols; empty in nearly every run.
        !self.incomplete.contains(&proto)
    }

    /// Adds the row if it is a service; returns whether it is one.
    pub fn add(&mut self, row: &Socket<'_>) -> bool {
        if !crate::is_service(row) {
            return false;
        }
        let service = Service {
            netns_id: row.netns_id,
            proto: row.proto,
            port: row.local.port,
            addr: row.local.addr.unmapped(),
            // /proc does not show the option; without it the socket accepts both.
            v6only: row.v6only.unwrap_or(false),
            ifindex: row.ifindex,
            inode: row.inode,
        };
        self.ports.add(service.port);
        if !service.addr.is_unspecified() {
            self.exact_ports.add(service.port);
        }
        if row.proto == Proto::Tcp && known_to_lstf(service.addr) {
            self.lstf_ports.add(service.port);
        }
        self.insert(service);
        true
    }

    fn insert(&mut self, service: Service) {
        let same = |s: &Service| Service { inode: 0, ..*s } == Service { inode: 0, ..service };
        let hash = hash_of(&self.seed, service.netns_id, service.proto, service.port, service.addr);
        if let Some(known) = self.services.find_mut(hash, same) {
            // Which of several inodes is kept must not depend on the kernel's order.
            known.inode = known.inode.min(service.inode);
            return;
        }
        let seed = &self.seed;
        let rehash = |s: &Service| hash_of(seed, s.netns_id, s.proto, s.port, s.addr);
        self.services.insert_unique(hash, service, rehash);
    }

    /// Returns the service that receives what is sent to `addr` and `port` over interface `ifindex` (0 if unknown).
    ///
    /// `addr` must be unmapped. The exact address takes precedence over a wildcard, as in the kernel.
    #[inline]
    pub fn covering(&self, netns_id: u64, proto: Proto, addr: Addr, port: u16, ifindex: u32) -> Option<&Service> {
        if !self.ports.has(port) {
            return None;
        }
        self.probe(netns_id, proto, addr, port, ifindex)
    }

    /// The listener that lstf shows for this port.
    pub(crate) fn lstf_service(&self, netns_id: u64, port: u16) -> Option<&Service> {
        let known = [Addr::ANY4, Addr::V4([127, 0, 0, 1]), Addr::ANY6];
        known.iter().find_map(|&addr| {
            let hash = hash_of(&self.seed, netns_id, Proto::Tcp, port, addr);
            self.services.find(hash, |s| (s.netns_id, s.proto, s.port, s.addr) == (netns_id, Proto::Tcp, port, addr))
        })
    }

    fn probe(&self, netns_id: u64, proto: Proto, addr: Addr, port: u16, ifindex: u32) -> Option<&Service> {
        let at = |bound: Addr, takes_v4: bool| {
            let hash = hash_of(&self.seed, netns_id, proto, port, bound);
            self.services.find(hash, |s| {
                (s.netns_id, s.proto, s.port, s.addr) == (netns_id, proto, port, bound)
                    && (s.ifindex == 0 || s.ifindex == ifindex)
                    && !(takes_v4 && s.v6only)
            })
        };
        if self.exact_ports.has(port) {
            let exact = at(addr, false);
            if exact.is_some() {
                return exact;
            }
        }
        match addr {
            Addr::V4(_) => at(Addr::ANY4, false).or_else(|| at(Addr::ANY6, true)),
            Addr::V6(_) => at(Addr::ANY6, false),
        }
    }

    /// Returns the service that accepted this connection.
    #[inline]
    pub fn of(&self, row: &Socket<'_>) -> Option<&Service> {
        self.covering(row.netns_id, row.proto, row.local.addr.unmapped(), row.local.port, row.ifindex)
    }

    /// True if lstf knows a listener at this port.
    pub(crate) fn lstf_knows(&self, port: u16) -> bool {
        self.lstf_ports.has(port)
    }
}

/// lstf only considers listeners with these three addresses.
fn known_to_lstf(addr: Addr) -> bool {
    addr.is_unspecified() || addr == Addr::V4([127, 0, 0, 1])
}

#[inline]
fn hash_of(seed: &RandomState, netns_id: u64, proto: Proto, port: u16, addr: Addr) -> u64 {
    let mut hasher = seed.build_hasher();
    // A namespace's inode has 32 bits; longer ones would only collide, the comparison still distinguishes them.
    hasher.write_u64(netns_id << 24 ^ u64::from(port) << 8 ^ proto as u64);
    match addr {
        Addr::V4(octets) => hasher.write_u32(u32::from_ne_bytes(octets)),
        Addr::V6(octets) => hasher.write_u128(u128::from_ne_bytes(octets)),
    }
    hasher.finish()
}
