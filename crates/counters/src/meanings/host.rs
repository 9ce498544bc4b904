//! Counters of the whole host: packets in the queues of CPUs, neighbours.

use super::{CounterMeaning, c, g};

/// Columns of /proc/net/softnet_stat.
pub(super) const SOFTNET: &[CounterMeaning] = &[
    c("processed", "Packets that this CPU received from devices and queues."),
    c("dropped", "Packets dropped because the backlog queue of this CPU was full (netdev_max_backlog)."),
    c(
        "time_squeeze",
        "Number of times that this CPU stopped receiving with packets left because its budget or time was used up \
         (netdev_budget). Normal on its own.",
    ),
    c("received_rps", "Number of times that another CPU woke this one to process packets (receive packet steering)."),
    c("flow_limit_count", "Packets of large flows dropped early because the backlog queue filled up (flow limit)."),
    g("backlog_len", "Packets waiting in the backlog of this CPU."),
    g("input_qlen", "Packets waiting in the input queue of the backlog, which receives new packets."),
    g("process_qlen", "Packets waiting in the process queue of the backlog, which is being processed."),
];

/// Columns of /proc/net/stat/arp_cache and ndisc_cache.
pub(super) const NEIGH: &[CounterMeaning] = &[
    g("arp.entries", "IPv4 neighbours in the table, of all namespaces."),
    c("arp.allocs", "IPv4 neighbours created."),
    c("arp.destroys", "IPv4 neighbours removed."),
    c("arp.hash_grows", "Number of times that the hash table of IPv4 neighbours grew."),
    c("arp.lookups", "Lookups in the IPv4 neighbour table."),
    c("arp.hits", "Successful lookups in the IPv4 neighbour table."),
    c("arp.res_failed", "IPv4 neighbours that did not answer ARP."),
    c("arp.rcv_probes_mcast", "ARP requests by multicast for addresses of this host: always 0."),
    c("arp.rcv_probes_ucast", "ARP requests by unicast for addresses of this host: always 0."),
    c("arp.periodic_gc_runs", "Periodic garbage collections of the IPv4 neighbour table."),
    c(
        "arp.forced_gc_runs",
        "Forced garbage collections: IPv4 neighbours were removed early to make room (gc_thresh2, gc_thresh3).",
    ),
    c("arp.unresolved_discards", "Packets dropped because too many were waiting for the address of an IPv4 neighbour."),
    c(
        "arp.table_fulls",
        "IPv4 neighbours that could not be created because the table was full (gc_thresh3): packets to them are \
        dropped.",
    ),
    g("ndisc.entries", "IPv6 neighbours in the table, of all namespaces."),
    c("ndisc.allocs", "IPv6 neighbours created."),
    c("ndisc.destroys", "IPv6 neighbours removed."),
    c("ndisc.hash_grows", "Number of times that the hash table of IPv6 neighbours grew."),
    c("ndisc.lookups", "Lookups in the IPv6 neighbour table."),
    c("ndisc.hits", "Successful lookups in the IPv6 neighbour table."),
    c("ndisc.res_failed", "IPv6 neighbours that did not answer."),
    c("ndisc.rcv_probes_mcast", "Neighbour solicitations received by multicast."),
    c("ndisc.rcv_probes_ucast", "Neighbour solicitations received by unicast."),
    c("ndisc.periodic_gc_runs", "Periodic garbage collections of the IPv6 neighbour table."),
    c(
        "ndisc.forced_gc_runs",
        "Forced garbage collections: IPv6 neighbours were removed early to make room (gc_thresh2, gc_thresh3).",
    ),
    c(
        "ndisc.unresolved_discards",
        "Packets dropped because too many were waiting for the address of an IPv6 neighbour.",
    ),
    c(
        "ndisc.table_fulls",
        "IPv6 neighbours that could not be created because the table was full (gc_thresh3): packets to them are \
        dropped.",
    ),
];
