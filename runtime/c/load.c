// From a path or memory to a bundle, in the order of FORMAT.md, "Reading": nothing unchecked is used.
//
// In: the user's choices. Out: `ingot_bundle`. Not done here: each step (one file each), running (`session.c`).
#include "internal.h"

static bool check_options(const struct ingot_options *options, error *error) {
  if (options->header_version != INGOT_HEADER_VERSION) {
    const char *why = TEXT("the library is of version %u, the caller's header of %u", INGOT_HEADER_VERSION, options->header_version);
    return refuse(error, INGOT_INPUT_ERROR, "another version of ingot.h", "options", why, "compile the caller with the library's header, and begin with INGOT_OPTIONS");
  }
  if (options->verify < INGOT_VERIFY_FULL || options->verify > INGOT_VERIFY_CODE)
    return refuse(error, INGOT_INPUT_ERROR, "unknown value of verify", "verify", TEXT("expected 0 to 2, got %d", options->verify), "");
  if (options->threads < 0)
    return refuse(error, INGOT_INPUT_ERROR, "bad number of threads", "threads", TEXT("expected at least 1, got %d", options->threads), "");
  return true;
}

static bool describe(ingot_bundle *bundle, error *error) {
  const struct plan *plan = &bundle->plan;
  bundle->device_infos = arena_take(&bundle->arena, plan->device_count * sizeof *bundle->device_infos, error);
  if (error->kind) return false;
  for (u32 index = 0; index < plan->device_count; index++)
    bundle->device_infos[index] = (struct ingot_device_info){plan->devices[index].name, bundle->devices[index] ? bundle->devices[index]->name : "host:0"};
  memcpy(bundle->root_digest, hex(bundle->source.header.root, 32), sizeof bundle->root_digest);
  bundle->info = (struct ingot_bundle_info){
      .model = plan->model, .root_digest = bundle->root_digest, .target = plan->variants[bundle->variant].target,
      .inputs = plan->inputs, .outputs = plan->outputs, .symbols = plan->symbols.items,
      .states = plan->states, .input_count = plan->input_count, .output_count = plan->output_count, .symbol_count = plan->symbols.count,
      .state_count = plan->state_count,
      .device_count = plan->device_count, .devices = bundle->device_infos,
  };
  return true;
}

static bool load_weights(ingot_bundle *bundle, const struct ingot_options *options, error *error) {
  struct pool pool = pool_of(options);
  if (!map_weights(&bundle->source, &bundle->weights, error)) return false;
  if (!bundle->weights.data) return true;
  bundle->weights.tree = source_section(&bundle->source, SECTION_TREE, 0, error);
  if (bundle->weights.tree.data && pool_start(&pool, &bundle->image, usable_threads(options->threads), error))
    verify_weights(bundle, &bundle->weights, options->verify, &pool, error);
  pool_stop(&pool);
  return !error->kind;
}

#ifdef INGOT_WITHOUT_SIGNATURES
static bool require_signed(const struct source *source, const struct ingot_options *options, struct arena *arena, error *error) {
  (void)source, (void)arena;
  return ((!options->keys || !*options->keys) && !options->policy) || refuse(error, INGOT_INPUT_ERROR, "no signatures", "keys", "", "");
}
#endif

// The source is open.
static bool load_checked(ingot_bundle *bundle, const struct ingot_options *options, error *error) {
  struct source *source = &bundle->source;
  struct candidates bound[DEVICE_COUNT_MAX];
  memset(bound, 0, sizeof bound);
  bundle->verify = options->verify;
  if (!read_table(source, &bundle->arena, options->digest, error) || !require_signed(source, options, &bundle->arena, error)) return false;
  if (!read_plan(source, &bundle->arena, &bundle->plan, error)) return false;
  if (!open_base(source, &bundle->arena, error) || !bind_devices(&bundle->plan, options, source->name, &bundle->arena, bound, error)) return false;
  if (!choose_variant(&bundle->plan, source->name, options->variant, &bundle->variant, error)) return false;
  return load_image(source, &bundle->plan, bundle->variant, &bundle->image, error) && load_weights(bundle, options, error) &&
         open_devices(bundle, bound, options, error) && describe(bundle, error);
}

// An error about what is in a file names the file.
static void name_file(error *error, const char *path) {
  bool is_of_file = error->kind == INGOT_NOT_A_BUNDLE_ERROR || error->kind == INGOT_FORMAT_ERROR || error->kind == INGOT_DIGEST_ERROR ||
                    error->kind == INGOT_VERSION_ERROR;
  size_t size = strlen(path);
  bool is_named = !strncmp(error->where, path, size) && (!error->where[size] || !strncmp(error->where + size, ", ", 2));
  if (is_of_file && !is_named) put(error->where, sizeof error->where, TEXT("%s, %s", path, error->where));
}

static int load(const char *path, const void *data, size_t size, const struct ingot_options *options, ingot_bundle **result, error *error) {
  struct ingot_error own;
  static const struct ingot_options defaults = INGOT_OPTIONS;
  if (!error) error = &own;
  clear(error);
  *result = NULL;
  if (!options) options = &defaults;
  ingot_bundle *bundle = memory_take(sizeof *bundle);
  if (!bundle) no_memory(error, "load", "bundle");
  else bundle->source = (struct source){.name = "bundle in memory", .fd = -1, .memory = data, .size = size};
  bool is_open = bundle && check_options(options, error) && (path ? source_open(&bundle->source, path, error) : find_in_program(&bundle->source, error));
  if (is_open) load_checked(bundle, options, error);
  if (bundle && path) bundle->source.name = arena_text(&bundle->arena, path, error);
  if (!error->kind) return *result = bundle, INGOT_OK;
  if (path) name_file(error, path);
  ingot_unload(bundle);
  return error->kind;
}

int ingot_load(const char *path, const struct ingot_options *options, ingot_bundle **bundle, struct ingot_error *error) {
  return load(path, NULL, 0, options, bundle, error);
}

int ingot_load_memory(const void *data, size_t size, const struct ingot_options *options, ingot_bundle **bundle, struct ingot_error *error) {
  return load(NULL, data, size, options, bundle, error);
}

void ingot_unload(ingot_bundle *bundle) {
  if (!bundle) return;
  close_devices(bundle);
  unmap_weights(&bundle->weights);
  unmap_image(&bundle->image);
  source_close(&bundle->source);
  arena_free(&bundle->arena);
  memory_free(bundle);
}

const struct ingot_bundle_info *ingot_describe(const ingot_bundle *bundle) { return &bundle->info; }

const uint32_t ingot_header_version = INGOT_HEADER_VERSION;
