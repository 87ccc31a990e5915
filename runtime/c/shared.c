// Weights of the host that lie in another bundle: FORMAT.md, "Shared".
//
// In: a source whose plan was decoded, the folder that it lies in. Out: its rows; the other bundle, open. Not done here: mapping (`weights.c`).
//
// With -DINGOT_WITHOUT_SHARED bundles with such weights are refused.
#include "internal.h"

// The bytes of the weights of a device together, wherever they lie; 0 without weights.
static u64 weights_bytes(const struct source *source, u32 id) {
  const struct section *row = source_row(source, SECTION_WEIGHTS, id);
  return !row ? 0 : HAS_SHARED && !id && source->shared ? source->shared->size : row->size;
}

#ifdef INGOT_WITHOUT_SHARED
static bool read_shared(struct source *source, struct arena *arena, error *error) {
  (void)arena;
  if (!source_row(source, SECTION_SHARED, 0)) return true;
  const char *todo = "load it with ingot_runtime or ingot.h, or ship the bundle that it was made from";
  return refuse(error, INGOT_VERSION_ERROR, "weights are shared with another bundle", source->name, "this program maps one file", todo);
}

static bool open_base(struct source *source, struct arena *arena, error *error) {
  (void)source, (void)arena, (void)error;
  return true;
}
#else
static bool read_shared_row(struct reader *reader, const struct shared *shared, u64 end, struct shared_row *row) {
  const i64 unit = ALIGNMENT_MAPPED_BYTES, size = (i64)shared->size;
  i64 at = read_word(reader, "offset", (i64)end, size), there = read_word(reader, "offset in the other weights", 0, SIZE_BYTES_MAX);
  i64 bytes = read_word(reader, "bytes", unit, size - at);
  *row = (struct shared_row){(u64)at, (u64)there, (u64)bytes};
  return REQUIRE(reader->error, (at | there | bytes) % unit == 0, "a row is not of whole pages", reader->where, TEXT("%lld", NUMBER(at)));
}

static bool decode_shared(struct reader *reader, struct shared *shared, u64 own_bytes) {
  error *error = reader->error;
  shared->digest = read_text(reader, "digest");
  bool is_digest = strlen(shared->digest) == 64 && span(shared->digest, "0123456789abcdef") == 64;
  if (!REQUIRE(error, is_digest, "not a digest", reader->where, shared->digest)) return false;
  const char *name = shared->name = read_text(reader, "file name");
  bool is_name = *name && strcmp(name, ".") && strcmp(name, "..") && !find_char(name, '/');
  if (!REQUIRE(error, is_name, "not a name of a file", reader->where, name)) return false;
  u64 end = 0, own = shared->size = (u64)read_word(reader, "size of the weights", ALIGNMENT_MAPPED_BYTES, SIZE_BYTES_MAX);
  u32 count = (u32)read_word(reader, "row count", 1, SHARED_COUNT_MAX);
  shared->rows = arena_take(reader->arena, count * sizeof *shared->rows, error);
  for (; !error->kind && shared->count < count; shared->count++) {
    struct shared_row *row = shared->rows + shared->count;
    if (!read_shared_row(reader, shared, end, row)) return false;
    end = row->at + row->size, own -= row->size;
  }
  const char *why = TEXT("expected %lld bytes, got %lld", NUMBER(own), NUMBER(own_bytes));
  return reader_finish(reader) && REQUIRE(error, own == own_bytes && own, "wrong size of weights", "section weights 0", why);
}

static bool read_shared(struct source *source, struct arena *arena, error *error) {
  if (!source_row(source, SECTION_SHARED, 0)) return true;
  struct bytes data = source_section(source, SECTION_SHARED, 0, error);
  struct shared *shared = arena_take(arena, sizeof *shared, error);
  struct reader reader = {.where = "section shared 0", .arena = arena, .error = error};
  bool good = data.data && shared && reader_begin(&reader, data.data, data.size) && decode_shared(&reader, shared, weights_bytes(source, 0));
  if (good) source->shared = shared;
  memory_free(data.data);
  return good;
}

static bool check_base(const struct source *base, const struct shared *shared, error *error) {
  u64 most = 0, room = source_row(base, SECTION_SHARED, 0) ? 0 : weights_bytes(base, 0);
  for (u32 index = 0; index < shared->count; index++) {
    u64 end = shared->rows[index].there + shared->rows[index].size;
    if (end > most) most = end;
  }
  return REQUIRE(error, most <= room, "shared weights that are not there", "section shared 0", TEXT("%lld of %lld bytes", NUMBER(most), NUMBER(room)));
}

// The error names both files.
static bool refuse_base(const struct source *source, const char *path, const error *found, error *error) {
  if (found->kind != INGOT_FILE_ERROR)
    return refuse(error, found->kind, found->what, TEXT("%s, %s, %s", source->name, path, found->where), found->why, found->todo);
  const char *what = "the bundle whose weights are shared cannot be read", *where = TEXT("%s, %s", source->name, path);
  return refuse(error, INGOT_FILE_ERROR, what, where, found->why, "put the bundle that it was made from beside it, under the name that it had then");
}

// Opens the bundle in which weights lie, if they do: it must stay as it is, too.
static bool open_base(struct source *source, struct arena *arena, error *error) {
  const struct shared *shared = source->shared;
  struct ingot_error found = {0};
  if (!shared) return true;
  if (source->fd < 0) {
    const char *why = "the bundle that has the rest is looked for beside it";
    return refuse(error, INGOT_INPUT_ERROR, "weights are shared with another bundle", source->name, why, "give its path");
  }
  const char *path = path_beside(source->name, shared->name, arena, error);
  struct source *base = arena_take(arena, sizeof *base, error);
  if (!base) return false;
  bool good = source_open(base, path, &found) && read_table(base, arena, shared->digest, &found) && check_base(base, shared, &found);
  source->base = base;
  return good ? stamp_both(&source->stamp, &base->stamp) : refuse_base(source, path, &found, error);
}
#endif
