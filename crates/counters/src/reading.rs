//! One reading: all counters of a network namespace, or of the host, at one moment.

use record::rows::CounterSource;

use crate::meanings::{self, CounterMeaning};

/// Maximum number of counters in a reading: 40,000 interfaces. [`CounterReading::over`] counts the others.
///
/// Bound: counters of a namespace (`reading::counters_are_bounded`). Beyond: further counters are left out and counted
/// (exit code 3). By: anyone who may make 40,000 interfaces there.
pub const COUNTERS_MAX: usize = 1 << 20;

/// Counters at one moment, in the kernel's order.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct CounterReading {
    counted: Vec<CounterValue>,
    objects: Vec<Object>,
    /// Number of counters beyond [`COUNTERS_MAX`], which are not kept.
    pub over: u64,
    /// Index of the last described counter in its table: the next one is expected after it.
    at: usize,
}

/// One counter and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterValue {
    /// The kernel interface that provides it.
    pub source: CounterSource,
    /// Its name, and its meaning if it is known.
    pub name: CounterName,
    /// Index of its object in [`CounterReading::object`]; `None` for a counter of the namespace or the host.
    pub object: Option<u32>,
    /// Its value.
    pub value: i128,
    /// Width of the kernel's counter.
    pub width: Width,
}

/// The name of a counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CounterName {
    /// A counter with a description.
    Known(&'static CounterMeaning),
    /// A counter of a newer kernel, or with a number in its name.
    Other(Box<str>),
}

/// Width of the kernel's counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// 32 bits: a busy counter wraps.
    Bits32,
    /// 64 bits.
    Bits64,
}

/// An object with its own counters: a CPU, an interface, a queueing discipline or a trap.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Object {
    /// Number of the CPU.
    pub cpu: Option<u32>,
    /// Number of the interface; 0 for a CPU. A new interface may have the name of a removed one.
    pub ifindex: u32,
    /// True for an interface made by software, for which the kernel reports a kind.
    pub is_virtual: bool,
    /// True for a trap with which a device drops packets.
    pub is_drop_trap: bool,
    /// Name of the interface; empty for a CPU.
    pub iface: Box<[u8]>,
    /// The queueing discipline as tc writes it; empty for others.
    pub qdisc: Box<[u8]>,
    /// The object in words.
    pub label: Box<[u8]>,
}

impl Object {
    /// A CPU.
    pub fn cpu(cpu: u32) -> Object {
        Object { cpu: Some(cpu), label: format!("cpu{cpu}").into_bytes().into(), ..Object::default() }
    }

    /// An interface.
    pub fn iface(ifindex: u32, name: &[u8]) -> Object {
        Object { ifindex, iface: name.into(), label: name.into(), ..Object::default() }
    }

    /// A queueing discipline of an interface.
    pub fn qdisc(ifindex: u32, iface: &[u8], qdisc: &[u8]) -> Object {
        Object { qdisc: qdisc.into(), label: [iface, b" ", qdisc].concat().into(), ..Object::iface(ifindex, iface) }
    }
}

impl CounterName {
    /// The name as text.
    pub fn text(&self) -> &str {
        match self {
            CounterName::Known(meaning) => meaning.name,
            CounterName::Other(name) => name,
        }
    }
}

impl CounterReading {
    /// The counters in the kernel's order.
    pub fn values(&self) -> &[CounterValue] {
        &self.counted
    }

    /// The object of a counter.
    pub fn object(&self, counted: &CounterValue) -> Option<&Object> {
        self.objects.get(counted.object? as usize)
    }

    /// The value of a counter without an object; `None` if this kernel has no counter of that name. A linear search.
    pub fn get(&self, source: CounterSource, name: &str) -> Option<i128> {
        let is_it = |one: &&CounterValue| one.source == source && one.object.is_none() && one.name.text() == name;
        self.counted.iter().find(is_it).map(|one| one.value)
    }

    /// Adds an object and returns its number, which the counters after it can refer to.
    pub(crate) fn add_object(&mut self, object: Object) -> u32 {
        let at = u32::try_from(self.objects.len()).unwrap_or(u32::MAX);
        self.objects.push(object);
        at
    }

    /// The added objects, in the order of their numbers.
    pub(crate) fn objects(&self) -> &[Object] {
        &self.objects
    }

    /// Adds a counter. Looks up its meaning at no cost while the kernel's order matches the table of meanings.
    pub fn add(&mut self, source: CounterSource, name: &str, object: Option<u32>, value: i128, width: Width) {
        if self.counted.len() >= COUNTERS_MAX {
            self.over += 1;
            return;
        }
        let name = match meanings::find(source, name, &mut self.at) {
            Some(meaning) => CounterName::Known(meaning),
            None => CounterName::Other(name.into()),
        };
        self.counted.push(CounterValue { source, name, object, value, width });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_bounded() {
        let mut reading = CounterReading::default();
        (0..COUNTERS_MAX + 3).for_each(|_| reading.add(CounterSource::Iface, "mtu", None, 1, Width::Bits32));
        assert_eq!((reading.values().len(), reading.over), (COUNTERS_MAX, 3));
    }

    #[test]
    fn known_names_take_no_memory_and_unknown_ones_stay_as_they_are() {
        let mut reading = CounterReading::default();
        let cpu = reading.add_object(Object::cpu(3));
        reading.add(CounterSource::Snmp, "UdpNoPorts", None, 7, Width::Bits64);
        reading.add(CounterSource::Snmp, "UdpOfTomorrow", None, 8, Width::Bits64);
        reading.add(CounterSource::Softnet, "dropped", Some(cpu), 9, Width::Bits32);
        let (counted, text) = (reading.values(), |nth: usize| reading.values().get(nth).map(|one| one.name.text()));
        let is_known = |one: &CounterValue| matches!(one.name, CounterName::Known(_));
        assert_eq!(counted.iter().map(is_known).collect::<Vec<_>>(), [true, false, true]);
        assert_eq!(text(1), Some("UdpOfTomorrow"));
        assert_eq!(
            counted.get(2).and_then(|of_cpu| reading.object(of_cpu)).map(|object| &*object.label),
            Some(&b"cpu3"[..])
        );
        assert_eq!(reading.get(CounterSource::Snmp, "UdpNoPorts"), Some(7));
        assert_eq!(reading.get(CounterSource::Softnet, "dropped"), None, "of a CPU");
    }
}
