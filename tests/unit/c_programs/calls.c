// Counts what the loader allocates during calls, and times what a call costs beyond `main`.
//
// In: a bundle of fixed sizes, a count of calls. Out: a line. Not done here: the test (`test_c_native.py`).
#define _GNU_SOURCE
#include "ingot.c"

static u64 allocations;
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *malloc(size_t size) { return allocations++, __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return allocations++, __libc_calloc(count, size); }
void *realloc(void *old, size_t size) { return allocations++, __libc_realloc(old, size); }

static u64 now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return nanoseconds(time);
}

static int compare(const void *a, const void *b) { return *(const u64 *)a < *(const u64 *)b ? -1 : 1; }

int main(int count, char **arguments) {
  ingot_bundle *bundle;
  ingot_session *session;
  error error;
  int calls = count > 2 ? atoi(arguments[2]) : 1000;
  u64 *whole = calloc((size_t)calls, 8), *native = calloc((size_t)calls, 8);
  if (ingot_load(arguments[1], NULL, &bundle, &error) || ingot_open(bundle, NULL, &session, &error) || ingot_run(session, 0, &error))
    return fputs(error.what, stderr), 1;
  u64 before = allocations;
  for (int call = 0; call < calls; call++) {
    u64 start = now();
    if (ingot_run(session, 0, &error)) return fputs(error.what, stderr), 1;
    u64 middle = now();
    call_main(session);
    whole[call] = middle - start, native[call] = now() - middle;
  }
  before = allocations - before;
  qsort(whole, (size_t)calls, 8, compare), qsort(native, (size_t)calls, 8, compare);
  printf("%llu allocations in %d calls; a call takes %llu ns, its main %llu ns (medians)\n", (unsigned long long)before, calls,
         (unsigned long long)whole[calls / 2], (unsigned long long)native[calls / 2]);
  return 0;
}
