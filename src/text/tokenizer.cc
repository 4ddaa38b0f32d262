#include "text/tokenizer.h"

#include <unordered_map>

#include "base/check.h"
#include "text/bpe.h"
#include "text/byte_alphabet.h"
#include "text/piece_tokenizer.h"
#include "text/pretokenizer.h"
#include "text/vocabulary.h"

namespace oasr {
namespace {

class ByteLevelBpe final : public Tokenizer {
 public:
  ByteLevelBpe(const Vocabulary& vocabulary, std::shared_ptr<const TokenTable> tokens,
               BpeEncoder encoder, Pretokenizer pretokenizer)
      : tokens_(std::move(tokens)),
        special_(vocabulary.special),
        prefix_space_(vocabulary.prefix_space),
        encoder_(std::move(encoder)),
        pretokenizer_(std::move(pretokenizer)) {
    for (std::size_t id = 0; id < special_.size(); ++id) {
      if (!special_[id]) continue;
      special_tokens_.emplace_back(vocabulary.tokens[id], static_cast<TokenId>(id));
      special_ids_.emplace(vocabulary.tokens[id], static_cast<TokenId>(id));
    }
    for (const auto& [name, id] : vocabulary.second_names) special_ids_.emplace(name, id);
  }

  std::vector<TokenId> encode(std::string_view text) const override {
    std::string prefixed;
    if (prefix_space_ && !text.empty() && text.front() != ' ')
      text = prefixed.assign(" ").append(text);
    std::vector<TokenId> ids;
    pretokenizer_.split(text, [&](std::string_view piece) { encoder_.encode(piece, ids); });
    return ids;
  }

  std::string decode(std::span<const TokenId> ids) const override {
    std::string bytes;
    for (const TokenId id : ids) {
      if (exists(id) && !is_special(id)) bytes += (*tokens_)[id];
    }
    return bytes;
  }

  std::string token_bytes(TokenId id) const override {
    return exists(id) ? std::string((*tokens_)[id]) : std::string();
  }

  std::optional<TokenId> id_of(std::string_view text) const override {
    if (const auto found = special_ids_.find(std::string(text)); found != special_ids_.end())
      return found->second;
    const TokenId id = tokens_->find(text);
    return id >= 0 ? std::optional(id) : std::nullopt;
  }

  bool is_special(TokenId id) const override {
    return exists(id) && special_[static_cast<std::size_t>(id)];
  }

  int size() const override { return static_cast<int>(tokens_->size()); }

  const std::vector<std::pair<std::string, TokenId>>& special_tokens() const override {
    return special_tokens_;
  }

 private:
  bool exists(TokenId id) const { return id >= 0 && id < size(); }

  std::shared_ptr<const TokenTable> tokens_;
  std::vector<bool> special_;  // by id
  std::vector<std::pair<std::string, TokenId>> special_tokens_;
  std::unordered_map<std::string, TokenId> special_ids_;
  bool prefix_space_;
  BpeEncoder encoder_;
  Pretokenizer pretokenizer_;
};

// Tokens as bytes, in the order in which they merge.
Result<Vocabulary> read_ranks(const TokenizerSource& source) {
  Vocabulary out(source.tokens.size(), source.origin);
  out.whole_words = true;
  if (!source.pattern.empty()) out.pattern = source.pattern;
  for (std::size_t id = 0; id < source.tokens.size(); ++id) {
    const bool special = has_special_form(source.tokens[id]);
    TRY(out.add(static_cast<std::int64_t>(id), source.tokens[id], special));
  }
  return out;
}

// Tokens in the byte alphabet in id order, special ones among them. That is also the order in
// which they merge: a vocabulary of byte-level BPE grows by one token a merge.
Result<Vocabulary> read_vocabulary(const TokenizerSource& source) {
  Vocabulary out(source.tokens.size(), source.origin);
  out.whole_words = true;
  if (!source.pattern.empty()) out.pattern = source.pattern;
  for (std::size_t id = 0; id < source.tokens.size(); ++id) {
    const std::string& token = source.tokens[id];
    const bool special = has_special_form(token);
    TRY(out.add(static_cast<std::int64_t>(id),
                special ? token : from_byte_alphabet(token).value_or(token), special));
  }
  return out;
}

Result<Vocabulary> read_source(const TokenizerSource& source) {
  if (source.kind == "tokenizer_json") return read_tokenizer_json(source);
  if (source.kind == "vocab_merges") return read_vocab_merges(source);
  if (source.kind == "ranks") return read_ranks(source);
  if (source.kind == "vocabulary") return read_vocabulary(source);
  if (source.kind == "none") {
    return unexpected(ErrorCode::not_found, "the checkpoint has no tokenizer", source.origin,
                      "put tokenizer.json beside the weights");
  }
  CHECK(false, "a tokenizer source of unknown kind");
}

// The merges of a vocabulary by the ids of their parts.
Result<std::optional<BpeEncoder::Merges>> resolve_merges(const Vocabulary& vocabulary,
                                                         const TokenTable& tokens) {
  if (!vocabulary.has_merges) return std::optional<BpeEncoder::Merges>();
  BpeEncoder::Merges merges;
  merges.reserve(vocabulary.merges.size());
  for (std::size_t rank = 0; rank < vocabulary.merges.size(); ++rank) {
    const auto& [left, right] = vocabulary.merges[rank];
    const TokenId left_id = tokens.find(left), right_id = tokens.find(right),
                  id = tokens.find(left + right);
    if (left_id < 0 || right_id < 0 || id < 0) {
      return vocabulary.error("merge " + std::to_string(rank) +
                              " is of tokens that the vocabulary lacks");
    }
    merges.insert_or_assign(BpeEncoder::pair_key(left_id, right_id),
                            BpeEncoder::Merge{static_cast<std::int32_t>(rank), id});
  }
  return std::optional(std::move(merges));
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> make_tokenizer(
    const TokenizerSource& source,
    std::span<const std::pair<std::string, TokenId>> special_tokens) {
  if (source.kind == "units" || source.kind == "sentencepiece") {
    return make_piece_tokenizer(source, special_tokens);
  }
  Vocabulary vocabulary = TRY(read_source(source));
  for (const auto& [name, id] : special_tokens) TRY(vocabulary.add_special(id, name));
  if (vocabulary.tokens.empty()) return vocabulary.error("the tokenizer has no tokens");
  auto tokens = std::make_shared<const TokenTable>(vocabulary.tokens, vocabulary.special);
  auto merges = TRY(resolve_merges(vocabulary, *tokens));
  auto pretokenizer = TRY(Pretokenizer::make(vocabulary.pattern));
  BpeEncoder encoder(*tokens, std::move(merges), vocabulary.whole_words);
  return std::shared_ptr<const Tokenizer>(std::make_shared<ByteLevelBpe>(
      vocabulary, std::move(tokens), std::move(encoder), std::move(pretokenizer)));
}

}  // namespace oasr
