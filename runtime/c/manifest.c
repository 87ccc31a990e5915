// The manifest: the only bytes that it may have, compared instead of decoded. FORMAT.md, "Manifest".
//
// In: a plan, the manifest section. Out: whether they agree. Not done here: reading msgpack.
#include "internal.h"

// What is written is compared with `data`; `at` ends beyond `size` where something differs.
struct packer {
  const u8 *data;
  u64 size, at;
  bool differs;
};

static void pack_bytes(struct packer *packer, const void *data, u64 size) {
  bool same = size <= packer->size - packer->at && !memcmp(packer->data + packer->at, data, size);
  if (!same) packer->differs = true;
  else packer->at += size;
}

// A head of msgpack: its first byte, then a number with its highest byte first.
static void pack_head(struct packer *packer, u8 first, u64 value, int size) {
  u8 head[9] = {first};
  for (int at = 0; at < size; at++) head[1 + at] = (u8)(value >> 8 * (size - 1 - at));
  pack_bytes(packer, head, 1 + (u64)size);
}

static void pack_text(struct packer *packer, const char *text) {
  u64 size = strlen(text);
  if (size < 32) pack_head(packer, (u8)(0xa0 | size), 0, 0);
  else if (size < 256) pack_head(packer, 0xd9, size, 1);
  else pack_head(packer, 0xda, size, 2);
  pack_bytes(packer, text, size);
}

static void pack_many(struct packer *packer, u8 fixed, u8 first, u64 count) {
  if (count < 16) pack_head(packer, (u8)(fixed | count), 0, 0);
  else if (count < 1 << 16) pack_head(packer, first, count, 2);
  else pack_head(packer, (u8)(first + 1), count, 4);
}

static void pack_list(struct packer *packer, u64 count) { pack_many(packer, 0x90, 0xdc, count); }
static void pack_map(struct packer *packer, u64 count) { pack_many(packer, 0x80, 0xde, count); }

static void pack_integer(struct packer *packer, i64 value) {
  if (-32 <= value && value < 128) {
    pack_head(packer, (u8)value, 0, 0);
    return;
  }
  u64 bits = (u64)value;
  bool negative = value < 0;
  u8 first = negative ? 0xd0 : 0xcc;
  for (int step = 0; step < 4; step++) {
    int size = 1 << step, width = 8 * size;
    bool fits = step == 3 || (negative ? value >= -((i64)1 << (width - 1)) : bits < (u64)1 << width);
    if (!fits) continue;
    pack_head(packer, (u8)(first + step), bits, size);
    return;
  }
}

static void pack_texts(struct packer *packer, const char *const *texts, u32 count) {
  pack_list(packer, count);
  for (u32 index = 0; index < count; index++) pack_text(packer, texts[index]);
}

static void pack_named(struct packer *packer, const char *name, i64 value) { pack_text(packer, name), pack_integer(packer, value); }

static void pack_named_text(struct packer *packer, const char *name, const char *value) {
  pack_text(packer, name), pack_text(packer, value);
}

static void pack_tensors(struct packer *packer, const struct plan *plan, const struct ingot_tensor_info *tensors, u32 count) {
  pack_list(packer, count);
  for (u32 index = 0; index < count; index++) {
    const struct ingot_tensor_info *tensor = tensors + index;
    pack_map(packer, 3);
    pack_named_text(packer, "dtype", tensor->dtype);
    pack_named_text(packer, "name", tensor->name);
    pack_text(packer, "shape");
    pack_list(packer, tensor->rank);
    for (u32 axis = 0; axis < tensor->rank; axis++) {
      i64 dim = tensor->dims[axis];
      if (dim < 0) pack_text(packer, plan->symbols[-dim - 1]);
      else pack_integer(packer, dim);
    }
  }
}

static void pack_features(struct packer *packer, const struct code_plan *code) {
  pack_text(packer, "features");
  pack_texts(packer, code->features, code->feature_count);
  pack_named(packer, "kernels", code->kernel_count);
}

static void pack_devices(struct packer *packer, const struct plan *plan) {
  pack_text(packer, "devices");
  pack_list(packer, plan->device_count);
  for (u32 index = 0; index < plan->device_count; index++) {
    const struct device_plan *device = plan->devices + index;
    pack_map(packer, 5);
    pack_named(packer, "id", device->id);
    pack_named_text(packer, "kind", device_kinds[device->kind]);
    pack_named(packer, "library", device->library);
    pack_named_text(packer, "name", device->name);
    pack_named_text(packer, "scope", device->scope);
  }
}

static void pack_libraries(struct packer *packer, const struct plan *plan) {
  pack_text(packer, "libraries");
  pack_list(packer, plan->library_count);
  for (u32 index = 0; index < plan->library_count; index++) {
    const struct library_plan *library = plan->libraries + index;
    pack_map(packer, 4);
    pack_features(packer, &library->code);
    pack_named_text(packer, "kind", device_kinds[library->kind]);
    pack_named_text(packer, "target", library->code.target);
  }
}

static void pack_variants(struct packer *packer, const struct plan *plan) {
  pack_text(packer, "variants");
  pack_list(packer, plan->variant_count);
  for (u32 index = 0; index < plan->variant_count; index++) {
    const struct variant_plan *variant = plan->variants + index;
    pack_map(packer, 5);
    pack_features(packer, &variant->code);
    pack_named(packer, "rank", variant->rank);
    pack_named_text(packer, "target", variant->code.target);
    pack_text(packer, "workspace_bytes");
    pack_list(packer, plan->device_count);
    for (u32 device = 0; device < plan->device_count; device++) pack_integer(packer, (i64)variant->workspace_bytes[device]);
  }
}

static bool check_manifest(const struct source *source, const struct plan *plan, error *error) {
  struct bytes manifest = source_section(source, SECTION_MANIFEST, 0, error);
  struct packer packer = {manifest.data, manifest.size, 0, false};
  if (!manifest.data) return false;
  pack_map(&packer, 7);
  pack_devices(&packer, plan);
  pack_text(&packer, "inputs");
  pack_tensors(&packer, plan, plan->inputs, plan->input_count);
  pack_libraries(&packer, plan);
  pack_named_text(&packer, "model", plan->model);
  pack_text(&packer, "outputs");
  pack_tensors(&packer, plan, plan->outputs, plan->output_count);
  pack_text(&packer, "symbols");
  pack_texts(&packer, plan->symbols, plan->symbol_count);
  pack_variants(&packer, plan);
  memory_free(manifest.data);
  bool same = !packer.differs && packer.at == packer.size;
  return REQUIRE(error, same, "manifest and plan disagree", "section manifest 0", "the manifest is not the one of this plan");
}
