// `memcpy`, `memmove`, `memset`, `memcmp`, `bcmp`: what LLVM calls by itself, for images that have no libc.
//
// Compiled without builtins: otherwise their own loops would become calls of themselves. Not done here: speed beyond one plain vector
// loop.
#include "support.h"

typedef __SIZE_TYPE__ size;
typedef u8 bytes __attribute__((vector_size(4 * LANES), aligned(1)));

// Blocks forwards or backwards; the odd end is read before anything is written. Forwards, a block is read before the one before it is
// written over it only if the target lies below the source; backwards is the mirror image. Short ones go byte by byte, alike.
void *memmove(void *target, const void *source, size count) {
  u8 *to = target;
  const u8 *from = source;
  i32 is_backwards = (u64)to - (u64)from < count;
  if (count < sizeof(bytes)) {
    for (size i = 0; i < count; i++) {
      size at = is_backwards ? count - 1 - i : i;
      to[at] = from[at];
    }
    return target;
  }
  size end = count - sizeof(bytes);
  bytes first = *(const bytes *)from, last = *(const bytes *)(from + end);
  if (is_backwards) {
    for (size at = end; (i64)at > 0; at -= sizeof(bytes)) *(bytes *)(to + at) = *(const bytes *)(from + at);
    *(bytes *)to = first;
  } else {
    for (size at = 0; at < end; at += sizeof(bytes)) *(bytes *)(to + at) = *(const bytes *)(from + at);
    *(bytes *)(to + end) = last;
  }
  return target;
}

void *memcpy(void *target, const void *source, size count) { return memmove(target, source, count); }

void *memset(void *target, int value, size count) {
  u8 *to = target;
  if (count < sizeof(bytes)) {
    for (size i = 0; i < count; i++) to[i] = (u8)value;
    return target;
  }
  bytes all = (bytes){0} + (u8)value;
  for (size at = 0; at < count - sizeof(bytes); at += sizeof(bytes)) *(bytes *)(to + at) = all;
  *(bytes *)(to + count - sizeof(bytes)) = all;
  return target;
}

int memcmp(const void *a, const void *b, size count) {
  const u8 *x = a, *y = b;
  for (size i = 0; i < count; i++)
    if (x[i] != y[i]) return x[i] - y[i];
  return 0;
}

int bcmp(const void *a, const void *b, size count) { return memcmp(a, b, count); }
