// The lock of a session: sessions that are like one another share threads and workspace, and one of them runs at a time.
//
// In: a session, a time limit. Out: its turn, or an error. Not done here: what it does meanwhile (`prepare.c`, `call.c`).
#include "session.h"

// From here on `ingot_cancel` means this call.
static bool begin(ingot_session *session, double timeout_seconds, error *error) {
  enum { SECONDS_MAX = 1000000000 };
  ingot_session *owner = session->owner;
  u64 deadline = 0;
  if (timeout_seconds > 0) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    deadline = nanoseconds(now) + (u64)((timeout_seconds < SECONDS_MAX ? timeout_seconds : SECONDS_MAX) * 1e9);
  }
  lock(&owner->lock);
  bool is_free = !owner->running;
  if (is_free) {
    owner->running = session;
    session->watch.cancel = session->watch.timed_out = 0, session->watch.deadline = deadline;
  }
  unlock(&owner->lock);
  return is_free || refuse(error, INGOT_BUSY_ERROR, "the session is busy", session->bundle->source.name, "it runs another thread's call",
                           "open a session for each thread: they share the file's memory");
}

static void end(ingot_session *session) {
  lock(&session->owner->lock);
  session->owner->running = NULL;
  unlock(&session->owner->lock);
}

void ingot_cancel(ingot_session *session) {
  lock(&session->owner->lock);
  if (session->owner->running == session) __atomic_store_n(&session->watch.cancel, 1, __ATOMIC_RELAXED);
  unlock(&session->owner->lock);
}

// Makes the session use what `owner` has; before, it uses what it has itself.
static void share(ingot_session *session, ingot_session *owner) {
  lock(&owner->lock);
  owner->users++;
  unlock(&owner->lock);
  session->owner = owner;
}

// Returns whether nobody uses the owner any more.
static bool leave(ingot_session *owner) {
  lock(&owner->lock);
  bool is_last = --owner->users == 0;
  unlock(&owner->lock);
  return is_last;
}
