/* Lets the functions of sch_cake.c (cut.c) serve a link of constant rate, with the traces of
 * crates/core/tests/cake_kernel.rs. Prints a line for each trace, and writes the fate of each of its packets to a file.
 */
#include "cut.c"

unsigned MTU = 1514;
static u64 now_ns, wake_at, mode_of_flows;
static u64 rng_state;
#define BASE 1000000000ull

static u64 splitmix(u64 *s)
{
	u64 z = (*s += 0x9E3779B97F4A7C15ull);
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
	return z ^ (z >> 31);
}
ktime_t ktime_get(void) { return now_ns; }
u32 get_random_u32(void) { return splitmix(&rng_state) >> 32; }
u16 get_random_u16(void) { return splitmix(&rng_state) >> 48; }
void qdisc_watchdog_schedule_ns(struct qdisc_watchdog *w, u64 t) { wake_at = t; }

static u64 mix(u64 x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}
static u32 hash32(u64 n, u64 key) { return mix(((n + 1) * 0x9e3779b97f4a7c15ull) ^ key) >> 32; }
#define KEY 12345
void skb_flow_dissect_flow_keys(const struct sk_buff *s, struct flow_keys *k, unsigned f)
{
	memset(k, 0, sizeof(*k));
	k->control.addr_type = FLOW_DISSECTOR_KEY_IPV4_ADDRS;
	k->ports.ports = s->flow + 1;
	k->addrs.v4addrs.src = 1;
	k->addrs.v4addrs.dst = 1;
	k->skb = s;
}
u32 flow_hash_from_keys(struct flow_keys *k)
{
	u32 far = hash32(k->skb->flow | 2ull << 32, KEY);
	u32 near = k->skb->node < 0 ? far : hash32((u64)k->skb->node | 1ull << 32, KEY);
	bool to = mode_of_flows == CAKE_FLOW_DST_IP || mode_of_flows == CAKE_FLOW_DUAL_DST;
	if (k->ports.ports)
		return hash32(k->skb->flow, KEY);
	if (k->addrs.v4addrs.src)
		return to ? 0 : near;
	return to ? near : mode_of_flows == CAKE_FLOW_TRIPLE ? far : 0;
}

enum { SENT, MARKED, DROPPED, OVERFLOW, FILTERED };
static struct { u8 fate; u64 t; u8 ecn; } *fates;
static void settle(struct sk_buff *s, int fate)
{
	fates[s->id].fate = fate;
	fates[s->id].t = now_ns - BASE;
	fates[s->id].ecn = ip_hdr(s)->tos & 3;
	free(s);
}
void __qdisc_drop(struct sk_buff *s, struct sk_buff **f) { settle(s, OVERFLOW); }
void kfree_skb(struct sk_buff *s) { settle(s, DROPPED); }
void consume_skb(struct sk_buff *s) { settle(s, FILTERED); }

struct scenario {
	const char *name;
	u32 n, flows, nodes;
	u64 gap, ns_per_byte, rate;
	int tins, isolation, acks, filter, ingress, overhead, mpu, atm, rtt, memory;
};
static const struct scenario ALL[] = {
#include "scenarios.h"
};
static const u8 DSCP[] = { 0, 8, 46, 0, 10, 26, 34, 48, 16, 18, 1, 4 };
static const u32 SIZES[] = { 1500, 1500, 1500, 1500, 600, 60, 1500, 300 };
static const u32 PHASES[] = { 8, 4, 16, 6, 2, 40 };
static const u8 ECN[] = { 2, 0, 1, 0 };

struct gen { u64 s, t; u32 acks[4096]; };
static struct sk_buff *next(struct gen *g, const struct scenario *c, u32 id)
{
	struct sk_buff *s = calloc(1, sizeof(*s));
	struct iphdr *ip = (void *)s->head;
	struct tcphdr *tcp = (void *)(s->head + 20);
	u64 r = splitmix(&g->s), a, b, x;
	u32 size, pay;
	g->t += c->gap * PHASES[id / 1000 % 6] / 8 * (r & 0xff) / 128;
	if (!(r >> 8 & 0x1ff))
		g->t += 20000000 * (r >> 17 & 15);
	a = (r >> 21 & 0xffff) * c->flows >> 16;
	b = (r >> 37 & 0xffff) * c->flows >> 16;
	s->id = id;
	s->flow = min(a, b);
	s->node = c->nodes ? (s64)(s->flow % c->nodes) : -1;
	size = SIZES[r >> 53 & 7];
	ip->version = 4;
	ip->ihl = 5;
	ip->protocol = 17;
	ip->tos = DSCP[s->flow % 12] << 2 | ECN[s->flow % 4];
	ip->saddr = s->node;
	ip->daddr = s->flow;
	if (c->acks) {
		x = splitmix(&g->s);
		u32 *ack = &g->acks[s->flow], no = *ack;
		if ((x & 15) == 1)
			no -= 1448;
		else if (x & 15)
			no = *ack += 1448 * (1 + (x >> 4 & 1));
		pay = x >> 20 & 15 ? 0 : 100;
		ip->protocol = 6;
		tcp->source = s->flow;
		tcp->doff = 5;
		tcp->ack_seq = htonl(no);
		tcp->ack = 1;
		tcp->psh = !(x >> 8 & 15);
		tcp->syn = !(x >> 28 & 63);
		tcp->ece = s->flow % 2 && (no / 100000 & 1);
		tcp->cwr = !(x >> 34 & 31);
		if (s->flow & 1) {
			u32 ms = g->t / 1000000, v[2] = { htonl(ms), htonl(ms - (x >> 40 & 7)) };
			u8 *o = s->head + 40;
			tcp->doff = 8;
			o[0] = o[1] = 1, o[2] = 8, o[3] = 10;
			memcpy(o + 4, v, 8);
		}
		size = 20 + tcp->doff * 4 + pay;
	}
	ip->tot_len = htons(size);
	s->len = s->truesize = size;
	qdisc_skb_cb(s)->pkt_len = size;
	return s;
}

static u64 digest;
static void feed(const char *p) { for (; *p; p++) digest = (digest ^ (u8)*p) * 0x100000001b3ull; }

static void run(const struct scenario *c)
{
	struct cake_sched_data *q = calloc(1, sizeof(*q));
	struct Qdisc sch = { .priv = q };
	struct gen g = { .s = 99 };
	struct sk_buff *in = NULL, *out;
	u64 free_at = 0, counts[5] = { 0 };
	u32 id = 0;
	char line[100], path[200];
	rng_state = 0x9E3779B97F4A7C15ull;
	wake_at = 0;
	fates = calloc(c->n, sizeof(*fates));
	cake_init(&sch, NULL, NULL);
	q->rate_bps = c->rate;
	q->tin_mode = c->tins;
	q->flow_mode = mode_of_flows = c->isolation;
	q->ack_filter = c->filter;
	q->rate_flags = c->ingress ? CAKE_FLAG_INGRESS : 0;
	if (c->overhead)
		q->rate_overhead = c->overhead, q->rate_flags |= CAKE_FLAG_OVERHEAD;
	q->rate_mpu = c->mpu;
	q->atm_mode = c->atm;
	if (c->rtt)
		q->interval = c->rtt, q->target = c->rtt / 20;
	q->buffer_config_limit = c->memory;
	cake_reconfigure(&sch);
	in = next(&g, c, id);
	while (in || sch.q.qlen || free_at) {
		u64 arr = in ? BASE + g.t : ~0ull, wake = wake_at ? max(wake_at, now_ns) : ~0ull, fre = free_at ? free_at : ~0ull;
		bool ask = false;
		if (wake <= fre && wake <= arr) {
			now_ns = wake; wake_at = 0; ask = !free_at;
		} else if (fre <= arr) {
			now_ns = fre; free_at = 0; ask = true;
		} else {
			now_ns = arr;
			struct sk_buff *to_free = NULL;
			cake_enqueue(in, &sch, &to_free);
			in = ++id < c->n ? next(&g, c, id) : NULL;
			ask = !free_at;
		}
		if (ask && (out = cake_dequeue(&sch))) {
			bool marked = (ip_hdr(out)->tos & 3) == 3;
			free_at = now_ns + out->len * c->ns_per_byte;
			settle(out, marked ? MARKED : SENT);
		}
	}
	now_ns = 0;
	digest = 0xcbf29ce484222325ull;
	snprintf(path, sizeof(path), "%s.csv", c->name);
	FILE *all = fopen(path, "w");
	for (id = 0; id < c->n; id++) {
		counts[fates[id].fate]++;
		snprintf(line, sizeof(line), "%u,%u,%llu\n", id, fates[id].fate, (unsigned long long)fates[id].t);
		feed(line);
		fputs(line, all);
	}
	fclose(all);
	printf("%s,%u,%llu,%llu,%llu,%llu,%llu,%016llx\n", c->name, c->n, (unsigned long long)counts[0], (unsigned long long)counts[1],
	       (unsigned long long)counts[2], (unsigned long long)counts[3], (unsigned long long)counts[4], (unsigned long long)digest);
	free(fates);
}
int main(void)
{
	puts("name,packets,sent,marked,dropped,overflow,filtered,digest");
	for (unsigned i = 0; i < sizeof(ALL) / sizeof(*ALL); i++)
		run(&ALL[i]);
}
