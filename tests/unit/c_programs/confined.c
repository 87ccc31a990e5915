// One step of the loader, or a whole program, under a filter of the system calls that it may make (x86-64, seccomp).
//
// In: the step (`program`: execute what follows), a list of numbers of system calls between commas (those behind a `-` fail with ENOSYS
// instead, those behind a `w` may write files), a bundle or the program's path, a count of threads and perhaps the path of a key, or the
// program's arguments. Out: exit code 0, or the end by SIGSYS where another call is made, a file is opened to be written, or memory
// becomes writable and executable. Not done here: the lists (`test_c_system_calls.py`).
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ingot.h"

enum { ROOM = 1024 };
static struct sock_filter code[ROOM];
static unsigned short size;

static void add(unsigned short operation, unsigned char if_so, unsigned char if_not, unsigned value) {
  code[size++] = (struct sock_filter){operation, if_so, if_not, value};
}

static void load_word(size_t at) { add(BPF_LD | BPF_W | BPF_ABS, 0, 0, (unsigned)at); }
static void leave(unsigned action) { add(BPF_RET | BPF_K, 0, 0, action); }

// Lets a call through; where `mask` is not 0, unless the argument has all of these bits (`is_all`) or one of them.
static void allow(unsigned number, int argument, unsigned mask, int is_all, unsigned action) {
  add(BPF_JMP | BPF_JEQ | BPF_K, 0, mask ? 5 : 1, number);
  if (!mask) {
    leave(action);
    return;
  }
  load_word(offsetof(struct seccomp_data, args) + 8 * (size_t)argument);
  add(BPF_ALU | BPF_AND | BPF_K, 0, 0, mask);
  add(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, is_all ? mask : 0);
  leave(is_all ? SECCOMP_RET_KILL_PROCESS : action);
  leave(is_all ? action : SECCOMP_RET_KILL_PROCESS);
}

static void allow_listed(char *list) {
  const unsigned writes = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND;
  for (char *word = strtok(list, ","); word; word = strtok(NULL, ",")) {
    int fails = *word == '-', may_write = *word == 'w';
    unsigned number = (unsigned)atoi(word + fails + may_write), action = fails ? SECCOMP_RET_ERRNO | ENOSYS : SECCOMP_RET_ALLOW;
    if (number == SYS_openat || number == SYS_open) allow(number, number == SYS_openat ? 2 : 1, may_write ? 0 : writes, 0, action);
    else if (number == SYS_mmap || number == SYS_mprotect) allow(number, 2, PROT_WRITE | PROT_EXEC, 1, action);
    else allow(number, 0, 0, 0, action);
  }
}

// From here on, of all threads.
static void confine(char *list) {
  load_word(offsetof(struct seccomp_data, arch));
  add(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, AUDIT_ARCH_X86_64);
  leave(SECCOMP_RET_KILL_PROCESS);
  load_word(offsetof(struct seccomp_data, nr));
  allow_listed(list);
  leave(SECCOMP_RET_KILL_PROCESS);
  struct sock_fprog program = {size, code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program)) {
    perror("seccomp");
    _exit(3);
  }
}

static const char *step;
static char *list;

// Before a step; the one before it is over.
static void begins(const char *name) {
  if (!list && strcmp(name, "run")) _exit(0);
  if (!list || strcmp(step, name)) return;
  confine(list);
  list = NULL;
}

static void must(int code, const struct ingot_error *error) {
  if (code) fprintf(stderr, "%s: %s\n", error->what, error->why), _exit(1);
}

static void *contents(const char *path, size_t *length) {
  struct stat found;
  int fd = open(path, O_RDONLY);
  if (fd < 0 || fstat(fd, &found)) _exit(3);
  *length = (size_t)found.st_size;
  void *data = mmap(NULL, *length, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  return data;
}

static void steps(const char *path, int threads, const char *key) {
  struct ingot_options options = INGOT_OPTIONS;
  struct ingot_error error;
  ingot_bundle *bundle;
  ingot_session *session;
  size_t length;
  const char *const keys[] = {key, NULL};
  options.threads = threads, options.keys = keys;
  if (!strcmp(step, "load memory")) {
    const void *data = contents(path, &length);
    begins("load memory");
    must(ingot_load_memory(data, length, &options, &bundle, &error), &error);
    _exit(0);
  }
  begins("load");
  must(ingot_load(path, &options, &bundle, &error), &error);
  begins("open");
  must(ingot_open(bundle, &options, &session, &error), &error);
  must(ingot_prepare(session, &error), &error);
  if (!strcmp(step, "run after a change") && chmod(path, 0600)) _exit(3);
  begins("run after a change");
  begins("run");
  for (int call = 0; call < 50; call++) must(ingot_run(session, 10, &error), &error);
  begins("close");
  ingot_close(session);
  begins("unload");
  ingot_unload(bundle);
  _exit(0);
}

int main(int count, char **arguments) {
  if (count < 5) return 3;
  step = arguments[1], list = arguments[2];
  if (strcmp(step, "program")) steps(arguments[3], atoi(arguments[4]), arguments[5]);
  confine(list);
  execv(arguments[3], arguments + 3);
  return 3;
}
