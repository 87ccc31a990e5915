// `ingot_blake3_verify`, `ingot_blake3_mib`: BLAKE3 of whole MiBs, as many chunks at once as a vector has lanes.
//
// Source: the BLAKE3 specification, sections 2.1 to 2.4 (unkeyed). One MiB is 1024 chunks of 16 blocks, hence a complete tree.
// Not done here: inputs of any other length.
#include "verify.h"

enum { CHUNK_START = 1, CHUNK_END = 2, PARENT = 4, ROOT = 8 };
enum { CHUNKS = 1024, CHUNK_BYTES = 1024, BLOCK_BYTES = 64, DIGEST_BYTES = 32, ROUNDS = 7 };

static const u32 IV[8] = {0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19};

// The order in which each round reads the words of a message; each row is the one before, permuted.
static const u8 ORDER[ROUNDS][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8},
    {3, 4, 10, 12, 13, 2, 7, 14, 6, 5, 9, 0, 11, 15, 8, 1}, {10, 7, 12, 9, 14, 3, 13, 15, 4, 0, 11, 2, 5, 8, 1, 6},
    {12, 13, 9, 11, 15, 10, 14, 8, 7, 2, 5, 3, 0, 1, 6, 4}, {9, 14, 11, 5, 8, 12, 15, 1, 13, 3, 0, 10, 2, 6, 4, 7},
    {11, 15, 5, 0, 1, 9, 8, 6, 14, 10, 2, 12, 3, 4, 7, 13},
};

// abi.VERIFY_SCRATCH_BYTES.
struct scratch {
  u8 nodes[CHUNKS][DIGEST_BYTES]; // chaining values
  _Alignas(64) vector message[16];
  u8 digest[DIGEST_BYTES]; // what `verify` compares
};
_Static_assert(sizeof(struct scratch) <= VERIFY_SCRATCH_BYTES, "scratch");

#define SPREAD(word) ((vector){0} + (u32)(word))
#define TURN(value, count) ((value) >> (count) | (value) << (32 - (count)))

// Half of the quarter rounds of the columns (`turn` 0) or diagonals (1), step by step for all four: so four chains of instructions that do
// not wait for each other are next to each other.
static inline void half_of(vector v[16], int turn, const vector *message, const u8 *order, int first, int second) {
  for (int i = 0; i < 4; i++) v[i] = v[i] + message[order[2 * i]] + v[4 + (i + turn) % 4];
  for (int i = 0, d = 12 + 3 * turn; i < 4; i++, d = 12 + (d + 1) % 4) v[d] = TURN(v[d] ^ v[i], first);
  for (int i = 0; i < 4; i++) v[8 + (i + 2 * turn) % 4] += v[12 + (i + 3 * turn) % 4];
  for (int i = 0, b = 4 + turn; i < 4; i++, b = 4 + (b + 1) % 4) v[b] = TURN(v[b] ^ v[8 + (i + 2 * turn) % 4], second);
}

static inline void round_of(vector v[16], const vector *message, const u8 *order) {
  half_of(v, 0, message, order, 16, 12), half_of(v, 0, message, order + 1, 8, 7);
  half_of(v, 1, message, order + 8, 16, 12), half_of(v, 1, message, order + 9, 8, 7);
}

// The lanes of two vectors in turn, of their first halves and of their second ones.
#if LANES == 4
#define ZIP_FIRST(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define ZIP_SECOND(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#elif LANES == 8
#define ZIP_FIRST(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define ZIP_SECOND(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#else
#define ZIP_FIRST(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define ZIP_SECOND(a, b) __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#endif

// Word i of a block of each lane's input becomes message vector i: squares of LANES rows and lanes are transposed. To zip each row with the
// one half of the rows behind it, log2(LANES) times, transposes a square.
static inline void load_message(const u8 *block, u64 stride_bytes, vector message[16]) {
  for (int square = 0; square < 16; square += LANES) {
    vector rows[LANES], zipped[LANES];
    for (int row = 0; row < LANES; row++) rows[row] = *(const loose *)(block + stride_bytes * (u64)row + 4 * square);
    for (int step = 1; step < LANES; step *= 2) {
      for (int row = 0; row < LANES / 2; row++) {
        zipped[2 * row] = ZIP_FIRST(rows[row], rows[row + LANES / 2]);
        zipped[2 * row + 1] = ZIP_SECOND(rows[row], rows[row + LANES / 2]);
      }
      for (int row = 0; row < LANES; row++) rows[row] = zipped[row];
    }
    for (int row = 0; row < LANES; row++) message[square + row] = rows[row];
  }
}

// Compresses `blocks` blocks of each of LANES inputs that lie `stride_bytes` apart, and stores their chaining values in `nodes`. `counters`
// are the lanes' chunk numbers; `flags` are set in every block, `first` and `last` in these too.
static void compress(const u8 *data, u64 stride_bytes, int blocks, vector counters, u32 flags, u32 first, u32 last, vector message[16],
                     u8 (*nodes)[DIGEST_BYTES]) {
  vector h[8];
  for (int i = 0; i < 8; i++) h[i] = SPREAD(IV[i]);
  for (int block = 0; block < blocks; block++) {
    load_message(data + BLOCK_BYTES * block, stride_bytes, message);
    // What the next call reads. LANES streams are more than a processor follows by itself.
    for (int line = 0; line < LANES; line++) __builtin_prefetch(data + LANES * (stride_bytes + BLOCK_BYTES * (u64)block) + BLOCK_BYTES * line);
    u32 flag = flags | (block == 0 ? first : 0) | (block == blocks - 1 ? last : 0);
    vector v[16];
    for (int i = 0; i < 8; i++) v[i] = h[i];
    for (int i = 0; i < 4; i++) v[8 + i] = SPREAD(IV[i]);
    v[12] = counters, v[13] = SPREAD(0), v[14] = SPREAD(BLOCK_BYTES), v[15] = SPREAD(flag);
#pragma clang loop unroll(disable)
    for (int round = 0; round < ROUNDS; round++) round_of(v, message, ORDER[round]);
    for (int i = 0; i < 8; i++) h[i] = v[i] ^ v[i + 8];
  }
  for (int i = 0; i < 8; i++) message[i] = h[i];
  const u32 *words = (const u32 *)message;
  for (int lane = 0; lane < LANES; lane++)
    for (int i = 0; i < 8; i++) ((u32 *)nodes[lane])[i] = words[LANES * i + lane];
}

// The digest of a MiB: all chunks, then level after level of parents, in place. A group of LANES parents reads nodes [2k, 2k + 2*LANES) and
// writes [k, k + LANES): never one that is still to be read.
void ingot_blake3_mib(const u8 *data, u8 *digest, struct scratch *scratch) {
  vector counters;
  for (int lane = 0; lane < LANES; lane++) counters[lane] = (u32)lane;
  for (int chunk = 0; chunk < CHUNKS; chunk += LANES)
    compress(data + CHUNK_BYTES * chunk, CHUNK_BYTES, CHUNK_BYTES / BLOCK_BYTES, counters + (u32)chunk, 0, CHUNK_START, CHUNK_END,
             scratch->message, scratch->nodes + chunk);
  for (int parents = CHUNKS / 2; parents; parents /= 2)
    for (int parent = 0; parent < parents; parent += LANES)
      compress(scratch->nodes[2 * parent], 2 * DIGEST_BYTES, 1, SPREAD(0), parents == 1 ? PARENT | ROOT : PARENT, 0, 0,
               scratch->message, scratch->nodes + parent);
  for (int i = 0; i < DIGEST_BYTES; i++) digest[i] = scratch->nodes[0][i];
}

static i32 has_blake3(const u8 *data, const u8 *row, u8 *scratch) {
  struct scratch *own = (struct scratch *)scratch;
  ingot_blake3_mib(data, own->digest, own);
  u8 difference = 0;
  for (int i = 0; i < DIGEST_BYTES; i++) difference |= own->digest[i] ^ row[i];
  return difference == 0;
}

i32 ingot_blake3_verify(void *buffers, void *scalars, i64 first, i64 last, u8 *scratch) {
  return verify(buffers, scalars, first, last, scratch, has_blake3);
}
