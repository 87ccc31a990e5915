// What `main` asks of devices in a call: memory, launches, copies; and what they could not tell it.
//
// In: a session of a bundle whose devices are open. Out: the rows of the device table, what a call came to. Not done here: opening devices
// (`attach.c`), what a device does (`device.c`).
#include "session.h"
//
#include "device.h"

enum { BOUNCE_BYTES = 1 << 20 };

static void device_block_free(struct block *block) { device_free(block->device, ADDRESS(block->data)); }

// Makes `block` memory of device `index` of at least `size` bytes; what was in it is lost.
static bool device_block_fit(ingot_session *session, u32 index, struct block *block, u64 size, error *error) {
  struct open_device *device = session->bundle->devices[index];
  struct device_memory memory;
  if (!device) return block_fit(block, size, error);
  if (block->data && block->size >= size) return true;
  block_free(block);
  if (!device_allocate(device, size, &memory, error)) return false;
  *block = (struct block){.data = (void *)(uintptr_t)memory.address, .size = memory.size, .device = device};
  return true;
}

// Called by `main`: see FORMAT.md, "Image". The first failure of a call is kept; after it nothing is done.
static i32 launch_device(const struct endpoint *endpoint, i32 kernel, const u64 *arguments, i64 buffer_count, i64 scalar_count) {
  ingot_session *session = endpoint->session;
  const i64 *scalars = (const i64 *)(const void *)(arguments + buffer_count);
  struct launch launch = {
      .buffer_count = (u32)buffer_count, .scalar_count = (u32)scalar_count, .buffers = arguments, .scalars = scalars,
      .extent = scalars[scalar_count], .grain = scalars[scalar_count + 1], .watch = &session->watch,
  };
  i32 code = RC_DEVICE;
  if (session->call_error.kind || !device_launch(session->bundle->devices[endpoint->device], kernel, &launch, &code, &session->call_error)) return RC_DEVICE;
  if (code != RC_CANCELLED) return code;
  session->is_cut = true;
  return RC_DEVICE;
}

// Copies from one device to another, by way of the host.
static bool copy_between(struct open_device *there, struct open_device *here, u64 to, u64 from, u64 size, error *error) {
  u64 room = size < BOUNCE_BYTES ? size : BOUNCE_BYTES;
  u8 *bounce = memory_take(room);
  bool good = bounce || no_memory(error, there->name, "copy");
  for (u64 at = 0, part; good && at < size; at += part) {
    part = size - at < room ? size - at : room;
    good = device_read(here, bounce, from + at, part, false, error) && device_write(there, to + at, bounce, part, false, error);
  }
  memory_free(bounce);
  return good;
}

static bool copy_bytes(ingot_session *session, i64 target, i64 source, u64 to, u64 from, i64 bytes, error *error) {
  struct open_device *there = session->bundle->devices[target], *here = session->bundle->devices[source];
  i64 part = bytes > 0 && !(here && there) ? bytes & (COPY_BEGINS | COPY_ENDS) : 0;
  u64 size = (u64)(bytes - part);
  if (part == COPY_ENDS) return there || here ? device_end(there ? there : here, to, error) : true;
  if (bytes < 0)
    return refuse(error, INGOT_DEVICE_ERROR, "a copy of less than nothing", session->bundle->plan.devices[target].name, TEXT("%lld bytes", NUMBER(bytes)), "");
  if (there && here) return there == here ? device_move(there, to, from, size, error) : copy_between(there, here, to, from, size, error);
  if (there) return device_write(there, to, (const void *)(uintptr_t)from, size, part, error);
  if (here) return device_read(here, (void *)(uintptr_t)to, from, size, part, error);
  memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, size);
  return true;
}

// What begins tells its begin alone, and what ends its end.
static void tell_copy(const ingot_session *session, i64 target, i64 source, i64 bytes, i64 is_end) {
  const i64 parts = COPY_BEGINS | COPY_ENDS;
  bool is_told = bytes > 0 && session->profile_copy && (bytes & parts) != (is_end ? COPY_BEGINS : COPY_ENDS);
  if (is_told) session->profile_copy((void *)(uintptr_t)session->call->profile_context, (u32)target, (u32)source, (u64)(bytes & ~parts), is_end);
}

static i32 copy_device(const struct endpoint *endpoint, i64 target, i64 source, u64 to, u64 from, i64 bytes) {
  ingot_session *session = endpoint->session;
  tell_copy(session, target, source, bytes, 0);
  if (!session->call_error.kind) copy_bytes(session, target, source, to, from, bytes, &session->call_error);
  tell_copy(session, target, source, bytes, 1);
  return session->call_error.kind ? RC_DEVICE : RC_OK;
}

// Fills the rows of the devices beside the host.
static void fill_devices(ingot_session *session, struct device *rows) {
  const ingot_bundle *bundle = session->bundle;
  for (u32 index = 0; index < bundle->plan.device_count; index++) {
    const struct open_device *device = bundle->devices[index];
    struct endpoint *endpoint = session->endpoints + index;
    if (!device) continue;
    *endpoint = (struct endpoint){session, index};
    u32 kind = 0;
    while (strcmp(device_kinds[kind], device->kind->name)) kind++;
    rows[index] = (struct device){
        .kind = kind, .id = (u32)device->id, .self = (u64)(uintptr_t)endpoint, .copy = (u64)(uintptr_t)copy_device,
        .launch = (u64)(uintptr_t)launch_device, .weights = bundle->device_weights[index],
    };
  }
}

// Waits for all devices, which may be at work on memory of the user's; returns what a call of `main` came to, with what they could not
// tell it.
static i32 settle_devices(ingot_session *session, i32 code) {
  struct ingot_error failed = {0};
  for (u32 index = 0; index < session->bundle->plan.device_count; index++)
    if (session->bundle->devices[index] && !device_wait(session->bundle->devices[index], &failed) && !session->call_error.kind) session->call_error = failed;
  bool is_cut = session->is_cut;
  session->is_cut = false;
  if (is_cut && code == RC_DEVICE && !session->call_error.kind) return RC_CANCELLED;
  return code ? code : session->call_error.kind ? RC_DEVICE : RC_OK;
}
