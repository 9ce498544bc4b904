//! Two readings as rows of the table `counters`.

use std::cell::RefCell;
use std::collections::BTreeMap;

use record::rows::{Counter, CounterKind, CounterNote, KernelCounters};
use record::{
    Accounting, Demand, Each, MergedStats, Next, RowStats, Scan, Source, SourceError, SourceFault, full_scan,
};
use sys::{Errno, Host};

use crate::difference::compute_difference;
use crate::meanings;
use crate::memory::{CounterMemory, Matches};
use crate::reader::CounterReader;
use crate::reading::{CounterName, CounterReading, CounterValue};

/// The outcome of the wait for the second reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextReading {
    /// The time is over: the second reading can be made.
    Begun,
    /// The user ended the run.
    Ended,
    /// The recording has no second reading.
    Missing,
}

/// The counters of two readings as rows. The first reading is the one of the round before; without one, this source
/// makes it.
pub struct CounterTable<'h> {
    reader: CounterReader<'h>,
    compared: Option<ComparedReading<'h>>,
    /// True to leave out counters that did not change.
    changed_only: bool,
}

struct ComparedReading<'h> {
    memory: &'h RefCell<CounterMemory>,
    next: &'h dyn Fn() -> NextReading,
}

impl<'h> CounterTable<'h> {
    /// The rows of one reading, without differences.
    pub fn from_reading(reader: CounterReader<'h>) -> CounterTable<'h> {
        CounterTable { reader, compared: None, changed_only: false }
    }

    /// The rows of two readings; `next` waits between them, `memory` keeps the second for the next round.
    pub fn of_two(
        reader: CounterReader<'h>,
        memory: &'h RefCell<CounterMemory>,
        next: &'h dyn Fn() -> NextReading,
    ) -> CounterTable<'h> {
        CounterTable { reader, compared: Some(ComparedReading { memory, next }), changed_only: false }
    }

    /// Leaves out the counters that did not change, if `changed_only`.
    pub fn changed_only(self, changed_only: bool) -> CounterTable<'h> {
        CounterTable { changed_only, ..self }
    }

    fn read(&self, each: &mut Each<'_, KernelCounters>) -> Result<Accounting, SourceError> {
        let mut many = MergedStats::default();
        if let Some(compared) = &self.compared {
            if !self.first_reading(compared, &mut many)? {
                return Ok(many.stats);
            }
        }
        self.second_reading(&mut many, each)?;
        many.finish()
    }

    /// Makes the first reading if it is missing; false if the run ended before the second.
    fn first_reading(&self, compared: &ComparedReading<'h>, many: &mut MergedStats) -> Result<bool, SourceError> {
        if compared.memory.borrow().at_ns().is_some() {
            return Ok(true);
        }
        let at_ns = clock_ns(self.reader.host())?;
        let mut readings = BTreeMap::new();
        // Its problems also affect the second reading and are reported there.
        self.reader.read_all(&mut MergedStats::default(), &mut |netns_id, reading, _| {
            readings.insert(netns_id, reading);
            Next::More
        });
        compared.memory.borrow_mut().replace(Some(at_ns), readings);
        match (compared.next)() {
            NextReading::Begun => {}
            NextReading::Ended => {
                many.stats.add_reason(0, "ended before the second reading: nothing was compared");
                return Ok(false);
            }
            NextReading::Missing => {
                compared.memory.borrow_mut().replace(None, BTreeMap::new());
                many.stats.unanswered = true;
                many.stats.add_reason(0, "the recording holds one reading of the counters: differences are unknown");
            }
        }
        Ok(true)
    }

    fn second_reading(&self, many: &mut MergedStats, each: &mut Each<'_, KernelCounters>) -> Result<(), SourceError> {
        let now_ns = clock_ns(self.reader.host())?;
        let mut readings = BTreeMap::new();
        let mut differences = DifferenceRows {
            changed_only: self.changed_only,
            window_ns: self.compared.as_ref().and_then(|compared| {
                compared.memory.borrow().at_ns().map(|before_ns| now_ns.saturating_sub(before_ns))
            }),
            resets: 0,
        };
        self.reader.read_all(many, &mut |netns_id, reading, stats| {
            let memory = self.compared.as_ref().map(|compared| compared.memory.borrow());
            let before = memory.as_ref().and_then(|memory| memory.previous_reading(netns_id));
            let next = differences.rows(netns_id, &reading, before, stats, each);
            drop(memory);
            if self.compared.is_some() {
                readings.insert(netns_id, reading);
            }
            next
        });
        if differences.resets > 0 {
            many.stats.add_reason(differences.resets, "a counter was reset: its difference is unknown");
        }
        if let Some(compared) = &self.compared {
            compared.memory.borrow_mut().replace(Some(now_ns), readings);
        }
        Ok(())
    }
}

impl Source<KernelCounters> for CounterTable<'_> {
    fn prepare(&self, _: &Demand<KernelCounters>) -> Box<dyn Scan<KernelCounters> + '_> {
        let explain = "two readings: /proc/net/{snmp,netstat,snmp6,sockstat,sockstat6,xfrm_stat,softnet_stat,stat}; \
                       interfaces and queueing disciplines via rtnetlink (RTM_GETLINK, RTM_GETQDISC); driver \
                       statistics via ethtool ioctls (ETHTOOL_GSTATS); device traps via devlink \
                       (DEVLINK_CMD_TRAP_GET); connection tracking via ctnetlink or /proc/net/stat";
        full_scan::<KernelCounters, _>("proc", explain, |each| self.read(each))
    }
}

/// The value of a counter in the previous reading.
enum PreviousValue {
    Value(i128),
    /// The previous reading has the object but not this counter, which the kernel only lists once it has occurred.
    Absent,
    /// The previous reading lacks the object, or does not exist.
    Unknown,
}

/// Turns the readings of one moment into rows.
struct DifferenceRows {
    changed_only: bool,
    window_ns: Option<u64>,
    /// Number of counters that were reset.
    resets: u64,
}

impl DifferenceRows {
    fn rows(
        &mut self,
        netns_id: Option<u64>,
        reading: &CounterReading,
        before: Option<&CounterReading>,
        stats: &mut RowStats,
        each: &mut Each<'_, KernelCounters>,
    ) -> Next {
        let mut matches = before.map(Matches::new);
        for counted in reading.values() {
            stats.add_arrived(1);
            let before =
                matches.as_mut().map_or(PreviousValue::Unknown, |matches| match matches.value(reading, counted) {
                    Some(value) => PreviousValue::Value(value),
                    None if matches.knew_object(reading, counted) => PreviousValue::Absent,
                    None => PreviousValue::Unknown,
                });
            let row = self.row(netns_id, reading, counted, before);
            let is_changed = match (row.delta, row.note) {
                (Some(0), None) => false,
                (_, Some(CounterNote::New)) => row.value != 0,
                _ => true,
            };
            if self.changed_only && !is_changed {
                stats.add_filtered();
                continue;
            }
            stats.row();
            if each(&row) == Next::Stop {
                return Next::Stop;
            }
        }
        Next::More
    }

    fn row<'r>(
        &mut self,
        netns_id: Option<u64>,
        reading: &'r CounterReading,
        counted: &'r CounterValue,
        before: PreviousValue,
    ) -> Counter<'r> {
        let meaning = match &counted.name {
            CounterName::Known(meaning) => (meaning.kind, meaning.text),
            CounterName::Other(name) => meanings::of_numbered(name),
        };
        let (kind, meaning) = meaning;
        let (delta, note) = match (self.window_ns, before) {
            (None, _) => (None, None),
            (Some(window_ns), PreviousValue::Value(before)) => {
                compute_difference(kind, counted.width, before, counted.value, window_ns)
            }
            (Some(_), PreviousValue::Absent) if kind == CounterKind::Counter => {
                (Some(counted.value), Some(CounterNote::New))
            }
            (Some(_), _) => (None, Some(CounterNote::New)),
        };
        self.resets += u64::from(note == Some(CounterNote::Reset));
        let object = reading.object(counted);
        let part = |part: fn(&crate::Object) -> &[u8]| object.map(part).filter(|text| !text.is_empty());
        Counter {
            netns_id,
            source: counted.source,
            name: counted.name.text().as_bytes(),
            iface: part(|object| &object.iface),
            ifindex: object.map_or(0, |object| object.ifindex),
            is_virtual: object.is_some_and(|object| object.is_virtual),
            is_drop_trap: object.is_some_and(|object| object.is_drop_trap),
            cpu: object.and_then(|object| object.cpu),
            qdisc: part(|object| &object.qdisc),
            object: part(|object| &object.label).unwrap_or_default(),
            value: counted.value,
            delta,
            window_ns: self.window_ns,
            kind,
            note,
            meaning,
        }
    }
}

/// The monotonic clock. A recording also holds it, so a replay shows the rates of the recorded run.
fn clock_ns(host: &Host) -> Result<u64, SourceError> {
    let mut bytes = Vec::new();
    let read = host.bytes("counters/clock", "", &mut bytes, |into| {
        into.extend_from_slice(&sys::clock::monotonic_ns().to_le_bytes());
        Ok(())
    });
    match read {
        Ok(()) => Ok(bytes.as_slice().try_into().map_or(0, u64::from_le_bytes)),
        Err(error) if error.errno == Errno::NOT_RECORDED => {
            let cause = "the recording holds none (`netwren record FILE` records everything)".into();
            Err(SourceError { what: "counters", fault: SourceFault::Io, cause })
        }
        Err(error) => Err(SourceError { what: "counters", fault: SourceFault::Io, cause: Box::new(error) }),
    }
}
