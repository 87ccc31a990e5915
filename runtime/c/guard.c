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
static u32 guard_count;
static u64 guard_page_bytes;
// `first_action`: before any installation, of somebody who does not know us. Where somebody came over us and we over him, `old_action` is
// his, and he may lead back to us: `passed_on` is the address of the fault that he has got, 0 when he is done.
static struct sigaction first_action, old_action;
static _Atomic u64 passed_on;
static bool is_installed, is_covered;

#ifdef INGOT_WITHOUT_HOST
enum { HAS_HOST = 0 };  // a program of its own: nobody has installed anything before
#else
enum { HAS_HOST = 1 };
#endif

// Does what an action says, as if the signal had come to it. One that ends the process does it when this handler returns.
static void act(const struct sigaction *action, int number, siginfo_t *info, void *context) {
  sigset_t own;
  bool is_handler = HAS_HOST && ((action->sa_flags & SA_SIGINFO) || (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN));
  if (!is_handler) {
    if (action->sa_handler == SIG_IGN && info->si_code <= 0) return;  // sent, not a fault, which nobody can ignore
    sigaction(number, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    raise(number);
    return;
  }
  sigemptyset(&own);
  sigaddset(&own, number);
  pthread_sigmask(SIG_BLOCK, &action->sa_mask, NULL);
  if (action->sa_flags & SA_NODEFER) pthread_sigmask(SIG_UNBLOCK, &own, NULL);
  if (action->sa_flags & SA_SIGINFO) action->sa_sigaction(number, info, context);
  else action->sa_handler(number);
}

static void on_sigbus(int number, siginfo_t *info, void *context);

// Installs this handler. That a signal is blocked in its own handler need not be said: by this, one knows whether somebody put back what
// he had found, which is not marked.
static bool install(bool is_marked) {
  struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
  action.sa_sigaction = on_sigbus;
  if (is_marked) sigaddset(&action.sa_mask, SIGBUS);
  return !sigaction(SIGBUS, &action, NULL);
}

// Calls who was there before, and stays. Who calls this handler in turn, or puts it back, does not want the fault.
static void pass_on(int number, siginfo_t *info, void *context) {
  u64 at = (u64)(uintptr_t)info->si_addr | 1, before = HAS_HOST ? atomic_exchange(&passed_on, at) : 0;
  bool is_last = before && (before == at || info->si_code <= 0), knows_us = first_action.sa_sigaction != old_action.sa_sigaction;
  struct sigaction present;
  if (!HAS_HOST || is_last || !knows_us) {
    act(&first_action, number, info, context);
  } else {
    install(true);
    act(&old_action, number, info, context);
    if (!sigaction(SIGBUS, NULL, &present) && present.sa_sigaction == on_sigbus) {
      if (sigismember(&present.sa_mask, SIGBUS)) install(false);
      else act(&first_action, number, info, context);
    }
  }
  atomic_store(&passed_on, 0);
}

// The bytes that are not there become zeros. Any other fault is somebody else's.
static void on_sigbus(int number, siginfo_t *info, void *context) {
  u64 page = guard_page_bytes, at = (u64)(uintptr_t)info->si_addr;
  for (int index = 0; index < GUARD_COUNT; index++) {
    struct guard *guard = guards + index;
    if (at < atomic_load(&guard->start) || at >= atomic_load(&guard->end)) continue;
    void *place = (void *)(uintptr_t)(at / page * page);
    if (mmap(place, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) break;
    atomic_fetch_add(&guard->faults, 1);
    return;
  }
  pass_on(number, info, context);
}

static bool install_handler(error *error) {
  struct sigaction present;
  guard_page_bytes = page_bytes();
  bool good = !HAS_HOST || !sigaction(SIGBUS, NULL, &present);
  if (HAS_HOST && good && present.sa_sigaction == on_sigbus) return true;
  if (HAS_HOST && good) {
    is_covered = is_covered || is_installed;
    old_action = present;
    if (!is_covered) first_action = present;
    atomic_store(&passed_on, 0);
  }
  if (good && install(false)) return is_installed = true;
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
  bool is_last = HAS_HOST && --guard_count == 0 && !sigaction(SIGBUS, NULL, &present) && present.sa_sigaction == on_sigbus;
  if (is_last && !sigaction(SIGBUS, &old_action, NULL)) {
    is_installed = false;
    old_action = first_action;  // whoever is there now may call this handler last
  }
  unlock(&guards_lock);
}
