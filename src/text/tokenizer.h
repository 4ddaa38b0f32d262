// Text to token ids and back: byte-level BPE of every Whisper container, tables of pieces of CTC
// models.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/token_id.h"
#include "text/utf8.h"

namespace oasr {

// What a checkpoint holds of a tokenizer, before it is built. Exactly one way is used; the
// checkpoint reader fills it, the text module builds from it.
struct TokenizerSource {
  // "tokenizer_json", "vocab_merges", "ranks" (bytes in rank order, tiktoken, ggml),
  // "vocabulary" (CTranslate2: tokens in id order in the printable byte alphabet), "units" (a
  // symbol table, with a SentencePiece model for encoding if there is one), "sentencepiece" (ids
  // are the model's), "none"
  std::string kind = "none";
  std::string tokenizer_json = {};  // file texts
  std::string vocab_json = {};
  std::string merges_txt = {};
  std::string added_tokens_json = {};    // of vocab_merges, and more tokens for tokenizer_json
  std::vector<std::string> tokens = {};  // ranks or vocabulary, by id
  std::string pattern = {};    // the pre-tokenizer's where the source has none; empty: GPT-2's
  std::string origin = {};     // "tokenizer.json", for reports
  std::string units_txt = {};  // lines of a token and its id
  std::string sentencepiece_model = {};  // the bytes of bpe.model
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Ids of ordinary text: special tokens in the text are NOT recognised (they are spelled out).
  // Invalid UTF-8 is encoded byte by byte.
  virtual std::vector<TokenId> encode(std::string_view text) const = 0;

  // Why encode() can not serve: a table of pieces does not say how text divides into them. It then
  // gives nothing.
  virtual Status can_encode() const { return {}; }

  // The bytes of the tokens, concatenated; special and timestamp tokens give nothing. The result
  // may end inside a UTF-8 character (see Utf8Stream). Ids out of range give nothing.
  virtual std::string decode(std::span<const TokenId> ids) const = 0;

  // The bytes of one token; special tokens by their text ("<|en|>").
  virtual std::string token_bytes(TokenId id) const = 0;

  // A token by its exact bytes, special ones included: "<|transcribe|>" -> 50359.
  virtual std::optional<TokenId> id_of(std::string_view text) const = 0;

  // Tokens that are no text: those that the source declares special, and all of the form <|…|>.
  virtual bool is_special(TokenId id) const = 0;

  // Ids are in [0, size()).
  virtual int size() const = 0;

  // (content, id) of special tokens in id order.
  virtual const std::vector<std::pair<std::string, TokenId>>& special_tokens() const = 0;
};

// Builds from a source. `special_tokens` are the architecture's names of ids: of tokens that the
// source lacks (ranks have none, a tokenizer.json may lack the timestamps), or second names of
// special tokens that it has ("<|nospeech|>" for "<|nocaptions|>"); giving a name to an ordinary
// token is an error. Hostile sources cost memory in proportion to their size.
// Byte-level BPE does not normalise: a normaliser NFC is taken as promised by the caller.
//
// Of "units": ▁ and <space> are a space, "<0xE4>" a byte, <blank>, <unk>, <sos/eos> and their kin
// are special; so decode() begins with the space of the first word. encode() takes text in either
// case if the table has letters (A to Z) of one; ideographs, kana and Hangul that are units stand
// for themselves, and the SentencePiece model divides the rest; without a model, a table whose
// units are all single characters encodes character by character, other tables not at all. What has
// no unit is <unk>, or -1 if the table has none. `special_tokens` must be special in the table.
Result<std::shared_ptr<const Tokenizer>> make_tokenizer(
    const TokenizerSource& source,
    std::span<const std::pair<std::string, TokenId>> special_tokens = {});

// Whisper's special tokens in id order for a vocabulary of `vocabulary_size`: 51864 is English,
// with the first id 50256; larger ones are multilingual, first id 50257, with 99 languages in
// 51865 and one more from 51866 on: <|endoftext|>, <|startoftranscript|>, languages,
// <|translate|>, <|transcribe|>, <|startoflm|>, <|startofprev|>, <|nospeech|>, <|notimestamps|>,
// <|0.00|> … <|30.00|>. None for smaller sizes.
std::vector<std::pair<std::string, TokenId>> whisper_special_tokens(int vocabulary_size);

// Whisper's 100 language codes and English names ({"de", "german"}), in id order.
std::span<const std::pair<std::string_view, std::string_view>> whisper_languages();

// The code of a language given by code, English name or one of the aliases of Whisper's command
// line ("German" -> "de", "castilian" -> "es"), in any case.
std::optional<std::string> whisper_language_code(std::string_view code_or_name);

}  // namespace oasr
