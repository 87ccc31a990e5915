// What all pieces of the loader share: types, errors, memory that goes away together.
//
// In: the generated `abi.h`. Out: the structs below. Not done here: any step of a load (one file each).
#pragma once

#define _GNU_SOURCE
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi.h"
#include "ingot.h"

#if !defined(__linux__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__ || __SIZEOF_POINTER__ != 8
#error "the loader is for Linux on little-endian machines with pointers of 64 bits"
#endif

typedef int32_t i32;
typedef int64_t i64;
typedef int8_t i8;
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

typedef struct ingot_error error;

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

// Memory that is given back all at once.
struct arena_block {
  struct arena_block *before;
  size_t used, size;
  _Alignas(16) u8 bytes[];
};
struct arena {
  struct arena_block *last;
};

// Private bytes of the file, or a view of memory that does not change.
struct bytes {
  u8 *data;
  u64 size;
};

// `base_`: of the bundle that weights are shared with, 0 without one; `ctime` is the later one of both.
struct stamp {
  u64 size, base_size;
  i64 mtime, base_mtime, ctime;  // nanoseconds
};

// Bytes `at` of the weights that lie in those of another bundle; `size` and all three are whole pages of 64 KiB.
struct shared_row {
  u64 at, there, size;
};

// `digest` and `name`: of the other bundle and its file; `size`: of the weights together.
struct shared {
  const char *digest, *name;
  u64 size;
  struct shared_row *rows;
  u32 count;
};

// An open bundle. `fd` is -1 for one in memory; it begins at `start` of the file.
struct source {
  const char *name;
  int fd;
  const u8 *memory;
  u64 start, size;
  u64 device, inode;
  struct stamp stamp;
  struct header header;
  struct section *sections;
  u32 section_count;
  struct shared *shared;  // where weights lie in another bundle; null: nowhere
  struct source *base;    // that one, open
};

#ifdef INGOT_WITHOUT_SHARED
enum { HAS_SHARED = 0 };
#else
enum { HAS_SHARED = 1 };
#endif

// What an input is where a call does not give it.
struct default_value {
  const i64 *shape;
  const u8 *data;
};

// Code of another kind for devices; `ids`: of the devices that may have it, -1 of others; `start`: where the code begins in its section.
struct alternative_plan {
  struct library_plan code;
  i64 ids[DEVICE_COUNT_MAX];
  u64 start;
};

struct plan {
  PLAN_MEMBERS
  struct alternative_plan *alternatives;
  struct default_value *defaults;  // one per input; `data` is null where there is none
  struct ingot_state *states;
  u32 alternative_count, state_count, minor;  // the bundle's version
};

// A mapped image: `base` + offset of an export is its address.
struct image {
  u8 *base;
  u64 mapped_bytes;
  u32 exports[EXPORT_COUNT];
  u64 frame_bytes;
  u8 program_digest[32], interface_digest[32];
};

struct pool {
  u8 *page;  // null for one thread
  u32 n_threads;
  struct pool_thread *threads;  // its own; null where the caller lends his
  struct ingot_threads lent;
  void (*worker)(void *page, i64 index);
  bool was_used;  // lent ones
};

struct guard;

struct weights {
  const u8 *data;
  u64 size;
  u8 *mapped;           // null in memory that is the caller's
  u8 *copied;           // of memory at another alignment
  struct guard *guard;  // of a mapping
  u32 is_lost;          // a call has found other bytes than those that were verified: no later one is right
  struct bytes tree;
  u32 id;  // of the device
};

struct open_device;

struct ingot_bundle {
  struct arena arena;
  struct source source;
  struct plan plan;
  struct ingot_bundle_info info;
  char root_digest[65];
  u32 variant;
  struct image image;
  struct weights weights;  // of the host
  struct open_device *devices[DEVICE_COUNT_MAX];  // null for a host
  u64 device_weights[DEVICE_COUNT_MAX];
  struct ingot_device_info *device_infos;
  i32 verify;
  u32 changes;
};

// A text of at most TEXT_BYTES for a part of an error; it is valid until TEXT_COUNT more were made by this thread.
enum { TEXT_BYTES = 1024, TEXT_COUNT = 32 };
#define TEXT(...) format(__VA_ARGS__)

// `bool` results say whether to go on. The first error stays: whatever is refused later is a consequence of it.
#define REQUIRE(error, condition, ...) ((error)->kind ? false : (condition) ? true : damaged(error, __VA_ARGS__))
