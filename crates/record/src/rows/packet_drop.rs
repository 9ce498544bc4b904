//! Packets that the kernel drops, one row per reason, place, network namespace, interface and protocol (`drops`).

use crate::named_enum::named_enum;
use crate::rows::captured_packet::LinkType;
use crate::rows::dropping_rule::{DroppingRule, RuleBasis};
use crate::rows::ip_proto;
use crate::rows::logging_rule::text;
use crate::table::table;
use crate::{Addr, Key, Link, LookupId, Owner, RowLink, Show, Value};

named_enum! {
    /// A netfilter hook.
    pub enum NetfilterHook {
        /// Before routing.
        Prerouting => "prerouting",
        /// Packets addressed to this host.
        Input => "input",
        /// Packets forwarded by this host.
        Forward => "forward",
        /// Packets sent by this host.
        Output => "output",
        /// After routing.
        Postrouting => "postrouting",
        /// Packets arriving from an interface.
        Ingress => "ingress",
        /// Packets leaving through an interface.
        Egress => "egress",
    }
}

named_enum! {
    /// The counter that recorded a loss.
    #[derive(Default)]
    pub enum CountedIn {
        /// The loss has no counter: the drop of the packet itself was observed.
        #[default]
        Packet => "packet",
        /// /proc/net/snmp
        Snmp => "snmp",
        /// /proc/net/snmp6
        Snmp6 => "snmp6",
        /// /proc/net/netstat
        Netstat => "netstat",
        /// /proc/net/softnet_stat, per CPU.
        Softnet => "softnet",
        /// An interface.
        Iface => "iface",
        /// A queueing discipline.
        Qdisc => "qdisc",
        /// The driver of an interface (`ethtool -S`).
        Driver => "driver",
        /// A trap of a device (devlink): the hardware dropped the packet and counts it.
        Trap => "trap",
        /// Connection tracking.
        Conntrack => "conntrack",
        /// A socket.
        Socket => "socket",
    }
}

/// Packets that were dropped for one reason at one place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PacketDrop<'b> {
    /// Inode of the network namespace; 0 if unknown.
    pub netns_id: u64,
    /// Index of the interface that the packets arrived on or would have left through; 0 without an interface.
    pub ifindex: u32,
    /// The counter that recorded them. Rows from counters have no place, addresses and total.
    pub counted_in: CountedIn,
    /// Packets in this round.
    pub count: u64,
    /// Packets since the run began.
    pub total: u64,
    /// Bytes of the packets in this round.
    pub bytes: u64,
    /// Packets per second in this round, in thousandths.
    pub per_s: u64,
    /// The kernel's name for the reason; empty on kernels without drop reasons.
    pub reason: &'b [u8],
    /// The kernel's number for the reason.
    pub reason_number: u32,
    /// The function that dropped the packets; empty if the kernel hides its symbols.
    pub place: &'b [u8],
    /// The address in that function; 0 if the kernel hides addresses.
    pub place_address: u64,
    /// The hook at which a rule, or conntrack, dropped them.
    pub hook: Option<NetfilterHook>,
    /// The hook suggested by the packets' route: one of several that they may have been at.
    pub route_hook: Option<NetfilterHook>,
    /// The rule that dropped them; `None` unless requested and known.
    pub rule: Option<&'b DroppingRule<'b>>,
    /// EtherType of the first packet.
    pub ethertype: u16,
    /// IP protocol of the first packet.
    pub l4: Option<u8>,
    /// Addresses of the first packet.
    pub ends: Option<(Addr, Addr)>,
    /// Ports of the first packet.
    pub ports: Option<(u16, u16)>,
    /// FIN (1), SYN (2), RST (4) and ACK (16) of the first packet, if it is a TCP segment and its flags are known.
    pub tcp_flags: Option<u8>,
    /// Remaining length of the first packet in bytes when it was dropped.
    pub first_bytes: u32,
    /// Inode of the socket that the first packet was for, or that sent it; 0 without a socket.
    pub socket_inode: u32,
    /// User of that socket.
    pub uid: Option<u32>,
    /// The functions that led there, innermost first, joined by commas.
    pub stack: &'b [u8],
    /// A sentence about the reason; empty if this program does not know it.
    pub meaning: &'static str,
    /// The role that can act; empty if no action is needed.
    pub ask: &'static str,
    /// Next step for the reader; empty without advice.
    pub remedy: &'static str,
    /// True if such drops are routine.
    pub benign: bool,
}

/// Words of field `proto`: IP protocols and ARP.
const PROTOCOLS: &[&str] = &[
    "tcp", "udp", "icmp", "icmpv6", "sctp", "udplite", "dccp", "gre", "esp", "ah", "igmp", "ipip", "ipv6", "ospf",
    "pim", "vrrp", "l2tp", "other", "arp",
];
const ETH_P_ARP: u16 = 0x0806;
const ETH_P_IP: u16 = 0x0800;
const ETH_P_IPV6: u16 = 0x86dd;

impl PacketDrop<'_> {
    fn proto(&self) -> Value<'static> {
        match (self.l4, self.ethertype) {
            (Some(number), _) => Value::Name(ip_proto::name(number)),
            (None, ETH_P_ARP) => Value::Name("arp"),
            // The IP protocol is unknown.
            (None, 0 | ETH_P_IP | ETH_P_IPV6) => Value::Null,
            _ => Value::Name("other"),
        }
    }
}

impl<'b> PacketDrop<'b> {
    /// The stack; null if it was not recorded.
    fn stack(&self) -> Value<'b> {
        if self.stack.is_empty() { Value::Null } else { Value::Words(self.stack) }
    }

    fn owners(&self) -> Key {
        if self.socket_inode == 0 { Key::None } else { Key::Id(self.socket_inode.into()) }
    }

    fn user(&self) -> Key {
        self.uid.map_or(Key::None, |uid| Key::Id(uid.into()))
    }

    fn hook(&self) -> Value<'static> {
        self.hook.map_or(Value::Null, |hook| Value::Name(hook.name()))
    }

    /// A part of the rule that dropped them.
    fn of_rule<V>(&self, part: fn(&DroppingRule<'b>) -> Option<V>) -> Option<V> {
        self.rule.and_then(part)
    }

    fn basis_value(&self) -> Value<'static> {
        self.rule.map_or(Value::Null, |rule| Value::Name(rule.basis.name()))
    }

    fn netns(&self) -> Key {
        if self.netns_id == 0 { Key::None } else { Key::Id(self.netns_id) }
    }

    /// The source address (0) or the destination address (1).
    fn end(&self, which: usize) -> Value<'static> {
        let end = self.ends.map(|(src, dst)| [src, dst]).and_then(|ends| ends.get(which).copied());
        end.map_or(Value::Null, Value::Addr)
    }

    fn port(&self, which: usize) -> Value<'static> {
        Value::number(self.ports.map(|(sport, dport)| [sport, dport]).and_then(|ports| ports.get(which).copied()))
    }
}

const LINK: Link<Drops> = Link {
    of: |row| RowLink::index(row.netns_id, row.ifindex),
    names: &["iface"],
    numbers: &["ifindex"],
    in_rows: false,
};
const EVENT_LINK: Link<DropEvents> = Link {
    of: |row| RowLink::index(row.packet.netns_id, row.packet.ifindex),
    names: LINK.names,
    numbers: LINK.numbers,
    in_rows: false,
};

fn owners_key(row: &PacketDrop<'_>) -> Key {
    row.owners()
}

fn no_key(_: &PacketDrop<'_>) -> Key {
    Key::None
}

fn by_pid(_: Key, owner: &Owner) -> Key {
    Key::Id(owner.pid.into())
}

fn optional(number: u64) -> Value<'static> {
    if number == 0 { Value::Null } else { Value::U64(number) }
}

table! {
    /// The table of dropped packets (`drops`).
    pub enum Drops of PacketDrop = "drops";

    /// Packets lost during the run, or with --watch during the round.
    count: Count = own(|row| Value::U64(row.count)), show Show::Default;
    /// Packets lost per second during that time.
    per_s: Thousandths = own(|row| Value::Thousandths(row.per_s)), show Show::Default;
    /// Drop reason by the kernel's name, which may differ between kernels; null before Linux 5.17. For a loss that only
    /// a counter shows, the counter's name; for hardware, the trap's name.
    reason: Text = own(|row| Value::nonempty(row.reason)), kernel "enum skb_drop_reason", show Show::Default;
    /// What counted the loss: packet (a packet dropped at `place`), or for losses that only a counter shows, its source
    /// in `netwren counters`, or a socket.
    counted_in: Name(CountedIn::NAMES) = own(|row| Value::Name(row.counted_in.name())), show Show::Wide;
    /// Kernel function that dropped the packets, or its address if the kernel hides function names. For hardware, the
    /// device.
    place: Text = own(|row| Value::nonempty(row.place)), kernel "kfree_skb:location", show Show::Default;
    /// Netfilter hook at which a rule or conntrack dropped the packets.
    hook: Name(NetfilterHook::NAMES) = own(|row| row.hook()),
        show Show::Default;
    /// nft rule that dropped the packets, with its location: `inet t chain handle 4: TEXT`. If several rules are
    /// possible, their locations after `one of N:`; null if no rule listed by nft dropped them. Needs Linux 6.12.
    rule: Text = own(|row| Value::text(row.rule.map(|rule| rule.text))), show Show::Default, needs drop_need::RULE;
    /// How certain the rule is: certain (no other rule can have dropped them), counter (its counter grew by the same
    /// number of packets) or candidates (one of several).
    rule_basis: Name(RuleBasis::NAMES) = own(|row| row.basis_value()), show Show::Wide, needs drop_need::RULE;
    /// Number of rules and chain policies that can have dropped the packets.
    rule_candidates: Count = own(|row| Value::number(row.of_rule(|rule| Some(rule.candidates)))),
        needs drop_need::RULE;
    /// Table of that rule, with its family; null if several rules can have dropped the packets.
    rule_table: Text = own(|row| text(row.of_rule(|rule| rule.table))), needs drop_need::RULE;
    /// Chain of that rule.
    rule_chain: Text = own(|row| text(row.of_rule(|rule| rule.chain))), needs drop_need::RULE;
    /// Handle of that rule (nft -a list ruleset); null for a chain's policy.
    rule_handle: Id = own(|row| Value::number(row.of_rule(|rule| rule.handle))), needs drop_need::RULE;
    /// IP protocol, arp or other.
    proto: Name(PROTOCOLS) = own(|row| row.proto()), show Show::Default;
    /// Interface on which the packets arrived, or through which they would have left.
    iface: Text = joined(LookupId::Ifaces, |row| Key::Pair(row.netns_id, row.ifindex)),
        kernel "sk_buff:dev, skb_iif", show Show::Default;
    /// Source address of the first packet.
    src: Addr = own(|row| row.end(0)), show Show::Default, link &LINK;
    /// Destination address of the first packet.
    dst: Addr = own(|row| row.end(1)), show Show::Default, link &LINK;
    /// Source port of the first packet.
    sport: Port = own(|row| row.port(0)), show Show::Wide;
    /// Destination port of the first packet.
    dport: Port = own(|row| row.port(1)), show Show::Default;
    /// Process that sent the first packet, or would have received it: the owner of its socket at the end of the round.
    process: Text = owners(owners_key, Some(|o| Value::Bytes(o.process.as_bytes()))), show Show::Default;
    /// PID of that process.
    pid: Id = owners(owners_key, Some(|o| Value::U64(o.pid.into()))), show Show::Wide;
    /// Container of that process (docker, podman, containerd, LXC): its name, or the start of its ID.
    container: Text = owners_joined(LookupId::Containers, owners_key, by_pid, no_key), show Show::Wide;
    /// Meaning of the drop reason at this place.
    meaning: Text = own(|row| Value::nonempty(row.meaning.as_bytes())), show Show::Default;
    /// Role that can act on it.
    ask: Text = own(|row| Value::nonempty(row.ask.as_bytes())), show Show::Wide;
    /// Next step, and the remedy.
    remedy: Text = own(|row| Value::nonempty(row.remedy.as_bytes())), show Show::Wide;
    /// True if such drops are routine and harmless: shown only with --all or a filter on `benign`.
    benign: Bool = own(|row| Value::Bool(row.benign)), show Show::Wide;
    /// Name of the network namespace, or its inode number if it is unnamed; null if the packets belonged to no
    /// namespace.
    netns: Text = joined(LookupId::Netns, |row| row.netns()),
        show Show::Wide;
    /// Inode of the network namespace.
    netns_id: Id = own(|row| optional(row.netns_id));
    /// User ID of the socket that sent the first packet or would have received it.
    uid: Id = own(|row| Value::number(row.uid)), kernel "sk_uid";
    /// User name for `uid`.
    user: Text = joined(LookupId::Users, |row| row.user());
    /// Inode of that socket.
    socket_inode: Id = own(|row| optional(row.socket_inode.into())), zero_is_null true;
    /// Packets dropped since the run began; null for losses that only a counter shows.
    total: Count = own(|row| optional(row.total)), show Show::Wide;
    /// Length of the packets, as it was when they were dropped, summed over the run, or with --watch over the round.
    bytes: Bytes = own(|row| optional(row.bytes)), kernel "sk_buff:len", show Show::Wide;
    /// Index of the interface.
    ifindex: Id = own(|row| optional(row.ifindex.into())), kernel "sk_buff:dev, skb_iif", zero_is_null true;
    /// The kernel's number for the reason, which differs between kernels.
    reason_number: Id = own(|row| optional(row.reason_number.into())), kernel "enum skb_drop_reason";
    /// Address at which the kernel function dropped the packets.
    place_address: Hex = own(|row| optional(row.place_address)), kernel "kfree_skb:location";
    /// Call stack of the first drop, innermost function first.
    stack: Words(&[]) = own(|row| row.stack());
    /// EtherType of the first packet.
    ethertype: Hex = own(|row| optional(row.ethertype.into())), kernel "sk_buff:protocol";
    /// IP protocol number of the first packet.
    l4_number: Id = own(|row| Value::number(row.l4));
    /// Length of the first packet when it was dropped.
    first_bytes: Bytes = own(|row| optional(row.first_bytes.into())), kernel "sk_buff:len";
}

/// A single dropped packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DropEvent<'b> {
    /// Time of the drop, in ns since 1970.
    pub time_ns: u64,
    /// The packet; the values that count several packets are 0.
    pub packet: PacketDrop<'b>,
    /// Its bytes, if requested.
    pub frame: Option<DroppedFrame<'b>>,
    /// Owners of the socket that the packet was for, or that sent it; empty unless requested.
    pub owners: &'b [Owner],
    /// When the owners were seen, in ns of CLOCK_BOOTTIME; 0 if unknown.
    pub owners_seen_ns: u64,
}

fn owner_value<'r>(row: &DropEvent<'r>, part: fn(&'r Owner) -> Value<'r>) -> Value<'r> {
    row.owners.first().map_or(Value::Null, part)
}

fn by_holder(row: &DropEvent<'_>) -> Key {
    row.owners.first().map_or(Key::None, |owner| match row.owners_seen_ns {
        0 => Key::Id(owner.pid.into()),
        seen_ns => Key::Process { pid: owner.pid, seen_ns },
    })
}

/// The bytes of a dropped packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DroppedFrame<'b> {
    /// Length of the packet, counted from the first byte of `bytes`.
    pub len: u32,
    /// The type of its first header; `None` if unknown, in which case `bytes` is empty.
    pub link_type: Option<LinkType>,
    /// The beginning of the packet.
    pub bytes: &'b [u8],
}

table! {
    /// The table of single dropped packets (`drops --events`).
    pub enum DropEvents of DropEvent = "drops --events", ENDLESS = true;

    /// Time at which the packet was dropped.
    time: Time = own(|row| Value::Time(row.time_ns)), show Show::Default;
    /// Drop reason by the kernel's name, which may differ between kernels; null before Linux 5.17. For hardware, the
    /// trap's name.
    reason: Text = own(|row| Value::nonempty(row.packet.reason)), kernel "enum skb_drop_reason", show Show::Default;
    /// Kernel function that dropped the packet, or its address if the kernel hides function names. For hardware,
    /// `devlink` and the trap's group.
    place: Text = own(|row| Value::nonempty(row.packet.place)), kernel "kfree_skb:location", show Show::Default;
    /// Netfilter hook at which a rule or conntrack dropped the packet.
    hook: Name(NetfilterHook::NAMES) = own(|row| row.packet.hook()), show Show::Default;
    /// nft rule that dropped the packet, with its location: `inet t chain handle 4: TEXT`. If several rules are
    /// possible, their locations after `one of N:`; null if no rule listed by nft dropped it. Needs Linux 6.12.
    rule: Text = own(|row| Value::text(row.packet.rule.map(|rule| rule.text))), show Show::Wide, needs drop_need::RULE;
    /// How certain the rule is: certain (no other rule can have dropped it), counter (its counter grew by the same
    /// number of packets) or candidates (one of several).
    rule_basis: Name(RuleBasis::NAMES) = own(|row| row.packet.basis_value()), show Show::Wide, needs drop_need::RULE;
    /// Number of rules and chain policies that can have dropped the packet.
    rule_candidates: Count = own(|row| Value::number(row.packet.of_rule(|rule| Some(rule.candidates)))),
        needs drop_need::RULE;
    /// Table of that rule, with its family; null if several rules can have dropped the packet.
    rule_table: Text = own(|row| text(row.packet.of_rule(|rule| rule.table))), needs drop_need::RULE;
    /// Chain of that rule.
    rule_chain: Text = own(|row| text(row.packet.of_rule(|rule| rule.chain))), needs drop_need::RULE;
    /// Handle of that rule (nft -a list ruleset); null for a chain's policy.
    rule_handle: Id = own(|row| Value::number(row.packet.of_rule(|rule| rule.handle))), needs drop_need::RULE;
    /// IP protocol, arp or other.
    proto: Name(PROTOCOLS) = own(|row| row.packet.proto()), show Show::Default;
    /// Interface on which the packet arrived, or through which it would have left.
    iface: Text = joined(LookupId::Ifaces, |row| Key::Pair(row.packet.netns_id, row.packet.ifindex)),
        kernel "sk_buff:dev, skb_iif", show Show::Default;
    /// Source address.
    src: Addr = own(|row| row.packet.end(0)), show Show::Default, link &EVENT_LINK;
    /// Source port.
    sport: Port = own(|row| row.packet.port(0)), show Show::Default;
    /// Destination address.
    dst: Addr = own(|row| row.packet.end(1)), show Show::Default, link &EVENT_LINK;
    /// Destination port.
    dport: Port = own(|row| row.packet.port(1)), show Show::Default;
    /// Process that sent the packet or would have received it (the first of several); null if its socket was already
    /// closed when netwren looked it up. A lookup reads all sockets, at most ten times per second.
    process: Text = own(|row| owner_value(row, |o| Value::Bytes(o.process.as_bytes()))), show Show::Wide,
        needs drop_need::OWNERS;
    /// PID of that process.
    pid: Id = own(|row| owner_value(row, |o| Value::U64(o.pid.into()))), show Show::Wide, needs drop_need::OWNERS;
    /// Container of that process: its name, or the start of its ID.
    container: Text = joined(LookupId::Containers, by_holder), show Show::Wide, needs drop_need::OWNERS;
    /// Kubernetes pod of that process as namespace/name; its UID if the name is unknown.
    pod: Text = joined(LookupId::Pods, by_holder), needs drop_need::OWNERS;
    /// Innermost systemd unit of that process.
    unit: Text = joined(LookupId::Units, by_holder), needs drop_need::OWNERS;
    /// Length of the packet when it was dropped.
    len: Bytes = own(|row| optional(row.packet.first_bytes.into())), kernel "sk_buff:len", show Show::Default;
    /// Meaning of the drop reason at this place.
    meaning: Text = own(|row| Value::nonempty(row.packet.meaning.as_bytes())), show Show::Wide;
    /// Role that can act on it.
    ask: Text = own(|row| Value::nonempty(row.packet.ask.as_bytes()));
    /// Next step, and the remedy.
    remedy: Text = own(|row| Value::nonempty(row.packet.remedy.as_bytes()));
    /// True if such drops are routine and harmless: shown only with --all or a filter on `benign`.
    benign: Bool = own(|row| Value::Bool(row.packet.benign)), show Show::Wide;
    /// Name of the network namespace, or its inode number if it is unnamed; null if the packet belonged to no
    /// namespace.
    netns: Text = joined(LookupId::Netns, |row| row.packet.netns()), show Show::Wide;
    /// User ID of the socket that sent the packet or would have received it.
    uid: Id = own(|row| Value::number(row.packet.uid)), kernel "sk_uid";
    /// User name for `uid`.
    user: Text = joined(LookupId::Users, |row| row.packet.user());
    /// Inode of that socket.
    socket_inode: Id = own(|row| optional(row.packet.socket_inode.into()));
    /// Inode of the network namespace.
    netns_id: Id = own(|row| optional(row.packet.netns_id));
    /// Index of the interface.
    ifindex: Id = own(|row| optional(row.packet.ifindex.into())), kernel "sk_buff:dev, skb_iif";
    /// The kernel's number for the reason, which differs between kernels.
    reason_number: Id = own(|row| Value::U64(row.packet.reason_number.into())), kernel "enum skb_drop_reason";
    /// Address at which the kernel function dropped the packet.
    place_address: Hex = own(|row| optional(row.packet.place_address)), kernel "kfree_skb:location";
    /// Call stack of the drop, innermost function first; costs 3 microseconds more per dropped packet.
    stack: Words(&[]) = own(|row| row.packet.stack()), needs drop_need::STACK;
    /// EtherType.
    ethertype: Hex = own(|row| optional(row.packet.ethertype.into())), kernel "sk_buff:protocol";
    /// IP protocol number.
    l4_number: Id = own(|row| Value::number(row.packet.l4));
}

/// Bits of [`crate::Field::need`] for [`Drops`] and [`DropEvents`].
pub mod drop_need {
    /// The stack of each drop.
    pub const STACK: u64 = 1;
    /// The rule that dropped the packets.
    pub const RULE: u64 = 1 << 1;
    /// The processes of each drop.
    pub const OWNERS: u64 = 1 << 2;
}
