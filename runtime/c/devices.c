// Devices beside the host. With -DINGOT_WITHOUT_DRIVERS there are those of the processor alone, for a program that cannot open libraries;
// with -DINGOT_WITHOUT_DEVICES none.
#include "device.h"
//
#ifdef INGOT_WITHOUT_DEVICES
#include "no_devices.c"
#else
#include "device.c"
#include "host_memory.c"
#include "device_cpu.c"
#include "device_null.c"
#ifndef INGOT_WITHOUT_DRIVERS
#include "driver.c"
#include "kernel_table.c"
#include "opencl.c"
#include "cuda_library.c"
#include "cuda.c"
#endif
#include "kinds.c"
#include "bind.c"
#include "attach.c"
#endif
