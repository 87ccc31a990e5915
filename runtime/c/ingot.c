// The loader as one translation unit: a line for each piece, each piece before those that use it.
//
// Compile it with any C11 compiler: cc -O2 -c ingot.c, and link with -lpthread.
#include "internal.h"
//
#include "text.c"
#include "sha256.c"
#include "source.c"
#include "header.c"
#include "words.c"
#include "plan.c"
#include "manifest.c"
#include "sections.c"
#include "cpu.c"
#include "image.c"
#include "guard.c"
#include "pool.c"
#include "weights.c"
#include "load.c"
#include "session.c"
#include "messages.c"
#include "prepare.c"
#include "call.c"
