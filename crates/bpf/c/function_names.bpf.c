/* SPDX-License-Identifier: Dual BSD/GPL
 *
 * Names of kernel functions, as the kernel writes them in its own call traces: one address per run, which takes some
 * microseconds, while /proc/kallsyms takes 50 to 100 ms for all of them.
 */
#include "helpers.h"

LICENSE("Dual BSD/GPL");

/* Size of a buffer for a name: KSYM_NAME_LEN is larger, but no function that drops packets has a longer name. */
enum { TEXT_BYTES = 256 };

/* Format for a return address: after a call of a function that never returns, it is the first byte of the next one. */
static const char as_in_call_traces[] = "%pB";

/* The context is ours: read and written by the caller of BPF_PROG_RUN. */
struct place { u64 address; char text[TEXT_BYTES]; };

/* Writes `name+0x12/0x34 [module]`, or the address itself. */
SEC("syscall") int name_place(struct place *place)
{
	char text[TEXT_BYTES] = {};
	u64 address = place->address;

	if (bpf_snprintf(text, sizeof(text), as_in_call_traces, &address, sizeof(address)) < 0)
		return 1;
	memcpy(place->text, text, sizeof(text));
	return 0;
}
