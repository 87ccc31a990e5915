// Streams of words followed by text: FORMAT.md, "Words and texts".
//
// In: private bytes. Out: words and texts, checked. Not done here: what they mean (`plan.c`).
#include "internal.h"

enum { TEXT_SMALL_BYTES = 64 };

// After an error all reads give their lowest value, so that who reads may look for the error once.
struct reader {
  const u8 *words;
  const char *texts;
  u64 count, at, text_size, text_at;
  const char *where;
  struct arena *arena;
  error *error;
  const struct plan *plan;  // that the words belong to, as far as it is read
};

static bool reader_begin(struct reader *reader, const u8 *data, u64 size) {
  error *error = reader->error;
  i64 count = 0;
  if (!REQUIRE(error, size >= 8, "section ends too early", reader->where, TEXT("%lld bytes", NUMBER(size)))) return false;
  memcpy(&count, data, 8);
  const char *why = TEXT("%lld words in %lld bytes", NUMBER(count), NUMBER(size));
  if (!REQUIRE(error, 0 <= count && (u64)count <= size / 8 - 1, "word count lies", reader->where, why)) return false;
  reader->words = data + 8, reader->count = (u64)count;
  reader->texts = (const char *)data + 8 + 8 * count, reader->text_size = size - 8 - 8 * (u64)count;
  return true;
}

// Reads the next word, which must lie in [low, high]; errors name it by `what`.
static i64 read_word(struct reader *reader, const char *what, i64 low, i64 high) {
  error *error = reader->error;
  i64 value = low;
  if (error->kind) return low;
  if (reader->at == reader->count) {
    damaged(error, "section ends too early", TEXT("%s, %s", reader->where, what), "");
    return low;
  }
  memcpy(&value, reader->words + 8 * reader->at, 8);
  if (!REQUIRE(error, low <= value && value <= high, TEXT("bad %s", what), TEXT("%s, word %lld", reader->where, NUMBER(reader->at)),
               TEXT("expected %lld to %lld, got %lld", NUMBER(low), NUMBER(high), NUMBER(value))))
    return low;
  reader->at++;
  return value;
}

// Returns the character at `*at` and moves behind it; -1 for what is no UTF-8.
static i64 next_character(const u8 *text, u64 size, u64 *at) {
  static const u32 least[] = {0, 0x80, 0x800, 0x10000};
  u8 first = text[(*at)++];
  u32 more = first < 0x80 ? 0u : first >= 0xc2 && first < 0xe0 ? 1 : first >= 0xe0 && first < 0xf0 ? 2 : first >= 0xf0 && first < 0xf5 ? 3 : 4;
  if (more > 3 || size - *at < more) return -1;
  u32 code = first & (more ? 0x3fu >> more : 0x7fu);
  for (u32 index = 0; index < more; index++) {
    u8 byte = text[(*at)++];
    if ((byte & 0xc0) != 0x80) return -1;
    code = code << 6 | (byte & 0x3f);
  }
  bool is_surrogate = code >= 0xd800 && code < 0xe000;
  return code < least[more] || code > 0x10ffff || is_surrogate ? -1 : (i64)code;
}

static bool is_forbidden(i64 code) {
  static const u32 ranges[][2] = {FORBIDDEN_RANGES};
  for (size_t index = 0; index < COUNT_OF(ranges); index++)
    if (ranges[index][0] <= code && code <= ranges[index][1]) return true;
  return false;
}

static bool check_text(struct reader *reader, const char *text, u64 size, const char *what) {
  error *error = reader->error;
  u64 wrong = 0, control = 0, bad_count = 0, control_count = 0;
  for (u64 at = 0, start = 0; at < size && !bad_count; start = at) {
    i64 code = next_character((const u8 *)text, size, &at);
    if (code < 0) wrong = start, bad_count = 1;
    else if (is_forbidden(code) && !control_count) control = (u64)code, control_count = 1;
  }
  return REQUIRE(error, !bad_count, TEXT("%s is not UTF-8", what), reader->where, TEXT("byte 0x%02x in position %lld", (u8)text[wrong], NUMBER(wrong))) &&
         REQUIRE(error, !control_count, TEXT("%s holds a control character", what), reader->where, TEXT("U+%04X", (u32)control));
}

// Reads the next text; errors name it by `what`.
static const char *read_text(struct reader *reader, const char *what) {
  char length[2 * TEXT_SMALL_BYTES];
  WRITE(length, "length of %s", what);
  u64 size = (u64)read_word(reader, length, 0, NAME_SIZE_BYTES_MAX);
  error *error = reader->error;
  if (error->kind) return "";
  bool fits = size <= reader->text_size - reader->text_at;
  if (!REQUIRE(error, fits, "section ends too early", TEXT("%s, %s", reader->where, what), "")) return "";
  const char *from = reader->texts + reader->text_at;
  reader->text_at += size;
  char *text = arena_take(reader->arena, size + 1, error);
  if (!text || (size && !check_text(reader, from, size, what))) return "";
  memcpy(text, from, size);
  return text;
}

static bool reader_finish(struct reader *reader) {
  u64 words = reader->count - reader->at, text = reader->text_size - reader->text_at;
  return REQUIRE(reader->error, words == 0, "words left over", reader->where, TEXT("%lld words", NUMBER(words))) &&
         REQUIRE(reader->error, text == 0, "text left over", reader->where, TEXT("%lld bytes", NUMBER(text)));
}
