// Whether those have signed a bundle who must: FORMAT.md, "Signature".
//
// In: a source whose rows are checked, public keys or a policy. Out: go on, or an error. Not done here: the arithmetic (`ed25519.c`),
// keys and policies (`policy.c`).
#include <time.h>

#include "internal.h"

#define STATEMENT_HEAD "{\"_type\":\"https://in-toto.io/Statement/v1\",\"subject\":["
#define SUBJECT_HEAD "{\"digest\":{\"sha256\":\""
#define STATEMENT_MIDDLE "],\"predicateType\":\"urn:ingot:bundle:1\",\"predicate\":{\"expires\":"
#define MESSAGE_HEAD "DSSEv1 28 application/vnd.in-toto+json %llu "
#define PAYLOAD_TYPE "application/vnd.in-toto+json"
#define DETACHED ".sig"
enum { PROOF_BYTES = 96 };

// The first bytes of a key that has signed, the highest first.
struct signer {
  struct signer *before;
  u64 first;
};

// What is found out of the signatures of a bundle.
struct inquiry {
  struct policy policy;
  char digest[65];
  struct signer *signers;
  u32 turn;  // how many of the keys have signed anything
  struct arena *arena;
  error *error;
};

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

// Judges a signature: the key, the 64 bytes of the signature, the statement.
static bool judge(struct inquiry *inquiry, const u8 *data, u64 size, const char *where) {
  error *error = inquiry->error;
  bool is_about = false;
  u64 expires = 0;
  struct policy *policy = &inquiry->policy;
  const char *why = TEXT("%llu bytes", (unsigned long long)size), *what = "not a statement about a bundle";
  if (!REQUIRE(error, PROOF_BYTES < size && size <= MIB, what, where, why)) return false;
  u64 length = size - PROOF_BYTES;
  char *statement = memory_take(length + 1);
  if (!statement) return no_memory(error, where, why);
  memcpy(statement, data + PROOF_BYTES, length);
  bool is_read = read_statement(statement, inquiry->digest, &is_about, &expires);
  memory_free(statement);
  struct signer *signer = arena_take(inquiry->arena, sizeof *signer, error);
  if (!REQUIRE(error, is_read, what, where, "")) return false;
  *signer = (struct signer){inquiry->signers, 0};
  for (int at = 0; at < 8; at++) signer->first = signer->first << 8 | data[at];
  inquiry->signers = signer;
  for (u32 index = 0; index < policy->count; index++) {
    struct trusted *key = policy->keys + index;
    if (memcmp(key->bytes, data, KEY_BYTES) || key->verdict == GOOD) continue;
    const char *head = TEXT(MESSAGE_HEAD, (unsigned long long)length);
    struct bytes message[2] = {{(u8 *)(uintptr_t)head, strlen(head)}, {(u8 *)(uintptr_t)data + PROOF_BYTES, length}};
    bool is_right = ed25519_verify(data, message, data + KEY_BYTES), has_ended = expires && time(NULL) >= (time_t)expires;
    if (key->verdict == NOT_SIGNED) key->turn = inquiry->turn++;
    key->verdict = !is_right ? WRONG : !is_about ? OF_ANOTHER : has_ended ? ENDED : GOOD;
  }
  return true;
}

// Reads hex digits as Python's `bytes.fromhex` does, and returns their bytes; -1 for anything else.
static i64 hex_bytes(const char *text, u8 *out) {
  i64 count = 0;
  for (text += span(text, WHITE); *text; text += span(text, WHITE)) {
    int high = hex_digit(text[0]), low = high < 0 ? -1 : hex_digit(text[1]);
    if (low < 0) return -1;
    out[count++] = (u8)(high << 4 | low), text += 2;
  }
  return count;
}

static bool no_envelope(struct inquiry *inquiry, const char *where) {
  return refuse(inquiry->error, INGOT_FORMAT_ERROR, "not a signature", where, "expected an envelope of DSSE", "write it by `ingot sign`");
}

// Judges one of the list `signatures` of an envelope; `data` has room for what the line holds.
static bool judge_one(struct inquiry *inquiry, char *one, const u8 *payload, i64 size, u8 *data, const char *where) {
  char *key = json_member(one, "keyid"), *proof = json_member(one, "sig"), *key_text = key, *proof_text = proof;
  if (!key || !proof || !json_string(&key, &key_text) || !json_string(&proof, &proof_text)) return no_envelope(inquiry, where);
  i64 key_size = hex_bytes(key_text, data), proof_size = key_size < 0 ? -1 : base64(proof_text, strlen(proof_text), data + key_size);
  if (proof_size < 0) return no_envelope(inquiry, where);
  memcpy(data + key_size + proof_size, payload, (size_t)size);
  return judge(inquiry, data, (u64)(key_size + proof_size + size), where);
}

// Judges each signature of a line, an envelope of DSSE, which ends with a zero byte at `end`. `room` has twice its bytes.
static bool judge_envelope(struct inquiry *inquiry, char *line, const char *end, u8 *room, const char *where) {
  bool is_text = is_utf8((u8 *)line, (u64)(end - line));
  char *text = line = json_space(line + (strncmp(line, "\xef\xbb\xbf", 3) ? 0 : 3));
  if (!is_text || !json_skip(&text, 0) || json_space(text) != end) return no_envelope(inquiry, where);
  char *type = json_member(line, "payloadType"), *payload = json_member(line, "payload"), *list = json_member(line, "signatures");
  if (!type) return no_envelope(inquiry, where);
  if (!REQUIRE(inquiry->error, json_string(&type, &text) && !strcmp(text, PAYLOAD_TYPE), "another type of payload", where, "")) return false;
  i64 size = payload && json_string(&payload, &text) ? base64(text, strlen(text), room) : -1;
  if (size < 0 || !list || *list != '[') return no_envelope(inquiry, where);
  for (char *one = json_space(list + 1), *next = one; *one != ']'; one = next) {
    json_skip(&next, 0);
    next = json_space(next);
    if (*next == ',') next = json_space(next + 1);
    if (!judge_one(inquiry, one, room, size, room + (end - line), where)) return false;
  }
  return true;
}

// The file beside a bundle, or beside what a link leads to, which /proc tells; null if there is none.
static const char *detached_path(const struct source *source, struct arena *arena, error *error) {
  struct stat found;
  char whole[4096];  // the system tells no longer path
  if (source->fd < 0) return NULL;
  const char *path = arena_join(arena, source->name, strlen(source->name), DETACHED, error);
  if (!stat(path, &found)) return path;
  ssize_t size = readlink(TEXT("/proc/self/fd/%d", source->fd), whole, sizeof whole);
  if (size <= 0) return NULL;
  path = arena_join(arena, whole, (size_t)size, DETACHED, error);
  return stat(path, &found) ? NULL : path;
}

static bool judge_detached(struct inquiry *inquiry, const struct source *source) {
  struct file file;
  const char *where = detached_path(source, inquiry->arena, inquiry->error);
  if (!where || inquiry->error->kind || !read_small(&file, where, inquiry->error)) return !inquiry->error->kind;
  u8 *room = memory_take(3 * file.size + 1);
  char *at = (char *)file.data, *whole = at + file.size;
  if (!room) no_memory(inquiry->error, where, TEXT("%llu bytes", (unsigned long long)file.size));
  for (char *end; at < whole && !inquiry->error->kind; at = end + 1) {
    for (end = at; end < whole && *end != '\n';) end++;
    *end = 0;
    if (at + span(at, WHITE) != end) judge_envelope(inquiry, at, end, room, where);
  }
  memory_free(room), memory_free(file.data);
  return !inquiry->error->kind;
}

// The keys that have signed, the lowest first, each once: 8 bytes of each.
static void append_signers(const struct inquiry *inquiry, char *why) {
  u64 last = 0;
  for (bool is_first = true;; is_first = false) {
    const struct signer *best = NULL;
    for (const struct signer *one = inquiry->signers; one; one = one->before)
      if ((is_first || one->first > last) && (!best || one->first < best->first)) best = one;
    if (!best) return;
    last = best->first;
    append(why, "%s", is_first ? "; signed by " : ", ");
    for (int at = 56; at >= 0; at -= 8) append(why, "%02x", (u32)(last >> at & 255));
  }
}

static bool refuse_signers(const struct inquiry *inquiry, const char *name) {
  static const char *const means[] = {
      [WRONG] = "is wrong: it was made of other bytes, or was changed", [OF_ANOTHER] = "is of another bundle", [ENDED] = "has expired"};
  const struct policy *policy = &inquiry->policy;
  const char *what = inquiry->signers ? "the bundle is not signed by a required key" : "the bundle is not signed";
  char why[TEXT_BYTES] = "expected ";
  if (policy->required > 1) append(why, "%lld of ", NUMBER(policy->required));
  for (u32 index = 0; index < policy->count; index++) append(why, "%s%s", index ? " or " : "", policy->keys[index].name);
  for (u32 turn = 0; turn < inquiry->turn; turn++)
    for (const struct trusted *key = policy->keys; key < policy->keys + policy->count; key++)
      if (key->turn == turn && key->verdict > GOOD) append(why, "; the signature by %s %s", key->name, means[key->verdict]);
  if (!inquiry->turn) append_signers(inquiry, why);
  return refuse(inquiry->error, INGOT_SIGNATURE_ERROR, what, name, why, "get the file from who signs it, or sign it by `ingot sign`");
}

static bool take_keys(struct inquiry *inquiry, const struct ingot_options *options) {
  struct policy *policy = &inquiry->policy;
  u32 count = 0;
  if (options->policy && options->keys && *options->keys)
    return refuse(inquiry->error, INGOT_INPUT_ERROR, "a policy and keys", "command line", "expected --policy, or --require-key", "name the keys in the policy");
  if (options->policy) return read_policy(policy, options->policy, inquiry->arena, inquiry->error);
  while (options->keys[count]) count++;
  policy->keys = arena_take(inquiry->arena, count * sizeof *policy->keys, inquiry->error), policy->required = 1;
  for (u32 index = 0; index < count; index++)
    if (inquiry->error->kind || !add_key(policy, options->keys[index], NULL, inquiry->arena, inquiry->error)) return false;
  return true;
}

// Goes on where nobody asks who has signed, or where those have who must.
static bool require_signed(const struct source *source, const struct ingot_options *options, struct arena *arena, error *error) {
  struct inquiry inquiry = {.arena = arena, .error = error};
  i64 good = 0;
  if (!options->policy && (!options->keys || !*options->keys)) return true;
  if (!take_keys(&inquiry, options)) return false;
  parts_digest(source, inquiry.digest);
  for (u32 index = 0; index < source->section_count && !error->kind; index++) {
    const struct section *row = source->sections + index;
    if (row->kind != SECTION_SIGNATURE) continue;
    struct bytes data = source_section(source, SECTION_SIGNATURE, row->id, error);
    if (data.data) judge(&inquiry, data.data, data.size, TEXT("section signature %u", row->id));
    memory_free(data.data);
  }
  if (error->kind || !judge_detached(&inquiry, source)) return false;
  for (u32 index = 0; index < inquiry.policy.count; index++) good += inquiry.policy.keys[index].verdict == GOOD;
  return good >= inquiry.policy.required || refuse_signers(&inquiry, source->name);
}
