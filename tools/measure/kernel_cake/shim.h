/* What sch_cake.c asks of the kernel, for a program in user space: types, times and lists that do the same, and nothing for
 * netlink, filters, GSO and statistics. Packets have headers of IPv4 and TCP. */
#include <stdint.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <arpa/inet.h>
#include <linux/types.h>
#include <linux/pkt_sched.h>
#include <linux/pkt_cls.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#undef htons
#define htons(x) ((u16)__builtin_bswap16(x))
typedef uint8_t u8; typedef uint16_t u16; typedef uint32_t u32; typedef uint64_t u64;
typedef int8_t s8; typedef int16_t s16; typedef int32_t s32; typedef int64_t s64;
typedef s64 ktime_t;
typedef u64 netdev_features_t;
#define __rcu
#define GFP_KERNEL 0
#define KTIME_MAX ((s64)~((u64)1 << 63))
#define NSEC_PER_SEC 1000000000L
#define NSEC_PER_USEC 1000L
#define USEC_PER_SEC 1000000L
#define BIT(n) (1UL << (n))
#define likely(x) (x)
#define unlikely(x) (x)
#define fallthrough
#define IS_ENABLED(x) 0
#define DIV_ROUND_UP(a, b) (((a) + (b) - 1) / (b))
#define max(a, b) ({ __typeof__(a) _a = (a); __typeof__(b) _b = (b); _a > _b ? _a : _b; })
#define min(a, b) ({ __typeof__(a) _a = (a); __typeof__(b) _b = (b); _a < _b ? _a : _b; })
#define max_t(t, a, b) max((t)(a), (t)(b))
#define READ_ONCE(x) (x)
#define WRITE_ONCE(x, v) ((x) = (v))
#define div64_u64(a, b) ((a) / (b))
#define do_div(n, b) ((n) /= (b))
#define rcu_dereference_bh(x) (x)
static inline u32 reciprocal_scale64(u32 v, u32 r) { return (u32)(((u64)v * r) >> 32); }
#define reciprocal_scale(v, r) reciprocal_scale64(v, r)
static inline s64 ktime_to_ns(ktime_t t) { return t; }
static inline ktime_t ktime_sub(ktime_t a, ktime_t b) { return a - b; }
static inline ktime_t ktime_add_ns(ktime_t a, u64 n) { return a + n; }
static inline ktime_t ktime_add_ms(ktime_t a, u64 n) { return a + n * 1000000; }
static inline bool ktime_before(ktime_t a, ktime_t b) { return a < b; }
static inline bool ktime_after(ktime_t a, ktime_t b) { return a > b; }
static inline int ktime_compare(ktime_t a, ktime_t b) { return a < b ? -1 : a > b; }
ktime_t ktime_get(void);
u32 get_random_u32(void);
u16 get_random_u16(void);
struct list_head { struct list_head *next, *prev; };
static inline void INIT_LIST_HEAD(struct list_head *l) { l->next = l->prev = l; }
static inline bool list_empty(const struct list_head *l) { return l->next == l; }
static inline void list_unlink(struct list_head *n) { n->next->prev = n->prev; n->prev->next = n->next; }
static inline void list_add_tail(struct list_head *n, struct list_head *h)
{ n->prev = h->prev; n->next = h; h->prev->next = n; h->prev = n; }
static inline void list_del_init(struct list_head *n) { list_unlink(n); INIT_LIST_HEAD(n); }
static inline void list_move_tail(struct list_head *n, struct list_head *h) { list_unlink(n); list_add_tail(n, h); }
#define list_first_entry(h, type, member) ((type *)((char *)(h)->next - offsetof(type, member)))
struct sk_buff {
	struct sk_buff *next;
	unsigned int len, truesize, mark, priority, hash;
	bool l4_hash;
	void *_nfct;
	char cb[48] __attribute__((aligned(8)));
	u8 head[64];
	/* of the harness */
	u32 id, flow;
	s64 node;
};
struct skb_shared_info { unsigned gso_size, gso_type, gso_segs; };
static struct skb_shared_info no_gso;
#define skb_shinfo(s) (&no_gso)
#define skb_is_gso(s) 0
#define SKB_GSO_TCPV4 1
#define SKB_GSO_TCPV6 2
#define SKB_GSO_DODGY 4
struct udphdr { u16 a, b, c, d; };
static inline int skb_network_offset(const struct sk_buff *s) { return 0; }
static inline int skb_transport_offset(const struct sk_buff *s) { return 20; }
static inline void *skb_header_pointer(const struct sk_buff *s, int off, int len, void *buf) { return (void *)(s->head + off); }
static inline void skb_mark_not_on_list(struct sk_buff *s) { s->next = NULL; }
#define skb_protocol(s, v) htons(0x0800)
#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86DD
#define ETH_P_ARP 0x0806
#define pskb_may_pull(s, l) 1
#define skb_try_make_writable(s, l) 0
#define ip_hdr(s) ((struct iphdr *)(s)->head)
#define ipv6_hdr(s) ((struct ipv6hdr *)(s)->head)
#define INET_ECN_MASK 3
static inline u8 ipv4_get_dsfield(const struct iphdr *i) { return i->tos; }
static inline u8 ipv6_get_dsfield(const struct ipv6hdr *i) { return 0; }
static inline void ipv4_change_dsfield(struct iphdr *i, u8 mask, u8 v) { i->tos = (i->tos & mask) | v; }
static inline void ipv6_change_dsfield(struct ipv6hdr *i, u8 mask, u8 v) { }
static inline int INET_ECN_set_ce(struct sk_buff *s)
{ if (!(ip_hdr(s)->tos & 3)) return 0; ip_hdr(s)->tos |= 3; return 1; }
#define iph_totlen(s, i) ntohs((i)->tot_len)
#define ipv6_payload_len(s, i) 0
static inline int ipv6_addr_cmp(const void *a, const void *b) { return memcmp(a, b, 16); }
static inline bool before(u32 a, u32 b) { return (s32)(a - b) < 0; }
#define after(a, b) before(b, a)
#define __tcp_hdrlen(t) ((t)->doff * 4)
static inline u32 get_unaligned_be32(const void *p) { u32 v; memcpy(&v, p, 4); return ntohl(v); }
#define cpu_to_be32 htonl
struct tcp_sack_block_wire { __be32 start_seq, end_seq; };
#define TCPOPT_EOL 0
#define TCPOPT_NOP 1
#define TCPOPT_MSS 2
#define TCPOPT_WINDOW 3
#define TCPOPT_SACK_PERM 4
#define TCPOPT_SACK 5
#define TCPOPT_TIMESTAMP 8
#define TCPOPT_MD5SIG 19
#define TCPOPT_FASTOPEN 34
#define TCPOPT_EXP 254
#define TCPOLEN_TIMESTAMP 10
#define TCPOLEN_SACK_BASE 2
struct flow_keys {
	struct { u16 addr_type; } control;
	struct { u8 ip_proto; } basic;
	struct { u32 flow_label; } tags;
	struct { u32 keyid; } keyid;
	struct { union { u32 ports; struct { u16 src, dst; }; }; } ports;
	struct { struct { u32 src, dst; } v4addrs; struct { struct in6_addr src, dst; } v6addrs; } addrs;
	/* of the harness: which packet */
	const struct sk_buff *skb;
};
#define FLOW_DISSECTOR_KEY_IPV4_ADDRS 1
#define FLOW_DISSECTOR_KEY_IPV6_ADDRS 2
#define FLOW_DISSECTOR_F_STOP_AT_FLOW_LABEL 0
void skb_flow_dissect_flow_keys(const struct sk_buff *, struct flow_keys *, unsigned);
u32 flow_hash_from_keys(struct flow_keys *);
struct tcf_proto; struct tcf_block; struct nlattr; struct netlink_ext_ack;
struct tcf_result { u32 classid; };
#define tcf_classify_qdisc(a, b, c, d) (-1)
#define TCQ_F_CAN_BYPASS 4
#define NET_XMIT_SUCCESS 0
#define NET_XMIT_CN 2
#define __NET_XMIT_STOLEN 0x10000
#define __NET_XMIT_BYPASS 0x20000
struct Qdisc {
	u32 limit, flags, handle;
	struct { u32 qlen; } q;
	struct { u32 backlog, drops, overlimits; } qstats;
	void *priv;
};
struct qdisc_watchdog { int x; };
struct qdisc_skb_cb { unsigned pkt_len, others; unsigned char data[40]; };
#define qdisc_skb_cb(s) ((struct qdisc_skb_cb *)(s)->cb)
#define qdisc_pkt_len(s) (qdisc_skb_cb(s)->pkt_len)
#define qdisc_cb_private_validate(s, n)
#define qdisc_priv(s) ((s)->priv)
#define qdisc_dev(s) NULL
#define psched_mtu(d) MTU
extern unsigned MTU;
#define qdisc_qstats_drop(s) ((s)->qstats.drops++)
#define qdisc_tree_reduce_backlog(s, n, l)
#define qdisc_bstats_update(s, k)
void qdisc_watchdog_schedule_ns(struct qdisc_watchdog *, u64);
#define qdisc_watchdog_init(w, s)
#define tcf_block_get(a, b, c, d) 0
#define kvcalloc(n, s, f) calloc(n, s)
void __qdisc_drop(struct sk_buff *, struct sk_buff **);
#define qdisc_drop(a, b, c) 0
void kfree_skb(struct sk_buff *);
void consume_skb(struct sk_buff *);
#define netif_skb_features(s) 0
#define NETIF_F_GSO_MASK 0
#define skb_gso_segment(s, f) NULL
#define IS_ERR_OR_NULL(p) (!(p))
#define skb_list_walk_safe(a, b, c) for (; a; a = c)
