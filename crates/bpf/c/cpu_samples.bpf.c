/* SPDX-License-Identifier: Dual BSD/GPL
 *
 * Counts call chains of timer samples, to show what the kernel does on each CPU.
 *
 * The timer (PERF_COUNT_SW_CPU_CLOCK) interrupts each CPU some hundred times a second. The program puts the call chain
 * at that point into a map, once per chain, and counts how often each CPU was in it. A chain is identified by a 64-bit
 * hash of its addresses: BPF's own map for this (BPF_MAP_TYPE_STACK_TRACE) loses every second chain that falls into a
 * slot that is already taken. Names are looked up later, in user space, and only for the functions that were found.
 *
 * Kernel >= 5.10; needs no kernel types. A sample costs about 20 us in a virtual machine, mostly for the timer's
 * interrupt and the kernel's unwinding.
 */
#include "helpers.h"

LICENSE("Dual BSD/GPL");

/* The maximum depth: a packet that a process sends to itself through a bridge and back has 80 functions. */
#define FRAMES 96

struct way {
	u64 frames[FRAMES];
};
struct way_key {
	u64 hash;
	u32 cpu, pad;
};
struct tally {
	u64 samples;
	u64 user;      /* of these, in user space */
	u64 lost;      /* the map of counts was full */
	u64 unknown;   /* counted, but the map of chains was full: the functions are unknown */
};

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_HASH);
	MAP_NUMBER(max_entries, 8192);
	MAP_TYPE(key, struct way_key);
	MAP_TYPE(value, u64);
} counts SEC(".maps");

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_HASH);
	MAP_NUMBER(max_entries, 4096);
	MAP_TYPE(key, u64);
	MAP_TYPE(value, struct way);
} ways SEC(".maps");

/* A chain does not fit on the program's stack. */
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct way);
} scratch SEC(".maps");

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct tally);
} tallies SEC(".maps");

INLINE u64 hash_of(const struct way *way, u32 frames)
{
	u64 hash = frames;

	for (u32 n = 0; n < FRAMES; n++) {
		if (n >= frames)
			break;
		hash = (hash ^ way->frames[n]) * 0x9e3779b97f4a7c15ull;
		hash ^= hash >> 32;
	}
	return hash;
}

SEC("perf_event") int on_sample(void *ctx)
{
	struct way_key key = {};
	struct tally *tally;
	struct way *way;
	u64 one = 1, *count;
	u32 zero = 0;
	long bytes;

	tally = bpf_map_lookup_elem(&tallies, &zero);
	way = bpf_map_lookup_elem(&scratch, &zero);
	if (!tally || !way)
		return 0;
	tally->samples++;
	/* The memory after the last function is zeroed. */
	bytes = bpf_get_stack(ctx, way, sizeof(*way), 0);
	if (bytes <= 0) {
		tally->user++;
		return 0;
	}
	key.hash = hash_of(way, bytes / 8);
	key.cpu = bpf_get_smp_processor_id();
	count = bpf_map_lookup_elem(&counts, &key);
	if (count) {
		*count += 1;
		return 0;
	}
	if (bpf_map_update_elem(&counts, &key, &one, BPF_NOEXIST)) {
		tally->lost++;
		return 0;
	}
	/* Another CPU may have stored it already. */
	if (!bpf_map_lookup_elem(&ways, &key.hash) && bpf_map_update_elem(&ways, &key.hash, way, BPF_NOEXIST) &&
	    !bpf_map_lookup_elem(&ways, &key.hash))
		tally->unknown++;
	return 0;
}
