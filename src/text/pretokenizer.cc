#include "text/pretokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "text/utf8.h"

namespace oasr {
namespace {

constexpr std::size_t kMaxPattern = 4096;
constexpr std::uint32_t kMaxSteps = 1'000'000;  // of one match; the known patterns need few

// Spells out \s and \S as White_Space: U+0009 to U+000D, U+0085 and the categories Zs, Zl, Zp.
std::string with_unicode_space(std::string_view pattern) {
  constexpr std::string_view kSpace = R"(\t-\r\x{85}\p{Z})";
  std::string out;
  bool in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const char escaped = pattern[++i];
      if (escaped == 's') {
        out += in_class ? std::string(kSpace) : "[" + std::string(kSpace) + "]";
      } else if (escaped == 'S' && !in_class) {
        out += "[^" + std::string(kSpace) + "]";
      } else {
        out += {'\\', escaped};
      }
      continue;
    }
    if (c == '[' && !in_class) {
      in_class = true;
    } else if (c == ']') {
      in_class = false;
    }
    out += c;
  }
  return out;
}

}  // namespace

struct Pretokenizer::Compiled {
  ~Compiled() {
    pcre2_code_free(code);
    pcre2_match_context_free(limits);
  }
  pcre2_code* code = nullptr;
  pcre2_match_context* limits = nullptr;
};

Result<Pretokenizer> Pretokenizer::make(std::string_view pattern) {
  Pretokenizer result;
  if (pattern.empty()) return result;
  const auto refuse = [&](const std::string& why) {
    return unexpected(ErrorCode::unsupported,
                      "the pre-tokenizer's pattern is not understood: " + why);
  };
  if (pattern.size() > kMaxPattern)
    return refuse("longer than " + std::to_string(kMaxPattern) + " bytes");
  const std::string spelled = with_unicode_space(pattern);
  auto compiled = std::make_shared<Compiled>();
  int error = 0;
  PCRE2_SIZE offset = 0;
  compiled->code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(spelled.data()), spelled.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &offset, nullptr);
  if (compiled->code == nullptr) {
    PCRE2_UCHAR message[256] = {};
    pcre2_get_error_message(error, message, sizeof(message));
    return refuse(std::string(reinterpret_cast<const char*>(message)) + " at byte " +
                  std::to_string(offset));
  }
  compiled->limits = pcre2_match_context_create(nullptr);
  pcre2_set_match_limit(compiled->limits, kMaxSteps);
  pcre2_set_heap_limit(compiled->limits, 65536);  // KiB
  result.compiled_ = std::move(compiled);
  return result;
}

void Pretokenizer::split(std::string_view text,
                         const std::function<void(std::string_view)>& piece) const {
  // PCRE2 would check the rest of the text for every piece; the division into valid runs is made
  // once here, and PCRE2 is told that they are valid.
  while (!text.empty()) {
    std::size_t size = 0;
    const bool valid = utf8_front(text).valid;
    while (size < text.size()) {
      const Utf8Sequence front = utf8_front(text.substr(size));
      if (front.valid != valid) break;
      size += front.size;
    }
    if (valid) {
      split_valid(text.substr(0, size), piece);
    } else {
      piece(text.substr(0, size));
    }
    text.remove_prefix(size);
  }
}

void Pretokenizer::split_valid(std::string_view text,
                               const std::function<void(std::string_view)>& piece) const {
  if (compiled_ == nullptr) return piece(text);
  const std::unique_ptr<pcre2_match_data, void (*)(pcre2_match_data*)> match(
      pcre2_match_data_create_from_pattern(compiled_->code, nullptr), pcre2_match_data_free);
  const PCRE2_SIZE* const range = pcre2_get_ovector_pointer(match.get());
  std::size_t done = 0;
  while (done < text.size()) {
    const int found =
        pcre2_match(compiled_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), done,
                    PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, match.get(), compiled_->limits);
    if (found < 0 || range[0] < done || range[1] <= range[0]) break;  // none, or \K games
    if (range[0] > done) piece(text.substr(done, range[0] - done));
    piece(text.substr(range[0], range[1] - range[0]));
    done = range[1];
  }
  if (done < text.size()) piece(text.substr(done));
}

}  // namespace oasr
