// The library section of a `cuda` device: a table of modules and kernels, and PTX. FORMAT.md, "Image".
//
// In: the section's bytes. Out: `struct cuda_library`. Not done here: compiling (`cuda.c`).
#include "device.h"

#define CUDA_HEAD "ingot cuda library 1"
enum { OTHER_PARAMETERS = 4, BLOCK_THREADS_MAX = 1024, GROUP_THREADS = 8 };

// The kernels for one architecture (75: compute capability 7.5) and all later ones; `driver`: the first that reads them.
struct cuda_module {
  u32 architecture, driver, size, ptx_major, ptx_minor;
  const char *text;
};

struct cuda_library {
  struct table table;
  struct cuda_module *modules;
  u32 module_count, kernel_count;
  struct kernel_row *kernels;
};

// Reads digits, as many as from `least` to `most`.
static bool module_number(const char **at, size_t least, size_t most, u32 *number) {
  size_t count = span(*at, "0123456789");
  *number = (u32)read_digits(at);
  return least <= count && count <= most;
}

static bool read_module(const char *at, struct cuda_module *module) {
  return skip_text(&at, "module sm_") && module_number(&at, 2, 3, &module->architecture) && skip_text(&at, " ") &&
         module_number(&at, 1, 2, &module->ptx_major) && skip_text(&at, ".") && module_number(&at, 1, 1, &module->ptx_minor) && skip_text(&at, " ") &&
         module_number(&at, 4, 6, &module->driver) && skip_text(&at, " ") && module_number(&at, 1, 9, &module->size) && !*at;
}

// The kernel of that name; the count of kernels where there is none.
static u32 find_kernel(const struct cuda_library *library, const char *name, size_t size) {
  u32 index = 0;
  while (index < library->kernel_count && (strlen(library->kernels[index].name) != size || memcmp(library->kernels[index].name, name, size))) index++;
  return index;
}

// Behind the name of an entry that begins at `at`: its parameters, whose count is returned; -1 if that is no entry.
static i64 entry_parameters(const char *at, const char **name, size_t *size) {
  i64 count = 0;
  if (!skip_text(&at, ".visible .entry ")) return -1;
  *name = at, *size = span(at, WORD_LETTERS "0123456789"), at += *size;
  if (!*size || !skip_text(&at, "(\n")) return -1;
  for (; *at && *at != ')'; at++) count += !strncmp(at, ".param ", 7);
  return *at ? count : -1;
}

// Whether the text has the entries of the table, each with its parameters; else `wrong` is one that differs.
static bool has_entries(const struct cuda_library *library, const char *text, struct arena *arena, const char **wrong, error *error) {
  u8 *seen = arena_take(arena, library->kernel_count + 1, error);
  const char *name = "";
  size_t size = 0;
  for (const char *at = text; seen && at; at = find_char(at, '\n'), at += at != NULL) {
    i64 count = entry_parameters(at, &name, &size);
    u32 kernel = count < 0 ? 0 : find_kernel(library, name, size);
    if (count < 0) continue;
    const struct kernel_row *row = library->kernels + kernel;
    bool fits = kernel < library->kernel_count && count == (i64)row->buffer_count + row->scalar_count + OTHER_PARAMETERS;
    if (!fits) return *wrong = TEXT("%.*s", (int)size, name), false;
    seen[kernel] = 1;
  }
  for (u32 index = 0; seen && index < library->kernel_count; index++)
    if (!seen[index]) return *wrong = library->kernels[index].name, false;
  return !error->kind;
}

// Refuses a text for something else than its row says, or with other kernels or parameters.
static bool check_module(const struct cuda_library *library, const struct cuda_module *module, struct arena *arena, error *error) {
  const char *head = TEXT(".version %u.%u\n.target sm_%u\n.address_size 64\n", module->ptx_major, module->ptx_minor, module->architecture), *wrong = "";
  if (strncmp(module->text, head, strlen(head)))
    return bad_table(&library->table, TEXT("expected %s, got %s", quoted(head), quoted(TEXT("%.*s", (int)strlen(head), module->text))), error);
  if (has_entries(library, module->text, arena, &wrong, error)) return true;
  return bad_table(&library->table, TEXT("sm_%u and the table differ in kernel %s or its parameters", module->architecture, wrong), error);
}

static bool check_threads(const struct cuda_library *library, error *error) {
  for (u32 index = 0; index < library->kernel_count; index++) {
    const struct kernel_row *row = library->kernels + index;
    bool good = row->block_threads % GROUP_THREADS == 0 && GROUP_THREADS <= row->block_threads && row->block_threads <= BLOCK_THREADS_MAX;
    if (!good) return bad_table(&library->table, TEXT("kernel %s with %u threads in a block", row->name, row->block_threads), error);
  }
  return true;
}

// Copies each module's text, with a zero behind it.
static bool take_texts(struct cuda_library *library, struct arena *arena, error *error) {
  const char *at = library->table.text;
  u64 used = 0, size = strlen(at);
  for (u32 index = 0; index < library->module_count; index++) {
    struct cuda_module *module = library->modules + index;
    u64 left = used < size ? size - used : 0;
    module->text = arena_join(arena, at + (size - left), module->size < left ? module->size : left, "", error);
    used += module->size;
    if (error->kind || !check_module(library, module, arena, error)) return false;
  }
  const char *why = TEXT("its modules have %llu bytes, %llu are there", (unsigned long long)used, (unsigned long long)size);
  return (library->module_count && used == size) || bad_table(&library->table, why, error);
}

static bool read_cuda_library(struct cuda_library *library, const struct opening *opening, error *error) {
  struct table *table = &library->table;
  *library = (struct cuda_library){.table = {.what = "a library of PTX is damaged", .where = opening->where}, .kernel_count = opening->code->kernel_count};
  if (!split_table(table, opening, CUDA_HEAD, error)) return false;
  if (strcmp(table->lines, CUDA_HEAD)) return bad_head(table, CUDA_HEAD, error);
  library->modules = arena_take(opening->arena, (table->row_count + 1) * sizeof *library->modules, error);
  char *line = next_line(table->lines);
  for (u32 count = 0; !error->kind && count < table->row_count && read_module(line, library->modules + count); count++)
    library->module_count = count + 1, line = next_line(line);
  u32 left = table->row_count - library->module_count;
  return !error->kind && read_rows(table, line, left, true, library->kernel_count, opening->arena, &library->kernels, error) &&
         check_threads(library, error) && take_texts(library, opening->arena, error);
}
