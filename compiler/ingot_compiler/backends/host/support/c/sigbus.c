// `ingot_sigbus_handler`: a mapped file that was cut off reads as zeros and is counted, instead of ending the process.
//
// The loader's writable page directly behind the image (`struct sigbus_page`) leads it to a list of ranges, of any length.
// Not done here: installing it, reporting the change (the loader).
#include "support.h"

enum { SIGBUS = 7, PROT_READ = 1, MAP_PRIVATE_FIXED_ANONYMOUS = 0x32 }; // Linux, all 64-bit architectures alike

extern __attribute__((visibility("hidden"))) struct sigbus_page ingot_image_end;

// siginfo_t, up to the field that is read.
struct signal_information {
  _Alignas(16) i32 number;
  _Alignas(16) u64 address;
};

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

// Calls libc only through pointers in its page.
void ingot_sigbus_handler(i32 number, struct signal_information *information, void *context) {
  (void)number, (void)context;
  struct sigbus_page *page = &ingot_image_end;
  struct guarded *range = range_of(page, information->address);
  if (range) {
    ADD(range->faults, 1);
    if (is_replaced(page, information->address)) return; // without memory for a page the fault would repeat for ever
  }
  u64 foreign = ADD(page->foreign, 1);
  page->sigaction(SIGBUS, foreign ? page->first_action : page->old_action, NULL);
}
