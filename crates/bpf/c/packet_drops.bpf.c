/* SPDX-License-Identifier: Dual BSD/GPL
 *
 * Counts packets that the kernel drops, by reason, place, network namespace, interface and protocol.
 *
 * tp_btf/kfree_skb runs where a packet is discarded, with the address in the function that did it and, since 5.17,
 * with a reason. Keys do not contain ports, because a scan would fill the map. The first packet of a key stores its
 * addresses and its stack in addition to the counts. Packets that are not dropped cost nothing; a drop costs 0.1 to
 * 0.3 us.
 *
 * The space is divided into three maps, so that everything that can be counted is counted. Namespaces owned by a user
 * namespace (any user can create them) have a map of their own and take no space from others. Drops whose map is full
 * are counted only by reason and place: the number of these combinations depends on the kernel's code, not on packets.
 *
 * The other programs write each drop into a ring instead, one of them with the beginning of the packet. They wake the
 * reader when 64 KiB wait; until then the reader polls.
 *
 * Kernel >= 5.10.
 */
#include "kernel.h"

LICENSE("Dual BSD/GPL");

/* Inode of the only namespace whose packets are counted, in addition to packets without a known one; 0: all. */
const volatile u32 only_netns = 0;
/* Number of arguments of the tracepoint in this kernel: the third is the reason (5.17), the fourth the receiver
 * (6.11). */
const volatile u32 arguments = 2;
/* The kernel's numbers of SKB_CONSUMED, which is not a drop, and SKB_DROP_REASON_NETFILTER_DROP; ~0 if it has none. */
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
/* An unknown offset of a header (sk_buff). */
#define NOT_SET 0xffff
/* Maximum number of IPv6 extension headers that are skipped before the transport header. */
#define EXTENSIONS 4

/* crates/bpf/src/packet_drops.rs decodes these. No padding: keys are compared as bytes. */
struct drop_key {
	u64 place;   /* the address after the call that dropped the packet */
	u32 reason;  /* a number of this kernel's enum skb_drop_reason */
	u32 netns;   /* inode */
	u32 ifindex; /* of the interface that the packet arrived on, or would have left through */
	u16 l3;	     /* ETH_P_IP, ETH_P_IPV6, ETH_P_ARP; 0: others, and packets whose header is unknown */
	u8 l4;	     /* of IP: the protocols of `known_l4`; 255: others */
	u8 hook;     /* enum hook; 0 unless a rule dropped it */
};
struct drop_count { u64 packets, bytes; };
#define FRAMES 24
struct packet_ends {
	u32 src[4], dst[4]; /* IPv4: the first word */
	u16 sport, dport;   /* network order */
	u16 l3;		    /* host order */
	u8 l4, has;	    /* HAS_…, FLAG_… */
	u32 bytes;
	u32 inode, uid; /* of the socket that the packet was for, or that sent it */
};
enum { HAS_ADDRESSES = 1, HAS_PORTS = 2, HAS_SOCKET = 4, HAS_FLAGS = 8 };
/* Flags of a TCP segment. */
enum { FLAG_FIN = 16, FLAG_SYN = 32, FLAG_RST = 64, FLAG_ACK = 128 };
struct drop_sample {
	struct packet_ends ends;
	s32 stack_bytes; /* negative: an error */
	u64 stack[FRAMES];
};
/* As in include/uapi/linux/netfilter.h, with an additional value. */
enum hook { HOOK_NONE, HOOK_PREROUTING, HOOK_INPUT, HOOK_FORWARD, HOOK_OUTPUT, HOOK_POSTROUTING };
/* Marks a key without namespace, interface and protocols. */
#define HOOK_MERGED 255

#define DROPS(entries)                                \
	{                                             \
		MAP_NUMBER(type, BPF_MAP_TYPE_PERCPU_HASH); \
		MAP_NUMBER(max_entries, entries);     \
		MAP_TYPE(key, struct drop_key);       \
		MAP_TYPE(value, struct drop_count);   \
	}
struct DROPS(4096) drops SEC(".maps");
/* Drops in namespaces that belong to user namespaces. */
struct DROPS(2048) guest_drops SEC(".maps");
/* Drops that did not fit into the maps above, by reason and place. */
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

/* 1 if events include the stack. */
const volatile u32 with_stack = 0;

/* An event without its stack; otherwise it contains a whole `struct drop_sample`. */
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

/* Maximum number of bytes of the packet in an event. */
const volatile u32 snaplen = 128;
#define SNAPLEN_MAX 4096

enum { LINKTYPE_NONE, LINKTYPE_ETHERNET, LINKTYPE_RAW = 101 };
enum { ARPHRD_ETHER = 1, ARPHRD_LOOPBACK = 772, ETHERNET_BYTES = 14, VLAN_BYTES = 4 };

/* The packet as it was when it was dropped, starting with its link-layer header or with its IP header. */
struct drop_event_frame {
	u64 ns;
	struct drop_key key;
	struct packet_ends ends;
	s32 stack_bytes;
	u32 len;	/* of the packet, from its first byte in `bytes` */
	u16 captured;	/* number of bytes below */
	u16 link_type;	/* LINKTYPE_NONE: the start of the packet is unknown */
	u8 bytes[];
};

/* Packets that were merged; packets that were not counted at all; events lost because the ring was full. */
u64 merged, lost, lost_events;
/* The address of the kernel's netns_operations, which distinguishes a namespace from other memory. */
u64 netns_operations;

/* The namespace of a packet: its inode, and whether it belongs to a user namespace. */
struct home { u32 netns; bool is_guest; };

INLINE void learn_netns_operations(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct nsproxy *proxy = READ(task, nsproxy);
	struct net *net;

	/* A task that is exiting has no namespaces any more, but its parent has. */
	if (!proxy) {
		task = READ(task, real_parent);
		proxy = READ(task, nsproxy);
	}
	net = READ(proxy, net_ns);
	netns_operations = (u64)READ(net, ns.ops);
}

/* True if this is a namespace. A packet's pointer to its interface shares memory with other data while the packet
 * waits in a socket's queue: it was an interface only if it leads to a namespace. */
INLINE bool find_home(struct net *net, struct home *home)
{
	if (!net || (u64)net->ns.ops != netns_operations)
		return false;
	home->netns = net->ns.inum;
	home->is_guest = net->user_ns->level > 0;
	return true;
}

/* Works like find_home, through a pointer that the verifier treats as a number. */
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

/* Derives the hook of a rule from the packet's route, without looking at the stack. */
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
	/* A packet that comes back via loopback has the route of its output. */
	if (!READ(route, rt_is_input) && !skb->skb_iif)
		return has_device ? HOOK_POSTROUTING : HOOK_OUTPUT;
	type = READ(route, rt_type);
	if (type >= RTN_LOCAL && type <= RTN_MULTICAST)
		return HOOK_INPUT;
	return READ(route, dst.dev) == skb->dev ? HOOK_POSTROUTING : HOOK_FORWARD;
}

/* ICMP, IGMP, IPIP, TCP, UDP, DCCP, IPv6, GRE, ESP, AH, ICMPv6, OSPF, PIM, VRRP, L2TP, SCTP, UDP-Lite: one bit each. A
 * packet may contain any number, so all others share one key. */
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

/* Reads addresses and protocol; returns the offset of the transport header from the network header, or 0 without
 * one. */
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

		/* Hop-by-hop, routing, destination options. */
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
	u8 l4 = ends->l4, flags;
	u16 ports[2];

	if (!transport || (l4 != 6 && l4 != 17 && l4 != 33 && l4 != 132 && l4 != 136))
		return;
	if (bpf_probe_read_kernel(ports, sizeof(ports), skb->head + skb->network_header + transport))
		return;
	ends->sport = ports[0];
	ends->dport = ports[1];
	ends->has |= HAS_PORTS;
	/* FIN, SYN, RST, PSH, ACK from the lowest bit on. */
	if (l4 == 6 && !bpf_probe_read_kernel(&flags, sizeof(flags), skb->head + skb->network_header + transport + 13))
		ends->has |= HAS_FLAGS | (flags & 7) << 4 | (flags & 16) << 3;
}

/* Reads full sockets only: no request sockets and no time-wait sockets. */
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

/* Stores a new key's packet: its addresses and ports, and the stack that led to the drop. */
INLINE void take_sample(void *ctx, struct drop_key *key, struct packet_ends *ends)
{
	struct drop_sample sample = { .ends = *ends };

	sample.stack_bytes = bpf_get_stack(ctx, sample.stack, sizeof(sample.stack), 0);
	bpf_map_update_elem(&samples, key, &sample, BPF_NOEXIST);
}

/* The data of one drop. */
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

/* The reader is woken when the waiting events pass this mark, but not by each event above it: it polls every 10 ms
 * anyway. */
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

/* True if the packet has an Ethernet header, possibly with a tag, right before its network header. */
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

/* Copies the beginning of the contiguous part of the packet. */
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
	/* Never true: the verifier of older kernels requires a bound. */
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
