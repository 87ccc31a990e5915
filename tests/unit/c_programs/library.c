// One call of a library: a tensor from standard input, the first output to standard output.
//
// In: `net.h`. Out: elements, or the code of the call. Not done here: any other model.
#include <stdio.h>
#include "net.h"

static float x[net_input_x_0_BYTES / sizeof(float)], y[net_output_y_1_BYTES / sizeof(float)], shares[net_output_struct__BYTES / sizeof(float)];
static union {
  char bytes[net_workspace_POOL_BYTES + net_POOL_ALIGNMENT];
  double aligned;
} memory;

int main(void) {
  if (fread(x, 1, sizeof x, stdin) != sizeof x) return 100;
  char *start = memory.bytes + (net_POOL_ALIGNMENT - (uintptr_t)memory.bytes % net_POOL_ALIGNMENT) % net_POOL_ALIGNMENT;
  struct net_inputs inputs = {x};
  struct net_outputs outputs = {y, shares};
  struct net_workspace workspace = {start, NULL, 0};
  int code = net_run(&inputs, &outputs, &workspace);
  if (code != net_OK) return code;
  return fwrite(y, 1, sizeof y, stdout) != sizeof y;
}
