/* SPDX-License-Identifier: Dual BSD/GPL */
/* Walks the conntrack hash table and writes rows straight into memory that the reader has mapped: no netlink message,
 * no lock, no reference count, no eviction. Needs Linux 6.9 (may_goto), CAP_BPF and CAP_PERFMON.
 *
 * crates/conntrack/src/backends/bpf/rows.rs decodes the rows, crates/bpf/src/conntrack_walk.rs runs the program.
 *
 * Most of the time is spent waiting for memory: an entry is in two chains and has four cache lines, and the address of
 * the next entry is known only when the previous one has arrived. So the program follows many chains concurrently, one
 * step of each in turn (`lane`), and collects entries in a list (`found`) until there are enough to fetch the rest of
 * all of them together.
 *
 * Why this is correct without a lock. SLAB_TYPESAFE_BY_RCU: within an RCU section the memory of an entry stays that of
 * an entry, but the entry may be freed and reused in another chain while the program reads it. So every link is
 * checked from both ends: the entry must point back to the link that led to it (pprev), and the nulls mark at a
 * chain's end must be that of its bucket. If a check fails, all chains of this round are read again. An entry that was
 * freed or reused before its row was complete has no reference or a different tuple: its row is dropped. A table that
 * was freed in the meantime (a resize) does not point back either; the caller must find out whether a resize made the
 * walk miss entries. */
#include "kernel.h"

LICENSE("Dual BSD/GPL");

enum { HEAD = 32, ROWS = 1 << 18, ROW_MAX = 192, REGIONS = 2 };
/* Maximum number of entries found but not written; of chains followed concurrently; number of either that are
 * prefetched together. Powers of two. */
enum { FOUND = 4096, LANES = 128, GROUP = 16 };
enum { RETRIES_MAX = 1000 };
enum { MAGIC = 0x326b7463 };			/* "ctk2" */
/* The result of a call. */
enum { DONE = 0, NO_TABLE = 1, FULL = 3, CONTENDED = 4, STRANGE = 5 };
/* include/uapi/linux/netfilter/nf_conntrack_common.h */
enum { IPS_CONFIRMED = 1 << 3 };

/* Parts that follow the base of a row, in this order; NETNS and STATE are in the base and cost cache lines. */
enum { REPLY = 1, COUNTERS = 2, TIMES = 4, LABELS = 8, HELPER = 16, NETNS = 32, STATE = 64 };
enum { EXTENSIONS = COUNTERS | TIMES | LABELS | HELPER };
/* The conditions of `struct walk` that apply. */
enum { ORIG = 1, ANSWER = 2, STATUS = 4, MARK = 8, STATES = 16, ZONE = 32 };
/* Parts that an entry has: the kernel stores them only if the administrator enabled them. */
enum { HAS_COUNTERS = 1, HAS_TIMES = 2, HAS_LABELS = 4, HAS_HELPER = 8, HAS_EXTENSIONS = 16, HAS_SECMARK = 32 };

/* Set before loading and constant from then on, so that the verifier removes the code of parts that are not wanted. */
const volatile u32 parts = REPLY | COUNTERS | TIMES | LABELS | HELPER | NETNS | STATE;
const volatile u32 conditions = ORIG | ANSWER | STATUS | MARK | STATES | ZONE;

struct head { u32 magic, parts; u64 jiffies, ktime_ns; u32 addresses_at, pad; };
struct base {
	u8 words, pad[3];
	s32 left;		/* jiffies; 0 or less: expired */
	u32 uses;
	/* The following members do not change by themselves. */
	u8 family, proto, state, has;
	u32 status;
	u16 sport, dport;	/* network order */
	u16 zone;
	u8 zone_dir, pad2;
	u32 mark, netns;
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
#define PART(type, at) ((struct type *)(r + (at)))
#define ADDRESSES_AT (HELPER_AT + SIZE_IF(HELPER, struct two))

/* A chain that is being followed: the next link, the address of that link, the mark that must be at the end (and, from
 * bit NODES_AT on, the number of nodes so far). */
enum { NODES_AT = 40 };
struct lane { u64 link, from, end; };
/* A tuple in five words: source address (two); source port, family, first word of the destination address; its middle;
 * its end, destination port, protocol, direction. */
struct tuple { u64 w[5]; };
struct found { u64 node, from; };
struct region {
	u8 rows[ROWS];
	struct lane lanes[LANES];
	struct found found[FOUND];
	struct tuple orig, reply;	/* of the row being written */
};
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(map_flags, BPF_F_MMAPABLE);
	MAP_NUMBER(max_entries, REGIONS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct region);
} out SEC(".maps");

/* In: buckets start..end, conditions. Out: the result of the call, where to continue, bytes written. The rest is state
 * of the walk: values that live longer than a few lines are stored here, not in variables (sockets_walk.bpf.c explains
 * why). */
struct walk {
	u32 start, end;
	u32 region;		/* the region to write to: the previous one stays unchanged */
	u32 fd;			/* of /proc/net/nf_conntrack, which the reader has just read */
	u32 all;		/* entries of every namespace */
	u32 nodes_max;		/* the call ends after this many nodes */
	u32 lanes_enough;	/* chains to follow concurrently; below: entries to collect; at most 8 more are added */
	u32 found_enough;
	u32 expiry;		/* mask: 1 live entries, 2 expired ones */
	u32 status, status_mask, mark, mark_mask, zone;
	u64 states;		/* bits: states of TCP, from 16 on of SCTP, from 32 on of DCCP */
	struct tuple orig, orig_mask, reply, reply_mask;
	u32 ended, next, filled, buckets, restarts, gone;
	u32 nodes, longest;	/* of the finished chains: number of all nodes, number of nodes of the longest */
	u64 table;
	u64 net;		/* namespace of the entries, from an earlier call; 0: the caller's */
	u64 bad, node, from, ext, at_ext;
	u32 now, row, bucket, found, written, lanes, at, kept;
	u32 work, before;	/* steps of this call, including repeated ones; steps before this round */
	u32 deepest;		/* nodes of this round's longest chain */
	u32 portion, portion_mask;	/* In, for walk_portion: only entries whose hashed address has these bits */
	u32 size_fd;		/* of the parameter hashsize, to search for the variables; 0: no search */
	u64 variables;		/* their address; 0: unknown */
	u64 digest;		/* Out: hash of the variables at the end of the call; 0: unknown */
};

/* A field of an entry. If conntrack is a module, the verifier does not know its types: the loader takes their layout
 * from the module's BTF, and the field is read as a word. */
#define FIELD(type, at, field) ((typeof(((struct type *)0)->field))WORD_AT((at) + field_offset(struct type, field)))
#define CT(field) FIELD(nf_conn, ct, field)
#define CT_HAS(field) field_exists(((struct nf_conn *)0)->field)

#define STEP(n) ((n) & (LANES - 1))
/* 1 if there are lanes. */
#define ANY(lanes) (((lanes) + LANES - 1) / LANES)
#define PLACE(n) ((n) & (FOUND - 1))
/* Prefetches: reads a word and discards it, so that its cache line has arrived when it is needed. */
#define TOUCH(field) ({ u64 word_ = (u64)(field); asm volatile("" : : "r"(word_)); })

/* 1 if any bit is set. Without a branch: each one doubles the verifier's paths, and this one is unpredictable. */
INLINE u64 any_bit(u64 bits)
{
	bits = (bits | -bits) >> 63;
	OPAQUE(bits);
	return bits;
}

/* 1 if any bit in the mask differs. */
INLINE u64 differs(volatile struct tuple *t, volatile struct tuple *value, volatile struct tuple *mask)
{
	u64 d = (t->w[0] ^ value->w[0]) & mask->w[0];
	d |= (t->w[1] ^ value->w[1]) & mask->w[1];
	d |= (t->w[2] ^ value->w[2]) & mask->w[2];
	d |= (t->w[3] ^ value->w[3]) & mask->w[3];
	d |= (t->w[4] ^ value->w[4]) & mask->w[4];
	return any_bit(d);
}

/* The larger number. Without a branch, which would double the verifier's paths: 4 ms instead of 40. */
INLINE u32 larger(u32 a, u32 b)
{
	s32 more = b - a;
	u32 none = more >> 31;
	OPAQUE(none);
	return a + (more & ~none);
}

/* Discards everything that is not committed and continues from there. */
INLINE void restart(volatile struct walk *w)
{
	w->bucket = w->next; w->row = w->filled;
	w->found = w->written = w->lanes = w->at = w->kept = 0;
	w->bad = 0;
	w->deepest = 0; w->before = w->work;
}

/* Commits the entries found, once all of them are written, and the lengths of their chains. A repeated round counts
 * once. */
INLINE void commit(volatile struct walk *w)
{
	w->next = w->bucket; w->filled = w->row;
	w->nodes += w->work - w->before;
	w->longest = larger(w->longest, w->deepest);
	restart(w);
}

/* The object of an open file of the task. */
INLINE u64 open_file(u32 fd)
{
	struct task_struct *task = CAST(struct task_struct, bpf_get_current_task_btf());
	return WORD_AT((u64)task->files->fdt->fd + 8ull * fd);
}

/* Module parameters: files of /sys/module, whose kernfs node points to a struct param_attribute. */
struct inode___of_sysfs { void *i_private; } CORE;
struct kernfs_node___of_sysfs { void *priv; } CORE;
struct kernel_param { void *arg; } CORE;
struct param_attribute { const struct kernel_param *param; } CORE;

/* Number of words of variables that are hashed; how many of them are before the first of nf_conntrack_hash and
 * nf_conntrack_htable_size, and how many may be between these two. */
enum { VARIABLES = 24, BEFORE = 8, NEAR = 12 };

/* Finds the conntrack variables: the parameter hashsize is nf_conntrack_htable_size, and near it is the variable that
 * contains the table's address. Both are __read_mostly in nf_conntrack_core.c, like the others that reveal a resize:
 * nf_conntrack_locks_all and nf_conntrack_generation, a sequence count. */
INLINE void find_variables(volatile struct walk *w)
{
	u64 inode = (u64)CAST(struct file, open_file(w->size_fd))->f_inode;
	u64 node = (u64)CAST(struct inode___of_sysfs, inode)->i_private;
	u64 attribute = (u64)CAST(struct kernfs_node___of_sysfs, node)->priv;
	u64 param = (u64)CAST(struct param_attribute, attribute)->param;
	w->node = (u64)CAST(struct kernel_param, param)->arg;
	w->node &= ~7ull;
	w->from = w->node - 8 * NEAR;
	w->variables = 0;
	w->found = 0;
	while (LOOP_OK) {
		if (w->found > 2 * NEAR) break;
		u64 at = w->from + 8ull * w->found++;
		if (WORD_AT(at) != w->table) continue;
		if (at > w->node) at = w->node;
		w->variables = at - 8 * BEFORE;
		break;
	}
}

/* Hashes the variables: if the hash is the same at two times, no resize began or ended between them. */
INLINE void digest(volatile struct walk *w)
{
	u64 sum = 0;
	w->digest = 0;
	if (!w->variables) return;
	for (u32 i = 0; i < VARIABLES; i++) sum = (sum ^ WORD_AT(w->variables + 8 * i)) * 0x9e3779b97f4a7c15ull;
	w->digest = sum | 1;
}

/* Finds the table through the open file of /proc/net/nf_conntrack, whose iterator points to it (struct ct_iter_state in
 * net/netfilter/nf_conntrack_standalone.c: seq_net_private, hash, htable_size). */
INLINE int begin(volatile struct walk *w, struct region *o)
{
	struct task_struct *task = CAST(struct task_struct, bpf_get_current_task_btf());
	if (!w->net) w->net = (u64)task->nsproxy->net_ns;
	u64 seq = (u64)CAST(struct file, open_file(w->fd))->private_data;
	u64 reader = (u64)CAST(struct seq_file, seq)->private + type_size(struct seq_net_private);
	w->table = WORD_AT(reader);
	w->buckets = WORD_AT(reader + 8);
	if (w->size_fd) find_variables(w);

	struct head *h = (struct head *)o->rows;
	u64 now = bpf_jiffies64();
	w->now = now;
	h->magic = MAGIC; h->parts = parts; h->jiffies = now; h->ktime_ns = bpf_ktime_get_ns();
	h->addresses_at = ADDRESSES_AT; h->pad = 0;
	w->next = w->start & ~7u; w->filled = HEAD;
	w->ended = DONE; w->restarts = w->gone = w->nodes = w->longest = w->work = 0;
	restart(w);
	if (w->end > w->buckets) w->end = w->buckets;
	if (!w->table || w->buckets & 7) w->ended = NO_TABLE;
	/* The words of a tuple are copied as they are in memory. */
	if (field_offset(struct nf_conntrack_tuple_hash, tuple) != 16
	    || field_offset(struct nf_conntrack_tuple, src.l3num) != 18
	    || field_offset(struct nf_conntrack_tuple, dst.u3) != 20
	    || field_offset(struct nf_conntrack_tuple, dst.protonum) != 38
	    || field_offset(struct nf_conntrack_tuple, dst.dir) != 39) w->ended = STRANGE;
	/* Every kernel has counters: if the types lack them, the module's types are missing. */
	if (parts & EXTENSIONS && !enum_value_exists(enum nf_ct_ext_id, NF_CT_EXT_ACCT)) w->ended = STRANGE;
	return !w->ended;
}

/* Makes the chain of a bucket a lane, unless it is empty. */
#define OPEN(k, word)                                                                                   \
	({                                                                                              \
		u64 link_ = (word), n_ = w->lanes;                                                      \
		struct lane *l_ = &o->lanes[STEP(n_)];                                                  \
		l_->link = link_; l_->from = slots + 8 * (k); l_->end = 2 * ((u64)b + (k)) + 1;         \
		w->lanes = n_ + (~link_ & 1);                                                           \
	})

/* Opens the chains of eight buckets, which share a cache line. */
INLINE void open_lanes(volatile struct walk *w, struct region *o)
{
	u32 b = w->bucket;
	u64 slots = w->table + 8ull * b;
	struct rtnl_link_stats64 *a = CAST(struct rtnl_link_stats64, slots);
	w->bucket = b + 8;
	u64 none = a->rx_packets & a->tx_packets & a->rx_bytes & a->tx_bytes;
	none &= a->rx_errors & a->tx_errors & a->rx_dropped & a->tx_dropped;
	if (none & 1) return;
	OPEN(0, a->rx_packets); OPEN(1, a->tx_packets); OPEN(2, a->rx_bytes); OPEN(3, a->tx_bytes);
	OPEN(4, a->rx_errors); OPEN(5, a->tx_errors); OPEN(6, a->rx_dropped); OPEN(7, a->tx_dropped);
}

/* Prefetches the data that a step reads, for a group of lanes. */
INLINE void touch_lanes(struct region *o, u32 at)
{
	for (u32 i = 0; i < GROUP; i++) {
		struct rtnl_link_stats64 *h = CAST(struct rtnl_link_stats64, o->lanes[STEP(at + i)].link);
		TOUCH(h->rx_packets); TOUCH(h->rx_dropped);
	}
}

/* 0 if the entry belongs to the portion of this call. This depends on its address, which is constant for its life: a
 * reader that requests one portion after the other, each in a pass over the complete chains, gets every entry once. */
INLINE u64 is_elsewhere(volatile struct walk *w, u64 node)
{
	return ((node * 0x9e3779b97f4a7c15ull >> 32) ^ w->portion) & w->portion_mask;
}

/* Follows one link of one lane. An entry is counted at its node for the original direction. A node for the reply
 * direction is also written to the list, but overwritten by the next one: a branch would be mispredicted for half of
 * them. */
INLINE void step(volatile struct walk *w, struct region *o, int portioned)
{
	u32 at = w->at, kept = w->kept, n = w->found;
	struct lane *l = &o->lanes[STEP(at)];
	u64 node = l->link, from = l->from, end = l->end;
	struct rtnl_link_stats64 *h = CAST(struct rtnl_link_stats64, node);
	struct found *f = &o->found[PLACE(n)];
	u64 next = h->rx_packets, last = h->rx_dropped, odd = next & 1;
	f->node = node; f->from = from;
	FENCE();
	/* pprev, read last: if it still points back, everything above was read from this entry. */
	u64 back = h->tx_packets;
	w->bad |= (back ^ from) | (-odd & (next ^ end) << (64 - NODES_AT)) | (next == 0);
	w->found = n + 1 - (last >> 56 & 1);
	if (portioned && is_elsewhere(w, node)) w->found = n;
	struct lane *k = &o->lanes[STEP(kept)];
	end += 1ull << NODES_AT;
	k->link = next; k->from = node; k->end = end;
	w->kept = kept + 1 - odd;
	w->at = at + 1;
}

/* Prefetches the data that a row needs besides the tuple, for a group of entries. */
INLINE void touch_found(struct region *o, u32 at)
{
	for (u32 i = 0; i < GROUP; i++) {
		u64 ct = o->found[PLACE(at + i)].node - field_offset(struct nf_conn, tuplehash);
		TOUCH(CT(status));
		if (parts & STATE || conditions & STATES) TOUCH(CT(proto.tcp.state));
		if (parts & EXTENSIONS) { TOUCH(WORD_AT((u64)CT(ext))); TOUCH(WORD_AT((u64)CT(ext) + 64)); }
	}
}

/* The address of an extension of that kind; 0 if the entry does not have it. */
#define EXTENSION(id, bytes)                                                                                  \
	({                                                                                                    \
		u64 at_ = 0;                                                                                  \
		if (enum_value_exists(enum nf_ct_ext_id, id)) {                                               \
			u64 off_ = WORD_AT(w->ext + enum_value(enum nf_ct_ext_id, id)) & 0xff;                \
			u64 len_ = FIELD(nf_ct_ext, w->ext, len);                                             \
			if (off_ && off_ + (bytes) <= len_) at_ = w->ext + off_;                              \
		}                                                                                             \
		at_;                                                                                          \
	})

/* Writes counters, times, labels, name of the helper, and which of them exist. The kernel frees extensions with the
 * entry: these values are valid only if the entry is still referenced afterwards. */
INLINE void put_extensions(volatile struct walk *w, volatile struct base *b, u8 *r)
{
	if (!w->ext) return;
	if (parts & COUNTERS && (w->at_ext = EXTENSION(NF_CT_EXT_ACCT, sizeof(struct counters)))) {
		struct rtnl_link_stats64 *a = CAST(struct rtnl_link_stats64, w->at_ext);
		volatile struct counters *n = PART(counters, COUNTERS_AT);
		n->packets = a->rx_packets; n->bytes = a->tx_packets; n->reply_packets = a->rx_bytes; n->reply_bytes = a->tx_bytes;
		b->has |= HAS_COUNTERS;
	}
	if (parts & TIMES && (w->at_ext = EXTENSION(NF_CT_EXT_TSTAMP, sizeof(struct times)))) {
		volatile struct times *t = PART(times, TIMES_AT);
		t->start = WORD_AT(w->at_ext); t->stop = WORD_AT(w->at_ext + 8);
		b->has |= HAS_TIMES;
	}
	if (parts & LABELS && (w->at_ext = EXTENSION(NF_CT_EXT_LABELS, sizeof(struct two)))) {
		volatile struct two *l = PART(two, LABELS_AT);
		l->a = WORD_AT(w->at_ext); l->b = WORD_AT(w->at_ext + 8);
		b->has |= HAS_LABELS;
	}
	if (parts & HELPER && (w->at_ext = EXTENSION(NF_CT_EXT_HELPER, 8)) && (w->at_ext = WORD_AT(w->at_ext))) {
		volatile struct two *name = PART(two, HELPER_AT);
		w->at_ext += field_offset(struct nf_conntrack_helper, name);
		name->a = WORD_AT(w->at_ext); name->b = WORD_AT(w->at_ext + 8);
		b->has |= HAS_HELPER;
	}
}

/* The protocol's state; 0xff if the protocol has none. */
INLINE u32 state_of(u64 ct, u32 proto)
{
	u32 state = CT(proto.tcp.state);
	if (proto == IPPROTO_SCTP) state = CT(proto.sctp.state);
	if (proto == IPPROTO_DCCP && CT_HAS(proto.dccp.state)) state = CT(proto.dccp.state);
	return proto == IPPROTO_TCP || proto == IPPROTO_SCTP || proto == IPPROTO_DCCP ? state : 0xff;
}

INLINE void take_tuple(volatile struct tuple *t, u64 node)
{
	struct rtnl_link_stats64 *h = CAST(struct rtnl_link_stats64, node);
	t->w[0] = h->rx_bytes; t->w[1] = h->tx_bytes; t->w[2] = h->rx_errors; t->w[3] = h->tx_errors; t->w[4] = h->rx_dropped;
}

/* Writes the parts that every row has. */
INLINE void put_base(volatile struct walk *w, volatile struct region *o, volatile struct base *b, u64 ct)
{
	b->pad2 = 0;
	b->family = o->orig.w[2] >> 16; b->proto = o->orig.w[4] >> 48;
	b->state = parts & STATE || conditions & STATES ? state_of(ct, b->proto) : 0xff;
	b->status = CT(status);
	b->left = CT(timeout) - w->now;
	b->sport = o->orig.w[2]; b->dport = o->orig.w[4] >> 32;
	b->zone = CT_HAS(zone) ? CT(zone.id) : 0;
	b->zone_dir = CT_HAS(zone) ? CT(zone.dir) : 3;
	/* Whether the entry has memory for extensions: it contributes to the entry's memory use. */
	b->has = (u64)CT(ext) ? HAS_EXTENSIONS : 0;
	if (CT_HAS(secmark)) b->has |= any_bit(CT(secmark)) * HAS_SECMARK;
	b->mark = CT(mark); b->uses = CT(ct_general.use.refs.counter);
	b->netns = parts & NETNS ? CAST(struct net, CT(ct_net.net))->ns.inum : 0;
}

/* 0 if an entry is wanted. */
INLINE u32 unwanted(volatile struct walk *w, volatile struct region *o, volatile struct base *b)
{
	u32 d = ~(w->expiry >> (b->left <= 0)) & 1;
	if (conditions & ORIG) d |= differs(&o->orig, &w->orig, &w->orig_mask);
	if (conditions & ANSWER) d |= differs(&o->reply, &w->reply, &w->reply_mask);
	if (conditions & STATUS) d |= (b->status ^ w->status) & w->status_mask;
	if (conditions & MARK) d |= (b->mark ^ w->mark) & w->mark_mask;
	if (conditions & ZONE) d |= b->zone ^ w->zone;
	if (conditions & STATES) {
		u32 n = b->state & 15, proto = b->proto;
		if (proto == IPPROTO_SCTP) n += 16;
		if (proto == IPPROTO_DCCP) n += 32;
		d |= (b->state >> 4) | (~(w->states >> n) & 1);
	}
	return d;
}

INLINE void put_addresses(volatile struct base *b, u8 *r, volatile struct tuple *t, volatile struct tuple *q)
{
	volatile u32 *a = (u32 *)(r + ADDRESSES_AT);
	if (b->family != AF_INET6) {
		b->words = (ADDRESSES_AT + (parts & REPLY ? 16 : 8)) / 4;
		a[0] = t->w[0]; a[1] = t->w[2] >> 32;
		if (parts & REPLY) { a[2] = q->w[0]; a[3] = q->w[2] >> 32; }
		return;
	}
	b->words = (ADDRESSES_AT + (parts & REPLY ? 64 : 32)) / 4;
	a[0] = t->w[0]; a[1] = t->w[0] >> 32; a[2] = t->w[1]; a[3] = t->w[1] >> 32;
	a[4] = t->w[2] >> 32; a[5] = t->w[3]; a[6] = t->w[3] >> 32; a[7] = t->w[4];
	if (!(parts & REPLY)) return;
	a[8] = q->w[0]; a[9] = q->w[0] >> 32; a[10] = q->w[1]; a[11] = q->w[1] >> 32;
	a[12] = q->w[2] >> 32; a[13] = q->w[3]; a[14] = q->w[3] >> 32; a[15] = q->w[4];
}

/* Writes the row of the next entry found. If the entry is wanted, the row's length is added at the end; otherwise the
 * next row overwrites it. */
INLINE void put_found(volatile struct walk *w, volatile struct region *o)
{
	u32 row = w->row;
	if (row > ROWS - ROW_MAX) { w->ended = FULL; return; }
	u8 *r = (u8 *)o->rows + row;
	volatile struct base *b = (struct base *)r;
	w->node = o->found[PLACE(w->written)].node;
	w->from = o->found[PLACE(w->written)].from;
	w->written++;
	u64 ct = w->node - field_offset(struct nf_conn, tuplehash);
	if ((u64)CT(ct_net.net) != w->net && !w->all) return;
	take_tuple(&o->orig, w->node);
	if (parts & REPLY || conditions & ANSWER) take_tuple(&o->reply, w->node + type_size(struct nf_conntrack_tuple_hash));
	put_base(w, o, b, ct);
	if (unwanted(w, o, b)) return;
	if (parts & REPLY) {
		PART(answer, REPLY_AT)->sport = o->reply.w[2];
		PART(answer, REPLY_AT)->dport = o->reply.w[4] >> 32;
	}
	put_addresses(b, r, &o->orig, &o->reply);
	if (parts & EXTENSIONS) { w->ext = (u64)CT(ext); put_extensions(w, b, r); }
	FENCE();
	/* A freed entry has no reference, and the pprev of an entry that is now in another chain differs. */
	if (!CT(ct_general.use.refs.counter) || !(b->status & IPS_CONFIRMED)) { w->gone++; return; }
	w->bad = CAST(struct rtnl_link_stats64, w->node)->tx_packets ^ w->from;
	w->row = row + 4 * b->words;
}

INLINE int walk(volatile struct walk *w, int portioned)
{
	u32 key = w->region;
	struct region *o = bpf_map_lookup_elem(&out, &key);
	if (!o) return 1;
	bpf_rcu_read_lock();
	if (begin(w, o)) while (LOOP_OK) {
		if (w->at < w->lanes) {
			if (!(w->at & (GROUP - 1))) touch_lanes(o, w->at);
			step(w, o, portioned);
			continue;
		}
		/* The end of a round (every lane has made a step), or of a row. */
		if (w->bad || w->found > FOUND - LANES) {
			if (!w->bad) { w->ended = FULL; break; }
			/* The table changed in the meantime: repeats everything that is not committed. */
			if (++w->restarts > RETRIES_MAX) { w->ended = CONTENDED; break; }
			restart(w);
		}
		w->work += w->lanes;
		w->deepest = larger(w->deepest, ANY(w->lanes));
		/* The first lane that continues is the oldest: it has at least one more node. */
		w->deepest = larger(w->deepest, ANY(w->kept) * (u32)((o->lanes[0].end >> NODES_AT) + 1));
		w->lanes = w->kept; w->at = w->kept = 0;
		/* Opens further chains in place of those that ended, until enough entries are found. */
		if (w->written || w->found >= w->found_enough || w->bucket >= w->end) {
			if (w->lanes) continue;
			if (w->written < w->found) {
				if (!(w->written & (GROUP - 1))) touch_found(o, w->written);
				put_found(w, o);
				if (w->ended) break;
				continue;
			}
			commit(w);
			if (w->bucket >= w->end || w->work > w->nodes_max) break;
		}
		while (LOOP_OK) {
			if (w->bucket >= w->end || w->lanes >= (w->lanes_enough & 63)) break;
			open_lanes(w, o);
		}
	}
	digest(w);
	bpf_rcu_read_unlock();
	return 0;
}

SEC("syscall") int walk_conntrack(struct walk *ctx) { return walk(ctx, 0); }

/* The walk for a portion of the entries: a separate program, because the test would cost time at every step of the
 * other one. */
SEC("syscall") int walk_portion(struct walk *ctx) { return walk(ctx, 1); }
