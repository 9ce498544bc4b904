//! Gathers the data for advice: several readings of the counters, one pass over the table, and sizes of objects.

use super::snat_rules::SnatRules;
use crate::entries::read_entries;
use conntrack::stats::{ObjectSize, SETTINGS_DIR, SlabSizes, Stats, has_event_listener, read};
use conntrack::{CtTable, in_each, in_each_for};
use doctor::nat::{Census, Chains, EntryBytes, Evidence, Sample, Trend};
use host::NetnsNames;
use lookups::long_work;
use lookups::session::Session;
use record::rows::{Nat, StatCounter, stat_need};
use record::{Accounting, Demand, Next, SourceError, SourceFault, field_index, text};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use sys::{Host, NetnsTarget};

/// How often to read the counters.
#[derive(Debug, Clone, Copy)]
pub struct Sampling {
    /// Number of readings.
    pub samples: u32,
    /// The time between two readings.
    pub interval: Duration,
    /// Bytes that the advised table may take; `None` for a share of the memory.
    pub memory_bytes_max: Option<u64>,
}

/// Reads the data on the session's namespaces, in order. Takes as long as the samples.
pub fn gather(
    session: &Session,
    sampling: &Sampling,
    stats: &mut Accounting,
) -> Result<Vec<(u64, Evidence)>, SourceError> {
    let namespaces = session.namespaces();
    let targets = session.targets(namespaces.as_deref());
    let mut sampled = Sampled::default();
    let last = sampled.take_all(session, sampling, &targets)?;
    stats.add(&last);
    let host = session.host();
    let machine = Machine::read(host, sampling.memory_bytes_max, stats);
    let mut found = BTreeMap::new();
    let alive: Vec<NetnsTarget<'_>> =
        targets.iter().filter(|target| sampled.is_alive(target.netns_id)).copied().collect();
    // The table is read after all samples, because reading it removes expired entries in every namespace and so
    // changes the counts.
    let mut pass = TablePass::over(session, &sampled, &alive, stats);
    let read = in_each_for(host, &alive, CtTable::Conntrack.purpose(), &mut |netns_id, _| {
        let Some(of) = sampled.of.get(&netns_id) else { return Ok(Next::More) };
        let evidence = machine.evidence(host, netns_id, of, &mut pass);
        found.insert(netns_id, evidence);
        Ok(Next::More)
    })?;
    stats.add(&read);
    let is_heard = found.values().any(|evidence| evidence.is_listened_to == Some(true));
    let all_were_asked = namespaces.is_some() && found.values().all(|evidence| evidence.is_listened_to.is_some());
    let listened = if is_heard || all_were_asked { Some(is_heard) } else { None };
    found.values_mut().for_each(|evidence| evidence.is_listened_to = listened);
    // All namespaces share the hash chains, so a walk in one of them is valid for the others.
    let chains = found.values().find_map(|evidence| evidence.chains);
    found.values_mut().for_each(|evidence| evidence.chains = evidence.chains.or(chains));
    let refused = sampled.of.values().filter_map(Counted::refused).reduce(u64::saturating_add);
    found.values_mut().for_each(|evidence| evidence.host_refused = refused);
    if namespaces.is_some() {
        let last = sampled.of.values().filter_map(|of| of.samples.last());
        let all = last.fold(0u64, |all, sample| all.saturating_add(sample.entries));
        found.values_mut().for_each(|evidence| evidence.host_entries = Some(all));
    }
    Ok(targets.iter().filter_map(|target| Some((target.netns_id, found.remove(&target.netns_id)?))).collect())
}

/// Returns the names of the namespaces, or their inodes, in the order of `found`.
pub fn names(session: &Session, found: &[(u64, Evidence)], stats: &mut Accounting) -> Vec<Vec<u8>> {
    let ids: Vec<u64> = found.iter().map(|(netns_id, _)| *netns_id).collect();
    let number = |id: u64| {
        let mut number = Vec::new();
        text::put_u64(&mut number, id);
        number
    };
    let named = match session.namespaces() {
        Some(namespaces) => {
            let mut names: BTreeMap<u64, Box<[u8]>> = namespaces.names(&|_| None).collect();
            return ids.iter().map(|id| names.remove(id).map_or_else(|| number(*id), Vec::from)).collect();
        }
        None => NetnsNames::read(session.host(), &ids),
    };
    match named {
        Ok(names) => ids.iter().map(|id| names.name(*id).map_or_else(|| number(*id), <[u8]>::to_vec)).collect(),
        Err(error) => {
            stats.add_reason(1, error.to_string());
            ids.iter().map(|id| number(*id)).collect()
        }
    }
}

/// The readings of all namespaces.
#[derive(Default)]
struct Sampled {
    of: BTreeMap<u64, Counted>,
    /// Number of readings so far.
    round: u32,
}

/// The readings of one namespace.
#[derive(Default)]
struct Counted {
    samples: Vec<Sample>,
    /// The complete last reading.
    last: Stats,
    /// The number of that reading.
    round: u32,
}

impl Counted {
    /// True if the table was empty at the last reading.
    fn is_empty(&self) -> bool {
        self.samples.last().is_some_and(|sample| sample.entries == 0)
    }

    /// Number of entries refused during the observation because their hash chain was too long.
    fn refused(&self) -> Option<u64> {
        Trend::of(&self.samples, None).grown.get(StatCounter::ChainTooLong)
    }
}

impl Sampled {
    /// Takes the requested number of readings of all namespaces; the row counts are from the last one.
    fn take_all(
        &mut self,
        session: &Session,
        sampling: &Sampling,
        targets: &[NetnsTarget<'_>],
    ) -> Result<Accounting, SourceError> {
        let interval_ns = u64::try_from(sampling.interval.as_nanos()).unwrap_or(u64::MAX);
        let mut stats = Accounting::default();
        while self.round < sampling.samples && session.host().begin_round() {
            stats = self.take(session, targets)?;
            if self.round == sampling.samples || session.host().is_replay() {
                continue;
            }
            // Measured from the end of the last round, so that samples of a namespace are at least this far apart.
            let due_ns = sys::clock::monotonic_ns().saturating_add(interval_ns);
            let (round, samples) = (self.round, sampling.samples);
            let what = format!("reading connection tracking: {round} of {samples} samples, waiting");
            let _line = long_work::progress(session, what, Some(sampling.interval), String::new);
            if !session.sleep_until(due_ns) {
                stats.add_reason(1, format!("interrupted after {} of {} samples", self.round, sampling.samples));
                break;
            }
        }
        Ok(stats)
    }

    fn take(&mut self, session: &Session, targets: &[NetnsTarget<'_>]) -> Result<Accounting, SourceError> {
        self.round += 1;
        let (of, round) = (&mut self.of, self.round);
        in_each(session.host(), targets, &mut |netns_id, acct| {
            let stats = read(session.host(), netns_id, stat_need::SETTINGS, None).map_err(|error| SourceError {
                what: "connection tracking",
                fault: SourceFault::Unsupported,
                cause: Box::new(error),
            })?;
            if let Some(why) = &stats.without {
                acct.incomplete(1, format!("counters are not available: {why}"));
            }
            let counted = of.entry(netns_id).or_default();
            if let Some(entries) = stats.entries {
                counted.samples.push(Sample { at_ns: session.steady_ns(), entries, counts: stats.sum() });
            }
            counted.last = stats;
            counted.round = round;
            Ok(Next::More)
        })
    }

    /// True if the last round reached it: a namespace that has ended since the first round needs no advice.
    fn is_alive(&self, netns_id: u64) -> bool {
        self.of.get(&netns_id).is_some_and(|of| of.round == self.round)
    }
}

/// Data shared by all namespaces.
struct Machine {
    entry: Option<EntryBytes>,
    /// Number of entries in all namespaces.
    entries: Option<u64>,
    page_bytes: u64,
    memory_bytes: Option<u64>,
    /// `--memory`
    memory_bytes_max: Option<u64>,
    rules: SnatRules,
}

impl Machine {
    fn read(host: &Host, memory_bytes_max: Option<u64>, stats: &mut Accounting) -> Machine {
        let page_bytes = page_bytes(host);
        let memory_bytes = memory_bytes(host);
        let (entry, entries, rules) = (None, None, SnatRules::default());
        let mut machine = Machine { entry, entries, page_bytes, memory_bytes, memory_bytes_max, rules };
        match SlabSizes::read(host) {
            Ok(sizes) => {
                let share = |object: ObjectSize| object.share(page_bytes);
                let (entry, extension, helped) = (share(sizes.entry), share(sizes.extension), share(sizes.helped));
                machine.entry = Some(EntryBytes { entry, extension, helped });
                machine.entries = sizes.in_use;
            }
            Err(error) => stats.add_reason(1, format!("{error}: the memory per entry is unknown")),
        }
        machine
    }

    /// The data on the calling thread's namespace.
    fn evidence(&self, host: &Host, netns_id: u64, of: &Counted, pass: &mut TablePass) -> Evidence {
        let settings = of.last.settings.unwrap_or_default();
        // An empty table need not be read, which would cost 50 ns per bucket of the host in each namespace.
        let (census, chains) = match of.is_empty() {
            true => (Some(Census::new(&settings)), None),
            false => (pass.censuses.remove(&netns_id), pass.chains),
        };
        // Listing rules costs a process, which is only justified for entries with translated source ports.
        let has_ports = census.as_ref().is_some_and(Census::has_source_ports);
        let snat_rules = if has_ports { self.rules.read(host, netns_id) } else { None };
        Evidence {
            samples: of.samples.clone(),
            max: of.last.max,
            buckets: of.last.buckets,
            settings,
            is_listened_to: has_event_listener(host, netns_id),
            census,
            chains,
            entry: self.entry,
            page_bytes: self.page_bytes,
            host_entries: self.entries,
            host_refused: None,
            snat_rules,
            host_memory_bytes: self.memory_bytes,
            memory_bytes_max: self.memory_bytes_max,
            is_first: may_set(host, netns_id),
        }
    }
}

/// For a recording: reads the data for advice in addition to the table, its counters and settings.
pub fn save(session: &Session, stats: &mut Accounting) -> u64 {
    let host = session.host();
    let machine = Machine::read(host, None, stats);
    session.in_each_namespace(&mut |netns_id| {
        has_event_listener(host, netns_id);
        may_set(host, netns_id);
        machine.rules.read(host, netns_id);
    });
    0
}

/// The fields that a pass needs. Only the walk reports whether an entry has expired.
const FIELDS: &[&str] = &["proto", "state", "status", "timeout_s", "helper", "expired", "zone"];

/// The table's data, read in one pass.
#[derive(Default)]
struct TablePass {
    /// Censuses by namespace; namespaces whose table could not be read are left out.
    censuses: BTreeMap<u64, Census>,
    chains: Option<Chains>,
}

impl TablePass {
    /// Reads those namespaces of `alive` that have entries.
    fn over(session: &Session, sampled: &Sampled, alive: &[NetnsTarget<'_>], stats: &mut Accounting) -> TablePass {
        let mut pass = TablePass::default();
        for target in alive {
            if let Some(of) = sampled.of.get(&target.netns_id).filter(|of| !of.is_empty()) {
                pass.censuses.insert(target.netns_id, Census::new(&of.last.settings.unwrap_or_default()));
            }
        }
        if pass.censuses.is_empty() {
            return pass;
        }
        tell_of_bpf(session, stats);
        let fields: Vec<usize> = FIELDS.iter().filter_map(|name| field_index::<Nat>(name)).collect();
        let filled: Vec<u64> = pass.censuses.keys().copied().collect();
        let (read, chains) = read_entries(session, &Demand::new(&fields, Vec::new()), &filled, &mut |row| {
            if let Some(census) = pass.censuses.get_mut(&row.netns_id) {
                census.add(row);
            }
            Next::More
        });
        let (is_one, is_read) = (session.namespaces().is_none(), read.is_ok());
        // In an incomplete pass over several namespaces, one without rows may not have been read.
        if !take_stats(read, stats) {
            pass.censuses.retain(|_, census| if is_one { is_read } else { census.entries() > 0 });
        }
        pass.chains = chains.map(|chains| Chains { longest: Some(chains.longest.into()), nodes: chains.nodes });
        pass
    }
}

/// Adds the reason why the walk is not possible; a failed attempt is reported by the reading itself.
fn tell_of_bpf(session: &Session, stats: &mut Accounting) {
    let (cache, is_live) = (&session.backends().conntrack, !session.host().is_replay());
    if let Some(why) = cache.why_not().filter(|_| is_live && cache.refusal().is_none()) {
        stats.add_reason(0, format!("not read via BPF, which also shows expired entries and hash chains: {why}"));
    }
}

/// Adds the result of a reading; true if it was complete.
fn take_stats(read: Result<Accounting, SourceError>, stats: &mut Accounting) -> bool {
    match read {
        Ok(read) => {
            let is_whole = !read.is_partial();
            stats.incomplete |= !is_whole;
            read.why.into_iter().for_each(|why| stats.add_reason(why.count, why.text));
            is_whole
        }
        Err(error) => {
            stats.incomplete(1, error.to_string());
            false
        }
    }
}

/// Returns true if the calling thread is in the host's first network namespace, judging by the settings.
pub fn is_first_netns() -> bool {
    let mode = sys::fs::stat(Path::new(SETTINGS_DIR).join("nf_conntrack_max").as_path());
    // Without these settings no conntrack table exists, and nothing distinguishes the namespaces.
    mode.map_or(true, |stat| stat.mode & WRITABLE != 0)
}

/// The permission bit that the limit has only in the first namespace.
const WRITABLE: u32 = 0o200;

/// True if the limit can be written in this namespace: the file is read-only in all but the first.
fn may_set(host: &Host, netns_id: u64) -> bool {
    let path = format!("{SETTINGS_DIR}/nf_conntrack_max");
    let mut mode = Vec::new();
    let read = host.bytes(&format!("mode {path}@{netns_id}"), "", &mut mode, |into| {
        into.extend_from_slice(&sys::fs::stat(&host.real_path(&path))?.mode.to_le_bytes());
        Ok(())
    });
    let mode = mode.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    read.is_ok() && mode.is_some_and(|mode| mode & WRITABLE != 0)
}

fn page_bytes(host: &Host) -> u64 {
    let mut bytes = Vec::new();
    let read = host.bytes("page-bytes", "", &mut bytes, |into| {
        into.extend_from_slice(&(sys::page_bytes() as u64).to_le_bytes());
        Ok(())
    });
    // Nearly all machines have 4096; older recordings do not contain it.
    read.ok().and_then(|()| bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))).unwrap_or(4096)
}

/// Reads `MemTotal`.
fn memory_bytes(host: &Host) -> Option<u64> {
    let mut text = Vec::new();
    host.read_file("/proc/meminfo", &mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    let kib: u64 =
        text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?.split_ascii_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}
