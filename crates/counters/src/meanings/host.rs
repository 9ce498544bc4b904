//! Counters of the whole host: packets in the queues of CPUs, neighbours.

use super::{Meaning, c, g};

/// Columns of /proc/net/softnet_stat.
pub(super) const SOFTNET: &[Meaning] = &[
    c("processed", "Packets that this CPU took from devices and queues."),
    c("dropped", "Packets dropped because the backlog queue of this CPU was full (netdev_max_backlog)."),
    c(
        "time_squeeze",
        "Rounds in which this CPU had to stop though packets were left: the budget or the time was used up \
         (netdev_budget). Alone it is normal.",
    ),
    c("received_rps", "Times that another CPU woke this one to take packets over (receive packet steering)."),
    c("flow_limit_count", "Packets of large flows dropped early because the backlog queue filled up (flow limit)."),
    g("backlog_len", "Packets that wait now in the backlog of this CPU."),
    g("input_qlen", "Packets that wait now in the part of the backlog that takes new ones."),
    g("process_qlen", "Packets that wait now in the part of the backlog that is being worked off."),
];

/// Columns of /proc/net/stat/arp_cache and ndisc_cache.
pub(super) const NEIGH: &[Meaning] = &[
    g("arp.entries", "IPv4 neighbours in the table now, of all namespaces."),
    c("arp.allocs", "IPv4 neighbours made."),
    c("arp.destroys", "IPv4 neighbours removed."),
    c("arp.hash_grows", "Times that the hash table of IPv4 neighbours was made larger."),
    c("arp.lookups", "Searches in the table of IPv4 neighbours."),
    c("arp.hits", "Searches in the table of IPv4 neighbours that found one."),
    c("arp.res_failed", "IPv4 neighbours that did not answer ARP."),
    c("arp.rcv_probes_mcast", "Questions by multicast for addresses of this host, by ARP: stays 0."),
    c("arp.rcv_probes_ucast", "Questions by unicast for addresses of this host, by ARP: stays 0."),
    c("arp.periodic_gc_runs", "Times that old IPv4 neighbours were looked for."),
    c(
        "arp.forced_gc_runs",
        "Times that IPv4 neighbours had to be removed before their time to make room (gc_thresh2, gc_thresh3).",
    ),
    c("arp.unresolved_discards", "Packets dropped because too many waited for the address of an IPv4 neighbour."),
    c(
        "arp.table_fulls",
        "IPv4 neighbours that could not be made because the table was full (gc_thresh3): their packets are dropped.",
    ),
    g("ndisc.entries", "IPv6 neighbours in the table now, of all namespaces."),
    c("ndisc.allocs", "IPv6 neighbours made."),
    c("ndisc.destroys", "IPv6 neighbours removed."),
    c("ndisc.hash_grows", "Times that the hash table of IPv6 neighbours was made larger."),
    c("ndisc.lookups", "Searches in the table of IPv6 neighbours."),
    c("ndisc.hits", "Searches in the table of IPv6 neighbours that found one."),
    c("ndisc.res_failed", "IPv6 neighbours that did not answer."),
    c("ndisc.rcv_probes_mcast", "Neighbour solicitations received by multicast."),
    c("ndisc.rcv_probes_ucast", "Neighbour solicitations received by unicast."),
    c("ndisc.periodic_gc_runs", "Times that old IPv6 neighbours were looked for."),
    c(
        "ndisc.forced_gc_runs",
        "Times that IPv6 neighbours had to be removed before their time to make room (gc_thresh2, gc_thresh3).",
    ),
    c("ndisc.unresolved_discards", "Packets dropped because too many waited for the address of an IPv6 neighbour."),
    c(
        "ndisc.table_fulls",
        "IPv6 neighbours that could not be made because the table was full (gc_thresh3): their packets are dropped.",
    ),
];
