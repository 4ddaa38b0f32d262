// What the readers of tokenizer files hand to the tokenizer. Internal to text.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/pretokenizer.h"
#include "text/token_id.h"
#include "text/tokenizer.h"

namespace oasr {

// Tokens by id, as they are collected.
class Vocabulary {
 public:
  // Expects about `tokens`: ids up to twice as many (and some more) are taken, so that memory
  // stays in proportion to what is really there.
  Vocabulary(std::size_t tokens, std::string origin);

  // Adds a token by its bytes. Errors: an id out of range or used for another token.
  Status add(std::int64_t id, std::string bytes, bool special);

  // Adds the architecture's name of a special token (see make_tokenizer).
  Status add_special(std::int64_t id, const std::string& name);

  Unexpected error(std::string what, ErrorCode code = ErrorCode::bad_checkpoint) const;

  std::vector<std::string> tokens;
  std::vector<bool> special;                                  // by id, as long as `tokens`
  std::vector<std::pair<std::string, TokenId>> second_names;  // of special tokens
  bool has_merges = false;                                    // else smaller ids merge first
  std::vector<std::pair<std::string, std::string>> merges;    // bytes of the parts, by rank
  std::string pattern{kGpt2Pattern};
  bool prefix_space = false;  // encode "a" as " a"
  bool whole_words = false;   // a piece that is a token needs no merges

 private:
  std::int64_t end_;  // of the ids that are taken
  std::string origin_;
};

// "<|en|>": the form of Whisper's and GPT-2's special tokens.
bool has_special_form(std::string_view token);

Result<Vocabulary> read_tokenizer_json(const TokenizerSource& source);
Result<Vocabulary> read_vocab_merges(const TokenizerSource& source);

}  // namespace oasr
