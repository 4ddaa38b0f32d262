#include "text/word_split.h"

#include <algorithm>
#include <array>

namespace oasr {
namespace {

constexpr std::array<std::string_view, 6> kUnspacedLanguages = {"zh", "ja", "th",
                                                                "lo", "my", "yue"};
constexpr std::string_view kPunctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";

std::u32string code_points(std::string_view valid_utf8) {
  std::u32string points;
  while (!valid_utf8.empty()) {
    const std::size_t size = utf8_front(valid_utf8).size;
    points += utf8_decode(valid_utf8.substr(0, size));
    valid_utf8.remove_prefix(size);
  }
  return points;
}

// Groups that end where their bytes are whole characters, or where the full text has a U+FFFD at
// the same place.
std::vector<WordTokens> split_at_characters(const Tokenizer& tokenizer,
                                            std::span<const TokenId> tokens) {
  constexpr char32_t kReplacement = 0xFFFD;
  std::string bytes;
  for (const TokenId token : tokens) bytes += tokenizer.token_bytes(token);
  const std::u32string full = code_points(to_valid_utf8(bytes));
  std::vector<WordTokens> words;
  WordTokens current;
  std::size_t offset = 0;  // characters of `full` that are in `words`
  bytes.clear();
  for (const TokenId token : tokens) {
    current.tokens.push_back(token);
    bytes += tokenizer.token_bytes(token);
    current.text = to_valid_utf8(bytes);
    const std::u32string points = code_points(current.text);
    const std::size_t broken = points.find(kReplacement);
    if (broken != std::u32string::npos &&
        (offset + broken >= full.size() || full[offset + broken] != kReplacement)) {
      continue;
    }
    offset += points.size();
    words.push_back(std::move(current));
    current = {};
    bytes.clear();
  }
  if (!current.tokens.empty()) words.push_back(std::move(current));
  return words;
}

}  // namespace

std::vector<WordTokens> split_to_words(const Tokenizer& tokenizer, std::span<const TokenId> tokens,
                                       std::string_view language) {
  auto groups = split_at_characters(tokenizer, tokens);
  if (std::find(kUnspacedLanguages.begin(), kUnspacedLanguages.end(), language) !=
      kUnspacedLanguages.end()) {
    return groups;
  }
  std::vector<WordTokens> words;
  for (WordTokens& group : groups) {
    const bool begins = words.empty() || tokenizer.is_special(group.tokens.front()) ||
                        group.text.starts_with(' ') ||
                        kPunctuation.find(strip(group.text)) != std::string_view::npos;
    if (begins) {
      words.push_back(std::move(group));
    } else {
      words.back().text += group.text;
      words.back().tokens.insert(words.back().tokens.end(), group.tokens.begin(),
                                 group.tokens.end());
    }
  }
  return words;
}

}  // namespace oasr
