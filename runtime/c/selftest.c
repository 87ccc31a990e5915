// The proof on the device: the calls that a bundle holds give what they must. FORMAT.md, "Selftest".
//
// In: a bundle. Out: `struct ingot_proof`. Not done here: printing it (`run.c`).
#include "session.h"

#define INFINITE __builtin_inf()
enum { LIMITS_BYTES = 64, FAILURES_TOLD = 3 };

// A section while it is read; its tensors live in `arena`.
struct case_reader {
  struct bytes data;
  u64 at;
  const char *where;
  struct arena arena;
};

// Reads a tensor, which is as a default with zeros behind it.
static bool read_tensor_value(struct case_reader *reader, const struct ingot_tensor_info *info, struct default_value *value, error *error) {
  u64 room = reader->data.size - reader->at, words = 8 * (1 + (u64)info->rank), size = info->element_bytes;
  const u8 *at = reader->data.data + reader->at;
  if (!REQUIRE(error, words <= room, "the section ends too early", reader->where, "")) return false;
  for (u32 axis = 0; axis < info->rank; axis++) {
    i64 dim = (i64)word_at(at, 8 * (1 + (size_t)axis), 8);
    if (!REQUIRE(error, 0 <= dim && (u64)dim <= reader->data.size, "a tensor larger than the section", reader->where, TEXT("%lld", NUMBER(dim)))) return false;
    size = dim && size > reader->data.size / (u64)dim ? reader->data.size + 1 : size * (u64)dim;
  }
  u64 end = rounded(words, ALIGNMENT_SMALL_BYTES) + size, after = rounded(end, ALIGNMENT_SMALL_BYTES);
  struct bytes tensor = {(u8 *)(uintptr_t)at, end};
  if (!REQUIRE(error, after <= room, "the section ends too early", reader->where, TEXT("%lld bytes", NUMBER(reader->data.size))) ||
      !REQUIRE(error, is_zero(at + end, after - end), "bytes after a tensor are not zero", reader->where, ""))
    return false;
  reader->at += after;
  return decode_default(&reader->arena, &tensor, info, reader->where, value, error);
}

static double half_value(u16 bits) {
  u32 sign = (u32)(bits >> 15) << 31, exponent = bits >> 10 & 31, fraction = bits & 1023, wide;
  float value;
  if (exponent == 0) return (sign ? -1.0 : 1.0) * fraction / 16777216.0;
  wide = sign | (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13;
  memcpy(&value, &wide, 4);
  return value;
}

// The element as a number: of types of less than eight bits, the one that their bits are.
static double element(const struct ingot_tensor_info *info, const void *data, u64 index) {
  u32 size = info->element_bytes;
  u64 bits = word_at((const u8 *)data + index * size, 0, size);
  u32 half = (u32)bits << 16;
  float single;
  double wide;
  if (!strcmp(info->dtype, "f16")) return half_value((u16)bits);
  memcpy(&single, strcmp(info->dtype, "bf16") ? (const void *)&bits : &half, 4);
  memcpy(&wide, &bits, 8);
  if (!strcmp(info->dtype, "f32") || !strcmp(info->dtype, "bf16")) return single;
  if (!strcmp(info->dtype, "f64")) return wide;
  if (*numpy_names[info->dtype_code] != 'i') return (double)bits;
  return (double)((i64)(bits << (64 - 8 * size)) >> (64 - 8 * size));
}

static double magnitude(double value) { return value < 0 ? -value : value; }

// Returns the largest error by the largest finite magnitude expected, and whether few enough are beyond the tolerance.
static double compare_output(const struct ingot_tensor_info *info, const struct ingot_tensor *got, const void *expected, const double limits[static 2], bool *good) {
  u64 count = got->size_bytes / info->element_bytes, apart = 0;
  double scale = 0, worst = 0;
  for (u64 index = 0; index < count; index++) {
    double size = magnitude(element(info, expected, index));
    if (size > scale && size < INFINITE) scale = size;
  }
  if (scale == 0) scale = 1;
  for (u64 index = 0; index < count; index++) {
    double left = element(info, got->data, index), right = element(info, expected, index), error = magnitude(left - right);
    if (left == right || (left != left && right != right)) error = 0;
    if (error != error) error = INFINITE;
    if (error > limits[0] * scale) apart++;
    if (error > worst) worst = error;
  }
  *good = (double)apart <= limits[1] * (double)count;
  return worst / scale;
}

// What one section holds: values of all inputs and outputs, and for each output a tolerance and a share.
struct test_case {
  struct default_value *inputs, *outputs;
  double (*limits)[2];
};

static bool read_case(struct case_reader *reader, const struct plan *plan, struct test_case *test, error *error) {
  test->inputs = arena_take(&reader->arena, plan->input_count * sizeof *test->inputs, error);
  test->outputs = arena_take(&reader->arena, plan->output_count * sizeof *test->outputs, error);
  test->limits = arena_take(&reader->arena, plan->output_count * sizeof *test->limits, error);
  for (u32 index = 0; index < plan->input_count; index++)
    if (error->kind || !read_tensor_value(reader, plan->inputs + index, test->inputs + index, error)) return false;
  for (u32 index = 0; index < plan->output_count; index++) {
    double *limits = test->limits[index];
    if (!REQUIRE(error, reader->data.size - reader->at >= LIMITS_BYTES, "the section ends too early", reader->where, "")) return false;
    memcpy(limits, reader->data.data + reader->at, sizeof *test->limits);
    bool good = 0 <= limits[0] && limits[0] < 1e300 && 0 <= limits[1] && limits[1] <= 1;
    if (!REQUIRE(error, good, "bad limits of an output", reader->where, TEXT("%.6g, %.6g", limits[0], limits[1]))) return false;
    reader->at += LIMITS_BYTES;
    if (!read_tensor_value(reader, plan->outputs + index, test->outputs + index, error)) return false;
  }
  u64 left = reader->data.size - reader->at;
  return REQUIRE(error, left == 0, "bytes after the last output", reader->where, TEXT("%lld bytes", NUMBER(left)));
}

static void note_failure(struct ingot_proof *proof, const char *failure) {
  size_t used = strlen(proof->failures);
  if (proof->failure_count++ < FAILURES_TOLD) write_into(proof->failures + used, sizeof proof->failures - used, "%s%s", used ? "; " : "", failure);
  cut(proof->failures, sizeof proof->failures);
}

static void prove_output(const ingot_session *session, u32 index, const struct test_case *test, struct ingot_proof *proof) {
  const struct ingot_tensor_info *info = session->bundle->plan.outputs + index;
  const struct ingot_tensor *got = ingot_output(session, index);
  const struct default_value *expected = test->outputs + index;
  const char *where = TEXT("call %u, output %s", proof->call_count - 1, quoted(info->name));
  bool good = !info->rank || !memcmp(got->shape, expected->shape, info->rank * sizeof *got->shape);
  if (!good) {
    note_failure(proof, TEXT("%s: shape %s, expected %s", where, TUPLE(got->shape, info->rank), TUPLE(expected->shape, info->rank)));
    return;
  }
  double error = compare_output(info, got, expected->data, test->limits[index], &good);
  if (error > proof->error) proof->error = error;
  if (!good) note_failure(proof, TEXT("%s: error %.3g, allowed %.3g", where, error, test->limits[index][0]));
}

// Makes the call of one section.
static bool prove_case(ingot_session *session, u32 id, struct ingot_proof *proof, error *error) {
  const struct source *source = &session->bundle->source;
  const struct plan *plan = &session->bundle->plan;
  struct case_reader reader = {.data = source_section(source, SECTION_SELFTEST, id, error), .where = SECTION_NAME(SECTION_SELFTEST, id)};
  struct test_case test;
  bool good = reader.data.data && read_case(&reader, plan, &test, error);
  for (u32 index = 0; good && index < plan->input_count; index++)
    good = !ingot_set_input(session, index, test.inputs[index].data, test.inputs[index].shape, error);
  good = good && !ingot_run(session, 0, error);
  proof->call_count += good;
  for (u32 index = 0; good && index < plan->output_count; index++) prove_output(session, index, &test, proof);
  arena_free(&reader.arena), memory_free(reader.data.data);
  return good;
}

int ingot_selftest(ingot_bundle *bundle, const struct ingot_options *options, struct ingot_proof *proof, struct ingot_error *error) {
  struct ingot_options plain = INGOT_OPTIONS;
  struct ingot_error own;
  ingot_session *session;
  if (!error) error = &own;
  memset(proof, 0, sizeof *proof);
  if (options) plain = *options;
  plain.keeps_states = 0, plain.like = NULL;
  if (ingot_open(bundle, &plain, &session, error)) return error->kind;
  const struct source *source = &bundle->source;
  for (u32 index = 0; index < source->section_count && !error->kind; index++)
    if (source->sections[index].kind == SECTION_SELFTEST) prove_case(session, source->sections[index].id, proof, error);
  if (!error->kind && !proof->call_count)
    refuse(error, INGOT_INPUT_ERROR, "the bundle holds no selftest", source->name, "no such section", "`ingot compile MODEL --selftest N` keeps some in it");
  ingot_close(session);
  return error->kind;
}
