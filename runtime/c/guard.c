// Survive a file that shrinks, or cannot be read, while it is mapped: zeros stand for a page that is not there, and are counted.
//
// In: ranges of addresses. Out: `struct guard`, whose faults who uses the range looks at. Not done here: telling the user.
#include <signal.h>
#include <stdatomic.h>

#include "internal.h"

// A range of addresses; free where `end` is 0. The handler walks over all of them, in whatever thread.
struct guard {
  _Atomic u64 start, end, faults;
};

enum { GUARD_COUNT = 1024 };
static struct guard guards[GUARD_COUNT];
static u32 guards_lock;
static struct sigaction old_action;
static u32 guard_count;
static u64 guard_page_bytes;

// The bytes that are not there become zeros. Any other fault repeats under the action that was there before.
static void on_sigbus(int number, siginfo_t *info, void *context) {
  (void)context;
  u64 page = guard_page_bytes, at = (u64)(uintptr_t)info->si_addr;
  for (int index = 0; index < GUARD_COUNT; index++) {
    struct guard *guard = guards + index;
    if (at < atomic_load(&guard->start) || at >= atomic_load(&guard->end)) continue;
    void *place = (void *)(uintptr_t)(at / page * page);
    if (mmap(place, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) break;
    atomic_fetch_add(&guard->faults, 1);
    return;
  }
  sigaction(number, &old_action, NULL);
}

static bool install_handler(error *error) {
  struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART}, present;
  action.sa_sigaction = on_sigbus;
  guard_page_bytes = page_bytes();
  bool good = !sigaction(SIGBUS, NULL, &present);
  if (good && present.sa_sigaction == on_sigbus) return true;
  if (good) old_action = present;
  if (good && !sigaction(SIGBUS, &action, NULL)) return true;
  return refuse(error, INGOT_RESOURCE_ERROR, "the system refused sigaction", "signal 7", failure_words(errno), FREE_MEMORY);
}

static struct guard *guard_range(u64 start, u64 size, error *error) {
  struct guard *found = NULL;
  lock(&guards_lock);
  for (int index = 0; index < GUARD_COUNT && !found; index++)
    if (!atomic_load(&guards[index].end)) found = guards + index;
  if (!found) refuse(error, INGOT_RESOURCE_ERROR, "too many bundles are mapped", "SIGBUS guard", "at most 1024 files at once", "close some");
  if (found && !install_handler(error)) found = NULL;
  if (found) {
    guard_count++;
    atomic_store(&found->faults, 0);
    atomic_store(&found->start, start);
    atomic_store(&found->end, start + size);
  }
  unlock(&guards_lock);
  return found;
}

// The range is unmapped already.
static void end_guard(struct guard *guard) {
  struct sigaction present;
  lock(&guards_lock);
  atomic_store(&guard->end, 0);
  bool is_last = --guard_count == 0 && !sigaction(SIGBUS, NULL, &present) && present.sa_sigaction == on_sigbus;
  if (is_last) sigaction(SIGBUS, &old_action, NULL);
  unlock(&guards_lock);
}
