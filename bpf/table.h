/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* The table of connections: lines in sets of 16, found by a keyed hash. Its rules are the first ones of `crates/conntrack`:
 *
 * 1. Only TCP has lines.
 * 2. A SYN gets a line. Half-open connections lose theirs to newer ones, the oldest of the set first; a connection whose
 *    handshake is complete loses its line to nobody before it is over.
 * 3. Data count only when the handshake is complete: its opener has acknowledged the SYN-ACK of the other side, whose
 *    number it cannot guess. Who sends from a forged address sees no SYN-ACK.
 *
 * What is not here: subscribers and their quotas, and a begin that is handed over with the first acknowledged data. */
#pragma once
#include "windows.h"

enum { ASKED_FOR, ANSWERED, PROVEN };

#define TICK 20
/* Sets that one run of `sweep` looks at. */
#define MOST_SETS 256
/* Attempts to get a line from another processor, a few hundred nanoseconds each. */
#define ATTEMPTS 64

static __always_inline u32 tag_of(u64 hash)
{
	return hash >> 32;
}

/* A lock of our own: while the kernel's spin locks are held no function may be called. */
static __always_inline int take(struct line *l)
{
	for (int i = 0; i < ATTEMPTS; i++)
		if (__sync_val_compare_and_swap(&l->lock, 0, 1) == 0)
			return 1;
	return 0;
}

static __always_inline void give(struct line *l)
{
	__sync_lock_test_and_set(&l->lock, 0);
}

/* The way in which the line of a connection is, if it was free. */
static __always_inline u32 first_way(u64 hash)
{
	return hash >> 28 & (WAYS - 1);
}

/* Returns the line of a connection, or NULL. */
static __always_inline struct line *find_line(const struct control *c, const struct seg *s)
{
	u32 set = s->hash & (c->sets - 1), tag = tag_of(s->hash);
	struct line *l = at(&lines, set * WAYS + first_way(s->hash));
	struct head *head;

	if (l && l->hash == s->hash)
		return l;
	head = at(&heads, set);
	if (!head)
		return 0;
	for (int way = 0; way < WAYS; way++) {
		if (head->tags[way] != tag)
			continue;
		l = at(&lines, set * WAYS + way);
		if (l && l->hash == s->hash)
			return l;
	}
	return 0;
}

static __always_inline void forget(struct flow *f, struct sums *g, u64 now)
{
	if (f->listed == SILENT) {
		learn(g, 0);
		drop_out(f, g);
	}
	end_flow(f, g, now);
}

/* Forgets the connection of a line. */
CHECKED_ALONE int clear_line(struct line *l, u64 now)
{
	struct sums *up = at(&sums, 0), *down = at(&sums, 1);

	if (!l || !up || !down)
		return 0;
	forget(&l->flows[0], up, now);
	forget(&l->flows[1], down, now);
	__builtin_memset(l->flows, 0, sizeof(l->flows));
	l->hash = 0;
	l->stage = ASKED_FOR;
	return 0;
}

/* The way whose line a new connection gets: a free one, its first one before others, or that of the oldest half-open
 * connection; WAYS if there is none. */
CHECKED_ALONE u32 choose(u32 set, u32 first, u32 now)
{
	struct head *head = at(&heads, set);
	u32 oldest = 0, best = WAYS;

	if (!head)
		return WAYS;
	for (u32 i = 0; i < WAYS; i++) {
		u32 way = (first + i) & (WAYS - 1), unused;
		struct line *l;

		if (!head->tags[way])
			return way;
		l = at(&lines, set * WAYS + way);
		if (!l || l->stage == PROVEN)
			continue;
		unused = now - l->used;
		if (best == WAYS || unused > oldest) {
			best = way;
			oldest = unused;
		}
	}
	return best;
}

/* Gives a line to the connection that a SYN opens; returns its index, or -1. */
CHECKED_ALONE int admit(struct control *c, struct gauges *q, struct seg *s, u32 outward)
{
	u64 *next = at(&numbers, 0);
	struct head *head;
	struct line *l;
	u32 set, tag, way;

	if (!c || !q || !s)
		return -1;
	set = s->hash & (c->sets - 1);
	tag = tag_of(s->hash);
	way = choose(set, first_way(s->hash), s->now >> TICK);
	head = at(&heads, set);
	l = at(&lines, set * WAYS + way);
	if (!head || !l || !next || way >= WAYS) {
		q->refused++;
		return -1;
	}
	KEEP(way);
	way &= WAYS - 1;
	if (!take(l)) {
		q->contended++;
		return -1;
	}
	if (head->tags[way]) {
		q->evicted++;
		clear_line(l, s->now);
	} else {
		q->lines++;
	}
	l->hash = s->hash;
	l->number = __sync_fetch_and_add(next, 1);
	l->opener = !outward;
	l->used = s->now >> TICK;
	head->tags[way] = tag;
	give(l);
	return set * WAYS + way;
}

/* Follows the handshake; returns 1 if the segment may be shown to PINK. */
static __always_inline int follow(struct line *l, const struct seg *s, u8 side)
{
	int answers = (s->flags & (SYN | ACK)) == (SYN | ACK);

	if (l->stage == PROVEN)
		return 1;
	if (side != l->opener && !(s->flags & RST)) {
		if (answers) {
			l->stage = ANSWERED;
			l->answer = s->seq + 1;
			l->answer_end = l->answer + s->payload;
		} else if (l->stage == ANSWERED && s->seq == l->answer_end) {
			l->answer_end += s->payload;
		}
	} else if (l->stage == ANSWERED && (s->flags & (ACK | RST)) == ACK &&
		   s->ack - l->answer <= l->answer_end - l->answer) {
		l->stage = PROVEN;
	}
	return l->stage == PROVEN || s->payload == 0 || (s->flags & SYN);
}

/* Shows a segment to the flows of its connection, each of them the data of one direction. */
static __always_inline void handle(const struct control *c, struct processor *p, struct line *l, u32 outward)
{
	struct sums *with = at(&sums, !outward), *against = at(&sums, !!outward);
	u32 side = !outward, other = !!outward;
	struct seg *s = &p->seg;

	if (!with || !against)
		return;
	if (!take(l)) {
		p->count.contended++;
		return;
	}
	if (l->hash != s->hash)
		goto done;
	l->used = s->now >> TICK;
	s->number = l->number;
	if (!follow(l, s, side)) {
		p->count.unproven++;
		goto done;
	}
	outbound(&l->flows[side & 1], with, &c->ways[side & 1], s);
	inbound(&l->flows[other & 1], against, &c->ways[other & 1], p, other & 1);
done:
	give(l);
}

/* Applies the timeouts of one set. */
CHECKED_ALONE int sweep_set(struct control *c, struct gauges *q, u32 set, u64 now)
{
	struct sums *up = at(&sums, 0), *down = at(&sums, 1);
	struct head *head = at(&heads, set);

	if (!c || !q || !head || !up || !down)
		return 0;
	for (int way = 0; way < WAYS; way++) {
		struct line *l;
		u64 unused, most;

		if (!head->tags[way])
			continue;
		l = at(&lines, set * WAYS + way);
		if (!l || !take(l))
			continue;
		expire(&l->flows[0], up, c, now);
		expire(&l->flows[1], down, c, now);
		unused = (u64)(u32)((u32)(now >> TICK) - l->used) << TICK;
		most = l->stage != PROVEN ? c->opening : c->idle;
		if (l->flows[0].phase == CLOSED && l->flows[1].phase == CLOSED)
			most = MIN(most, c->closed);
		if (unused > most) {
			clear_line(l, now);
			head->tags[way] = 0;
			q->lines--;
		}
		give(l);
	}
	return 0;
}
