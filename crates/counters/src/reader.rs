//! Reads all counters once: first those of the host, then each namespace.

use std::ops::ControlFlow;

use netlink::{DumpEnd, DumpError, generic};
use record::rows::CounterSource;
use record::{MergedStats, Next, RowStats, SourceError, SourceFault};
use sys::{DriverStatistics, Errno, Host, NetnsTarget, SysError, fs, visit_each};

use crate::reading::{COUNTERS_MAX, CounterReading, Object};
use crate::{drivers, links, qdiscs, texts, traps};

/// Maximum number of attempts at a dump that the kernel interrupted because an interface came or went.
///
/// Bound: dumps of interfaces or queueing disciplines that change during each of them. Beyond: the counters count as
/// incomplete (exit code 3). By: anyone who makes interfaces all the time.
const TRIES: u32 = 3;

/// Names this reader of a namespace in a recording.
const PURPOSE: &str = " counters";

/// Adds counters that another crate reads, of the calling thread's namespace.
pub type ReadAdditional<'r> = dyn Fn(&Host, u64, &mut CounterReading, &mut RowStats) + 'r;

/// Reads counters of network namespaces and of the host.
pub struct CounterReader<'h> {
    host: &'h Host,
    targets: Vec<NetnsTarget<'h>>,
    more: &'h ReadAdditional<'h>,
    /// True to also read the driver statistics of each interface.
    drivers: bool,
}

impl<'h> CounterReader<'h> {
    /// A reader of the namespaces `targets`; entering a namespace other than the current one needs CAP_SYS_ADMIN.
    pub fn new(host: &'h Host, targets: Vec<NetnsTarget<'h>>, more: &'h ReadAdditional<'h>) -> CounterReader<'h> {
        CounterReader { host, targets, more, drivers: false }
    }

    /// Also reads driver statistics (`ethtool -S`): three ioctls per interface, 2 µs for a virtual one; a driver that
    /// queries its adapter takes as long as the adapter does.
    pub fn with_drivers(self) -> CounterReader<'h> {
        CounterReader { drivers: true, ..self }
    }

    /// The host that is read.
    pub(crate) fn host(&self) -> &'h Host {
        self.host
    }

    /// Reads everything once: ten small files and two dumps per namespace, 0.5 ms and 5 µs per interface. Passes each
    /// reading to `each` with the inode of its namespace; the first reading is the host's and has no inode.
    pub(crate) fn read_all(
        &self,
        many: &mut MergedStats,
        each: &mut dyn FnMut(Option<u64>, CounterReading, &mut RowStats) -> Next,
    ) {
        let mut of_host = NetnsReading::new(self.host, None);
        of_host.read_host();
        if of_host.close(many, each) == Next::Stop {
            return;
        }
        let not_entered = visit_each(self.host, &self.targets, PURPOSE, &mut |target| {
            let mut one = NetnsReading::new(self.host, Some(target.netns_id));
            one.read_netns(target.netns_id, self.drivers, self.more);
            match one.close(many, each) {
                Next::Stop => ControlFlow::Break(()),
                Next::More => ControlFlow::Continue(()),
            }
        });
        many.add_vanished(not_entered.gone);
        not_entered.unreadable.into_iter().for_each(|why| many.not_entered(why.error.errno.is_denied(), why));
    }
}

/// Reads the numbers of sockets and the protocol counters of the calling thread's namespace. Missing files (no IPv6)
/// are left out. 0.2 ms.
pub fn read_sockets(host: &Host, netns_id: u64) -> Result<CounterReading, SysError> {
    let mut one = NetnsReading::new(host, Some(netns_id));
    one.read_protocols(netns_id);
    match one.first_error.filter(|_| !one.has_read) {
        Some(error) => Err(error),
        None => Ok(one.reading),
    }
}

/// The reading of one namespace, or of the host, while it is made.
struct NetnsReading<'h> {
    host: &'h Host,
    netns_id: Option<u64>,
    reading: CounterReading,
    stats: RowStats,
    has_read: bool,
    first_error: Option<SysError>,
    text: Vec<u8>,
}

impl<'h> NetnsReading<'h> {
    fn new(host: &'h Host, netns_id: Option<u64>) -> NetnsReading<'h> {
        let (reading, stats, text) = Default::default();
        NetnsReading { host, netns_id, reading, stats, has_read: false, first_error: None, text }
    }

    /// Reads counters that are the same in all namespaces. Only the initial namespace has the ones of neighbour tables.
    fn read_host(&mut self) {
        self.file("/proc/thread-self/net/softnet_stat", "", texts::add_softnet);
        for (table, file) in [("arp", "arp_cache"), ("ndisc", "ndisc_cache")] {
            for process in ["thread-self", "1"] {
                let path = format!("/proc/{process}/net/stat/{file}");
                if self.file(&path, "", |reading, text| texts::add_neigh(reading, table, text)) {
                    break;
                }
            }
        }
    }

    fn read_netns(&mut self, netns_id: u64, drivers: bool, more: &ReadAdditional<'_>) {
        self.read_protocols(netns_id);
        self.read_links(netns_id);
        if drivers {
            self.read_drivers(netns_id);
            self.read_traps(netns_id);
        }
        self.read_qdiscs(netns_id);
        more(self.host, netns_id, &mut self.reading, &mut self.stats);
    }

    fn read_protocols(&mut self, netns_id: u64) {
        let at = &format!("@{netns_id}");
        for (name, source) in [("snmp", CounterSource::Snmp), ("netstat", CounterSource::Netstat)] {
            let path = format!("/proc/thread-self/net/{name}");
            self.file(&path, at, |reading, text| texts::add_two_lines(reading, source, text));
        }
        self.file("/proc/thread-self/net/snmp6", at, |reading, text| {
            texts::add_single(reading, CounterSource::Snmp6, text)
        });
        for (name, source) in [("sockstat", CounterSource::Sockstat), ("sockstat6", CounterSource::Sockstat6)] {
            let path = format!("/proc/thread-self/net/{name}");
            self.file(&path, at, |reading, text| texts::add_pairs(reading, source, text));
        }
        // Recordings of earlier versions do not have the counters of IPsec.
        self.file_if(Some(Errno::NOT_RECORDED), "/proc/thread-self/net/xfrm_stat", at, |reading, text| {
            texts::add_single(reading, CounterSource::Xfrm, text)
        });
    }

    /// Adds a file, which the recording stores under its path and `at`. Returns false if it does not exist (no IPv6,
    /// other namespace).
    fn file(&mut self, path: &str, at: &str, add: impl FnOnce(&mut CounterReading, &[u8]) -> u64) -> bool {
        self.file_if(None, path, at, add)
    }

    /// Like [`NetnsReading::file`]; `absent` is a further error that means that the file does not exist.
    fn file_if(
        &mut self,
        absent: Option<Errno>,
        path: &str,
        at: &str,
        add: impl FnOnce(&mut CounterReading, &[u8]) -> u64,
    ) -> bool {
        let mut text = std::mem::take(&mut self.text);
        let host = self.host;
        let read = host.bytes(&format!("{path}{at}"), "", &mut text, |into| fs::read_file(&host.real_path(path), into));
        let is_absent = read.as_ref().is_err_and(|error| [Some(Errno::NOENT), absent].contains(&Some(error.errno)));
        match read {
            Ok(()) => {
                self.has_read = true;
                self.stats.add_backend("proc");
                let skipped = add(&mut self.reading, &text);
                if skipped > 0 {
                    self.stats.add_arrived(skipped);
                    self.stats.failed_rows(skipped, Some(format!("lines of {path}")));
                }
            }
            Err(_) if is_absent => {}
            Err(error) => {
                self.add_failure("counters", error.errno == Errno::NOT_RECORDED, error.to_string(), Some(error))
            }
        }
        self.text = text;
        !is_absent
    }

    fn add_failure(&mut self, what: &str, is_not_recorded: bool, words: String, error: Option<SysError>) {
        if is_not_recorded {
            let text = format!("the recording does not hold all {what} (`netwren record FILE` records everything)");
            self.stats.add_unanswered(text);
        } else {
            self.stats.incomplete(1, words);
        }
        self.first_error = self.first_error.take().or(error);
    }

    fn read_links(&mut self, netns_id: u64) {
        let (request, key) = (links::request(), format!("counters/links@{netns_id}"));
        let query = links::query(&request, &key);
        self.dump(query, links::RTM_NEWLINK, links::add);
    }

    /// Reads the driver statistics of each interface found. An interface that was renamed since then has no statistics.
    fn read_drivers(&mut self, netns_id: u64) {
        let ifaces: Vec<Object> = self.reading.objects().to_vec();
        let (host, mut open, mut bytes) = (self.host, None, std::mem::take(&mut self.text));
        for iface in ifaces {
            let key = format!("counters/driver of {}@{netns_id}", iface.ifindex);
            let read = host.bytes(&key, "", &mut bytes, |into| {
                let statistics = match open.take() {
                    Some(statistics) => statistics,
                    None => DriverStatistics::open()?,
                };
                open.insert(statistics).read(&iface.iface, into)
            });
            match read {
                Ok(()) => {
                    if drivers::add(&mut self.reading, &iface, &bytes).is_none() {
                        self.stats.add_arrived(1);
                        self.stats.failed_rows(1, Some("statistics of a driver".to_owned()));
                    }
                }
                // Recordings of earlier versions do not contain driver statistics.
                Err(error) if error.errno == Errno::NOT_RECORDED => {
                    self.add_failure("statistics of drivers", true, String::new(), None);
                    break;
                }
                Err(error) => {
                    let name = sys::escape_bytes(&iface.iface);
                    self.stats.incomplete(
                        1,
                        format!("the driver statistics of an interface could not be read ({name}: {error})"),
                    );
                }
            }
        }
        self.text = bytes;
    }

    /// Reads the traps of devices. A kernel without devlink has no traps.
    fn read_traps(&mut self, netns_id: u64) {
        let key = format!("counters/family of devlink@{netns_id}");
        let family = match generic::find_in_list(self.host, traps::FAMILY, &key, None) {
            Ok(Some(family)) => family.id,
            Ok(None) => return,
            Err(error) => {
                let is_not_recorded = matches!(&error, DumpError::Io(io) if io.errno == Errno::NOT_RECORDED);
                self.add_failure("devlink traps", is_not_recorded, error.to_string(), None);
                return;
            }
        };
        let (request, key) = (traps::request(family), format!("counters/traps@{netns_id}"));
        let query = traps::query(&request, &key);
        self.dump(query, family, traps::add);
    }

    fn read_qdiscs(&mut self, netns_id: u64) {
        let mut ifaces: Vec<(u32, Box<[u8]>)> = self.reading.objects().iter().map(by_number).collect();
        ifaces.sort_unstable();
        let (request, key) = (qdiscs::request(), format!("counters/qdiscs@{netns_id}"));
        let query = qdiscs::query(&request, &key);
        self.dump(query, qdiscs::RTM_NEWQDISC, |reading, payload| qdiscs::add(reading, payload, &ifaces));
    }

    /// Adds the messages of a dump; if the table changed during it, the messages of a repeated dump instead.
    fn dump(
        &mut self,
        query: netlink::Query<'_>,
        kind: u16,
        mut add: impl FnMut(&mut CounterReading, &[u8]) -> Option<()>,
    ) {
        let before = self.reading.clone();
        let mut end = Ok(DumpEnd::default());
        let mut undecoded = 0;
        for _ in 0..TRIES {
            (undecoded, self.reading) = (0, before.clone());
            let reading = &mut self.reading;
            end = netlink::dump(self.host, &query, |part| {
                if part.kind == kind && add(reading, part.payload).is_none() {
                    undecoded += 1;
                }
                ControlFlow::Continue(())
            });
            if !end.as_ref().is_ok_and(|end| end.interrupted) {
                break;
            }
        }
        self.stats.add_arrived(undecoded);
        self.stats.failed_rows(undecoded, Some(query.what));
        match end {
            Ok(end) => {
                self.has_read = true;
                self.stats.add_backend("netlink");
                if end.interrupted {
                    self.stats
                        .incomplete(0, format!("{} changed while they were read: some may be missing", query.what));
                }
            }
            // The kernel has no queueing disciplines.
            Err(error) if error.errno() == Some(Errno::OPNOTSUPP) => {}
            Err(error) => {
                let is_not_recorded = matches!(&error, DumpError::Io(io) if io.errno == Errno::NOT_RECORDED);
                self.add_failure(query.what, is_not_recorded, error.to_string(), None);
            }
        }
    }

    /// Completes the reading: passes it to `each` and its row counts to `many`.
    fn close(
        mut self,
        many: &mut MergedStats,
        each: &mut dyn FnMut(Option<u64>, CounterReading, &mut RowStats) -> Next,
    ) -> Next {
        if self.reading.over > 0 {
            let over = self.reading.over;
            self.stats.incomplete(over, format!("counters of a namespace after the first {COUNTERS_MAX} are left out"));
        }
        let failure = self.first_error.take().filter(|_| !self.has_read && self.netns_id.is_some());
        let next = if failure.is_none() { each(self.netns_id, self.reading, &mut self.stats) } else { Next::More };
        match failure {
            None => many.add(Ok(self.stats.close())),
            Some(error) => {
                let fault = if error.errno.is_denied() { SourceFault::Denied } else { SourceFault::Io };
                many.add(Err(SourceError { what: "counters", fault, cause: Box::new(error) }));
            }
        }
        next
    }
}

fn by_number(object: &Object) -> (u32, Box<[u8]>) {
    (object.ifindex, object.iface.clone())
}
