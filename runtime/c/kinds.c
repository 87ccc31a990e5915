// The kinds of devices that this loader can open, one line each.
//
// In: nothing. Out: the list. Not done here: the kinds, one file each; which are bound (`bind.c`).
#include "device.h"

static const struct device_kind *const open_kinds[] = {
    &cpu_kind,
#ifndef INGOT_WITHOUT_DRIVERS
    &cuda_kind,
#endif
    &null_kind,
#ifndef INGOT_WITHOUT_DRIVERS
    &opencl_kind,
#endif
};
