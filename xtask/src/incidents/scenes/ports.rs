//! Local ports: used up, or shared by two programs.

use super::At::{Client, Server};
use super::{Incident, Lines, NONE};

/// Few local ports, so that a test can use them up.
const FEW: (super::At, &str) = (Client, "sysctl -qw net.ipv4.ip_local_port_range='40000 40099'");
/// A server with four ports.
const FOUR: (super::At, &str) = (Server, "[sink(port) for port in range(80, 84)]; ready()");
/// Senders to a UDP port of the server.
const SENDERS: (super::At, &str) = (Client, "queries(SERVER, 514, 20); ready(0.3)");
/// Two programs on one UDP port, or on two.
const REUSEADDR: Lines =
    &[(Server, "shared_echo(514); ready()"), (Server, "shared_echo(514 if ILL else 515); ready()"), SENDERS];
const REUSEPORT: Lines = &[
    (Server, "shared_echo(514, socket.SO_REUSEPORT, SERVER); ready()"),
    (Server, "shared_echo(514 if ILL else 515, socket.SO_REUSEPORT, SERVER); ready()"),
    SENDERS,
];

pub(super) const INCIDENTS: &[Incident] = &[
    Incident {
        name: "local ports exhausted by bind before connect, to four destinations",
        expected: "port-exhaustion",
        at: Client,
        set_up: &[FEW],
        traffic: &[FOUR, (Client, "bound(120, [(SERVER, port) for port in range(80, 84)], ILL); ready(0.3)")],
        ..NONE
    },
    Incident {
        name: "local ports exhausted by bind of an address before connect",
        expected: "port-exhaustion",
        at: Client,
        set_up: &[FEW],
        traffic: &[FOUR, (Client, "bound(120, [(SERVER, port) for port in range(80, 84)], ILL, CLIENT); ready(0.3)")],
        ..NONE
    },
    Incident {
        name: "local ports exhausted by UDP sockets",
        expected: "port-exhaustion",
        at: Client,
        set_up: &[FEW],
        traffic: &[(Server, "echo(7); ready()"), (Client, "queries(SERVER, 7, 110 if ILL else 30); ready(0.3)")],
        ..NONE
    },
    Incident {
        name: "reserved ports leave few local ports",
        expected: "port-exhaustion",
        at: Client,
        set_up: &[(Client, "sysctl -qw net.ipv4.ip_local_port_range='40000 40999'")],
        fault: &[(Client, "sysctl -qw net.ipv4.ip_local_reserved_ports='8080,40100-40999'")],
        traffic: &[(Server, "sink(80); ready()"), (Client, "hold(SERVER, 80, 110); ready(0.3)")],
        ..NONE
    },
    Incident {
        name: "two programs have bound one UDP port",
        expected: "udp-shared",
        at: Server,
        traffic: REUSEADDR,
        ..NONE
    },
    Incident {
        name: "two programs share one UDP port and address with SO_REUSEPORT",
        expected: "udp-shared",
        at: Server,
        traffic: REUSEPORT,
        ..NONE
    },
];
