/* SPDX-License-Identifier: Dual BSD/GPL
 *
 * One small program of every type that the loader knows; for the crate's own tests.
 */
#include "kernel.h"
#include "pids.h"

LICENSE("Dual BSD/GPL");

const volatile u32 pidns = 0; /* inode of the reader's pid namespace; 0: the initial one */
const volatile u32 only_tgid = 0; /* set by the loader: rows of this process only */
const volatile u64 step = 1;

u64 runs, lost; /* .bss */
u64 begin = 41; /* .data */

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_HASH);
	MAP_NUMBER(max_entries, 8);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u64);
} seen SEC(".maps");
struct { MAP_NUMBER(type, BPF_MAP_TYPE_RINGBUF); MAP_NUMBER(max_entries, 4096); } events SEC(".maps");
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(map_flags, BPF_F_MMAPABLE);
	MAP_NUMBER(max_entries, 2);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u64[4]);
} out SEC(".maps");
struct mark { u32 tgid; u64 at_ns; };
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_SK_STORAGE);
	MAP_NUMBER(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE);
	MAP_TYPE(key, int);
	MAP_TYPE(value, struct mark);
} marks SEC(".maps");

/* Members that no kernel has, and members that moved. */
struct task_struct___absent { int no_such_member; } CORE;
struct no_such_struct { int member; } CORE;
extern void no_such_function(void) KSYM WEAK;
enum bpf_map_type { BPF_MAP_TYPE_UNSPEC, BPF_MAP_TYPE_NONESUCH = 77 };

struct facts {
	u32 tgid, offset, size, absent, absent_type, present_type;
	u64 runs, begin;
	u32 type_of_sock, size_of_sock, sk_type, events;
	char comm[16];
	u32 has_lock, has_none;
};

/* The context is ours: read and written by the caller of BPF_PROG_RUN. */
SEC("syscall")
int look(struct facts *facts)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 key = 1;
	u64 *slot = bpf_map_lookup_elem(&out, &key);
	u32 tgid = pid_in(task, pidns);
	u64 one = 1;

	if (!slot)
		return 1;
	facts->tgid = tgid;
	memcpy(facts->comm, task->comm, sizeof(facts->comm));
	facts->offset = field_offset(struct task_struct, tgid);
	facts->size = field_size(task->comm);
	facts->absent = field_exists(((struct task_struct___absent *)task)->no_such_member);
	if (facts->absent)
		facts->absent = ((struct task_struct___absent *)task)->no_such_member;
	facts->absent_type = type_exists(struct no_such_struct);
	facts->present_type = type_exists(struct sock);
	facts->type_of_sock = type_id(struct sock);
	facts->size_of_sock = type_size(struct sock);
	facts->events = enum_value_exists(enum bpf_map_type, BPF_MAP_TYPE_NONESUCH);
	facts->has_lock = bpf_rcu_read_lock ? 1 : 0;
	facts->has_none = 0;
	if (no_such_function) {
		no_such_function();
		facts->has_none = 1;
	}
	facts->runs = __sync_fetch_and_add(&runs, step);
	facts->begin = ++begin;
	bpf_map_update_elem(&seen, &tgid, &one, BPF_ANY);
	slot[3] = facts->runs;
	return 0;
}

/* Fills the ring with `count` records of 64 bytes, as far as there is space. */
struct fill { u32 count, flags; };
SEC("syscall")
int fill(struct fill *fill)
{
	for (u32 n = 0; n < 1000; n++) {
		u64 *record;

		if (n >= fill->count)
			break;
		record = bpf_ringbuf_reserve(&events, 64, 0);
		if (!record) {
			COUNT_ONE(lost);
			continue;
		}
		memset(record, 0, 64);
		*record = n;
		if (fill->flags && n % 2)
			bpf_ringbuf_discard(record, 0);
		else
			bpf_ringbuf_submit(record, 0);
	}
	return 0;
}

struct task_row { u32 pid, tgid; };
SEC("iter/task")
int tasks(struct bpf_iter__task *context)
{
	struct task_struct *task = context->task;
	struct task_row row;

	if (!task)
		return 0;
	row.tgid = pid_in(task, pidns);
	row.pid = task->pid == task->tgid ? row.tgid : task->pid;
	if (!only_tgid || row.tgid == only_tgid)
		bpf_seq_write(context->meta->seq, &row, sizeof(row));
	return 0;
}

SEC("cgroup/sock_create")
int created(struct bpf_sock *sk)
{
	struct mark *mark = bpf_sk_storage_get(&marks, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);

	if (mark) {
		mark->tgid = bpf_get_current_pid_tgid() >> 32;
		mark->at_ns = bpf_ktime_get_ns();
	}
	return 1; /* never forbid */
}

SEC("tp_btf/inet_sock_set_state")
int changed(u64 *context)
{
	struct sock *sk = (struct sock *)context[0];
	struct mark *mark = bpf_sk_storage_get(&marks, sk, 0, 0);
	struct { u32 tgid, state; u64 port; } *event;

	if (!mark || (only_tgid && mark->tgid != only_tgid))
		return 0;
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event) {
		COUNT_ONE(lost);
		return 0;
	}
	event->tgid = mark->tgid;
	event->state = context[2];
	event->port = sk->__sk_common.skc_num;
	bpf_ringbuf_submit(event, 0);
	return 0;
}

/* Reads a member that no kernel has, without a guard: it cannot be loaded, and the error must name the member. */
SEC("syscall")
int broken(u64 *context)
{
	*context = ((struct task_struct___absent *)bpf_get_current_task_btf())->no_such_member;
	return 0;
}

/* Does nothing: the kernel's statistics of this program show only their own clock readings. */
SEC("tp_btf/inet_sock_set_state")
int idle(u64 *ctx)
{
	return 0;
}
