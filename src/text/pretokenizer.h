// Cuts text into the pieces within which BPE may merge, by a regular expression.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace oasr {

// GPT-2's: contractions, and runs of letters, digits, other characters or white space.
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Thread-safe.
class Pretokenizer {
 public:
  // Compiles `pattern` with Unicode properties; \s and \S mean Unicode's White_Space, as in the
  // reference tokenizers (PCRE2's differ in U+180E). An empty pattern cuts nothing. Refuses
  // patterns that do not compile or are longer than 4096 bytes.
  static Result<Pretokenizer> make(std::string_view pattern);

  // Calls piece(bytes) for consecutive pieces whose concatenation is `text`. What the pattern does
  // not match is a piece of its own, and so is every run of bytes that is not UTF-8. A pattern
  // that backtracks without end gives up, and the rest of the text is one piece.
  void split(std::string_view text, const std::function<void(std::string_view)>& piece) const;

 private:
  struct Compiled;
  void split_valid(std::string_view text, const std::function<void(std::string_view)>& piece) const;
  std::shared_ptr<const Compiled> compiled_;  // none for an empty pattern
};

}  // namespace oasr
