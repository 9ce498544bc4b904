/* SPDX-License-Identifier: Dual BSD/GPL
 *
 * A TCP socket as a row: the walk and the iterator write it, and crates/sockets/src/backends/bpf/rows.rs decodes it.
 *
 * A block is a head followed by rows. A row consists of its base, the parts that the head names, and its addresses.
 * Before including this file, define how the inode of a socket is read, INODE_OF(struct socket *), and whether the
 * program can write the part INFO, HAS_INFO: old kernels lack some of its members.
 */
#pragma once
#include "kernel.h"

enum { HEAD = 32, ROW_MAX = 440 };
enum { MAGIC = 0x316b776e };			/* "nwk1" */
/* include/net/inet_connection_sock.h: ICSK_TIME_RETRANS, ICSK_TIME_PROBE0, ICSK_TIME_LOSS_PROBE,
 * ICSK_TIME_REO_TIMEOUT */
enum { RETRANS = 1, PROBE0 = 3, LOSS_PROBE = 5, REO_TIMEOUT = 6 };
/* Parts that follow the base of a row, in this order. */
enum { BOUND = 1, TIMER = 2, NETNS = 4, IDENTITY = 8, COUNTERS = 16, MEMORY = 2048, INFO = 4096 };
/* Members that always have a place but are filled in only with these bits, otherwise 0, because they need cache lines
 * that contain little else: the queues; among the counters those for retransmitted and acknowledged data; the mark in
 * `bound`; uid and inode; among the counters the round-trip time and the window. */
enum { QUEUES = 32, RESENT = 64, MARK = 128, UID = 256, INODE = 512, PATH = 1024 };
/* Kinds of rows other than ordinary ones. */
enum { MINISOCK = 1, REQUEST = 2, V6ONLY = 4 };
/* Kinds of blocks. */
enum { SOCKETS = 1, NAMESPACES = 2 };

/* Set before loading and constant from then on, so that the verifier removes the code of parts that are not wanted. */
const volatile u32 parts = BOUND | TIMER | COUNTERS | NETNS | IDENTITY | QUEUES | RESENT | MARK | UID | INODE | PATH
	| MEMORY | INFO;

/* Random words of this run: kernel addresses leave the program only hashed with them. */
const volatile u64 salt_add = 0, salt_times = 1;

struct head { u32 magic, parts; u64 jiffies, ktime_ns; u32 kind, pad; };
struct base { u8 words, family, state, kind; u16 lport, rport; u32 rqueue, wqueue, inode, uid; };
struct bound { u32 ifindex, mark; };
struct timer { u32 jiffies; u8 timer, retrans; u16 pad; };
struct counters { u64 received, acked, sent, retransmitted; u32 segs_in, segs_out, retrans, srtt, mdev, cwnd; };
struct netns { u32 inum, pad; };
/* Numbered as SK_MEMINFO_* (include/uapi/linux/sock_diag.h). */
struct memory { u32 rmem, rcvbuf, wmem, sndbuf, forward, queued, optmem, backlog, drops, pad; };
/* The layout of struct tcp_info (include/uapi/linux/tcp.h), with values as the kernel has them: times in jiffies, and
 * differences that the reader must not take for numbers if they are negative. Two members that the kernel never sets
 * hold the running stopwatch: which of the three, and its jiffies so far. */
struct info {
	u8 state, ca_state, retransmits, probes, backoff, options, scales, flags;
	u32 rto, ato, snd_mss, rcv_mss, unacked, sacked, lost, retrans, stopwatch;
	u32 last_data_sent, stopwatch_runs, last_data_recv, last_ack_recv;
	u32 pmtu, rcv_ssthresh, rtt, rttvar, snd_ssthresh, snd_cwnd, advmss, reordering, rcv_rtt, rcv_space, total_retrans;
	u64 pacing_rate, max_pacing_rate, acked, received;
	u32 segs_out, segs_in, notsent, min_rtt, data_segs_in, data_segs_out;
	u64 delivery_rate, stopwatches[3];
	u32 delivered, delivered_ce;
	u64 sent, retransmitted;
	u32 dsack_dups, reord_seen, rcv_ooopack, snd_wnd, rcv_wnd, rehash;
};

/* Offsets of the parts of a row; the addresses come last because their length varies. */
#define SIZE_IF(part, type) (parts & (part) ? sizeof(type) : 0)
#define BOUND_AT (sizeof(struct base))
#define TIMER_AT (BOUND_AT + SIZE_IF(BOUND, struct bound))
#define COUNTERS_AT (TIMER_AT + SIZE_IF(TIMER, struct timer))
#define NETNS_AT (COUNTERS_AT + SIZE_IF(COUNTERS, struct counters))
#define IDENTITY_AT (NETNS_AT + SIZE_IF(NETNS, struct netns))
#define MEMORY_AT (IDENTITY_AT + SIZE_IF(IDENTITY, u64))
#define INFO_AT (MEMORY_AT + SIZE_IF(MEMORY, struct memory))
#define ADDRESSES_AT (INFO_AT + (HAS_INFO ? SIZE_IF(INFO, struct info) : 0))
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

/* As sk_get_meminfo (net/core/sock.c). */
INLINE void put_memory(u8 *r, struct sock *sk)
{
	if (!(parts & MEMORY)) return;
	struct memory *m = PART(memory, MEMORY_AT);
	m->rmem = sk->sk_backlog.rmem_alloc.counter; m->rcvbuf = sk->sk_rcvbuf;
	m->wmem = sk->sk_wmem_alloc.refs.counter - 1; m->sndbuf = sk->sk_sndbuf;
	m->forward = sk->sk_forward_alloc; m->queued = sk->sk_wmem_queued; m->optmem = sk->sk_omem_alloc.counter;
	m->backlog = sk->sk_backlog.len; m->drops = sk->sk_drops.counter; m->pad = 0;
}

/* A bit field, or any small one, of the object at this address. */
#define BITS(address, field)                                                                                    \
	(WORD_AT((address) + field_info(field, 0)) << field_info(field, 4) >> field_info(field, 5))

/* As tcp_get_info (net/ipv4/tcp.c), without the members that a listener does not have. */
INLINE void put_info(u8 *r, struct tcp_sock *t, u64 address, int listens, u64 now)
{
	if (!HAS_INFO || !(parts & INFO)) return;
	struct info *n = PART(info, INFO_AT);
	struct inet_connection_sock *i = &t->inet_conn;
	struct sock *sk = &i->icsk_inet.sk;
	if (listens) {
		for (u32 at = 0; at < sizeof *n / 8; at++) ((u64 *)(r + INFO_AT))[at] = 0;
		n->state = TCP_LISTEN; n->unacked = sk->sk_ack_backlog; n->sacked = sk->sk_max_ack_backlog;
		n->pacing_rate = sk->sk_pacing_rate; n->max_pacing_rate = sk->sk_max_pacing_rate;
		n->reordering = t->reordering; n->snd_cwnd = t->snd_cwnd;
		return;
	}
	u32 sack = BITS(address, t->rx_opt.sack_ok), scaled = BITS(address, t->rx_opt.wscale_ok), ecn = t->ecn_flags;
	n->state = sk->__sk_common.skc_state; n->ca_state = BITS(address, i->icsk_ca_state);
	n->retransmits = i->icsk_retransmits; n->probes = i->icsk_probes_out; n->backoff = i->icsk_backoff;
	/* TCPI_OPT_TIMESTAMPS, SACK, WSCALE, ECN (TCP_ECN_MODE_ANY, include/net/tcp_ecn.h), ECN_SEEN, SYN_DATA, USEC_TS */
	n->options = BITS(address, t->rx_opt.tstamp_ok) | ((sack | sack >> 1 | sack >> 2) & 1) << 1 | scaled << 2
		| ((ecn | ecn >> 4) & 1) << 3 | (ecn >> 3 & 1) << 4 | BITS(address, t->syn_data_acked) << 5
		| BITS(address, t->tcp_usec_ts) << 6;
	n->scales = (BITS(address, t->rx_opt.snd_wscale) | BITS(address, t->rx_opt.rcv_wscale) << 4) & -scaled;
	n->flags = BITS(address, t->rate_app_limited) | BITS(address, t->fastopen_client_fail) << 1;
	n->rto = i->icsk_rto; n->ato = 0; n->snd_mss = t->mss_cache; n->rcv_mss = i->icsk_ack.rcv_mss;
	n->unacked = t->packets_out; n->sacked = t->sacked_out; n->lost = t->lost_out; n->retrans = t->retrans_out;
	n->last_data_sent = now - t->lsndtime; n->last_data_recv = now - i->icsk_ack.lrcvtime;
	n->last_ack_recv = now - t->rcv_tstamp;
	n->pmtu = i->icsk_pmtu_cookie; n->rcv_ssthresh = t->rcv_ssthresh;
	n->rtt = t->srtt_us >> 3; n->rttvar = t->mdev_us >> 2;
	n->snd_ssthresh = t->snd_ssthresh; n->snd_cwnd = t->snd_cwnd; n->advmss = t->advmss; n->reordering = t->reordering;
	n->rcv_rtt = t->rcv_rtt_est.rtt_us >> 3; n->rcv_space = t->rcvq_space.space; n->total_retrans = t->total_retrans;
	n->pacing_rate = sk->sk_pacing_rate; n->max_pacing_rate = sk->sk_max_pacing_rate;
	n->acked = t->bytes_acked; n->received = t->bytes_received; n->segs_out = t->segs_out; n->segs_in = t->segs_in;
	n->notsent = t->write_seq - t->snd_nxt; n->min_rtt = t->rtt_min.s[0].v;
	n->data_segs_in = t->data_segs_in; n->data_segs_out = t->data_segs_out;
	/* A division by 0 gives 0. */
	n->delivery_rate = (u64)t->rate_delivered * t->mss_cache * 1000000 / t->rate_interval_us;
	n->stopwatch = BITS(address, t->chrono_type); n->stopwatch_runs = now - t->chrono_start;
	for (u32 at = 0; at < 3; at++) n->stopwatches[at] = t->chrono_stat[at];
	n->delivered = t->delivered; n->delivered_ce = t->delivered_ce;
	n->sent = t->bytes_sent; n->retransmitted = t->bytes_retrans;
	n->dsack_dups = t->dsack_dups; n->reord_seen = t->reord_seen; n->rcv_ooopack = t->rcv_ooopack;
	n->snd_wnd = t->snd_wnd; n->rcv_wnd = t->rcv_wnd; n->rehash = t->plb_rehash + t->timeout_rehash;
}

INLINE void put_inode(struct base *b, struct sock *sk)
{
	if (!(parts & INODE)) { b->inode = 0; return; }
	if (field_exists(sk->sk_ino)) { b->inode = sk->sk_ino; return; }
	struct socket *so = sk->sk_socket;
	b->inode = so ? INODE_OF(so) : 0;
}

INLINE void put_full(u8 *r, struct tcp_sock *t, u64 address, int listens, u64 now)
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
	put_memory(r, sk);
	put_info(r, t, address, listens, now);
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
	u32 bytes = ADDRESSES_AT - MEMORY_AT;
	for (u32 i = 0; i < bytes / 8; i++) ((u64 *)(r + MEMORY_AT))[i] = 0;
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
