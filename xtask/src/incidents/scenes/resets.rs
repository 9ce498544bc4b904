//! Connections that are reset or aborted.

use super::At::{Client, Router, Server};
use super::{At, Incident, Lines, NONE};

/// A server that reads a part of each request, or all of it.
const HASTY: Lines =
    &[(Server, "hasty_web(80, 10 if ILL else 4096); ready()"), (Client, "ask(SERVER, 80); ready(0.5)")];
/// A server that resets connections after its answer, or closes them.
const ABORTING: Lines =
    &[(Server, "aborting_web(80) if ILL else web(80, 100000); ready()"), (Client, "ask(SERVER, 80); ready(0.5)")];
/// Connections that are idle for four seconds between requests.
const IDLE: Lines = &[(Server, "echo_stream(80); ready()"), (Client, "idlers(SERVER, 80); ready(5)")];
/// A firewall that lets new connections and those that it knows pass, and resets others.
const REJECTS: (At, &str) = (
    Router,
    "sysctl -qw net.netfilter.nf_conntrack_tcp_loose=0; nft 'table ip f { chain c { type filter hook forward \
     priority 0; ct state established accept; tcp flags & (syn | ack) == syn accept; \
     meta l4proto tcp reject with tcp reset; }; }'",
);
/// Firewalls that drop others.
const ROUTER_DROPS: &str = "nft 'table ip f { chain c { type filter hook forward priority 0; policy drop; \
                            ct state established accept; tcp flags & (syn | ack) == syn accept; }; }'";
const SERVER_DROPS: &str = "nft 'table ip f { chain c { type filter hook input priority 0; policy drop; \
                            ct state established accept; tcp flags & (syn | ack) == syn accept; }; }'";
const FORGETS: &str = "sysctl -qw net.netfilter.nf_conntrack_tcp_timeout_established=2";

pub(super) const INCIDENTS: &[Incident] = &[
    Incident {
        name: "a server closes connections with unread data",
        expected: "service-resets",
        at: Server,
        traffic: HASTY,
        is_quick: true,
        ..NONE
    },
    Incident {
        name: "a server closes connections with unread data, seen by the client",
        expected: "peer-resets",
        at: Client,
        traffic: HASTY,
        ..NONE
    },
    Incident {
        name: "a server answers and closes while clients are still sending",
        expected: "service-resets",
        at: Server,
        traffic: &[
            (Server, "hasty_web(80, 4096, 100) if ILL else sink(80); ready()"),
            (Client, "[upload(SERVER, 80, 0.005) for _ in range(4)]; ready(0.8)"),
        ],
        ..NONE
    },
    Incident {
        name: "a server aborts connections with SO_LINGER 0",
        expected: "service-resets",
        at: Server,
        traffic: ABORTING,
        ..NONE
    },
    Incident {
        name: "a server aborts connections with SO_LINGER 0, seen by the client",
        expected: "peer-resets",
        at: Client,
        traffic: ABORTING,
        ..NONE
    },
    Incident {
        name: "a program uses connections that the server has closed",
        expected: "peer-resets",
        at: Client,
        traffic: &[
            (Server, "closing_web(80, 1.5 if ILL else 60); ready()"),
            (Client, "idlers(SERVER, 80, 20, 2); ready(2.5)"),
        ],
        ..NONE
    },
    Incident {
        name: "a firewall forgets idle connections and resets them, seen by the client",
        expected: "idle-reset",
        at: Client,
        set_up: &[REJECTS],
        fault: &[(Router, FORGETS)],
        traffic: IDLE,
        ..NONE
    },
    Incident {
        name: "a firewall forgets idle connections and drops their segments",
        expected: "ct-forgotten",
        at: Router,
        set_up: &[(Router, ROUTER_DROPS)],
        fault: &[(Router, FORGETS)],
        traffic: IDLE,
        ..NONE
    },
    Incident {
        name: "a server's own firewall forgets idle connections",
        expected: "ct-forgotten",
        at: Server,
        set_up: &[(Server, SERVER_DROPS)],
        fault: &[(Server, FORGETS)],
        traffic: IDLE,
        ..NONE
    },
    Incident {
        name: "a NAT forgets idle connections, seen by the server",
        expected: "idle-reset",
        at: Server,
        set_up: &[(
            Router,
            "nft 'table ip n { chain c { type nat hook postrouting priority srcnat; oif s1 masquerade; }; }'",
        )],
        fault: &[(Router, FORGETS)],
        traffic: &[(Server, "push(80, 4); ready()"), (Client, "readers(SERVER, 80); ready(6)")],
        ..NONE
    },
    Incident {
        name: "a NAT gives idle connections other ports, seen by the server",
        expected: "idle-reset",
        at: Server,
        set_up: &[(
            Router,
            "nft 'table ip n { chain c { type nat hook postrouting priority srcnat; oif s1 \
             masquerade fully-random; }; }'",
        )],
        fault: &[(Router, FORGETS)],
        traffic: IDLE,
        ..NONE
    },
    Incident {
        name: "forged resets miss the window of a connection",
        expected: "challenged",
        at: Server,
        traffic: &[
            (Server, "sink(80); ready()"),
            (Client, "[upload(SERVER, 80) for _ in range(6)]\nif ILL: blind_resets(80)\nready(1)"),
        ],
        ..NONE
    },
    Incident {
        name: "the kernel gives up connections whose peer is gone",
        expected: "gave-up",
        at: Client,
        set_up: &[
            (Client, "sysctl -qw net.ipv4.tcp_retries2=2"),
            (
                Router,
                "nft 'table ip f { set gone { type inet_service; }; chain c { type filter hook forward priority 0; \
              tcp dport @gone drop; tcp sport @gone drop; }; }'",
            ),
        ],
        traffic: &[
            (Server, "echo_stream(80); ready()"),
            (Client, "idlers(SERVER, 80, 30, 0.3, 33000); ready(0.5)"),
            (
                Router,
                "import itertools\nports = itertools.count(33000)\n\
                 every(0.3, lambda: run('nft add element ip f gone { %d }' % next(ports)) if ILL else None); ready(3)",
            ),
        ],
        ..NONE
    },
];
