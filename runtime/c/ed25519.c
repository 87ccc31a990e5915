// Ed25519 (RFC 8032): whether a signature is that of the owner of a public key.
//
// In: a key, a message, a signature. Out: yes or no. Not done here: what is signed (`signature.c`).
//
// As in `loader/ed25519.py`: a number S beyond the order, a key that is not in its shortest form or of small order are refused, and
// S B - h A is compared with the bytes of R. Nothing is secret, so the time may depend on the values.
#include "internal.h"

// A number modulo 2^255 - 19 in five limbs of 51 bits and a little more.
typedef u64 field[5];
// X, Y, Z, T: x = X/Z, y = Y/Z, xy = T/Z.
typedef field point[4];

enum { LIMB_BITS = 51 };
#define LIMB_MASK ((1ull << LIMB_BITS) - 1)

static const field field_one = {1};
// -121665/121666, and a root of -1, and the base point.
static const field curve_d = {0x34dca135978a3, 0x1a8283b156ebd, 0x5e7a26001c029, 0x739c663a03cbb, 0x52036cee2b6ff};
static const field minus_one_root = {0x61b274a0ea0b0, 0xd5a5fc8f189d, 0x7ef5e9cbd0c60, 0x78595a6804c9e, 0x2b8324804fc1d};
static const point base_point = {
    {0x62d608f25d51a, 0x412a4b4f6592a, 0x75b7171a4b31d, 0x1ff60527118fe, 0x216936d3cd6e5},
    {0x6666666666658, 0x4cccccccccccc, 0x1999999999999, 0x3333333333333, 0x6666666666666},
    {1},
    {0x68ab3a5b7dda3, 0xeea2a5eadbb, 0x2af8df483c27e, 0x332b375274732, 0x67875f0fd78b7},
};

static void carry(field a) {
  for (int turn = 0; turn < 2; turn++)
    for (int at = 0; at < 5; at++) {
      u64 over = a[at] >> LIMB_BITS;
      a[at] &= LIMB_MASK;
      a[(at + 1) % 5] += at == 4 ? 19 * over : over;
    }
}

static void add(field sum, const field a, const field b) {
  for (int at = 0; at < 5; at++) sum[at] = a[at] + b[at];
  carry(sum);
}

// a - b, made positive by four times the modulus.
static void subtract(field difference, const field a, const field b) {
  for (int at = 0; at < 5; at++) difference[at] = a[at] + (at ? 4 * LIMB_MASK : 4 * (LIMB_MASK - 18)) - b[at];
  carry(difference);
}

static void multiply(field product, const field a, const field b) {
  unsigned __int128 sums[5] = {0};
  for (int left = 0; left < 5; left++)
    for (int right = 0; right < 5; right++) {
      unsigned __int128 part = (unsigned __int128)a[left] * b[right];
      sums[(left + right) % 5] += left + right < 5 ? part : 19 * part;
    }
  for (int at = 0; at < 4; at++) sums[at + 1] += (u64)(sums[at] >> LIMB_BITS), sums[at] &= LIMB_MASK;
  u64 over = (u64)(sums[4] >> LIMB_BITS);
  for (int at = 0; at < 5; at++) product[at] = (u64)sums[at] & LIMB_MASK;
  product[1] += (u64)(((unsigned __int128)over * 19 + product[0]) >> LIMB_BITS);
  product[0] = (u64)((unsigned __int128)over * 19 + product[0]) & LIMB_MASK;
}

// The 32 bytes of the only form below the modulus.
static void field_bytes(u8 *bytes, const field a) {
  field whole;
  memcpy(whole, a, sizeof whole);
  carry(whole), carry(whole);
  // One modulus more than there is carries into bit 255.
  u64 over = 19;
  for (int at = 0; at < 5; at++) over = (whole[at] + over) >> LIMB_BITS;
  over *= 19;
  memset(bytes, 0, 32);
  for (int at = 0; at < 5; at++) {
    whole[at] += over, over = whole[at] >> LIMB_BITS;
    for (int bit = 0; bit < LIMB_BITS; bit++) bytes[(LIMB_BITS * at + bit) / 8] |= (u8)((whole[at] >> bit & 1) << (LIMB_BITS * at + bit) % 8);
  }
}

static bool is_equal(const field a, const field b) {
  u8 left[32], right[32];
  field_bytes(left, a), field_bytes(right, b);
  return !memcmp(left, right, 32);
}

// a to the power of the number whose bits, from 254 down, are all 1 but for its last five, which are `low`.
static void power(field result, const field a, u32 top, u32 low) {
  field base, total;
  memcpy(base, a, sizeof base);
  memcpy(total, field_one, sizeof total);
  for (int bit = (int)top; bit >= 0; bit--) {
    multiply(total, total, total);
    if (bit >= 5 || low >> bit & 1) multiply(total, total, base);
  }
  memcpy(result, total, sizeof total);
}

// "add-2008-hwcd-3"
static void point_add(point sum, const point a, const point b) {
  field v[8];
  subtract(v[0], a[1], a[0]), subtract(v[1], b[1], b[0]), multiply(v[0], v[0], v[1]);
  add(v[1], a[1], a[0]), add(v[2], b[1], b[0]), multiply(v[1], v[1], v[2]);
  multiply(v[2], a[3], b[3]), multiply(v[2], v[2], curve_d), add(v[2], v[2], v[2]);
  multiply(v[3], a[2], b[2]), add(v[3], v[3], v[3]);
  subtract(v[4], v[1], v[0]), subtract(v[5], v[3], v[2]), add(v[6], v[3], v[2]), add(v[7], v[1], v[0]);
  multiply(sum[0], v[4], v[5]), multiply(sum[1], v[6], v[7]), multiply(sum[2], v[5], v[6]), multiply(sum[3], v[4], v[7]);
}

// Whether y, with the sign of x in bit 255, is a point in its shortest form.
static bool read_point(point p, const u8 *bytes) {
  field u, v, x, check;
  u8 again[32];
  memset(p, 0, sizeof(point));
  for (int bit = 0; bit < 255; bit++) p[1][bit / LIMB_BITS] |= (u64)(bytes[bit / 8] >> bit % 8 & 1) << bit % LIMB_BITS;
  memcpy(p[2], field_one, sizeof field_one);
  field_bytes(again, p[1]);
  again[31] |= bytes[31] & 0x80;
  if (memcmp(again, bytes, 32)) return false;
  multiply(u, p[1], p[1]), multiply(v, u, curve_d);
  subtract(u, u, field_one), add(v, v, field_one);
  // x = u v^3 (u v^7)^((p - 5) / 8)
  multiply(check, v, v), multiply(check, check, v), multiply(x, u, check);
  multiply(check, check, check), multiply(check, check, v), multiply(check, check, u);
  power(check, check, 251, 29), multiply(x, x, check);
  multiply(check, x, x), multiply(check, check, v);
  if (!is_equal(check, u)) {
    multiply(x, x, minus_one_root), multiply(check, x, x), multiply(check, check, v);
    if (!is_equal(check, u)) return false;
  }
  field_bytes(again, x);
  if ((again[0] & 1) != bytes[31] >> 7) subtract(x, (field){0}, x);
  field_bytes(again, x);
  if ((again[0] & 1) != bytes[31] >> 7) return false;  // 0 has no sign
  memcpy(p[0], x, sizeof x);
  multiply(p[3], p[0], p[1]);
  return true;
}

static const u8 group_order[32] = {0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10};

// Whether a number of `count` bytes is not below the order shifted by `shift` bits to the left; subtracts it then.
static bool take_order(u8 *number, int count, int shift) {
  u8 rest[65];
  int borrow = 0;
  for (int at = 0; at < count; at++) {
    int byte = at - shift / 8, part = 0;
    if (byte >= 0 && byte < 32) part = group_order[byte] << shift % 8 & 255;
    if (byte >= 1 && byte < 33) part |= group_order[byte - 1] >> (8 - shift % 8);
    borrow = number[at] - part - borrow;
    rest[at] = (u8)borrow, borrow = borrow < 0;
  }
  if (!borrow) memcpy(number, rest, (size_t)count);
  return !borrow;
}

static bool ed25519_key(point key, const u8 *bytes) {
  point multiple;
  if (!read_point(key, bytes)) return false;
  memcpy(multiple, key, sizeof multiple);
  for (int turn = 0; turn < 3; turn++) point_add(multiple, multiple, multiple);
  return !is_equal(multiple[0], (field){0});
}

// `message` is two parts, one behind the other.
static bool ed25519_verify(const u8 *key, const struct bytes message[2], const u8 *signature) {
  point points[4] = {{{0}}}, total;  // nothing, B, -A, B - A
  struct sha512 hash;
  u8 factor[64], number[32], bytes[32], x[32];
  memcpy(number, signature + 32, 32);
  if (!ed25519_key(points[2], key) || take_order(number, 32, 0)) return false;
  sha512_begin(&hash), sha512_add(&hash, signature, 32), sha512_add(&hash, key, 32);
  for (int part = 0; part < 2; part++) sha512_add(&hash, message[part].data, message[part].size);
  sha512_end(&hash, factor);
  for (int shift = 259; shift >= 0; shift--) take_order(factor, 64, shift);
  subtract(points[2][0], (field){0}, points[2][0]), subtract(points[2][3], (field){0}, points[2][3]);
  memcpy(points[1], base_point, sizeof base_point);
  point_add(points[3], points[1], points[2]);
  memcpy(points[0][1], field_one, sizeof field_one), memcpy(points[0][2], field_one, sizeof field_one);
  memcpy(total, points[0], sizeof total);
  for (int bit = 252; bit >= 0; bit--) {
    int chosen = (number[bit / 8] >> bit % 8 & 1) | (factor[bit / 8] >> bit % 8 & 1) << 1;
    point_add(total, total, total);
    if (chosen) point_add(total, total, points[chosen]);
  }
  power(total[2], total[2], 254, 11);
  multiply(total[0], total[0], total[2]), multiply(total[1], total[1], total[2]);
  field_bytes(x, total[0]), field_bytes(bytes, total[1]);
  bytes[31] |= (u8)(x[0] << 7);
  return !memcmp(bytes, signature, 32);
}
