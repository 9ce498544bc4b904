/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The kernel types that the walk of the socket tables reads, and the few words of BPF that it is written in.
 *
 * Only names and nesting matter: offsets, sizes and existence are those of the running kernel (CO-RE). */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed int s32;
typedef signed long long s64;

#define SEC(n) __attribute__((section(n), used))
#define __uint(n, v) int (*n)[v]
#define __type(n, v) typeof(v) *n
#define __ksym __attribute__((section(".ksyms")))
#define inl static inline __attribute__((always_inline))
#define CORE __attribute__((preserve_access_index))

#define type_id(t) __builtin_btf_type_id(*(t *)0, 1)
#define type_size(t) __builtin_preserve_type_info(*(t *)0, 1)
#define field_offset(t, f) __builtin_preserve_field_info(((t *)0)->f, 0)
#define field_info(e, what) __builtin_preserve_field_info(e, what)
#define field_exists(e) __builtin_preserve_field_info(e, 2)
#define barrier() asm volatile("" ::: "memory")
#define barrier_var(v) asm volatile("" : "+r"(v))

/* kernel/bpf/helpers.c: kfuncs of 6.2. */
extern void *bpf_rdonly_cast(const void *obj, u32 btf_id) __ksym;
extern void bpf_rcu_read_lock(void) __ksym;
extern void bpf_rcu_read_unlock(void) __ksym;
/* A number as a typed address: loads through it give 0 where there is no memory. */
#define cast(t, p) ((t *)bpf_rdonly_cast((const void *)(p), type_id(t)))

static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static long (*const bpf_probe_read_kernel)(void *dst, u32 size, const void *src) = (void *)113;
static u64 (*const bpf_jiffies64)(void) = (void *)118;
struct task_struct;
static struct task_struct *(*const bpf_get_current_task_btf)(void) = (void *)158;	/* 5.11 */

/* may_goto (6.9): true while the run's budget of some 8 million steps lasts. Opcode 0xe5, offset in 16 bits; clang 14
 * has no name for it. */
#define MAY_GOTO ({ __label__ out_, in_; int ok_ = 1; \
	asm volatile goto("9: .byte 0xe5, 0; .long ((%l[out_] - 9b - 8) / 8) & 0xffff; .short 0" :::: out_); \
	goto in_; out_: ok_ = 0; in_: ok_; })

struct list_head { struct list_head *next; } CORE;
struct proc_ns_operations;
struct ns_common { u32 inum; const struct proc_ns_operations *ops; } CORE;
struct hlist_node { struct hlist_node *next, **pprev; } CORE;
struct hlist_nulls_node { void *next; } CORE;
struct hlist_nulls_head { struct hlist_nulls_node *first; } CORE;
struct rb_node { unsigned long __rb_parent_color; } CORE;	/* any type that starts with a plain word */
struct timer_list { struct hlist_node entry; unsigned long expires; } CORE;
struct inet_listen_hashbucket { struct hlist_nulls_head nulls_head; } CORE;
struct inet_hashinfo { void *ehash; u32 ehash_mask; u32 lhash2_mask; void *lhash2; _Bool pernet; } CORE;
struct inet_timewait_death_row { struct inet_hashinfo *hashinfo; } CORE;
struct netns_ipv4 { struct inet_timewait_death_row tcp_death_row; } CORE;	/* a pointer before 6.1 */
struct net { struct list_head list; struct ns_common ns; struct netns_ipv4 ipv4; } CORE;
struct nsproxy { struct net *net_ns; } CORE;
struct task_struct { struct nsproxy *nsproxy; } CORE;
typedef struct { struct net *net; } CORE possible_net_t;
struct in6_addr { union { u32 u6_addr32[4]; } in6_u; } CORE;
struct sock_common {
	u32 skc_daddr, skc_rcv_saddr, skc_hash;
	u16 skc_dport, skc_num, skc_family;
	volatile u8 skc_state;
	u8 skc_reuse : 4, skc_reuseport : 1, skc_ipv6only : 1;
	s32 skc_bound_dev_if;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr, skc_v6_rcv_saddr;
	struct hlist_nulls_node skc_nulls_node;
} CORE;
struct inode { unsigned long i_ino; } CORE;
struct socket_alloc { struct inode vfs_inode; } CORE;
struct socket;
typedef struct { u32 val; } CORE kuid_t;
struct sock {
	struct sock_common __sk_common;
	kuid_t sk_uid;
	u32 sk_mark, sk_ack_backlog, sk_max_ack_backlog;
	unsigned long sk_ino;			/* 6.18 */
	struct socket *sk_socket;
	struct timer_list sk_timer;
	struct timer_list tcp_retransmit_timer;	/* after 6.18 */
} CORE;
struct inet_sock { struct sock sk; } CORE;
struct inet_connection_sock {
	struct inet_sock icsk_inet;
	unsigned long icsk_timeout;		/* until 6.17 */
	struct timer_list icsk_retransmit_timer;
	struct timer_list icsk_keepalive_timer;	/* after 6.18 */
	u8 icsk_retransmits, icsk_pending, icsk_probes_out;
} CORE;
struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 rcv_nxt, copied_seq, write_seq, snd_una;
	u32 segs_in, segs_out, total_retrans, srtt_us, mdev_us, snd_cwnd;
	u64 bytes_received, bytes_acked, bytes_sent, bytes_retrans;
} CORE;
struct inet_timewait_sock { struct sock_common __tw_common; u32 tw_mark; u8 tw_substate; struct timer_list tw_timer; } CORE;
struct request_sock { struct sock_common __req_common; u8 num_retrans; struct timer_list rsk_timer; } CORE;
struct inet_request_sock { struct request_sock req; u32 ir_mark; } CORE;
