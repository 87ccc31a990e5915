// Blocks of memory, and the lock that sessions and guards need.
//
// In: sizes. Out: zeroed memory. Not done here: memory that goes away together (`text.c`), that of calls (`session.c`).
//
// With -DINGOT_WITHOUT_MALLOC each block is pages of the system's: a program that takes few blocks needs no allocator, which would be
// 3 kB of it.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "internal.h"

#ifdef INGOT_WITHOUT_MALLOC
enum { BLOCK_HEAD_BYTES = 64 };

// Returns zeroed memory, or null.
static void *memory_take(u64 size) {
  u64 *block = MAP_FAILED;
  size += BLOCK_HEAD_BYTES;
  if (size >= BLOCK_HEAD_BYTES) block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) return NULL;
  *block = size;
  return (u8 *)block + BLOCK_HEAD_BYTES;
}

static void memory_free(void *data) {
  u64 *block = (u64 *)(void *)((u8 *)data - BLOCK_HEAD_BYTES);
  if (data) munmap(block, *block);
}
#else
static void *memory_take(u64 size) { return calloc(1, size ? size : 1); }
static void memory_free(void *data) { free(data); }
#endif

// A lock is 0, 1 where it is held, 2 where others may wait for it.
enum { WAIT_PRIVATE = 128, WAKE_PRIVATE = 129 };

static void lock(u32 *word) {
  if (!__atomic_exchange_n(word, 1, __ATOMIC_ACQUIRE)) return;
  while (__atomic_exchange_n(word, 2, __ATOMIC_ACQUIRE)) syscall(SYS_futex, word, WAIT_PRIVATE, 2, NULL, NULL, 0);
}

static void unlock(u32 *word) {
  if (__atomic_exchange_n(word, 0, __ATOMIC_RELEASE) == 2) syscall(SYS_futex, word, WAKE_PRIVATE, 1, NULL, NULL, 0);
}
