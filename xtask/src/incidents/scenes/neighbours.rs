//! IPv6 and the neighbours of a link.

use super::At::{Client, Router, Server};
use super::{Incident, Lines, NONE, SETTLED, TRACK};

/// Datagrams over IPv6 that are answered.
const ECHO6: Lines = &[
    (Server, "echo(7, family=socket.AF_INET6); ready()"),
    (Client, "datagrams('fd17::2', 7, every=0.02, family=socket.AF_INET6); ready(1.5)"),
];
/// Connections to a web server, after the client has waited for some answers in vain.
const WEB: Lines = &[(Server, "web(80); ready()"), (Client, "ask(SERVER, 80, 0.1); ready(2.5)")];
/// A permanent entry of the gateway with its hardware address.
const PINNED: Lines = &[
    (Router, "ip link set c1 address 02:00:00:00:00:01"),
    (Client, "ip neigh replace 192.0.2.1 lladdr 02:00:00:00:00:01 dev c0 nud permanent"),
];
/// Two next hops; connections are spread by their ports.
const TWO_HOPS: Lines = &[
    (Router, "ip addr add 192.0.2.98/24 dev c1"),
    (Client, "sysctl -qw net.ipv4.fib_multipath_hash_policy=1"),
    (Client, "ip route replace default nexthop via 192.0.2.1 nexthop via 192.0.2.98"),
];

pub(super) const INCIDENTS: &[Incident] = &[
    Incident {
        name: "the IPv6 gateway is down",
        expected: "neigh-failed",
        at: Client,
        fault: &[(Client, "ip -6 route replace default via 2001:db8::99")],
        traffic: ECHO6,
        ..NONE
    },
    Incident {
        name: "an IPv6 host in the local network is down",
        expected: "neigh-failed",
        set_up: &[(Server, SETTLED)],
        fault: &[(Server, "ip -6 addr flush dev s0 scope global")],
        traffic: &[
            (Server, "echo(7, family=socket.AF_INET6); ready()"),
            (Client, "datagrams('fd17::2', 7, every=0.02, family=socket.AF_INET6); ready(3.2)"),
        ],
        ..NONE
    },
    Incident {
        name: "a rule drops the answers of neighbours (ICMPv6)",
        expected: "discovery-drop",
        at: Client,
        set_up: &[(Client, "nft 'table inet f { chain c { type filter hook input priority 0; }; }'")],
        fault: &[(Client, "nft add rule inet f c icmpv6 type nd-neighbor-advert drop; ip -6 neigh flush dev c0")],
        traffic: ECHO6,
        is_quick: true,
        ..NONE
    },
    Incident {
        name: "a firewall without neighbour discovery",
        expected: "discovery-drop",
        at: Server,
        set_up: &[(
            Server,
            "nft 'table inet f { chain c { type filter hook input priority 0; policy drop; \
             ct state established,related accept; udp dport 7 accept; icmpv6 type nd-neighbor-solicit accept; \
             icmpv6 type nd-neighbor-advert accept; }; }'",
        )],
        fault: &[
            (
                Server,
                "nft 'flush chain inet f c; add rule inet f c ct state established,related accept; \
                 add rule inet f c udp dport 7 accept'",
            ),
            (Router, "ip -6 neigh flush dev s1"),
        ],
        traffic: ECHO6,
        ..NONE
    },
    Incident {
        name: "a rule drops the requests for neighbours (ICMPv6)",
        expected: "discovery-drop",
        at: Client,
        set_up: &[(Client, "nft 'table ip6 f { chain c { type filter hook output priority 0; }; }'")],
        fault: &[(Client, "nft add rule ip6 f c meta l4proto icmpv6 drop; ip -6 neigh flush dev c0")],
        traffic: ECHO6,
        ..NONE
    },
    Incident {
        name: "a rule drops ARP",
        expected: "discovery-drop",
        at: Client,
        set_up: &[(Client, "nft 'table arp f { chain c { type filter hook input priority 0; }; }'")],
        fault: &[(Client, "nft add rule arp f c arp operation reply drop; ip neigh flush dev c0")],
        traffic: &[(Server, "echo(7); ready()"), (Client, "datagrams(SERVER, 7, every=0.02); ready(1.5)")],
        ..NONE
    },
    Incident {
        name: "router advertisements are ignored because the host forwards",
        expected: "ra-ignored",
        at: Client,
        set_up: &[(Router, SETTLED), (Client, "ip -6 route del default; sysctl -qw net.ipv6.conf.c0.accept_ra=1")],
        fault: &[(Client, "sysctl -qw net.ipv6.conf.all.forwarding=1")],
        traffic: &[
            (Server, "echo(7, family=socket.AF_INET6); ready()"),
            (Router, "router_adverts('c1'); ready()"),
            (Client, "datagrams('fd17::2', 7, every=0.02, family=socket.AF_INET6); ready(2)"),
        ],
        ..NONE
    },
    Incident {
        name: "a redirect leads to a gateway that is down",
        expected: "redirect",
        at: Client,
        set_up: &[
            (Router, "ip addr add 192.0.2.99/24 dev c1"),
            (Client, "sysctl -qw net.ipv4.conf.all.accept_redirects=1"),
        ],
        traffic: &[
            (Server, "echo(7); ready()"),
            (
                Router,
                "redirects(SERVER, '192.0.2.99', (999, 7))\n\
                 if ILL: run('ip addr del 192.0.2.99/24 dev c1')\n\
                 ready()",
            ),
            (
                Client,
                "s = socket.socket(2, 2); s.bind(('', 999)); s.setblocking(False)\n\
                 every(0.01, lambda: (take(s), s.sendto(b'x', ('192.0.2.99', 9)) if time.time() < END - 38.5 else 0, \
                 s.sendto(b'x', (SERVER, 7))))\n\
                 time.sleep(3)\n\
                 if ILL: run('ip neigh del 192.0.2.99 dev c0')\n\
                 ready(1.5)",
            ),
        ],
        ..NONE
    },
    Incident {
        name: "an IPv6 redirect leads to a gateway that is down",
        expected: "redirect",
        at: Client,
        set_up: &[
            (Router, "ip addr add fe80::1/64 dev c1 nodad; ip addr add fe80::99/64 dev c1 nodad"),
            (Client, "ip -6 route replace default via fe80::1 dev c0"),
        ],
        traffic: &[
            (Server, "echo(7, family=socket.AF_INET6); ready()"),
            (
                Router,
                "if ILL: run('ip addr del fe80::99/64 dev c1')\n\
                 redirects6('fd17::2', 'fe80::99', 'c1')\n\
                 ready()",
            ),
            (Client, "datagrams('fd17::2', 7, every=0.02, family=socket.AF_INET6); ready(1.5)"),
        ],
        ..NONE
    },
    Incident {
        name: "one of two gateways is down",
        expected: "neigh-failed",
        at: Client,
        set_up: TWO_HOPS,
        fault: &[(Client, "ip route replace default nexthop via 192.0.2.1 nexthop via 192.0.2.99")],
        traffic: WEB,
        ..NONE
    },
    Incident {
        name: "one of two IPv6 gateways is down",
        expected: "neigh-failed",
        at: Client,
        set_up: &[
            (Router, "ip -6 addr add 2001:db8::98/64 dev c1 nodad"),
            (Client, "sysctl -qw net.ipv6.fib_multipath_hash_policy=1; ip -6 route del default"),
            (Client, "ip -6 route add default nexthop via 2001:db8::1 nexthop via 2001:db8::98"),
        ],
        fault: &[(
            Client,
            "ip -6 route del default; ip -6 route add default nexthop via 2001:db8::1 nexthop via 2001:db8::99",
        )],
        traffic: &[
            (Server, "echo(7, family=socket.AF_INET6); ready()"),
            (Client, "[datagrams('fd17::2', 7, every=0.05, family=socket.AF_INET6) for _ in range(12)]; ready(2.5)"),
        ],
        ..NONE
    },
    Incident {
        name: "a gateway is not on the link",
        expected: "neigh-failed",
        at: Client,
        fault: &[(Client, "ip route replace default via 10.9.9.9 dev c0 onlink")],
        traffic: WEB,
        ..NONE
    },
    Incident {
        name: "a permanent neighbour entry of a gateway whose card is gone",
        expected: "neigh-permanent",
        at: Client,
        set_up: PINNED,
        fault: &[(Router, "ip link set c1 down; ip link set c1 address 02:00:00:00:00:02; ip link set c1 up")],
        traffic: WEB,
        ..NONE
    },
    Incident {
        name: "datagrams to a permanent neighbour entry whose card is gone",
        expected: "neigh-permanent",
        at: Client,
        set_up: PINNED,
        fault: &[(Router, "ip link set c1 down; ip link set c1 address 02:00:00:00:00:02; ip link set c1 up")],
        traffic: &[(Server, "echo(7); ready()"), (Client, "datagrams(SERVER, 7, every=0.005); ready(3)")],
        ..NONE
    },
    Incident {
        name: "a permanent neighbour entry of a server whose card is gone",
        expected: "neigh-permanent",
        set_up: &[
            (Router, TRACK),
            (Server, "ip link set s0 address 02:00:00:00:00:01"),
            (Router, "ip neigh replace 172.17.0.2 lladdr 02:00:00:00:00:01 dev s1 nud permanent"),
        ],
        fault: &[(
            Server,
            "ip link set s0 down; ip link set s0 address 02:00:00:00:00:02; ip link set s0 up; \
             ip route add default via 172.17.0.1",
        )],
        traffic: WEB,
        ..NONE
    },
    Incident {
        name: "a host sends to its own macvlan",
        expected: "own-macvlan",
        at: Client,
        set_up: &[
            (Client, "ip link add m0 link c0 type macvlan mode bridge; ip link set m0 netns $SERVER_NETNS"),
            (Server, "ip addr add 192.0.2.50/24 dev m0; ip link set m0 up"),
            (Client, "ip link add m1 link c0 type macvlan mode bridge; ip link set m1 up"),
            (Client, "ip route add 192.0.2.50 dev m1"),
        ],
        fault: &[(Client, "ip link del m1")],
        traffic: &[(Server, "echo(7); ready()"), (Client, "datagrams('192.0.2.50', 7, every=0.02); ready(1.5)")],
        ..NONE
    },
    Incident {
        name: "two macvlans have one IPv6 address",
        expected: "dad-failed",
        at: Client,
        set_up: &[
            (Client, "ip link add m0 link c0 type macvlan mode bridge; ip link set m0 netns $SERVER_NETNS"),
            (Server, "ip -6 addr add 2001:db8::50/64 dev m0; ip link set m0 up"),
            (Client, "ip link add m1 link c0 type macvlan mode bridge; ip link set m1 up"),
            (Server, SETTLED),
        ],
        fault: &[(Client, "ip -6 addr add 2001:db8::50/64 dev m1")],
        traffic: &[(Server, "echo(7); ready()"), (Client, "datagrams(SERVER, 7, every=0.02); ready(4)")],
        ..NONE
    },
    Incident {
        name: "a bridge drops the requests for neighbours (ICMPv6)",
        expected: "discovery-drop",
        set_up: &[
            (Router, "ip addr flush dev c1; ip addr flush dev s1; ip link add br0 type bridge; ip link set br0 up"),
            (Router, "ip link set c1 master br0; ip link set s1 master br0"),
            (Client, "ip -6 addr add fd09::1/64 dev c0 nodad"),
            (Server, "ip -6 addr add fd09::2/64 dev s0 nodad"),
            (Router, "nft 'table bridge f { chain c { type filter hook forward priority 0; }; }'"),
        ],
        fault: &[(Router, "nft add rule bridge f c icmpv6 type nd-neighbor-solicit drop")],
        traffic: &[
            (Server, "echo(7, family=socket.AF_INET6); ready()"),
            (Client, "datagrams('fd09::2', 7, every=0.02, family=socket.AF_INET6); ready(1.5)"),
        ],
        ..NONE
    },
    Incident {
        name: "a host does not answer ARP for a service address (arp_ignore)",
        expected: "arp-ignored",
        at: Server,
        set_up: &[
            (Server, "ip link set lo up; ip addr add 10.5.5.5/32 dev lo"),
            (Router, "ip route add 10.5.5.5/32 dev s1"),
        ],
        fault: &[(Server, "sysctl -qw net.ipv4.conf.all.arp_ignore=1")],
        traffic: &[(Server, "echo(7); ready()"), (Client, "datagrams('10.5.5.5', 7, every=0.02); ready(1.5)")],
        ..NONE
    },
];
