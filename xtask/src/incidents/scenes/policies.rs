//! Policies: IPsec, policy routing, XDP, programs of cgroups, rules, signatures.

use super::At::{Client, Router, Server};
use super::{ECHO, FORWARD, Incident, NONE, WEB};

/// A refusing rule and route that concern other destinations.
const OTHER_RULES: &str = "ip rule add to 203.0.113.0/24 prohibit; ip route add blackhole 198.51.100.0/24";
/// IPsec policies that concern other destinations.
const OTHER_POLICIES: &str = "ip xfrm policy add src 203.0.113.0/24 dst 198.51.100.0/24 dir out action block; \
                              ip xfrm policy add src 198.51.100.0/24 dst 203.0.113.0/24 dir fwd action block";

pub(super) const INCIDENTS: &[Incident] = &[
    Incident {
        name: "an IPsec policy has no state, at the sender",
        expected: "ipsec",
        at: Client,
        set_up: &[(Client, OTHER_RULES)],
        fault: &[(
            Client,
            "ip xfrm policy add src 192.0.2.10 dst 172.17.0.2 dir out \
             tmpl src 192.0.2.10 dst 172.17.0.2 proto esp mode transport",
        )],
        traffic: WEB,
        is_quick: true,
        ..NONE
    },
    Incident {
        name: "an IPsec policy has no state, at a router",
        expected: "ipsec",
        set_up: &[(Router, OTHER_RULES)],
        fault: &[(
            Router,
            "ip xfrm policy add src 192.0.2.0/24 dst 172.17.0.0/24 dir out \
             tmpl src 172.17.0.1 dst 172.17.0.9 proto esp mode tunnel",
        )],
        traffic: ECHO,
        ..NONE
    },
    Incident {
        name: "an IPsec policy demands protection that the packets lack",
        expected: "ipsec",
        at: Server,
        fault: &[(
            Server,
            "ip xfrm policy add src 192.0.2.10 dst 172.17.0.2 dir in \
             tmpl src 192.0.2.10 dst 172.17.0.2 proto esp mode transport",
        )],
        traffic: WEB,
        ..NONE
    },
    Incident {
        name: "an IPsec policy blocks the packets of a client",
        expected: "ipsec",
        at: Client,
        set_up: &[(Client, OTHER_RULES)],
        fault: &[(Client, "ip xfrm policy add src 192.0.2.10 dst 172.17.0.2 dir out action block")],
        traffic: ECHO,
        ..NONE
    },
    Incident {
        name: "an IPsec policy blocks forwarded packets",
        expected: "ipsec",
        set_up: &[(Router, OTHER_RULES)],
        fault: &[(Router, "ip xfrm policy add src 192.0.2.10 dst 172.17.0.2 dir fwd action block")],
        traffic: WEB,
        ..NONE
    },
    Incident {
        name: "a policy routing rule prohibits forwarded packets",
        expected: "route-refuses",
        set_up: &[(Router, OTHER_POLICIES), (Router, "ip route add blackhole 198.51.100.0/24")],
        fault: &[(Router, "ip rule add from 192.0.2.0/24 to 172.17.0.2 prohibit")],
        traffic: WEB,
        ..NONE
    },
    Incident {
        name: "a policy routing rule makes a destination unreachable, forwarded packets",
        expected: "route-refuses",
        set_up: &[(Router, OTHER_POLICIES)],
        fault: &[(Router, "ip rule add iif c1 to 172.17.0.2 unreachable")],
        traffic: WEB,
        ..NONE
    },
    Incident {
        name: "a policy routing rule makes a destination unreachable, own packets",
        expected: "route-refuses",
        at: Client,
        set_up: &[(Client, OTHER_POLICIES)],
        fault: &[(Client, "ip rule add to 172.17.0.2 unreachable")],
        traffic: ECHO,
        ..NONE
    },
    Incident {
        name: "a policy routing rule leads to an empty table",
        expected: "no-route",
        at: Client,
        set_up: &[(
            Client,
            "ip route add $(ip route show default) table 100; ip route del default; ip rule add lookup 100",
        )],
        fault: &[(Client, "ip route flush table 100")],
        traffic: ECHO,
        ..NONE
    },
    Incident {
        name: "an XDP program drops packets, in the driver",
        expected: "tc-xdp-drop",
        traffic: &[
            (Server, "web(80); ready()"),
            (Router, "xdp('c1', 80 if ILL else 9, False); ready()"),
            (Client, "ask(SERVER, 80); ready(0.3)"),
        ],
        ..NONE
    },
    Incident {
        name: "an XDP program drops packets, in generic mode",
        expected: "tc-xdp-drop",
        traffic: &[
            (Server, "echo(7); ready()"),
            (Router, "xdp('c1', 7 if ILL else 9, True); ready()"),
            (Client, "datagrams(SERVER, 7); ready(0.2)"),
        ],
        ..NONE
    },
    Incident {
        name: "a tc program drops packets to send",
        expected: "tc-xdp-drop",
        traffic: &[
            (Server, "echo(7); ready()"),
            (Router, "tcx('s1', 7 if ILL else 9, True); ready()"),
            (Client, "datagrams(SERVER, 7); ready(0.2)"),
        ],
        ..NONE
    },
    Incident {
        name: "a cgroup's program drops packets to a server",
        expected: "cgroup-drop",
        at: Server,
        traffic: &[
            (Server, "cgroup(80 if ILL else 9, False); web(80); ready()"),
            (Client, "ask(SERVER, 80); ready(0.3)"),
        ],
        ..NONE
    },
    Incident {
        name: "a cgroup's program drops the packets of a client",
        expected: "cgroup-drop",
        at: Client,
        traffic: &[
            (Server, "echo(7); ready()"),
            (Client, "cgroup(7 if ILL else 9, True); datagrams(SERVER, 7); ready(0.2)"),
        ],
        ..NONE
    },
    Incident {
        name: "a program rejects datagrams with a socket filter",
        expected: "socket-filter",
        at: Server,
        traffic: &[
            // The healthy twin's filter accepts every datagram.
            (
                Server,
                "echo(7)\n\
                 code = ctypes.create_string_buffer(struct.pack('=HBBI', 6, 0, 0, 0 if ILL else 65535))\n\
                 held[-1].setsockopt(1, 26, struct.pack('=H6xQ', 1, ctypes.addressof(code)))\n\
                 ready()",
            ),
            (Client, "datagrams(SERVER, 7); ready(0.2)"),
        ],
        ..NONE
    },
    Incident {
        name: "a rule of iptables-legacy drops packets",
        expected: "rule-drop",
        traffic: &[
            (Server, "web(80); ready()"),
            (Router, "legacy_drop('FORWARD', 80 if ILL else 9); ready()"),
            (Client, "ask(SERVER, 80); ready(0.3)"),
        ],
        ..NONE
    },
    Incident {
        name: "a rule drops the addresses of a set",
        expected: "rule-drop",
        set_up: &[(
            Router,
            "nft 'table ip f { set blocked { type ipv4_addr; flags interval; elements = { 203.0.113.0/24 }; }; \
             chain c { type filter hook forward priority 0; ip saddr @blocked drop; }; }'",
        )],
        fault: &[(Router, "nft add element ip f blocked '{ 192.0.2.0/28 }'")],
        traffic: WEB,
        ..NONE
    },
    Incident {
        name: "a rule in a chain of its own drops packets",
        expected: "rule-drop",
        set_up: &[(Router, FORWARD), (Router, "nft 'add chain ip f strict; add rule ip f c iif c1 jump strict'")],
        fault: &[(Router, "nft add rule ip f strict udp dport 7 drop")],
        traffic: ECHO,
        ..NONE
    },
    Incident {
        name: "a rule of this host rejects its connections",
        expected: "rule-drop",
        at: Client,
        fault: &[(
            Client,
            "nft 'table inet f { chain c { type filter hook output priority 0; \
             tcp dport 80 reject with tcp reset; }; }'",
        )],
        traffic: WEB,
        ..NONE
    },
    Incident {
        name: "two hosts have different TCP keys",
        expected: "tcp-signature",
        at: Server,
        traffic: &[
            (Server, "signed_web(80, b'one'); ready()"),
            (Client, "signed_ask(SERVER, 80, b'two' if ILL else b'one'); ready(0.3)"),
        ],
        ..NONE
    },
    Incident {
        name: "a peer does not sign its TCP segments",
        expected: "tcp-signature",
        at: Server,
        traffic: &[
            (Server, "signed_web(80, b'one'); ready()"),
            (Client, "signed_ask(SERVER, 80, None if ILL else b'one'); ready(0.3)"),
        ],
        ..NONE
    },
];
