// One of the callers of a bundle: its call struct, its threads, its memory.
//
// In: `internal.h`. Out: the struct. Not done here: any function (`session.c`, `prepare.c`, `call.c`).
#pragma once
#include "internal.h"

// Memory of the host, or of a device, whose address `data` then is.
struct block {
  void *data;
  u64 size, mapped_bytes;
  struct open_device *device;
};

// What `main` calls a device by.
struct endpoint {
  ingot_session *session;
  u32 device;
};

// An input or output: what the user gave, and memory of the session for what he did not.
struct slot {
  struct ingot_tensor tensor;  // what `ingot_input` and `ingot_output` show
  struct block own;
  void *given;          // null: in `own`
  u64 given_bytes;      // of an output
  i64 *shape;           // of an input as the user gave it; what the tensor shows
  bool is_given;        // an input of which anything was said
  bool is_open;         // an output whose size only the data decide
  bool is_measured;     // an output whose size `main` knows at the end
};

struct ingot_session {
  ingot_bundle *bundle;
  struct arena arena;
  struct pool pool;
  struct watch watch;
  struct call *call;
  struct tensor *call_inputs, *call_outputs;
  struct slot *inputs, *outputs;
  char *message;  // the error buffer of `main`
  u64 *workspace_addresses, *workspace_sizes;
  struct block workspaces[DEVICE_COUNT_MAX], scratch;
  u64 stride_bytes;
  i32 threads;
  u64 max_bytes, needed_bytes;
  struct block *grown;  // blocks of the last call
  u32 grown_count, grown_room;
  error call_error;  // what `main` could not be told in the present call
  struct endpoint endpoints[DEVICE_COUNT_MAX];
  struct stamp stamp;
  u32 changes;
  u32 lock;
  bool is_prepared, is_running, is_cut;  // cut: a launch on a device was cancelled
};

enum { MESSAGE_BYTES = 512 };

static bool measure_fixed(ingot_session *session, error *error);
