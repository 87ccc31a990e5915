// The command `ingot-run`: runs a bundle once. An executable with a bundle in it is this command for that bundle.
//
// In: arguments, files of arrays. Out: files of arrays, or a line for each output; errors in four parts; an exit code. Not done here:
// loading and running (`ingot.c`), what is in the files (`arrays.c`, `npz_write.c`).
//
#include "ingot.c"
#include "files.c"
#include "inflate.c"
#include "arrays.c"
#include "npz_write.c"

#if defined(__x86_64__) && !defined(__GLIBC__)
// Those that the compiler brings for a small static program take a byte at a time.
void *memcpy(void *restrict to, const void *restrict from, size_t size) {
  void *at = to;
  __asm__ volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(size)::"memory");
  return to;
}

void *memset(void *to, int byte, size_t size) {
  void *at = to;
  __asm__ volatile("rep stosb" : "+D"(at), "+c"(size) : "a"(byte) : "memory");
  return to;
}
#endif

enum { PAIRS_MAX = TENSOR_COUNT_MAX };

struct command {
  const char *bundle;
  struct ingot_options options;
  const char **inputs, **outputs, **shapes, **keys, **devices;
  u32 input_count, output_count, shape_count, key_count, device_count;
  double timeout;
  bool describes, proves;
};

static const char usage[] =
    "usage: %s%s [options]\n"
    "  --inputs F.npz | NAME=F.npy | NAME=F.raw   arrays by input name (default: zeros)\n"
    "  --outputs F.npz | NAME=F.npy | NAME=F.raw  write the outputs there; a summary is printed otherwise\n"
    "  --shape NAME=4x16                          of zeros, or of raw elements\n"
    "  --threads N\n"
    "  --verify full|fast|code                    how weights are checked\n"
    "  --variant TARGET                           run this variant instead of the best\n"
    "  --digest D                                 refuse any bundle but the one with this root digest\n"
    "  --require-key KEY                          refuse a bundle that nobody of these signed: a PEM file, 64 hex digits\n"
    "  --policy F                                 refuse a bundle whose signatures this does not accept\n"
#ifndef INGOT_WITHOUT_DEVICES
    "  --device NAME=KIND[:ID]                    bind a device of the bundle to this one of the machine\n"
#endif
    "  --timeout SECONDS                          end the call, without results, after that time\n"
    "  --max-bytes BYTES                          most memory for workspace and outputs\n"
    "  --describe                                 say what the bundle takes and gives\n"
    "  --selftest                                 make the calls that the bundle holds; 4 if one gives something else\n";

// The first failure to write to stdout.
static int print_failure;

// Writes a line, or a part of one, to stdout (1) or stderr (2).
__attribute__((format(printf, 2, 3))) static void print(int fd, const char *form, ...) {
  static char line[4 * NAME_SIZE_BYTES_MAX];
  va_list arguments;
  va_start(arguments, form);
  write_form(line, sizeof line, form, arguments);
  va_end(arguments);
  for (size_t left = strlen(line), done = 0; left > done;) {
    ssize_t part = write(fd, line + done, left - done);
    if (part >= 0) done += (size_t)part;
    else if (errno != EINTR) {
      if (fd == STDOUT_FILENO && !print_failure) print_failure = errno;
      return;
    }
  }
}

static void print_part(const char *label, const char *text) {
  char shown[4 * sizeof((error *)0)->where], *end = shown;
  *end = 0;
  for (u64 at = 0, next = 0, size = strlen(text); at < size;) {
    i64 code = next_character((const u8 *)text, size, &next);
    const char *form = code >= 0 && !is_forbidden(code) ? "%c" : code == '\n' ? "\\n" : "\\x%02x";
    for (; at < next; at++) end += write_into(end, (size_t)(shown + sizeof shown - end), form, (u8)text[at]);
  }
  if (*shown) print(STDERR_FILENO, "%s%s\n", label, shown);
}

static int print_error(const error *error) {
  print_part("error: ", error->what);
  print_part("  where: ", error->where);
  print_part("  why: ", error->why);
  print_part("  do: ", error->todo);
  return error->exit_code;
}

static bool refuse_line(error *error, const char *what, const char *why, const char *todo) {
  return refuse(error, INGOT_INPUT_ERROR, what, "command line", why, todo);
}

// Reads seconds, with a fraction or without; 0 for anything else. (`strtod` would be a tenth of the whole program.)
static double seconds_of(const char *text) {
  double seconds = 0, scale = 1;
  if (*text >= '0' && *text <= '9') seconds = (double)read_digits(&text);
  if (*text == '.')
    for (text++; *text >= '0' && *text <= '9'; text++) scale /= 10, seconds += scale * (*text - '0');
  return *text ? 0 : seconds;
}

// Reads a number of threads, which is -1 where it is none that can be asked for.
static i32 threads_of(const char **text) {
  i64 count = read_digits(text);
  return 1 <= count && count <= INT32_MAX ? (i32)count : -1;
}

// Takes one option with its value.
static bool take_option(struct command *command, const char *name, const char *value, error *error) {
  static const char *const modes[] = {"full", "fast", "code"};
  const char *end = "", *given = value;
  if (!strcmp(name, "--inputs")) command->inputs[command->input_count++] = value;
  else if (!strcmp(name, "--outputs")) command->outputs[command->output_count++] = value;
  else if (!strcmp(name, "--shape")) command->shapes[command->shape_count++] = value;
  else if (!strcmp(name, "--require-key")) command->keys[command->key_count++] = value;
#ifndef INGOT_WITHOUT_DEVICES
  else if (!strcmp(name, "--device")) command->devices[command->device_count++] = value;
#endif
  else if (!strcmp(name, "--policy")) command->options.policy = value;
  else if (!strcmp(name, "--variant")) command->options.variant = value;
  else if (!strcmp(name, "--digest")) command->options.digest = value;
  else if (!strcmp(name, "--threads")) command->options.threads = threads_of(&value), end = value;
  else if (!strcmp(name, "--timeout")) command->timeout = seconds_of(value), end = command->timeout > 0 ? end : " ";
  else if (!strcmp(name, "--max-bytes")) command->options.max_bytes = (u64)read_digits(&value), end = command->options.max_bytes ? value : " ";
  else if (!strcmp(name, "--verify")) {
    for (command->options.verify = 0; command->options.verify < 3 && strcmp(value, modes[command->options.verify]);) command->options.verify++;
    if (command->options.verify == 3) end = " ";
  } else return refuse_line(error, TEXT("unrecognized arguments: %s", name), "", "--help lists the options");
  return !*end || refuse_line(error, TEXT("bad value of %s: %s", name, quoted(given)), "", "--help lists the options");
}

static bool take_arguments(struct command *command, int count, char **arguments, error *error) {
  for (int index = 1; index < count; index++) {
    const char *argument = arguments[index];
    if (!strcmp(argument, "--describe")) command->describes = true;
    else if (!strcmp(argument, "--selftest")) command->proves = true;
    else if (!strncmp(argument, "--", 2)) {
      if (index + 1 == count) return refuse_line(error, TEXT("argument %s: expected one argument", argument), "", "--help lists the options");
      if (!take_option(command, argument, arguments[++index], error)) return false;
    } else if (command->bundle) return refuse_line(error, TEXT("unrecognized arguments: %s", argument), "", "--help lists the options");
    else command->bundle = argument;
  }
  return true;
}

// The input or output of that name; `size` is the length of the name.
static i64 find_tensor(const struct ingot_tensor_info *infos, u32 count, const char *name, size_t size) {
  for (u32 index = 0; index < count; index++)
    if (strlen(infos[index].name) == size && !memcmp(infos[index].name, name, size)) return index;
  return -1;
}

static const char *names_text(const struct ingot_tensor_info *infos, u32 count) {
  char *text = next_text();
  for (u32 index = 0; index < count; index++) append(text, "%s%s", index ? ", " : "", infos[index].name);
  return *text ? text : "none";
}

static bool refuse_name(const char *what, const char *name, const struct ingot_tensor_info *infos, u32 count, error *error) {
  const char *why = TEXT("the model's %ss are %s", what, names_text(infos, count));
  return refuse(error, INGOT_INPUT_ERROR, TEXT("no %s %s", what, quoted(name)), TEXT("%s %s", what, quoted(name)), why, "leave it out");
}

// Reads NAME=4x16; "scalar" has no sizes.
static bool take_shape(const struct ingot_bundle_info *info, const char *pair, struct array *arrays, error *error) {
  const char *sign = find_char(pair, '=');
  for (const char *next = sign; next; next = find_char(next + 1, '=')) sign = next;
  const char *at = sign ? sign + 1 : "";
  i64 index = sign ? find_tensor(info->inputs, info->input_count, pair, (size_t)(sign - pair)) : -1;
  if (sign && index < 0) return refuse_name("input", TEXT("%.*s", (int)(sign - pair), pair), info->inputs, info->input_count, error);
  struct array shape = {.rank = 0};
  while (*at >= '0' && *at <= '9' && shape.rank < RANK_MAX) {
    shape.shape[shape.rank++] = read_digits(&at);
    at += *at == 'x';
  }
  bool good = sign && (strcmp(sign + 1, "scalar") ? shape.rank && !*at && at[-1] != 'x' : true);
  if (!good) return refuse_line(error, TEXT("bad --shape %s", quoted(pair)), "expected NAME=SIZES", "e.g. --shape x=1x3x224x224");
  memcpy(arrays[index].shape, shape.shape, sizeof shape.shape);
  arrays[index].rank = shape.rank, arrays[index].name[0] = 1;
  return true;
}

// Sets an input to an array of a file, or to zeros where it has no data.
static bool give_input(ingot_session *session, const struct ingot_bundle_info *info, u32 index, const struct array *array, error *error) {
  const struct ingot_tensor_info *tensor = info->inputs + index;
  const char *wanted = numpy_names[tensor->dtype_code];
  const char *why = TEXT("expected %s, got %s%s", declared(tensor, &session->bundle->plan), array->dtype ? array->dtype : wanted, LIST(array->shape, array->rank));
  const char *where = TEXT("input %s", quoted(tensor->name));
  if (array->dtype && strcmp(array->dtype, wanted))
    return refuse(error, INGOT_INPUT_ERROR, TEXT("wrong dtype of input %s", quoted(tensor->name)), where, why, TEXT("convert it: x.astype('%s')", wanted));
  if (array->rank != tensor->rank)
    return refuse(error, INGOT_INPUT_ERROR, TEXT("wrong rank of input %s", quoted(tensor->name)), where, why, TEXT("give %u dimensions", tensor->rank));
  return !ingot_set_input(session, index, NULL, array->shape, error);
}

// The shape of an input that nobody gave: sizes of the bundle, and of symbols those of other inputs.
static bool default_shape(const struct ingot_bundle_info *info, u32 index, struct array *arrays, error *error) {
  const struct ingot_tensor_info *tensor = info->inputs + index;
  arrays[index].rank = tensor->rank;
  for (u32 axis = 0; axis < tensor->rank; axis++) {
    i64 size = tensor->dims[axis];
    for (u32 other = 0; other < info->input_count && size < 0; other++)
      for (u32 place = 0; arrays[other].name[0] && place < arrays[other].rank && place < info->inputs[other].rank && size < 0; place++)
        if (info->inputs[other].dims[place] == tensor->dims[axis]) size = arrays[other].shape[place];
    if (size < 0) {
      const char *todo = TEXT("give --shape %s=SIZES, or --inputs F.npz", tensor->name);
      return refuse(error, INGOT_INPUT_ERROR, "no inputs", TEXT("input %s", quoted(tensor->name)), "only you know its sizes", todo);
    }
    arrays[index].shape[axis] = size;
  }
  return true;
}

// All files of arrays, which stay until the inputs are filled. `arrays`: one per input; a name of "\1" says that it was given.
struct given {
  struct file *files;
  struct array *arrays;
  u32 file_count;
  bool has_files;
};

static bool take_array(const struct ingot_bundle_info *info, struct given *given, const char *name, const struct array *array, error *error) {
  i64 index = find_tensor(info->inputs, info->input_count, name, strlen(name));
  if (index < 0) return refuse_name("input", name, info->inputs, info->input_count, error);
  struct array *place = given->arrays + index, shape = *place;
  *place = *array;
  if (!array->dtype) place->rank = shape.rank, memcpy(place->shape, shape.shape, sizeof shape.shape);
  if (!array->dtype && !shape.name[0] && !default_shape(info, (u32)index, given->arrays, error)) return false;
  place->name[0] = 1, place->name[1] = 0;
  return true;
}

// Reads one value of --inputs: F.npz, NAME=F.npy, or NAME=F with bare elements.
static bool read_inputs(const struct ingot_bundle_info *info, struct given *given, const char *value, error *error) {
  const char *sign = find_char(value, '='), *path = sign ? sign + 1 : value;
  size_t size = strlen(path);
  u32 count = 1;
  struct file *file = given->files + given->file_count++;
  given->has_files = true;
  const char *problem = file_read(file, path, INT64_MAX);
  if (*problem) return refuse_arrays(error, path, problem);
  if (!sign) {
    struct array *arrays = npz_read(file, path, &count, error);
    for (u32 index = 0; arrays && index < count && !error->kind; index++) take_array(info, given, arrays[index].name, arrays + index, error);
    memory_free(arrays);
    return !error->kind;
  }
  struct array array = {.data = file->data, .size = file->size};
  const char *why = size > 4 && !strcmp(path + size - 4, ".npy") ? npy_read(file->data, file->size, &array) : "";
  if (*why) return refuse_arrays(error, path, why);
  return take_array(info, given, TEXT("%.*s", (int)(sign - value), value), &array, error);
}

// Fills what the session lent; the sizes are those of the shapes.
static bool fill_inputs(ingot_session *session, const struct ingot_bundle_info *info, const struct given *given, error *error) {
  if (ingot_prepare(session, error)) return false;
  for (u32 index = 0; index < info->input_count; index++) {
    const struct array *array = given->arrays + index;
    const struct ingot_tensor *tensor = ingot_input(session, index);
    if (!array->data) continue;
    if (array->size != tensor->size_bytes) {
      const char *why = TEXT("expected %llu bytes, got %llu", (unsigned long long)tensor->size_bytes, (unsigned long long)array->size);
      return refuse(error, INGOT_INPUT_ERROR, TEXT("wrong size of input %s", quoted(info->inputs[index].name)), TEXT("input %s", quoted(info->inputs[index].name)), why, "give --shape NAME=SIZES");
    }
    memcpy(tensor->data, array->data, array->size);
  }
  return true;
}

static bool give_inputs(ingot_session *session, const struct ingot_bundle_info *info, const struct command *command, struct given *given, error *error) {
  for (u32 index = 0; index < command->shape_count; index++)
    if (!take_shape(info, command->shapes[index], given->arrays, error)) return false;
  for (u32 index = 0; index < command->input_count; index++)
    if (!read_inputs(info, given, command->inputs[index], error)) return false;
  for (u32 index = 0; index < info->input_count; index++) {
    bool is_given = given->arrays[index].name[0];
    if (!is_given && (info->inputs[index].has_default || given->has_files)) continue;
    if (!is_given && !default_shape(info, index, given->arrays, error)) return false;
    if (!give_input(session, info, index, given->arrays + index, error)) return false;
  }
  if (given->has_files && !require_given(session, true, error)) return false;
  return fill_inputs(session, info, given, error);
}

static void print_output(const struct ingot_tensor_info *info, const struct ingot_tensor *tensor) {
  u64 count = tensor->size_bytes / info->element_bytes;
  print(STDOUT_FILENO, "%s: %s%s = [", info->name, numpy_names[info->dtype_code], LIST(tensor->shape, tensor->rank));
  for (u64 index = 0; index < count && index < 4; index++)
    print(STDOUT_FILENO, "%s%.6g", index ? ", " : "", element(info, tensor->data, index));
  print(STDOUT_FILENO, "%s]\n", count > 4 ? ", ..." : "");
}

static bool write_npz(ingot_session *session, const struct ingot_bundle_info *info, const char *path, error *error) {
  struct output_file output;
  struct zip_writer zip = {.output = &output};
  if (!output_begin(&output, path, error)) return false;
  for (u32 index = 0; index < info->output_count && !error->kind; index++)
    zip_add(&zip, info->outputs[index].name, numpy_names[info->outputs[index].dtype_code], ingot_output(session, index), error);
  if (!error->kind) zip_end(&zip);
  memory_free(zip.directory.data);
  return output_end(&output, error);
}

// Writes to one value of --outputs: F.npz with all, NAME=F.npy, or NAME=F with bare elements.
static bool write_outputs(ingot_session *session, const struct ingot_bundle_info *info, const char *value, error *error) {
  const char *sign = find_char(value, '=');
  struct output_file output;
  u8 head[512];
  if (!sign) return write_npz(session, info, value, error);
  i64 index = find_tensor(info->outputs, info->output_count, value, (size_t)(sign - value));
  if (index < 0) return refuse_name("output", TEXT("%.*s", (int)(sign - value), value), info->outputs, info->output_count, error);
  const struct ingot_tensor *tensor = ingot_output(session, (u32)index);
  size_t size = strlen(sign + 1);
  bool is_npy = size > 4 && !strcmp(sign + 1 + size - 4, ".npy");
  if (!output_begin(&output, sign + 1, error)) return false;
  if (is_npy) output_write(&output, head, npy_head(head, numpy_names[tensor->dtype_code], tensor));
  output_write(&output, tensor->data, tensor->size_bytes);
  return output_end(&output, error);
}

static void print_tensors(const char *what, const struct plan *plan, const struct ingot_tensor_info *infos, u32 count) {
  for (u32 index = 0; index < count; index++)
    print(STDOUT_FILENO, "%s %s: %s%s\n", what, infos[index].name, declared(infos + index, plan), infos[index].has_default ? ", has a default" : "");
}

static bool run_session(ingot_session *session, const struct ingot_bundle_info *info, const struct command *command, error *error) {
  struct given given = {memory_take((command->input_count + 1) * sizeof *given.files), memory_take((info->input_count + 1) * sizeof *given.arrays), 0, false};
  if (!given.files || !given.arrays) no_memory(error, "inputs", "arrays");
  bool good = !error->kind && give_inputs(session, info, command, &given, error) && !ingot_run(session, command->timeout, error);
  for (u32 index = 0; good && index < command->output_count; index++) good = write_outputs(session, info, command->outputs[index], error);
  for (u32 index = 0; good && !command->output_count && index < info->output_count; index++)
    print_output(info->outputs + index, ingot_output(session, index));
  for (u32 index = 0; given.files && index < given.file_count; index++) arena_free(&given.files[index].arena), memory_free(given.files[index].data);
  memory_free(given.files), memory_free(given.arrays);
  return good;
}

// Prints one line; 4 where an output is wrong.
static int prove(ingot_bundle *bundle, const struct command *command, error *error) {
  struct ingot_proof proof;
  if (ingot_selftest(bundle, &command->options, &proof, error)) return 0;
  print(STDOUT_FILENO, "%s: %s, %u of %s, error %.3g%s%s\n", command->bundle, proof.failure_count ? "failed" : "passed", proof.call_count,
        ingot_describe(bundle)->target, proof.error, proof.failure_count ? "; " : "", proof.failures);
  return proof.failure_count ? exit_codes[INGOT_DIGEST_ERROR] : 0;
}

static bool run_command(const struct command *command, int *code, error *error) {
  ingot_bundle *bundle;
  ingot_session *session = NULL;
  if (ingot_load(command->bundle, &command->options, &bundle, error)) return false;
  const struct ingot_bundle_info *info = ingot_describe(bundle);
  if (command->describes) {
    print(STDOUT_FILENO, "model %s, target %s, digest %s\n", info->model, info->target, info->root_digest);
    print_tensors("input", &bundle->plan, info->inputs, info->input_count);
    print_tensors("output", &bundle->plan, info->outputs, info->output_count);
    for (u32 index = 0; index < info->device_count; index++)
      if (bundle->devices[index]) print(STDOUT_FILENO, "device %s: %s\n", info->devices[index].name, info->devices[index].bound);
  } else if (command->proves) {
    *code = prove(bundle, command, error);
  } else if (!ingot_open(bundle, &command->options, &session, error)) {
    run_session(session, info, command, error);
  }
  ingot_close(session);
  ingot_unload(bundle);
  return !error->kind;
}

// The path of this program if it holds a bundle: the system says it, in a way that needs no /proc, too.
static const char *own_path(char *path, size_t size) {
  struct source source = {.fd = -1};
  error error = {0};
  ssize_t length = readlink("/proc/self/exe", path, size - 1);
  if (length < 0) write_into(path, size, "%s", (const char *)getauxval(AT_EXECFN));
  else path[length] = 0;
  bool is_open = source_open(&source, path, &error);
  if (source.fd >= 0) close(source.fd);
  return is_open && source.start ? path : NULL;
}

int main(int count, char **arguments) {
  char path[4096];
  int code = 0;
  error error = {0};
  const char *own = own_path(path, sizeof path);
  struct command command = {.bundle = own, .options = INGOT_OPTIONS};
  const char **pairs = memory_take((5 * (u64)count + 5) * sizeof *pairs);
  if (!pairs) return 2;
  command.inputs = pairs, command.outputs = pairs + count, command.shapes = pairs + 2 * count;
  command.options.keys = command.keys = pairs + 3 * count;
  command.options.devices = command.devices = pairs + 4 * count + 1;
  for (int index = 1; index < count; index++)
    if (!strcmp(arguments[index], "--help") || !strcmp(arguments[index], "-h")) return print(STDOUT_FILENO, usage, arguments[0], own ? "" : " BUNDLE"), 0;
  bool good = take_arguments(&command, count, arguments, &error);
  if (good && !command.bundle) good = refuse_line(&error, "the following arguments are required: bundle", "", "--help lists the options");
  good = good && run_command(&command, &code, &error);
  memory_free(pairs);
  if (good && print_failure) good = refuse_line(&error, "cannot write to stdout", failure_words(print_failure), "");
  return good ? code : print_error(&error);
}
