/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* The state of PINK in maps. `crates/linux/src/bpf/layout.rs` has the same numbers; a test compares their sizes. */
#pragma once
#include "kernel.h"

/* One direction of the link, as the daemon tells it. */
struct way {
	u64 rate;      /* BW in bits per second */
	u64 capacity;  /* (BW - reserve) * c in thousandths of a byte per second */
	u64 room;      /* what the queue may hold, in bytes; in packets if `packets` */
	u64 packets;
	u64 backlog;   /* bytes that waited lately in the queue behind */
};

/* What the daemon tells. */
struct control {
	u64 clock;     /* the time in tests; 0: the kernel's */
	u64 heartbeat; /* when the daemon lived last */
	u64 patience;  /* packets pass untouched when that is longer ago */
	u64 link;      /* bytes before the IP header: 14 for Ethernet, 0 for tunnels and PPP */
	u64 sets;      /* number of sets of the table, a power of two */
	u64 key[2];    /* secret keys of the hash */
	u64 observe;   /* not 0: nothing is changed, packets are counted */
	u64 silent;    /* timeouts in nanoseconds: of a flow without data, */
	u64 quiet;     /* of one that sent data, but not in the last second, */
	u64 opening;   /* of a line without a handshake, */
	u64 closed;    /* of one whose connection is over, */
	u64 idle;      /* and of any other */
	struct way ways[2];
};

/* Sums over all flows of a direction, and counters of what is rare. Changed by atomic additions. */
struct sums {
	u64 sending;   /* n */
	u64 lacking;
	u64 claims;
	u64 silent;
	u64 asleep;
	u64 kept;
	u64 surplus;
	u64 surplus_until;
	u64 growing;
	s64 owed;
	u64 opening;
	u64 strangers;
	u64 started;
	u64 woken;
	u64 ended;
	u64 expired;
	u64 below_now;
	u64 implausible;
};

/* Counters of a direction. */
struct tally {
	u64 packets;
	u64 bytes;
	u64 acks;
	u64 rewritten;
	u64 below_one_segment;
};

/* Counters of packets and of the table, of one processor: what is counted for each packet needs no atomic addition. */
struct gauges {
	struct tally ways[2]; /* toward the link, from it; `acks` and what follows are of data in this direction */
	u64 not_tcp;   /* fragments and what is no TCP */
	u64 unknown;   /* segments of connections whose SYN was not seen, or which have no line */
	u64 unproven;  /* data that came before the handshake was complete */
	u64 contended; /* segments that passed because another processor had the line for too long */
	u64 stale;     /* packets that passed because the daemon hung */
	u64 lines;     /* lines given out less lines that are free again */
	u64 evicted;   /* half-open connections that lost their line to newer ones */
	u64 refused;   /* connections without a line, because all in their set were of others */
	u64 unwritten; /* windows that could not be written */
	u64 sealed;    /* segments with a signature, which covers the window */
	u64 stale_bytes[2]; /* of stale packets toward the link and from it, without the header of the link */
};

/* One loop of a round trip: `crates/core/src/rtt.rs`. */
struct half {
	u64 min;       /* the smallest sample; 0: none yet */
	u64 started;
	u32 expected;
	u32 newest_seq;
	u32 newest_tsval;
	u8 proof;
	u8 knows_seq;
	u8 knows_tsval;
	u8 unused;
};

/* A flow: one direction of a connection. `crates/core/src/ack/pink/flow.rs` says what each field means. */
struct flow {
	struct half wan;
	struct half lan;
	u64 last;
	u32 acked;
	u32 edge;
	u32 round_end;
	u32 surplus;
	u32 isn;
	u32 claim;
	u32 since;
	u32 since_acked;
	u32 since_edge;
	u16 round_at;
	s16 credit;
	u16 mss;
	u16 largest;
	u16 marks;
	u8 scale_and_more;
	u8 phase;
	u8 listed;
	u8 unused[5];
};

_Static_assert(sizeof(struct flow) == 128, "a flow has two cache lines");

/* A connection. */
struct line {
	u64 hash;
	u32 lock;
	u32 used;      /* when a segment passed last, in ticks of 1.05 ms */
	u32 number;
	u32 answer;    /* what an ACK of the SYN-ACK acknowledges, */
	u32 answer_end; /* and what it may acknowledge at most */
	u8 stage;
	u8 opener;     /* the side that sent the SYN: 0 is this side of the link */
	u8 unused[2];
	struct flow flows[2]; /* data toward the link, data from it */
};

#define WAYS 16
/* The tags of 16 lines, 0 for a free one. */
struct head {
	u32 tags[WAYS];
};

/* What was read of a segment. */
struct seg {
	u64 now;
	u64 hash;
	u32 seq;
	u32 ack;
	u32 payload;
	u32 tsval;
	u32 tsecr;
	u32 at;        /* offset of the TCP header */
	u32 ports;     /* as they are in the packet */
	u32 number;    /* of its line */
	u16 window;
	u16 written;   /* the window to write */
	u16 mss;
	u8 flags;
	u8 has;
	u8 scale;
	u8 unused[7];
};

/* What decides the window of one ACK. */
struct context {
	u64 full;    /* payload of a full segment */
	u64 unit;    /* bytes of one unit of the window field */
	u64 told;    /* window that the receiver advertised */
	u64 rtt;     /* round trip of a full segment; 0: not known */
	u64 level;   /* window of a flow that can use all it gets */
	u64 share;   /* window of this flow; NEVER: not known */
	u64 surplus; /* of all other flows, in bytes per round trip */
	u64 before;  /* the window before this ACK */
	u64 newly;   /* bytes that the ACK acknowledges */
	u64 granted; /* the window by share and credit */
	u64 step;    /* windows are whole numbers of this, */
	u64 few;     /* at most two of them if not 0 */
};

/* What a processor has for itself. The segment is here and not on the stack: the verifier then keeps no record of what is
 * known of its fields, which would multiply the ways that it walks. A program of this hook never interrupts another one. */
struct processor {
	struct gauges count;
	struct seg seg;
	struct context context;
};

#define FIN 0x01
#define SYN 0x02
#define RST 0x04
#define ACK 0x10
#define HAS_STAMPS 1
#define HAS_MSS 2
#define HAS_SCALE 4
#define HAS_SIGNATURE 8

struct {
	__uint(type, MAP_ARRAY);
	__type(key, u32);
	__type(value, struct control);
	__uint(max_entries, 1);
} control SEC(".maps");

struct {
	__uint(type, MAP_ARRAY);
	__type(key, u32);
	__type(value, struct sums);
	__uint(max_entries, 2);
} sums SEC(".maps");

struct {
	__uint(type, MAP_PERCPU_ARRAY);
	__type(key, u32);
	__type(value, struct processor);
	__uint(max_entries, 1);
} processors SEC(".maps");

/* The number of the next line. */
struct {
	__uint(type, MAP_ARRAY);
	__type(key, u32);
	__type(value, u64);
	__uint(max_entries, 1);
} numbers SEC(".maps");

struct {
	__uint(type, MAP_ARRAY);
	__type(key, u32);
	__type(value, struct head);
	__uint(max_entries, 4096);
} heads SEC(".maps");

struct {
	__uint(type, MAP_ARRAY);
	__type(key, u32);
	__type(value, struct line);
	__uint(max_entries, 65536);
} lines SEC(".maps");

static __always_inline void *at(void *map, u32 index)
{
	return map_lookup(map, &index);
}

#define ADD(sum, value) ((void)__sync_fetch_and_add(&(sum), (value)))
