#include "engine/unicode.h"

#include <algorithm>
#include <array>

#include "text/tokenizer.h"

namespace oasr::engine {
namespace {

// Python's str.isspace, which the reference strips by.
bool is_space(char32_t c) {
  constexpr std::array<char32_t, 9> kOthers{0x20,   0x85,   0xA0,   0x1680, 0x2028,
                                            0x2029, 0x202F, 0x205F, 0x3000};
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F) || (c >= 0x2000 && c <= 0x200A) ||
         std::find(kOthers.begin(), kOthers.end(), c) != kOthers.end();
}

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// The code point at `text[begin …]` of `size` bytes, well-formed.
char32_t decode_one(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (text.size() == 1) return first;
  char32_t value = first & (0xFFu >> (text.size() + 1));
  for (const char byte : text.substr(1)) {
    value = value << 6 | (static_cast<unsigned char>(byte) & 0x3Fu);
  }
  return value;
}

}  // namespace

std::string_view strip(std::string_view text) {
  while (!text.empty()) {
    std::size_t size = 1;
    while (size < text.size() && continues(text[size])) ++size;
    if (!is_space(decode_one(text.substr(0, size)))) break;
    text.remove_prefix(size);
  }
  while (!text.empty()) {
    std::size_t begin = text.size() - 1;
    while (begin > 0 && continues(text[begin])) --begin;
    if (!is_space(decode_one(text.substr(begin)))) break;
    text.remove_suffix(text.size() - begin);
  }
  return text;
}

std::u32string code_points(std::string_view bytes) {
  const std::string text = to_valid_utf8(bytes);
  std::u32string points;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t size = 1;
    while (i + size < text.size() && continues(text[i + size])) ++size;
    points.push_back(decode_one(std::string_view(text).substr(i, size)));
    i += size;
  }
  return points;
}

}  // namespace oasr::engine
