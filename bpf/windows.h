/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* The window that an ACK carries on: `crates/core/src/ack/pink.rs` with `flow.rs`, `share.rs`, `growth.rs`, `steps.rs` and
 * `backlog.rs`, in the form of the defaults: reallocation "demand", windows "steady", cuts "advance". */
#pragma once
#include "census.h"

#define MAX_WINDOW (0xffffULL << 14)
#define MILLI 1000ULL
#define CREDIT 3
#define COARSE 3
#define LONG_ROUND_TRIP (400 * MS)
#define LONGEST_ROUND 4
#define MIN_MSS 48
#define MAX_OPTIONS 40
#define TIMESTAMPS_OPTION 12
#define GOLDEN 0x9e3779b9u
#define NEVER (~0ULL)

/* a * b / c for a product of more than 64 bits, at most 2^64 - 1: long division. */
CHECKED_ALONE u64 wide_ratio(u64 a, u64 b, u64 c)
{
	u64 al = (u32)a, ah = a >> 32, bl = (u32)b, bh = b >> 32;
	u64 low = al * bl, mid = ah * bl + (low >> 32), mid2 = al * bh + (u32)mid;
	u64 hi = ah * bh + (mid >> 32) + (mid2 >> 32), lo = mid2 << 32 | (u32)low, quotient = 0;

	if (hi >= c)
		return ~0ULL;
	for (int bit = 0; bit < 64; bit++) {
		u64 carry = hi >> 63;

		hi = hi << 1 | lo >> 63;
		lo <<= 1;
		quotient <<= 1;
		if (carry || hi >= c) {
			hi -= c;
			quotient |= 1;
		}
	}
	return quotient;
}

/* a * b / c */
static __always_inline u64 ratio(u64 a, u64 b, u64 c)
{
	u64 ah = a >> 32, bh = b >> 32;

	if (!bh ? !((ah * b + ((u32)a * b >> 32)) >> 32) : !ah && !((bh * a + ((u32)b * a >> 32)) >> 32))
		return a * b / c;
	return wide_ratio(a, b, c);
}

static __always_inline u64 window_of(u64 rate, u64 rtt, u64 n)
{
	u64 window;

	n = n < 1 ? 1 : MIN(n, 1 << 24);
	window = ratio(rate, rtt, NS * MILLI * n);
	return MIN(window, MAX_WINDOW);
}

static __always_inline u32 rate_of(u64 bytes, u64 rtt)
{
	u64 rate = bytes * NS / (rtt ? rtt : 1);

	return MIN(rate, 0xffffffffu);
}

/* A rate as it counts in sums: at most that of the link. A forged segment may claim any; what is beyond would change no window. */
static __always_inline u32 counted(u32 rate, const struct way *w)
{
	u64 most = w->capacity / MILLI + 1;

	return MIN(rate, most);
}

static __always_inline u64 time_of(u64 payload, const struct way *w)
{
	return payload * 8 * NS / (w->rate ? w->rate : 1);
}

static __always_inline u64 up(u64 bytes, u64 unit)
{
	return (bytes + (unit - 1)) & ~(unit - 1);
}

static __always_inline u64 down(u64 bytes, u64 unit)
{
	return bytes & ~(unit - 1);
}

/* a / b as Rust divides: towards zero. */
static __always_inline s64 quotient(s64 a, u64 b)
{
	return a < 0 ? -(s64)((u64)-a / b) : (s64)((u64)a / b);
}

static __always_inline s64 within(s64 x, s64 least, s64 most)
{
	return x < least ? least : x > most ? most : x;
}

static __always_inline u32 segment_of(const struct flow *f, int stamped)
{
	u32 full = f->mss;

	if (f->largest + MAX_OPTIONS >= f->mss)
		full = f->largest;
	else if (stamped)
		full = LESS(full, TIMESTAMPS_OPTION);
	return MAX(full, MIN_MSS);
}

static __always_inline int had(const struct flow *f, u16 habit)
{
	return (f->marks & HABITS) >> 2 & habit;
}

static __always_inline int wants_pairs(const struct flow *f)
{
	u64 rtt = round_trip(f);

	return had(f, STRETCHES) && rtt && rtt < LONG_ROUND_TRIP;
}

static __always_inline int is_done(const struct flow *f, u32 ack)
{
	u32 ended = !!(f->marks & FIN_SENT);

	return (ended || (f->scale_and_more & SHORT)) && f->wan.knows_seq && f->wan.newest_seq - ended == ack;
}

static __always_inline u64 in_units(u64 window, u64 segment, u64 unit, const struct flow *f)
{
	u64 less = down(window, unit);

	return had(f, SPLITS) && less >= segment ? less : up(window, unit);
}

/* The rate that good flows share, and their number in `good` (allocation.rs, `rest`). */
static __always_inline u64 rest(u64 capacity, u64 n, u64 lacking, u64 claims, u64 *good)
{
	u64 equal;

	*good = n;
	if (lacking == 0)
		return capacity;
	equal = ratio(capacity, lacking, MAX(n, 1));
	*good = LESS(n, lacking);
	return capacity - MIN(claims, equal);
}

static __always_inline u64 level_of(const struct flow *f, const struct sums *g, const struct way *w, u64 rtt)
{
	u64 n = g->sending, lacking = g->lacking, claims = g->claims, good, rate;

	if (f->listed == NOWHERE || f->listed == SILENT) {
		u64 expected = g->silent * g->kept / ALL, own = f->listed != NOWHERE;

		n += 1 + (flight(f) == FLIGHT_LATER ? 0 : LESS(expected, own));
	} else if (f->marks & LACKING) {
		lacking = LESS(lacking, 1);
		claims = LESS(claims, f->claim);
	}
	rate = rest(w->capacity, n, lacking, claims * MILLI, &good);
	return window_of(rate, rtt, good);
}

static __always_inline u64 burst_room(const struct way *w, u64 full, u64 rtt)
{
	u64 room = w->packets ? w->room * full : w->room, product = window_of(w->capacity, rtt, 1);

	return MIN(room, product);
}

/* Learns of data that pass an open question: does the sender fill its window? */
static __always_inline void look(struct flow *f, const struct seg *s, u64 full)
{
	u32 elapsed = coarse(s->now) - f->since;
	u64 lan = f->lan.min, rtt = round_trip(f), late;
	int filled;

	if (!lan || elapsed < coarse_span(lan))
		return;
	if (!f->wan.knows_seq || f->wan.newest_seq != s->seq + s->payload)
		return; /* a retransmission tells nothing of the window */
	filled = after(s->seq + (u32)full, f->since_edge);
	late = rtt ? MIN(lan / 2 + MS, rtt / 16) : 0;
	if (!filled && elapsed < coarse_span(lan + late))
		return;
	mark(f, ASKED, 0);
	mark(f, FILLED, filled);
}

static __always_inline void note_data(struct flow *f, const struct seg *s)
{
	u32 payload = MIN(s->payload, 0xffff), full;
	int is_short;

	if (payload <= f->mss)
		f->largest = MAX(f->largest, payload); /* a larger one is several that were merged */
	full = segment_of(f, s->has & HAS_STAMPS);
	is_short = payload < full;
	if (is_short && !(s->flags & FIN)) {
		f->marks |= SPLITS;
		mark_more(f, SPLITTER, 1);
	}
	mark_more(f, SHORT, is_short && (s32)(f->edge - (s->seq + s->payload)) >= f->mss / 2);
	if (f->marks & ASKED)
		look(f, s, full);
}

/* A flow that leaves something to others has filled its window: it can use more. */
static __always_inline void note_held(struct flow *f, struct sums *g, u32 full)
{
	u32 end = f->wan.knows_seq ? f->wan.newest_seq : f->acked;

	if (!(f->marks & LACKING) || !(f->scale_and_more & HELD) || !after(end + full, f->edge))
		return;
	set_lacking(f, g, 0, 0);
	wake(f);
}

/* The first flight ends with a short segment: the flow has nothing more to send. */
static __always_inline void note_short(struct flow *f, struct sums *g, const struct way *w, u32 full)
{
	u64 rtt = round_trip(f);

	if (flight(f) != FLIGHT_FIRST || !is_busy(f) || !(f->scale_and_more & SHORT) || (f->marks & LACKING))
		return;
	if (rtt && f->wan.knows_seq)
		set_lacking(f, g, 1, counted(rate_of(f->wan.newest_seq - f->acked, rtt + time_of(full, w)), w));
}

/* A segment toward the bottleneck of its direction. */
static __always_inline void outbound(struct flow *f, struct sums *g, const struct way *w, const struct seg *s)
{
	u32 full;

	if (!arrive(f, g, s, 1))
		return;
	pass(&f->wan, &f->lan, s);
	note_answer(f, g, s, 1);
	if (s->payload > 0) {
		if (!is_busy(f) || LESS(s->now, f->last) >= GRAIN)
			renew(f, g, s->now);
		note_data(f, s);
		full = segment_of(f, s->has & HAS_STAMPS);
		note_held(f, g, full);
		note_short(f, g, w, full);
	}
	if (s->flags & FIN)
		mark(f, FIN_SENT, 1);
}

/* Decides at the end of a measurement whether the flow is good or bad. */
static __always_inline void judge_by_use(struct flow *f, struct sums *g, const struct way *w, const struct context *x, u64 now)
{
	u32 elapsed = coarse(now) - f->since, round = coarse_span(x->rtt), used, claim;
	int growing, more, first;

	round = MAX(round, 1);
	if (!(f->marks & MEASURING) || elapsed < round + round / 4 || ((f->marks & ASKED) && elapsed < 4 * round))
		return;
	used = rate_of(f->acked - f->since_acked, (u64)elapsed << 12);
	growing = (u64)used * 4 > ((u64)f->claim + rate_of(x->full, x->rtt)) * 5;
	more = (f->marks & (FILLED | OURS)) == (FILLED | OURS) || growing;
	claim = used + used / 8 < used ? 0xffffffffu : used + used / 8;
	first = f->claim == 0 && !(f->marks & LACKING);
	if (more || first || window_of(MILLI * claim, x->rtt, 1) >= x->level) {
		set_lacking(f, g, 0, 0);
		f->claim = used;
	} else {
		set_lacking(f, g, 1, counted(claim, w));
	}
	forget_interval(f);
}

/* Good or bad (Figures 2 to 4), and what a bad flow may send although it was not seen to use it. */
static __always_inline void judge(struct flow *f, struct sums *g, const struct way *w, const struct seg *s,
				  struct context *x)
{
	if (!(s->flags & SYN) && is_busy(f)) {
		if (!(f->marks & LACKING) && is_done(f, s->ack)) {
			u32 claim = rate_of(s->ack - f->acked, x->rtt);

			forget_interval(f);
			set_lacking(f, g, 1, counted(claim, w));
		} else if (flight(f) == FLIGHT_LATER) {
			judge_by_use(f, g, w, x, s->now);
		}
	}
	if (f->marks & LACKING) {
		u64 others = g->lacking + g->asleep;
		u64 part = burst_room(w, x->full, x->rtt) / (2 * MAX(others, 1) * (others + 1));
		u64 most = window_of(MILLI * f->claim, x->rtt, 1) + part;

		most = MAX(most, 2 * x->full);
		x->share = MIN(x->share, most);
	}
}

/* The surplus of all other flows, in bytes per round trip of this one. */
static __always_inline u64 note_surplus(struct flow *f, struct sums *g, const struct way *w, const struct seg *s,
					const struct context *x)
{
	u64 allowed = (x->share == NEVER ? 0 : x->share) + CREDIT * x->full, beyond = 0, others;
	u32 rate;

	if (f->wan.knows_seq && after(f->wan.newest_seq, s->ack))
		beyond = LESS((u64)(f->wan.newest_seq - s->ack), allowed);
	if (beyond == 0 && g->surplus == 0)
		return 0;
	rate = counted(rate_of(beyond, x->rtt), w);
	set_surplus(f, g, rate);
	if (rate > 0)
		g->surplus_until = MAX(g->surplus_until, s->now + x->rtt);
	if (s->now >= g->surplus_until)
		return 0;
	others = LESS(g->surplus, f->surplus);
	return window_of(others * MILLI, x->rtt, 1);
}

/* What is due in a round that ends now. */
static __always_inline u64 due_in(const struct flow *f, const struct way *w, const struct context *x, u64 now)
{
	u64 wait, took;

	if (flight(f) == FLIGHT_FIRST)
		return x->share;
	wait = time_of(LESS(w->backlog, (COARSE * x->unit > x->full ? 2 : 3) * x->full), w);
	took = (u64)(u16)(beat(now) - f->round_at) << 18;
	took = within(LESS(took, wait), x->rtt / 2, LONGEST_ROUND * x->rtt);
	if (x->rtt >= LONG_ROUND_TRIP)
		took = (took + x->rtt) / 2;
	return ratio(x->share, took, x->rtt);
}

/* The bytes of a step of one segment: the units that hold it, if a unit is more than two thirds of it and the sender fills them. */
static __always_inline u64 stride(const struct flow *f, u64 segment, u64 unit)
{
	if (3 * unit <= 2 * segment || (unit <= segment && !had(f, SPLITS)))
		return segment;
	return up(segment, unit);
}

/* Ends the round if it is over, and carries its error over. Returns what was due, or NEVER. */
static __always_inline u64 turn_round(struct flow *f, const struct way *w, const struct seg *s, const struct context *x,
				      int settled)
{
	u64 least = CREDIT * MAX(x->full, x->unit), step = stride(f, x->full, x->unit) * (wants_pairs(f) ? 2 : 1), due;

	if (!after(s->ack, f->round_end))
		return NEVER;
	due = x->rtt ? due_in(f, w, x, s->now) : x->share;
	f->round_at = beat(s->now);
	if (flight(f) == FLIGHT_LATER && !settled) {
		s64 given = (s32)(f->edge - f->round_end), bound = MAX(least, step + 3 * step / 2);

		bound = MIN(bound, 32767);
		f->credit = within(f->credit + (s64)due - given, -bound, bound);
	}
	set_flight(f, FLIGHT_LATER);
	f->round_end = f->edge;
	f->marks = (f->marks & ~HABITS) | ((f->marks << 2) & 12);
	return due;
}

/* The largest window of whole segments up to the share: `Window::grant`. */
static __always_inline u64 grant(const struct flow *f, const struct context *x)
{
	u64 share = flight(f) == FLIGHT_FIRST ? x->share / 2 : x->share;
	u64 step = wants_pairs(f) && x->unit < x->full ? 2 * x->full : MAX(x->full, x->unit), window;
	s64 bytes = (s64)share + f->credit;

	window = bytes < 0 ? 0 : (u64)bytes / step * step;
	return in_units(MAX(window, x->full), x->full, x->unit, f);
}

static __always_inline u64 nearest(u64 bytes, u64 step)
{
	u64 steps = (bytes + step / 2) / step;

	return MAX(steps, 1) * step;
}

/* The window when a round ends, one of the two next to `due`; in steps of `x->step`, at most two of them if `x->few`. */
CHECKED_ALONE u64 stepped(struct context *x, u64 due, u64 current, s64 credit, s64 reluctance)
{
	u64 step, steps, lower, upper, least, most;
	s64 owed, up_at, down_at, part;

	if (!x)
		return 0;
	step = MAX(x->step, 1);
	part = 3 * (s64)step;
	steps = due / step;
	lower = MAX(steps, 1) * step;
	upper = lower + step;
	least = x->few ? step : MAX(LESS(lower, step), step);
	most = x->few ? 2 * step : upper + step;
	current = current < least ? least : MIN(current, most);
	owed = (s64)due + credit - (s64)current;
	up_at = (u64)(part * (current <= lower ? reluctance : 1024)) / 2048;
	down_at = (u64)(part * (current >= upper ? 1024 - reluctance : 1024)) / 2048;
	if (owed >= up_at)
		return MIN(current + step, most);
	if (owed <= -down_at)
		return MAX(LESS(current, step), least);
	return current;
}

/* The window with "steady": one of the two next to what is due. `owed` is the flow's credit before this ACK. */
static __always_inline u64 step_window(struct flow *f, struct sums *g, struct context *x, u64 segment, u64 due, s64 owed,
				       int crowded)
{
	u64 step, current, window;
	int pairs = wants_pairs(f);

	x->few = pairs && x->share < 2 * segment;
	step = x->step = pairs && !x->few ? 2 * segment : segment;
	current = nearest(x->before, step);
	if (crowded) {
		window = x->share / step;
		window = MAX(window, 1) * step;
	} else if (due != NEVER) {
		s64 reluctance = within(512 - quotient(g->owed * 1024, 4 * segment), 0, 1024);

		window = stepped(x, x->few ? x->share : due, current, f->credit, reluctance);
	} else if (current + 2 * step >= x->share && current <= x->share + x->share / 8 + step) {
		window = current;
	} else {
		window = nearest(x->share, step);
	}
	FORGET();
	if (x->few)
		window = MIN(window, 2 * segment);
	if (due != NEVER) {
		s64 sum = g->owed + (f->credit - owed) + ((s64)current - (s64)window), most = 16 * (s64)segment;

		g->owed = within(sum - quotient(sum, 16), -most, most);
	}
	return in_units(window, segment, x->unit, f);
}

/* The bytes by which a window may grow at this ACK towards `target`. */
static __always_inline u64 unclocked(const struct flow *f, u64 before, u64 newly, u64 target, u64 burst)
{
	u64 given = f->edge - f->round_end, left = (u32)(f->round_end - f->acked) + newly, owed, most, paced;

	left = MIN(left, before);
	left = MAX(left, 1);
	owed = LESS(target, given);
	owed = LESS(owed, left);
	most = newly * MIN(burst, MAX_WINDOW) / MAX(before, 1);
	most = MAX(newly / 8, most);
	paced = newly * owed / left;
	paced = MIN(paced, owed);
	return MIN(paced, most);
}

/* How much of the window `x->granted` may be given at this ACK. */
static __always_inline u64 grow(struct flow *f, struct sums *g, const struct way *w, const struct seg *s, const struct context *x)
{
	u64 before, free, target, dithers;
	int grew, grows;

	before = x->before;
	free = x->surplus > 0 ? LESS(x->share, x->surplus) : NEVER;
	target = MIN(free, x->granted);
	target = MIN(target, x->told);
	grew = !!(f->marks & GROWS);
	dithers = free != NEVER ? 0 : (grew ? 1 : 2) * CREDIT * x->full;
	grows = target > before + dithers;
	if (grows && !grew) {
		f->round_end = f->edge;
		f->round_at = beat(s->now);
	}
	set_growing(f, g, grows);
	if (grows) {
		u64 burst = burst_room(w, x->full, x->rtt) / (2 * MAX(g->growing, 1));

		return before + unclocked(f, before, x->newly, target, burst);
	}
	return free != NEVER ? before : x->granted;
}

/* The window without a tail of less than half a segment, for a sender that splits segments. */
static __always_inline u64 without_tail(const struct flow *f, u32 ack, u64 granted, u64 segment, u64 unit)
{
	u32 end = f->wan.knows_seq ? f->wan.newest_seq : ack, right = ack + (u32)granted;
	u64 rtt = round_trip(f), tail, less;

	if (unit == 1 || !rtt || rtt >= LONG_ROUND_TRIP || !(f->scale_and_more & SPLITTER) || !after(right, end))
		return granted;
	tail = (u64)(right - end) % segment;
	less = LESS(granted, up(tail, unit));
	return tail == 0 || 2 * tail >= segment || less < segment ? granted : less;
}

static __always_inline u64 allow(const struct flow *f, u32 ack, u64 granted, u64 segment, u64 unit)
{
	u64 held;

	if (!after(f->edge, ack))
		return granted;
	held = f->edge - ack;
	held = 2 * unit > segment ? down(held, unit) : up(held, unit);
	return MAX(granted, held);
}
