// Kind `cpu`: the host's processor as a device of its own: its memory is apart, its code is the host's.
//
// In: a library section. Out: a device. Not done here: what it does (`host_memory.c`).
#include "device.h"

static const struct device_kind cpu_kind = HOST_MEMORY_KIND("cpu");
