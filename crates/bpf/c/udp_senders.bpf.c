/* SPDX-License-Identifier: Dual BSD/GPL
 *
 * Processes that send UDP datagrams: one event at a socket's first send, repeated at intervals as long as it sends.
 *
 * A socket that queries a name server lives for some milliseconds, so readings of the socket table do not see it.
 * There is no event for its close: the reader forgets it after a while, which is why events are repeated.
 *
 * Needs Linux 6.3 (sock_send_length).
 */
#include "kernel.h"
#include "pids.h"

LICENSE("Dual BSD/GPL");

const volatile u32 only_netns = 0; /* inode of the only namespace to report; 0: all */
const volatile u32 pidns = 0; /* inode of the reader's pid namespace; 0: the initial one */

enum { EVENT_SENDS = 3, WITH_IFINDEX = 128 };

/* Minimum interval between events of the same socket and process. */
#define AGAIN_NS 500000000

struct told {
	u64 ns;
	u32 pid;
	u32 pad;
};

/* Charged to each socket, and freed with it. */
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_SK_STORAGE);
	MAP_NUMBER(map_flags, BPF_F_NO_PREALLOC);
	MAP_TYPE(key, int);
	MAP_TYPE(value, struct told);
} told_sockets SEC(".maps");

/* 8,000 events while the reader is busy; it polls a hundred times a second. */
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_RINGBUF);
	MAP_NUMBER(max_entries, 1 << 20);
} events SEC(".maps");

/* As in sockets_events.bpf.c: decoded in crates/sockets/src/events/bpf/event.rs. */
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
	u32 ifindex;
};

struct event6 {
	struct event event;
	u32 local[4], peer[4];
	u8 pad[32];
};

u64 lost_ring; /* events lost because the ring was full */

INLINE u32 netns_of(struct sock *sk)
{
	return PLAIN(struct sock, sk)->__sk_common.skc_net.net->ns.inum;
}

INLINE void set_sender(struct event *e, struct sock *sk, u64 ns, u32 pid)
{
	struct task_struct *task = bpf_get_current_task_btf(), *plain = PLAIN(struct task_struct, task);

	*e = (struct event){ .ns = ns, .kind = EVENT_SENDS | WITH_IFINDEX, .state = sk->__sk_common.skc_state };
	e->netns = netns_of(sk);
	e->ifindex = sk->__sk_common.skc_bound_dev_if;
	e->local_port = sk->__sk_common.skc_num;
	e->pid = pid;
	e->uid = plain->cred->uid.val;
	e->cgroup = plain->cgroups->dfl_cgrp->kn->id;
	e->started = plain->group_leader->start_boottime >> 20;
	/* A process is named after its main thread; `task` may be a different thread. */
	memcpy(e->comm, plain->group_leader->comm, sizeof(e->comm));
}

INLINE void emit4(struct sock *sk, u64 ns, u32 pid, u32 local)
{
	struct event *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);

	if (!e) {
		COUNT_ONE(lost_ring);
		return;
	}
	set_sender(e, sk, ns, pid);
	e->family = AF_INET;
	e->local = local;
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

INLINE void emit6(struct sock *sk, u64 ns, u32 pid, const u32 *local)
{
	struct event6 *wide = bpf_ringbuf_reserve(&events, sizeof(*wide), 0);

	if (!wide) {
		COUNT_ONE(lost_ring);
		return;
	}
	set_sender(&wide->event, sk, ns, pid);
	wide->event.family = AF_INET6;
	for (int i = 0; i < 4; i++) {
		wide->local[i] = local[i];
		wide->peer[i] = 0;
	}
	bpf_ringbuf_submit(wide, BPF_RB_NO_WAKEUP);
}

INLINE bool is_v6only(struct sock_common *common)
{
	u64 bits = 0;

	bpf_probe_read_kernel(&bits, sizeof(bits), (void *)common + field_info(common->skc_ipv6only, 0));
	return bits << field_info(common->skc_ipv6only, 4) >> field_info(common->skc_ipv6only, 5);
}

INLINE void emit(struct sock *sk, u64 ns, u32 pid)
{
	struct sock_common *common = &sk->__sk_common;
	u32 local[4];

	if (common->skc_family == AF_INET) {
		emit4(sk, ns, pid, common->skc_rcv_saddr);
		return;
	}
	for (int i = 0; i < 4; i++)
		local[i] = common->skc_v6_rcv_saddr.in6_u.u6_addr32[i];
	emit6(sk, ns, pid, local);
	/* An IPv6 socket without an address also sends over IPv4 unless it has IPV6_V6ONLY. */
	if (!(local[0] | local[1] | local[2] | local[3]) && !is_v6only(common))
		emit4(sk, ns, pid, 0);
}

SEC("tp_btf/sock_send_length")
int on_datagram(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	struct told *told;
	u64 ns;
	u32 pid;

	if (sk->sk_protocol != IPPROTO_UDP)
		return 0;
	if (sk->__sk_common.skc_family != AF_INET && sk->__sk_common.skc_family != AF_INET6)
		return 0;
	if (only_netns && netns_of(sk) != only_netns)
		return 0;
	told = bpf_sk_storage_get(&told_sockets, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	ns = bpf_ktime_get_ns();
	pid = pid_in(bpf_get_current_task_btf(), pidns);
	if (told) {
		if (told->pid == pid && ns - told->ns < AGAIN_NS)
			return 0;
		told->pid = pid;
		told->ns = ns;
	}
	emit(sk, ns, pid);
	return 0;
}
