/* SPDX-License-Identifier: Dual BSD/GPL
 *
 * Definitions that every program needs and that are not kernel types: section names, map declarations, helpers by
 * number, loops.
 *
 * Helper numbers are stable (include/uapi/linux/bpf.h, ___BPF_FUNC_MAPPER); a comment after each that is newer than
 * 5.10 gives the first kernel that has it. The verifier refuses a program that calls a helper which the kernel lacks;
 * the loader then names it.
 */
#pragma once

typedef signed char s8;
typedef short s16;
typedef int s32;
typedef long long s64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)

#define SEC(name) __attribute__((section(name), used))
/* The loader supports one function per program: everything else must be inlined into it. */
#define INLINE static inline __attribute__((always_inline))
#define LICENSE(text) char LICENSE_[] SEC("license") = text

/* Maps: struct { MAP_NUMBER(type, …); MAP_TYPE(key, …); … } name SEC(".maps"); */
#define MAP_NUMBER(name, number) int(*name)[number]
#define MAP_TYPE(name, type) typeof(type) *name

enum map_kind {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_HASH = 5,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_STACK_TRACE = 7,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
};
enum map_flags {
	BPF_F_NO_PREALLOC = 1 << 0,
	BPF_F_CLONE = 1 << 9, /* socket storage: an accepted socket gets a copy of its listener's */
	BPF_F_MMAPABLE = 1 << 10,
};
enum update_flags { BPF_ANY = 0, BPF_NOEXIST = 1, BPF_EXIST = 2 };
enum { BPF_SK_STORAGE_GET_F_CREATE = 1 };
enum ring_flags { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2 };
enum ring_query { BPF_RB_AVAIL_DATA = 0, BPF_RB_RING_SIZE = 1, BPF_RB_CONS_POS = 2, BPF_RB_PROD_POS = 3 };

struct seq_file;
struct pt_regs;
struct task_struct;
struct socket;
struct file;

static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*const bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static u32 (*const bpf_get_smp_processor_id)(void) = (void *)8;
static u64 (*const bpf_get_current_pid_tgid)(void) = (void *)14;
static u64 (*const bpf_get_current_uid_gid)(void) = (void *)15;
static long (*const bpf_get_current_comm)(void *to, u32 size) = (void *)16;
static u64 (*const bpf_get_current_task)(void) = (void *)35;
static u64 (*const bpf_get_socket_cookie)(void *sk) = (void *)46; /* of struct sock: 5.12 */
static long (*const bpf_get_stack)(void *ctx, void *to, u32 bytes, u64 flags) = (void *)67;
static u64 (*const bpf_get_current_cgroup_id)(void) = (void *)80;
static void *(*const bpf_sk_storage_get)(void *map, void *sk, void *value, u64 flags) = (void *)107; /* tracing: 5.11 */
static long (*const bpf_sk_storage_delete)(void *map, void *sk) = (void *)108;
static long (*const bpf_probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static long (*const bpf_probe_read_kernel_str)(void *to, u32 size, const void *from) = (void *)115;
static u64 (*const bpf_jiffies64)(void) = (void *)118;
static long (*const bpf_seq_write)(struct seq_file *out, const void *from, u32 bytes) = (void *)127;
static long (*const bpf_ringbuf_output)(void *ring, void *from, u64 bytes, u64 flags) = (void *)130;
static void *(*const bpf_ringbuf_reserve)(void *ring, u64 bytes, u64 flags) = (void *)131;
static void (*const bpf_ringbuf_submit)(void *record, u64 flags) = (void *)132;
static void (*const bpf_ringbuf_discard)(void *record, u64 flags) = (void *)133;
static u64 (*const bpf_ringbuf_query)(void *ring, u64 what) = (void *)134;
static void *(*const bpf_skc_to_tcp_sock)(void *sk) = (void *)137;
static void *(*const bpf_skc_to_tcp_timewait_sock)(void *sk) = (void *)138;
static void *(*const bpf_skc_to_tcp_request_sock)(void *sk) = (void *)139;
static void *(*const bpf_skc_to_udp6_sock)(void *sk) = (void *)140;
static struct task_struct *(*const bpf_get_current_task_btf)(void) = (void *)158; /* 5.11 */
static struct socket *(*const bpf_sock_from_file)(struct file *file) = (void *)162; /* 5.11 */
static u64 (*const bpf_ktime_get_coarse_ns)(void) = (void *)160; /* 5.11 */
static long (*const bpf_snprintf)(char *to, u32 bytes, const char *format, const u64 *data, u32 data_bytes) =
	(void *)165; /* 5.13 */
static struct pt_regs *(*const bpf_task_pt_regs)(struct task_struct *task) = (void *)175; /* 5.15 */
static void *(*const bpf_skc_to_unix_sock)(void *sk) = (void *)178; /* 5.16 */
static void *(*const bpf_skc_to_mptcp_sock)(void *sk) = (void *)196; /* 5.19 */
static u64 (*const bpf_ktime_get_tai_ns)(void) = (void *)208;		    /* 6.1 */

/* Kernel functions (kfuncs), found by name in the kernel's types. `__weak`: the program tests `if (name)` first. */
#define KSYM __attribute__((section(".ksyms")))
#define WEAK __attribute__((weak))
extern void *bpf_rdonly_cast(const void *object, u32 type) KSYM WEAK; /* 6.2 */
extern void bpf_rcu_read_lock(void) KSYM WEAK;			      /* 6.2 */
extern void bpf_rcu_read_unlock(void) KSYM WEAK;

#define bswap16(x) __builtin_bswap16(x)
#define bswap32(x) __builtin_bswap32(x)
#define COUNT_ONE(counter) __sync_fetch_and_add(&(counter), 1)
#define memcpy(to, from, bytes) __builtin_memcpy(to, from, bytes)
#define memset(to, byte, bytes) __builtin_memset(to, byte, bytes)
/* The compiler must not move reads or writes across this line. */
#define BARRIER() asm volatile("" ::: "memory")
/* Hides the value of this variable from the compiler, so that it cannot turn arithmetic with it into a branch. */
#define OPAQUE(variable) asm volatile("" : "+r"(variable))

/*
 * True while the kernel's loop budget of this program run lasts (about 8 million steps): `while (LOOP_OK) …`. It is
 * the may_goto instruction, kernel 6.9: opcode 0xe5, a 16-bit offset in instructions, nothing else. clang 14 knows
 * neither its name nor `goto` labels in 16 bits, so the word is assembled here; the instruction itself is 8 bytes,
 * which the "- 8" subtracts.
 */
#define LOOP_OK                                                                                      \
	({                                                                                           \
		__label__ over_, in_;                                                                \
		int ok_ = 1;                                                                         \
		asm volatile goto("9: .byte 0xe5, 0; .long ((%l[over_] - 9b - 8) / 8) & 0xffff; .short 0" \
				  :                                                                  \
				  :                                                                  \
				  :                                                                  \
				  : over_);                                                          \
		goto in_;                                                                            \
	over_:                                                                                       \
		ok_ = 0;                                                                             \
	in_:                                                                                         \
		ok_;                                                                                 \
	})

/* Reads and writes before this line are made before those after it, as other processors see them. x86 keeps reads in
 * order, and writes, so that only the compiler must; elsewhere an exchange orders them, because atomic operations that
 * return a value are full barriers (Documentation/atomic_t.txt; BPF JITs follow it). Only x86 has the type: there the
 * verifier drops the branch. */
#define FENCE()                                                                                      \
	do {                                                                                         \
		BARRIER();                                                                           \
		if (!type_exists(struct gate_struct)) {                                              \
			u64 word_ = 0;                                                               \
			__sync_lock_test_and_set(&word_, 1);                                         \
			BARRIER();                                                                   \
		}                                                                                    \
	} while (0)

/* Properties of the running kernel's types, filled in by the loader: the verifier sees constants and drops the branch
 * that does not apply. */
#define field_exists(field) __builtin_preserve_field_info(field, 2)
#define field_offset(type, field) __builtin_preserve_field_info(((type *)0)->field, 0)
/* 0: its byte; 4 and 5: the shifts that extract a bit field from the 8 bytes at that position. */
#define field_info(field, what) __builtin_preserve_field_info(field, what)
#define field_size(field) __builtin_preserve_field_info(field, 1)
#define type_exists(type) __builtin_preserve_type_info(*(type *)0, 0)
#define type_size(type) __builtin_preserve_type_info(*(type *)0, 1)
#define type_id(type) __builtin_btf_type_id(*(type *)0, 1)
#define enum_value_exists(type, value) __builtin_preserve_enum_value(*(typeof(type) *)value, 0)
#define enum_value(type, value) __builtin_preserve_enum_value(*(typeof(type) *)value, 1)

/* Reads one field through a pointer that the verifier does not know as a kernel object. */
#define READ(object, field)                                                                                     \
	({                                                                                                      \
		typeof((object)->field) read_;                                                                  \
		bpf_probe_read_kernel(&read_, sizeof(read_), __builtin_preserve_access_index(&(object)->field)); \
		read_;                                                                                          \
	})
/* A number as a pointer that may be read through; faults read as zero (6.2). */
#define CAST(type, address) ((type *)bpf_rdonly_cast((const void *)(address), type_id(type)))
/*
 * The same pointer without the verifier's trust, for reading through it; unchanged before 6.2.
 *
 * If a pointer is trusted (the current task, an argument of a tracepoint, a member of an iterator's context), the
 * verifier looks up to four types by name for every further pointer, through all of the kernel's types: 0.5 to 1 ms of
 * loading time for each such line (btf_nested_type_is_trusted in kernel/bpf/verifier.c). Helpers that require a
 * trusted pointer need the original.
 */
#define PLAIN(type, pointer) (bpf_rdonly_cast ? CAST(type, pointer) : (pointer))
