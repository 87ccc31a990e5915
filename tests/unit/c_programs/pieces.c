// Pieces of the loader beside what they stand for: DEFLATE, numbers as text, words for failures, a lock, signatures,
// digests.
//
// In: on stdin, records. `inflate`: u32 bytes to give, u32 bytes of data, the data. `form`: f64. Out: a line for each: the checksum of
// what came out or "refused"; the number with six digits and with three. `failures`: a line for each number up to 133. `lock`: how far
// threads counted that took turns. `pages`: blocks as a program without an allocator takes them.
// `ed25519`: records of a key, a signature, u32 bytes of a message, the message; whether each counts.
// `digests`: of the first bytes of stdin, from none to all: SHA-256, SHA-512. Not done here: the comparison
// (`test_c_pieces.py`).
#include "ingot.c"
#include "inflate.c"
#include "arrays.c"

static int inflate_records(void) {
  u32 sizes[2];
  while (fread(sizes, sizeof sizes, 1, stdin)) {
    u8 *out = malloc(sizes[0]), *data = malloc(sizes[1]);
    if ((!out && sizes[0]) || (!data && sizes[1]) || fread(data, 1, sizes[1], stdin) != sizes[1]) return 1;
    if (inflate(data, sizes[1], out, sizes[0])) printf("%08x\n", crc32_of(out, sizes[0]));
    else puts("refused");
    free(out), free(data);
  }
  return 0;
}

enum { THREAD_COUNT = 4, TURN_COUNT = 100000, FAILURE_COUNT = 133 };
static u32 turn_lock;
static u64 turns;

static void *take_turns(void *unused) {
  for (int turn = 0; turn < TURN_COUNT; turn++) lock(&turn_lock), turns++, unlock(&turn_lock);
  return unused;
}

static int count_turns(void) {
  pthread_t threads[THREAD_COUNT];
  for (int index = 0; index < THREAD_COUNT; index++)
    if (pthread_create(threads + index, NULL, take_turns, NULL)) return 1;
  for (int index = 0; index < THREAD_COUNT; index++) pthread_join(threads[index], NULL);
  return !printf("%llu\n", (unsigned long long)turns);
}

static int take_blocks(void) {
  static const u64 sizes[] = {0, 1, 4032, 4033, 1 << 20, UINT64_MAX - 63, UINT64_MAX};
  for (size_t index = 0; index < COUNT_OF(sizes); index++) {
    u8 *block = memory_take(sizes[index]);
    bool is_zero = block && (uintptr_t)block % 64 == 0;
    for (u64 at = 0; is_zero && at < sizes[index]; at++) is_zero = !block[at], block[at] = 1;
    puts(is_zero ? "zeros" : block ? "wrong" : "none");
    memory_free(block);
  }
  memory_free(NULL);
  return 0;
}

static int hash_beginnings(void) {
  static u8 data[4096];
  u64 size = fread(data, 1, sizeof data, stdin);
  for (u64 count = 0; count <= size; count++) {
    u8 first[32], second[64];
    struct sha512 hash;
    sha256_of(data, count, first);
    sha512_begin(&hash), sha512_add(&hash, data, count), sha512_end(&hash, second);
    puts(TEXT("%s %s", hex(first, sizeof first), hex(second, sizeof second)));
  }
  return 0;
}

static int judge_records(void) {
  u8 head[KEY_BYTES + 64];
  u32 size;
  while (fread(head, sizeof head, 1, stdin) && fread(&size, sizeof size, 1, stdin)) {
    point ignored;
    u8 *message = memory_take(size);
    if (!message || fread(message, 1, size, stdin) != size) return 1;
    struct bytes parts[2] = {{message, size / 3}, {message + size / 3, size - size / 3}};
    puts(ed25519_key(ignored, head) && ed25519_verify(head, parts, head + KEY_BYTES) ? "good" : "bad");
    memory_free(message);
  }
  return 0;
}

int main(int count, char **arguments) {
  double value;
  if (count > 1 && !strcmp(arguments[1], "inflate")) return inflate_records();
  if (count > 1 && !strcmp(arguments[1], "ed25519")) return judge_records();
  if (count > 1 && !strcmp(arguments[1], "digests")) return hash_beginnings();
  if (count > 1 && !strcmp(arguments[1], "lock")) return count_turns();
  if (count > 1 && !strcmp(arguments[1], "pages")) return take_blocks();
  for (int number = 1; count > 1 && !strcmp(arguments[1], "failures") && number <= FAILURE_COUNT; number++) puts(failure_words(number));
  while (fread(&value, sizeof value, 1, stdin)) puts(TEXT("%.6g %.3g", value, value));
  return 0;
}
