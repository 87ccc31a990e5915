// The board "mps2-an386" (Cortex-M4 with single-precision numbers): its vectors, its start, and the
// semihosting calls by which a debugger or qemu prints text and ends the program.
#include "board.h"

extern uint32_t stack_end[], data_start[], data_end[], data_stored[], zeros_start[], zeros_end[];
int main(void);

static uint32_t semihosting(uint32_t call, const void *argument) {
  register uint32_t r0 __asm__("r0") = call;
  register const void *r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

void print(const char *text) { semihosting(0x04, text); }

static void end(int code) {
  const uint32_t reason[] = {0x20026, (uint32_t)code}; // the application has ended
  semihosting(0x20, reason);
  for (;;) {
  }
}

void start(void);
void start(void) {
  volatile uint32_t *const coprocessors = (volatile uint32_t *)0xE000ED88;
  *coprocessors |= 0xFu << 20; // before the first number with a point
  __asm__ volatile("dsb\nisb");
  for (uint32_t *to = data_start, *from = data_stored; to < data_end;) *to++ = *from++;
  for (uint32_t *to = zeros_start; to < zeros_end;) *to++ = 0;
  end(main());
}

static void fault(void) {
  print("fault\n");
  end(1);
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    stack_end, start, fault, fault, fault, fault, fault,
};
