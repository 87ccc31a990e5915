// Kind `cuda`: a GPU of the CUDA driver.
//
// In: a library section, which is PTX. Out: what `device.h` asks. Not done here: any other thing than the driver does: it compiles the PTX
// at load, and keeps what it made. It has never run on a GPU (docs/devices.md).
//
// Launches and copies are queued in a stream of the device's own; reads and `wait` wait. Reads that begin early have a second stream, and
// memory whose pages stay where they are: a driver copies beside other work only into such. The driver knows contexts by thread, and
// callers come from any thread: each call of the driver is made with the context pushed.
#include "device.h"

#define CUDA_INSTALL "install NVIDIA's driver, whose library INGOT_CUDA_LIBRARY may name"
enum { CUDA_NO_MEMORY = 2, CUDA_MAJOR = 75, CUDA_MINOR = 76, CUDA_NAME_BYTES = 256, CUDA_UNTIMED = 2, GROUPS_MAX = 64, CUDA_REPORT_BYTES = 64 };
static const u64 locked_bytes_max = 64 << 20;

struct cuda_functions {
  i32 (*init)(u32);
  i32 (*version)(int *);
  i32 (*count)(int *);
  i32 (*get)(int *, int);
  i32 (*name)(char *, int, int);
  i32 (*attribute)(int *, int, int);
  i32 (*retain)(void **, int);
  i32 (*release)(int);
  i32 (*push)(void *);
  i32 (*pop)(void **);
  i32 (*stream)(void **, u32);
  i32 (*free_stream)(void *);
  i32 (*synchronize)(void *);
  i32 (*wait_event)(void *, void *, u32);
  i32 (*event)(void **, u32);
  i32 (*record)(void *, void *);
  i32 (*event_synchronize)(void *);
  i32 (*free_event)(void *);
  i32 (*module)(void **, const void *);
  i32 (*function)(void **, void *, const char *);
  i32 (*unload)(void *);
  i32 (*memory)(size_t *, size_t *);
  i32 (*allocate)(u64 *, size_t);
  i32 (*free)(u64);
  i32 (*fill)(u64, u8, size_t, void *);
  i32 (*write)(u64, const void *, size_t, void *);
  i32 (*read)(void *, u64, size_t, void *);
  i32 (*copy)(u64, u64, size_t, void *);
  i32 (*launch)(void *, u32, u32, u32, u32, u32, u32, u32, void *, void **, void **);
  i32 (*allocate_host)(void **, size_t);
  i32 (*free_host)(void *);
  i32 (*error_name)(i32, const char **);
};

#define CUDA_FUNCTION(name, field) {"cu" #name, offsetof(struct cuda_functions, field)}
static const struct driver_function cuda_names[] = {
    CUDA_FUNCTION(Init, init), CUDA_FUNCTION(DriverGetVersion, version), CUDA_FUNCTION(DeviceGetCount, count), CUDA_FUNCTION(DeviceGet, get),
    CUDA_FUNCTION(DeviceGetName, name), CUDA_FUNCTION(DeviceGetAttribute, attribute), CUDA_FUNCTION(DevicePrimaryCtxRetain, retain),
    CUDA_FUNCTION(DevicePrimaryCtxRelease_v2, release), CUDA_FUNCTION(CtxPushCurrent_v2, push), CUDA_FUNCTION(CtxPopCurrent_v2, pop),
    CUDA_FUNCTION(StreamCreate, stream), CUDA_FUNCTION(StreamDestroy_v2, free_stream), CUDA_FUNCTION(StreamSynchronize, synchronize),
    CUDA_FUNCTION(StreamWaitEvent, wait_event), CUDA_FUNCTION(EventCreate, event), CUDA_FUNCTION(EventRecord, record),
    CUDA_FUNCTION(EventSynchronize, event_synchronize), CUDA_FUNCTION(EventDestroy_v2, free_event), CUDA_FUNCTION(ModuleLoadData, module),
    CUDA_FUNCTION(ModuleGetFunction, function), CUDA_FUNCTION(ModuleUnload, unload), CUDA_FUNCTION(MemGetInfo_v2, memory),
    CUDA_FUNCTION(MemAlloc_v2, allocate), CUDA_FUNCTION(MemFree_v2, free), CUDA_FUNCTION(MemsetD8Async, fill),
    CUDA_FUNCTION(MemcpyHtoDAsync_v2, write), CUDA_FUNCTION(MemcpyDtoHAsync_v2, read), CUDA_FUNCTION(MemcpyDtoDAsync_v2, copy),
    CUDA_FUNCTION(LaunchKernel, launch), CUDA_FUNCTION(MemAllocHost_v2, allocate_host), CUDA_FUNCTION(MemFreeHost, free_host),
    CUDA_FUNCTION(GetErrorName, error_name),
};

// Host memory with locked pages; while a copy goes there, `target` is where it goes from there.
struct cuda_place {
  void *data, *done, *target;
  u64 room, size;
};

struct cuda {
  struct cuda_functions cu;
  int device;
  void *context, *stream, *second, *loaded;
  void **functions;
  u64 report;
  bool is_pushed;
  struct cuda_place places[16];
};

static const char *cuda_failure(const struct cuda *cuda, const char *call, i32 code) {
  const char *name = NULL;
  cuda->cu.error_name(code, &name);
  return TEXT("%s: %s (%d)", call, name ? name : "an error of CUDA", code);
}

static bool find_cuda(struct cuda *cuda, int *count, int *version, const struct opening *opening, error *error) {
  const char *why = open_driver("INGOT_CUDA_LIBRARY", "libcuda.so.1", cuda_names, COUNT_OF(cuda_names), &cuda->cu);
  i32 code = *why ? 0 : cuda->cu.init(0);
  if (!*why && !code) code = cuda->cu.count(count);
  if (!*why && !code) code = cuda->cu.version(version);
  if (code) why = cuda_failure(cuda, "cuInit", code);
  return !*why || refuse_opening(TEXT("device %s needs a CUDA driver", quoted(opening->name)), opening, why, CUDA_INSTALL, error);
}

// The architecture of a GPU: 75 for compute capability 7.5.
static u32 architecture_of(const struct cuda *cuda, int device) {
  int major = 0, minor = 0;
  cuda->cu.attribute(&major, CUDA_MAJOR, device);
  cuda->cu.attribute(&minor, CUDA_MINOR, device);
  return (u32)(10 * major + minor);
}

static const char *cuda_name(const struct cuda *cuda, int device) {
  char name[CUDA_NAME_BYTES] = "";
  cuda->cu.name(name, sizeof name - 1, device);
  return TEXT("%s", name);
}

static bool refuse_cuda_id(const struct cuda *cuda, int count, i64 id, const struct opening *opening, error *error) {
  char here[TEXT_BYTES] = "";
  for (int index = 0, device; index < count; index++)
    if (!cuda->cu.get(&device, index))
      append(here, "%scuda:%d (%s, sm_%u)", index ? ", " : "", index, cuda_name(cuda, device), architecture_of(cuda, device));
  const char *why = TEXT("device %s wants cuda:%lld; there are: %s", quoted(opening->name), NUMBER(id), *here ? here : "none");
  return refuse_opening(TEXT("no device cuda:%lld here", NUMBER(id)), opening, why, CUDA_INSTALL, error);
}

static bool refuse_architecture(const struct cuda *cuda, const struct cuda_library *library, const struct opening *opening, error *error) {
  char told[TEXT_BYTES] = "";
  u32 has = architecture_of(cuda, cuda->device);
  for (u32 index = 0; index < library->module_count; index++) append(told, "%ssm_%u", index ? ", " : "", library->modules[index].architecture);
  const char *why = TEXT("it is code for %s; %s has sm_%u", told, cuda_name(cuda, cuda->device), has);
  const char *todo = TEXT("compile for it: --device %s=cuda,target=sm_%u, if there is code for it", opening->name, has);
  return refuse_opening(TEXT("device %s cannot run its library here", quoted(opening->name)), opening, why, todo, error);
}

// What `cuDriverGetVersion` counts, as people do.
static const char *cuda_version(u32 number) { return TEXT("%u.%u", number / 1000, number % 1000 / 10); }

// The module for the latest architecture that device and driver have.
static const struct cuda_module *choose_module(const struct cuda *cuda, const struct cuda_library *library, u32 driver, const struct opening *opening,
                                               error *error) {
  const struct cuda_module *best = NULL, *oldest = NULL;
  for (u32 index = 0; index < library->module_count; index++) {
    const struct cuda_module *module = library->modules + index;
    if (module->architecture > architecture_of(cuda, cuda->device)) continue;
    if (!oldest || module->driver < oldest->driver) oldest = module;
    if (module->driver <= driver && (!best || module->architecture > best->architecture)) best = module;
  }
  if (best) return best;
  if (!oldest) return refuse_architecture(cuda, library, opening, error), NULL;
  const char *ptx = TEXT("PTX %u.%u", oldest->ptx_major, oldest->ptx_minor);
  const char *why = TEXT("%s needs a driver for CUDA %s, this one is for %s", ptx, cuda_version(oldest->driver), cuda_version(driver));
  refuse_opening(TEXT("the CUDA driver is too old for the library of device %s", quoted(opening->name)), opening, why, "update the driver", error);
  return NULL;
}

// Makes the context that of this thread; what follows a failure returns its code.
static i32 cuda_push(struct cuda *cuda) {
  i32 code = cuda->cu.push(cuda->context);
  cuda->is_pushed = !code;
  return code;
}

static void cuda_pop(struct cuda *cuda) {
  void *before;
  if (cuda->is_pushed) cuda->cu.pop(&before);
  cuda->is_pushed = false;
}

static i32 cuda_zeros(struct cuda *cuda, u64 size, u64 *address) {
  i32 code = cuda->cu.allocate(address, size);
  if (code) return code;
  code = cuda->cu.fill(*address, 0, size, cuda->stream);
  if (code) cuda->cu.free(*address), *address = 0;
  return code;
}

// Compiles the module and finds its kernels; the context is pushed.
static bool load_module(struct cuda *cuda, const struct cuda_library *library, const struct cuda_module *module, const struct opening *opening, error *error) {
  i32 code = cuda->cu.module(&cuda->loaded, module->text);
  const char *call = "cuModuleLoadData";
  cuda->functions = arena_take(opening->arena, (library->kernel_count + 1) * sizeof *cuda->functions, error);
  for (u32 index = 0; cuda->functions && !code && index < library->kernel_count; index++)
    code = cuda->cu.function(cuda->functions + index, cuda->loaded, library->kernels[index].name), call = "cuModuleGetFunction";
  const char *what = TEXT("the driver does not compile the library of device %s", quoted(opening->name));
  return !code || refuse_opening(what, opening, cuda_failure(cuda, call, code), "update the driver, or put these nodes on the host", error);
}

static bool start_cuda(struct cuda *cuda, const struct cuda_library *library, const struct cuda_module *module, const struct opening *opening, error *error) {
  const char *what = TEXT("device %s cannot be opened", quoted(opening->name)), *todo = "see what uses the GPU";
  i32 code = cuda->cu.retain(&cuda->context, cuda->device);
  if (!code) code = cuda_push(cuda);
  if (code) return refuse_opening(what, opening, cuda_failure(cuda, "cuDevicePrimaryCtxRetain", code), todo, error);
  code = cuda->cu.stream(&cuda->stream, 0);
  if (!code) code = cuda->cu.stream(&cuda->second, 0);
  if (!code) code = cuda_zeros(cuda, CUDA_REPORT_BYTES, &cuda->report);
  bool good = !code ? load_module(cuda, library, module, opening, error) : refuse_opening(what, opening, cuda_failure(cuda, "cuStreamCreate", code), todo, error);
  cuda_pop(cuda);
  return good;
}

static bool cuda_open(struct open_device *device, i64 id, const struct opening *opening, error *error) {
  struct cuda_library library;
  int count = 0, version = 0;
  if (!read_cuda_library(&library, opening, error)) return false;
  struct cuda *cuda = device->state = memory_take(sizeof *cuda);
  if (!cuda) return no_memory(error, opening->where, "device");
  device->rows = library.kernels, device->kernel_count = library.kernel_count;
  if (!find_cuda(cuda, &count, &version, opening, error)) return false;
  if (id >= count || cuda->cu.get(&cuda->device, (int)id)) return refuse_cuda_id(cuda, count, id, opening, error);
  const struct cuda_module *module = choose_module(cuda, &library, (u32)version, opening, error);
  return module && start_cuda(cuda, &library, module, opening, error);
}

// Ends what began with `cuda_push`: a driver that fails is lost.
static bool cuda_done(struct open_device *device, const char *call, i32 code, error *error) {
  cuda_pop(device->state);
  return !code || device_lost(device, cuda_failure(device->state, call, code), error);
}

static bool cuda_allocate(struct open_device *device, struct device_memory *memory, u64 size, error *error) {
  struct cuda *cuda = device->state;
  size_t left = 0, total = 0;
  u64 room = rounded(size ? size : 1, ALIGNMENT_SMALL_BYTES), address = 0;
  i32 code = cuda_push(cuda);
  if (!code) code = cuda->cu.memory(&left, &total);
  bool fits = !code && size <= left && room <= left;
  if (fits) code = cuda_zeros(cuda, room, &address);
  if (fits && code == CUDA_NO_MEMORY) fits = false, code = 0;
  if (!cuda_done(device, "allocate", code, error)) return false;
  const char *why = TEXT("%llu of %llu bytes are free", (unsigned long long)left, (unsigned long long)total);
  if (!fits) return no_device_memory(device, size, why, error);
  *memory = (struct device_memory){address, room, NULL};
  return true;
}

static void cuda_release(struct open_device *device, struct device_memory *memory) {
  struct cuda *cuda = device->state;
  if (cuda_push(cuda)) return;
  cuda->cu.free(memory->address);  // a lost device has given it back
  cuda_pop(cuda);
}

static u64 cuda_address(struct place place) { return place.memory->address + place.at; }

static bool cuda_write(struct open_device *device, struct place to, const void *from, u64 size, error *error) {
  struct cuda *cuda = device->state;
  i32 code = cuda_push(cuda);
  if (!code) code = cuda->cu.write(cuda_address(to), from, size, cuda->stream);
  return cuda_done(device, "write", code, error);
}

static i32 read_now(struct cuda *cuda, void *to, u64 from, u64 size) {
  i32 code = cuda->cu.read(to, from, size, cuda->stream);
  return code ? code : cuda->cu.synchronize(cuda->stream);
}

static bool cuda_read(struct open_device *device, void *to, struct place from, u64 size, error *error) {
  struct cuda *cuda = device->state;
  i32 code = cuda_push(cuda);
  if (!code) code = read_now(cuda, to, cuda_address(from), size);
  return cuda_done(device, "read", code, error);
}

// Locked memory that is free and large enough, the least of it, or made; null where there is none.
static struct cuda_place *take_place(struct cuda *cuda, u64 size) {
  struct cuda_place *best = NULL, *empty = NULL;
  u64 used = 0;
  for (u32 index = 0; index < COUNT_OF(cuda->places); index++) {
    struct cuda_place *place = cuda->places + index;
    used += place->room;
    if (place->target) continue;
    if (!place->data || !empty) empty = place;
    if (place->data && place->room >= size && (!best || place->room < best->room)) best = place;
  }
  if (best || !empty || used - empty->room + size > locked_bytes_max) return best;
  if (empty->data) cuda->cu.free_host(empty->data);
  empty->data = NULL, empty->room = 0;
  if (cuda->cu.allocate_host(&empty->data, size)) return empty->data = NULL;
  empty->room = size;
  return empty;
}

// Copies what is there when the first stream has done what it was asked.
static i32 begin_place(struct cuda *cuda, struct cuda_place *place, void *to, u64 from, u64 size) {
  void *behind = NULL;
  i32 code = cuda->cu.event(&behind, CUDA_UNTIMED);
  if (!code) code = cuda->cu.record(behind, cuda->stream);
  if (!code) code = cuda->cu.wait_event(cuda->second, behind, 0);
  if (!code) code = cuda->cu.read(place->data, from, size, cuda->second);
  if (!code && !place->done) code = cuda->cu.event(&place->done, CUDA_UNTIMED);
  if (!code) code = cuda->cu.record(place->done, cuda->second);
  if (behind) cuda->cu.free_event(behind);
  if (!code) place->target = to, place->size = size;
  return code;
}

static i32 end_place(struct cuda *cuda, struct cuda_place *place) {
  i32 code = cuda->cu.event_synchronize(place->done);
  if (!code) memcpy(place->target, place->data, place->size);
  place->target = NULL;
  return code;
}

// Ends the copies into `target`, or all of them where it is null; after a failure all are given up: their memory may be gone later.
static i32 end_places(struct cuda *cuda, const void *target, i32 code) {
  for (u32 index = 0; index < COUNT_OF(cuda->places); index++) {
    struct cuda_place *place = cuda->places + index;
    if (place->target && (!target || place->target == target) && !code) code = end_place(cuda, place);
    else if (!target && code) place->target = NULL;
  }
  return code;
}

static bool cuda_begin_read(struct open_device *device, void *to, struct place from, u64 size, error *error) {
  struct cuda *cuda = device->state;
  i32 code = cuda_push(cuda);
  if (!code) code = end_places(cuda, to, 0);
  struct cuda_place *place = code ? NULL : take_place(cuda, size);
  if (place) code = begin_place(cuda, place, to, cuda_address(from), size);
  else if (!code) code = read_now(cuda, to, cuda_address(from), size);
  return cuda_done(device, "read", code, error);
}

static bool cuda_end(struct open_device *device, u64 written, error *error) {
  struct cuda *cuda = device->state;
  i32 code = cuda_push(cuda);
  if (!code) code = end_places(cuda, (void *)(uintptr_t)written, 0);
  return cuda_done(device, "read", code, error);
}

// By way of other memory where the two overlap.
static bool cuda_move(struct open_device *device, struct place to, struct place from, u64 size, error *error) {
  struct cuda *cuda = device->state;
  u64 target = cuda_address(to), source = cuda_address(from), between = 0;
  bool is_apart = (target > source ? target - source : source - target) >= size;
  i32 code = cuda_push(cuda);
  if (!code && !is_apart) code = cuda_zeros(cuda, size, &between);
  if (!code && !is_apart) code = cuda->cu.copy(between, source, size, cuda->stream);
  if (!code) code = cuda->cu.copy(target, is_apart ? source : between, size, cuda->stream);
  if (between) cuda->cu.free(between);  // the driver waits for what uses it
  return cuda_done(device, "move", code, error);
}

// How many blocks run, and how many units each eight threads.
static u32 cuda_blocks(const struct kernel_row *row, i64 extent, i64 *share) {
  const i64 per_block = row->block_threads / GROUP_THREADS, most = row->has_scratch ? GROUPS_MAX : INT32_MAX * per_block;
  *share = extent / most + (extent % most > 0);
  i64 groups = extent / *share + (extent % *share > 0);
  return (u32)(groups / per_block + (groups % per_block > 0));
}

static i32 launch_with(struct cuda *cuda, const struct kernel_row *row, const struct launch *launch, void **arguments) {
  u32 last = launch->buffer_count - 1, at = 0;
  i64 share;
  u32 blocks = cuda_blocks(row, launch->extent, &share);
  for (u32 index = 0; index < last; index++) arguments[at++] = (void *)(uintptr_t)(launch->buffers + index);
  for (u32 index = 0; index < launch->scalar_count; index++) arguments[at++] = (void *)(uintptr_t)(launch->scalars + index);
  arguments[at++] = (void *)(uintptr_t)(launch->buffers + last);
  arguments[at++] = &cuda->report;
  arguments[at++] = (void *)(uintptr_t)&launch->extent;
  arguments[at] = &share;
  return cuda->cu.launch(cuda->functions[launch->kernel], blocks, 1, 1, row->block_threads, 1, 1, 0, cuda->stream, arguments, NULL);
}

static bool cuda_launch(struct open_device *device, const struct launch *launch, i32 *code, error *error) {
  enum { OWN = 64 };
  struct cuda *cuda = device->state;
  const struct kernel_row *row = device->rows + launch->kernel;
  u64 count = (u64)launch->buffer_count + launch->scalar_count + OTHER_PARAMETERS;
  void *own[OWN], **arguments = count <= OWN ? own : memory_take(count * sizeof *arguments);
  if (!arguments) return no_memory(error, device->name, "arguments");
  i32 failed = cuda_push(cuda);
  if (!failed) failed = launch_with(cuda, row, launch, arguments);
  if (!failed && row->reports) failed = read_now(cuda, code, cuda->report, sizeof *code);
  if (!failed && *code) failed = cuda->cu.fill(cuda->report, 0, CUDA_REPORT_BYTES, cuda->stream);
  if (arguments != own) memory_free(arguments);
  return cuda_done(device, "launch", failed, error);
}

static bool cuda_wait(struct open_device *device, error *error) {
  struct cuda *cuda = device->state;
  i32 code = cuda_push(cuda);
  if (!code) code = cuda->cu.synchronize(cuda->stream);
  code = end_places(cuda, NULL, code);
  return cuda_done(device, "wait", code, error);
}

static void free_places(struct cuda *cuda) {
  for (u32 index = 0; index < COUNT_OF(cuda->places); index++) {
    if (cuda->places[index].done) cuda->cu.free_event(cuda->places[index].done);
    if (cuda->places[index].data) cuda->cu.free_host(cuda->places[index].data);
  }
}

static void cuda_close(struct open_device *device) {
  struct cuda *cuda = device->state;
  if (cuda->context && !cuda_push(cuda)) {
    if (cuda->stream) cuda->cu.synchronize(cuda->stream);
    if (cuda->second) cuda->cu.synchronize(cuda->second);  // a copy whose begin failed may still write to locked memory
    free_places(cuda);
    if (cuda->report) cuda->cu.free(cuda->report);
    if (cuda->loaded) cuda->cu.unload(cuda->loaded);
    if (cuda->second) cuda->cu.free_stream(cuda->second);
    if (cuda->stream) cuda->cu.free_stream(cuda->stream);
    cuda_pop(cuda);
  }
  if (cuda->context) cuda->cu.release(cuda->device);
  memory_free(cuda);
}

static const struct device_kind cuda_kind = {
    .name = "cuda", .open = cuda_open, .allocate = cuda_allocate, .release = cuda_release, .write = cuda_write, .read = cuda_read,
    .begin_read = cuda_begin_read, .end = cuda_end, .move = cuda_move, .launch = cuda_launch, .wait = cuda_wait, .close = cuda_close,
};
