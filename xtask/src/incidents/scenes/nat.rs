//! NAT and connection tracking.

use super::At::{Client, Router, Server};
use super::{Incident, Lines, NONE, TRACK};

/// Client and server are in one network, whose router publishes port 80 of the server at 203.0.113.1.
const INSIDE: Lines = &[
    (Router, "ip addr flush dev c1; ip addr flush dev s1; ip link add br0 type bridge; ip link set br0 up"),
    (Router, "ip link set c1 master br0; ip link set s1 master br0; ip addr add 10.9.0.3/24 dev br0"),
    (Router, "ip addr add 203.0.113.1/32 dev lo"),
    (Router, "sysctl -qw net.bridge.bridge-nf-call-iptables=0 2>/dev/null || true"),
    (
        Router,
        "nft 'table ip n { chain pre { type nat hook prerouting priority dstnat; ip daddr 203.0.113.1 tcp dport 80 \
         dnat to 10.9.0.2; }; chain post { type nat hook postrouting priority srcnat; ip saddr 10.9.0.0/24 ip daddr \
         10.9.0.2 masquerade; }; }'",
    ),
    (Client, "ip addr add 10.9.0.1/24 dev c0; ip route replace default via 10.9.0.3"),
    (Server, "ip addr add 10.9.0.2/24 dev s0; ip route replace default via 10.9.0.3"),
];
/// The requests of the client to the published port.
const REQUESTS: Lines = &[(Server, "web(80); ready()"), (Client, "ask('203.0.113.1', 80, 0.1); ready(1.2)")];
/// The client is a container at a bridge of the router, which publishes its port 80 at 203.0.113.1.
const CONTAINER: Lines = &[
    (Router, "ip addr flush dev c1; ip link add br0 type bridge; ip link set br0 up; ip link set c1 master br0"),
    (Router, "ip addr add 10.9.0.3/24 dev br0; ip addr add 203.0.113.1/32 dev lo"),
    (Router, "sysctl -qw net.bridge.bridge-nf-call-iptables=1; ip link set c1 type bridge_slave hairpin on"),
    (
        Router,
        "nft 'table ip n { chain pre { type nat hook prerouting priority dstnat; ip daddr 203.0.113.1 tcp dport 80 \
         dnat to 10.9.0.1; }; chain post { type nat hook postrouting priority srcnat; ip saddr 10.9.0.1 ip daddr \
         10.9.0.1 masquerade; }; }'",
    ),
    (Client, "ip addr add 10.9.0.1/24 dev c0; ip route replace default via 10.9.0.3"),
];
/// The container asks its own published port.
const ITSELF: Lines = &[(Client, "web(80); ask('203.0.113.1', 80, 0.1); ready(1.2)")];
/// The rule no longer translates the sources of requests.
const NO_MASQUERADE: Lines = &[(Router, "nft flush chain ip n post")];
/// The router sends datagrams to port 514 to a server.
const PUBLISHED: (super::At, &str) = (
    Router,
    "nft 'table ip n { chain pre { type nat hook prerouting priority dstnat; iif c1 udp dport 514 dnat to \
     172.17.0.21; }; }'",
);
/// Two servers for datagrams to port 514.
const BACKENDS: (super::At, &str) = (Server, "ip addr add 172.17.0.21/24 dev s0; ip addr add 172.17.0.22/24 dev s0");
const SENDER: (super::At, &str) = (Client, "datagrams('192.0.2.1', 514, every=0.05); ready(0.5)");

pub(super) const INCIDENTS: &[Incident] = &[
    Incident {
        name: "clients inside ask a published port, without masquerade",
        expected: "hairpin",
        set_up: INSIDE,
        fault: NO_MASQUERADE,
        traffic: REQUESTS,
        is_quick: true,
        ..NONE
    },
    Incident {
        name: "clients inside ask a published port, without masquerade, seen by a client",
        expected: "answer-source",
        at: Client,
        set_up: INSIDE,
        fault: NO_MASQUERADE,
        traffic: REQUESTS,
        ..NONE
    },
    Incident {
        name: "a container asks its own published port: hairpin mode is off",
        expected: "hairpin",
        set_up: CONTAINER,
        fault: &[(Router, "ip link set c1 type bridge_slave hairpin off")],
        traffic: ITSELF,
        ..NONE
    },
    Incident {
        name: "a container asks its own published port, without masquerade",
        expected: "hairpin",
        set_up: CONTAINER,
        fault: NO_MASQUERADE,
        traffic: ITSELF,
        ..NONE
    },
    Incident {
        name: "a container asks its own published port, without masquerade, seen by the container",
        expected: "hairpin",
        at: Client,
        set_up: CONTAINER,
        fault: NO_MASQUERADE,
        traffic: ITSELF,
        ..NONE
    },
    Incident {
        name: "destination NAT to 127.0.0.1 without route_localnet",
        expected: "route-localnet",
        set_up: &[
            (
                Router,
                "nft 'table ip n { chain pre { type nat hook prerouting priority dstnat; iif c1 tcp dport 8080 dnat \
                 to 127.0.0.1:80; }; }'",
            ),
            (Router, "sysctl -qw net.ipv4.conf.c1.route_localnet=1"),
        ],
        fault: &[(Router, "sysctl -qw net.ipv4.conf.c1.route_localnet=0")],
        traffic: &[
            (Server, "ready()"),
            (Router, "web(80); ready()"),
            (Client, "ask('192.0.2.1', 8080, 0.1); ready(0.8)"),
        ],
        ..NONE
    },
    Incident {
        name: "a UDP flow still goes to the old server, which is gone",
        expected: "ct-stale",
        set_up: &[BACKENDS, PUBLISHED],
        traffic: &[
            (
                Server,
                "echo(514)\n\
                 if ILL: background(lambda: (time.sleep(1.5), run('ip addr del 172.17.0.21/24 dev s0')))\n\
                 ready()",
            ),
            SENDER,
            (
                Router,
                "time.sleep(1)\n\
                 if ILL: run('nft \"flush chain ip n pre; add rule ip n pre iif c1 udp dport 514 dnat to \
                 172.17.0.22\"')\n\
                 ready(1)",
            ),
        ],
        ..NONE
    },
    Incident {
        name: "a one-way UDP flow still goes to the old server",
        expected: "ct-stale",
        set_up: &[BACKENDS, PUBLISHED],
        traffic: &[
            (Server, "echo(514, answers=False); ready()"),
            SENDER,
            (
                Router,
                "time.sleep(1)\n\
                 if ILL: run('nft \"flush chain ip n pre; add rule ip n pre iif c1 udp dport 514 dnat to \
                 172.17.0.22\"')\n\
                 ready(0.3)",
            ),
        ],
        ..NONE
    },
    Incident {
        name: "a UDP flow is older than the rule that redirects it",
        expected: "ct-stale",
        set_up: &[BACKENDS, PUBLISHED, (Router, TRACK)],
        fault: &[(Router, "nft flush chain ip n pre")],
        traffic: &[
            (Server, "echo(514); ready()"),
            SENDER,
            (
                Router,
                "time.sleep(1)\n\
                 if ILL: run('nft add rule ip n pre iif c1 udp dport 514 dnat to 172.17.0.21')\n\
                 ready(0.3)",
            ),
        ],
        ..NONE
    },
    Incident {
        name: "a UDP flow is older than the rule that translates its source",
        expected: "ct-stale",
        set_up: &[
            (
                Router,
                "nft 'table ip n { chain post { type nat hook postrouting priority srcnat; oif s1 masquerade; }; }'",
            ),
            (Router, TRACK),
            (Server, "ip route del default"),
        ],
        fault: &[(Router, "nft flush chain ip n post")],
        traffic: &[
            (Server, "echo(5060); ready()"),
            (Client, "datagrams(SERVER, 5060, every=0.05); ready(0.5)"),
            (
                Router,
                "time.sleep(1)\n\
                 if ILL: run('nft add rule ip n post oif s1 masquerade')\n\
                 ready(0.3)",
            ),
        ],
        ..NONE
    },
    Incident {
        name: "answers come after the mapping of source NAT has expired",
        expected: "nat-expired",
        set_up: &[(
            Router,
            "nft 'table ip n { chain post { type nat hook postrouting priority srcnat; oif s1 masquerade; }; }'",
        )],
        fault: &[(
            Router,
            "sysctl -qw net.netfilter.nf_conntrack_udp_timeout=1 net.netfilter.nf_conntrack_udp_timeout_stream=1",
        )],
        traffic: &[
            (Server, "late_echo(7, 2.5); ready()"),
            (
                Client,
                "def once():\n    s = socket.socket(2, 2); held.append(s); s.sendto(b'x', (SERVER, 7))\n\
                 every(0.2, once); ready(3.5)",
            ),
        ],
        ..NONE
    },
];
