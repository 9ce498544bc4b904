/* SPDX-License-Identifier: Dual BSD/GPL
 *
 * The kernel's types, as far as the programs read them.
 *
 * Each struct lists only the members that are used. The compiler writes a relocation for every access (CORE), and the
 * loader fills in the offset of the running kernel: order, size and completeness do not matter here, names and nesting
 * do. Rules that are easily forgotten:  - a member that is an enum must be declared as an enum; an integer of another
 * size is fine;  - a second variant of a type (another kernel's) is called `name___what`: the loader removes the
 * suffix from `___` on;  - structs with a fixed layout (contexts of programs, headers on the wire) must not have CORE.
 */
#pragma once
#include "helpers.h"

#define CORE __attribute__((preserve_access_index))

enum socket_family { AF_UNIX = 1, AF_INET = 2, AF_INET6 = 10, AF_NETLINK = 16, AF_PACKET = 17 };
enum socket_kind { SOCK_STREAM = 1, SOCK_DGRAM = 2, SOCK_RAW = 3, SOCK_SEQPACKET = 5 };
enum socket_protocol {
	IPPROTO_ICMP = 1,
	IPPROTO_TCP = 6,
	IPPROTO_UDP = 17,
	IPPROTO_DCCP = 33,
	IPPROTO_ICMPV6 = 58,
	IPPROTO_SCTP = 132,
	IPPROTO_UDPLITE = 136,
	IPPROTO_RAW = 255,
	IPPROTO_MPTCP = 262,
};
/* include/net/tcp_states.h */
enum tcp_state {
	TCP_ESTABLISHED = 1,
	TCP_SYN_SENT,
	TCP_SYN_RECV,
	TCP_FIN_WAIT1,
	TCP_FIN_WAIT2,
	TCP_TIME_WAIT,
	TCP_CLOSE,
	TCP_CLOSE_WAIT,
	TCP_LAST_ACK,
	TCP_LISTEN,
	TCP_CLOSING,
	TCP_NEW_SYN_RECV,
	TCP_BOUND_INACTIVE,
};

/* ---- links of tables ---- */
struct list_head { struct list_head *next, *prev; } CORE;
struct hlist_node { struct hlist_node *next, **pprev; } CORE;
struct hlist_head { struct hlist_node *first; } CORE;
/* `next` and `first` as void: the end of such a chain is an odd number, not a pointer. */
struct hlist_nulls_node { void *next, **pprev; } CORE;
struct hlist_nulls_head { void *first; } CORE;
/* A type that begins with a plain word, to read a chain's link as a number (a pointer would be followed). */
struct rb_node { unsigned long __rb_parent_color; } CORE;
/* An entry of the interrupt table, which only x86 has: see FENCE. */
struct gate_struct { u16 offset_low; } CORE;
/* Eight consecutive words, in every kernel since 2.6.35: their names have no meaning here. */
struct rtnl_link_stats64 {
	u64 rx_packets, tx_packets, rx_bytes, tx_bytes, rx_errors, tx_errors, rx_dropped, tx_dropped;
} CORE;
#define WORD_AT(address) (CAST(struct rb_node, address)->__rb_parent_color)
typedef struct { int counter; } CORE atomic_t;
typedef struct { s64 counter; } CORE atomic64_t;
typedef struct refcount_struct { atomic_t refs; } CORE refcount_t;

/* ---- processes, namespaces, files ---- */
typedef struct { u32 val; } CORE kuid_t;
typedef struct { u32 val; } CORE kgid_t;
struct proc_ns_operations;
struct ns_common { u32 inum; const struct proc_ns_operations *ops; } CORE;
struct net;
struct pid_namespace { unsigned int level; struct ns_common ns; } CORE;
struct upid { int nr; struct pid_namespace *ns; } CORE;
struct pid { unsigned int level; struct upid numbers[1]; } CORE;
struct nsproxy { struct net *net_ns; struct pid_namespace *pid_ns_for_children; } CORE;
struct kernfs_node { u64 id; } CORE;
struct cgroup { struct kernfs_node *kn; } CORE;
struct css_set { struct cgroup *dfl_cgrp; } CORE;
struct cred { kuid_t uid, euid; } CORE;
struct fdtable { struct file **fd; } CORE;
struct files_struct { int next_fd; struct fdtable *fdt; } CORE;
struct signal_struct { int nr_threads; } CORE;
struct task_struct {
	int pid, tgid;
	char comm[16];
	u64 start_time, start_boottime;
	struct task_struct *group_leader, *real_parent;
	struct signal_struct *signal;
	struct files_struct *files;
	struct nsproxy *nsproxy;
	const struct cred *cred;
	struct pid *thread_pid;
	struct css_set *cgroups;
} CORE;
struct timer_list { struct hlist_node entry; unsigned long expires; } CORE;
struct inode { unsigned long i_ino; } CORE;
struct file { struct inode *f_inode; void *private_data; } CORE;

/* ---- network namespaces and TCP's tables ---- */
struct inet_listen_hashbucket { int lock; struct hlist_nulls_head nulls_head; } CORE;
struct inet_bind_hashbucket { struct hlist_head chain; } CORE;
struct inet_ehash_bucket { struct hlist_nulls_head chain; } CORE;
struct inet_hashinfo {
	struct inet_ehash_bucket *ehash;
	u32 ehash_mask;
	u32 bhash_size;
	struct inet_bind_hashbucket *bhash, *bhash2;
	u32 lhash2_mask;
	struct inet_listen_hashbucket *lhash2;
	bool pernet; /* 6.1 */
} CORE;
struct inet_timewait_death_row { struct inet_hashinfo *hashinfo; } CORE;
struct netns_ipv4 { struct inet_timewait_death_row tcp_death_row; } CORE;
/* 5.10 to 6.0: the member is a pointer. */
struct inet_timewait_death_row___pointed { struct inet_hashinfo *hashinfo; } CORE;
struct netns_ipv4___pointed { struct inet_timewait_death_row___pointed *tcp_death_row; } CORE;
/* Maximum nesting of user namespaces (kernel/user_namespace.c, create_user_ns). */
#define USER_NS_LEVELS 33
struct user_namespace { struct user_namespace *parent; int level; kuid_t owner; struct ns_common ns; } CORE;
struct net {
	struct ns_common ns;
	u64 net_cookie;
	struct user_namespace *user_ns;
	struct netns_ipv4 ipv4;
	struct list_head list;
} CORE;
typedef struct { struct net *net; } CORE possible_net_t;

/* ---- sockets ---- */
struct in6_addr { union { u8 u6_addr8[16]; u32 u6_addr32[4]; } in6_u; } CORE;
struct proto { char name[32]; } CORE;
struct inet_bind_bucket { unsigned short port; } CORE;
struct sock_common {
	u32 skc_daddr, skc_rcv_saddr;
	u32 skc_hash;
	u16 skc_dport, skc_num;
	u16 skc_family;
	volatile u8 skc_state;
	unsigned long skc_flags;
	u8 skc_reuse : 4, skc_reuseport : 1, skc_ipv6only : 1;
	int skc_bound_dev_if;
	struct proto *skc_prot;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr, skc_v6_rcv_saddr;
	atomic64_t skc_cookie;
	struct hlist_nulls_node skc_nulls_node;
	struct hlist_node skc_node, skc_bind_node;
	refcount_t skc_refcnt;
} CORE;
struct socket;
struct sk_buff_head { u32 qlen; } CORE;
struct sock_cgroup_data { struct cgroup *cgroup; } CORE;
struct sock {
	struct sock_common __sk_common;
	u16 sk_protocol, sk_type;
	u8 sk_shutdown;
	kuid_t sk_uid;
	unsigned long sk_ino; /* 6.18; before that in the inode that embeds sk_socket */
	u32 sk_ack_backlog, sk_max_ack_backlog;
	u32 sk_mark, sk_priority;
	int sk_rcvbuf, sk_sndbuf, sk_wmem_queued, sk_forward_alloc;
	refcount_t sk_wmem_alloc;
	atomic_t sk_drops, sk_omem_alloc;
	struct { atomic_t rmem_alloc; int len; } CORE sk_backlog;
	struct sk_buff_head sk_receive_queue, sk_write_queue;
	struct sock_cgroup_data sk_cgrp_data;
	struct socket *sk_socket;
	struct hlist_node sk_bind2_node; /* up to 6.7 */
	struct timer_list sk_timer;
	struct timer_list tcp_retransmit_timer; /* after 6.18 */
	u64 sk_pacing_rate, sk_max_pacing_rate;
	int sk_err;
} CORE;
struct socket { short type; struct sock *sk; struct file *file; } CORE;
/* A socket and its inode are one object: leads from the first to the second. */
struct socket_alloc { struct socket socket; struct inode vfs_inode; } CORE;
struct inet_sock { struct sock sk; u16 inet_sport; u32 inet_saddr; u16 inet_num; u8 tos; } CORE;
struct inet_connection_sock {
	struct inet_sock icsk_inet;
	unsigned long icsk_timeout; /* up to 6.17 */
	struct timer_list icsk_retransmit_timer;
	struct timer_list icsk_keepalive_timer; /* after 6.18 */
	u8 icsk_ca_state : 5, icsk_retransmits, icsk_pending, icsk_backoff, icsk_probes_out;
	u32 icsk_rto, icsk_pmtu_cookie;
	struct { u32 lrcvtime; u16 rcv_mss; } CORE icsk_ack;
} CORE;
struct tcp_options_received {
	u8 tstamp_ok : 1, wscale_ok : 1, sack_ok : 3;
	u8 snd_wscale : 4, rcv_wscale : 4;
} CORE;
struct minmax_sample { u32 t, v; } CORE;
struct minmax { struct minmax_sample s[3]; } CORE;
struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 rcv_nxt, copied_seq, write_seq, snd_una, snd_nxt;
	u32 snd_cwnd, snd_ssthresh, srtt_us, mdev_us, total_retrans, retrans_out, lost_out, packets_out;
	u64 bytes_received, bytes_acked, bytes_sent, bytes_retrans;
	u32 segs_in, segs_out, data_segs_in, data_segs_out;
	u32 sacked_out, lsndtime, rcv_tstamp, rcv_ssthresh, reordering, mss_cache, snd_wnd, rcv_wnd;
	u16 advmss, timeout_rehash;
	u32 delivered, delivered_ce, rate_delivered, rate_interval_us, dsack_dups, reord_seen, rcv_ooopack, plb_rehash;
	u32 chrono_start, chrono_stat[3];
	u8 chrono_type : 2, ecn_flags, tcp_usec_ts : 1, syn_data_acked : 1, rate_app_limited : 1, fastopen_client_fail : 2;
	struct tcp_options_received rx_opt;
	struct minmax rtt_min;
	struct { u32 rtt_us; } CORE rcv_rtt_est;
	struct { u32 space; } CORE rcvq_space;
} CORE;
struct inet_timewait_sock {
	struct sock_common __tw_common;
	volatile u8 tw_substate;
	u32 tw_mark;
	struct timer_list tw_timer;
} CORE;
struct request_sock {
	struct sock_common __req_common;
	struct sock *rsk_listener;
	u8 num_timeout, num_retrans;
	struct timer_list rsk_timer;
} CORE;
struct inet_request_sock { struct request_sock req; u32 ir_mark; } CORE;
struct mptcp_sock { struct sock *first; } CORE;
struct udp_sock { struct inet_sock inet; u8 encap_type; } CORE;
struct raw_sock { struct inet_sock inet; } CORE;
struct unix_address { int len; struct { u16 sun_family; char sun_path[108]; } name[1]; } CORE;
struct unix_sock { struct sock sk; struct unix_address *addr; struct sock *peer; } CORE;

/* ---- files that are written row by row, /proc/net/nf_conntrack among them ---- */
struct seq_file { void *private; } CORE;
struct seq_net_private { struct net *net; } CORE;

/* ---- connection tracking ---- */
struct nf_conntrack { refcount_t use; } CORE;
struct nf_conntrack_zone { u16 id; u8 flags, dir; } CORE;
union nf_inet_addr { u32 all[4]; } CORE;
struct nf_conntrack_man { union nf_inet_addr u3; u16 l3num; } CORE;
struct nf_conntrack_tuple {
	struct nf_conntrack_man src;
	struct { union nf_inet_addr u3; u8 protonum, dir; } dst;
} CORE;
struct nf_conntrack_tuple_hash { struct hlist_nulls_node hnnode; struct nf_conntrack_tuple tuple; } CORE;
enum sctp_conntrack { SCTP_CONNTRACK_NONE };
struct ip_ct_sctp { enum sctp_conntrack state; } CORE;
struct ip_ct_tcp { u8 state; } CORE;
struct nf_ct_dccp { u8 state; } CORE; /* up to 6.15 */
union nf_conntrack_proto { struct nf_ct_dccp dccp; struct ip_ct_sctp sctp; struct ip_ct_tcp tcp; } CORE;
enum nf_ct_ext_id { NF_CT_EXT_HELPER, NF_CT_EXT_ACCT, NF_CT_EXT_TSTAMP, NF_CT_EXT_LABELS };
struct nf_ct_ext { u8 offset[16]; u8 len; } CORE;
struct nf_conntrack_helper { char name[16]; } CORE;
struct nf_conn {
	struct nf_conntrack ct_general;
	u32 timeout;
	struct nf_conntrack_zone zone;
	struct nf_conntrack_tuple_hash tuplehash[2];
	unsigned long status;
	possible_net_t ct_net;
	u32 mark, secmark;
	struct nf_ct_ext *ext;
	union nf_conntrack_proto proto;
} CORE;

/* ---- contexts of iterators: their layout is fixed by the kernel, but their members are read through CO-RE too ---- */
struct bpf_iter_meta { struct seq_file *seq; u64 session_id, seq_num; } CORE;
struct bpf_iter__task { struct bpf_iter_meta *meta; struct task_struct *task; } CORE;
struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	u32 fd;
	struct file *file;
} CORE;
struct bpf_iter__tcp { struct bpf_iter_meta *meta; struct sock_common *sk_common; u32 uid; } CORE;
struct bpf_iter__udp { struct bpf_iter_meta *meta; struct udp_sock *udp_sk; u32 uid; int bucket; } CORE;
struct bpf_iter__unix { struct bpf_iter_meta *meta; struct unix_sock *unix_sk; u32 uid; } CORE;
/* Context of cgroup socket programs: the kernel's uapi, a fixed layout. */
struct bpf_sock {
	u32 bound_dev_if, family, type, protocol, mark, priority, src_ip4, src_ip6[4], src_port;
	u16 dst_port, pad;
	u32 dst_ip4, dst_ip6[4], state;
	s32 rx_queue_mapping;
};
/* Context of cgroup socket address programs: also uapi. */
struct bpf_sock_addr {
	u32 user_family, user_ip4, user_ip6[4], user_port, family, type, protocol, msg_src_ip4, msg_src_ip6[4];
	struct bpf_sock *sk;
};
