//! Kernel counters and their changes during a time window, one row per counter (`counters`).

use crate::named_enum::named_enum;
use crate::table::table;
use crate::{Key, LookupId, Show, Value};

named_enum! {
    /// The kernel interface that a counter is read from.
    pub enum CounterSource {
        /// /proc/net/snmp
        Snmp => "snmp",
        /// /proc/net/netstat
        Netstat => "netstat",
        /// /proc/net/snmp6
        Snmp6 => "snmp6",
        /// /proc/net/sockstat
        Sockstat => "sockstat",
        /// /proc/net/sockstat6
        Sockstat6 => "sockstat6",
        /// /proc/net/xfrm_stat: IPsec.
        Xfrm => "xfrm",
        /// /proc/net/softnet_stat, per CPU.
        Softnet => "softnet",
        /// /proc/net/stat/arp_cache and ndisc_cache, summed over all CPUs.
        Neigh => "neigh",
        /// RTM_GETLINK, per interface.
        Iface => "iface",
        /// RTM_GETQDISC, per queueing discipline.
        Qdisc => "qdisc",
        /// The interface's driver (`ethtool -S`), with names chosen by the driver.
        Driver => "driver",
        /// DEVLINK_CMD_TRAP_GET, per trap of a device.
        Trap => "trap",
        /// ctnetlink or /proc/net/stat/nf_conntrack, summed over all CPUs.
        Conntrack => "conntrack",
    }
}

named_enum! {
    /// The kind of a counter's values.
    pub enum CounterKind {
        /// Only increases: the difference is relevant.
        Counter => "counter",
        /// Increases and decreases, or is set: the value is relevant.
        Gauge => "gauge",
    }
}

named_enum! {
    /// A remark about the difference of a counter.
    pub enum CounterNote {
        /// The first reading did not contain the counter.
        New => "new",
        /// The counter wrapped around at 32 bits; the difference is still correct.
        Wrapped => "wrapped",
        /// The counter is smaller than before, so it was reset; the difference is unknown.
        Reset => "reset",
    }
}

/// A counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counter<'b> {
    /// Inode of the network namespace; `None` for counters of the whole host.
    pub netns_id: Option<u64>,
    /// The kernel interface that it was read from.
    pub source: CounterSource,
    /// Its name as `nstat` writes it; for a driver's counter the driver's own name.
    pub name: &'b [u8],
    /// Interface of the counter.
    pub iface: Option<&'b [u8]>,
    /// Index of that interface, or 0.
    pub ifindex: u32,
    /// True if that interface is a software interface without a network card, as its kind in the kernel shows.
    pub is_virtual: bool,
    /// True for a trap with which a device drops packets, so that its counter counts losses.
    pub is_drop_trap: bool,
    /// Its CPU.
    pub cpu: Option<u32>,
    /// Its queueing discipline, as `tc qdisc` writes it: `fq_codel 8001: parent 1:2`.
    pub qdisc: Option<&'b [u8]>,
    /// Its interface, CPU, queueing discipline or device; empty if the counter belongs to the namespace.
    pub object: &'b [u8],
    /// Its value at the end of the window.
    pub value: i128,
    /// The change during the window; `None` if unknown.
    pub delta: Option<i128>,
    /// The window in nanoseconds; `None` without a first reading.
    pub window_ns: Option<u64>,
    /// The kind of its values.
    pub kind: CounterKind,
    /// A remark about the difference.
    pub note: Option<CounterNote>,
    /// A sentence about its meaning; empty for counters that this program does not know.
    pub meaning: &'static str,
}

impl Counter<'_> {
    /// The difference per second, in thousandths; `None` for gauges.
    fn per_s(&self) -> Option<u64> {
        let window_ns = u128::from(self.window_ns.filter(|ns| *ns > 0)?);
        let delta = u128::try_from(self.delta.filter(|_| self.kind == CounterKind::Counter)?).ok()?;
        u64::try_from(delta.checked_mul(1_000_000_000_000)? / window_ns).ok()
    }
}

/// True if `name` matches `pattern` with a number in place of the `#`, as in the names of per-queue counters. A
/// pattern without a `#` must equal the name.
pub fn is_numbered(pattern: &str, name: &[u8]) -> bool {
    let Some((before, behind)) = pattern.split_once('#') else { return pattern.as_bytes() == name };
    let number = name.strip_prefix(before.as_bytes()).and_then(|rest| rest.strip_suffix(behind.as_bytes()));
    number.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
}

/// A number that may be negative; null if it does not fit in 64 bits.
fn number(n: i128) -> Value<'static> {
    match (u64::try_from(n), i64::try_from(n)) {
        (Ok(n), _) => Value::U64(n),
        (_, Ok(n)) => Value::I64(n),
        _ => Value::Null,
    }
}

table! {
    /// The table of kernel counters (`counters`).
    pub enum KernelCounters of Counter = "counters";

    /// Name of the network namespace, or its inode number if it is unnamed; null for counters of the whole host.
    netns: Text = joined(LookupId::Netns, |row| row.netns_id.map_or(Key::None, Key::Id)), show Show::Wide;
    /// Inode of the network namespace; null for counters of the whole host.
    netns_id: Id = own(|row| Value::number(row.netns_id));
    /// Source of the counter in the kernel.
    source: Name(CounterSource::NAMES) = own(|row| Value::Name(row.source.name())), show Show::Default;
    /// Name of the counter as nstat, ip, tc and `ethtool -S` write it.
    name: Text = own(|row| Value::Bytes(row.name)), show Show::Default;
    /// Interface, CPU, queueing discipline or device of the counter; null for counters of the namespace or the host.
    object: Text = own(|row| Value::nonempty(row.object)), show Show::Default;
    /// Interface of the counter.
    iface: Text = own(|row| Value::text(row.iface)), kernel "IFLA_IFNAME", show Show::Wide;
    /// CPU of the counter.
    cpu: Id = own(|row| Value::number(row.cpu)), show Show::Wide;
    /// Queueing discipline of the counter with handle and parent, as tc writes them.
    qdisc: Text = own(|row| Value::text(row.qdisc)), kernel "TCA_KIND", show Show::Wide;
    /// Value at the end of the window; for counters, the total since the namespace, interface or host was created.
    value: Count = own(|row| number(row.value)), show Show::Default;
    /// Change during the window; null if unknown (see `note`), negative for gauges that fell.
    delta: Count = own(|row| row.delta.map_or(Value::Null, number)), show Show::Default;
    /// `delta` per second; null for gauges.
    per_s: Thousandths = own(|row| row.per_s().map_or(Value::Null, Value::Thousandths)), show Show::Default;
    /// Kind: counter (only grows) or gauge (goes up and down, or is a setting).
    kind: Name(CounterKind::NAMES) = own(|row| Value::Name(row.kind.name())), show Show::Wide;
    /// Note: new (not in the first reading; `delta` counts from 0 if its interface, CPU or namespace already existed),
    /// wrapped (exceeded 32 bits) or reset (smaller than before, so `delta` is unknown).
    note: Name(CounterNote::NAMES) = own(|row| row.note.map_or(Value::Null, |note| Value::Name(note.name()))),
        show Show::Wide;
    /// Time between the two readings.
    window_us: DurationUs = own(|row| Value::number(row.window_ns.map(|ns| ns / 1000))), show Show::Wide;
    /// What the counter counts, in one sentence; null for counters that netwren does not know.
    meaning: Text = own(|row| Value::nonempty(row.meaning.as_bytes())), show Show::Default;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_a_number() {
        let is = |name: &[u8]| is_numbered("rx_queue_#_drops", name);
        assert_eq!([is(b"rx_queue_0_drops"), is(b"rx_queue_12_drops")], [true, true]);
        assert_eq!([is(b"rx_queue__drops"), is(b"rx_queue_#_drops"), is(b"rx_queue_drops")], [false; 3]);
        assert_eq!([is_numbered("mtu", b"mtu"), is_numbered("mtu", b"mtu1")], [true, false]);
    }

    #[test]
    fn rates_are_of_counters_alone() {
        let row = Counter {
            netns_id: None,
            source: CounterSource::Snmp,
            name: b"UdpNoPorts",
            iface: None,
            ifindex: 0,
            is_virtual: false,
            is_drop_trap: false,
            cpu: None,
            qdisc: None,
            object: b"",
            value: 600,
            delta: Some(500),
            window_ns: Some(2_000_000_000),
            kind: CounterKind::Counter,
            note: None,
            meaning: "",
        };
        assert_eq!(row.per_s(), Some(250_000));
        assert_eq!(Counter { kind: CounterKind::Gauge, ..row }.per_s(), None);
        assert_eq!(Counter { delta: Some(-1), ..row }.per_s(), None);
        assert_eq!(Counter { window_ns: Some(0), ..row }.per_s(), None);
        assert_eq!(Counter { delta: Some(i128::MAX), ..row }.per_s(), None, "more than a number holds");
        let max = i128::from(u64::MAX);
        assert_eq!([number(max), number(max + 1), number(-1)], [Value::U64(u64::MAX), Value::Null, Value::I64(-1)]);
    }
}
