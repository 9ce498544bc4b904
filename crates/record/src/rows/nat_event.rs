//! Conntrack events: an entry was created, changed or removed.

use super::{Conntrack, Nat};
use crate::named_enum::named_enum;
use crate::table::stored_once;
use crate::{Field, Get, Key, Kind, Show, Table, Value};

/// The table of conntrack events (`nat events`).
#[derive(Clone, Copy, Debug)]
pub enum NatEvents {}

impl Table for NatEvents {
    type Row<'b> = NatEvent<'b>;
    const NAME: &'static str = "nat events";
    const FIELDS: &'static [Field<NatEvents>] = stored_once!(F, FIELDS);
}

named_enum! {
    /// The kind of event.
    pub enum NatEventKind {
        /// The entry was created.
        New => "new",
        /// The entry changed: its state, its status or its mark.
        Update => "update",
        /// The entry was removed.
        Destroy => "destroy",
        /// The entry exists: a dump after a loss of events reported it.
        Live => "live",
    }
}

/// One event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NatEvent<'b> {
    /// The kind of event.
    pub kind: NatEventKind,
    /// Time of the event, in ns since 1970.
    pub time_ns: u64,
    /// Lifetime of the entry; `None` unless the entry was removed and its start is known.
    pub duration_us: Option<u64>,
    /// Port id of the netlink socket through which a process made the change; 0 if a packet or a timeout caused it.
    pub portid: u32,
    /// The entry, as far as the event describes it.
    pub entry: &'b Conntrack<'b>,
}

impl NatEvent<'static> {
    /// A row with all values unset.
    pub const EMPTY: NatEvent<'static> =
        NatEvent { kind: NatEventKind::New, time_ns: 0, duration_us: None, portid: 0, entry: &Conntrack::EMPTY };
}

impl NatEvent<'_> {
    /// When the entry was created, in ns since 1970, if it was removed and its lifetime is known.
    fn began_ns(&self) -> Option<u64> {
        self.time_ns.checked_sub(self.duration_us?.checked_mul(1000)?)
    }

    /// The client as others see it: the destination of replies.
    fn external<'r>(&self) -> Value<'r> {
        let reply = &self.entry.reply;
        match reply.proto {
            0 => Value::Null,
            _ => Value::Endpoint(reply.dst, reply.dport()),
        }
    }
}

/// Bits of fields that some backends cannot deliver, in addition to the bits of the conntrack table.
pub mod nat_event_need {
    /// Lifetime of the entry.
    pub const DURATION: u64 = 1 << 62;
    /// Values that only kernel messages contain: timeout, sender.
    pub const MESSAGE: u64 = 1 << 61;
}

type F = Field<NatEvents>;

/// The index of the field called `name` in the conntrack table. An unknown name returns the table's length, which
/// fails to compile when used as an index.
const fn index_of(name: &str) -> usize {
    let mut index = 0;
    while index < Nat::FIELDS.len() && !is_same(Nat::FIELDS[index].name, name) {
        index += 1;
    }
    index
}

const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut index = 0;
    while index < one.len() && index < other.len() && one[index] == other[index] {
        index += 1;
    }
    index == one.len() && index == other.len()
}

fn cell<'r, const INDEX: usize>(row: &'r NatEvent<'_>) -> Value<'r> {
    match const { &Nat::FIELDS[INDEX] }.get {
        Get::Own(get) => get(row.entry),
        _ => Value::Null,
    }
}

fn key<const INDEX: usize>(row: &NatEvent<'_>) -> Key {
    match const { &Nat::FIELDS[INDEX] }.get {
        Get::Joined { key, .. } => key(row.entry),
        _ => Key::None,
    }
}

/// Makes a field of an event from the field with this index in the conntrack table; it reads the event's entry.
const fn field_at<const INDEX: usize>(show: Show) -> F {
    let field = &Nat::FIELDS[INDEX];
    let made = match field.get {
        Get::Joined { lookup, .. } => F::joined(field.name, field.kind, lookup, key::<INDEX>),
        _ => F::own(field.name, field.kind, cell::<INDEX>),
    };
    made.doc(field.doc).kernel(field.kernel).needs(field.need).zero_is_null(field.zero_is_null).show(show)
}

const FIELDS: &[F] = &[
    F::own("event", Kind::Name(NatEventKind::NAMES), |row| Value::Name(row.kind.name()))
        .doc(
            "Event: new, update (of state, status or mark), destroy, or live (found by a dump after events were lost, \
              with --resync).",
        )
        .show(Show::Default),
    F::own("time", Kind::Time, |row| Value::Time(row.time_ns))
        .doc(
            "Time of the event if the kernel reports it, otherwise of its arrival. A filter accepts 10:30 (local time \
             today), -5m (relative to now; in a replay, to its start) and 2026-11-22T10:30:00Z.",
        )
        .show(Show::Default),
    F::own("duration_us", Kind::DurationUs, |row| Value::number(row.duration_us))
        .needs(nat_event_need::DURATION)
        .doc(
            "Lifetime of the entry; null until it is destroyed, and if it is older than netwren, unless timestamps are \
              on (nf_conntrack_timestamp).",
        )
        .show(Show::Default),
    F::own("start", Kind::Time, |row| row.began_ns().map_or(Value::Null, Value::Time))
        .needs(nat_event_need::DURATION)
        .doc("Time at which the entry was created; null if `duration_us` is null or the entry still exists."),
    F::own("external", Kind::Endpoint, |row| row.external())
        .doc("Client's address and port as the destination sees them, whether rewritten or not; null if unknown."),
    field_at::<{ index_of("netns") }>(Show::Wide),
    field_at::<{ index_of("netns_id") }>(Show::Asked),
    field_at::<{ index_of("proto") }>(Show::Default),
    field_at::<{ index_of("proto_number") }>(Show::Asked),
    field_at::<{ index_of("family") }>(Show::Wide),
    field_at::<{ index_of("state") }>(Show::Default),
    field_at::<{ index_of("nat") }>(Show::Default),
    field_at::<{ index_of("client") }>(Show::Default),
    field_at::<{ index_of("mapped") }>(Show::Default),
    field_at::<{ index_of("published") }>(Show::Default),
    field_at::<{ index_of("backend") }>(Show::Default),
    field_at::<{ index_of("bytes_out") }>(Show::Default),
    field_at::<{ index_of("bytes_in") }>(Show::Default),
    field_at::<{ index_of("packets_out") }>(Show::Wide),
    field_at::<{ index_of("packets_in") }>(Show::Wide),
    field_at::<{ index_of("status") }>(Show::Wide),
    field_at::<{ index_of("orig_src") }>(Show::Wide),
    field_at::<{ index_of("orig_sport") }>(Show::Wide),
    field_at::<{ index_of("orig_dst") }>(Show::Wide),
    field_at::<{ index_of("orig_dport") }>(Show::Wide),
    field_at::<{ index_of("reply_src") }>(Show::Wide),
    field_at::<{ index_of("reply_sport") }>(Show::Wide),
    field_at::<{ index_of("reply_dst") }>(Show::Wide),
    field_at::<{ index_of("reply_dport") }>(Show::Wide),
    field_at::<{ index_of("icmp_type") }>(Show::Wide),
    field_at::<{ index_of("icmp_code") }>(Show::Wide),
    field_at::<{ index_of("icmp_id") }>(Show::Wide),
    field_at::<{ index_of("mark") }>(Show::Wide),
    field_at::<{ index_of("zone") }>(Show::Wide),
    field_at::<{ index_of("offload") }>(Show::Asked),
    field_at::<{ index_of("timeout_s") }>(Show::Asked).needs(nat_event_need::MESSAGE),
    field_at::<{ index_of("label") }>(Show::Asked),
    field_at::<{ index_of("helper") }>(Show::Asked),
    field_at::<{ index_of("master_client") }>(Show::Asked),
    field_at::<{ index_of("master_published") }>(Show::Asked),
    field_at::<{ index_of("secctx") }>(Show::Asked),
    field_at::<{ index_of("id") }>(Show::Asked),
    F::own("portid", Kind::Id, |row| if row.portid == 0 { Value::Null } else { Value::U64(row.portid.into()) })
        .needs(nat_event_need::MESSAGE)
        .kernel("nlmsg_pid")
        .doc(
            "Port ID of the netlink socket through which a process made the change; null if a packet or a timeout \
              caused it.",
        ),
    field_at::<{ index_of("process") }>(Show::Asked),
    field_at::<{ index_of("pid") }>(Show::Asked),
    field_at::<{ index_of("owners") }>(Show::Asked),
    field_at::<{ index_of("cmdline") }>(Show::Asked),
    field_at::<{ index_of("container") }>(Show::Asked),
    field_at::<{ index_of("pod") }>(Show::Asked),
    field_at::<{ index_of("unit") }>(Show::Asked),
];

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::rows::{CtCounters, CtTuple, ip_proto};
    use crate::{LookupId, Lookups, field_index};

    #[test]
    fn the_event_comes_first() {
        assert_eq!(FIELDS[..3].iter().map(|f| f.name).collect::<Vec<_>>(), ["event", "time", "duration_us"]);
    }

    #[test]
    fn the_fields_of_an_entry_are_those_of_its_table() {
        let counters = CtCounters { packets: 3, bytes: 180 };
        let orig = CtTuple { proto: ip_proto::TCP, src_part: 4000, dst_part: 80, ..CtTuple::EMPTY };
        let entry = Conntrack { orig, counters_orig: Some(counters), netns_id: 7, mark: Some(5), ..Conntrack::EMPTY };
        let row = NatEvent { entry: &entry, ..NatEvent::EMPTY };
        let mut shared = 0;
        for field in FIELDS {
            let Some(index) = field_index::<Nat>(field.name) else { continue };
            shared += 1;
            let of_entry = &Nat::FIELDS[index];
            assert_eq!(field.cell(&row, &Lookups::empty()), of_entry.cell(&entry, &Lookups::empty()), "{}", field.name);
            assert_eq!((field.kind, field.doc, field.lookup()), (of_entry.kind, of_entry.doc, of_entry.lookup()));
        }
        assert!(shared > 30, "{shared}");
        let netns = &FIELDS[field_index::<NatEvents>("netns").unwrap()];
        assert_eq!(netns.lookup(), Some(LookupId::Netns));
        match netns.get {
            Get::Joined { key, .. } => assert_eq!(key(&row), Key::Id(7)),
            _ => unreachable!(),
        }
    }
}
