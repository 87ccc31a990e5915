// Counts what the loader asks the system for while a decoder makes tokens, one by one.
//
// In: a bundle of one input x[batch, length, 8] beside its states, a count of tokens. Out: a line: calls that took memory although no
// block had to grow, and how many had. Not done here: the test (`test_c_native.py`).
#define _GNU_SOURCE
#include <sys/mman.h>

static unsigned long long taken;
static void *counted_mmap(void *address, unsigned long size, int access, int flags, int file, long offset) {
  return taken++, mmap(address, size, access, flags, file, offset);
}
#define mmap counted_mmap
#include "ingot.c"

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *malloc(size_t size) { return taken++, __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return taken++, __libc_calloc(count, size); }
void *realloc(void *old, size_t size) { return taken++, __libc_realloc(old, size); }

int main(int count, char **arguments) {
  static float x[8];
  static const i64 shape[] = {1, 1, 8};
  struct ingot_options options = INGOT_OPTIONS;
  ingot_bundle *bundle;
  ingot_session *session;
  error error;
  int tokens = count > 2 ? atoi(arguments[2]) : 1000, calls = 0, growths = 0;
  u64 room = 0;
  options.keeps_states = 1;
  if (ingot_load(arguments[1], NULL, &bundle, &error) || ingot_open(bundle, &options, &session, &error)) return fputs(error.what, stderr), 1;
  for (int token = 0; token < tokens; token++) {
    u64 before = taken;
    if (ingot_set_input(session, 0, x, shape, &error) || ingot_run(session, 0, &error)) return fputs(error.what, stderr), 1;
    u64 present = session->states->block.size + session->workspaces[0].size + session->scratch.size;
    present += session->outputs[0].own.size;
    calls += taken > before && present == room, growths += present > room, room = present;
  }
  printf("%d of %d calls took memory, %d were for larger blocks\n", calls, tokens, growths);
  ingot_close(session), ingot_unload(bundle);
  return 0;
}
