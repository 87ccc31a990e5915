// All support functions as one file, which is compiled once for each target.
#include "float_control.c"
#include "watch.c"
#include "launch.c"
#include "digests.c"
#include "sigbus.c"
#include "memory.c"
#include "narrow.c"
