/* SPDX-License-Identifier: Dual BSD/GPL
 *
 * A histogram of times: four parts for each power of two of ns, so that the width of a part is at most a quarter of
 * its start. crates/bpf/src/time_parts.rs decodes it.
 */
#pragma once
#include "helpers.h"

/* The part of a time: the power of two below `ns`, and the next two bits. */
INLINE u32 part_of(u64 ns)
{
	u32 power = 0;

	if (ns < 4)
		return ns;
#pragma clang loop unroll(full)
	for (u32 step = 32; step; step /= 2) {
		if (ns >> power >> step)
			power += step;
	}
	return power * 4 - 4 + (ns >> (power - 2) & 3);
}
