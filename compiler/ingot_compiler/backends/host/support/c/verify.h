// A kernel over MiBs, whose buffers are base, tree and `struct verified`, whose scalar is the MiB of index 0: it counts those that are
// as the tree says, and stops at the first that is not. `is_same(data, row of the tree, scratch)` decides.
#pragma once
#include "support.h"

enum { AHEAD_MIBS = 4, FAULT_AROUND_BYTES = 1 << 16 };

typedef i32 is_same_function(const u8 *data, const u8 *row, u8 *scratch);

// Has the pages of some MiBs mapped: a fault maps as many as lie around its page in the page cache. Ahead of their hash, because a
// prefetch of what is not mapped does nothing.
static inline void map_pages(const u8 *data, u64 size) {
  for (u64 at = 0; at < size; at += FAULT_AROUND_BYTES) (void)*(const volatile u8 *)(data + at);
}

static inline i32 verify(void *buffers, void *scalars, i64 first, i64 last, u8 *scratch, is_same_function *is_same) {
  const u8 *base = ((u8 **)buffers)[0], *tree = ((u8 **)buffers)[1];
  struct verified *verified = ((struct verified **)buffers)[2];
  u64 start = *(u64 *)scalars;
  for (i64 index = first; index < last; index++) {
    u64 mib = start + (u64)index;
    if ((index - first) % AHEAD_MIBS == 0) map_pages(base + mib * MIB, MIB * (u64)(last - index < AHEAD_MIBS ? last - index : AHEAD_MIBS));
    if (!is_same(base + mib * MIB, tree + mib * TREE_ENTRY_SIZE_BYTES, scratch)) {
      __atomic_fetch_min(&verified->bad, mib, __ATOMIC_RELAXED);
      return RC_DAMAGED;
    }
    __atomic_fetch_add(&verified->good, 1, __ATOMIC_RELAXED);
  }
  return 0;
}
