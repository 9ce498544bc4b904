/* SPDX-License-Identifier: Dual BSD/GPL
 *
 * The owners of sockets: one pass over all open files of all processes, with a row for each socket.
 *
 * Kernel 5.11 (bpf_sock_from_file), CAP_BPF and CAP_PERFMON; no right to trace other processes. The iterator shows the
 * processes of the reader's pid namespace and skips threads that share their leader's files, so each table of files is
 * visited once, including the table of a thread that has its own.
 *
 * The output, in units of 8 bytes, all numbers little endian (host/src/owners/rows.rs decodes it):
 *   task    u32 0, u32 3, u32 tid, u32 pid, char comm[16], u64 started, u32 parent, u32 waits
 *           precedes the sockets in this task's table; comm is the name of the process's main thread, started is its
 *           start time (ns since boot), parent its parent (0: outside the reader's pid namespace), and waits is set if
 *           the process only waits for its children, for a signal or for a timer
 *   socket  u32 inode, u32 fd                               an inode is never 0
 *   end     u32 0, u32 2, u64 files                         number of all files, sockets or not
 *
 * With `by_netns`, the rows describe files that keep a namespace alive, and `inode` is the inode of the namespace: a
 * socket's network namespace, or any open namespace file. Adjacent rows of one task with the same inode are merged.
 *
 * Rows are written in batches: one bpf_seq_write per row would be a sixth of the cost of the pass. When the kernel's
 * buffer is full, the kernel discards what the last call of the program wrote and repeats that call after the reader
 * has emptied the buffer. So a call makes at most one write, and makes it before it changes any state.
 */
#include "kernel.h"
#include "pids.h"

LICENSE("Dual BSD/GPL");

/* Units in a batch, and in the longest row: a task with its first socket. */
#define BATCH 64
#define ROW_MAX 7

enum row { ROW_END = 2, ROW_TASK = 3 };

/* include/uapi/linux/magic.h */
#define NSFS_MAGIC 0x6e736673
struct super_block { unsigned long s_magic; } CORE;
struct inode___in_file_system { struct super_block *i_sb; } CORE;

const volatile u32 by_netns = 0;

/* The pass in progress. */
u32 level;	/* of the reader's pid namespace */
int last_tid;	/* kernel-wide number of the task whose row is the last one */
u32 last_inode;	/* of the last row of that task */
u32 batched;
u64 files;
u64 batch[BATCH + 2];	/* a full batch, followed by the end */

#define UNIT(low, high) ((u64)(u32)(low) | (u64)(u32)(high) << 32)

struct pt_regs { unsigned long orig_ax; } CORE;
struct pt_regs___arm64 { s32 syscallno; } CORE;

/* True if the call is wait4, waitid, pause, rt_sigsuspend, rt_sigtimedwait, nanosleep or clock_nanosleep. */
INLINE bool is_wait(u64 call, bool arm64)
{
	if (arm64)
		return call == 260 || call == 95 || call == 133 || call == 137 || call == 101 || call == 115;
	return call == 61 || call == 247 || call == 34 || call == 130 || call == 128 || call == 35 || call == 230;
}

/* True if the process has one thread, which waits for a child, a signal or a timer. Needs Linux 6.2. */
INLINE bool only_waits(struct task_struct *task)
{
	struct pt_regs___arm64 *arm64;
	struct pt_regs *regs;

	if (!bpf_rdonly_cast || task->pid != task->tgid || PLAIN(struct task_struct, task)->signal->nr_threads != 1)
		return false;
	regs = (void *)bpf_task_pt_regs(task);
	arm64 = (void *)regs;
	if (field_exists(regs->orig_ax))
		return is_wait(regs->orig_ax, false);
	return field_exists(arm64->syscallno) && is_wait(arm64->syscallno, true);
}

/* Returns the parent's pid in the reader's pid namespace; 0 if the parent is outside that namespace. */
INLINE u32 parent_of(struct task_struct *task)
{
	struct task_struct *parent = PLAIN(struct task_struct, task)->group_leader->real_parent;
	struct pid *pid;

	if (!level)
		return parent->tgid;
	pid = parent->group_leader->thread_pid;
	return pid && pid->level >= level ? number_at(pid, level) : 0;
}

/* Adds the task's row; the caller has checked that it fits. */
INLINE void put_task(struct task_struct *task, u32 at)
{
	u32 tid = task->pid, pid = task->tgid;
	u64 name[2];

	if (at > BATCH - ROW_MAX)
		return;
	if (level) {
		tid = number_at(PLAIN(struct task_struct, task)->thread_pid, level);
		pid = number_at(PLAIN(struct task_struct, task)->group_leader->thread_pid, level);
	}
	bpf_probe_read_kernel(name, sizeof(name), PLAIN(struct task_struct, task)->group_leader->comm);
	batch[at] = UNIT(0, ROW_TASK);
	batch[at + 1] = UNIT(tid, pid);
	batch[at + 2] = name[0];
	batch[at + 3] = name[1];
	batch[at + 4] = PLAIN(struct task_struct, task)->group_leader->start_boottime;
	batch[at + 5] = UNIT(parent_of(task), only_waits(task));
}

INLINE void finish(struct seq_file *out)
{
	u32 at = batched;

	if (at > BATCH)
		return;
	batch[at] = UNIT(0, ROW_END);
	batch[at + 1] = files;
	bpf_seq_write(out, batch, (at + 2) * sizeof(batch[0]));
}

/* Returns the inode for the file's row; 0 if the file gets no row. */
INLINE u32 inode_of(struct file *file)
{
	struct socket *socket = bpf_sock_from_file(file);
	struct inode *inode = PLAIN(struct file, file)->f_inode;

	if (!by_netns)
		return socket ? inode->i_ino : 0;
	if (socket) {
		struct sock *sock = PLAIN(struct socket, socket)->sk;
		/* A socket that is being closed has no sock. */
		return sock ? sock->__sk_common.skc_net.net->ns.inum : 0;
	}
	struct super_block *super = ((struct inode___in_file_system *)inode)->i_sb;
	return super->s_magic == NSFS_MAGIC ? inode->i_ino : 0;
}

SEC("iter/task_file") int owners_files(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;

	if (!task || !file) {
		finish(ctx->meta->seq);
		return 0;
	}
	if (ctx->meta->seq_num == 0) {
		files = 0;
		batched = 0;
		last_tid = 0;
		level = PLAIN(struct task_struct, bpf_get_current_task_btf())->thread_pid->level;
	}
	u32 inode = inode_of(file);
	if (!inode || (by_netns && task->pid == last_tid && inode == last_inode)) {
		files++;
		return 0;
	}
	u32 at = batched;
	if (at > BATCH - ROW_MAX) {
		if (bpf_seq_write(ctx->meta->seq, batch, (at < BATCH ? at : BATCH) * sizeof(batch[0])))
			return 0;
		at = 0;
	}
	if (task->pid != last_tid) {
		put_task(task, at);
		last_tid = task->pid;
		at += 6;
	}
	if (at >= BATCH)
		return 0;
	batch[at] = UNIT(inode, ctx->fd);
	last_inode = inode;
	batched = at + 1;
	files++;
	return 0;
}
