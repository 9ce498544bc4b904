/* SPDX-License-Identifier: Dual BSD/GPL
 *
 * Connections as they open and close, with the processes that own them.
 *
 * tp_btf/inet_sock_set_state sees every change of state. Half of them happen in softirq, where `current` is any task
 * that was interrupted, so the program takes an owner only where it knows that a process acts:
 *
 *   connect   CLOSE -> SYN_SENT                the process that connects
 *   accept    accept(2) reads the peer's       the process that accepts, not the one that created the listener
 *             name, or the first send or
 *             receive on the socket
 *   join      a subflow of an MPTCP            the process of the connection's first subflow; a kernel thread or a
 *             connection after its first       packet opens the others
 *   close     -> FIN_WAIT1, -> LAST_ACK, or    the process that closes it last: a worker that got the socket by fork or
 *             a close that resets              over a unix socket replaces the process that accepted it. A process that
 *                                              merely had the last reference does not count: see closes_itself()
 *
 * The data of a connection is stored under the address of its socket until the socket closes: in a small array that is
 * found without a call, otherwise in the socket's own storage, so that one user's connections, however many, take no
 * space from another's. The program reports a passive connection once it is accepted (with the time when it was
 * established), or, if no process ever accepts it, when it closes.
 *
 * There are two kinds of output: one event each in a ring buffer (the reader is woken at 512 KiB and polls every 10
 * ms), or, if only sums are wanted, sums per flow in one of two maps: the program fills one while the reader empties
 * the other.
 *
 * The costs, largest first: entering a program, records in the ring, helper calls (20 ns and more each). docs/adr/0010
 * has the figures.
 *
 * Needs Linux 5.12 (cmpxchg, cookies, socket storage in tracing programs, iter/task_file with bpf_sock_from_file). The
 * accept hooks need 5.8 (cgroup/getpeername) and 6.3 (sock_send_length, sock_recv_length): without them an owner is
 * only known later.
 */
#include "kernel.h"
#include "pids.h"

LICENSE("Dual BSD/GPL");

const volatile u32 only_netns = 0; /* inode of the only namespace to report; 0: all */
const volatile u32 pidns = 0; /* inode of the reader's pid namespace; 0: the initial one */
const volatile u32 slots = 1 << 14; /* entries of `recent_conns`, a power of two */

/* The program wakes the reader once per this many bytes, an eighth of the ring; the reader also polls every 10 ms. */
#define WAKE_BYTES (512 << 10)

/* include/net/sock.h, enum sock_flags: tcp_fin() sets it when the peer's FIN arrives. */
enum { SOCK_DONE = 1 };
enum { EVENT_OPEN = 1, EVENT_CLOSE = 2 };
/* In `kind`: the event has `ifindex`. Events of older recordings have anything there. */
enum { WITH_IFINDEX = 128 };
enum { DIRECTION_IN = 1, DIRECTION_OUT = 2, DIRECTION_UNKNOWN = 3, DIRECTION_FOLDED = 4 };
/* Added to an event's direction: a further subflow of an MPTCP connection, whose process is not known. */
enum { NAMELESS_SUBFLOW = 1 << 7 };

struct owner {
	u64 cgroup;
	char comm[16];
	u32 uid;
	u32 pid; /* in the reader's pid namespace; 0: unknown so far, or not visible there; written last */
};

/*
 * The data of a connection, in one cache line. `key` is the address of its socket as a number (see key_of), whose low
 * bits are free for flags:
 */
enum {
	PENDING = 1, /* passive, and its opening has not been reported yet */
	BUSY = 2,    /* the program that cleared PENDING writes the owner; without a key: the socket has closed */
	OLD = 4,     /* in `older_conns`, or in `stored_conns` because no slot of `recent_conns` was free */
	FLAGS = 7,
	WITH_OWNER = 8, /* for begin_conn() only, never in a key: the current process is the owner */
	JOINED = 16,	/* likewise: a further subflow of MPTCP */
};
struct conn {
	u64 key;
	u64 opened_ns; /* 0: not established yet, or established before this program ran */
	u64 cookie;
	struct owner owner;
	u32 started; /* of the owner, see started_of() */
	u8 direction;
	u8 pad[3];
};

/*
 * Connections that began in this run, until they close. A lookup makes no call and takes no lock: an entry is in one
 * of PROBES slots that follow its hash; if all of them are taken, the entry goes to `stored_conns`. An update or a
 * removal costs 10 to 20 ns here, 350 ns in a hash map.
 */
#define PROBES 4
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(max_entries, 1 << 14);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct conn);
} recent_conns SEC(".maps");

/* Connections without a slot, in the storage of each socket: a new entry costs 800 ns, a lookup 20 ns. No user can use
 * up the room of others: the kernel charges each entry to its socket and frees it with the socket. */
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_SK_STORAGE);
	MAP_NUMBER(map_flags, BPF_F_NO_PREALLOC);
	MAP_TYPE(key, int);
	MAP_TYPE(value, struct conn);
} stored_conns SEC(".maps");

/* Connections that are older than this program, by key. Their storage is out of reach: not every kernel trusts the
 * pointer to a socket that was read from a file. Entries are added only once, at the start. */
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_HASH);
	MAP_NUMBER(map_flags, BPF_F_NO_PREALLOC);
	MAP_NUMBER(max_entries, 1 << 10);
	MAP_TYPE(key, u64);
	MAP_TYPE(value, struct conn);
} older_conns SEC(".maps");

/* 32,768 events, that is 8,000 connections while the reader is busy. A ring of 512 KiB would stay in the caches and
 * save a tenth of the cost, but holds only 22 ms of the worst flood; a ring of 8 MiB costs more cache misses. */
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_RINGBUF);
	MAP_NUMBER(max_entries, 4 << 20);
} events SEC(".maps");

/*
 * Decoded in crates/sockets/src/events/bpf/event.rs. With the ring's header an event fills two cache lines, with IPv6
 * addresses three: most of its cost is the transfer of these lines from the reader's CPU.
 */
struct event {
	u64 ns, opened_ns, cookie, cgroup;
	u64 bytes_in, bytes_out;
	u32 netns, pid, uid, rtt_us;
	u32 retrans, segs_in, segs_out;
	u32 local, peer; /* IPv4 */
	u16 local_port, peer_port;
	u8 kind, family, direction, state;
	u32 error;
	char comm[16];
	u32 started;
	u32 ifindex; /* that the socket is bound to; 0: none */
};

/* An event with AF_INET6 addresses. */
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
	u32 ifindex; /* a link-local address is another host on another interface */
};

struct flow_sum {
	u64 opened, closed, bytes_in, bytes_out, retrans, duration_ns;
	u64 charged; /* of an account: entries that it has taken of the shared space */
};

/*
 * The space for the flows of one interval. The first FLOWS_FREE flows take entries as they come. Further flows are
 * charged to an account (see account_of), and get an entry only while the account has a share left: a user, or a
 * remote network, that fills the map costs its own rows, not those of others. Flows without a share are added up in
 * the entry of their account, under a key with DIRECTION_FOLDED; FLOWS_ACCOUNTS entries are reserved for these.
 */
#define FLOWS_FREE (1 << 16)
#define FLOWS_SHARED (1 << 15)
#define FLOWS_ACCOUNTS (1 << 15)
/* An account may take one part in SHARE of what is left, so that something is left for the next one, however many
 * exist. */
#define SHARE 8

struct flow_map {
	MAP_NUMBER(type, BPF_MAP_TYPE_HASH);
	MAP_NUMBER(map_flags, BPF_F_NO_PREALLOC);
	MAP_NUMBER(max_entries, FLOWS_FREE + FLOWS_SHARED + FLOWS_ACCOUNTS);
	MAP_TYPE(key, struct flow_key);
	MAP_TYPE(value, struct flow_sum);
};
struct flow_map flows_even SEC(".maps");
struct flow_map flows_odd SEC(".maps");

/* Which of the two maps the program fills (bit 0: flows_odd), and in the other bits the value of `flows_made` when it
 * began to. The reader writes both as one number, so that the program never sees one without the other. */
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u64);
} active_map SEC(".maps");

u64 failed;	/* attempts that never became a connection */
u64 lost_ring;	/* events lost because the ring was full */
u64 lost_map;	/* connections without memory for an entry: their owner and duration are unknown */
u64 lost_flows; /* openings and closings lost because the map of flows was full */
u64 flows_made; /* entries created in both maps of flows since the start */
s64 waiting;	/* passive connections that no process has accepted yet */
u32 has_stored;	/* 1 once `stored_conns` was used: lookups there are skipped before that */
u32 has_older;	/* the same for `older_conns` */
u64 unasked;	/* accepted without a request for the peer's name: the process is known only when it closes */

/* The start time of a process, in units of 2^20 ns since boot: together with its pid it identifies the process
 * forever. */
INLINE u32 started_of(struct task_struct *task)
{
	return PLAIN(struct task_struct, task)->group_leader->start_boottime >> 20;
}

/* Reads members of the task instead of calling helpers, which cost 20 ns and more each. */
INLINE void set_owner_as(struct conn *conn, u32 pid)
{
	struct task_struct *task = bpf_get_current_task_btf(), *plain = PLAIN(struct task_struct, task);
	struct owner *owner = &conn->owner;

	conn->started = started_of(task);
	/* A process is named after its main thread; `task` may be a different thread. */
	memcpy(owner->comm, plain->group_leader->comm, sizeof(owner->comm));
	owner->uid = plain->cred->uid.val;
	owner->cgroup = plain->cgroups->dfl_cgrp->kn->id;
	FENCE();
	owner->pid = pid;
}

INLINE void set_owner(struct conn *conn)
{
	set_owner_as(conn, pid_in(bpf_get_current_task_btf(), pidns));
}

/* The address of a socket relative to a variable of this program: the verifier forbids arithmetic with a pointer, but
 * allows the difference of two. Both are multiples of 8. */
INLINE u64 key_of(void *sk)
{
	u64 from = (u64)&failed, at = (u64)sk;

	OPAQUE(from);
	OPAQUE(at);
	return at - from;
}

INLINE u32 slot_of(u64 key, u32 probe)
{
	return (u32)((key * 0x9e3779b97f4a7c15ull >> 40) + probe) & (slots - 1);
}

INLINE struct conn *find_recent(u64 key)
{
#pragma clang loop unroll(disable)
	for (u32 probe = 0; probe < PROBES; probe++) {
		u32 slot = slot_of(key, probe);
		struct conn *conn = bpf_map_lookup_elem(&recent_conns, &slot);

		if (conn && (conn->key & ~(u64)FLAGS) == key)
			return conn;
	}
	return NULL;
}

INLINE struct conn *find_older(u64 key)
{
	struct conn *conn = has_older ? bpf_map_lookup_elem(&older_conns, &key) : NULL;

	return conn && (conn->key & ~(u64)FLAGS) == key ? conn : NULL;
}

INLINE struct conn *find_stored(void *sk, u64 key)
{
	struct conn *conn = has_stored ? bpf_sk_storage_get(&stored_conns, sk, NULL, 0) : NULL;

	return conn && (conn->key & ~(u64)FLAGS) == key ? conn : NULL;
}

/* Works like find, for a pointer through which the storage is out of reach. */
INLINE struct conn *find_by_key(u64 key)
{
	struct conn *conn = find_recent(key);

	return conn ? conn : find_older(key);
}

INLINE struct conn *find(struct sock *sk, u64 key)
{
	struct conn *conn = find_by_key(key);

	return conn ? conn : find_stored(sk, key);
}

/* Works like find, but ignores an entry that an earlier socket at this address has left because its end was missed. */
INLINE struct conn *find_of(struct sock *sk, u64 key)
{
	struct conn *conn = find(sk, key);

	return conn && (!conn->cookie || conn->cookie == (u64)sk->__sk_common.skc_cookie.counter) ? conn : NULL;
}

INLINE struct conn *claim_stored(struct sock *sk, u64 key)
{
	struct conn *conn = bpf_sk_storage_get(&stored_conns, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);

	if (!conn)
		return NULL;
	has_stored = 1;
	*(volatile u64 *)&conn->key = key | BUSY | OLD;
	return conn;
}

INLINE struct conn *claim_older(u64 key)
{
	struct conn empty = {}, *conn;

	bpf_map_update_elem(&older_conns, &key, &empty, BPF_NOEXIST);
	conn = bpf_map_lookup_elem(&older_conns, &key);
	if (!conn)
		return NULL;
	has_older = 1;
	*(volatile u64 *)&conn->key = key | BUSY | OLD;
	return conn;
}

/* A slot of `recent_conns`, of which only the key and the flags are set; the caller publishes it. An entry with the
 * same key belongs to an earlier socket at this address. NULL if all slots are taken. */
INLINE struct conn *claim_recent(u64 key)
{
#pragma clang loop unroll(disable)
	for (u32 probe = 0; probe < PROBES; probe++) {
		u32 slot = slot_of(key, probe);
		struct conn *conn = bpf_map_lookup_elem(&recent_conns, &slot);
		u64 was;

		if (!conn)
			continue;
		was = conn->key;
		if ((!was || (was & ~(u64)FLAGS) == key) &&
		    __sync_val_compare_and_swap(&conn->key, was, key | BUSY) == was) {
			if (was & PENDING)
				__sync_fetch_and_add(&waiting, -1);
			return conn;
		}
	}
	return NULL;
}

INLINE struct conn *claim(struct sock *sk, u64 key)
{
	struct conn *conn = claim_recent(key);

	return conn ? conn : claim_stored(sk, key);
}

INLINE void publish(struct conn *conn, u64 key, u64 flags)
{
	FENCE();
	*(volatile u64 *)&conn->key = key | flags | (conn->key & OLD);
}

INLINE void release(struct conn *conn, u64 key)
{
	if (conn->key & OLD) {
		*(volatile u64 *)&conn->key = OLD;
		/* The kernel frees the storage with the socket. */
		if (has_older)
			bpf_map_delete_elem(&older_conns, &key);
		return;
	}
	/* The program that is writing the owner at this moment releases it afterwards. */
	if (conn->key & BUSY && __sync_val_compare_and_swap(&conn->key, key | BUSY, BUSY) == (key | BUSY))
		return;
	*(volatile u64 *)&conn->key = 0;
}

/* Clears PENDING and sets `then`: true for exactly one caller, which reports the opening. */
INLINE bool take_pending(struct conn *conn, u64 then)
{
	u64 was = *(volatile u64 *)&conn->key;

	if (!(was & PENDING) || __sync_val_compare_and_swap(&conn->key, was, (was ^ PENDING) | then) != was)
		return false;
	__sync_fetch_and_add(&waiting, -1);
	return true;
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

/* Bytes received, without the peer's FIN, which the kernel counts as one byte. */
INLINE u64 received(struct sock *sk, struct tcp_sock *tp)
{
	u64 bytes = tp->bytes_received;

	return bytes && (sk->__sk_common.skc_flags & 1 << SOCK_DONE) ? bytes - 1 : bytes;
}

/* Submits a record. Its position in the ring decides whether to wake the reader: this needs no call of
 * bpf_ringbuf_query(), and a late reader is not woken by every event. */
INLINE void submit(void *record)
{
	u64 from = (u64)&failed, at = (u64)record;

	OPAQUE(from);
	OPAQUE(at);
	bpf_ringbuf_submit(record, ((at - from) & (WAKE_BYTES - 1)) < sizeof(struct event6) + 8 ? BPF_RB_FORCE_WAKEUP
											 : BPF_RB_NO_WAKEUP);
}

struct tcp_sock___clock { u64 tcp_clock_cache; } CORE;
typedef struct { int owned; } CORE socket_lock_t;
struct sock___locked { socket_lock_t sk_lock; } CORE;

/* The time of the packet or timer that TCP is handling. The kernel has just read the clock for it
 * (tcp_mstamp_refresh); a second reading would cost 60 ns. `by_packet`: if no process holds the socket's lock, a
 * packet or a timer is the cause. */
INLINE u64 now_ns(struct sock *sk, struct tcp_sock *tp, bool by_packet)
{
	struct tcp_sock___clock *clock = (void *)tp;
	u64 ns = 0;

	if (by_packet && !((struct sock___locked *)sk)->sk_lock.owned && field_exists(clock->tcp_clock_cache))
		ns = clock->tcp_clock_cache;
	return ns ? ns : bpf_ktime_get_ns();
}

/* An orderly close ends with a packet or a timer. A process may cause other closes without holding that lock: those of
 * children that were never accepted, when their listener closes. */
INLINE u64 close_ns(struct sock *sk, struct tcp_sock *tp, int old)
{
	u32 orderly = 1 << TCP_FIN_WAIT1 | 1 << TCP_FIN_WAIT2 | 1 << TCP_CLOSING | 1 << TCP_LAST_ACK;

	return now_ns(sk, tp, 1 << (old & 15) & orderly);
}

/* The cookie of a socket; the kernel creates it at the first request. */
INLINE u64 cookie_of(struct sock *sk)
{
	u64 cookie = sk->__sk_common.skc_cookie.counter;

	return cookie ? cookie : bpf_get_socket_cookie(sk);
}

/* `sk` as a tcp_sock that the verifier accepts, without a call since 6.2. */
INLINE struct tcp_sock *tcp_of(struct sock *sk)
{
	return bpf_rdonly_cast ? CAST(struct tcp_sock, sk) : bpf_skc_to_tcp_sock(sk);
}

struct tcp_sock___mptcp { bool is_mptcp; } CORE;
struct inet_connection_sock___mptcp { void *icsk_ulp_data; } CORE;
struct mptcp_subflow_context { struct sock *conn; } CORE;

/* The first subflow of the MPTCP connection that `sk` joined later; NULL for every other socket. A connection closes
 * its first subflow like any other, but keeps the socket to its end. Needs Linux 6.2. */
INLINE struct sock *joined_to(struct sock *sk)
{
	struct tcp_sock___mptcp *tp;
	struct mptcp_subflow_context *subflow;
	struct sock *first;

	if (!bpf_rdonly_cast || !type_exists(struct mptcp_sock))
		return NULL;
	tp = CAST(struct tcp_sock___mptcp, sk);
	if (!tp->is_mptcp)
		return NULL;
	subflow = CAST(struct mptcp_subflow_context, CAST(struct inet_connection_sock___mptcp, sk)->icsk_ulp_data);
	first = CAST(struct mptcp_sock, subflow->conn)->first;
	return first != sk ? first : NULL;
}

/* Gives a subflow without an owner the owner of the first one. Returns NAMELESS_SUBFLOW if there is none, else 0. */
INLINE u8 borrow_owner(struct sock *sk, struct conn *conn)
{
	struct sock *first = joined_to(sk);
	struct conn *lender;

	if (!first)
		return 0;
	lender = find_by_key(key_of(first));
	if (!lender || !lender->owner.pid)
		return NAMELESS_SUBFLOW;
	conn->started = lender->started;
	conn->owner = lender->owner;
	return 0;
}

/* Puts an event into the ring. A tp_btf program may read through its pointers directly. `tp` is tcp_of(sk); `marks` are
 * added to the direction. */
INLINE void emit_event(struct sock *sk, struct tcp_sock *tp, const struct conn *conn, u32 kind, u8 state, u8 marks)
{
	struct event *e;

	if (sk->__sk_common.skc_family == AF_INET6) {
		struct event6 *wide = bpf_ringbuf_reserve(&events, sizeof(*wide), 0);

		if (!wide) {
			COUNT_ONE(lost_ring);
			return;
		}
		ends_of(sk, wide->local, wide->peer);
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
	e->ns = kind == EVENT_OPEN ? conn->opened_ns : close_ns(sk, tp, state);
	e->kind = kind | WITH_IFINDEX;
	e->ifindex = sk->__sk_common.skc_bound_dev_if;
	e->state = state;
	e->netns = netns_of(sk);
	/* skc_num is already 0 when a socket closes. */
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
	e->direction = conn->direction | marks;
	e->pid = conn->owner.pid;
	e->uid = conn->owner.uid;
	e->cgroup = conn->owner.cgroup;
	e->started = conn->started;
	memcpy(e->comm, conn->owner.comm, sizeof(e->comm));
	submit(e);
}

/* Finds the user to whom an entry is charged: the socket's user in its network namespace. In namespaces that a user
 * other than root created, it is that user, regardless of the user ids and further namespaces that it created inside.
 * Namespaces that root created for a range of user ids (containers with remapped users) are charged separately for
 * each user namespace. */
INLINE void payer_of(struct sock *sk, struct flow_key *account)
{
	struct net *net = PLAIN(struct sock, sk)->__sk_common.skc_net.net;
	struct user_namespace *ns = net->user_ns;

	account->netns = net->ns.inum;
	account->local[0] = sk->sk_uid.val;
#pragma clang loop unroll(disable)
	for (u32 nesting = 0; nesting < USER_NS_LEVELS && ns && ns->level > 0; nesting++) {
		account->netns = 0;
		account->local[0] = ns->owner.val;
		account->local[1] = ns->owner.val ? 0 : ns->ns.inum;
		ns = ns->parent;
	}
}

/* The network of an IPv4 address: 24 bits, but 8 bits for 127.0.0.0/8, because every local user can use all of it. */
INLINE u32 network_of(u32 addr)
{
	return addr & ((addr & bswap32(0xff000000)) == bswap32(127 << 24) ? bswap32(0xff000000) : bswap32(0xffffff00));
}

/* The network of the flow's peer: 64 bits of an IPv6 address. */
INLINE void peer_network(const struct flow_key *flow, u32 *network)
{
	if (flow->family == AF_INET) {
		network[0] = network_of(flow->peer[0]);
		return;
	}
	network[0] = flow->peer[0];
	network[1] = flow->peer[1];
	/* IPv4 in IPv6 */
	if (!flow->peer[0] && !flow->peer[1]) {
		network[2] = flow->peer[2];
		network[3] = network_of(flow->peer[3]);
	}
}

INLINE struct flow_sum *account_at(void *map, const struct flow_key *key)
{
	struct flow_sum *sum = bpf_map_lookup_elem(map, key);
	struct flow_sum zero = {};

	if (sum)
		return sum;
	bpf_map_update_elem(map, key, &zero, BPF_NOEXIST);
	return bpf_map_lookup_elem(map, key);
}

/*
 * The account that pays for a new flow, `left` entries before the shared space is full: NULL if the flow may have an
 * entry of its own, or if there is no account.
 *
 * A user pays for its sockets. Incoming connections are also charged to the service (its user, its port, the network
 * of the peer), which may take one part in SHARE of what its user may: peers that fill the rows of one service leave
 * space for the user's others. Shares are parts of what is left, so however many there are, some is left for a user
 * without flows.
 */
INLINE struct flow_sum *account_of(void *map, struct sock *sk, const struct flow_key *flow, u64 left)
{
	struct flow_sum *user, *service;
	struct flow_key key = {};
	u64 share = left / SHARE;

	key.direction = DIRECTION_FOLDED;
	payer_of(sk, &key);
	user = account_at(map, &key);
	if (!user || user->charged >= share)
		return user;
	if (flow->direction == DIRECTION_IN) {
		u8 *kind = (u8 *)&key.local[2];

		key.port = flow->port;
		kind[0] = flow->family;
		kind[1] = flow->direction;
		peer_network(flow, key.peer);
		service = account_at(map, &key);
		if (!service)
			return user;
		if (service->charged > (share - user->charged) / SHARE)
			return service;
		COUNT_ONE(service->charged);
	}
	COUNT_ONE(user->charged);
	return NULL;
}

/* The entry for a flow that has none yet: its own, or its account's. */
INLINE struct flow_sum *new_sum(void *map, struct sock *sk, const struct flow_key *key, u64 made_before)
{
	u64 held = flows_made - made_before, all = FLOWS_FREE + FLOWS_SHARED;
	struct flow_sum zero = {}, *account;

	if (held >= FLOWS_FREE) {
		account = account_of(map, sk, key, held < all ? all - held : 0);
		if (account)
			return account;
	}
	if (!bpf_map_update_elem(map, key, &zero, BPF_NOEXIST))
		COUNT_ONE(flows_made);
	return bpf_map_lookup_elem(map, key);
}

INLINE void add_to_flow(struct sock *sk, struct tcp_sock *tp, const struct conn *conn, u32 kind, int old)
{
	struct flow_key key = {};
	struct flow_sum *sum;
	u32 zero = 0;
	u64 *active = bpf_map_lookup_elem(&active_map, &zero), now = active ? *active : 0;

	key.netns = netns_of(sk);
	key.family = sk->__sk_common.skc_family;
	key.direction = conn->direction;
	/* The port of the service; the other end's port is ephemeral. For an older connection it is unknown which is
	 * which. */
	if (conn->direction == DIRECTION_IN)
		key.port = bswap16(tp->inet_conn.icsk_inet.inet_sport);
	else if (conn->direction == DIRECTION_OUT)
		key.port = bswap16(sk->__sk_common.skc_dport);
	ends_of(sk, key.local, key.peer);
	key.ifindex = sk->__sk_common.skc_bound_dev_if;
	/* Two calls, each with its own map: the kernel inlines a lookup only if its map is known. */
	if (now & 1) {
		sum = bpf_map_lookup_elem(&flows_odd, &key);
		BARRIER();
	} else {
		sum = bpf_map_lookup_elem(&flows_even, &key);
	}
	if (!sum)
		sum = new_sum(now & 1 ? (void *)&flows_odd : (void *)&flows_even, sk, &key, now >> 1);
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
		__sync_fetch_and_add(&sum->duration_ns, close_ns(sk, tp, old) - conn->opened_ns);
}

/* True if a change of state does not matter: a step within a close, a listener, a child that is not established yet,
 * another protocol or namespace. The states are tested first: half of all changes end here without reading the
 * socket. */
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

/* True if only a process can have made this change: close(2), shutdown(2), exit. A socket without `sk_socket` has not
 * been accepted. A connection that ends without an error is a close that resets (unread data, SO_LINGER 0). */
INLINE bool is_by_process(struct sock *sk, int old, int new)
{
	if (!sk->sk_socket)
		return false;
	return new == TCP_FIN_WAIT1 || new == TCP_LAST_ACK ||
	       (new == TCP_CLOSE && !sk->sk_err && (old == TCP_ESTABLISHED || old == TCP_CLOSE_WAIT));
}

struct thread_info { u32 status; } CORE;
struct task_struct___closing { struct thread_info thread_info; u32 flags; } CORE;
/* The system call that a task is executing: x86, arm64. */
struct pt_regs { unsigned long orig_ax; } CORE;
struct pt_regs___arm64 { s32 syscallno; } CORE;
/* include/linux/sched.h; arch/x86/include/asm/thread_info.h */
enum { PF_EXITING = 0x4, TS_COMPAT = 0x2 };
/* System calls that release a descriptor: arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h,
 * and calls with the same number in both. */
enum { X86_CLOSE = 3, X86_DUP2 = 33, X86_SHUTDOWN = 48, X86_DUP3 = 292 };
enum { ARM64_DUP3 = 24, ARM64_CLOSE = 57, ARM64_SHUTDOWN = 210 };
enum { IO_URING_ENTER = 426, CLOSE_RANGE = 436 };

/*
 * True if `current` closes, shuts down or replaces a descriptor, or exits. Any other task with the last reference has
 * nothing to do with the connection: a process that examines the descriptors of others, the kernel thread that cleans
 * up after an io_uring, a child whose exec closes what it never used. Also true if the system call is unknown: before
 * 6.2, and in a 32-bit process, whose calls have other numbers.
 */
INLINE bool closes_itself(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_struct___closing *plain;
	struct pt_regs___arm64 *arm64;
	struct pt_regs *regs;

	if (!bpf_rdonly_cast)
		return true;
	plain = CAST(struct task_struct___closing, task);
	if (plain->flags & PF_EXITING)
		return true;
	regs = bpf_task_pt_regs(task);
	arm64 = (void *)regs;
	if (field_exists(regs->orig_ax)) {
		u64 call = regs->orig_ax;

		return call == X86_CLOSE || call == X86_DUP2 || call == X86_SHUTDOWN || call == X86_DUP3 ||
		       call == IO_URING_ENTER || call == CLOSE_RANGE ||
		       (field_exists(plain->thread_info.status) && plain->thread_info.status & TS_COMPAT);
	}
	if (field_exists(arm64->syscallno)) {
		s32 call = arm64->syscallno;

		return call == ARM64_DUP3 || call == ARM64_CLOSE || call == ARM64_SHUTDOWN || call == IO_URING_ENTER ||
		       call == CLOSE_RANGE;
	}
	return true;
}

/* True if the entry belongs to a connect in progress. */
INLINE bool is_connecting(const struct conn *conn)
{
	return conn && !conn->opened_ns && conn->direction == DIRECTION_OUT;
}

/* True if the socket that closes in state `old` was never connected. */
INLINE bool is_failed(const struct conn *conn, int old)
{
	return old == TCP_SYN_SENT || (old == TCP_SYN_RECV && (!conn || !conn->opened_ns));
}

/* The direction of an untracked socket in state `new`, after `old`: the connecting end passes through SYN_SENT. */
INLINE u8 direction_of(int old, int new)
{
	return new == TCP_SYN_SENT || old == TCP_SYN_SENT ? DIRECTION_OUT : DIRECTION_IN;
}

/* Creates the entry of a connection that begins: a connect, or one that is already established (`is_open`). The entry
 * gets these `flags`. Without memory for an entry, uses `fresh` instead. */
INLINE struct conn *begin_conn(struct sock *sk, struct tcp_sock *tp, u64 key, u8 direction, bool is_open, u64 flags,
			  struct conn *fresh)
{
	struct conn *conn = claim(sk, key);

	if (!conn) {
		COUNT_ONE(lost_map);
		flags = 0;
		conn = fresh;
		conn->key = 0;
	} else if (flags & PENDING) {
		__sync_fetch_and_add(&waiting, 1);
	}
	conn->opened_ns = is_open ? now_ns(sk, tp, true) : 0;
	conn->cookie = flags ? cookie_of(sk) : 0;
	conn->direction = direction;
	conn->owner = (struct owner){};
	conn->started = 0;
	if (flags & WITH_OWNER)
		set_owner(conn);
	if (conn != fresh)
		publish(conn, key, flags & PENDING);
	return conn;
}

SEC("tp_btf/inet_sock_set_state")
int on_state(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	int old = ctx[1], new = ctx[2];
	struct conn fresh, *conn;
	struct tcp_sock *tp;
	u32 emit = 0;
	u8 marks = 0;
	u64 key;

	if (is_foreign(sk, old, new))
		return 0;
	tp = tcp_of(sk);
	if (!tp)
		return 0;
	key = key_of(sk);
	conn = new == TCP_SYN_SENT ? NULL : find_of(sk, key);
	if (new == TCP_SYN_SENT || (new == TCP_ESTABLISHED && !is_connecting(conn))) {
		/* In CLOSE -> SYN_SENT `current` is always the connecting process. An outgoing connection is never
		 * accepted, so it is never PENDING. */
		u8 direction = direction_of(old, new);
		u64 flags = new == TCP_SYN_SENT ? WITH_OWNER : direction == DIRECTION_IN ? PENDING : 0;

		/* No process connects or accepts it. */
		if (joined_to(sk))
			flags = JOINED;
		conn = begin_conn(sk, tp, key, direction, new == TCP_ESTABLISHED, flags, &fresh);
		if (new == TCP_SYN_SENT || conn->key & PENDING)
			return 0;
		emit = 1 << EVENT_OPEN;
	} else if (new == TCP_ESTABLISHED) {
		conn->opened_ns = now_ns(sk, tp, true);
		emit = 1 << EVENT_OPEN;
	} else if (conn && is_by_process(sk, old, new)) {
		u32 pid = pid_in(bpf_get_current_task_btf(), pidns);

		if (conn->owner.pid != pid && !(conn->key & BUSY) && closes_itself())
			set_owner_as(conn, pid);
		if (take_pending(conn, 0)) {
			COUNT_ONE(unasked);
			emit = 1 << EVENT_OPEN;
		}
	}
	if (new == TCP_CLOSE) {
		if (is_failed(conn, old)) {
			COUNT_ONE(failed);
			if (conn)
				release(conn, key);
			return 0;
		}
		if (!conn) {
			fresh = (struct conn){ .direction = DIRECTION_UNKNOWN, .cookie = cookie_of(sk) };
			conn = &fresh;
		}
		/* It was never accepted. */
		if (take_pending(conn, 0))
			emit |= 1 << EVENT_OPEN;
		emit |= 1 << EVENT_CLOSE;
	}
	if (!conn)
		return 0;
	if (!conn->owner.pid)
		marks = borrow_owner(sk, conn);
	if (emit && !conn->cookie)
		conn->cookie = cookie_of(sk);
	/* A loop, so that emit_event, which is most of the code, is inlined only once. */
#pragma clang loop unroll(disable)
	for (u32 kind = EVENT_OPEN; kind <= EVENT_CLOSE; kind++)
		if (emit & 1 << kind)
			emit_event(sk, tp, conn, kind, kind == EVENT_OPEN ? TCP_ESTABLISHED : old, marks);
	if (emit & 1 << EVENT_CLOSE && conn != &fresh)
		release(conn, key);
	return 0;
}

/* Works like on_state, for flows: without owners and events; accepting makes no difference. */
SEC("tp_btf/inet_sock_set_state")
int on_sums(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	int old = ctx[1], new = ctx[2];
	struct conn fresh, *conn;
	struct tcp_sock *tp;
	u64 key;

	if ((new == TCP_FIN_WAIT1 || new == TCP_LAST_ACK) || is_foreign(sk, old, new))
		return 0;
	tp = tcp_of(sk);
	if (!tp)
		return 0;
	key = key_of(sk);
	conn = new == TCP_SYN_SENT ? NULL : find_of(sk, key);
	if (new == TCP_SYN_SENT || (new == TCP_ESTABLISHED && !is_connecting(conn)))
		conn = begin_conn(sk, tp, key, direction_of(old, new), new == TCP_ESTABLISHED, 0, &fresh);
	else if (new == TCP_ESTABLISHED)
		conn->opened_ns = now_ns(sk, tp, true);
	if (new == TCP_SYN_SENT)
		return 0;
	if (new == TCP_CLOSE && is_failed(conn, old)) {
		COUNT_ONE(failed);
	} else {
		if (!conn) {
			fresh = (struct conn){ .direction = DIRECTION_UNKNOWN };
			conn = &fresh;
		}
		add_to_flow(sk, tp, conn, new == TCP_CLOSE ? EVENT_CLOSE : EVENT_OPEN, old);
	}
	if (new == TCP_CLOSE && conn && conn != &fresh)
		release(conn, key);
	return 0;
}

/* The TCP socket that a process uses by `sk`: of an MPTCP socket its first subflow, because that is the connection to
 * report. NULL if it has none, or for another protocol. Needs Linux 6.2 for MPTCP. */
INLINE struct tcp_sock *used_by(void *sk, bool *is_subflow)
{
	u32 protocol;
	struct sock *first;

	if (!bpf_rdonly_cast)
		return bpf_skc_to_tcp_sock(sk);
	protocol = CAST(struct sock, sk)->sk_protocol;
	if (protocol == IPPROTO_TCP)
		return CAST(struct tcp_sock, sk);
	if (protocol != IPPROTO_MPTCP || !type_exists(struct mptcp_sock))
		return NULL;
	*is_subflow = true;
	first = CAST(struct mptcp_sock, sk)->first;
	return first ? CAST(struct tcp_sock, first) : NULL;
}

/* The entry under the key of used_by(). BPF cannot access the storage of a subflow, because its pointer was read from
 * memory. */
INLINE struct conn *find_used(void *sk, u64 key, bool is_subflow)
{
	struct conn *conn = find_by_key(key);

	return conn || is_subflow ? conn : find_stored(sk, key);
}

/* A process uses an accepted socket: it is the owner if the opening has not been reported yet. */
INLINE void on_work(void *sk)
{
	bool is_subflow = false;
	struct tcp_sock *tp;
	struct conn *conn;
	u64 key;

	if (waiting <= 0)
		return;
	tp = used_by(sk, &is_subflow);
	if (!tp || (only_netns && netns_of((struct sock *)tp) != only_netns))
		return;
	key = key_of(tp);
	conn = find_used(sk, key, is_subflow);
	/* While BUSY is set, no other socket gets the entry, regardless of what happens to this one. */
	if (!conn || !take_pending(conn, BUSY))
		return;
	set_owner(conn);
	emit_event((struct sock *)tp, tp, conn, EVENT_OPEN, TCP_ESTABLISHED, 0);
	if (conn->key & OLD)
		publish(conn, key, 0);
	else if (__sync_val_compare_and_swap(&conn->key, key | BUSY, key) != (key | BUSY))
		*(volatile u64 *)&conn->key = 0;
}

/* Every send and receive of every socket runs the following two programs, and entering one costs 90 ns: the reader
 * attaches them only once some process accepts connections without reading the peer's name. */
SEC("tp_btf/sock_send_length")
int on_send(u64 *ctx)
{
	on_work((void *)ctx[0]);
	return 0;
}

SEC("tp_btf/sock_recv_length")
int on_receive(u64 *ctx)
{
	on_work((void *)ctx[0]);
	return 0;
}

/* accept(2) with an address argument. getpeername(2) also runs these programs, which is harmless. */
INLINE int on_name(struct bpf_sock_addr *ctx)
{
	if (ctx->sk)
		on_work(ctx->sk);
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

/* Sockets older than this program: the process that has one open now will close it, unless it passes it on. An MPTCP
 * socket stands for its first subflow, from which the others borrow the process. */
SEC("iter/task_file")
int stamp(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	bool is_subflow = false;
	struct sock *sk, *tcp;
	struct socket *socket;
	struct conn *conn;
	u64 key;
	u8 state;

	if (!task || !file)
		return 0; /* the last call has neither */
	socket = bpf_sock_from_file(file);
	if (!socket)
		return 0;
	sk = socket->sk;
	tcp = sk ? (struct sock *)used_by(sk, &is_subflow) : NULL;
	if (!tcp || (tcp->__sk_common.skc_family != AF_INET && tcp->__sk_common.skc_family != AF_INET6))
		return 0;
	if (only_netns && netns_of(tcp) != only_netns)
		return 0;
	state = tcp->__sk_common.skc_state;
	if (state == TCP_CLOSE || state == TCP_LISTEN || state == TCP_SYN_SENT)
		return 0;
	key = key_of(tcp);
	if (find_by_key(key))
		return 0; /* another process with the same socket came first, or it began in this run */
	conn = claim_older(key);
	if (!conn)
		return 0;
	conn->opened_ns = 0;
	conn->direction = DIRECTION_UNKNOWN;
	conn->cookie = tcp->__sk_common.skc_cookie.counter;
	memcpy(conn->owner.comm, PLAIN(struct task_struct, task)->group_leader->comm, sizeof(conn->owner.comm));
	conn->owner.uid = task->cred->uid.val;
	conn->owner.cgroup = task->cgroups->dfl_cgrp->kn->id;
	conn->started = started_of(task);
	conn->owner.pid = pid_in(task, pidns);
	publish(conn, key, 0);
	/* The iterator holds the file, but the connection may have ended by now: then no event would remove the
	 * entry. */
	if (tcp->__sk_common.skc_state == TCP_CLOSE)
		release(conn, key);
	return 0;
}
