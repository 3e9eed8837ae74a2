// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/* What a packet costs: each run of a program makes its packet that of another flow, in random order, and shows it to PINK.
 * `shell` does the first alone. Not a part of what a gateway loads; `cargo run --release -p penstock-bpf --example cost`. */
#include "pink.bpf.c"

#define TURN 1448

struct visits {
	u64 flows;
	u64 count;
};

struct {
	__uint(type, MAP_ARRAY);
	__type(key, u32);
	__type(value, struct visits);
	__uint(max_entries, 1);
} visits SEC(".maps");

/* Addresses at `address`: source 26, destination 30. Numbers go on by a segment each time all flows were visited once. */
static __always_inline int prepare(struct __sk_buff *skb, u32 address, u32 seq, u32 ack, u32 seq_moves)
{
	u8 *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct visits *v = at(&visits, 0);
	u64 n, flow, turn;

	if (!v || data + 66 > end || !v->flows)
		return 0;
	n = v->count++;
	flow = (n * 6364136223846793005ULL + 1442695040888963407ULL) >> 33;
	flow %= v->flows;
	turn = n / v->flows;
	*(u32 *)(data + address) = be32(0x0a000000 | (u32)flow);
	*(u32 *)(data + 38) = be32(seq + (seq_moves ? (u32)turn * TURN : 0));
	*(u32 *)(data + 42) = be32(ack + (seq_moves ? 0 : (u32)turn * TURN));
	*(u16 *)(data + 48) = 0xffff;
	*(u32 *)(data + 58) = be32((u32)turn + 100);
	*(u32 *)(data + 62) = be32((u32)turn + 99);
	return 1;
}

SEC("classifier")
int shell(struct __sk_buff *skb)
{
	prepare(skb, 26, 1001 + (1 << 28), 5001, 1);
	return NEXT;
}

SEC("classifier")
int visit_data(struct __sk_buff *skb)
{
	return prepare(skb, 26, 1001 + (1 << 28), 5001, 1) ? run(skb, 1) : NEXT;
}

SEC("classifier")
int visit_ack(struct __sk_buff *skb)
{
	return prepare(skb, 30, 5001, 1001, 0) ? run(skb, 0) : NEXT;
}
