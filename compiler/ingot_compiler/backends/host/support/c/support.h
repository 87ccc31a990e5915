// What all support functions share: types, the structs of `abi`, and how a function becomes part of an image.
//
// In: `abi.h`, which `abi_header.py` writes: numbers, and `CHECK_LAYOUT`, which compares these structs with `abi`.
// Not done here: any function. The code calls nothing but what it is handed: there is no libc in an image.
#pragma once

typedef __INT32_TYPE__ i32;
typedef __INT64_TYPE__ i64;
typedef __UINT8_TYPE__ u8;
typedef __UINT16_TYPE__ u16;
typedef __UINT32_TYPE__ u32;
typedef __UINT64_TYPE__ u64;
#define NULL ((void *)0)

#include "abi.h"

// The widest vectors of the target: LANES is 4, 8 or 16. Loads by `loose` need the alignment of one element alone.
typedef u32 vector __attribute__((vector_size(4 * LANES)));
typedef u32 loose __attribute__((vector_size(4 * LANES), aligned(1), may_alias));

// Accesses to words that several threads use. `relaxed` orders nothing; the others are sequentially consistent but for `acquire`.
#define RELAXED(word) __atomic_load_n(&(word), __ATOMIC_RELAXED)
#define ACQUIRE(word) __atomic_load_n(&(word), __ATOMIC_ACQUIRE)
#define LOAD(word) __atomic_load_n(&(word), __ATOMIC_SEQ_CST)
#define STORE_RELAXED(word, value) __atomic_store_n(&(word), value, __ATOMIC_RELAXED)
#define STORE(word, value) __atomic_store_n(&(word), value, __ATOMIC_SEQ_CST)
#define ADD(word, value) __atomic_fetch_add(&(word), value, __ATOMIC_SEQ_CST)

typedef i32 kernel_function(void *buffers, void *scalars, i64 first, i64 last, void *scratch);
typedef i64 syscall_function(i64 number, ...);

// abi.WATCH: how a call is stopped from outside.
struct watch {
  u32 cancel, timed_out;
  i32 (*clock)(i32 clock, i64 *seconds_and_nanoseconds);
  u64 deadline;
  i32 (*poll)(u64 context);
  u64 poll_context, poll_interval, poll_next;
};

// abi.POOL_OFFSETS: the page that the caller of `launch` and the lent threads share. Counters that different threads write lie on
// lines of their own.
struct pool {
  u32 magic, n_threads, spin;
  syscall_function *syscall;
  i64 futex_number;
  _Alignas(64) u32 epoch;
  _Alignas(8) u32 parked;
  struct watch *watch;
  u64 alone_until, work, work_before;
  _Alignas(64) kernel_function *kernel;
  void *buffers, *scalars;
  i64 extent, pieces;
  u8 *scratch;
  i64 scratch_stride, grain;
  _Alignas(64) u32 done;
  u32 caller_parked;
  i32 result;
  _Alignas(64) u64 claim;
};

// abi.PYTHON_POLL: CPython's functions, and the exception that a signal handler raised.
struct python_poll {
  i32 (*ensure)(void);
  void (*release)(i32 state);
  i32 (*check_signals)(void);
  void (*fetch)(void **type, void **value, void **traceback);
  void *type, *value, *traceback;
};

// abi.VERIFIED: what the verifying kernels leave.
struct verified {
  u64 good, bad;
};

// abi.GUARDED: a range of addresses whose faults are ours. Other threads may be changing it.
struct guarded {
  u64 start, end, faults;
  struct guarded *next;
};

// libc's struct sigaction.
struct action {
  u64 handler, mask[16];
  i32 flags;
  u64 restorer;
};

// abi.SIGBUS_OFFSETS: the writable page behind the image.
struct sigbus_page {
  struct guarded *first;
  u64 foreign;
  syscall_function *syscall;
  i64 mmap_number;
  u64 page_bytes;
  i32 (*sigaction)(i32 signal, const void *action, void *old);
  _Alignas(64) struct action old_action;
  _Alignas(64) struct action first_action;
};

CHECK_LAYOUT
