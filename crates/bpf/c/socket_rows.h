/* SPDX-License-Identifier: Dual BSD/GPL
 *
 * A TCP socket as a row: the walk and the iterator write it, and crates/sockets/src/backends/bpf/rows.rs decodes it.
 *
 * A block is a head followed by rows. A row consists of its base, the parts that the head names, and its addresses.
 * Before including this file, define how the inode of a socket is read: INODE_OF(struct socket *).
 */
#pragma once
#include "kernel.h"

enum { HEAD = 32, ROW_MAX = 160 };
enum { MAGIC = 0x316b776e };			/* "nwk1" */
/* include/net/inet_connection_sock.h: ICSK_TIME_RETRANS, ICSK_TIME_PROBE0, ICSK_TIME_LOSS_PROBE,
 * ICSK_TIME_REO_TIMEOUT */
enum { RETRANS = 1, PROBE0 = 3, LOSS_PROBE = 5, REO_TIMEOUT = 6 };
/* Parts that follow the base of a row, in this order. */
enum { BOUND = 1, TIMER = 2, NETNS = 4, IDENTITY = 8, COUNTERS = 16 };
/* Members that always have a place but are filled in only with these bits, otherwise 0, because they need cache lines
 * that contain little else: the queues; among the counters those for retransmitted and acknowledged data; the mark in
 * `bound`; uid and inode; among the counters the round-trip time and the window. */
enum { QUEUES = 32, RESENT = 64, MARK = 128, UID = 256, INODE = 512, PATH = 1024 };
/* Kinds of rows other than ordinary ones. */
enum { MINISOCK = 1, REQUEST = 2, V6ONLY = 4 };
/* Kinds of blocks. */
enum { SOCKETS = 1, NAMESPACES = 2 };

/* Set before loading and constant from then on, so that the verifier removes the code of parts that are not wanted. */
const volatile u32 parts = BOUND | TIMER | COUNTERS | NETNS | IDENTITY | QUEUES | RESENT | MARK | UID | INODE | PATH;

/* Random words of this run: kernel addresses leave the program only hashed with them. */
const volatile u64 salt_add = 0, salt_times = 1;

struct head { u32 magic, parts; u64 jiffies, ktime_ns; u32 kind, pad; };
struct base { u8 words, family, state, kind; u16 lport, rport; u32 rqueue, wqueue, inode, uid; };
struct bound { u32 ifindex, mark; };
struct timer { u32 jiffies; u8 timer, retrans; u16 pad; };
struct counters { u64 received, acked, sent, retransmitted; u32 segs_in, segs_out, retrans, srtt, mdev, cwnd; };
struct netns { u32 inum, pad; };

/* Offsets of the parts of a row; the addresses come last because their length varies. */
#define SIZE_IF(part, type) (parts & (part) ? sizeof(type) : 0)
#define BOUND_AT (sizeof(struct base))
#define TIMER_AT (BOUND_AT + SIZE_IF(BOUND, struct bound))
#define COUNTERS_AT (TIMER_AT + SIZE_IF(TIMER, struct timer))
#define NETNS_AT (COUNTERS_AT + SIZE_IF(COUNTERS, struct counters))
#define IDENTITY_AT (NETNS_AT + SIZE_IF(NETNS, struct netns))
#define ADDRESSES_AT (IDENTITY_AT + SIZE_IF(IDENTITY, u64))
#define PART(type, at) ((struct type *)(r + (at)))

/* A hash that cannot be reversed without the random words. */
INLINE u64 hidden(u64 address)
{
	u64 h = (address + salt_add) * salt_times;
	h = (h ^ h >> 32) * salt_times + salt_add;
	return h ^ h >> 29;
}

INLINE void put_timer(u8 *r, u8 timer, u8 retrans, u64 expires, u64 now)
{
	if (!(parts & TIMER)) return;
	s64 left = expires - now;
	PART(timer, TIMER_AT)->jiffies = left > 0 ? left : 0;
	PART(timer, TIMER_AT)->timer = timer; PART(timer, TIMER_AT)->retrans = retrans; PART(timer, TIMER_AT)->pad = 0;
}

/* Follows inet_sk_diag_fill (net/ipv4/inet_diag.c). */
INLINE void put_running_timer(u8 *r, struct inet_connection_sock *i, u64 now)
{
	if (!(parts & TIMER)) return;
	u32 pending = i->icsk_pending;
	u64 expires;
	if (1 << (pending & 31) & (1 << RETRANS | 1 << LOSS_PROBE | 1 << REO_TIMEOUT | 1 << PROBE0)) {
		if (field_exists(i->icsk_timeout)) expires = i->icsk_timeout;
		else if (field_exists(i->icsk_inet.sk.tcp_retransmit_timer)) expires = i->icsk_inet.sk.tcp_retransmit_timer.expires;
		else expires = i->icsk_retransmit_timer.expires;
		if (pending == PROBE0) put_timer(r, 4, i->icsk_probes_out, expires, now);
		else put_timer(r, 1, i->icsk_retransmits, expires, now);
		return;
	}
	u64 waits;
	if (field_exists(i->icsk_keepalive_timer)) {
		waits = (u64)i->icsk_keepalive_timer.entry.pprev;
		expires = i->icsk_keepalive_timer.expires;
	} else {
		waits = (u64)i->icsk_inet.sk.sk_timer.entry.pprev;
		expires = i->icsk_inet.sk.sk_timer.expires;
	}
	if (waits) put_timer(r, 2, i->icsk_probes_out, expires, now);
	else put_timer(r, 0, 0, now, now);
}

INLINE void put_counters(u8 *r, struct tcp_sock *t)
{
	if (!(parts & COUNTERS)) return;
	struct counters *n = PART(counters, COUNTERS_AT);
	n->received = t->bytes_received; n->sent = t->bytes_sent; n->segs_in = t->segs_in; n->segs_out = t->segs_out;
	if (parts & RESENT) { n->acked = t->bytes_acked; n->retransmitted = t->bytes_retrans; n->retrans = t->total_retrans; }
	else { n->acked = n->retransmitted = 0; n->retrans = 0; }
	if (parts & PATH) { n->srtt = t->srtt_us; n->mdev = t->mdev_us; n->cwnd = t->snd_cwnd; }
	else n->srtt = n->mdev = n->cwnd = 0;
}

INLINE void put_inode(struct base *b, struct sock *sk)
{
	if (!(parts & INODE)) { b->inode = 0; return; }
	if (field_exists(sk->sk_ino)) { b->inode = sk->sk_ino; return; }
	struct socket *so = sk->sk_socket;
	b->inode = so ? INODE_OF(so) : 0;
}

INLINE void put_full(u8 *r, struct tcp_sock *t, int listens, u64 now)
{
	struct base *b = (struct base *)r;
	struct sock *sk = &t->inet_conn.icsk_inet.sk;
	if (!(parts & QUEUES)) b->rqueue = b->wqueue = 0;
	else if (listens) { b->rqueue = sk->sk_ack_backlog; b->wqueue = sk->sk_max_ack_backlog; }
	else {
		s32 q = t->rcv_nxt - t->copied_seq;
		b->rqueue = q > 0 ? q : 0; b->wqueue = t->write_seq - t->snd_una;
	}
	b->uid = 0;
	if (parts & UID) b->uid = sk->sk_uid.val;
	if (parts & BOUND) PART(bound, BOUND_AT)->mark = 0;
	if (parts & BOUND && parts & MARK) PART(bound, BOUND_AT)->mark = sk->sk_mark;
	put_running_timer(r, &t->inet_conn, now);
	put_counters(r, t);
	put_inode(b, sk);
}

/* Half-open and time-wait sockets are small: they have only a few fields after sock_common. */
INLINE void put_small(u8 *r, u8 kind, u32 mark, u8 timer, u8 retrans, u64 expires, u64 now)
{
	struct base *b = (struct base *)r;
	b->kind = kind; b->rqueue = b->wqueue = b->inode = b->uid = 0;
	if (parts & BOUND) PART(bound, BOUND_AT)->mark = mark;
	put_timer(r, timer, retrans, expires, now);
	if (parts & COUNTERS) for (u32 i = 0; i < sizeof(struct counters) / 8; i++) ((u64 *)(r + COUNTERS_AT))[i] = 0;
}

INLINE void put_addresses(u8 *r, struct sock_common *c)
{
	u32 *a = (u32 *)(r + ADDRESSES_AT);
	if (c->skc_family == AF_INET6) for (int i = 0; i < 4; i++) {
		a[i] = c->skc_v6_rcv_saddr.in6_u.u6_addr32[i];
		a[4 + i] = c->skc_v6_daddr.in6_u.u6_addr32[i];
	}
	else { a[0] = c->skc_rcv_saddr; a[1] = c->skc_daddr; }
}

/* Writes the parts that every row has; returns the size of the whole row in bytes. */
INLINE u32 put_base(u8 *r, struct sock_common *c, u32 state)
{
	struct base *b = (struct base *)r;
	u32 bytes = ADDRESSES_AT + 8 + 24 * (c->skc_family >> 3 & 1);	/* family 2 or 10 */
	b->words = bytes / 4; b->family = c->skc_family; b->state = state; b->kind = 0;
	b->lport = c->skc_num; b->rport = bswap16(c->skc_dport);
	put_addresses(r, c);
	if (parts & BOUND) PART(bound, BOUND_AT)->ifindex = c->skc_bound_dev_if;
	return bytes;
}

INLINE void put_head(u8 *o, u32 kind, u64 now)
{
	struct head *h = (struct head *)o;
	h->magic = MAGIC; h->parts = parts; h->jiffies = now; h->ktime_ns = bpf_ktime_get_ns(); h->kind = kind; h->pad = 0;
}
