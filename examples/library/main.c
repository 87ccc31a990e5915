// Runs a model that is part of the program: no loader, no file, no memory but what is declared here.
//
// In: `two_layer.h`, which `ingot export --library` wrote. Out: the outputs of three rows, on stdout. Not done here: any other model.
#include <stdalign.h>
#include <stdio.h>

#include "two_layer.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static float x[two_layer_input_x_BYTES / sizeof(float)];
static float probabilities[two_layer_output_probabilities_BYTES / sizeof(float)];
static alignas(two_layer_POOL_ALIGNMENT) char memory[two_layer_workspace_POOL_BYTES];

int main(void) {
  char message[200] = "";
  struct two_layer_inputs inputs = {.x = x};
  struct two_layer_outputs outputs = {.probabilities = probabilities};
  struct two_layer_workspace workspace = {.workspace = memory, .message = message, .message_bytes = sizeof message};
  for (size_t index = 0; index < COUNT(x); index++) x[index] = (float)(index % 7) / 7;
  int code = two_layer_run(&inputs, &outputs, &workspace);
  if (code != two_layer_OK) return fprintf(stderr, "error %d: %s\n", code, message), code;
  printf("probabilities:");
  for (size_t index = 0; index < COUNT(probabilities); index++) printf(" %.6g", probabilities[index]);
  printf("\n");
  return 0;
}
