//! Names, unless `-n` is given: files of /etc are read once, before privileges are dropped, and a separate thread
//! without privileges queries name servers.

use super::say;
use crate::tcpdump::output::PacketNames;
use host::hosts::{KnownName, Resolver, ResolverOptions};
use host::name_switch::NamePlaces;
use host::{Ethers, HostError, Services};
use record::{Addr, Proto};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};
use sys::Host;

/// Maximum number of hosts whose names, or lack of a name, are cached for lines. At the limit the cache is cleared.
///
/// Bound: hosts whose names `tcpdump` remembers. Beyond: all names are forgotten and looked up again. By: any sender of
/// packets; the name servers.
const HOSTS_MAX: usize = 10_000;
/// A live capture waits this long for a name, and only while its packets are younger than the maximum age.
///
/// Bound: that a live capture waits for a name (`tcpdump_names::root_silent_servers_hold_no_packet_back`). Beyond:
/// numbers are shown until the name arrives. By: the name servers.
const LIVE_WAIT: Duration = Duration::from_millis(50);
const LIVE_AGE_MAX: Duration = Duration::from_millis(100);
/// Longer than the resolver thread spends on one address.
const FILE_WAIT: Duration = Duration::from_secs(10);
/// After this many addresses in a row without an answer, names are still requested, but lines no longer wait for them.
///
/// Bound: addresses in a row without an answer. Beyond: numbers are shown until names arrive. By: the name servers.
const UNANSWERED_MAX: u64 = 3;
const TCP: u8 = 6;

/// How long a line waits for a name from a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NameWait {
    /// Until the answer arrives: reading a file loses no packets.
    UntilAnswered,
    /// Briefly, and only while packets do not queue up.
    WhileYoung,
    /// Never waits, because the ring is small.
    Never,
}

/// An IPv4 network: address and mask.
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
    /// `-f`: hosts of other networks are shown as numbers.
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
        say(&format!("tcpdump: WARNING: host names stay numeric: {error}"));
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

/// Reads a file; a missing file contributes no names.
fn read_if<T: Default>(wanted: bool, read: impl Fn() -> Result<T, HostError>) -> T {
    if wanted { read().unwrap_or_default() } else { T::default() }
}

impl NamesEnd {
    /// The resolver, if its thread could be started.
    pub(super) fn resolver(&self) -> Option<&Resolver> {
        self.0.as_deref()
    }

    /// Reports the number of addresses for which no server answered.
    pub(super) fn say(&self) {
        let failed = self.0.as_ref().map_or(0, |resolver| resolver.report().failed);
        if failed > 0 {
            say(&format!(
                "tcpdump: names of {failed} addresses unknown: no name server answered (-n requests no names)"
            ));
        }
    }
}

impl RunNames {
    /// The name, or `Some(None)` if the host has none; `None` while servers are being queried.
    fn find(&mut self, addr: Addr) -> Option<Option<Box<[u8]>>> {
        let Some(resolver) = self.resolver.clone() else { return Some(None) };
        if self.is_foreign(addr) {
            return Some(None);
        }
        let mut known = resolver.known(addr);
        // Servers know no names for these addresses.
        let is_asked = self.asks_servers && !addr.is_unspecified() && !addr.is_link_local_v6();
        if known == KnownName::Unasked && is_asked {
            resolver.want(addr);
            known = self.wait_for(&resolver, addr);
        }
        match known {
            KnownName::Name(name) => Some(Some(name)),
            KnownName::Waiting => None,
            // The queue is full: the name is requested once it has room.
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

    /// The age of the packet.
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
