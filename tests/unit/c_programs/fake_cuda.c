// A driver that stands in for NVIDIA's, with GPUs that are memory of this process: what streams are asked they do when somebody waits.
//
// In: the calls that `runtime/c/cuda.c` makes; FAKE_CUDA_* of the environment. Out: their effects and codes. Not done here: PTX. Of each
// module it runs the kernels whose names it knows.
//
// FAKE_CUDA_GPUS, FAKE_CUDA_ARCHITECTURE, FAKE_CUDA_VERSION, FAKE_CUDA_MEMORY: what there is. FAKE_CUDA_FAILS: a call that fails, with code
// 999, when it was made FAKE_CUDA_LEFT times; FAKE_CUDA_CALLS: a file that gets a line for each call.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int32_t i32;
typedef uint32_t u32;
typedef int64_t i64;
typedef uint64_t u64;

enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_DEVICE = 101, INVALID_PTX = 218, INVALID_CONTEXT = 201, NOT_FOUND = 500, UNKNOWN = 999 };
enum { OPERATIONS = 4096, ALLOCATIONS = 256, ARGUMENTS = 16, DEPTH = 8 };
enum kind { COPY, FILL, LAUNCH, AWAIT };

struct stream;

struct event {
  struct stream *stream;
  u32 position;
};

struct operation {
  enum kind kind;
  void *to;
  const void *from;
  void *staged;
  u64 size;
  struct event event;
  i32 (*kernel)(u64 *arguments);
  u64 arguments[ARGUMENTS];
};

// Counts grow: an operation lies at its count modulo OPERATIONS.
struct stream {
  struct operation operations[OPERATIONS];
  u32 done, count;
};

static struct {
  u64 at, size;
} allocations[ALLOCATIONS];
static u64 used_bytes;
static u32 depth;

static u64 number(const char *name, u64 usual) { return getenv(name) ? strtoull(getenv(name), NULL, 10) : usual; }

// Whether the call that is to fail may be made once more.
static int has_left(void) {
  char text[32];
  u64 left = number("FAKE_CUDA_LEFT", 0);
  snprintf(text, sizeof text, "%llu", (unsigned long long)(left ? left - 1 : 0));
  return left && !setenv("FAKE_CUDA_LEFT", text, 1);
}

// Notes a call; returns the code of one that is to fail, or that needs a context and has none.
static i32 called(const char *name, int needs_context) {
  const char *fails = getenv("FAKE_CUDA_FAILS"), *calls = getenv("FAKE_CUDA_CALLS");
  FILE *file = calls ? fopen(calls, "a") : NULL;
  if (file) fprintf(file, "%s\n", name), fclose(file);
  if (fails && !strcmp(fails, name) && !has_left()) return UNKNOWN;
  return needs_context && !depth ? INVALID_CONTEXT : 0;
}

#define CALLED(needs_context) \
  i32 failed = called(__func__, needs_context); \
  if (failed) return failed

static int is_ours(u64 at, u64 size) {
  for (u32 index = 0; index < ALLOCATIONS; index++)
    if (allocations[index].size && at >= allocations[index].at && at - allocations[index].at + size <= allocations[index].size) return 1;
  return 0;
}

static i32 run_until(struct stream *stream, u32 position);

static i32 do_operation(struct operation *operation) {
  i32 code = 0;
  if (operation->kind == AWAIT) return operation->event.stream ? run_until(operation->event.stream, operation->event.position) : 0;
  if (operation->kind == COPY) memmove(operation->to, operation->staged ? operation->staged : operation->from, operation->size);
  if (operation->kind == FILL) memset(operation->to, 0, operation->size);
  if (operation->kind == LAUNCH) code = operation->kernel(operation->arguments);
  free(operation->staged);
  return code;
}

static i32 run_until(struct stream *stream, u32 position) {
  while (stream->done < position) {
    i32 code = do_operation(stream->operations + stream->done++ % OPERATIONS);
    if (code) return code;
  }
  return 0;
}

static struct operation *queued(struct stream *stream, enum kind kind) {
  if (stream->count - stream->done == OPERATIONS) run_until(stream, stream->count);
  struct operation *operation = stream->operations + stream->count++ % OPERATIONS;
  memset(operation, 0, sizeof *operation);
  operation->kind = kind;
  return operation;
}

// y[i] = x[i] * w[i % width] + 1 of what eight threads are given, as the kernel of tests/hostile/tiny.py.
static i32 tiny_scale(u64 *arguments) {
  float *y = (float *)arguments[0], *x = (float *)arguments[1], *w = (float *)arguments[2];
  i64 width = (i64)arguments[3], extent = (i64)arguments[6];
  for (i64 i = 0; i < extent; i++) y[i] = x[i] * w[i % width] + 1;
  return 0;
}

// Leaves a code in the report.
static i32 tiny_refuses(u64 *arguments) { return *(i32 *)arguments[5] = 256, 0; }

i32 cuInit(u32 flags) {
  CALLED(0);
  return flags ? INVALID_VALUE : 0;
}

i32 cuDriverGetVersion(int *version) {
  CALLED(0);
  return *version = (int)number("FAKE_CUDA_VERSION", 12080), 0;
}

i32 cuDeviceGetCount(int *count) {
  CALLED(0);
  return *count = (int)number("FAKE_CUDA_GPUS", 2), 0;
}

i32 cuDeviceGet(int *device, int ordinal) {
  CALLED(0);
  return *device = ordinal, ordinal < (int)number("FAKE_CUDA_GPUS", 2) ? 0 : INVALID_DEVICE;
}

i32 cuDeviceGetName(char *name, int size, int device) {
  CALLED(0);
  return snprintf(name, (size_t)size, "Fake GPU %d", device), 0;
}

i32 cuDeviceGetAttribute(int *value, int attribute, int device) {
  CALLED(0);
  int architecture = (int)number("FAKE_CUDA_ARCHITECTURE", 75);
  (void)device;
  return *value = attribute == 75 ? architecture / 10 : attribute == 76 ? architecture % 10 : 0, 0;
}

i32 cuDevicePrimaryCtxRetain(void **context, int device) {
  CALLED(0);
  return *context = (void *)(u64)(device + 1), 0;
}

i32 cuDevicePrimaryCtxRelease_v2(int device) {
  CALLED(0);
  return (void)device, 0;
}

i32 cuCtxPushCurrent_v2(void *context) {
  CALLED(0);
  return context && depth < DEPTH ? depth++, 0 : INVALID_CONTEXT;
}

i32 cuCtxPopCurrent_v2(void **context) {
  CALLED(1);
  return *context = NULL, depth--, 0;
}

i32 cuStreamCreate(void **stream, u32 flags) {
  CALLED(1);
  return *stream = calloc(1, sizeof(struct stream)), flags ? INVALID_VALUE : 0;
}

i32 cuStreamDestroy_v2(void *stream) {
  CALLED(1);
  return free(stream), 0;
}

// A GPU that has failed does nothing of what it was asked.
i32 cuStreamSynchronize(void *stream) {
  struct stream *asked = stream;
  i32 failed = called(__func__, 1);
  if (failed) asked->done = asked->count;
  return failed ? failed : run_until(asked, asked->count);
}

i32 cuEventCreate(void **event, u32 flags) {
  CALLED(1);
  return *event = calloc(1, sizeof(struct event)), flags == 2 ? 0 : INVALID_VALUE;
}

i32 cuEventDestroy_v2(void *event) {
  CALLED(1);
  return free(event), 0;
}

i32 cuEventRecord(void *event, void *stream) {
  CALLED(1);
  return *(struct event *)event = (struct event){stream, ((struct stream *)stream)->count}, 0;
}

i32 cuEventSynchronize(void *event) {
  CALLED(1);
  struct event *recorded = event;
  return run_until(recorded->stream, recorded->position);
}

i32 cuStreamWaitEvent(void *stream, void *event, u32 flags) {
  CALLED(1);
  return queued(stream, AWAIT)->event = *(struct event *)event, flags ? INVALID_VALUE : 0;
}

i32 cuModuleLoadData(void **module, const void *text) {
  CALLED(1);
  return *module = (void *)text, strncmp(text, ".version ", 9) ? INVALID_PTX : 0;
}

i32 cuModuleUnload(void *module) {
  CALLED(1);
  return module ? 0 : INVALID_VALUE;
}

i32 cuModuleGetFunction(void **function, void *module, const char *name) {
  CALLED(1);
  *function = !strcmp(name, "tiny_scale") ? (void *)tiny_scale : !strcmp(name, "tiny_refuses") ? (void *)tiny_refuses : NULL;
  return *function && strstr(module, name) ? 0 : NOT_FOUND;
}

i32 cuMemGetInfo_v2(size_t *left, size_t *total) {
  CALLED(1);
  *total = number("FAKE_CUDA_MEMORY", 1 << 30);
  return *left = *total - used_bytes, 0;
}

i32 cuMemAlloc_v2(u64 *address, size_t size) {
  CALLED(1);
  u32 index = 0;
  while (allocations[index].size) index++;
  if (used_bytes + size > number("FAKE_CUDA_MEMORY", 1 << 30)) return OUT_OF_MEMORY;
  *address = (u64)aligned_alloc(256, (size + 255) / 256 * 256);
  memset((void *)*address, 0xa5, size);
  allocations[index].at = *address, allocations[index].size = size, used_bytes += size;
  return 0;
}

i32 cuMemFree_v2(u64 address) {
  CALLED(1);
  for (u32 index = 0; index < ALLOCATIONS; index++) {
    if (!allocations[index].size || allocations[index].at != address) continue;
    used_bytes -= allocations[index].size, allocations[index].size = 0;
    return 0;  // what is queued may still use it: it stays
  }
  return INVALID_VALUE;
}

i32 cuMemsetD8Async(u64 address, unsigned char byte, size_t size, void *stream) {
  CALLED(1);
  if (byte || !is_ours(address, size)) return INVALID_VALUE;
  struct operation *operation = queued(stream, FILL);
  return operation->to = (void *)address, operation->size = size, 0;
}

// The driver takes what lies in pageable memory when it is asked.
i32 cuMemcpyHtoDAsync_v2(u64 to, const void *from, size_t size, void *stream) {
  CALLED(1);
  if (!is_ours(to, size)) return INVALID_VALUE;
  struct operation *operation = queued(stream, COPY);
  operation->to = (void *)to, operation->size = size, operation->staged = malloc(size);
  return memcpy(operation->staged, from, size), 0;
}

i32 cuMemcpyDtoHAsync_v2(void *to, u64 from, size_t size, void *stream) {
  CALLED(1);
  if (!is_ours(from, size)) return INVALID_VALUE;
  struct operation *operation = queued(stream, COPY);
  return operation->to = to, operation->from = (const void *)from, operation->size = size, 0;
}

i32 cuMemcpyDtoDAsync_v2(u64 to, u64 from, size_t size, void *stream) {
  CALLED(1);
  if (!is_ours(to, size) || !is_ours(from, size)) return INVALID_VALUE;
  struct operation *operation = queued(stream, COPY);
  return operation->to = (void *)to, operation->from = (const void *)from, operation->size = size, 0;
}

// Of a kernel of three buffers and a scalar; the launch must have a thread for each unit.
i32 cuLaunchKernel(void *function, u32 x, u32 y, u32 z, u32 threads, u32 threads_y, u32 threads_z, u32 shared, void *stream, void **arguments, void **extra) {
  CALLED(1);
  struct operation operation = {.kind = LAUNCH, .kernel = (i32(*)(u64 *))function};
  for (u32 index = 0; index < 8; index++) operation.arguments[index] = *(u64 *)arguments[index];
  u64 extent = operation.arguments[6], share = operation.arguments[7];
  if (y != 1 || z != 1 || threads_y != 1 || threads_z != 1 || shared || extra || (u64)x * (threads / 8) * share < extent) return INVALID_VALUE;
  return *queued(stream, LAUNCH) = operation, 0;
}

i32 cuMemAllocHost_v2(void **memory, size_t size) {
  CALLED(1);
  return *memory = malloc(size), 0;
}

i32 cuMemFreeHost(void *memory) {
  CALLED(1);
  return free(memory), 0;
}

i32 cuGetErrorName(i32 code, const char **name) {
  *name = code == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : code == INVALID_PTX ? "CUDA_ERROR_INVALID_PTX" : code == UNKNOWN ? "CUDA_ERROR_UNKNOWN" : "CUDA_ERROR";
  return 0;
}
