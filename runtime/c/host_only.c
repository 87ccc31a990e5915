// Sessions of a loader for the host alone: all memory is the host's.
//
// In: sizes. Out: blocks. Not done here: devices (`attached.c`).
#include "session.h"

static void device_block_free(struct block *block) { (void)block; }

static void fill_devices(ingot_session *session, struct device *rows) { (void)session, (void)rows; }

static bool device_block_fit(ingot_session *session, u32 index, struct block *block, u64 size, error *error) {
  (void)session, (void)index;
  return block_fit(block, size, error);
}

static i32 settle_devices(ingot_session *session, i32 code) { return (void)session, code; }
