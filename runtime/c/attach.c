// The devices beside the host that a bundle runs on: opened, with their weights.
//
// In: candidates, a bundle with its image. Out: open devices. Not done here: which they may be (`bind.c`), what a device does (`device.c`),
// calls (`attached.c`).
#include "device.h"

// The code that a candidate runs, and the section that has it; the caller frees `section`.
static bool find_code(const ingot_bundle *bundle, u32 index, const struct candidate *candidate, struct bytes *section, struct opening *opening, error *error) {
  const struct plan *plan = &bundle->plan;
  bool is_own = candidate->alternative == OWN_CODE;
  u32 kind = is_own ? SECTION_LIBRARY : SECTION_ALTERNATIVE;
  u32 number = (u32)(is_own ? plan->devices[index].library : candidate->alternative);
  u64 start = is_own ? 0 : plan->alternatives[number].start;
  opening->name = plan->devices[index].name, opening->code = candidate->code, opening->where = arena_text(opening->arena, SECTION_NAME(kind, number), error);
  *section = source_section(&bundle->source, kind, number, error);
  opening->data = section->data + start, opening->size = section->size - start;
  return section->data;
}

static struct open_device *open_candidate(ingot_bundle *bundle, u32 index, const struct candidate *candidate, error *error) {
  struct bytes section;
  struct opening opening = {.arena = &bundle->arena};
  if (!find_code(bundle, index, candidate, &section, &opening, error)) return NULL;
  struct open_device *device = memory_take(sizeof *device);
  bool good = device || no_memory(error, "load", "device");
  if (good) {
    device->kind = candidate->kind, device->id = candidate->id;
    WRITE(device->name, "%s:%lld", candidate->kind->name, NUMBER(candidate->id));
    good = candidate->kind->open(device, candidate->id, &opening, error) && !error->kind;
  }
  memory_free(section.data);
  if (good) return device;
  device_close(device);
  return NULL;
}

// Opens the first candidate that is here: what is missing is passed over, any other failure is one.
static bool open_first(ingot_bundle *bundle, u32 index, const struct candidates *bound, error *error) {
  struct ingot_error missing = {0};
  char told[TEXT_BYTES] = "", reasons[TEXT_BYTES] = "";
  for (u32 at = 0; at < bound->count; at++) {
    const struct candidate *candidate = bound->rows + at;
    clear(&missing);
    bundle->devices[index] = open_candidate(bundle, index, candidate, &missing);
    if (bundle->devices[index]) return true;
    if (missing.kind != INGOT_INCOMPATIBLE_ERROR || bound->count == 1) return *error = missing, false;
    append(told, "%s%s:%lld", at ? ", " : "", candidate->kind->name, NUMBER(candidate->id));
    append(reasons, "%s%s: %s", at ? "; " : "", missing.what, missing.why);
  }
  const char *what = TEXT("no device for %s here: %s", quoted(bundle->plan.devices[index].name), told);
  const char *todo = TEXT("%s; or compile the model for a device that is here", missing.todo);
  return refuse(error, INGOT_INCOMPATIBLE_ERROR, what, bundle->source.name, reasons, todo);
}

static void close_devices(ingot_bundle *bundle) {
  for (u32 index = 0; index < DEVICE_COUNT_MAX; index++) device_close(bundle->devices[index]), bundle->devices[index] = NULL;
}

// Checks the weights of a device and copies them there; what was mapped for that goes. Constants of no bytes have an address all the same.
static bool load_device_weights(ingot_bundle *bundle, u32 index, i32 verify, struct pool *pool, error *error) {
  struct weights weights = {.id = index};
  struct device_memory memory = {.address = bundle->device_weights[index]};
  bool good = map_weights(&bundle->source, &weights, error);
  if (good && weights.data) weights.tree = source_section(&bundle->source, SECTION_TREE, index, error);
  good = good && !error->kind && verify_weights(bundle, &weights, verify, pool, error);
  good = good && (memory.address || device_allocate(bundle->devices[index], weights.size, &memory, error));
  good = good && device_write(bundle->devices[index], memory.address, weights.data, weights.size, false, error);
  bundle->device_weights[index] = memory.address;
  const char *lost = why_lost(&weights);
  if (good && lost) good = changed(error, bundle->source.name, lost);
  unmap_weights(&weights);
  return good;
}

// Whether the file is still what it was; false without an error where its record alone changed.
static bool is_same_file(ingot_bundle *bundle, u32 *changes, error *error) {
  enum { CHANGES_MAX = 8 };
  struct source *source = &bundle->source;
  struct stamp now = source->stamp;
  if (source->fd < 0 || (present_stamp(source, &now, error) && is_same_stamp(now, source->stamp))) return true;
  if (error->kind || !settled_stamp(source, &now, error)) return false;
  if (!is_same_content(now, source->stamp) || ++*changes > CHANGES_MAX)
    return changed(error, source->name, "its size or its times are not those of load time");
  source->stamp = now;
  return verify_weights(bundle, &bundle->weights, INGOT_VERIFY_FULL, &(struct pool){.n_threads = 1}, error) && false;
}

// Opens the devices and gives them their weights; again, where the record of the file changed meanwhile.
static bool open_devices(ingot_bundle *bundle, const struct candidates *bound, const struct ingot_options *options, error *error) {
  struct pool pool = pool_of(options);
  u32 changes = 0;
  for (u32 index = 0; index < bundle->plan.device_count; index++)
    if (bound[index].count && !open_first(bundle, index, bound + index, error)) return false;
  bool good = bundle->plan.library_count == 0 || pool_start(&pool, &bundle->image, usable_threads(options->threads), error);
  do {
    for (u32 index = 0; good && index < bundle->plan.device_count; index++)
      if (bundle->devices[index]) good = load_device_weights(bundle, index, options->verify, &pool, error);
  } while (good && bundle->plan.library_count && !is_same_file(bundle, &changes, error) && !error->kind);
  pool_stop(&pool);
  return good && !error->kind;
}

