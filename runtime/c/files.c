// Whole files: arrays, keys, policies, signatures.
//
// In: a path. Out: its bytes. Not done here: bundles, which are mapped (`source.c`).
#pragma once
#include "internal.h"

// `arena`: what is made of the file and lives as long.
struct file {
  u8 *data;
  u64 size;
  struct arena arena;
};

// Reads a whole file, with a zero byte behind it; "" or why not.
static const char *file_read(struct file *file, const char *path, u64 size_max) {
  struct stat found;
  const char *why = "";
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  u64 done = 0;
  *file = (struct file){NULL, 0, {NULL}};
  if (fd < 0 || fstat(fd, &found)) why = failure_words(errno);
  else if (!S_ISREG(found.st_mode)) why = S_ISDIR(found.st_mode) ? failure_words(EISDIR) : "not a regular file";
  else if ((u64)found.st_size > size_max) why = "it is larger than 1 MiB";
  else file->size = (u64)found.st_size, file->data = memory_take(file->size + 1), why = file->data ? why : failure_words(errno);
  while (file->data && done < file->size) {
    ssize_t part = read(fd, file->data + done, file->size - done);
    if (part <= 0) break;
    done += (u64)part;
  }
  if (fd >= 0) close(fd);
  if (file->data) file->data[done] = 0;
  if (!*why && done < file->size) why = "the file ends too early";
  if (*why) memory_free(file->data), file->data = NULL;
  return why;
}
