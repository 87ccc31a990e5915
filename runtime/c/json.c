// JSON as Python's reads it, as far as a line with a signature needs it: strings are decoded where they lie, all else is looked over.
//
// In: text that ends with a zero byte. Out: whether it is JSON; places of values. Not done here: numbers as numbers.
//
// A character 0 in a string becomes 1: neither is in anything that is looked for.
#include "internal.h"

enum { JSON_DEPTH_MAX = 900 };
#define DIGITS "0123456789"

static char *json_space(char *at) { return at + span(at, " \t\r\n"); }

static int hex_digit(char one) {
  const char *digits = "0123456789abcdef0123456789ABCDEF", *found = find_char(digits, one);
  return found ? (int)((found - digits) % 16) : -1;
}

static bool json_code(const char *at, int count, u32 *code) {
  *code = 0;
  for (int index = 0; index < count; index++) {
    if (hex_digit(at[index]) < 0) return false;
    *code = *code << 4 | (u32)hex_digit(at[index]);
  }
  return true;
}

static char *put_utf8(char *to, u32 code) {
  u32 more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  static const u8 heads[] = {0, 0xc0, 0xe0, 0xf0};
  *to++ = (char)(heads[more] | code >> 6 * more);
  while (more) *to++ = (char)(0x80 | (code >> 6 * --more & 0x3f));
  return to;
}

// Reads what is behind a backslash at `*at`; writes it to `to`, and returns where that ends, or null.
static char *json_escape(char **at, char *to) {
  static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
  const char *found = **at ? find_char(names, **at) : NULL;
  u32 code, low;
  if (found) return ++*at, *to = values[found - names], to + 1;
  if (**at != 'u' || !json_code(*at + 1, 4, &code)) return NULL;
  *at += 5;
  if (code >> 10 == 0x36 && **at == '\\' && (*at)[1] == 'u' && json_code(*at + 2, 4, &low) && low >> 10 == 0x37)
    *at += 6, code = 0x10000 + ((code & 0x3ff) << 10 | (low & 0x3ff));
  return put_utf8(to, code ? code : 1);
}

// Reads a string, and decodes it in place if `value` asks where it is.
static bool json_string(char **at, char **value) {
  char scrap[8], *from = *at + 1, *to = from;
  if (**at != '"') return false;
  if (value) *value = from;
  while (*from != '"') {
    if ((u8)*from < ' ') return false;
    if (*from == '\\') {
      char *end = (from++, json_escape(&from, value ? to : scrap));
      if (!end) return false;
      if (value) to = end;
    } else if (value) *to++ = *from++;
    else from++;
  }
  *at = from + 1;
  if (value) *to = 0;
  return true;
}

static bool json_number(char **at) {
  char *text = *at + (**at == '-');
  size_t count = span(text, DIGITS);
  if (!count) return false;
  text += *text == '0' ? 1 : count;
  if (*text == '.' && (count = span(text + 1, DIGITS))) text += 1 + count;
  if ((*text | 32) == 'e') {
    size_t sign = text[1] == '+' || text[1] == '-';
    if ((count = span(text + 1 + sign, DIGITS))) text += 1 + sign + count;
  }
  *at = text;
  return true;
}

// Looks over a value of any kind.
static bool json_skip(char **at, int depth) {
  static const char *const words[] = {"true", "false", "null", "NaN", "Infinity", "-Infinity"};
  char open = **at, close = open == '{' ? '}' : ']';
  if (open == '"') return json_string(at, NULL);
  if (open != '{' && open != '[') {
    for (size_t index = 0; index < COUNT_OF(words); index++)
      if (!strncmp(*at, words[index], strlen(words[index]))) return *at += strlen(words[index]), true;
    return json_number(at);
  }
  char *text = json_space(*at + 1);
  for (bool is_first = true; *text != close || !is_first; is_first = false) {
    if (depth == JSON_DEPTH_MAX) return false;
    if (open == '{') {
      if (!json_string(&text, NULL)) return false;
      text = json_space(text);
      if (*text != ':') return false;
      text = json_space(text + 1);
    }
    if (!json_skip(&text, depth + 1)) return false;
    text = json_space(text);
    if (*text == close) break;
    if (*text != ',') return false;
    text = json_space(text + 1);
  }
  *at = text + 1;
  return true;
}

static bool is_utf8(const u8 *text, u64 size) {
  for (u64 at = 0; at < size;)
    if (next_character(text, size, &at) < 0) return false;
  return true;
}

// Whether the string at `at`, which is JSON, says `text`, however it is escaped.
static bool json_says(char *at, const char *text) {
  char decoded[4], *end;
  for (at++; *at != '"'; text += end - decoded) {
    if (*at == '\\') at++, end = json_escape(&at, decoded);
    else *decoded = *at++, end = decoded + 1;
    if (!end || strncmp(text, decoded, (size_t)(end - decoded))) return false;
  }
  return !*text;
}

// The value of a key in an object that is JSON; the last one of several, null if there is none.
static char *json_member(char *object, const char *key) {
  char *found = NULL, *name;
  if (*object != '{') return NULL;
  for (object = json_space(object + 1); *object == '"'; object = json_space(object)) {
    name = object;
    if (!json_string(&object, NULL)) return NULL;
    bool is_it = json_says(name, key);
    object = json_space(json_space(object) + 1);
    if (is_it) found = object;
    json_skip(&object, 0);
    object = json_space(object);
    if (*object == ',') object++;
  }
  return found;
}
