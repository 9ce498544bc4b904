//! Closes sockets of other processes: SOCK_DESTROY (include/uapi/linux/sock_diag.h), TCP since 4.5, UDP since 4.9.
//!
//! The kernel finds the socket by its addresses, as it would for a packet, and then compares the cookie: it closes the
//! socket that was read, or nothing. Its owner sees ECONNABORTED; the peer of a TCP connection gets a reset. The
//! kernel's answer is not the whole result: a bound UDP socket gets the error but keeps its port, and an MPTCP
//! connection continues after one of its subflows is aborted. [`close`] therefore looks the socket up again. It needs
//! CAP_NET_ADMIN in the namespace's user namespace and CONFIG_INET_DIAG_DESTROY. It closes one socket, which the caller
//! chooses.
//!
//! Other protocols are not supported: UDP-Lite has no `diag_destroy` (6.18 answers EOPNOTSUPP), and raw_diag closes the
//! first socket that matches the addresses without comparing the cookie (net/ipv4/raw_diag.c).
use std::fmt;
use std::ops::ControlFlow;

use netlink::{DumpError, Query, Request};
use record::rows::{Endpoint, FamilyExtras, Socket, UlpPart, need};
use record::{Addr, Proto, State};
use sys::{Errno, Host, Missing, Modules, Presence, Trial};

use crate::address_families::{AF_INET, AF_INET6};
use crate::backends::netlink::inet_diag::{self, DumpParameters, InetDecoder, SOCK_DIAG_BY_FAMILY};
use crate::backends::netlink::request::NETLINK_SOCK_DIAG;
use crate::keys::Table;
use crate::pushdown::STATES_ALL;
use crate::trial::kernel_part;

/// `SOCK_DESTROY` (include/uapi/linux/sock_diag.h).
const SOCK_DESTROY: u16 = 21;

/// Returns the token of the MPTCP connection that a TCP socket is a subflow of.
pub fn mptcp_token(row: &Socket<'_>) -> Option<u32> {
    /// `MPTCP_SUBFLOW_ATTR_TOKEN_LOC` (include/uapi/linux/mptcp.h).
    const TOKEN_LOC: u16 = 2;
    row.ulp.and_then(|ulp| UlpPart::new(ulp).subflow(TOKEN_LOC)).and_then(|token| u32::try_from(token).ok())
}

/// Maximum number of packet sources that are tried to reach one of several sockets that share an address. If `n`
/// sockets share it, each try finds the wanted one with probability 1 in `n`: one of 100 is missed in one of 30,000
/// cases.
///
/// Bound: attempts to close one of several sockets that share an address. Beyond: the socket stays open and is
/// reported; no other socket is closed. By: a local user with as many sockets on the same address.
const SHARED_TRIES: u16 = 1024;

/// A socket's cookie, which the kernel compares before it closes a socket. Never 0, which means an interface without
/// cookies, nor INET_DIAG_NOCOOKIE, with which the kernel skips the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cookie(u64);

/// `INET_DIAG_NOCOOKIE` (include/uapi/linux/inet_diag.h) in both words: the kernel skips the comparison and closes any
/// socket that it finds.
const NO_COOKIE: u64 = u64::MAX;

impl Cookie {
    /// The cookie with this number; `None` if the number does not identify a socket.
    pub fn new(number: u64) -> Option<Cookie> {
        (number != 0 && number != NO_COOKIE).then_some(Cookie(number))
    }

    /// The number.
    pub fn number(self) -> u64 {
        self.0
    }

    // Two words, the low one first, in any byte order of the machine.
    fn words(self) -> [u32; 2] {
        [self.0 as u32, (self.0 >> 32) as u32]
    }
}

/// Cookie words that no socket has: the kernel assigns numbers from 1 on before it compares (`__sock_gen_cookie` in
/// net/core/sock_diag.c reads until the number is not 0), so the comparison always fails.
const WORDS_OF_NO_SOCKET: [u32; 2] = [0, 0];

/// Everything that the kernel needs to identify one socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Target {
    proto: Proto,
    family: u8,
    state: State,
    local: Endpoint,
    peer: Endpoint,
    ifindex: u32,
    cookie: Cookie,
    mptcp_token: Option<u32>,
}

impl Target {
    /// The socket of a row; `None` if the kernel cannot close such sockets, or if the row has no cookie and might
    /// therefore be confused with another.
    pub fn from_row(row: &Socket<'_>) -> Option<Target> {
        let closable = matches!(row.proto, Proto::Tcp | Proto::Udp) && matches!(row.family, AF_INET | AF_INET6);
        let Socket { proto, family, state, local, peer, ifindex, .. } = *row;
        let cookie = Cookie::new(row.cookie).filter(|_| closable)?;
        let mptcp_token = mptcp_token(row);
        Some(Target { proto, family, state, local, peer, ifindex, cookie, mptcp_token })
    }

    /// Marks the target as a subflow of the MPTCP connection with this token.
    pub fn subflow_of(self, mptcp_token: Option<u32>) -> Target {
        Target { mptcp_token, ..self }
    }

    /// The row's cookie.
    pub fn cookie(&self) -> Cookie {
        self.cookie
    }

    fn request(&self, peer_port: u16) -> Request {
        self.kernel_address(peer_port).request(SOCK_DESTROY, self.cookie.words())
    }

    fn kernel_address(&self, peer_port: u16) -> KernelAddress {
        let peer = Endpoint { port: peer_port, ..self.peer };
        KernelAddress { family: self.family, proto: self.proto, local: self.local, peer, ifindex: self.ifindex }
    }

    /// False if only the kernel holds the socket: a closed connection in TIME_WAIT, or a handshake in SYN_RECV.
    fn has_program(&self) -> bool {
        !matches!(self.state, State::TIME_WAIT | State::SYN_RECV)
    }

    // Sockets without a peer may share their address (SO_REUSEPORT). The kernel then chooses among them by a hash of
    // the packet's source, so another source may find another socket; the cookie keeps the wrong ones alive.
    fn may_be_shared(&self) -> bool {
        self.peer.is_unset()
    }
}

/// The address by which the kernel looks up a socket.
struct KernelAddress {
    family: u8,
    proto: Proto,
    local: Endpoint,
    peer: Endpoint,
    ifindex: u32,
}

impl KernelAddress {
    // `struct inet_diag_sockid`
    fn sockid(&self, cookie: [u32; 2]) -> [u8; inet_diag::SOCKID] {
        let mut id = [0; inet_diag::SOCKID];
        let mut put = |at: usize, bytes: &[u8]| {
            id.iter_mut().skip(at).zip(bytes).for_each(|(place, byte)| *place = *byte);
        };
        put(0, &self.local.port.to_be_bytes());
        put(2, &self.peer.port.to_be_bytes());
        put(4, octets(&self.local.addr));
        put(20, octets(&self.peer.addr));
        put(36, &self.ifindex.to_ne_bytes());
        put(40, &cookie[0].to_ne_bytes());
        put(44, &cookie[1].to_ne_bytes());
        id
    }

    // Builds a request of this kind for this socket, with these cookie words.
    fn request(&self, kind: u16, cookie: [u32; 2]) -> Request {
        let mut body = [0; inet_diag::REQ_V2];
        body[0] = self.family;
        body[1] = inet_diag::number_of(self.proto);
        body[8..].copy_from_slice(&self.sockid(cookie));
        let mut request = Request::for_one(kind);
        request.append(&body);
        request
    }
}

fn octets(addr: &Addr) -> &[u8] {
    match addr {
        Addr::V4(octets) => octets,
        Addr::V6(octets) => octets,
    }
}

/// Outcome of closing a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CloseOutcome {
    /// The kernel closed it. No program has it open.
    Closed,
    /// The kernel closed it. Its program still has the descriptor and gets ECONNABORTED.
    Aborted,
    /// Its program got an error, but the socket still has its port and receives datagrams (UDP).
    StillOpen,
    /// It was aborted, but its MPTCP connection continues.
    ConnectionLives,
    /// It no longer existed.
    Gone,
    /// It exists, but the kernel does not find it by its address: it is only bound, or too many sockets share the
    /// address.
    Hidden,
    /// The kernel cannot close it, because of its state, its protocol, or a missing CONFIG_INET_DIAG_DESTROY.
    Unsupported,
    /// CAP_NET_ADMIN is missing.
    Denied,
    /// Any other error, with the kernel's text.
    Failed(Box<str>),
}

impl CloseOutcome {
    /// Values of the field `result`.
    pub const NAMES: &'static [&'static str] =
        &["closed", "aborted", "still open", "gone", "hidden", "unsupported", "denied", "failed"];

    /// Name of this result.
    pub fn name(&self) -> &'static str {
        match self {
            CloseOutcome::Closed => "closed",
            CloseOutcome::Aborted => "aborted",
            CloseOutcome::StillOpen | CloseOutcome::ConnectionLives => "still open",
            CloseOutcome::Gone => "gone",
            CloseOutcome::Hidden => "hidden",
            CloseOutcome::Unsupported => "unsupported",
            CloseOutcome::Denied => "denied",
            CloseOutcome::Failed(_) => "failed",
        }
    }

    /// True if the socket may still exist.
    pub fn is_failure(&self) -> bool {
        !matches!(self, CloseOutcome::Closed | CloseOutcome::Aborted | CloseOutcome::Gone)
    }

    /// True if the kernel did what SOCK_DESTROY does, even if the socket or its MPTCP connection is still open.
    pub fn is_destroyed(&self) -> bool {
        use CloseOutcome::{Aborted, Closed, ConnectionLives, StillOpen};
        matches!(self, Closed | Aborted | StillOpen | ConnectionLives)
    }
}

impl fmt::Display for CloseOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CloseOutcome::Closed => "closed",
            CloseOutcome::Aborted => "aborted: the program gets ECONNABORTED",
            CloseOutcome::StillOpen => {
                "still open: the program got an error and keeps the port, end the program to free it"
            }
            CloseOutcome::ConnectionLives => {
                "still open: one subflow was aborted, the MPTCP connection continues (end the program to close it)"
            }
            CloseOutcome::Gone => "already closed before netwren could close them",
            CloseOutcome::Hidden => "not found by the kernel under their addresses (bound only, or too many share one)",
            CloseOutcome::Unsupported => {
                "the kernel has no way to close them (their state, or CONFIG_INET_DIAG_DESTROY is off)"
            }
            CloseOutcome::Denied => "operation not permitted (needs CAP_NET_ADMIN)",
            CloseOutcome::Failed(words) => words,
        })
    }
}

/// Closes one socket in the calling thread's network namespace and checks whether it is closed. Takes ten system calls,
/// plus a dump of its port's sockets for UDP, or of all MPTCP connections for a subflow.
pub fn close(host: &Host, target: &Target) -> CloseOutcome {
    match destroy(host, target) {
        CloseOutcome::Closed => outcome(host, target),
        other => other,
    }
}

/// Returns the outcome for a socket that the kernel reports as closed.
fn outcome(host: &Host, target: &Target) -> CloseOutcome {
    let is_connection_there = || target.mptcp_token.is_some_and(|token| has_mptcp_connection(host, token));
    match target.proto {
        Proto::Udp if still_exists(host, target) => CloseOutcome::StillOpen,
        Proto::Tcp if is_connection_there() => CloseOutcome::ConnectionLives,
        Proto::Tcp if is_found(host, target) => CloseOutcome::StillOpen,
        _ if target.has_program() => CloseOutcome::Aborted,
        _ => CloseOutcome::Closed,
    }
}

/// True if the kernel still finds this exact socket by its addresses. Takes one lookup, no dump.
fn is_found(host: &Host, target: &Target) -> bool {
    let request = target.kernel_address(target.peer.port).request(SOCK_DIAG_BY_FAMILY, target.cookie.words());
    let ask = Query {
        what: "socket",
        protocol: NETLINK_SOCK_DIAG,
        request: &request,
        key: "destroy/found",
        note: "",
        netns: None,
    };
    let mut found = false;
    let _ = netlink::exchange(host, &ask, |part| {
        let row = inet_diag::decode_inet(part.payload, target.proto, 0);
        found |= row.is_ok_and(|row| row.cookie == target.cookie.number() && row.state == target.state);
        ControlFlow::Continue(())
    });
    found
}

/// True if an MPTCP connection with this token exists, or if the dump fails.
fn has_mptcp_connection(host: &Host, token: u32) -> bool {
    let is_there = |family| {
        let ext = inet_diag::ext_of(need::ULP);
        let wanted = DumpParameters { ext, states: STATES_ALL, sport: 0, dport: 0, bytecode: &[], storages: false };
        let request = wanted.by_family(family, Proto::Mptcp);
        let (what, key) = (Table::Mptcp4.description(), "destroy/mptcp");
        let ask = Query { what, protocol: NETLINK_SOCK_DIAG, request: &request, key, note: "", netns: None };
        let mut found = false;
        let end = netlink::dump(host, &ask, |part| {
            let mut extras = FamilyExtras::EMPTY;
            let row = InetDecoder::new(Proto::Mptcp, 0).decode_rare(part.payload, &mut extras);
            let known = row.ok().and_then(|row| row.extras?.mptcp?.token());
            found |= known == Some(token.into());
            if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        found || end.is_err()
    };
    is_there(AF_INET) || is_there(AF_INET6)
}

/// Asks the kernel to close the socket and returns its answer.
fn destroy(host: &Host, target: &Target) -> CloseOutcome {
    let first = send_request(host, target, target.peer.port);
    if first != CloseOutcome::Gone || !target.may_be_shared() {
        return first;
    }
    if !still_exists(host, target) {
        return CloseOutcome::Gone;
    }
    for port in 1..=SHARED_TRIES {
        let next = send_request(host, target, port);
        if next != CloseOutcome::Gone {
            return next;
        }
    }
    if still_exists(host, target) { CloseOutcome::Hidden } else { CloseOutcome::Gone }
}

fn send_request(host: &Host, target: &Target, peer_port: u16) -> CloseOutcome {
    send(host, &target.request(peer_port))
}

fn send(host: &Host, request: &Request) -> CloseOutcome {
    let ask = Query { what: "socket", protocol: NETLINK_SOCK_DIAG, request, key: "destroy", note: "", netns: None };
    match netlink::exchange(host, &ask, |_| ControlFlow::Continue(())) {
        Ok(_) => CloseOutcome::Closed,
        Err(error) => verdict(&error),
    }
}

fn verdict(error: &DumpError) -> CloseOutcome {
    match error.errno() {
        // Also ENOENT if another socket has the address, because its cookie differs.
        Some(Errno::NOENT | Errno::SRCH) => CloseOutcome::Gone,
        Some(Errno::OPNOTSUPP | Errno::PROTONOSUPPORT) => CloseOutcome::Unsupported,
        Some(errno) if errno.is_denied() => CloseOutcome::Denied,
        Some(errno) => CloseOutcome::Failed(errno.to_string().into()),
        None => CloseOutcome::Failed(error.to_string().into()),
    }
}

// Whether a dump of the sockets with its port still contains the cookie. True if the dump fails.
fn still_exists(host: &Host, target: &Target) -> bool {
    // A closed listener remains as a bound port of its program, but the listener itself no longer exists.
    let states = if target.state == State::BOUND_INACTIVE { 1 << State::BOUND_INACTIVE.0 } else { STATES_ALL };
    let wanted = DumpParameters { ext: 0, states, sport: target.local.port, dport: 0, bytecode: &[], storages: false };
    let request = wanted.by_family(target.family, target.proto);
    let what = if target.proto == Proto::Udp { Table::Udp4.description() } else { Table::Tcp.description() };
    let ask =
        Query { what, protocol: NETLINK_SOCK_DIAG, request: &request, key: "destroy/check", note: "", netns: None };
    let mut found = false;
    let end = netlink::dump(host, &ask, |part| {
        let row = inet_diag::decode_inet(part.payload, target.proto, 0);
        found |= row.is_ok_and(|row| row.cookie == target.cookie.number());
        if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    found || end.is_err()
}

/// Whether and how sockets can be closed here, or why not: for `netwren support`. Closes nothing and loads no module.
pub fn try_closing(host: &Host, modules: &Modules<'_>) -> Trial {
    let mut answers = Vec::new();
    for proto in [Proto::Tcp, Proto::Udp] {
        match modules.presence(kernel_part(proto)) {
            Presence::There => answers.push((proto, send(host, &harmless_request(proto)))),
            Presence::NotLoaded | Presence::Unknown => {}
        }
    }
    let works = |answer: &CloseOutcome| *answer == CloseOutcome::Gone;
    let closable: Vec<&str> = answers.iter().filter(|(_, a)| works(a)).map(|(proto, _)| proto.name()).collect();
    if closable.is_empty() {
        return match answers.first() {
            None => Trial::new_missing(
                Missing::Module,
                "not tried: not loaded (module tcp_diag); closing a socket makes the kernel load it",
            ),
            Some((_, CloseOutcome::Unsupported)) => {
                Trial::new_missing(Missing::KernelOption, "the kernel has no SOCK_DESTROY (CONFIG_INET_DIAG_DESTROY)")
            }
            Some((_, CloseOutcome::Denied)) => Trial::new_missing(Missing::Right, CloseOutcome::Denied.to_string()),
            Some((_, other)) => Trial::new_missing(Missing::Other, other.to_string()),
        };
    }
    if !sys::caps::effective().is_ok_and(|set| set.contains(sys::caps::Cap::NetAdmin)) {
        return Trial::new_missing(Missing::Right, "needs CAP_NET_ADMIN");
    }
    Trial::new_working(format!("{} sockets, via SOCK_DESTROY", closable.join(" and ")))
}

// A request that reaches the kernel's code for closing sockets but cannot close one. Its address matches no socket that
// was bound in the usual way, but an sk_lookup program may map any address to a socket, so the cookie is the safeguard.
fn harmless_request(proto: Proto) -> Request {
    let (local, peer) = (Endpoint::NONE, Endpoint { addr: Addr::ANY4, port: 1 });
    KernelAddress { family: AF_INET, proto, local, peer, ifindex: 0 }.request(SOCK_DESTROY, WORDS_OF_NO_SOCKET)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn row() -> Socket<'static> {
        Socket {
            family: AF_INET6,
            local: Endpoint { addr: Addr::V6([1; 16]), port: 0x1234 },
            peer: Endpoint { addr: Addr::V6([2; 16]), port: 0x5678 },
            ifindex: 7,
            cookie: 0x0102_0304_0506_0708,
            ..Socket::EMPTY
        }
    }

    #[test]
    fn the_request_carries_the_whole_id() {
        let target = Target::from_row(&row()).unwrap();
        let request = target.request(target.peer.port);
        assert_eq!(request.kind(), SOCK_DESTROY);
        assert!(!request.is_dump());
        let bytes = request.bytes().unwrap();
        let body = &bytes[16..];
        assert_eq!(body.len(), inet_diag::REQ_V2);
        assert_eq!(&body[..2], [10, 6]);
        assert_eq!(&body[8..12], [0x12, 0x34, 0x56, 0x78]);
        assert_eq!((&body[12..28], &body[28..44]), (&[1; 16][..], &[2; 16][..]));
        assert_eq!(body[44..48], 7u32.to_ne_bytes());
        assert_eq!(body[48..52], 0x0506_0708u32.to_ne_bytes());
        assert_eq!(body[52..56], 0x0102_0304u32.to_ne_bytes());
    }

    #[test]
    fn an_ambiguous_row_is_no_target() {
        assert_eq!(Target::from_row(&Socket { cookie: 0, ..row() }), None);
        assert_eq!(Target::from_row(&Socket { cookie: NO_COOKIE, ..row() }), None);
        // One word with this value is an ordinary number.
        assert!(Target::from_row(&Socket { cookie: u64::from(u32::MAX), ..row() }).is_some());
        assert_eq!(Target::from_row(&Socket { proto: Proto::Unix, family: 1, ..row() }), None);
    }

    /// The kernel compares the cookie for any socket it finds, and no socket has this one.
    #[test]
    fn replay_issue_10_the_probe_carries_a_cookie_that_no_socket_has() {
        for proto in [Proto::Tcp, Proto::Udp] {
            let request = harmless_request(proto);
            assert_eq!(request.kind(), SOCK_DESTROY);
            let body = &request.bytes().unwrap()[16..];
            assert_eq!(body.len(), inet_diag::REQ_V2);
            assert_eq!(body[48..56], [0; 8], "neither a socket's cookie nor INET_DIAG_NOCOOKIE");
        }
    }

    #[test]
    fn every_result_has_its_word() {
        let failed = CloseOutcome::Failed("x".into());
        let fine = [CloseOutcome::Closed, CloseOutcome::Aborted, CloseOutcome::Gone];
        let failures =
            [CloseOutcome::StillOpen, CloseOutcome::Hidden, CloseOutcome::Unsupported, CloseOutcome::Denied, failed];
        let mut words: Vec<&str> = fine.iter().chain(&failures).map(CloseOutcome::name).collect();
        assert_eq!(CloseOutcome::ConnectionLives.name(), "still open");
        let mut names = CloseOutcome::NAMES.to_vec();
        words.sort_unstable();
        names.sort_unstable();
        assert_eq!(words, names);
        assert!(failures.iter().all(CloseOutcome::is_failure) && !fine.iter().any(CloseOutcome::is_failure));
        assert!(CloseOutcome::ConnectionLives.is_failure() && CloseOutcome::ConnectionLives.is_destroyed());
    }
}
