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

static void pack_record(struct packer *packer, const struct plan *plan, u32 number, const u8 *from);

static void pack_item(struct packer *packer, const struct plan *plan, const struct row *row, const u8 *from) {
  u64 value = 0;
  memcpy(&value, from, row->size < sizeof value ? row->size : sizeof value);
  i64 number = (i64)value;
  if (row->kind == ROW_RECORDS) pack_record(packer, plan, row->of, from);
  else if (row->kind == ROW_DEVICE_KIND || row->kind == ROW_DTYPE) pack_text(packer, codes[row->of].names[value]);
  else if (row->kind == ROW_TEXT || row->kind == ROW_TEXTS || row->kind == ROW_SORTED_TEXTS) pack_text(packer, (const char *)(uintptr_t)value);
  else if (row->kind == ROW_DIMS && number < 0) pack_text(packer, plan->symbols.items[-number - 1]);
  else pack_integer(packer, number);
}

static void pack_field(struct packer *packer, const struct plan *plan, const struct row *row, const u8 *from) {
  const u8 *items = from + row->at;
  u32 count = 1;
  pack_text(packer, row->key);
  if (row->kind > ROW_DTYPE) {
    memcpy(&count, items + sizeof items, sizeof count), memcpy(&items, items, 8);
    pack_list(packer, count);
  }
  for (u32 index = 0; index < count; index++) pack_item(packer, plan, row, items + index * row->size);
}

static bool is_shown(const struct plan *plan, const struct row *row) { return *row->key && row->since <= plan->minor; }

static void pack_record(struct packer *packer, const struct plan *plan, u32 number, const u8 *from) {
  const struct record *record = records + number;
  const struct row *first = rows + record->first;
  u32 count = 0;
  for (u32 index = 0; index < record->count; index++) count += is_shown(plan, first + index);
  pack_map(packer, count);
  for (u32 nth = 0; nth < record->count; nth++)
    if (is_shown(plan, first + first[nth].nth)) pack_field(packer, plan, first + first[nth].nth, from);
}

static bool check_manifest(const struct source *source, const struct plan *plan, error *error) {
  struct bytes manifest = source_section(source, SECTION_MANIFEST, 0, error);
  struct packer packer = {manifest.data, manifest.size, 0, false};
  if (!manifest.data) return false;
  pack_record(&packer, plan, RECORD_PLAN, (const u8 *)plan);
  memory_free(manifest.data);
  bool same = !packer.differs && packer.at == packer.size;
  return REQUIRE(error, same, "manifest and plan disagree", "section manifest 0", "the manifest is not the one of this plan");
}
