// The bundle as a source of checked bytes: opened once, read into private memory.
//
// In: a path or memory. Out: `struct source`, sections whose digests hold. Not done here: rules of header and table (`header.c`).
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

static u64 nanoseconds(struct timespec time) { return (u64)time.tv_sec * 1000000000u + (u64)time.tv_nsec; }

static struct stamp stamp_of(const struct stat *found) {
  return (struct stamp){.size = (u64)found->st_size, .mtime = (i64)nanoseconds(found->st_mtim), .ctime = (i64)nanoseconds(found->st_ctim)};
}

// Whether nobody wrote to the file: its record alone may have changed.
static bool is_same_content(struct stamp a, struct stamp b) {
  return a.size == b.size && a.mtime == b.mtime && a.base_size == b.base_size && a.base_mtime == b.base_mtime;
}

static bool is_same_stamp(struct stamp a, struct stamp b) { return is_same_content(a, b) && a.ctime == b.ctime; }

// Makes a stamp one that moves when `other` does, too.
static bool stamp_both(struct stamp *stamp, const struct stamp *other) {
  stamp->base_size = other->size, stamp->base_mtime = other->mtime;
  if (other->ctime > stamp->ctime) stamp->ctime = other->ctime;
  return true;
}

static bool changed(error *error, const char *name, const char *why) {
  const char *todo = "replace bundles by renaming a new file over the old one, and load again";
  why = TEXT("%s; the results of this call are lost", why);
  return refuse(error, INGOT_CHANGED_ERROR, "the bundle changed while it was in use", name, why, todo);
}

// Looks at the file as it is now, and at the one that weights are shared with.
static bool present_stamp(const struct source *source, struct stamp *stamp, error *error) {
  struct stat found;
  struct stamp base;
  if (fstat(source->fd, &found)) return changed(error, source->name, TEXT("the system does not find it any more: %s", failure_words(errno)));
  if (found.st_dev != source->device || found.st_ino != source->inode)
    return changed(error, source->name, "somebody has closed its descriptor, which is another file's now");
  *stamp = stamp_of(&found);
  return !HAS_SHARED || !source->base || (present_stamp(source->base, &base, error) && stamp_both(stamp, &base));
}

// The stamp that the file has when the clock that the kernel stamps with is beyond it: whatever is changed from then on has another.
static bool settled_stamp(const struct source *source, struct stamp *stamp, error *error) {
  enum { TICKS_MAX = 20, TICK_NANOSECONDS = 1000000 };
  if (!present_stamp(source, stamp, error)) return false;
  for (int tick = 0; tick < TICKS_MAX; tick++) {
    struct timespec now;
    if (!clock_gettime(CLOCK_REALTIME_COARSE, &now) && (i64)nanoseconds(now) > stamp->ctime) break;
    nanosleep(&(struct timespec){0, TICK_NANOSECONDS}, NULL);
    if (!present_stamp(source, stamp, error)) return false;
  }
  return true;
}

static bool unreadable(error *error, const char *verb, const char *path, const char *why) {
  const char *todo = *verb == 'o' ? "check the path and its permissions" : "check the disk, and copy the bundle again";
  return refuse(error, INGOT_FILE_ERROR, TEXT("cannot %s %s", verb, quoted(path)), path, why, todo);
}

// Returns as many bytes as there are of `size`; a negative number after noting why they cannot be read.
static i64 source_pread(const struct source *source, u64 offset, u64 size, u8 *data, error *error) {
  u64 left = source->size > offset ? source->size - offset : 0, done = 0;
  if (size > left) size = left;
  if (source->fd < 0) {
    memcpy(data, source->memory + offset, size);
    return (i64)size;
  }
  while (done < size) {
    ssize_t part = pread(source->fd, data + done, size - done, (off_t)(source->start + offset + done));
    if (part == 0) break;
    if (part < 0 && errno != EINTR) return unreadable(error, "read", source->name, failure_words(errno)), -1;
    if (part > 0) done += (u64)part;
  }
  return (i64)done;
}

static bool source_read(const struct source *source, u64 offset, u64 size, u8 *data, const char *what, error *error) {
  i64 got = error->kind ? -1 : source_pread(source, offset, size, data, error);
  if (got < 0) return false;
  return REQUIRE(error, (u64)got == size, "the file ends too early", what, TEXT("%llu bytes missing", (unsigned long long)(size - (u64)got)));
}

static const struct section *source_row(const struct source *source, u32 kind, u32 id) {
  for (u32 index = 0; index < source->section_count; index++) {
    const struct section *row = source->sections + index;
    if (row->kind == kind && row->id == id) return row;
  }
  return NULL;
}

static const char *kind_name(u32 kind) {
  static const char *const names[] = {SECTION_KIND_NAMES};
  return kind < COUNT_OF(names) ? names[kind] : TEXT("of kind %u", kind);
}

#define SECTION_NAME(kind, id) TEXT("section %s %u", kind_name(kind), id)

// Returns a private copy of a section whose digest holds; the caller frees `data`.
static struct bytes source_section(const struct source *source, u32 kind, u32 id, error *error) {
  const struct section *row = source_row(source, kind, id);
  struct bytes copy = {NULL, 0};
  u8 got[32];
  if (!REQUIRE(error, row, TEXT("missing section %s %u", kind_name(kind), id), "section table", "")) return copy;
  copy = (struct bytes){memory_take(row->size), row->size};
  const char *name = SECTION_NAME(kind, id);
  if (!copy.data) no_memory(error, name, TEXT("%llu bytes", (unsigned long long)row->size));
  else if (source_read(source, row->offset, row->size, copy.data, name, error)) {
    sha256_of(copy.data, copy.size, got);
    if (!memcmp(got, row->digest, sizeof got)) return copy;
    const char *why = TEXT("expected sha256 %s, got %s", hex(row->digest, 32), hex(got, 32));
    refuse(error, INGOT_DIGEST_ERROR, TEXT("%s is damaged", name), name, why, DAMAGED);
  }
  memory_free(copy.data);
  return (struct bytes){NULL, 0};
}

static bool require_regular(const struct stat *found, const char *path, error *error) {
  if (S_ISREG(found->st_mode)) return true;
  const char *what = TEXT("cannot open %s", quoted(path));
  return refuse(error, INGOT_FILE_ERROR, what, path, "not a regular file", "give a file made by `ingot compile`");
}

// A program with a bundle behind it ends with where that begins and its size.
static bool find_in_program(struct source *source, error *error) {
  u8 head[4] = {0}, tail[TRAILER_SIZE_BYTES];
  u64 size = source->size, start = 0, bundle_size = 0;
  if (size < sizeof tail || source_pread(source, 0, sizeof head, head, error) < 0 || memcmp(head, "\x7f" "ELF", sizeof head)) return !error->kind;
  if (!source_read(source, size - sizeof tail, sizeof tail, tail, "trailer", error)) return false;
  if (memcmp(tail + 16, TRAILER_MAGIC, 8)) return true;
  memcpy(&start, tail, 8);
  memcpy(&bundle_size, tail + 8, 8);
  bool fits = start % ALIGNMENT_MAPPED_BYTES == 0 && start <= size - sizeof tail && bundle_size == size - sizeof tail - start;
  const char *why = TEXT("%llu bytes at %llu of %llu", (unsigned long long)bundle_size, (unsigned long long)start, (unsigned long long)size);
  if (!REQUIRE(error, fits, "the executable has no whole bundle", "trailer", why)) return false;
  source->size = bundle_size;
  if (source->fd < 0) source->memory += start;
  else source->start = start;
  return true;
}

static bool source_open(struct source *source, const char *path, error *error) {
  struct stat found;
  source->name = path, source->fd = -1;
  // Opening a pipe would wait, opening a device may do anything.
  if (stat(path, &found)) return unreadable(error, "open", path, failure_words(errno));
  if (!require_regular(&found, path, error)) return false;
  source->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (source->fd < 0 || fstat(source->fd, &found)) return unreadable(error, "open", path, failure_words(errno));
  source->device = found.st_dev, source->inode = found.st_ino;
  if (!require_regular(&found, path, error) || !settled_stamp(source, &source->stamp, error)) return false;
  source->size = source->stamp.size;
  return find_in_program(source, error);
}

// Closes the file, unless somebody has closed its descriptor, which is another file's now.
static void source_close(const struct source *source) {
  struct stat found;
  bool is_other = source->inode && !fstat(source->fd, &found) && (found.st_dev != source->device || found.st_ino != source->inode);
  if (source->fd >= 0 && !is_other) close(source->fd);
  if (HAS_SHARED && source->base) source_close(source->base);
}
