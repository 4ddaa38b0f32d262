#include "text/characters.h"

#include <algorithm>
#include <array>

namespace oasr {
namespace {

struct Range {
  char32_t first, last;
};

constexpr std::array kWithoutSpaces = {
    Range{0x1100, 0x11FF},    // Hangul Jamo
    Range{0x3005, 0x3007},    // iteration mark, closing mark, zero
    Range{0x3040, 0x30FF},    // Hiragana, Katakana
    Range{0x3130, 0x318F},    // Hangul Compatibility Jamo
    Range{0x31F0, 0x31FF},    // Katakana Phonetic Extensions
    Range{0x3400, 0x4DBF},    // Ideographs, extension A
    Range{0x4E00, 0x9FFF},    // Ideographs
    Range{0xA960, 0xA97F},    // Hangul Jamo Extended-A
    Range{0xAC00, 0xD7FF},    // Hangul Syllables, Jamo Extended-B
    Range{0xF900, 0xFAFF},    // Compatibility Ideographs
    Range{0xFF66, 0xFFDC},    // half-width Katakana and Hangul
    Range{0x20000, 0x323AF},  // Ideographs, extensions B to H and compatibility supplement
};

}  // namespace

bool is_written_without_spaces(char32_t point) {
  const auto range =
      std::lower_bound(kWithoutSpaces.begin(), kWithoutSpaces.end(), point,
                       [](const Range& entry, char32_t wanted) { return entry.last < wanted; });
  return range != kWithoutSpaces.end() && range->first <= point;
}

}  // namespace oasr
