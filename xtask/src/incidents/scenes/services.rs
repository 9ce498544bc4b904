//! Services that run, but not for these clients.

use super::At::{Client, Router, Server};
use super::{Incident, Lines, NONE, SETTLED, TRACK, WEB};

/// Waits on each host until its IPv6 addresses can be used.
const IPV6: Lines = &[(Client, SETTLED), (Router, SETTLED), (Server, SETTLED)];

pub(super) const INCIDENTS: &[Incident] = &[
    Incident {
        name: "a server listens on 127.0.0.1 only",
        expected: "closed-port",
        at: Server,
        traffic: &[
            (Server, "serve_at(listen(80, address='127.0.0.1' if ILL else '')); ready()"),
            (Client, "ask(SERVER, 80); ready(0.5)"),
        ],
        is_quick: true,
        ..NONE
    },
    Incident {
        name: "a server listens on IPv4 only, its clients use IPv6",
        expected: "closed-port",
        at: Server,
        set_up: IPV6,
        traffic: &[
            (Server, "serve_at(listen(80, family=socket.AF_INET if ILL else socket.AF_INET6)); ready()"),
            (Client, "ask('fd17::2', 80); ready(0.5)"),
        ],
        ..NONE
    },
    Incident {
        name: "a server is bound to another interface",
        expected: "closed-port",
        at: Server,
        traffic: &[
            (
                Server,
                "listener = listen(80)\n\
                 listener.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b'lo' if ILL else b's0')\n\
                 serve_at(listener); ready()",
            ),
            (Client, "ask(SERVER, 80); ready(0.5)"),
        ],
        ..NONE
    },
    Incident {
        name: "a backlog of 1 is too small for clients that connect at the same moment",
        expected: "listen-overflow",
        at: Server,
        traffic: &[
            (Server, "web(80, backlog=1 if ILL else 128); ready()"),
            (Client, "burst(SERVER, 80, 40); ready(1)"),
        ],
        ..NONE
    },
    Incident {
        name: "a server is frozen, as in a container that is paused",
        expected: "process-stopped",
        at: Server,
        traffic: &[
            (Server, "pid = fork(web, 80)\nif ILL: time.sleep(0.5); frozen(pid)\nready()"),
            (Client, "ask(SERVER, 80); ready(0.3)"),
        ],
        ..NONE
    },
    Incident {
        name: "the program of a DNS server is down",
        expected: "dns-silent",
        at: Client,
        traffic: &[(Server, "ILL or name_server(SERVER); ready()"), (Client, "resolver([SERVER]); ready(0.5)")],
        ..NONE
    },
    Incident {
        name: "the path of IPv6 is dead, and programs try IPv4 a moment later",
        expected: "syn-retrans",
        at: Client,
        set_up: IPV6,
        fault: &[(
            Router,
            "nft 'table ip6 f { chain c { type filter hook forward priority 0; tcp dport 80 drop; }; }'",
        )],
        traffic: &[
            (Server, "serve_at(listen(80, family=socket.AF_INET6)); ready()"),
            // At different paces, so that they do not rest at the same time.
            (Client, "[happy_eyeballs('fd17::2', SERVER, 80, 0.03 + n / 100) for n in range(12)]; ready(0.5)"),
        ],
        ..NONE
    },
    Incident {
        name: "a host answers no pings",
        expected: "ping-ignored",
        at: Server,
        fault: &[(Server, "sysctl -qw net.ipv4.icmp_echo_ignore_all=1")],
        traffic: &[(Server, "echo(7); ready()"), (Client, "pings([SERVER], 0.1); ready(0.5)")],
        ..NONE
    },
    Incident {
        name: "a server has no route back to its clients, seen by a router",
        expected: "ct-unreplied",
        set_up: &[(Router, TRACK)],
        fault: &[(Server, "ip route del default")],
        traffic: WEB,
        ..NONE
    },
    Incident {
        name: "source NAT to an address that the router does not have",
        expected: "ct-unreplied",
        set_up: &[(
            Router,
            "nft 'table ip n { chain c { type nat hook postrouting priority srcnat; oif s1 snat to 172.17.0.1; }; }'",
        )],
        fault: &[(Router, "nft 'flush chain ip n c; add rule ip n c oif s1 snat to 172.17.0.99'")],
        traffic: WEB,
        ..NONE
    },
];
