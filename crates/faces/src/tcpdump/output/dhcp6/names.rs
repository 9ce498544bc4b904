//! Names of DHCPv6: messages, options, status codes.

use super::super::pieces::word_of;

#[rustfmt::skip]
const MESSAGES: [&str; 15] = [
    "solicit", "advertise", "request", "confirm", "renew", "rebind", "reply", "release", "decline", "reconfigure",
    "inf-req", "relay-fwd", "relay-reply", "leasequery", "leasequery-reply",
];

/// Returns the name of a type of message.
pub(super) fn message(kind: u8) -> Option<&'static str> {
    usize::from(kind).checked_sub(1).and_then(|nth| MESSAGES.get(nth)).copied()
}

#[rustfmt::skip]
const OPTIONS: [(u16, &str); 49] = [
    (1, "client-ID"), (2, "server-ID"), (3, "IA_NA"), (4, "IA_TA"), (5, "IA_ADDR"), (6, "option-request"),
    (7, "preference"), (8, "elapsed-time"), (9, "relay-message"), (11, "authentication"), (12, "server-unicast"),
    (13, "status-code"), (14, "rapid-commit"), (15, "user-class"), (16, "vendor-class"), (17, "vendor-specific-info"),
    (18, "interface-ID"), (19, "reconfigure-message"), (20, "reconfigure-accept"), (21, "SIP-servers-domain"),
    (22, "SIP-servers-address"), (23, "DNS-server"), (24, "DNS-search-list"), (25, "IA_PD"), (26, "IA_PD-prefix"),
    (27, "NIS-server"), (28, "NIS+-server"), (29, "NIS-domain-name"), (30, "NIS+-domain-name"), (31, "SNTP-servers"),
    (32, "lifetime"), (33, "BCMCS-domain-name"), (34, "BCMCS-server"), (36, "Geoconf-Civic"), (37, "Remote-ID"),
    (38, "Subscriber-ID"), (39, "Client-FQDN"), (40, "PANA-agent"), (41, "POSIX-timezone"), (42, "POSIX-tz-database"),
    (43, "Echo-request-option"), (44, "Lease-query"), (45, "LQ-client-data"), (46, "Clt-time"), (47, "LQ-relay-data"),
    (48, "LQ-client-link"), (56, "NTP-server"), (64, "AFTR-Name"), (112, "MUD-URL"),
];

/// Returns the name of a type of option.
pub(super) fn option(number: u16) -> Option<&'static str> {
    word_of(&OPTIONS, number)
}

#[rustfmt::skip]
const STATES: [&str; 11] = [
    "Success", "UnspecFail", "NoAddrsAvail", "NoBinding", "NotOnLink", "UseMulticast", "NoPrefixAvail",
    "UnknownQueryType", "MalformedQuery", "NotConfigured", "NotAllowed",
];

/// Returns the name of a status code, which is the result of a request.
pub(super) fn state(code: u16) -> Option<&'static str> {
    STATES.get(usize::from(code)).copied()
}
