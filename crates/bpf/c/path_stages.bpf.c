/* SPDX-License-Identifier: Dual BSD/GPL
 *
 * The time that packets take from one place of netfilter's hooks to the next, and how many do not arrive.
 *
 * The same program is loaded once for each place (a hook and a priority of one network namespace), with its place as
 * constants and with shared maps. It accepts every packet. A packet is identified by its sk_buff, which is the same at
 * all places; a table per CPU records the last place that it passed, so that places need no other shared state.
 *
 * A packet counts if it reached its first place while `window` was open: packets in transit when it opens or closes
 * count at all places or at none, so that a difference between two places is packets that were lost between them.
 *
 * Kernel >= 6.4; needs no kernel types. Costs a packet 50 to 150 ns at each place.
 */
#include "parts.h"

LICENSE("Dual BSD/GPL");

enum { NF_ACCEPT = 1 };

/* The program's context; fixed layout. */
struct nf_hook_state;
struct sk_buff;
struct bpf_nf_ctx {
	const struct nf_hook_state *state;
	struct sk_buff *skb;
};

/* This place, and the places that a packet may have come from; NOWHERE: packets begin here. */
#define NOWHERE 0xffffffffu
const volatile u32 place = 0;
const volatile u32 from = NOWHERE;
const volatile u32 or_from = NOWHERE;

#define PARTS 140
struct arrivals {
	u64 packets;
	u64 measured;    /* of these, with a time since the previous place */
	u64 strangers;   /* of these, not seen at any of the previous places */
	u64 sum_ns;
	u64 max_ns;
	u64 own_ns;      /* time of the program itself for these packets */
	u32 parts[PARTS];
};

/* Each CPU has its own numbers. */
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	MAP_NUMBER(max_entries, 80);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct arrivals);
} arrivals SEC(".maps");

/* The interval in which packets count, in ns of the monotonic clock. */
struct window {
	u64 open_ns, close_ns;
};
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct window);
} window SEC(".maps");

/* Packets in transit on one CPU. */
#define UNDER_WAY 1024
struct last_seen {
	u64 packet;
	u64 begin_ns; /* at its first place */
	u64 ns;       /* when it left the last one */
	u32 place, pad;
};
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	MAP_NUMBER(max_entries, UNDER_WAY);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct last_seen);
} under_way SEC(".maps");

INLINE void measure(struct arrivals *here, u64 ns)
{
	u32 part = part_of(ns);

	here->measured++;
	here->sum_ns += ns;
	if (ns > here->max_ns)
		here->max_ns = ns;
	here->parts[part < PARTS ? part : PARTS - 1]++;
}

SEC("netfilter") int on_packet(struct bpf_nf_ctx *ctx)
{
	u64 now = bpf_ktime_get_ns(), packet, begin_ns = now, left_ns;
	u32 zero = 0, own = place, slot;
	struct last_seen *seen;
	struct arrivals *here;
	struct window *times;
	bool is_known = false, counts;

	times = bpf_map_lookup_elem(&window, &zero);
	here = bpf_map_lookup_elem(&arrivals, &own);
	if (!times || !here)
		return NF_ACCEPT;
	/* The difference of two pointers is a number, with which the verifier allows arithmetic. */
	packet = (u64)((char *)ctx->skb - (char *)times);
	/* Addresses of sk_buffs differ by multiples of 64 bytes. */
	slot = (packet >> 6 ^ packet >> 16) & (UNDER_WAY - 1);
	seen = bpf_map_lookup_elem(&under_way, &slot);
	if (!seen)
		return NF_ACCEPT;
	if (from != NOWHERE && seen->packet == packet && (seen->place == from || seen->place == or_from)) {
		is_known = true;
		begin_ns = seen->begin_ns;
	}
	counts = begin_ns >= times->open_ns && begin_ns < times->close_ns;
	if (counts) {
		here->packets++;
		if (is_known)
			measure(here, now - seen->ns);
		else if (from != NOWHERE)
			here->strangers++;
	}
	seen->packet = packet;
	seen->begin_ns = begin_ns;
	seen->place = own;
	left_ns = bpf_ktime_get_ns();
	seen->ns = left_ns;
	if (counts)
		here->own_ns += left_ns - now;
	return NF_ACCEPT;
}
