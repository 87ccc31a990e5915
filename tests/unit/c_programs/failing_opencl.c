// A driver of OpenCL that passes each call on to another one, and fails when it is told to.
//
// In: the calls that `runtime/c/opencl.c` makes; FAILING_OPENCL_REAL, the library that they go to. FAILING_OPENCL_FAILS: a call that fails,
// with code -36, when it was made FAILING_OPENCL_LEFT times; FAILING_OPENCL_CALLS: a file that gets a line for each call. Out: what the
// other driver says. Not done here: any effect.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int32_t i32;
typedef uint32_t u32;
typedef uint64_t u64;

enum { INVALID_QUEUE = -36 };

// Whether the call that is to fail may be made once more.
static int has_left(void) {
  char text[32];
  u64 left = getenv("FAILING_OPENCL_LEFT") ? strtoull(getenv("FAILING_OPENCL_LEFT"), NULL, 10) : 0;
  snprintf(text, sizeof text, "%llu", (unsigned long long)(left ? left - 1 : 0));
  return left && !setenv("FAILING_OPENCL_LEFT", text, 1);
}

// Notes a call; returns where it goes, or null if it fails.
static void *passed(const char *name) {
  const char *fails = getenv("FAILING_OPENCL_FAILS"), *calls = getenv("FAILING_OPENCL_CALLS");
  FILE *file = calls ? fopen(calls, "a") : NULL;
  if (file) fprintf(file, "%s\n", name), fclose(file);
  if (fails && !strcmp(fails, name) && !has_left()) return NULL;
  return dlsym(dlopen(getenv("FAILING_OPENCL_REAL"), RTLD_NOW | RTLD_LOCAL), name);
}

#define PASS(name, types, names)                                            \
  i32 name types {                                                          \
    i32(*real) types = (i32(*) types)passed(#name);                         \
    return real ? real names : INVALID_QUEUE;                               \
  }
#define MAKE(name, types, names)                                            \
  void *name types {                                                        \
    void *(*real)types = (void *(*)types)passed(#name);                     \
    return real ? real names : (*code = INVALID_QUEUE, NULL);               \
  }

PASS(clGetPlatformIDs, (u32 a, void **b, u32 *c), (a, b, c))
PASS(clGetDeviceIDs, (void *a, u64 b, u32 c, void **d, u32 *e), (a, b, c, d, e))
PASS(clGetDeviceInfo, (void *a, u32 b, size_t c, void *d, size_t *e), (a, b, c, d, e))
MAKE(clCreateContext, (const void *a, u32 b, void **c, void *d, void *e, i32 *code), (a, b, c, d, e, code))
MAKE(clCreateCommandQueue, (void *a, void *b, u64 c, i32 *code), (a, b, c, code))
MAKE(clCreateProgramWithSource, (void *a, u32 b, const char **c, const size_t *d, i32 *code), (a, b, c, d, code))
PASS(clBuildProgram, (void *a, u32 b, void **c, const char *d, void *e, void *f), (a, b, c, d, e, f))
PASS(clGetProgramBuildInfo, (void *a, void *b, u32 c, size_t d, void *e, size_t *f), (a, b, c, d, e, f))
MAKE(clCreateKernel, (void *a, const char *b, i32 *code), (a, b, code))
PASS(clSetKernelArg, (void *a, u32 b, size_t c, const void *d), (a, b, c, d))
MAKE(clCreateBuffer, (void *a, u64 b, size_t c, void *d, i32 *code), (a, b, c, d, code))
PASS(clEnqueueFillBuffer, (void *a, void *b, const void *c, size_t d, size_t e, size_t f, u32 g, void **h, void **i), (a, b, c, d, e, f, g, h, i))
PASS(clEnqueueWriteBuffer, (void *a, void *b, u32 c, size_t d, size_t e, const void *f, u32 g, void **h, void **i), (a, b, c, d, e, f, g, h, i))
PASS(clEnqueueReadBuffer, (void *a, void *b, u32 c, size_t d, size_t e, void *f, u32 g, void **h, void **i), (a, b, c, d, e, f, g, h, i))
PASS(clEnqueueCopyBuffer, (void *a, void *b, void *c, size_t d, size_t e, size_t f, u32 g, void **h, void **i), (a, b, c, d, e, f, g, h, i))
PASS(clEnqueueNDRangeKernel, (void *a, void *b, u32 c, const size_t *d, const size_t *e, const size_t *f, u32 g, void **h, void **i), (a, b, c, d, e, f, g, h, i))
PASS(clEnqueueMarkerWithWaitList, (void *a, u32 b, void **c, void **d), (a, b, c, d))
PASS(clFlush, (void *a), (a))
PASS(clFinish, (void *a), (a))
PASS(clWaitForEvents, (u32 a, void **b), (a, b))
PASS(clReleaseEvent, (void *a), (a))
PASS(clReleaseMemObject, (void *a), (a))
PASS(clReleaseKernel, (void *a), (a))
PASS(clReleaseProgram, (void *a), (a))
PASS(clReleaseCommandQueue, (void *a), (a))
PASS(clReleaseContext, (void *a), (a))
