// One of the callers of a bundle: its call struct, its threads, its memory.
//
// In: `internal.h`. Out: the struct. Not done here: any function (`session.c`, `session_lock.c`, `prepare.c`, `states.c`, `call.c`).
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
  bool is_state;        // the session keeps it
};

// A size that a symbol has in this call, and the input that says so; no source: none does yet.
struct known_size {
  i64 size;
  const char *source;
};

// A state in the block of all: `shape` with its room.
struct held {
  i64 length;
  u64 offset, bytes;
  i64 shape[RANK_MAX];
};

struct states {
  struct block block, spare;
  struct held *held, *next;  // as it is; as it is to be
  i64 *sizes;                // of symbols, as the user gave them; null: none
  i64 capacity, max_length;
};

struct ingot_session {
  ingot_bundle *bundle;
  struct arena arena;
  ingot_session *owner;  // whose threads, workspace and turn it uses: its own, or those of the first of the sessions like it
  struct pool pool;
  struct watch watch;
  struct call *call;
  struct tensor *call_inputs, *call_outputs;
  struct slot *inputs, *outputs;
  struct known_size *sizes;  // of each symbol
  struct states *states;     // null: it keeps none
  char *message;  // the error buffer of `main`
  u64 *workspace_addresses, *workspace_sizes;
  struct block workspaces[DEVICE_COUNT_MAX], scratch;
  u64 stride_bytes;
  void (*profile_copy)(void *context, u32 target, u32 source, u64 size_bytes, i64 is_end);
  i32 threads;
  u64 max_bytes, needed_bytes;
  struct block *grown;  // blocks of the last call
  u32 grown_count, grown_room;
  error call_error;  // what `main` could not be told in the present call
  struct endpoint endpoints[DEVICE_COUNT_MAX];
  struct stamp stamp;
  u32 changes;
  u32 lock, users;  // of an owner: how many sessions use it
  ingot_session *running, *lent;  // of an owner: whose turn it is; who knows where its memory is
  bool is_prepared, is_stale, is_cut;  // stale: its shapes are those of the last call; cut: a launch on a device was cancelled
};

#ifdef INGOT_WITHOUT_STATES
enum { HAS_STATES = 0 };
#else
enum { HAS_STATES = 1 };
#endif
enum { MESSAGE_BYTES = 512 };

static bool is_over_given(const ingot_session *session, const struct ingot_tensor *tensor);
static bool measure_fixed(ingot_session *session, error *error);
static bool take_input_shape(ingot_session *session, u32 index, error *error);
static u64 tensor_bytes(const struct ingot_tensor_info *info, const i64 *shape);
static bool keep_states(ingot_session *session, const struct ingot_options *options, error *error);
static void tell_sizes(ingot_session *session);
static bool shape_states(ingot_session *session, error *error);
static bool reserve_states(ingot_session *session, error *error);
static void lengthen_states(ingot_session *session);
static void free_states(ingot_session *session);
