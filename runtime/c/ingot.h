// Ingot's loader in C: load a bundle, check every byte of it that is used, run it. For C11 and C++.
//
// In: a bundle (a path or memory), tensors. Out: tensors, or an error in four parts. Not done here: the vm.
// A bundle is what was loaded; any number of sessions run on one bundle, each in one thread at a time.
#ifndef INGOT_H
#define INGOT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The version of this header: `ingot_load` and `ingot_open` refuse options of another one.
#define INGOT_HEADER_VERSION 5u

// Kinds of errors, as the Python loader names them.
enum ingot_error_kind {
  INGOT_OK,
  INGOT_FILE_ERROR,
  INGOT_NOT_A_BUNDLE_ERROR,
  INGOT_FORMAT_ERROR,
  INGOT_DIGEST_ERROR,
  INGOT_CHANGED_ERROR,
  INGOT_VERSION_ERROR,
  INGOT_INCOMPATIBLE_ERROR,
  INGOT_INPUT_ERROR,
  INGOT_BUSY_ERROR,
  INGOT_RESOURCE_ERROR,
  INGOT_LIMIT_ERROR,
  INGOT_CANCELLED_ERROR,
  INGOT_TIMED_OUT_ERROR,
  INGOT_RUN_ERROR,
  INGOT_SIGNATURE_ERROR,
  INGOT_DEVICE_ERROR
};

// What failed, where, why, and what to do: UTF-8, cut off where it is longer. All functions that can fail take one, which may be null.
struct ingot_error {
  int32_t kind;       // enum ingot_error_kind
  int32_t exit_code;  // of a command that ends with this error
  char what[512], where[1024], why[1024], todo[512];
};

typedef struct ingot_bundle ingot_bundle;
typedef struct ingot_session ingot_session;

enum ingot_verify { INGOT_VERIFY_FULL, INGOT_VERIFY_FAST, INGOT_VERIFY_CODE };

// Threads that the caller lends instead of those that a session would start. `run` makes `count` calls of `task` with `argument`, on
// whatever threads, in any order, at the same time where it can, and returns when all of them have returned. The first to begin computes,
// `profile` is called there, and the others help until it is done: a pool without a thread to spare is slower, and nothing else. No
// thread is held between calls.
struct ingot_threads {
  void (*run)(void *context, int32_t count, void (*task)(void *argument), void *argument);
  void *context;
};

// Begin with INGOT_OPTIONS: everything else may stay 0.
struct ingot_options {
  uint32_t header_version;
  int32_t verify;       // enum ingot_verify: how weights are checked
  int32_t threads;      // at most, the caller's included; 0 is 1
  const char *variant;  // a target instead of the best that this machine can run
  const char *digest;   // refuse any bundle but the one with this root digest, 32 to 64 hex digits
  uint64_t max_bytes;   // of a session: for workspace and outputs; 0 is without a limit
  void (*profile)(void *context, int64_t launch, int64_t is_end);  // called before and after each launch
  void *profile_context;
  // Refuse a bundle that the owner of none of these Ed25519 keys has signed, in it or in the file beside it: each 64 hex digits, the path
  // of a PEM file, or what that holds; null at the end.
  const char *const *keys;
  const char *policy;  // instead of keys, the path of a file that names them, and says how many of them must have signed
  // What devices of the bundle are bound to instead of what they were declared as: NAME=KIND[:ID][,target=T][,scope=S] each; null at the end.
  const char *const *devices;
  // Of a session: it keeps the states of a decoder (its caches) where they are, and each call continues what the calls before have left.
  int32_t keeps_states;
  int64_t max_length;    // rows that a state may have; 0: no bound
  const int64_t *sizes;  // one for each symbol of the bundle, for those that no other input tells; negative: not given; null: none
  // Of a session: it begins with what this one keeps, in memory of its own, and shares its threads and workspace. Such sessions take turns.
  ingot_session *like;
  const struct ingot_threads *lent;  // `threads` of them at most; null: own ones
  // Called with `profile_context` before and after each copy to a device, or from one, by their numbers in the bundle. Of a copy that
  // runs beside launches, the end is when it was waited for.
  void (*profile_copy)(void *context, uint32_t target, uint32_t source, uint64_t size_bytes, int64_t is_end);
};

#define INGOT_OPTIONS {INGOT_HEADER_VERSION, INGOT_VERIFY_FULL, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL}

// An input or output as the bundle declares it. A dim of -1 is the first symbol, -2 the second.
struct ingot_tensor_info {
  const char *name;
  const char *dtype;  // f32, i64, bool, ...
  const int64_t *dims;
  uint32_t rank;
  uint32_t dtype_code;
  uint32_t element_bytes;
  uint32_t has_default;  // an input that a call need not give
};

// A device of the bundle, and the one of this machine that it is: `host:0`, `opencl:0`.
struct ingot_device_info {
  const char *name, *bound;
};

// An output that is an input with more rows behind it along an axis, or, where it is fixed, with some of its rows replaced.
struct ingot_state {
  uint32_t input, output, axis, is_fixed;
};

struct ingot_bundle_info {
  const char *model;
  const char *root_digest;  // 64 hex digits
  const char *target;       // of the variant that runs
  const struct ingot_tensor_info *inputs, *outputs;
  const char *const *symbols;
  const struct ingot_state *states;
  uint32_t input_count, output_count, symbol_count, state_count, device_count;
  const struct ingot_device_info *devices;
};

// Elements in row-major order without gaps. A state that a session keeps lies as if it had `capacity` rows along `axis`.
struct ingot_tensor {
  void *data;
  const int64_t *shape;
  uint64_t size_bytes;  // that it lies in
  uint32_t rank;
  uint32_t dtype_code;
  int64_t capacity;  // 0: no state that is kept
  uint32_t axis;
};

// What the calls gave that a bundle holds to be proved by.
struct ingot_proof {
  uint32_t call_count;
  uint32_t failure_count;  // outputs that are wrong: their shape, or elements further off than the bundle allows
  double error;            // the largest of an output, by the largest magnitude expected of it
  char failures[1024];     // the first three, in words
};

// All functions that return int return a kind of error, 0 for success.

// Loads a bundle from a file, and opens its devices, which its sessions share. The file may also be an executable that holds one. The file must not be written to while it is loaded.
int ingot_load(const char *path, const struct ingot_options *options, ingot_bundle **bundle, struct ingot_error *error);

// Loads a bundle that lies in memory, where it stays unchanged until `ingot_unload`. Weights are used in place at a multiple of 64.
int ingot_load_memory(const void *data, size_t size_bytes, const struct ingot_options *options, ingot_bundle **bundle,
                      struct ingot_error *error);

// Gives everything back; its sessions must be closed.
void ingot_unload(ingot_bundle *bundle);

// Says what was loaded; valid until `ingot_unload`.
const struct ingot_bundle_info *ingot_describe(const ingot_bundle *bundle);

// Makes a session: its threads, and memory of its own for what a call computes.
int ingot_open(ingot_bundle *bundle, const struct ingot_options *options, ingot_session **session, struct ingot_error *error);
void ingot_close(ingot_session *session);

// Says where an input lies, and its shape (null where all its dims are sizes). With null for `data` the session has memory of its own,
// which `ingot_input` tells after `ingot_prepare`. What `data` points to is read by each `ingot_run`.
int ingot_set_input(ingot_session *session, uint32_t index, const void *data, const int64_t *shape, struct ingot_error *error);

// Says where an output goes; null: into memory of the session. Of an output whose size only the data decide, `data` is ignored.
int ingot_set_output(ingot_session *session, uint32_t index, void *data, uint64_t size_bytes, struct ingot_error *error);

// Checks the shapes, computes those of the outputs, and makes all memory that a call needs. `ingot_run` does it where it is missing.
int ingot_prepare(ingot_session *session, struct ingot_error *error);

// Computes the outputs. A call takes no memory but for outputs whose size only the data decide. It ends without a result after
// `timeout_seconds` (0: never).
int ingot_run(ingot_session *session, double timeout_seconds, struct ingot_error *error);

// Tell what is prepared, and after `ingot_run` what was computed; null if there is no such tensor or nothing is prepared.
const struct ingot_tensor *ingot_input(const ingot_session *session, uint32_t index);
const struct ingot_tensor *ingot_output(const ingot_session *session, uint32_t index);

// Of what the states of a session have, keeps the first `length` rows (-1: all), and lets entry i of the batch continue what entry
// `entries[i]` had (null: each its own). Their memory stays.
int ingot_keep(ingot_session *session, int64_t length, const int64_t *entries, uint64_t entry_count, struct ingot_error *error);

// Ends the call that another thread sees running.
void ingot_cancel(ingot_session *session);

// Makes the calls that `ingot compile --selftest` left in the bundle, in a session of its own. That an output is wrong is no error of
// this function: `failure_count` says it.
int ingot_selftest(ingot_bundle *bundle, const struct ingot_options *options, struct ingot_proof *proof, struct ingot_error *error);

// The header version of the library.
extern const uint32_t ingot_header_version;

#ifdef __cplusplus
}
#endif

#endif
