//! Connections that are slow although nothing is lost.

use super::At::{Client, Router, Server};
use super::{At, FORWARD, Incident, NONE};

/// A path with a round trip of 40 ms.
const LONG: (At, &str) = (Router, "long_path(0.02); ready()");
/// Makes the client's link slower than the path, so that the healthy twin loses nothing.
const LINK: (At, &str) = (Client, "tc qdisc add dev c0 root tbf rate 20mbit burst 32k limit 400k");
/// Drops SYNs that ask for ECN.
const NO_ECN: &str = "nft 'table ip f { chain c { type filter hook forward priority 0; \
     tcp flags & (syn | ecn | cwr) == syn | ecn | cwr drop; }; }'";
const SINK: (At, &str) = (Server, "sink(80); ready()");
/// One connection that sends as fast as it can, once the long path is there.
const SEND: (At, &str) = (Client, "time.sleep(1.5); send_all(SERVER, 80); ready(2.5)");
/// A server whose receive buffer is small.
const SMALL_SINK: (At, &str) = (Server, "sink(80, 16384 if ILL else 0); ready()");
/// A client that writes a request in two parts and waits for the answer.
const PARTS: (At, &str) = (Client, "exchanges(SERVER, 90, [100, 200], is_nagle=ILL); ready(1.5)");

pub(super) const INCIDENTS: &[Incident] = &[
    Incident {
        name: "a program sets a small send buffer on a long path",
        expected: "send-buffer",
        at: Client,
        set_up: &[LINK],
        traffic: &[SINK, LONG, (Client, "time.sleep(1.5); send_all(SERVER, 80, 16384 if ILL else 0); ready(2.5)")],
        is_quick: true,
        ..NONE
    },
    Incident {
        name: "the largest send buffer is small on a long path",
        expected: "send-buffer",
        at: Client,
        set_up: &[LINK],
        fault: &[(Client, "sysctl -qw net.ipv4.tcp_wmem='4096 16384 32768'")],
        traffic: &[SINK, LONG, SEND],
        ..NONE
    },
    Incident {
        name: "a server's small send buffer on a long path",
        expected: "send-buffer",
        at: Server,
        set_up: &[(Server, "tc qdisc add dev s0 root tbf rate 20mbit burst 32k limit 400k")],
        traffic: &[
            (Server, "bulk(80, 16384 if ILL else 0); ready()"),
            LONG,
            (Client, "time.sleep(1.5); receive_all(SERVER, 80); ready(2.5)"),
        ],
        ..NONE
    },
    Incident {
        name: "a peer's receive window is small on a long path",
        expected: "small-window",
        at: Client,
        set_up: &[LINK],
        traffic: &[SMALL_SINK, LONG, SEND],
        ..NONE
    },
    Incident {
        name: "a program sets a small receive buffer on a long path",
        expected: "small-window",
        at: Server,
        set_up: &[LINK],
        traffic: &[SMALL_SINK, LONG, SEND],
        ..NONE
    },
    Incident {
        name: "the largest receive buffer is small on a long path, at the receiver",
        expected: "small-window",
        at: Server,
        fault: &[(Server, "sysctl -qw net.ipv4.tcp_rmem='4096 16384 32768'")],
        // The remedy is for new connections: the buffer of an old one may or may not grow.
        traffic: &[SINK, LONG, (Client, "time.sleep(1.5); send_all(SERVER, 80, again_s=15); ready(2.5)")],
        ..NONE
    },
    Incident {
        name: "the largest receive buffer is small on a long path, at the sender",
        expected: "small-window",
        at: Client,
        set_up: &[LINK],
        fault: &[(Server, "sysctl -qw net.ipv4.tcp_rmem='4096 16384 32768'")],
        // The listener's first window stays: it must be far below what the link carries in a round trip.
        traffic: &[SINK, (Router, "long_path(0.04); ready()"), SEND],
        ..NONE
    },
    Incident {
        name: "a client writes requests in small parts (Nagle, delayed ACKs)",
        expected: "nagle",
        at: Client,
        traffic: &[(Server, "replies(90, 300, [50]); ready()"), PARTS],
        ..NONE
    },
    Incident {
        name: "a client writes requests in small parts, seen by the server",
        expected: "nagle",
        at: Server,
        traffic: &[(Server, "replies(90, 300, [50]); ready()"), PARTS],
        ..NONE
    },
    Incident {
        name: "a server writes answers in small parts (Nagle, delayed ACKs)",
        expected: "nagle",
        at: Server,
        traffic: &[
            (Server, "replies(90, 100, [50, 500], is_nagle=ILL); ready()"),
            (Client, "exchanges(SERVER, 90, [100], 550); ready(1.5)"),
        ],
        ..NONE
    },
    Incident {
        name: "a client leaves TCP_CORK set",
        expected: "nagle",
        at: Client,
        traffic: &[
            (Server, "replies(90, 300, [50]); ready()"),
            (Client, "exchanges(SERVER, 90, [100, 200]); held[-1].setsockopt(6, 3, int(ILL)); ready(1.5)"),
        ],
        ..NONE
    },
    Incident {
        name: "a path MTU of 552 was learned, the link has 1500",
        expected: "small-pmtu",
        at: Client,
        traffic: &[
            SINK,
            (
                Router,
                "if ILL: run('ip route change 172.17.0.0/24 dev s1 mtu 552')\n\
                 time.sleep(1.5); run('ip route change 172.17.0.0/24 dev s1'); ready()",
            ),
            (Client, "upload(SERVER, 80); ready(2)"),
        ],
        ..NONE
    },
    Incident {
        name: "a rule on the path sets the MSS of SYNs to 100",
        expected: "small-mss",
        at: Server,
        set_up: &[(Router, FORWARD)],
        fault: &[(Router, "nft add rule ip f c tcp flags syn tcp option maxseg size set 100")],
        traffic: &[(Server, "bulk(80); ready()"), (Client, "receive_all(SERVER, 80); ready(1)")],
        ..NONE
    },
    Incident {
        name: "a route of the client has a small advmss",
        expected: "small-mss",
        at: Client,
        fault: &[(Client, "ip route replace default via 192.0.2.1 advmss 100")],
        traffic: &[(Server, "bulk(80); ready()"), (Client, "receive_all(SERVER, 80); ready(1)")],
        ..NONE
    },
    Incident {
        name: "a path drops SYNs that ask for ECN",
        expected: "ecn-syn",
        at: Client,
        set_up: &[(Client, "sysctl -qw net.ipv4.tcp_ecn=1")],
        fault: &[(Router, NO_ECN)],
        traffic: &[(Server, "web(80); ready()"), (Client, "ask(SERVER, 80); ready(2.5)")],
        ..NONE
    },
    Incident {
        name: "a path drops SYNs that ask for ECN, one connection at a time",
        expected: "ecn-syn",
        at: Client,
        set_up: &[(Client, "sysctl -qw net.ipv4.tcp_ecn=1")],
        fault: &[(Router, NO_ECN)],
        traffic: &[
            (Server, "web(80); sink(81); ready()"),
            (
                Client,
                "hold(SERVER, 81, 1)\n\
                 def once():\n    with socket.create_connection((SERVER, 80)) as s:\n        \
                 s.send(b'x'); s.recv(9000); time.sleep(0 if ILL else 1)\n\
                 every(0, once); ready(2.5)",
            ),
        ],
        ..NONE
    },
    Incident {
        name: "segments overtake each other on the path",
        expected: "reordering",
        at: Client,
        traffic: &[
            SINK,
            (Router, "long_path(0.005, overtakes=0.15 if ILL else 0); ready()"),
            (Client, "time.sleep(1); upload(SERVER, 80, 0.02); ready(1.5)"),
        ],
        ..NONE
    },
    Incident {
        name: "the path delivers segments twice, at the sender",
        expected: "duplicates",
        at: Client,
        traffic: &[
            SINK,
            (Router, "long_path(0.005, twice=0.2 if ILL else 0); ready()"),
            (Client, "time.sleep(1); upload(SERVER, 80, 0.02); ready(1.5)"),
        ],
        ..NONE
    },
    Incident {
        name: "the path delivers segments twice, at the receiver",
        expected: "duplicates",
        at: Server,
        traffic: &[
            SINK,
            (Router, "long_path(0.005, twice=0.2 if ILL else 0); ready()"),
            (Client, "time.sleep(1); upload(SERVER, 80, 0.02); ready(1.5)"),
        ],
        ..NONE
    },
];
