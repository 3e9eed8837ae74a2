/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* What the programs need of the kernel's interface: types, the context of a tc program, helpers. Own declarations, so that
 * a compiler is all that a build needs. Source: include/uapi/linux/bpf.h of Linux 6.18, which never changes them. */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed short s16;
typedef signed int s32;
typedef signed long long s64;

struct __sk_buff {
	u32 len;
	u32 before_ifindex[9];
	u32 ifindex;
	u32 before_data[8];
	u32 data;
	u32 data_end;
	u32 before_gso[23];
	u32 gso_size;
};

_Static_assert(__builtin_offsetof(struct __sk_buff, ifindex) == 40, "ifindex");
_Static_assert(__builtin_offsetof(struct __sk_buff, data) == 76, "data");
_Static_assert(__builtin_offsetof(struct __sk_buff, gso_size) == 176, "gso_size");

#define SEC(name) __attribute__((section(name), used))
#define __always_inline inline __attribute__((always_inline))
/* A function that the verifier checks once, for any arguments, and not at each call. Pointers may be NULL there. */
#define CHECKED_ALONE __attribute__((noinline))

#define __uint(name, val) int(*name)[val]
#define __type(name, val) typeof(val) *name
#define MAP_ARRAY 2
#define MAP_PERCPU_ARRAY 6

static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static u64 (*const ktime)(void) = (void *)5;
static long (*const l4_csum_replace)(struct __sk_buff *skb, u32 at, u64 from, u64 to, u64 flags) = (void *)11;
static long (*const skb_load)(const struct __sk_buff *skb, u32 at, void *to, u32 len) = (void *)26;
static long (*const skb_pull)(struct __sk_buff *skb, u32 len) = (void *)39;

/* What a program says: let the next one, or the kernel, go on with the packet. The same for tc and for TCX. */
#define NEXT -1
/* TCX: the kernel does not see the packet. */
#define HIDDEN 2

#define be16(x) __builtin_bswap16(x)
#define be32(x) __builtin_bswap32(x)

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
/* a - b, at least 0. */
#define LESS(a, b) ((a) > (b) ? (a) - (b) : 0)
/* Keeps a value in a register as it is now, so that the compiler does not forget a check of it. */
#define KEEP(x) asm volatile("" : "+r"(x))
/* What is in memory is read again after this: the verifier then knows as little of it on all ways, and walks on once. */
#define FORGET() asm volatile("" ::: "memory")
