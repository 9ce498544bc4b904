//! The checks of `doctor`: one file each, a rule over two readings.
//!
//! Start reading at [`diagnose`]. A check looks at one [`Sample`], of a network namespace or of the host. It adds a
//! finding if a counter moved within the window or a state holds now: totals since boot prove nothing.

mod accepting;
mod answer_source;
mod arp_ignored;
mod asymmetric_route;
mod bridge_nf;
mod bridge_port;
mod causes;
mod cgroup_drop;
mod challenged;
mod checksum;
mod close_wait;
mod closed_port;
mod ct_chains;
mod ct_evicting;
mod ct_filling;
mod ct_forgotten;
mod ct_full;
mod ct_helper;
mod ct_invalid;
mod ct_stale;
mod ct_unreplied;
mod dad_failed;
mod dead_peer;
mod discovery_drop;
mod dns_errors;
mod dns_silent;
mod dropped;
mod duplicates;
mod ecn_syn;
mod fd_limit;
mod forwarding_off;
mod gave_up;
mod hairpin;
mod idle_reset;
mod iface_down;
mod ip_conflict;
mod ipsec;
mod ipv6_off;
mod link_flap;
mod link_mode;
mod listen_overflow;
mod losers;
mod mac_moves;
mod martian;
mod mcast_iface;
mod mcast_snooping;
mod mtu;
mod mtu_mismatch;
mod nagle;
mod nat_expired;
mod neigh_failed;
mod neigh_full;
mod neigh_permanent;
mod netlink_overrun;
mod nflog_nobody;
mod nfqueue;
mod nic_drops;
mod nic_errors;
mod no_route;
mod not_accepting;
mod orphans;
mod otherhost;
mod own_macvlan;
mod pace;
mod packet_drop;
mod packet_drops;
mod packet_late;
mod paws;
mod peer_resets;
mod peer_window;
mod ping_ignored;
mod pmtu_blackhole;
mod port_exhaustion;
mod probe;
mod process_stopped;
mod qdisc_drop;
mod ra_ignored;
mod rcv_prune;
mod reach;
mod reassembly;
mod redirect;
mod refused;
mod remedy;
mod reordering;
mod reset_groups;
mod retransmits;
mod route_localnet;
mod route_refuses;
mod rp_filter;
mod rule_drop;
mod send_buffer;
mod service_resets;
mod silence;
mod small_mss;
mod small_pmtu;
mod small_window;
mod snat_ports;
mod socket_filter;
mod softnet_drop;
mod softnet_squeeze;
mod syn_cookies;
mod syn_retrans;
mod tc_xdp_drop;
mod tcp_memory;
mod tcp_signature;
mod ttl_expired;
mod tw_overflow;
mod udp_rcvbuf;
mod udp_shared;
mod udp_sndbuf;
mod udp_unread;
mod unix_queue;
mod unread;
mod unread_queue;
mod unread_requests;
mod words;

pub use probe::{Probe, probes_of};

use crate::seen::{Holder, Queue, Sample};
use record::rows::{Confidence, Evidence, Finding, Severity};

/// A check: its rule, and the texts that explain it.
pub struct Check {
    /// Its name, which is also the name of its findings.
    pub id: &'static str,
    /// The part of the network that it covers.
    pub area: &'static str,
    /// The data that it looks at in addition to counters and settings.
    pub needs: &'static [Probe],
    /// The fault that it looks for, in a sentence.
    pub about: &'static str,
    /// The condition for a finding.
    pub rule: &'static str,
    /// The sources of its numbers.
    pub sources: &'static str,
    /// The observation that would refute the finding.
    pub refuted_by: &'static str,
    run: fn(&Sample, &mut Findings),
}

/// Every check, sorted by the harm that its findings do, the most harmful first.
pub const CHECKS: &[&Check] = &[
    &ct_full::CHECK,
    &snat_ports::CHECK,
    &ct_chains::CHECK,
    &port_exhaustion::CHECK,
    &process_stopped::CHECK,
    &fd_limit::CHECK,
    &listen_overflow::CHECK,
    &not_accepting::CHECK,
    &unix_queue::CHECK,
    &softnet_drop::CHECK,
    &neigh_full::CHECK,
    &tcp_memory::CHECK,
    &udp_rcvbuf::CHECK,
    &udp_unread::CHECK,
    &udp_shared::CHECK,
    &nfqueue::CHECK,
    &dad_failed::CHECK,
    &ip_conflict::CHECK,
    &iface_down::CHECK,
    &bridge_port::CHECK,
    &mac_moves::CHECK,
    &link_flap::CHECK,
    &discovery_drop::CHECK,
    &arp_ignored::CHECK,
    &redirect::CHECK,
    &own_macvlan::CHECK,
    &neigh_failed::CHECK,
    &neigh_permanent::CHECK,
    &ipsec::CHECK,
    &route_refuses::CHECK,
    &forwarding_off::CHECK,
    &route_localnet::CHECK,
    &hairpin::CHECK,
    &ct_stale::CHECK,
    &nat_expired::CHECK,
    &rp_filter::CHECK,
    &bridge_nf::CHECK,
    &ct_helper::CHECK,
    &ct_forgotten::CHECK,
    &rule_drop::CHECK,
    &tc_xdp_drop::CHECK,
    &cgroup_drop::CHECK,
    &tcp_signature::CHECK,
    &ttl_expired::CHECK,
    &mtu_mismatch::CHECK,
    &mtu::CHECK,
    &mcast_snooping::CHECK,
    &mcast_iface::CHECK,
    &martian::CHECK,
    &ipv6_off::CHECK,
    &ra_ignored::CHECK,
    &no_route::CHECK,
    &otherhost::CHECK,
    &link_mode::CHECK,
    &nic_errors::CHECK,
    &qdisc_drop::CHECK,
    &udp_sndbuf::CHECK,
    &checksum::CHECK,
    &nic_drops::CHECK,
    &ct_evicting::CHECK,
    &ct_filling::CHECK,
    &answer_source::CHECK,
    &asymmetric_route::CHECK,
    &ct_invalid::CHECK,
    &dns_silent::CHECK,
    &dns_errors::CHECK,
    &netlink_overrun::CHECK,
    &nflog_nobody::CHECK,
    &packet_drops::CHECK,
    &syn_cookies::CHECK,
    &orphans::CHECK,
    &tw_overflow::CHECK,
    &ecn_syn::CHECK,
    &reordering::CHECK,
    &duplicates::CHECK,
    &paws::CHECK,
    &dead_peer::CHECK,
    &pmtu_blackhole::CHECK,
    &small_pmtu::CHECK,
    &small_mss::CHECK,
    &send_buffer::CHECK,
    &small_window::CHECK,
    &nagle::CHECK,
    &service_resets::CHECK,
    &idle_reset::CHECK,
    &gave_up::CHECK,
    &rcv_prune::CHECK,
    &unread_requests::CHECK,
    &unread_queue::CHECK,
    &peer_window::CHECK,
    &close_wait::CHECK,
    &reassembly::CHECK,
    &ct_unreplied::CHECK,
    &closed_port::CHECK,
    &ping_ignored::CHECK,
    &refused::CHECK,
    &peer_resets::CHECK,
    &challenged::CHECK,
    &retransmits::CHECK,
    &syn_retrans::CHECK,
    &socket_filter::CHECK,
    &softnet_squeeze::CHECK,
    &packet_late::CHECK,
    &packet_drop::CHECK,
];

/// Ports that the kernel does not choose: a list of ranges, whose first and last numbers are the numbers of the
/// setting.
pub const RESERVED_PORTS: &str = "ipv4/ip_local_reserved_ports";

/// Settings that checks compare with: files below /proc/sys/net, read in each namespace.
pub const SETTINGS: &[&str] = &[
    "bridge/bridge-nf-call-iptables",
    "core/netdev_budget",
    "core/netdev_budget_usecs",
    "core/netdev_max_backlog",
    "core/rmem_default",
    "core/rmem_max",
    "core/somaxconn",
    "ipv4/icmp_echo_ignore_all",
    "ipv4/ip_default_ttl",
    "ipv4/ip_forward",
    "ipv4/ip_local_port_range",
    "ipv4/ipfrag_high_thresh",
    RESERVED_PORTS,
    "ipv4/neigh/default/gc_thresh3",
    "ipv4/tcp_ecn",
    "ipv4/tcp_max_orphans",
    "ipv4/tcp_max_syn_backlog",
    "ipv4/tcp_max_tw_buckets",
    "ipv4/tcp_mem",
    "ipv4/tcp_rmem",
    "ipv4/tcp_syncookies",
    "ipv4/tcp_tw_reuse",
    "ipv4/tcp_wmem",
    "ipv4/udp_mem",
    "ipv6/conf/all/forwarding",
    "ipv6/ip6frag_high_thresh",
    "ipv6/neigh/default/gc_thresh3",
    "netfilter/nf_conntrack_buckets",
    "netfilter/nf_conntrack_tcp_timeout_established",
    "netfilter/nf_conntrack_tcp_timeout_syn_sent",
    "netfilter/nf_conntrack_udp_timeout",
    "netfilter/nf_conntrack_udp_timeout_stream",
];

/// Runs every check on the samples. Returns the findings, the most harmful first, each with its consequences beneath.
pub fn diagnose(samples: &[Sample]) -> Vec<Finding> {
    let mut all: Vec<(usize, Finding)> = Vec::new();
    for sample in samples {
        for (rank, check) in CHECKS.iter().enumerate() {
            let mut findings = Findings { check, sample, found: Vec::new() };
            (check.run)(sample, &mut findings);
            all.extend(findings.found.into_iter().map(|finding| (rank, finding)));
        }
    }
    causes::arrange(all)
}

/// The findings of one check in one sample.
pub(crate) struct Findings<'s> {
    check: &'s Check,
    sample: &'s Sample,
    found: Vec<Finding>,
}

impl Findings<'_> {
    /// Adds a finding; its evidence follows through the builder.
    fn add(&mut self, severity: Severity, confidence: Confidence, title: String) -> FindingBuilder<'_> {
        let (check, sample) = (self.check, self.sample);
        self.found.push(Finding {
            netns_id: sample.netns_id,
            id: check.id,
            area: check.area,
            severity,
            confidence,
            object: String::new(),
            title,
            evidence: Vec::new(),
            cost: String::new(),
            lost: None,
            since_ns: None,
            window_ns: sample.window_ns,
            remedy: Vec::new(),
            explained_by: None,
        });
        // The finding was just pushed.
        FindingBuilder { finding: self.found.last_mut(), sample }
    }
}

/// A finding to which evidence, cost and remedies are added.
pub(crate) struct FindingBuilder<'f> {
    finding: Option<&'f mut Finding>,
    sample: &'f Sample,
}

impl FindingBuilder<'_> {
    fn with(mut self, change: impl FnOnce(&mut Finding)) -> Self {
        if let Some(finding) = self.finding.as_deref_mut() {
            change(finding);
        }
        self
    }

    /// States that the finding names this process. If other processes also hold its socket, the name is a guess, and a
    /// certain finding becomes a likely one. An unknown process is not named, so the finding stays as it is.
    fn holder<'h>(self, holder: impl Into<Option<&'h Holder>>) -> Self {
        let is_guess = holder.into().is_some_and(|holder| holder.is_shared);
        self.with(|finding| {
            if is_guess && finding.confidence == Confidence::Certain {
                finding.confidence = Confidence::Likely;
            }
        })
    }

    /// States that the finding is about a socket and names its owner; `None` if the socket is unknown.
    fn socket<'q>(self, socket: impl Into<Option<&'q Queue>>) -> Self {
        match socket.into() {
            Some(socket) => self.object(&*socket.name).holder(&socket.owner),
            None => self,
        }
    }

    /// Sets the socket, interface or table that the finding is about.
    fn object(self, object: impl Into<String>) -> Self {
        self.with(|finding| finding.object = object.into())
    }

    /// Adds numbers that prove it. A counter that did not move proves nothing, unless it is compared with a limit.
    fn proof(self, evidence: impl IntoIterator<Item = Evidence>) -> Self {
        let proves = |one: &Evidence| one.limit.is_some() || one.before != Some(one.after);
        self.with(|finding| finding.evidence.extend(evidence.into_iter().filter(proves)))
    }

    /// Sets how many of `things` were lost, which is also the cost.
    fn lost(self, count: u64, things: &str) -> Self {
        let per_s = count as f64 / self.sample.seconds().max(0.001);
        self.with(|finding| {
            finding.lost = Some(count);
            let seconds = finding.window_ns as f64 / 1e9;
            finding.cost = format!("{count} {things} in {seconds:.1} s, {per_s:.1} per second");
        })
    }

    /// Adds a cost in addition to the losses.
    fn also_cost(self, cost: impl Into<String>) -> Self {
        self.with(|finding| finding.cost = format!("{}; {}", finding.cost, cost.into()))
    }

    /// Sets the cost.
    fn cost(self, cost: impl Into<String>) -> Self {
        self.with(|finding| finding.cost = cost.into())
    }
}

#[cfg(test)]
mod tests;
