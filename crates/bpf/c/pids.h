/* SPDX-License-Identifier: Dual BSD/GPL
 *
 * Pids in a pid namespace: the kernel's own pids belong to the initial namespace, and mean a different process, or
 * none, to a reader in a container. Include after kernel.h.
 */
#ifndef NETWREN_PIDS_H
#define NETWREN_PIDS_H

/* Maximum nesting of pid namespaces (MAX_PID_NS_LEVEL). */
#define LEVELS 32

/* The entry of `struct pid` for the namespace `level` levels below the initial one. */
INLINE void *upid_at(struct pid *pid, u32 level)
{
	u32 at = field_offset(struct pid, numbers) + level * type_size(struct upid);

	/* 32 entries of 16 bytes after about 100 bytes, written in a way that the verifier of 6.1 understands. */
	return (void *)pid + (at & 1023);
}

/* The task's pid at this level; 0 if the task has just ended. The task must be in a namespace of this level. */
INLINE u32 number_at(struct pid *pid, u32 level)
{
	int number = 0;

	bpf_probe_read_kernel(&number, sizeof(number), upid_at(pid, level) + field_offset(struct upid, nr));
	return number;
}

/* The inode of the namespace at this level. */
INLINE u32 namespace_at(struct pid *pid, u32 level)
{
	void *ns = NULL;
	u32 inode = 0, at = field_offset(struct pid_namespace, ns) + field_offset(struct ns_common, inum);

	bpf_probe_read_kernel(&ns, sizeof(ns), upid_at(pid, level) + field_offset(struct upid, ns));
	bpf_probe_read_kernel(&inode, sizeof(inode), ns + at);
	return inode;
}

/* The process's pid in the namespace with this inode (0: the initial one); 0 if it is not visible there. */
INLINE u32 pid_in(struct task_struct *task, u32 inode)
{
	struct pid *pid;

	if (!inode)
		return task->tgid;
	pid = PLAIN(struct task_struct, task)->group_leader->thread_pid;
	if (!pid)
		return 0;
#pragma clang loop unroll(disable)
	for (u32 level = 1; level <= LEVELS && level <= pid->level; level++) {
		if (namespace_at(pid, level) == inode)
			return number_at(pid, level);
	}
	return 0;
}

#endif
