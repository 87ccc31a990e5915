// `ingot_sigbus_handler`: a mapped file that was cut off reads as zeros and is counted, instead of ending the process.
//
// The loader's writable page directly behind the image (`struct sigbus_page`) leads it to a list of ranges, of any length.
// Not done here: installing it, reporting the change (the loader).
#include "support.h"

// Linux, all 64-bit architectures alike
enum { SIGBUS = 7, PROT_READ = 1, MAP_PRIVATE_FIXED_ANONYMOUS = 0x32 };
enum { SIG_DFL, SIG_IGN, SA_SIGINFO = 4, SA_NODEFER = 0x40000000, SIG_BLOCK = 0, SIG_UNBLOCK = 1, MASK_BYTES = 8 };
#ifdef __x86_64__
enum { RT_SIGPROCMASK = 14, GETPID = 39, GETTID = 186, TGKILL = 234 };
#else
enum { RT_SIGPROCMASK = 135, GETPID = 172, GETTID = 178, TGKILL = 131 };
#endif

extern __attribute__((visibility("hidden"))) struct sigbus_page ingot_image_end;

// siginfo_t, up to the last field that is read.
struct signal_information {
  _Alignas(16) i32 number;
  i32 error, code; // above 0: a fault
  _Alignas(16) u64 address;
};

typedef void handler_function(i32 number, struct signal_information *information, void *context);
__attribute__((visibility("hidden"))) handler_function ingot_sigbus_handler;

static struct guarded *range_of(struct sigbus_page *page, u64 address) {
  for (struct guarded *range = page->first; range; range = RELAXED(range->next))
    if (address >= RELAXED(range->start) && address < RELAXED(range->end)) return range;
  return NULL;
}

// Whether the page of an address reads as zeros from now on.
static i32 is_replaced(struct sigbus_page *page, u64 address) {
  u64 at = address & (0 - page->page_bytes);
  return page->syscall(page->mmap_number, at, page->page_bytes, (i64)PROT_READ, (i64)MAP_PRIVATE_FIXED_ANONYMOUS, (i64)-1, (i64)0) != -1;
}

// Does what an action says, as if the signal had come to it. One that ends the process does it when this handler returns.
__attribute__((noinline)) static void act(struct sigbus_page *page, const struct action *action, i32 number, struct signal_information *information, void *context) {
  static const struct action end = {0};
  static const u64 own = 1u << (SIGBUS - 1);
  if (action->handler == SIG_IGN && information->code <= 0) return; // sent, not a fault, which nobody can ignore
  if (action->handler <= SIG_IGN) {
    page->sigaction(number, &end, NULL);
    page->syscall(TGKILL, page->syscall(GETPID), page->syscall(GETTID), (i64)number);
    return;
  }
  page->syscall(RT_SIGPROCMASK, (i64)SIG_BLOCK, action->mask, NULL, (i64)MASK_BYTES);
  if (action->flags & SA_NODEFER) page->syscall(RT_SIGPROCMASK, (i64)SIG_UNBLOCK, &own, NULL, (i64)MASK_BYTES);
  if (action->flags & SA_SIGINFO) ((handler_function *)action->handler)(number, information, context);
  else ((void (*)(i32))action->handler)(number);
}

// Finds the present action, which is this handler's or not; changes whether it is marked. That a signal is blocked in its own handler need
// not be said: by this, one knows whether somebody put back what he had found, which is not marked.
static i32 is_ours(struct sigbus_page *page, struct action *present, u64 handler) {
  return !page->sigaction(SIGBUS, NULL, present) && present->handler == handler;
}

static void mark(struct sigbus_page *page, struct action *present, u64 mask) {
  present->mask[0] = mask;
  page->sigaction(SIGBUS, present, NULL);
}

// Calls who was there before, and stays. Who came over this handler before it came over him may call it in turn, or put it back: he does
// not want the fault, which is then for who was there before both.
static void pass_on(struct sigbus_page *page, i32 number, struct signal_information *information, void *context) {
  struct action present, *first = &page->first_action, *old = &page->old_action;
  u64 at = information->address | 1, before = __atomic_exchange_n(&page->foreign, at, __ATOMIC_SEQ_CST);
  u64 ours = (u64)ingot_sigbus_handler, own = 1u << (SIGBUS - 1);
  i32 is_last = before && (before == at || information->code <= 0);
  if (is_last || first->handler == old->handler) {
    act(page, first, number, information, context);
  } else {
    if (is_ours(page, &present, ours)) mark(page, &present, own);
    act(page, old, number, information, context);
    i32 is_here = is_ours(page, &present, ours);
    if (is_here && present.mask[0] == own) mark(page, &present, 0);
    else if (is_here) act(page, first, number, information, context);
  }
  STORE(page->foreign, 0);
}

// Calls libc only through pointers in its page. A fault elsewhere is somebody else's.
void ingot_sigbus_handler(i32 number, struct signal_information *information, void *context) {
  struct sigbus_page *page = &ingot_image_end;
  struct guarded *range = range_of(page, information->address);
  if (range) {
    ADD(range->faults, 1);
    if (is_replaced(page, information->address)) return; // without memory for a page the fault would repeat for ever
  }
  pass_on(page, number, information, context);
}
