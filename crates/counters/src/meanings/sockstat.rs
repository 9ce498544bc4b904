//! Numbers of sockets.

use super::{CounterMeaning, g};

/// /proc/net/sockstat
pub(super) const SOCKSTAT: &[CounterMeaning] = &[
    g("sockets.used", "Sockets of all types in this namespace."),
    g("TCP.inuse", "Bound or connected TCP sockets over IPv4, TIME_WAIT excluded."),
    g("TCP.orphan", "Orphaned TCP sockets (owned by no process, still closing), of the whole host."),
    g("TCP.tw", "TCP connections in TIME_WAIT, of both families."),
    g("TCP.alloc", "Allocated TCP sockets, of the whole host and both families."),
    g("TCP.mem", "Memory of TCP buffers in pages, of the whole host."),
    g("UDP.inuse", "UDP sockets over IPv4 that have a port."),
    g("UDP.mem", "Memory of UDP buffers in pages, of the whole host."),
    g("UDPLITE.inuse", "UDP-Lite sockets over IPv4 that have a port."),
    g("RAW.inuse", "Raw sockets over IPv4."),
    g("FRAG.inuse", "IPv4 datagrams waiting for fragments."),
    g("FRAG.memory", "Memory of waiting IPv4 fragments, in bytes."),
];

/// /proc/net/sockstat6
pub(super) const SOCKSTAT6: &[CounterMeaning] = &[
    g("TCP6.inuse", "Bound or connected TCP sockets over IPv6, TIME_WAIT excluded."),
    g("UDP6.inuse", "UDP sockets over IPv6 that have a port."),
    g("UDPLITE6.inuse", "UDP-Lite sockets over IPv6 that have a port."),
    g("RAW6.inuse", "Raw sockets over IPv6."),
    g("FRAG6.inuse", "IPv6 datagrams waiting for fragments."),
    g("FRAG6.memory", "Memory of waiting IPv6 fragments, in bytes."),
];
