/* SPDX-License-Identifier: Dual BSD/GPL */
/* The hash table of connection tracking, walked by ourselves: rows go straight into memory that the reader has mapped.
 * No netlink message, no lock, no reference count; nothing is evicted. Kernel 6.9 (may_goto); CAP_BPF and CAP_PERFMON.
 *
 * What a row looks like is said in crates/conntrack/src/bpf_rows.rs, who calls this in crates/bpf/src/conntrack_walk.rs.
 *
 * Time is waiting for memory: an entry stands in two chains and has four cache lines, and the way to the next is only
 * known when the one before is there. So many chains are followed at once, a step of each in turn (`lane`), and what
 * was found waits in a list until there is enough of it to fetch the rest of all of them together (`found`).
 *
 * Why it is right without a lock. Entries lie in memory that stays entries while an RCU section lasts, but one may be
 * freed and used again, in another chain, while we stand on it. Every link is therefore checked from both ends: the
 * entry must point back to where we came from, and the mark at a chain's end must be that of its bucket. If one does
 * not fit, the chains of this turn are read again. An entry that was freed or used again before its row was complete
 * has no reference or another tuple: it is gone, and its row with it. A table that was given back meanwhile (a resize)
 * does not point back either; that no entry was missed because of a resize is for the caller to find out. */
#include "kernel.h"

LICENSE("Dual BSD/GPL");

enum { HEAD = 32, ROWS = 1 << 18, ROW_MAX = 192, REGIONS = 2 };
/* Entries found and not yet written, chains followed at once; both powers of two. */
enum { FOUND = 1024, LANES = 64 };
enum { RETRIES_MAX = 1000 };
enum { MAGIC = 0x316b7463 };			/* "ctk1" */
/* How a call ended. */
enum { DONE = 0, NO_TABLE = 1, FULL = 3, UNQUIET = 4, STRANGE = 5 };
/* include/uapi/linux/netfilter/nf_conntrack_common.h */
enum { IPS_CONFIRMED = 1 << 3 };

/* Parts that follow the base of a row, in this order; NETNS and STATE stand in the base and cost cache lines. */
enum { REPLY = 1, COUNTERS = 2, TIMES = 4, LABELS = 8, HELPER = 16, NETNS = 32, STATE = 64 };
/* Which of the conditions in `struct walk` there are. */
enum { ORIG = 1, ANSWER = 2, STATUS = 4, MARK = 8, STATES = 16, ZONE = 32 };
/* What there is of the parts: the kernel keeps them only if it was told to. */
enum { HAS_COUNTERS = 1, HAS_TIMES = 2, HAS_LABELS = 4, HAS_HELPER = 8 };

/* Fixed when the program is loaded, so that the verifier leaves out what is not wanted. */
const volatile u32 parts = REPLY | COUNTERS | TIMES | LABELS | HELPER | NETNS | STATE;
const volatile u32 conditions = ORIG | ANSWER | STATUS | MARK | STATES | ZONE;

struct head { u32 magic, parts; u64 jiffies, ktime_ns; u32 addresses_at, pad; };
struct base {
	u8 words, family, proto, state;
	u32 status;
	s32 left;		/* jiffies; not above 0: the time is over */
	u16 sport, dport;	/* network order */
	u16 zone;
	u8 zone_dir, has;
	u32 mark, uses, netns;
};
struct answer { u16 sport, dport; };
struct counters { u64 packets, bytes, reply_packets, reply_bytes; };
struct times { u64 start, stop; };
struct two { u64 a, b; };

#define SIZE_IF(part, type) (parts & (part) ? sizeof(type) : 0)
#define REPLY_AT (sizeof(struct base))
#define COUNTERS_AT (REPLY_AT + SIZE_IF(REPLY, struct answer))
#define TIMES_AT (COUNTERS_AT + SIZE_IF(COUNTERS, struct counters))
#define LABELS_AT (TIMES_AT + SIZE_IF(TIMES, struct times))
#define HELPER_AT (LABELS_AT + SIZE_IF(LABELS, struct two))
#define ADDRESSES_AT (HELPER_AT + SIZE_IF(HELPER, struct two))

/* A chain under way: the next link, where that stands, what must be at its end. */
struct lane { u64 link, from, end; };
/* A tuple in five words: source address (two); source port, family, first word of the destination address; its middle;
 * its end, destination port, protocol, direction. */
struct tuple { u64 w[5]; };
struct found { u64 node; struct tuple orig; };
struct region {
	u8 rows[ROWS];
	struct lane lanes[LANES];
	struct found found[FOUND];
};
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(map_flags, BPF_F_MMAPABLE);
	MAP_NUMBER(max_entries, REGIONS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct region);
} out SEC(".maps");

/* In: buckets start..end, what passes. Out: how it ended, where to go on, bytes written. The rest is the walk's own:
 * whatever lives longer than a few lines stands here and not in variables (see sockets_walk.bpf.c). */
struct walk {
	u32 start, end;
	u32 region;		/* which to write to: the one before stays as it is */
	u32 fd;			/* of /proc/net/nf_conntrack, just read */
	u32 all;		/* entries of every namespace */
	u32 nodes_max;		/* after so many the call ends */
	u32 lanes_enough;	/* chains to follow at once, entries to write at once; at most 8 more come */
	u32 found_enough;
	u32 expiry;		/* mask: 1 live ones, 2 those whose time is over */
	u32 status, status_mask, mark, mark_mask, states, zone, pad;
	struct tuple orig, orig_mask, reply, reply_mask;
	u32 ended, next, filled, buckets, restarts, gone, nodes, pad2;
	u64 table, net, bad;
	u32 now, row, bucket, turn, turn_found, found, written, lanes, at, kept;
};

#define STEP(n) ((n) & (LANES - 1))
#define PLACE(n) ((n) & (FOUND - 1))
/* Reads and forgets: the memory is on its way when it is needed. */
#define TOUCH(field) ({ u64 word_ = (u64)(field); asm volatile("" : : "r"(word_)); })

/* 1 if any bit differs where the mask says so. No branch: what passes is anybody's guess to the processor. */
INLINE u64 differs(struct tuple *t, volatile struct tuple *value, volatile struct tuple *mask)
{
	u64 d = (t->w[0] ^ value->w[0]) & mask->w[0];
	d |= (t->w[1] ^ value->w[1]) & mask->w[1];
	d |= (t->w[2] ^ value->w[2]) & mask->w[2];
	d |= (t->w[3] ^ value->w[3]) & mask->w[3];
	d |= (t->w[4] ^ value->w[4]) & mask->w[4];
	d = (d | -d) >> 63;
	OPAQUE(d);
	return d;
}

/* The table, by the reader of /proc/net/nf_conntrack: it has noted where it reads (struct ct_iter_state in
 * net/netfilter/nf_conntrack_standalone.c: seq_net_private, hash, htable_size). */
INLINE int begin(volatile struct walk *w, struct region *o)
{
	struct task_struct *task = CAST(struct task_struct, bpf_get_current_task_btf());
	w->net = (u64)task->nsproxy->net_ns;
	u64 files = (u64)task->files->fdt->fd;
	u64 file = WORD_AT(files + 8ull * w->fd);
	u64 seq = (u64)CAST(struct file, file)->private_data;
	u64 reader = (u64)CAST(struct seq_file, seq)->private + type_size(struct seq_net_private);
	w->table = WORD_AT(reader);
	w->buckets = WORD_AT(reader + 8);

	struct head *h = (struct head *)o->rows;
	u64 now = bpf_jiffies64();
	w->now = now;
	h->magic = MAGIC; h->parts = parts; h->jiffies = now; h->ktime_ns = bpf_ktime_get_ns();
	h->addresses_at = ADDRESSES_AT; h->pad = 0;
	w->row = HEAD; w->ended = DONE;
	w->bucket = w->turn = w->next = w->start & ~7u; w->filled = HEAD;
	w->turn_found = w->found = w->written = w->lanes = w->at = w->kept = 0;
	w->restarts = w->gone = w->nodes = 0; w->bad = 0;
	if (w->end > w->buckets) w->end = w->buckets;
	if (!w->table || w->buckets & 7) w->ended = NO_TABLE;
	/* The words of a tuple are taken as they lie. */
	if (field_offset(struct nf_conntrack_tuple_hash, tuple) != 16 || field_offset(struct nf_conntrack_tuple, src.l3num) != 18
	    || field_offset(struct nf_conntrack_tuple, dst.u3) != 20 || field_offset(struct nf_conntrack_tuple, dst.protonum) != 38
	    || field_offset(struct nf_conntrack_tuple, dst.dir) != 39) w->ended = STRANGE;
	return !w->ended;
}

/* A bucket's chain becomes a lane, unless it is empty. */
#define OPEN(k, word)                                                                                   \
	({                                                                                              \
		u64 link_ = (word), n_ = w->lanes;                                                      \
		struct lane *l_ = &o->lanes[STEP(n_)];                                                  \
		l_->link = link_; l_->from = slots + 8 * (k); l_->end = 2 * ((u64)b + (k)) + 1;         \
		w->lanes = n_ + (~link_ & 1);                                                           \
	})

/* Eight buckets, that is a cache line of them. */
INLINE void open_lanes(volatile struct walk *w, struct region *o)
{
	u32 b = w->bucket;
	u64 slots = w->table + 8ull * b;
	struct rtnl_link_stats64 *a = CAST(struct rtnl_link_stats64, slots);
	w->bucket = b + 8;
	u64 none = a->rx_packets & a->tx_packets & a->rx_bytes & a->tx_bytes & a->rx_errors & a->tx_errors & a->rx_dropped & a->tx_dropped;
	if (none & 1) return;
	OPEN(0, a->rx_packets); OPEN(1, a->tx_packets); OPEN(2, a->rx_bytes); OPEN(3, a->tx_bytes);
	OPEN(4, a->rx_errors); OPEN(5, a->tx_errors); OPEN(6, a->rx_dropped); OPEN(7, a->tx_dropped);
}

/* Everything that a step reads, of eight lanes together. */
INLINE void touch_lanes(struct region *o, u32 at)
{
	for (u32 i = 0; i < 8; i++) {
		struct rtnl_link_stats64 *h = CAST(struct rtnl_link_stats64, o->lanes[STEP(at + i)].link);
		TOUCH(h->rx_packets); TOUCH(h->rx_dropped);
	}
}

/* One link of one lane. An entry is taken where it stands by its original direction. What is not taken is written all
 * the same, and written over by the next: half of the nodes are, and no processor foresees which. */
INLINE void step(volatile struct walk *w, struct region *o)
{
	struct lane *l = &o->lanes[STEP(w->at)];
	u64 node = l->link, from = l->from, end = l->end;
	struct rtnl_link_stats64 *h = CAST(struct rtnl_link_stats64, node);
	u64 next = h->rx_packets;
	u32 n = w->found;
	struct found *f = &o->found[PLACE(n)];
	f->node = node;
	f->orig.w[0] = h->rx_bytes; f->orig.w[1] = h->tx_bytes; f->orig.w[2] = h->rx_errors; f->orig.w[3] = h->tx_errors;
	u64 last = h->rx_dropped;
	f->orig.w[4] = last;
	BARRIER();
	/* Read last: if it still points back, all of the above was this entry's. */
	u64 odd = next & 1, back = h->tx_packets;
	u64 passes = ~(last >> 56) & 1;
	if (conditions & ORIG) passes &= ~differs(&f->orig, &w->orig, &w->orig_mask);
	w->bad |= (back ^ from) | (-odd & (next ^ end)) | (next == 0);
	w->found = n + passes;
	u32 kept = w->kept;
	struct lane *k = &o->lanes[STEP(kept)];
	k->link = next; k->from = node; k->end = end;
	w->kept = kept + 1 - odd;
	w->at++;
	w->nodes++;
}

/* What a row needs beside the tuple, of eight entries together. */
INLINE void touch_found(struct region *o, u32 at)
{
	for (u32 i = 0; i < 8; i++) {
		struct nf_conn *c = CAST(struct nf_conn, o->found[PLACE(at + i)].node - field_offset(struct nf_conn, tuplehash));
		TOUCH(c->status);
		if (parts & STATE || conditions & STATES) TOUCH(c->proto.tcp.state);
	}
}

/* Where an extension of that kind begins; 0 if there is none. */
#define EXTENSION(ext, id, bytes)                                                                             \
	({                                                                                                    \
		u64 at_ = 0;                                                                                  \
		if (enum_value_exists(enum nf_ct_ext_id, id)) {                                               \
			u64 off_ = WORD_AT((ext) + enum_value(enum nf_ct_ext_id, id)) & 0xff;                 \
			u64 len_ = CAST(struct nf_ct_ext, ext)->len;                                          \
			at_ = off_ && off_ + (bytes) <= len_ ? (ext) + off_ : 0;                              \
		}                                                                                             \
		at_;                                                                                          \
	})

/* Counters, times, labels, name of the helper; which of them there are. The memory of extensions goes with the entry:
 * nothing of it counts before the entry was found to be held still. */
INLINE u32 put_extensions(u8 *r, struct nf_conn *c)
{
	u64 ext = (u64)c->ext, at;
	u32 has = 0;
	struct counters *n = (struct counters *)(r + COUNTERS_AT);
	struct times *t = (struct times *)(r + TIMES_AT);
	struct two *l = (struct two *)(r + LABELS_AT), *name = (struct two *)(r + HELPER_AT);
	if (!ext) return 0;
	if (parts & COUNTERS && (at = EXTENSION(ext, NF_CT_EXT_ACCT, sizeof *n))) {
		struct rtnl_link_stats64 *a = CAST(struct rtnl_link_stats64, at);
		n->packets = a->rx_packets; n->bytes = a->tx_packets; n->reply_packets = a->rx_bytes; n->reply_bytes = a->tx_bytes;
		has |= HAS_COUNTERS;
	}
	if (parts & TIMES && (at = EXTENSION(ext, NF_CT_EXT_TSTAMP, sizeof *t))) {
		t->start = WORD_AT(at); t->stop = WORD_AT(at + 8);
		has |= HAS_TIMES;
	}
	if (parts & LABELS && (at = EXTENSION(ext, NF_CT_EXT_LABELS, sizeof *l))) {
		l->a = WORD_AT(at); l->b = WORD_AT(at + 8);
		has |= HAS_LABELS;
	}
	if (parts & HELPER && (at = EXTENSION(ext, NF_CT_EXT_HELPER, 8))) {
		u64 helper = WORD_AT(at);
		if (helper) {
			helper += field_offset(struct nf_conntrack_helper, name);
			name->a = WORD_AT(helper); name->b = WORD_AT(helper + 8);
			has |= HAS_HELPER;
		}
	}
	return has;
}

/* State of the protocol, if it has states. */
INLINE u32 state_of(struct nf_conn *c, u32 proto)
{
	u32 state = c->proto.tcp.state;
	if (proto == 132) state = c->proto.sctp.state;
	if (proto == 33 && field_exists(c->proto.dccp.state)) state = c->proto.dccp.state;
	return proto == 6 || proto == 132 || proto == 33 ? state : 0xff;
}

INLINE u32 put_addresses(u8 *r, u32 family, struct tuple *t, struct tuple *q)
{
	u32 *a = (u32 *)(r + ADDRESSES_AT);
	if (family != AF_INET6) {
		a[0] = t->w[0]; a[1] = t->w[2] >> 32;
		if (!(parts & REPLY)) return ADDRESSES_AT + 8;
		a[2] = q->w[0]; a[3] = q->w[2] >> 32;
		return ADDRESSES_AT + 16;
	}
	a[0] = t->w[0]; a[1] = t->w[0] >> 32; a[2] = t->w[1]; a[3] = t->w[1] >> 32;
	a[4] = t->w[2] >> 32; a[5] = t->w[3]; a[6] = t->w[3] >> 32; a[7] = t->w[4];
	if (!(parts & REPLY)) return ADDRESSES_AT + 32;
	a[8] = q->w[0]; a[9] = q->w[0] >> 32; a[10] = q->w[1]; a[11] = q->w[1] >> 32;
	a[12] = q->w[2] >> 32; a[13] = q->w[3]; a[14] = q->w[3] >> 32; a[15] = q->w[4];
	return ADDRESSES_AT + 64;
}

/* The row of an entry, if it is wanted: bytes written. */
INLINE u32 put(volatile struct walk *w, u8 *r, struct found *f)
{
	struct base *b = (struct base *)r;
	struct nf_conn *c = CAST(struct nf_conn, f->node - field_offset(struct nf_conn, tuplehash));
	struct rtnl_link_stats64 *q = CAST(struct rtnl_link_stats64, f->node + type_size(struct nf_conntrack_tuple_hash));
	struct tuple reply = {};
	u64 net = (u64)c->ct_net.net;
	if (net != w->net && !w->all) return 0;
	u32 status = c->status, mark = c->mark, proto = f->orig.w[4] >> 48 & 0xff, family = f->orig.w[2] >> 16 & 0xff;
	s32 left = c->timeout - w->now;
	u32 zone = field_exists(c->zone) ? c->zone.id : 0;
	u32 state = parts & STATE || conditions & STATES ? state_of(c, proto) : 0xff;
	if (!(w->expiry >> (left <= 0) & 1)) return 0;
	if (conditions & STATUS && (status ^ w->status) & w->status_mask) return 0;
	if (conditions & MARK && (mark ^ w->mark) & w->mark_mask) return 0;
	if (conditions & ZONE && zone != w->zone) return 0;
	if (conditions & STATES && (state > 31 || !(w->states >> (state & 31) & 1))) return 0;
	if (parts & REPLY || conditions & ANSWER) {
		reply.w[0] = q->rx_bytes; reply.w[1] = q->tx_bytes; reply.w[2] = q->rx_errors; reply.w[3] = q->tx_errors; reply.w[4] = q->rx_dropped;
		if (conditions & ANSWER && differs(&reply, &w->reply, &w->reply_mask)) return 0;
	}
	b->family = family; b->proto = proto; b->state = state; b->status = status; b->left = left;
	b->sport = f->orig.w[2]; b->dport = f->orig.w[4] >> 32;
	b->zone = zone; b->zone_dir = field_exists(c->zone) ? c->zone.dir : 3;
	b->mark = mark; b->uses = c->ct_general.use.refs.counter;
	b->netns = parts & NETNS ? CAST(struct net, net)->ns.inum : 0;
	if (parts & REPLY) { ((struct answer *)(r + REPLY_AT))->sport = reply.w[2]; ((struct answer *)(r + REPLY_AT))->dport = reply.w[4] >> 32; }
	b->has = parts & (COUNTERS | TIMES | LABELS | HELPER) ? put_extensions(r, c) : 0;
	u32 bytes = put_addresses(r, family, &f->orig, &reply);
	b->words = bytes / 4;
	return bytes;
}

/* Whether an entry is still the one that was found. */
INLINE u64 is_same(struct found *f, u8 *r)
{
	struct rtnl_link_stats64 *h = CAST(struct rtnl_link_stats64, f->node);
	struct nf_conn *c = CAST(struct nf_conn, f->node - field_offset(struct nf_conn, tuplehash));
	u64 d = (h->rx_bytes ^ f->orig.w[0]) | (h->tx_bytes ^ f->orig.w[1]) | (h->rx_errors ^ f->orig.w[2]) | (h->tx_errors ^ f->orig.w[3])
		| (h->rx_dropped ^ f->orig.w[4]);
	u32 confirmed = ((struct base *)r)->status & IPS_CONFIRMED;
	return !d && confirmed && c->ct_general.use.refs.counter;
}

INLINE void put_found(volatile struct walk *w, struct region *o)
{
	struct found *f = &o->found[PLACE(w->written)];
	u32 row = w->row;
	u8 *r = o->rows + row;
	if (row > ROWS - ROW_MAX) { w->ended = FULL; return; }
	w->written++;
	u32 bytes = put(w, r, f);
	BARRIER();
	if (!bytes) return;
	if (!is_same(f, r)) { w->gone++; return; }
	w->row = row + bytes;
}

SEC("syscall") int walk_conntrack(struct walk *ctx)
{
	volatile struct walk *w = ctx;
	u32 key = w->region;
	struct region *o = bpf_map_lookup_elem(&out, &key);
	if (!o) return 1;
	bpf_rcu_read_lock();
	if (begin(w, o)) while (LOOP_OK) {
		if (w->at < w->lanes) {
			if (!(w->at & 7)) touch_lanes(o, w->at);
			step(w, o);
			continue;
		}
		/* A round is over: every lane made a step. */
		w->lanes = w->kept; w->at = w->kept = 0;
		if (w->bad || w->found >= FOUND - LANES) {
			/* Too many for the list, or an entry moved under us: these buckets once more. */
			if (!w->bad) { w->ended = FULL; break; }
			if (++w->restarts > RETRIES_MAX) { w->ended = UNQUIET; break; }
			w->bucket = w->turn; w->found = w->turn_found; w->lanes = 0; w->bad = 0;
		}
		if (w->lanes) continue;
		if (w->found >= w->found_enough || w->bucket >= w->end) {
			if (w->written < w->found) {
				if (!(w->written & 7)) touch_found(o, w->written);
				put_found(w, o);
				if (w->ended) break;
				continue;
			}
			w->found = w->written = 0;
			w->next = w->bucket; w->filled = w->row;
			if (w->bucket >= w->end || w->nodes > w->nodes_max) break;
		}
		w->turn = w->bucket; w->turn_found = w->found;
		while (LOOP_OK) {
			if (w->bucket >= w->end || w->lanes >= (w->lanes_enough & 31)) break;
			open_lanes(w, o);
		}
	}
	bpf_rcu_read_unlock();
	return 0;
}
