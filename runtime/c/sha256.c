// SHA-256 (FIPS 180-4).
//
// In: bytes. Out: 32 bytes. Not done here: digests of weights (native code of the image does those).
#include "internal.h"

struct sha256 {
  u32 state[8];
  u8 block[64];
  u64 size;
};

static const u32 sha256_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static u32 turned(u32 word, int count) { return word >> count | word << (32 - count); }

static void sha256_words(u32 *words, const u8 *block) {
  for (int at = 0; at < 16; at++) {
    const u8 *from = block + 4 * at;
    words[at] = (u32)from[0] << 24 | (u32)from[1] << 16 | (u32)from[2] << 8 | from[3];
  }
  for (int at = 16; at < 64; at++) {
    u32 near = words[at - 2], far = words[at - 15];
    words[at] = words[at - 16] + (turned(far, 7) ^ turned(far, 18) ^ far >> 3) + words[at - 7] +
                (turned(near, 17) ^ turned(near, 19) ^ near >> 10);
  }
}

static void sha256_block(u32 *state, const u8 *block) {
  u32 words[64], v[8];
  sha256_words(words, block);
  memcpy(v, state, sizeof v);
  for (int at = 0; at < 64; at++) {
    u32 choice = (v[4] & v[5]) ^ (~v[4] & v[6]), majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
    u32 first = v[7] + (turned(v[4], 6) ^ turned(v[4], 11) ^ turned(v[4], 25)) + choice + sha256_constants[at] + words[at];
    u32 second = (turned(v[0], 2) ^ turned(v[0], 13) ^ turned(v[0], 22)) + majority;
    v[7] = v[6], v[6] = v[5], v[5] = v[4], v[4] = v[3] + first;
    v[3] = v[2], v[2] = v[1], v[1] = v[0], v[0] = first + second;
  }
  for (int at = 0; at < 8; at++) state[at] += v[at];
}

static void sha256_begin(struct sha256 *hash) {
  static const u32 initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  memcpy(hash->state, initial, sizeof initial);
  hash->size = 0;
}

static void sha256_add(struct sha256 *hash, const void *data, u64 size) {
  const u8 *from = data;
  u64 filled = hash->size % 64;
  hash->size += size;
  while (size > 0) {
    if (!filled && size >= 64) {
      sha256_block(hash->state, from);
      from += 64, size -= 64;
      continue;
    }
    u64 part = size < 64 - filled ? size : 64 - filled;
    memcpy(hash->block + filled, from, part);
    from += part, size -= part, filled = (filled + part) % 64;
    if (!filled) sha256_block(hash->state, hash->block);
  }
}

static void sha256_end(struct sha256 *hash, u8 digest[static 32]) {
  static const u8 padding[64] = {0x80};
  u64 bits = 8 * hash->size;
  u8 length[8];
  for (int at = 0; at < 8; at++) length[at] = (u8)(bits >> (56 - 8 * at));
  sha256_add(hash, padding, 1 + (119 - hash->size % 64) % 64);
  sha256_add(hash, length, sizeof length);
  for (int at = 0; at < 32; at++) digest[at] = (u8)(hash->state[at / 4] >> (24 - 8 * (at % 4)));
}

static void sha256_of(const void *data, u64 size, u8 digest[static 32]) {
  struct sha256 hash;
  sha256_begin(&hash);
  sha256_add(&hash, data, size);
  sha256_end(&hash, digest);
}
