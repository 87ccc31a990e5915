// The states of a session that keeps them: rows behind rows, in memory with room that doubles.
//
// In: what the bundle says of states, shapes. Out: sizes of symbols, places of states. Not done here: calls (`call.c`).
//
// All states lie in one block, each row-major with room for `capacity` rows along its axis. `main` is told that a state's output begins
// where its input does: it writes the new rows behind the others, and copies nothing.
#include "session.h"

#ifdef INGOT_WITHOUT_STATES
static bool keep_states(ingot_session *session, const struct ingot_options *options, error *error) {
  (void)session;
  return (!options->keeps_states && !options->like) || refuse(error, INGOT_INPUT_ERROR, "no states", "keeps_states", "", "");
}

static void tell_sizes(ingot_session *session) { (void)session; }
static bool shape_states(ingot_session *session, error *error) { return (void)session, (void)error, true; }
static bool reserve_states(ingot_session *session, error *error) { return (void)session, (void)error, true; }
static void lengthen_states(ingot_session *session) { (void)session; }
static void free_states(ingot_session *session) { (void)session; }

int ingot_keep(ingot_session *session, int64_t length, const int64_t *entries, uint64_t entry_count, struct ingot_error *error) {
  struct ingot_error own = {0};
  (void)session, (void)length, (void)entries, (void)entry_count;
  if (!error) error = &own;
  clear(error);
  refuse(error, INGOT_INPUT_ERROR, "no states", "ingot_keep", "", "");
  return error->kind;
}
#else
enum { ROWS_MIN = 64 };

static const char *const no_states[] = {"the bundle has no state", "no output of the model is an input with more behind it",
                                        "export it with its caches: past ones as inputs, present ones as outputs"};

#define TOLD(index) (plan->inputs + plan->states[index].input)

// Elements of all axes from `first` on, before `end`; more than there may be where they are too many.
static u64 product(const i64 *shape, u32 first, u32 end) {
  u64 count = 1;
  for (u32 axis = first; axis < end; axis++)
    if (!shape[axis]) return 0;
  for (u32 axis = first; axis < end; axis++) {
    bool fits = count <= SIZE_BYTES_MAX / (u64)shape[axis];
    count = fits ? count * (u64)shape[axis] : (u64)SIZE_BYTES_MAX + 1;
  }
  return count;
}

static bool grows_along(const struct ingot_state *state, u32 axis) { return axis == state->axis && !state->is_fixed; }

static const char *first_fixed(const struct plan *plan) {
  for (u32 index = 0; index < plan->state_count; index++)
    if (plan->states[index].is_fixed) return TOLD(index)->name;
  return NULL;
}

static bool is_any_growing(const struct plan *plan) {
  for (u32 index = 0; index < plan->state_count; index++)
    if (!plan->states[index].is_fixed) return true;
  return false;
}

// Whether a state's rows are those that are counted: of states of fixed length only where no other has any.
static bool counts_rows(const struct plan *plan, u32 index) { return !plan->states[index].is_fixed || !is_any_growing(plan); }

static i64 longest(const struct states *states, const struct plan *plan) {
  i64 length = 0;
  for (u32 index = 0; index < plan->state_count; index++)
    if (counts_rows(plan, index) && states->held[index].length > length) length = states->held[index].length;
  return length;
}

// Notes what the rows that are there say of symbols, then what the user says.
static void tell_sizes(ingot_session *session) {
  const struct plan *plan = &session->bundle->plan;
  const struct states *states = session->states;
  for (u32 index = 0; states && index < plan->state_count; index++) {
    const struct held *held = states->held + index;
    for (u32 axis = 0; axis < TOLD(index)->rank; axis++) {
      bool is_length = grows_along(plan->states + index, axis);
      if (is_length || held->length) tell_size(session, TOLD(index)->dims[axis], is_length ? held->length : held->shape[axis], TOLD(index)->name);
    }
  }
  for (u32 index = 0; states && states->sizes && index < plan->symbols.count; index++)
    if (states->sizes[index] >= 0) tell_size(session, -(i64)index - 1, states->sizes[index], "sizes");
}

// Gives the inputs that are states the shapes of the rows that are there.
static bool shape_states(ingot_session *session, error *error) {
  const struct plan *plan = &session->bundle->plan;
  for (u32 index = 0; session->states && index < plan->state_count; index++) {
    const struct ingot_tensor_info *info = TOLD(index);
    struct slot *slot = session->inputs + plan->states[index].input;
    for (u32 axis = 0; axis < info->rank; axis++) {
      const i64 *known = known_size(session, info->dims[axis], NULL);
      if (!known && info->dims[axis] < 0) {
        const char *symbol = quoted(plan->symbols.items[-info->dims[axis] - 1]);
        return refuse(error, INGOT_INPUT_ERROR, "a state has an unknown size", TEXT("state %s, axis %u", quoted(info->name), axis),
                      TEXT("no input that is given has the size %s", symbol), TEXT("give it for %s in sizes of the options", symbol));
      }
      slot->shape[axis] = known ? *known : info->dims[axis];
    }
    if (!take_input_shape(session, plan->states[index].input, error)) return false;
  }
  return true;
}

// Copies the rows that are there to where they lie with another room; entry i of the batch are those of entry `entries[i]`.
static void copy_rows(const struct held *to, u8 *target, const struct held *from, const u8 *source, const struct ingot_tensor_info *info, u32 along,
                      const i64 *entries) {
  const u64 row = info->element_bytes * product(from->shape, along + 1, info->rank), count = product(from->shape, 0, along);
  const u64 entry = along ? product(from->shape, 1, along) : 1, size = (u64)from->length * row;
  for (u64 index = 0; size && index < count; index++) {
    u64 chosen = entries ? (u64)entries[index / entry] * entry + index % entry : index;
    memcpy(target + to->offset + index * (u64)to->shape[along] * row, source + from->offset + chosen * (u64)from->shape[along] * row, (size_t)size);
  }
}

// Takes a block for states of these shapes, which hold as many rows as those before, and copies the rows that are there.
static bool move_states(ingot_session *session, const struct held *from, const u8 *source, i64 capacity, error *error) {
  const struct plan *plan = &session->bundle->plan;
  struct states *states = session->states;
  struct block block = {0};
  u64 end = 0;
  for (u32 index = 0; index < plan->state_count; index++) {
    struct held *held = states->next + index;
    if (!plan->states[index].is_fixed) held->shape[plan->states[index].axis] = capacity;
    held->offset = end, held->bytes = tensor_bytes(TOLD(index), held->shape), end += rounded(held->bytes, ALIGNMENT_SMALL_BYTES);
  }
  if (!block_make(&block, end > ALIGNMENT_SMALL_BYTES ? end : ALIGNMENT_SMALL_BYTES, error)) return false;
  for (u32 index = 0; index < plan->state_count; index++) {
    struct held *held = states->next + index;
    held->length = from[index].length;
    if (source) copy_rows(held, block.data, from + index, source, TOLD(index), plan->states[index].axis, NULL);
  }
  struct held *old = states->held;
  block_free(&states->block), block_free(&states->spare);
  states->held = states->next, states->next = old, states->block = block, states->capacity = capacity;
  return true;
}

// Says where the input and the output of a state are: at one place, with room.
static void place_state(ingot_session *session, u32 index) {
  const struct ingot_state *state = session->bundle->plan.states + index;
  const struct states *states = session->states;
  const struct held *held = states->held + index;
  struct ingot_tensor *pair[] = {&session->inputs[state->input].tensor, &session->outputs[state->output].tensor};
  for (int side = 0; side < 2; side++)
    pair[side]->data = (u8 *)states->block.data + held->offset, pair[side]->size_bytes = held->bytes, pair[side]->capacity = held->shape[state->axis],
    pair[side]->axis = state->axis;
  session->call_inputs[state->input].data = session->call_outputs[state->output].data = ADDRESS(pair[0]->data);
  session->call_outputs[state->output].bytes = held->bytes;
}

// Makes room for the rows that this call leaves, if there is less, and says where the states are.
static bool reserve_states(ingot_session *session, error *error) {
  const struct plan *plan = &session->bundle->plan;
  struct states *states = session->states;
  i64 rows = 0;
  if (!states) return true;
  bool fits = states->block.data != NULL;
  for (u32 index = 0; index < plan->state_count; index++) {
    const struct ingot_state *state = plan->states + index;
    const i64 *shape = session->outputs[state->output].shape, *before = session->inputs[state->input].shape;
    if (counts_rows(plan, index) && shape[state->axis] > rows) rows = shape[state->axis];
    const char *row = TEXT("section state 0, row %u", index), *another = "a state whose output is another tensor";
    if (!REQUIRE(error, !session->outputs[state->output].is_open, another, row, "its size depends on the data")) return false;
    for (u32 axis = 0; axis < TOLD(index)->rank; axis++) {
      bool same = grows_along(state, axis) || shape[axis] == before[axis];
      if (!REQUIRE(error, same, another, row, TEXT("axis %u", axis))) return false;
      fits = fits && (grows_along(state, axis) || states->held[index].shape[axis] == shape[axis]);
      states->next[index].shape[axis] = shape[axis];
    }
  }
  const i64 most = states->max_length, had = longest(states, plan);
  if (most && rows > most) {
    const char *why = TEXT("max_length is %lld: it has %lld rows, this call makes them %lld", NUMBER(most), NUMBER(had), NUMBER(rows));
    return refuse(error, INGOT_INPUT_ERROR, "a state outgrows its bound", "ingot_run", why, "begin anew with ingot_keep, or ask for more with max_length");
  }
  if (rows > states->capacity || !fits) {
    i64 capacity = rows <= states->capacity ? states->capacity : states->capacity > INT64_MAX / 2 ? INT64_MAX : 2 * states->capacity;
    if (capacity < rows) capacity = rows;
    if (capacity < ROWS_MIN) capacity = ROWS_MIN;
    if (!is_any_growing(plan)) capacity = rows;
    if (most && capacity > most) capacity = most;
    if (!move_states(session, states->held, states->block.data, capacity, error)) return false;
  }
  for (u32 index = 0; index < plan->state_count; index++) {
    const struct held *held = states->held + index;
    if (plan->states[index].is_fixed && !held->length) memset((u8 *)states->block.data + held->offset, 0, (size_t)held->bytes);
    place_state(session, index);
  }
  return true;
}

// After a call that was right: the rows that it added are there.
static void lengthen_states(ingot_session *session) {
  const struct plan *plan = &session->bundle->plan;
  for (u32 index = 0; session->states && index < plan->state_count; index++) {
    const struct ingot_state *state = plan->states + index;
    session->states->held[index].length = session->outputs[state->output].shape[state->axis];
  }
  session->is_stale = session->states != NULL;
}

static bool is_of_input(const struct plan *plan, i64 dim) {
  for (u32 index = 0; index < plan->input_count; index++)
    for (u32 axis = 0; axis < plan->inputs[index].rank; axis++)
      if (plan->inputs[index].dims[axis] == dim) return true;
  return false;
}

static bool take_states(ingot_session *session, const struct ingot_options *options, error *error) {
  const struct plan *plan = &session->bundle->plan;
  const struct states *from = options->like ? options->like->states : NULL;
  const i64 *sizes = options->sizes ? options->sizes : from ? from->sizes : NULL;
  struct states *states = arena_take(&session->arena, sizeof *states, error);
  struct held *held = arena_take(&session->arena, 2 * plan->state_count * sizeof *held, error);
  i64 *kept = sizes ? arena_take(&session->arena, (plan->symbols.count + 1) * sizeof *kept, error) : NULL;
  if (error->kind) return false;
  for (u32 index = 0; sizes && index < plan->symbols.count; index++) kept[index] = is_of_input(plan, -(i64)index - 1) ? sizes[index] : -1;
  *states = (struct states){.held = held, .next = held + plan->state_count, .sizes = kept};
  states->max_length = options->max_length || !from ? options->max_length : from->max_length;
  session->states = states;
  for (u32 index = 0; index < plan->state_count; index++)
    session->inputs[plan->states[index].input].is_state = session->outputs[plan->states[index].output].is_state = true;
  return true;
}

static bool copy_states(ingot_session *session, ingot_session *like, error *error) {
  const struct states *from = like->states;
  if (!begin(like, 0, error)) return false;
  if (from->block.data) {
    memcpy(session->states->next, from->held, session->bundle->plan.state_count * sizeof *from->held);
    move_states(session, from->held, from->block.data, from->capacity, error);
  }
  end(like);
  return !error->kind;
}

// Lets the session keep states: none yet, or those of the one that it is to be like.
static bool keep_states(ingot_session *session, const struct ingot_options *options, error *error) {
  const struct ingot_session *like = options->like;
  if (!options->keeps_states && (!like || !like->states)) return true;
  if (!session->bundle->plan.state_count) return refuse(error, INGOT_INPUT_ERROR, no_states[0], "ingot_open", no_states[1], no_states[2]);
  if (options->max_length < 0) {
    const char *why = TEXT("expected an integer of at least 1, got %lld", NUMBER(options->max_length));
    return refuse(error, INGOT_INPUT_ERROR, "bad length", "ingot_open, max_length", why, "");
  }
  return take_states(session, options, error) && (!like || !like->states || copy_states(session, options->like, error));
}

static void free_states(ingot_session *session) {
  if (session->states) block_free(&session->states->block), block_free(&session->states->spare);
}

// Whether the entries are those of every state's batch.
static bool check_entries(const ingot_session *session, const i64 *entries, u64 count, error *error) {
  const struct plan *plan = &session->bundle->plan;
  for (u32 index = 0; index < plan->state_count; index++) {
    i64 size = session->states->held[index].shape[0];
    bool good = session->states->block.data && plan->states[index].axis && count == (u64)size;
    for (u64 at = 0; good && at < count; at++) good = 0 <= entries[at] && entries[at] < size;
    if (good) continue;
    const char *got = count <= RANK_MAX ? LIST(entries, (u32)count) : TEXT("%llu numbers", (unsigned long long)count);
    return refuse(error, INGOT_INPUT_ERROR, "bad batch entries", "ingot_keep", TEXT("expected %lld numbers from 0 to %lld, got %s", NUMBER(size), NUMBER(size - 1), got), "");
  }
  return true;
}

// In a second block, which stays for the next time.
static bool reorder_states(ingot_session *session, const i64 *entries, u64 count, error *error) {
  const struct plan *plan = &session->bundle->plan;
  struct states *states = session->states;
  struct block old = states->block;
  if (!check_entries(session, entries, count, error)) return false;
  if (!states->spare.data && !block_make(&states->spare, old.size, error)) return false;
  for (u32 index = 0; index < plan->state_count; index++)
    copy_rows(states->held + index, states->spare.data, states->held + index, old.data, TOLD(index), plan->states[index].axis, entries);
  states->block = states->spare, states->spare = old;
  return true;
}

static bool keep(ingot_session *session, i64 length, const i64 *entries, u64 count, error *error) {
  const struct plan *plan = &session->bundle->plan;
  struct states *states = session->states;
  i64 most = states ? longest(states, plan) : 0;
  if (!states)
    return refuse(error, INGOT_INPUT_ERROR, "the session keeps no states", "ingot_keep", "it was opened without keeps_states", "open one with keeps_states");
  if (length < -1 || length > most)
    return refuse(error, INGOT_INPUT_ERROR, "bad length", "ingot_keep", TEXT("expected 0 to %lld rows, got %lld", NUMBER(most), NUMBER(length)), "");
  if (first_fixed(plan) && length > 0 && length < most) {
    const char *why = TEXT("%s has a fixed length", quoted(first_fixed(plan)));
    return refuse(error, INGOT_INPUT_ERROR, "no rows to take back", "ingot_keep", why, "write over the rows, or begin anew");
  }
  if (entries && !reorder_states(session, entries, count, error)) return false;
  for (u32 index = 0; index < plan->state_count; index++)
    if (length >= 0 && states->held[index].length > length && (!length || !plan->states[index].is_fixed)) states->held[index].length = length;
  session->is_prepared = false;
  return true;
}

int ingot_keep(ingot_session *session, int64_t length, const int64_t *entries, uint64_t entry_count, struct ingot_error *error) {
  struct ingot_error own;
  if (!error) error = &own;
  clear(error);
  if (!begin(session, 0, error)) return error->kind;
  keep(session, length, entries, entry_count, error);
  end(session);
  return error->kind;
}
#endif
