// Kind `null`: the device for tests, which shows that host and devices keep apart.
//
// In: a library section. Out: a device. Not done here: what it does (`host_memory.c`).
#include "device.h"

static const struct device_kind null_kind = HOST_MEMORY_KIND("null");
