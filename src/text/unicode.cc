#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "text/utf8.h"

namespace oasr {
namespace {

bool is_ascii(std::u32string_view text) {
  return std::all_of(text.begin(), text.end(), [](char32_t c) { return c < 0x80; });
}

std::u32string normal_form(std::u32string_view text, int form) {
  if (is_ascii(text)) return std::u32string(text);
  const std::string bytes = to_utf8(text);
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPAT | form);
  const auto* input = reinterpret_cast<const utf8proc_uint8_t*>(bytes.data());
  const auto size = static_cast<utf8proc_ssize_t>(bytes.size());
  // A character decomposes into at most 18 (U+FDFA).
  std::vector<utf8proc_int32_t> buffer(text.size() * 18);
  auto points = utf8proc_decompose(input, size, buffer.data(),
                                   static_cast<utf8proc_ssize_t>(buffer.size()), options);
  CHECK(points >= 0 && static_cast<std::size_t>(points) <= buffer.size(),
        "the text is well formed");
  if (form == UTF8PROC_COMPOSE) points = utf8proc_normalize_utf32(buffer.data(), points, options);
  return {buffer.begin(), buffer.begin() + points};
}

bool is_cased(char32_t point) {
  const auto name = category(point);
  return name == "Lu" || name == "Ll" || name == "Lt";
}

bool is_case_ignorable(char32_t point) {
  constexpr std::u32string_view kMidLetters = U"'.:\u00B7\u2018\u2019\u2024\u2027";
  const auto name = category(point);
  return name == "Mn" || name == "Me" || name == "Cf" || name == "Lm" || name == "Sk" ||
         kMidLetters.find(point) != std::u32string_view::npos;
}

// Unicode's Final_Sigma, with letters of the categories Lu, Ll and Lt for Cased.
bool is_final_sigma(std::u32string_view text, std::size_t at) {
  std::size_t before = at;
  while (before > 0 && is_case_ignorable(text[before - 1])) --before;
  if (before == 0 || !is_cased(text[before - 1])) return false;
  std::size_t after = at + 1;
  while (after < text.size() && is_case_ignorable(text[after])) ++after;
  return after == text.size() || !is_cased(text[after]);
}

}  // namespace

std::u32string to_utf32(std::string_view utf8) {
  std::u32string text;
  text.reserve(utf8.size());
  while (!utf8.empty()) {
    const auto front = utf8_front(utf8);
    text += front.valid ? utf8_decode(utf8.substr(0, front.size)) : U'\uFFFD';
    utf8.remove_prefix(front.size);
  }
  return text;
}

std::string to_utf8(std::u32string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char32_t point : text) {
    utf8proc_uint8_t bytes[4];
    const auto size = utf8proc_encode_char(static_cast<utf8proc_int32_t>(point), bytes);
    out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  }
  return out;
}

std::string_view category(char32_t point) {
  return utf8proc_category_string(static_cast<utf8proc_int32_t>(point));
}

bool is_word_character(char32_t point) {
  if (point < 0x80) {
    return (point >= 'a' && point <= 'z') || (point >= 'A' && point <= 'Z') ||
           (point >= '0' && point <= '9') || point == '_';
  }
  const char kind = category(point)[0];
  return kind == 'L' || kind == 'N';
}

bool is_decimal(char32_t point) {
  if (point < 0x80) return point >= '0' && point <= '9';
  return category(point) == "Nd";
}

int decimal_value(char32_t point) {
  if (point < 0x80) return static_cast<int>(point - '0');
  // The digits of a script are ten code points in order; digits of two scripts may be neighbours.
  char32_t first = point;
  while (is_decimal(first - 1)) --first;
  return static_cast<int>((point - first) % 10);
}

std::u32string lower(std::u32string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char32_t point = text[i];
    if (point < 0x80) {
      out += point >= 'A' && point <= 'Z' ? point + 32 : point;
    } else if (point == U'\u0130') {
      out += U"i\u0307";
    } else if (point == U'\u03A3') {
      out += is_final_sigma(text, i) ? U'\u03C2' : U'\u03C3';
    } else {
      out += static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(point)));
    }
  }
  return out;
}

std::u32string upper(std::u32string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for (const char32_t point : text) {
    if (point == U'\u00DF') {
      out += U"SS";
    } else {
      out += static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(point)));
    }
  }
  return out;
}

std::u32string nfkd(std::u32string_view text) { return normal_form(text, UTF8PROC_DECOMPOSE); }

std::u32string nfkc(std::u32string_view text) { return normal_form(text, UTF8PROC_COMPOSE); }

}  // namespace oasr
