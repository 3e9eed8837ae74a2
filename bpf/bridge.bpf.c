// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/* Which frames a process takes from a bridge of the kernel. `take` decides it for the socket of a port, which sees a frame
 * first; `hide` decides it again for the kernel, and hides the frame from it if the process has it. Without a sign of life
 * both leave everything to the kernel. Frames that are left to the kernel always: what is not IP, and what is for this machine.
 * Groups (broadcasts and multicasts), neighbour discovery, router advertisements and DHCP are left to it as long as they are few:
 * a host could send anything in their form. The process takes the rest. */
#include "kernel.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define MOST_OWN 3
/* What is left to the kernel because it is little, in bytes a second and direction. */
#define LITTLE 4096
#define SECOND 1000000000ULL

/* What the daemon tells. `crates/linux/src/bpf/bridge.rs` has the same numbers. */
struct told {
	u64 heartbeat;      /* when the daemon lived last; 0: it takes nothing */
	u64 patience;       /* nanoseconds after which it takes nothing */
	u64 observe;        /* not 0: the daemon sees frames, and the kernel has them as well */
	u64 wan;            /* index of the interface to the link */
	u64 own[MOST_OWN];  /* addresses of this machine, first byte lowest */
};

enum fate { TAKEN, HUNG, NOT_IP, GROUP, OWN, SPARED, FATES };

/* Packets and bytes of each fate, from the WAN and from the LAN. */
struct passed {
	u64 counts[FATES][2][2];
};

/* What was left to the kernel in the present second, from the WAN and from the LAN. Processors may count at the same time: then
 * it is a few frames more. */
struct little {
	u64 began[2];
	u64 bytes[2];
};

struct {
	__uint(type, MAP_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct told);
} told SEC(".maps");

struct {
	__uint(type, MAP_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct little);
} little SEC(".maps");

/* Whether `take` found the present frame of this processor to be too much, for `hide`, which the kernel asks next. */
struct {
	__uint(type, MAP_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} too_much SEC(".maps");

struct {
	__uint(type, MAP_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct passed);
} passed SEC(".maps");

static __always_inline int within(u16 port, u16 first)
{
	return port == first || port == first + 1;
}

/* Both ports of a datagram are those of DHCP. */
static __always_inline int is_dhcp(struct __sk_buff *skb, u32 at, u16 first)
{
	u16 ports[2];

	return !skb_load(skb, at, ports, 4) && within(be16(ports[0]), first) && within(be16(ports[1]), first);
}

static __always_inline enum fate of_ipv4(struct __sk_buff *skb, u32 at)
{
	u8 head[20];
	u16 fragment;

	if (skb_load(skb, at, head, 20))
		return NOT_IP;
	fragment = (head[6] & 0x3f) | head[7];
	if (head[9] == 17 && !fragment && is_dhcp(skb, at + (head[0] & 15) * 4, 67))
		return SPARED;
	return TAKEN;
}

static __always_inline enum fate of_ipv6(struct __sk_buff *skb, u32 at)
{
	u8 head[40], type;

	if (skb_load(skb, at, head, 40))
		return NOT_IP;
	if (head[6] == 17 && is_dhcp(skb, at + 40, 546))
		return SPARED;
	if (head[6] == 58 && !skb_load(skb, at + 40, &type, 1) && type >= 133 && type <= 137)
		return SPARED;
	return TAKEN;
}

/* What a frame is, if the daemon lives. The kernel has taken its outer tag away. */
static __always_inline enum fate judge(struct __sk_buff *skb, const struct told *t)
{
	u64 to = 0;
	u16 type, point[4];
	u32 at = 14;
	enum fate fate;

	if (skb_load(skb, 0, &to, 6) || skb_load(skb, 12, &type, 2))
		return NOT_IP;
	for (int i = 0; i < MOST_OWN; i++) {
		if (to == t->own[i])
			return OWN;
	}
	for (int i = 0; i < 2; i++) {
		if (type != be16(0x8100) && type != be16(0x88a8))
			break;
		if (skb_load(skb, at + 2, &type, 2))
			return NOT_IP;
		at += 4;
	}
	if (type == be16(0x8864)) { /* a session of PPPoE */
		if (skb_load(skb, at, point, 8))
			return NOT_IP;
		type = point[3] == be16(0x21) ? be16(0x800) : point[3] == be16(0x57) ? be16(0x86dd) : 0;
		at += 8;
	}
	fate = type == be16(0x800) ? of_ipv4(skb, at) : type == be16(0x86dd) ? of_ipv6(skb, at) : NOT_IP;
	return fate != NOT_IP && to & 1 ? GROUP : fate;
}

static __always_inline void *first(void *map)
{
	u32 zero = 0;

	return map_lookup(map, &zero);
}

/* Counts a frame that is to be left to the kernel; returns 1 if that is too much in this second. */
static __always_inline u64 exceeds(u32 way, u32 len)
{
	struct little *l = first(&little);
	u64 now = ktime();

	if (!l)
		return 0;
	way &= 1;
	if (now - l->began[way] >= SECOND) {
		l->began[way] = now;
		l->bytes[way] = 0;
	}
	if (l->bytes[way] + len > LITTLE)
		return 1;
	l->bytes[way] += len;
	return 0;
}

static __always_inline enum fate decide(struct __sk_buff *skb, const struct told *t, int counts)
{
	enum fate fate = judge(skb, t);
	u64 *much = first(&too_much);

	if (much && (fate == GROUP || fate == SPARED)) {
		if (counts)
			*much = exceeds(skb->ifindex != t->wan, skb->len);
		if (*much)
			fate = TAKEN;
	}
	if (fate == TAKEN && (!t->heartbeat || LESS(ktime(), t->heartbeat) > t->patience))
		return HUNG;
	return fate;
}

/* A filter of a socket: 0 leaves the frame out. */
SEC("socket")
int take(struct __sk_buff *skb)
{
	const struct told *t = first(&told);

	return t && decide(skb, t, 1) == TAKEN ? -1 : 0;
}

SEC("classifier")
int hide(struct __sk_buff *skb)
{
	const struct told *t = first(&told);
	struct passed *p = first(&passed);
	u32 way, fate;

	if (!t || !p)
		return NEXT;
	fate = decide(skb, t, 0);
	way = skb->ifindex != t->wan;
	if (fate >= FATES)
		return NEXT;
	__sync_fetch_and_add(&p->counts[fate][way][0], 1);
	__sync_fetch_and_add(&p->counts[fate][way][1], skb->len);
	return fate == TAKEN && !t->observe ? HIDDEN : NEXT;
}
