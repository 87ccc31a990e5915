// Threads lent to native code: each is in one call of the image's `worker`, parked until there is work. They are started here and stay,
// or are the caller's and are asked for when there is work.
//
// In: an image, a number of threads. Out: the page for the call struct. Not done here: fork and join (the image's `launch`).
#include <limits.h>
#include <pthread.h>
#include <sched.h>

#include "internal.h"

struct pool_thread {
  pthread_t thread;
  const struct pool *pool;
  i64 index;
};

// Reads the first bytes of a small file; "" where there is none.
static void read_line(const char *path, char *line, size_t size) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t got = file < 0 ? 0 : read(file, line, size - 1);
  line[got > 0 ? got : 0] = 0;
  if (file >= 0) close(file);
}

// The quota of the control group (cgroup 2, `cpu.max`) in whole processors, rounded up; 0 for none.
static u32 group_quota(void) {
  char line[4096] = "";
  read_line("/proc/self/cgroup", line, sizeof line);
  const char *group = memcmp(line, "0::", 3) ? find_text(line, "\n0::") : line;
  if (!group) return 0;
  group += *group == '\n' ? 4 : 3;
  read_line(TEXT("/sys/fs/cgroup%.*s/cpu.max", (int)size_until(group, '\n'), group), line, sizeof line);
  const char *at = line;
  u64 limit = (u64)read_digits(&at), period = *at == ' ' && at++ ? (u64)read_digits(&at) : 0;
  return limit && period ? (u32)((limit + period - 1) / period) : 0;
}

static u32 usable_processors(void) {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) ? 1 : (u32)CPU_COUNT(&set);
}

// How many of `asked` threads the affinity mask and the control group let run.
static u32 usable_threads(i32 asked) {
  enum { THREADS_MAX = 1024 };
  if (asked <= 1) return 1;
  u32 count = usable_processors(), quota = group_quota();
  if (count > (u32)asked) count = (u32)asked;
  if (count > THREADS_MAX) count = THREADS_MAX;
  return quota && quota < count ? quota : count;
}

static void *work(void *argument) {
  struct pool_thread *thread = argument;
  thread->pool->worker(thread->pool->page, thread->index);
  return NULL;
}

// Starts the workers; where the system refuses one, those before it are all. They get no signals of the host program's, but that of a page
// that is not there (`guard.c`), which would end the process if they blocked it.
static void start_threads(struct pool *pool, u32 n_threads) {
  sigset_t all, before;
  if (HAS_HOST) {
    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &before);
  }
  for (pool->n_threads = 1; pool->n_threads < n_threads; pool->n_threads++) {
    struct pool_thread *thread = pool->threads + pool->n_threads - 1;
    thread->pool = pool, thread->index = pool->n_threads;
    if (pthread_create(&thread->thread, NULL, work, thread)) break;
  }
  if (HAS_HOST) pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void pool_store(struct pool *pool, u32 at, u64 value, size_t size) { memcpy(pool->page + at, &value, size); }

#ifdef INGOT_WITHOUT_LENDING
enum { HAS_LENDING = 0 };
#else
enum { HAS_LENDING = 1 };
#endif

static bool is_of_caller(const struct pool *pool) { return HAS_LENDING && pool->lent.run; }

static bool pool_start(struct pool *pool, const struct image *image, u32 n_threads, error *error) {
  enum { SPIN = 2000, WIPE_ON_FORK = 18 };
  u64 page = page_bytes();
  bool is_lent = is_of_caller(pool);
  *pool = (struct pool){.n_threads = 1, .lent = pool->lent};
  if (n_threads < 2) return true;
  if (!is_lent) pool->threads = memory_take(n_threads * sizeof *pool->threads);
  void *memory = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  pool->page = memory == MAP_FAILED ? NULL : memory;
  if ((!pool->threads && !is_lent) || !pool->page) return no_memory(error, "threads", failure_words(errno));
  madvise(memory, page, WIPE_ON_FORK);
  pool->worker = (void (*)(void *, i64))(void *)(image->base + image->exports[EXPORT_WORKER]);
  pool_store(pool, POOL_SPIN_AT, usable_processors() >= n_threads ? SPIN : 0, 4);
  pool_store(pool, POOL_SYSCALL_AT, (u64)(uintptr_t)syscall, 8);
  pool_store(pool, POOL_FUTEX_NUMBER_AT, SYS_futex, 8);
  pool_store(pool, POOL_MAGIC_AT, POOL_MAGIC, 4);
  if (is_lent) pool->n_threads = n_threads;
  else start_threads(pool, n_threads);
  pool_store(pool, POOL_N_THREADS_AT, pool->n_threads, 4);
  return true;
}

// Lets the workers leave.
static void dismiss(const struct pool *pool) {
  u32 *epoch = (u32 *)(void *)(pool->page + POOL_EPOCH_AT);
  __atomic_fetch_or(epoch, (u32)1 << POOL_QUIT_BIT, __ATOMIC_SEQ_CST);
  syscall(SYS_futex, epoch, WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

// Work that lent threads share.
struct crew {
  struct pool *pool;
  void (*work)(void *argument);
  void *argument;
  u32 came;
};

// The first to come does the work, and the others help until it is done: so it does not matter which threads there are, in which order
// they come, and whether any comes beside the first.
static void join_crew(void *argument) {
  struct crew *crew = argument;
  struct pool *pool = crew->pool;
  u32 index = __atomic_fetch_add(&crew->came, 1, __ATOMIC_RELAXED);
  if (index && index < pool->n_threads) pool->worker(pool->page, index);
  if (index) return;
  crew->work(crew->argument);
  dismiss(pool);
}

// Calls `work` with the threads of a pool at hand. Lent ones are asked for where the work before took so long that they could help: the
// image leaves in the page how long.
static void with_threads(struct pool *pool, void (*work)(void *argument), void *argument) {
  enum { WAKE_NANOSECONDS = 300000 };
  struct crew crew = {pool, work, argument, 0};
  u64 before = WAKE_NANOSECONDS;
  if (!is_of_caller(pool) || !pool->page) {
    work(argument);
    return;
  }
  if (pool->was_used) memcpy(&before, pool->page + POOL_WORK_AT, sizeof before);
  bool is_short = before < WAKE_NANOSECONDS;
  pool->was_used = true;
  pool_store(pool, POOL_EPOCH_AT, 0, 4);
  pool_store(pool, POOL_PARKED_AT, is_short ? pool->n_threads - 1 : 0, 4);  // who is not there counts as asleep
  if (!is_short) pool->lent.run(pool->lent.context, (i32)pool->n_threads, join_crew, &crew);
  if (!crew.came) join_crew(&crew);
}

// Ends and joins the workers; in a forked child, where the page reads as zeros, they are gone already.
static void pool_stop(struct pool *pool) {
  u32 magic = 0;
  if (pool->page) {
    memcpy(&magic, pool->page + POOL_MAGIC_AT, sizeof magic);
    dismiss(pool);
    for (u32 index = 0; pool->threads && magic == POOL_MAGIC && index + 1 < pool->n_threads; index++)
      pthread_join(pool->threads[index].thread, NULL);
    munmap(pool->page, page_bytes());
  }
  memory_free(pool->threads);
  *pool = (struct pool){.n_threads = 1, .lent = pool->lent};
}

// A pool without threads, for those that the options name.
static struct pool pool_of(const struct ingot_options *options) {
  return (struct pool){.n_threads = 1, .lent = options->lent ? *options->lent : (struct ingot_threads){NULL, NULL}};
}
