// A session: made, told where its tensors lie, closed.
//
// In: a bundle, options, addresses. Out: `ingot_session`. Not done here: shapes and memory (`prepare.c`), calls (`call.c`).
#include "session.h"

#define ADDRESS(pointer) ((u64)(uintptr_t)(pointer))

static void device_block_free(struct block *block);
static void fill_devices(ingot_session *session, struct device *rows);

// Zeroed memory of whole pages, which is never null; large blocks may get large pages.
static bool block_make(struct block *block, u64 size, error *error) {
  enum { HUGE_PAGE_ADVICE = 14, HUGE_PAGE_BYTES = 1 << 21 };
  u64 mapped = rounded(size ? size : 1, page_bytes());
  void *data = size > SIZE_BYTES_MAX ? MAP_FAILED : mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    const char *why = size > SIZE_BYTES_MAX ? TEXT("more than %lld bytes", NUMBER(SIZE_BYTES_MAX)) : failure_words(errno);
    const char *where = TEXT("a block of %llu bytes", (unsigned long long)size);
    return refuse(error, INGOT_RESOURCE_ERROR, "not enough memory", where, why, "free memory, use smaller shapes, or fewer threads");
  }
  if (size >= HUGE_PAGE_BYTES) madvise(data, mapped, HUGE_PAGE_ADVICE);
  *block = (struct block){.data = data, .size = size, .mapped_bytes = mapped};
  return true;
}

static void block_free(struct block *block) {
  if (block->device) device_block_free(block);
  else if (block->data) munmap(block->data, block->mapped_bytes);
  *block = (struct block){0};
}

// Makes the block larger where it has less than `size`; what was in it is lost then. One that grows gets a quarter more, since sizes that
// rise from call to call rise on.
static bool block_fit(struct block *block, u64 size, error *error) {
  struct ingot_error ignored = {0};
  u64 more = block->size + block->size / 4;
  if (block->data && block->size >= size) return true;
  block_free(block);
  bool is_made = more > size && more <= SIZE_BYTES_MAX && block_make(block, more, &ignored);
  if (!is_made && !block_make(block, size, error)) return false;
  block->size = block->mapped_bytes;
  return true;
}

static void fill_tensors(ingot_session *session, struct slot *slots, struct tensor *tensors, const struct ingot_tensor_info *infos, u32 count,
                         error *error) {
  for (u32 index = 0; index < count && !error->kind; index++) {
    const struct ingot_tensor_info *info = infos + index;
    i64 *shape = arena_take(&session->arena, (info->rank + 1) * sizeof *shape, error);
    slots[index].shape = arena_take(&session->arena, (info->rank + 1) * sizeof *shape, error);
    slots[index].tensor = (struct ingot_tensor){.shape = slots[index].shape, .rank = info->rank, .dtype_code = info->dtype_code};
    tensors[index] = (struct tensor){.shape = ADDRESS(shape), .rank = info->rank, .dtype = info->dtype_code};
    for (u32 axis = 0; axis < info->rank && shape; axis++) shape[axis] = info->dims[axis] > 0 ? info->dims[axis] : 0;
  }
}

static u64 grow(u64 device, u64 size);

static void fill_call(ingot_session *session, void *frame, const struct ingot_options *options) {
  const ingot_bundle *bundle = session->bundle;
  const struct weights *weights = &bundle->weights;
  struct call *call = session->call;
  struct device *devices = frame;
  call->abi = ABI_VERSION, call->size = CALL_SIZE_BYTES;
  call->n_inputs = bundle->plan.input_count, call->n_outputs = bundle->plan.output_count, call->n_devices = bundle->plan.device_count;
  call->inputs = ADDRESS(session->call_inputs), call->outputs = ADDRESS(session->call_outputs);
  call->weights = ADDRESS(weights->data), call->weights_bytes = weights->size;
  call->workspaces = ADDRESS(session->workspace_addresses), call->workspace_bytes = ADDRESS(session->workspace_sizes);
  call->devices = ADDRESS(devices), devices->weights = call->weights;
  fill_devices(session, devices);
  call->error = ADDRESS(session->message), call->error_cap = MESSAGE_BYTES;
  call->profile = ADDRESS(options->profile), call->profile_context = ADDRESS(options->profile_context);
  session->profile_copy = options->profile_copy;
  call->watch = ADDRESS(&session->watch), call->grow = ADDRESS(grow);
  call->frame = ADDRESS(devices + bundle->plan.device_count), call->frame += -call->frame % 16, call->frame_bytes = bundle->image.frame_bytes;
  session->watch.clock = ADDRESS(clock_gettime);
}

static bool make_call(ingot_session *session, const struct ingot_options *options, error *error) {
  const ingot_bundle *bundle = session->bundle;
  const struct plan *plan = &bundle->plan;
  struct arena *arena = &session->arena;
  session->call = arena_take(arena, CALL_SIZE_BYTES, error);
  session->inputs = arena_take(arena, plan->input_count * sizeof *session->inputs, error);
  session->outputs = arena_take(arena, plan->output_count * sizeof *session->outputs, error);
  session->sizes = arena_take(arena, plan->symbols.count * sizeof *session->sizes, error);
  session->call_inputs = arena_take(arena, plan->input_count * sizeof *session->call_inputs, error);
  session->call_outputs = arena_take(arena, plan->output_count * sizeof *session->call_outputs, error);
  session->workspace_addresses = arena_take(arena, DEVICE_COUNT_MAX * sizeof(u64), error);
  session->workspace_sizes = arena_take(arena, DEVICE_COUNT_MAX * sizeof(u64), error);
  session->message = arena_take(arena, MESSAGE_BYTES + 1, error);
  void *frame = arena_take(arena, plan->device_count * sizeof(struct device) + 16 + bundle->image.frame_bytes, error);
  if (error->kind) return false;
  fill_tensors(session, session->inputs, session->call_inputs, plan->inputs, plan->input_count, error);
  fill_tensors(session, session->outputs, session->call_outputs, plan->outputs, plan->output_count, error);
  fill_call(session, frame, options);
  return !error->kind;
}

static bool check_like(const ingot_bundle *bundle, const struct ingot_options *options, error *error) {
  if (!HAS_STATES || !options->like || options->like->bundle == bundle) return true;
  return refuse(error, INGOT_INPUT_ERROR, "a session of another bundle", "ingot_open, like", "it has threads and memory for that one", "open it without");
}

static bool start_lane(ingot_session *session, error *error) {
  return session->owner != session || pool_start(&session->pool, &session->bundle->image, (u32)session->threads, error);
}

int ingot_open(ingot_bundle *bundle, const struct ingot_options *options, ingot_session **result, struct ingot_error *error) {
  static const struct ingot_options defaults = INGOT_OPTIONS;
  struct ingot_error own;
  if (!error) error = &own;
  clear(error);
  *result = NULL;
  if (!options) options = &defaults;
  if (!check_options(options, error)) return error->kind;
  ingot_session *session = memory_take(sizeof *session);
  if (!session) return no_memory(error, "open", "session"), error->kind;
  session->bundle = bundle, session->max_bytes = options->max_bytes, session->stamp = bundle->source.stamp;
  session->threads = (i32)usable_threads(options->threads), session->pool = pool_of(options);
  share(session, HAS_STATES && options->like ? options->like->owner : session);
  if (!check_like(bundle, options, error) || !make_call(session, options, error) || !start_lane(session, error) || !keep_states(session, options, error) ||
      !measure_fixed(session, error))
    ingot_close(session);
  else *result = session;
  return error->kind;
}

static void forget_grown(ingot_session *session) {
  while (session->grown_count) block_free(session->grown + --session->grown_count);
}

// The last of the sessions that use it gives it back.
static void close_owner(ingot_session *owner) {
  if (!leave(owner)) return;
  pool_stop(&owner->pool);
  for (u32 index = 0; index < DEVICE_COUNT_MAX; index++) block_free(owner->workspaces + index);
  block_free(&owner->scratch);
  memory_free(owner);
}

void ingot_close(ingot_session *session) {
  if (!session) return;
  const struct plan *plan = &session->bundle->plan;
  ingot_session *owner = session->owner;
  free_states(session);
  forget_grown(session);
  memory_free(session->grown);
  for (u32 index = 0; session->inputs && index < plan->input_count; index++) block_free(&session->inputs[index].own);
  for (u32 index = 0; session->outputs && index < plan->output_count; index++) block_free(&session->outputs[index].own);
  arena_free(&session->arena);
  if (owner != session) memory_free(session);
  close_owner(owner);
}

static bool refuse_index(const char *what, u32 index, u32 count, error *error) {
  return refuse(error, INGOT_INPUT_ERROR, TEXT("no %s %u", what, index), TEXT("%s %u", what, index), TEXT("the model has %u", count), "");
}

static bool refuse_state(const char *what, const struct ingot_tensor_info *info, error *error) {
  return refuse(error, INGOT_INPUT_ERROR, TEXT("%s is a state", quoted(info->name)), TEXT("%s %s", what, quoted(info->name)),
                "the session holds it, from call to call", "leave it out, or open a session without keeps_states");
}

static bool check_address(const char *what, const struct ingot_tensor_info *info, const void *data, error *error) {
  if (ADDRESS(data) % info->element_bytes == 0) return true;
  const char *why = TEXT("expected an address at a multiple of %u, got 0x%llx", info->element_bytes, (unsigned long long)ADDRESS(data));
  return refuse(error, INGOT_INPUT_ERROR, TEXT("%s %s cannot be bound", what, quoted(info->name)), "ingot_set", why, "give null: the session has aligned memory");
}

int ingot_set_input(ingot_session *session, uint32_t index, const void *data, const int64_t *shape, struct ingot_error *error) {
  const struct plan *plan = &session->bundle->plan;
  struct ingot_error own;
  if (!error) error = &own;
  clear(error);
  if (index >= plan->input_count) return refuse_index("input", index, plan->input_count, error), error->kind;
  const struct ingot_tensor_info *info = plan->inputs + index;
  struct slot *slot = session->inputs + index;
  if (HAS_STATES && slot->is_state ? !refuse_state("input", info, error) : !check_address("input", info, data, error)) return error->kind;
  bool same = slot->is_given && session->is_prepared && (data != NULL) == (slot->given != NULL);
  for (u32 axis = 0; axis < info->rank; axis++) {
    i64 size = shape ? shape[axis] : info->dims[axis];
    same = same && slot->shape[axis] == size;
    slot->shape[axis] = size;
  }
  slot->is_given = true;
  slot->given = (void *)(uintptr_t)data;
  if (same && data) slot->tensor.data = slot->given, session->call_inputs[index].data = ADDRESS(data);
  session->is_prepared = same && !is_over_given(session, &slot->tensor);
  return error->kind;
}

int ingot_set_output(ingot_session *session, uint32_t index, void *data, uint64_t size_bytes, struct ingot_error *error) {
  const struct plan *plan = &session->bundle->plan;
  struct ingot_error own;
  if (!error) error = &own;
  clear(error);
  if (index >= plan->output_count) return refuse_index("output", index, plan->output_count, error), error->kind;
  if (HAS_STATES && session->outputs[index].is_state) return refuse_state("output", plan->outputs + index, error), error->kind;
  if (!check_address("output", plan->outputs + index, data, error)) return error->kind;
  session->outputs[index].given = data, session->outputs[index].given_bytes = size_bytes;
  session->is_prepared = false;
  return error->kind;
}

const struct ingot_tensor *ingot_input(const ingot_session *session, uint32_t index) {
  bool is_there = session->is_prepared && index < session->bundle->plan.input_count;
  return is_there ? &session->inputs[index].tensor : NULL;
}

const struct ingot_tensor *ingot_output(const ingot_session *session, uint32_t index) {
  bool is_there = session->is_prepared && index < session->bundle->plan.output_count;
  return is_there ? &session->outputs[index].tensor : NULL;
}
