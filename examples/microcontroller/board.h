// What a program needs of the board: text out, and an end.
#pragma once
#include <stdint.h>

void print(const char *text);
