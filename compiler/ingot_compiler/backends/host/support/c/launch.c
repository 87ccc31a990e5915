// `ingot_launch`, `ingot_worker`: run a kernel over its parallel range, alone or together with the lent threads.
//
// The range is cut into `chunks = min(n_threads, max(1, extent / grain))` pieces; chunk t is [extent*t/chunks, extent*(t+1)/chunks).
// So the cuts depend on the number of threads and never on timing, and kernels never split a sum: results do not either.
// Not done here: pieces of a range (`watch.c`), starting threads (the loader).
#include "support.h"

enum { FUTEX_WAIT_PRIVATE = 128, FUTEX_WAKE_PRIVATE = 129 };

// The hint of a waiting loop; riscv64 has none that every machine knows.
static void spin_hint(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __builtin_arm_yield();
#endif
}

// futex(2) by libc's `syscall`, which the pool brings along. A wait returns at once when the word is not `value` any more, so nothing
// is lost between the last look and the sleep; it may also return early (signals), so every caller looks again.
static void futex(struct pool *pool, u32 *word, i64 operation, i64 value) {
  pool->syscall(pool->futex_number, word, operation, value, NULL, NULL, (i64)0);
}

// Waits until every worker has answered: spinning, then asleep.
static void join(struct pool *pool) {
  u32 workers = pool->n_threads - 1;
  for (u32 left = pool->spin; ACQUIRE(pool->done) != workers; left--) {
    if (left == 0) {
      STORE(pool->main_parked, 1);
      for (u32 seen; (seen = LOAD(pool->done)) != workers;) futex(pool, &pool->done, FUTEX_WAIT_PRIVATE, seen);
      STORE_RELAXED(pool->main_parked, 0);
      return;
    }
    spin_hint();
  }
}

static i32 fork_join(struct pool *pool, kernel_function *kernel, void *buffers, void *scalars, i64 extent, i64 grain, u8 *scratch,
                     i64 scratch_stride, struct watch *watch) {
  u64 wanted = pool ? (u64)extent / (u64)(grain > 1 ? grain : 1) : 1;
  u64 chunks = 1;
  if (wanted > 1) {
    if (pool->magic != POOL_MAGIC) return RC_THREADS_LOST;
    chunks = wanted < pool->n_threads ? wanted : pool->n_threads;
  }
  if (chunks <= 1) return run(kernel, buffers, scalars, 0, extent, grain, scratch, watch, 1);
  pool->kernel = kernel, pool->buffers = buffers, pool->scalars = scalars, pool->extent = extent, pool->chunks = (i64)chunks;
  pool->scratch = scratch, pool->scratch_stride = scratch_stride, pool->grain = grain, pool->watch = watch;
  pool->done = 0, pool->result = 0;
  STORE(pool->epoch, (RELAXED(pool->epoch) + 1) & (((u32)1 << POOL_QUIT_BIT) - 1));
  if (LOAD(pool->parked)) futex(pool, &pool->epoch, FUTEX_WAKE_PRIVATE, __INT32_MAX__);
  i32 mine = run(kernel, buffers, scalars, 0, extent / (i64)chunks, grain, scratch, watch, 1);
  join(pool);
  return mine ? mine : RELAXED(pool->result);
}

i32 ingot_launch(struct pool *pool, kernel_function *kernel, void *buffers, void *scalars, i64 extent, i64 grain, u8 *scratch,
                        i64 scratch_stride, struct watch *watch) {
  if (extent <= 0) return 0;
  if (ingot_watch(watch, 1)) return RC_CANCELLED;
  float_environment old = float_enter();
  i32 rc = fork_join(pool, kernel, buffers, scalars, extent, grain, scratch, scratch_stride, watch);
  float_leave(old);
  return rc;
}

// Waits for another epoch than `seen`: spinning, then asleep.
static void await_job(struct pool *pool, u32 seen) {
  for (u32 left = pool->spin; ACQUIRE(pool->epoch) == seen; left--) {
    if (left == 0) {
      ADD(pool->parked, 1);
      while (LOAD(pool->epoch) == seen) futex(pool, &pool->epoch, FUTEX_WAIT_PRIVATE, seen);
      ADD(pool->parked, -1);
      return;
    }
    spin_hint();
  }
}

static void run_chunk(struct pool *pool, u64 index) {
  u64 extent = (u64)pool->extent, chunks = (u64)pool->chunks;
  i32 rc = run(pool->kernel, pool->buffers, pool->scalars, (i64)(extent * index / chunks), (i64)(extent * (index + 1) / chunks),
               pool->grain, pool->scratch + pool->scratch_stride * (i64)index, pool->watch, 0);
  i32 none = 0;
  if (rc) __atomic_compare_exchange_n(&pool->result, &none, rc, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

// Runs chunk `index`, which counts from 1, of every job until the pool quits. Every worker answers every job, also one that has no
// chunk for it: then nobody can still read a job that the caller overwrites with the next.
void ingot_worker(struct pool *pool, u64 index) {
  float_environment old = float_enter();
  for (u32 seen = 0;;) {
    await_job(pool, seen);
    seen = ACQUIRE(pool->epoch);
    if (seen >> POOL_QUIT_BIT) break;
    if (index < (u64)pool->chunks) run_chunk(pool, index);
    u32 workers = pool->n_threads - 1;
    if (ADD(pool->done, 1) + 1 == workers && LOAD(pool->main_parked)) futex(pool, &pool->done, FUTEX_WAKE_PRIVATE, 1);
  }
  float_leave(old);
}
