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
 *   ring    u32 1, u32 1 << 31 | fd                         an io_uring; files may be registered with it
 *   end     u32 0, u32 2, u64 files                         number of all files, sockets or not
 *   end     u32 0, u32 4, u64 files                         the same; a user has files in flight over unix sockets
 *
 * owners_in_flight() writes the same rows for sockets in messages that a unix socket has not delivered yet
 * (SCM_RIGHTS): the task is the one that will receive them, `fd` is its unix socket, and the end has the number of unix
 * sockets with more messages than the program looks at.
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

enum row { ROW_END = 2, ROW_TASK = 3, ROW_END_IN_FLIGHT = 4 };

/* Marks the descriptor of an io_uring. Descriptors have 31 bits. */
#define IO_URING (1u << 31)
/* "[io_urin", the first eight bytes of the name of its file */
#define IO_URING_NAME 0x6e6972755f6f695bull

/* include/uapi/linux/magic.h */
enum { NSFS_MAGIC = 0x6e736673, SOCKFS_MAGIC = 0x534f434b, ANON_INODE_FS_MAGIC = 0x09041934 };
struct super_block { unsigned long s_magic; } CORE;
struct inode___in_file_system { struct super_block *i_sb; } CORE;
struct qstr { const unsigned char *name; } CORE;
struct dentry { struct qstr d_name; } CORE;
struct path { struct dentry *dentry; } CORE;
struct file___with_path { struct path f_path; } CORE;
struct user_struct { unsigned long unix_inflight; } CORE;
struct cred___of_user { struct user_struct *user; } CORE;

/* Messages in the receive queue of a unix socket, each with a list of files; a listener's queue has connections. */
struct sk_buff___queued { struct sk_buff___queued *next; struct sock *sk; char cb[48]; } CORE;
struct sk_buff_head___linked { struct sk_buff___queued *next; } CORE;
struct unix_skb_parms { struct scm_fp_list *fp; } CORE;
struct scm_fp_list { short count; struct file *fp[1]; } CORE;
struct scm_stat { atomic_t nr_fds; } CORE;
struct unix_sock___receiving { struct scm_stat scm_stat; } CORE;

const volatile u32 by_netns = 0;

/* The pass in progress. */
u32 level;	/* of the reader's pid namespace */
int last_tid;	/* kernel-wide number of the task whose row is the last one */
u32 last_inode;	/* of the last row of that task */
int seen_tid;	/* of the task that was looked at last */
u32 in_flight;	/* 1: the user of such a task has descriptors in flight */
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

/* Writes the task's row: six units. */
INLINE void put_task(struct task_struct *task, u64 *row)
{
	u32 tid = task->pid, pid = task->tgid;
	u64 name[2];

	if (level) {
		tid = number_at(PLAIN(struct task_struct, task)->thread_pid, level);
		pid = number_at(PLAIN(struct task_struct, task)->group_leader->thread_pid, level);
	}
	bpf_probe_read_kernel(name, sizeof(name), PLAIN(struct task_struct, task)->group_leader->comm);
	row[0] = UNIT(0, ROW_TASK);
	row[1] = UNIT(tid, pid);
	row[2] = name[0];
	row[3] = name[1];
	row[4] = PLAIN(struct task_struct, task)->group_leader->start_boottime;
	row[5] = UNIT(parent_of(task), only_waits(task));
}

/* True if a file that this task's user sent over a unix socket has not been received yet. */
INLINE bool sends(struct task_struct *task)
{
	struct cred___of_user *cred = (void *)PLAIN(struct task_struct, task)->cred;

	return field_exists(cred->user->unix_inflight) && cred->user->unix_inflight;
}

INLINE void finish(struct seq_file *out)
{
	u32 at = batched;

	if (at > BATCH)
		return;
	batch[at] = UNIT(0, in_flight ? ROW_END_IN_FLIGHT : ROW_END);
	batch[at + 1] = files;
	bpf_seq_write(out, batch, (at + 2) * sizeof(batch[0]));
}

INLINE unsigned long file_system_of(struct inode *inode)
{
	return ((struct inode___in_file_system *)inode)->i_sb->s_magic;
}

/* True for the file of an io_uring: its name is "[io_uring]", in a file system where users give no names. */
INLINE bool is_io_uring(struct file *file)
{
	const unsigned char *name;
	u64 beginning = 0;

	if (file_system_of(PLAIN(struct file, file)->f_inode) != ANON_INODE_FS_MAGIC)
		return false;
	name = ((struct file___with_path *)PLAIN(struct file, file))->f_path.dentry->d_name.name;
	bpf_probe_read_kernel(&beginning, sizeof(beginning), name);
	return beginning == IO_URING_NAME;
}

/* Returns the inode of the network namespace that the file keeps alive; 0 if there is none. */
INLINE u32 netns_of(struct file *file, struct socket *socket)
{
	struct inode *inode = PLAIN(struct file, file)->f_inode;

	if (socket) {
		struct sock *sock = PLAIN(struct socket, socket)->sk;
		/* A socket that is being closed has no sock. */
		return sock ? sock->__sk_common.skc_net.net->ns.inum : 0;
	}
	return file_system_of(inode) == NSFS_MAGIC ? inode->i_ino : 0;
}

/* Returns the file's row; its lower half is 0 if the file gets no row. */
INLINE u64 row_of(struct file *file, u32 fd)
{
	struct socket *socket = bpf_sock_from_file(file);

	if (by_netns)
		return UNIT(netns_of(file, socket), fd);
	if (socket)
		return UNIT(PLAIN(struct file, file)->f_inode->i_ino, fd);
	return is_io_uring(file) ? UNIT(1, fd | IO_URING) : 0;
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
		seen_tid = 0;
		in_flight = 0;
		level = PLAIN(struct task_struct, bpf_get_current_task_btf())->thread_pid->level;
	}
	if (task->pid != seen_tid) {
		seen_tid = task->pid;
		in_flight |= sends(task);
	}
	u64 row = row_of(file, ctx->fd);
	u32 inode = row;
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
		put_task(task, &batch[at]);
		last_tid = task->pid;
		at += 6;
	}
	if (at >= BATCH)
		return 0;
	batch[at] = row;
	last_inode = inode;
	batched = at + 1;
	files++;
	return 0;
}

/* Steps from message to message and from file to file in one queue: four messages with all the files that fit. A call
 * takes a few of them, because the verifier looks at each one, and asks the kernel to repeat the call. */
#define STEPS 1024
#define STEPS_A_CALL 16

/* The walk that is under way. */
int walked_tid;
u32 walked_fd;
u32 taken;	/* steps */
struct sk_buff___queued *message, *connection;
void *messages_end, *connections_end;
struct scm_fp_list *list;	/* of the message, NULL after its last file */
u32 at_file;
u32 found;	/* rows behind that of the task */
u64 rows[6 + STEPS];
u64 too_long;	/* unix sockets with a longer queue */

/* Starts at the first skb of the socket's receive queue, and returns the end of the queue. */
INLINE void *enter(void *sk, struct sk_buff___queued **first)
{
	struct sk_buff_head___linked *queue = sk + field_offset(struct sock, sk_receive_queue);

	*first = READ(queue, next);
	return queue;
}

/* Looks at the next file of the message: adds a row for a socket. */
INLINE void look_at_file(u32 fd)
{
	struct file **files = (void *)list + field_offset(struct scm_fp_list, fp);
	struct inode___in_file_system *inode;
	/* Read once: the verifier forgets the bound of a variable that is read again. */
	u32 at = *(volatile u32 *)&found;
	struct super_block *place;
	struct file *file = NULL;

	bpf_probe_read_kernel(&file, sizeof(file), files + at_file);
	at_file++;
	if (at_file >= (u16)READ(list, count))
		list = NULL;
	inode = (void *)READ(file, f_inode);
	place = READ(inode, i_sb);
	if (READ(place, s_magic) != SOCKFS_MAGIC || at >= STEPS)
		return;
	rows[6 + at] = UNIT(READ((struct inode *)inode, i_ino), fd);
	found = at + 1;
}

/* Goes on by one file, message or connection; false at the end. */
INLINE bool step(u32 fd)
{
	if (list) {
		look_at_file(fd);
	} else if (message && message != messages_end) {
		struct unix_skb_parms *parms = (void *)message + field_offset(struct sk_buff___queued, cb);

		list = READ(parms, fp);
		at_file = 0;
		message = READ(message, next);
	} else if (connection && connection != connections_end) {
		messages_end = enter(READ(connection, sk), &message);
		connection = READ(connection, next);
	} else {
		return false;
	}
	return true;
}

/* The unix socket that may have received files; NULL for every other file. */
INLINE struct sock *receiver(struct file *file)
{
	struct socket *socket = bpf_sock_from_file(file);
	struct sock *sk = socket ? PLAIN(struct socket, socket)->sk : NULL;
	struct unix_sock___receiving *receiving = (void *)sk;

	if (!sk || sk->__sk_common.skc_family != AF_UNIX)
		return NULL;
	return sk->__sk_common.skc_state == TCP_LISTEN || READ(receiving, scm_stat.nr_fds.counter) ? sk : NULL;
}

INLINE void begin(struct sock *sk, int tid, u32 fd)
{
	walked_tid = tid;
	walked_fd = fd;
	taken = 0;
	found = 0;
	list = NULL;
	message = connection = NULL;
	messages_end = connections_end = NULL;
	if (sk->__sk_common.skc_state == TCP_LISTEN)
		connections_end = enter(sk, &connection);
	else
		messages_end = enter(sk, &message);
}

SEC("iter/task_file") int owners_in_flight(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	u32 fd = ctx->fd, count;
	bool is_over = false;
	struct sock *sk;

	if (!task || !file) {
		rows[0] = UNIT(0, ROW_END);
		rows[1] = too_long;
		bpf_seq_write(ctx->meta->seq, rows, 2 * sizeof(rows[0]));
		return 0;
	}
	if (ctx->meta->seq_num == 0 && walked_tid != task->pid) {
		too_long = 0;
		level = PLAIN(struct task_struct, bpf_get_current_task_btf())->thread_pid->level;
	}
	sk = receiver(file);
	if (!sk)
		return 0;
	if (walked_tid != task->pid || walked_fd != fd)
		begin(sk, task->pid, fd);
#pragma clang loop unroll(disable)
	for (u32 steps = 0; steps < STEPS_A_CALL && !is_over; steps++)
		is_over = !step(fd);
	taken += STEPS_A_CALL;
	if (!is_over && taken < STEPS)
		return 1;
	/* If the kernel discards the rows, the walk begins again. */
	walked_tid = 0;
	count = found;
	if (count > STEPS)
		return 0;
	put_task(task, rows);
	if ((count || !is_over) && bpf_seq_write(ctx->meta->seq, rows, (6 + count) * sizeof(rows[0])))
		return 0;
	too_long += !is_over;
	return 0;
}
