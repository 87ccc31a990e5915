// What must be there before a call: shapes that fit, sizes that `main` computes from them, memory for all of it.
//
// In: what the user gave a session. Out: a call struct that is complete. Not done here: the call (`call.c`).
#include "session.h"

static const char *const numpy_names[] = {NUMPY_NAMES};

// Element type and dims of an input for messages: `float32[batch, 3]`, and as it was given.
static const char *declared(const struct ingot_tensor_info *info, const struct plan *plan) {
  char *text = next_text();
  append(text, "%s[", numpy_names[info->dtype_code]);
  for (u32 axis = 0; axis < info->rank; axis++) {
    i64 dim = info->dims[axis];
    append(text, "%s", axis ? ", " : "");
    if (dim < 0) append(text, "%s", plan->symbols.items[-dim - 1]);
    else append(text, "%lld", NUMBER(dim));
  }
  append(text, "]");
  return text;
}

#define GIVEN(info, shape) (TEXT("%s%s", numpy_names[(info)->dtype_code], LIST(shape, (info)->rank)))

static bool is_static(const struct ingot_tensor_info *info) {
  for (u32 axis = 0; axis < info->rank; axis++)
    if (info->dims[axis] < 0) return false;
  return true;
}

// The size that the inputs so far gave to a symbol; null where none did, and for a size.
static const i64 *known_size(const ingot_session *session, i64 dim, const char **source) {
  const struct known_size *known = dim < 0 ? session->sizes + (-dim - 1) : NULL;
  if (!known || !known->source) return NULL;
  if (source) *source = known->source;
  return &known->size;
}

// Notes it, unless something was noted before.
static void tell_size(ingot_session *session, i64 dim, i64 size, const char *source) {
  if (dim < 0 && !known_size(session, dim, NULL)) session->sizes[-dim - 1] = (struct known_size){size, source};
}

static bool check_axis(ingot_session *session, u32 index, u32 axis, error *error) {
  const struct plan *plan = &session->bundle->plan;
  const struct ingot_tensor_info *info = plan->inputs + index;
  const i64 *shape = session->inputs[index].shape;
  i64 dim = info->dims[axis], size = shape[axis];
  const char *source = info->name;
  tell_size(session, dim, size, source);
  const i64 wanted = dim < 0 ? *known_size(session, dim, &source) : dim;
  if (size == wanted && size >= 0) return true;
  char why[TEXT_BYTES] = "";
  append(why, "expected %s, got %s", declared(info, plan), GIVEN(info, shape));
  if (dim < 0) append(why, "; %s is %lld in input %s", plan->symbols.items[-dim - 1], NUMBER(wanted), quoted(source));
  return refuse(error, INGOT_INPUT_ERROR, TEXT("wrong shape of input %s", quoted(info->name)), TEXT("input %s, axis %u", quoted(info->name), axis),
                why, TEXT("give size %lld there", NUMBER(wanted)));
}

// Bytes of a tensor; more than there may be where it is too large.
static u64 tensor_bytes(const struct ingot_tensor_info *info, const i64 *shape) {
  u64 size = info->element_bytes;
  for (u32 axis = 0; axis < info->rank; axis++) {
    if (shape[axis] == 0) return 0;
    bool fits = size <= SIZE_BYTES_MAX / (u64)shape[axis];
    size = fits ? size * (u64)shape[axis] : (u64)SIZE_BYTES_MAX + 1;
  }
  return size;
}

static const char *shapes_text(const ingot_session *session) {
  char *text = next_text();
  const struct plan *plan = &session->bundle->plan;
  for (u32 index = 0; index < plan->input_count; index++)
    append(text, "%s%s %s", index ? ", " : "", plan->inputs[index].name, LIST(session->inputs[index].shape, plan->inputs[index].rank));
  return *text ? text : session->bundle->source.name;
}

static bool too_large(const ingot_session *session, error *error) {
  return refuse(error, INGOT_INPUT_ERROR, "these shapes need too much memory", shapes_text(session), "", "");
}

// Notes bytes and shape of an input for `main`.
static bool take_input_shape(ingot_session *session, u32 index, error *error) {
  const struct ingot_tensor_info *info = session->bundle->plan.inputs + index;
  struct slot *slot = session->inputs + index;
  u64 size = tensor_bytes(info, slot->shape);
  if (size > SIZE_BYTES_MAX) return too_large(session, error);
  slot->tensor.size_bytes = session->call_inputs[index].bytes = size;
  if (info->rank) memcpy((void *)(uintptr_t)session->call_inputs[index].shape, slot->shape, info->rank * sizeof *slot->shape);
  return true;
}

// Inputs must be given; those of fixed sizes may lie where the session has them, unless `all` count.
static bool require_given(const ingot_session *session, bool all, error *error) {
  const struct plan *plan = &session->bundle->plan;
  char names[TEXT_BYTES], types[TEXT_BYTES];
  u32 count = *names = *types = 0;
  for (u32 index = 0; index < plan->input_count; index++) {
    const struct ingot_tensor_info *info = plan->inputs + index;
    const struct slot *slot = session->inputs + index;
    if (slot->is_given || slot->is_state || info->has_default || (!all && is_static(info))) continue;
    const char *comma = count++ ? ", " : "";
    append(names, "%s%s", comma, quoted(info->name));
    append(types, "%s%s", comma, declared(info, plan));
  }
  if (!count) return true;
  const char *what = TEXT("missing input%s %s", count > 1 ? "s" : "", names);
  const char *why = TEXT("expected %s, got nothing", types);
  return refuse(error, INGOT_INPUT_ERROR, what, what + 8, why, "give all inputs");
}

static bool prepare_input(ingot_session *session, u32 index, error *error) {
  const struct plan *plan = &session->bundle->plan;
  const struct ingot_tensor_info *info = plan->inputs + index;
  struct slot *slot = session->inputs + index;
  const i64 *shape = info->has_default ? plan->defaults[index].shape : info->dims;
  if (!slot->is_given && info->rank) memcpy(slot->shape, shape, info->rank * sizeof *shape);
  for (u32 axis = 0; axis < info->rank; axis++)
    if (!check_axis(session, index, axis, error)) return false;
  return take_input_shape(session, index, error);
}

// The text that `main` left, in the user's names.
static const char *message_of(ingot_session *session) {
  u32 size = session->call->error_len < MESSAGE_BYTES ? session->call->error_len : MESSAGE_BYTES;
  session->message[size] = 0;
  return size ? named_message(session, session->message) : "";
}

// Whether a letter beside a name is none of the name: a blank, a bracket, a sign.
static bool is_apart(char letter) {
  return (u8)letter < '0' || letter == '[' || letter == ']';
}

// Whether a name begins before the end of a text, and is not a part of a longer one.
static bool has_symbol(const char *text, const char *end, const char *name) {
  for (const char *at = text; (at = find_text(at, name)) && at < end; at++)
    if ((at == text || is_apart(at[-1])) && is_apart(at[strlen(name)])) return true;
  return false;
}

// Refuses the inputs: why, with the sizes that it names and the inputs that they come from.
static bool refuse_inputs(const ingot_session *session, const char *text, const char *where, error *error) {
  const struct plan *plan = &session->bundle->plan;
  const char *node = find_text(text, " (node "), *end = node ? node : text + strlen(text);
  char why[TEXT_BYTES] = "";
  append(why, "%s", text);
  for (u32 symbol = 0; symbol < plan->symbols.count; symbol++) {
    const char *name = plan->symbols.items[symbol];
    bool is_named = has_symbol(text, end, name);
    for (u32 index = 0; is_named && index < plan->input_count; index++)
      for (u32 axis = 0; is_named && axis < plan->inputs[index].rank; axis++) {
        if (plan->inputs[index].dims[axis] != -(i64)symbol - 1) continue;
        append(why, "; %s is %lld in input %s", name, NUMBER(session->inputs[index].shape[axis]), quoted(plan->inputs[index].name));
        is_named = false;
      }
  }
  return refuse(error, INGOT_INPUT_ERROR, "the model refuses these inputs", where, why, "give other sizes or values");
}

// Notes the error for `main`'s return code.
static bool refuse_code(ingot_session *session, i32 code, error *error) {
  const ingot_bundle *bundle = session->bundle;
  const char *text = message_of(session), *place = TEXT("%s, main of %s", bundle->source.name, bundle->info.target);
  switch (code) {
    case RC_BAD_INPUT:
      return refuse_inputs(session, *text ? text : "an assertion of the model failed", bundle->plan.input_count ? shapes_text(session) : place, error);
    case RC_ABI:
      return damaged(error, "main refuses the call struct", place, *text ? text : "another version of the call struct");
    case RC_LIMIT:
      return refuse(error, INGOT_RUN_ERROR, "a size that depends on the data is too large", place, *text ? text : "return code 6", "");
    default:
      return refuse(error, INGOT_RUN_ERROR, code == RC_DEVICE ? "a device failed" : "main failed", place, *text ? text : TEXT("return code %d", code), "");
  }
}

static i32 call_main(ingot_session *session) {
  const struct image *image = &session->bundle->image;
  i32 (*main)(struct call *) = (i32(*)(struct call *))(void *)(image->base + image->exports[EXPORT_MAIN]);
  return main(session->call);
}

// Takes the shape that `main` computed for an output, and compares it with the plan: -1 where only the data decide.
static bool take_output_shape(ingot_session *session, u32 index, const char *where, error *error) {
  const struct plan *plan = &session->bundle->plan;
  const struct ingot_tensor_info *info = plan->outputs + index;
  struct slot *slot = session->outputs + index;
  const i64 *shape = (const i64 *)(uintptr_t)session->call_outputs[index].shape;
  slot->is_open = slot->is_measured = false;
  for (u32 axis = 0; axis < info->rank; axis++) {
    i64 dim = info->dims[axis], size = shape[axis];
    const i64 *known = dim < 0 ? known_size(session, dim, NULL) : &info->dims[axis];
    if (!known) slot->is_measured = true;
    if (!known && size == -1) slot->is_open = true, size = 0;
    i64 expected = known ? *known : size;
    if (!REQUIRE(error, size == expected && size >= 0, TEXT("plan and image disagree on output %s", quoted(info->name)), where,
                 TEXT("expected %lld, main computes %lld", NUMBER(expected), NUMBER(size))))
      return false;
    slot->shape[axis] = size;
  }
  slot->tensor.size_bytes = session->call_outputs[index].bytes = tensor_bytes(info, slot->shape);
  return slot->tensor.size_bytes <= SIZE_BYTES_MAX || too_large(session, error);
}

// Calls `main` for sizes alone, and checks its answer.
static bool compute_sizes(ingot_session *session, error *error) {
  const struct plan *plan = &session->bundle->plan;
  const struct variant_plan *variant = plan->variants + session->bundle->variant;
  const char *where = SECTION_NAME(SECTION_CODE, session->bundle->variant);
  struct call *call = session->call;
  call->flags = FLAG_SIZES_ONLY;
  i32 code = call_main(session);
  call->flags = 0;
  if (code) return refuse_code(session, code, error);
  for (u32 index = 0; index < plan->output_count; index++)
    if (!take_output_shape(session, index, where, error)) return false;
  for (u32 index = 0; index < plan->device_count; index++) {
    u64 planned = (u64)variant->workspace_bytes.items[index], computed = session->workspace_sizes[index];
    if (!REQUIRE(error, !planned || planned == computed, "plan and image disagree on the workspace", where,
                 TEXT("planned %llu bytes, main needs %llu", (unsigned long long)planned, (unsigned long long)computed)))
      return false;
    if (computed > SIZE_BYTES_MAX) return too_large(session, error);
  }
  return call->scratch_stride <= SIZE_BYTES_MAX || too_large(session, error);
}

static bool measure(ingot_session *session, error *error) {
  const struct plan *plan = &session->bundle->plan;
  if (plan->symbols.count) memset(session->sizes, 0, plan->symbols.count * sizeof *session->sizes);
  tell_sizes(session);
  if (!require_given(session, false, error)) return false;
  for (u32 index = 0; index < plan->input_count; index++)
    if (!session->inputs[index].is_state && !prepare_input(session, index, error)) return false;
  return shape_states(session, error) && compute_sizes(session, error);
}

// Asks for sizes when a session is opened, if they are the same in all calls: a bundle whose plan has others is refused then.
static bool measure_fixed(ingot_session *session, error *error) {
  const struct plan *plan = &session->bundle->plan;
  for (u32 index = 0; index < plan->input_count; index++)
    if (!is_static(plan->inputs + index)) return true;
  return measure(session, error);
}

static bool require_memory(ingot_session *session, error *error) {
  const struct plan *plan = &session->bundle->plan;
  u64 needed = session->call->scratch_stride * session->owner->pool.n_threads;
  for (u32 index = 0; index < plan->device_count; index++) needed += session->workspace_sizes[index];
  for (u32 index = 0; index < plan->output_count; index++) needed += session->outputs[index].tensor.size_bytes;
  session->needed_bytes = needed;
  if (!session->max_bytes || needed <= session->max_bytes) return true;
  const char *why = TEXT("workspace, scratch and outputs need %llu bytes, max_bytes is %llu", (unsigned long long)needed, (unsigned long long)session->max_bytes);
  return refuse(error, INGOT_LIMIT_ERROR, "a call needs too much memory", shapes_text(session), why, "allow more with max_bytes (--max-bytes)");
}

// Lends `main` the workspace, the scratch and the workers of the owner, as large as these shapes need them.
static bool lend_memory(ingot_session *session, error *error) {
  ingot_session *owner = session->owner;
  owner->lent = NULL;
  struct call *call = session->call;
  u64 stride = rounded(call->scratch_stride, ALIGNMENT_SMALL_BYTES);
  for (u32 index = 0; index < session->bundle->plan.device_count; index++) {
    if (!device_block_fit(session, index, owner->workspaces + index, session->workspace_sizes[index], error)) return false;
    session->workspace_addresses[index] = ADDRESS(owner->workspaces[index].data);
    session->workspace_sizes[index] = owner->workspaces[index].size;
  }
  if (stride > owner->stride_bytes) owner->stride_bytes = stride;
  if (!block_fit(&owner->scratch, owner->stride_bytes * owner->pool.n_threads, error)) return false;
  call->scratch = ADDRESS(owner->scratch.data), call->scratch_stride = owner->stride_bytes, call->pool = ADDRESS(owner->pool.page);
  owner->lent = session;
  return true;
}

static bool place_inputs(ingot_session *session, error *error) {
  const struct plan *plan = &session->bundle->plan;
  for (u32 index = 0; index < plan->input_count; index++) {
    struct slot *slot = session->inputs + index;
    if (slot->is_state) continue;
    if (!slot->given && !block_fit(&slot->own, slot->tensor.size_bytes, error)) return false;
    if (!slot->is_given && plan->inputs[index].has_default) memcpy(slot->own.data, plan->defaults[index].data, slot->tensor.size_bytes);
    slot->tensor.data = slot->given ? slot->given : slot->own.data;
    session->call_inputs[index].data = ADDRESS(slot->tensor.data);
  }
  return true;
}

static bool place_output(ingot_session *session, u32 index, error *error) {
  const struct ingot_tensor_info *info = session->bundle->plan.outputs + index;
  struct slot *slot = session->outputs + index;
  u64 size = slot->tensor.size_bytes;
  if (slot->is_state) return true;
  if (slot->is_open) return slot->tensor.data = NULL, session->call_outputs[index].data = 0, true;
  if (slot->given && slot->given_bytes < size) {
    const char *why = TEXT("expected %llu bytes, got %llu", (unsigned long long)size, (unsigned long long)slot->given_bytes);
    return refuse(error, INGOT_INPUT_ERROR, TEXT("output %s does not fit", quoted(info->name)), "ingot_set_output", why, "");
  }
  if (!slot->given && !block_fit(&slot->own, size, error)) return false;
  slot->tensor.data = slot->given ? slot->given : slot->own.data;
  session->call_outputs[index].data = ADDRESS(slot->tensor.data);
  return true;
}

static bool is_over(const struct ingot_tensor *a, const struct ingot_tensor *b) {
  u64 first = ADDRESS(a->data), second = ADDRESS(b->data);
  return a->size_bytes && b->size_bytes && first < second + b->size_bytes && second < first + a->size_bytes;
}

// Whether an output of the user's lies over a tensor.
static bool is_over_given(const ingot_session *session, const struct ingot_tensor *tensor) {
  for (u32 index = 0; index < session->bundle->plan.output_count; index++) {
    const struct slot *slot = session->outputs + index;
    if (slot->given && !slot->is_open && is_over(&slot->tensor, tensor)) return true;
  }
  return false;
}

// An output of the user's may not lie over another tensor: a kernel would read what another has written.
static bool require_apart(const ingot_session *session, u32 index, error *error) {
  const struct plan *plan = &session->bundle->plan;
  const struct slot *slot = session->outputs + index;
  const char *holder = NULL;
  if (!slot->given || slot->is_open) return true;
  for (u32 other = 0; other < plan->input_count && !holder; other++)
    if (is_over(&slot->tensor, &session->inputs[other].tensor)) holder = plan->inputs[other].name;
  for (u32 other = 0; other < plan->output_count && !holder; other++)
    if (other != index && is_over(&slot->tensor, &session->outputs[other].tensor)) holder = plan->outputs[other].name;
  if (!holder) return true;
  const char *what = TEXT("%s and %s share memory", quoted(plan->outputs[index].name), quoted(holder));
  return refuse(error, INGOT_INPUT_ERROR, what, "ingot_set_output", "an output needs memory of its own", "give other memory, or null");
}

static bool prepare(ingot_session *session, error *error) {
  const struct plan *plan = &session->bundle->plan;
  session->is_prepared = session->is_stale = false;
  if (!measure(session, error) || !require_memory(session, error)) return false;
  if (!lend_memory(session, error) || !reserve_states(session, error) || !place_inputs(session, error)) return false;
  for (u32 index = 0; index < plan->output_count; index++)
    if (!place_output(session, index, error)) return false;
  for (u32 index = 0; index < plan->output_count; index++)
    if (!require_apart(session, index, error)) return false;
  return session->is_prepared = true;
}

int ingot_prepare(ingot_session *session, struct ingot_error *error) {
  struct ingot_error own;
  if (!error) error = &own;
  clear(error);
  if (!begin(session, 0, error)) return error->kind;
  if (!session->is_prepared || session->is_stale) prepare(session, error);
  end(session);
  return error->kind;
}
