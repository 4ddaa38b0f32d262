// Whether a character is of a script that writes no spaces between words.
#pragma once

#include "text/utf8.h"  // is_space()

namespace oasr {

// Han, kana and Hangul, where a character is the unit of counting and timing: CJK Unified
// Ideographs with their extensions and compatibility forms, Hiragana, Katakana (also half-width),
// Hangul syllables and jamo.
bool is_written_without_spaces(char32_t point);

}  // namespace oasr
