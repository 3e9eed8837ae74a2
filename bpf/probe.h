/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* Round trip times from the middle of a path: `crates/core/src/rtt.rs`, whose rules these are. */
#pragma once
#include "state.h"

#define NO_PROOF 0
#define BY_ACK 1
#define BY_ECHO 2

static __always_inline int after(u32 a, u32 b)
{
	return (s32)(a - b) > 0;
}

static __always_inline int advance(u32 *newest, u8 *known, u32 value)
{
	int moved = *known && after(value, *newest);

	if (moved || !*known) {
		*newest = value;
		*known = 1;
	}
	return moved;
}

static __always_inline void start(struct half *h, u8 proof, u32 expected, u64 now)
{
	h->proof = proof;
	h->expected = expected;
	h->started = now;
}

static __always_inline void sent_syn(struct half *h, const struct seg *s)
{
	u8 first = !h->knows_seq;

	advance(&h->newest_seq, &h->knows_seq, s->seq + 1);
	h->knows_tsval = 0;
	if (s->has & HAS_STAMPS) {
		h->newest_tsval = s->tsval;
		h->knows_tsval = 1;
	}
	start(h, first ? BY_ACK : NO_PROOF, s->seq + 1, s->now);
}

/* Follows the sequence numbers; returns 1 if all of the segment is new. A retransmission ends the sample. */
static __always_inline int note_sequence(struct half *h, const struct seg *s)
{
	u32 end = s->seq + s->payload + !!(s->flags & FIN);
	int overlaps, moved;

	if (end == s->seq) {
		advance(&h->newest_seq, &h->knows_seq, end);
		return 0;
	}
	overlaps = h->knows_seq && after(h->newest_seq, s->seq);
	if (overlaps)
		h->proof = NO_PROOF;
	moved = advance(&h->newest_seq, &h->knows_seq, end);
	return moved && !overlaps;
}

static __always_inline void sent(struct half *h, const struct seg *s)
{
	int stamps = s->has & HAS_STAMPS, new_seq, new_tsval = 0;

	if (s->flags & SYN)
		return sent_syn(h, s);
	new_seq = note_sequence(h, s);
	if (stamps)
		new_tsval = advance(&h->newest_tsval, &h->knows_tsval, s->tsval);
	if (h->proof != NO_PROOF)
		return;
	if (stamps && new_tsval)
		start(h, BY_ECHO, s->tsval, s->now);
	else if (!stamps && new_seq)
		start(h, BY_ACK, s->seq + s->payload + !!(s->flags & FIN), s->now);
}

static __always_inline void answered(struct half *h, const struct seg *s)
{
	int proven;

	if (!(s->flags & ACK) || h->proof == NO_PROOF)
		return;
	if (h->proof == BY_ACK)
		proven = !after(h->expected, s->ack);
	else
		proven = (s->has & HAS_STAMPS) && !after(h->expected, s->tsecr);
	if (proven) {
		u64 sample = LESS(s->now, h->started);

		sample = MAX(sample, 1);
		if (!h->min || sample < h->min)
			h->min = sample;
		h->proof = NO_PROOF;
	}
}

static __always_inline void clear_half(struct half *h)
{
	h->min = h->started = 0;
	h->expected = h->newest_seq = h->newest_tsval = 0;
	h->proof = h->knows_seq = h->knows_tsval = 0;
}

/* Shows a segment to both halves: `starts` is the one that this direction starts. */
static __always_inline void pass(struct half *starts, struct half *ends, const struct seg *s)
{
	int opens = (s->flags & (SYN | ACK | RST)) == SYN;

	if (opens && starts->knows_seq && starts->newest_seq != s->seq + 1) {
		clear_half(starts);
		clear_half(ends);
	}
	answered(ends, s);
	sent(starts, s);
}
