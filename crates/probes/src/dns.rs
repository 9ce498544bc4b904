//! Counts DNS queries and answers, by server.

use doctor::seen::{DnsMismatch, DnsSeen, DnsServerSeen, Sample};
use host::Links;
use host::dns_watch::{self, DnsCounts, DnsWatch};
use record::{Accounting, Addr};
use std::collections::BTreeMap;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;
use sys::{Errno, SysError};

use crate::counter_window::Samples;
use crate::probe::{ChosenNetns, InNetns, ProbeReader, Round, close_in_parallel};

/// Maximum number of namespaces to count in; each takes one descriptor. The host's own namespace comes first, and users
/// share the rest equally.
///
/// Bound: namespaces in which `doctor` counts DNS messages: the host's first, then equal parts for each user. Beyond:
/// further namespaces are counted (exit code 3). By: a user who makes namespaces, for that user's namespaces.
const NAMESPACES_MAX: usize = 256;

/// Time between two readings of the sockets, which is also the precision of the messages' times.
const PERIOD: Duration = Duration::from_millis(50);

/// Watches by namespace.
type Watches = BTreeMap<u64, DnsWatch>;

/// Counts DNS messages during the window.
#[derive(Default)]
pub(crate) struct DnsReader {
    /// Watches that no thread reads yet.
    open: Watches,
    /// The namespaces to count in.
    chosen: ChosenNetns,
    reading: Option<DnsThread>,
    counts: BTreeMap<u64, DnsCounts>,
}

/// The thread that reads the sockets. It ends when `stop` is dropped.
struct DnsThread {
    stop: mpsc::Sender<()>,
    thread: JoinHandle<Result<Watches, SysError>>,
}

impl Drop for DnsReader {
    fn drop(&mut self) {
        close_in_parallel(std::mem::take(&mut self.open).into_values().collect());
    }
}

impl ProbeReader for DnsReader {
    /// Opens a socket in the namespace, if it has an address.
    fn first(&mut self, netns: &InNetns<'_>, stats: &mut Accounting) {
        let host = netns.host();
        // Each probe reports its own interfaces: an error of this dump is also one of theirs.
        let Ok(links) = Links::read_inet(host, netns.netns_id, None) else { return };
        if links.addrs.is_empty() || host.is_replay() {
            return;
        }
        if !self.chosen.has(netns, NAMESPACES_MAX) {
            let text = format!("DNS messages are counted in {NAMESPACES_MAX} network namespaces, but not in this one");
            stats.incomplete(1, text);
            return;
        }
        match DnsWatch::open() {
            Ok(watch) => drop(self.open.insert(netns.netns_id, watch)),
            Err(error) => {
                let needs = if error.errno.is_denied() { " (needs CAP_NET_RAW)" } else { "" };
                stats.incomplete(0, format!("DNS messages are not counted: {error}{needs}"));
            }
        }
    }

    fn begin(&mut self, _: &Round<'_>, stats: &mut Accounting) {
        if self.open.is_empty() {
            return;
        }
        let (stop, stopped) = mpsc::channel();
        let watches = std::mem::take(&mut self.open);
        let thread = std::thread::Builder::new().name("dns".to_owned()).spawn(move || read_until(watches, &stopped));
        match thread {
            Ok(thread) => self.reading = Some(DnsThread { stop, thread }),
            Err(error) => {
                stats.incomplete(1, format!("DNS messages are not counted: {error}"));
            }
        }
    }

    /// Closes the sockets before the sockets of the host are read again.
    fn end(&mut self, round: &Round<'_>, samples: &mut Samples, stats: &mut Accounting) {
        if let Some(DnsThread { stop, thread }) = self.reading.take() {
            drop(stop);
            match thread.join() {
                Ok(Ok(watches)) => self.open = watches,
                Ok(Err(error)) => {
                    stats.incomplete(1, format!("DNS messages are not counted: {error}"));
                }
                Err(_) => {
                    stats.incomplete(1, "DNS messages are not counted: their thread ended early");
                }
            }
        }
        let over = self.open.values().filter(|watch| watch.is_over()).count();
        if over > 0 {
            let text = "DNS messages were too many to count all: servers may be missing (network namespaces)";
            stats.incomplete(over as u64, text);
        }
        for netns_id in samples.keys().copied().flatten() {
            let mut bytes = Vec::new();
            let read = round.session.host().bytes(&format!("dns messages@{netns_id}"), "", &mut bytes, |into| {
                if let Some(watch) = self.open.get(&netns_id) {
                    watch.counts().put(into);
                }
                Ok(())
            });
            match read {
                Ok(()) => drop(self.counts.insert(netns_id, dns_watch::parse(&bytes))),
                // Recordings of earlier versions do not contain them.
                Err(error) if error.errno == Errno::NOT_RECORDED => {}
                Err(error) => {
                    stats.incomplete(1, format!("DNS messages are not counted: {error}"));
                }
            }
        }
        close_in_parallel(std::mem::take(&mut self.open).into_values().collect());
    }

    fn second(&mut self, netns: &InNetns<'_>, sample: &mut Sample, stats: &mut Accounting) {
        let Some(counts) = self.counts.remove(&netns.netns_id) else { return };
        if counts == DnsCounts::default() {
            return;
        }
        if let Some(links) = netns.links(stats) {
            sample.around.dns = seen_of(&counts, links);
        }
    }

    /// A recording of everything has no window to count in.
    fn save(&mut self, _: &InNetns<'_>, _: &mut Accounting) {}
}

/// Reads the sockets until the other end of `stopped` is dropped.
fn read_until(mut watches: Watches, stopped: &mpsc::Receiver<()>) -> Result<Watches, SysError> {
    loop {
        watches.values_mut().try_for_each(DnsWatch::read)?;
        if stopped.recv_timeout(PERIOD) == Err(RecvTimeoutError::Disconnected) {
            watches.values_mut().try_for_each(DnsWatch::read)?;
            return Ok(watches);
        }
    }
}

/// The queries of this host, and answers from other addresses to it or from it. A forwarded answer may be translated
/// where it is not seen.
fn seen_of(counts: &DnsCounts, links: &Links) -> DnsSeen {
    let is_own = |addr: Addr| match addr {
        _ if addr.is_loopback() => true,
        Addr::V4(addr) => links.addrs.iter().any(|own| own.local == addr),
        Addr::V6(addr) => links.addrs6.iter().any(|own| own.addr == addr),
    };
    let servers = counts.servers.iter().filter(|one| is_own(one.client)).map(|one| DnsServerSeen {
        server: one.server,
        port: one.port,
        asked: one.asked,
        answered: one.answered,
        waiting: one.waiting,
        longest_ms: one.longest_ms,
        failed: one.failed,
        refused: one.refused,
    });
    let mismatches = counts.mismatches.iter().filter(|one| is_own(one.client) || is_own(one.answered));
    let mismatches = mismatches.map(|one| DnsMismatch {
        asked: one.asked,
        answered: one.answered,
        client: one.client,
        is_own: is_own(one.answered),
        count: one.count,
    });
    DnsSeen { servers: servers.collect(), mismatches: mismatches.collect() }
}
