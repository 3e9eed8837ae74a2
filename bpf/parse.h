/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* Reads a segment: `crates/core/src/wire` in another language. Where the two could differ, `cargo test -p penstock-linux`
 * compares them. */
#pragma once
#include "state.h"

#define ETHERNET 14
#define MOST_EXTENSIONS 6
#define MOST_OPTIONS 40

static __always_inline u64 rotl(u64 x, int by)
{
	return x << by | x >> (64 - by);
}

static __always_inline void sip_round(u64 *v)
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = rotl(v[1], 13) ^ v[0];
	v[3] = rotl(v[3], 16) ^ v[2];
	v[0] = rotl(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = rotl(v[1], 17) ^ v[2];
	v[3] = rotl(v[3], 21) ^ v[0];
	v[2] = rotl(v[2], 32);
}

static __always_inline void sip_absorb(u64 *v, u64 word)
{
	v[3] ^= word;
	sip_round(v);
	v[0] ^= word;
}

/* SipHash-1-3 with a secret key: who chooses ports cannot choose collisions. The words are those of a key of fixed
 * length for each version, so the length is not hashed. */
static __always_inline void sip_begin(u64 *v, const struct control *c)
{
	v[0] = c->key[0] ^ 0x736f6d6570736575ULL;
	v[1] = c->key[1] ^ 0x646f72616e646f6dULL;
	v[2] = c->key[0] ^ 0x6c7967656e657261ULL;
	v[3] = c->key[1] ^ 0x7465646279746573ULL;
}

static __always_inline u64 sip_end(u64 *v)
{
	v[2] ^= 0xff;
	sip_round(v);
	sip_round(v);
	sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* The options field of a header. */
struct options {
	u32 len;
	u8 field[MOST_OPTIONS + 24]; /* so that a read at any offset below 40 of 10 bytes more is within */
};

/* Takes the option at `i`; returns where the next one is, or MOST_OPTIONS if there is none. The first of each kind counts; a
 * wrong length ends the walk. */
CHECKED_ALONE u32 take_option(struct options *o, struct seg *s, u32 i)
{
	u32 size;
	u8 *at, kind;

	if (!o || !s || i >= MOST_OPTIONS || i >= o->len)
		return MOST_OPTIONS;
	at = o->field + i;
	kind = at[0];
	if (kind == 0)
		return MOST_OPTIONS;
	if (kind == 1)
		return i + 1;
	if (i + 1 >= o->len)
		return MOST_OPTIONS;
	size = at[1];
	if (size < 2 || i + size > o->len)
		return MOST_OPTIONS;
	if (kind == 2 && size == 4 && !(s->has & HAS_MSS)) {
		s->mss = (u16)at[2] << 8 | at[3];
		s->has |= HAS_MSS;
	} else if (kind == 3 && size == 3 && !(s->has & HAS_SCALE)) {
		s->scale = at[2];
		s->has |= HAS_SCALE;
	} else if (kind == 8 && size == 10 && !(s->has & HAS_STAMPS)) {
		s->tsval = (u32)at[2] << 24 | (u32)at[3] << 16 | (u32)at[4] << 8 | at[5];
		s->tsecr = (u32)at[6] << 24 | (u32)at[7] << 16 | (u32)at[8] << 8 | at[9];
		s->has |= HAS_STAMPS;
	} else if (kind == 19 || kind == 29) { /* TCP-MD5 (RFC 2385), TCP-AO (RFC 5925) */
		s->has |= HAS_SIGNATURE;
	}
	return i + size;
}

/* Reads the options of a header: `len` bytes at `off`. */
CHECKED_ALONE int read_options(struct __sk_buff *skb, struct seg *s, u32 off, u32 len)
{
	struct options o = {};
	u32 i = 0;

	if (!s || len < 1 || len > MOST_OPTIONS || skb_load(skb, off, o.field, len))
		return 0;
	o.len = len;
	for (int turn = 0; turn < MOST_OPTIONS; turn++) {
		i = take_option(&o, s, i);
		if (i >= MOST_OPTIONS)
			break;
	}
	if (!(s->flags & SYN)) /* RFC 7323 section 2.2: only a SYN has them */
		s->has &= HAS_STAMPS | HAS_SIGNATURE;
	return 0;
}

/* Returns a pointer to `need` bytes at `off` if they are in the linear part. */
#define BYTES(off, need)                                                       \
	({                                                                     \
		void *_p = data + (off);                                       \
		_p + (need) > end ? (void *)0 : _p;                            \
	})

static __always_inline int is_extension(u8 next)
{
	return next == 0 || next == 43 || next == 60;
}

/* Skips IPv6 extension headers up to `stop`; returns the offset of what follows, its protocol in the upper half. */
static __always_inline u64 skip_extensions(void *data, void *end, u32 off, u32 stop, u8 first)
{
	u8 next = first;

	for (int i = 0; i < MOST_EXTENSIONS; i++) {
		u8 *p;

		if (!is_extension(next) || off + 8 > stop)
			break;
		off &= 0xffff;
		p = BYTES(off, 8);
		if (!p)
			return 0;
		next = p[0];
		off += ((u32)p[1] + 1) * 8;
	}
	return (u64)next << 32 | off;
}

/* Reads the TCP header at `off`; the packet ends at `stop`. Returns 1 if there is one. */
static __always_inline int read_tcp(struct __sk_buff *skb, struct seg *s, u32 off, u32 stop)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	u32 header, *w;

	if (off + 20 > stop || off > 0x7fff)
		return 0;
	w = BYTES(off, 20);
	if (!w)
		return 0;
	header = be32(w[3]);
	s->at = off;
	s->ports = w[0];
	s->seq = be32(w[1]);
	s->ack = be32(w[2]);
	s->flags = header >> 16;
	s->window = s->written = header;
	s->has = 0;
	header = header >> 28 << 2;
	if (header < 20 || off + header > stop)
		return 0;
	s->payload = stop - off - header;
	if (header == 20)
		return 1;
	if (header == 32) { /* nothing but timestamps, as Linux writes them */
		u32 *o = BYTES(off, 32);

		if (o && o[5] == be32(0x0101080a)) {
			s->tsval = be32(o[6]);
			s->tsecr = be32(o[7]);
			s->has = HAS_STAMPS;
			return 1;
		}
	}
	read_options(skb, s, off + 20, header - 20);
	return 1;
}

/* Finds the IP header; returns its offset, or -1. */
static __always_inline int find_ip(struct __sk_buff *skb, const struct control *c)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	int off = ETHERNET;
	u16 *kind;

	if (!c->link)
		return 0;
	kind = BYTES(12, 2);
	if (!kind)
		return -1;
	for (int tags = 0; tags < 2; tags++) {
		if (*kind != be16(0x8100) && *kind != be16(0x88a8))
			break;
		off += 4;
		kind = BYTES(off - 2, 2);
		if (!kind)
			return -1;
	}
	return *kind == be16(0x0800) || *kind == be16(0x86dd) ? off : -1;
}

/* Reads the IPv4 header at `off`; returns the end of the packet, or 0, and the offset of the TCP header in `s->at`. */
static __always_inline u32 read_ip4(struct __sk_buff *skb, struct seg *s, u8 *ip, u32 off, u64 *v, u32 outward)
{
	u32 header = (ip[0] & 15) * 4, total = be16(*(u16 *)(ip + 2)), from = *(u32 *)(ip + 12), to = *(u32 *)(ip + 16);

	if (!total && skb->gso_size) /* longer than 65,535 bytes */
		total = skb->len - off;
	if (header < 20 || total < header)
		return 0;
	if (*(u16 *)(ip + 6) & be16(0x3fff) || ip[9] != 6)
		return 0;
	sip_absorb(v, outward ? (u64)from << 32 | to : (u64)to << 32 | from);
	s->at = off + header;
	return off + total;
}

/* The same for IPv6. */
static __always_inline u32 read_ip6(struct __sk_buff *skb, struct seg *s, u32 off, u64 *v, u32 outward)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	u8 *ip = BYTES(off, 40);
	u64 found, *w;
	u32 stop;

	if (!ip)
		return 0;
	if (is_extension(ip[6])) { /* they may be long: with all of them in the linear part */
		skb_pull(skb, MIN(skb->len, 0x4000));
		data = (void *)(long)skb->data;
		end = (void *)(long)skb->data_end;
		ip = BYTES(off, 40);
		if (!ip)
			return 0;
	}
	stop = off + 40 + be16(*(u16 *)(ip + 4));
	if (stop == off + 40 && skb->gso_size)
		stop = skb->len;
	w = (void *)(ip + 8);
	sip_absorb(v, outward ? w[0] : w[2]);
	sip_absorb(v, outward ? w[1] : w[3]);
	sip_absorb(v, outward ? w[2] : w[0]);
	sip_absorb(v, outward ? w[3] : w[1]);
	found = skip_extensions(data, end, off + 40, stop, ip[6]);
	s->at = found;
	return found >> 32 == 6 ? stop : 0;
}

/* Reads a packet that travels toward the link if `outward`. Returns 1 for a TCP segment. */
static __always_inline int read_segment(struct __sk_buff *skb, const struct control *c, struct seg *s, u32 outward)
{
	void *data, *end;
	u32 off, stop;
	u64 v[4], version;
	int found;
	u8 *ip;

	/* All headers that are read are in the first 128 bytes, unless there are long extension headers. */
	if ((void *)(long)skb->data + MIN(skb->len, 128) > (void *)(long)skb->data_end)
		skb_pull(skb, MIN(skb->len, 128));
	found = find_ip(skb, c);
	if (found < 0)
		return 0;
	s->at = found;
	FORGET();
	off = s->at & 31;
	data = (void *)(long)skb->data;
	end = (void *)(long)skb->data_end;
	ip = BYTES(off, 20);
	if (!ip)
		return 0;
	version = ip[0] >> 4;
	sip_begin(v, c);
	if (version == 4)
		stop = read_ip4(skb, s, ip, off, v, outward);
	else if (version == 6)
		stop = read_ip6(skb, s, off, v, outward);
	else
		return 0;
	FORGET();
	if (!stop || stop > skb->len || !read_tcp(skb, s, s->at, stop))
		return 0;
	sip_absorb(v, version << 32 | (outward ? s->ports : s->ports >> 16 | s->ports << 16));
	s->hash = sip_end(v) | 1ULL << 63; /* 0 is a free line */
	return 1;
}
