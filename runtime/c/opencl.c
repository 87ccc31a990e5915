// Kind `opencl`: a device of an OpenCL driver.
//
// In: a library section, which is OpenCL C. Out: what `device.h` asks. Not done here: what the driver's compiler does with it: it compiles in
// this process, at load.
//
// Addresses are numbers of our own that no process can have mapped: a place in a `cl_mem` is found from them. Launches are queued, so that
// the host goes on while the device works; reads and writes wait, but for those that begin early, which have a queue of their own.
#include "device.h"

#define OPENCL_HEAD "ingot opencl library 1"
#define OPENCL_DRIVERS \
  "apt install pocl-opencl-icd; or pip install intel-opencl-rt intel-cmplr-lib-rt, and export OCL_ICD_VENDORS=FOLDER/lib/libintelocl.so"
#define OPENCL_INSTALL "install a loader of drivers, libOpenCL.so.1, which INGOT_OPENCL_LIBRARY may name, and a driver: " OPENCL_DRIVERS
#define OPENCL_OPTIONS "-cl-std=CL1.2"
#define TRIAL "a kernel of one line"
#define TRIAL_SOURCE "__kernel void ingot_trial(__global int *out) { out[get_global_id(0)] = 3 * (int)get_global_id(0) + 7; }"

enum {
  CL_CPU = 2, CL_ALL = -1, CL_READ_WRITE = 1, CL_TYPE = 0x1000, CL_UNITS = 0x1002, CL_LARGEST = 0x1010, CL_MEMORY = 0x101f, CL_NAME = 0x102b, CL_VERSION = 0x102f,
  CL_EXTENSIONS = 0x1030, CL_LOG = 0x1183, CL_NONE_FOUND = -1, CL_NO_PLATFORM = -1001,
};
enum { OPENCL_DEVICES = 64, OPENCL_PLATFORMS = 16, SCRATCH_ITEMS = 8, ITEMS_PER_UNIT = 4, REPORT_BYTES = 256, EXTENSION_MAX = 63, TRIAL_ITEMS = 16 };

struct opencl_functions {
  i32 (*platforms)(u32, void **, u32 *);
  i32 (*devices)(void *, u64, u32, void **, u32 *);
  i32 (*info)(void *, u32, size_t, void *, size_t *);
  void *(*context)(const void *, u32, void **, void *, void *, i32 *);
  void *(*queue)(void *, void *, u64, i32 *);
  void *(*program)(void *, u32, const char **, const size_t *, i32 *);
  i32 (*build)(void *, u32, void **, const char *, void *, void *);
  i32 (*build_info)(void *, void *, u32, size_t, void *, size_t *);
  void *(*kernel)(void *, const char *, i32 *);
  i32 (*argument)(void *, u32, size_t, const void *);
  void *(*buffer)(void *, u64, size_t, void *, i32 *);
  i32 (*fill)(void *, void *, const void *, size_t, size_t, size_t, u32, void **, void **);
  i32 (*write)(void *, void *, u32, size_t, size_t, const void *, u32, void **, void **);
  i32 (*read)(void *, void *, u32, size_t, size_t, void *, u32, void **, void **);
  i32 (*copy)(void *, void *, void *, size_t, size_t, size_t, u32, void **, void **);
  i32 (*launch)(void *, void *, u32, const size_t *, const size_t *, const size_t *, u32, void **, void **);
  i32 (*marker)(void *, u32, void **, void **);
  i32 (*flush)(void *);
  i32 (*finish)(void *);
  i32 (*wait)(u32, void **);
  i32 (*release_event)(void *);
  i32 (*release_buffer)(void *);
  i32 (*release_kernel)(void *);
  i32 (*release_program)(void *);
  i32 (*release_queue)(void *);
  i32 (*release_context)(void *);
};

#define OPENCL_FUNCTION(name, field) {"cl" #name, offsetof(struct opencl_functions, field)}
static const struct driver_function opencl_names[] = {
    OPENCL_FUNCTION(GetPlatformIDs, platforms), OPENCL_FUNCTION(GetDeviceIDs, devices), OPENCL_FUNCTION(GetDeviceInfo, info),
    OPENCL_FUNCTION(CreateContext, context), OPENCL_FUNCTION(CreateCommandQueue, queue), OPENCL_FUNCTION(CreateProgramWithSource, program),
    OPENCL_FUNCTION(BuildProgram, build), OPENCL_FUNCTION(GetProgramBuildInfo, build_info), OPENCL_FUNCTION(CreateKernel, kernel),
    OPENCL_FUNCTION(SetKernelArg, argument), OPENCL_FUNCTION(CreateBuffer, buffer), OPENCL_FUNCTION(EnqueueFillBuffer, fill),
    OPENCL_FUNCTION(EnqueueWriteBuffer, write), OPENCL_FUNCTION(EnqueueReadBuffer, read), OPENCL_FUNCTION(EnqueueCopyBuffer, copy),
    OPENCL_FUNCTION(EnqueueNDRangeKernel, launch), OPENCL_FUNCTION(EnqueueMarkerWithWaitList, marker), OPENCL_FUNCTION(Flush, flush),
    OPENCL_FUNCTION(Finish, finish), OPENCL_FUNCTION(WaitForEvents, wait), OPENCL_FUNCTION(ReleaseEvent, release_event),
    OPENCL_FUNCTION(ReleaseMemObject, release_buffer), OPENCL_FUNCTION(ReleaseKernel, release_kernel),
    OPENCL_FUNCTION(ReleaseProgram, release_program), OPENCL_FUNCTION(ReleaseCommandQueue, release_queue),
    OPENCL_FUNCTION(ReleaseContext, release_context),
};

// A copy of the second queue.
struct opencl_begun {
  u64 written;
  void *event;
};

struct opencl {
  struct opencl_functions cl;
  void *device, *context, *queue, *early, *program, *report;
  void **kernels;
  u64 memory_bytes, largest_bytes, type;
  u32 units;
  struct opencl_begun *begun;
  u32 begun_count, begun_room;
};

// All devices of the machine, platform by platform; their places are the ids.
struct opencl_machine {
  void *devices[OPENCL_DEVICES];
  u32 count;
};

static const char *opencl_failure(const char *call, i32 code) { return TEXT("%s: error %d of OpenCL", call, code); }

// Notes that a call failed; the device is lost then.
static bool opencl_good(struct open_device *device, const char *call, i32 code, error *error) {
  return !code || device_lost(device, opencl_failure(call, code), error);
}

static bool find_opencl(struct opencl *cl, struct opencl_machine *machine, const struct opening *opening, error *error) {
  void *platforms[OPENCL_PLATFORMS];
  u32 count = 0, found = 0;
  const char *why = open_driver("INGOT_OPENCL_LIBRARY", "libOpenCL.so.1", opencl_names, COUNT_OF(opencl_names), &cl->cl);
  i32 code = *why ? 0 : cl->cl.platforms(OPENCL_PLATFORMS, platforms, &count);
  if (code) why = code == CL_NO_PLATFORM ? "no platform of OpenCL" : opencl_failure("clGetPlatformIDs", code);
  if (*why) return refuse_opening(TEXT("device %s needs an OpenCL driver", quoted(opening->name)), opening, why, OPENCL_INSTALL, error);
  for (u32 index = 0; index < count && index < OPENCL_PLATFORMS; index++) {
    u32 room = OPENCL_DEVICES - machine->count;
    if (room && !cl->cl.devices(platforms[index], (u64)CL_ALL, room, machine->devices + machine->count, &found))
      machine->count += found < room ? found : room;
  }
  return true;
}

// A text that the driver tells of a device; "" where it tells none.
static const char *opencl_text(const struct opencl *cl, void *device, u32 what, struct arena *arena, error *error) {
  size_t size = 0;
  if (cl->cl.info(device, what, 0, NULL, &size)) return "";
  char *text = arena_take(arena, size + 1, error);
  return text && !cl->cl.info(device, what, size, text, NULL) ? text : "";
}

static bool refuse_opencl_id(const struct opencl *cl, const struct opencl_machine *machine, i64 id, const struct opening *opening, error *error) {
  char here[TEXT_BYTES] = "";
  for (u32 index = 0; index < machine->count; index++)
    append(here, "%sopencl:%u (%s)", index ? ", " : "", index, opencl_text(cl, machine->devices[index], CL_NAME, opening->arena, error));
  const char *why = TEXT("device %s wants opencl:%lld; there are: %s", quoted(opening->name), NUMBER(id), *here ? here : "none");
  const char *todo = machine->count ? TEXT("map it: --device %s=opencl:0", opening->name) : OPENCL_INSTALL;
  return refuse_opening(TEXT("no device opencl:%lld here", NUMBER(id)), opening, why, todo, error);
}

// Whether `name` is a word of `words`.
static bool has_word(const char *words, const char *name, size_t size) {
  for (; *words; words += *words == ' ') {
    size_t found = size_until(words, ' ');
    if (found == size && !memcmp(words, name, size)) return true;
    words += found;
  }
  return false;
}

// The head: our name, then those of extensions. Returns the first that is no such name, and of those that `has` lacks a list.
static bool read_extensions(const struct table *table, const char *has, char *missing, error *error) {
  const char *blank = " \t\r\v\f\x1c\x1d\x1e\x1f", *at = table->lines;
  if (strncmp(at, OPENCL_HEAD, sizeof OPENCL_HEAD - 1)) return bad_head(table, OPENCL_HEAD, error);
  for (at += sizeof OPENCL_HEAD - 1, at += span(at, blank); *at; at += span(at, blank)) {
    size_t size = span(at, WORD_LETTERS "0123456789");
    bool is_name = size > 3 && size <= EXTENSION_MAX && !strncmp(at, "cl_", 3) && (!at[size] || find_char(blank, at[size]));
    if (!is_name) return bad_head(table, OPENCL_HEAD, error);
    if (has && !has_word(has, at, size)) append(missing, "%s%.*s", *missing ? ", " : "", (int)size, at);
    at += size;
  }
  return true;
}

static bool require_extensions(struct opencl *cl, const struct table *table, i64 id, const struct opening *opening, error *error) {
  char missing[TEXT_BYTES] = "";
  const char *has = opencl_text(cl, cl->device, CL_EXTENSIONS, opening->arena, error);
  if (!read_extensions(table, has, missing, error) || !*missing) return !error->kind;
  const char *name = opencl_text(cl, cl->device, CL_NAME, opening->arena, error);
  return refuse_opening(TEXT("device %s cannot run its library here", quoted(opening->name)), opening,
                       TEXT("opencl:%lld (%s) lacks %s", NUMBER(id), name, missing), "use another device, or the host", error);
}

// The first lines of the driver's long text that tell of errors.
static const char *opencl_log(const struct opencl *cl, void *program, i32 code, const struct opening *opening, error *error) {
  size_t size = 0;
  cl->cl.build_info(program, cl->device, CL_LOG, 0, NULL, &size);
  char *log = arena_take(opening->arena, size + 1, error);
  if (!log || !size || cl->cl.build_info(program, cl->device, CL_LOG, size, log, NULL)) return opencl_failure("clBuildProgram", code);
  const char *found = find_text(log, "error");
  while (found && found > log && found[-1] != '\n') found--;
  if (!found) found = log;
  return TEXT("%.*s", (int)size_until(found, '\n'), found);
}

static bool refuse_build(const struct opening *opening, const char *why, error *error) {
  return refuse_opening("the driver does not compile a library of OpenCL C", opening, why, "use another driver, or put these nodes on the host", error);
}

static bool build_opencl(struct open_device *device, struct opencl *cl, const struct table *table, const struct opening *opening, error *error) {
  const char *source = table->text;
  i32 code = 0;
  if (!device->kernel_count) return true;
  cl->program = cl->cl.program(cl->context, 1, &source, NULL, &code);
  if (!code) code = cl->cl.build(cl->program, 1, &cl->device, OPENCL_OPTIONS, NULL, NULL);
  if (code) return refuse_build(opening, cl->program ? opencl_log(cl, cl->program, code, opening, error) : opencl_failure("clCreateProgramWithSource", code), error);
  cl->kernels = arena_take(opening->arena, device->kernel_count * sizeof *cl->kernels, error);
  for (u32 index = 0; index < device->kernel_count && !error->kind; index++) {
    cl->kernels[index] = cl->cl.kernel(cl->program, device->rows[index].name, &code);
    if (code) return refuse_build(opening, opencl_failure(TEXT("clCreateKernel of %s", device->rows[index].name), code), error);
  }
  return !error->kind;
}

static void *opencl_zeros(struct opencl *cl, u64 size, const char **why) {
  i32 code = 0;
  void *buffer = cl->cl.buffer(cl->context, CL_READ_WRITE, size, NULL, &code);
  if (code) *why = opencl_failure("clCreateBuffer", code);
  if (code) return NULL;
  code = cl->cl.fill(cl->queue, buffer, "", 1, 0, size, 0, NULL, NULL);
  if (!code) return buffer;
  *why = opencl_failure("clEnqueueFillBuffer", code);
  cl->cl.release_buffer(buffer);
  return NULL;
}

static void read_opencl_limits(struct opencl *cl) {
  cl->cl.info(cl->device, CL_MEMORY, sizeof cl->memory_bytes, &cl->memory_bytes, NULL);
  cl->cl.info(cl->device, CL_LARGEST, sizeof cl->largest_bytes, &cl->largest_bytes, NULL);
  cl->cl.info(cl->device, CL_TYPE, sizeof cl->type, &cl->type, NULL);
  cl->cl.info(cl->device, CL_UNITS, sizeof cl->units, &cl->units, NULL);
  if (!cl->units) cl->units = 1;
}

static bool make_queues(struct opencl *cl, const struct opening *opening, error *error) {
  i32 code = 0;
  const char *why = "";
  cl->context = cl->cl.context(NULL, 1, &cl->device, NULL, NULL, &code);
  if (!code) cl->queue = cl->cl.queue(cl->context, cl->device, 0, &code);
  if (!code) cl->early = cl->cl.queue(cl->context, cl->device, 0, &code);
  if (code) why = opencl_failure("clCreateContext", code);
  else cl->report = opencl_zeros(cl, REPORT_BYTES, &why);
  return !*why || refuse_opening(TEXT("device %s cannot be opened", quoted(opening->name)), opening, why, "see what uses the device", error);
}

static void release_queues(struct opencl *cl) {
  if (cl->report) cl->cl.release_buffer(cl->report);
  if (cl->early) cl->cl.release_queue(cl->early);
  if (cl->queue) cl->cl.release_queue(cl->queue);
  if (cl->context) cl->cl.release_context(cl->context);
}

// Runs the trial's kernel, which writes where kernels report.
static const char *run_trial(struct opencl *cl, void *kernel) {
  i32 found[TRIAL_ITEMS] = {0};
  size_t items = TRIAL_ITEMS, one = 1;
  i32 code = cl->cl.argument(kernel, 0, sizeof cl->report, &cl->report);
  if (!code) code = cl->cl.launch(cl->queue, kernel, 1, NULL, &items, &one, 0, NULL, NULL);
  if (!code) code = cl->cl.read(cl->queue, cl->report, 1, 0, sizeof found, found, 0, NULL, NULL);
  if (!code) code = cl->cl.fill(cl->queue, cl->report, "", 1, 0, REPORT_BYTES, 0, NULL, NULL);
  if (code) return opencl_failure(TRIAL, code);
  for (i32 index = 0; index < TRIAL_ITEMS; index++)
    if (found[index] != 3 * index + 7) return TEXT(TRIAL ": expected %d at %d, got %d", 3 * index + 7, index, found[index]);
  return "";
}

// Builds and runs a kernel of one line; returns why not, "" where it is right. There are drivers that are installed and compile nothing.
static const char *try_opencl(struct opencl *cl, const struct opening *opening, error *error) {
  const char *source = TRIAL_SOURCE, *why = "";
  i32 code = 0;
  void *kernel = NULL, *program = cl->cl.program(cl->context, 1, &source, NULL, &code);
  if (code) return opencl_failure("clCreateProgramWithSource", code);
  code = cl->cl.build(program, 1, &cl->device, OPENCL_OPTIONS, NULL, NULL);
  if (code) why = opencl_log(cl, program, code, opening, error);
  else kernel = cl->cl.kernel(program, "ingot_trial", &code);
  if (kernel) why = run_trial(cl, kernel), cl->cl.release_kernel(kernel);
  else if (!*why) why = opencl_failure("clCreateKernel of " TRIAL, code);
  cl->cl.release_program(program);
  return why;
}

// The first other device of the machine whose driver works; how many there are if none does.
static u32 other_opencl(const struct opencl *cl, const struct opencl_machine *machine, const struct opening *opening) {
  u32 index = 0;
  for (; index < machine->count; index++) {
    struct opencl other = {.cl = cl->cl, .device = machine->devices[index]};
    error unsaid = {0};
    bool works = other.device != cl->device && make_queues(&other, opening, &unsaid) && !*try_opencl(&other, opening, &unsaid);
    release_queues(&other);
    if (works) break;
  }
  return index;
}

static bool require_working(struct opencl *cl, const struct opencl_machine *machine, i64 id, const struct opening *opening, error *error) {
  const char *why = try_opencl(cl, opening, error);
  if (!*why) return true;
  u32 other = other_opencl(cl, machine, opening);
  const char *todo = "use another driver: " OPENCL_DRIVERS, *name = opencl_text(cl, cl->device, CL_NAME, opening->arena, error);
  if (other < machine->count) todo = TEXT("map it: --device %s=opencl:%u", opening->name, other);
  why = TEXT("%s, %s: %s", name, opencl_text(cl, cl->device, CL_VERSION, opening->arena, error), why);
  return refuse_opening(TEXT("the driver of opencl:%lld does not work here", NUMBER(id)), opening, why, todo, error);
}

static bool opencl_open(struct open_device *device, i64 id, const struct opening *opening, error *error) {
  struct table table = {.what = "a library of OpenCL C is damaged", .where = opening->where};
  struct opencl_machine machine = {.count = 0};
  struct kernel_row *rows = NULL;
  if (!split_table(&table, opening, OPENCL_HEAD, error) || !read_extensions(&table, NULL, NULL, error)) return false;
  if (!read_rows(&table, next_line(table.lines), table.row_count, false, opening->code->kernel_count, opening->arena, &rows, error)) return false;
  struct opencl *cl = device->state = memory_take(sizeof *cl);
  if (!cl) return no_memory(error, opening->where, "device");
  device->rows = rows, device->kernel_count = opening->code->kernel_count;
  if (!find_opencl(cl, &machine, opening, error)) return false;
  if (id >= machine.count) return refuse_opencl_id(cl, &machine, id, opening, error);
  cl->device = machine.devices[id];
  read_opencl_limits(cl);
  if (!require_extensions(cl, &table, id, opening, error) || !make_queues(cl, opening, error)) return false;
  if (device->kernel_count && !require_working(cl, &machine, id, opening, error)) return false;
  return build_opencl(device, cl, &table, opening, error);
}

static u64 next_opencl_address(u64 size) {
  enum { GAP = 1 << 20 };
  static u64 following = (u64)1 << 61;
  return __atomic_fetch_add(&following, rounded(size, GAP) + GAP, __ATOMIC_RELAXED);
}

static bool opencl_allocate(struct open_device *device, struct device_memory *memory, u64 size, error *error) {
  struct opencl *cl = device->state;
  u64 total = cl->memory_bytes, used = used_bytes(device), left = total - used, room = rounded(size ? size : 1, ALIGNMENT_SMALL_BYTES);
  const char *why = TEXT("%llu of %llu bytes are free, %llu at most in one piece", (unsigned long long)left, (unsigned long long)total,
                         (unsigned long long)cl->largest_bytes);
  if (size > left || size > cl->largest_bytes) return no_device_memory(device, size, why, error);
  void *buffer = opencl_zeros(cl, room, &why);
  if (!buffer) return no_device_memory(device, size, why, error);
  *memory = (struct device_memory){next_opencl_address(room), room, buffer};
  return true;
}

static void opencl_release(struct open_device *device, struct device_memory *memory) {
  struct opencl *cl = device->state;
  cl->cl.release_buffer(memory->handle);
}

static bool opencl_write(struct open_device *device, struct place to, const void *from, u64 size, error *error) {
  struct opencl *cl = device->state;
  return opencl_good(device, "write", cl->cl.write(cl->queue, to.memory->handle, 1, to.at, size, from, 0, NULL, NULL), error);
}

static bool opencl_read(struct open_device *device, void *to, struct place from, u64 size, error *error) {
  struct opencl *cl = device->state;
  return opencl_good(device, "read", cl->cl.read(cl->queue, from.memory->handle, 1, from.at, size, to, 0, NULL, NULL), error);
}

// Room for one more copy of the second queue.
static struct opencl_begun *next_begun(struct open_device *device, struct opencl *cl, u64 written, error *error) {
  if (cl->begun_count == cl->begun_room) {
    u32 room = cl->begun_room ? 2 * cl->begun_room : 16;
    struct opencl_begun *begun = memory_take(room * sizeof *begun);
    if (!begun) return no_memory(error, device->name, "copies"), NULL;
    if (cl->begun_count) memcpy(begun, cl->begun, cl->begun_count * sizeof *begun);
    memory_free(cl->begun);
    cl->begun = begun, cl->begun_room = room;
  }
  cl->begun[cl->begun_count] = (struct opencl_begun){written, NULL};
  return cl->begun + cl->begun_count;
}

// Queues a copy that waits for what was queued before, beside what is queued next; `target`: of the host, else `source` is.
static bool opencl_begin(struct open_device *device, struct place place, void *target, const void *source, u64 size, error *error) {
  struct opencl *cl = device->state;
  void *before = NULL, *buffer = place.memory->handle;
  struct opencl_begun *begun = next_begun(device, cl, target ? (u64)(uintptr_t)target : place.memory->address + place.at, error);
  if (!begun || !opencl_good(device, "copy", cl->cl.marker(cl->queue, 0, NULL, &before), error)) return false;
  i32 code = cl->cl.flush(cl->queue);
  if (!code && target) code = cl->cl.read(cl->early, buffer, 0, place.at, size, target, 1, &before, &begun->event);
  else if (!code) code = cl->cl.write(cl->early, buffer, 0, place.at, size, source, 1, &before, &begun->event);
  cl->begun_count += !code;
  cl->cl.release_event(before);
  return opencl_good(device, "copy", code ? code : cl->cl.flush(cl->early), error);
}

static bool opencl_begin_write(struct open_device *device, struct place to, const void *from, u64 size, error *error) {
  return opencl_begin(device, to, NULL, from, size, error);
}

static bool opencl_begin_read(struct open_device *device, void *to, struct place from, u64 size, error *error) {
  return opencl_begin(device, from, to, NULL, size, error);
}

static bool opencl_end(struct open_device *device, u64 written, error *error) {
  struct opencl *cl = device->state;
  for (u32 index = 0; index < cl->begun_count; index++) {
    void *event = cl->begun[index].event;
    if (cl->begun[index].written != written) continue;
    i32 code = cl->cl.wait(1, &event);
    cl->cl.release_event(event);
    cl->begun[index] = cl->begun[--cl->begun_count];
    return opencl_good(device, "copy", code, error);
  }
  return true;
}

// By way of other memory where the two overlap.
static bool opencl_move(struct open_device *device, struct place to, struct place from, u64 size, error *error) {
  struct opencl *cl = device->state;
  u64 distance = to.at > from.at ? to.at - from.at : from.at - to.at;
  const char *why = "";
  if (to.memory->handle != from.memory->handle || distance >= size)
    return opencl_good(device, "move", cl->cl.copy(cl->queue, from.memory->handle, to.memory->handle, from.at, to.at, size, 0, NULL, NULL), error);
  void *between = opencl_zeros(cl, size, &why);
  if (!between) return no_device_memory(device, size, why, error);
  i32 code = cl->cl.copy(cl->queue, from.memory->handle, between, from.at, 0, size, 0, NULL, NULL);
  if (!code) code = cl->cl.copy(cl->queue, between, to.memory->handle, 0, to.at, size, 0, NULL, NULL);
  cl->cl.release_buffer(between);  // the driver keeps it until that is done
  return opencl_good(device, "move", code, error);
}

// How many units a work item runs.
static i64 opencl_share(const struct opencl *cl, bool has_scratch, i64 extent, i64 grain) {
  i64 most = extent, busy = (i64)cl->units * ITEMS_PER_UNIT, worth = extent / grain + (extent % grain > 0);
  if (has_scratch) most = SCRATCH_ITEMS;
  else if (cl->type & CL_CPU) most = busy < worth ? busy : worth;
  return extent / most + (extent % most > 0);
}

static i32 put_buffer(const struct opencl *cl, void *kernel, u32 *at, struct place place) {
  i32 code = cl->cl.argument(kernel, (*at)++, sizeof place.memory->handle, &place.memory->handle);
  return code ? code : cl->cl.argument(kernel, (*at)++, sizeof place.at, &place.at);
}

static i32 put_arguments(const struct opencl *cl, void *kernel, const struct launch *launch, i64 share) {
  u32 at = 0, last = launch->buffer_count - 1;
  i32 code = 0;
  for (u32 index = 0; index < last && !code; index++) code = put_buffer(cl, kernel, &at, launch->places[index]);
  for (u32 index = 0; index < launch->scalar_count && !code; index++) code = cl->cl.argument(kernel, at++, 8, launch->scalars + index);
  if (!code) code = put_buffer(cl, kernel, &at, launch->places[last]);
  if (!code) code = cl->cl.argument(kernel, at++, sizeof cl->report, &cl->report);
  if (!code) code = cl->cl.argument(kernel, at++, 8, &launch->extent);
  return code ? code : cl->cl.argument(kernel, at, 8, &share);
}

static bool opencl_launch(struct open_device *device, const struct launch *launch, i32 *code, error *error) {
  struct opencl *cl = device->state;
  const struct kernel_row *row = device->rows + launch->kernel;
  i64 share = opencl_share(cl, row->has_scratch, launch->extent, launch->grain);
  size_t items = (size_t)(launch->extent / share + (launch->extent % share > 0)), one = 1;
  i32 failed = put_arguments(cl, cl->kernels[launch->kernel], launch, share);
  if (!failed) failed = cl->cl.launch(cl->queue, cl->kernels[launch->kernel], 1, NULL, &items, &one, 0, NULL, NULL);
  if (!failed && row->reports) failed = cl->cl.read(cl->queue, cl->report, 1, 0, sizeof *code, code, 0, NULL, NULL);
  if (!failed && *code) failed = cl->cl.fill(cl->queue, cl->report, "", 1, 0, REPORT_BYTES, 0, NULL, NULL);
  return opencl_good(device, "launch", failed, error);
}

static bool opencl_wait(struct open_device *device, error *error) {
  struct opencl *cl = device->state;
  i32 code = cl->cl.finish(cl->queue), early = cl->cl.finish(cl->early);  // a copy may be under way in one where the other failed
  while (cl->begun_count) cl->cl.release_event(cl->begun[--cl->begun_count].event);
  return opencl_good(device, "wait", code ? code : early, error);
}

static void opencl_close(struct open_device *device) {
  struct opencl *cl = device->state;
  if (cl->queue) cl->cl.finish(cl->queue);
  if (cl->early) cl->cl.finish(cl->early);
  while (cl->begun_count) cl->cl.release_event(cl->begun[--cl->begun_count].event);
  for (u32 index = 0; cl->kernels && index < device->kernel_count; index++)
    if (cl->kernels[index]) cl->cl.release_kernel(cl->kernels[index]);
  if (cl->program) cl->cl.release_program(cl->program);
  release_queues(cl);
  memory_free(cl->begun);
  memory_free(cl);
}

static const struct device_kind opencl_kind = {
    .name = "opencl", .open = opencl_open, .allocate = opencl_allocate, .release = opencl_release, .write = opencl_write, .read = opencl_read,
    .begin_write = opencl_begin_write, .begin_read = opencl_begin_read, .end = opencl_end, .move = opencl_move, .launch = opencl_launch,
    .wait = opencl_wait, .close = opencl_close,
};
