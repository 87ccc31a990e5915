// The program of examples/c in C++17, where owners give everything back.
//
// In: a bundle. Out: the outputs of a batch of three rows, on stdout. Not done here: reading inputs.
#include <cstdio>

#include "ingot.hpp"

static int fail(const ingot::error &error) {
  std::fprintf(stderr, "error: %s\n  where: %s\n  why: %s\n  do: %s\n", error.what, error.where, error.why, error.todo);
  return error.exit_code;
}

int main(int count, char **arguments) {
  ingot::bundle bundle;
  ingot::session session;
  if (count != 2) return std::fprintf(stderr, "usage: %s BUNDLE\n", arguments[0]), 1;
  if (auto error = bundle.load(arguments[1])) return fail(error);
  if (auto error = session.open(bundle)) return fail(error);

  const ingot_tensor_info &x = bundle.info().inputs[0];
  std::int64_t shape[16];
  for (std::uint32_t axis = 0; axis < x.rank; axis++) shape[axis] = x.dims[axis] < 0 ? 3 : x.dims[axis];
  if (auto error = session.set_input(0, nullptr, shape)) return fail(error);
  if (auto error = session.prepare()) return fail(error);
  int number = 0;
  for (float &element : session.input(0).elements<float>()) element = static_cast<float>(number++ % 7) / 7;

  if (auto error = session.run()) return fail(error);
  for (std::uint32_t index = 0; index < bundle.info().output_count; index++) {
    std::printf("%s:", bundle.info().outputs[index].name);
    for (float element : session.output(index).elements<float>()) std::printf(" %.6g", element);
    std::printf("\n");
  }
  return 0;
}
