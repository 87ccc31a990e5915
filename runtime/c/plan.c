// The plan: all that a loader needs to know. FORMAT.md, "Plan".
//
// In: the plan section, the rows of its records (`abi.h`). Out: `struct plan`, checked. Not done here: agreement with manifest (`manifest.c`)
// and image (`image.c`).
#include "internal.h"

static const char *const device_kinds[] = {DEVICE_KIND_NAMES};
static const char *const dtype_names[] = {DTYPE_NAMES};
static const u8 dtype_sizes[] = {DTYPE_SIZES_BYTES};

enum { HOST = 0, CODE_MAX = 0x7fffffff };

// A field of a record: its key in the manifest, its name in errors ("": the record's noun and the key), its bounds, or those of its count.
static const struct row {
  const char *key, *what;
  i64 high;
  i8 low;
  u8 at, size;  // where its value is in the struct, and bytes of it, or of one item; a count is behind the pointer to items
  u8 of;        // the record of items, the list of codes, the place of the text that errors of sorted texts show
  u8 kind, nth;  // the row that comes at this place in the manifest
  bool is_unique;
  u8 since;  // the minor version of the first bundles that have it
} rows[] = {ROWS};

static const struct record {
  u8 first, count;
} records[] = {RECORDS};

static const struct codes {
  const char *what;
  const char *const *names;
  u32 count;
} codes[] = {{"device kind", device_kinds, COUNT_OF(device_kinds)}, {"dtype", dtype_names, COUNT_OF(dtype_names)}};

// What is being read: `number` of `records`, into `at`; errors name it by noun and name or index, or by the section where the index is -1.
struct item {
  u32 number;
  u8 *at;
  const char *noun;
  i64 index;
};

static const char *place_of(const struct reader *reader, const struct item *item) {
  const char *name = NULL;
  if (item->index < 0) return reader->where;
  if (!strcmp(rows[records[item->number].first].key, "name")) memcpy(&name, item->at, sizeof name);
  return name ? TEXT("%s, %s %s", reader->where, item->noun, quoted(name)) : TEXT("%s, %s %lld", reader->where, item->noun, NUMBER(item->index));
}

// Sorts by Shell's method, whose gaps shrink to a third: of 4096 names each moves a few times.
static void sort_names(const char **names, u32 count) {
  u32 gap = 1;
  while (gap < count / 3) gap = 3 * gap + 1;
  for (; gap; gap /= 3)
    for (u32 index = gap; index < count; index++) {
      const char *name = names[index];
      u32 at = index;
      for (; at >= gap && strcmp(names[at - gap], name) > 0; at -= gap) names[at] = names[at - gap];
      names[at] = name;
    }
}

// Requires `count` names, each at a distance of `stride` bytes, to be different.
static bool require_unique(struct reader *reader, const char *what, const u8 *first, size_t stride, u32 count) {
  error *error = reader->error;
  const char **names = arena_take(reader->arena, count * sizeof *names, error);
  if (!names) return false;
  for (u32 index = 0; index < count; index++) memcpy(names + index, first + index * stride, sizeof *names);
  sort_names(names, count);
  bool twice = false;
  for (u32 index = 1; index < count; index++) twice = twice || !strcmp(names[index - 1], names[index]);
  if (!twice) return true;
  char why[TEXT_BYTES] = "";
  for (u32 index = 0; index < count; index++) append(why, "%s%s", index ? ", " : "", names[index]);
  why[200] = 0;
  return damaged(error, TEXT("%s name appears twice", what), reader->where, why);
}

static void read_record(struct reader *reader, const struct item *item);

// Whether the dimensions of a tensor, whose code is read, are not too large together.
static bool is_dims_size(const struct ingot_tensor_info *tensor) {
  u64 size = dtype_sizes[tensor->dtype_code];
  for (u32 axis = 0; axis < tensor->rank; axis++) {
    u64 count = tensor->dims[axis] > 1 ? (u64)tensor->dims[axis] : 1;
    size = size > ELEMENT_COUNT_MAX / count ? (u64)ELEMENT_COUNT_MAX + 1 : size * count;
  }
  return size <= ELEMENT_COUNT_MAX;
}

// Reads one item of a list into `at`; it begins at `end` or behind it, and moves it.
static void read_item(struct reader *reader, const struct row *row, const char *what, u8 *at, u32 index, i64 *end) {
  char named[TEXT_SMALL_BYTES];
  i64 values[2] = {0};
  if (row->kind == ROW_RECORDS) {
    read_record(reader, &(struct item){row->of, at, row->what, index});
    return;
  }
  if (row->kind <= ROW_SORTED_TEXTS) values[0] = (i64)(uintptr_t)read_text(reader, what);
  else if (row->kind == ROW_WORDS_PER_DEVICE) values[0] = read_word(reader, what, row->low, row->high);
  else if (row->kind == ROW_DIMS) {
    WRITE(named, "%s dimension", what);
    values[0] = read_word(reader, named, -(i64)reader->plan->symbols.count, ELEMENT_COUNT_MAX);
  } else {
    WRITE(named, "%s offset", what);
    values[0] = read_word(reader, named, *end, SIZE_BYTES_MAX);
    WRITE(named, "%s size", what);
    values[1] = read_word(reader, named, 1, SIZE_BYTES_MAX);
    *end = values[0] + values[1];
  }
  memcpy(at, values, row->size);
}

static void read_list(struct reader *reader, const struct row *row, const char *what, const struct item *item) {
  error *error = reader->error;
  char counted[TEXT_SMALL_BYTES];
  const char *target;
  i64 end = 0;
  WRITE(counted, row->kind == ROW_DIMS ? "%s rank" : "%s count", what);
  u32 count = row->kind == ROW_WORDS_PER_DEVICE ? reader->plan->device_count : (u32)read_word(reader, counted, row->low, row->high);
  u8 *items = arena_take(reader->arena, (u64)count * row->size, error), *at = item->at + row->at;
  for (u32 index = 0; index < count && !error->kind; index++) read_item(reader, row, what, items + index * row->size, index, &end);
  if (error->kind) return;
  memcpy(at, &items, sizeof items), memcpy(at + sizeof items, &count, sizeof count);
  if (row->is_unique) require_unique(reader, what, items, row->size, count);
  if (row->kind == ROW_DIMS)
    REQUIRE(error, is_dims_size((const void *)item->at), TEXT("%s too large", what), place_of(reader, item), TUPLE((const i64 *)(const void *)items, count));
  if (row->kind != ROW_SORTED_TEXTS) return;
  bool sorted = true;
  for (u32 index = 1; index < count; index++) sorted = sorted && strcmp(((const char **)(void *)items)[index - 1], ((const char **)(void *)items)[index]) < 0;
  memcpy(&target, item->at + row->of, sizeof target);
  REQUIRE(error, sorted, TEXT("%s not sorted", row->key), reader->where, target);
}

static void read_field(struct reader *reader, const struct row *row, const struct item *item) {
  char what[TEXT_SMALL_BYTES];
  if (*row->what || row->kind == ROW_DIMS) WRITE(what, "%s", *row->what ? row->what : item->noun);
  else WRITE(what, "%s %s", item->noun, row->key);
  if (row->kind > ROW_DTYPE) {
    read_list(reader, row, what, item);
    return;
  }
  i64 value = row->kind == ROW_TEXT ? (i64)(uintptr_t)read_text(reader, what) : read_word(reader, what, row->low, row->high);
  if (row->kind >= ROW_DEVICE_KIND && value >= codes[row->of].count)
    unknown(reader->error, TEXT("%s %lld", codes[row->of].what, NUMBER(value)), place_of(reader, item), "the bundle needs it");
  memcpy(item->at + row->at, &value, row->size);
}

// The first device is the host, which has no library; each other device has one of its own kind, and each library a device.
static bool require_libraries(const struct plan *plan, const char *place, error *error) {
  u32 used = 0, first = error->kind ? HOST : plan->devices->kind;
  if (!REQUIRE(error, first == HOST, "the first device is not the host", place, device_kinds[first])) return false;
  for (u32 index = 0; index < plan->device_count; index++) {
    const struct device_plan *device = plan->devices + index;
    i64 library = device->library;
    if (device->kind == HOST) {
      if (!REQUIRE(error, library == -1, "a host with a library", TEXT("%s, device %s", place, quoted(device->name)),
                   TEXT("library %lld", NUMBER(library))))
        return false;
      continue;
    }
    if (!REQUIRE(error, 0 <= library && library < plan->library_count, "device without a library",
                 TEXT("%s, device %s", place, quoted(device->name)), TEXT("library %lld of %u", NUMBER(library), plan->library_count)) ||
        !REQUIRE(error, plan->libraries[library].kind == device->kind, "library of another kind",
                 TEXT("%s, device %s", place, quoted(device->name)),
                 TEXT("a %s device, a %s library", device_kinds[device->kind], device_kinds[plan->libraries[library].kind])))
      return false;
    used |= 1u << library;
  }
  for (u32 index = 0; index < plan->library_count; index++)
    if (!REQUIRE(error, used >> index & 1, "library of no device", place, TEXT("library %u", index))) return false;
  return true;
}

static void read_record(struct reader *reader, const struct item *item) {
  const struct row *row = rows + records[item->number].first, *end = row + records[item->number].count;
  for (; row < end && !reader->error->kind; row++) {
    if (row->since <= reader->plan->minor) read_field(reader, row, item);
    else if (row->kind == ROW_TEXT) memcpy(item->at + row->at, &(const char *){""}, sizeof(char *));
    if (row->kind == ROW_RECORDS && row->of == RECORD_LIBRARY_PLAN) require_libraries(reader->plan, reader->where, reader->error);
  }
}

static void name_types(struct ingot_tensor_info *tensors, u32 count) {
  for (u32 index = 0; index < count; index++)
    tensors[index].dtype = dtype_names[tensors[index].dtype_code], tensors[index].element_bytes = dtype_sizes[tensors[index].dtype_code];
}

static bool decode_plan(const struct bytes *data, struct arena *arena, struct plan *plan, error *error) {
  struct reader reader = {.where = "section plan 0", .arena = arena, .error = error, .plan = plan};
  if (error->kind || !reader_begin(&reader, data->data, data->size)) return false;
  i64 version = read_word(&reader, "plan version", 1, CODE_MAX);
  if (version != PLAN_VERSION) unknown(error, TEXT("plan version %lld", NUMBER(version)), reader.where, "the bundle needs it");
  read_record(&reader, &(struct item){RECORD_PLAN, (u8 *)plan, "plan", -1});
  name_types(plan->inputs, plan->input_count), name_types(plan->outputs, plan->output_count);
  return reader_finish(&reader);
}
