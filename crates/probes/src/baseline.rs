//! Changes of a host since a recording of it.

use doctor::baseline::{BaselineSide, Describe, compare, is_of_machine};
use doctor::checks::diagnose;
use doctor::seen::Sample;
use engine::{OneRound, Plan};
use lookups::asked;
use lookups::enrich::Enrichment;
use lookups::pillars;
use lookups::session::Session;
use record::rows::{BaselineChanges, Finding, Sockets};
use record::{Accounting, Each, Key, LookupId, Next, Source, SourceError, SourceFault, Value, full_scan};
use std::collections::{BTreeMap, BTreeSet};

use crate::descriptors::forgive_missing;
use crate::watch::Watch;

/// Columns to read of listeners.
pub const LISTENER_COLUMNS: &str = "netns_id,proto,local_addr,iface,local_port,process";

/// Bound: listeners that `doctor --baseline` compares. Beyond: further listeners are not compared, counted (exit code
/// 3). This also affects other users. By: anyone who may make sockets in the namespace.
const LISTENERS_MAX: usize = 65_536;

/// First port that the kernel chooses, if the setting cannot be read.
const FIRST_CHOSEN: i64 = 32_768;

/// Maximum number of network namespaces listed by name when the baseline lacks them.
const UNKNOWN_NAMED: usize = 8;

/// The state of a host at one time.
struct Observed {
    samples: Vec<Sample>,
    findings: Vec<Finding>,
    /// Listeners by namespace: their names, and the processes that own them.
    listeners: BTreeMap<u64, BTreeMap<String, String>>,
    /// Names of the namespaces.
    names: BTreeMap<u64, String>,
    /// True for a recording made by `record`, which holds no file descriptors of processes.
    lacks_descriptors: bool,
    /// The lookups that the names of listeners are made with.
    lookups: Vec<LookupId>,
}

/// The recorded state of a host.
pub struct Baseline {
    observed: Observed,
    /// The reasons for data that it lacks.
    gaps: Accounting,
}

impl Baseline {
    /// Reads the state from the recording of a session; `gaps` has the reasons for what it lacks so far.
    pub fn read(
        session: &Session,
        watch: &Watch,
        listeners: &Plan<Sockets>,
        mut gaps: Accounting,
    ) -> Result<Baseline, SourceError> {
        // The names of both sides are made with the same lookups.
        let mut lookups = vec![LookupId::Owners, LookupId::Netns];
        lookups.extend(asked::holds(session.host(), LookupId::Ifaces).then_some(LookupId::Ifaces));
        let observed = observe(session, watch, listeners, lookups, &mut gaps);
        session.finish(&mut gaps);
        // The comparison itself reports what a recording made by `record` lacks, where that matters.
        forgive_missing(&mut gaps);
        Ok(Baseline { observed: observed?, gaps })
    }
}

/// Observes the host of a session.
fn observe(
    session: &Session,
    watch: &Watch,
    listeners: &Plan<Sockets>,
    lookups: Vec<LookupId>,
    stats: &mut Accounting,
) -> Result<Observed, SourceError> {
    let wanted = asked::lookups(session.host(), listeners.demand(), lookups.clone(), stats);
    let around = Enrichment::read(session, &wanted, stats);
    let found = around.lookups();
    let samples = watch.samples(session, &found, stats)?;
    let mut sink = Listeners::default();
    let read = pillars::with_sockets(session, None, &|_| true, |source| {
        listeners.run(&mut OneRound::new(source, &found, &|| session.interrupted()), &mut sink)
    });
    match read {
        Ok(read) => stats.incomplete |= read.stats.lacks_rows(),
        Err(error) => {
            stats.incomplete(1, format!("listeners are not compared: {error}"));
        }
    }
    if sink.over > 0 {
        stats.incomplete(sink.over, format!("listeners after the first {LISTENERS_MAX} are not compared"));
    }
    let name = |netns_id: u64| match found.value(LookupId::Netns, Key::Id(netns_id)) {
        Value::Bytes(name) => String::from_utf8_lossy(name).into_owned(),
        _ => netns_id.to_string(),
    };
    let names = samples.iter().filter_map(|sample| sample.netns_id).map(|id| (id, name(id))).collect();
    let mut all = sink.found;
    for sample in &samples {
        let first = sample.setting("ipv4/ip_local_port_range", 0).unwrap_or(FIRST_CHOSEN);
        let Some(found) = sample.netns_id.and_then(|id| all.get_mut(&id)) else { continue };
        // A port chosen by the kernel belongs to a client and differs each time.
        found.retain(|name, _| {
            let port = name.rsplit(':').next().and_then(|port| port.parse::<i64>().ok());
            name.starts_with("tcp ") || port.is_some_and(|port| port < first)
        });
    }
    let lacks_descriptors = session.host().recording_header().is_some_and(|header| header.holds_everything);
    Ok(Observed { findings: diagnose(&samples), samples, listeners: all, names, lacks_descriptors, lookups })
}

/// A sink for [`LISTENER_COLUMNS`].
#[derive(Default)]
struct Listeners {
    found: BTreeMap<u64, BTreeMap<String, String>>,
    count: usize,
    over: u64,
}

impl record::Sink for Listeners {
    fn begin(&mut self, _: &record::Columns, _: Option<record::Round>) -> Result<(), record::SinkError> {
        Ok(())
    }

    fn row(&mut self, cells: &[Value<'_>]) -> Result<Next, record::SinkError> {
        let [Value::U64(netns_id), Value::Name(proto), addr, iface, Value::U64(port), process] = cells else {
            return Ok(Next::More);
        };
        if self.count >= LISTENERS_MAX {
            self.over += 1;
            return Ok(Next::More);
        }
        self.count += 1;
        let addr = match addr {
            Value::Addr(addr @ record::Addr::V6(_)) => format!("[{addr}]"),
            Value::Addr(addr) => addr.to_string(),
            _ => "*".to_owned(),
        };
        let process = match process {
            Value::Bytes(process) | Value::FirstOf(process, _) => String::from_utf8_lossy(process).into_owned(),
            _ => String::new(),
        };
        let iface = match iface {
            Value::Bytes(iface) => format!("%{}", String::from_utf8_lossy(iface)),
            _ => String::new(),
        };
        self.found.entry(*netns_id).or_default().insert(format!("{proto} {addr}{iface}:{port}"), process);
        Ok(Next::More)
    }

    fn end(&mut self, _: &Accounting) -> Result<(), record::SinkError> {
        Ok(())
    }
}

impl Observed {
    /// Removes data that the baseline does not hold and diagnoses again. Findings based on that data would look new.
    fn forget_unrecorded(&mut self, baseline: &Observed, stats: &mut Accounting) {
        let mut lacking = Vec::new();
        if baseline.samples.iter().all(|sample| sample.around.drops.is_none()) {
            lacking.push("drops by reason");
            self.samples.iter_mut().for_each(|sample| sample.around.drops = None);
        }
        if baseline.lacks_descriptors && self.samples.iter().any(|sample| !sample.descriptors.is_empty()) {
            lacking.push("file descriptors of processes");
            self.samples.iter_mut().for_each(|sample| sample.descriptors.clear());
        }
        for what in &lacking {
            stats.unanswered = true;
            stats.add_reason(0, format!("findings that need {what} are not compared: the baseline contains none"));
        }
        if !lacking.is_empty() {
            self.findings = diagnose(&self.samples);
        }
    }

    /// The data to compare for one sample.
    fn side<'o>(&'o self, sample: &'o Sample) -> BaselineSide<'o> {
        let netns = sample.netns_id.and_then(|id| self.names.get(&id)).map_or("", String::as_str);
        let listeners = sample.netns_id.and_then(|id| self.listeners.get(&id)).cloned().unwrap_or_default();
        let findings = self.findings.iter().filter(|finding| finding.netns_id == sample.netns_id).collect();
        BaselineSide { netns, sample, findings, listeners }
    }

    /// Returns the sample to compare with: the host's sample, or the sample of the same namespace. A namespace has the
    /// same name, or the same inode if it has no name on either side: the kernel reuses the inodes of removed ones.
    fn like(&self, netns: &str, netns_id: Option<u64>) -> Option<&Sample> {
        let Some(id) = netns_id else { return self.samples.iter().find(|sample| sample.netns_id.is_none()) };
        let name = |sample: &Sample| sample.netns_id.and_then(|known| self.names.get(&known)).map(String::as_str);
        let is_nameless = |name: &str| host::namespaces::is_derived_name(name.as_bytes(), id);
        let is_same = |sample: &&Sample| sample.netns_id == Some(id) && name(sample).is_none_or(is_nameless);
        let by_inode = || self.samples.iter().find(is_same).filter(|_| is_nameless(netns));
        self.samples.iter().find(|sample| name(sample) == Some(netns)).or_else(by_inode)
    }
}

/// The changes of one round: compares the host of the session with the baseline.
pub struct BaselineSource<'c> {
    /// The recorded state.
    pub baseline: &'c Baseline,
    /// Observes the host.
    pub watch: &'c Watch,
    /// Reads [`LISTENER_COLUMNS`] of listeners.
    pub listeners: &'c Plan<Sockets>,
    /// The session of the host.
    pub session: &'c Session,
}

impl Source<BaselineChanges> for BaselineSource<'_> {
    fn prepare(&self, _: &record::Demand<BaselineChanges>) -> Box<dyn record::Scan<BaselineChanges> + '_> {
        let explain = "a recording, compared with two readings of the kernel's counters, sockets and settings";
        full_scan::<BaselineChanges, _>("netwren", explain, |each| self.read(each))
    }
}

impl BaselineSource<'_> {
    fn read(&self, each: &mut Each<'_, BaselineChanges>) -> Result<Accounting, SourceError> {
        let BaselineSource { baseline, watch, listeners, session } = self;
        let Baseline { observed: then, gaps } = baseline;
        let mut stats = Accounting::default();
        // Data missing from the baseline is also missing from each comparison.
        stats.incomplete |= gaps.lacks_rows();
        stats.unanswered |= gaps.unanswered;
        gaps.why.iter().for_each(|why| stats.add_reason(why.count, format!("in the baseline: {}", why.text)));
        let mut now = observe(session, watch, listeners, then.lookups.clone(), &mut stats)?;
        now.forget_unrecorded(then, &mut stats);
        if now.samples.is_empty() {
            let cause = "no comparable data was read".into();
            return Err(SourceError { what: "the host", fault: SourceFault::Io, cause });
        }
        let mut of_machine = BTreeSet::new();
        let mut unknown = Vec::new();
        for sample in &now.samples {
            let after = now.side(sample);
            let Some(before) = then.like(after.netns, sample.netns_id) else {
                unknown.push(after.netns);
                continue;
            };
            for change in compare(&then.side(before), &after, DESCRIBE) {
                let values = (change.subject.clone(), change.before.clone(), change.after.clone());
                if is_of_machine(&change) && !of_machine.insert(values) {
                    continue;
                }
                stats.seen += 1;
                if each(&change) == Next::Stop {
                    return Ok(stats);
                }
            }
        }
        note_unknown(&unknown, &mut stats);
        Ok(stats)
    }
}

/// Counts and names the network namespaces that the baseline lacks.
fn note_unknown(names: &[&str], stats: &mut Accounting) {
    let Some(shown) = names.get(..names.len().min(UNKNOWN_NAMED)).filter(|shown| !shown.is_empty()) else { return };
    let more = if names.len() > shown.len() { ", ..." } else { "" };
    stats.unanswered = true;
    let shown = sys::escape_bytes(shown.join(", ").as_bytes());
    let text = format!("network namespaces are missing in the baseline: {shown}{more}");
    stats.add_reason(names.len() as u64, text);
}

/// The descriptions of counters.
const DESCRIBE: &Describe<'static> =
    &|source, name| counters::describe(source, name).map(|meaning| (meaning.kind, meaning.text));
