// Which sections there must be, and what the optional ones hold: FORMAT.md, "Section table", "Default", "State", "Alternative".
//
// In: a source, its plan. Out: defaults of inputs, states. Not done here: using alternatives, which are checked alone.
#include "internal.h"

static bool is_memory(const struct plan *plan, u32 id) { return id < plan->device_count && (!id || plan->devices[id].kind != HOST); }

// Whether the plan implies the section; that of weights and trees, the weights sections do.
static bool is_expected(const struct source *source, const struct plan *plan, u32 kind, u32 id) {
  switch (kind) {
    case SECTION_MANIFEST: case SECTION_PLAN: case SECTION_LOCK: case SECTION_DEBUG: return id == 0;
    case SECTION_CODE: case SECTION_PROGRAM: return id < plan->variant_count;
    case SECTION_SHARED: return HAS_SHARED && id == 0 && source->shared;
    case SECTION_LIBRARY: return id < plan->library_count;
    default: return source_row(source, SECTION_WEIGHTS, id) != NULL;
  }
}

static bool check_weights_places(const struct source *source, const struct plan *plan, error *error) {
  u32 count = 0, at = 0;
  i64 before = -1;
  bool in_order = true;
  for (u32 index = 0; index < source->section_count; index++) {
    const struct section *row = source->sections + index;
    if (row->kind != SECTION_WEIGHTS) continue;
    count++;
    if (!REQUIRE(error, is_memory(plan, row->id), "weights of a device that has none", "section table", TEXT("section weights %u", row->id)))
      return false;
  }
  for (at = source->section_count - count; at < source->section_count; at++) {
    in_order = in_order && source->sections[at].kind == SECTION_WEIGHTS && (i64)source->sections[at].id > before;
    before = source->sections[at].id;
  }
  return REQUIRE(error, in_order, "weights are not last, in the order of devices", "section table", "");
}

// Checks that all sections of one kind that the plan implies are there, and no other.
static bool check_kind(const struct source *source, const struct plan *plan, u32 kind, error *error) {
  u64 wrong = UINT64_MAX;
  bool is_missing = false;
  for (u32 id = 0; id < DEVICE_COUNT_MAX || id < VARIANT_COUNT_MAX; id++) {
    bool expected = is_expected(source, plan, kind, id), there = source_row(source, kind, id) != NULL;
    if (expected != there && id < wrong) wrong = id, is_missing = expected;
  }
  for (u32 index = 0; index < source->section_count; index++) {
    const struct section *row = source->sections + index;
    if (row->kind == kind && row->id < wrong && !is_expected(source, plan, kind, row->id)) wrong = row->id, is_missing = false;
  }
  const char *problem = is_missing ? "missing" : "unexpected";
  return REQUIRE(error, wrong == UINT64_MAX, TEXT("%s section %s %lld", problem, kind_name(kind), NUMBER(wrong)), "section table", "");
}

static bool check_tree_sizes(const struct source *source, error *error) {
  for (u32 id = 0; id < DEVICE_COUNT_MAX; id++) {
    const struct section *weights = source_row(source, SECTION_WEIGHTS, id), *tree = source_row(source, SECTION_TREE, id);
    if (!weights || !tree) continue;
    u64 size = weights_bytes(source, id), expected = (size + MIB - 1) / MIB * TREE_ENTRY_SIZE_BYTES;
    bool whole = size % ALIGNMENT_MAPPED_BYTES == 0 && size > 0;
    if (!REQUIRE(error, whole, "wrong size of weights", TEXT("section weights %u", id),
                 TEXT("expected a multiple of %d bytes, got %lld", ALIGNMENT_MAPPED_BYTES, NUMBER(size))) ||
        !REQUIRE(error, tree->size == expected, "wrong tree size", TEXT("section tree %u", id),
                 TEXT("expected %lld, got %lld", NUMBER(expected), NUMBER(tree->size))))
      return false;
  }
  return true;
}

static bool check_kinds(const struct source *source, const struct plan *plan, error *error) {
  if (!check_weights_places(source, plan, error)) return false;
  for (u32 kind = 1; kind < SECTION_KIND_COUNT; kind++)
    if (!is_optional_kind(kind) && !check_kind(source, plan, kind, error)) return false;
  return check_tree_sizes(source, error);
}

static u64 rounded(u64 size, u64 unit) { return (size + unit - 1) / unit * unit; }

static bool is_zero(const u8 *data, u64 size) { return size == 0 || (data[0] == 0 && !memcmp(data, data + 1, size - 1)); }

// Checks the shape of a default; returns the count of its elements.
static u64 default_count(const struct ingot_tensor_info *tensor, const i64 *shape, const char *where, error *error) {
  u64 count = 1;
  for (u32 axis = 0; axis < tensor->rank; axis++) {
    i64 size = shape[axis], dim = tensor->dims[axis];
    bool good = 0 <= size && size <= ELEMENT_COUNT_MAX && (dim < 0 || size == dim);
    if (!REQUIRE(error, good, "a default of another shape", where,
                 TEXT("%s for %s", LIST(shape, tensor->rank), TUPLE(tensor->dims, tensor->rank))))
      return 0;
    count = size && count > SIZE_BYTES_MAX / (u64)size ? SIZE_BYTES_MAX : count * (u64)size;
  }
  return count;
}

static bool decode_default(struct arena *arena, const struct bytes *data, const struct ingot_tensor_info *tensor, const char *where,
                           struct default_value *value, error *error) {
  u64 words = 8 * (1 + (u64)tensor->rank), start = rounded(words, ALIGNMENT_SMALL_BYTES);
  i64 rank = 0, *shape = arena_take(arena, words, error);
  if (!shape || !REQUIRE(error, data->size >= start, "the section ends inside its head", where, TEXT("%lld bytes", NUMBER(data->size)))) return false;
  memcpy(&rank, data->data, 8);
  memcpy(shape, data->data + 8, words - 8);
  if (!REQUIRE(error, rank == tensor->rank, "a default of another rank", where, TEXT("expected %u, got %lld", tensor->rank, NUMBER(rank)))) return false;
  u64 size = default_count(tensor, shape, where, error) * tensor->element_bytes;
  if (!REQUIRE(error, data->size - start == size, "a default of another size", where,
               TEXT("%lld bytes for %llu of elements", NUMBER(data->size), (unsigned long long)size)) ||
      !REQUIRE(error, is_zero(data->data + words, start - words), "bytes before the elements are not zero", where, ""))
    return false;
  u8 *copy = arena_take(arena, size + 1, error);
  if (!copy) return false;
  memcpy(copy, data->data + start, size);
  *value = (struct default_value){shape, copy};
  return true;
}

static bool read_defaults(const struct source *source, struct arena *arena, struct plan *plan, error *error) {
  plan->defaults = arena_take(arena, plan->input_count * sizeof *plan->defaults, error);
  for (u32 index = 0; index < source->section_count && !error->kind; index++) {
    const struct section *row = source->sections + index;
    if (row->kind != SECTION_DEFAULT) continue;
    const char *where = SECTION_NAME(row->kind, row->id);
    if (!REQUIRE(error, row->id < plan->input_count, "a default of no input", where, TEXT("%u inputs", plan->input_count))) return false;
    struct bytes data = source_section(source, SECTION_DEFAULT, row->id, error);
    if (data.data) decode_default(arena, &data, plan->inputs + row->id, where, plan->defaults + row->id, error);
    memory_free(data.data);
    plan->inputs[row->id].has_default = !error->kind;
  }
  return !error->kind;
}

static bool check_state(const struct plan *plan, const i64 *row, const char *where, error *error) {
  i64 given = row[0], made = row[1], axis = row[2];
  bool known = 0 <= given && given < plan->input_count && 0 <= made && made < plan->output_count;
  if (!REQUIRE(error, known, "a state of no input or output", where, TEXT("input %lld, output %lld", NUMBER(given), NUMBER(made)))) return false;
  const struct ingot_tensor_info *held = plan->inputs + given, *result = plan->outputs + made;
  bool is_fixed = axis < 0;
  bool fits = (is_fixed ? -1 - axis : axis) < held->rank && held->rank == result->rank && held->dtype_code == result->dtype_code;
  for (u32 at = 0; fits && is_fixed && at < held->rank; at++) fits = held->dims[at] == result->dims[at];
  return REQUIRE(error, fits, "a state whose output is another tensor", where, TEXT("axis %lld", NUMBER(axis))) &&
         REQUIRE(error, is_fixed || held->dims[axis] < 0, "a state that cannot grow", where, TEXT("axis %lld", NUMBER(axis)));
}

static bool read_state_rows(struct arena *arena, struct plan *plan, const struct bytes *data, error *error) {
  const char *where = "section state 0";
  const u64 width = 3 * sizeof(i64), count = data->size / width;
  bool whole = count >= 1 && data->size % width == 0;
  if (!REQUIRE(error, whole, "the section is no list of rows", where, TEXT("%lld bytes", NUMBER(data->size)))) return false;
  const i64 *rows = (const i64 *)(const void *)data->data;
  for (u64 index = 0; index < count; index++)
    if (!check_state(plan, rows + 3 * index, TEXT("%s, row %lld", where, NUMBER(index)), error)) return false;
  for (int column = 0; column < 2; column++) {
    u8 seen[TENSOR_COUNT_MAX] = {0};
    for (u64 index = 0; index < count; index++)
      if (!REQUIRE(error, !seen[rows[3 * index + column]]++, column ? "an output is two states" : "an input is two states", where, "")) return false;
  }
  plan->states = arena_take(arena, count * sizeof *plan->states, error);
  plan->state_count = plan->states ? (u32)count : 0;
  for (u32 index = 0; index < plan->state_count; index++, rows += 3)
    plan->states[index] = (struct ingot_state){(u32)rows[0], (u32)rows[1], (u32)(rows[2] < 0 ? -1 - rows[2] : rows[2]), rows[2] < 0};
  return !error->kind;
}

static bool read_states(const struct source *source, struct arena *arena, struct plan *plan, error *error) {
  if (!source_row(source, SECTION_STATE, 0)) return true;
  struct bytes data = source_section(source, SECTION_STATE, 0, error);
  if (data.data) read_state_rows(arena, plan, &data, error);
  memory_free(data.data);
  return !error->kind;
}

// Who calls gives and takes the tensors that values are made of: of this section, the digest alone is checked.
static bool check_values(const struct source *source, error *error) {
  if (source_row(source, SECTION_VALUES, 0)) memory_free(source_section(source, SECTION_VALUES, 0, error).data);
  return !error->kind;
}

static bool read_alternative(struct arena *arena, const struct bytes *data, const struct plan *plan, const char *where, struct alternative_plan *made, error *error) {
  i64 words = 0, before = 0;
  memcpy(&words, data->data, data->size < 8 ? data->size : 8);
  bool inside = words >= 0 && data->size >= 8 && (u64)words <= data->size - 8;
  u64 end = 8 + (inside ? (u64)words : 0), start = rounded(end, ALIGNMENT_SMALL_BYTES);
  inside = inside && start <= data->size && is_zero(data->data + end, start - end);
  if (!REQUIRE(error, inside, "the section ends inside its head", where, TEXT("%lld of %lld bytes", NUMBER(8 + words), NUMBER(data->size)))) return false;
  struct reader reader = {.where = where, .arena = arena, .error = error, .plan = plan};
  made->start = start;
  for (u32 index = 0; index < DEVICE_COUNT_MAX; index++) made->ids[index] = -1;
  if (!reader_begin(&reader, data->data + 8, (u64)words)) return false;
  i64 library = read_word(&reader, "library", 0, (i64)plan->library_count - 1);
  read_record(&reader, &(struct item){RECORD_LIBRARY_PLAN, (u8 *)&made->code, "library", -1});
  if (error->kind) return false;
  u32 count = plan->libraries[library].kernel_count;
  const char *why = TEXT("%u, not %u", made->code.kernel_count, count);
  if (!REQUIRE(error, made->code.kernel_count == count, "an alternative with other kernels", where, why)) return false;
  for (i64 left = read_word(&reader, "device count", 1, DEVICE_COUNT_MAX); left > 0 && !error->kind; left--) {
    before = read_word(&reader, "device", before + 1, (i64)plan->device_count - 1);
    if (error->kind) return false;
    bool same = plan->devices[before].library == library;
    if (!REQUIRE(error, same, "an alternative for a device of another library", where, TEXT("%lld", NUMBER(before)))) return false;
    made->ids[before] = read_word(&reader, "device id", 0, CODE_MAX);
  }
  return !error->kind && reader_finish(&reader);
}

static bool read_alternatives(const struct source *source, struct arena *arena, struct plan *plan, error *error) {
  u32 count = 0;
  for (u32 index = 0; index < source->section_count; index++) count += source->sections[index].kind == SECTION_ALTERNATIVE;
  plan->alternatives = arena_take(arena, count * sizeof *plan->alternatives, error);
  for (u32 number = 0; number < count && !error->kind; number++) {
    const char *where = SECTION_NAME(SECTION_ALTERNATIVE, number);
    if (!REQUIRE(error, source_row(source, SECTION_ALTERNATIVE, number), "an alternative is missing", where, TEXT("expected %u", number))) return false;
    struct bytes data = source_section(source, SECTION_ALTERNATIVE, number, error);
    if (data.data) read_alternative(arena, &data, plan, where, plan->alternatives + number, error);
    memory_free(data.data);
    plan->alternative_count = number + 1;
  }
  return !error->kind;
}

static bool check_ranges(const struct source *source, const struct plan *plan, error *error) {
  u64 size = weights_bytes(source, 0);
  for (u32 index = 0; index < plan->variant_count; index++) {
    const struct variant_plan *variant = plan->variants + index;
    if (!variant->range_count) continue;
    struct range last = variant->ranges[variant->range_count - 1];
    if (!REQUIRE(error, last.offset <= size && last.size <= size - last.offset, "weight range outside the weights", "section plan 0",
                 TEXT("%lld bytes at %lld of %lld", NUMBER(last.size), NUMBER(last.offset), NUMBER(size))))
      return false;
  }
  return true;
}

// Reads plan and manifest, and what may be there beside them.
static bool read_plan(struct source *source, struct arena *arena, struct plan *plan, error *error) {
  struct bytes data = source_section(source, SECTION_PLAN, 0, error);
  plan->minor = source->header.minor;
  bool good = data.data && decode_plan(&data, arena, plan, error);
  memory_free(data.data);
  return good && read_shared(source, arena, error) && check_kinds(source, plan, error) && check_manifest(source, plan, error) && read_defaults(source, arena, plan, error) &&
         read_states(source, arena, plan, error) && check_values(source, error) && read_alternatives(source, arena, plan, error) && check_ranges(source, plan, error);
}
