// One call: `main`, what it asks for meanwhile, and what it left.
//
// In: a session. Out: outputs, or an error. Not done here: what must be there before (`prepare.c`).
#include "session.h"

// `grow` has no argument that says for whom: it is called on the thread of the call.
static _Thread_local ingot_session *calling;

// Returns the address of a new block of a size that only `main` knows, or 0 after noting why there is none.
static u64 grow(u64 device, u64 size) {
  ingot_session *session = calling;
  error *error = &session->call_error;
  u64 used = 0, room = session->max_bytes ? session->max_bytes - session->needed_bytes : UINT64_MAX;
  for (u32 index = 0; index < session->grown_count; index++) used += session->grown[index].size;
  if (size > room || used > room - size) {
    const char *why = TEXT("max_bytes leaves %llu bytes for them, got %llu", (unsigned long long)room, (unsigned long long)(used + size));
    refuse(error, INGOT_LIMIT_ERROR, "tensors whose size the data decide need too much memory", shapes_text(session), why,
           "allow more with max_bytes (--max-bytes)");
    return 0;
  }
  if (session->grown_count == session->grown_room) {
    u32 more = session->grown_room ? 2 * session->grown_room : 16;
    struct block *grown = memory_take(more * sizeof *grown);
    if (!grown) return no_memory(error, "grow", "blocks"), 0;
    if (session->grown_count) memcpy(grown, session->grown, session->grown_count * sizeof *grown);
    memory_free(session->grown);
    session->grown = grown, session->grown_room = more;
  }
  struct block *block = session->grown + session->grown_count;
  *block = (struct block){0};
  if (device >= session->bundle->plan.device_count || !device_block_fit(session, (u32)device, block, size, error)) return 0;
  session->grown_count++;
  return ADDRESS(block->data);
}

// What a thread does that makes the call, and what `main` came to.
struct task {
  ingot_session *session;
  i32 code;
};

static void make_task(void *argument) {
  struct task *task = argument;
  calling = task->session;
  task->code = call_main(task->session);
}

static i32 call_settled(ingot_session *session) {
  struct task task = {session, RC_OK};
  with_threads(&session->owner->pool, make_task, &task);
  return settle_devices(session, task.code);
}

// In a forked child the workers are gone: they are started anew.
static i32 call_with_threads(ingot_session *session, error *error) {
  i32 code = call_settled(session);
  if (code != RC_THREADS_LOST) return code;
  ingot_session *owner = session->owner;
  pool_stop(&owner->pool);
  owner->lent = NULL;  // there may be more or fewer of them than before, or none
  if (!pool_start(&owner->pool, &owner->bundle->image, (u32)owner->threads, error) || !lend_memory(session, error)) return code;
  return call_settled(session);
}

// Whether the file is what it was. False without an error: its record alone changed (a rename, permissions, a writer who put the time
// back), the weights were verified again, and what was computed meanwhile must be computed again. After an error the weights are lost for
// all sessions: what is not verified gets no stamp, and no content of the file brings it back.
static bool is_unchanged(ingot_session *session, error *error) {
  enum { CHANGES_MAX = 8 };
  ingot_bundle *bundle = session->bundle;
  const struct source *source = &bundle->source;
  struct stamp now = session->stamp;
  const char *lost = why_lost(&bundle->weights);
  if (lost) return changed(error, source->name, lost);
  if (source->fd < 0 || (present_stamp(source, &now, error) && is_same_stamp(now, session->stamp))) return true;
  if (error->kind || !settled_stamp(source, &now, error)) return false;
  bool is_same = is_same_content(now, session->stamp);
  if (!is_same || ++session->changes > CHANGES_MAX) changed(error, source->name, "its size or its times are not those of load time");
  else if (verify_weights(bundle, &bundle->weights, INGOT_VERIFY_FULL, &session->owner->pool, error)) session->stamp = now;
  bool is_lost = !is_same || error->kind == INGOT_DIGEST_ERROR || why_lost(&bundle->weights);
  if (is_lost) __atomic_store_n(&bundle->weights.is_lost, 1, __ATOMIC_RELEASE);
  return false;
}

// Takes the shape that `main` left for an output whose size it knows at the end.
static bool take_final_shape(ingot_session *session, u32 index, error *error) {
  const struct ingot_tensor_info *info = session->bundle->plan.outputs + index;
  struct slot *slot = session->outputs + index;
  struct tensor *tensor = session->call_outputs + index;
  const i64 *shape = (const i64 *)(uintptr_t)tensor->shape;
  bool good = true;
  for (u32 axis = 0; axis < info->rank; axis++) good = good && shape[axis] >= 0;
  u64 size = good ? tensor_bytes(info, shape) : 0;
  if (!good || size > tensor->bytes) {
    const char *why = TEXT("main leaves %s where %s was made", LIST(shape, info->rank), LIST(slot->shape, info->rank));
    return refuse(error, INGOT_RUN_ERROR, "an output outgrew its upper bound", TEXT("output %u", index), why, "");
  }
  memcpy(slot->shape, shape, info->rank * sizeof *shape);
  slot->tensor.size_bytes = size;
  if (slot->is_open) slot->tensor.data = (void *)(uintptr_t)tensor->data;
  return true;
}

static bool refuse_end(ingot_session *session, error *error) {
  const char *name = session->bundle->source.name;
  if (!session->watch.timed_out)
    return refuse(error, INGOT_CANCELLED_ERROR, "the call was cancelled", name, "ingot_cancel() was called; its outputs are lost", "");
  const char *todo = "give it more time, or smaller inputs";
  return refuse(error, INGOT_TIMED_OUT_ERROR, "the call took too long", name, "its timeout is over; its outputs are lost", todo);
}

// What `main` leaves in a tensor of open size is of the last call: it is told again what is given.
static void forget_last(ingot_session *session) {
  if (session->grown_count) forget_grown(session);
  clear(&session->call_error);
  for (u32 index = 0; index < session->bundle->plan.output_count; index++) {
    struct slot *slot = session->outputs + index;
    if (slot->is_open) slot->tensor.data = NULL, slot->tensor.size_bytes = session->call_outputs[index].data = session->call_outputs[index].bytes = 0;
  }
}

static bool run(ingot_session *session, error *error) {
  i32 code;
  if ((!session->is_prepared || session->is_stale) && !prepare(session, error)) return false;
  if (session->owner->lent != session && !lend_memory(session, error)) return false;
  do {
    forget_last(session);
    code = call_with_threads(session, error);
  } while (!error->kind && !is_unchanged(session, error));
  if (error->kind) return false;
  if (code == RC_CANCELLED) return refuse_end(session, error);
  if (session->call_error.kind) return *error = session->call_error, false;
  if (code) return refuse_code(session, code, error);
  for (u32 index = 0; index < session->bundle->plan.output_count; index++)
    if (session->outputs[index].is_measured && !session->outputs[index].is_state && !take_final_shape(session, index, error)) return false;
  lengthen_states(session);
  return true;
}

int ingot_run(ingot_session *session, double timeout_seconds, struct ingot_error *error) {
  struct ingot_error own;
  if (!error) error = &own;
  clear(error);
  if (!begin(session, timeout_seconds, error)) return error->kind;
  run(session, error);
  end(session);
  return error->kind;
}
