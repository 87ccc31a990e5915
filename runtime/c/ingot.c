// The loader as one translation unit: a line for each piece, each piece before those that use it.
//
// Compile it with any C11 compiler: cc -O2 -c ingot.c, and link with -lpthread. With -DINGOT_WITHOUT_SIGNATURES it has 13 kB less, and
// refuses options with keys; with -DINGOT_WITHOUT_STATES it refuses those with states, with -DINGOT_WITHOUT_SHARED bundles that share weights; with
// -DINGOT_WITHOUT_LENDING sessions have threads of their own, with -DINGOT_WITHOUT_HOST it knows no handlers of signals but its own; without
// devices, see `devices.c`.
#include "internal.h"
//
#include "form.c"
#include "memory.c"
#include "text.c"
#include "failures.c"
#include "sha256.c"
#include "source.c"
#include "header.c"
#include "words.c"
#ifndef INGOT_WITHOUT_SIGNATURES
#include "sha512.c"
#include "ed25519.c"
#include "files.c"
#include "json.c"
#include "policy.c"
#include "signature.c"
#endif
#include "plan.c"
#include "shared.c"
#include "manifest.c"
#include "sections.c"
#include "cpu.c"
#include "image.c"
#include "guard.c"
#include "pool.c"
#include "weights.c"
#include "devices.c"
#include "load.c"
#include "session_lock.c"
#include "session.c"
#include "messages.c"
#ifdef INGOT_WITHOUT_DEVICES
#include "host_only.c"
#else
#include "attached.c"
#endif
#include "prepare.c"
#include "states.c"
#include "call.c"
#include "selftest.c"
