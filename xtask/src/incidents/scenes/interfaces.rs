//! Interfaces, bridges and groups.

use super::At::{Client, Router, Server};
use super::{BRIDGE, ECHO, Incident, Lines, NONE, QUERIER};

/// Datagrams over that bridge.
const BRIDGED: Lines = &[(Server, "echo(7); ready()"), (Client, "datagrams('10.9.0.2', 7); ready(0.5)")];
/// A host that asks a service of its own.
const OWN: Lines = &[(Server, "web(80); ask('127.0.0.1', 80, 0.1); ready(2)")];
/// A stream of the group 239.1.2.3 over that bridge.
const STREAM: Lines = &[
    (Server, "joined('239.1.2.3', 5004, '10.9.0.2'); ready()"),
    (Client, "stream_to('239.1.2.3', 5004, '10.9.0.1'); ready(4)"),
];

pub(super) const INCIDENTS: &[Incident] = &[
    Incident {
        name: "lo is set down",
        expected: "iface-down",
        at: Server,
        fault: &[(Server, "ip link set lo down")],
        traffic: OWN,
        ..NONE
    },
    Incident {
        name: "lo was never brought up",
        expected: "iface-down",
        at: Server,
        fault: &[(Server, "ip link set lo down; ip addr del 127.0.0.1/8 dev lo")],
        traffic: OWN,
        ..NONE
    },
    Incident {
        name: "lo was never brought up, without a default route",
        expected: "iface-down",
        at: Server,
        set_up: &[(Server, "ip route del default; ip -6 route del default")],
        fault: &[(Server, "ip link set lo down; ip addr del 127.0.0.1/8 dev lo")],
        traffic: OWN,
        ..NONE
    },
    Incident {
        name: "lo is down: a host cannot reach its own address",
        expected: "iface-down",
        at: Server,
        fault: &[(Server, "ip link set lo down")],
        traffic: &[(Server, "echo(7); datagrams('172.17.0.2', 7); ready(0.5)")],
        ..NONE
    },
    Incident {
        name: "a macvlan is on an interface that is set down",
        expected: "iface-down",
        at: Client,
        set_up: &[
            (Client, "ip link add m0 link c0 type macvlan mode bridge; ip link set m0 up"),
            (Client, "ip addr add 192.0.2.20/24 dev m0; ip route replace default via 192.0.2.1 dev m0"),
            (Client, "ip addr del 192.0.2.10/24 dev c0; ip route replace default via 192.0.2.1 dev m0"),
        ],
        fault: &[(Client, "ip link set c0 down")],
        traffic: ECHO,
        ..NONE
    },
    Incident {
        name: "a program sends UDP faster than its interface",
        expected: "udp-sndbuf",
        at: Client,
        fault: &[(Client, "tc qdisc add dev c0 root handle 1: tbf rate 400kbit burst 3000 limit 10000000")],
        traffic: &[
            (Server, "echo(7, answers=False); ready()"),
            (Client, "datagrams(SERVER, 7, 1000, 0.001); ready(3)"),
        ],
        ..NONE
    },
    Incident {
        name: "a program does not read its tun device",
        expected: "nic-drops",
        at: Client,
        traffic: &[
            (Server, "echo(7); ready()"),
            (
                Client,
                "tun('vpn0', 'ip addr add 10.6.0.1/24 dev vpn0')\n\
                 datagrams('10.6.0.2' if ILL else SERVER, 7)\nready(4)",
            ),
        ],
        ..NONE
    },
    Incident {
        name: "a program joins a group on the wrong interface",
        expected: "mcast-iface",
        at: Server,
        set_up: &[
            (Router, "ip link add x1 type veth peer name x0 netns $SERVER_NETNS"),
            (Router, "ip link set x1 up; ip addr add 10.8.0.1/24 dev x1"),
            (Server, "ip link set x0 up; ip addr add 10.8.0.2/24 dev x0"),
        ],
        traffic: &[
            (Server, "joined('239.1.2.3', 5004, '172.17.0.2' if ILL else '10.8.0.2'); ready()"),
            (Router, "stream_to('239.1.2.3', 5004, '10.8.0.1'); ready(0.3)"),
        ],
        is_quick: true,
        ..NONE
    },
    Incident {
        name: "a program joins a group for another source",
        expected: "mcast-iface",
        at: Server,
        traffic: &[
            (Server, "joined('239.1.2.3', 5004, '172.17.0.2', '172.17.0.9' if ILL else '172.17.0.1'); ready()"),
            (Router, "stream_to('239.1.2.3', 5004, '172.17.0.1'); ready(0.3)"),
        ],
        ..NONE
    },
    Incident {
        name: "a bridge snoops without a querier",
        expected: "mcast-snooping",
        set_up: &[
            BRIDGE[0],
            BRIDGE[1],
            BRIDGE[2],
            BRIDGE[3],
            BRIDGE[4],
            (
                Router,
                "ip link set c1 type bridge_slave mcast_flood off; ip link set s1 type bridge_slave mcast_flood off",
            ),
            QUERIER,
        ],
        fault: &[(Router, "ip link set br0 type bridge mcast_querier 0")],
        traffic: STREAM,
        ..NONE
    },
    Incident {
        name: "the querier of a group is gone",
        expected: "mcast-snooping",
        set_up: &[
            BRIDGE[0],
            BRIDGE[1],
            BRIDGE[2],
            BRIDGE[3],
            BRIDGE[4],
            (Router, "ip link set br0 type bridge mcast_membership_interval 250 mcast_query_response_interval 50"),
        ],
        traffic: &[
            STREAM[0],
            (
                Client,
                "query = whole_ip_packet('10.9.0.1', '224.0.0.1', 2, b'\\x11\\x05\\xee\\xfa\\0\\0\\0\\0')\n\
                 sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)\n\
                 sender.bind(('c0', 0)); held.append(sender)\n\
                 frame = b'\\1\\0\\x5e\\0\\0\\1' + b'\\2\\0\\0\\0\\0\\7' + b'\\x08\\0' + query\n\
                 sender.send(frame)\n\
                 if not ILL: every(0.8, lambda: sender.send(frame))\n\
                 stream_to('239.1.2.3', 5004, '10.9.0.1'); ready(5)",
            ),
        ],
        ..NONE
    },
    Incident {
        name: "a bridge port is disabled by hand",
        expected: "bridge-port",
        set_up: BRIDGE,
        fault: &[(Router, "bridge link set dev s1 state 0")],
        traffic: BRIDGED,
        ..NONE
    },
    Incident {
        name: "STP holds a bridge port back",
        expected: "bridge-port",
        set_up: BRIDGE,
        fault: &[(Router, "ip link set br0 type bridge stp_state 1; ip link set s1 down; ip link set s1 up")],
        traffic: &[
            (Server, "echo(7); datagrams('10.9.0.1', 9); ready()"),
            (Client, "echo(9); datagrams('10.9.0.2', 7); ready(0.5)"),
        ],
        ..NONE
    },
    Incident {
        name: "two bridge ports are isolated",
        expected: "bridge-port",
        set_up: BRIDGE,
        fault: &[(
            Router,
            "ip link set s1 type bridge_slave isolated on; ip link set c1 type bridge_slave isolated on",
        )],
        traffic: BRIDGED,
        ..NONE
    },
    Incident {
        name: "the host at the other bridge port is down",
        expected: "bridge-port",
        set_up: BRIDGE,
        fault: &[(Server, "ip link set s0 down")],
        traffic: &[(Client, "datagrams('10.9.0.2', 7); ready(0.5)"), (Server, "echo(7); ready()")],
        ..NONE
    },
    Incident {
        name: "two hosts on a bridge have one hardware address",
        expected: "mac-moves",
        set_up: BRIDGE,
        fault: &[(Server, "ip link set s0 address 02:00:00:00:00:33")],
        traffic: &[
            (Server, "datagrams('10.9.0.3', 7); ready()"),
            (Client, "if ILL: run('ip link set c0 address 02:00:00:00:00:33')\ndatagrams('10.9.0.3', 7); ready(0.5)"),
            (Router, "echo(7); ready()"),
        ],
        ..NONE
    },
    Incident {
        name: "the ends of a link have different MTUs, at the receiver",
        expected: "mtu-mismatch",
        fault: &[(Router, "ip link set c1 mtu 1000")],
        traffic: &[(Server, "echo(7); ready()"), (Client, "datagrams(SERVER, 7, 1300); ready(0.3)")],
        ..NONE
    },
    Incident {
        name: "a bridge port has a smaller MTU than the others",
        expected: "mtu-mismatch",
        set_up: BRIDGE,
        fault: &[(Router, "ip link set s1 mtu 1000; ip link set br0 mtu 1500")],
        traffic: &[(Server, "echo(7); ready()"), (Client, "datagrams('10.9.0.2', 7, 1300); ready(0.3)")],
        ..NONE
    },
    Incident {
        name: "IPv6 packets start with a hop limit of 1",
        expected: "ttl-expired",
        at: Client,
        fault: &[(Client, "sysctl -qw net.ipv6.conf.c0.hop_limit=1")],
        traffic: &[
            (Server, "echo(7, family=socket.AF_INET6); ready()"),
            (Client, "datagrams('fd17::2', 7, family=socket.AF_INET6); ready(0.5)"),
        ],
        ..NONE
    },
    Incident {
        name: "IPv4 packets start with a hop limit of 1",
        expected: "ttl-expired",
        at: Client,
        fault: &[(Client, "sysctl -qw net.ipv4.ip_default_ttl=1")],
        traffic: &[(Server, "web(80); ready()"), (Client, "ask(SERVER, 80); ready(1.5)")],
        ..NONE
    },
];
