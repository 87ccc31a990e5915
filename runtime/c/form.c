// Formats and numbers without the C library's, which would be a tenth of the whole program and may ask the locale.
//
// In: a format as printf's; decimal digits. Out: text; numbers. Not done here: errors (`text.c`). Conversions: %s, %.*s, %c, %d, %u,
// %lld, %llu; %02x and %04X with any width; %.6g with any digit for 6 (halves may be
// rounded either way).
#include "internal.h"

// `at` goes on where the text ends, so that it tells the whole length.
struct writer {
  char *text;
  size_t size, at;
};

static void write_char(struct writer *writer, char one) {
  if (writer->at + 1 < writer->size) writer->text[writer->at] = one;
  writer->at++;
}

static void write_text(struct writer *writer, const char *text, size_t size) {
  for (size_t at = 0; at < size && text[at]; at++) write_char(writer, text[at]);
}

// Writes at least `width` digits; `ten` is the digit for ten.
static void write_digits(struct writer *writer, u64 value, u32 base, int width, char ten) {
  char digits[64];
  int count = 0;
  for (; (value || count < width) && count < (int)sizeof digits; value /= base) {
    u32 digit = (u32)(value % base);
    digits[count++] = (char)(digit < 10 ? '0' + digit : ten + (digit - 10));
  }
  while (count) write_char(writer, digits[--count]);
}

// Writes the digits of `value`, whose first counts `power`: a point behind `before` of them, no zeros at the end behind it.
static void write_fraction(struct writer *writer, u64 value, u64 power, int before) {
  for (; power && (before > 0 || value); power /= 10, before--) {
    if (before == 0) write_char(writer, '.');
    write_char(writer, (char)('0' + value / power));
    value %= power;
  }
}

static void write_double(struct writer *writer, double value, int digits) {
  u64 power = 1, bits;
  int exponent = digits - 1;
  memcpy(&bits, &value, 8);
  if (bits >> 63 && value == value) write_char(writer, '-'), value = -value;
  if (value != value || value > 1.7976931348623157e308 || value == 0) {
    write_text(writer, value == 0 ? "0" : value != value ? "nan" : "inf", 3);
    return;
  }
  for (int digit = 1; digit < digits; digit++) power *= 10;
  for (; value >= 10 * (double)power - 0.5; exponent++) value /= 10;
  for (; value < (double)power - 0.05; exponent--) value *= 10;
  bits = (u64)(value + 0.5);
  if (exponent >= digits || exponent < -4) {
    write_fraction(writer, bits, power, 1);
    write_char(writer, 'e'), write_char(writer, exponent < 0 ? '-' : '+');
    write_digits(writer, (u64)(exponent < 0 ? -exponent : exponent), 10, 2, 0);
    return;
  }
  if (exponent < 0) write_text(writer, "0.0000", (size_t)(1 - exponent));
  if (exponent < 0) write_fraction(writer, bits, power, -1);
  else write_fraction(writer, bits, power, exponent + 1);
}

// Writes at most `size` bytes, with a zero at the end; returns the length of the whole text.
static size_t write_form(char *text, size_t size, const char *form, va_list arguments) {
  struct writer writer = {text, size, 0};
  for (; *form; form++) {
    int width = 1, precision = 0, length = 0;
    if (*form != '%') {
      write_char(&writer, *form);
      continue;
    }
    if (*++form == '.' && form[1] == '*') form += 2, precision = va_arg(arguments, int);
    else if (*form == '.') precision = form[1] - '0', form += 2;
    else if (*form == '0') width = form[1] - '0', form += 2;
    for (; *form == 'l'; form++) length++;
    if (*form == 's') {
      const char *given = va_arg(arguments, const char *);
      write_text(&writer, given, form[-1] == '*' ? (size_t)precision : SIZE_MAX);
    } else if (*form == 'c') write_char(&writer, (char)va_arg(arguments, int));
    else if (*form == 'g') write_double(&writer, va_arg(arguments, double), precision);
    else if (*form == 'd') {
      i64 value = length ? va_arg(arguments, long long) : va_arg(arguments, int);
      if (value < 0) write_char(&writer, '-');
      write_digits(&writer, value < 0 ? -(u64)value : (u64)value, 10, 1, 0);
    } else {
      u64 value = length ? va_arg(arguments, unsigned long long) : va_arg(arguments, u32);
      write_digits(&writer, value, *form == 'u' ? 10 : 16, width, *form == 'X' ? 'A' : 'a');
    }
  }
  if (size) text[writer.at < size ? writer.at : size - 1] = 0;
  return writer.at;
}

// Writes into an array; what does not fit is cut off.
#define WRITE(array, ...) write_into(array, sizeof(array), __VA_ARGS__)
__attribute__((format(printf, 3, 4))) static size_t write_into(char *text, size_t size, const char *form, ...) {
  va_list arguments;
  va_start(arguments, form);
  size_t length = write_form(text, size, form, arguments);
  va_end(arguments);
  return length;
}

// Reads decimal digits, and moves behind them; what 63 bits cannot hold becomes the largest number that they can.
static i64 read_digits(const char **at) {
  u64 value = 0;
  for (; **at >= '0' && **at <= '9'; ++*at) value = value > INT64_MAX / 10 - 1 ? INT64_MAX : value * 10 + (u64)(**at - '0');
  return (i64)value;
}

// How many characters are before the first `one`, or the end.
static size_t size_until(const char *text, char one) {
  size_t at = 0;
  while (text[at] && text[at] != one) at++;
  return at;
}

// Where `one` is in `text`; null if it is not there.
static const char *find_char(const char *text, char one) {
  text += size_until(text, one);
  return *text ? text : NULL;
}

// How many of the first characters of `text` are in `set`.
static size_t span(const char *text, const char *set) {
  size_t at = 0;
  while (text[at] && find_char(set, text[at])) at++;
  return at;
}

// Where `part` begins in `text`; null if it does not.
static const char *find_text(const char *text, const char *part) {
  for (size_t size = strlen(part); *text; text++)
    if (!strncmp(text, part, size)) return text;
  return NULL;
}

// Moves behind `text` if it comes next.
__attribute__((unused)) static bool skip_text(const char **at, const char *text) {
  size_t size = strlen(text);
  bool is_next = !strncmp(*at, text, size);
  *at += is_next ? size : 0;
  return is_next;
}
