#include "text/utf8.h"

#include <algorithm>
#include <utility>

#include "text/characters.h"

namespace oasr {
namespace {

unsigned byte_at(std::string_view bytes, std::size_t i) {
  return static_cast<unsigned char>(bytes[i]);
}

// What a lead byte allows: the length, and the range of the second byte.
struct Lead {
  std::size_t size;
  unsigned second_min, second_max;
};

Lead lead_of(unsigned byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};  // a continuation, or an overlong form
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte < 0xF0) return {3, byte == 0xE0 ? 0xA0U : 0x80U, byte == 0xED ? 0x9FU : 0xBFU};
  if (byte < 0xF5) return {4, byte == 0xF0 ? 0x90U : 0x80U, byte == 0xF4 ? 0x8FU : 0xBFU};
  return {0, 0, 0};
}

// Appends the characters of `bytes`; returns how many bytes at the end are unfinished.
std::size_t append_valid(std::string_view bytes, std::string& out) {
  while (!bytes.empty()) {
    const Utf8Sequence front = utf8_front(bytes);
    if (front.unfinished) return bytes.size();
    out += front.valid ? bytes.substr(0, front.size) : kReplacementCharacter;
    bytes.remove_prefix(front.size);
  }
  return 0;
}

}  // namespace

Utf8Sequence utf8_front(std::string_view bytes) {
  const Lead lead = lead_of(byte_at(bytes, 0));
  if (lead.size == 0) return {.size = 1};
  for (std::size_t i = 1; i < lead.size; ++i) {
    if (i == bytes.size()) return {.size = i, .unfinished = true};
    const unsigned byte = byte_at(bytes, i);
    const unsigned min = i == 1 ? lead.second_min : 0x80, max = i == 1 ? lead.second_max : 0xBF;
    if (byte < min || byte > max) return {.size = i};
  }
  return {.size = lead.size, .valid = true};
}

char32_t utf8_decode(std::string_view sequence) {
  if (sequence.size() == 1) return byte_at(sequence, 0);
  char32_t point = byte_at(sequence, 0) & (0x7FU >> sequence.size());
  for (std::size_t i = 1; i < sequence.size(); ++i)
    point = (point << 6) | (byte_at(sequence, i) & 0x3F);
  return point;
}

std::string to_valid_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  if (append_valid(bytes, out) != 0) out += kReplacementCharacter;
  return out;
}

bool is_space(char32_t point) {
  return (point >= 0x09 && point <= 0x0D) || (point >= 0x1C && point <= 0x20) || point == 0x85 ||
         point == 0xA0 || point == 0x1680 || (point >= 0x2000 && point <= 0x200A) ||
         point == 0x2028 || point == 0x2029 || point == 0x202F || point == 0x205F ||
         point == 0x3000;
}

std::string_view strip(std::string_view valid_utf8) {
  std::size_t begin = valid_utf8.size(), end = 0;
  for (std::size_t at = 0; at < valid_utf8.size();) {
    const std::size_t size = utf8_front(valid_utf8.substr(at)).size;
    if (!is_space(utf8_decode(valid_utf8.substr(at, size)))) {
      begin = std::min(begin, at);
      end = at + size;
    }
    at += size;
  }
  return begin < end ? valid_utf8.substr(begin, end - begin) : std::string_view();
}

std::string Utf8Stream::push(std::string_view bytes) {
  pending_ += bytes;
  std::string out;
  const std::size_t left = append_valid(pending_, out);
  pending_.erase(0, pending_.size() - left);
  return out;
}

std::string Utf8Stream::finish() {
  const std::string left = std::exchange(pending_, {});
  return to_valid_utf8(left);
}

}  // namespace oasr
