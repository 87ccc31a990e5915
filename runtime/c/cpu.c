// What this machine's processor can run, and which variant of a bundle that is.
//
// In: the variants of a plan, the user's wish. Out: the number of one. Not done here: reading any code.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "internal.h"

struct cpu_bit {
  const char *name;
  u32 leaf, subleaf, word, bit;  // of x86: leaf, subleaf, register, bit; else: 0, 0, AT_HWCAP or AT_HWCAP2, bit
};

enum { MODEL_BYTES = 32 };

struct level {
  const char *name, *features;  // the features with a space around each
};

static const struct level levels[] = {CPU_LEVELS};

#if defined(__x86_64__)
static const char architecture[] = "x86-64";
static const struct cpu_bit cpu_bits[] = {X86_BITS};

static u64 register_state(void) {
  u32 low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (u64)high << 32 | low;
}

struct leaf {
  u32 number, subleaf, registers[4];
};

// A leaf of CPUID, zeros where there is none; each is asked for once, since a hypervisor takes microseconds to answer. 0 ends `leaves`.
static const u32 *cpu_leaf(struct leaf *leaves, u32 number, u32 subleaf) {
  while (leaves->number && (leaves->number != number || leaves->subleaf != subleaf)) leaves++;
  if (!leaves->number) {
    u32 *registers = leaves->registers;
    *leaves = (struct leaf){number, subleaf, {0}};
    if (!subleaf || *cpu_leaf(leaves + 1, number, 0) >= subleaf)
      __get_cpuid_count(number, subleaf, registers, registers + 1, registers + 2, registers + 3);
  }
  return leaves->registers;
}

// The registers that a feature uses and the operating system must save.
static u64 state_of(const char *name) {
  static const struct {
    const char *prefix;
    u64 bits;
  } states[] = {{"avx512", 0xe6}, {"amx", 0x60000}, {"avx", 0x6}, {"fma", 0x6}, {"f16c", 0x6}};
  for (size_t index = 0; index < COUNT_OF(states); index++)
    if (!strncmp(name, states[index].prefix, strlen(states[index].prefix))) return states[index].bits;
  return 0;
}

static bool has_bit(const struct cpu_bit *bit, struct leaf *leaves) {
  u64 saved = cpu_leaf(leaves, 1, 0)[2] >> 27 & 1 ? register_state() : 0;
  return cpu_leaf(leaves, bit->leaf, bit->subleaf)[bit->word] >> bit->bit & 1 && !(state_of(bit->name) & ~saved);
}

static void read_bits(bool *has) {
  struct leaf leaves[8] = {0};
  for (u32 index = 0; index < COUNT_OF(cpu_bits); index++) has[index] = has_bit(cpu_bits + index, leaves);
}

// Maker, family and model as ingot_runtime.loader.cpu has them, "" where the processor does not say them.
static void read_model(char *model) {
  u32 word, family, maker[4] = {0}, unused[3];
  __cpuid(0, word, maker[0], maker[2], maker[1]);
  __cpuid(1, word, unused[0], unused[1], unused[2]);
  family = word >> 8 & 15;
  family += family == 15 ? word >> 20 & 255 : 0;
  write_into(model, MODEL_BYTES, "%s %01x %02x", (const char *)maker, family, (word >> 4 & 15) | (word >> 12 & 240));
}

// CPUID alone does not allow a tile instruction: the kernel does, when it is asked.
static bool request_amx(void) {
  enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_TILEDATA = 18 };
  return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_TILEDATA) == 0;
}
#else
#if defined(__aarch64__)
static const char architecture[] = "aarch64";
static const struct cpu_bit cpu_bits[] = {AARCH64_BITS};
#elif defined(__riscv) && __riscv_xlen == 64
static const char architecture[] = "riscv64";
static const struct cpu_bit cpu_bits[] = {RISCV64_BITS};
#else
#error "no bundle is compiled for this architecture"
#endif
static void read_bits(bool *has) {
  for (u32 index = 0; index < COUNT_OF(cpu_bits); index++) has[index] = getauxval(cpu_bits[index].word) >> cpu_bits[index].bit & 1;
}
static void read_model(char *model) {
  char text[MODEL_BYTES] = "";
  int fd = open("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1", O_RDONLY | O_CLOEXEC);
  u64 word = fd >= 0 && read(fd, text, sizeof text - 1) > 0 ? strtoull(text, NULL, 16) : 0;
  if (fd >= 0) close(fd);
  if (word) write_into(model, MODEL_BYTES, "0x%01x 0x%01x", (u32)(word >> 24 & 255), (u32)(word >> 4 & 4095));
}

static bool request_amx(void) { return false; }
#endif

enum { CPU_BIT_COUNT = COUNT_OF(cpu_bits) };

struct machine {
  bool has[CPU_BIT_COUNT];
};

static bool has_feature(const struct machine *machine, const char *name) {
  for (u32 index = 0; index < CPU_BIT_COUNT; index++)
    if (!strcmp(cpu_bits[index].name, name)) return machine->has[index];
  return false;
}

static bool uses_amx(const struct texts *features) {
  for (u32 index = 0; index < features->count; index++)
    if (!strncmp(features->items[index], "amx-", 4)) return true;
  return false;
}

// Writes what host code needs and this machine lacks; returns how much that is, since a name may be empty.
static u32 missing_features(const char *target, const struct texts *features, const struct machine *machine, char *missing) {
  u32 count = 0;
  *missing = 0;
  for (u32 index = 0; index < features->count; index++)
    if (!has_feature(machine, features->items[index])) append(missing, "%s%s", count++ ? ", " : "", features->items[index]);
  if (strncmp(target, architecture, sizeof architecture - 1))
    append(missing, "%sthis processor (%s)", count++ ? ", " : "", architecture);
  return count;
}

static const char *level_of(const struct machine *machine) {
  const char *found = "";
  for (size_t index = 0; index < COUNT_OF(levels); index++) {
    bool covers = !strncmp(levels[index].name, architecture, sizeof architecture - 1);
    for (const char *name = levels[index].features; covers && *name; name += *name == ' ') {
      size_t size = size_until(name, ' ');
      covers = has_feature(machine, TEXT("%.*s", (int)size, name));
      name += size;
    }
    if (covers) found = levels[index].name;
  }
  return found;
}

static bool refuse_machine(const struct machine *machine, const char *name, const char *refusals, error *error) {
  const char *level = level_of(machine);
  char features[TEXT_BYTES] = "";
  for (u32 index = 0; index < CPU_BIT_COUNT; index++)
    if (machine->has[index]) append(features, "%s%s", *features ? ", " : "", cpu_bits[index].name);
  const char *what = TEXT("no variant of %s can run here: %s", name, refusals);
  const char *why = TEXT("this machine: %s (%s)", *level ? level : architecture, *features ? features : "no named feature");
  const char *todo = *level ? TEXT("`ingot compile MODEL --target %s` makes one", level) : "this machine is below every level that ingot compiles for";
  return refuse(error, INGOT_INCOMPATIBLE_ERROR, what, name, why, todo);
}

static bool refuse_wish(const struct plan *plan, const char *name, const char *wished, error *error) {
  char targets[TEXT_BYTES] = "";
  for (u32 index = 0; index < plan->variant_count; index++) append(targets, "%s%s", index ? ", " : "", plan->variants[index].target);
  const char *why = TEXT("the bundle has %s", targets);
  return refuse(error, INGOT_INPUT_ERROR, TEXT("no variant %s", quoted(wished)), name, why, "leave variant out to take the best");
}

// Rises with the rank; of equal ranks, that for this processor is highest, then those for all; of equal ones the first.
static i64 order_of(const struct plan *plan, u32 number, const char *model) {
  const struct variant_plan *variant = plan->variants + number;
  const struct texts *all = &variant->processors;
  i64 order = (i64)variant->rank * 4 + !all->count;
  for (u32 index = 0; index < all->count; index++)
    if (!strncmp(model, all->items[index], strlen(all->items[index]))) order |= 2;
  return order * VARIANT_COUNT_MAX + VARIANT_COUNT_MAX - number;
}

// The number of the variant that is highest in that order of those below `last`, which becomes its place; -1 where there is none.
static i64 next_variant(const struct plan *plan, i64 *last, const char *wished, const char *model) {
  i64 best = -1, highest = 0;
  for (u32 index = 0; index < plan->variant_count; index++) {
    i64 order = order_of(plan, index, model);
    if ((!wished || !strcmp(wished, plan->variants[index].target)) && order < *last && order > highest) best = index, highest = order;
  }
  *last = highest;
  return best;
}

static bool choose_variant(const struct plan *plan, const char *name, const char *wished, u32 *chosen, error *error) {
  struct machine machine;
  char missing[TEXT_BYTES], refusals[TEXT_BYTES] = "", model[MODEL_BYTES] = "";
  read_bits(machine.has);
  if (plan->minor >= 6) read_model(model);  // before, no variant is for some processors
  for (i64 index, last = INT64_MAX; (index = next_variant(plan, &last, wished, model)) >= 0;) {
    const struct variant_plan *variant = plan->variants + index;
    u32 count = missing_features(variant->target, &variant->features, &machine, missing);
    if (!count && uses_amx(&variant->features) && !request_amx()) {
      for (u32 bit = 0; bit < CPU_BIT_COUNT; bit++) machine.has[bit] = machine.has[bit] && strncmp(cpu_bits[bit].name, "amx-", 4);
      count = missing_features(variant->target, &variant->features, &machine, missing);
    }
    *chosen = (u32)index;
    if (!count) return true;
    append(refusals, "%s%s lacks %s", *refusals ? "; " : "", variant->target, missing);
  }
  return *refusals ? refuse_machine(&machine, name, refusals, error) : refuse_wish(plan, name, wished, error);
}
