//! Names without `-n`: files of /etc read once, before rights are given up, and name servers that a thread of its own
//! asks, which has no rights.

use super::say;
use host::hosts::{KnownName, Resolver, ResolverOptions};
use host::name_switch::NamePlaces;
use host::{Ethers, HostError, Services};
use record::{Addr, Proto};
use sinks::face::tcpdump::PacketNames;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};
use sys::Host;

/// Hosts whose names, or that they have none, are kept for lines; beyond, all are forgotten and looked up anew.
const HOSTS_MAX: usize = 10_000;
/// A live capture waits so long for a name, and only while its packets are younger.
const LIVE_WAIT: Duration = Duration::from_millis(50);
const LIVE_AGE_MAX: Duration = Duration::from_millis(100);
/// Longer than the thread asks for one address.
const FILE_WAIT: Duration = Duration::from_secs(10);
/// Addresses in a row that no server answered for; then names are asked for, but not waited for.
const UNANSWERED_MAX: u64 = 3;
const TCP: u8 = 6;

/// How a line waits for a name that servers are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NameWait {
    /// Until it is answered: a file loses nothing.
    UntilAnswered,
    /// A moment, unless packets pile up.
    WhileYoung,
    /// Not at all: the ring is small.
    Never,
}

/// A network of IPv4: address and mask.
pub(super) type Network4 = (u32, u32);

/// The names of one run.
#[derive(Debug)]
struct RunNames {
    services: Services,
    ethers: Ethers,
    /// `None` if its thread could not be started.
    resolver: Option<Rc<Resolver>>,
    asks_servers: bool,
    wait: NameWait,
    /// `-f`: hosts of other networks stay numbers.
    own_network: Option<Network4>,
    settled: HashMap<Addr, Option<Box<[u8]>>>,
    packet_ns: u64,
    unanswered: u64,
    failed: u64,
}

/// The report about names at the end of the run.
pub(super) struct NamesEnd(Option<Rc<Resolver>>);

/// Reads the files and starts the thread.
pub(super) fn start(wait: NameWait, own_network: Option<Network4>) -> (Box<dyn PacketNames>, NamesEnd) {
    let host = Host::live();
    let from_file = |kind| NamePlaces::read(&host, kind).files;
    let places = NamePlaces::read(&host, "hosts");
    let mut options = ResolverOptions { reads_hosts: places.files, forgets: true, ..ResolverOptions::default() };
    if !places.dns {
        options.servers = Some(Vec::new());
    }
    let resolver = Resolver::start(&host, &options).map(Rc::new);
    if let Err(error) = &resolver {
        say(&format!("tcpdump: WARNING: names of hosts stay numbers: {error}"));
    }
    let resolver = resolver.ok();
    let names = RunNames {
        services: read_if(from_file("services"), || Services::read(&host)),
        ethers: read_if(from_file("ethers"), || Ethers::read(&host)),
        resolver: resolver.clone(),
        asks_servers: places.dns,
        wait,
        own_network,
        settled: HashMap::new(),
        packet_ns: 0,
        unanswered: 0,
        failed: 0,
    };
    (Box::new(names), NamesEnd(resolver))
}

/// A file that is missing names nothing.
fn read_if<T: Default>(wanted: bool, read: impl Fn() -> Result<T, HostError>) -> T {
    if wanted { read().unwrap_or_default() } else { T::default() }
}

impl NamesEnd {
    /// Returns the resolver if its thread could be started.
    pub(super) fn resolver(&self) -> Option<&Resolver> {
        self.0.as_deref()
    }

    /// Says how many addresses no server answered for.
    pub(super) fn say(&self) {
        let failed = self.0.as_ref().map_or(0, |resolver| resolver.report().failed);
        if failed > 0 {
            say(&format!("tcpdump: names of {failed} addresses unknown: no name server answered (-n asks none)"));
        }
    }
}

impl RunNames {
    /// The name, or that there is none; `None` while servers are asked.
    fn find(&mut self, addr: Addr) -> Option<Option<Box<[u8]>>> {
        let Some(resolver) = self.resolver.clone() else { return Some(None) };
        if self.is_foreign(addr) {
            return Some(None);
        }
        let mut known = resolver.known(addr);
        // These no server knows.
        let is_asked = self.asks_servers && !addr.is_unspecified() && !addr.is_link_local_v6();
        if known == KnownName::Unasked && is_asked {
            resolver.want(addr);
            known = self.wait_for(&resolver, addr);
        }
        match known {
            KnownName::Name(name) => Some(Some(name)),
            KnownName::Waiting => None,
            // Too many wait: it is asked for once there is room.
            KnownName::Unasked if is_asked => None,
            _ => Some(None),
        }
    }

    fn wait_for(&mut self, resolver: &Resolver, addr: Addr) -> KnownName {
        let wait = match self.wait {
            _ if self.unanswered >= UNANSWERED_MAX => Duration::ZERO,
            NameWait::UntilAnswered => FILE_WAIT,
            NameWait::WhileYoung if self.age() < LIVE_AGE_MAX => LIVE_WAIT,
            NameWait::WhileYoung | NameWait::Never => Duration::ZERO,
        };
        let known = resolver.wait_for(addr, Instant::now() + wait);
        let failed = resolver.report().failed;
        self.unanswered = match known {
            KnownName::Waiting => self.unanswered + 1,
            KnownName::Unasked => self.unanswered,
            _ if failed != self.failed => self.unanswered + 1,
            _ => 0,
        };
        self.failed = failed;
        known
    }

    /// How old the packet is.
    fn age(&self) -> Duration {
        let now = sys::clock::wall();
        let now = u64::try_from(now.seconds).unwrap_or(0).saturating_mul(1_000_000_000) + u64::from(now.nanos);
        Duration::from_nanos(now.saturating_sub(self.packet_ns))
    }

    fn is_foreign(&self, addr: Addr) -> bool {
        match (self.own_network, addr) {
            (Some((network, mask)), Addr::V4(octets)) => u32::from_be_bytes(octets) & mask != network,
            _ => false,
        }
    }
}

impl PacketNames for RunNames {
    fn begin_packet(&mut self, time_ns: u64) {
        self.packet_ns = time_ns;
    }

    fn host(&mut self, address: &[u8]) -> Option<&[u8]> {
        let addr = match <[u8; 4]>::try_from(address) {
            Ok(octets) => Addr::V4(octets),
            Err(_) => Addr::V6(address.try_into().ok()?),
        };
        if !self.settled.contains_key(&addr) {
            let found = self.find(addr)?;
            if self.settled.len() >= HOSTS_MAX {
                self.settled.clear();
            }
            self.settled.insert(addr, found);
        }
        self.settled.get(&addr)?.as_deref()
    }

    fn ethernet(&mut self, address: [u8; 6]) -> Option<&[u8]> {
        self.ethers.name(address)
    }

    fn port(&mut self, proto: u8, port: u16) -> Option<&[u8]> {
        self.services.name(if proto == TCP { Proto::Tcp } else { Proto::Udp }, port)
    }
}
