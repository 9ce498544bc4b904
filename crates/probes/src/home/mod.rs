//! The lists of the home screen made from samples: interfaces, conntrack, retransmits, findings, losses.

mod losses;

pub use losses::losses_of;

use doctor::seen::Sample;
use record::rows::{CounterSource, Finding, HomeScreen};
use record::{Accounting, Columns, Key, LookupId, Lookups, Member, Next, OwnedObject, Round, Sink, SinkError, Value};

/// Bound: rows of each list on the home screen. Beyond: the totals include all rows; the command of the list shows
/// them. By: anyone with flows, interfaces or drops.
pub const LIST_MAX: u64 = 60;

/// A sink that stores rows as objects with these members, which are its columns.
pub struct ObjectRows {
    members: &'static [Member],
    /// The rows so far.
    pub rows: Vec<OwnedObject>,
}

impl ObjectRows {
    /// Makes an empty sink.
    pub fn new(members: &'static [Member]) -> ObjectRows {
        ObjectRows { members, rows: Vec::new() }
    }
}

impl Sink for ObjectRows {
    fn begin(&mut self, _: &Columns, _: Option<Round>) -> Result<(), SinkError> {
        Ok(())
    }

    fn row(&mut self, cells: &[Value<'_>]) -> Result<Next, SinkError> {
        self.rows.push(OwnedObject::new(self.members, cells.iter().copied()));
        Ok(Next::More)
    }

    fn end(&mut self, _: &Accounting) -> Result<(), SinkError> {
        Ok(())
    }
}

/// The name of a sample's network namespace; null for the host.
fn netns<'l>(netns_id: Option<u64>, lookups: &Lookups<'l>) -> Value<'l> {
    lookups.value(LookupId::Netns, netns_id.map_or(Key::None, Key::Id))
}

/// Adds interfaces, conntrack tables and retransmits to the screen.
pub fn add_samples(samples: &[Sample], lookups: &Lookups<'_>, screen: &mut HomeScreen) {
    screen.window_ns = samples.iter().map(|sample| sample.window_ns).max().unwrap_or(0);
    let mut interfaces: Vec<(u64, OwnedObject)> = samples.iter().flat_map(|one| of_netns(one, lookups)).collect();
    interfaces.sort_by_key(|(traffic, _)| std::cmp::Reverse(*traffic));
    screen.interfaces_total = interfaces.len() as u64;
    screen.interfaces = interfaces.into_iter().map(|(_, object)| object).take(LIST_MAX as usize).collect();
    let mut tables: Vec<(u64, OwnedObject)> = samples.iter().filter_map(|one| conntrack(one, lookups)).collect();
    tables.sort_by_key(|(entries, _)| std::cmp::Reverse(*entries));
    screen.conntrack = tables.into_iter().map(|(_, object)| object).take(LIST_MAX as usize).collect();
    screen.segs_out = grown(samples, "TcpOutSegs");
    screen.retransmits = grown(samples, "TcpRetransSegs");
}

/// The interfaces of one network namespace, with their traffic.
fn of_netns(sample: &Sample, lookups: &Lookups<'_>) -> Vec<(u64, OwnedObject)> {
    let of = |counter: &'static str| sample.objects(CounterSource::Iface, counter);
    let per_s = |name: &[u8], counter: &'static str, times: u64| {
        let moved = of(counter).find(|(iface, _)| *iface == name)?.1;
        moved.before?;
        let sum = u128::from(moved.grown()) * u128::from(times) * 1_000_000_000;
        u64::try_from(sum / u128::from(sample.window_ns.max(1))).ok()
    };
    let row = |name: &[u8]| {
        let rates = [("rx_bytes", 8), ("tx_bytes", 8), ("rx_packets", 1), ("tx_packets", 1)];
        let rates = rates.map(|(counter, times)| per_s(name, counter, times));
        let traffic = rates.iter().take(2).flatten().fold(0, |sum: u64, rate| sum.saturating_add(*rate));
        let values = [netns(sample.netns_id, lookups), Value::Bytes(name)];
        let object = OwnedObject::new(HomeScreen::INTERFACES, values.into_iter().chain(rates.map(Value::number)));
        (traffic, object)
    };
    of("rx_bytes").map(|(name, _)| row(name)).collect()
}

/// The conntrack table of one network namespace, if it has one.
fn conntrack(sample: &Sample, lookups: &Lookups<'_>) -> Option<(u64, OwnedObject)> {
    let of = |name| sample.counter(CounterSource::Conntrack, name);
    let number = |n: i64| u64::try_from(n).ok();
    let entries = number(of("entries")?.after)?;
    let moved = ["drop", "early_drop", "insert_failed"].map(|name| Value::number(of(name).map(|moved| moved.grown())));
    let values = [netns(sample.netns_id, lookups), Value::U64(entries)];
    let max = Value::number(of("max").and_then(|max| number(max.after)));
    Some((entries, OwnedObject::new(HomeScreen::CONNTRACK, values.into_iter().chain([max]).chain(moved))))
}

/// The increase of a TCP counter over all namespaces; None without a second reading.
fn grown(samples: &[Sample], name: &str) -> Option<u64> {
    let moved = samples.iter().filter_map(|sample| sample.counter(CounterSource::Snmp, name));
    moved.filter(|moved| moved.before.is_some()).map(|moved| moved.grown()).reduce(u64::saturating_add)
}

/// Adds the findings of doctor's checks on the samples to the screen.
pub fn add_findings(samples: &[Sample], lookups: &Lookups<'_>, screen: &mut HomeScreen) {
    let found = doctor::checks::diagnose(samples);
    screen.findings_total = found.len() as u64;
    screen.findings = found.iter().take(LIST_MAX as usize).map(|finding| of_finding(finding, lookups)).collect();
}

fn of_finding(finding: &Finding, lookups: &Lookups<'_>) -> OwnedObject {
    let command = finding.remedy.iter().map(|remedy| remedy.command.as_bytes()).find(|command| !command.is_empty());
    let values = [
        Value::Name(finding.severity.name()),
        Value::Bytes(finding.id.as_bytes()),
        netns(finding.netns_id, lookups),
        Value::Bytes(finding.title.as_bytes()),
        Value::nonempty(finding.cost.as_bytes()),
        Value::text(command),
    ];
    OwnedObject::new(HomeScreen::FINDINGS, values)
}
