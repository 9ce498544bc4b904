//! The netfilter hook at which a packet was dropped.
use record::rows::NetfilterHook;

/// Functions that call a hook, for IPv4, IPv6, bridges and devices. A packet at a later hook has passed the earlier
/// ones, so the innermost function counts.
const CALLERS: &[(NetfilterHook, &[&str])] = &[
    (
        NetfilterHook::Prerouting,
        &["ip_rcv", "ip_sublist_rcv", "ip_list_rcv", "ipv6_rcv", "ip6_sublist_rcv", "ipv6_list_rcv", "br_handle_frame"],
    ),
    (NetfilterHook::Input, &["ip_local_deliver", "ip6_input", "arp_rcv", "br_pass_frame_up"]),
    (NetfilterHook::Forward, &["ip_forward", "ip6_forward", "__br_forward"]),
    (
        NetfilterHook::Output,
        &[
            "__ip_local_out",
            "ip_local_out",
            "__ip6_local_out",
            "ip6_local_out",
            "ip6_xmit",
            "arp_xmit",
            "raw_send_hdrinc",
            "rawv6_send_hdrinc",
            "br_forward",
        ],
    ),
    (NetfilterHook::Postrouting, &["ip_output", "ip_mc_output", "ip6_output", "br_forward_finish"]),
    (NetfilterHook::Ingress, &["__netif_receive_skb_core"]),
    (NetfilterHook::Egress, &["__dev_queue_xmit"]),
];

/// The hook that a stack passes through, given from the innermost function outwards.
pub(crate) fn of_stack<'n>(mut stack: impl Iterator<Item = &'n [u8]>) -> Option<NetfilterHook> {
    let calls = |name: &[u8]| CALLERS.iter().find(|(_, names)| names.iter().any(|known| known.as_bytes() == name));
    stack.find_map(calls).map(|(hook, _)| *hook)
}

/// The hook that the program derives from the packet's route (`enum hook`).
pub(crate) fn of_number(number: u8) -> Option<NetfilterHook> {
    const HOOKS: [NetfilterHook; 5] = [
        NetfilterHook::Prerouting,
        NetfilterHook::Input,
        NetfilterHook::Forward,
        NetfilterHook::Output,
        NetfilterHook::Postrouting,
    ];
    HOOKS.get(usize::from(number.checked_sub(1)?)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_caller_counts() {
        let hook = |names: &[&'static str]| of_stack(names.iter().map(|name| name.as_bytes()));
        let forwarded = ["kfree_skb", "nf_hook_slow", "ip_forward", "ip_rcv", "__netif_receive_skb_core"];
        assert_eq!(hook(&forwarded), Some(NetfilterHook::Forward));
        assert_eq!(hook(&forwarded[3..]), Some(NetfilterHook::Prerouting));
        assert_eq!(hook(&["nft_do_chain", "nf_hook_slow"]), None);
        assert_eq!((of_number(0), of_number(3), of_number(6)), (None, Some(NetfilterHook::Forward), None));
    }
}
