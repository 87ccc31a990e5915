// `ingot_launch`, `ingot_worker`: run a kernel over its parallel range, alone or together with the lent threads.
//
// The range is cut into pieces, and threads claim them: the caller from the front, the workers from the back, several at once while
// many are left and single ones at the end. The caller waits for pieces that workers have claimed, never for workers: one that the
// system keeps off its core has claimed nothing, and the caller runs everything. Kernels never split a sum, so that results depend
// neither on the cuts nor on who runs what.
// Not done here: looks inside of a piece (`watch.c`), starting threads (the loader).
#include "support.h"

enum { FUTEX_WAIT_PRIVATE = 128, FUTEX_WAKE_PRIVATE = 129, CLOCK_MONOTONIC_ID = 1 };
static const u64 PIECES_PER_THREAD = 16;
// A call whose launches take one thread less than this wakes nobody: a wake takes the caller some microseconds and the thread some
// tens of them, or a slice of a processor that it shares.
static const u64 WAKE_NANOSECONDS = 300000;
// A caller who has waited so long for claimed pieces shares its core's neighbour with a stranger. For a multiple of that time it
// then runs alone: a stall costs a few hundredths at most, and a neighbour that leaves is noticed soon.
static const u64 STALL_NANOSECONDS = 500000;
static const u64 ALONE_FACTOR = 16;
static const u32 SPIN_PARTS = 32;

// A claim: the pieces [front, back) that nobody has claimed, and above them the number of the job.
enum { FRONT_SHIFT = 16, JOB_SHIFT = 32, PIECE_MASK = 0xffff };

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

// Claims pieces: a share of those that are left, or all of them. The count, and the first in `piece`; 0 where none is left. The job's
// fields hold from a claim until its pieces are counted in `done`, because the caller waits for that before it writes another job.
static u64 claim(struct pool *pool, i32 is_caller, i32 is_all, u64 *piece) {
  u64 seen = ACQUIRE(pool->claim), count, next;
  do {
    u64 front = seen >> FRONT_SHIFT & PIECE_MASK, back = seen & PIECE_MASK;
    if (front == back) return 0;
    count = is_all ? back - front : (back - front) / (2 * (u64)pool->n_threads);
    count += count == 0;
    *piece = is_caller ? front : back - count;
    next = is_caller ? seen + (count << FRONT_SHIFT) : seen - count;
  } while (!__atomic_compare_exchange_n(&pool->claim, &seen, next, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
  return count;
}

// Runs pieces until none is left or a kernel fails, which leaves none. The count of pieces is the result.
static u64 run_pieces(struct pool *pool, u64 thread, i32 *code) {
  u64 total = 0, count, piece;
  i32 is_caller = thread == 0;
  while ((count = claim(pool, is_caller, *code != 0, &piece))) {
    u64 extent = (u64)pool->extent, pieces = (u64)pool->pieces;
    if (*code == 0 && ingot_watch(pool->watch, is_caller)) *code = RC_CANCELLED;
    if (*code == 0)
      *code = run(pool->kernel, pool->buffers, pool->scalars, (i64)(extent * piece / pieces), (i64)(extent * (piece + count) / pieces),
                  pool->grain, pool->scratch + pool->scratch_stride * (i64)thread, pool->watch, is_caller);
    total += count;
    if (is_caller) continue;
    i32 none = 0;
    if (*code) __atomic_compare_exchange_n(&pool->result, &none, *code, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    ADD(pool->done, (u32)count);
    if (LOAD(pool->caller_parked)) futex(pool, &pool->done, FUTEX_WAKE_PRIVATE, 1);
  }
  return total;
}

// Nanoseconds of the exact clock; 0 where the caller gave none.
static u64 exact_now(struct watch *watch) {
  if (!watch || !watch->clock) return 0;
  i64 time[2];
  watch->clock(CLOCK_MONOTONIC_ID, time);
  return (u64)(time[0] * NANOSECONDS + time[1]);
}

// Sleeps until the workers have done `pieces`.
static void sleep_until(struct pool *pool, u32 pieces) {
  STORE(pool->caller_parked, 1);
  for (u32 seen; (seen = LOAD(pool->done)) != pieces;) futex(pool, &pool->done, FUTEX_WAIT_PRIVATE, seen);
  STORE_RELAXED(pool->caller_parked, 0);
}

// Waits until the workers have done `pieces`: spinning, then asleep. A wait that takes longer than the caller's own part, of `own`
// nanoseconds, is a stall.
static void join(struct pool *pool, u32 pieces, u64 own) {
  for (u32 left = pool->spin; left > 0; left--) {
    if (ACQUIRE(pool->done) == pieces) return;
    spin_hint();
  }
  u64 before = exact_now(pool->watch);
  sleep_until(pool, pieces);
  u64 after = exact_now(pool->watch), waited = after - before;
  if (waited > STALL_NANOSECONDS && waited > own) pool->alone_until = after + ALONE_FACTOR * waited;
}

// Whether the caller better runs a range alone: after a stall, and where the workers sleep and the call is too short to wake them.
// The call before tells, which `main` leaves in `work_before` (0: not known), and what this one has done so far.
static i32 is_alone(struct pool *pool, u64 now) {
  if (now && now < pool->alone_until) return 1;
  if (LOAD(pool->parked) < pool->n_threads - 1) return 0;
  return pool->work_before > 0 && pool->work_before < WAKE_NANOSECONDS && pool->work < WAKE_NANOSECONDS;
}

// Wakes the workers that sleep, once: until one has come and sleeps again, they have been told.
static void wake(struct pool *pool) {
  if (LOAD(pool->parked) == 0) return;
  STORE(pool->parked, 0);
  futex(pool, &pool->epoch, FUTEX_WAKE_PRIVATE, __INT32_MAX__);
}

static void publish(struct pool *pool, u64 pieces) {
  pool->pieces = (i64)pieces, pool->done = 0, pool->result = 0;
  STORE(pool->claim, ((RELAXED(pool->claim) >> JOB_SHIFT) + 1) << JOB_SHIFT | pieces);
  STORE(pool->epoch, (RELAXED(pool->epoch) + 1) & (((u32)1 << POOL_QUIT_BIT) - 1));
  wake(pool);
}

static i32 fork_join(struct pool *pool, kernel_function *kernel, void *buffers, void *scalars, i64 extent, i64 grain, u8 *scratch,
                     i64 scratch_stride, struct watch *watch) {
  u64 units = pool ? (u64)extent / (u64)(grain > 1 ? grain : 1) : 1;
  if (units <= 1) return run(kernel, buffers, scalars, 0, extent, grain, scratch, watch, 1);
  if (pool->magic != POOL_MAGIC) return RC_THREADS_LOST;
  u64 start = exact_now(watch), most = PIECES_PER_THREAD * pool->n_threads, pieces = units < most ? units : most;
  if (is_alone(pool, start)) {
    i32 code = run(kernel, buffers, scalars, 0, extent, grain, scratch, watch, 1);
    pool->work += exact_now(watch) - start;
    return code;
  }
  pool->kernel = kernel, pool->buffers = buffers, pool->scalars = scalars, pool->extent = extent, pool->grain = grain;
  pool->scratch = scratch, pool->scratch_stride = scratch_stride, pool->watch = watch;
  publish(pool, pieces);
  i32 mine = 0;
  u64 own = run_pieces(pool, 0, &mine), end = exact_now(watch);
  pool->work += (end - start) * pieces / (own + (own == 0));
  join(pool, (u32)(pieces - own), end - start);
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

// Waits for another epoch than `seen`: spinning `spin` times, then asleep. Gives how long to spin the next time: twice as long where
// that was of use, else half as long. A worker that the system has put on the caller's own core holds the caller up while it spins.
static u32 await_job(struct pool *pool, u32 seen, u32 spin) {
  u32 most = pool->spin, least = most / SPIN_PARTS;
  for (u32 left = spin; ACQUIRE(pool->epoch) == seen; left--) {
    if (left == 0) {
      ADD(pool->parked, 1);
      while (LOAD(pool->epoch) == seen) futex(pool, &pool->epoch, FUTEX_WAIT_PRIVATE, seen);
      return spin / 2 > least ? spin / 2 : least;
    }
    spin_hint();
  }
  return 2 * spin + 1 < most ? 2 * spin + 1 : most;
}

// Runs pieces of every job that it comes in time for, until the pool quits.
void ingot_worker(struct pool *pool, u64 thread) {
  float_environment old = float_enter();
  u32 spin = pool->spin;
  for (u32 seen = 0;;) {
    spin = await_job(pool, seen, spin);
    seen = ACQUIRE(pool->epoch);
    if (seen >> POOL_QUIT_BIT) break;
    i32 code = 0;
    run_pieces(pool, thread, &code);
  }
  float_leave(old);
}
