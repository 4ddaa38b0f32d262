#include "text/normalizer/normalizer.h"

#include <array>

#include "text/normalizer/steps.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace oasr {
namespace normalizer {

Text basic(View text) {
  Text out;
  for (const char32_t point : nfkc(without_brackets(lower(text)))) {
    out += is_symbol(point) ? U' ' : point;
  }
  return with_single_spaces(lower(out));
}

}  // namespace normalizer

std::span<const EnumName<Normalizer>> normalizer_names() {
  static constexpr std::array kNames = {
      EnumName<Normalizer>{Normalizer::none, "none"},
      EnumName<Normalizer>{Normalizer::basic, "basic"},
      EnumName<Normalizer>{Normalizer::whisper_english, "whisper-english"},
      EnumName<Normalizer>{Normalizer::chinese_chars, "chinese-chars"},
  };
  return kNames;
}

std::string normalize(Normalizer normalizer, std::string_view utf8) {
  switch (normalizer) {
    case Normalizer::none:
      return to_valid_utf8(utf8);
    case Normalizer::basic:
      return to_utf8(normalizer::basic(to_utf32(utf8)));
    case Normalizer::whisper_english:
      return to_utf8(normalizer::english(to_utf32(utf8)));
    case Normalizer::chinese_chars:
      return to_utf8(normalizer::chinese_chars(to_utf32(utf8)));
  }
  return {};
}

}  // namespace oasr
