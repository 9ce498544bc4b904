/* SPDX-License-Identifier: Dual BSD/GPL
 *
 * New conntrack entries, reported at the packet that creates them.
 *
 * A netfilter program at POST_ROUTING and at LOCAL_IN, the last one before the entry is confirmed (added to the
 * table): at that point the addresses are rewritten, so both directions are known. The program reports only entries
 * that are not confirmed yet; for later packets it only checks the status. It does not see entries that a process
 * creates (ctnetlink). It reports an entry that loses a race at confirmation and is never added to the table, and it
 * reports an entry once for each copy of a packet (multicast).
 *
 * Events go into a ring; the reader is woken when 64 KiB wait and polls every 10 ms. A netlink listener costs the
 * sender of a packet 1.9 to 3.4 us per new flow, this program 0.1 to 0.5 us (docs/adr/0012).
 *
 * Kernel >= 6.4. The entry is read with bpf_probe_read_kernel, because the verifier does not know it as an argument.
 */
#include "kernel.h"

LICENSE("Dual BSD/GPL");

enum { NF_ACCEPT = 1 };
/* include/uapi/linux/netfilter/nf_conntrack_common.h; the low bits of _nfct describe how the packet belongs to it. */
enum { IPS_CONFIRMED = 1 << 3, IPS_TEMPLATE = 1 << 11, NFCT_INFO = 7 };

/* The reader is woken when this many bytes wait; a record in the ring has a head of 8 bytes. */
#define WAKE_BYTES 65536
#define HEAD_BYTES 8

/* Our own variants of these types: other programs may declare more members. */
struct sk_buff___new { unsigned long _nfct; } CORE;
struct bpf_nf_ctx___new { const void *state; struct sk_buff___new *skb; } CORE;

/* struct nf_conntrack_tuple (include/net/netfilter/nf_conntrack_tuple.h), the same since 2.6.20. */
struct tuple {
	u32 src[4];
	u16 src_part, l3num;
	u32 dst[4];
	u16 dst_part;
	u8 protonum, dir;
};
/* struct nf_conntrack_tuple_hash: the links of a chain, followed by the tuple. */
struct node {
	u64 next, pprev;
	struct tuple tuple;
};

/* 16 MiB: 260,000 new flows while the reader is busy. */
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_RINGBUF);
	MAP_NUMBER(max_entries, 16 << 20);
} events SEC(".maps");

/* Decoded in crates/conntrack/src/events/new_flow.rs. With the ring's head it is smaller than a cache line. */
struct event {
	u64 ns;
	u32 status, mark;
	u16 src_part, dst_part, reply_src_part, reply_dst_part; /* network order */
	u16 zone;
	u8 family, proto, state, has; /* has: 1 a mark, 2 a state */
	u16 pad;
	u32 src, dst, reply_src, reply_dst; /* IPv4 */
};

/* For AF_INET6: followed by four addresses of 16 bytes. */
struct event6 {
	struct event event;
	u32 addrs[4][4];
};

u64 lost; /* events lost because the ring was full */

/* Only the record that passes the threshold wakes the reader, so that a late reader is not woken again by every
 * event. */
INLINE void hand_out(void *record, u32 bytes)
{
	u64 waiting_bytes = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA);

	bpf_ringbuf_submit(record,
			   waiting_bytes - WAKE_BYTES < bytes + HEAD_BYTES ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

INLINE void fill(struct event *e, unsigned long ct, const struct node *nodes, u32 status)
{
	const struct tuple *orig = &nodes[0].tuple, *reply = &nodes[1].tuple;
	u16 zone = 0;
	u8 has = 0;

	e->ns = bpf_ktime_get_ns();
	e->status = status;
	e->mark = 0;
	if (field_exists(((struct nf_conn *)0)->mark)) {
		bpf_probe_read_kernel(&e->mark, sizeof(e->mark),
				      (void *)(ct + field_offset(struct nf_conn, mark)));
		has |= 1;
	}
	if (field_exists(((struct nf_conn *)0)->zone))
		bpf_probe_read_kernel(&zone, sizeof(zone), (void *)(ct + field_offset(struct nf_conn, zone.id)));
	e->zone = zone;
	e->src_part = orig->src_part;
	e->dst_part = orig->dst_part;
	e->reply_src_part = reply->src_part;
	e->reply_dst_part = reply->dst_part;
	e->proto = orig->protonum;
	e->state = 0;
	e->pad = 0;
	if (orig->protonum == IPPROTO_TCP) {
		bpf_probe_read_kernel(&e->state, 1, (void *)(ct + field_offset(struct nf_conn, proto.tcp.state)));
		has |= 2;
	} else if (orig->protonum == 132 /* SCTP */ && field_exists(((struct nf_conn *)0)->proto.sctp)) {
		u32 state = 0;

		bpf_probe_read_kernel(&state, sizeof(state),
				      (void *)(ct + field_offset(struct nf_conn, proto.sctp.state)));
		e->state = state;
		has |= 2;
	}
	e->has = has;
}

SEC("netfilter") int on_packet(struct bpf_nf_ctx___new *ctx)
{
	unsigned long ct = ctx->skb->_nfct & ~(unsigned long)NFCT_INFO, status = 0;
	struct node nodes[2];

	if (!ct)
		return NF_ACCEPT;
	bpf_probe_read_kernel(&status, sizeof(status), (void *)(ct + field_offset(struct nf_conn, status)));
	if (status & (IPS_CONFIRMED | IPS_TEMPLATE))
		return NF_ACCEPT;
	bpf_probe_read_kernel(nodes, sizeof(nodes), (void *)(ct + field_offset(struct nf_conn, tuplehash)));
	if (nodes[0].tuple.l3num == AF_INET6) {
		struct event6 *wide = bpf_ringbuf_reserve(&events, sizeof(*wide), 0);

		if (!wide) {
			COUNT_ONE(lost);
			return NF_ACCEPT;
		}
		fill(&wide->event, ct, nodes, status);
		wide->event.family = AF_INET6;
		wide->event.src = wide->event.dst = wide->event.reply_src = wide->event.reply_dst = 0;
		memcpy(wide->addrs[0], nodes[0].tuple.src, 16);
		memcpy(wide->addrs[1], nodes[0].tuple.dst, 16);
		memcpy(wide->addrs[2], nodes[1].tuple.src, 16);
		memcpy(wide->addrs[3], nodes[1].tuple.dst, 16);
		hand_out(wide, sizeof(*wide));
	} else {
		struct event *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);

		if (!e) {
			COUNT_ONE(lost);
			return NF_ACCEPT;
		}
		fill(e, ct, nodes, status);
		e->family = AF_INET;
		e->src = nodes[0].tuple.src[0];
		e->dst = nodes[0].tuple.dst[0];
		e->reply_src = nodes[1].tuple.src[0];
		e->reply_dst = nodes[1].tuple.dst[0];
		hand_out(e, sizeof(*e));
	}
	return NF_ACCEPT;
}
