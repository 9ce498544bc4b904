//! Name servers that do not answer, or from another address than was asked.

use super::At::{Client, Server};
use super::{Incident, Lines, NONE};

/// Gives the server's host a second address for a name server.
const SECOND: Lines = &[(Server, "ip addr add 172.17.0.53/24 dev s0")];
/// The first of two name servers is silent in one twin.
const FIRST_SILENT: (super::At, &str) =
    (Server, "name_server('172.17.0.53', answers=not ILL); name_server('172.17.0.2'); ready()");
/// A name server that listens on every address answers from the first one of its interface.
const ANY_ADDRESS: Lines = &[
    (Server, "name_server('' if ILL else '172.17.0.53'); ready()"),
    (Client, "resolver(['172.17.0.53'], 2); ready(0.5)"),
];

pub(super) const INCIDENTS: &[Incident] = &[
    Incident {
        name: "the first of two DNS servers is dead, and one program waits",
        expected: "dns-silent",
        at: Client,
        set_up: SECOND,
        traffic: &[FIRST_SILENT, (Client, "resolver(['172.17.0.53', SERVER]); ready(3.6)")],
        ..NONE
    },
    Incident {
        name: "the first of two DNS servers is dead, on a host that tracks connections",
        expected: "dns-silent",
        at: Client,
        set_up: &[
            (Server, "ip addr add 172.17.0.53/24 dev s0"),
            (Client, "nft 'table ip t { chain c { type filter hook output priority 0; ct state new counter; }; }'"),
        ],
        // The window is between two attempts: nothing is sent in it.
        traffic: &[FIRST_SILENT, (Client, "resolver(['172.17.0.53', SERVER]); ready(6.3)")],
        ..NONE
    },
    Incident {
        name: "a DNS server is silent, and a proxy keeps its socket to another server open",
        expected: "dns-silent",
        at: Client,
        set_up: SECOND,
        traffic: &[
            FIRST_SILENT,
            (Client, "idle_resolver(SERVER); resolver(['172.17.0.53'], 1); resolver([SERVER], 5, 0.5); ready(0.5)"),
        ],
        ..NONE
    },
    Incident {
        name: "a DNS server gets no answers itself: SERVFAIL",
        expected: "dns-errors",
        at: Client,
        traffic: &[
            (Server, "name_server(SERVER, codes=[2] if ILL else [0]); ready()"),
            (Client, "resolver([SERVER]); ready(0.3)"),
        ],
        ..NONE
    },
    Incident {
        name: "a DNS server does not serve this network: REFUSED",
        expected: "dns-errors",
        at: Client,
        traffic: &[
            (Server, "name_server(SERVER, codes=[5] if ILL else [3]); ready()"),
            (Client, "resolver([SERVER]); ready(0.3)"),
        ],
        ..NONE
    },
    Incident {
        name: "a DNS server answers from another address",
        expected: "answer-source",
        at: Client,
        set_up: SECOND,
        traffic: ANY_ADDRESS,
        is_quick: true,
        ..NONE
    },
    Incident {
        name: "a DNS server answers from another address, seen by the server",
        expected: "answer-source",
        at: Server,
        set_up: SECOND,
        traffic: ANY_ADDRESS,
        ..NONE
    },
    Incident {
        name: "a UDP service answers from another address",
        expected: "answer-source",
        at: Client,
        set_up: SECOND,
        traffic: &[
            (Server, "name_server('' if ILL else '172.17.0.53', port=161); ready()"),
            (Client, "resolver(['172.17.0.53'], 0.8, port=161); ready(0.5)"),
        ],
        ..NONE
    },
];
