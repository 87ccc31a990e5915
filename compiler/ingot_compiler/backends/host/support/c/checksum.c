// `ingot_checksum_verify`, `ingot_checksum_mib`: the lane checksum of whole MiBs; it finds accidents, not attackers.
//
// Definition: FORMAT.md, "lane checksum": 64 lanes of u32 over 4096 rows, folded into a u64.
// Not done here: lengths other than a MiB.
#include "verify.h"

enum { SUM_LANES = 64, ROW_BYTES = 4 * SUM_LANES, SUM_VECTORS = SUM_LANES / LANES };
enum { BLAKE3_BYTES = 32 }; // the checksum stands behind it in a row of the tree

u64 ingot_checksum_mib(const u8 *data) {
  vector sums[SUM_VECTORS];
  for (int lane = 0; lane < SUM_LANES; lane++) sums[lane / LANES][lane % LANES] = (u32)lane * 0x9E3779B1u + 1;
  for (int row = 0; row < MIB; row += ROW_BYTES)
#pragma clang loop unroll(full)
    for (int part = 0; part < SUM_VECTORS; part++) {
      vector product = (sums[part] ^ *(const loose *)(data + row + 4 * LANES * part)) * 0x85EBCA77u;
      sums[part] = product << 13 | product >> 19;
    }
  u64 folded = 0;
  for (int lane = 0; lane < SUM_LANES; lane++) folded = (folded ^ sums[lane / LANES][lane % LANES]) * 0x9E3779B97F4A7C15u;
  return folded;
}

static i32 has_checksum(const u8 *data, const u8 *row, u8 *scratch) {
  (void)scratch;
  u64 expected = 0;
  for (int i = 7; i >= 0; i--) expected = expected << 8 | row[BLAKE3_BYTES + i];
  return ingot_checksum_mib(data) == expected;
}

i32 ingot_checksum_verify(void *buffers, void *scalars, i64 first, i64 last, u8 *scratch) {
  return verify(buffers, scalars, first, last, scratch, has_checksum);
}
