// Devices made of the host's processor, with memory of their own: `cpu` and `null`.
//
// In: a library section, which is an image for the host. Out: what `device.h` asks. Not done here: the kinds (one file each), speed: one
// thread runs a kernel.
//
// Memory has no rights but while an operation names it, and a gap behind it: an access by anybody else ends the process.
#include "device.h"

enum { HOST_MEMORY_ID_COUNT = 16, HUGE_PAGE = 1 << 21 };
static const u64 host_memory_bytes = (u64)1 << 40;

// What is reserved for an allocation: more than it has.
struct reserved {
  void *area;
  u64 size;
};

static bool refuse_id(const char *kind, i64 id, const struct opening *opening, error *error) {
  const char *wanted = TEXT("%s:%lld", kind, NUMBER(id));
  const char *why = TEXT("device %s wants %s; there are %s:0 to %s:%d", quoted(opening->name), wanted, kind, kind, HOST_MEMORY_ID_COUNT - 1);
  return refuse_opening(TEXT("no device %s here", wanted), opening, why, TEXT("map it: --device %s=%s:0", opening->name, kind), error);
}

// Maps the code of a library for the processor, checked alone.
static bool map_library(const struct bytes *data, u32 kernel_count, struct image *image, const char *where, error *error) {
  if (!check_image_head(data, kernel_count, where, error) || !check_exports(data, kernel_count, true, where, error)) return false;
  memcpy(image->exports, data->data + 4 * IMAGE_HEAD_WORDS, sizeof image->exports);
  return map_image(data, image, error);
}

static bool host_memory_open(struct open_device *device, i64 id, const struct opening *opening, error *error) {
  struct machine machine;
  char missing[TEXT_BYTES];
  struct bytes data = {(u8 *)(uintptr_t)opening->data, opening->size};
  if (id >= HOST_MEMORY_ID_COUNT) return refuse_id(device->kind->name, id, opening, error);
  read_bits(machine.has);
  if (missing_features(opening->code->target, &opening->code->features, &machine, missing)) {
    const char *why = TEXT("code for %s needs %s, which this machine lacks", opening->code->target, missing);
    return refuse_opening(TEXT("device %s cannot run its library here", quoted(opening->name)), opening, why, "compile for this machine", error);
  }
  struct image *image = memory_take(sizeof *image);
  if (!image) return no_memory(error, opening->where, "image");
  device->state = image, device->kernel_count = opening->code->kernel_count;
  return map_library(&data, device->kernel_count, image, opening->where, error);
}

static bool host_memory_allocate(struct open_device *device, struct device_memory *memory, u64 size, error *error) {
  u64 page = page_bytes(), unit = size >= HUGE_PAGE ? HUGE_PAGE : page, used = used_bytes(device);
  if (size > host_memory_bytes - used) {
    const char *why = TEXT("%llu of %llu bytes are in use", (unsigned long long)used, (unsigned long long)host_memory_bytes);
    return no_device_memory(device, size, why, error);
  }
  size = rounded(size ? size : 1, unit);
  struct reserved *reserved = memory_take(sizeof *reserved);
  if (!reserved) return no_memory(error, device->name, "allocation");
  reserved->size = size + unit;
  reserved->area = mmap(NULL, reserved->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved->area == MAP_FAILED) {
    memory_free(reserved);
    return refuse(error, INGOT_RESOURCE_ERROR, "the system refused mmap", TEXT("%llu bytes", (unsigned long long)size), failure_words(errno), FREE_MEMORY);
  }
  *memory = (struct device_memory){rounded((u64)(uintptr_t)reserved->area, unit), size, reserved};
  if (unit == HUGE_PAGE) madvise((void *)(uintptr_t)memory->address, size, MADV_HUGEPAGE);
  return true;
}

static void host_memory_release(struct open_device *device, struct device_memory *memory) {
  struct reserved *reserved = memory->handle;
  (void)device;
  munmap(reserved->area, reserved->size);
  memory_free(reserved);
}

static bool set_rights(struct open_device *device, const struct place *places, u32 count, int rights, error *error) {
  for (u32 index = 0; index < count; index++) {
    const struct device_memory *memory = places[index].memory;
    if (mprotect((void *)(uintptr_t)memory->address, memory->size, rights)) return device_lost(device, TEXT("mprotect: %s", failure_words(errno)), error);
  }
  return true;
}

static bool copy_open(struct open_device *device, const struct place *places, u32 count, void *to, const void *from, u64 size, error *error) {
  bool good = set_rights(device, places, count, PROT_READ | PROT_WRITE, error);
  if (good) memmove(to, from, size);
  return set_rights(device, places, count, PROT_NONE, error) && good;
}

static void *host_address(struct place place) { return (void *)(uintptr_t)(place.memory->address + place.at); }

static bool host_memory_write(struct open_device *device, struct place to, const void *from, u64 size, error *error) {
  return copy_open(device, &to, 1, host_address(to), from, size, error);
}

static bool host_memory_read(struct open_device *device, void *to, struct place from, u64 size, error *error) {
  return copy_open(device, &from, 1, to, host_address(from), size, error);
}

static bool host_memory_move(struct open_device *device, struct place to, struct place from, u64 size, error *error) {
  struct place places[] = {to, from};
  return copy_open(device, places, 2, host_address(to), host_address(from), size, error);
}

static bool host_memory_launch(struct open_device *device, const struct launch *launch, i32 *code, error *error) {
  struct image *image = device->state;
  launch_function *function = (launch_function *)(void *)(image->base + image->exports[EXPORT_LAUNCH]);
  i64 none = 0, *scalars = launch->scalar_count ? (i64 *)(uintptr_t)launch->scalars : &none;
  u64 *buffers = (u64 *)(uintptr_t)launch->buffers;
  u32 kernel, last = launch->buffer_count - 1;
  memcpy(&kernel, image->base + 4 * (IMAGE_HEAD_WORDS + EXPORT_COUNT + (u64)launch->kernel), 4);
  if (set_rights(device, launch->places, launch->buffer_count, PROT_READ | PROT_WRITE, error))
    *code = function(NULL, image->base + kernel, buffers, scalars, launch->extent, launch->grain, (void *)(uintptr_t)buffers[last], 0,
                     (void *)(uintptr_t)launch->watch);
  return set_rights(device, launch->places, launch->buffer_count, PROT_NONE, error) && !error->kind;
}

static bool host_memory_wait(struct open_device *device, error *error) { return (void)device, !error->kind; }

static void host_memory_close(struct open_device *device) {
  unmap_image(device->state);
  memory_free(device->state);
}

#define HOST_MEMORY_KIND(kind_name)                                                                                                         \
  {                                                                                                                                         \
      .name = kind_name, .runs_host_code = true, .open = host_memory_open, .allocate = host_memory_allocate, .release = host_memory_release, \
      .write = host_memory_write, .read = host_memory_read, .move = host_memory_move, .launch = host_memory_launch,                          \
      .wait = host_memory_wait, .close = host_memory_close,                                                                                  \
  }
