// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/* What a packet costs, part by part: each run of a program makes its packet that of another flow, in random order, and does
 * a part of what a gateway does with it. `shell` does the first alone. Not a part of what a gateway loads;
 * `cargo run --release -p penstock-linux --example cost`. */
#include "pink.bpf.c"

#define TURN 1448
/* Windows that are above every share, and below. */
#define WIDE 0xffff
#define NARROW 8

/* Each kind of packet visits the flows by itself. */
enum { VISIT_SHELL, VISIT_PARSE, VISIT_FIND, VISIT_DATA, VISIT_ACK, VISITORS };

struct visits {
	u64 flows;
	u64 count;
};

struct {
	__uint(type, MAP_ARRAY);
	__type(key, u32);
	__type(value, struct visits);
	__uint(max_entries, VISITORS);
} visits SEC(".maps");

/* Addresses at `address`: source 26, destination 30. Numbers go on by a segment each time all flows were visited once. No
 * timestamp is echoed, so that round trips stay as they are. */
static __always_inline int prepare(struct __sk_buff *skb, u32 by, u32 address, u32 seq, u32 ack, u16 window, u32 seq_moves)
{
	u8 *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct visits *v = at(&visits, by);
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
	*(u16 *)(data + 48) = be16(window);
	*(u32 *)(data + 58) = be32((u32)turn + 100);
	*(u32 *)(data + 62) = be32(1);
	return 1;
}

static __always_inline int prepare_data(struct __sk_buff *skb, u32 by, u16 window)
{
	return prepare(skb, by, 26, 2449, 5001, window, 1);
}

/* The header of a packet, its connection if `look_up`. */
static __always_inline int begin(struct __sk_buff *skb, int look_up)
{
	struct control *c = at(&control, 0);
	struct processor *p = at(&processors, 0);

	if (!c || !p || !read_segment(skb, c, &p->seg, 1))
		return NEXT;
	if (look_up && !find_line(c, &p->seg))
		p->count.unknown++;
	return NEXT;
}

SEC("classifier")
int shell(struct __sk_buff *skb)
{
	prepare_data(skb, VISIT_SHELL, WIDE);
	return NEXT;
}

SEC("classifier")
int visit_parse(struct __sk_buff *skb)
{
	return prepare_data(skb, VISIT_PARSE, WIDE) ? begin(skb, 0) : NEXT;
}

SEC("classifier")
int visit_find(struct __sk_buff *skb)
{
	return prepare_data(skb, VISIT_FIND, WIDE) ? begin(skb, 1) : NEXT;
}

SEC("classifier")
int visit_plain(struct __sk_buff *skb)
{
	return prepare_data(skb, VISIT_DATA, NARROW) ? run(skb, 1) : NEXT;
}

SEC("classifier")
int visit_data(struct __sk_buff *skb)
{
	return prepare_data(skb, VISIT_DATA, WIDE) ? run(skb, 1) : NEXT;
}

SEC("classifier")
int visit_ack(struct __sk_buff *skb)
{
	return prepare(skb, VISIT_ACK, 30, 5001, 3897, WIDE, 0) ? run(skb, 0) : NEXT;
}
