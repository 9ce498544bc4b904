//! The field table of conntrack entries. Each entry of the table defines a column, a filter word, a JSON key and a
//! line of the schema.

use super::conntrack::{Conntrack, CtCounters, CtState, CtStatus, CtTuple, NatKind, ip_proto, nat_need as need};
use crate::table::{fields, stored_once};
use crate::{Addr, Field, Key, LookupId, Owner, Show, Table, Value};

/// The table of conntrack entries.
#[derive(Clone, Copy, Debug)]
pub enum Nat {}

impl Table for Nat {
    type Row<'b> = Conntrack<'b>;
    const NAME: &'static str = "nat";
    const FIELDS: &'static [Field<Nat>] = stored_once!(F, FIELDS);
}

type F = Field<Nat>;

fn family<'r>(row: &Conntrack<'_>) -> Value<'r> {
    match row.family {
        2 => Value::Name("inet"),
        10 => Value::Name("inet6"),
        _ => Value::Null,
    }
}

fn side<'r>(row: &Conntrack<'_>, value: impl FnOnce(&CtTuple) -> Value<'r>) -> Value<'r> {
    // An expected connection has no reply tuple yet.
    if row.has_reply() { value(&row.reply) } else { Value::Null }
}

fn icmp<'r>(row: &Conntrack<'_>, part: impl FnOnce(super::IcmpPart) -> u64) -> Value<'r> {
    row.orig.icmp().map_or(Value::Null, |icmp| Value::U64(part(icmp)))
}

fn backend<'r>(row: &Conntrack<'_>) -> Value<'r> {
    row.backend().map_or(Value::Null, |(addr, port)| Value::Endpoint(addr, port))
}

fn mapped<'r>(row: &Conntrack<'_>) -> Value<'r> {
    row.mapped_source().map_or(Value::Null, |(addr, port)| Value::Endpoint(addr, port))
}

fn counter<'r>(of: Option<CtCounters>, part: impl FnOnce(CtCounters) -> u64) -> Value<'r> {
    of.map_or(Value::Null, |counters| Value::U64(part(counters)))
}

fn status_bit<'r>(row: &Conntrack<'_>, bits: u32) -> Value<'r> {
    row.status.map_or(Value::Null, |status| Value::Bool(status.0 & bits != 0))
}

fn age<'r>(row: &Conntrack<'_>) -> Value<'r> {
    let until = row.stop_ns.or(row.now_ns);
    match (row.start_ns, until) {
        (Some(start), Some(until)) => Value::U64(until.saturating_sub(start) / 1_000_000_000),
        _ => Value::Null,
    }
}

fn master<'r>(row: &Conntrack<'_>, end: impl FnOnce(&CtTuple) -> Value<'r>) -> Value<'r> {
    row.master.map_or(Value::Null, end)
}

fn owner<'r>(row: &Conntrack<'r>, part: fn(&'r Owner) -> Value<'r>) -> Value<'r> {
    row.owners.first().map_or(Value::Null, part)
}

fn by_pid(row: &Conntrack<'_>) -> Key {
    row.owners.first().map_or(Key::None, |owner| match row.owners_seen_ns {
        0 => Key::Id(owner.pid.into()),
        seen_ns => Key::Process { pid: owner.pid, seen_ns },
    })
}

const FIELDS: &[F] = fields! { F:
    /// Name of the network namespace, or its inode number if it is unnamed.
    netns: Text = joined(LookupId::Netns, |row| Key::Id(row.netns_id)), show Show::Wide;
    /// Inode of the network namespace.
    netns_id: Id = own(|row| Value::U64(row.netns_id));
    /// IP protocol; `other` for a protocol without a name here.
    proto: Name(ip_proto::NAMES) = own(|row| Value::Name(ip_proto::name(row.orig.proto))),
        kernel "CTA_PROTO_NUM", show Show::Default;
    /// IP protocol number.
    proto_number: Id = own(|row| Value::U64(row.orig.proto.into())), kernel "CTA_PROTO_NUM";
    /// Address family.
    family: Name(Addr::FAMILIES) = own(family), show Show::Wide;
    /// State of the protocol, as the kernel names it; null for protocols without states.
    state: Name(CtState::NAMES) = own(|row| row.state.map_or(Value::Null, |s| Value::Name(s.name()))),
        kernel "CTA_PROTOINFO_TCP_STATE", show Show::Default;
    /// Address translation: none, snat (of the client's address), dnat (of the service's address) or both. In a filter,
    /// `snat` and `dnat` also match `both`.
    nat: Name(NatKind::NAMES) = own(|row| row.nat().map_or(Value::Null, |nat| Value::Name(nat.name()))),
        show Show::Default;
    /// Client that opened the connection: address and port.
    client: Endpoint = own(|row| Value::Endpoint(row.orig.src, row.orig.sport())), show Show::Default;
    /// Client's address and port after source NAT, as the backend sees them; null if they are not rewritten.
    mapped: Endpoint = own(mapped), show Show::Default;
    /// Address and port that the client connects to (before destination NAT).
    published: Endpoint = own(|row| Value::Endpoint(row.orig.dst, row.orig.dport())), show Show::Default;
    /// Address and port that answer; they differ from `published` after destination NAT.
    backend: Endpoint = own(backend), show Show::Default;
    /// Time until the entry expires, unless another packet arrives.
    timeout_s: DurationS = own(|row| Value::number(row.timeout_s)), kernel "CTA_TIMEOUT", show Show::Default;
    /// Status bits. A filter matches if the named bit is set: `status = assured`, `status != seen_reply`.
    status: Words(CtStatus::NAMES) = own(|row| {
        row.status.map_or(Value::Null, |status| Value::Bits(status.0, CtStatus::NAMES))
    }), kernel "CTA_STATUS", needs need::STATUS, show Show::Wide;
    /// True if the entry has expired but still counts until the kernel collects it; null if unknown.
    expired: Bool = own(|row| row.expired.map_or(Value::Null, Value::Bool)), needs need::EXPIRED;
    /// Source address of the original direction.
    orig_src: Addr = own(|row| Value::Addr(row.orig.src)), kernel "CTA_TUPLE_ORIG", show Show::Wide;
    /// Source port of the original direction.
    orig_sport: Port = own(|row| Value::number(row.orig.sport())), show Show::Wide;
    /// Destination address of the original direction.
    orig_dst: Addr = own(|row| Value::Addr(row.orig.dst)), show Show::Wide;
    /// Destination port of the original direction.
    orig_dport: Port = own(|row| Value::number(row.orig.dport())), show Show::Wide;
    /// Source address of the reply direction.
    reply_src: Addr = own(|row| side(row, |reply| Value::Addr(reply.src))), kernel "CTA_TUPLE_REPLY", show Show::Wide;
    /// Source port of the reply direction.
    reply_sport: Port = own(|row| side(row, |reply| Value::number(reply.sport()))), show Show::Wide;
    /// Destination address of the reply direction: after source NAT, the client's rewritten address.
    reply_dst: Addr = own(|row| side(row, |reply| Value::Addr(reply.dst))), show Show::Wide;
    /// Destination port of the reply direction.
    reply_dport: Port = own(|row| side(row, |reply| Value::number(reply.dport()))), show Show::Wide;
    /// ICMP type of the original direction.
    icmp_type: Id = own(|row| icmp(row, |icmp| icmp.kind.into())), show Show::Wide;
    /// ICMP code of the original direction.
    icmp_code: Id = own(|row| icmp(row, |icmp| icmp.code.into())), show Show::Wide;
    /// ICMP identifier of the original direction.
    icmp_id: Id = own(|row| icmp(row, |icmp| icmp.id.into())), show Show::Wide;
    /// Bytes that the client sent; null unless accounting is on (nf_conntrack_acct).
    bytes_out: Bytes = own(|row| counter(row.counters_orig, |c| c.bytes)),
        kernel "CTA_COUNTERS_ORIG", needs need::COUNTERS, show Show::Wide;
    /// Bytes that the client received; null unless accounting is on.
    bytes_in: Bytes = own(|row| counter(row.counters_reply, |c| c.bytes)),
        kernel "CTA_COUNTERS_REPLY", needs need::COUNTERS, show Show::Wide;
    /// Packets that the client sent; null unless accounting is on.
    packets_out: Count = own(|row| counter(row.counters_orig, |c| c.packets)),
        kernel "CTA_COUNTERS_ORIG", needs need::COUNTERS, show Show::Wide;
    /// Packets that the client received; null unless accounting is on.
    packets_in: Count = own(|row| counter(row.counters_reply, |c| c.packets)),
        kernel "CTA_COUNTERS_REPLY", needs need::COUNTERS, show Show::Wide;
    /// Age of the entry; null unless timestamps are on (nf_conntrack_timestamp).
    age_s: DurationS = own(age), kernel "CTA_TIMESTAMP_START", needs need::TIMES, show Show::Wide;
    /// Mark.
    mark: Hex = own(|row| Value::number(row.mark)), kernel "CTA_MARK", show Show::Wide, zero_is_null true;
    /// Conntrack zone of either direction; null for the default zone, 0.
    zone: Id = own(|row| Value::number(row.any_zone())),
        kernel "CTA_ZONE", needs need::ZONE, show Show::Wide, zero_is_null true;
    /// Labels, by their names in connlabel.conf, or by number.
    label: Words(&[]) = own(|row| row.label_words.map_or(Value::Null, Value::Words)),
        kernel "CTA_LABELS", needs need::LABELS, show Show::Wide;
    /// Conntrack helper that inspects the connection (ftp, sip, …).
    helper: Text = own(|row| Value::text(row.helper)), kernel "CTA_HELP_NAME", needs need::HELPER, show Show::Wide;
    /// Client of the master connection, which announced this one.
    master_client: Endpoint = own(|row| master(row, |m| Value::Endpoint(m.src, m.sport()))),
        kernel "CTA_TUPLE_MASTER", needs need::MASTER;
    /// Address and port that the master connection's client connects to.
    master_published: Endpoint = own(|row| master(row, |m| Value::Endpoint(m.dst, m.dport()))),
        kernel "CTA_TUPLE_MASTER", needs need::MASTER;
    /// True if packets bypass the network stack through a flowtable or the network card.
    offload: Bool = own(|row| status_bit(row, CtStatus::OFFLOAD | CtStatus::HW_OFFLOAD)),
        kernel "IPS_OFFLOAD", needs need::STATUS;
    /// Security context.
    secctx: Text = own(|row| Value::text(row.secctx)), kernel "CTA_SECCTX_NAME", needs need::SECCTX;
    /// ID of the entry, as `conntrack -o id` shows it.
    id: Id = own(|row| Value::number(row.id)), kernel "CTA_ID", needs need::ID;
    /// Number of references to the entry.
    uses: Count = own(|row| Value::number(row.uses)), kernel "CTA_USE", needs need::USES;
    /// Name of the process that owns the connection's socket in the entry's namespace (the first of several). If no
    /// process there does, --all-netns shows the backend's, or a forwarded client's, in another namespace of this host.
    process: Text = own(|row| owner(row, |o| Value::Bytes(o.process.as_bytes()))),
        needs need::OWNERS, show Show::Default;
    /// PID of the process in `process`.
    pid: Id = own(|row| owner(row, |o| Value::U64(o.pid.into()))), needs need::OWNERS, show Show::Default;
    /// All owners of that socket: PID, name, file descriptor and start time (ms since boot).
    owners: Owners = own(|row| if row.owners.is_empty() { Value::Null } else { Value::Owners(row.owners) }),
        needs need::OWNERS, show Show::Wide;
    /// Command line of the first owner, its arguments separated by spaces.
    cmdline: Text = joined(LookupId::Cmdlines, by_pid), needs need::OWNERS;
    /// Container of the first owner: its name, or the start of its ID.
    container: Text = joined(LookupId::Containers, by_pid), needs need::OWNERS;
    /// Kubernetes pod of the first owner as namespace/name; its UID if the name is unknown.
    pod: Text = joined(LookupId::Pods, by_pid), needs need::OWNERS;
    /// Innermost systemd unit of the first owner.
    unit: Text = joined(LookupId::Units, by_pid), needs need::OWNERS;
};

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{Addr, Lookups, field_index};

    fn cell(row: &Conntrack<'_>, name: &str) -> String {
        let field = &Nat::FIELDS[field_index::<Nat>(name).unwrap()];
        format!("{:?}", field.cell(row, &Lookups::empty()))
    }

    fn tuple(proto: u8, src: (u8, u16), dst: (u8, u16)) -> CtTuple {
        let of = |last| Addr::V4([10, 0, 0, last]);
        CtTuple { src: of(src.0), dst: of(dst.0), proto, src_part: src.1, dst_part: dst.1, zone: None }
    }

    fn view(row: &Conntrack<'_>) -> [String; 5] {
        let text = |name| match Nat::FIELDS[field_index::<Nat>(name).unwrap()].cell(row, &Lookups::empty()) {
            Value::Endpoint(addr, Some(port)) => format!("{addr}:{port}"),
            Value::Endpoint(addr, None) => addr.to_string(),
            Value::Name(word) => word.to_owned(),
            other => format!("{other:?}"),
        };
        [text("nat"), text("client"), text("mapped"), text("published"), text("backend")]
    }

    #[test]
    fn from_the_client_to_the_backend() {
        let row = |bits: u32, orig, reply| Conntrack { status: Some(CtStatus(bits)), orig, reply, ..Conntrack::EMPTY };
        let plain = row(0, tuple(6, (1, 4000), (2, 80)), tuple(6, (2, 80), (1, 4000)));
        assert_eq!(view(&plain), ["none", "10.0.0.1:4000", "Null", "10.0.0.2:80", "10.0.0.2:80"]);
        let dnat = row(1 << 5, tuple(6, (1, 4000), (2, 8080)), tuple(6, (9, 80), (1, 4000)));
        assert_eq!(view(&dnat), ["dnat", "10.0.0.1:4000", "Null", "10.0.0.2:8080", "10.0.0.9:80"]);
        let snat = row(1 << 4, tuple(17, (1, 4000), (2, 53)), tuple(17, (2, 53), (7, 1024)));
        assert_eq!(view(&snat), ["snat", "10.0.0.1:4000", "10.0.0.7:1024", "10.0.0.2:53", "10.0.0.2:53"]);
        let both = row(3 << 4, tuple(6, (1, 4000), (2, 8080)), tuple(6, (9, 80), (7, 1024)));
        assert_eq!(view(&both), ["both", "10.0.0.1:4000", "10.0.0.7:1024", "10.0.0.2:8080", "10.0.0.9:80"]);
        // An ICMP reply has a different type than the request, so the tuples differ even without rewriting.
        let ping = row(1 << 4, tuple(1, (1, 77), (2, 0x0800)), tuple(1, (2, 77), (7, 0)));
        assert_eq!(view(&ping), ["snat", "10.0.0.1", "10.0.0.7", "10.0.0.2", "10.0.0.2"]);
        assert_eq!((cell(&ping, "icmp_type"), cell(&ping, "icmp_id")), ("U64(8)".into(), "U64(77)".into()));
        assert_eq!(cell(&ping, "orig_sport"), "Null");
        let expected = Conntrack { orig: tuple(6, (1, 0), (2, 4242)), ..Conntrack::EMPTY };
        assert_eq!(view(&expected)[1..], ["10.0.0.1:0", "Null", "10.0.0.2:4242", "Null"]);
        assert_eq!(cell(&expected, "reply_src"), "Null");
    }

    #[test]
    fn ages_zones_and_words() {
        let row = Conntrack { start_ns: Some(5_000_000_000), now_ns: Some(12_900_000_000), ..Conntrack::EMPTY };
        assert_eq!(cell(&row, "age_s"), "U64(7)");
        assert_eq!(cell(&Conntrack { stop_ns: Some(6_000_000_000), ..row }, "age_s"), "U64(1)");
        assert_eq!(cell(&Conntrack { now_ns: Some(0), ..row }, "age_s"), "U64(0)", "clocks go back");
        assert_eq!(cell(&Conntrack { start_ns: None, ..row }, "age_s"), "Null");
        let one_sided = CtTuple { zone: Some(4), ..CtTuple::EMPTY };
        assert_eq!(cell(&Conntrack { orig: one_sided, ..row }, "zone"), "U64(4)");
        assert_eq!(cell(&Conntrack { zone: Some(5), ..row }, "zone"), "U64(5)");
        let sctp = Conntrack { orig: tuple(132, (1, 1), (2, 2)), state: Some(CtState::Sctp(4)), ..row };
        assert_eq!(
            (cell(&sctp, "proto"), cell(&sctp, "state")),
            ("Name(\"sctp\")".into(), "Name(\"established\")".into())
        );
        assert_eq!(cell(&Conntrack { orig: tuple(253, (1, 0), (2, 0)), ..row }, "proto"), "Name(\"other\")");
    }
}
