#include "text/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "text/utf8.h"

namespace oasr {
namespace {

// Printable Latin-1 characters stand for themselves; the other 68 bytes are U+0100 and following,
// in byte order.
constexpr bool is_printable(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr unsigned kCodePoints = 0x100 + 68;

struct Alphabet {
  std::array<char16_t, 256> point{};             // by byte
  std::array<std::int16_t, kCodePoints> byte{};  // by code point, -1 if none
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  alphabet.byte.fill(-1);
  char16_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    alphabet.point[byte] = is_printable(byte) ? static_cast<char16_t>(byte) : next++;
    alphabet.byte[alphabet.point[byte]] = static_cast<std::int16_t>(byte);
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

std::optional<std::string> from_byte_alphabet(std::string_view token) {
  std::string bytes;
  bytes.reserve(token.size());
  while (!token.empty()) {
    const Utf8Sequence front = utf8_front(token);
    if (!front.valid) return std::nullopt;
    const char32_t point = utf8_decode(token.substr(0, front.size));
    if (point >= kCodePoints || kAlphabet.byte[point] < 0) return std::nullopt;
    bytes += static_cast<char>(kAlphabet.byte[point]);
    token.remove_prefix(front.size);
  }
  return bytes;
}

std::string to_byte_alphabet(std::string_view bytes) {
  std::string token;
  for (const char c : bytes) {
    const char16_t point = kAlphabet.point[static_cast<unsigned char>(c)];
    if (point < 0x80) {
      token += static_cast<char>(point);
    } else {
      token += static_cast<char>(0xC0 | (point >> 6));
      token += static_cast<char>(0x80 | (point & 0x3F));
    }
  }
  return token;
}

}  // namespace oasr
