// `ingot_watch`, `ingot_run`, `ingot_python_poll`: how a call is stopped from outside, and how a long launch hears of it.
//
// Native code cannot see a signal that CPython has noted, so the calling thread asks now and then: `clock` says when, `poll` asks.
// Not done here: setting the flag, reporting why (the loader).
#include "support.h"

enum { CLOCK_MONOTONIC_COARSE = 6 }; // some nanoseconds per look, some milliseconds exact
static const i64 NANOSECONDS = 1000000000;
static const i64 PIECE_NANOSECONDS = 8000000;
static const int FIRST_PIECE_SHIFT = 6; // units of `grain` in the first piece: some tenths of a millisecond
static const i64 GRAIN_MAX = (i64)1 << 40;

// Nanoseconds of the coarse clock; 0 where the caller gave none.
static u64 now_of(struct watch *watch) {
  if (!watch->clock) return 0;
  i64 time[2];
  watch->clock(CLOCK_MONOTONIC_COARSE, time);
  return (u64)(time[0] * NANOSECONDS + time[1]);
}

static i32 cancel(struct watch *watch) {
  STORE_RELAXED(watch->cancel, 1);
  return 1;
}

// Whether the caller, who is asked when that is due, wants the call to end.
static i32 is_refused(struct watch *watch, u64 now) {
  if (!watch->poll) return 0;
  if (watch->poll_next == 0) {
    watch->poll_next = now + watch->poll_interval;
    return 0;
  }
  if (now < watch->poll_next) return 0;
  i32 rc = watch->poll(watch->poll_context);
  watch->poll_next = 0; // what `poll` ran may have taken long: the next look starts the interval anew
  return rc != 0;
}

// 1 if the call shall end. `is_caller`: on the calling thread, which alone keeps the time.
i32 ingot_watch(struct watch *watch, i32 is_caller) {
  if (!watch) return 0;
  if (RELAXED(watch->cancel)) return 1;
  u64 now = is_caller ? now_of(watch) : 0;
  if (now == 0) return 0;
  if (watch->deadline && now >= watch->deadline) {
    watch->timed_out = 1;
    return cancel(watch);
  }
  return is_refused(watch, now) ? cancel(watch) : 0;
}

// Runs a range of a kernel. A long one is run in pieces of some milliseconds, with a look in between. Kernels never split a sum, so
// the result does not depend on the pieces; a short range, which is nearly every one, is one call.
static i32 run(kernel_function *kernel, void *buffers, void *scalars, i64 first, i64 last, i64 grain, void *scratch,
               struct watch *watch, i32 is_caller) {
  i64 unit = grain < 1 ? 1 : grain > GRAIN_MAX ? GRAIN_MAX : grain;
  i64 size = unit << FIRST_PIECE_SHIFT;
  if (last - first <= size || !watch) return kernel(buffers, scalars, first, last, scratch);
  for (u64 before = now_of(watch);;) {
    i64 end = last - first < size ? last : first + size;
    i32 rc = kernel(buffers, scalars, first, end, scratch);
    if (rc || end >= last) return rc;
    if (ingot_watch(watch, is_caller)) return RC_CANCELLED;
    u64 after = now_of(watch);
    if (after && after - before < (u64)PIECE_NANOSECONDS) size <<= 1;
    first = end;
    before = after;
  }
}

// Lets CPython run its signal handlers; 1 where one of them raised, which is kept in the context. CPython is called only through
// pointers in its context: a callback made by ctypes would need a page that is writable and executable.
i32 ingot_python_poll(struct python_poll *context) {
  i32 state = context->ensure();
  i32 has_raised = context->check_signals() != 0;
  if (has_raised) context->fetch(&context->type, &context->value, &context->traceback);
  context->release(state);
  return has_raised;
}
