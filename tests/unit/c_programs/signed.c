// What the loader says of many policies and files of signatures, one after the other in one process.
//
// In: arguments: the path of a bundle, of a policy, of the file of signatures beside the bundle. On stdin, records: u32 bytes of a policy,
// u32 bytes of signatures, the bytes of both, which become these files. Out: a line for each: the kind of error by number, its exit code,
// what, where, and why, with the byte 30 between. Not done here: the comparison (`test_c_signature_mutants.py`).
#include "ingot.c"

static bool save(const char *path, u32 size) {
  FILE *file = fopen(path, "wb");
  u8 *data = malloc(size ? size : 1);
  bool is_good = file && data && fread(data, 1, size, stdin) == size && fwrite(data, 1, size, file) == size;
  free(data);
  return is_good && !fclose(file);
}

int main(int count, char **arguments) {
  static char verdict[6 * 1024];
  u32 sizes[2];
  while (count == 4 && fread(sizes, sizeof sizes, 1, stdin)) {
    struct ingot_options options = INGOT_OPTIONS;
    ingot_bundle *bundle;
    error error;
    if (!save(arguments[2], sizes[0]) || !save(arguments[3], sizes[1])) return 1;
    options.policy = arguments[2], options.verify = 2;
    ingot_load(arguments[1], &options, &bundle, &error);
    WRITE(verdict, "%d\36%d\36%s\36%s\36%s", error.kind, error.exit_code, error.kind ? error.what : "", error.kind ? error.where : "", error.kind ? error.why : "");
    for (char *at = verdict; *at; at++)
      if (*at == '\n') *at = ' ';
    puts(verdict);
    ingot_unload(bundle);
  }
  return 0;
}
