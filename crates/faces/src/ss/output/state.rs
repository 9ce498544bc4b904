//! The words of ss for the states of sockets and associations.

/// Returns the word of ss for the kernel's number.
pub(super) fn state_name(state: u8) -> &'static str {
    #[rustfmt::skip]
    const NAMES: [&str; 14] = [
        "UNKNOWN", "ESTAB", "SYN-SENT", "SYN-RECV", "FIN-WAIT-1", "FIN-WAIT-2", "TIME-WAIT", "UNCONN", "CLOSE-WAIT",
        "LAST-ACK", "LISTEN", "CLOSING", "SYN-RECV", "UNCONN",
    ];
    NAMES.get(usize::from(state)).copied().unwrap_or("UNKNOWN")
}

/// Words of iproute2 for the states of an SCTP association.
#[rustfmt::skip]
const STATES: [&str; 8] = [
    "CLOSED", "COOKIE_WAIT", "COOKIE_ECHOED", "ESTAB", "SHUTDOWN_PENDING", "SHUTDOWN_SENT", "SHUTDOWN_RECEIVED",
    "ACK_SENT",
];

/// Returns the word for the state of an SCTP association.
pub(super) fn sctp_state(state: u8) -> &'static str {
    STATES.get(usize::from(state)).copied().unwrap_or("UNKNOWN")
}
