// What the system's numbers of failures say in words: those of the Python loader, whatever the C library.
//
// In: `errno`. Out: words. Not done here: whose failure it is. A C library has words for 130 of them, of which it needs these.
#include "internal.h"

static const char *failure_words(int number) {
  static const char words[] =
      "\1" "Operation not permitted\0" "\2" "No such file or directory\0" "\4" "Interrupted system call\0" "\5" "Input/output error\0"
      "\6" "No such device or address\0" "\11" "Bad file descriptor\0" "\13" "Resource temporarily unavailable\0"
      "\14" "Cannot allocate memory\0" "\15" "Permission denied\0" "\20" "Device or resource busy\0" "\21" "File exists\0"
      "\23" "No such device\0" "\24" "Not a directory\0" "\25" "Is a directory\0" "\26" "Invalid argument\0"
      "\27" "Too many open files in system\0" "\30" "Too many open files\0" "\32" "Text file busy\0" "\33" "File too large\0"
      "\34" "No space left on device\0" "\36" "Read-only file system\0" "\40" "Broken pipe\0" "\44" "File name too long\0"
      "\46" "Function not implemented\0" "\50" "Too many levels of symbolic links\0" "\113" "Value too large for defined data type\0"
      "\137" "Operation not supported\0" "\164" "Stale file handle\0" "\165" "Structure needs cleaning\0" "\172" "Disk quota exceeded\0";
  for (const char *at = words; *at; at += strlen(at) + 1)
    if (*at == number) return at + 1;
  return TEXT("failure %d of the system", number);
}
