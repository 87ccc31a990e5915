// What `main` says in the user's names: the map `messages` of the section debug. FORMAT.md, "Lock and debug".
//
// In: a message. Out: the same in the user's names, or as it is. Not done here: any other value of the section.
#include "session.h"

// A place in msgpack; all is skipped once something does not fit.
struct cursor {
  const u8 *data;
  u64 size, at;
};

enum pack_kind { PACK_OTHER, PACK_TEXT, PACK_LIST, PACK_MAP };

// Reads the first byte of a value and its length; moves to what is in it. Of numbers and bytes, moves behind them.
static enum pack_kind read_pack(struct cursor *cursor, u64 *count) {
  u8 first = cursor->at < cursor->size ? cursor->data[cursor->at++] : 0xc0;
  int width = 0;
  *count = 0;
  if (first < 0x80 || first >= 0xe0 || first == 0xc0 || first == 0xc2 || first == 0xc3) return PACK_OTHER;
  if (first < 0xc0) *count = first & (first >= 0xa0 ? 31 : 15);
  else if (first >= 0xcc && first < 0xd4) width = -(1 << (first & 3));
  else if (first >= 0xc4 && first < 0xc7) width = 1 << (first - 0xc4);
  else if (first >= 0xd9 && first < 0xdc) width = 1 << (first - 0xd9);
  else width = first & 1 ? 4 : 2;
  for (int at = 0; at < width && cursor->at < cursor->size; at++) *count = *count << 8 | cursor->data[cursor->at++];
  if (width < 0 || (first >= 0xc4 && first < 0xc7)) {
    u64 size = width < 0 ? (u64)-width : *count, left = cursor->size - cursor->at;
    cursor->at += size < left ? size : left;
    return PACK_OTHER;
  }
  if ((first >= 0xa0 && first < 0xc0) || (first >= 0xd9 && first < 0xdc)) return PACK_TEXT;
  return (first & 0xf0) == 0x80 || first >= 0xde ? PACK_MAP : PACK_LIST;
}

// Reads a text; null for another value.
static const char *read_pack_text(struct cursor *cursor, u64 *size) {
  if (read_pack(cursor, size) != PACK_TEXT || *size > cursor->size - cursor->at) return NULL;
  cursor->at += *size;
  return (const char *)cursor->data + cursor->at - *size;
}

static void skip_pack(struct cursor *cursor) {
  for (u64 left = 1; left > 0 && cursor->at < cursor->size; left--) {
    u64 count = 0, room = cursor->size - cursor->at;
    enum pack_kind kind = read_pack(cursor, &count);
    if (count > room) count = room;
    if (kind == PACK_TEXT) cursor->at += count < cursor->size - cursor->at ? count : cursor->size - cursor->at;
    if (kind == PACK_LIST || kind == PACK_MAP) left += kind == PACK_MAP ? 2 * count : count;
  }
}

// Moves to the value of a key in the map that comes next; false if there is none.
static bool find_pack(struct cursor *cursor, const char *key) {
  u64 count = 0, size = 0;
  if (read_pack(cursor, &count) != PACK_MAP) return false;
  for (; count > 0; count--) {
    const char *found = read_pack_text(cursor, &size);
    if (!found) return false;
    if (size == strlen(key) && !memcmp(found, key, size)) return true;
    skip_pack(cursor);
  }
  return false;
}

// The name of a message in the map that comes next: of the whole text, or of the first that begins with it, if it was cut off.
static const char *find_message(struct cursor *cursor, const char *text) {
  u64 count = 0, size = 0, named_size = 0, wanted = strlen(text);
  const char *best = text;
  if (read_pack(cursor, &count) != PACK_MAP) return text;
  for (; count > 0; count--) {
    const char *raw = read_pack_text(cursor, &size), *named = raw ? read_pack_text(cursor, &named_size) : NULL;
    if (!named) return best;
    if (size < wanted || memcmp(raw, text, wanted) || (best != text && size != wanted)) continue;
    best = TEXT("%.*s", (int)named_size, named);
    if (size == wanted) return best;
  }
  return best;
}

static const char *named_message(ingot_session *session, const char *text) {
  error ignored = {0};
  struct bytes debug = source_section(&session->bundle->source, SECTION_DEBUG, 0, &ignored);
  struct cursor cursor = {debug.data, debug.size, 0};
  bool found = debug.data && find_pack(&cursor, "debug") && find_pack(&cursor, "messages");
  if (found) text = find_message(&cursor, text);
  memory_free(debug.data);
  return text;
}
