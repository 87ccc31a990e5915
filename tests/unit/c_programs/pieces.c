// Pieces of the loader beside what they stand for: DEFLATE, and numbers as text.
//
// In: on stdin, records. `inflate`: u32 bytes to give, u32 bytes of data, the data. `form`: f64. Out: a line for each: the checksum of
// what came out or "refused"; the number with six digits and with three. Not done here: the comparison (`test_c_native.py`).
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

int main(int count, char **arguments) {
  double value;
  if (count > 1 && !strcmp(arguments[1], "inflate")) return inflate_records();
  while (fread(&value, sizeof value, 1, stdin)) puts(TEXT("%.6g %.3g", value, value));
  return 0;
}
