#include "models/whisper/tokens.h"

#include <algorithm>
#include <set>

#include "base/json.h"
#include "models/whisper/known_sizes.h"

namespace oasr::models::whisper {
namespace {

struct SpecialToken {
  TokenId AedTokens::* member;
  std::string_view name, old_name;
};
constexpr SpecialToken kSpecialTokens[] = {
    {&AedTokens::eot, "<|endoftext|>", ""},
    {&AedTokens::sot, "<|startoftranscript|>", ""},
    {&AedTokens::translate, "<|translate|>", ""},
    {&AedTokens::transcribe, "<|transcribe|>", ""},
    {&AedTokens::sot_lm, "<|startoflm|>", ""},
    {&AedTokens::sot_prev, "<|startofprev|>", ""},
    {&AedTokens::no_speech, "<|nospeech|>", "<|nocaptions|>"},
    {&AedTokens::no_timestamps, "<|notimestamps|>", ""},
};

// Annotations that openai-whisper keeps out of transcripts. A symbol with several tokens is left
// alone, except the musical ones, whose first token stands for nothing but such symbols.
constexpr std::string_view kSymbols[] = {
    "\"", "#",  "(",  ")",  "*",   "+",   "/",  ":",  ";",   "<",   "=",  ">",  "@",  "[",  "\\",
    "]",  "^",  "_",  "`",  "{",   "|",   "}",  "~",  "「",  "」",  "『", "』", "<<", ">>", "<<<",
    ">>>", "--", "---", "-(", "-[", "('", "(\"", "((", "))", "(((", ")))", "[[", "]]", "{{", "}}",
    "♪♪", "♪♪♪"};
constexpr std::string_view kMusicalSymbols[] = {"♩", "♪", "♫", "♬", "♭", "♮", "♯"};

// The configuration documents in order of precedence.
Result<std::vector<std::pair<std::string, Json>>> documents(const Checkpoint& checkpoint) {
  std::vector<std::pair<std::string, Json>> parsed;
  for (const std::string name : {"generation_config.json", "config.json"}) {
    const auto found = checkpoint.documents.find(name);
    if (found == checkpoint.documents.end()) continue;
    Json json = TRY(parse_json(found->second, name));
    if (json.is_object()) parsed.emplace_back(name, std::move(json));
  }
  return parsed;
}

struct Found {
  std::string where;  // "generation_config.json: suppress_tokens"
  Json value;
};

// The first value that is not null, of a key by Hugging Face's or CTranslate2's name.
std::optional<Found> first_value(const std::vector<std::pair<std::string, Json>>& documents,
                                 std::string_view key, std::string_view ct2_key) {
  for (const auto& [name, json] : documents) {
    for (const std::string_view k : {key, ct2_key}) {
      const auto found = json.find(k);
      if (found != json.end() && !found->is_null()) return Found{name + ": " + std::string(k), *found};
    }
  }
  return std::nullopt;
}

Result<std::vector<TokenId>> id_list(const Found& found, int vocabulary_size) {
  std::vector<TokenId> ids;
  bool good = found.value.is_array();
  for (std::size_t i = 0; good && i < found.value.size(); ++i) {
    const Json& id = found.value[i];
    good = id.is_number_integer() && id >= 0 && id < vocabulary_size;
    if (good) ids.push_back(id.get<TokenId>());
  }
  if (!good) {
    return unexpected(ErrorCode::bad_checkpoint, "must be a list of token ids below " +
                                                     std::to_string(vocabulary_size),
                      found.where);
  }
  return ids;
}

Result<std::vector<AlignmentHead>> head_list(const Found& found, const Config& config) {
  std::vector<AlignmentHead> heads;
  const auto within = [](const Json& value, int limit) {
    return value.is_number_integer() && value >= 0 && value < limit;
  };
  bool good = found.value.is_array();
  for (std::size_t i = 0; good && i < found.value.size(); ++i) {
    const Json& head = found.value[i];
    good = head.is_array() && head.size() == 2 && within(head[0], config.decoder_layers) &&
           within(head[1], config.decoder_attention_heads);
    if (good) heads.emplace_back(head[0].get<int>(), head[1].get<int>());
  }
  if (!good) {
    return unexpected(ErrorCode::bad_checkpoint, "must be pairs of a decoder layer and a head",
                      found.where);
  }
  return heads;
}

// "<|de|>", "<|haw|>": two or three small letters.
std::optional<std::string> language_of(std::string_view token) {
  if (token.size() < 6 || token.size() > 7 || !token.starts_with("<|") || !token.ends_with("|>")) {
    return std::nullopt;
  }
  const std::string_view code = token.substr(2, token.size() - 4);
  if (!std::ranges::all_of(code, [](char c) { return c >= 'a' && c <= 'z'; })) return std::nullopt;
  return std::string(code);
}

Status read_special_ids(const Tokenizer& tokenizer, int vocabulary_size, AedTokens& tokens) {
  for (const SpecialToken& row : kSpecialTokens) {
    auto id = tokenizer.id_of(row.name);
    if (!id && !row.old_name.empty()) id = tokenizer.id_of(row.old_name);
    if (!id) {
      return unexpected(ErrorCode::bad_checkpoint, "has no token " + std::string(row.name),
                        "tokenizer", "use the tokenizer files that belong to this model");
    }
    if (*id >= vocabulary_size) {
      return unexpected(ErrorCode::bad_checkpoint,
                        std::string(row.name) + " has the id " + std::to_string(*id) +
                            ", outside the model's vocabulary of " + std::to_string(vocabulary_size),
                        "tokenizer", "use the tokenizer files that belong to this model");
    }
    tokens.*row.member = *id;
  }
  tokens.timestamp_begin = tokenizer.id_of("<|0.00|>").value_or(tokens.no_timestamps + 1);
  return {};
}

void sort_unique(std::vector<TokenId>& ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());  // clang 14 lacks ranges::unique
}

}  // namespace

std::vector<TokenId> non_speech_tokens(const Tokenizer& tokenizer) {
  std::vector<TokenId> ids;
  const auto add_first = [&](const std::string& text, bool alone_only) {
    const std::vector<TokenId> tokens = tokenizer.encode(text);
    if (!tokens.empty() && (tokens.size() == 1 || !alone_only)) ids.push_back(tokens[0]);
  };
  // Hyphens and quotes are fine between words, not where a word begins.
  add_first(" -", false);
  add_first(" '", false);
  for (const std::string prefix : {"", " "}) {
    for (const std::string_view symbol : kSymbols) add_first(prefix + std::string(symbol), true);
    for (const std::string_view symbol : kMusicalSymbols) add_first(prefix + std::string(symbol), false);
  }
  sort_unique(ids);
  return ids;
}

Result<bool> is_multilingual(const Checkpoint& checkpoint, const Config& config) {
  const auto json = TRY(documents(checkpoint));
  if (const auto found = first_value(json, "is_multilingual", "is_multilingual")) {
    if (found->value.is_boolean()) return found->value.get<bool>();
  }
  return config.vocab_size > kEnglishVocabulary;
}

Result<AedTokens> read_tokens(const Checkpoint& checkpoint, const Config& config,
                              const Tokenizer& tokenizer) {
  AedTokens tokens;
  TRY(read_special_ids(tokenizer, config.vocab_size, tokens));
  const bool multilingual = TRY(is_multilingual(checkpoint, config));
  if (multilingual) {
    for (const auto& [text, id] : tokenizer.special_tokens()) {
      const auto code = language_of(text);
      if (code && id < config.vocab_size) tokens.languages.emplace_back(*code, id);
    }
  }
  const auto json = TRY(documents(checkpoint));
  if (const auto found = first_value(json, "suppress_tokens", "suppress_ids")) {
    tokens.suppress = TRY(id_list(*found, config.vocab_size));
  } else {
    tokens.suppress = non_speech_tokens(tokenizer);
  }
  for (const TokenId id : {tokens.sot, tokens.sot_prev, tokens.sot_lm, tokens.no_speech,
                           tokens.transcribe, tokens.translate}) {
    tokens.suppress.push_back(id);
  }
  sort_unique(tokens.suppress);
  if (const auto found = first_value(json, "begin_suppress_tokens", "suppress_ids_begin")) {
    tokens.begin_suppress = TRY(id_list(*found, config.vocab_size));
  } else {
    tokens.begin_suppress = tokenizer.encode(" ");
    tokens.begin_suppress.push_back(tokens.eot);
  }
  if (const auto found = first_value(json, "alignment_heads", "alignment_heads")) {
    tokens.alignment_heads = TRY(head_list(*found, config));
  } else {
    tokens.alignment_heads = default_alignment_heads(config, multilingual);
  }
  return tokens;
}

}  // namespace oasr::models::whisper
