// The fixed header and the section table: FORMAT.md, "Header" and "Section table".
//
// In: an opened source. Out: its checked rows. Not done here: what sections hold.
#include "internal.h"

static u64 word_at(const u8 *data, size_t at, size_t size) {
  u64 word = 0;
  memcpy(&word, data + at, size);
  return word;
}

#define NUMBER(value) ((long long)(value))

static bool require_magic(const u8 *header, u64 size, error *error) {
  if (size == 0 || memcmp(header, MAGIC, size < 8 ? size : 8)) {
    char first[TEXT_BYTES] = "";
    for (u64 at = 0; at < size && at < 8; at++) append(first, "%s%02x", at ? " " : "", header[at]);
    const char *why = TEXT("expected 8a 49 4e 47 4f 54 0d 0a, got %s", *first ? first : "nothing");
    return refuse(error, INGOT_NOT_A_BUNDLE_ERROR, "not a bundle", "the first 8 bytes", why, "give a file made by `ingot compile`");
  }
  return REQUIRE(error, size == HEADER_SIZE_BYTES, "the file ends inside its header", "header", TEXT("%lld bytes", NUMBER(size)));
}

static bool require_digest(const struct source *source, const char *digest, error *error) {
  if (!digest) return true;
  size_t size = strlen(digest);
  char lower[65] = "";
  bool good = size >= 32 && size <= 64 && span(digest, "0123456789abcdefABCDEF") == size;
  if (!good) {
    const char *why = TEXT("expected 32 to 64 hex digits, got %s", quoted(digest));
    return refuse(error, INGOT_INPUT_ERROR, "bad digest", "digest", why, "`ingot inspect BUNDLE` prints the root digest");
  }
  for (size_t at = 0; at < size; at++) lower[at] = digest[at] >= 'A' && digest[at] <= 'F' ? (char)(digest[at] + 32) : digest[at];
  const char *root = hex(source->header.root, 32);
  if (!strncmp(root, lower, size)) return true;
  const char *why = TEXT("expected root digest %s, got %s", lower, root);
  return refuse(error, INGOT_DIGEST_ERROR, "another bundle than the one asked for", source->name, why, "get the file whose digest that is");
}

// Refuses another version. A later minor version can be read as far as to name what is unknown; the rest of the refusal is the same.
static bool require_version(const struct header *header, error *error) {
  u32 major = header->major, minor = header->minor;
  if (major == VERSION_MAJOR && minor <= VERSION_MINOR) return true;
  const char *why = TEXT("expected %d.0 to %d.%d, got %u.%u", VERSION_MAJOR, VERSION_MAJOR, VERSION_MINOR, major, minor);
  return unknown(error, TEXT("bundle format %u.%u", major, minor), "header, version", why);
}

static bool check_header(const struct source *source, error *error) {
  const struct header *header = &source->header;
  u32 count = header->section_count;
  const char *why = TEXT("the header promises %llu bytes, the file has %llu", (unsigned long long)header->file_bytes, (unsigned long long)source->size);
  u64 table_end = HEADER_SIZE_BYTES + count * (u64)SECTION_SIZE_BYTES;
  return REQUIRE(error, header->header_bytes == HEADER_SIZE_BYTES, "wrong header size", "header", TEXT("got %u", header->header_bytes)) &&
         REQUIRE(error, header->row_bytes == SECTION_SIZE_BYTES, "wrong row size", "header", TEXT("got %u", header->row_bytes)) &&
         REQUIRE(error, header->flags == 0, "unknown flags", "header", TEXT("expected 0, got %llu", (unsigned long long)header->flags)) &&
         REQUIRE(error, header->file_bytes == source->size, "the file is truncated or extended", "header, file size", why) &&
         REQUIRE(error, 1 <= count && count <= SECTION_COUNT_MAX, "bad number of sections", "header",
                 TEXT("expected 1 to %d, got %u", SECTION_COUNT_MAX, count)) &&
         REQUIRE(error, table_end <= source->size, "the section table does not fit", "header", TEXT("%u rows", count));
}

static bool check_root_digest(const struct source *source, u64 size, error *error) {
  static const u8 zeros[32];
  const u8 *root = source->header.root;
  struct sha256 hash;
  u8 got[32];
  sha256_begin(&hash);
  sha256_add(&hash, &source->header, offsetof(struct header, root));
  sha256_add(&hash, zeros, sizeof zeros);
  sha256_add(&hash, source->sections, size);
  sha256_end(&hash, got);
  if (!memcmp(got, root, sizeof got)) return true;
  const char *why = TEXT("expected sha256 %s, got %s", hex(root, 32), hex(got, 32));
  return refuse(error, INGOT_DIGEST_ERROR, "header or section table damaged", "header, root digest", why, DAMAGED);
}

static bool is_known_kind(u32 kind) { return kind < SECTION_KIND_COUNT; }
static bool is_optional_kind(u32 kind) { return OPTIONAL_KINDS >> kind & 1; }
static bool is_required(const struct section *row) { return is_known_kind(row->kind) && !is_optional_kind(row->kind); }

static bool require_known_kinds(const struct source *source, error *error) {
  char strange[TEXT_BYTES] = "";
  for (u32 index = 0; index < source->section_count; index++) {
    const struct section *row = source->sections + index;
    bool seen = is_known_kind(row->kind) || row->flags & OPTIONAL_FLAG;
    for (u32 before = 0; before < index && !seen; before++)
      seen = source->sections[before].kind == row->kind && !(source->sections[before].flags & OPTIONAL_FLAG);
    if (!seen) append(strange, "%s%u", *strange ? ", " : "", row->kind);
  }
  return !*strange || unknown(error, TEXT("section kind %s", strange), "section table", "the bundle needs it");
}

// Checks one row; the section before it ends at `end`.
static bool check_row(const struct section *row, const char *where, u64 end, u64 file_size, error *error) {
  static const u8 no_digest[32];
  static const u8 size_bits_max[] = {SECTION_SIZE_BITS_MAX};
  u32 kind = row->kind, alignment = row->alignment;
  bool is_mapped = is_known_kind(kind) && MAPPED_KINDS >> kind & 1;
  u32 own = is_mapped ? ALIGNMENT_MAPPED_BYTES : ALIGNMENT_SMALL_BYTES;
  bool is_aligned = alignment == own || (!is_known_kind(kind) && alignment == ALIGNMENT_MAPPED_BYTES);
  u64 offset = row->offset, size = row->size, room = file_size - offset;
  bool has_digest = memcmp(row->digest, no_digest, sizeof no_digest) != 0;
  const char *at = TEXT("offset %llu", (unsigned long long)offset), *outside = "section outside the file";
  const char *bytes = TEXT("%llu bytes", (unsigned long long)size);
  return REQUIRE(error, kind >= 1, "unknown kind of section", where, TEXT("kind %u", kind)) &&
         REQUIRE(error, row->flags == (is_required(row) ? 0 : OPTIONAL_FLAG), "unknown flags", where, TEXT("flags %u", row->flags)) &&
         REQUIRE(error, is_aligned, "wrong alignment", where, TEXT("expected %u, got %u", own, alignment)) &&
         REQUIRE(error, offset % alignment == 0, "misaligned section", where, at) &&
         REQUIRE(error, end <= offset, "section overlaps the one before it", where, TEXT("%s before %llu", at, (unsigned long long)end)) &&
         REQUIRE(error, offset - end < alignment, "gap before section", where, TEXT("%llu bytes", (unsigned long long)(offset - end))) &&
         REQUIRE(error, offset <= file_size, outside, where, TEXT("%s of %llu", at, (unsigned long long)file_size)) &&
         REQUIRE(error, size <= room, outside, where, TEXT("%s where %llu are left", bytes, (unsigned long long)room)) &&
         REQUIRE(error, size <= (u64)1 << size_bits_max[is_known_kind(kind) ? kind : 0], "section too large", where, bytes) &&
         REQUIRE(error, has_digest == (kind != SECTION_WEIGHTS), "wrong use of the digest field", where, TEXT("kind %u", kind));
}

static bool check_rows(const struct source *source, u64 end, error *error) {
  for (u32 index = 0; index < source->section_count; index++) {
    const struct section *row = source->sections + index, *other = source_row(source, row->kind, row->id);
    const char *where = TEXT("section[%u]", index);
    if (!check_row(row, where, end, source->size, error)) return false;
    if (!REQUIRE(error, other == row, "section appears twice", where, SECTION_NAME(row->kind, row->id))) return false;
    end = row->offset + row->size;
  }
  const char *why = TEXT("end %llu of %llu", (unsigned long long)end, (unsigned long long)source->size);
  return REQUIRE(error, end == source->size, "bytes after the last section", "section table", why);
}

static bool check_gaps(const struct source *source, u64 end, error *error) {
  u8 gap[ALIGNMENT_MAPPED_BYTES];
  for (u32 index = 0; index < source->section_count; index++) {
    const struct section *row = source->sections + index;
    u64 size = row->offset - end;  // less than an alignment
    if (!source_read(source, end, size, gap, "gap", error)) return false;
    bool is_zero = size == 0 || (gap[0] == 0 && !memcmp(gap, gap + 1, size - 1));
    const char *where = TEXT("before %s", SECTION_NAME(row->kind, row->id)), *why = TEXT("from offset %llu", (unsigned long long)end);
    if (!REQUIRE(error, is_zero, "bytes between sections are not zero", where, why)) return false;
    end = row->offset + row->size;
  }
  return true;
}

// Checks header, table and gaps of an opened source, in this order.
static bool read_table(struct source *source, struct arena *arena, const char *digest, error *error) {
  i64 size = source_pread(source, 0, HEADER_SIZE_BYTES, (u8 *)&source->header, error);
  if (size < 0 || !require_magic(source->header.magic, (u64)size, error) || !require_digest(source, digest, error)) return false;
  if (!require_version(&source->header, error) || !check_header(source, error)) return false;
  u64 table_size = (u64)source->header.section_count * SECTION_SIZE_BYTES;
  source->sections = arena_take(arena, table_size, error);
  if (!source_read(source, HEADER_SIZE_BYTES, table_size, (u8 *)source->sections, "section table", error)) return false;
  if (!check_root_digest(source, table_size, error)) return false;
  source->section_count = source->header.section_count;
  return require_known_kinds(source, error) && check_rows(source, HEADER_SIZE_BYTES + table_size, error) &&
         check_gaps(source, HEADER_SIZE_BYTES + table_size, error);
}
