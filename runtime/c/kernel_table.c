// Library sections that are a table of kernels and their text. FORMAT.md, "Image".
//
// In: the section's bytes. Out: lines, rows, the text. Not done here: what a kind has in its head and behind the table (`opencl.c`,
// `cuda_library.c`).
#include "device.h"

#define WORD_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
enum { ROW_NUMBERS = 3, KERNEL_NAME_MAX = 128 };

// A library as C text: `lines` of the table, zero-terminated one after the other, the first of which is the head; the text behind it.
struct table {
  const char *what, *where;
  char *lines, *text;
  u32 row_count;
};

static bool bad_table(const struct table *table, const char *why, error *error) {
  return refuse(error, INGOT_FORMAT_ERROR, table->what, table->where, why, "get the file again");
}

static char *next_line(char *line) { return line + strlen(line) + 1; }

static bool bad_head(const struct table *table, const char *title, error *error) {
  return bad_table(table, TEXT("expected '%s' and a table, got %s", title, quoted(TEXT("%.*s", 60, table->lines))), error);
}

// Copies the section into the arena and cuts it into lines; a zero in it ends nothing that was written, and is refused with the row it is in.
static bool split_table(struct table *table, const struct opening *opening, const char *title, error *error) {
  char *copy = arena_take(opening->arena, opening->size + 2, error);
  if (!copy) return false;
  table->lines = copy, table->row_count = 0;
  for (u64 at = 0; at < opening->size; at++) {
    copy[at] = (char)opening->data[at];
    if (opening->data[at] >= 0x80) return bad_table(table, TEXT("byte %llu is no ASCII", (unsigned long long)at), error);
  }
  const char *end = find_text(copy, "\n\n");
  if (!end) return bad_head(table, title, error);
  table->text = copy + (end - copy) + 2;
  for (char *at = copy; at <= end; at++)
    if (*at == '\n') *at = 0, table->row_count += at < end;
  return true;
}

// Reads a space and a number of at most `digits` digits.
static bool row_number(const char **at, int digits, u32 *number) {
  if (*(*at)++ != ' ') return false;
  size_t count = span(*at, "0123456789");
  *number = (u32)read_digits(at);
  return 1 <= count && count <= (size_t)digits;
}

// Reads a kernel's line; where `has_threads`, with the threads of a block at its end.
static bool read_row(char *line, bool has_threads, struct kernel_row *row) {
  size_t size = span(line, WORD_LETTERS "0123456789");
  const char *at = line + size;
  u32 reports = 0, scratch = 0;
  bool good = size && size <= KERNEL_NAME_MAX && span(line, WORD_LETTERS) && row_number(&at, 6, &row->buffer_count) &&
              row_number(&at, 6, &row->scalar_count) && row_number(&at, 1, &reports) && row_number(&at, 1, &scratch) && reports < 2 && scratch < 2 &&
              (!has_threads || row_number(&at, 4, &row->block_threads)) && !*at;
  if (good) line[size] = 0, row->name = line;
  row->reports = reports, row->has_scratch = scratch;
  return good;
}

// Reads `count` kernels from `line` on, of which there are `lines`.
static bool read_rows(struct table *table, char *line, u32 lines, bool has_threads, u32 count, struct arena *arena, struct kernel_row **rows, error *error) {
  struct kernel_row *made = arena_take(arena, (lines + 1) * sizeof *made, error);
  const char **names = arena_take(arena, (lines + 1) * sizeof *names, error);
  u32 found = 0;
  if (error->kind) return false;
  for (u32 index = 0; index < lines; index++) {
    char *following = next_line(line);
    if (read_row(line, has_threads, made + found)) names[found] = made[found].name, found++;
    line = following;
  }
  if (found != lines || found != count) return bad_table(table, TEXT("expected %u kernels, got %u", count, found), error);
  sort_names(names, found);
  for (u32 index = 1; index < found; index++)
    if (!strcmp(names[index - 1], names[index])) return bad_table(table, "two kernels of one name", error);
  *rows = made;
  return true;
}
