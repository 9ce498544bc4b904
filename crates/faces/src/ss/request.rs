//! Turns the command line into questions for the source.

use super::condition::Condition;
use super::environment::Environment;
use super::expr::test;
use super::flags::Flags;
use super::stop::Stop;
use super::tables::{Db, Family, PACKET, Selection, UNIX, VSOCK};
use super::translate::expr;
use super::{grammar, states};
use crate::ss::output::{Options, show};
use record::rows::Sockets;
use record::{Expr, Op, Operand, Proto, field_index};
use std::ffi::OsString;
use sys::socket::{AF_INET, AF_INET6};

/// The parameters of a run.
#[derive(Debug)]
pub(super) struct Request {
    /// Display options.
    pub(super) options: Options,
    /// One question per socket table, in the order of the output.
    pub(super) questions: Vec<Question>,
    /// `-K`: close matching sockets, and show those that were closed.
    pub(super) kill: bool,
    /// `-E`: show these sockets when they close.
    pub(super) events: Option<Ending>,
    /// File to read instead of the kernel's table of TCP sockets.
    pub(super) tcp_file: Option<OsString>,
    /// The kernel's mask of states.
    pub(super) states: u32,
    /// True if the user named no table: tables missing from this kernel are skipped silently.
    pub(super) by_default: bool,
    /// True if bound-only sockets are left out although this version of ss would show them.
    pub(super) without_bound: bool,
}

impl Request {
    /// True if the expression tests for ports that the kernel chose.
    pub(super) fn asks_for_ranges(&self) -> bool {
        let autobound = field_index::<Sockets>("autobound");
        let mut asks = false;
        for part in self.questions.iter().flat_map(|question| &question.filter) {
            part.for_each_test(&mut |test| asks |= Some(test.field) == autobound);
        }
        asks
    }
}

/// From this many TCP sockets on, bound-only sockets are shown only if they are named. To find them the kernel walks
/// its table of bound ports, which also holds every connection (120 ms for 250,000, compared with 100 ms for
/// everything else).
const BOUND_MAX: u64 = 20_000;

/// Sockets to report when they close.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Ending {
    pub(super) protos: Vec<Proto>,
    pub(super) inet: bool,
    pub(super) inet6: bool,
}

/// A request for the rows of one table.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Question {
    pub(super) proto: Proto,
    /// Conjuncts of the filter; the first is `proto = …`.
    pub(super) filter: Vec<Expr>,
    /// The only address family to accept from netlink, for tables whose filter allows both. ss requests only the
    /// family named last from the kernel, but reads the /proc files of every family that was named.
    pub(super) of_netlink: Option<u8>,
}

/// Tables of IP sockets in ss's order.
#[rustfmt::skip]
const INTERNET: [(Db, Proto); 6] = [
    (Db::Raw, Proto::Raw), (Db::Udp, Proto::Udp), (Db::Tcp, Proto::Tcp), (Db::Mptcp, Proto::Mptcp),
    (Db::Dccp, Proto::Dccp), (Db::Sctp, Proto::Sctp),
];

/// Parses the expression inside the namespace to be read, and makes the questions.
pub(super) fn make(flags: &Flags, environment: &dyn Environment) -> Result<Request, Stop> {
    let mut selection = flags.selection;
    if selection.tables == 0 {
        return Err(Stop::nothing("no socket tables"));
    }
    if selection.states == 0 {
        return Err(Stop::nothing("no socket states"));
    }
    let condition = grammar::parse(&flags.expression, &mut selection, environment)?;
    let without_bound = drop_bound(&mut selection, flags, environment);
    let hidden = [(selection.several_tables(), show::NETID), (selection.several_states(), show::STATE)];
    let hidden = hidden.iter().filter(|(several, _)| !several).fold(0, |bits, (_, column)| bits | column);
    let options = flags.options.without(hidden);
    let mut questions = Vec::new();
    // Sockets without a state count as unconnected.
    let stateless = selection.states & states::UNCONNECTED != 0;
    // The kernel reports the end of TCP and UDP sockets only.
    let lists = !flags.events;
    if selection.has(Db::Netlink) && selection.shows(Family::Netlink) && stateless && lists {
        questions.push(question(Proto::Netlink, &selection, condition.as_ref(), environment, flags));
    }
    if selection.tables & PACKET != 0 && selection.shows(Family::Packet) && stateless && lists {
        let types = packet_types(&selection, flags.options.bug_compatible);
        let mut packets = question(Proto::Packet, &selection, condition.as_ref(), environment, flags);
        packets.filter.extend(types);
        questions.push(packets);
    }
    if selection.tables & UNIX != 0 && selection.shows(Family::Unix) && lists {
        questions.push(question(Proto::Unix, &selection, condition.as_ref(), environment, flags));
    }
    for (db, proto) in INTERNET {
        let ends = lists || !by_kernel(proto);
        if selection.has(db) && selection.inet() != (false, false) && ends {
            questions.push(question(proto, &selection, condition.as_ref(), environment, flags));
        }
    }
    if lists {
        questions.extend(late_questions(&selection, stateless, condition.as_ref(), environment, flags));
    }
    let tcp_file = std::env::var_os("TCPDIAG_FILE").filter(|_| lists);
    if tcp_file.is_some() {
        show_whole_file(&mut questions, condition.as_ref(), environment);
    }
    let ending = || Ending {
        protos: [(Db::Tcp, Proto::Tcp), (Db::Udp, Proto::Udp)]
            .into_iter()
            .filter(|(db, _)| selection.has(*db))
            .map(|(_, proto)| proto)
            .collect(),
        inet: selection.shows(Family::Inet),
        inet6: selection.shows(Family::Inet6),
    };
    let events = flags.events.then(ending);
    Ok(Request {
        options,
        questions,
        kill: flags.kill,
        events,
        by_default: flags.by_default,
        without_bound,
        tcp_file,
        states: selection.states,
    })
}

/// Shows all sockets of a file, in any state and family.
fn show_whole_file(questions: &mut [Question], condition: Option<&Condition>, environment: &dyn Environment) {
    for question in questions.iter_mut().filter(|question| question.proto == Proto::Tcp) {
        question.filter = condition.map(|c| expr(c, Proto::Tcp, environment).into_conjuncts()).unwrap_or_default();
    }
}

/// Removes the bound-only state if the user did not name it and it would cost too much; returns true if so.
fn drop_bound(selection: &mut Selection, flags: &Flags, environment: &dyn Environment) -> bool {
    let asks =
        selection.has(Db::Tcp) && selection.states & states::BOUND != 0 && !flags.bound_is_meant && !flags.events;
    let drops = asks && environment.tcp_sockets(BOUND_MAX) >= BOUND_MAX;
    if drops {
        selection.states &= !states::BOUND;
    }
    drops
}

/// vsock, TIPC and AF_XDP sockets, which ss shows last.
fn late_questions(
    selection: &Selection,
    stateless: bool,
    condition: Option<&Condition>,
    environment: &dyn Environment,
    flags: &Flags,
) -> Vec<Question> {
    let mut questions = Vec::new();
    if selection.tables & VSOCK != 0 && selection.shows(Family::Vsock) {
        let mut vsock = question(Proto::Vsock, selection, condition, environment, flags);
        // Sockets of a third type are shown with either.
        let without = [(Db::VsockStream, "stream"), (Db::VsockDatagram, "dgram")];
        for (_, word) in without.iter().filter(|(db, _)| !selection.has(*db)) {
            vsock.filter.push(test("vsock_type", Op::Ne, Operand::Words(vec![word.as_bytes().into()])));
        }
        questions.push(vsock);
    }
    if selection.has(Db::Tipc) && selection.shows(Family::Tipc) {
        // ss applies no condition to TIPC sockets.
        questions.push(question(Proto::Tipc, selection, None, environment, flags));
    }
    if selection.has(Db::Xdp) && selection.shows(Family::Xdp) && stateless {
        questions.push(question(Proto::Xdp, selection, condition, environment, flags));
    }
    questions
}

/// True for tables whose states only the kernel filters: it receives the mask unchanged.
pub(super) fn by_kernel(proto: Proto) -> bool {
    matches!(proto, Proto::Sctp | Proto::Dccp | Proto::Vsock | Proto::Tipc)
}

fn words<'w>(field: &str, words: impl IntoIterator<Item = &'w str>) -> Expr {
    let words = words.into_iter().map(|w| w.as_bytes().into()).collect();
    test(field, Op::Eq, Operand::Words(words))
}

fn question(
    proto: Proto,
    selection: &Selection,
    condition: Option<&Condition>,
    environment: &dyn Environment,
    flags: &Flags,
) -> Question {
    let mut filter = vec![words("proto", [proto.name()])];
    // With `-E` ss ignores the state, because a socket can close in any state.
    let has_none = flags.events || by_kernel(proto) || matches!(proto, Proto::Packet | Proto::Netlink | Proto::Xdp);
    let states = if has_none { None } else { Some(selection.states) };
    if let Some(states) = states.and_then(|states| states::filter_words(states, proto)) {
        filter.push(test("state", Op::Eq, Operand::Words(states)));
    }
    let of_netlink = family_of_netlink(proto, selection);
    match (proto, selection.inet()) {
        _ if of_netlink.is_some() => {}
        (Proto::Unix, _) => filter.extend(unix_types(selection)),
        (Proto::Packet | Proto::Netlink | Proto::Vsock | Proto::Tipc | Proto::Xdp, _) => {}
        (_, (true, false)) => filter.push(words("family", ["inet"])),
        (_, (false, true)) => filter.push(words("family", ["inet6"])),
        _ => {}
    }
    if let Some(condition) = condition {
        filter.extend(expr(condition, proto, environment).into_conjuncts());
    }
    Question { proto, filter, of_netlink }
}

/// See [`Question::of_netlink`]. Excludes TCP: its tables are large, and every relevant kernel reports them via
/// netlink.
fn family_of_netlink(proto: Proto, selection: &Selection) -> Option<u8> {
    let both = selection.shows(Family::Inet) && selection.shows(Family::Inet6);
    match (proto, selection.inet()) {
        (Proto::Raw | Proto::Udp, (true, false)) if both => Some(AF_INET as u8),
        (Proto::Raw | Proto::Udp, (false, true)) if both => Some(AF_INET6 as u8),
        _ => None,
    }
}

/// The type of packet sockets, unless both types are shown. ss requests all from the kernel and shows every one.
fn packet_types(selection: &Selection, bug_compatible: bool) -> Option<Expr> {
    if bug_compatible || selection.tables & PACKET == PACKET {
        return None;
    }
    let raw = selection.has(Db::PacketRaw);
    Some(words("packet_type", [if raw { "raw" } else { "dgram" }]))
}

/// The types of unix sockets, unless all are shown.
fn unix_types(selection: &Selection) -> Option<Expr> {
    if selection.tables & UNIX == UNIX {
        return None;
    }
    let types = [(Db::UnixStream, "stream"), (Db::UnixDatagram, "dgram"), (Db::UnixSeqpacket, "seqpacket")];
    Some(words("unix_type", types.iter().filter(|(db, _)| selection.has(*db)).map(|(_, word)| *word)))
}
