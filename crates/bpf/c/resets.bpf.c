/* SPDX-License-Identifier: Dual BSD/GPL
 *
 * Connections that end with a reset: one event for each reset that a socket of this host receives or sends.
 *
 * The kernel counts resets, but not by connection. Its tracepoints run where a socket gets a reset and where it sends
 * one. Resets that belong to no socket, such as answers to a port scan, are left out. A program that resets a
 * connection with close() runs at that moment, so it is known.
 *
 * Needs Linux 5.10.
 */
#include "kernel.h"
#include "pids.h"

LICENSE("Dual BSD/GPL");

const volatile u32 only_netns = 0; /* inode of the only namespace to report; 0: all */
const volatile u32 pidns = 0;	   /* inode of the reader's pid namespace; 0: the initial one */

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_RINGBUF);
	MAP_NUMBER(max_entries, 1 << 20);
} events SEC(".maps");

/* Times of the last data and of the last acknowledgement from the peer, in jiffies. */
struct inet_connection_sock___heard { struct { u32 lrcvtime; } icsk_ack; } CORE;
struct tcp_sock___heard { u32 rcv_tstamp; } CORE;
struct sk_buff { unsigned char *head; u16 protocol, network_header, transport_header; } CORE;

/* include/net/sock.h, enum sock_flags: tcp_fin() sets it when the peer's FIN arrives. */
enum { SOCK_DONE = 1 };
enum { SENT = 1, RECEIVED = 2 };
enum { ETH_P_IP = 0x0800, ETH_P_IPV6 = 0x86dd };

/* crates/bpf/src/resets.rs decodes it. */
struct event {
	u64 ns, jiffies;
	u64 in, acked; /* bytes received and acknowledged since the connection began */
	u32 netns, pid;
	u32 local[4], peer[4]; /* IPv4: the first word */
	u16 local_port, peer_port;
	u8 family, direction, state, retransmits;
	u32 inode;  /* of the socket; 0 after its program has closed it */
	u32 heard;  /* time of the last segment from the peer: the lowest bits of jiffies */
	u32 unacked; /* bytes sent and not acknowledged */
	u32 unread;  /* bytes received and not read */
	char comm[16];
};

u64 lost_ring; /* events lost because the ring was full */

INLINE void set_ends(struct event *e, struct sock *sk)
{
	struct sock_common *common = &sk->__sk_common;

	e->family = common->skc_family;
	/* A closed socket has lost skc_num. */
	e->local_port = bswap16(READ((struct inet_sock *)(void *)sk, inet_sport));
	e->peer_port = bswap16(common->skc_dport);
	if (e->family == AF_INET) {
		e->local[0] = common->skc_rcv_saddr;
		e->peer[0] = common->skc_daddr;
		return;
	}
	for (int i = 0; i < 4; i++) {
		e->local[i] = common->skc_v6_rcv_saddr.in6_u.u6_addr32[i];
		e->peer[i] = common->skc_v6_daddr.in6_u.u6_addr32[i];
	}
}

/* The ends of a segment to a listener: the reset goes back to its source. */
INLINE void set_ends_of(struct event *e, struct sk_buff *skb)
{
	unsigned char *head = READ(skb, head), *ip = head + READ(skb, network_header);
	u16 protocol = READ(skb, protocol), port = 0;

	if (protocol == bswap16(ETH_P_IP)) {
		e->family = AF_INET;
		bpf_probe_read_kernel(e->peer, 4, ip + 12);
		bpf_probe_read_kernel(e->local, 4, ip + 16);
	} else if (protocol == bswap16(ETH_P_IPV6)) {
		e->family = AF_INET6;
		bpf_probe_read_kernel(e->peer, 16, ip + 8);
		bpf_probe_read_kernel(e->local, 16, ip + 24);
	}
	bpf_probe_read_kernel(&port, sizeof(port), head + READ(skb, transport_header));
	e->peer_port = bswap16(port);
}

INLINE void set_numbers(struct event *e, struct sock *sk)
{
	struct tcp_sock *tcp = (void *)sk;
	struct socket *so = sk->sk_socket;
	u32 data = READ((struct inet_connection_sock___heard *)(void *)sk, icsk_ack.lrcvtime);
	u32 ack = READ((struct tcp_sock___heard *)(void *)sk, rcv_tstamp);

	e->heard = (s32)(data - ack) > 0 ? data : ack;
	e->in = READ(tcp, bytes_received);
	e->acked = READ(tcp, bytes_acked);
	e->unacked = READ(tcp, write_seq) - READ(tcp, snd_una);
	e->unread = READ(tcp, rcv_nxt) - READ(tcp, copied_seq);
	/* The end of the peer's data takes a number as well. */
	if (e->unread && sk->__sk_common.skc_flags >> SOCK_DONE & 1)
		e->unread--;
	e->retransmits = READ((struct inet_connection_sock *)(void *)sk, icsk_retransmits);
	if (field_exists(sk->sk_ino))
		e->inode = sk->sk_ino;
	else if (so)
		e->inode = READ((struct socket_alloc *)so, vfs_inode.i_ino);
}

/* The pid of the process in the reader's pid namespace; 0 if it is not visible there. As pid_in(), which needs 5.11. */
INLINE u32 pid_of(struct task_struct *leader)
{
	struct pid *pid = READ(leader, thread_pid);
	u32 deepest = READ(pid, level);

	if (!pidns)
		return READ(leader, tgid);
#pragma clang loop unroll(disable)
	for (u32 level = 1; level <= LEVELS && level <= deepest; level++) {
		if (namespace_at(pid, level) == pidns)
			return number_at(pid, level);
	}
	return 0;
}

INLINE void set_program(struct event *e)
{
	struct task_struct *leader = READ((struct task_struct *)bpf_get_current_task(), group_leader);

	e->pid = pid_of(leader);
	bpf_probe_read_kernel(e->comm, sizeof(e->comm), (void *)leader + field_offset(struct task_struct, comm));
}

INLINE int emit(struct sock *sk, struct sk_buff *skb, u8 direction)
{
	u32 netns = sk->__sk_common.skc_net.net->ns.inum;
	u8 state = sk->__sk_common.skc_state;
	struct event *e;

	/* Sockets that are not full ones lack these members. */
	if (state == TCP_TIME_WAIT || state == TCP_NEW_SYN_RECV || (only_netns && netns != only_netns))
		return 0;
	if (sk->__sk_common.skc_family != AF_INET && sk->__sk_common.skc_family != AF_INET6)
		return 0;
	e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	if (!e) {
		COUNT_ONE(lost_ring);
		return 0;
	}
	*e = (struct event){ .ns = bpf_ktime_get_ns(), .jiffies = bpf_jiffies64(), .netns = netns, .state = state };
	e->direction = direction;
	set_ends(e, sk);
	if (state == TCP_LISTEN && skb)
		set_ends_of(e, skb);
	else
		set_numbers(e, sk);
	/* A reset that answers no segment is sent by the program that closes the connection, or by a timer. */
	if (direction == SENT && !skb)
		set_program(e);
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return 0;
}

SEC("tp_btf/tcp_receive_reset")
int on_received(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];

	return sk ? emit(PLAIN(struct sock, sk), NULL, RECEIVED) : 0;
}

SEC("tp_btf/tcp_send_reset")
int on_sent(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	struct sk_buff *skb = (void *)ctx[1];

	return sk ? emit(PLAIN(struct sock, sk), skb, SENT) : 0;
}
