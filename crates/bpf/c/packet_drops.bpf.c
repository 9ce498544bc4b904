/* SPDX-License-Identifier: Dual BSD/GPL
 *
 * Packets that the kernel drops, counted by reason, place, network namespace, interface and protocol.
 *
 * tp_btf/kfree_skb runs where a packet is thrown away, with the address in the function that did it and, since 5.17,
 * with a reason. Ports are in no key: a scan would fill the map. The first packet of a key leaves its addresses and its
 * stack beside the counts. Packets that are not dropped cost nothing; one that is costs 0.1 to 0.3 us.
 *
 * Room is bounded three times, so that nothing is lost that can be counted. Namespaces whose owner is a user namespace
 * (any user can make them) have a map of their own and take no room of others. What finds its map full is counted by
 * reason and place alone: how many of these there are depends on the kernel's code and on nobody's packets.
 *
 * The other programs write each drop into a ring instead, one of them with the beginning of the packet. They wake the
 * reader when 64 KiB wait; until then the reader looks by itself.
 *
 * Kernel >= 5.10.
 */
#include "kernel.h"

LICENSE("Dual BSD/GPL");

/* Inode of the one namespace whose packets are counted, with those of no known one; 0: all. */
const volatile u32 only_netns = 0;
/* Arguments of the tracepoint in this kernel: the third is the reason (5.17), the fourth the receiver (6.11). */
const volatile u32 arguments = 2;
/* The kernel's numbers of SKB_CONSUMED, which is no drop, and SKB_DROP_REASON_NETFILTER_DROP; none: ~0. */
const volatile u32 consumed = ~0u;
const volatile u32 netfilter_drop = ~0u;

struct net_device { int ifindex; unsigned short type; possible_net_t nd_net; } CORE;
struct dst_entry { struct net_device *dev; } CORE;
struct rtable { struct dst_entry dst; u16 rt_type; u8 rt_is_input; } CORE;
struct rt6_info { u32 rt6i_flags; } CORE;
struct sk_buff {
	struct net_device *dev;
	struct sock *sk;
	unsigned long _skb_refdst;
	unsigned char *head, *data;
	u32 len, tail;
	int skb_iif;
	u16 protocol, network_header, mac_header;
} CORE;

enum { ETH_P_IP = 0x0800, ETH_P_ARP = 0x0806, ETH_P_IPV6 = 0x86dd };
enum { RTN_LOCAL = 2, RTN_BROADCAST = 3, RTN_ANYCAST = 4, RTN_MULTICAST = 5 };
#define RTF_LOCAL 0x80000000
#define SKB_DST_PTRMASK (~1ul)
#define OFFSET_OF_FRAGMENT bswap16(0x1fff)
/* A header's offset that is not known (sk_buff). */
#define NOT_SET 0xffff
/* Headers of IPv6 before the transport's that are passed. */
#define EXTENSIONS 4

/* crates/bpf/src/packet_drops.rs decodes these. No padding: keys are compared as bytes. */
struct drop_key {
	u64 place;   /* the address after the call that dropped the packet */
	u32 reason;  /* a number of this kernel's enum skb_drop_reason */
	u32 netns;   /* inode */
	u32 ifindex; /* of the interface that the packet came by, or would have left by */
	u16 l3;	     /* ETH_P_IP, ETH_P_IPV6, ETH_P_ARP; 0: others, and packets whose header is not known */
	u8 l4;	     /* of IP: the protocols of `known_l4`; 255: others */
	u8 hook;     /* enum hook; 0 where no rule dropped it */
};
struct drop_count { u64 packets, bytes; };
#define FRAMES 24
struct packet_ends {
	u32 src[4], dst[4]; /* IPv4: the first word */
	u16 sport, dport;   /* network order */
	u16 l3;		    /* host order */
	u8 l4, has;	    /* HAS_… */
	u32 bytes;
	u32 inode, uid; /* of the socket that the packet was for, or that sent it */
};
enum { HAS_ADDRESSES = 1, HAS_PORTS = 2, HAS_SOCKET = 4 };
struct drop_sample {
	struct packet_ends ends;
	s32 stack_bytes; /* negative: an error */
	u64 stack[FRAMES];
};
/* As in include/uapi/linux/netfilter.h, with one added. */
enum hook { HOOK_NONE, HOOK_PREROUTING, HOOK_INPUT, HOOK_FORWARD, HOOK_OUTPUT, HOOK_POSTROUTING };
/* Of a key without namespace, interface and protocols. */
#define HOOK_MERGED 255

#define DROPS(entries)                                \
	{                                             \
		MAP_NUMBER(type, BPF_MAP_TYPE_PERCPU_HASH); \
		MAP_NUMBER(max_entries, entries);     \
		MAP_TYPE(key, struct drop_key);       \
		MAP_TYPE(value, struct drop_count);   \
	}
struct DROPS(4096) drops SEC(".maps");
/* Of namespaces that belong to user namespaces. */
struct DROPS(2048) guest_drops SEC(".maps");
/* What found no room above, by reason and place. */
struct DROPS(1024) merged_drops SEC(".maps");
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_HASH);
	MAP_NUMBER(max_entries, 4096 + 2048 + 1024);
	MAP_NUMBER(map_flags, BPF_F_NO_PREALLOC);
	MAP_TYPE(key, struct drop_key);
	MAP_TYPE(value, struct drop_sample);
} samples SEC(".maps");

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_RINGBUF);
	MAP_NUMBER(max_entries, 4 << 20);
} events SEC(".maps");

/* 1: an event has its stack. */
const volatile u32 with_stack = 0;

/* As far as it has no stack; then `struct drop_sample` is whole. */
struct drop_event {
	u64 ns; /* CLOCK_MONOTONIC */
	struct drop_key key;
	struct packet_ends ends;
	s32 stack_bytes;
};
struct drop_event_stack {
	u64 ns;
	struct drop_key key;
	struct drop_sample sample;
};

/* Bytes of an event's packet. */
const volatile u32 snaplen = 128;
#define SNAPLEN_MAX 4096

enum { LINKTYPE_NONE, LINKTYPE_ETHERNET, LINKTYPE_RAW = 101 };
enum { ARPHRD_ETHER = 1, ARPHRD_LOOPBACK = 772, ETHERNET_BYTES = 14, VLAN_BYTES = 4 };

/* The packet as it was when it was dropped: from its link-layer header on, or from that of IP. */
struct drop_event_frame {
	u64 ns;
	struct drop_key key;
	struct packet_ends ends;
	s32 stack_bytes;
	u32 len;	/* of the packet from there on */
	u16 captured;	/* bytes of it below */
	u16 link_type;	/* LINKTYPE_NONE: where it begins is not known */
	u8 bytes[];
};

/* Packets that were merged; that were not counted at all; that found the ring full. */
u64 merged, lost, lost_events;
/* The address of the kernel's netns_operations, by which a namespace is told from other memory. */
u64 netns_operations;

/* Where a packet was: its namespace's inode, and whether that belongs to a user namespace. */
struct home { u32 netns; bool is_guest; };

INLINE void learn_netns_operations(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct nsproxy *proxy = READ(task, nsproxy);
	struct net *net;

	/* A task that ends has no namespaces any more; its parent has. */
	if (!proxy) {
		task = READ(task, real_parent);
		proxy = READ(task, nsproxy);
	}
	net = READ(proxy, net_ns);
	netns_operations = (u64)READ(net, ns.ops);
}

/* True if this is a namespace. A packet's pointer to its interface shares its place with other things while the packet
 * waits in a socket's queue: only what leads to a namespace was an interface. */
INLINE bool find_home(struct net *net, struct home *home)
{
	if (!net || (u64)net->ns.ops != netns_operations)
		return false;
	home->netns = net->ns.inum;
	home->is_guest = net->user_ns->level > 0;
	return true;
}

/* The same through a pointer that is a number to the verifier. */
INLINE void find_home_of_route(struct dst_entry *route, struct home *home)
{
	struct net_device *out = READ(route, dev);
	struct net *net = READ(out, nd_net.net);
	struct user_namespace *owner;

	if (!net || (u64)READ(net, ns.ops) != netns_operations)
		return;
	owner = READ(net, user_ns);
	home->netns = READ(net, ns.inum);
	home->is_guest = READ(owner, level) > 0;
}

/* The way of the packet, from its route: what a rule's hook is, without looking at the stack. */
INLINE u8 hook_of(struct sk_buff *skb, u16 l3, bool has_device)
{
	struct rtable *route = (void *)(skb->_skb_refdst & SKB_DST_PTRMASK);
	struct rt6_info *route6 = (void *)route;
	u16 type;

	if (!route)
		return HOOK_PREROUTING;
	if (l3 == ETH_P_IPV6) {
		if (!skb->skb_iif)
			return HOOK_OUTPUT;
		return READ(route6, rt6i_flags) & RTF_LOCAL ? HOOK_INPUT : HOOK_FORWARD;
	}
	/* What comes back by loopback has the route of its way out. */
	if (!READ(route, rt_is_input) && !skb->skb_iif)
		return has_device ? HOOK_POSTROUTING : HOOK_OUTPUT;
	type = READ(route, rt_type);
	if (type >= RTN_LOCAL && type <= RTN_MULTICAST)
		return HOOK_INPUT;
	return READ(route, dst.dev) == skb->dev ? HOOK_POSTROUTING : HOOK_FORWARD;
}

/* ICMP, IGMP, IPIP, TCP, UDP, DCCP, IPv6, GRE, ESP, AH, ICMPv6, OSPF, PIM, VRRP, L2TP, SCTP, UDP-Lite: a bit each. A
 * packet may say any number, so others share one key. */
#define BIT(number) (1ull << ((number) & 63))
#define KNOWN_0 \
	(BIT(1) | BIT(2) | BIT(4) | BIT(6) | BIT(17) | BIT(33) | BIT(41) | BIT(47) | BIT(50) | BIT(51) | BIT(58))
#define KNOWN_64 (BIT(89) | BIT(103) | BIT(112) | BIT(115))
#define KNOWN_128 (BIT(132) | BIT(136))

INLINE bool is_known_l4(u8 l4)
{
	u64 known = l4 < 64 ? KNOWN_0 : l4 < 128 ? KNOWN_64 : l4 < 192 ? KNOWN_128 : 0;

	return known >> (l4 & 63) & 1;
}

struct ipv4_header { u8 version_ihl, tos; u16 length, id, fragment; u8 ttl, protocol; u16 check; u32 src, dst; };
struct ipv6_header { u32 flow; u16 length; u8 next, hops; u32 src[4], dst[4]; };

/* Addresses and protocol; returns the offset of the transport header from the network header, 0: none is here. */
INLINE u32 read_ipv4(struct packet_ends *ends, unsigned char *at)
{
	struct ipv4_header ip;

	if (bpf_probe_read_kernel(&ip, sizeof(ip), at) || ip.version_ihl >> 4 != 4)
		return 0;
	ends->has = HAS_ADDRESSES;
	ends->l4 = ip.protocol;
	ends->src[0] = ip.src;
	ends->dst[0] = ip.dst;
	return ip.fragment & OFFSET_OF_FRAGMENT ? 0 : (ip.version_ihl & 15) * 4;
}

INLINE u32 read_ipv6(struct packet_ends *ends, unsigned char *at)
{
	struct ipv6_header ip;
	u32 offset = sizeof(ip);

	if (bpf_probe_read_kernel(&ip, sizeof(ip), at) || (ip.flow & 0xf0) != 0x60)
		return 0;
	ends->has = HAS_ADDRESSES;
	memcpy(ends->src, ip.src, sizeof(ip.src));
	memcpy(ends->dst, ip.dst, sizeof(ip.dst));
	ends->l4 = ip.next;
#pragma clang loop unroll(full)
	for (int i = 0; i < EXTENSIONS; i++) {
		struct { u8 next, length; u16 fragment; } extension = {};
		bool is_fragment = ends->l4 == 44;

		/* Hop by hop, routing, destination. */
		if (!is_fragment && ends->l4 != 0 && ends->l4 != 43 && ends->l4 != 60)
			break;
		if (bpf_probe_read_kernel(&extension, sizeof(extension), at + offset))
			return 0;
		ends->l4 = extension.next;
		if (is_fragment && extension.fragment & bswap16(0xfff8))
			return 0;
		offset += is_fragment ? 8 : (extension.length + 1) * 8;
	}
	return offset;
}

/* Fills in the key's protocols; returns the offset of the transport header. */
INLINE u32 read_headers(struct sk_buff *skb, struct drop_key *key, struct packet_ends *ends)
{
	unsigned char *at = skb->head + skb->network_header;
	u32 transport = 0;

	ends->l3 = bswap16(skb->protocol);
	ends->bytes = skb->len;
	if (skb->network_header == NOT_SET)
		return 0;
	if (ends->l3 == ETH_P_IP)
		transport = read_ipv4(ends, at);
	else if (ends->l3 == ETH_P_IPV6)
		transport = read_ipv6(ends, at);
	else if (ends->l3 == ETH_P_ARP)
		key->l3 = ETH_P_ARP;
	if (ends->has) {
		key->l3 = ends->l3;
		key->l4 = is_known_l4(ends->l4) ? ends->l4 : 255;
	}
	return transport;
}

/* TCP, UDP, DCCP, SCTP and UDP-Lite begin with their ports. */
INLINE void read_ports(struct sk_buff *skb, u32 transport, struct packet_ends *ends)
{
	u8 l4 = ends->l4;
	u16 ports[2];

	if (!transport || (l4 != 6 && l4 != 17 && l4 != 33 && l4 != 132 && l4 != 136))
		return;
	if (bpf_probe_read_kernel(ports, sizeof(ports), skb->head + skb->network_header + transport))
		return;
	ends->sport = ports[0];
	ends->dport = ports[1];
	ends->has |= HAS_PORTS;
}

/* Of sockets that are whole: not of a request, nor of what is left of a connection. */
INLINE void read_socket(u64 *ctx, struct sk_buff *skb, struct packet_ends *ends)
{
	struct sock *sk = skb->sk;
	struct home home;
	struct socket *so;

	if (arguments >= 4 && ctx[3])
		sk = PLAIN(struct sock, (struct sock *)ctx[3]);
	if (!sk || !find_home(sk->__sk_common.skc_net.net, &home))
		return;
	if (sk->__sk_common.skc_state == TCP_TIME_WAIT || sk->__sk_common.skc_state == TCP_NEW_SYN_RECV)
		return;
	so = sk->sk_socket;
	if (field_exists(sk->sk_ino))
		ends->inode = sk->sk_ino;
	else if (so)
		ends->inode = READ((struct socket_alloc *)so, vfs_inode.i_ino);
	ends->uid = sk->sk_uid.val;
	ends->has |= HAS_SOCKET;
}

enum counted { FULL, COUNTED, NEW };

INLINE enum counted count(void *map, struct drop_key *key, u32 bytes)
{
	struct drop_count *found = bpf_map_lookup_elem(map, key);
	struct drop_count first = { .packets = 1, .bytes = bytes };

	if (!found) {
		if (!bpf_map_update_elem(map, key, &first, BPF_NOEXIST))
			return NEW;
		/* Another CPU may have been first. */
		found = bpf_map_lookup_elem(map, key);
		if (!found)
			return FULL;
	}
	found->packets++;
	found->bytes += bytes;
	return COUNTED;
}

/* A new key's packet: its ends, and the stack that led to the drop. */
INLINE void take_sample(void *ctx, struct drop_key *key, struct packet_ends *ends)
{
	struct drop_sample sample = { .ends = *ends };

	sample.stack_bytes = bpf_get_stack(ctx, sample.stack, sizeof(sample.stack), 0);
	bpf_map_update_elem(&samples, key, &sample, BPF_NOEXIST);
}

/* What is known of one drop. */
struct drop {
	struct drop_key key;
	struct packet_ends ends;
	struct home home;
	u32 transport;
	bool has_device;
};

/* Fills in `drop`; false if it is not wanted. */
INLINE bool look(u64 *ctx, struct sk_buff *skb, struct drop *drop)
{
	struct home of_receiver = {};
	struct net_device *dev = skb->dev;
	struct sock *receiver;

	drop->key.place = ctx[1];
	if (arguments >= 3)
		drop->key.reason = ctx[2];
	if (drop->key.reason == consumed)
		return false;
	if (!netns_operations)
		learn_netns_operations();
	drop->has_device = dev && find_home(dev->nd_net.net, &drop->home);
	if (arguments >= 4 && ctx[3]) {
		receiver = PLAIN(struct sock, (struct sock *)ctx[3]);
		if (find_home(receiver->__sk_common.skc_net.net, &of_receiver))
			drop->home = of_receiver;
	}
	if (!drop->home.netns && skb->sk)
		find_home(skb->sk->__sk_common.skc_net.net, &drop->home);
	if (!drop->home.netns && skb->_skb_refdst & SKB_DST_PTRMASK)
		find_home_of_route((void *)(skb->_skb_refdst & SKB_DST_PTRMASK), &drop->home);
	if (only_netns && drop->home.netns && drop->home.netns != only_netns)
		return false;
	drop->key.netns = drop->home.netns;
	drop->key.ifindex = drop->has_device ? dev->ifindex : skb->skb_iif;
	drop->transport = read_headers(skb, &drop->key, &drop->ends);
	if (drop->key.reason == netfilter_drop)
		drop->key.hook = hook_of(skb, drop->key.l3, drop->has_device);
	return true;
}

SEC("tp_btf/kfree_skb") int on_drop(u64 *ctx)
{
	struct sk_buff *skb = PLAIN(struct sk_buff, (struct sk_buff *)ctx[0]);
	struct drop drop = {};
	struct drop_key *key = &drop.key;
	enum counted counted;
	u32 bytes;

	if (!look(ctx, skb, &drop))
		return 0;
	bytes = drop.ends.bytes;
	counted = drop.home.is_guest ? count(&guest_drops, key, bytes) : count(&drops, key, bytes);
	if (counted == FULL) {
		*key = (struct drop_key){ .place = key->place, .reason = key->reason, .hook = HOOK_MERGED };
		counted = count(&merged_drops, key, bytes);
		if (counted == FULL)
			COUNT_ONE(lost);
		else
			COUNT_ONE(merged);
	}
	if (counted == NEW) {
		read_ports(skb, drop.transport, &drop.ends);
		read_socket(ctx, skb, &drop.ends);
		take_sample(ctx, key, &drop.ends);
	}
	return 0;
}

/* The reader is woken as the events pass this mark, and not by each event above it: it looks every 10 ms anyway. */
#define WAKE_BYTES (64 << 10)
#define WAKE_WIDTH 1024

INLINE u64 wake_flags(void)
{
	u64 above = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) - WAKE_BYTES;

	return above < WAKE_WIDTH ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

SEC("tp_btf/kfree_skb") int on_drop_event(u64 *ctx)
{
	struct sk_buff *skb = PLAIN(struct sk_buff, (struct sk_buff *)ctx[0]);
	struct drop_event_stack *whole;
	struct drop_event *event;
	struct drop drop = {};

	if (!look(ctx, skb, &drop))
		return 0;
	read_ports(skb, drop.transport, &drop.ends);
	read_socket(ctx, skb, &drop.ends);
	if (with_stack) {
		whole = bpf_ringbuf_reserve(&events, sizeof(*whole), 0);
		if (!whole) {
			COUNT_ONE(lost_events);
			return 0;
		}
		whole->ns = bpf_ktime_get_ns();
		whole->key = drop.key;
		whole->sample.ends = drop.ends;
		whole->sample.stack_bytes =
			bpf_get_stack(ctx, whole->sample.stack, sizeof(whole->sample.stack), 0);
		bpf_ringbuf_submit(whole, wake_flags());
		return 0;
	}
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event) {
		COUNT_ONE(lost_events);
		return 0;
	}
	event->ns = bpf_ktime_get_ns();
	event->key = drop.key;
	event->ends = drop.ends;
	event->stack_bytes = 0;
	bpf_ringbuf_submit(event, wake_flags());
	return 0;
}

/* True if the packet has a header of Ethernet, perhaps with a tag, right before that of its network protocol. */
INLINE bool has_ethernet(struct sk_buff *skb, bool has_device)
{
	u32 bytes = (u32)skb->network_header - skb->mac_header;
	u16 type;

	if (!has_device || skb->mac_header == NOT_SET || skb->network_header == NOT_SET)
		return false;
	type = skb->dev->type;
	return (type == ARPHRD_ETHER || type == ARPHRD_LOOPBACK) &&
	       (bytes == ETHERNET_BYTES || bytes == ETHERNET_BYTES + VLAN_BYTES);
}

/* Copies the beginning of what of the packet lies in one piece. */
INLINE void copy_frame(struct sk_buff *skb, struct drop *drop, struct drop_event_frame *event)
{
	u32 start = skb->network_header, data = skb->data - skb->head, there;

	event->len = skb->len;
	event->captured = 0;
	event->link_type = LINKTYPE_NONE;
	if (has_ethernet(skb, drop->has_device)) {
		start = skb->mac_header;
		event->link_type = LINKTYPE_ETHERNET;
	} else if (drop->ends.has) {
		event->link_type = LINKTYPE_RAW;
	} else {
		return;
	}
	there = skb->tail > start ? skb->tail - start : 0;
	if (there > snaplen)
		there = snaplen;
	event->len = skb->len + data - start;
	/* Never: the verifier of older kernels wants to see a bound. */
	if (there > SNAPLEN_MAX)
		return;
	if (!bpf_probe_read_kernel(event->bytes, there, skb->head + start))
		event->captured = there;
}

SEC("tp_btf/kfree_skb") int on_drop_frame(u64 *ctx)
{
	struct sk_buff *skb = PLAIN(struct sk_buff, (struct sk_buff *)ctx[0]);
	struct drop_event_frame *event;
	struct drop drop = {};

	if (!look(ctx, skb, &drop))
		return 0;
	read_ports(skb, drop.transport, &drop.ends);
	read_socket(ctx, skb, &drop.ends);
	event = bpf_ringbuf_reserve(&events, sizeof(*event) + snaplen, 0);
	if (!event) {
		COUNT_ONE(lost_events);
		return 0;
	}
	event->ns = bpf_ktime_get_ns();
	event->key = drop.key;
	event->ends = drop.ends;
	event->stack_bytes = 0;
	copy_frame(skb, &drop, event);
	bpf_ringbuf_submit(event, wake_flags());
	return 0;
}
