// Normalizers of texts before words are compared: the same on the reference and on the hypothesis.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_table.h"

namespace oasr {

enum class Normalizer : std::uint8_t {
  none,             // the text as it is
  basic,            // openai-whisper's BasicTextNormalizer, for any language
  whisper_english,  // openai-whisper's EnglishTextNormalizer
  chinese_chars,    // WeNet's compute-wer with --char=1: upper case, CJK one by one, Latin words
                    // whole
};

// "none", "basic", "whisper-english", "chinese-chars".
std::span<const EnumName<Normalizer>> normalizer_names();

// Well-formed UTF-8; ill-formed input becomes U+FFFD first. Words are what white space separates.
// Never fails. openai-whisper 20250625 is followed to the byte, spaces at the ends included.
std::string normalize(Normalizer normalizer, std::string_view utf8);

}  // namespace oasr
