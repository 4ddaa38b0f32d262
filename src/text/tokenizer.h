// Text to token ids and back. Byte-level BPE serves every Whisper container.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace oasr {

using TokenId = std::int32_t;

// What a checkpoint holds of a tokenizer, before it is built. Exactly one way is used; the
// checkpoint reader fills it, the text module builds from it.
struct TokenizerSource {
  // "tokenizer_json", "vocab_merges", "ranks" (bytes in rank order, tiktoken, ggml),
  // "vocabulary" (CTranslate2: tokens in id order in the printable byte alphabet), "none"
  std::string kind = "none";
  std::string tokenizer_json;                        // file texts
  std::string vocab_json, merges_txt, added_tokens_json;
  std::vector<std::string> tokens;                   // ranks or vocabulary, by id
  std::string origin;                                // "tokenizer.json", for reports
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Ids of ordinary text: special tokens in the text are NOT recognised (they are spelled out).
  // Invalid UTF-8 is encoded byte by byte.
  virtual std::vector<TokenId> encode(std::string_view text) const = 0;

  // The bytes of the tokens, concatenated; special and timestamp tokens give nothing. The result
  // may end inside a UTF-8 character (see Utf8Stream). Ids out of range give nothing.
  virtual std::string decode(std::span<const TokenId> ids) const = 0;

  // The bytes of one token; special tokens by their text ("<|en|>").
  virtual std::string token_bytes(TokenId id) const = 0;

  // A token by its exact text, special ones included: "<|transcribe|>" -> 50359.
  virtual std::optional<TokenId> id_of(std::string_view text) const = 0;

  virtual bool is_special(TokenId id) const = 0;

  // Ids are in [0, size()).
  virtual int size() const = 0;

  // (content, id) of special tokens in id order.
  virtual const std::vector<std::pair<std::string, TokenId>>& special_tokens() const = 0;
};

// Builds from a source. For "ranks" and "vocabulary" without special tokens, the caller (the
// architecture) passes them in id order after the last rank.
Result<std::shared_ptr<const Tokenizer>> make_tokenizer(
    const TokenizerSource& source,
    std::span<const std::pair<std::string, TokenId>> special_tokens = {});

// Whisper's special tokens in id order for a vocabulary of `size` (51864, 51865, 51866, …), first
// id 50256 (English) or 50257 (multilingual): <|endoftext|>, <|startoftranscript|>, languages,
// <|translate|>, <|transcribe|>, <|startoflm|>, <|startofprev|>, <|nospeech|>, <|notimestamps|>,
// <|0.00|> … <|30.00|>.
std::vector<std::pair<std::string, TokenId>> whisper_special_tokens(int vocabulary_size);

// Whisper's language code to English name ("de" -> "german"), in id order; and the aliases that
// its command line takes ("castilian" -> "es").
std::span<const std::pair<std::string_view, std::string_view>> whisper_languages();
std::optional<std::string> whisper_language_code(std::string_view code_or_name);

// Joins token bytes into valid UTF-8: holds back an unfinished character until it is complete.
class Utf8Stream {
 public:
  // Complete characters so far; ill-formed sequences become U+FFFD.
  std::string push(std::string_view bytes);
  // What is left, an unfinished character as U+FFFD.
  std::string finish();

 private:
  std::string pending_;
};

// `bytes` with ill-formed sequences replaced by U+FFFD (one per maximal subpart).
std::string to_valid_utf8(std::string_view bytes);

}  // namespace oasr
