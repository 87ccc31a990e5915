/* Runs the image of one variant once, without loader, Python or libc: the proof that a bundle's code needs nothing.
 *
 * In, on standard input, all words u64: sizes of image and weights, counts of inputs and outputs; per tensor its rank,
 * dtype code, bytes (0 for outputs) and dims; then image, weights and inputs, each at a multiple of 64 KiB from the start.
 * Out, on standard output: per output its dims, then its bytes. Exit status: 100 + the return code of `main` unless 0.
 * Not done here: checks of digests. Offsets come from ingot_runtime/format/abi.py as macros.
 */
typedef unsigned long u64;
typedef unsigned int u32;
typedef unsigned char byte;

#if defined(__x86_64__)
enum { READ = 0, WRITE = 1, MMAP = 9, EXIT = 60 };
static long call(long n, long a, long b, long c, long d, long e, long f) {
  register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
  __asm__ volatile("syscall" : "+a"(n) : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
  return n;
}
#elif defined(__aarch64__)
enum { READ = 63, WRITE = 64, MMAP = 222, EXIT = 93 };
static long call(long n, long a, long b, long c, long d, long e, long f) {
  register long x8 __asm__("x8") = n, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
}
#elif defined(__riscv)
enum { READ = 63, WRITE = 64, MMAP = 222, EXIT = 93 };
static long call(long n, long a, long b, long c, long d, long e, long f) {
  register long a7 __asm__("a7") = n, a0 __asm__("a0") = a, a1 __asm__("a1") = b, a2 __asm__("a2") = c;
  register long a3 __asm__("a3") = d, a4 __asm__("a4") = e, a5 __asm__("a5") = f;
  __asm__ volatile("ecall" : "+r"(a0) : "r"(a7), "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a5) : "memory");
  return a0;
}
#endif

enum { TENSORS_MAX = 16, RANK_MAX = 8, PIECE = 65536, ERROR_BYTES = 512 };
enum { READ_WRITE_EXECUTE = 7, PRIVATE_ANONYMOUS = 0x22, SIZES_ONLY = 1 };

static void leave(long code) { call(EXIT, code, 0, 0, 0, 0, 0); for (;;); }

static byte *memory(u64 bytes) { /* zeroed, at a multiple of 64 KiB, executable: the image is data until it is called */
  long at = call(MMAP, 0, (long)(bytes + 2 * PIECE), READ_WRITE_EXECUTE, PRIVATE_ANONYMOUS, -1, 0);
  if (at < 0 && at > -4096) leave(90);
  return (byte *)(((u64)at + PIECE - 1) & ~(u64)(PIECE - 1));
}

static void take(byte *to, u64 bytes) {
  while (bytes) {
    long got = call(READ, 0, (long)to, (long)bytes, 0, 0, 0);
    if (got <= 0) leave(91);
    to += got, bytes -= (u64)got;
  }
}

static void give(int file, const byte *from, u64 bytes) {
  while (bytes) {
    long put = call(WRITE, file, (long)from, (long)bytes, 0, 0, 0);
    if (put <= 0) leave(92);
    from += put, bytes -= (u64)put;
  }
}

static u64 word(void) { u64 value; take((byte *)&value, 8); return value; }
static void set8(byte *at, u64 value) { *(volatile u64 *)at = value; }
static void set4(byte *at, u32 value) { *(volatile u32 *)at = value; }
static u64 get8(const byte *at) { return *(volatile const u64 *)at; }

static u64 element_bytes(u64 dtype) {
  static const byte bytes[] = {4, 8, 2, 2, 1, 2, 4, 8, 1, 2, 4, 8, 1};
  return bytes[dtype];
}

static long shapes[2][TENSORS_MAX][RANK_MAX];
static byte tensors[2][TENSORS_MAX * TENSOR_SIZE], device[DEVICE_SIZE], struct_of_call[CALL_SIZE], error[ERROR_BYTES];
static u64 workspace, workspace_bytes;

static void run(int (*main_)(byte *), u32 flags) {
  set4(struct_of_call + CALL_FLAGS, flags);
  int code = main_(struct_of_call);
  if (code) {
    give(2, error, *(volatile u32 *)(struct_of_call + CALL_ERROR_LEN));
    leave(100 + code);
  }
}

void begin(void) {
  u64 image_bytes = word(), weights_bytes = word(), counts[2] = {0, 0};
  counts[0] = word(), counts[1] = word();
  for (int side = 0; side < 2; side++)
    for (u64 i = 0; i < counts[side]; i++) {
      byte *row = tensors[side] + i * TENSOR_SIZE;
      u64 rank = word(), dtype = word(), bytes = word();
      for (u64 axis = 0; axis < rank; axis++) shapes[side][i][axis] = (long)word();
      set8(row + TENSOR_SHAPE, (u64)shapes[side][i]);
      set8(row + TENSOR_BYTES, bytes);
      set4(row + TENSOR_RANK, (u32)rank);
      set4(row + TENSOR_DTYPE, (u32)dtype);
    }
  byte *image = memory(image_bytes), *weights = memory(weights_bytes + 1);
  take(image, image_bytes);
  take(weights, weights_bytes);
  for (u64 i = 0; i < counts[0]; i++) {
    byte *row = tensors[0] + i * TENSOR_SIZE, *data = memory(get8(row + TENSOR_BYTES) + 1);
    take(data, get8(row + TENSOR_BYTES));
    set8(row + TENSOR_DATA, (u64)data);
  }
#if defined(__aarch64__)
  for (u64 line = 0; line < image_bytes; line += 16) __asm__ volatile("dc cvau, %0" ::"r"(image + line) : "memory");
  __asm__ volatile("dsb ish" ::: "memory");
  for (u64 line = 0; line < image_bytes; line += 16) __asm__ volatile("ic ivau, %0" ::"r"(image + line) : "memory");
  __asm__ volatile("dsb ish\n isb" ::: "memory");
#elif defined(__riscv)
  __asm__ volatile("fence.i" ::: "memory");
#endif
  byte *at = struct_of_call;
  set4(at + CALL_ABI, ABI), set4(at + CALL_SIZE_FIELD, CALL_SIZE);
  set4(at + CALL_N_INPUTS, (u32)counts[0]), set4(at + CALL_N_OUTPUTS, (u32)counts[1]), set4(at + CALL_N_DEVICES, 1);
  set8(at + CALL_INPUTS, (u64)tensors[0]), set8(at + CALL_OUTPUTS, (u64)tensors[1]);
  set8(at + CALL_WEIGHTS, (u64)weights), set8(at + CALL_WEIGHTS_BYTES, weights_bytes);
  set8(at + CALL_WORKSPACES, (u64)&workspace), set8(at + CALL_WORKSPACE_BYTES, (u64)&workspace_bytes);
  set8(at + CALL_DEVICES, (u64)device), set8(at + CALL_ERROR, (u64)error), set4(at + CALL_ERROR_CAP, ERROR_BYTES);
  u64 frame_bytes = get8(image + *(u32 *)(image + 4 * FRAME_WORD));
  set8(at + CALL_FRAME, (u64)memory(frame_bytes)), set8(at + CALL_FRAME_BYTES, frame_bytes);
  int (*main_)(byte *) = (int (*)(byte *))(image + *(u32 *)(image + 4 * MAIN_WORD));
  run(main_, SIZES_ONLY);
  workspace = (u64)memory(workspace_bytes + 1);
  set8(at + CALL_SCRATCH, (u64)memory(get8(at + CALL_SCRATCH_STRIDE) + 1));
  for (u64 i = 0; i < counts[1]; i++) {
    byte *row = tensors[1] + i * TENSOR_SIZE;
    u64 bytes = element_bytes(*(volatile u32 *)(row + TENSOR_DTYPE));
    for (u32 axis = 0; axis < *(volatile u32 *)(row + TENSOR_RANK); axis++) bytes *= (u64)shapes[1][i][axis];
    set8(row + TENSOR_BYTES, bytes);
    set8(row + TENSOR_DATA, (u64)memory(bytes + 1));
  }
  run(main_, 0);
  for (u64 i = 0; i < counts[1]; i++) {
    byte *row = tensors[1] + i * TENSOR_SIZE;
    give(1, (byte *)shapes[1][i], 8 * (u64) * (volatile u32 *)(row + TENSOR_RANK));
    give(1, (byte *)get8(row + TENSOR_DATA), get8(row + TENSOR_BYTES));
  }
  leave(0);
}

#if defined(__x86_64__)
__asm__(".globl _start\n_start: xor %ebp, %ebp\n and $-16, %rsp\n call begin\n");
#elif defined(__aarch64__)
__asm__(".globl _start\n_start: mov x29, #0\n mov x30, #0\n b begin\n");
#elif defined(__riscv)
__asm__(".globl _start\n_start: .option push\n .option norelax\n la gp, __global_pointer$\n .option pop\n j begin\n");
#endif
