// What every kind of device beside the host must do, however it does it: the same as `ingot_runtime_devices/device.py` asks.
//
// In: `internal.h`. Out: the structs. Not done here: any kind (one file each, a line for each in `kinds.c`), what all have in common
// (`device.c`), sessions (`attach.c`).
#pragma once
#include "internal.h"

struct open_device;

// Zeroed memory of a device, from a multiple of 64 on. Addresses are the device's own; `handle` is what the kind keeps of it.
struct device_memory {
  u64 address, size;
  void *handle;
};

// A byte of an allocation.
struct place {
  const struct device_memory *memory;
  u64 at;
};

// A launch whose kernel, counts and addresses were checked; the last of `places` is scratch.
struct launch {
  u32 kernel, buffer_count, scalar_count;
  const u64 *buffers;
  const struct place *places;
  const i64 *scalars;
  i64 extent, grain;
  const struct watch *watch;
};

// What a device is opened with: the code of a virtual device, and where errors say that it lies.
struct opening {
  const char *name, *where;
  const struct library_plan *code;
  const u8 *data;
  u64 size;
  struct arena *arena;
};

// One kind. `open` sets `state`, `kernels` and perhaps `rows`, and refuses what is not here with INGOT_INCOMPATIBLE_ERROR; the others are
// called with the lock of the device held, on checked addresses. What a driver refuses is told by `device_lost`.
struct device_kind {
  const char *name;
  bool runs_host_code;
  bool (*open)(struct open_device *device, i64 id, const struct opening *opening, error *error);
  bool (*allocate)(struct open_device *device, struct device_memory *memory, u64 size, error *error);
  void (*release)(struct open_device *device, struct device_memory *memory);
  bool (*write)(struct open_device *device, struct place to, const void *from, u64 size, error *error);
  bool (*read)(struct open_device *device, void *to, struct place from, u64 size, error *error);
  // As write and read, but done only when `end` was called with the address that is written; null: as write and read.
  bool (*begin_write)(struct open_device *device, struct place to, const void *from, u64 size, error *error);
  bool (*begin_read)(struct open_device *device, void *to, struct place from, u64 size, error *error);
  bool (*end)(struct open_device *device, u64 written, error *error);
  bool (*move)(struct open_device *device, struct place to, struct place from, u64 size, error *error);
  // May return before it is done, where the kernel reports no code.
  bool (*launch)(struct open_device *device, const struct launch *launch, i32 *code, error *error);
  bool (*wait)(struct open_device *device, error *error);
  void (*close)(struct open_device *device);
};

// A kernel of a library that is a table: `reports` a code; no more may run it at once than its scratch has places for.
struct kernel_row {
  const char *name;
  u32 buffer_count, scalar_count, block_threads;
  bool reports, has_scratch;
};

// An open device. All sessions of a bundle share it: its calls are made one after the other.
struct open_device {
  const struct device_kind *kind;
  i64 id;
  char name[32];    // kind:id
  char ended[512];  // why it refuses everything; "" while it does not
  u32 lock;
  u32 kernel_count;
  const struct kernel_row *rows;  // null: kernels take any arguments
  struct device_memory *memories;
  u32 memory_count, memory_room;
  void *state;
};
