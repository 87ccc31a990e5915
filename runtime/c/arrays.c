// Arrays in files: one in a .npy, several by name in a .npz, bare elements in any other.
//
// In: a path. Out: arrays over the file's bytes; files that are written whole or not at all. Not done here: whether they fit a bundle.
#include "internal.h"

// `dtype`: numpy's name for it, null for bare elements, whose shape nobody knows either.
struct array {
  char name[NAME_SIZE_BYTES_MAX + 1];
  const char *dtype;
  i64 shape[RANK_MAX];
  u32 rank;
  const u8 *data;
  u64 size;
};

#define WRITE_IT "write it with numpy.savez(path, NAME=array, ...)"

static const struct {
  const char *descr, *name;
  u32 size;
} npy_types[] = {
    {"<f4", "float32", 4}, {"<f8", "float64", 8}, {"<f2", "float16", 2}, {"|i1", "int8", 1}, {"<i2", "int16", 2}, {"<i4", "int32", 4},
    {"<i8", "int64", 8}, {"|u1", "uint8", 1}, {"<u2", "uint16", 2}, {"<u4", "uint32", 4}, {"<u8", "uint64", 8}, {"|b1", "bool", 1},
};

static bool refuse_arrays(error *error, const char *path, const char *why) {
  return refuse(error, INGOT_INPUT_ERROR, TEXT("cannot read inputs from %s", quoted(path)), path, why, WRITE_IT);
}

// Returns what follows `key` in the header, and a colon; null if it is not there.
static const char *npy_value(const char *header, const char *key) {
  const char *at = find_text(header, key);
  if (!at) return NULL;
  at += strlen(key);
  return at + span(at, ": ");
}

static bool npy_shape(const char *text, struct array *array) {
  array->rank = 0;
  if (!text || *text++ != '(') return false;
  for (text += span(text, " "); *text >= '0' && *text <= '9'; text += span(text, ", ")) {
    if (array->rank == RANK_MAX) return false;
    array->shape[array->rank] = read_digits(&text);
    if (array->shape[array->rank++] > ELEMENT_COUNT_MAX) return false;
  }
  return *text == ')';
}

// Reads an array from the bytes of a .npy file; "" or why not.
static const char *npy_read(const u8 *data, u64 size, struct array *array) {
  char header[4096];
  const char *lies = "its header promises other bytes than it has";
  u64 start = 10, length = 0, count = 1, whole = 1;  // `whole`: of the sizes that are not 0
  if (size < 12 || memcmp(data, "\x93NUMPY", 6)) return "not a .npy file";
  if ((data[6] != 1 && data[6] != 2) || data[7]) return "its header has another version";
  memcpy(&length, data + 8, data[6] == 1 ? 2 : 4);
  start = (data[6] == 1 ? 10 : 12) + length;
  if (start > size || length >= sizeof header) return "its header does not fit";
  memcpy(header, data + start - length, length);
  header[length] = 0;
  const char *descr = npy_value(header, "'descr'"), *order = npy_value(header, "'fortran_order'");
  if (!descr || !order || !npy_shape(npy_value(header, "'shape'"), array)) return "its header is not one of numpy";
  if (strncmp(order, "False", 5)) return "its elements are in Fortran's order: save numpy.ascontiguousarray(x)";
  for (size_t index = 0; index < COUNT_OF(npy_types); index++) {
    if (*descr != '\'' || strncmp(descr + 1, npy_types[index].descr, 3) || descr[4] != '\'') continue;
    array->dtype = npy_types[index].name;
    for (u32 axis = 0; axis < array->rank; axis++) {
      u64 dim = (u64)array->shape[axis];
      if (dim && whole > SIZE_BYTES_MAX / dim) return lies;
      whole *= dim ? dim : 1, count *= dim;
    }
    array->data = data + start, array->size = size - start;
    return count * npy_types[index].size == size - start ? "" : lies;
  }
  return "elements of this type are not read";
}

// Four bytes at a time: row `k` of the table has what a byte is worth `k` bytes later.
static u32 crc32_of(const u8 *data, u64 size) {
  static u32 table[4][256];
  u32 crc = ~0u, word;
  for (u32 byte = 0; !table[3][255] && byte < 256; byte++) {
    table[0][byte] = byte;
    for (int bit = 0; bit < 8; bit++) table[0][byte] = table[0][byte] >> 1 ^ (table[0][byte] & 1 ? 0xedb88320u : 0);
  }
  for (u32 row = 1; !table[3][255] && row < 4; row++)
    for (u32 byte = 0; byte < 256; byte++) table[row][byte] = table[row - 1][byte] >> 8 ^ table[0][(u8)table[row - 1][byte]];
  for (; size >= sizeof word; size -= sizeof word, data += sizeof word) {
    memcpy(&word, data, sizeof word);
    crc ^= word;
    crc = table[3][(u8)crc] ^ table[2][(u8)(crc >> 8)] ^ table[1][(u8)(crc >> 16)] ^ table[0][crc >> 24];
  }
  for (; size; size--) crc = crc >> 8 ^ table[0][(u8)(crc ^ *data++)];
  return ~crc;
}

enum { ZIP_LOCAL_BYTES = 30, ZIP_ROW_BYTES = 46, ZIP_END_BYTES = 22, ZIP64_END_BYTES = 56, ZIP64_LOCATOR_BYTES = 20, ZIP_VERSION_MAX = 63 };

// Where the rows of the central directory begin, how many there are, and where they end: the last bytes of the file say it.
static bool zip_rows(const struct file *file, u64 *at, u64 *count, u64 *rows_end) {
  for (u64 back = ZIP_END_BYTES; back <= file->size && back < ZIP_END_BYTES + 65536; back++) {
    const u8 *end = file->data + file->size - back;
    if (memcmp(end, "PK\5\6", 4)) continue;
    *count = word_at(end, 10, 2), *at = word_at(end, 16, 4), *rows_end = *at + word_at(end, 12, 4);
    if (*at == UINT32_MAX || *count == UINT16_MAX) {
      u64 place = back + ZIP64_LOCATOR_BYTES <= file->size ? word_at(end - ZIP64_LOCATOR_BYTES, 8, 8) : UINT64_MAX;
      if (place > file->size || file->size - place < ZIP64_END_BYTES || memcmp(file->data + place, "PK\6\6", 4)) return false;
      end = file->data + place, *count = word_at(end, 32, 8), *at = word_at(end, 48, 8), *rows_end = *at + word_at(end, 40, 8);
    }
    return true;
  }
  return false;
}

// What a row says of its member; 64-bit numbers stand behind it where 32 bits are too few.
struct zip_member {
  u64 stored, size, at;
  u32 method, crc, flags;
  const char *name;
  u64 name_size, row_bytes;
};

static bool zip_member(const struct file *file, u64 at, struct zip_member *member) {
  if (at > file->size || file->size - at < ZIP_ROW_BYTES) return false;
  const u8 *row = file->data + at;
  u64 name = word_at(row, 28, 2), extra = word_at(row, 30, 2), comment = word_at(row, 32, 2), used = ZIP_ROW_BYTES + name;
  *member = (struct zip_member){word_at(row, 20, 4), word_at(row, 24, 4), word_at(row, 42, 4), (u32)word_at(row, 10, 2),
                                (u32)word_at(row, 16, 4), (u32)word_at(row, 8, 2), (const char *)row + ZIP_ROW_BYTES, name, used + extra + comment};
  if (file->size - at < member->row_bytes || memcmp(row, "PK\1\2", 4) || row[6] > ZIP_VERSION_MAX) return false;
  for (u64 field = used; field + 4 <= used + extra; field += 4 + word_at(row, field + 2, 2)) {
    u64 *wide[] = {&member->size, &member->stored, &member->at}, place = field + 4, end = place + word_at(row, field + 2, 2);
    for (int index = 0; word_at(row, field, 2) == 1 && index < 3; index++)
      if (*wide[index] == UINT32_MAX && place + 8 <= end && end <= used + extra) *wide[index] = word_at(row, place, 8), place += 8;
  }
  return true;
}

// Takes a member as an array; "" or why not.
static const char *zip_array(struct file *file, const struct zip_member *member, struct array *array, error *error) {
  enum { STORED = 0, DEFLATED = 8, RATIO_MAX = 1040, ENCRYPTED_OR_PATCHED = 0x61, UTF8 = 0x800 };
  u64 start = member->at, name_size = member->name_size;
  const char *misplaced = "its place in the archive is wrong";
  if ((member->method != STORED && member->method != DEFLATED) || member->flags & ENCRYPTED_OR_PATCHED) return "it is compressed in another way than numpy.savez_compressed does";
  if (start > file->size || file->size - start < ZIP_LOCAL_BYTES) return misplaced;
  const u8 *local = file->data + start;
  start += ZIP_LOCAL_BYTES + word_at(local, 26, 2) + word_at(local, 28, 2);
  if (start > file->size || file->size - start < member->stored || memcmp(local, "PK\3\4", 4) || word_at(local, 26, 2) != name_size ||
      memcmp(local + ZIP_LOCAL_BYTES, member->name, name_size))
    return misplaced;
  const u8 *data = file->data + start;
  if (member->method == DEFLATED) {
    // Deflate makes at most 1032 bytes of one: an archive that promises more lies, and is not given the memory.
    u8 *whole = member->size / RATIO_MAX > member->stored ? NULL : arena_take(&file->arena, member->size, error);
    if (!whole || !inflate(data, member->stored, whole, member->size)) return "it does not decompress to the bytes that it promises";
    data = whole;
  } else if (member->stored != member->size) return misplaced;
  if (crc32_of(data, member->size) != member->crc) return "its checksum is wrong";
  bool is_name = name_size >= 4 && name_size <= NAME_SIZE_BYTES_MAX && !memcmp(member->name + name_size - 4, ".npy", 4);
  for (u64 at = 0; is_name && at < name_size;) {
    i64 code = next_character((const u8 *)member->name, name_size, &at);
    is_name = code > 0 && (code < 0x80 || member->flags & word_at(local, 6, 2) & UTF8);  // both heads say how the name is written
  }
  if (!is_name) return "expected names that end in .npy";
  memcpy(array->name, member->name, name_size - 4);
  array->name[name_size - 4] = 0;
  return npy_read(data, member->size, array);
}

// Reads the arrays of a .npz file; the caller frees them.
static struct array *npz_read(struct file *file, const char *path, u32 *count, error *error) {
  u64 at = 0, rows = 0, rows_end = 0;
  struct zip_member member;
  if (!zip_rows(file, &at, &rows, &rows_end) || rows > TENSOR_COUNT_MAX) return refuse_arrays(error, path, "no archive of arrays"), NULL;
  struct array *arrays = memory_take((rows + 1) * sizeof *arrays);
  if (!arrays) return no_memory(error, path, "arrays"), NULL;
  for (*count = 0; *count < rows && !error->kind; at += member.row_bytes) {
    if (!zip_member(file, at, &member)) refuse_arrays(error, path, "no archive of arrays");
    else {
      const char *why = zip_array(file, &member, arrays + *count, error);
      if (*why) refuse_arrays(error, path, TEXT("array '%.*s': %s", (int)member.name_size, member.name, why));
      for (u32 other = 0; other < *count && !*why; other++)
        if (!strcmp(arrays[other].name, arrays[*count].name)) refuse_arrays(error, path, TEXT("array %s twice", quoted(arrays[other].name)));
      ++*count;
    }
  }
  if (at != rows_end) refuse_arrays(error, path, "no archive of arrays");
  return arrays;
}

// A file that gets its name when it is whole. `failure` is what the system said when a part could not be written.
struct output_file {
  int fd, failure;
  const char *path;
  char temporary[4200];
};

static bool refuse_output(struct output_file *output, int failure, error *error) {
  const char *todo = "check the folder, its permissions and the disk";
  return refuse(error, INGOT_INPUT_ERROR, TEXT("cannot write %s", quoted(output->path)), output->path, failure_words(failure), todo);
}

static bool output_begin(struct output_file *output, const char *path, error *error) {
  struct stat found;
  *output = (struct output_file){.fd = -1, .path = path};
  WRITE(output->temporary, "%s.%d.part", path, (int)getpid());
  if (!stat(path, &found) && !S_ISREG(found.st_mode)) return refuse_output(output, EINVAL, error);
  unlink(output->temporary);  // of a process that had this number; or a link that somebody has planted
  output->fd = open(output->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  return output->fd >= 0 || refuse_output(output, errno, error);
}

static void output_write(struct output_file *output, const void *data, u64 size) {
  const u8 *from = data;
  while (size > 0 && !output->failure) {
    ssize_t part = write(output->fd, from, size);
    if (part < 0) output->failure = errno;
    else from += part, size -= (u64)part;
  }
}

// Gives the file its name, or takes it away.
static bool output_end(struct output_file *output, error *error) {
  if (close(output->fd) && !output->failure) output->failure = errno;
  if (!error->kind && !output->failure && !rename(output->temporary, output->path)) return true;
  int failure = output->failure ? output->failure : errno;
  unlink(output->temporary);
  return refuse_output(output, failure, error);
}

// Writes the head of a .npy file, a multiple of 64 bytes; returns its size.
static u64 npy_head(u8 head[static 512], const char *dtype, const struct ingot_tensor *tensor) {
  const char *descr = "";
  char text[400] = "";
  size_t used = 0;
  for (size_t index = 0; index < COUNT_OF(npy_types); index++)
    if (!strcmp(npy_types[index].name, dtype)) descr = npy_types[index].descr;
  used += WRITE(text, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
  for (u32 axis = 0; axis < tensor->rank; axis++)
    used += write_into(text + used, sizeof text - used, axis ? ", %lld" : "%lld", NUMBER(tensor->shape[axis]));
  used += write_into(text + used, sizeof text - used, tensor->rank == 1 ? ",), }" : "), }");
  u64 size = rounded(10 + used + 1, 64);
  memset(head, ' ', 512);
  memcpy(head, "\x93NUMPY\1\0", 8);
  head[8] = (u8)(size - 10), head[9] = (u8)((size - 10) >> 8);
  memcpy(head + 10, text, used);
  head[size - 1] = '\n';
  return size;
}
