//! Numbers of sockets.

use super::{Meaning, g};

/// /proc/net/sockstat
pub(super) const SOCKSTAT: &[Meaning] = &[
    g("sockets.used", "Sockets of all kinds in this namespace."),
    g("TCP.inuse", "TCP sockets over IPv4 that are bound or connected, without those in TIME_WAIT."),
    g("TCP.orphan", "TCP sockets that no process holds and that still have data to send, of the whole host."),
    g("TCP.tw", "TCP connections in TIME_WAIT, of both families."),
    g("TCP.alloc", "TCP sockets that take memory, of the whole host and both families."),
    g("TCP.mem", "Memory of TCP's buffers, in pages, of the whole host."),
    g("UDP.inuse", "UDP sockets over IPv4 that have a port."),
    g("UDP.mem", "Memory of UDP's buffers, in pages, of the whole host."),
    g("UDPLITE.inuse", "UDP-Lite sockets over IPv4 that have a port."),
    g("RAW.inuse", "Raw sockets over IPv4."),
    g("FRAG.inuse", "IPv4 datagrams that wait for fragments."),
    g("FRAG.memory", "Memory of IPv4 fragments that wait, in bytes."),
];

/// /proc/net/sockstat6
pub(super) const SOCKSTAT6: &[Meaning] = &[
    g("TCP6.inuse", "TCP sockets over IPv6 that are bound or connected, without those in TIME_WAIT."),
    g("UDP6.inuse", "UDP sockets over IPv6 that have a port."),
    g("UDPLITE6.inuse", "UDP-Lite sockets over IPv6 that have a port."),
    g("RAW6.inuse", "Raw sockets over IPv6."),
    g("FRAG6.inuse", "IPv6 datagrams that wait for fragments."),
    g("FRAG6.memory", "Memory of IPv6 fragments that wait, in bytes."),
];
