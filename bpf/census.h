/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* Which flows count: `crates/core/src/ack/pink/census.rs` and `handshake.rs`. The lists are only marks here; `sweep` applies
 * the timeouts, because no packet of a flow comes when it is over. */
#pragma once
#include "probe.h"

enum { UNSEEN, STRANGER, OPENING, OPEN, CLOSED };
enum { NOWHERE, SILENT, BUSY, QUIET, FAR };
enum { FLIGHT_NONE, FLIGHT_FIRST, FLIGHT_LATER };

#define SPLITS 1
#define STRETCHES (1 << 1)
#define HABITS 15
#define FROM_INSIDE (1 << 4)
#define FIN_SENT (1 << 5)
#define LACKING (1 << 6)
#define MEASURING (1 << 7)
#define ASKED (1 << 8)
#define FILLED (1 << 9)
#define OURS (1 << 10)
#define SMALL (1 << 11)
#define KNOWN (1 << 12)
#define GROWS (1 << 13)
#define FLIGHT 14

#define SPLITTER (1 << 4)
#define SHORT (1 << 5)
#define HELD (1 << 6)
#define ASLEEP (1 << 7)

#define MS 1000000ULL
#define NS 1000000000ULL
#define PAUSE NS
#define LONG_PAUSE (4 * NS)
#define FAR_RTT (250 * MS)
#define GRAIN (250 * MS)
#define ALL (1 << 16)
#define DEFAULT_MSS 536
#define RST_REACH (1 << 20)

static __always_inline u32 coarse(u64 now)
{
	return now >> 12;
}

static __always_inline u32 coarse_span(u64 span)
{
	span >>= 12;
	return MIN(span, 0xffffffffu >> 3);
}

static __always_inline u16 beat(u64 now)
{
	return now >> 18;
}

static __always_inline void mark(struct flow *f, u16 bit, int to)
{
	f->marks = to ? f->marks | bit : f->marks & ~bit;
}

static __always_inline void mark_more(struct flow *f, u8 bit, int to)
{
	f->scale_and_more = to ? f->scale_and_more | bit : f->scale_and_more & ~bit;
}

static __always_inline int flight(const struct flow *f)
{
	int flight = f->marks >> FLIGHT;

	return MIN(flight, FLIGHT_LATER);
}

static __always_inline void set_flight(struct flow *f, int to)
{
	f->marks = (f->marks & ((1 << FLIGHT) - 1)) | to << FLIGHT;
}

static __always_inline void forget_interval(struct flow *f)
{
	f->marks &= ~(MEASURING | ASKED | FILLED | OURS);
}

static __always_inline int is_busy(const struct flow *f)
{
	return f->listed == BUSY || f->listed == FAR;
}

/* The whole round trip; before it is known, its WAN half; 0 if that is not known either. */
static __always_inline u64 round_trip(const struct flow *f)
{
	return f->wan.min && f->lan.min ? f->wan.min + f->lan.min : f->wan.min;
}

static __always_inline u32 scale_of(const struct flow *f)
{
	u32 scale = f->scale_and_more & 15;

	return scale ? scale - 1 : 0;
}

static __always_inline void set_scale(struct flow *f, int has, u8 scale)
{
	f->scale_and_more = (f->scale_and_more & 0xf0) | (has ? MIN(scale, 14) + 1 : 0);
}

static __always_inline void note_mss(struct flow *f, const struct seg *s)
{
	if (s->has & HAS_MSS)
		f->mss = f->mss == 0 ? s->mss : MIN(f->mss, s->mss);
}

static __always_inline void learn(struct sums *g, int sent_data)
{
	u64 kept = g->kept;

	kept -= kept / 64;
	kept += sent_data ? ALL / 64 : 0;
	g->kept = MIN(kept, ALL);
}

static __always_inline void set_lacking(struct flow *f, struct sums *g, int lacks, u32 claim)
{
	s64 claims = 0;
	int lacked = !!(f->marks & LACKING);

	if (lacked)
		claims -= f->claim;
	if (lacks) {
		claims += claim;
		f->claim = claim;
	}
	if (claims)
		ADD(g->claims, claims);
	if (lacked != lacks)
		ADD(g->lacking, lacks ? 1 : -1);
	mark(f, LACKING, lacks);
}

static __always_inline void set_small(struct flow *f, struct sums *g, int small)
{
	if (!!(f->marks & SMALL) != small) {
		mark(f, SMALL, small);
		ADD(g->below_now, small ? 1 : -1);
	}
}

static __always_inline void set_growing(struct flow *f, struct sums *g, int grows)
{
	if (!!(f->marks & GROWS) != grows) {
		mark(f, GROWS, grows);
		ADD(g->growing, grows ? 1 : -1);
	}
}

static __always_inline void set_asleep(struct flow *f, struct sums *g, int asleep)
{
	if (!!(f->scale_and_more & ASLEEP) != asleep) {
		mark_more(f, ASLEEP, asleep);
		ADD(g->asleep, asleep ? 1 : -1);
	}
}

static __always_inline void set_surplus(struct flow *f, struct sums *g, u32 rate)
{
	if (f->surplus != rate) {
		ADD(g->surplus, (s64)rate - f->surplus);
		f->surplus = rate;
	}
}

static __always_inline void count_listed(struct flow *f, struct sums *g, s64 by)
{
	if (f->listed == SILENT)
		ADD(g->silent, by);
	else
		ADD(g->sending, by);
	if (f->phase == OPENING)
		ADD(g->opening, by);
	if (f->phase == STRANGER)
		ADD(g->strangers, by);
}

static __always_inline void list(struct flow *f, struct sums *g, u8 list, u64 now)
{
	f->listed = list;
	f->last = now;
	count_listed(f, g, 1);
}

static __always_inline int unlist(struct flow *f, struct sums *g)
{
	if (f->listed == NOWHERE)
		return 0;
	set_lacking(f, g, 0, 0);
	set_small(f, g, 0);
	count_listed(f, g, -1);
	f->listed = NOWHERE;
	return 1;
}

/* The flow sent data. */
/* Begins anew after a pause: nothing is owed for it. */
static __always_inline void wake(struct flow *f)
{
	forget_interval(f);
	set_flight(f, FLIGHT_FIRST);
	f->round_end = f->acked;
	f->credit = 0;
}

static __always_inline void renew(struct flow *f, struct sums *g, u64 now)
{
	u64 rtt = round_trip(f);
	u8 busy = rtt && rtt >= FAR_RTT ? FAR : BUSY;

	switch (f->listed) {
	case QUIET:
		forget_interval(f);
		break;
	case SILENT:
		learn(g, 1);
		ADD(g->silent, -1);
		ADD(g->sending, 1);
		break;
	case NOWHERE:
		if (flight(f) == FLIGHT_LATER)
			wake(f);
		set_asleep(f, g, 0);
		list(f, g, busy, now);
		ADD(g->woken, 1);
		break;
	}
	f->listed = busy;
	f->last = now;
}

static __always_inline void end_flow(struct flow *f, struct sums *g, u64 now)
{
	if (unlist(f, g))
		ADD(g->ended, 1);
	set_asleep(f, g, 0);
	set_surplus(f, g, 0);
	set_growing(f, g, 0);
	f->phase = CLOSED;
	f->since = coarse(now);
	forget_interval(f);
}

static __always_inline void drop_out(struct flow *f, struct sums *g)
{
	unlist(f, g);
	set_surplus(f, g, 0);
	set_growing(f, g, 0);
	ADD(g->expired, 1);
}

/* Applies the timeouts that are due to a flow. */
static __always_inline void expire(struct flow *f, struct sums *g, const struct control *c, u64 now)
{
	u64 unused = LESS(now, f->last);

	switch (f->listed) {
	case SILENT:
		if (unused <= c->silent)
			return;
		learn(g, 0);
		drop_out(f, g);
		return;
	case BUSY:
	case FAR:
		if (unused <= (f->listed == BUSY ? PAUSE : LONG_PAUSE))
			return;
		f->listed = QUIET;
		f->last = now;
		set_lacking(f, g, 1, 0);
		return;
	case QUIET:
		if (unused <= c->quiet)
			return;
		drop_out(f, g);
		set_asleep(f, g, f->phase == OPEN);
		return;
	}
}

static __always_inline void open_flow(struct flow *f, struct sums *g, const struct seg *s, int from_inside)
{
	end_flow(f, g, s->now);
	clear_half(&f->wan);
	clear_half(&f->lan);
	f->acked = f->edge = f->round_end = f->claim = 0;
	f->since = f->since_acked = f->since_edge = 0;
	f->round_at = f->mss = f->largest = 0;
	f->credit = 0;
	f->scale_and_more = 0;
	f->marks = from_inside ? FROM_INSIDE : 0;
	f->phase = OPENING;
	f->isn = s->seq;
	set_scale(f, s->has & HAS_SCALE, s->scale);
	note_mss(f, s);
	list(f, g, SILENT, s->now);
	ADD(g->started, 1);
}

/* The opener's SYN is answered: both options are known now (RFC 7323 section 2.2: both sides scale, or none). */
static __always_inline void answer(struct flow *f, struct sums *g, const struct seg *s)
{
	int ours = !!(f->scale_and_more & 15), both = ours && (s->has & HAS_SCALE);

	if (f->listed != NOWHERE)
		ADD(g->opening, -1);
	if (!both)
		set_scale(f, 0, 0);
	else if (f->marks & FROM_INSIDE)
		set_scale(f, 1, s->scale);
	note_mss(f, s);
	if (f->mss == 0)
		f->mss = DEFAULT_MSS;
	f->phase = OPEN;
	mark(f, KNOWN, 1);
}

static __always_inline void note_answer(struct flow *f, struct sums *g, const struct seg *s, int outbound)
{
	int answers = (s->flags & (SYN | ACK)) == (SYN | ACK);

	if (answers && f->phase == OPENING && !!(f->marks & FROM_INSIDE) != outbound)
		answer(f, g, s);
}

/* Returns 0 if nothing more is to be done with this SYN. */
static __always_inline int on_syn(struct flow *f, struct sums *g, const struct seg *s, int from_inside)
{
	int same_side = !!(f->marks & FROM_INSIDE) == from_inside;

	if (f->phase == OPENING && !same_side) {
		answer(f, g, s);
		return 1;
	}
	if (f->phase == OPENING && f->isn == s->seq)
		return 1;
	if (f->phase == OPEN && same_side && f->isn == s->seq)
		return 0;
	if (f->phase == OPEN && is_busy(f) && LESS(s->now, f->last) < PAUSE) {
		ADD(g->implausible, 1);
		return 0;
	}
	open_flow(f, g, s, from_inside);
	return 1;
}

static __always_inline int believes_rst(const struct flow *f, const struct seg *s, int outbound)
{
	const struct half *half = outbound ? &f->wan : &f->lan;

	if (f->phase == OPENING && !!(f->marks & FROM_INSIDE) != outbound)
		return (s->flags & ACK) && s->ack == f->isn + 1;
	return !half->knows_seq || s->seq - (half->newest_seq - RST_REACH) <= 2 * RST_REACH;
}

static __always_inline int believes_ack(const struct flow *f, const struct seg *s)
{
	return !(s->flags & ACK) || (s->flags & SYN) || (f->wan.knows_seq && !after(s->ack, f->wan.newest_seq));
}

/* Data that prove that a closed flow is open. */
static __always_inline int reopens(const struct flow *f, const struct seg *s)
{
	u64 rtt = round_trip(f);
	int new = s->payload > 0 && (!f->wan.knows_seq || after(s->seq + s->payload, f->wan.newest_seq));

	return new && coarse(s->now) - f->since > coarse_span(rtt ? rtt : NS);
}

static __always_inline void let_through(struct flow *f, u32 ack, u64 window)
{
	u32 edge = ack + (u32)window;

	if (after(edge, f->edge))
		f->edge = edge;
}

static __always_inline u32 note_ack(struct flow *f, u32 ack, u32 segment)
{
	u32 newly;

	if (after(ack, f->acked + segment))
		f->marks |= STRETCHES;
	newly = after(ack, f->acked) ? ack - f->acked : 0;
	f->acked += newly;
	return newly;
}

/* What both directions have in common. Returns 0 if nothing more is to be done with the segment. */
static __always_inline int arrive(struct flow *f, struct sums *g, const struct seg *s, int outbound)
{
	if (s->flags & RST) {
		if (f->phase == UNSEEN || f->phase == CLOSED)
			return 0;
		if (believes_rst(f, s, outbound))
			end_flow(f, g, s->now);
		else
			ADD(g->implausible, 1);
		return 0;
	}
	if ((s->flags & (SYN | ACK)) == SYN && !on_syn(f, g, s, outbound))
		return 0;
	if (f->phase != CLOSED)
		return f->phase != UNSEEN;
	if (outbound && reopens(f, s)) {
		f->phase = f->marks & KNOWN ? OPEN : STRANGER;
		mark(f, FIN_SENT, 0);
		return 1;
	}
	if (!outbound && (s->flags & ACK) && flight(f) != FLIGHT_NONE && believes_ack(f, s)) {
		note_ack(f, s->ack, 0xffffffffu >> 1);
		let_through(f, s->ack, (u64)s->window << (s->flags & SYN ? 0 : scale_of(f)));
	}
	return 0;
}
