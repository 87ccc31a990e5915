// A driver that lies in a shared library of the machine, opened when a bundle needs it.
//
// In: the library's name, those of its functions. Out: their addresses. Not done here: calling them (one file per kind).
#include <dlfcn.h>

#include "device.h"

struct driver_function {
  const char *name;
  size_t at;  // where its address goes
};

// Opens the library that an environment variable names, or the usual one; returns why not, "" if it is there.
static const char *open_driver(const char *variable, const char *usual, const struct driver_function *functions, u32 count, void *addresses) {
  const char *named = secure_getenv(variable);
  void *library = dlopen(named && *named ? named : usual, RTLD_NOW | RTLD_LOCAL);
  if (!library) return TEXT("%s", dlerror());
  for (u32 index = 0; index < count; index++) {
    void *address = dlsym(library, functions[index].name);
    if (!address) return TEXT("%s has no function %s", named && *named ? named : usual, functions[index].name);
    memcpy((u8 *)addresses + functions[index].at, &address, sizeof address);
  }
  return "";
}
