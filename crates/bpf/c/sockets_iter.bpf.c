/* SPDX-License-Identifier: Dual BSD/GPL */
/* TCP sockets of the reader's namespace via the kernel's iterator, for kernels that cannot run the walk. Writes the
 * same rows, listeners first. Kernel 5.10; CAP_BPF and CAP_PERFMON.
 *
 * The iterator (bpf_iter_tcp_seq_show in net/ipv4/tcp_ipv4.c) takes a reference of every socket and locks it, which is
 * most of the cost of a row. crates/bpf/src/sockets_iter.rs runs the program.
 *
 * Rows are written in batches. When the kernel's buffer is full, the kernel discards what the last call wrote and
 * repeats that call once the reader has emptied the buffer: so a call makes at most one write, before it changes any
 * state. */
#include "kernel.h"

#define INODE_OF(socket) READ((struct socket_alloc *)(socket), vfs_inode.i_ino)
#define HAS_INFO 0
#include "socket_rows.h"

LICENSE("Dual BSD/GPL");

enum { BATCH = 4096 };

/* The conditions, and the pass in progress: everything is rewritten before each pass. */
struct pass {
	u32 states;		/* mask */
	u32 families;		/* mask: 1 IPv4, 2 IPv6 */
	u32 sport, sport_mask, dport, dport_mask;	/* host order */
	u32 filled;		/* bytes of `rows` that have not been written yet */
	u32 begun;		/* the head has been written */
	u64 sock;		/* of this call, as a number, because the verifier forbids arithmetic with pointers */
	u8 rows[BATCH];
};
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct pass);
} pass SEC(".maps");

/* Reads with bpf_probe_read_kernel instead of the helpers that cast such a socket: without IPv6 these accept IPv4
 * only. */
INLINE void put_timewait(u8 *r, struct inet_timewait_sock *tw, u64 now)
{
	put_small(r, MINISOCK, READ(tw, tw_mark), 3, 0, READ(tw, tw_timer.expires), now);
}

INLINE void put_request(u8 *r, struct inet_request_sock *q, u64 now)
{
	put_small(r, REQUEST, READ(q, ir_mark), 1, READ(q, req.num_retrans), READ(q, req.rsk_timer.expires), now);
}

INLINE void put_full_or_bare(u8 *r, struct sock_common *c, int listens, u64 now)
{
	struct tcp_sock *t = bpf_skc_to_tcp_sock(c);
	if (!t) { put_small(r, 0, 0, 0, 0, now, now); return; }
	put_full(r, t, 0, listens, now);
	if (!listens) return;
	u64 bits = 0;
	bpf_probe_read_kernel(&bits, sizeof bits, (void *)c + field_info(c->skc_ipv6only, 0));
	bits = bits << field_info(c->skc_ipv6only, 4) >> field_info(c->skc_ipv6only, 5);
	if (bits) ((struct base *)r)->kind = V6ONLY;
}

/* The state as listings show it: SYN_RECV for a request socket, the waiting state for a time-wait socket. */
INLINE u32 state_of(struct sock_common *c, u32 state)
{
	if (state == TCP_NEW_SYN_RECV) return TCP_SYN_RECV;
	if (state != TCP_TIME_WAIT) return state;
	u8 waits_in = 0;
	bpf_probe_read_kernel(&waits_in, sizeof waits_in,
		(void *)c + field_offset(struct inet_timewait_sock, tw_substate));
	return waits_in;
}

INLINE u32 unwanted(struct pass *p, struct sock_common *c, u32 state)
{
	u32 passes = p->states >> (state & 31) & p->families >> (c->skc_family >> 3 & 1) & 1;
	u32 sport = (c->skc_num ^ p->sport) & p->sport_mask;
	u32 dport = (bswap16(c->skc_dport) ^ p->dport) & p->dport_mask;
	return (passes ^ 1) | sport | dport;
}

SEC("iter/tcp") int sockets_iter(struct bpf_iter__tcp *ctx)
{
	struct seq_file *seq = ctx->meta->seq;
	struct sock_common *c = ctx->sk_common;
	u32 key = 0;
	struct pass *p = bpf_map_lookup_elem(&pass, &key);
	if (!p) return 0;
	u32 at = p->filled;
	/* A separate test for old verifiers: they do not follow a test that the compiler merged with another. */
	OPAQUE(at);
	if (at > BATCH) return 0;
	if (!c) {
		bpf_seq_write(seq, p->rows, at);
		return 0;
	}
	u32 kind = c->skc_state, state = state_of(c, kind);
	if (unwanted(p, c, state)) return 0;
	if (at > BATCH - ROW_MAX) {
		if (bpf_seq_write(seq, p->rows, at)) return 0;
		at = 0;
	}
	u64 now = bpf_jiffies64();
	if (!p->begun) {
		put_head(p->rows, SOCKETS, now);
		p->begun = 1;
		at = HEAD;
	}
	u8 *r = p->rows + at;
	u32 bytes = put_base(r, c, state);
	if (parts & IDENTITY) {
		*(volatile u64 *)&p->sock = (u64)c;
		*(u64 *)(r + IDENTITY_AT) = hidden(*(volatile u64 *)&p->sock);
	}
	if (kind == TCP_TIME_WAIT) put_timewait(r, (struct inet_timewait_sock *)c, now);
	else if (kind == TCP_NEW_SYN_RECV) put_request(r, (struct inet_request_sock *)c, now);
	else put_full_or_bare(r, c, kind == TCP_LISTEN, now);
	p->filled = at + bytes;
	return 0;
}
