//! The healthy loads: hosts with lively traffic that is as it should be. `doctor` must not warn of any of them.
//!
//! The hosts are the same as for incidents ([`super::scenes`]). Python has the functions of `traffic.py` and
//! `loads.py`.

use super::scenes::At::{Client, Router, Server};
use super::scenes::{At, BRIDGE, Lines, QUERIER};

/// A healthy host under load.
pub(super) struct Load {
    pub(super) name: &'static str,
    /// The host on which `doctor` runs.
    pub(super) at: At,
    /// Shell.
    pub(super) set_up: Lines,
    /// Python.
    pub(super) traffic: Lines,
    /// True if the tests also play this load.
    pub(super) is_quick: bool,
}

const NONE: Load = Load { name: "", at: Server, set_up: &[], traffic: &[], is_quick: false };

/// Makes a host track connections.
const TRACK: &str = "nft 'table ip t { chain c { type filter hook prerouting priority 0; ct state new counter; }; }'";
/// The firewall of a server: SSH and the web are open, everything else is dropped.
const SERVER_FIREWALL: &str = "nft 'table inet f { chain c { type filter hook input priority 0; policy drop; \
     ct state established,related \
     accept; iif lo accept; meta l4proto { icmp, icmpv6 } accept; tcp dport { 22, 80 } accept; }; }'";
/// The firewall of a network: its hosts may ask for the web and for names.
const NETWORK_FIREWALL: &str = "nft 'table inet f { chain c { type filter hook forward priority 0; policy drop; \
     ct state invalid drop; ct state \
     established,related accept; iif c1 tcp dport 80 accept; iif c1 udp dport 53 accept; }; }'";
/// A web server and a client that sends requests to it.
const WEB: (At, &str) = (Server, "web(80); ready()");
const BROWSER: (At, &str) = (Client, "ask(SERVER, 80); ready(0.3)");
/// Players of a media server that sends as fast as they read.
const PLAYERS: Lines =
    &[(Server, "stream(80); ready()"), (Client, "[player(SERVER, 80) for _ in range(4)]; ready(1.5)")];
/// Players that pause for longer than `doctor` watches.
const PAUSES: Lines =
    &[(Server, "stream(80); ready()"), (Client, "[player(SERVER, 80, 1, 30) for _ in range(4)]; ready(2.5)")];
/// A monitor connects through a router to forty hosts, some of which are off.
const MONITORED: Lines = &[
    (Server, "run('for i in $(seq 10 50); do ip addr add 172.17.0.$i/24 dev s0; done'); web(80); ready()"),
    (Client, "polls(['172.17.0.%d' % n for n in range(10, 60)], 80); ready(3.5)"),
];
/// Scans of a server, with its clients.
const SCANS: Lines = &[
    (Server, "web(80); listen(22); listen(5432); echo(53); ready()"),
    (
        Client,
        "ask(SERVER, 80)\n\
         segments(SERVER, [21, 22, 23, 25, 445, 1433, 3306, 3389, 5432, 5900, 8080], 2, every_s=0.02)\n\
         stray_datagrams(SERVER, [53, 123, 161, 389, 1900, 11211], every_s=0.03)\n\
         ready(0.8)",
    ),
];
/// Answers to packets that others sent with this host's address.
const BACKSCATTER: Lines = &[
    WEB,
    (
        Client,
        "ask(SERVER, 80)\n\
         segments(SERVER, list(range(40000, 50000, 7)), 0x12, sport=443, every_s=0.02)\n\
         segments(SERVER, list(range(2000, 50000, 7)), 0x04, sport=80, every_s=0.02)\n\
         ready(0.8)",
    ),
];
/// mtr and ping at short intervals.
const MTR: Lines = &[WEB, (Client, "ask(SERVER, 80); pings([SERVER], 0.1, (1, 2, 3)); ready(0.5)")];
/// A traceroute at a high rate.
const TRACEROUTE: Lines = &[WEB, (Client, "ask(SERVER, 80); traceroutes(SERVER); ready(0.5)")];
/// Short connections, one after the other.
const CHURN: Lines =
    &[(Server, "quick_web(*range(80, 90)); ready()"), (Client, "churn(SERVER, range(80, 90), 2); ready(0.5)")];
/// A client that tries IPv6 first.
const EYEBALLS: Lines = &[WEB, (Client, "happy_eyeballs('fd17::2', SERVER, 80); ready(0.5)")];
/// One connection that sends as fast as it can.
const BULK: Lines = &[
    (Server, "sink(80); ready()"),
    (Client, "s = socket.create_connection((SERVER, 80))\nevery(0, lambda: s.send(b'x' * 65536)); ready(0.5)"),
];
/// One connection that sends as fast as its link allows, over a path with a round trip of 40 ms.
const LONG_BULK: Lines = &[
    (Server, "sink(80); ready()"),
    (Router, "long_path(0.02); ready()"),
    (Client, "time.sleep(1); send_all(SERVER, 80); ready(2)"),
];
/// Requests in one part and in two, whose answers take 60 ms; and lines of a log in one direction.
const THOUGHTFUL: Lines = &[
    (Server, "replies(90, 300, [50], after_s=0.06); sink(80); ready()"),
    (
        Client,
        "exchanges(SERVER, 90, [300], is_nagle=True); exchanges(SERVER, 90, [100, 200]); lines(SERVER, 80); ready(1)",
    ),
];
pub(super) const LOADS: &[Load] = &[
    Load { name: "an idle host", ..NONE },
    Load { name: "a web server and its clients", traffic: &[WEB, BROWSER], ..NONE },
    Load {
        name: "a router that translates addresses",
        at: Router,
        set_up: &[(
            Router,
            "nft 'table ip n { chain c { type nat hook postrouting priority 100; oif s1 masquerade; }; }'",
        )],
        traffic: &[
            (Server, "web(80); echo(53); ready()"),
            (Client, "ask(SERVER, 80); lookup(SERVER); shout(SERVER, 53); ready(0.5)"),
        ],
        ..NONE
    },
    Load {
        name: "syslog over UDP, through a router that tracks connections",
        at: Router,
        set_up: &[(Router, TRACK)],
        traffic: &[(Server, "echo(514, answers=False); ready()"), (Client, "shout(SERVER, 514); ready(1)")],
        ..NONE
    },
    Load {
        name: "metrics over UDP, from a host that tracks connections",
        at: Client,
        set_up: &[(
            Client,
            "nft 'table ip t { chain c { type filter hook output priority 0; ct state new counter; }; }'",
        )],
        traffic: &[
            (Server, "web(80); echo(8125, answers=False); ready()"),
            (Client, "ask(SERVER, 80); shout(SERVER, 8125); ready(1)"),
        ],
        ..NONE
    },
    Load {
        name: "a proxy keeps its DNS socket open, and a host is quiet",
        at: Client,
        traffic: &[(Server, "echo(53); ready()"), (Client, "idle_resolver(SERVER); ready(0.3)")],
        ..NONE
    },
    Load {
        name: "a proxy keeps its DNS socket open while others log over UDP",
        at: Client,
        traffic: &[
            (Server, "echo(53); echo(514, answers=False); ready()"),
            (Client, "idle_resolver(SERVER); shout(SERVER, 514); ready(0.3)"),
        ],
        is_quick: true,
        ..NONE
    },
    Load {
        name: "names without a working server of their own, among others",
        at: Client,
        traffic: &[
            (Server, "name_server(SERVER, codes=[0, 3, 0, 2]); ready()"),
            (Client, "[resolver([SERVER]) for _ in range(8)]; ready(0.3)"),
        ],
        ..NONE
    },
    Load {
        name: "a stub resolver with one socket to its server",
        at: Client,
        traffic: &[
            (Server, "web(80); echo(53); ready()"),
            (Client, "ask(SERVER, 80); stub(SERVER); lookup(); shout('224.0.0.252', 5355, 0.2); ready(0.5)"),
        ],
        ..NONE
    },
    Load {
        name: "answers come after their client has gone",
        at: Client,
        traffic: &[
            (Server, "late_echo(53, 0.1); ready()"),
            (Client, "lookup(SERVER, 0.01, 0.05); lookup(SERVER, 0.01, 1); ready(0.5)"),
        ],
        ..NONE
    },
    Load {
        name: "a server sends to clients that have left",
        traffic: &[(Server, "game_server(7); ready()"), (Client, "game_clients(SERVER, 7); ready(1)")],
        ..NONE
    },
    Load { name: "players read at a fixed rate, on their host", at: Client, traffic: PLAYERS, is_quick: true, ..NONE },
    Load { name: "players read at a fixed rate, at the server", traffic: PLAYERS, ..NONE },
    Load { name: "players pause, on their host", at: Client, traffic: PAUSES, ..NONE },
    Load { name: "players pause, at the server", traffic: PAUSES, ..NONE },
    Load {
        name: "slow downloads whose clients have closed their side",
        traffic: &[(Server, "trickle(80); ready()"), (Client, "half_closed(SERVER, 80, 80); ready(0.5)")],
        ..NONE
    },
    Load { name: "mtr runs, on its host", at: Client, traffic: MTR, ..NONE },
    Load { name: "mtr runs, at the router", at: Router, traffic: MTR, ..NONE },
    Load { name: "traceroute runs, on its host", at: Client, traffic: TRACEROUTE, ..NONE },
    Load { name: "traceroute runs, at the router", at: Router, traffic: TRACEROUTE, ..NONE },
    Load { name: "traceroute runs, at its destination", traffic: TRACEROUTE, ..NONE },
    Load {
        name: "scans of a server with a firewall",
        set_up: &[(Server, SERVER_FIREWALL)],
        traffic: SCANS,
        is_quick: true,
        ..NONE
    },
    Load { name: "scans of a server without a firewall", traffic: SCANS, ..NONE },
    Load {
        name: "backscatter reaches a server with a firewall",
        set_up: &[(Server, SERVER_FIREWALL)],
        traffic: BACKSCATTER,
        ..NONE
    },
    Load { name: "backscatter reaches a server that tracks", set_up: &[(Server, TRACK)], traffic: BACKSCATTER, ..NONE },
    Load {
        name: "a firewall blocks a device and scans of its network",
        at: Router,
        set_up: &[(Router, NETWORK_FIREWALL), (Server, "ip addr add 203.0.113.9/32 dev s0")],
        traffic: &[
            (
                Server,
                "web(80); echo(53)\n\
                 segments('192.0.2.10', [22, 23, 445, 3389], 2, every_s=0.05, sources='203.0.113.%d'); ready()",
            ),
            (Client, "ask(SERVER, 80); lookup(SERVER); datagrams(SERVER, 123, every=0.1); ready(0.5)"),
        ],
        ..NONE
    },
    Load {
        name: "late segments of ended connections at a firewall",
        at: Router,
        set_up: &[(Router, NETWORK_FIREWALL), (Router, "sysctl -qw net.netfilter.nf_conntrack_tcp_loose=0")],
        traffic: &[WEB, (Client, "ask(SERVER, 80)\nsegments(SERVER, [80], 0x11, every_s=0.03)\nready(0.5)")],
        ..NONE
    },
    Load {
        name: "frames of PTP, LLDP, STP and mDNS",
        traffic: &[
            (Server, "web(80); ready()"),
            (Router, "frames('s1', LINK_PROTOCOLS, 0.02); ready()"),
            (Client, "ask(SERVER, 80, 0.1); ready(0.3)"),
        ],
        is_quick: true,
        ..NONE
    },
    Load {
        name: "broadcasts of another subnet, with rp_filter",
        set_up: &[(Server, "sysctl -qw net.ipv4.conf.all.rp_filter=1")],
        traffic: &[
            (Server, "web(80); ready()"),
            (
                Router,
                "frames('s1', [datagram_frame(BROADCAST, '10.55.0.7', to, 1900) for to in \
                 ('255.255.255.255', '10.55.0.255', '172.17.0.255')], 0.03); ready()",
            ),
            (Client, "ask(SERVER, 80); ready(0.3)"),
        ],
        is_quick: true,
        ..NONE
    },
    Load {
        name: "broadcasts of another subnet, two interfaces",
        set_up: &[
            (Server, "ip link add d0 type veth peer name d1; ip addr add 10.55.0.1/24 dev d0"),
            (Server, "ip link set d0 up; ip link set d1 up; sysctl -qw net.ipv4.conf.all.rp_filter=1"),
        ],
        traffic: &[
            (Server, "web(80); ready()"),
            (
                Router,
                "frames('s1', [datagram_frame(BROADCAST, '10.55.0.7', to, 1900) for to in \
                 ('255.255.255.255', '10.55.0.255', '172.17.0.255')], 0.03); ready()",
            ),
            (Client, "ask(SERVER, 80); ready(0.3)"),
        ],
        ..NONE
    },
    Load {
        name: "a bridge floods frames for other hosts",
        at: Client,
        set_up: BRIDGE,
        traffic: &[
            (
                Server,
                "web(80); frames('s0', [datagram_frame(b'\\2\\0\\0\\0\\0\\x42', '10.9.0.2', '10.9.0.77', 9)]); ready()",
            ),
            (Client, "ask('10.9.0.2', 80, 0.1); ready(0.3)"),
        ],
        ..NONE
    },
    Load {
        name: "a bridge returns a host's own broadcasts",
        at: Client,
        set_up: BRIDGE,
        traffic: &[
            (Server, "web(80); frames('s0', [datagram_frame(BROADCAST, '10.9.0.1', '255.255.255.255', 68)]); ready()"),
            (Client, "ask('10.9.0.2', 80); ready(0.3)"),
        ],
        ..NONE
    },
    Load {
        name: "a multicast stream that this host has not joined",
        traffic: &[
            (Server, "web(80); ready()"),
            (
                Router,
                "frames('s1', [datagram_frame(b'\\1\\0\\x5e\\1\\2\\3', '172.17.0.9', '239.1.2.3', 5004, b'x' * 900)], \
                 0.002); ready()",
            ),
            (Client, "ask(SERVER, 80); ready(0.3)"),
        ],
        ..NONE
    },
    Load {
        name: "two cards in one network receive a stream that one has joined",
        set_up: &[
            (Router, "ip link add x1 type veth peer name x0 netns $SERVER_NETNS"),
            (Router, "ip link set x1 up; ip addr add 10.8.0.1/24 dev x1"),
            (Server, "ip link set x0 up; ip addr add 10.8.0.2/24 dev x0"),
        ],
        traffic: &[
            (Server, "joined('239.1.2.3', 5004, '172.17.0.2'); ready()"),
            (
                Router,
                "stream_to('239.1.2.3', 5004, '172.17.0.1'); stream_to('239.1.2.3', 5004, '10.8.0.1'); ready(0.3)",
            ),
        ],
        ..NONE
    },
    Load {
        name: "guests that must not reach each other use their gateway",
        at: Router,
        set_up: &[
            BRIDGE[0],
            BRIDGE[1],
            BRIDGE[2],
            BRIDGE[3],
            BRIDGE[4],
            (Router, "ip link set c1 type bridge_slave isolated on; ip link set s1 type bridge_slave isolated on"),
        ],
        traffic: &[
            (Server, "datagrams('10.9.0.3', 7); ready()"),
            (Client, "datagrams('10.9.0.3', 7); ready()"),
            (Router, "echo(7); ready(0.3)"),
        ],
        ..NONE
    },
    Load {
        name: "a program fills its send buffer and waits",
        at: Client,
        set_up: &[(Client, "tc qdisc add dev c0 root handle 1: tbf rate 20mbit burst 30000 limit 10000000")],
        traffic: &[
            (Server, "echo(7, answers=False); ready()"),
            (
                Client,
                "s = socket.socket(2, 2); s.setblocking(False); s.connect((SERVER, 7)); held.append(s)\n\
                 every(0, lambda: (select.select([], [s], [], 1), s.send(b'x' * 1000)))\n\
                 ready(0.5)",
            ),
        ],
        ..NONE
    },
    Load {
        name: "guests are started again with their hardware address",
        at: Router,
        set_up: BRIDGE,
        traffic: &[
            (Server, "datagrams('10.9.0.3', 7); ready()"),
            (
                Router,
                "echo(7)\n\
                 add = 'ip link add g0 type veth peer name g1 address 02:00:00:00:00:44'\n\
                 add += '; ip link set g0 master br0 up'\n\
                 every(0.05, lambda: run(add + '; ip link set g1 up; sleep 0.2; ip link del g0'))\n\
                 ready(0.5)",
            ),
        ],
        ..NONE
    },
    Load {
        name: "a bridge with a querier drops a group without members",
        at: Router,
        set_up: &[BRIDGE[0], BRIDGE[1], BRIDGE[2], BRIDGE[3], BRIDGE[4], QUERIER],
        traffic: &[
            (Server, "datagrams('10.9.0.3', 7); ready()"),
            (Client, "stream_to('239.1.2.3', 5004, '10.9.0.1'); ready(0.5)"),
            (Router, "echo(7); ready()"),
        ],
        ..NONE
    },
    Load {
        name: "neighbours speak mDNS to a host without IPv6",
        set_up: &[(Server, "sysctl -qw net.ipv6.conf.s0.disable_ipv6=1")],
        traffic: &[
            (Server, "web(80); ready()"),
            (
                Router,
                "s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); held.append(s)\n\
                 s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, socket.if_nametoindex('s1'))\n\
                 every(0.05, lambda: s.sendto(b'x' * 60, ('ff02::fb', 5353))); ready()",
            ),
            (Client, "ask(SERVER, 80); ready(0.3)"),
        ],
        ..NONE
    },
    Load {
        name: "a monitor pings hosts of its network that are off",
        at: Client,
        traffic: &[
            WEB,
            (Client, "ask(SERVER, 80); pings(['192.0.2.1'] + ['192.0.2.%d' % n for n in range(50, 60)]); ready(4)"),
        ],
        ..NONE
    },
    Load { name: "a monitor asks hosts that are off, on its host", at: Client, traffic: MONITORED, ..NONE },
    Load { name: "a monitor asks hosts that are off, at the router", at: Router, traffic: MONITORED, ..NONE },
    Load {
        name: "a monitor asks hosts whose packets vanish",
        at: Client,
        set_up: &[(
            Router,
            "nft 'table ip f { chain c { type filter hook forward priority 0; \
             ip daddr 172.17.0.40-172.17.0.70 drop; }; }'",
        )],
        traffic: MONITORED,
        ..NONE
    },
    Load {
        name: "a monitor asks a spare gateway that is off",
        at: Client,
        set_up: &[(Client, "ip route add default via 192.0.2.99 metric 500")],
        traffic: &[WEB, (Client, "ask(SERVER, 80); pings(['192.0.2.99'], 0.5); ready(2.5)")],
        ..NONE
    },
    Load {
        name: "one of two next hops is down, and the kernel avoids it (nexthop objects)",
        at: Client,
        set_up: &[
            (Client, "sysctl -qw net.ipv4.fib_multipath_hash_policy=1; ip nexthop add id 1 via 192.0.2.1 dev c0"),
            (Client, "ip nexthop add id 2 via 192.0.2.99 dev c0; ip nexthop add id 3 group 1/2"),
            (Client, "ip route replace default nhid 3"),
        ],
        traffic: &[WEB, (Client, "ask(SERVER, 80); ready(8)")],
        ..NONE
    },
    Load {
        name: "neighbour entries of containers that are gone",
        at: Router,
        traffic: &[WEB, (Client, "pings(['172.17.0.%d' % n for n in range(100, 180)], 60); ask(SERVER, 80); ready(7)")],
        ..NONE
    },
    Load {
        name: "one-way syslog through a gateway with a permanent neighbour entry",
        at: Client,
        set_up: &[
            (Router, "ip link set c1 address 02:00:00:00:00:01"),
            (Client, "ip neigh replace 192.0.2.1 lladdr 02:00:00:00:00:01 dev c0 nud permanent"),
        ],
        traffic: &[(Server, "echo(514, answers=False); ready()"), (Client, "shout(SERVER, 514); ready(1)")],
        ..NONE
    },
    Load {
        name: "a firewall without neighbour discovery, and clients that use IPv4",
        set_up: &[(
            Server,
            "nft 'table inet f { chain c { type filter hook input priority 0; policy drop; \
             ct state established,related accept; iif lo accept; tcp dport { 22, 80 } accept; }; }'",
        )],
        traffic: &[WEB, BROWSER],
        ..NONE
    },
    Load {
        name: "happy eyeballs on a host that forwards and ignores router advertisements",
        at: Client,
        set_up: &[(Client, "ip -6 route del default; sysctl -qw net.ipv6.conf.all.forwarding=1")],
        traffic: &[
            WEB,
            (Router, "router_adverts('c1'); ready()"),
            (Client, "happy_eyeballs('fd17::2', SERVER, 80); ready(2)"),
        ],
        ..NONE
    },
    Load {
        name: "health checks that reset",
        traffic: &[
            (Server, "web(80); web(81); web(82); ready()"),
            (Client, "ask(SERVER, 80); reset(SERVER, [80, 81, 82]); half_open_checks(SERVER, 81, CLIENT); ready(0.5)"),
        ],
        ..NONE
    },
    Load {
        name: "health checks that reset, and a server that asks others",
        traffic: &[
            (Server, "web(80); ask(CLIENT, 90, 0.02); ready()"),
            (Client, "web(90); reset(SERVER, [80]); half_open_checks(SERVER, 80, CLIENT); ready(0.8)"),
        ],
        ..NONE
    },
    Load {
        name: "health checks of backends, of which one is down",
        at: Client,
        traffic: &[
            (Server, "web(80); web(81); web(82); ready()"),
            (Client, "[ask(SERVER, port, 0.1) for port in range(80, 84)]; ready(0.5)"),
        ],
        ..NONE
    },
    Load { name: "many short connections, at the server", traffic: CHURN, ..NONE },
    Load { name: "many short connections, at the client", at: Client, traffic: CHURN, ..NONE },
    Load {
        name: "short connections that reuse ports in TIME_WAIT",
        at: Client,
        set_up: &[(Client, "sysctl -qw net.ipv4.tcp_tw_reuse=1 net.ipv4.ip_local_port_range='40000 40399'")],
        traffic: &[
            (Server, "sink(80); ready()"),
            (Client, "every(0.005, lambda: socket.create_connection((SERVER, 80), 1).close()); ready(2.5)"),
        ],
        ..NONE
    },
    Load { name: "bulk as fast as the hosts can, at the sender", at: Client, traffic: BULK, ..NONE },
    Load { name: "bulk as fast as the hosts can, at the receiver", traffic: BULK, ..NONE },
    Load {
        name: "bulk fills a link of 100 Mb/s",
        at: Client,
        set_up: &[(Client, "tc qdisc add dev c0 root tbf rate 100mbit burst 32k limit 200k")],
        traffic: BULK,
        ..NONE
    },
    Load {
        name: "bulk fills the router's link of 100 Mb/s",
        at: Router,
        set_up: &[(Router, "tc qdisc add dev s1 root tbf rate 100mbit burst 32k limit 200k")],
        traffic: BULK,
        ..NONE
    },
    Load {
        name: "bulk fills a link on the path, at the sender",
        at: Client,
        set_up: &[(Router, "tc qdisc add dev s1 root tbf rate 100mbit burst 32k limit 200k")],
        traffic: BULK,
        ..NONE
    },
    Load { name: "happy eyeballs: IPv6 is refused", at: Client, traffic: EYEBALLS, ..NONE },
    Load {
        name: "happy eyeballs: IPv6 has no route",
        at: Client,
        set_up: &[(Client, "ip -6 route del default")],
        traffic: EYEBALLS,
        ..NONE
    },
    Load {
        name: "happy eyeballs: IPv6 packets vanish",
        at: Client,
        set_up: &[(Router, "ip -6 route add blackhole fd17::2/128")],
        traffic: EYEBALLS,
        ..NONE
    },
    Load {
        name: "an accept queue is full for half a second",
        traffic: &[(Server, "hesitant_web(80, 8); ready()"), (Client, "ask(SERVER, 80, 0.02); ready(0.5)")],
        ..NONE
    },
    Load {
        name: "13 of 12,000 datagrams are lost",
        traffic: &[(Server, "hiccup(7); ready()"), (Client, "rain(SERVER, 7); ready(0.5)")],
        is_quick: true,
        ..NONE
    },
    Load {
        name: "containers come and go",
        at: Router,
        set_up: &[(Router, "ip link add br0 type bridge; ip addr add 10.77.0.1/24 dev br0; ip link set br0 up")],
        traffic: &[
            WEB,
            (Router, "echo(7, answers=False); containers('br0'); ready(0.5)"),
            (Client, "ask(SERVER, 80); ready(0.3)"),
        ],
        ..NONE
    },
    Load {
        name: "a long path loses 0.5 % of the packets, at the server",
        traffic: &[
            (Server, "web(80, 300000); ready()"),
            (Router, "long_path(0.02, 0, 0.005); ready()"),
            (Client, "ask(SERVER, 80, 0.1); ready(1)"),
        ],
        ..NONE
    },
    Load {
        name: "a long path loses 0.5 % of the packets, at the client",
        at: Client,
        traffic: &[
            (Server, "web(80, 300000); ready()"),
            (Router, "long_path(0.02, 0, 0.005); ready()"),
            (Client, "ask(SERVER, 80, 0.1); ready(1)"),
        ],
        ..NONE
    },
    Load {
        name: "a wireless path delays packets by 10 to 40 ms",
        traffic: &[
            (Server, "web(80, 100000); ready()"),
            (Router, "long_path(0.01, 0.03); ready()"),
            (Client, "ask(SERVER, 80, 0.1); ready(1)"),
        ],
        ..NONE
    },
    Load {
        name: "a path on which one packet in a hundred overtakes others",
        traffic: &[
            (Server, "web(80, 100000); ready()"),
            (Router, "long_path(0.005, overtakes=0.01); ready()"),
            (Client, "ask(SERVER, 80, 0.1); ready(1)"),
        ],
        ..NONE
    },
    Load {
        name: "a VPN with marks",
        at: Client,
        traffic: &[
            (Server, "tunnel('10.8.0.1'); web(80); ready()"),
            (
                Client,
                "tunnel('10.8.0.2', SERVER, mark=0x77, lines='ip route add default dev vpn0 table 77; \
                 ip route add unreachable default metric 9 table 77; ip rule add not fwmark 0x77 lookup 77; \
                 ip rule add lookup main suppress_prefixlength 0')\n\
                 ask('10.8.0.1', 80); ready(1)",
            ),
        ],
        ..NONE
    },
    Load {
        name: "path MTU discovery at a router",
        at: Router,
        set_up: &[
            (Router, "ip link set s1 mtu 1300"),
            (Server, "ip link set s0 mtu 1300; for i in $(seq 10 60); do ip addr add 172.17.0.$i/24 dev s0; done"),
            (Server, "ip route replace default via 172.17.0.1 advmss 1460"),
        ],
        traffic: &[
            (Server, "web(80); ready()"),
            (
                Client,
                "ask(SERVER, 80, 0.01)\n\
                 [ask('172.17.0.%d' % n, 80, 0.7, 3000) or time.sleep(0.1) for n in range(10, 40)]; ready(0.1)",
            ),
        ],
        ..NONE
    },
    Load {
        name: "a tc filter drops a few unwanted packets",
        at: Router,
        set_up: &[
            (Router, "tc qdisc add dev c1 clsact"),
            (
                Router,
                "tc filter add dev c1 ingress bpf bytecode '6,48 0 0 23,21 0 3 17,40 0 0 36,21 0 1 1900,6 0 0 2,\
                 6 0 0 4294967295' da",
            ),
        ],
        traffic: &[WEB, (Client, "ask(SERVER, 80); datagrams(SERVER, 1900, every=0.1); ready(0.3)")],
        ..NONE
    },
    Load {
        name: "one of several phones with a shared address has gone",
        set_up: &[(Router, "nft 'table ip f { chain c { type filter hook forward priority 0; }; }'")],
        traffic: &[
            (Server, "stream(80); web(81); ready()"),
            (
                Client,
                "player(SERVER, 80); ask(SERVER, 81)\n\
                 s = socket.socket(); s.bind(('', 33333)); s.connect((SERVER, 80)); held.append(s)\n\
                 every(0, lambda: s.recv(65536)); ready(0.3)",
            ),
            (
                Router,
                "time.sleep(0.5)\n\
                 run('nft add rule ip f c tcp dport 33333 drop; nft add rule ip f c tcp sport 33333 drop'); ready(2.5)",
            ),
        ],
        ..NONE
    },
    Load {
        name: "a bridge filters IP and drops unwanted groups",
        at: Router,
        set_up: &[
            (Router, "ip addr flush dev c1; ip addr flush dev s1; ip link add br0 type bridge; ip link set br0 up"),
            (Router, "ip link set c1 master br0; ip link set s1 master br0"),
            (Client, "ip addr add 10.9.0.1/24 dev c0; ip route add 224.0.0.0/4 dev c0"),
            (Server, "ip addr add 10.9.0.2/24 dev s0"),
            (Router, "sysctl -qw net.bridge.bridge-nf-call-iptables=1"),
            (
                Router,
                "nft 'table ip f { chain c { type filter hook forward priority 0; ip daddr 224.0.0.0/4 drop; }; }'",
            ),
        ],
        traffic: &[
            (Server, "web(80); ready()"),
            (Client, "ask('10.9.0.2', 80); datagrams('239.255.255.250', 1900, every=0.05); ready(0.3)"),
        ],
        ..NONE
    },
    Load {
        name: "broadcasts to ports without a listener",
        traffic: &[
            (Server, "web(80); ready()"),
            (
                Router,
                "frames('s1', [datagram_frame(BROADCAST, '172.17.0.9', to, port) for to, port in \
                 (('172.17.0.255', 138), ('255.255.255.255', 67), ('172.17.0.255', 17500))], 0.03); ready()",
            ),
            (Client, "ask(SERVER, 80); ready(0.3)"),
        ],
        ..NONE
    },
    Load {
        name: "a DNS server with many clients",
        traffic: &[
            (Server, "echo(53); ready()"),
            (Client, "[lookup(SERVER, 0.002) for _ in range(4)]; datagrams(SERVER, 53, every=0.002); ready(0.3)"),
        ],
        ..NONE
    },
    Load {
        name: "stray segments reach a server that tracks",
        set_up: &[(Server, TRACK)],
        traffic: &[WEB, (Client, "ask(SERVER, 80)\nsegments(SERVER, list(range(1000, 60000, 7)), 0x11)\nready(0.3)")],
        ..NONE
    },
    Load {
        name: "a program sends little over a long path",
        at: Client,
        traffic: &[
            (Server, "sink(80); ready()"),
            (Router, "long_path(0.03); ready()"),
            (Client, "time.sleep(1); upload(SERVER, 80, 0.3); lines(SERVER, 80, 0.005); ready(1)"),
        ],
        ..NONE
    },
    Load {
        name: "bulk over a long path, at the sender",
        at: Client,
        set_up: &[(Client, "tc qdisc add dev c0 root tbf rate 20mbit burst 32k limit 400k")],
        traffic: LONG_BULK,
        ..NONE
    },
    Load {
        name: "bulk over a long path, at the receiver",
        set_up: &[(Client, "tc qdisc add dev c0 root tbf rate 20mbit burst 32k limit 400k")],
        traffic: LONG_BULK,
        ..NONE
    },
    Load {
        name: "players read at a fixed rate over a long path, at the server",
        traffic: &[
            (Server, "stream(80); ready()"),
            (Router, "long_path(0.02); ready()"),
            (Client, "time.sleep(1); [player(SERVER, 80) for _ in range(4)]; ready(2)"),
        ],
        ..NONE
    },
    Load {
        name: "players read at a fixed rate over a long path, on their host",
        at: Client,
        traffic: &[
            (Server, "stream(80); ready()"),
            (Router, "long_path(0.02); ready()"),
            (Client, "time.sleep(1); [player(SERVER, 80) for _ in range(4)]; ready(2)"),
        ],
        ..NONE
    },
    Load { name: "a server that thinks before it answers, at the client", at: Client, traffic: THOUGHTFUL, ..NONE },
    Load { name: "a server that thinks before it answers", traffic: THOUGHTFUL, ..NONE },
    Load {
        name: "a server that accepts slowly, its accept queue is never empty",
        traffic: &[
            (Server, "slow_web(80); web(81); ready()"),
            (Client, "[ask(SERVER, 80, 0.3) for _ in range(3)]; ask(SERVER, 81); ready(2)"),
        ],
        ..NONE
    },
    Load {
        name: "workers that share a port, one of them slow",
        traffic: &[
            (Server, "[fork(one_of_many, 80) for _ in range(2)]; fork(slow_of_many, 80); ready(0.3)"),
            (Client, "ask(SERVER, 80, 0.005); ready(1)"),
        ],
        ..NONE
    },
    Load {
        name: "programs at unix sockets: a server, and a log that is read as fast as it is written",
        traffic: &[
            (Server, "unix_web('\\0app', backlog=2); unix_log('\\0log'); ready()"),
            (
                Server,
                "[unix_ask('\\0app', 0.01) for _ in range(3)]\n\
                 [unix_write('\\0log', 0.001) for _ in range(2)]; unix_write('\\0log', 0.001, False); ready(1)",
            ),
        ],
        ..NONE
    },
    Load {
        name: "a log that is read slowly, its senders wait for a moment each",
        traffic: &[
            (Server, "unix_log('\\0log', pause_s=0.02); ready()"),
            (Server, "[unix_write('\\0log', 0) for _ in range(3)]; ready(1)"),
        ],
        ..NONE
    },
    Load {
        name: "idle sessions whose peers answer keepalive probes",
        at: Client,
        traffic: &[
            (Server, "sink(80); web(81); ready()"),
            (Client, "[session(SERVER, 80, keepalive=True) for _ in range(9)]; ask(SERVER, 81); ready(1.5)"),
        ],
        ..NONE
    },
    Load {
        name: "a proxy with connections to many servers and few local ports",
        at: Client,
        set_up: &[(Client, "sysctl -qw net.ipv4.ip_local_port_range='40000 40099'")],
        traffic: &[
            (Server, "[sink(port) for port in range(80, 86)]; ready()"),
            (Client, "bound(300, [(SERVER, port) for port in range(80, 86)], False); ready(0.5)"),
        ],
        ..NONE
    },
    Load {
        name: "short connections to the own host and few local ports",
        set_up: &[(Server, "sysctl -qw net.ipv4.ip_local_port_range='40000 40199'")],
        traffic: &[(
            Server,
            "sink(80); every(0.005, lambda: socket.create_connection(('127.0.0.1', 80), 1).close()); ready(3)",
        )],
        ..NONE
    },
    Load {
        name: "workers of one program share a UDP port",
        traffic: &[(Server, "workers(514, 4); ready(0.3)"), (Client, "queries(SERVER, 514, 20); ready(0.3)")],
        ..NONE
    },
    Load {
        name: "two programs listen to mDNS",
        traffic: &[
            (Server, "member(5353, '224.0.0.251', SERVER); ready()"),
            (Server, "import math; member(5353, '224.0.0.251', SERVER); ready()"),
            (Client, "queries(SERVER, 5353, 5); ready(0.3)"),
        ],
        ..NONE
    },
    Load {
        name: "two programs receive one multicast stream",
        traffic: &[
            (Server, "member(5004, '239.1.2.3', SERVER); ready()"),
            (Server, "import math; member(5004, '239.1.2.3', SERVER); ready()"),
            (
                Router,
                "frames('s1', [datagram_frame(b'\\1\\0\\x5e\\1\\2\\3', '172.17.0.9', '239.1.2.3', 5004)]); ready(0.3)",
            ),
        ],
        ..NONE
    },
    Load {
        name: "browsers leave pages early, at the server",
        traffic: &[
            (Server, "web(80, 300000); ready()"),
            (Client, "impatient(SERVER, 80); ask(SERVER, 80); ready(0.5)"),
        ],
        ..NONE
    },
    Load {
        name: "browsers leave pages early, on their host",
        at: Client,
        traffic: &[
            (Server, "web(80, 300000); ready()"),
            (Client, "impatient(SERVER, 80); ask(SERVER, 80); ready(0.5)"),
        ],
        ..NONE
    },
    Load {
        name: "idle connections through a stateful firewall, at the router",
        at: Router,
        set_up: &[(Router, NETWORK_FIREWALL)],
        traffic: &[(Server, "echo_stream(80); web(81); ready()"), (Client, "idlers(SERVER, 80); ready(4)")],
        ..NONE
    },
    Load {
        name: "idle connections through a stateful firewall, on their host",
        at: Client,
        set_up: &[(Router, NETWORK_FIREWALL)],
        traffic: &[(Server, "echo_stream(80); ready()"), (Client, "idlers(SERVER, 80); ready(4)")],
        ..NONE
    },
];
