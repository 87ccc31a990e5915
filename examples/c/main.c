// Runs a bundle on rows of numbers: the model of examples/two_layer.py, or any other with one input of f32.
//
// In: a bundle. Out: the outputs of a batch of three rows, on stdout. Not done here: reading inputs.
#include <stdio.h>

#include "ingot.h"

static int fail(const struct ingot_error *error) {
  fprintf(stderr, "error: %s\n  where: %s\n  why: %s\n  do: %s\n", error->what, error->where, error->why, error->todo);
  return error->exit_code;
}

static void print(const struct ingot_tensor_info *info, const struct ingot_tensor *tensor) {
  const float *elements = tensor->data;
  printf("%s:", info->name);
  for (uint64_t index = 0; index < tensor->size_bytes / sizeof(float); index++) printf(" %.6g", elements[index]);
  printf("\n");
}

int main(int count, char **arguments) {
  struct ingot_options options = INGOT_OPTIONS;
  struct ingot_error error;
  ingot_bundle *bundle;
  ingot_session *session;
  options.threads = 2;
  if (count != 2) return fprintf(stderr, "usage: %s BUNDLE\n", arguments[0]), 1;
  if (ingot_load(arguments[1], &options, &bundle, &error)) return fail(&error);
  const struct ingot_bundle_info *info = ingot_describe(bundle);
  if (ingot_open(bundle, &options, &session, &error)) return fail(&error);

  // The first input, with a batch of 3 where its first dim is open; the session lends the memory.
  const struct ingot_tensor_info *x = info->inputs;
  int64_t shape[16];
  for (uint32_t axis = 0; axis < x->rank; axis++) shape[axis] = x->dims[axis] < 0 ? 3 : x->dims[axis];
  if (ingot_set_input(session, 0, NULL, shape, &error) || ingot_prepare(session, &error)) return fail(&error);
  const struct ingot_tensor *input = ingot_input(session, 0);
  float *elements = input->data;
  for (uint64_t index = 0; index < input->size_bytes / sizeof(float); index++) elements[index] = (float)(index % 7) / 7;

  if (ingot_run(session, 0, &error)) return fail(&error);
  for (uint32_t index = 0; index < info->output_count; index++) print(info->outputs + index, ingot_output(session, index));
  ingot_close(session);
  ingot_unload(bundle);
  return 0;
}
