// What all kinds of devices have in common: their allocations, the check of what is asked before it is done, the end of those that failed.
//
// In: an open device, addresses. Out: what its kind does with them. Not done here: any kind (`kinds.c`).
#include "device.h"

// Refuses to open a device: this machine lacks what is asked for.
static bool refuse_opening(const char *what, const struct opening *opening, const char *why, const char *todo, error *error) {
  return refuse(error, INGOT_INCOMPATIBLE_ERROR, what, opening->where, why, todo);
}

static bool device_refuses(struct open_device *device, const char *what, const char *why, error *error) {
  return refuse(error, INGOT_DEVICE_ERROR, TEXT("a device refuses %s", what), device->name, why, "");
}

static bool require_open(struct open_device *device, error *error) {
  return !*device->ended || refuse(error, INGOT_DEVICE_ERROR, "a device does not answer", device->name, device->ended, "load the bundle again");
}

// A driver that fails is lost, to all sessions. What it was asked before may still write to memory of theirs: it is waited for.
static bool device_lost(struct open_device *device, const char *why, error *error) {
  struct ingot_error ignored = {0};
  bool is_first = !*device->ended;
  if (is_first) WRITE(device->ended, "the device is lost: %s", why);
  if (is_first) device->kind->wait(device, &ignored);
  return require_open(device, error);
}

static bool no_device_memory(struct open_device *device, u64 size, const char *why, error *error) {
  const char *where = TEXT("%llu bytes", (unsigned long long)size);
  return refuse(error, INGOT_RESOURCE_ERROR, TEXT("not enough memory on device %s", device->name), where, why, "use smaller shapes");
}

static u64 used_bytes(const struct open_device *device) {
  u64 used = 0;
  for (u32 index = 0; index < device->memory_count; index++) used += device->memories[index].size;
  return used;
}

// The allocation that holds these bytes, and where in it. One of no bytes may be at the very end.
static bool find_place(struct open_device *device, const char *what, u64 address, u64 size, struct place *place, error *error) {
  if (!require_open(device, error)) return false;
  for (u32 index = 0; index < device->memory_count; index++) {
    const struct device_memory *memory = device->memories + index;
    u64 at = address - memory->address;
    if (address < memory->address || at > memory->size || size > memory->size - at) continue;
    return *place = (struct place){memory, at}, true;
  }
  const char *why = TEXT("%llu bytes at 0x%llx are not in its memory", (unsigned long long)size, (unsigned long long)address);
  return device_refuses(device, what, why, error);
}

static bool room_for_memory(struct open_device *device, error *error) {
  if (device->memory_count < device->memory_room) return true;
  u32 room = device->memory_room ? 2 * device->memory_room : 16;
  struct device_memory *memories = memory_take(room * sizeof *memories);
  if (!memories) return no_memory(error, device->name, "allocations");
  if (device->memory_count) memcpy(memories, device->memories, device->memory_count * sizeof *memories);
  memory_free(device->memories);
  device->memories = memories, device->memory_room = room;
  return true;
}

// Makes zeroed memory of at least `size` bytes.
static bool device_allocate(struct open_device *device, u64 size, struct device_memory *made, error *error) {
  lock(&device->lock);
  bool good = require_open(device, error) && room_for_memory(device, error) && device->kind->allocate(device, made, size, error);
  if (good) device->memories[device->memory_count++] = *made;
  unlock(&device->lock);
  return good;
}

static void device_free(struct open_device *device, u64 address) {
  lock(&device->lock);
  for (u32 index = 0; index < device->memory_count; index++) {
    if (device->memories[index].address != address) continue;
    device->kind->release(device, device->memories + index);
    device->memories[index] = device->memories[--device->memory_count];
    break;
  }
  unlock(&device->lock);
}

// Copies from the host; `begins`: it may end later, by `device_end`.
static bool device_write(struct open_device *device, u64 to, const void *from, u64 size, bool begins, error *error) {
  struct place place;
  lock(&device->lock);
  bool good = find_place(device, "write", to, size, &place, error);
  if (good && size) good = (begins && device->kind->begin_write ? device->kind->begin_write : device->kind->write)(device, place, from, size, error);
  unlock(&device->lock);
  return good;
}

// Copies to the host, likewise.
static bool device_read(struct open_device *device, void *to, u64 from, u64 size, bool begins, error *error) {
  struct place place;
  lock(&device->lock);
  bool good = find_place(device, "read", from, size, &place, error);
  if (good && size) good = (begins && device->kind->begin_read ? device->kind->begin_read : device->kind->read)(device, to, place, size, error);
  unlock(&device->lock);
  return good;
}

// Waits until what was begun into `written` is there.
static bool device_end(struct open_device *device, u64 written, error *error) {
  lock(&device->lock);
  bool good = require_open(device, error) && (!device->kind->end || device->kind->end(device, written, error));
  unlock(&device->lock);
  return good;
}

// Copies within the device; the two may overlap.
static bool device_move(struct open_device *device, u64 to, u64 from, u64 size, error *error) {
  struct place target, source;
  lock(&device->lock);
  bool good = find_place(device, "move", to, size, &target, error) && find_place(device, "move", from, size, &source, error);
  if (good && size && to != from) good = device->kind->move(device, target, source, size, error);
  unlock(&device->lock);
  return good;
}

static bool require_arguments(struct open_device *device, const struct launch *launch, error *error) {
  bool aligned = launch->buffer_count > 0;
  for (u32 index = 0; index < launch->buffer_count; index++) aligned = aligned && launch->buffers[index] % ALIGNMENT_SMALL_BYTES == 0;
  if (!aligned)
    return device_refuses(device, "launch", TEXT("its buffers, the last of which is scratch, must lie at multiples of %d", ALIGNMENT_SMALL_BYTES), error);
  const struct kernel_row *row = device->rows ? device->rows + launch->kernel : NULL;
  if (!row || (launch->buffer_count == row->buffer_count + 1 && launch->scalar_count == row->scalar_count)) return true;
  const char *expected = TEXT("kernel %u takes %u buffers and %u scalars", launch->kernel, row->buffer_count + 1, row->scalar_count);
  return device_refuses(device, "launch", TEXT("%s, got %u and %u", expected, launch->buffer_count, launch->scalar_count), error);
}

static bool require_code(struct open_device *device, u32 kernel, i32 code, error *error) {
  if (!code || code == RC_CANCELLED || code >= RC_REQUIREMENT) return true;
  return device_refuses(device, "launch", TEXT("kernel %u returns %d", kernel, code), error);
}

static bool launch_checked(struct open_device *device, i64 kernel, struct launch *launch, struct place *places, i32 *code, error *error) {
  if (!require_open(device, error)) return false;
  if (kernel < 0 || kernel >= device->kernel_count)
    return device_refuses(device, "launch", TEXT("kernel %lld of %u", NUMBER(kernel), device->kernel_count), error);
  launch->kernel = (u32)kernel;
  if (launch->extent < 0 || launch->grain < 1)
    return device_refuses(device, "launch", TEXT("extent %lld, grain %lld", NUMBER(launch->extent), NUMBER(launch->grain)), error);
  for (u32 index = 0; index < launch->buffer_count; index++)
    if (!find_place(device, "launch", launch->buffers[index], 0, places + index, error)) return false;
  if (!require_arguments(device, launch, error)) return false;
  launch->places = places;
  if (__atomic_load_n(&launch->watch->cancel, __ATOMIC_RELAXED)) return *code = RC_CANCELLED, true;
  return !launch->extent || (device->kind->launch(device, launch, code, error) && require_code(device, launch->kernel, *code, error));
}

// Runs kernel number `kernel` of the library over its extent: 0, RC_REQUIREMENT + n or RC_CANCELLED.
static bool device_launch(struct open_device *device, i64 kernel, struct launch *launch, i32 *code, error *error) {
  enum { PLACES = 64 };
  struct place own[PLACES], *places = own;
  *code = 0;
  if (launch->buffer_count > PLACES) places = memory_take(launch->buffer_count * sizeof *places);
  if (!places) return no_memory(error, device->name, "arguments");
  lock(&device->lock);
  bool good = launch_checked(device, kernel, launch, places, code, error);
  unlock(&device->lock);
  if (places != own) memory_free(places);
  return good;
}

// Waits for all that was asked; what failed meanwhile is told here.
static bool device_wait(struct open_device *device, error *error) {
  lock(&device->lock);
  bool good = require_open(device, error) && device->kind->wait(device, error);
  unlock(&device->lock);
  return good;
}

static void device_close(struct open_device *device) {
  if (!device) return;
  if (device->state) {
    while (device->memory_count) device->kind->release(device, device->memories + --device->memory_count);
    device->kind->close(device);
  }
  memory_free(device->memories);
  memory_free(device);
}
