// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/* QRM as programs at the interface to the LAN: each host has an account that drains at its budget, and what does not fit is
 * dropped before the kernel routes it. `hold` sees what hosts send, `answer` what they get, for their round trip times. Only
 * what leaves to the link counts. What an interface or a sender has merged counts as the packets that it becomes there, with
 * the headers of each, and passes or is dropped as one. The rules are those of `crates/core/src/ack/qrm.rs`, with the
 * default account; `crates/linux/tests/all/police.rs` holds both to the same verdicts. */
#include "kernel.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define MAP_HASH 1
#define MAP_LRU_HASH 9
#define SECOND 1000000000ull
/* A handshake that takes longer is not waited for. */
#define PATIENCE (3 * SECOND)
#define ATTEMPTS 8
#define AF_INET 2
#define AF_INET6 10
#define IS_SYN 1
#define IS_ACK 2

static long (*const map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;

/* struct bpf_fib_lookup of include/uapi/linux/bpf.h. */
struct way_out {
	u8 family, protocol;
	u16 ports[2], length;
	u32 ifindex, tos;
	u32 from[4], to[4];
	u64 tags[2];
};

_Static_assert(sizeof(struct way_out) == 64, "way_out");

static long (*const fib_lookup)(void *ctx, struct way_out *params, int size, u32 flags) = (void *)69;

/* What the daemon tells. `crates/linux/src/bpf/police.rs` has the same numbers. */
struct told {
	u64 heartbeat; /* when the daemon lived last */
	u64 patience;  /* nanoseconds after which everything passes */
	u64 enforces;  /* 0: hosts are only counted */
	u64 wan;       /* index of the interface to the link; 0: everything counts, for tests */
	u64 each;      /* bits per second of each host without a budget; at least 1 */
	u64 rtt;       /* nanoseconds, of hosts whose round trip time is not known */
	u64 max_lan;   /* nanoseconds that the half between host and gateway counts at most */
	u64 tolerance; /* by which an account is deeper than a round trip, in thousandths */
	u64 syn_gap;   /* nanoseconds between two SYNs */
	u64 ethernet;  /* not 0: packets have an Ethernet header */
	u64 clock;     /* the time, for tests; 0: the kernel's */
};

/* An address of IPv4 as in ::ffff:0:0/96, or the first half of one of IPv6. */
struct key {
	u32 words[4];
};

/* What the programs know of a host. */
struct host {
	u64 empty;      /* when its account will be empty */
	u64 syns;       /* when another SYN is due */
	u64 seen;       /* its last packet that was no SYN */
	u64 arrived[2]; /* packets and bytes */
	u64 policed[2];
	u64 rtt;        /* its smallest round trip time; 0: not known */
	u64 probe;      /* the connection whose handshake is measured; 0: none */
	u64 asked;      /* when its SYN passed */
	u64 answered;   /* when the answer passed; 0: not yet */
};

struct {
	__uint(type, MAP_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct told);
} rules SEC(".maps");

/* Arrived and policed packets and bytes of hosts without and with a budget, and packets that passed without a sign of life. */
struct sums {
	u64 arrived[2][2];
	u64 policed[2][2];
	u64 stale;
};

struct {
	__uint(type, MAP_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct sums);
} totals SEC(".maps");

/* Bits per second of hosts with a session. The daemon alone writes them. */
struct {
	__uint(type, MAP_HASH);
	__uint(max_entries, 1);
	__type(key, struct key);
	__type(value, u64);
} budgets SEC(".maps");

struct {
	__uint(type, MAP_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct key);
	__type(value, struct host);
} hosts SEC(".maps");

/* What counts of a packet. */
struct seen {
	struct key own;
	u64 flow; /* of TCP; never 0 */
	u32 size, flags;
	u32 packets; /* that it becomes on the link */
};

static __always_inline void *first(void *map)
{
	u32 zero = 0;

	return map_lookup(map, &zero);
}

/* Reads ports and flags of TCP; returns the length of its header. */
static __always_inline u32 read_tcp(struct __sk_buff *skb, u32 at, u64 far, struct seen *s)
{
	u16 ports[2];
	u8 offset_flags[2];

	if (skb_load(skb, at, ports, 4) || skb_load(skb, at + 12, offset_flags, 2))
		return 0;
	s->flags = (offset_flags[1] & 2 ? IS_SYN : 0) | (offset_flags[1] & 16 ? IS_ACK : 0);
	/* The same in both directions: which port is whose does not matter to find the answer. */
	s->flow = ((u64)(ports[0] ^ ports[1]) << 32 ^ far) | 1ull << 63;
	return (offset_flags[0] >> 4) * 4;
}

/* Reads what follows the header of IP, which has `ip` bytes; `whole` is 0 for a later fragment. */
static __always_inline void read_transport(struct __sk_buff *skb, u32 at, u32 ip, u8 protocol, int whole, u64 far,
					   struct seen *s)
{
	u32 headers = 0;

	if (!whole)
		return;
	if (protocol == 6)
		headers = read_tcp(skb, at + ip, far, s);
	else if (protocol == 17)
		headers = 8;
	if (!headers || !skb->gso_size)
		return;
	headers += ip;
	s->packets = MAX((LESS(s->size, headers) + skb->gso_size - 1) / skb->gso_size, 1);
	s->size += (s->packets - 1) * headers;
}

/* Reads a packet of a host, or to it; returns 0 if it is not IP. `out` gets what a search of its way needs. */
static __always_inline int read(struct __sk_buff *skb, const struct told *t, int up, struct seen *s, struct way_out *out)
{
	u32 at = t->ethernet ? 14 : 0, own = up ? 0 : 1;
	u16 type = 0;
	u8 head[40];

	if (t->ethernet) {
		if (skb_load(skb, 12, &type, 2))
			return 0;
		for (int i = 0; i < 2; i++) {
			if (type != be16(0x8100) && type != be16(0x88a8))
				break;
			if (skb_load(skb, at + 2, &type, 2))
				return 0;
			at += 4;
		}
	}
	if (skb_load(skb, at, head, 20))
		return 0;
	s->size = LESS(skb->len, at);
	s->packets = 1;
	out->tos = 0;
	if (head[0] >> 4 == 4) {
		u32 ends[2];

		if (skb_load(skb, at + 12, ends, 8))
			return 0;
		out->family = AF_INET;
		out->from[0] = ends[0];
		out->to[0] = ends[1];
		s->own.words[2] = be32(0xffff);
		s->own.words[3] = ends[own];
		read_transport(skb, at, (head[0] & 15) * 4, head[9], !((head[6] & 0x1f) | head[7]), ends[!own], s);
		return 1;
	}
	if (head[0] >> 4 == 6) {
		if (skb_load(skb, at + 8, out->from, 16) || skb_load(skb, at + 24, out->to, 16))
			return 0;
		out->family = AF_INET6;
		s->own.words[0] = up ? out->from[0] : out->to[0];
		s->own.words[1] = up ? out->from[1] : out->to[1];
		read_transport(skb, at, 40, head[6], 1, up ? out->to[3] : out->from[3], s);
		return 1;
	}
	return 0;
}

/* Counts what drains in the time `takes`, if the account then drains for no longer than `most`. */
static __always_inline int fill(u64 *mark, u64 takes, u64 most, u64 now)
{
	for (int i = 0; i < ATTEMPTS; i++) {
		u64 before = *(volatile u64 *)mark, after = MAX(before, now) + takes;

		if (after - now > most)
			return 0;
		if (__sync_val_compare_and_swap(mark, before, after) == before)
			return 1;
	}
	return 1; /* other processors count packets of this host */
}

/* Follows one handshake after the other. */
static __always_inline void measure(struct host *h, const struct told *t, const struct seen *s, u64 now)
{
	u64 lan, rtt;

	if (!s->flow)
		return;
	if ((s->flags & (IS_SYN | IS_ACK)) == IS_SYN) {
		if (h->probe == s->flow) { /* sent again: whose answer comes is not known */
			h->probe = 0;
		} else if (!h->probe || LESS(now, h->asked) > PATIENCE) {
			h->probe = s->flow;
			h->asked = now;
			h->answered = 0;
		}
		return;
	}
	if (h->probe != s->flow || !h->answered)
		return;
	lan = LESS(now, h->answered);
	rtt = LESS(h->answered, h->asked) + MIN(lan, t->max_lan);
	if (!h->rtt || rtt < h->rtt)
		h->rtt = rtt;
	h->probe = 0;
}

static __always_inline struct host *host_of(const struct key *key)
{
	struct host *h = map_lookup(&hosts, key);
	struct host fresh = {};

	if (h)
		return h;
	map_update(&hosts, key, &fresh, 1 /* unless it is there by now */);
	return map_lookup(&hosts, key);
}

static __always_inline int judge(struct host *h, const struct told *t, const struct seen *s, u64 rate, u64 now)
{
	u64 rtt, takes;

	if ((s->flags & (IS_SYN | IS_ACK)) == IS_SYN)
		return fill(&h->syns, t->syn_gap, SECOND, now);
	h->seen = now;
	rtt = h->rtt ? h->rtt : t->rtt;
	takes = (u64)s->size * 8 * SECOND / MAX(rate, 1);
	/* An empty account always has room for one packet, merged ones included: they would otherwise never pass. */
	return fill(&h->empty, takes, MAX(rtt + rtt * t->tolerance / 1000, takes), now);
}

static __always_inline void count(u64 *counts, const struct seen *s)
{
	__sync_fetch_and_add(&counts[0], s->packets);
	__sync_fetch_and_add(&counts[1], s->size);
}

/* What a host sends: from the LAN. */
SEC("classifier")
int hold(struct __sk_buff *skb)
{
	const struct told *t = first(&rules);
	struct sums *all = first(&totals);
	struct way_out out = {};
	struct seen s = {};
	u64 now, *budget, rate;
	struct host *h;
	u32 has;

	if (!t || !all)
		return NEXT;
	now = t->clock ? t->clock : ktime();
	if (LESS(now, t->heartbeat) > t->patience) {
		__sync_fetch_and_add(&all->stale, 1);
		return NEXT;
	}
	if (!read(skb, t, 1, &s, &out))
		return NEXT;
	if (t->wan) {
		long found;

		out.ifindex = skb->ifindex;
		found = fib_lookup(skb, &out, sizeof(out), 0);
		/* 7: the neighbour is not known yet. */
		if ((found != 0 && found != 7) || out.ifindex != t->wan)
			return NEXT;
	}
	h = host_of(&s.own);
	if (!h)
		return NEXT;
	measure(h, t, &s, now);
	budget = map_lookup(&budgets, &s.own);
	has = !!budget;
	rate = budget ? *budget : t->each;
	count(h->arrived, &s);
	count(all->arrived[has], &s);
	if (!t->enforces || judge(h, t, &s, rate, now))
		return NEXT;
	count(h->policed, &s);
	count(all->policed[has], &s);
	return HIDDEN;
}

/* What a host gets: to the LAN. */
SEC("classifier")
int answer(struct __sk_buff *skb)
{
	const struct told *t = first(&rules);
	struct way_out out = {};
	struct seen s = {};
	struct host *h;

	if (!t || !read(skb, t, 0, &s, &out))
		return NEXT;
	if ((s.flags & (IS_SYN | IS_ACK)) != (IS_SYN | IS_ACK))
		return NEXT;
	h = map_lookup(&hosts, &s.own);
	if (h && s.flow && h->probe == s.flow && !h->answered)
		h->answered = t->clock ? t->clock : ktime();
	return NEXT;
}
