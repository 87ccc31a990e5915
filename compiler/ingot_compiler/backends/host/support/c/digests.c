// The digests of weights alone, which the compiler itself calls, too.
#include "blake3.c"
#include "checksum.c"
