// What the command takes from many archives of arrays, one after the other in one process.
//
// In: on stdin, records: u32 bytes, the bytes of a .npz file. Out: a line for each: "refused", or of each array, in order, its name,
// dtype, shape and checksum. Not done here: the comparison (`test_c_archive_mutants.py`).
#include "ingot.c"
#include "files.c"
#include "inflate.c"
#include "arrays.c"

int main(void) {
  u32 size;
  while (fread(&size, sizeof size, 1, stdin)) {
    struct file file = {malloc(size ? size : 1), size, {NULL}};  // of its own for each, so that a byte behind it is found
    error error = {0};
    u32 count = 0;
    if (!file.data || fread(file.data, 1, size, stdin) != size) return 1;
    struct array *arrays = npz_read(&file, "a.npz", &count, &error);
    if (error.kind) fputs("refused", stdout);
    for (u32 index = 0; index < count && !error.kind; index++)
      printf("%s %s %s %08x;", arrays[index].name, arrays[index].dtype, LIST(arrays[index].shape, arrays[index].rank), crc32_of(arrays[index].data, arrays[index].size));
    puts("");
    memory_free(arrays), arena_free(&file.arena), free(file.data);
  }
  return 0;
}
