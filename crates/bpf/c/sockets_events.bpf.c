/* SPDX-License-Identifier: Dual BSD/GPL
 *
 * Connections as they open and close, with who holds them.
 *
 * tp_btf/inet_sock_set_state sees every change of state. One half of them happens in softirq, where `current` is
 * whoever was interrupted, so an owner is taken only where a process is known to be at work:
 *
 *   connect   CLOSE -> SYN_SENT                the process that connects
 *   accept    accept(2) asks for the peer's    the process that accepted, not the one that made the listener
 *             name, or the first send or receive on the socket
 *   close     -> FIN_WAIT1, -> LAST_ACK, or    the process that let go of it last: a worker that got the socket by
 *             a close that resets              fork, or over a unix socket, takes it over from who accepted it
 *
 * What is known of a connection waits in `conns` under the address of its socket, until the socket closes. A passive
 * connection is told of once it is accepted (with the time when it was established); one that nobody ever accepts
 * is told of when it closes.
 *
 * Two ways out: an event each into a ring (woken at 64 KiB; the reader looks by itself every 10 ms), or, when nobody
 * asks for single connections, sums per flow in one of two maps that the reader turns between.
 *
 * Kernel >= 5.11 (iter/task_file with bpf_sock_from_file), the accept hooks >= 5.8 (cgroup/getpeername) and >= 6.3
 * (sock_send_length, sock_recv_length); each may be left out and costs only how soon the owner is known.
 */
#include "kernel.h"

LICENSE("Dual BSD/GPL");

const volatile u32 only_netns = 0; /* inode of the one namespace; 0: all */

/* The reader is woken when so much waits; a record in the ring has a head of 8 bytes. */
#define WAKE_BYTES 65536
#define HEAD_BYTES 8

/* include/net/sock.h, enum sock_flags: set when the FIN of the peer came. */
enum { SOCK_DONE = 1 };
enum { EVENT_OPEN = 1, EVENT_CLOSE = 2, EVENT_WAIT = 3 };
enum { DIRECTION_IN = 1, DIRECTION_OUT = 2, DIRECTION_UNKNOWN = 3 };

struct holder {
	u32 tgid, uid;
	u64 cgroup;
	char comm[16];
};

struct conn {
	u64 opened_ns; /* 0: not established yet, or before this program was */
	u64 cookie;
	struct holder holder; /* tgid 0: not known yet */
	u8 direction;
	u8 told; /* its opening is out, or nobody shall hear of it */
	u8 pad[6];
};

/* The reader sets how many: the kernel zeroes 16 bytes an entry at the start, whether they are used or not. */
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_HASH);
	MAP_NUMBER(map_flags, BPF_F_NO_PREALLOC);
	MAP_NUMBER(max_entries, 1 << 16);
	MAP_TYPE(key, u64);
	MAP_TYPE(value, struct conn);
} conns SEC(".maps");

/* 32,768 events: 8,000 connections while the reader is away. A ring of 512 KiB stays in the caches and saves a tenth
 * of the cost, but holds 22 ms of the worst flood; one of 8 MiB costs more with every lap. */
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_RINGBUF);
	MAP_NUMBER(max_entries, 4 << 20);
} events SEC(".maps");

/*
 * Read by crates/sockets/src/live/event.rs. With the ring's head it fills two cache lines, with the addresses of IPv6
 * three: what an event costs is mostly that the reader's CPU must give these lines back.
 */
struct event {
	u64 ns, opened_ns, cookie, cgroup;
	u64 bytes_in, bytes_out;
	u32 netns, tgid, uid, rtt_us;
	u32 retrans, segs_in, segs_out;
	u32 local, peer; /* IPv4 */
	u16 local_port, peer_port;
	u8 kind, family, direction, state;
	u32 error;
	char comm[16];
	u8 pad[8];
};

/* If the family is AF_INET6. */
struct event6 {
	struct event event;
	u32 local[4], peer[4];
	u8 pad[32];
};

struct flow_key {
	u32 netns;
	u8 family, direction;
	u16 port;
	u32 local[4], peer[4];
};

struct flow_sum {
	u64 opened, closed, bytes_in, bytes_out, retrans, duration_ns;
};

struct flow_map {
	MAP_NUMBER(type, BPF_MAP_TYPE_HASH);
	MAP_NUMBER(map_flags, BPF_F_NO_PREALLOC);
	MAP_NUMBER(max_entries, 1 << 16);
	MAP_TYPE(key, struct flow_key);
	MAP_TYPE(value, struct flow_sum);
};
struct flow_map flows_even SEC(".maps");
struct flow_map flows_odd SEC(".maps");

/* Which of the two is filled now: the reader writes it. */
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u32);
} turn SEC(".maps");

u64 failed;		    /* attempts that never became a connection */
u64 lost_ring;		    /* events that found the ring full */
u64 lost_map;		    /* connections that found `conns` full: their owner and duration are unknown */
u64 lost_flows;		    /* openings and closings that found the map of flows full */
s64 waiting;		    /* passive connections that nobody has accepted yet */

INLINE void hold(struct holder *holder)
{
	holder->tgid = bpf_get_current_pid_tgid() >> 32;
	holder->uid = bpf_get_current_uid_gid();
	holder->cgroup = bpf_get_current_cgroup_id();
	bpf_get_current_comm(holder->comm, sizeof(holder->comm));
}

INLINE u32 netns_of(struct sock *sk)
{
	return PLAIN(struct sock, sk)->__sk_common.skc_net.net->ns.inum;
}

INLINE void ends_of(struct sock *sk, u32 *local, u32 *peer)
{
	if (sk->__sk_common.skc_family == AF_INET6) {
		for (int i = 0; i < 4; i++) {
			local[i] = sk->__sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[i];
			peer[i] = sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32[i];
		}
		return;
	}
	local[0] = sk->__sk_common.skc_rcv_saddr;
	peer[0] = sk->__sk_common.skc_daddr;
	local[1] = local[2] = local[3] = 0;
	peer[1] = peer[2] = peer[3] = 0;
}


/* Bytes received; the kernel counts the peer's FIN as one. */
INLINE u64 received(struct sock *sk, struct tcp_sock *tp)
{
	u64 bytes = tp->bytes_received;

	return bytes && (sk->__sk_common.skc_flags & 1 << SOCK_DONE) ? bytes - 1 : bytes;
}

/* Only who fills the last bytes of the measure wakes: a reader that is late is not woken again by every event. */
INLINE void hand_out(void *record, u32 bytes)
{
	u64 waiting_bytes = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA);

	bpf_ringbuf_submit(record,
			   waiting_bytes - WAKE_BYTES < bytes + HEAD_BYTES ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

/* Direct reads: the pointers of a tp_btf program may be followed. `tp` is `sk` as the verifier wants it. */
INLINE void tell(struct sock *sk, struct tcp_sock *tp, const struct conn *conn, u32 kind, u8 state)
{
	u32 bytes = sizeof(struct event);
	struct event *e;

	if (sk->__sk_common.skc_family == AF_INET6) {
		struct event6 *wide = bpf_ringbuf_reserve(&events, sizeof(*wide), 0);

		if (!wide) {
			COUNT_ONE(lost_ring);
			return;
		}
		ends_of(sk, wide->local, wide->peer);
		bytes = sizeof(*wide);
		e = &wide->event;
		e->family = AF_INET6;
	} else {
		e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
		if (!e) {
			COUNT_ONE(lost_ring);
			return;
		}
		e->local = sk->__sk_common.skc_rcv_saddr;
		e->peer = sk->__sk_common.skc_daddr;
		e->family = AF_INET;
	}
	e->ns = kind == EVENT_OPEN ? conn->opened_ns : bpf_ktime_get_ns();
	e->kind = kind;
	e->state = state;
	e->netns = netns_of(sk);
	/* skc_num is 0 already when a socket closes */
	e->local_port = bswap16(tp->inet_conn.icsk_inet.inet_sport);
	e->peer_port = bswap16(sk->__sk_common.skc_dport);
	e->bytes_in = received(sk, tp);
	e->bytes_out = tp->bytes_sent;
	e->rtt_us = tp->srtt_us >> 3;
	e->retrans = tp->total_retrans;
	e->segs_in = tp->segs_in;
	e->segs_out = tp->segs_out;
	e->error = kind == EVENT_CLOSE ? sk->sk_err : 0;
	e->opened_ns = conn->opened_ns;
	e->cookie = conn->cookie;
	e->direction = conn->direction;
	e->tgid = conn->holder.tgid;
	e->uid = conn->holder.uid;
	e->cgroup = conn->holder.cgroup;
	memcpy(e->comm, conn->holder.comm, sizeof(e->comm));
	hand_out(e, bytes);
}

INLINE struct flow_sum *sum_in(void *map, struct flow_key *key)
{
	struct flow_sum *sum = bpf_map_lookup_elem(map, key);
	struct flow_sum zero = {};

	if (sum)
		return sum;
	bpf_map_update_elem(map, key, &zero, BPF_NOEXIST);
	return bpf_map_lookup_elem(map, key);
}

INLINE void add_up(struct sock *sk, struct tcp_sock *tp, const struct conn *conn, u32 kind)
{
	struct flow_key key = {};
	struct flow_sum *sum;
	u32 zero = 0, *odd = bpf_map_lookup_elem(&turn, &zero);

	key.netns = netns_of(sk);
	key.family = sk->__sk_common.skc_family;
	key.direction = conn->direction;
	/* The service's port; the other one is of the moment. Nobody knows which one of an older connection. */
	if (conn->direction == DIRECTION_IN)
		key.port = bswap16(tp->inet_conn.icsk_inet.inet_sport);
	else if (conn->direction == DIRECTION_OUT)
		key.port = bswap16(sk->__sk_common.skc_dport);
	ends_of(sk, key.local, key.peer);
	sum = odd && (*odd & 1) ? sum_in(&flows_odd, &key) : sum_in(&flows_even, &key);
	if (!sum) {
		COUNT_ONE(lost_flows);
		return;
	}
	if (kind == EVENT_OPEN) {
		COUNT_ONE(sum->opened);
		return;
	}
	COUNT_ONE(sum->closed);
	__sync_fetch_and_add(&sum->bytes_in, received(sk, tp));
	__sync_fetch_and_add(&sum->bytes_out, tp->bytes_sent);
	__sync_fetch_and_add(&sum->retrans, tp->total_retrans);
	if (conn->opened_ns)
		__sync_fetch_and_add(&sum->duration_ns, bpf_ktime_get_ns() - conn->opened_ns);
}

/*
 * What a change of state means for the connection, the same for events and for sums: which of the two shall be told
 * (as a mask), and what is known of it. `fresh` is room for a connection that is in no table.
 */
INLINE u32 changed(struct sock *sk, int old, int new, struct conn *fresh, struct conn **known)
{
	u64 key = (u64)sk;
	struct conn *conn = bpf_map_lookup_elem(&conns, &key);

	if (new == TCP_ESTABLISHED) {
		u64 cookie = bpf_get_socket_cookie(sk);

		/* An entry under another cookie is of an earlier socket that lay at the same address. */
		if (conn && conn->cookie == cookie) {
			conn->opened_ns = bpf_ktime_get_ns();
			*known = conn;
			return 1 << EVENT_OPEN;
		}
		fresh->opened_ns = bpf_ktime_get_ns();
		fresh->cookie = cookie;
		fresh->direction = DIRECTION_IN;
		*known = fresh;
		if (!bpf_map_update_elem(&conns, &key, fresh, BPF_ANY))
			return 1 << EVENT_WAIT;
		COUNT_ONE(lost_map);
		return 1 << EVENT_OPEN;
	}
	if (old == TCP_SYN_SENT || (old == TCP_SYN_RECV && (!conn || !conn->opened_ns))) {
		COUNT_ONE(failed);
		if (conn)
			bpf_map_delete_elem(&conns, &key);
		return 0;
	}
	if (conn) {
		*known = conn;
		return 1 << EVENT_CLOSE;
	}
	fresh->direction = DIRECTION_UNKNOWN;
	fresh->cookie = bpf_get_socket_cookie(sk);
	*known = fresh;
	return 1 << EVENT_CLOSE;
}

/* CLOSE -> SYN_SENT: always the connecting process itself. */
INLINE void on_connect(struct sock *sk, u32 with_holder)
{
	struct conn conn = {};
	u64 key = (u64)sk;

	conn.direction = DIRECTION_OUT;
	conn.cookie = bpf_get_socket_cookie(sk);
	if (with_holder)
		hold(&conn.holder);
	if (bpf_map_update_elem(&conns, &key, &conn, BPF_ANY))
		COUNT_ONE(lost_map);
}

/* True if a change of state is none of ours: a step on the way out, a listener, a child not yet there, another
 * protocol or namespace. The numbers come first: half of all changes end here, and cost no look at the socket. */
INLINE bool is_foreign(struct sock *sk, int old, int new)
{
	if (!(1 << (new & 15) & (1 << TCP_SYN_SENT | 1 << TCP_ESTABLISHED | 1 << TCP_FIN_WAIT1 | 1 << TCP_LAST_ACK |
				 1 << TCP_CLOSE)))
		return true;
	if (new != TCP_SYN_SENT && (old == TCP_LISTEN || old == TCP_CLOSE))
		return true;
	if (sk->sk_protocol != IPPROTO_TCP)
		return true;
	return only_netns && netns_of(sk) != only_netns;
}

/* True if only a process can have made this change: close(2), shutdown(2), its own end. Nobody has accepted a socket
 * without `sk_socket`. Without an error a connection that breaks off is a close that resets (unread data, no linger). */
INLINE bool is_by_process(struct sock *sk, int old, int new)
{
	if (!sk->sk_socket)
		return false;
	return new == TCP_FIN_WAIT1 || new == TCP_LAST_ACK ||
	       (new == TCP_CLOSE && !sk->sk_err && (old == TCP_ESTABLISHED || old == TCP_CLOSE_WAIT));
}

/* A process is at work on the socket: it is the holder. `again`: also if another one is known already. The answer is
 * what is known if the opening can be told of only now. */
INLINE struct conn *held(struct sock *sk, u32 again)
{
	u64 key = (u64)sk;
	struct conn *conn = bpf_map_lookup_elem(&conns, &key);

	if (!conn)
		return NULL;
	if (!conn->holder.tgid || (again && conn->holder.tgid != (u32)(bpf_get_current_pid_tgid() >> 32)))
		hold(&conn->holder);
	if (conn->told || !conn->opened_ns)
		return NULL;
	conn->told = 1;
	__sync_fetch_and_add(&waiting, -1);
	return conn;
}

SEC("tp_btf/inet_sock_set_state")
int on_state(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	int old = ctx[1], new = ctx[2];
	struct conn fresh = {}, *conn = NULL;
	struct tcp_sock *tp;
	u64 key = (u64)sk;
	u32 told = 0;

	if (is_foreign(sk, old, new))
		return 0;
	if (new == TCP_SYN_SENT) {
		on_connect(sk, 1);
		return 0;
	}
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	if (is_by_process(sk, old, new)) {
		conn = held(sk, 1);
		told = conn ? 1 << EVENT_OPEN : 0;
	}
	if (new == TCP_ESTABLISHED || new == TCP_CLOSE)
		told |= changed(sk, old, new, &fresh, &conn);
	if (told & 1 << EVENT_WAIT)
		__sync_fetch_and_add(&waiting, 1);
	if (!conn)
		return 0;
	if (told & 1 << EVENT_CLOSE && !conn->told && conn->opened_ns) {
		/* Nobody has ever accepted it. */
		told |= 1 << EVENT_OPEN;
		__sync_fetch_and_add(&waiting, -1);
	}
	if (told & 1 << EVENT_OPEN)
		conn->told = 1;
	/* One place where events are made: the code of the program is mostly that. */
#pragma clang loop unroll(disable)
	for (u32 kind = EVENT_OPEN; kind <= EVENT_CLOSE; kind++)
		if (told & 1 << kind)
			tell(sk, tp, conn, kind, kind == EVENT_OPEN ? TCP_ESTABLISHED : old);
	if (told & 1 << EVENT_CLOSE)
		bpf_map_delete_elem(&conns, &key);
	return 0;
}

/* The same for flows: no holder, no event, nobody waits to be accepted. */
SEC("tp_btf/inet_sock_set_state")
int on_sums(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	int old = ctx[1], new = ctx[2];
	struct conn fresh = {}, *conn = NULL;
	struct tcp_sock *tp;
	u64 key = (u64)sk;
	u32 told;

	if (is_foreign(sk, old, new))
		return 0;
	if (new == TCP_SYN_SENT) {
		on_connect(sk, 0);
		return 0;
	}
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp || (new != TCP_ESTABLISHED && new != TCP_CLOSE))
		return 0;
	told = changed(sk, old, new, &fresh, &conn);
	if (!told || !conn)
		return 0;
	add_up(sk, tp, conn, told & 1 << EVENT_CLOSE ? EVENT_CLOSE : EVENT_OPEN);
	if (told & 1 << EVENT_CLOSE)
		bpf_map_delete_elem(&conns, &key);
	return 0;
}

/* Every send and receive of every socket comes by here: as long as nothing waits that is two loads. */
INLINE int on_use(struct sock *sk)
{
	struct tcp_sock *tp;
	struct conn *conn;

	if (waiting <= 0 || sk->sk_protocol != IPPROTO_TCP)
		return 0;
	if (only_netns && netns_of(sk) != only_netns)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	conn = tp ? held(sk, 0) : NULL;
	if (conn)
		tell(sk, tp, conn, EVENT_OPEN, TCP_ESTABLISHED);
	return 0;
}

SEC("tp_btf/sock_send_length")
int on_send(u64 *ctx)
{
	return on_use((void *)ctx[0]);
}

SEC("tp_btf/sock_recv_length")
int on_receive(u64 *ctx)
{
	return on_use((void *)ctx[0]);
}

/* accept(2) that asks for the peer's name; getpeername(2) comes here, too, which does no harm. */
INLINE int on_name(struct bpf_sock_addr *ctx)
{
	struct tcp_sock *tp;
	struct conn *conn;
	struct sock *sk;

	if (waiting <= 0 || !ctx->sk)
		return 1;
	tp = bpf_skc_to_tcp_sock(ctx->sk);
	if (!tp)
		return 1;
	sk = (struct sock *)tp;
	if (only_netns && netns_of(sk) != only_netns)
		return 1;
	conn = held(sk, 0);
	if (conn)
		tell(sk, tp, conn, EVENT_OPEN, TCP_ESTABLISHED);
	return 1; /* never forbid */
}

SEC("cgroup/getpeername4")
int on_name4(struct bpf_sock_addr *ctx)
{
	return on_name(ctx);
}

SEC("cgroup/getpeername6")
int on_name6(struct bpf_sock_addr *ctx)
{
	return on_name(ctx);
}

/* Sockets older than this program: who holds them now is who will close them, unless they are handed on. */
SEC("iter/task_file")
int stamp(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct conn conn = {};
	struct socket *socket;
	struct sock *sk;
	u64 key;
	u8 state;

	if (!task || !file)
		return 0; /* the last call has neither */
	socket = bpf_sock_from_file(file);
	if (!socket)
		return 0;
	sk = socket->sk;
	if (!sk || sk->sk_protocol != IPPROTO_TCP)
		return 0;
	if (sk->__sk_common.skc_family != AF_INET && sk->__sk_common.skc_family != AF_INET6)
		return 0;
	if (only_netns && netns_of(sk) != only_netns)
		return 0;
	state = sk->__sk_common.skc_state;
	if (state == TCP_CLOSE || state == TCP_LISTEN || state == TCP_SYN_SENT)
		return 0;
	key = (u64)sk;
	conn.told = 1;
	conn.direction = DIRECTION_UNKNOWN;
	conn.cookie = bpf_get_socket_cookie(sk);
	conn.holder.tgid = task->tgid;
	conn.holder.uid = task->cred->uid.val;
	conn.holder.cgroup = task->cgroups->dfl_cgrp->kn->id;
	for (int i = 0; i < 16; i++)
		conn.holder.comm[i] = task->comm[i];
	if (bpf_map_update_elem(&conns, &key, &conn, BPF_NOEXIST))
		return 0; /* another holder of the same socket was first, or `conns` is full */
	/* The file is held meanwhile, but the connection may have ended: then nobody would take the entry away. */
	if (sk->__sk_common.skc_state == TCP_CLOSE)
		bpf_map_delete_elem(&conns, &key);
	return 0;
}
