// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/* PINK as programs of the kernel's packet path, for both directions of a link. The kernel forwards; these programs read
 * TCP headers that pass the interface to the link, and write smaller windows into ACKs. They drop, delay and copy nothing.
 *
 * `outward` sees what leaves to the link, `inward` what comes from it, and `sweep`, which the daemon runs, applies timeouts.
 * The rules are those of `crates/core/src/ack/pink.rs`; `crates/linux/tests/all/parity.rs` holds both to the same windows. */
#include "parse.h"
#include "windows.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Writes the window of an ACK; returns 1 if PINK's share, and not the receiver's window, limits the flow. */
static __always_inline int write_window(struct flow *f, struct sums *g, const struct way *w, struct seg *s, struct context *x)
{
	int began, lacks, settled, by_share, idle;
	u64 due, granted, allowed, written, room, full = x->full, unit = x->unit;
	s64 owed;

	lacks = !!(f->marks & LACKING);
	began = flight(f) != FLIGHT_NONE;
	x->before = (u32)(f->edge - f->acked);
	if (!began) {
		u64 credit = (u64)(s->number * GOLDEN) * full >> 32;

		set_flight(f, FLIGHT_FIRST);
		f->acked = f->edge = f->round_end = s->ack;
		f->credit = MIN(credit, 32767);
	}
	x->newly = note_ack(f, s->ack, full);
	let_through(f, s->ack, 0);
	if (x->told == 0)
		return 0;
	if (x->share == NEVER) {
		if (!began) {
			let_through(f, s->ack, x->told);
			return 0;
		}
		x->share = x->before + x->newly / 2;
	}
	settled = (f->marks & GROWS) || lacks;
	owed = f->credit;
	due = turn_round(f, w, s, x, settled);
	if (began && !lacks && flight(f) == FLIGHT_LATER) {
		int crowded = w->backlog > burst_room(w, full, x->rtt) / 3;

		granted = step_window(f, g, x, stride(f, full, unit), due, owed, crowded);
	} else {
		granted = grant(f, x);
	}
	by_share = granted < x->told;
	x->granted = granted;
	if (began)
		room = grow(f, g, w, s, x);
	else
		room = x->surplus > 0 ? LESS(x->share, x->surplus) : granted;
	granted = MIN(granted, up(MAX(room, full), unit));
	if (COARSE * unit <= full && !(f->marks & GROWS))
		granted = without_tail(f, s->ack, granted, full, unit);
	idle = lacks && is_done(f, s->ack);
	allowed = idle ? granted : allow(f, s->ack, granted, full, unit);
	written = MIN(allowed, x->told);
	if (written < x->told)
		s->written = written / unit;
	if (idle)
		f->edge = s->ack; /* nothing is in flight, so the edge may move left */
	let_through(f, s->ack, written);
	return written < x->told && (by_share || !lacks);
}

/* Clamps the window of a segment that acknowledges something. */
static __always_inline void clamp(struct flow *f, struct sums *g, const struct way *w, struct seg *s, struct context *x,
				  struct tally *t)
{
	u32 scale = s->flags & SYN ? 0 : scale_of(f), edge = f->edge;
	u64 seen = round_trip(f);
	int known = !!seen, small, ours;

	x->full = segment_of(f, s->has & HAS_STAMPS);
	x->unit = 1 << scale;
	x->told = (u64)s->window << scale;
	x->rtt = 0;
	x->share = NEVER;
	if (!known && flight(f) == FLIGHT_NONE && f->wan.knows_seq) {
		seen = LESS(s->now, f->wan.started); /* a lower bound of the WAN half */
		known = 1;
	}
	if (known) {
		x->rtt = seen + time_of(x->full, w);
		x->level = x->share = level_of(f, g, w, x->rtt);
		judge(f, g, w, s, x);
	}
	x->surplus = note_surplus(f, g, w, s, x);
	t->acks++;
	small = x->share < x->full;
	if (small)
		t->below_one_segment++;
	set_small(f, g, small && f->listed != NOWHERE);
	ours = write_window(f, g, w, s, x);
	if (s->written != s->window)
		t->rewritten++;
	mark_more(f, HELD, ours);
	if (!(f->marks & MEASURING) && flight(f) == FLIGHT_LATER) {
		f->since = coarse(s->now);
		f->since_acked = f->acked;
		f->since_edge = edge;
		f->marks = (f->marks & ~(FILLED | OURS)) | MEASURING | ASKED;
		mark(f, OURS, ours);
	}
}

/* A segment from the far side of the bottleneck of a direction. */
static __always_inline void inbound(struct flow *f, struct sums *g, const struct way *w, struct processor *p, u32 way)
{
	struct seg *s = &p->seg;

	if (!arrive(f, g, s, 0))
		return;
	if (f->phase != STRANGER && !believes_ack(f, s)) {
		ADD(g->implausible, 1);
		return;
	}
	pass(&f->lan, &f->wan, s);
	note_answer(f, g, s, 0);
	if (!(s->flags & ACK))
		return;
	if ((f->marks & FIN_SENT) && f->wan.knows_seq && f->wan.newest_seq == s->ack)
		end_flow(f, g, s->now);
	else if (f->phase == OPEN)
		clamp(f, g, w, s, &p->context, &p->count.ways[way]);
}

#include "table.h"

/* Writes the window into the packet; returns 0 if that is not possible. The helper knows whether the checksum is that of the
 * whole segment or is finished later. What it leaves is writable, so that the window needs no helper. */
static __always_inline int rewrite(struct __sk_buff *skb, const struct seg *s)
{
	u32 off = s->at & 0x7fff;
	u16 window = be16(s->written), *field;
	void *data, *end;

	if (l4_csum_replace(skb, off + 16, be16(s->window), window, 2))
		return 0;
	data = (void *)(long)skb->data;
	end = (void *)(long)skb->data_end;
	field = BYTES(off + 14, 2);
	if (!field)
		return 0;
	*field = window;
	return 1;
}

static __always_inline int run(struct __sk_buff *skb, u32 outward)
{
	struct control *c = at(&control, 0);
	struct processor *p = at(&processors, 0);
	struct gauges *q;
	struct line *l;
	struct seg *s;

	if (!c || !p)
		return NEXT;
	q = &p->count;
	s = &p->seg;
	s->now = c->clock ? c->clock : ktime();
	if (LESS(s->now, c->heartbeat) > c->patience) {
		q->stale++;
		q->stale_bytes[!outward] += skb->len - c->link;
		return NEXT;
	}
	q->ways[!outward].packets++;
	q->ways[!outward].bytes += skb->len;
	if (c->observe)
		return NEXT;
	if (!read_segment(skb, c, s, outward)) {
		q->not_tcp++;
		return NEXT;
	}
	if (s->has & HAS_SIGNATURE) {
		q->sealed++;
		return NEXT;
	}
	l = find_line(c, s);
	if (!l && (s->flags & (SYN | ACK | RST)) == SYN)
		l = at(&lines, admit(c, q, s, outward));
	if (!l) {
		q->unknown++;
		return NEXT;
	}
	handle(c, p, l, outward);
	if (s->written != s->window && !rewrite(skb, s))
		q->unwritten++;
	return NEXT;
}

SEC("classifier")
int outward(struct __sk_buff *skb)
{
	return run(skb, 1);
}

SEC("classifier")
int inward(struct __sk_buff *skb)
{
	return run(skb, 0);
}

/* Applies timeouts to some sets: the packet is the number of the first and how many, 8 bytes each. */
SEC("classifier")
int sweep(struct __sk_buff *skb)
{
	struct control *c = at(&control, 0);
	struct processor *p = at(&processors, 0);
	u64 range[2], now;

	if (!c || !p || skb_load(skb, 0, range, sizeof(range)))
		return 1;
	now = c->clock ? c->clock : ktime();
	for (u32 i = 0; i < MOST_SETS; i++) {
		if (i >= range[1])
			break;
		sweep_set(c, &p->count, range[0] + i, now);
	}
	return 0;
}
