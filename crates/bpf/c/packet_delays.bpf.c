/* SPDX-License-Identifier: Dual BSD/GPL
 *
 * How late packet sockets announce packets to the process that reads them.
 *
 * tp_btf/sk_data_ready runs when the kernel wakes the reader of a socket: for TPACKET_V2 at each packet, for
 * TPACKET_V3 when a block is full or its timer fires. The program reads the time stamp of the oldest announced packet
 * from the ring itself and records how much time has passed since. So a filter on the socket has no effect: packets
 * that it rejected are not in the ring. The time that the reader takes after it was woken is not included.
 *
 * Only sockets whose cookie the reader has put into the map are measured, so that sockets created later take no space.
 * A ring is in memory that its process may write: the program checks what it finds there (the offset of the first
 * packet against the size of the block, the delay against an hour) and counts it for that socket only.
 *
 * Kernel >= 6.12 (the tracepoint). A wake-up costs about 0.2 us more, a packet in a block of V3 nothing.
 */
#include "kernel.h"
#include "parts.h"

LICENSE("Dual BSD/GPL");

/* International atomic time minus UTC (CLOCK_TAI - CLOCK_REALTIME): time stamps are in UTC, for which there is no
 * helper. */
const volatile u64 tai_offset_ns = 0;

/* include/uapi/linux/if_packet.h */
enum tpacket_versions { TPACKET_V1, TPACKET_V2, TPACKET_V3 };
enum { TP_STATUS_TS_RAW_HARDWARE = 1u << 31 };

struct pgv { char *buffer; } CORE;
struct tpacket_kbdq_core {
	struct pgv *pkbdq;
	u32 kblk_size;
	u16 kactive_blk_num;
} CORE;
struct packet_ring_buffer {
	struct pgv *pg_vec;
	u32 head, frames_per_block, frame_size, frame_max;
	struct tpacket_kbdq_core prb_bdqc;
} CORE;
struct packet_sock {
	struct sock sk;
	struct packet_ring_buffer rx_ring;
	enum tpacket_versions tp_version;
} CORE;

/* The beginning of struct tpacket_block_desc with its struct tpacket_hdr_v1. */
struct block_head {
	u32 version, offset_to_priv, block_status, num_pkts, offset_to_first_pkt;
};
/* struct tpacket3_hdr */
struct v3_head {
	u32 next_offset, sec, nsec, snaplen, len, status;
};
/* struct tpacket2_hdr */
struct v2_head {
	u32 status, len, snaplen;
	u16 mac, net;
	u32 sec, nsec;
};

/* Size of a histogram (parts.h): it includes a part for an hour. */
#define PARTS 168
struct delays {
	u64 wakeups;  /* number of times that the reader was woken */
	u64 measured; /* of these, with a time stamp */
	u64 max_ns;
	u32 parts[PARTS];
};

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_HASH);
	MAP_NUMBER(max_entries, 64);
	MAP_TYPE(key, u64); /* the socket's cookie */
	MAP_TYPE(value, struct delays);
} delays SEC(".maps");

#define SECOND 1000000000ull
#define LONGEST (3600 * SECOND)

INLINE u64 stamp_of_block(struct packet_sock *po)
{
	u64 blocks = (u64)READ(po, rx_ring.prb_bdqc.pkbdq);
	u32 active = READ(po, rx_ring.prb_bdqc.kactive_blk_num);
	struct pgv *block = (void *)(blocks + active * sizeof(void *));
	u64 buffer = (u64)READ(block, buffer);
	struct block_head head = {};
	struct v3_head first = {};

	if (!blocks || bpf_probe_read_kernel(&head, sizeof(head), (void *)buffer) || !head.num_pkts)
		return 0;
	if ((u64)head.offset_to_first_pkt + sizeof(first) > READ(po, rx_ring.prb_bdqc.kblk_size))
		return 0;
	if (bpf_probe_read_kernel(&first, sizeof(first), (void *)(buffer + head.offset_to_first_pkt)))
		return 0;
	return first.status & TP_STATUS_TS_RAW_HARDWARE ? 0 : first.sec * SECOND + first.nsec;
}

/* `head` is the slot of the next packet; the announced packet is in the slot before it. */
INLINE u64 stamp_of_slot(struct packet_sock *po)
{
	u64 blocks = (u64)READ(po, rx_ring.pg_vec);
	u32 next = READ(po, rx_ring.head), in_block = READ(po, rx_ring.frames_per_block);
	u32 slot = next ? next - 1 : READ(po, rx_ring.frame_max);
	struct pgv *block;
	struct v2_head head = {};
	u64 at;

	if (!blocks || !in_block)
		return 0;
	block = (void *)(blocks + slot / in_block * sizeof(void *));
	at = (u64)READ(block, buffer) + (u64)(slot % in_block) * READ(po, rx_ring.frame_size);
	if (bpf_probe_read_kernel(&head, sizeof(head), (void *)at))
		return 0;
	return head.status & TP_STATUS_TS_RAW_HARDWARE ? 0 : head.sec * SECOND + head.nsec;
}

SEC("tp_btf/sk_data_ready") int on_ready(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	struct packet_sock *po = (void *)sk;
	u64 cookie, stamp = 0, now, delay;
	enum tpacket_versions version;
	struct delays *found;
	u32 part;

	if (sk->__sk_common.skc_family != AF_PACKET)
		return 0;
	cookie = sk->__sk_common.skc_cookie.counter;
	found = bpf_map_lookup_elem(&delays, &cookie);
	if (!found)
		return 0;
	COUNT_ONE(found->wakeups);
	version = READ(po, tp_version);
	if (version == TPACKET_V3)
		stamp = stamp_of_block(po);
	else if (version == TPACKET_V2)
		stamp = stamp_of_slot(po);
	now = bpf_ktime_get_tai_ns() - tai_offset_ns;
	delay = now - stamp;
	if (!stamp || delay > LONGEST)
		return 0;
	COUNT_ONE(found->measured);
	if (delay > found->max_ns)
		found->max_ns = delay;
	part = part_of(delay);
	if (part < PARTS)
		COUNT_ONE(found->parts[part]);
	return 0;
}
