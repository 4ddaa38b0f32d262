#include "engine/word_split.h"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/unicode.h"

namespace oasr::engine {
namespace {

constexpr char32_t kReplacement = 0xFFFD;
constexpr std::string_view kPunctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";

bool without_spaces(std::string_view language) {
  constexpr std::array<std::string_view, 6> kCodes{"zh", "ja", "th", "lo", "my", "yue"};
  return std::find(kCodes.begin(), kCodes.end(), language) != kCodes.end();
}

// The shortest groups of tokens that hold whole characters. Where the text itself holds U+FFFD,
// ill-formed bytes are a group of their own.
std::vector<TokenWord> split_characters(std::span<const TokenId> tokens,
                                        const Tokenizer& tokenizer) {
  const std::u32string whole = code_points(tokenizer.decode(tokens));
  std::vector<TokenWord> groups;
  std::vector<TokenId> current;
  std::size_t offset = 0;
  for (const TokenId id : tokens) {
    current.push_back(id);
    const std::string bytes = tokenizer.decode(current);
    const std::u32string points = code_points(bytes);
    const std::size_t bad = points.find(kReplacement);
    const bool complete = bad == std::u32string::npos ||
                          (offset + bad < whole.size() && whole[offset + bad] == kReplacement);
    if (!complete) continue;
    groups.push_back({to_valid_utf8(bytes), std::exchange(current, {})});
    offset += points.size();
  }
  return groups;
}

}  // namespace

std::vector<TokenWord> split_words(std::span<const TokenId> tokens, const Tokenizer& tokenizer,
                                   std::string_view language) {
  auto groups = split_characters(tokens, tokenizer);
  if (without_spaces(language)) return groups;
  std::vector<TokenWord> words;
  for (TokenWord& group : groups) {
    const bool begins = words.empty() || group.text.starts_with(' ') ||
                        kPunctuation.find(strip(group.text)) != std::string_view::npos;
    if (begins) {
      words.push_back(std::move(group));
      continue;
    }
    words.back().text += group.text;
    words.back().tokens.insert(words.back().tokens.end(), group.tokens.begin(), group.tokens.end());
  }
  return words;
}

}  // namespace oasr::engine
