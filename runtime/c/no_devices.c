// A loader for the host alone: bundles with devices beside it are refused.
//
// In: the plan. Out: an error in four parts. Not done here: devices (`devices.c`).
#include "device.h"

struct candidates {
  u32 count;
};

static bool bind_devices(const struct plan *plan, const struct ingot_options *options, const char *name, struct arena *arena,
                         struct candidates bound[static DEVICE_COUNT_MAX], error *error) {
  (void)options, (void)arena, (void)bound;
  for (u32 index = 0; index < plan->device_count; index++) {
    const struct device_plan *device = plan->devices + index;
    if (device->kind == HOST && device->id == 0) continue;
    const char *why = TEXT("the bundle has the device %s, %s:%lld", quoted(device->name), device_kinds[device->kind], NUMBER(device->id));
    const char *todo = "run it by a loader with devices (`ingot export --executable --dynamic`), or compile it for the host alone";
    return refuse(error, INGOT_INCOMPATIBLE_ERROR, "no devices beside the host here", name, why, todo);
  }
  return true;
}

static bool open_devices(ingot_bundle *bundle, const struct candidates *bound, const struct ingot_options *options, error *error) {
  return (void)bundle, (void)bound, (void)options, !error->kind;
}

static void close_devices(ingot_bundle *bundle) { (void)bundle; }
