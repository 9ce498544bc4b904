//! The groups of the kernel's functions, by how their names begin.
//!
//! The innermost function of a call chain that belongs to a group decides: the general kernel functions that it calls
//! (locks, memory, comparisons) count as its work. The functions that an interrupt or softirq interrupted are ignored.
//! Copying and BPF programs belong to the network only if one of its other functions called them, because other parts
//! of the kernel copy too.
use record::rows::{CodeContext, CodeGroup};

/// Beginnings of names, in the order in which they are tried.
const GROUPS: &[(CodeGroup, &[&str])] = &[
    (
        CodeGroup::Copy,
        &[
            "copy_user_",
            "_copy_to_iter",
            "_copy_from_iter",
            "_copy_to_user",
            "_copy_from_user",
            "__copy_user",
            "rep_movs_alternative",
            "csum_partial",
            "csum_and_copy",
            "skb_copy_",
            "__skb_datagram_iter",
            "simple_copy_to_iter",
            "skb_zerocopy",
            "__arch_copy_",
            "copyin",
            "copyout",
            "memcpy_",
        ],
    ),
    (CodeGroup::Nat, &["nf_nat", "__nf_nat", "nft_nat", "nft_masq", "nft_redir", "masquerade_", "xt_snat", "xt_dnat"]),
    (
        CodeGroup::Conntrack,
        &[
            "nf_conntrack",
            "__nf_conntrack",
            "____nf_conntrack",
            "nf_ct_",
            "__nf_ct",
            "nf_confirm",
            "ipv4_conntrack",
            "ipv6_conntrack",
            "hash_conntrack",
            "init_conntrack",
            "resolve_normal_ct",
            "ctnetlink_",
            "nf_defrag",
            "ipv4_defrag",
            "ipv6_defrag",
            "death_by_timeout",
            "early_drop",
            "gc_worker",
        ],
    ),
    (
        CodeGroup::Rules,
        &[
            "nft_",
            "__nft_",
            "nf_tables",
            "ipt_",
            "ip6t_",
            "arpt_",
            "ebt_",
            "xt_",
            "iptable_",
            "ip6table_",
            "nf_hook",
            "nf_log",
            "nfnl",
            "nfqnl",
            "nf_queue",
            "nf_reinject",
            "ip_set_",
            "nf_flow_",
            "nf_dup",
            "nf_reject",
            "nf_send_",
            "nf_ingress",
            "nf_br_",
            "nf_checksum",
            "nf_ip",
        ],
    ),
    (CodeGroup::Bridge, &["br_", "__br_", "brnf_"]),
    (
        CodeGroup::Routing,
        &[
            "fib_",
            "fib4_",
            "fib6_",
            "__fib",
            "ip_route_",
            "ip6_route",
            "ip6_pol_route",
            "ip6_rt",
            "rt6_",
            "rt_cache",
            "rt_set_nexthop",
            "rt_dst",
            "dst_",
            "__dst",
            "ipv4_dst",
            "ip6_dst",
            "__mkroute",
            "ip_mkroute",
            "find_exception",
            "l3mdev_",
            "neigh_",
            "__neigh",
            "arp_",
            "ndisc_",
            "__ndisc",
            "nexthop_",
            "ip_rt_",
            "inet_addr_type",
            "__inet_dev_addr",
            "ipv6_dev_get_saddr",
        ],
    ),
    (
        CodeGroup::Qdisc,
        &[
            "__qdisc",
            "qdisc_",
            "sch_direct",
            "pfifo_",
            "bfifo",
            "fq_",
            "codel",
            "htb_enqueue",
            "htb_dequeue",
            "tbf_",
            "tcf_",
            "tc_run",
            "net_tx_action",
            "netem_",
            "mq_enqueue",
            "cake_",
            "prio_enqueue",
            "prio_dequeue",
            "fl_classify",
            "u32_classify",
            "sfq_",
            "hfsc_",
        ],
    ),
    (CodeGroup::Bpf, &["bpf_", "__bpf", "___bpf", "cls_bpf", "xdp_", "__xdp", "do_xdp", "tcx_", "sch_handle"]),
    (
        CodeGroup::Tcp,
        &[
            "tcp_",
            "__tcp",
            "tcp4_",
            "tcp6_",
            "inet_csk",
            "__inet_csk",
            "__inet_lookup",
            "inet_lookup",
            "inet6_lookup",
            "__inet6_lookup",
            "inet_ehash",
            "inet_twsk",
            "mptcp_",
            "__mptcp",
            "reqsk_",
            "cubictcp",
            "bictcp",
            "bbr_",
            "cookie_v",
            "dctcp",
        ],
    ),
    (CodeGroup::Udp, &["udp_", "__udp", "udp4_", "udp6_", "udpv6", "__udpv6", "udplite"]),
    (CodeGroup::Tap, &["packet_", "tpacket_", "__packet", "__tpacket", "prb_", "dev_queue_xmit_nit", "fanout_"]),
    (
        CodeGroup::Buffers,
        &[
            "skb_",
            "__skb",
            "___skb",
            "alloc_skb",
            "__alloc_skb",
            "napi_alloc",
            "__napi_alloc",
            "kfree_skb",
            "__kfree_skb",
            "sk_skb_reason_drop",
            "consume_skb",
            "__consume_skb",
            "napi_consume",
            "build_skb",
            "__build_skb",
            "page_frag",
            "__page_frag",
            "page_pool",
            "__page_pool",
            "netdev_alloc",
            "__netdev_alloc",
            "napi_build",
            "napi_skb_",
            "pskb_",
            "__pskb",
            "sock_wfree",
            "sock_rfree",
            "sock_alloc_send",
            "sock_wmalloc",
            "__copy_skb",
        ],
    ),
    (
        CodeGroup::Driver,
        &[
            "veth_",
            "e1000",
            "igb",
            "igc_",
            "ixgbe",
            "i40e",
            "iavf",
            "ice_",
            "mlx4",
            "mlx5",
            "bnxt",
            "bnx2",
            "virtnet",
            "virtqueue",
            "vring",
            "detach_buf",
            "ena_",
            "gve_",
            "vmxnet3",
            "rtl8169",
            "rtl_",
            "tg3",
            "loopback_xmit",
            "tun_",
            "macvlan",
            "ipvlan",
            "vlan_",
            "vxlan",
            "geneve",
            "gre_",
            "__gre",
            "ipgre",
            "bond_",
            "team_",
            "netvsc",
            "xennet",
            "wg_",
            "dummy_xmit",
            "ifb_",
            "start_xmit",
            "free_old_xmit",
            "xmit_skb",
        ],
    ),
    (
        CodeGroup::Core,
        &[
            "netif_",
            "__netif",
            "dev_queue_xmit",
            "__dev_queue_xmit",
            "dev_hard_start_xmit",
            "dev_gro",
            "dev_forward",
            "__dev_forward",
            "dev_loopback",
            "__dev_direct",
            "napi_",
            "__napi",
            "gro_",
            "net_rx_action",
            "net_rps",
            "process_backlog",
            "enqueue_to_backlog",
            "validate_xmit",
            "xmit_one",
            "get_rps_cpu",
            "eth_",
            "deliver_skb",
            "inet_gro",
            "ipv6_gro",
            "inet_gso",
            "busy_poll",
            "backlog_",
        ],
    ),
    (
        CodeGroup::Ip,
        &[
            "ip_",
            "__ip_",
            "ip4_",
            "ip6_",
            "__ip6",
            "ipv6_",
            "ip6t",
            "icmp",
            "__icmp",
            "inet_",
            "inet6_",
            "igmp",
            "raw_rcv",
            "raw_send",
            "raw_v4",
            "raw_local",
            "rawv6",
            "ping_",
            "xfrm",
            "__xfrm",
            "esp_",
            "esp6_",
            "ah_input",
            "ah_output",
            "ah6_",
            "mld_",
            "ipip_",
            "dst_output",
            "tunnel",
        ],
    ),
    (
        CodeGroup::Socket,
        &[
            "sock_",
            "__sock",
            "sk_",
            "__sk_",
            "lock_sock",
            "__lock_sock",
            "release_sock",
            "__release_sock",
            "__sys_send",
            "__sys_recv",
            "___sys_send",
            "___sys_recv",
            "____sys_send",
            "____sys_recv",
            "__sys_accept",
            "__sys_connect",
            "unix_",
            "__unix",
            "netlink_",
            "__netlink",
            "datagram_poll",
            "__skb_wait",
            "ep_poll_callback",
            "scm_",
        ],
    ),
];

/// Functions that run softirqs. Functions further out in the chain were interrupted, or sent a different packet.
const SOFTIRQ: &[&str] = &["handle_softirqs", "__do_softirq", "__softirqentry_text_start"];
/// Functions at which interrupts begin. Functions further out were interrupted.
const INTERRUPT: &[&str] = &["asm_sysvec_", "asm_common_interrupt", "common_interrupt", "el1h_64_irq", "el1_irq"];
/// Functions that only configure.
const SETUP: &[&str] = &[
    "rtnetlink_rcv",
    "nfnetlink_rcv",
    "netlink_rcv_skb",
    "netlink_dump",
    "setup_net",
    "cleanup_net",
    "netdev_run_todo",
];
/// Functions of a CPU that has nothing to do.
const IDLE_FUNCTIONS: &[&str] = &["do_idle", "cpu_startup_entry", "cpu_idle_loop"];

/// The part of one function in a call chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FunctionPart {
    /// It belongs to a group of the network.
    Group(CodeGroup),
    /// It runs softirqs.
    Softirq,
    /// It runs an interrupt.
    Interrupt,
    /// It waits for work.
    Idle,
    /// Any other.
    Other,
}

/// Returns the part of the function with this name.
pub(crate) fn function_part(name: &[u8]) -> FunctionPart {
    let is = |names: &[&str]| names.iter().any(|one| name == one.as_bytes());
    let begins = |names: &[&str]| names.iter().any(|one| name.starts_with(one.as_bytes()));
    if is(SOFTIRQ) {
        return FunctionPart::Softirq;
    }
    if begins(INTERRUPT) {
        return FunctionPart::Interrupt;
    }
    if is(IDLE_FUNCTIONS) {
        return FunctionPart::Idle;
    }
    if begins(SETUP) {
        return FunctionPart::Group(CodeGroup::Setup);
    }
    let group = GROUPS.iter().find(|(_, beginnings)| begins(beginnings));
    group.map_or(FunctionPart::Other, |(group, _)| FunctionPart::Group(*group))
}

/// The classification of a call chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChainKind {
    pub(crate) group: CodeGroup,
    pub(crate) context: CodeContext,
    /// The index of the function that decided, counted from the innermost.
    pub(crate) decided_by: Option<usize>,
}

/// Classifies a call chain by the parts of its functions, innermost first.
pub(crate) fn kind_of(parts: impl Iterator<Item = FunctionPart>) -> ChainKind {
    // `weak` counts only below other functions of the network, `strong` counts by itself, `setup` overrides both.
    let (mut weak, mut strong, mut setup) = (None, None, None);
    let (mut context, mut rest) = (CodeContext::Process, CodeGroup::Kernel);
    for (at, part) in parts.enumerate() {
        match part {
            FunctionPart::Softirq => {
                (context, rest) = (CodeContext::Softirq, CodeGroup::Softirq);
                break;
            }
            FunctionPart::Interrupt => break,
            FunctionPart::Idle => rest = CodeGroup::Idle,
            FunctionPart::Group(group @ (CodeGroup::Copy | CodeGroup::Bpf)) if strong.is_none() => {
                weak = weak.or(Some((group, at)));
            }
            FunctionPart::Group(CodeGroup::Copy | CodeGroup::Bpf) | FunctionPart::Other => {}
            FunctionPart::Group(CodeGroup::Setup) => setup = setup.or(Some((CodeGroup::Setup, at))),
            FunctionPart::Group(group) => strong = strong.or(Some((group, at))),
        }
    }
    let decided = setup.or(strong.and(weak)).or(strong);
    ChainKind { group: decided.map_or(rest, |(group, _)| group), context, decided_by: decided.map(|(_, at)| at) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(names: &[&str]) -> (&'static str, &'static str, Option<usize>) {
        let kind = kind_of(names.iter().map(|name| function_part(name.as_bytes())));
        (kind.group.name(), kind.context.name(), kind.decided_by)
    }

    #[test]
    fn the_innermost_function_of_the_network_decides() {
        let softirq = ["net_rx_action", "handle_softirqs", "do_softirq", "do_idle"];
        let chain = |inner: &[&'static str]| -> Vec<&'static str> { [inner, &softirq[..]].concat() };
        for (inner, group, at) in [
            (&["memcmp", "nf_conntrack_find_get", "nf_conntrack_in", "nf_hook_slow", "ip_rcv"][..], "conntrack", 1),
            (&["_raw_spin_lock", "nf_nat_setup_info", "nf_nat_inet_fn", "nf_hook_slow"], "nat", 1),
            (&["nft_do_chain", "nf_hook_slow", "ip_forward"], "rules", 0),
            (&["nf_hook_slow", "ip_local_deliver"], "rules", 0),
            (&["fib_table_lookup", "ip_route_input_slow", "ip_rcv"], "routing", 0),
            (&["tcp_v4_rcv", "ip_local_deliver"], "tcp", 0),
            (&["kmem_cache_alloc", "__alloc_skb", "tcp_stream_alloc_skb"], "buffers", 1),
            (&["veth_xmit", "dev_hard_start_xmit"], "driver", 0),
            (&["br_handle_frame", "__netif_receive_skb_core"], "bridge", 0),
            (&["ip_finish_output2", "ip_output"], "ip", 0),
            (&["bpf_prog_1234_x", "cls_bpf_classify", "tcf_classify"], "bpf", 0),
            (&["packet_rcv", "dev_queue_xmit_nit"], "tap", 0),
            (&["process_backlog", "__napi_poll"], "core", 0),
        ] {
            assert_eq!(kind(&chain(inner)), (group, "softirq", Some(at)), "{inner:?}");
        }
    }

    #[test]
    fn copies_are_the_networks_below_its_functions() {
        let copy = ["rep_movs_alternative", "_copy_from_iter", "tcp_sendmsg_locked", "sock_sendmsg", "__sys_sendto"];
        assert_eq!(kind(&copy), ("copy", "process", Some(0)));
        assert_eq!(
            kind(&["rep_movs_alternative", "_copy_to_iter", "pipe_read", "vfs_read"]),
            ("kernel", "process", None)
        );
        assert_eq!(kind(&["bpf_prog_1_x", "__traceiter_sched_switch", "schedule"]), ("kernel", "process", None));
    }

    #[test]
    fn what_was_interrupted_decides_nothing() {
        let timer = ["rcu_core", "handle_softirqs", "__irq_exit_rcu", "asm_sysvec_apic_timer_interrupt", "tcp_sendmsg"];
        assert_eq!(kind(&timer), ("softirq", "softirq", None));
        let interrupt = ["vp_interrupt", "common_interrupt", "asm_common_interrupt", "udp_sendmsg"];
        assert_eq!(kind(&interrupt), ("kernel", "process", None));
        let received = ["udp_queue_rcv_skb", "ip_rcv", "__do_softirq", "do_softirq", "tcp_write_xmit", "tcp_sendmsg"];
        assert_eq!(kind(&received), ("udp", "softirq", Some(0)));
    }

    #[test]
    fn the_rest() {
        assert_eq!(kind(&["rcu_core", "handle_softirqs", "run_ksoftirqd"]), ("softirq", "softirq", None));
        assert_eq!(kind(&["default_idle", "default_idle_call", "do_idle"]), ("idle", "process", None));
        assert_eq!(kind(&["vfs_read", "do_syscall_64"]), ("kernel", "process", None));
        assert_eq!(kind(&[]), ("kernel", "process", None));
        let request = ["veth_newlink", "rtnl_newlink", "rtnetlink_rcv_msg", "netlink_sendmsg"];
        assert_eq!(kind(&request), ("setup", "process", Some(2)));
        assert_eq!(kind(&["raw_spin_rq_lock_nested", "schedule"]), ("kernel", "process", None));
    }
}
