// The weights: mapped read-only and guarded, or used where they lie in memory, and checked by the image's own native code.
//
// In: a bundle with its image. Out: `struct weights`. Not done here: reading them.
#include "internal.h"

static u8 *aligned(u8 *data) { return data + -(uintptr_t)data % ALIGNMENT_SMALL_BYTES; }

static bool copy_weights(struct weights *weights, const u8 *from, error *error) {
  weights->copied = memory_take(weights->size + ALIGNMENT_SMALL_BYTES);
  if (!weights->copied) return no_memory(error, "weights", TEXT("%lld bytes", NUMBER(weights->size)));
  weights->data = memcpy(aligned(weights->copied), from, weights->size);
  return true;
}

// Maps bytes of a file over the reserved ones. Shared, not copied: what is in the page cache costs no memory.
static bool map_piece(const struct weights *weights, u64 at, u64 size, const struct source *source, u64 offset) {
  u64 from = source->start + offset;
  return !size || mmap(weights->mapped + at, size, PROT_READ, MAP_SHARED | MAP_FIXED, source->fd, (off_t)from) != MAP_FAILED;
}

// Maps what lies in the other bundle, and what lies here between it.
static bool map_pieces(const struct weights *weights, const struct source *source, const struct section *row) {
  const struct shared *shared = HAS_SHARED && !weights->id ? source->shared : NULL;
  u64 at = 0, own = row->offset;
  for (u32 index = 0; shared && index < shared->count; index++) {
    const struct shared_row *piece = shared->rows + index;
    u64 there = source_row(source->base, SECTION_WEIGHTS, 0)->offset + piece->there;
    if (!map_piece(weights, at, piece->at - at, source, own) || !map_piece(weights, piece->at, piece->size, source->base, there)) return false;
    own += piece->at - at, at = piece->at + piece->size;
  }
  return map_piece(weights, at, weights->size - at, source, own);
}

// Where the weights would begin in the file that has most of them in one piece.
static u64 begin_of_most(const struct weights *weights, const struct source *source, const struct section *row) {
  const struct shared *shared = HAS_SHARED && !weights->id ? source->shared : NULL;
  const struct shared_row *most = NULL;
  for (u32 index = 0; shared && index < shared->count; index++) {
    if (!most || shared->rows[index].size > most->size) most = shared->rows + index;
  }
  if (!most) return source->start + row->offset;
  return source->base->start + source_row(source->base, SECTION_WEIGHTS, 0)->offset + most->there - most->at;
}

// Reserves addresses as far behind a multiple of a huge page as `from` is: a huge page of the page cache is mapped as one only where both
// begin at such a multiple. What is reserved around them is given back.
static bool reserve_weights(struct weights *weights, u64 from) {
  enum { HUGE_PAGE_BYTES = 1 << 21 };
  u8 *area = mmap(NULL, weights->size + HUGE_PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (area == MAP_FAILED) return false;
  u64 aside = (from - (u64)(uintptr_t)area) % HUGE_PAGE_BYTES;
  weights->mapped = area + aside;
  if (aside) munmap(area, aside);
  munmap(weights->mapped + weights->size, HUGE_PAGE_BYTES - aside);
  return true;
}

static bool map_weights(const struct source *source, struct weights *weights, error *error) {
  const struct section *row = source_row(source, SECTION_WEIGHTS, weights->id);
  if (!row) return true;
  u64 size = weights->size = weights_bytes(source, weights->id);
  if (source->fd < 0) {
    weights->data = source->memory + row->offset;
    return (uintptr_t)weights->data % ALIGNMENT_SMALL_BYTES == 0 || copy_weights(weights, weights->data, error);
  }
  if (reserve_weights(weights, begin_of_most(weights, source, row))) {
    weights->data = weights->mapped;
    weights->guard = guard_range((u64)(uintptr_t)weights->mapped, size, error);
    if (!weights->guard) return false;
    if (map_pieces(weights, source, row)) return true;
  }
  return refuse(error, INGOT_RESOURCE_ERROR, "the system refused mmap", TEXT("%lld bytes", NUMBER(size)), failure_words(errno), FREE_MEMORY);
}

static void unmap_weights(struct weights *weights) {
  if (weights->mapped) munmap(weights->mapped, weights->size);
  if (weights->guard) end_guard(weights->guard);
  memory_free(weights->copied);
  memory_free(weights->tree.data);
  *weights = (struct weights){0};
}

// Why no call is right any more, whatever the file holds by now; null: nothing is known of that.
static const char *why_lost(const struct weights *weights) {
  if (weights->guard && atomic_load(&weights->guard->faults)) return "some of its pages could not be read";
  return __atomic_load_n(&weights->is_lost, __ATOMIC_ACQUIRE) ? "a call before has found it changed" : NULL;
}

typedef i32 launch_function(void *pool, void *kernel, u64 *buffers, i64 *scalars, i64 extent, i64 grain, void *scratch, i64 stride, void *watch);

// What is checked, by which kernel of the image, on which threads.
struct check {
  const ingot_bundle *bundle;
  const struct weights *weights;
  struct pool *pool;
  u64 kernel;
  struct verified verified;
  u8 *scratch;
  const struct range *ranges;
  u32 range_count;
  i64 total;
};

// Runs a verifying kernel over MiBs from `first` up to `last`; MiB 0 begins at `data`. Returns 0 after an error of its own.
static bool launch_verify(struct check *check, u64 data, i64 first, i64 last) {
  enum { GRAIN_MIBS = 4 };
  const struct image *image = &check->bundle->image;
  launch_function *launch = (launch_function *)(void *)(image->base + image->exports[EXPORT_LAUNCH]);
  u64 buffers[] = {data, (u64)(uintptr_t)check->weights->tree.data, (u64)(uintptr_t)&check->verified};
  if (first >= last) return true;
  i32 code = launch(check->pool->page, image->base + check->kernel, buffers, &first, last - first, GRAIN_MIBS, check->scratch, VERIFY_STRIDE_BYTES, NULL);
  return !code || code == RC_DAMAGED;
}

// The same where the last MiB may end with the weights: its entry of the tree is that of a copy with zeros behind it.
static bool verify_range(struct check *check, i64 first, i64 last) {
  const u8 *data = check->weights->data;
  u64 size = check->weights->size, end = (u64)last * MIB;
  i64 whole = end > size ? last - 1 : last;
  if (check->weights->mapped) madvise(check->weights->mapped + (u64)first * MIB, (end < size ? end : size) - (u64)first * MIB, MADV_WILLNEED);
  if (!launch_verify(check, (u64)(uintptr_t)data, first, whole)) return false;
  if (whole == last) return true;
  u64 before = (u64)whole * MIB;
  u8 *copy = check->scratch + (u64)VERIFY_STRIDE_BYTES * check->pool->n_threads;
  memcpy(copy, data + before, size - before);
  memset(copy + size - before, 0, end - size);
  return launch_verify(check, (u64)(uintptr_t)copy - before, whole, last);
}

// Checks the MiBs that ranges touch, joined; leaves how many those are, -1 after an error of its own.
static void verify_mibs(void *argument) {
  struct check *check = argument;
  const struct range *ranges = check->ranges;
  u32 count = check->range_count;
  for (u32 index = 0; index < count;) {
    i64 first = (i64)(ranges[index].offset / MIB), last = first;
    for (; index < count && (i64)(ranges[index].offset / MIB) <= last; index++) {
      i64 next = (i64)((ranges[index].offset + ranges[index].size + MIB - 1) / MIB);
      if (next > last) last = next;
    }
    check->total = verify_range(check, first, last) ? check->total + last - first : -1;
    if (check->total < 0) return;
  }
}

static bool judge_weights(const struct check *check, bool is_full, error *error) {
  const struct source *source = &check->bundle->source;
  const struct verified *verified = &check->verified;
  u32 id = check->weights->id;
  i64 total = check->total;
  const char *name = HAS_SHARED && !id && source->base ? TEXT("%s, %s", source->name, source->base->name) : source->name;
  const char *lost = why_lost(check->weights);
  if (lost) return changed(error, name, lost);
  const char *where = TEXT("%s, section weights %u", name, id);
  if (verified->bad != UINT64_MAX) {
    const char *why = TEXT("the %s is not that of section tree %u", is_full ? "BLAKE3 digest" : "checksum", id);
    return refuse(error, INGOT_DIGEST_ERROR, TEXT("weights are damaged in MiB %llu", (unsigned long long)verified->bad), where, why, DAMAGED);
  }
  if (total >= 0 && verified->good == (u64)total) return true;
  const char *why = TEXT("%llu of %lld MiB checked", (unsigned long long)verified->good, NUMBER(total));
  return refuse(error, INGOT_RUN_ERROR, "the weights could not be verified", where, why, "");
}

// Checks what a variant reads of the host's weights, of a device's all. Each MiB must be counted as good: a thread that did not come is no proof. Behind the threads' scratch is room for a MiB.
static bool verify_weights(const ingot_bundle *bundle, const struct weights *weights, i32 mode, struct pool *pool, error *error) {
  const struct variant_plan *variant = bundle->plan.variants + bundle->variant;
  const struct range all = {0, weights->size};
  if (mode == INGOT_VERIFY_CODE || !weights->data) return true;
  bool is_full = mode == INGOT_VERIFY_FULL;
  u8 *scratch = memory_take((u64)VERIFY_STRIDE_BYTES * pool->n_threads + MIB + ALIGNMENT_SMALL_BYTES);
  if (!scratch) return no_memory(error, "verify", "scratch");
  u64 kernel = bundle->image.exports[is_full ? EXPORT_BLAKE3_VERIFY : EXPORT_CHECKSUM_VERIFY];
  struct check check = {bundle, weights, pool, kernel, {0, UINT64_MAX}, aligned(scratch), variant->ranges, variant->range_count, 0};
  if (weights->id) check.ranges = &all, check.range_count = 1;
  with_threads(pool, verify_mibs, &check);
  memory_free(scratch);
  return judge_weights(&check, is_full, error);
}
