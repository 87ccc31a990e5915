// Counts what the loader allocates during calls, times what a call costs beyond `main`, and tells what memory is there beside weights and
// workspace: code, inputs and outputs among it.
//
// In: a bundle of fixed sizes, a count of calls. Out: two lines. Not done here: the test (`test_c_native.py`).
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

// How many bytes of the process lie in memory between two addresses.
static u64 resident(const void *data, u64 size) {
  u64 first = (u64)data / 4096, last = ((u64)data + size + 4095) / 4096, found = 0, entry;
  int file = open("/proc/self/pagemap", O_RDONLY);
  for (u64 page = first; data && page < last; page++)
    found += pread(file, &entry, 8, (off_t)(page * 8)) == 8 && entry >> 63 ? 4096 : 0;
  return close(file), found;
}

// All of them, also those of files.
static u64 resident_bytes(void) {
  char text[1024] = "";
  int file = open("/proc/self/smaps_rollup", O_RDONLY);
  ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  const char *found = size > 0 ? strstr(text, "Rss:") : NULL;
  return found ? strtoull(found + 4, NULL, 10) * 1024 : 0;
}

static int compare(const void *a, const void *b) { return *(const u64 *)a < *(const u64 *)b ? -1 : 1; }

int main(int count, char **arguments) {
  ingot_bundle *bundle;
  ingot_session *session;
  error error;
  int calls = count > 2 ? atoi(arguments[2]) : 1000;
  u64 *whole = calloc((size_t)calls, 8), *native = calloc((size_t)calls, 8);
  u64 before = resident_bytes();
  if (ingot_load(arguments[1], NULL, &bundle, &error) || ingot_open(bundle, NULL, &session, &error) || ingot_run(session, 0, &error))
    return fputs(error.what, stderr), 1;
  u64 weights = resident(bundle->weights.data, bundle->weights.size), workspace = resident(session->scratch.data, session->scratch.size);
  for (u32 index = 0; index < DEVICE_COUNT_MAX; index++)
    workspace += resident(session->workspaces[index].data, session->workspaces[index].size);
  u64 beside = resident_bytes() - before - weights - workspace;
  before = allocations;
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
  printf("%llu bytes in memory beside %llu of weights and %llu of workspace\n", (unsigned long long)beside, (unsigned long long)weights,
         (unsigned long long)workspace);
  return 0;
}
