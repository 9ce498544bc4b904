//! The incidents: for each, its set-up, its fault, its traffic and the finding that must come first.
//!
//! The hosts are a client, a router and a server in a row ([`testkit::routed::Routed`]). Lines of shell and Python run
//! inside the hosts; Python has the functions of `traffic.py`, and `ILL` distinguishes the twins if the traffic itself
//! is the fault.

mod dns;
mod interfaces;
mod nat;
mod neighbours;
mod policies;
mod ports;
mod resets;
mod services;
mod slow;
mod waiting;

/// One of the three hosts, or the machine that they run on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum At {
    Client,
    Router,
    Server,
    Machine,
}

use At::{Client, Machine, Router, Server};

/// Lines for hosts.
pub(super) type Lines = &'static [(At, &'static str)];

/// An incident and its healthy twin.
pub(super) struct Incident {
    pub(super) name: &'static str,
    /// The finding that names the cause.
    pub(super) expected: &'static str,
    /// The host on which `doctor` runs.
    pub(super) at: At,
    /// Shell: the set-up of both twins.
    pub(super) set_up: Lines,
    /// Shell: the fault.
    pub(super) fault: Lines,
    /// Python: the traffic of both twins.
    pub(super) traffic: Lines,
    /// Settings of the whole machine that are part of the fault.
    pub(super) knobs: &'static [(&'static str, &'static str)],
    /// True if the tests also play this incident.
    pub(super) is_quick: bool,
}

pub(super) const NONE: Incident =
    Incident { name: "", expected: "", at: Router, set_up: &[], fault: &[], traffic: &[], knobs: &[], is_quick: false };

/// A web server and a client that sends requests to it.
const WEB: Lines = &[(Server, "web(80); ready()"), (Client, "ask(SERVER, 80); ready(0.3)")];
/// A web server with much larger answers and its client.
const BULK: Lines = &[(Server, "web(80, 300000); ready()"), (Client, "ask(SERVER, 80, 0.05); ready(0.3)")];
/// Datagrams that are answered.
const ECHO: Lines = &[(Server, "echo(7); ready()"), (Client, "datagrams(SERVER, 7); ready(0.2)")];
/// Makes the router track connections.
const TRACK: &str = "nft 'table ip t { chain c { type filter hook forward priority 0; ct state new counter; }; }'";
/// Waits until the kernel has finished duplicate address detection for its IPv6 addresses, at most ten seconds.
const SETTLED: &str = "n=0; while ip -6 addr show tentative | grep -q inet6 && [ $n -lt 100 ]; do sleep 0.1; \
                       n=$((n + 1)); done";
/// Makes the router a bridge between client and server, which have 10.9.0.1 and 10.9.0.2; groups are sent to it.
pub(super) const BRIDGE: Lines = &[
    (Router, "ip addr flush dev c1; ip addr flush dev s1; ip link add br0 type bridge; ip link set br0 up"),
    (Router, "ip link set c1 master br0; ip link set s1 master br0; ip addr add 10.9.0.3/24 dev br0"),
    (Router, "sysctl -qw net.bridge.bridge-nf-call-iptables=0 2>/dev/null || true"),
    (Client, "ip addr add 10.9.0.1/24 dev c0; ip route add 224.0.0.0/4 dev c0 src 10.9.0.1"),
    (Server, "ip addr add 10.9.0.2/24 dev s0; ip route add 224.0.0.0/4 dev s0 src 10.9.0.2"),
];
/// Makes that bridge ask for members of groups. The kernel floods groups until it has waited for answers (half a
/// second), and does not show when that is over.
pub(super) const QUERIER: (At, &str) = (
    Router,
    "ip link set br0 type bridge mcast_query_response_interval 50; ip link set br0 type bridge mcast_querier 1; \
     sleep 1",
);
/// A table for rules of the IP packet filter.
const FORWARD: &str = "nft 'table ip f { chain c { type filter hook forward priority 0; }; }'";

/// Every incident, in the order of the page.
pub(super) fn incidents() -> impl Iterator<Item = &'static Incident> {
    let groups = [
        INCIDENTS,
        waiting::INCIDENTS,
        ports::INCIDENTS,
        services::INCIDENTS,
        resets::INCIDENTS,
        slow::INCIDENTS,
        neighbours::INCIDENTS,
        dns::INCIDENTS,
        nat::INCIDENTS,
        policies::INCIDENTS,
        interfaces::INCIDENTS,
    ];
    groups.into_iter().flatten()
}

const INCIDENTS: &[Incident] = &[
    Incident {
        name: "a rule drops forwarded packets",
        expected: "rule-drop",
        set_up: &[(Router, FORWARD)],
        fault: &[(Router, "nft add rule ip f c tcp dport 80 drop")],
        traffic: WEB,
        is_quick: true,
        ..NONE
    },
    Incident {
        name: "a rule drops packets to a server",
        expected: "rule-drop",
        at: Server,
        fault: &[(Server, "nft 'table inet f { chain c { type filter hook input priority 0; tcp dport 80 drop; }; }'")],
        traffic: WEB,
        ..NONE
    },
    Incident {
        name: "the policy of the output chain is drop",
        expected: "rule-drop",
        at: Client,
        fault: &[(
            Client,
            "nft 'table inet f { chain c { type filter hook output priority 0; policy drop; oif lo accept; }; }'",
        )],
        traffic: WEB,
        ..NONE
    },
    Incident {
        name: "a rule drops one packet in ten",
        expected: "rule-drop",
        set_up: &[(Router, FORWARD)],
        fault: &[(Router, "nft add rule ip f c numgen random mod 10 == 0 drop")],
        traffic: BULK,
        ..NONE
    },
    Incident {
        name: "the path loses one packet in ten",
        expected: "retransmits",
        at: Server,
        set_up: &[(Router, FORWARD)],
        fault: &[(Router, "nft add rule ip f c numgen random mod 10 == 0 drop")],
        traffic: BULK,
        ..NONE
    },
    Incident {
        name: "a rule on the path rejects packets",
        expected: "refused",
        at: Client,
        set_up: &[(Router, FORWARD)],
        fault: &[(Router, "nft add rule ip f c tcp dport 80 reject with icmp type admin-prohibited")],
        traffic: WEB,
        ..NONE
    },
    Incident {
        name: "a path drops the packets to a service",
        expected: "syn-retrans",
        at: Client,
        set_up: &[(Router, FORWARD)],
        fault: &[(Router, "nft add rule ip f c tcp dport 80 drop")],
        traffic: &[(Server, "web(80); ready()"), (Client, "ask(SERVER, 80, 0.1); ready(1.2)")],
        ..NONE
    },
    Incident {
        name: "conntrack table full",
        expected: "ct-full",
        set_up: &[(Router, TRACK)],
        knobs: &[("/proc/sys/net/netfilter/nf_conntrack_max", "100")],
        traffic: &[
            (Server, "sink(80); web(81); ready()"),
            (Client, "hold(SERVER, 80, 120); ask(SERVER, 81, 0.02); ready(0.5)"),
        ],
        ..NONE
    },
    Incident {
        name: "conntrack table full, evicting",
        expected: "ct-evicting",
        set_up: &[(Router, TRACK), (Server, "ip route add blackhole 192.0.2.10/32")],
        knobs: &[
            ("/proc/sys/net/netfilter/nf_conntrack_max", "400"),
            ("/proc/sys/net/netfilter/nf_conntrack_buckets", "32"),
        ],
        traffic: &[
            (Server, "ready()"),
            (Client, "flows(SERVER, range(2000, 2050 if not ILL else 9000), 0.004); ready(2.5)"),
        ],
        ..NONE
    },
    Incident {
        name: "no helper follows FTP through a firewall",
        expected: "ct-helper",
        set_up: &[(
            Router,
            "nft 'table ip f { ct helper ftp { type \"ftp\" protocol tcp; }; \
             chain c { type filter hook forward priority 0; policy drop; ct state established,related accept; \
             tcp dport 21 ct helper set \"ftp\" accept; }; }'",
        )],
        fault: &[(
            Router,
            "nft 'flush chain ip f c; add rule ip f c ct state established,related accept; \
             add rule ip f c tcp dport 21 accept'",
        )],
        traffic: &[(Server, "ftp_server(); ready()"), (Client, "ftp(SERVER); ready(0.5)")],
        is_quick: true,
        ..NONE
    },
    Incident {
        name: "no helper follows TFTP to its client",
        expected: "ct-helper",
        at: Client,
        set_up: &[(
            Client,
            "nft 'table ip f { ct helper tftp { type \"tftp\" protocol udp; }; \
             chain i { type filter hook input priority 0; policy drop; ct state established,related accept; }; \
             chain o { type filter hook output priority 0; udp dport 69 ct helper set \"tftp\"; }; }'",
        )],
        fault: &[(Client, "nft flush chain ip f o")],
        traffic: &[(Server, "tftp_server(); ready()"), (Client, "tftp(SERVER); ready(0.5)")],
        ..NONE
    },
    Incident {
        name: "hash chains too long",
        expected: "ct-chains",
        set_up: &[(Router, TRACK)],
        knobs: &[("/proc/sys/net/netfilter/nf_conntrack_buckets", "16")],
        traffic: &[
            (Server, "echo(*range(2000, 2900)); ready()"),
            (Client, "flows(SERVER, range(2000, 2900), 0.0005, 3); ready(2)"),
        ],
        ..NONE
    },
    Incident {
        name: "source ports of a SNAT rule exhausted",
        expected: "snat-ports",
        set_up: &[(
            Router,
            "nft 'table ip n { chain c { type nat hook postrouting priority srcnat; oif s1 udp dport 7 \
             snat to 172.17.0.1:5000-5400; }; }'",
        )],
        fault: &[(Router, "nft 'flush chain ip n c; add rule ip n c oif s1 udp dport 7 snat to 172.17.0.1:5000-5009'")],
        traffic: &[(Server, "echo(7); ready()"), (Client, "flows(SERVER, [7], 0.005, 40); ready(0.5)")],
        ..NONE
    },
    Incident {
        name: "answers take another path",
        expected: "asymmetric-route",
        set_up: &[
            (Router, TRACK),
            (Client, "ip link add x0 type veth peer name x1; ip link set x1 netns $SERVER_NETNS"),
            (Client, "ip link set x0 up; ip addr add 192.0.3.1/24 dev x0"),
            (Server, "ip link set x1 up; ip addr add 192.0.3.2/24 dev x1"),
        ],
        fault: &[(Server, "ip route add 192.0.2.10/32 via 192.0.3.1")],
        traffic: WEB,
        ..NONE
    },
    Incident {
        name: "packets that match no connection",
        expected: "ct-invalid",
        set_up: &[(Router, TRACK), (Router, "sysctl -qw net.netfilter.nf_conntrack_tcp_loose=0")],
        traffic: &[(Server, "web(80); ready()"), (Client, "ask(SERVER, 80)\nif ILL: strays(80)\nready(0.3)")],
        ..NONE
    },
    Incident {
        name: "many flows without an answer",
        expected: "ct-unreplied",
        set_up: &[(Router, TRACK)],
        traffic: &[
            (Server, "echo(*range(2000, 2300), answers=not ILL); ready()"),
            (Client, "flows(SERVER, range(2000, 2300), 0.002); ready(1)"),
        ],
        ..NONE
    },
    Incident {
        name: "a program does not accept",
        expected: "listen-overflow",
        at: Server,
        traffic: &[
            (Server, "web(80) if not ILL else listen(80, 4); ready()"),
            (Client, "ask(SERVER, 80, 0.02); ready(0.8)"),
        ],
        is_quick: true,
        ..NONE
    },
    Incident {
        name: "one program does not accept, others do",
        expected: "listen-overflow",
        at: Server,
        traffic: &[
            (Server, "web(80); web(82); web(81) if not ILL else listen(81, 2); ready()"),
            (Client, "ask(SERVER, 80); ask(SERVER, 81, 0.02); ask(SERVER, 82); ready(0.8)"),
        ],
        ..NONE
    },
    Incident {
        name: "a server has run out of file descriptors",
        expected: "fd-limit",
        at: Server,
        traffic: &[
            (
                Server,
                "import resource\n\
                 if ILL: resource.setrlimit(resource.RLIMIT_NOFILE, (60, 4096))\n\
                 l = listen(80, 16)\n\
                 def serve():\n    while going():\n        try: held.append(l.accept()[0])\n        \
                 except OSError: time.sleep(0.05)\n\
                 background(serve); ready()",
            ),
            (Client, "hold(SERVER, 80, 100, 0.01); ready(0.3)"),
        ],
        ..NONE
    },
    Incident {
        name: "local ports exhausted by open connections",
        expected: "port-exhaustion",
        at: Client,
        fault: &[(Client, "sysctl -qw net.ipv4.ip_local_port_range='40000 40099'")],
        traffic: &[(Server, "sink(80); ready()"), (Client, "hold(SERVER, 80, 110); ready(0.3)")],
        ..NONE
    },
    Incident {
        name: "local ports exhausted by TIME_WAIT",
        expected: "port-exhaustion",
        at: Client,
        set_up: &[(Client, "sysctl -qw net.ipv4.tcp_tw_reuse=0")],
        fault: &[(Client, "sysctl -qw net.ipv4.ip_local_port_range='40000 40059'")],
        traffic: &[
            (Server, "sink(80); ready()"),
            (Client, "every(0.01, lambda: socket.create_connection((SERVER, 80), 1).close()); ready(1.5)"),
        ],
        ..NONE
    },
    Incident {
        name: "too many connections in TIME_WAIT",
        expected: "tw-overflow",
        at: Client,
        fault: &[(Client, "sysctl -qw net.ipv4.tcp_max_tw_buckets=10")],
        traffic: &[
            (Server, "sink(80); ready()"),
            (Client, "every(0.01, lambda: socket.create_connection((SERVER, 80), 1).close()); ready(0.5)"),
        ],
        ..NONE
    },
    Incident {
        name: "a program reads its datagrams too slowly",
        expected: "udp-rcvbuf",
        at: Server,
        traffic: &[
            (
                Server,
                "if ILL:\n    s = socket.socket(2, 2); s.setsockopt(1, 8, 4096); s.bind(('', 7)); held.append(s)\n\
                 else: echo(7)\n\
                 ready()",
            ),
            (Client, "datagrams(SERVER, 7, 1000); ready(0.5)"),
        ],
        is_quick: true,
        ..NONE
    },
    Incident {
        name: "a program does not read its connection",
        expected: "unread-queue",
        at: Server,
        traffic: &[
            (
                Server,
                "l = listen(80)\n\
                 if not ILL: held.pop(); l.close(); sink(80)\n\
                 else: background(lambda: held.append(l.accept()[0]))\n\
                 ready()",
            ),
            (Client, "upload(SERVER, 80, 0.001); ready(2)"),
        ],
        ..NONE
    },
    Incident {
        name: "a peer does not read: its window is closed",
        expected: "peer-window",
        at: Client,
        traffic: &[
            (
                Server,
                "l = listen(80)\n\
                 if not ILL: held.pop(); l.close(); sink(80)\n\
                 else: background(lambda: held.append(l.accept()[0]))\n\
                 ready()",
            ),
            (Client, "upload(SERVER, 80, 0.001); ready(2)"),
        ],
        ..NONE
    },
    Incident {
        name: "a program does not close connections that its peers have closed",
        expected: "close-wait",
        at: Server,
        traffic: &[
            (
                Server,
                "l = listen(80)\n\
                 def serve():\n    while going():\n        c = l.accept()[0]\n        \
                 if ILL: held.append(c)\n        \
                 else: background(answer, c, 10)\n\
                 background(serve); ready()",
            ),
            (
                Client,
                "for _ in range(80):\n    c = socket.create_connection((SERVER, 80)); c.send(b'x'); c.close()\n\
                 ready(0.3)",
            ),
        ],
        ..NONE
    },
    Incident {
        name: "SYN flood, answered with cookies",
        expected: "syn-cookies",
        at: Server,
        set_up: &[(Server, "sysctl -qw net.ipv4.tcp_max_syn_backlog=64")],
        traffic: &[
            (Server, "web(80, 2000, 64); ready()"),
            (Client, "ask(SERVER, 80)\nif ILL: syns(SERVER, 80, '198.51.100.%d')\nready(0.8)"),
        ],
        ..NONE
    },
    Incident {
        name: "SYN flood without cookies",
        expected: "syn-cookies",
        at: Server,
        set_up: &[(Server, "sysctl -qw net.ipv4.tcp_max_syn_backlog=64 net.ipv4.tcp_syncookies=0")],
        traffic: &[
            (Server, "web(80, 2000, 64); ready()"),
            (Client, "ask(SERVER, 80)\nif ILL: syns(SERVER, 80, '198.51.100.%d')\nready(0.8)"),
        ],
        ..NONE
    },
    Incident {
        name: "TCP memory exhausted",
        expected: "tcp-memory",
        at: Machine,
        knobs: &[("/proc/sys/net/ipv4/tcp_mem", "8 16 200000")],
        traffic: &[
            (
                Server,
                "l = listen(80)\n\
                 if not ILL: held.pop(); l.close(); sink(80)\n\
                 else: background(lambda: [held.append(l.accept()[0]) for _ in range(20)])\n\
                 ready()",
            ),
            (Client, "[upload(SERVER, 80) for _ in range(4)]; ready(1.5)"),
        ],
        ..NONE
    },
    Incident {
        name: "rp_filter drops packets from a source",
        expected: "rp-filter",
        set_up: &[
            (Router, "sysctl -qw net.ipv4.conf.c1.rp_filter=1; ip route add 198.51.100.0/24 via 172.17.0.2"),
            (Client, "ip addr add 198.51.100.7/32 dev lo; sysctl -qw net.ipv4.conf.all.arp_announce=2"),
        ],
        traffic: &[
            (Server, "echo(7); ready()"),
            (Client, "datagrams(SERVER, 7, source='198.51.100.7' if ILL else CLIENT); ready(0.3)"),
        ],
        ..NONE
    },
    Incident {
        name: "no route to the destination, own packets",
        expected: "no-route",
        at: Client,
        fault: &[(Client, "ip route del default")],
        traffic: &[(Server, "echo(7); ready()"), (Client, "datagrams(SERVER, 7); ready(0.3)")],
        ..NONE
    },
    Incident {
        name: "no route to the destination, forwarded packets",
        expected: "no-route",
        fault: &[(Router, "ip route del 172.17.0.0/24")],
        traffic: ECHO,
        ..NONE
    },
    Incident {
        name: "no IPv6 route, because no router advertisement arrived",
        expected: "no-route",
        at: Client,
        fault: &[(Client, "ip -6 route del default")],
        traffic: &[
            (Server, "echo(7, family=socket.AF_INET6); ready()"),
            (Client, "datagrams('fd17::2', 7, family=socket.AF_INET6); ready(0.3)"),
        ],
        ..NONE
    },
    Incident {
        name: "a blackhole route",
        expected: "route-refuses",
        fault: &[(Router, "ip route add blackhole 172.17.0.2/32")],
        traffic: ECHO,
        ..NONE
    },
    Incident {
        name: "an unreachable route",
        expected: "route-refuses",
        fault: &[(Router, "ip route add unreachable 172.17.0.2/32")],
        traffic: ECHO,
        ..NONE
    },
    Incident {
        name: "a prohibit route",
        expected: "route-refuses",
        fault: &[(Router, "ip route add prohibit 172.17.0.2/32")],
        traffic: ECHO,
        ..NONE
    },
    Incident {
        name: "forwarding is off",
        expected: "forwarding-off",
        fault: &[(Router, "sysctl -qw net.ipv4.ip_forward=0")],
        traffic: ECHO,
        is_quick: true,
        ..NONE
    },
    Incident {
        name: "a client has the server's address itself",
        expected: "closed-port",
        at: Client,
        fault: &[(Client, "ip addr add 172.17.0.2/32 dev lo")],
        traffic: WEB,
        ..NONE
    },
    Incident {
        name: "fragments other than the first are dropped on the path",
        expected: "reassembly",
        at: Server,
        set_up: &[(Router, FORWARD)],
        fault: &[(Router, "nft add rule ip f c ip frag-off '&' 0x1fff != 0 drop")],
        traffic: &[(Server, "echo(7); ready()"), (Client, "datagrams(SERVER, 7, 4000); ready(0.3)")],
        ..NONE
    },
    Incident {
        name: "a rule on the path rejects datagrams",
        expected: "refused",
        at: Client,
        set_up: &[(Router, FORWARD)],
        fault: &[(Router, "nft add rule ip f c udp dport 7 reject with icmp type host-prohibited")],
        traffic: ECHO,
        ..NONE
    },
    Incident {
        name: "forwarding is off on one interface",
        expected: "forwarding-off",
        fault: &[(Router, "sysctl -qw net.ipv4.conf.c1.forwarding=0")],
        traffic: ECHO,
        ..NONE
    },
    Incident {
        name: "a program sends from an address that its host no longer has",
        expected: "no-route",
        at: Client,
        traffic: &[
            (Server, "echo_stream(80); ready()"),
            (
                Client,
                "session(SERVER, 80); time.sleep(0.5)\n\
                 ILL and run('ip addr del 192.0.2.10/24 dev c0; \
                 ip addr add 192.0.2.11/24 dev c0; ip route replace default via 192.0.2.1')\n\
                 ready(2)",
            ),
        ],
        ..NONE
    },
    Incident {
        name: "packets start with a hop limit that is too small",
        expected: "ttl-expired",
        traffic: &[(Server, "echo(7); ready()"), (Client, "datagrams(SERVER, 7, ttl=1 if ILL else 64); ready(0.3)")],
        ..NONE
    },
    Incident {
        name: "a routing loop",
        expected: "ttl-expired",
        at: Server,
        set_up: &[
            (Server, "sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.send_redirects=0"),
            (Server, "ip addr add 203.0.113.9/32 dev lo"),
        ],
        fault: &[(Server, "ip addr del 203.0.113.9/32 dev lo")],
        traffic: &[
            (Router, "run('ip route add 203.0.113.0/24 via 172.17.0.2'); ready()"),
            (Server, "echo(7); ready()"),
            (Client, "datagrams('203.0.113.9', 7, every=0.02); ready(0.3)"),
        ],
        ..NONE
    },
    Incident {
        name: "the gateway is down",
        expected: "neigh-failed",
        at: Client,
        fault: &[(Client, "ip route replace default via 192.0.2.99")],
        traffic: &[(Server, "echo(7); ready()"), (Client, "datagrams(SERVER, 7); ready(0.5)")],
        is_quick: true,
        ..NONE
    },
    Incident {
        name: "a host in the local network is down",
        expected: "neigh-failed",
        fault: &[(Server, "ip addr flush dev s0")],
        traffic: &[(Client, "datagrams(SERVER, 7, every=0.01); ready(3.2)"), (Server, "echo(7); ready()")],
        ..NONE
    },
    Incident {
        name: "a netmask is too wide",
        expected: "neigh-failed",
        at: Client,
        fault: &[(Client, "ip addr add 172.17.200.10/16 dev c0")],
        traffic: &[(Server, "echo(7); ready()"), (Client, "datagrams(SERVER, 7); ready(3.2)")],
        ..NONE
    },
    Incident {
        name: "a neighbour entry has a wrong address",
        expected: "otherhost",
        fault: &[(Client, "ip neigh replace 192.0.2.1 lladdr 02:00:00:00:00:99 dev c0 nud permanent")],
        traffic: ECHO,
        ..NONE
    },
    Incident {
        name: "a VLAN is missing",
        expected: "otherhost",
        set_up: &[(Router, "ip link set c1 address 02:00:00:00:00:01")],
        traffic: &[(Server, "echo(7); ready()"), (Client, "tagged(5 if ILL else 0); ready(0.3)")],
        ..NONE
    },
    Incident {
        name: "an interface is set down",
        expected: "iface-down",
        at: Client,
        fault: &[(Client, "ip link set c0 down")],
        traffic: &[(Server, "echo(7); ready()"), (Client, "datagrams(SERVER, 7); ready(0.3)")],
        ..NONE
    },
    Incident {
        name: "an interface has no carrier",
        expected: "iface-down",
        fault: &[(Server, "ip link set s0 down")],
        traffic: &[(Client, "datagrams(SERVER, 7); ready(1)"), (Server, "echo(7); ready()")],
        ..NONE
    },
    Incident {
        name: "a link goes up and down",
        expected: "link-flap",
        traffic: &[
            (
                Server,
                "echo(7)\n\
                 if ILL: every(0.4, lambda: run('ip link set s0 down; sleep 0.05; ip link set s0 up'))\n\
                 ready(0.3)",
            ),
            (Client, "datagrams(SERVER, 7); ready(0.3)"),
        ],
        ..NONE
    },
    Incident {
        name: "a link falls back to a lower speed",
        expected: "link-mode",
        at: Client,
        traffic: &[
            (Server, "echo(7); ready()"),
            (Client, "link_mode('tap0', 100 if ILL else 1000, True); datagrams(SERVER, 7); ready(0.3)"),
        ],
        is_quick: true,
        ..NONE
    },
    Incident {
        name: "a link is half duplex",
        expected: "link-mode",
        at: Client,
        traffic: &[
            (Server, "echo(7); ready()"),
            (Client, "link_mode('tap0', 100, not ILL, best=100); datagrams(SERVER, 7); ready(0.3)"),
        ],
        ..NONE
    },
    Incident {
        name: "the ends of a link have different MTUs",
        expected: "mtu-mismatch",
        at: Client,
        fault: &[(Router, "ip link set c1 mtu 1000")],
        traffic: &[(Server, "echo(7); ready()"), (Client, "datagrams(SERVER, 7, 1300); ready(0.3)")],
        ..NONE
    },
    Incident {
        name: "packets exceed the MTU of the next link",
        expected: "mtu",
        fault: &[(Router, "ip link set s1 mtu 1000")],
        traffic: &[
            (Server, "echo(7); ready()"),
            (
                Client,
                "s = socket.socket(2, 2); s.setsockopt(0, 10, 3); held.append(s)\n\
                 every(0.01, lambda: s.sendto(b'x' * 1300, (SERVER, 7))); ready(0.3)",
            ),
        ],
        ..NONE
    },
    Incident {
        name: "a path drops large packets (MTU black hole)",
        expected: "pmtu-blackhole",
        at: Client,
        fault: &[
            (Router, "ip link set s1 mtu 1000"),
            (
                Router,
                "nft 'table ip f { chain c { type filter hook output priority 0; icmp type destination-unreachable \
                 drop; }; }'",
            ),
        ],
        traffic: &[
            (Server, "sink(80); web(81, 100); ready()"),
            (Client, "ask(SERVER, 81, 0.05); upload(SERVER, 80); upload(SERVER, 80); ready(2.5)"),
        ],
        ..NONE
    },
    Incident {
        name: "packets arrive damaged",
        expected: "checksum",
        at: Server,
        traffic: &[(Server, "echo(7); ready()"), (Client, "damaged(0x1234 if ILL else 0); ready(0.3)")],
        ..NONE
    },
    Incident {
        name: "a queue is full",
        expected: "qdisc-drop",
        at: Client,
        fault: &[(Client, "tc qdisc add dev c0 root handle 1: tbf rate 64kbit burst 1600 limit 3000")],
        traffic: &[(Server, "echo(7); ready()"), (Client, "datagrams(SERVER, 7, 1000); ready(0.5)")],
        is_quick: true,
        ..NONE
    },
    Incident {
        name: "a tc filter drops packets",
        expected: "tc-xdp-drop",
        set_up: &[(Router, "tc qdisc add dev c1 clsact")],
        fault: &[(
            Router,
            "tc filter add dev c1 ingress bpf bytecode '4,40 0 0 12,21 0 1 2048,6 0 0 2,6 0 0 4294967295' da",
        )],
        traffic: ECHO,
        ..NONE
    },
    Incident {
        name: "bridged frames pass IP rules",
        expected: "bridge-nf",
        set_up: &[
            (Router, "ip addr flush dev c1; ip addr flush dev s1; ip link add br0 type bridge; ip link set br0 up"),
            (Router, "ip link set c1 master br0; ip link set s1 master br0"),
            (Client, "ip addr add 10.9.0.1/24 dev c0"),
            (Server, "ip addr add 10.9.0.2/24 dev s0"),
            (Router, "sysctl -qw net.bridge.bridge-nf-call-iptables=0"),
            (Router, "nft 'table ip f { chain c { type filter hook forward priority 0; policy drop; }; }'"),
        ],
        fault: &[(Router, "sysctl -qw net.bridge.bridge-nf-call-iptables=1")],
        traffic: &[(Server, "web(80); ready()"), (Client, "ask('10.9.0.2', 80); ready(0.3)")],
        ..NONE
    },
    Incident {
        name: "log records are lost (NFLOG)",
        expected: "netlink-overrun",
        set_up: &[(Router, FORWARD), (Router, "nft add rule ip f c udp dport 7 log group 5")],
        traffic: &[
            (
                Router,
                "(bind_log_group if ILL else read_log_group)(5)\n\
                 ready()",
            ),
            (Server, "echo(7); ready()"),
            (Client, "datagrams(SERVER, 7, 1000); ready(0.5)"),
        ],
        ..NONE
    },
    Incident {
        name: "no program reads the group that a rule logs to",
        expected: "nflog-nobody",
        set_up: &[(Router, FORWARD), (Router, "nft add rule ip f c udp dport 7 counter log group 6")],
        traffic: &[
            (Router, "if not ILL: read_log_group(6)\nready()"),
            (Server, "echo(7); ready()"),
            (Client, "datagrams(SERVER, 7); ready(0.3)"),
        ],
        is_quick: true,
        ..NONE
    },
    Incident {
        name: "a program in another network namespace reads the group",
        expected: "nflog-nobody",
        set_up: &[(Router, FORWARD), (Router, "nft add rule ip f c udp dport 7 log group 6")],
        traffic: &[
            (Server, "echo(7)\nif ILL: read_log_group(6)\nready()"),
            (Router, "if not ILL: read_log_group(6)\nready()"),
            (Client, "datagrams(SERVER, 7); ready(0.3)"),
        ],
        ..NONE
    },
    Incident {
        name: "a program misses kernel messages",
        expected: "netlink-overrun",
        at: Client,
        traffic: &[(
            Client,
            "if ILL: netlink(0, 0x10)\n\
             add = 'for i in 1 2 3 4 5 6 7 8 9; do ip addr add 10.7.0.$i/32 dev lo; ip addr del 10.7.0.$i/32 dev lo;'\n\
             every(0, lambda: run(add + 'done')); ready(1.5)",
        )],
        ..NONE
    },
    Incident {
        name: "a capture shows packets late",
        expected: "packet-late",
        at: Server,
        traffic: &[
            (
                Server,
                "echo(7)\n\
                 s = socket.socket(17, 3, socket.htons(3)); held.append(s)\n\
                 s.setsockopt(263, 10, 2)\n\
                 s.setsockopt(263, 5, struct.pack('=7I', 1 << 18, 4, 2048, 512, 500 if ILL else 20, 0, 0))\n\
                 ready()",
            ),
            (Client, "datagrams(SERVER, 7); ready(0.3)"),
        ],
        ..NONE
    },
    Incident {
        name: "two hosts have one IPv4 address",
        expected: "martian",
        set_up: &[
            (Router, "ip addr add 192.0.2.2/24 dev c1"),
            (Client, "ip route replace default via 192.0.2.2"),
            (Client, "sysctl -qw net.ipv4.conf.all.arp_announce=2"),
        ],
        fault: &[(Client, "ip addr add 192.0.2.1/32 dev lo")],
        traffic: &[
            (Server, "echo(7); ready()"),
            (Client, "datagrams(SERVER, 7, source='192.0.2.1' if ILL else CLIENT); ready(0.3)"),
        ],
        ..NONE
    },
    Incident {
        name: "two hosts on a bridge have one IPv4 address",
        expected: "ip-conflict",
        at: Client,
        set_up: &[
            (Router, "ip addr flush dev c1; ip addr flush dev s1; ip link add br0 type bridge; ip link set br0 up"),
            (Router, "ip link set c1 master br0; ip link set s1 master br0; ip addr add 10.9.0.3/24 dev br0"),
            (Router, "sysctl -qw net.bridge.bridge-nf-call-iptables=0 2>/dev/null || true"),
            (Client, "ip addr add 10.9.0.1/24 dev c0"),
            (Server, "ip addr add 10.9.0.2/24 dev s0"),
        ],
        fault: &[(Server, "ip addr del 10.9.0.2/24 dev s0; ip addr add 10.9.0.1/24 dev s0")],
        traffic: &[
            (Router, "echo(7); ready()"),
            (
                Server,
                "datagrams('10.9.0.3', 7)\n\
                 every(0.3, lambda: run('ip neigh flush dev s0'))\n\
                 ready()",
            ),
            (Client, "datagrams('10.9.0.3', 7); ready(0.5)"),
        ],
        is_quick: true,
        ..NONE
    },
    Incident {
        name: "two hosts have one IPv6 address",
        expected: "dad-failed",
        at: Client,
        // The router does not receive the solicitation before its own addresses are confirmed.
        set_up: &[(Router, SETTLED), (Client, SETTLED)],
        fault: &[(Client, "ip -6 addr add 2001:db8::1/64 dev c0")],
        traffic: &[(Server, "echo(7); ready()"), (Client, "datagrams(SERVER, 7); ready(4)")],
        ..NONE
    },
    Incident {
        name: "IPv6 is disabled on an interface",
        expected: "ipv6-off",
        at: Server,
        set_up: &[
            (Server, "ip link set s0 address 02:00:00:00:00:02"),
            (Router, "ip -6 neigh replace fd17::2 lladdr 02:00:00:00:00:02 dev s1 nud permanent"),
        ],
        fault: &[(Server, "sysctl -qw net.ipv6.conf.s0.disable_ipv6=1")],
        traffic: &[
            (Server, "echo(7, family=socket.AF_INET6); ready()"),
            (Client, "datagrams('fd17::2', 7, family=socket.AF_INET6); ready(0.5)"),
        ],
        ..NONE
    },
    Incident {
        name: "the DNS server does not answer",
        expected: "dns-silent",
        at: Client,
        traffic: &[(Server, "echo(53, answers=not ILL); ready()"), (Client, "resolve(SERVER); ready(0.5)")],
        is_quick: true,
        ..NONE
    },
    Incident {
        name: "a UDP service is down",
        expected: "closed-port",
        at: Server,
        traffic: &[(Server, "echo(7 if not ILL else 8); ready()"), (Client, "datagrams(SERVER, 7); ready(0.3)")],
        ..NONE
    },
    Incident {
        name: "a TCP service is down",
        expected: "closed-port",
        at: Server,
        traffic: &[(Server, "web(80 if not ILL else 81); ready()"), (Client, "ask(SERVER, 80); ready(0.3)")],
        ..NONE
    },
    Incident {
        name: "a service refuses connections, seen by the client",
        expected: "refused",
        at: Client,
        traffic: &[(Server, "web(80 if not ILL else 81); ready()"), (Client, "ask(SERVER, 80); ready(0.3)")],
        ..NONE
    },
    Incident {
        name: "fragments are lost on the path",
        expected: "reassembly",
        at: Server,
        set_up: &[(Router, FORWARD), (Server, "sysctl -qw net.ipv4.ipfrag_time=1")],
        fault: &[(Router, "nft 'add rule ip f c ip frag-off & 0x1fff != 0 drop'")],
        traffic: &[(Server, "echo(7); ready()"), (Client, "datagrams(SERVER, 7, 4000, 0.05); ready(1.5)")],
        ..NONE
    },
    Incident {
        name: "the neighbour table is full",
        expected: "neigh-full",
        at: Client,
        knobs: &[("/proc/sys/net/ipv4/neigh/default/gc_thresh3", "20")],
        traffic: &[
            (Server, "echo(7); ready()"),
            (
                Client,
                "def loop():\n    while going():\n        for i in range(30, 250 if ILL else 31):\n            \
                 s = socket.socket(2, 2)\n            \
                 try: s.sendto(b'x', ('192.0.2.%d' % i if ILL else SERVER, 7))\n            \
                 except OSError: pass\n            time.sleep(0.005)\n\
                 background(loop); ready(1)",
            ),
        ],
        ..NONE
    },
    Incident {
        name: "the backlog of a CPU is full",
        expected: "softnet-drop",
        at: Server,
        knobs: &[("/proc/sys/net/core/netdev_max_backlog", "1")],
        set_up: &[(Server, "echo 1 > /sys/class/net/s0/queues/rx-0/rps_cpus")],
        traffic: &[
            (Server, "echo(7); ready()"),
            // A processor that sends to its own backlog empties it after each packet.
            (
                Client,
                "os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
\
                 [datagrams(SERVER, 7, 100, 0.0001 if ILL else 0.01) for _ in range(4)]; ready(0.3)",
            ),
        ],
        ..NONE
    },
    Incident {
        name: "segments carry old timestamps",
        expected: "paws",
        at: Server,
        traffic: &[
            (Server, "sink(80); ready()"),
            (Client, "upload(SERVER, 80, 0.02)\nif ILL: old_stamps(80)\nready(0.5)"),
        ],
        ..NONE
    },
];
