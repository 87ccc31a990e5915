// The plan: all that a loader needs to know. FORMAT.md, "Plan".
//
// In: the plan section. Out: `struct plan`, checked. Not done here: agreement with manifest (`manifest.c`) and image (`image.c`).
#include "internal.h"

static const char *const device_kinds[] = {DEVICE_KIND_NAMES};
static const char *const dtype_names[] = {DTYPE_NAMES};
static const u8 dtype_sizes[] = {DTYPE_SIZES_BYTES};

enum { HOST = 0, CODE_MAX = 0x7fffffff };

static i64 read_kind(struct reader *reader, const char *where, i64 first) {
  i64 kind = read_word(reader, "device kind", first, CODE_MAX);
  if (kind >= (i64)COUNT_OF(device_kinds)) unknown(reader->error, TEXT("device kind %lld", NUMBER(kind)), where, "the bundle needs it");
  return reader->error->kind ? first : kind;
}

static bool read_device(struct reader *reader, struct device_plan *device) {
  device->name = read_text(reader, "device name");
  device->kind = read_kind(reader, TEXT("%s, device %s", reader->where, quoted(device->name)), 0);
  device->id = read_word(reader, "device id", 0, CODE_MAX);
  device->scope = read_text(reader, "device scope");
  device->library = read_word(reader, "device library", -1, DEVICE_COUNT_MAX - 1);
  return !reader->error->kind;
}

static void read_features(struct reader *reader, struct code_plan *code) {
  code->features = read_texts(reader, "feature", FEATURE_COUNT_MAX, &code->feature_count);
  bool sorted = true;
  for (u32 index = 1; index < code->feature_count && !reader->error->kind; index++)
    sorted = sorted && strcmp(code->features[index - 1], code->features[index]) < 0;
  REQUIRE(reader->error, sorted, "features not sorted", "section plan 0", code->target);
}

static void read_library(struct reader *reader, const char *where, struct library_plan *library) {
  library->kind = read_kind(reader, where, 1);
  library->code.target = read_text(reader, "library target");
  read_features(reader, &library->code);
  library->code.kernel_count = (u32)read_word(reader, "kernel count", 0, KERNEL_COUNT_MAX);
}

// A host has no library, each other device one of its own kind, and each library has a device.
static bool require_libraries(const struct plan *plan, const char *place, error *error) {
  u32 used = 0;
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

// Reads dims, whose sizes together may not be too large; returns whether they are.
static bool read_dims(struct reader *reader, const char *what, u32 symbol_count, struct ingot_tensor_info *tensor) {
  i64 *dims = arena_take(reader->arena, tensor->rank * sizeof *dims, reader->error);
  u64 size = tensor->element_bytes;
  for (u32 axis = 0; axis < tensor->rank && !reader->error->kind; axis++) {
    dims[axis] = read_named(reader, "%s dimension", what, -(i64)symbol_count, ELEMENT_COUNT_MAX);
    u64 count = dims[axis] > 1 ? (u64)dims[axis] : 1;
    size = size > ELEMENT_COUNT_MAX / count ? (u64)ELEMENT_COUNT_MAX + 1 : size * count;
  }
  tensor->dims = dims;
  return size <= ELEMENT_COUNT_MAX;
}

static void read_tensor(struct reader *reader, const char *what, u32 symbol_count, struct ingot_tensor_info *tensor) {
  error *error = reader->error;
  tensor->name = read_named_text(reader, "%s name", what);
  i64 dtype = read_named(reader, "%s dtype", what, 0, CODE_MAX);
  if (dtype >= (i64)COUNT_OF(dtype_names))
    unknown(error, TEXT("dtype %lld", NUMBER(dtype)), TEXT("%s, %s %s", reader->where, what, quoted(tensor->name)), "the bundle needs it");
  if (error->kind) return;
  tensor->dtype_code = (u32)dtype, tensor->dtype = dtype_names[dtype], tensor->element_bytes = dtype_sizes[dtype];
  tensor->rank = (u32)read_named(reader, "%s rank", what, 0, RANK_MAX);
  bool fits = read_dims(reader, what, symbol_count, tensor);
  REQUIRE(error, fits, TEXT("%s too large", what), TEXT("%s, %s %s", reader->where, what, quoted(tensor->name)),
          TUPLE(tensor->dims, tensor->rank));
}

static struct ingot_tensor_info *read_tensors(struct reader *reader, const char *what, u32 symbol_count, u32 *count) {
  *count = (u32)read_named(reader, "%s count", what, 0, TENSOR_COUNT_MAX);
  struct ingot_tensor_info *tensors = arena_take(reader->arena, *count * sizeof *tensors, reader->error);
  for (u32 index = 0; index < *count && !reader->error->kind; index++) read_tensor(reader, what, symbol_count, tensors + index);
  return tensors;
}

static void read_variant(struct reader *reader, u32 device_count, struct variant_plan *variant) {
  variant->code.target = read_text(reader, "variant target");
  variant->rank = read_word(reader, "variant rank", 0, (i64)1 << 31);
  read_features(reader, &variant->code);
  variant->code.kernel_count = (u32)read_word(reader, "kernel count", 0, KERNEL_COUNT_MAX);
  for (u32 index = 0; index < device_count; index++)
    variant->workspace_bytes[index] = (u64)read_word(reader, "workspace bytes", 0, SIZE_BYTES_MAX);
  variant->range_count = (u32)read_word(reader, "weight range count", 0, RANGE_COUNT_MAX);
  variant->ranges = arena_take(reader->arena, variant->range_count * sizeof *variant->ranges, reader->error);
  i64 end = 0;
  for (u32 index = 0; index < variant->range_count && !reader->error->kind; index++) {
    i64 offset = read_word(reader, "weight range offset", end, SIZE_BYTES_MAX);
    i64 size = read_word(reader, "weight range size", 1, SIZE_BYTES_MAX);
    end = offset + size;
    variant->ranges[index] = (struct range){(u64)offset, (u64)size};
  }
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
static bool require_unique(struct reader *reader, const char *what, const void *first, size_t stride, u32 count) {
  error *error = reader->error;
  const char **names = arena_take(reader->arena, count * sizeof *names, error);
  if (!names) return false;
  for (u32 index = 0; index < count; index++) names[index] = *(const char *const *)((const char *)first + index * stride);
  sort_names(names, count);
  bool twice = false;
  for (u32 index = 1; index < count; index++) twice = twice || !strcmp(names[index - 1], names[index]);
  if (!twice) return true;
  char why[TEXT_BYTES] = "";
  for (u32 index = 0; index < count; index++) append(why, "%s%s", index ? ", " : "", names[index]);
  why[200] = 0;
  return damaged(error, TEXT("%s name appears twice", what), reader->where, why);
}

static bool require_unique_names(struct reader *reader, const struct plan *plan) {
  return require_unique(reader, "device", &plan->devices->name, sizeof *plan->devices, plan->device_count) &&
         require_unique(reader, "symbol", plan->symbols, sizeof *plan->symbols, plan->symbol_count) &&
         require_unique(reader, "input", plan->inputs, sizeof *plan->inputs, plan->input_count) &&
         require_unique(reader, "output", plan->outputs, sizeof *plan->outputs, plan->output_count) &&
         require_unique(reader, "variant", plan->variants, sizeof *plan->variants, plan->variant_count);
}

static bool read_devices(struct reader *reader, struct plan *plan) {
  error *error = reader->error;
  plan->device_count = (u32)read_word(reader, "device count", 1, DEVICE_COUNT_MAX);
  for (u32 index = 0; index < plan->device_count && !error->kind; index++) read_device(reader, plan->devices + index);
  if (error->kind) return false;
  const char *first = device_kinds[plan->devices[0].kind];
  if (!REQUIRE(error, plan->devices[0].kind == HOST, "the first device is not the host", reader->where, first)) return false;
  plan->library_count = (u32)read_word(reader, "library count", 0, DEVICE_COUNT_MAX);
  for (u32 index = 0; index < plan->library_count && !error->kind; index++)
    read_library(reader, TEXT("%s, library %u", reader->where, index), plan->libraries + index);
  return !error->kind && require_libraries(plan, reader->where, error);
}

static bool decode_plan(const struct bytes *data, struct arena *arena, struct plan *plan, error *error) {
  struct reader reader = {.where = "section plan 0", .arena = arena, .error = error};
  if (error->kind || !reader_begin(&reader, data->data, data->size)) return false;
  i64 version = read_word(&reader, "plan version", 1, CODE_MAX);
  if (version != PLAN_VERSION) unknown(error, TEXT("plan version %lld", NUMBER(version)), reader.where, "the bundle needs it");
  plan->model = read_text(&reader, "model name");
  if (!read_devices(&reader, plan)) return false;
  plan->symbols = read_texts(&reader, "symbol", SYMBOL_COUNT_MAX, &plan->symbol_count);
  plan->inputs = read_tensors(&reader, "input", plan->symbol_count, &plan->input_count);
  plan->outputs = read_tensors(&reader, "output", plan->symbol_count, &plan->output_count);
  plan->variant_count = (u32)read_word(&reader, "variant count", 1, VARIANT_COUNT_MAX);
  plan->variants = arena_take(arena, plan->variant_count * sizeof *plan->variants, error);
  for (u32 index = 0; index < plan->variant_count && !error->kind; index++)
    read_variant(&reader, plan->device_count, plan->variants + index);
  return !error->kind && reader_finish(&reader) && require_unique_names(&reader, plan);
}
