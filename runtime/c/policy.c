// Whose signatures count: public keys as users give them, and policies in files (docs/shipping.md).
//
// In: keys, the path of a policy. Out: `struct policy`. Not done here: what they have signed (`signature.c`).
//
// A policy is TOML. What is read of it: comments, strings of one line, whole decimal numbers, true and false; for `keys`, lists of these.
#include "internal.h"

// A public key of Ed25519 in DER (RFC 8410): 12 bytes that are the same in all of them, and the 32 of the key.
#define PEM_BEGIN "-----BEGIN PUBLIC KEY-----"
#define PEM_END "-----END PUBLIC KEY-----"
#define DER_HEAD "\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21"  // and a zero
#define HEX_DIGITS DIGITS "abcdefABCDEF"
#define WHITE " \t\n\r\v\f"
enum { KEY_BYTES = 32, DER_BYTES = 44, DER_HEAD_BYTES = 12 };

enum key_verdict { NOT_SIGNED, GOOD, WRONG, OF_ANOTHER, ENDED };

// `turn`: the how manieth key a signature was found of.
struct trusted {
  u8 bytes[KEY_BYTES];
  const char *name;
  enum key_verdict verdict;
  u32 turn;
};

struct policy {
  struct trusted *keys;
  u32 count;
  i64 required;
};

// Reads a file that people write: of at most a MiB. The caller frees `data`.
static bool read_small(struct file *file, const char *path, error *error) {
  const char *why = file_read(file, path, MIB);
  const char *todo = *why == 'i' ? "check the path" : "check the path and its permissions";
  return !*why || refuse(error, INGOT_INPUT_ERROR, TEXT("cannot read %s", quoted(path)), path, why, todo);
}

// Decodes base64 with its padding; returns the count of bytes, -1 for what it is not. `out` has room for 3 of 4 characters.
static i64 base64(const char *text, u64 size, u8 *out) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  u64 count = 0, done = 0;
  u32 bits = 0;
  for (; count < size && text[count] && find_char(digits, text[count]); count++) {
    bits = bits << 6 | (u32)(find_char(digits, text[count]) - digits);
    if (count % 4) out[done++] = (u8)(bits >> (6 - 2 * (count % 4)));
  }
  u64 padding = size - count, rest = count % 4;
  for (u64 at = count; at < size; at++)
    if (text[at] != '=') return -1;
  return padding == (4 - rest) % 4 && rest != 1 ? (i64)done : -1;
}

static bool is_hex_key(const char *key) { return span(key, HEX_DIGITS) == 64 && !key[64]; }

// Reads what a PEM file holds.
static bool read_pem(const char *text, u8 bytes[static KEY_BYTES]) {
  char body[4 * DER_BYTES];
  u8 der[3 * DER_BYTES];
  u64 size = 0;
  const char *at = find_text(text, PEM_BEGIN), *end = at ? find_text(at, PEM_END) : NULL;
  if (!end) return false;
  for (at += strlen(PEM_BEGIN); at < end; at++) {
    if (find_char(WHITE, *at)) continue;
    if (size == sizeof body) return false;
    body[size++] = *at;
  }
  if (base64(body, size, der) != DER_BYTES || memcmp(der, DER_HEAD, DER_HEAD_BYTES)) return false;
  memcpy(bytes, der + DER_HEAD_BYTES, KEY_BYTES);
  return true;
}

// Adds a key: hex digits, or the path of a PEM file, which counts from the folder of the policy `path`. Where a caller gives the key,
// `path` is null, and it may be what such a file holds. Of one that is there, the name is new.
static bool add_key(struct policy *policy, const char *given, const char *path, struct arena *arena, error *error) {
  struct trusted key = {0};
  const char *where = "keys";
  point ignored;
  struct file file = {0};
  bool is_hex = is_hex_key(given), is_content = !path && find_text(given, PEM_BEGIN), is_key = is_hex;
  if (is_hex) key.name = arena_text(arena, given, error);
  for (int at = 0; is_hex && at < KEY_BYTES; at++) key.bytes[at] = (u8)(hex_digit(given[2 * at]) << 4 | hex_digit(given[2 * at + 1]));
  if (is_content) is_key = read_pem(given, key.bytes), key.name = arena_text(arena, is_key ? hex(key.bytes, KEY_BYTES) : "keys", error);
  if (!is_hex && !is_content) {
    where = key.name = path_beside(path && *given != '/' ? path : "", given, arena, error);
    if (!read_small(&file, where, error)) return false;
    is_key = read_pem((char *)file.data, key.bytes);
    memory_free(file.data);
  }
  if (!is_key)
    return refuse(error, INGOT_INPUT_ERROR, "not a public key", where,
                  "expected an Ed25519 public key: a PEM file, its content, 32 bytes or 64 hex digits", "`openssl pkey -pubout` makes one");
  if (!ed25519_key(ignored, key.bytes))
    return refuse(error, INGOT_INPUT_ERROR, "a public key that nobody owns", where,
                  "it is no point of the curve, or of small order, so that anybody can sign with it", "make another pair of keys");
  u32 at = 0;
  while (at < policy->count && memcmp(policy->keys[at].bytes, key.bytes, KEY_BYTES)) at++;
  policy->keys[at] = key;
  policy->count += at == policy->count;
  return !error->kind;
}

static bool require_keys(const struct policy *policy, error *error) {
  return policy->count || refuse(error, INGOT_INPUT_ERROR, "no keys", "keys", "expected at least one",
                                 "expected an Ed25519 public key: a PEM file, its content, 32 bytes or 64 hex digits");
}

static bool bad_policy(const char *path, const char *why, error *error) {
  return refuse(error, INGOT_INPUT_ERROR, "not a policy", path, why, "e.g. keys = [\"ci.pub\", \"release.pub\"] and required = 2");
}

// Moves behind white space and comments; of lines alone, or over their ends.
static char *toml_space(char *at, bool crosses_lines) {
  for (;;) {
    at += span(at, crosses_lines ? " \t\r\n" : " \t\r");
    if (*at != '#') return at;
    at += size_until(at, '\n');
  }
}

// Whether it is UTF-8 without control characters, but for tabs and ends of lines: TOML has them nowhere.
static bool is_toml_text(const u8 *text, u64 size) {
  bool is_plain = is_utf8(text, size);
  for (u64 at = 0; at < size; at++)
    is_plain &= text[at] == '\r' ? text[at + 1] == '\n' : text[at] == '\t' || text[at] == '\n' || (text[at] >= ' ' && text[at] != 0x7f);
  return is_plain;
}

// As `json_escape`, but for what TOML writes in another way.
static char *toml_escape(char **at, char *to) {
  int count = **at == 'u' ? 4 : **at == 'U' ? 8 : 0;
  u32 code;
  if (!count) return **at == '/' ? NULL : json_escape(at, to);
  if (!json_code(*at + 1, count, &code) || !code || code > 0x10ffff || code >> 11 == 0x1b) return NULL;
  *at += 1 + count;
  return put_utf8(to, code);
}

// Reads a string, and decodes it where it lies.
static bool toml_string(char **at, char **value) {
  char mark = **at, *to = *value = ++*at;
  while (**at != mark) {
    if (!**at || **at == '\n') return false;
    if (mark == '\'' || **at != '\\') *to++ = *(*at)++;
    else if (++*at, !(to = toml_escape(at, to))) return false;
  }
  *to = 0, ++*at;
  return true;
}

// Moves behind a number, true or false.
static bool toml_word(char **at) {
  size_t sign = **at == '+' || **at == '-', size = span(*at + sign, DIGITS);
  if (!sign && !size) size = !strncmp(*at, "true", 4) ? 4 : !strncmp(*at, "false", 5) ? 5 : 0;
  bool good = size && ((*at)[sign] != '0' || size == 1);
  *at += sign + size;
  return good && !span(*at, DIGITS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_.:-+");
}

// What a policy says; `names` has `count` strings, -1 of a list that has others, or of no list.
struct policy_text {
  char *at;
  char **names;
  i64 count;
  char *required;
};

static bool read_names(struct policy_text *text) {
  char *ignored;
  text->count = 0;
  for (text->at = toml_space(text->at + 1, true); *text->at != ']';) {
    bool is_text = *text->at == '"' || *text->at == '\'';
    if (is_text && text->count >= 0) {
      if (!toml_string(&text->at, text->names + text->count++)) return false;
    } else if (text->count = -1, !(is_text ? toml_string(&text->at, &ignored) : toml_word(&text->at))) return false;
    text->at = toml_space(text->at, true);
    if (*text->at == ',') text->at = toml_space(text->at + 1, true);
    else if (*text->at != ']') return false;
  }
  return text->at++, true;
}

// Reads `keys` and `required`, each once; any other key of the table goes to `unknown`.
static bool read_lines(struct policy_text *text, char *unknown) {
  char *ignored;
  bool has_keys = false;
  text->count = -1;
  while (*(text->at = toml_space(text->at, true))) {
    char *name = text->at, *value;
    size_t size = span(name, DIGITS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-");
    value = toml_space(name + size, false);
    bool is_keys = size == 4 && !strncmp(name, "keys", 4), is_required = size == 8 && !strncmp(name, "required", 8);
    if (!size || *value != '=' || (is_keys && has_keys) || (is_required && text->required)) return false;
    text->at = value = toml_space(value + 1, false);
    has_keys |= is_keys;
    if (is_required) text->required = value;
    if (is_keys && *value == '[') {
      if (!read_names(text)) return false;
    } else if (!(*value == '"' || *value == '\'' ? toml_string(&text->at, &ignored) : toml_word(&text->at))) return false;
    if (!is_keys && !is_required) append(unknown, "%s%.*s", *unknown ? ", " : "", (int)size, name);
    text->at = toml_space(text->at, false);
    if (*text->at && *text->at != '\n') return false;
  }
  return true;
}

// Reads the keys and how many are required.
static bool take_policy(struct policy *policy, struct policy_text *text, const char *path, struct arena *arena, error *error) {
  const char *at = text->required ? text->required + (*text->required == '+') : "1";
  policy->keys = arena_take(arena, (u64)text->count * sizeof *policy->keys, error);
  for (i64 index = 0; index < text->count; index++)
    if (error->kind || !add_key(policy, text->names[index], path, arena, error)) return false;
  if (!require_keys(policy, error)) return false;
  const char *shown = TEXT("%.*s", (int)span(at, DIGITS "-truefals"), at);
  policy->required = *at >= '0' && *at <= '9' ? read_digits(&at) : 0;
  if (1 <= policy->required && policy->required <= policy->count) return true;
  return bad_policy(path, TEXT("required must be 1 to %u, got %s", policy->count, shown), error);
}

static bool read_policy(struct policy *policy, const char *path, struct arena *arena, error *error) {
  char unknown[TEXT_BYTES] = "";
  struct file file;
  if (!read_small(&file, path, error)) return false;
  struct policy_text text = {.at = (char *)file.data, .names = arena_take(arena, file.size * sizeof(char *), error)};
  u32 line = 1;
  if (!error->kind && !(is_toml_text(file.data, file.size) && read_lines(&text, unknown))) {
    for (const char *at = (char *)file.data; at < text.at; at++) line += *at == '\n';
    bad_policy(path, TEXT("line %u is not one of TOML, or has more than a policy needs", line), error);
  }
  else if (*unknown) bad_policy(path, TEXT("unknown: %s", unknown), error);
  else if (text.count < 0) bad_policy(path, "keys must be a list of paths or hex digits", error);
  else take_policy(policy, &text, path, arena, error);
  memory_free(file.data);
  return !error->kind;
}
