/* SPDX-License-Identifier: Dual BSD/GPL */
/* The TCP hash tables, walked by ourselves: rows go straight into memory that the reader has mapped. No netlink
 * message, no lock, no reference count a socket. Kernel 6.9 (may_goto); CAP_BPF and CAP_PERFMON.
 *
 * What a row looks like is said in crates/sockets/src/bpf_rows.rs, who calls this in crates/bpf/src/sockets_walk.rs.
 *
 * Why it is right without a lock. Sockets lie in memory that stays sockets while an RCU section lasts, but one may be
 * freed and used again for another connection, in another chain, while we stand on it. Two things betray that: its
 * hash does not belong to the bucket, or it is another one after the fields were copied. Then the rows of this group
 * of eight buckets are forgotten and the group is read again. New sockets are put at a chain's head, so who has passed
 * the head misses them and nothing else. */
#include "kernel.h"

LICENSE("Dual BSD/GPL");

/* include/net/inet_connection_sock.h: ICSK_TIME_RETRANS, ICSK_TIME_PROBE0, ICSK_TIME_LOSS_PROBE, ICSK_TIME_REO_TIMEOUT */
enum { RETRANS = 1, PROBE0 = 3, LOSS_PROBE = 5, REO_TIMEOUT = 6 };
/* include/linux/rculist_nulls.h, include/net/inet_hashtables.h */
enum { LISTENING_NULLS_BASE = 1 << 29 };

enum { REGION = 1 << 18, HEAD = 32, ROW_MAX = 160, RETRIES_MAX = 1000, NETS_MAX = 1 << 16 };
enum { MAGIC = 0x316b776e };			/* "nwk1" */
/* Parts that follow the base of a row, in this order. */
enum { BOUND = 1, TIMER = 2, NETNS = 4, IDENTITY = 8, COUNTERS = 16 };
/* How a call ended. */
enum { DONE = 0, NO_TABLE = 1, NO_NETNS = 2, FULL = 3, UNQUIET = 4 };
/* Kinds of rows beside ordinary ones. */
enum { MINISOCK = 1, REQUEST = 2, V6ONLY = 4 };
/* Kinds of blocks. */
enum { SOCKETS = 1, NAMESPACES = 2 };

struct region { u8 b[REGION]; };
struct { MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY); MAP_NUMBER(map_flags, BPF_F_MMAPABLE); MAP_NUMBER(max_entries, 1); MAP_TYPE(key, u32); MAP_TYPE(value, struct region); } out SEC(".maps");

/* Fixed when the program is loaded, so that the verifier leaves out what is not wanted. */
const volatile u32 parts = BOUND | TIMER | NETNS | IDENTITY | COUNTERS;
/* Whether `netns` of a call is looked at. */
const volatile u32 by_number = 0;
/* Secret of this run: no address of the kernel's leaves it bare. */
const volatile u64 salt_add = 0, salt_times = 1;

/* In: buckets start..end, what passes. Out: how it ended, where to go on, bytes written. The rest is the walk's own:
 * what a loop changes stands here and not on the stack, so that to the verifier every turn of it looks like the one
 * before (2,000 instead of 200,000 instructions followed). Hence the volatile. */
struct walk {
	u32 start, end;
	u32 netns;		/* whose table: number of the namespace; 0 is the caller's */
	u32 all;		/* rows of every namespace, not of that one only */
	u32 states;		/* mask */
	u32 families;		/* mask: 1 IPv4, 2 IPv6 */
	u32 sport, sport_mask, dport, dport_mask;	/* host order */
	u32 off;		/* where the rows begin; then where they end */
	u32 next, restarts, buckets, pernet, status;
	u64 table;
	u64 n, hash, net, net_mask, now;
	u32 bucket, mask, row, left;
};
struct head { u32 magic, parts; u64 jiffies, ktime_ns; u32 kind, pad; };
struct base { u8 words, family, state, kind; u16 lport, rport; u32 rqueue, wqueue, inode, uid; };
struct bound { u32 ifindex, mark; };
struct timer { u32 jiffies; u8 timer, retrans; u16 pad; };
struct netns { u32 inum, pad; };
struct namespace { u32 inum, pernet; u64 table; };
struct counters { u64 received, acked, sent, retransmitted; u32 segs_in, segs_out, retrans, srtt, mdev, cwnd; };

/* One way for whoever lacks the salts. */
INLINE u64 hidden(u64 address)
{
	u64 h = (address + salt_add) * salt_times;
	h = (h ^ h >> 32) * salt_times + salt_add;
	return h ^ h >> 29;
}

INLINE u32 inode_of(struct sock *sk)
{
	if (field_exists(sk->sk_ino)) return sk->sk_ino;
	u64 so = (u64)sk->sk_socket;	/* the inode that embeds it */
	return so ? CAST(struct socket_alloc, so)->vfs_inode.i_ino : 0;
}

INLINE void put_timer(u8 *p, u8 timer, u8 retrans, u64 expires, u64 now)
{
	struct timer *r = (struct timer *)p;
	s64 left = expires - now;
	r->jiffies = left > 0 ? left : 0; r->timer = timer; r->retrans = retrans; r->pad = 0;
}

/* As inet_sk_diag_fill has it (net/ipv4/inet_diag.c). Every branch writes by itself: what they leave behind is the
 * same to the verifier, which then follows but one of them to the end. */
INLINE void put_socket_timer(u8 *p, struct inet_connection_sock *i, u64 now)
{
	u32 pending = i->icsk_pending;
	u64 expires;
	if (1 << (pending & 31) & (1 << RETRANS | 1 << LOSS_PROBE | 1 << REO_TIMEOUT | 1 << PROBE0)) {
		if (field_exists(i->icsk_timeout)) expires = i->icsk_timeout;
		else if (field_exists(i->icsk_inet.sk.tcp_retransmit_timer)) expires = i->icsk_inet.sk.tcp_retransmit_timer.expires;
		else expires = i->icsk_retransmit_timer.expires;
		if (pending == PROBE0) put_timer(p, 4, i->icsk_probes_out, expires, now);
		else put_timer(p, 1, i->icsk_retransmits, expires, now);
		return;
	}
	u64 waits;
	if (field_exists(i->icsk_keepalive_timer)) { waits = WORD_AT(&i->icsk_keepalive_timer.entry.pprev); expires = i->icsk_keepalive_timer.expires; }
	else { waits = WORD_AT(&i->icsk_inet.sk.sk_timer.entry.pprev); expires = i->icsk_inet.sk.sk_timer.expires; }
	if (waits) put_timer(p, 2, i->icsk_probes_out, expires, now);
	else put_timer(p, 0, 0, now, now);
}

INLINE void put_counters(struct counters *n, struct tcp_sock *t)
{
	n->received = t->bytes_received; n->acked = t->bytes_acked; n->sent = t->bytes_sent; n->retransmitted = t->bytes_retrans;
	n->segs_in = t->segs_in; n->segs_out = t->segs_out; n->retrans = t->total_retrans;
	n->srtt = t->srtt_us; n->mdev = t->mdev_us; n->cwnd = t->snd_cwnd;
}

INLINE void put_full(struct base *r, u8 *p, u64 sock, int listens, u64 now)
{
	struct tcp_sock *t = CAST(struct tcp_sock, sock);
	struct sock *sk = &t->inet_conn.icsk_inet.sk;
	if (listens) {
		const u32 at = field_info(sk->__sk_common.skc_ipv6only, 0);
		u64 word = WORD_AT(sock + at);
		word = word << field_info(sk->__sk_common.skc_ipv6only, 4) >> field_info(sk->__sk_common.skc_ipv6only, 5);
		r->kind = word ? V6ONLY : 0; r->rqueue = sk->sk_ack_backlog; r->wqueue = sk->sk_max_ack_backlog;
	} else {
		s32 q = t->rcv_nxt - t->copied_seq;
		r->kind = 0; r->rqueue = q > 0 ? q : 0; r->wqueue = t->write_seq - t->snd_una;
	}
	r->uid = sk->sk_uid.val; r->inode = inode_of(sk);
	if (parts & BOUND) { ((struct bound *)p)->mark = sk->sk_mark; p += sizeof(struct bound); }
	if (parts & TIMER) { put_socket_timer(p, &t->inet_conn, now); p += sizeof(struct timer); }
	if (parts & COUNTERS) put_counters((struct counters *)p, t);
}

/* Half-open and time-wait sockets are small: nothing behind sock_common is theirs but their own few fields. */
INLINE void put_small(struct base *r, u8 *p, u8 kind, u32 mark, u8 timer, u8 retrans, u64 expires, u64 now)
{
	r->kind = kind; r->rqueue = r->wqueue = r->inode = r->uid = 0;
	if (parts & BOUND) { ((struct bound *)p)->mark = mark; p += sizeof(struct bound); }
	if (parts & TIMER) { put_timer(p, timer, retrans, expires, now); p += sizeof(struct timer); }
	if (parts & COUNTERS) for (u32 i = 0; i < sizeof(struct counters) / 8; i++) ((u64 *)p)[i] = 0;
}

/* Bytes of the parts. */
INLINE u32 parts_bytes(void)
{
	return (parts & BOUND ? sizeof(struct bound) : 0) + (parts & TIMER ? sizeof(struct timer) : 0)
		+ (parts & COUNTERS ? sizeof(struct counters) : 0) + (parts & NETNS ? sizeof(struct netns) : 0)
		+ (parts & IDENTITY ? 8 : 0);
}

/* Writes a row to `r`, where ROW_MAX bytes are free; the bytes used. */
INLINE u32 put(struct base *r, u64 sock, u32 st, u32 shown, int listens, u64 now)
{
	struct sock_common *c = CAST(struct sock_common, sock);
	u32 family = c->skc_family, v6 = family >> 3 & 1;	/* 2 or 10 */
	u32 *a = (u32 *)(r + 1);
	u8 *p = (u8 *)(r + 1) + 8 + 24 * v6;
	r->family = family; r->state = shown; r->lport = c->skc_num; r->rport = __builtin_bswap16(c->skc_dport);
	if (v6) for (int i = 0; i < 4; i++) { a[i] = c->skc_v6_rcv_saddr.in6_u.u6_addr32[i]; a[4 + i] = c->skc_v6_daddr.in6_u.u6_addr32[i]; }
	else { a[0] = c->skc_rcv_saddr; a[1] = c->skc_daddr; }
	u8 *q = p + (parts & BOUND ? sizeof(struct bound) : 0) + (parts & TIMER ? sizeof(struct timer) : 0) + (parts & COUNTERS ? sizeof(struct counters) : 0);
	if (parts & BOUND) ((struct bound *)p)->ifindex = c->skc_bound_dev_if;
	if (parts & NETNS) { ((struct netns *)q)->inum = c->skc_net.net->ns.inum; ((struct netns *)q)->pad = 0; q += sizeof(struct netns); }
	if (parts & IDENTITY) *(u64 *)q = hidden(sock);
	if (!listens && st == TCP_TIME_WAIT) {
		struct inet_timewait_sock *tw = CAST(struct inet_timewait_sock, sock);
		put_small(r, p, MINISOCK, tw->tw_mark, 3, 0, tw->tw_timer.expires, now);
	} else if (!listens && st == TCP_NEW_SYN_RECV) {
		struct inet_request_sock *rq = CAST(struct inet_request_sock, sock);
		put_small(r, p, REQUEST, rq->ir_mark, 1, rq->req.num_retrans, rq->req.rsk_timer.expires, now);
	} else put_full(r, p, sock, listens, now);
	u32 bytes = sizeof(struct base) + 8 + 24 * v6 + parts_bytes();
	r->words = bytes / 4;
	return bytes;
}

/* The namespace with that number, by the list of all; the caller's for 0. 0 if there is none. */
INLINE u64 find_net(u64 own, volatile struct walk *w)
{
	if (!by_number || !w->netns) return own;
	const long list = field_offset(struct net, list);
	u64 ops = WORD_AT(&CAST(struct net, own)->ns.ops);
	w->n = own; w->left = NETS_MAX;
	while (LOOP_OK) {
		u64 at = w->n;
		struct net *net = CAST(struct net, at);
		/* The list's head is in no namespace: what lies around it has other operations. */
		if (WORD_AT(&net->ns.ops) == ops && net->ns.inum == w->netns) return at;
		w->n = at = WORD_AT(at + list) - list;
		if (at == own || !--w->left) break;
	}
	return 0;
}

INLINE void put_head(u8 *o, u32 kind, u64 now)
{
	struct head *h = (struct head *)o;
	h->magic = MAGIC; h->parts = parts; h->jiffies = now; h->ktime_ns = bpf_ktime_get_ns(); h->kind = kind; h->pad = 0;
}

/* All ones if a == b, without a branch: each would double what the verifier has to follow. */
INLINE u32 same(u32 a, u32 b)
{
	u32 other = ((u64)(a ^ b) + 0xffffffffull) >> 32;
	OPAQUE(other);
	return other - 1;
}

/* What a listing calls the state: a request socket is SYN_RECV, a time-wait one what it waits in. The one load falls
 * on skc_state or on tw_substate: no further cache line for those that have no such field, and no branch. */
INLINE u32 shown_state(u64 sock, u32 st)
{
	const long apart = field_offset(struct inet_timewait_sock, tw_substate) - field_offset(struct sock_common, skc_state);
	u32 tw = same(st, TCP_TIME_WAIT), request = same(st, TCP_NEW_SYN_RECV);
	u32 state = CAST(struct inet_timewait_sock, sock - (apart & ~(u64)(long)(s32)tw))->tw_substate;
	return (TCP_SYN_RECV & request) | (state & ~request);
}

/* 0 if the socket is wanted. */
INLINE u64 unwanted(volatile struct walk *w, struct sock_common *c, u32 shown)
{
	u32 passes = w->states >> (shown & 31) & w->families >> (c->skc_family >> 3 & 1) & 1;
	u32 sport = (c->skc_num ^ w->sport) & w->sport_mask;
	u32 dport = (__builtin_bswap16(c->skc_dport) ^ w->dport) & w->dport_mask;
	return (passes ^ 1) | sport | dport | ((WORD_AT(&c->skc_net.net) ^ w->net) & w->net_mask);
}

/* Finds the table of connections or of listeners; 0 if there is none. */
INLINE int begin(volatile struct walk *w, u8 *o, int listens)
{
	u64 net = find_net(WORD_AT(&bpf_get_current_task_btf()->nsproxy->net_ns), w);
	struct inet_hashinfo *hi = CAST(struct net, net)->ipv4.tcp_death_row.hashinfo;
	u64 hash = listens ? WORD_AT(&hi->lhash2) : WORD_AT(&hi->ehash);
	u32 mask = listens ? hi->lhash2_mask : hi->ehash_mask;
	w->now = bpf_jiffies64();
	put_head(o, SOCKETS, w->now);
	w->hash = hash; w->mask = mask; w->buckets = mask + 1; w->pernet = hi->pernet; w->table = hidden(hash);
	w->net = net; w->net_mask = w->all ? 0 : ~0ull;
	w->n = 1; w->bucket = w->start - 1; w->row = w->off; w->restarts = 0;
	w->status = !net ? NO_NETNS : !hash ? NO_TABLE : DONE;
	if (w->end > mask + 1) w->end = mask + 1;
	return !w->status;
}

/* From the end of a chain to the head of the next; 0 after the last. */
INLINE int next_chain(volatile struct walk *w)
{
	u32 b = w->bucket + 1;
	u64 a = w->hash + 8ull * b, n = WORD_AT(a);	/* a bucket is one word, eight are a cache line */
	w->off = w->row;
	/* Eight at once, if none has a socket. */
	if (!(b & 7) && (n & WORD_AT(a + 8) & WORD_AT(a + 16) & WORD_AT(a + 24) & WORD_AT(a + 32) & WORD_AT(a + 40) & WORD_AT(a + 48) & WORD_AT(a + 56) & 1)) b += 7;
	w->bucket = b; w->n = n;
	return b < w->end;
}

SEC("syscall") int walk_ehash(struct walk *ctx)
{
	volatile struct walk *w = ctx;
	const long link = field_offset(struct sock_common, skc_nulls_node);
	u32 key = 0;
	u8 *o = bpf_map_lookup_elem(&out, &key);
	if (!o) return 1;
	bpf_rcu_read_lock();
	if (begin(w, o, 0)) while (LOOP_OK) {
		u64 n = w->n;
		if (n & 1) {
			if (!next_chain(w)) break;
			continue;
		}
		u64 sock = n - link;
		struct sock_common *c = CAST(struct sock_common, sock);
		u32 h = c->skc_hash, st = c->skc_state, moved = (h ^ w->bucket) & w->mask;
		u32 shown = shown_state(sock, st);
		w->n = WORD_AT(n);
		if (!moved && !unwanted(w, c, shown)) {
			u32 row = w->row;
			if (row > REGION - ROW_MAX) { w->status = FULL; break; }
			w->row = row + put((struct base *)(o + row), sock, st, shown, 0, w->now);
			moved = c->skc_hash ^ h;	/* used again while we copied? */
		}
		if (moved || !w->n) {			/* the chain again */
			if (++w->restarts > RETRIES_MAX) { w->status = UNQUIET; break; }
			w->row = w->off;
			w->n = WORD_AT(w->hash + 8ull * w->bucket);
		}
	}
	bpf_rcu_read_unlock();
	w->next = w->bucket;
	return 0;
}

/* Listeners: one small table for all namespaces. Their hash says nothing of the bucket; the mark at the chain's end
 * does. */
SEC("syscall") int walk_listeners(struct walk *ctx)
{
	volatile struct walk *w = ctx;
	const long link = field_offset(struct sock_common, skc_nulls_node), head = field_offset(struct inet_listen_hashbucket, nulls_head);
	u32 key = 0;
	u8 *o = bpf_map_lookup_elem(&out, &key);
	if (!o) return 1;
	bpf_rcu_read_lock();
	if (begin(w, o, 1)) {
		w->n = 2 * (LISTENING_NULLS_BASE + (u64)w->bucket) + 1;
		while (LOOP_OK) {
			u64 n = w->n;
			u32 b = w->bucket;
			if (n & 1 || !n) {
				if (n >> 1 == LISTENING_NULLS_BASE + (u64)b) {
					w->off = w->row; w->bucket = ++b;
					if (b >= w->end) break;
				} else if (++w->restarts > RETRIES_MAX) { w->status = UNQUIET; break; }
				w->row = w->off;
				w->n = WORD_AT(w->hash + (u64)b * type_size(struct inet_listen_hashbucket) + head);
				continue;
			}
			u64 sock = n - link;
			struct sock_common *c = CAST(struct sock_common, sock);
			w->n = WORD_AT(n);
			if (c->skc_state != TCP_LISTEN || unwanted(w, c, TCP_LISTEN)) continue;
			u32 row = w->row;
			if (row > REGION - ROW_MAX) { w->status = FULL; break; }
			w->row = row + put((struct base *)(o + row), sock, TCP_LISTEN, TCP_LISTEN, 1, w->now);
		}
	}
	bpf_rcu_read_unlock();
	w->next = w->bucket;
	return 0;
}

/* Every network namespace the kernel knows, also those without a name or a process. */
SEC("syscall") int list_namespaces(struct walk *ctx)
{
	volatile struct walk *w = ctx;
	const long list = field_offset(struct net, list);
	u32 key = 0;
	u8 *o = bpf_map_lookup_elem(&out, &key);
	if (!o) return 1;
	put_head(o, NAMESPACES, bpf_jiffies64());
	u64 own = WORD_AT(&bpf_get_current_task_btf()->nsproxy->net_ns);
	bpf_rcu_read_lock();
	u64 ops = WORD_AT(&CAST(struct net, own)->ns.ops);
	w->n = own; w->status = DONE; w->left = NETS_MAX; w->bucket = 0;
	while (LOOP_OK) {
		u64 at = w->n;
		u32 row = w->off;
		struct net *net = CAST(struct net, at);
		/* The list's head is in no namespace: what lies around it has other operations. */
		if (WORD_AT(&net->ns.ops) == ops) {
			struct inet_hashinfo *hi = net->ipv4.tcp_death_row.hashinfo;
			struct namespace *r = (struct namespace *)(o + row);
			if (row > REGION - ROW_MAX) { w->status = FULL; break; }
			r->inum = net->ns.inum; r->pernet = hi->pernet; r->table = hidden(WORD_AT(&hi->ehash));
			w->off = row + sizeof *r;
		}
		w->n = at = WORD_AT(at + list) - list;
		if (at == own) break;
		if (!--w->left) { w->status = UNQUIET; break; }
	}
	bpf_rcu_read_unlock();
	return 0;
}
