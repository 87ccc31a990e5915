// What `numpy.savez_compressed` wrote: DEFLATE (RFC 1951), decoded bit by bit, for size and not for speed.
//
// In: a compressed member of an archive, its size. Out: its bytes. Not done here: the checksum (`arrays.c`).
#include "internal.h"

enum { CODE_BITS_MAX = 15, LITERAL_COUNT = 288, DISTANCE_COUNT = 32, EXTRA_BITS_MAX = 13, END_OF_BLOCK = 256 };

// After a failure all bits are 0.
struct inflater {
  const u8 *in, *in_end;
  u8 *begin, *out, *end;
  u64 bits;
  u32 bit_count;
  bool fails;
};

// A code: how many symbols each length has, and the symbols in the order of their codes.
struct huffman {
  u16 counts[CODE_BITS_MAX + 1], symbols[LITERAL_COUNT];
};

static u32 take_bits(struct inflater *inflater, u32 count) {
  for (; inflater->bit_count < count; inflater->bit_count += 8) {
    if (inflater->in == inflater->in_end) return inflater->fails = true, 0;
    inflater->bits |= (u64)*inflater->in++ << inflater->bit_count;
  }
  u32 value = (u32)(inflater->bits & (((u64)1 << count) - 1));
  inflater->bits >>= count, inflater->bit_count -= count;
  return value;
}

static void make_huffman(struct inflater *inflater, struct huffman *huffman, const u8 *lengths, u32 count) {
  u16 offsets[CODE_BITS_MAX + 2] = {0};
  i32 left = 1;
  memset(huffman->counts, 0, sizeof huffman->counts);
  for (u32 symbol = 0; symbol < count; symbol++) huffman->counts[lengths[symbol]]++;
  huffman->counts[0] = 0;
  for (u32 length = 1; length <= CODE_BITS_MAX; length++) {
    left = 2 * left - huffman->counts[length];
    if (left < 0) inflater->fails = true;
    offsets[length + 1] = (u16)(offsets[length] + huffman->counts[length]);
  }
  u32 used = offsets[CODE_BITS_MAX + 1];
  if (left > 0 && used != huffman->counts[1]) inflater->fails = true;  // a code is complete, or of one symbol, or of none
  for (u32 symbol = 0; symbol < count; symbol++)
    if (lengths[symbol]) huffman->symbols[offsets[lengths[symbol]]++] = (u16)symbol;
}

static u32 decode_symbol(struct inflater *inflater, const struct huffman *huffman) {
  u32 code = 0, first = 0, at = 0;
  for (u32 length = 1; length <= CODE_BITS_MAX && !inflater->fails; length++) {
    code |= take_bits(inflater, 1);
    u32 count = huffman->counts[length];
    if (code - first < count) return huffman->symbols[at + code - first];
    at += count, first = (first + count) << 1, code <<= 1;
  }
  return inflater->fails = true, END_OF_BLOCK;
}

// Symbols of lengths (in fours) and distances (in twos) stand for ranges, each group of ranges twice as wide as the one before.
static u32 ranged(struct inflater *inflater, u32 symbol, u32 group) {
  u32 extra = symbol < group ? 0 : symbol / group - 1;
  if (extra > EXTRA_BITS_MAX) return inflater->fails = true, 0;
  return symbol < group ? symbol : ((group + symbol % group) << extra) + take_bits(inflater, extra);
}

static void inflate_codes(struct inflater *inflater, const struct huffman *literals, const struct huffman *distances) {
  for (u32 symbol; (symbol = decode_symbol(inflater, literals)) != END_OF_BLOCK;) {
    u64 room = (u64)(inflater->end - inflater->out), done = (u64)(inflater->out - inflater->begin);
    if (symbol < END_OF_BLOCK) {
      if (!room) inflater->fails = true;
      else *inflater->out++ = (u8)symbol;
      if (!room) return;
      continue;
    }
    u32 length = symbol == 285 ? 258 : 3 + ranged(inflater, symbol - 257, 4);
    u32 distance = 1 + ranged(inflater, decode_symbol(inflater, distances), 2);
    if (inflater->fails || symbol > 285 || distance > done || length > room) {
      inflater->fails = true;
      return;
    }
    for (; length > 0; length--, inflater->out++) *inflater->out = inflater->out[-(i64)distance];
  }
}

// Reads the lengths of both codes, which are coded themselves.
static u32 read_lengths(struct inflater *inflater, u8 *lengths, u32 *literal_count) {
  static const u8 order[] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  struct huffman huffman;
  u8 own[sizeof order] = {0};
  *literal_count = 257 + take_bits(inflater, 5);
  u32 count = *literal_count + 1 + take_bits(inflater, 5), code_count = 4 + take_bits(inflater, 4);
  for (u32 index = 0; index < code_count; index++) own[order[index]] = (u8)take_bits(inflater, 3);
  make_huffman(inflater, &huffman, own, sizeof own);
  for (u32 index = 0; index < count && !inflater->fails;) {
    u32 symbol = decode_symbol(inflater, &huffman), times = 1;
    u8 length = symbol == 16 && index ? lengths[index - 1] : symbol < 16 ? (u8)symbol : 0;
    if (symbol >= 16) times = symbol == 16 ? 3 + take_bits(inflater, 2) : symbol == 17 ? 3 + take_bits(inflater, 3) : 11 + take_bits(inflater, 7);
    if (symbol > 18 || times > count - index || (symbol == 16 && !index)) inflater->fails = true;
    else
      for (; times > 0; times--) lengths[index++] = length;
  }
  return count;
}

static void inflate_block(struct inflater *inflater, bool is_fixed) {
  struct huffman literals, distances;
  u8 lengths[LITERAL_COUNT + DISTANCE_COUNT] = {0};
  u32 literal_count = LITERAL_COUNT, count = LITERAL_COUNT + DISTANCE_COUNT;
  if (is_fixed) memset(lengths, 8, 144), memset(lengths + 144, 9, 112), memset(lengths + 256, 7, 24), memset(lengths + 280, 8, 8), memset(lengths + 288, 5, 32);
  else count = read_lengths(inflater, lengths, &literal_count);
  make_huffman(inflater, &literals, lengths, literal_count);
  make_huffman(inflater, &distances, lengths + literal_count, count - literal_count);
  inflate_codes(inflater, &literals, &distances);
}

static void inflate_stored(struct inflater *inflater) {
  inflater->bits = 0, inflater->bit_count = 0;
  u64 left = (u64)(inflater->in_end - inflater->in), size = left < 4 ? 0 : word_at(inflater->in, 0, 2);
  if (left < 4 || (size ^ word_at(inflater->in, 2, 2)) != 0xffff || size > left - 4 || size > (u64)(inflater->end - inflater->out)) {
    inflater->fails = true;
    return;
  }
  if (size) memcpy(inflater->out, inflater->in + 4, size);
  inflater->in += 4 + size, inflater->out += size;
}

// Whether exactly `size` bytes come out.
static bool inflate(const u8 *data, u64 data_size, u8 *out, u64 size) {
  struct inflater inflater = {.in = data, .in_end = data + data_size, .begin = out, .out = out, .end = out + size};
  for (bool is_last = false; !is_last && !inflater.fails;) {
    is_last = take_bits(&inflater, 1);
    u32 kind = take_bits(&inflater, 2);
    if (kind == 0) inflate_stored(&inflater);
    else if (kind < 3) inflate_block(&inflater, kind == 1);
    else inflater.fails = true;
  }
  return !inflater.fails && inflater.out == inflater.end;
}
