// A model on a Cortex-M4, without an operating system and without a libc: one picture in, scores out.
// The picture is made here; a real program takes it from its camera.
#include "board.h"
#include "person.h"

static float image[person_input_image_BYTES / 4];
static float scores[person_output_scores_BYTES / 4];

static void print_bits(float number) {
  char text[] = "        \n";
  union {
    float number;
    uint32_t bits;
  } both;
  both.number = number;
  for (int at = 0; at < 8; at++) text[at] = "0123456789abcdef"[(both.bits >> (28 - 4 * at)) & 15];
  print(text);
}

int main(void) {
  const struct person_inputs inputs = {image};
  const struct person_outputs outputs = {scores};
  for (uint32_t at = 0; at < sizeof image / sizeof *image; at++)
    image[at] = (float)((at * 37u) % 256u) / 256.0f - 0.5f;
  const int code = person_run(&inputs, &outputs);
  if (code != 0) {
    print(person_message(code));
    return code;
  }
  for (uint32_t at = 0; at < sizeof scores / sizeof *scores; at++) print_bits(scores[at]);
  return 0;
}
