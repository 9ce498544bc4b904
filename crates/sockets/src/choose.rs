//! Chooses the backend that reads a table. A pure function: facts in, a backend and the reason out.
//!
//! Backends that lack a demanded field are ruled out; the cheapest of the others wins. Netlink beats /proc from the
//! first socket on (ten sockets: 0.4 ms against 9.4 ms, because /proc visits every empty bucket twice), so size does
//! not matter between these two. It does for the BPF walk of TCP's tables: a row costs a quarter, but first a program
//! must be loaded. docs/adr/0006 has the measured number of sockets from which that pays off.
use record::rows::need;
use record::{BackendLacks, Proto};

pub use record::Via;

/// `need` bits that only apply to unix sockets.
const UNIX_ONLY: u64 = need::UNIX_NAME | need::UNIX_PEER | need::UNIX_VFS | need::UNIX_REFS | need::UNIX_ICONS;

/// `need` bits that /proc/net/tcp, udp, udplite, raw and their IPv6 counterparts cannot provide.
pub const PROC_LACKS_INET: u64 = need::TCP_INFO
    | need::COUNTERS
    | need::RESENT
    | need::CONG
    | need::CONG_INFO
    | need::SKMEM
    | need::TOS
    | need::CGROUP
    | need::SOCKOPT
    | need::V6ONLY
    | need::COOKIE
    | need::IDENTITY
    | need::IFACE_MARK
    | need::ACCEPT_MAX
    | need::SHUTDOWN
    | need::ULP
    | need::STORAGES
    | need::AUTOBOUND;

/// `need` bits that /proc/net/packet cannot provide: it shows no rings, fanout or memberships.
pub const PROC_LACKS_PACKET: u64 = need::SKMEM | need::COOKIE | need::IDENTITY | need::PACKET | need::FILTER;

/// `need` bits that /proc/net/netlink cannot provide.
pub const PROC_LACKS_NETLINK: u64 = need::SKMEM | need::COOKIE | need::IDENTITY;

/// `need` bits that /proc/net/unix cannot provide.
pub const PROC_LACKS_UNIX: u64 = need::SKMEM
    | need::COOKIE
    | need::IDENTITY
    | need::ACCEPT_MAX
    | need::SHUTDOWN
    | need::UNIX_PEER
    | need::QUEUES
    | need::UNIX_VFS
    | need::UID
    | need::UNIX_ICONS;

/// `need` bits that unix_diag cannot provide.
pub const NETLINK_LACKS_UNIX: u64 = need::UNIX_REFS;

/// `need` bits that the walk of TCP's tables can provide. (Its members of `tcp_info` are not included: see
/// `Facts::counted`.) A bit that is missing here rules the walk out.
pub const BPF_HAS: u64 = need::IFACE_MARK
    | need::SKMEM
    | need::IDENTITY
    | need::MARK
    | need::INODE
    | need::ACCEPT_MAX
    | need::V6ONLY
    | need::COUNTERS
    | need::RESENT
    | need::TIMER
    | UNIX_ONLY
    | UNIX_BESIDE
    | NOT_IN_TCP;

/// `need` bits that netlink provides without a request.
const NETLINK_UNREQUESTED: u64 = need::CGROUP
    | need::SOCKOPT
    | need::COOKIE
    | need::IDENTITY
    | need::IFACE_MARK
    | need::ACCEPT_MAX
    | need::SHUTDOWN
    | need::V6ONLY
    | need::TIMER
    | need::INODE
    | need::MARK;

/// `need` bits that INET_DIAG_INFO provides; a request for one of them brings all.
const OF_INFO: u64 = need::TCP_INFO | need::COUNTERS | need::RESENT | need::ULP | need::SCTP;

/// The `need` bits that a recording holds if `demanded` was read through `interface` (the one in the offer; for several
/// interfaces, the bits that all of them hold).
pub fn recorded_bits(interface: &str, demanded: u64) -> u64 {
    if interface != Via::Netlink.name() {
        return demanded;
    }
    let info = if demanded & OF_INFO != 0 { OF_INFO } else { 0 };
    demanded | NETLINK_UNREQUESTED | info
}

/// `need` bits of tables other than TCP's.
const NOT_IN_TCP: u64 = need::PACKET | need::FILTER | need::NETLINK | need::SCTP | need::XDP;

/// `need` bits of fields that no backend of TCP lacks.
const UNIX_BESIDE: u64 = need::QUEUES | need::UID;

/// The input of the choice.
#[derive(Clone, Copy)]
pub(crate) struct Facts<'f> {
    pub(crate) proto: Proto,
    /// The demanded `need` bits.
    pub(crate) need: u64,
    /// True if members of `tcp_info` are demanded and the walk copies all of them.
    pub(crate) counted: bool,
    /// True if netlink finds all wanted sockets without visiting the table of connections.
    pub(crate) few_states: bool,
    /// The backend that the user asked for.
    pub(crate) via: Option<Via>,
    /// In a replay, the backends through which this table was recorded.
    pub(crate) recorded: Option<RecordedBackends>,
    /// Whether the walk is possible here and pays off. Called last, because it costs a few system calls.
    pub(crate) walk: &'f dyn Fn() -> WalkDecision,
}

/// The backends through which a table was recorded.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RecordedBackends {
    pub(crate) netlink: bool,
    pub(crate) bpf: bool,
    /// /proc; for unix sockets in addition to netlink.
    pub(crate) proc: bool,
}

/// Whether the walk is worth it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WalkDecision {
    /// There are enough sockets.
    Pays(&'static str),
    /// There are too few sockets.
    TooFew,
    /// It is not possible, although it would have paid off.
    No(&'static str),
}

/// The backend and the reason for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) via: Via,
    pub(crate) why: &'static str,
    /// Why the walk was not chosen although there are enough sockets.
    pub(crate) no_walk: Option<&'static str>,
    /// Demanded bits that this backend cannot provide.
    pub(crate) lacks: u64,
}

impl Choice {
    /// True if the backend filters rows itself; the source applies the parts that the kernel cannot.
    pub(crate) fn filters(via: Via) -> bool {
        via != Via::Proc
    }
}

pub(crate) fn choose(facts: &Facts<'_>) -> Choice {
    let (via, why, no_walk) = choose_backend(facts);
    let mut lacks = missing_need(via, facts.proto);
    if via == Via::Bpf && facts.counted {
        lacks &= !need::TCP_INFO;
    }
    if via == Via::Netlink && joins_proc(facts) {
        lacks &= !NETLINK_LACKS_UNIX;
    }
    Choice { via, why, no_walk, lacks: lacks & facts.need }
}

/// Whether reference counts and flags of unix sockets are read from /proc while netlink reads the sockets: in that file
/// a path with a line break can imitate sockets.
fn joins_proc(facts: &Facts<'_>) -> bool {
    let may = facts.recorded.map_or(facts.via.is_none(), |recorded| recorded.proc);
    facts.proto == Proto::Unix && facts.need & need::UNIX_REFS != 0 && may
}

fn choose_backend(facts: &Facts<'_>) -> (Via, &'static str, Option<&'static str>) {
    let tcp = facts.proto == Proto::Tcp;
    match (facts.recorded, facts.via) {
        (Some(held), _) if tcp && held.bpf && (!facts.few_states || !held.netlink) => {
            (Via::Bpf, "the recording has it", None)
        }
        (Some(RecordedBackends { netlink: true, .. }), _) => (Via::Netlink, "the recording has it", None),
        (Some(_), _) => (Via::Proc, "the recording has it only this way", None),
        (None, Some(Via::Bpf)) if !tcp => (Via::Netlink, "only TCP is read via BPF", None),
        (None, Some(via)) => (via, "as asked", None),
        (None, None) => by_cost(facts),
    }
}

fn by_cost(facts: &Facts<'_>) -> (Via, &'static str, Option<&'static str>) {
    if facts.proto == Proto::Unix && facts.need & need::UNIX_REFS != 0 {
        return (Via::Netlink, "reference counts and flags come from /proc", None);
    }
    let counted = if facts.counted { need::TCP_INFO } else { 0 };
    if facts.proto != Proto::Tcp || facts.few_states || facts.need & !(BPF_HAS | counted) != 0 {
        return (Via::Netlink, "the cheapest", None);
    }
    match (facts.walk)() {
        WalkDecision::Pays(why) => (Via::Bpf, why, None),
        WalkDecision::TooFew => (Via::Netlink, "the cheapest", None),
        WalkDecision::No(why) => (Via::Netlink, "the cheapest one that works", Some(why)),
    }
}

/// `need` bits that a backend cannot provide.
pub(crate) fn missing_need(via: Via, proto: Proto) -> u64 {
    match (via, proto) {
        (Via::Bpf, Proto::Tcp) => !BPF_HAS,
        (Via::Bpf, _) => 0,
        (Via::Netlink, Proto::Unix) => NETLINK_LACKS_UNIX,
        (Via::Netlink, _) => 0,
        (Via::Proc, Proto::Unix) => PROC_LACKS_UNIX,
        (Via::Proc, Proto::Packet) => PROC_LACKS_PACKET,
        (Via::Proc, Proto::Netlink) => PROC_LACKS_NETLINK,
        // These have no file at all, so missing fields do not matter.
        (Via::Proc, Proto::Vsock | Proto::Tipc | Proto::Xdp) => need::COOKIE | need::IDENTITY,
        (Via::Proc, _) => PROC_LACKS_INET & !UNIX_ONLY,
    }
}

/// `need` bits that some backend provides for rows of a table. Bits of other tables do not apply to it.
fn known_need(proto: Proto) -> u64 {
    const OF_OTHERS: u64 = UNIX_ONLY | NOT_IN_TCP;
    const OF_TCP: u64 = need::TCP_INFO | need::COUNTERS | need::RESENT | need::CONG | need::CONG_INFO | need::ULP;
    const OF_ALL: u64 = UNIX_BESIDE | need::INODE | need::COOKIE | need::IDENTITY;
    match proto {
        Proto::Tcp => !OF_OTHERS,
        Proto::Unix => OF_ALL | UNIX_ONLY | need::SKMEM | need::ACCEPT_MAX | need::SHUTDOWN,
        Proto::Packet => OF_ALL | need::PACKET | need::FILTER | need::SKMEM | need::IFACE_MARK,
        Proto::Netlink => OF_ALL | need::NETLINK | need::SKMEM,
        Proto::Xdp => OF_ALL | need::XDP | need::IFACE_MARK,
        Proto::Vsock | Proto::Tipc => OF_ALL,
        Proto::Sctp => !(OF_OTHERS | OF_TCP) | need::SCTP,
        _ => !(OF_OTHERS | OF_TCP),
    }
}

/// `need` bits whose fields are null in every row that a backend reads of these tables, although some backend has them.
fn always_null_need(via: Via, protos: &[Proto], counted: bool) -> u64 {
    // bpf only reads TCP; netlink reads the other tables even if bpf is forced.
    let read = protos.iter().filter(|&&proto| via != Via::Bpf || proto == Proto::Tcp);
    let (mut has, mut lacking) = (0, 0);
    for &proto in read {
        let mut lacked = missing_need(via, proto);
        if via == Via::Bpf && counted {
            lacked &= !need::TCP_INFO;
        }
        if via == Via::Proc {
            lacked |= need::SCTP | need::XDP;
        }
        has |= known_need(proto) & !lacked;
        lacking |= known_need(proto) & lacked;
    }
    lacking & !has
}

/// The fields of these tables that each backend lacks, the forced one first.
pub(crate) fn backends(forced: Via, protos: &[Proto], counted: bool) -> Vec<BackendLacks> {
    let mut backends = vec![forced];
    backends.extend([Via::Netlink, Via::Bpf, Via::Proc].into_iter().filter(|via| *via != forced));
    // Without TCP, bpf reads nothing.
    backends.retain(|via| *via == forced || *via != Via::Bpf || protos.contains(&Proto::Tcp));
    backends
        .into_iter()
        .map(|via| BackendLacks { backend: via.name(), lacks: always_null_need(via, protos, counted) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NETLINK: Option<RecordedBackends> = Some(RecordedBackends { netlink: true, bpf: false, proc: false });
    const PROC: Option<RecordedBackends> = Some(RecordedBackends { netlink: false, bpf: false, proc: true });
    const BOTH: Option<RecordedBackends> = Some(RecordedBackends { netlink: true, bpf: false, proc: true });

    fn of(proto: Proto, need: u64, via: Option<Via>, recorded: Option<RecordedBackends>) -> (Via, u64) {
        let never = || -> WalkDecision { panic!("nobody may ask") };
        let walk: &dyn Fn() -> WalkDecision =
            if recorded.is_some() || via.is_some() { &never } else { &|| WalkDecision::TooFew };
        let facts = Facts { proto, need, counted: false, few_states: false, via, recorded, walk };
        let choice = choose(&facts);
        assert!(!choice.why.is_empty());
        (choice.via, choice.lacks)
    }

    #[test]
    fn the_whole_table() {
        use Via::{Netlink, Proc};
        for proto in Proto::ALL {
            assert_eq!(of(proto, 0, None, None), (Netlink, 0));
            assert_eq!(of(proto, 0, Some(Proc), None), (Proc, 0));
            assert_eq!(of(proto, need::COOKIE, Some(Proc), None), (Proc, need::COOKIE));
            assert_eq!(of(proto, need::COOKIE, Some(Netlink), None), (Netlink, 0));
            // A replay must use the recorded backend.
            assert_eq!(of(proto, need::COOKIE, Some(Netlink), PROC), (Proc, need::COOKIE));
            assert_eq!(of(proto, 0, Some(Proc), NETLINK), (Netlink, 0));
        }
        assert_eq!(of(Proto::Unix, need::UNIX_REFS | need::UID, None, None), (Netlink, 0));
        assert_eq!(of(Proto::Unix, need::UNIX_REFS | need::UID, None, BOTH), (Netlink, 0));
        assert_eq!(of(Proto::Unix, need::UNIX_REFS, None, NETLINK), (Netlink, need::UNIX_REFS));
        assert_eq!(of(Proto::Unix, need::UNIX_REFS | need::UID, None, PROC), (Proc, need::UID));
        assert_eq!(of(Proto::Unix, need::UNIX_REFS, Some(Netlink), None), (Netlink, need::UNIX_REFS));
        // Bits of one table do not affect another.
        assert_eq!(of(Proto::Tcp, need::UNIX_REFS | need::UNIX_PEER, None, None), (Netlink, 0));
        assert_eq!(of(Proto::Udp, need::UNIX_PEER, Some(Proc), None), (Proc, 0));
    }

    #[test]
    fn the_walk() {
        let pays = || WalkDecision::Pays("many");
        let facts = Facts {
            proto: Proto::Tcp,
            need: need::IFACE_MARK | need::QUEUES,
            counted: false,
            few_states: false,
            via: None,
            recorded: None,
            walk: &pays,
        };
        let via = |facts: Facts<'_>| choose(&facts).via;
        assert_eq!(choose(&facts), Choice { via: Via::Bpf, why: "many", no_walk: None, lacks: 0 });
        // It is not chosen if it lacks a field.
        assert_eq!(via(Facts { need: need::COOKIE, ..facts }), Via::Netlink);
        assert_eq!(via(Facts { need: need::TCP_INFO, ..facts }), Via::Netlink);
        assert_eq!(via(Facts { need: 1 << 63, ..facts }), Via::Netlink);
        assert_eq!(via(Facts { need: need::TCP_INFO, counted: true, ..facts }), Via::Bpf);
        assert_eq!(via(Facts { few_states: true, ..facts }), Via::Netlink);
        assert_eq!(via(Facts { proto: Proto::Udp, ..facts }), Via::Netlink);
        assert_eq!(via(Facts { walk: &|| WalkDecision::TooFew, ..facts }), Via::Netlink);
        let denied = choose(&Facts { walk: &|| WalkDecision::No("rights"), ..facts });
        assert_eq!((denied.via, denied.no_walk), (Via::Netlink, Some("rights")));
        // If the user asks for it, it provides what it can.
        let asked = Facts { via: Some(Via::Bpf), need: need::COOKIE | need::TCP_INFO, ..facts };
        assert_eq!((via(asked), choose(&asked).lacks), (Via::Bpf, need::COOKIE | need::TCP_INFO));
        assert_eq!(choose(&Facts { counted: true, ..asked }).lacks, need::COOKIE);
        assert_eq!(via(Facts { proto: Proto::Unix, ..asked }), Via::Netlink);
    }

    #[test]
    fn a_recorded_walk() {
        let both = Facts {
            proto: Proto::Tcp,
            need: 0,
            counted: false,
            few_states: false,
            via: Some(Via::Proc),
            recorded: Some(RecordedBackends { netlink: true, bpf: true, proc: false }),
            walk: &|| WalkDecision::TooFew,
        };
        assert_eq!(choose(&both).via, Via::Bpf);
        assert_eq!(choose(&Facts { few_states: true, ..both }).via, Via::Netlink);
        let alone = Facts {
            few_states: true,
            recorded: Some(RecordedBackends { netlink: false, bpf: true, proc: false }),
            ..both
        };
        assert_eq!(choose(&alone).via, Via::Bpf);
    }
}
