// A driver of OpenCL that is installed and compiles nothing, as one is whose compiler does not know the processor.
//
// In: what loaders of drivers ask, what ours ask up to a build. BROKEN_OPENCL: "crash" ends the process in the build. Out: one platform with
// one device. Not done here: everything else, which fails.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int32_t i32;
typedef uint32_t u32;
typedef uint64_t u64;

enum { BUILD_FAILED = -11, NO_VALUE = -30, NOT_THERE = -59, FUNCTIONS = 160 };
enum { PLATFORM_VERSION = 0x901, PLATFORM_SUFFIX = 0x920, DEVICE_PLATFORM = 0x1031, DEVICE_VERSION = 0x102f, DEVICE_NAME = 0x102b, DEVICE_COUNT = 0x1162 };

// Every object of the driver begins with the table of its functions.
struct object {
  void *const *functions;
};
static void *functions[FUNCTIONS];
static struct object platform = {functions}, device = {functions}, made = {functions};

static i32 fails(void) { return NOT_THERE; }
static i32 good(void) { return 0; }

static i32 give(const void *value, size_t size, size_t room, void *out, size_t *needed) {
  if (needed) *needed = size;
  if (out && room < size) return NO_VALUE;
  if (out) memcpy(out, value, size);
  return 0;
}

static i32 give_text(const char *text, size_t room, void *out, size_t *needed) { return give(text, strlen(text) + 1, room, out, needed); }

static i32 platforms(u32 room, struct object **out, u32 *count) {
  if (count) *count = 1;
  if (out && room) *out = &platform;
  return 0;
}

static i32 platform_info(void *asked, u32 what, size_t room, void *out, size_t *needed) {
  (void)asked;
  if (what == PLATFORM_SUFFIX) return give_text("BROKEN", room, out, needed);
  return give_text(what == PLATFORM_VERSION ? "OpenCL 1.2 broken" : "cl_khr_icd", room, out, needed);
}

static i32 devices(void *asked, u64 type, u32 room, struct object **out, u32 *count) {
  (void)asked, (void)type;
  if (count) *count = 1;
  if (out && room) *out = &device;
  return 0;
}

static i32 device_info(void *asked, u32 what, size_t room, void *out, size_t *needed) {
  const struct object *owner = &platform;
  u64 number = 1;
  (void)asked;
  if (what == DEVICE_PLATFORM) return give(&owner, sizeof owner, room, out, needed);
  if (what == DEVICE_NAME) return give_text("generic", room, out, needed);
  if (what == DEVICE_VERSION) return give_text("OpenCL 1.2 broken", room, out, needed);
  return out && room < sizeof number ? give(&number, room, room, out, needed) : give(&number, sizeof number, room, out, needed);
}

// Of contexts and programs: their devices.
static i32 its_devices(void *asked, u32 what, size_t room, void *out, size_t *needed) {
  const struct object *owner = &device;
  const u32 one = 1;
  (void)asked;
  return what == DEVICE_COUNT ? give(&one, sizeof one, room, out, needed) : give(&owner, sizeof owner, room, out, needed);
}

// The last parameter of what makes something is the place of its error code.
static void *context(const void *a, u32 b, void *c, void *d, void *e, i32 *code) {
  (void)a, (void)b, (void)c, (void)d, (void)e;
  return code ? *code = 0, &made : &made;
}

static void *queue(void *a, void *b, u64 c, i32 *code) {
  (void)a, (void)b, (void)c;
  return code ? *code = 0, &made : &made;
}

static void *buffer(void *a, u64 b, size_t c, void *d, i32 *code) {
  (void)a, (void)b, (void)c, (void)d;
  return code ? *code = 0, &made : &made;
}

static void *program(void *a, u32 b, const char **c, const size_t *d, i32 *code) {
  (void)a, (void)b, (void)c, (void)d;
  return code ? *code = 0, &made : &made;
}

static i32 build(void) {
  const char *mode = getenv("BROKEN_OPENCL");
  if (mode && !strcmp(mode, "crash")) abort();
  return BUILD_FAILED;
}

static i32 build_info(void *a, void *b, u32 what, size_t room, void *out, size_t *needed) {
  enum { LOG = 0x1183 };
  (void)a, (void)b;
  if (what == LOG) return give_text("warning: none\nerror: unknown target CPU 'generic'\n", room, out, needed);
  return NO_VALUE;
}

// Their places in the table of functions, which all drivers share.
static void fill(void) {
  const int all_good[] = {6, 7, 10, 11, 17, 18, 28, 29, 46, 47, 94, 95, 102};
  for (int at = 0; at < FUNCTIONS; at++) functions[at] = (void *)fails;
  for (size_t at = 0; at < sizeof all_good / sizeof *all_good; at++) functions[all_good[at]] = (void *)good;
  functions[0] = (void *)platforms, functions[1] = (void *)platform_info, functions[2] = (void *)devices, functions[3] = (void *)device_info;
  functions[4] = (void *)context, functions[8] = (void *)its_devices, functions[9] = (void *)queue, functions[14] = (void *)buffer;
  functions[26] = (void *)program, functions[32] = (void *)its_devices, functions[30] = (void *)build, functions[33] = (void *)build_info;
}

i32 clGetPlatformInfo(void *asked, u32 what, size_t room, void *out, size_t *needed) { return platform_info(asked, what, room, out, needed); }

void *clGetExtensionFunctionAddress(const char *name) {
  fill();
  return strcmp(name, "clIcdGetPlatformIDsKHR") ? NULL : (void *)platforms;
}
