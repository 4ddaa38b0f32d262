#include "decode/context_phrases.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/utf8.h"

namespace oasr::decode {

Result<std::vector<ContextPhrase>> encode_phrases(const Tokenizer& tokenizer,
                                                  std::span<const TextPhrase> phrases) {
  std::vector<ContextPhrase> encoded;
  if (phrases.empty()) return encoded;
  TRY(tokenizer.can_encode());
  encoded.reserve(phrases.size());
  for (std::size_t i = 0; i < phrases.size(); ++i) {
    const std::string text = to_valid_utf8(phrases[i].text);
    const auto bad = [&](const char* what, const char* remedy) {
      return unexpected(ErrorCode::invalid_argument,
                        fmt::format("context phrase {}, '{}', {}", i + 1, text, what),
                        "context phrases", remedy);
    };
    std::vector<TokenId> tokens = tokenizer.encode(strip(text));
    if (tokens.empty()) return bad("is blank", "leave it out");
    const auto unknown = [&](TokenId id) { return id < 0 || tokenizer.is_special(id); };
    if (std::any_of(tokens.begin(), tokens.end(), unknown)) {
      return bad("has characters that the model can not write", "spell it with those that it can");
    }
    encoded.push_back({std::move(tokens), phrases[i].weight});
  }
  return encoded;
}

}  // namespace oasr::decode
