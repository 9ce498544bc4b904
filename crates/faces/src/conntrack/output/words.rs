//! Names of protocols, families and states in the tool's spelling.

use record::rows::{CtState, ip_proto};

/// The protocols that have a name, with their numbers.
#[rustfmt::skip]
pub const PROTOCOLS: &[(u8, &str)] = &[
    (ip_proto::TCP, "tcp"), (ip_proto::UDP, "udp"), (ip_proto::UDPLITE, "udplite"), (ip_proto::SCTP, "sctp"),
    (ip_proto::DCCP, "dccp"), (ip_proto::ICMP, "icmp"), (ip_proto::ICMPV6, "icmpv6"), (ip_proto::GRE, "gre"),
];

/// States of TCP by number (`enum tcp_conntrack`).
#[rustfmt::skip]
pub const TCP_STATES: &[&str] = &[
    "NONE", "SYN_SENT", "SYN_RECV", "ESTABLISHED", "FIN_WAIT", "CLOSE_WAIT", "LAST_ACK", "TIME_WAIT", "CLOSE",
    "SYN_SENT2",
];

/// States of SCTP by number (`enum sctp_conntrack`).
#[rustfmt::skip]
pub const SCTP_STATES: &[&str] = &[
    "NONE", "CLOSED", "COOKIE_WAIT", "COOKIE_ECHOED", "ESTABLISHED", "SHUTDOWN_SENT", "SHUTDOWN_RECD",
    "SHUTDOWN_ACK_SENT", "HEARTBEAT_SENT", "HEARTBEAT_ACKED",
];

/// States of DCCP by number (`enum ct_dccp_states`).
pub const DCCP_STATES: &[&str] =
    &["NONE", "REQUEST", "RESPOND", "PARTOPEN", "OPEN", "CLOSEREQ", "CLOSING", "TIMEWAIT", "IGNORE", "INVALID"];

/// Roles of DCCP's original direction by number (`enum ct_dccp_roles`).
pub const DCCP_ROLES: &[&str] = &["client", "server"];

/// Returns a protocol's name: the tool has one for eight protocols.
pub(super) fn protocol(number: u8) -> &'static str {
    PROTOCOLS.iter().find(|(known, _)| *known == number).map_or("unknown", |(_, name)| name)
}

/// Appends the beginning of a line: name, padded, and number. Appends nothing for a protocol without a name.
#[inline]
pub(super) fn head(number: u8) -> Option<&'static str> {
    Some(match number {
        ip_proto::TCP => "tcp      6",
        ip_proto::UDP => "udp      17",
        ip_proto::UDPLITE => "udplite  136",
        ip_proto::SCTP => "sctp     132",
        ip_proto::DCCP => "dccp     33",
        ip_proto::ICMP => "icmp     1",
        ip_proto::ICMPV6 => "icmpv6   58",
        ip_proto::GRE => "gre      47",
        _ => return None,
    })
}

/// Returns the name of an address family.
pub(super) fn family(number: u8) -> &'static str {
    match number {
        2 => "ipv4",
        10 => "ipv6",
        _ => "unknown",
    }
}

/// Returns a state's word; like in the tool, an unknown state is NONE.
#[inline]
pub(super) fn state(state: CtState) -> &'static str {
    let (names, number) = match state {
        CtState::Tcp(n) => (TCP_STATES, n),
        CtState::Sctp(n) => (SCTP_STATES, n),
        CtState::Dccp(n) => (DCCP_STATES, n),
    };
    names.get(usize::from(number)).copied().unwrap_or("NONE")
}

/// Returns the word in the tool's XML: TCP's names for every protocol.
pub(super) fn state_in_old_xml(state: CtState) -> &'static str {
    let (CtState::Tcp(number) | CtState::Sctp(number) | CtState::Dccp(number)) = state;
    TCP_STATES.get(usize::from(number)).copied().unwrap_or("NONE")
}
