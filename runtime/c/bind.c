// Which devices of the machine each virtual device beside the host may be: as the user maps it, else as compiled.
//
// In: the plan, what the user says. Out: candidates, of which the first that opens is it. Not done here: opening any (`attach.c`).
#include "device.h"

enum { OWN_CODE = -1 };

// A device of the machine, and the code that it would run: `alternative` is a number of the bundle, or OWN_CODE.
struct candidate {
  const struct device_kind *kind;
  i64 id, library_kind;
  const struct library_plan *code;
  i64 alternative;
};

struct candidates {
  struct candidate *rows;
  u32 count;
};

// What a user says of a device: KIND[:ID][,target=T][,scope=S]. Of a kind that this loader does not open, `kind` is null.
struct device_text {
  const char *kind_name, *target, *scope;
  const struct device_kind *kind;
  i64 id;
};

static const struct device_kind *kind_of(const char *name) {
  for (u32 index = 0; index < COUNT_OF(open_kinds); index++)
    if (!strcmp(open_kinds[index]->name, name)) return open_kinds[index];
  return NULL;
}

static bool bad_device(const char *what, const char *where, const char *why, const char *todo, error *error) {
  return refuse(error, INGOT_INPUT_ERROR, what, where, why, todo);
}

// Whether devices of the kind run libraries of kind `code`.
static bool runs_code(const struct device_kind *kind, const char *code) {
  const struct device_kind *own = kind_of(code);
  return own == kind || (own && own->runs_host_code && kind->runs_host_code);
}

static const char *kinds_here(void) {
  char *text = next_text();
  append(text, "host");
  for (u32 index = 0; index < COUNT_OF(open_kinds); index++) append(text, ", %s", open_kinds[index]->name);
  return text;
}

static const char *all_kinds(void) {
  char *text = next_text();
  for (u32 index = 0; index < COUNT_OF(device_kinds); index++) append(text, "%s%s", index ? ", " : "", device_kinds[index]);
  return text;
}

// Reads ID of KIND:ID; what is no number that a device may have is refused.
static bool read_id(const char *text, const char *where, i64 *id, error *error) {
  const char *at = text;
  *id = read_digits(&at);
  if (at > text && !*at && at - text <= 10 && *id <= CODE_MAX) return true;
  const char *why = TEXT("expected a number from 0 to %d, got %s", CODE_MAX, quoted(text));
  return bad_device("a device has no such id", where, why, "write KIND:0, KIND:1, ...", error);
}

// Reads target=T or scope=S.
static bool read_key(struct device_text *text, char *part, const char *whole, const char *where, error *error) {
  bool is_target = !strncmp(part, "target=", 7) && part[7], is_scope = !strncmp(part, "scope=", 6) && part[6];
  if (!is_target && !is_scope)
    return bad_device("a device is not understood", where, TEXT("expected target=TARGET or scope=NAME, got %s", quoted(part)),
                      "write KIND[:ID][,target=T][,scope=S]", error);
  const char **value = is_target ? &text->target : &text->scope, *key = is_target ? "target" : "scope";
  if (**value) return bad_device(TEXT("%s is given twice", key), where, TEXT("a device has one %s, got %s", key, quoted(whole)), "leave one out", error);
  *value = part + strlen(key) + 1;
  return true;
}

static bool is_device_kind(const char *name) {
  for (u32 index = 0; index < COUNT_OF(device_kinds); index++)
    if (!strcmp(device_kinds[index], name)) return true;
  return false;
}

static bool read_device_text(struct device_text *text, const char *given, const char *where, struct arena *arena, error *error) {
  char *copy = (char *)(uintptr_t)arena_text(arena, given, error), *rest = copy + size_until(copy, ','), *id;
  if (error->kind) return false;
  bool has_rest = *rest;
  if (has_rest) *rest++ = 0;
  id = copy + size_until(copy, ':');
  bool has_id = *id;
  if (has_id) *id++ = 0;
  *text = (struct device_text){.kind_name = copy, .target = "", .scope = "", .kind = kind_of(copy)};
  if (!is_device_kind(copy))
    return bad_device(TEXT("unknown device kind %s", quoted(copy)), where, TEXT("expected one of %s, got %s", all_kinds(), quoted(given)),
                      "choose one of these", error);
  while (has_rest) {
    char *end = rest + size_until(rest, ',');
    has_rest = *end;
    *end = 0;
    if (!read_key(text, rest, given, where, error)) return false;
    rest = end + 1;
  }
  return !has_id || read_id(id, where, &text->id, error);
}

// What the user maps a device to: the text behind `NAME=`; null if nothing.
static const char *mapping_of(const struct ingot_options *options, const char *name) {
  size_t size = strlen(name);
  for (const char *const *given = options->devices; given && *given; given++)
    if (!strncmp(*given, name, size) && (*given)[size] == '=') return *given + size + 1;
  return NULL;
}

static bool require_known(const struct plan *plan, const struct ingot_options *options, error *error) {
  char names[TEXT_BYTES] = "";
  for (u32 index = 0; index < plan->device_count; index++) append(names, "%s%s", index ? ", " : "", plan->devices[index].name);
  for (const char *const *given = options->devices; given && *given; given++) {
    bool is_known = false;
    size_t size = size_until(*given, '=');
    if (!(*given)[size])
      return bad_device(TEXT("bad device %s", quoted(*given)), "devices", "expected NAME=KIND[:ID][,target=T][,scope=S]", "e.g. acc=cpu:0", error);
    const char *name = TEXT("%.*s", (int)size, *given);
    for (u32 index = 0; index < plan->device_count; index++) is_known = is_known || !strcmp(plan->devices[index].name, name);
    if (!is_known) return bad_device(TEXT("no device %s", quoted(name)), "devices", TEXT("the bundle has %s", names), "leave it out", error);
    if (mapping_of(options, name) != *given + size + 1)
      return bad_device(TEXT("%s is given twice", quoted(name)), "devices", TEXT("expected one device, got %s", quoted(*given)), "leave one of them out", error);
  }
  return true;
}

// All that the bundle has code for, in the order in which the device was declared.
static bool list_codes(const struct plan *plan, u32 index, struct arena *arena, struct candidates *codes, error *error) {
  const struct device_plan *device = plan->devices + index;
  const struct library_plan *own = plan->libraries + device->library;
  codes->rows = arena_take(arena, (plan->alternative_count + 1) * sizeof *codes->rows, error);
  if (!codes->rows) return false;
  codes->rows[codes->count++] = (struct candidate){kind_of(device_kinds[device->kind]), device->id, device->kind, own, OWN_CODE};
  for (u32 number = 0; number < plan->alternative_count; number++) {
    const struct alternative_plan *each = plan->alternatives + number;
    if (each->ids[index] >= 0)
      codes->rows[codes->count++] = (struct candidate){kind_of(device_kinds[each->code.kind]), each->ids[index], each->code.kind, &each->code, number};
  }
  return true;
}

// Whether a kind of this loader runs any of the codes.
static bool fits_any(const struct device_kind *kind, const struct candidates *codes) {
  for (u32 index = 0; index < codes->count; index++)
    if (runs_code(kind, device_kinds[codes->rows[index].library_kind])) return true;
  return false;
}

static const char *device_advice(const struct device_plan *device, const struct candidates *codes) {
  for (u32 index = 0; codes && index < COUNT_OF(open_kinds); index++)
    if (fits_any(open_kinds[index], codes)) return TEXT("map it: --device %s=%s:0", device->name, open_kinds[index]->name);
  return "compile it for another kind";
}

static bool no_such_device(const struct device_plan *device, const struct candidates *codes, const char *told, const char *name, error *error) {
  const char *why = TEXT("device %s wants %s; this loader has %s", quoted(device->name), told, kinds_here());
  return refuse(error, INGOT_INCOMPATIBLE_ERROR, TEXT("no device %s here", told), name, why, device_advice(device, codes));
}

// A target or a scope that the user names is one of the bundle's code; `own` are in a list of texts.
static bool refuse_own(const struct device_plan *device, const char *what, const char *wanted, const char *own, const char *name, error *error) {
  const char *why = *own ? TEXT("it was compiled for %s %s", what, own) : TEXT("it was compiled without a %s", what);
  const char *todo = TEXT("leave %s= out, or compile the model for %s", what, quoted(wanted));
  return refuse(error, INGOT_INCOMPATIBLE_ERROR, TEXT("device %s has no %s %s", quoted(device->name), what, quoted(wanted)), name, why, todo);
}

static bool refuse_kind(const struct device_plan *device, const struct candidates *codes, const char *wanted, const char *name, error *error) {
  char fit[TEXT_BYTES] = "", told[TEXT_BYTES] = "";
  u32 count = 0;
  for (u32 index = 0; index < COUNT_OF(open_kinds); index++)
    if (fits_any(open_kinds[index], codes)) append(fit, "%s%s", count++ ? " and " : "", open_kinds[index]->name);
  for (u32 index = 0; index < codes->count; index++) {
    bool is_told = false;
    for (u32 before = 0; before < index; before++) is_told = is_told || codes->rows[before].library_kind == codes->rows[index].library_kind;
    if (!is_told) append(told, "%s%s", index ? " and " : "", device_kinds[codes->rows[index].library_kind]);
  }
  const char *runs = count ? TEXT("which %s %s", fit, count == 1 ? "runs" : "run") : "which nothing here runs";
  const char *why = TEXT("it has code for %s, %s, and is mapped to %s", told, runs, wanted);
  const char *what = TEXT("device %s cannot be %s", quoted(device->name), wanted);
  return refuse(error, INGOT_INCOMPATIBLE_ERROR, what, name, why, device_advice(device, codes));
}

// Keeps of `codes` those that run where the user maps the device.
static bool map_codes(const struct device_plan *device, const char *given, const char *name, struct arena *arena, struct candidates *codes, error *error) {
  struct device_text text;
  struct candidates usable = {.rows = arena_take(arena, codes->count * sizeof *codes->rows, error)};
  char targets[TEXT_BYTES] = "";
  bool has_target = false;
  if (error->kind || !read_device_text(&text, given, TEXT("devices, %s", quoted(device->name)), arena, error)) return false;
  if (*text.scope && strcmp(text.scope, device->scope))
    return refuse_own(device, "scope", text.scope, *device->scope ? quoted(device->scope) : "", name, error);
  const char *wanted = TEXT("%s:%lld", text.kind_name, NUMBER(text.id));
  if (!text.kind && strcmp(text.kind_name, device_kinds[HOST])) return no_such_device(device, codes, wanted, name, error);
  if (!text.kind || !fits_any(text.kind, codes)) return refuse_kind(device, codes, wanted, name, error);
  for (u32 index = 0; index < codes->count; index++) {
    struct candidate code = codes->rows[index];
    if (!runs_code(text.kind, device_kinds[code.library_kind])) continue;
    append(targets, "%s%s", *targets ? " and " : "", quoted(code.code->target));
    bool same = !*text.target || !strcmp(text.target, code.code->target);
    has_target = has_target || same;
    code.kind = text.kind, code.id = text.id;
    if (same) usable.rows[usable.count++] = code;
  }
  *codes = usable;
  return has_target || refuse_own(device, "target", text.target, targets, name, error);
}

// Keeps of `codes` those whose kind this loader opens.
static bool keep_open(const struct device_plan *device, const char *name, struct candidates *codes, error *error) {
  char told[TEXT_BYTES] = "";
  struct candidates all = *codes;
  codes->count = 0;
  for (u32 index = 0; index < all.count; index++) {
    struct candidate row = all.rows[index];
    const char *kind = row.kind ? row.kind->name : device_kinds[row.library_kind];
    append(told, "%s%s:%lld", index ? " or " : "", kind, NUMBER(row.id));
    if (row.kind) codes->rows[codes->count++] = row;
  }
  return codes->count || no_such_device(device, NULL, told, name, error);
}

static bool refuse_host(const struct device_plan *device, const char *given, const char *name, error *error) {
  const char *quoted_name = quoted(device->name), *quoted_given = quoted(given);
  const char *why = TEXT("%s is the processor that runs main, and is mapped to %s", quoted_name, quoted_given);
  const char *what = TEXT("device %s cannot be %s", quoted_name, quoted_given), *todo = TEXT("leave it out, or write %s=host", device->name);
  return refuse(error, INGOT_INCOMPATIBLE_ERROR, what, name, why, todo);
}

// Lists what each device may be, the best first; a host, which is number 0, is nothing else.
static bool bind_devices(const struct plan *plan, const struct ingot_options *options, const char *name, struct arena *arena,
                         struct candidates bound[static DEVICE_COUNT_MAX], error *error) {
  if (!require_known(plan, options, error)) return false;
  for (u32 index = 0; index < plan->device_count; index++) {
    const struct device_plan *device = plan->devices + index;
    const char *given = mapping_of(options, device->name);
    if (device->kind == HOST) {
      const char *own = TEXT("host:%lld", NUMBER(device->id));
      if (!given) given = own;
      if (strcmp(given, "host") && strcmp(given, "host:0")) return refuse_host(device, given, name, error);
      continue;
    }
    if (!list_codes(plan, index, arena, bound + index, error)) return false;
    if (given && !map_codes(device, given, name, arena, bound + index, error)) return false;
    if (!keep_open(device, name, bound + index, error)) return false;
  }
  return true;
}
