// Two threads, each with sessions of one bundle, whose calls share a pool of threads of the program's own.
//
// In: a bundle of fixed sizes, the most threads of a session, the threads of the pool (0: calls run where they are asked for). Out: a line;
// outputs that are not those of the sessions' own threads end it. Not done here: the test (`test_c_native.py`).
#define _GNU_SOURCE
#include <sched.h>
// A machine with few processors has as many threads here as any other.
#undef CPU_COUNT
#define CPU_COUNT(set) ((set)->__bits[0] ? 16 : 1)
#include "ingot.c"

enum { CALLERS = 2, CALLS = 40, THREADS_MAX_OF_POOL = 16, QUEUE = 256 };

struct job {
  void (*task)(void *argument);
  void *argument;
  int *left;  // calls that have not returned
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t is_work = PTHREAD_COND_INITIALIZER, is_done = PTHREAD_COND_INITIALIZER;
static struct job queue[QUEUE];
static int first, last, size, is_closed, asked;
static const char *path;

static void *serve(void *ignored) {
  pthread_mutex_lock(&mutex);
  for (;;) {
    while (first == last && !is_closed) pthread_cond_wait(&is_work, &mutex);
    if (first == last) break;
    struct job job = queue[first++ % QUEUE];
    pthread_mutex_unlock(&mutex);
    job.task(job.argument);
    pthread_mutex_lock(&mutex);
    if (--*job.left == 0) pthread_cond_broadcast(&is_done);
  }
  pthread_mutex_unlock(&mutex);
  return ignored;
}

static void run_together(void *context, int32_t count, void (*task)(void *argument), void *argument) {
  int left = count;
  (void)context;
  for (int32_t call = 0; !size && call < count; call++) task(argument);
  pthread_mutex_lock(&mutex);
  asked++;
  for (int32_t call = 0; size && call < count; call++) queue[last++ % QUEUE] = (struct job){task, argument, &left};
  pthread_cond_broadcast(&is_work);
  while (size && left) pthread_cond_wait(&is_done, &mutex);
  pthread_mutex_unlock(&mutex);
}

static const struct ingot_threads pool_threads = {run_together, NULL};

static void fail(const struct ingot_error *error) {
  fprintf(stderr, "%s: %s\n", error->what, error->why);
  _exit(1);
}

static void fill(ingot_session *session, u32 count, u32 seed) {
  struct ingot_error error;
  if (ingot_prepare(session, &error)) fail(&error);
  for (u32 index = 0; index < count; index++) {
    const struct ingot_tensor *tensor = ingot_input(session, index);
    float *elements = tensor->data;
    for (u64 at = 0; at < tensor->size_bytes / 4; at++) seed = seed * 1664525 + 1013904223, elements[at] = (float)(seed >> 8) / (1 << 24);
  }
}

static void compare(ingot_bundle *bundle, int threads, u32 seed) {
  struct ingot_options own = INGOT_OPTIONS, lent = INGOT_OPTIONS;
  const struct ingot_bundle_info *info = ingot_describe(bundle);
  ingot_session *one, *other;
  struct ingot_error error;
  own.threads = lent.threads = threads, lent.lent = &pool_threads;
  if (ingot_open(bundle, &own, &one, &error) || ingot_open(bundle, &lent, &other, &error)) fail(&error);
  for (int call = 0; call < CALLS; call++) {
    fill(one, info->input_count, seed + (u32)call), fill(other, info->input_count, seed + (u32)call);
    other->pool.was_used = call % 4 == 3;  // how long the call before took is forgotten: all but some ask for threads
    if (ingot_run(one, 0, &error) || ingot_run(other, 0, &error)) fail(&error);
    for (u32 index = 0; index < info->output_count; index++) {
      const struct ingot_tensor *a = ingot_output(one, index), *b = ingot_output(other, index);
      if (a->size_bytes != b->size_bytes || memcmp(a->data, b->data, a->size_bytes)) fputs("other bits\n", stderr), _exit(1);
    }
    memset(ingot_output(other, 0)->data, 0, ingot_output(other, 0)->size_bytes);
  }
  ingot_close(one), ingot_close(other);
}

static int threads_of_session;

static void *call_often(void *argument) {
  struct ingot_options options = INGOT_OPTIONS;
  ingot_bundle *bundle;
  struct ingot_error error;
  options.threads = threads_of_session, options.lent = &pool_threads;
  if (ingot_load(path, &options, &bundle, &error)) fail(&error);
  compare(bundle, threads_of_session, (u32)(uintptr_t)argument);
  ingot_unload(bundle);
  return NULL;
}

int main(int count, char **arguments) {
  pthread_t pool[THREADS_MAX_OF_POOL], callers[CALLERS];
  if (count < 4) return 2;
  path = arguments[1], threads_of_session = atoi(arguments[2]), size = atoi(arguments[3]);
  if (size > THREADS_MAX_OF_POOL) return 2;
  for (int index = 0; index < size; index++) pthread_create(pool + index, NULL, serve, NULL);
  for (uintptr_t index = 0; index < CALLERS; index++) pthread_create(callers + index, NULL, call_often, (void *)(index * 1000));
  for (int index = 0; index < CALLERS; index++) pthread_join(callers[index], NULL);
  pthread_mutex_lock(&mutex);
  is_closed = 1;
  pthread_cond_broadcast(&is_work);
  pthread_mutex_unlock(&mutex);
  for (int index = 0; index < size; index++) pthread_join(pool[index], NULL);
  printf("the same bits in %d calls, asked %s\n", CALLERS * CALLS, asked ? "for threads" : "nobody");
  return 0;
}
