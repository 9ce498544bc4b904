/* SPDX-License-Identifier: Dual BSD/GPL
 *
 * How long packets take from one place of netfilter's hooks to the next, and how many do not arrive.
 *
 * The same program is loaded once for each place (a hook and a priority of one network namespace), with its place as
 * constants, over common maps. It lets every packet go on. A packet is known by its sk_buff, which is the same at all
 * places; where it came by last stands in a table of each CPU, so that places need not agree about anything else.
 *
 * A packet counts if it came to its first place while `window` was open: those that are under way when it opens or
 * closes count everywhere or nowhere, so that a difference between two places is packets that got lost between them.
 *
 * Kernel >= 6.4; reads nothing of the kernel's types. Costs a packet 50 to 150 ns at each place.
 */
#include "parts.h"

LICENSE("Dual BSD/GPL");

enum { NF_ACCEPT = 1 };

/* Context of the program; fixed layout. */
struct nf_hook_state;
struct sk_buff;
struct bpf_nf_ctx {
	const struct nf_hook_state *state;
	struct sk_buff *skb;
};

/* This place, and those that a packet may have come from; NOWHERE: it begins here. */
#define NOWHERE 0xffffffffu
const volatile u32 place = 0;
const volatile u32 from = NOWHERE;
const volatile u32 or_from = NOWHERE;

#define PARTS 140
struct arrivals {
	u64 packets;
	u64 measured;    /* of these, with a time since the place before */
	u64 strangers;   /* of these, seen at none of the places before */
	u64 sum_ns;
	u64 max_ns;
	u64 own_ns;      /* the time of the program itself for these packets */
	u32 parts[PARTS];
};

/* Each CPU adds to numbers of its own. */
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	MAP_NUMBER(max_entries, 80);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct arrivals);
} arrivals SEC(".maps");

/* When packets count, in ns of the monotonic clock. */
struct window {
	u64 open_ns, close_ns;
};
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct window);
} window SEC(".maps");

/* Packets under way on one CPU. */
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
	/* The difference of two pointers is a number that the verifier lets us reckon with. */
	packet = (u64)((char *)ctx->skb - (char *)times);
	/* sk_buffs are multiples of 64 bytes apart. */
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
