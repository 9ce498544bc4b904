/* SPDX-License-Identifier: Dual BSD/GPL */
/* Walks the TCP hash tables and writes rows straight into memory that the reader has mapped: no netlink message, no
 * lock, no reference count. Needs Linux 6.9 (may_goto), CAP_BPF and CAP_PERFMON.
 *
 * crates/sockets/src/backends/bpf/rows.rs decodes the rows, crates/bpf/src/sockets_walk.rs runs the programs.
 *
 * Why this is correct without a lock. SLAB_TYPESAFE_BY_RCU: within an RCU section the memory of a socket stays that of
 * a socket, but it may be freed and reused for another connection, in another chain, while the program reads it. Three
 * checks detect this: its hash does not belong to the bucket, or the hash differs after the fields were copied, or the
 * nulls mark at the chain's end is that of another bucket. Then the rows of this chain are dropped and it is read
 * again. The kernel adds sockets at a chain's head, so a walk that has passed the head misses new sockets and no
 * others. */
#include "kernel.h"

/* The inode that embeds a socket. */
#define INODE_OF(socket) (CAST(struct socket_alloc, socket)->vfs_inode.i_ino)
#define HAS_INFO 1
#include "socket_rows.h"

LICENSE("Dual BSD/GPL");

/* include/linux/rculist_nulls.h, include/net/inet_hashtables.h */
enum { LISTENING_NULLS_BASE = 1 << 29 };

/* NETS_MAX only bounds the loop: the kernel's budget for loops allows twice as many steps, and no host has memory for
 * a fourth of that many namespaces. */
enum { REGION = 1 << 18, RETRIES_MAX = 1000, NETS_MAX = 1 << 22 };
/* The result of a call. */
enum { DONE = 0, NO_TABLE = 1, NO_NETNS = 2, FULL = 3, CONTENDED = 4 };
struct region { u8 b[REGION]; };
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(map_flags, BPF_F_MMAPABLE);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct region);
} out SEC(".maps");

/* Whether calls use `netns`. */
const volatile u32 by_number = 0;
/* In: buckets start..end, conditions. Out: the result of the call, where to continue, bytes written. The rest is state
 * of the walk.
 *
 * Values that live longer than a few lines are stored here, not in variables: the verifier assumes any value for a
 * number read from the context, so every iteration looks like the previous one, and all paths through an iteration end
 * in the same state. With variables it follows 180,000 instructions, with this struct 1,500. This is the purpose of
 * `volatile`. */
struct walk {
	u32 start, end;
	u32 netns;		/* inode of the namespace whose table is read; 0: the caller's */
	u32 all;		/* rows of every namespace */
	u32 states;		/* mask */
	u32 families;		/* mask: 1 IPv4, 2 IPv6 */
	u32 sport, sport_mask, dport, dport_mask;	/* host order */
	u32 off;		/* where the rows begin; later where they end */
	u32 next, restarts, buckets, pernet, status;
	u64 table;
	u64 link;		/* the chain's next link, odd at its end */
	u64 hash, net, now, sock;
	u32 bucket, mask, row, seen, state, left;
	u32 group, chains, at, zero;	/* chains of the group that have sockets, and how many of them were taken */
	u32 portion, portion_mask;	/* In, for a chain longer than the region: only sockets whose identity has these bits */
};
/* Number of chains that are read together, and number of sockets of each that are prefetched. */
enum { GROUP = 128, DEEP = 256 };
struct ahead { u64 link[GROUP]; u8 chain[GROUP]; };
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct ahead);
} ahead SEC(".maps");
struct namespace { u32 inum, pernet; u64 table; };

/* 1 if the object belongs to another portion. This depends on its address, which is constant for its life: a reader
 * that requests one portion after the other, each in a pass over the whole chain, gets every object once. */
INLINE int is_elsewhere(volatile struct walk *w, u64 address)
{
	return w->portion_mask && ((u32)hidden(address) ^ w->portion) & w->portion_mask;
}

/* Writes the row of w->sock to `r`, where ROW_MAX bytes are free; returns the bytes used. */
INLINE u32 put(volatile struct walk *w, u8 *r, struct tcp_sock *t, int listens)
{
	struct sock_common *c = &t->inet_conn.icsk_inet.sk.__sk_common;
	u32 bytes = put_base(r, c, w->state);
	if (parts & NETNS) { PART(netns, NETNS_AT)->inum = c->skc_net.net->ns.inum; PART(netns, NETNS_AT)->pad = 0; }
	if (parts & IDENTITY) *(u64 *)(r + IDENTITY_AT) = hidden(w->sock);
	u32 state = c->skc_state;
	if (!listens && state == TCP_TIME_WAIT) {
		struct inet_timewait_sock *tw = CAST(struct inet_timewait_sock, w->sock);
		put_small(r, MINISOCK, tw->tw_mark, 3, 0, tw->tw_timer.expires, w->now);
	} else if (!listens && state == TCP_NEW_SYN_RECV) {
		struct inet_request_sock *q = CAST(struct inet_request_sock, w->sock);
		put_small(r, REQUEST, q->ir_mark, 1, q->req.num_retrans, q->req.rsk_timer.expires, w->now);
	} else put_full(r, t, w->sock, listens, w->now);
	return bytes;
}

/* Sets w->net to the caller's namespace, or to the one with the inode `netns`; 0 if it does not exist. */
INLINE void find_net(volatile struct walk *w)
{
	/* CAST drops the trust of the current task; otherwise the verifier would look up every step by name (see
	 * PLAIN). */
	struct task_struct *task = CAST(struct task_struct, bpf_get_current_task_btf());
	w->net = (u64)task->nsproxy->net_ns;
	if (!by_number || !w->netns) return;
	w->sock = (u64)CAST(struct net, w->net)->ns.ops;
	w->link = w->net; w->left = NETS_MAX;
	while (LOOP_OK) {
		struct net *net = CAST(struct net, w->link);
		/* The list's head is not inside a namespace: the memory around it has no such `ops`. */
		if ((u64)net->ns.ops == w->sock && net->ns.inum == w->netns) { w->net = w->link; return; }
		w->link = (u64)net->list.next;
		w->link -= field_offset(struct net, list);
		if (w->link == w->net || !--w->left) break;
	}
	w->net = 0;
}

/* 1 if a < b, and the smaller of two numbers below 2^31. Without branches, which would double the verifier's paths. */
INLINE u32 below(u32 a, u32 b)
{
	u32 is = (a - b) >> 31;
	OPAQUE(is);
	return is;
}
INLINE u32 smaller(u32 a, u32 b) { return b + (a - b) * below(a, b); }

/* The mark at the end of a bucket's chain. */
#define CHAIN_END(bucket) (2 * (u64)(bucket) + 1)

/* Finds the table of connections or of listeners; 0 if there is none. */
INLINE int begin(volatile struct walk *w, u8 *o, int listens)
{
	w->now = bpf_jiffies64();
	put_head(o, SOCKETS, w->now);
	find_net(w);
	struct inet_hashinfo *hi = CAST(struct net, w->net)->ipv4.tcp_death_row.hashinfo;
	u32 mask = listens ? hi->lhash2_mask : hi->ehash_mask;
	w->hash = listens ? (u64)hi->lhash2 : (u64)hi->ehash;
	w->table = (u64)hi->ehash;
	w->table = hidden(w->table);
	w->mask = mask; w->buckets = mask + 1; w->pernet = hi->pernet;
	w->bucket = w->start - 1; w->link = CHAIN_END(w->bucket); w->row = w->off; w->restarts = 0;
	w->group = (w->start & ~7u) - GROUP; w->chains = w->at = 0;
	w->status = !w->net ? NO_NETNS : !w->hash ? NO_TABLE : DONE;
	if (w->end > mask + 1) w->end = mask + 1;
	return !w->status;
}

/* Prefetches: reads a word and discards it, so that its cache line has arrived when it is needed. */
#define TOUCH(field) ({ u64 word_ = (u64)(field); asm volatile("" : : "r"(word_)); })

/* Prefetches the cache lines that the row of a socket needs. Waiting for them one socket after the other would be most
 * of the walk's time. An address that cannot be read gives zero. */
INLINE void touch(struct tcp_sock *t)
{
	struct inet_connection_sock *i = &t->inet_conn;
	struct sock *sk = &i->icsk_inet.sk;
	TOUCH(sk->__sk_common.skc_hash);
	if (parts & (MARK | UID)) TOUCH(sk->sk_uid.val);
	if (parts & INODE) {
		if (field_exists(sk->sk_ino)) TOUCH(sk->sk_ino);
		else TOUCH(sk->sk_socket);
	}
	if (parts & TIMER) {
		TOUCH(i->icsk_pending);
		if (field_exists(i->icsk_keepalive_timer)) TOUCH(i->icsk_keepalive_timer.expires);
		else TOUCH(sk->sk_timer.expires);
	}
	if (parts & (QUEUES | PATH)) { TOUCH(t->copied_seq); TOUCH(t->rcv_nxt); }
	if (parts & (QUEUES | COUNTERS)) TOUCH(t->write_seq);
	if (parts & COUNTERS) TOUCH(t->bytes_received);
	if (parts & RESENT) { TOUCH(t->bytes_acked); TOUCH(t->bytes_retrans); }
	if (parts & MEMORY) {
		TOUCH(sk->sk_drops.counter); TOUCH(sk->sk_rcvbuf); TOUCH(sk->sk_sndbuf); TOUCH(sk->sk_wmem_queued);
	}
	if (parts & INFO) {
		TOUCH(sk->sk_pacing_rate); TOUCH(i->icsk_rto); TOUCH(t->mss_cache); TOUCH(t->advmss); TOUCH(t->segs_out);
		TOUCH(t->snd_nxt); TOUCH(t->rcv_tstamp); TOUCH(t->bytes_received); TOUCH(t->bytes_acked);
		TOUCH(t->dsack_dups); TOUCH(t->reord_seen); TOUCH(t->bytes_retrans);
	}
}

/* Remembers a chain of the group if it has a socket. */
#define HEAD_OF(word, nth) ({ \
	u64 head_ = (word); \
	a->link[n & GROUP - 1] = head_; a->chain[n & GROUP - 1] = (nth); \
	n += ~head_ & 1; })

/* Finds the chains of the next group that have sockets and prefetches these sockets: the first of every chain, then
 * the second of each chain that has one, and so on, so that a chain only waits for its own links. The walk reads every
 * link again: a wrong one here costs only time. */
INLINE void prefetch(volatile struct walk *w, struct ahead *a)
{
	u32 n = w->zero;
	u32 line = w->zero;
	/* A group begins at a cache line of the table; after the end of the table there are no chains. */
	u32 lines = smaller(w->buckets - w->group, GROUP);
	while (LOOP_OK) {
		struct rtnl_link_stats64 *heads = CAST(struct rtnl_link_stats64, w->hash + 8ull * (w->group + line));
		HEAD_OF(heads->rx_packets, line); HEAD_OF(heads->tx_packets, line + 1);
		HEAD_OF(heads->rx_bytes, line + 2); HEAD_OF(heads->tx_bytes, line + 3);
		HEAD_OF(heads->rx_errors, line + 4); HEAD_OF(heads->tx_errors, line + 5);
		HEAD_OF(heads->rx_dropped, line + 6); HEAD_OF(heads->tx_dropped, line + 7);
		line += 8;
		if (line >= lines) break;
	}
	w->chains = n; n = w->chains;
	/* Links are followed unchecked: the link of a freed socket may lead anywhere, even in a circle; DEEP bounds
	 * it. */
	u32 deep = w->zero;
	while (n && LOOP_OK) {
		u32 at = w->zero, more = w->zero;
		while (LOOP_OK) {
			u64 link = a->link[at & GROUP - 1];
			u64 next = WORD_AT(link);
			touch(CAST(struct tcp_sock, link - field_offset(struct sock_common, skc_nulls_node)));
			a->link[more & GROUP - 1] = next;
			/* The end of a chain is a small number; kernel addresses have the top bit set. */
			more += next >> 63;
			if (++at >= n) break;
		}
		n = more & -below(++deep, DEEP);
	}
}

/* Moves from the end of a chain to the head of the next one that has a socket, or to the next group; 0 after the
 * last. */
INLINE int next_chain(volatile struct walk *w, struct ahead *a)
{
	u32 at = w->at;
	w->off = w->row;
	if (at >= w->chains) {
		u32 group = w->group + GROUP;
		/* The first group may begin before the bucket at which this call continues. */
		u32 bucket = group + below(group, w->start) * (w->start - group);
		w->group = group; w->bucket = bucket;
		w->link = CHAIN_END(bucket);
		w->at = 0;
		if (group >= w->end) return 0;
		prefetch(w, a);
		return 1;
	}
	w->at = at + 1;
	u32 bucket = w->group + a->chain[at & GROUP - 1];
	u64 link = WORD_AT(w->hash + 8ull * bucket), passed = -(u64)below(bucket, w->start);
	w->bucket = bucket;
	/* A chain before the bucket at which this call continues counts as ended. */
	w->link = (link & ~passed) | (CHAIN_END(bucket) & passed);
	return bucket < w->end;
}

/* The state as sock_diag reports it: SYN_RECV of a request socket, the substate of a time-wait socket. */
INLINE void note_state(volatile struct walk *w, struct sock_common *c)
{
	u32 state = c->skc_state;
	w->state = state == TCP_NEW_SYN_RECV ? TCP_SYN_RECV : state;
	if (state == TCP_TIME_WAIT) w->state = CAST(struct inet_timewait_sock, w->sock)->tw_substate;
}

/* 0 if the socket is wanted. */
INLINE u32 unwanted(volatile struct walk *w, struct sock_common *c)
{
	u32 passes = w->states >> (w->state & 31) & w->families >> (c->skc_family >> 3 & 1) & 1;
	u32 sport = (c->skc_num ^ w->sport) & w->sport_mask;
	u32 dport = (bswap16(c->skc_dport) ^ w->dport) & w->dport_mask;
	return (passes ^ 1) | sport | dport;
}

SEC("syscall") int walk_ehash(struct walk *ctx)
{
	volatile struct walk *w = ctx;
	u32 key = 0;
	u8 *o = bpf_map_lookup_elem(&out, &key);
	struct ahead *a = bpf_map_lookup_elem(&ahead, &key);
	if (!o || !a) return 1;
	bpf_rcu_read_lock();
	if (begin(w, o, 0)) while (LOOP_OK) {
		u64 link = w->link;
		if (link == CHAIN_END(w->bucket)) {
			if (!next_chain(w, a)) break;
			continue;
		}
		w->sock = link - field_offset(struct sock_common, skc_nulls_node);
		struct tcp_sock *t = CAST(struct tcp_sock, w->sock);
		struct sock_common *c = &t->inet_conn.icsk_inet.sk.__sk_common;
		w->seen = c->skc_hash;
		w->link = (u64)c->skc_nulls_node.next;
		u32 strange = ((w->seen ^ w->bucket) & w->mask) | ((u32)link & 1);
		if (!strange && w->link) {
			if ((u64)c->skc_net.net != w->net && !w->all) continue;
			if (is_elsewhere(w, w->sock)) continue;
			note_state(w, c);
			if (unwanted(w, c)) continue;
			u32 row = w->row;
			if (row > REGION - ROW_MAX) { w->status = FULL; break; }
			w->row = row + put(w, o + row, t, 0);
			FENCE();
			/* A socket that has left the table (no pprev) may also be in this chain as a time-wait
			 * socket. */
			if (c->skc_hash == w->seen && (u64)c->skc_nulls_node.pprev) continue;
		}
		/* It was freed and reused, in another chain or while it was being copied: reads this chain again. */
		if (++w->restarts > RETRIES_MAX) { w->status = CONTENDED; break; }
		w->row = w->off;
		w->link = WORD_AT(w->hash + 8ull * w->bucket);
	}
	bpf_rcu_read_unlock();
	w->next = w->bucket;
	return 0;
}

/* Listeners: one small table for all namespaces. Their hash does not identify the bucket; the mark at the chain's end
 * does. */
SEC("syscall") int walk_listeners(struct walk *ctx)
{
	volatile struct walk *w = ctx;
	u32 key = 0;
	u8 *o = bpf_map_lookup_elem(&out, &key);
	if (!o) return 1;
	bpf_rcu_read_lock();
	if (begin(w, o, 1)) {
		w->state = TCP_LISTEN;
		w->link = 2 * (LISTENING_NULLS_BASE + (u64)w->bucket) + 1;
		while (LOOP_OK) {
			u64 link = w->link;
			if (link & 1 || !link) {
				if (link >> 1 == LISTENING_NULLS_BASE + (u64)w->bucket) {
					w->off = w->row;
					if (++w->bucket >= w->end) break;
				} else if (++w->restarts > RETRIES_MAX) { w->status = CONTENDED; break; }
				w->row = w->off;
				w->link = WORD_AT(w->hash + (u64)w->bucket * type_size(struct inet_listen_hashbucket)
					+ field_offset(struct inet_listen_hashbucket, nulls_head));
				continue;
			}
			w->sock = link - field_offset(struct sock_common, skc_nulls_node);
			struct tcp_sock *t = CAST(struct tcp_sock, w->sock);
			struct sock_common *c = &t->inet_conn.icsk_inet.sk.__sk_common;
			w->link = (u64)c->skc_nulls_node.next;
			if (c->skc_state != TCP_LISTEN || ((u64)c->skc_net.net != w->net && !w->all)) continue;
			if (is_elsewhere(w, w->sock) || unwanted(w, c)) continue;
			u32 row = w->row;
			if (row > REGION - ROW_MAX) { w->status = FULL; break; }
			w->row = row + put(w, o + row, t, 1);
			u64 bits = WORD_AT(w->sock + field_info(c->skc_ipv6only, 0));
			bits = bits << field_info(c->skc_ipv6only, 4) >> field_info(c->skc_ipv6only, 5);
			if (bits) ((struct base *)(o + row))->kind = V6ONLY;
		}
	}
	bpf_rcu_read_unlock();
	w->next = w->bucket;
	return 0;
}

/* Every network namespace of the kernel, including those without a name or a process. */
SEC("syscall") int list_namespaces(struct walk *ctx)
{
	volatile struct walk *w = ctx;
	u32 key = 0;
	u8 *o = bpf_map_lookup_elem(&out, &key);
	if (!o) return 1;
	put_head(o, NAMESPACES, bpf_jiffies64());
	bpf_rcu_read_lock();
	struct task_struct *task = CAST(struct task_struct, bpf_get_current_task_btf());
	w->link = w->net = (u64)task->nsproxy->net_ns;
	w->sock = (u64)CAST(struct net, w->net)->ns.ops;
	w->status = DONE; w->left = NETS_MAX;
	while (LOOP_OK) {
		struct net *net = CAST(struct net, w->link);
		/* The list's head is not inside a namespace: the memory around it has no such `ops`. */
		if ((u64)net->ns.ops == w->sock && !is_elsewhere(w, w->link)) {
			struct inet_hashinfo *hi = net->ipv4.tcp_death_row.hashinfo;
			u32 row = w->off;
			if (row > REGION - ROW_MAX) { w->status = FULL; break; }
			struct namespace *r = (struct namespace *)(o + row);
			w->table = (u64)hi->ehash;
			r->inum = net->ns.inum; r->pernet = hi->pernet; r->table = hidden(w->table);
			w->off = row + sizeof *r;
		}
		w->link = (u64)net->list.next;
		w->link -= field_offset(struct net, list);
		if (w->link == w->net) break;
		if (!--w->left) { w->status = CONTENDED; break; }
	}
	bpf_rcu_read_unlock();
	return 0;
}
