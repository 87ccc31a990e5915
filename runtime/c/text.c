// Texts for errors: four parts, cut off at whole characters; names as they are shown.
//
// In: formats. Out: parts of `struct ingot_error`. Not done here: printing.
#include "internal.h"

#define DAMAGED "copy the bundle again from where it was made; if that does not help, compile it again"
#define UPDATE "update the loader, or compile the bundle with the ingot of this loader's version"
#define FREE_MEMORY "free memory, or lift the limit of this process (ulimit -v, the container's memory)"

// Cuts `text`, which may end inside a character, at its last whole one.
static void cut(char *text, size_t size) {
  size_t end = strnlen(text, size);
  if (end < size - 1) return;
  size_t start = end;
  while (start > 0 && ((u8)text[start - 1] & 0xc0) == 0x80) start--;
  if (start > 0 && (u8)text[start - 1] >= 0xc0) text[start - 1] = 0;
}

// Returns an empty text.
static char *next_text(void) {
  // Aligned as other data are: were it more, a page of zeros could come between both in the file of a program.
  static _Thread_local __attribute__((aligned(8))) char texts[TEXT_COUNT][TEXT_BYTES];
  static _Thread_local u32 next;
  char *text = texts[next++ % TEXT_COUNT];
  *text = 0;
  return text;
}

__attribute__((format(printf, 1, 2))) static const char *format(const char *form, ...) {
  char *text = next_text();
  va_list arguments;
  va_start(arguments, form);
  write_form(text, TEXT_BYTES, form, arguments);
  va_end(arguments);
  cut(text, TEXT_BYTES);
  return text;
}

static const i32 exit_codes[] = {EXIT_CODES};

static void put(char *part, size_t size, const char *text) {
  write_into(part, size, "%s", text);
  cut(part, size);
}

// Notes an error, unless there is one; returns false.
static bool refuse(error *error, i32 kind, const char *what, const char *where, const char *why, const char *todo) {
  if (error->kind) return false;
  error->kind = kind;
  error->exit_code = exit_codes[kind];
  put(error->what, sizeof error->what, what);
  put(error->where, sizeof error->where, where);
  put(error->why, sizeof error->why, why);
  put(error->todo, sizeof error->todo, todo);
  return false;
}

static bool damaged(error *error, const char *what, const char *where, const char *why) {
  return refuse(error, INGOT_FORMAT_ERROR, what, where, why, DAMAGED);
}

static bool unknown(error *error, const char *what, const char *where, const char *why) {
  return refuse(error, INGOT_VERSION_ERROR, TEXT("%s is not known to this loader", what), where, why, UPDATE);
}

static bool no_memory(error *error, const char *where, const char *why) {
  return refuse(error, INGOT_RESOURCE_ERROR, "not enough memory", where, why, FREE_MEMORY);
}

static void clear(error *error) { error->kind = INGOT_OK, error->exit_code = 0; }

// Appends to a text of TEXT_BYTES.
__attribute__((format(printf, 2, 3))) static void append(char *text, const char *form, ...) {
  size_t used = strlen(text);
  va_list arguments;
  va_start(arguments, form);
  write_form(text + used, TEXT_BYTES - used, form, arguments);
  va_end(arguments);
  cut(text, TEXT_BYTES);
}

// A name as Python's `repr` shows it, as far as ASCII goes.
static const char *quoted(const char *name) {
  char *text = next_text();
  char mark = find_char(name, '\'') && !find_char(name, '"') ? '"' : '\'';
  size_t at = 0;
  text[at++] = mark;
  for (; *name && at < TEXT_BYTES - 8; name++) {
    const char *found = find_char(*name < ' ' ? "\tt\nn\rr" : "", *name);
    if (!found && ((u8)*name < ' ' || *name == 0x7f)) {
      at += write_into(text + at, 8, "\\x%02x", (u8)*name);
      continue;
    }
    if (found || *name == mark || *name == '\\') text[at++] = '\\';
    text[at++] = found ? found[1] : *name;
  }
  text[at++] = mark;
  text[at] = 0;
  return text;
}

static const char *hex(const u8 *data, size_t size) {
  char *text = next_text();
  for (size_t at = 0; at < size; at++) {
    text[2 * at] = "0123456789abcdef"[data[at] >> 4];
    text[2 * at + 1] = "0123456789abcdef"[data[at] & 15];
  }
  text[2 * size] = 0;
  return text;
}

// Sizes as Python shows a list, or a tuple with `open` of "(".
#define LIST(sizes, count) listed(sizes, count, '[')
#define TUPLE(sizes, count) listed(sizes, count, '(')
static const char *listed(const i64 *sizes, u32 count, char open) {
  char *text = next_text();
  append(text, "%c", open);
  for (u32 index = 0; index < count; index++) append(text, "%s%lld", index ? ", " : "", (long long)sizes[index]);
  append(text, "%s", open == '[' ? "]" : count == 1 ? ",)" : ")");
  return text;
}

// Returns zeroed memory that lives as long as the arena, or null after noting why.
static void *arena_take(struct arena *arena, u64 size, error *error) {
  enum { BLOCK = 1 << 16 };
  size = size > SIZE_BYTES_MAX ? UINT64_MAX - 15 : (size + 15) & ~(u64)15;
  struct arena_block *block = arena->last;
  if (error->kind) return NULL;
  if (!block || block->size - block->used < size) {
    u64 room = size > BLOCK ? size : BLOCK;
    block = size > SIZE_BYTES_MAX ? NULL : memory_take(sizeof *block + room);
    if (!block) return no_memory(error, "load", TEXT("%llu bytes", (unsigned long long)size)), NULL;
    block->size = room, block->before = arena->last, arena->last = block;
  }
  block->used += size;
  return block->bytes + block->used - size;
}

static void arena_free(struct arena *arena) {
  while (arena->last) {
    struct arena_block *before = arena->last->before;
    memory_free(arena->last);
    arena->last = before;
  }
}

// The first `size` bytes of a text, and another behind them, of any length.
static const char *arena_join(struct arena *arena, const char *text, size_t size, const char *more, error *error) {
  size_t rest = strlen(more) + 1;
  char *copy = arena_take(arena, size + rest, error);
  if (!copy) return "";
  memcpy(copy, text, size), memcpy(copy + size, more, rest);
  return copy;
}

static const char *arena_text(struct arena *arena, const char *text, error *error) { return arena_join(arena, text, 0, text, error); }

// The path of a file in the folder of another.
__attribute__((unused)) static const char *path_beside(const char *path, const char *name, struct arena *arena, error *error) {
  size_t size = strlen(path);
  while (size && path[size - 1] != '/') size--;
  while (size > 1 && path[size - 2] == '/') size--;
  return arena_join(arena, path, size, name, error);
}
