// Who must have signed a bundle, and whether they have: FORMAT.md, "Signature".
//
// In: a source whose rows are checked, public keys. Out: go on, or an error. Not done here: the arithmetic (`ed25519.c`), policies,
// detached signatures.
#include <time.h>

#include "internal.h"

#define STATEMENT_HEAD "{\"_type\":\"https://in-toto.io/Statement/v1\",\"subject\":["
#define SUBJECT_HEAD "{\"digest\":{\"sha256\":\""
#define STATEMENT_MIDDLE "],\"predicateType\":\"urn:ingot:bundle:1\",\"predicate\":{\"expires\":"
#define MESSAGE_HEAD "DSSEv1 28 application/vnd.in-toto+json %llu "
// A public key of Ed25519 in PEM (RFC 8410): 12 bytes that are the same in all of them, and the 32 of the key.
#define PEM_BEGIN "-----BEGIN PUBLIC KEY-----"
#define PEM_HEAD "MCowBQYDK2VwAyEA"
#define PEM_END "-----END PUBLIC KEY-----"
enum { KEY_BYTES = 32, PROOF_BYTES = 96 };

// Moves behind `text` if it comes next.
static bool skip_text(const char **at, const char *text) {
  size_t size = strlen(text);
  bool is_next = !strncmp(*at, text, size);
  *at += is_next ? size : 0;
  return is_next;
}

// Reads the only form in which a statement, which ends with a zero byte, may begin: whether one of its digests is `wanted`, and when it ends.
static bool read_statement(const char *at, const char *wanted, bool *is_about, u64 *expires) {
  if (!skip_text(&at, STATEMENT_HEAD)) return false;
  do {
    if (!skip_text(&at, SUBJECT_HEAD) || span(at, "0123456789abcdef") != 64) return false;
    *is_about |= !strncmp(at, wanted, 64);
    at += 64;
    if (!skip_text(&at, "\"},\"name\":\"")) return false;
    while (*at >= ' ' && *at <= '~' && *at != '"' && *at != '\\') at++;
    if (!skip_text(&at, "\"}")) return false;
  } while (*at == ',' && at++);
  if (!skip_text(&at, STATEMENT_MIDDLE)) return false;
  const char *first = at;
  *expires = (u64)read_digits(&at);
  return at > first && at - first <= 15 && (*first != '0' || at - first == 1) && *at == ',';
}

static void parts_digest(const struct source *source, char text[static 65]) {
  struct sha256 hash;
  u8 digest[32];
  sha256_begin(&hash);
  sha256_add(&hash, "ingot parts 1\n", 14);
  for (u32 index = 0; index < source->section_count; index++) {
    const struct section *row = source->sections + index;
    if (row->kind == SECTION_SIGNATURE) continue;
    sha256_add(&hash, &row->kind, 4), sha256_add(&hash, &row->id, 4);
    sha256_add(&hash, &row->size, 8), sha256_add(&hash, row->digest, 32);
  }
  sha256_end(&hash, digest);
  memcpy(text, hex(digest, 32), 65);
}

static int digit(char text) { return text >= 'a' ? text - 'a' + 10 : text >= 'A' ? text - 'A' + 10 : text - '0'; }

static bool is_hex_key(const char *key) { return span(key, "0123456789abcdefABCDEF") == 64 && !key[64]; }

// Reads what a PEM file holds.
static bool read_pem(const char *text, u8 bytes[static KEY_BYTES]) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const char *at = find_text(text, PEM_BEGIN);
  if (!at) return false;
  at += strlen(PEM_BEGIN), at += span(at, "\r\n");
  if (!skip_text(&at, PEM_HEAD) || span(at, digits) != 43 || at[43] != '=') return false;
  u32 bits = 0;
  for (int index = 0, filled = 0; filled < KEY_BYTES; index++) {
    bits = bits << 6 | (u32)(find_char(digits, at[index]) - digits);
    if (index % 4) bytes[filled++] = (u8)(bits >> (6 - 2 * (index % 4)));
  }
  at += 44, at += span(at, "\r\n");
  return skip_text(&at, PEM_END);
}

static bool check_key(const char *key, u8 *bytes, error *error) {
  point ignored;
  bool is_hex = is_hex_key(key);
  for (int at = 0; is_hex && at < KEY_BYTES; at++) bytes[at] = (u8)(digit(key[2 * at]) << 4 | digit(key[2 * at + 1]));
  if (!is_hex && !read_pem(key, bytes)) {
    const char *todo = "`openssl pkey -pubout` makes one";
    return refuse(error, INGOT_INPUT_ERROR, "not a public key", "keys", "expected an Ed25519 public key: 64 hex digits, or what a PEM file holds", todo);
  }
  return ed25519_key(ignored, bytes) ||
         refuse(error, INGOT_INPUT_ERROR, "a public key that nobody owns", "keys", "it is no point of the curve, or of small order", "make another pair of keys");
}

// Reads section `row`; says whether it counts, and notes in `why` what is wrong with one of a given key.
static bool counts(const struct source *source, const struct section *row, const char *const *keys, const char *digest, char *why, error *error) {
  struct bytes data = source_section(source, SECTION_SIGNATURE, row->id, error);
  bool is_about = false, good = false;
  u64 expires = 0;
  bool is_trusted = false;
  const char *wrong;
  char *statement = data.data && data.size > PROOF_BYTES && data.size <= MIB ? memory_take(data.size - PROOF_BYTES + 1) : NULL;
  if (statement) {
    memcpy(statement, data.data + PROOF_BYTES, data.size - PROOF_BYTES);
    statement[data.size - PROOF_BYTES] = 0;
  }
  REQUIRE(error, statement && read_statement(statement, digest, &is_about, &expires), "not a statement about a bundle", TEXT("section signature %u", row->id), "");
  for (u8 bytes[KEY_BYTES]; !error->kind && *keys; keys++)
    if (check_key(*keys, bytes, error) && !memcmp(bytes, data.data, KEY_BYTES)) is_trusted = true;
  if (is_trusted) {
    const char *head = TEXT(MESSAGE_HEAD, (unsigned long long)(data.size - PROOF_BYTES));
    struct bytes message[2] = {{(u8 *)(uintptr_t)head, strlen(head)}, {data.data + PROOF_BYTES, data.size - PROOF_BYTES}};
    bool is_right = ed25519_verify(data.data, message, data.data + KEY_BYTES), has_ended = expires && (u64)time(NULL) >= expires;
    wrong = !is_right ? "is wrong: it was made of other bytes, or was changed" : !is_about ? "is of another bundle" : has_ended ? "has expired" : NULL;
    good = !wrong;
    if (wrong) append(why, "; the signature by %s %s", hex(data.data, KEY_BYTES), wrong);
  }
  memory_free(statement), memory_free(data.data);
  return good;
}

// Goes on where no keys are given, or where one of them has signed.
static bool require_signed(const struct source *source, const char *const *keys, error *error) {
  if (!keys || !*keys) return true;
  char digest[65], why[TEXT_BYTES] = "expected ";
  u8 bytes[KEY_BYTES];
  bool good = false;
  u32 count = 0;
  for (u32 index = 0; keys[index]; index++) {
    if (!check_key(keys[index], bytes, error)) return false;
    append(why, "%s%s", index ? " or " : "", hex(bytes, KEY_BYTES));
  }
  parts_digest(source, digest);
  for (u32 index = 0; index < source->section_count && !error->kind; index++) {
    const struct section *row = source->sections + index;
    if (row->kind == SECTION_SIGNATURE) count++, good |= counts(source, row, keys, digest, why, error);
  }
  if (error->kind) return false;
  const char *what = count ? "the bundle is not signed by whom it must be" : "the bundle is not signed";
  return good || refuse(error, INGOT_SIGNATURE_ERROR, what, source->name, why, "get the file from who signs it, or sign it by `ingot sign`");
}
