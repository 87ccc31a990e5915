// A .npz file: arrays by name, stored as they are, with the same bytes on every machine and day.
//
// In: names, tensors. Out: bytes of an open file. Not done here: the file's name (`arrays.c`).
#include "internal.h"

struct zip_writer {
  struct output_file *output;
  struct bytes directory;
  u64 at;
  u32 count;
};

static void put_word(u8 *data, u64 at, u64 word, size_t size) { memcpy(data + at, &word, size); }

// The part that both heads of a member share: version 2.0, names in UTF-8, stored, the first day of 1980.
static void zip_fields(u8 *fields, u32 crc, u64 size, u64 name_size) {
  put_word(fields, 0, 20, 2), put_word(fields, 2, 0x800, 2), put_word(fields, 8, 0x21, 2);
  put_word(fields, 10, crc, 4), put_word(fields, 14, size, 4), put_word(fields, 18, size, 4), put_word(fields, 22, name_size, 2);
}

static bool zip_add(struct zip_writer *zip, const char *name, const char *dtype, const struct ingot_tensor *tensor, error *error) {
  u8 head[512], local[ZIP_LOCAL_BYTES] = "PK\3\4", row[ZIP_ROW_BYTES] = "PK\1\2\24";
  u64 head_size = npy_head(head, dtype, tensor), size = head_size + tensor->size_bytes, name_size = strlen(name) + 4;
  u64 directory_size = zip->directory.size + ZIP_ROW_BYTES + name_size;
  if (zip->at + size > UINT32_MAX / 2)
    return refuse(error, INGOT_INPUT_ERROR, "the outputs are too large for one .npz file", zip->output->path, TEXT("%lld bytes", NUMBER(size)), "write them one by one: --outputs NAME=F.npy");
  u8 *whole = memory_take(size), *directory = memory_take(directory_size);
  if (!whole || !directory) return memory_free(whole), memory_free(directory), no_memory(error, zip->output->path, "archive");
  if (zip->directory.size) memcpy(directory, zip->directory.data, zip->directory.size);
  memory_free(zip->directory.data);
  zip->directory.data = directory;
  memcpy(whole, head, head_size);
  if (tensor->size_bytes) memcpy(whole + head_size, tensor->data, tensor->size_bytes);
  u32 crc = crc32_of(whole, size);
  zip_fields(local + 4, crc, size, name_size), zip_fields(row + 6, crc, size, name_size), put_word(row, 42, zip->at, 4);
  output_write(zip->output, local, sizeof local), output_write(zip->output, name, name_size - 4), output_write(zip->output, ".npy", 4);
  output_write(zip->output, whole, size);
  memory_free(whole);
  u8 *place = directory + zip->directory.size;
  memcpy(place, row, sizeof row), memcpy(place + sizeof row, name, name_size - 4), memcpy(place + directory_size - zip->directory.size - 4, ".npy", 4);
  zip->directory.size = directory_size, zip->at += sizeof local + name_size + size, zip->count++;
  return true;
}

static void zip_end(struct zip_writer *zip) {
  u8 end[ZIP_END_BYTES] = "PK\5\6";
  put_word(end, 8, zip->count, 2), put_word(end, 10, zip->count, 2), put_word(end, 12, zip->directory.size, 4), put_word(end, 16, zip->at, 4);
  output_write(zip->output, zip->directory.data, zip->directory.size);
  output_write(zip->output, end, sizeof end);
}
