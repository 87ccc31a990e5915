// A code image in executable memory: copied from private bytes into a sealed memory file, and mapped.
//
// In: a code section whose digest holds. Out: `struct image`. Not done here: calling it. No page is ever writable and executable.
#include <fcntl.h>
#include <sys/mman.h>

#include "internal.h"

static u64 page_bytes(void) { return getauxval(AT_PAGESZ); }

static bool check_image_head(const struct bytes *data, u32 kernel_count, const char *where, error *error) {
  u32 head[IMAGE_HEAD_WORDS] = {0};
  bool whole = data->size >= sizeof head && data->size % page_bytes() == 0;
  if (!REQUIRE(error, whole, "image is not whole pages", where, TEXT("%lld bytes", NUMBER(data->size)))) return false;
  memcpy(head, data->data, sizeof head);
  u64 text = head[2], exports = head[3], kernels = head[4];
  if (!REQUIRE(error, head[0] == IMAGE_MAGIC, "not an image", where, TEXT("magic 0x%x", head[0]))) return false;
  if (head[1] != ABI_VERSION) {
    const char *todo = "compile the bundle again, or use the loader of its release";
    return refuse(error, INGOT_VERSION_ERROR, "another call struct", where, TEXT("expected %d, got %u", ABI_VERSION, head[1]), todo);
  }
  bool good = 0 < text && text <= data->size && text % page_bytes() == 0;
  bool fits = 4 * (IMAGE_HEAD_WORDS + exports + kernels) <= data->size;
  return REQUIRE(error, good, "bad size of text", where, TEXT("%lld of %lld bytes", NUMBER(text), NUMBER(data->size))) &&
         REQUIRE(error, exports == EXPORT_COUNT, "wrong number of exports", where, TEXT("expected %d, got %lld", EXPORT_COUNT, NUMBER(exports))) &&
         REQUIRE(error, kernels == kernel_count, "plan and image disagree", where, TEXT("%u and %lld kernels", kernel_count, NUMBER(kernels))) &&
         REQUIRE(error, fits, "the export table does not fit", where, TEXT("%lld kernels", NUMBER(kernels)));
}

// Of a library, `main` and what tells of it are not there; all but `launch` may be missing.
static bool check_absent(u32 index, u32 offset, const char *name, const char *where, error *error) {
  bool is_of_variant = index == EXPORT_MAIN || index == EXPORT_PROGRAM_DIGEST || index == EXPORT_INTERFACE_DIGEST || index == EXPORT_FRAME_BYTES;
  return REQUIRE(error, !is_of_variant || !offset, TEXT("a library with an export %s", name), where, TEXT("offset %u", offset));
}

static bool check_exports(const struct bytes *data, u32 kernel_count, bool is_library, const char *where, error *error) {
  static const char *const names[] = {EXPORT_NAMES};
  static const u32 data_bytes[] = {EXPORT_DATA_BYTES};  // 0 of code
  u32 text = 0;
  u64 table_end = 4 * (IMAGE_HEAD_WORDS + EXPORT_COUNT + (u64)kernel_count);
  memcpy(&text, data->data + 8, 4);
  for (u32 index = 0; index < EXPORT_COUNT + kernel_count; index++) {
    u32 offset, size = index < EXPORT_COUNT ? data_bytes[index] : 0;
    memcpy(&offset, data->data + 4 * (IMAGE_HEAD_WORDS + (u64)index), 4);
    if (is_library && index < EXPORT_COUNT && !check_absent(index, offset, names[index], where, error)) return false;
    if (is_library && index < EXPORT_COUNT && !offset && index != EXPORT_LAUNCH) continue;
    bool inside = table_end <= offset && (size ? (u64)offset + size <= data->size : offset < text);
    if (!REQUIRE(error, inside, TEXT("export %s is missing or outside the image", index < EXPORT_COUNT ? names[index] : "kernel"), where,
                 TEXT("offset %u", offset)))
      return false;
  }
  return true;
}

static bool refuse_mapping(error *error) {
  const char *why = TEXT("%s: a security policy (SELinux execmem, vm.memfd_noexec) may forbid it", failure_words(errno));
  return refuse(error, INGOT_RESOURCE_ERROR, "this process may not map code", "mmap of a sealed memory file, mprotect of a copy", why, "");
}

// Returns a sealed file with the bytes; -1 where the system has none.
static int sealed_file(const struct bytes *data) {
  enum { MFD_CLOEXEC_BIT = 1, MFD_ALLOW_SEALING_BIT = 2, MFD_NOEXEC_SEAL_BIT = 8, ALL_SEALS = 15, ADD_SEALS = 1033 };
  int file = (int)syscall(SYS_memfd_create, "ingot", MFD_CLOEXEC_BIT | MFD_NOEXEC_SEAL_BIT);
  if (file < 0) file = (int)syscall(SYS_memfd_create, "ingot", MFD_CLOEXEC_BIT | MFD_ALLOW_SEALING_BIT);  // before Linux 6.3
  if (file < 0) return -1;
  for (u64 done = 0; done < data->size;) {
    ssize_t part = write(file, data->data + done, data->size - done);
    if (part <= 0) return close(file), -1;
    done += (u64)part;
  }
  if (syscall(SYS_fcntl, file, ADD_SEALS, ALL_SEALS)) return close(file), -1;
  return file;
}

// Maps the bytes executable at `place`: from a sealed file, or, where there is none, as a copy that loses the right to be written.
static bool map_text(const struct bytes *data, u8 *place) {
  int file = sealed_file(data);
  void *mapped = MAP_FAILED;
  if (file >= 0) {
    mapped = mmap(place, data->size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file, 0);
    close(file);
  }
  if (mapped != MAP_FAILED) return true;
  if (mmap(place, data->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) return false;
  memcpy(place, data->data, data->size);
  __builtin___clear_cache((char *)place, (char *)place + data->size);
  return !mprotect(place, data->size, PROT_READ | PROT_EXEC);
}

static bool map_image(const struct bytes *data, struct image *image, error *error) {
  u64 page = page_bytes(), size = data->size + page;
  u32 text;
  memcpy(&text, data->data + 8, 4);
  void *area = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (area == MAP_FAILED) return refuse_mapping(error);
  image->base = area, image->mapped_bytes = size;
  u8 *behind = image->base + data->size;
  if (!map_text(data, image->base) || mprotect(behind, page, PROT_READ | PROT_WRITE)) return refuse_mapping(error);
  if (text < data->size && mprotect(image->base + text, data->size - text, PROT_READ)) return refuse_mapping(error);
  return true;
}

// The words that `interface_digest` covers, one after the other.
static void hash_word(struct sha256 *hash, i64 word) { sha256_add(hash, &word, sizeof word); }
static void hash_text(struct sha256 *hash, const char *text) { sha256_add(hash, text, strlen(text) + 1); }

static void hash_tensors(struct sha256 *hash, const struct ingot_tensor_info *tensors, u32 count) {
  hash_word(hash, count);
  for (u32 index = 0; index < count; index++) {
    hash_word(hash, tensors[index].dtype_code);
    hash_word(hash, tensors[index].rank);
    for (u32 axis = 0; axis < tensors[index].rank; axis++) hash_word(hash, tensors[index].dims[axis]);
  }
}

static void hash_texts(struct sha256 *hash, const struct texts *features) {
  for (u32 index = 0; index < features->count; index++) hash_text(hash, features->items[index]);
}

static void hash_interface(const struct plan *plan, u32 variant, u8 digest[static 32]) {
  struct sha256 hash;
  sha256_begin(&hash);
  hash_word(&hash, plan->device_count);
  for (u32 index = 0; index < plan->device_count; index++)
    hash_word(&hash, plan->devices[index].kind), hash_word(&hash, plan->devices[index].library);
  hash_tensors(&hash, plan->inputs, plan->input_count);
  hash_tensors(&hash, plan->outputs, plan->output_count);
  hash_word(&hash, plan->library_count);
  for (u32 index = 0; index < plan->library_count; index++)
    hash_word(&hash, plan->libraries[index].kind), hash_word(&hash, plan->libraries[index].kernel_count);
  hash_word(&hash, plan->variants[variant].features.count);
  for (u32 index = 0; index < plan->library_count; index++) hash_word(&hash, plan->libraries[index].features.count);
  hash_texts(&hash, &plan->variants[variant].features);
  for (u32 index = 0; index < plan->library_count; index++)
    hash_text(&hash, plan->libraries[index].target), hash_texts(&hash, &plan->libraries[index].features);
  sha256_end(&hash, digest);
}

static bool read_image_data(const struct bytes *data, struct image *image, const char *where, error *error) {
  memcpy(image->exports, data->data + 4 * IMAGE_HEAD_WORDS, sizeof image->exports);
  memcpy(image->program_digest, data->data + image->exports[EXPORT_PROGRAM_DIGEST], 32);
  memcpy(image->interface_digest, data->data + image->exports[EXPORT_INTERFACE_DIGEST], 32);
  memcpy(&image->frame_bytes, data->data + image->exports[EXPORT_FRAME_BYTES], 8);
  bool fits = image->frame_bytes <= FRAME_SIZE_BYTES_MAX;
  return REQUIRE(error, fits, "frame too large", where, TEXT("%llu bytes", (unsigned long long)image->frame_bytes));
}

// Maps the code of a variant, which must agree with the plan.
static bool load_image(const struct source *source, const struct plan *plan, u32 variant, struct image *image, error *error) {
  const char *where = SECTION_NAME(SECTION_CODE, variant);
  const char *why = "the image was made for other inputs, outputs, devices, libraries or CPU features";
  struct bytes data = source_section(source, SECTION_CODE, variant, error);
  u32 kernel_count = plan->variants[variant].kernel_count;
  u8 expected[32];
  bool good = data.data && check_image_head(&data, kernel_count, where, error) && check_exports(&data, kernel_count, false, where, error) &&
              read_image_data(&data, image, where, error) && map_image(&data, image, error);
  if (good) {
    hash_interface(plan, variant, expected);
    good = REQUIRE(error, !memcmp(expected, image->interface_digest, 32), "plan and image disagree", where, why);
  }
  memory_free(data.data);
  return good;
}

static void unmap_image(struct image *image) {
  if (image->base) munmap(image->base, image->mapped_bytes);
  image->base = NULL;
}
