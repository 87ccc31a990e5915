// Continues a prompt with a decoder, token by token as they come: the most probable ones. No Python, no tokenizer.
//
// In: a bundle, numbers of tokens, how many to make: generate dist/tiny.ingot 5,6,7 8. Out: the numbers that follow, on stdout. Not done
// here: text, chance (`generate.py`).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ingot.h"

static int fail(const struct ingot_error *error) {
  fprintf(stderr, "error: %s\n  where: %s\n  why: %s\n  do: %s\n", error->what, error->where, error->why, error->todo);
  return error->exit_code;
}

// Reads numbers with commas between; returns how many there are.
static int64_t read_numbers(const char *text, int64_t *numbers, int64_t most) {
  int64_t count = 0;
  for (char *end; count < most; count++, text = end + (*end == ',')) {
    numbers[count] = strtoll(text, &end, 10);
    if (end == text) break;
  }
  return count;
}

static uint32_t find(const struct ingot_tensor_info *infos, uint32_t count, const char *name) {
  uint32_t index = 0;
  while (index < count && strcmp(infos[index].name, name)) index++;
  return index;
}

// Says how long an input of i64[1, length] is, and where it lies; with null, the session lends memory. A model need not have it.
static int give(ingot_session *session, const struct ingot_bundle_info *info, const char *name, const int64_t *data, int64_t length,
                struct ingot_error *error) {
  const int64_t shape[] = {1, length};
  uint32_t index = find(info->inputs, info->input_count, name);
  return index < info->input_count ? ingot_set_input(session, index, data, shape, error) : INGOT_OK;
}

// Fills what the session has lent: positions from `start` on, and a mask of ones.
static void fill(ingot_session *session, const struct ingot_bundle_info *info, int64_t start) {
  const struct ingot_tensor *mask = ingot_input(session, find(info->inputs, info->input_count, "attention_mask"));
  const struct ingot_tensor *positions = ingot_input(session, find(info->inputs, info->input_count, "position_ids"));
  for (int64_t at = 0; mask && at < mask->shape[1]; at++) ((int64_t *)mask->data)[at] = 1;
  for (int64_t at = 0; positions && at < positions->shape[1]; at++) ((int64_t *)positions->data)[at] = start + at;
}

// The most probable token behind the last one.
static int64_t chosen(const struct ingot_tensor *logits) {
  const int64_t width = logits->shape[2];
  const float *last = (const float *)logits->data + (logits->shape[1] - 1) * width;
  int64_t best = 0;
  for (int64_t token = 1; token < width; token++)
    if (last[token] > last[best]) best = token;
  return best;
}

// Makes the call of some tokens behind those that the session keeps; returns a kind of error.
static int step(ingot_session *session, const struct ingot_bundle_info *info, const int64_t *tokens, int64_t count, int64_t kept,
                struct ingot_error *error) {
  if (give(session, info, "input_ids", tokens, count, error) || give(session, info, "attention_mask", NULL, kept + count, error) ||
      give(session, info, "position_ids", NULL, count, error) || ingot_prepare(session, error))
    return error->kind;
  fill(session, info, kept);
  return ingot_run(session, 0, error);
}

int main(int argument_count, char **arguments) {
  struct ingot_options options = INGOT_OPTIONS;
  struct ingot_error error;
  ingot_bundle *bundle;
  ingot_session *session;
  int64_t prompt[4096], kept = 0, token = 0;
  int64_t length = argument_count == 4 ? read_numbers(arguments[2], prompt, 4096) : 0;
  if (!length) return fprintf(stderr, "usage: %s BUNDLE 1,2,3 COUNT\n", arguments[0]), 1;
  options.keeps_states = 1;
  if (ingot_load(arguments[1], &options, &bundle, &error)) return fail(&error);
  const struct ingot_bundle_info *info = ingot_describe(bundle);
  if (ingot_open(bundle, &options, &session, &error)) return fail(&error);
  uint32_t logits = find(info->outputs, info->output_count, "logits");
  if (logits == info->output_count) return fprintf(stderr, "error: the model has no output logits\n"), 1;
  for (int left = atoi(arguments[3]); left > 0; left--) {
    if (step(session, info, kept ? &token : prompt, kept ? 1 : length, kept, &error)) return fail(&error);
    kept += kept ? 1 : length;
    token = chosen(ingot_output(session, logits));
    printf("%lld ", (long long)token);
    fflush(stdout);
  }
  printf("\n");
  ingot_close(session);
  ingot_unload(bundle);
  return 0;
}
