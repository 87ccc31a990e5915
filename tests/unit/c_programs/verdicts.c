// What the loader says of many files, one after the other in one process, so that a sanitizer need not start for each.
//
// In: on stdin, records: u32 bytes, the bytes of a bundle. Out: a line for each: the kind of error by number, its exit code, what
// and where, with tabs between. With the path of a file as argument, each becomes that file, and the file of the second argument is
// loaded. Not done here: the comparison (`test_c_mutants.py`).
#include "ingot.c"

static bool save(const char *path, const u8 *data, u32 size) {
  FILE *file = fopen(path, "wb");
  return file && fwrite(data, 1, size, file) == size && !fclose(file);
}

int main(int count, char **arguments) {
  static char verdict[4096];
  u32 size;
  while (fread(&size, sizeof size, 1, stdin)) {
    ingot_bundle *bundle;
    ingot_session *session = NULL;
    error error;
    u8 *data = malloc(size ? size : 1);  // of its own for each, so that a byte behind it is found
    if (!data || fread(data, 1, size, stdin) != size) return 1;
    if (count > 2 && !save(arguments[1], data, size)) return 1;
    if (!(count > 2 ? ingot_load(arguments[2], NULL, &bundle, &error) : ingot_load_memory(data, size, NULL, &bundle, &error))) ingot_open(bundle, NULL, &session, &error);
    WRITE(verdict, "%d\t%d\t%s\t%s", error.kind, error.exit_code, error.kind ? error.what : "", error.kind ? error.where : "");
    puts(verdict);
    ingot_close(session), ingot_unload(bundle);
    free(data);
  }
  return 0;
}
