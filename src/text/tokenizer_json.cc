// Hugging Face's tokenizer files: tokenizer.json, and vocab.json with merges.txt.
#include <algorithm>
#include <optional>

#include "base/json.h"
#include "text/byte_alphabet.h"
#include "text/vocabulary.h"

namespace oasr {
namespace {

constexpr std::size_t kMaxTokenizerBytes = std::size_t{256} << 20;

// A member, or nothing if it is absent or null.
const Json* member(const Json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found != object.end() && !found->is_null() ? &*found : nullptr;
}

// A string or boolean member; the default if absent or of another type.
std::string text_of(const Json& object, const char* name) {
  const Json* value = member(object, name);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}
bool flag_of(const Json& object, const char* name, bool otherwise) {
  const Json* value = member(object, name);
  return value != nullptr && value->is_boolean() ? value->get<bool>() : otherwise;
}

// An id; numbers that are no integers of 63 bits give nothing.
std::optional<std::int64_t> id_of(const Json& value) {
  if (value.is_number_unsigned() && value.get<std::uint64_t>() <= std::uint64_t{INT64_MAX}) {
    return value.get<std::int64_t>();
  }
  return value.is_number_integer() && !value.is_number_unsigned()
             ? std::optional(value.get<std::int64_t>())
             : std::nullopt;
}

// The bytes of a token or of a part of a merge.
std::string token_bytes(const std::string& spelled) {
  return from_byte_alphabet(spelled).value_or(spelled);
}

// {"token": id, …}
Status add_vocab(const Json& vocab, Vocabulary& out) {
  if (!vocab.is_object()) return out.error("the vocabulary is not an object of ids by token");
  for (const auto& [token, value] : vocab.items()) {
    const auto id = id_of(value);
    if (!id) return out.error("the id of token \"" + token + "\" is not an integer");
    const bool special = has_special_form(token);
    TRY(out.add(*id, special ? token : token_bytes(token), special));
  }
  return {};
}

// The three spellings of added tokens: [{"id", "content", "special"}], {"id": {"content", …}} and
// {"content": id}. An added token stands for itself, whatever the vocabulary says of its id.
Status add_added_tokens(const Json& added, Vocabulary& out) {
  if (!added.is_array() && !added.is_object())
    return out.error("added_tokens is neither a list nor an object");
  for (const auto& [key, value] : added.items()) {
    std::optional<std::int64_t> id;
    std::string content = key;
    bool special = true;
    if (value.is_object()) {
      const Json* own_id = member(value, "id");
      id = own_id != nullptr ? id_of(*own_id) : std::nullopt;
      if (added.is_object() && key.size() <= 9 && !key.empty() &&
          std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; })) {
        id = std::stoll(key);
      }
      content = text_of(value, "content");
      special = flag_of(value, "special", false) || has_special_form(content);
    } else {
      id = id_of(value);
    }
    if (!id || content.empty())
      return out.error("added token " + key + " has no integer id or no content");
    TRY(out.add(*id, std::move(content), special));
  }
  return {};
}

// ["a b", …] or [["a", "b"], …]
Status add_merges(const Json& merges, Vocabulary& out) {
  if (!merges.is_array()) return out.error("the merges are not a list");
  out.has_merges = true;
  out.merges.reserve(merges.size());
  for (const Json& merge : merges) {
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      out.merges.emplace_back(token_bytes(merge[0].get<std::string>()),
                              token_bytes(merge[1].get<std::string>()));
      continue;
    }
    const std::string text = merge.is_string() ? merge.get<std::string>() : std::string();
    const std::size_t space = text.find(' ');
    if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
      return out.error("merge " + std::to_string(out.merges.size()) + " is not a pair of tokens");
    }
    out.merges.emplace_back(token_bytes(text.substr(0, space)),
                            token_bytes(text.substr(space + 1)));
  }
  return {};
}

// ByteLevel, alone or after a Split by a regular expression.
Status read_pretokenizer(const Json& pretokenizer, Vocabulary& out, bool& byte_level) {
  const std::string type = text_of(pretokenizer, "type");
  const auto refuse = [&](const std::string& what) {
    return out.error("the pre-tokenizer " + what + " is not supported; byte-level BPE is",
                     ErrorCode::unsupported);
  };
  if (type == "Sequence") {
    const Json* steps = member(pretokenizer, "pretokenizers");
    if (steps == nullptr || !steps->is_array()) return refuse("Sequence without a list");
    for (const Json& step : *steps) {
      if (text_of(step, "type") == "Sequence") return refuse("Sequence in a Sequence");
      TRY(read_pretokenizer(step, out, byte_level));
    }
    return {};
  }
  if (type == "Split") {
    const Json* pattern = member(pretokenizer, "pattern");
    const std::string regex = pattern != nullptr ? text_of(*pattern, "Regex") : std::string();
    if (regex.empty() || text_of(pretokenizer, "behavior") != "Isolated" ||
        flag_of(pretokenizer, "invert", false)) {
      return refuse("Split other than by an isolated regular expression");
    }
    if (byte_level || out.pattern != kGpt2Pattern) return refuse("of more than one division");
    out.pattern = regex;
    return {};
  }
  if (type != "ByteLevel") return refuse("'" + type + "'");
  if (byte_level) return refuse("of two ByteLevel steps");
  byte_level = true;
  out.prefix_space = flag_of(pretokenizer, "add_prefix_space", true);
  const bool divides = flag_of(pretokenizer, "use_regex", true);
  if (divides && out.pattern != kGpt2Pattern) return refuse("of more than one division");
  if (!divides && out.pattern == kGpt2Pattern) out.pattern.clear();
  return {};
}

Status check_model(const Json& model, const Vocabulary& out) {
  const auto refuse = [&](const std::string& what) {
    return out.error("the tokenizer model " + what + " is not supported; byte-level BPE is",
                     ErrorCode::unsupported);
  };
  const std::string type = text_of(model, "type");
  if (!type.empty() && type != "BPE") return refuse("'" + type + "'");
  if (flag_of(model, "byte_fallback", false)) return refuse("with byte_fallback");
  for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!text_of(model, affix).empty()) return refuse(std::string("with ") + affix);
  }
  return {};
}

Status add_more_tokens(const TokenizerSource& source, Vocabulary& out) {
  if (source.added_tokens_json.empty()) return {};
  const Json added = TRY(parse_json(source.added_tokens_json, source.origin));
  return add_added_tokens(added, out);
}

Status check_size(std::size_t bytes, const TokenizerSource& source) {
  if (bytes <= kMaxTokenizerBytes) return {};
  return unexpected(ErrorCode::bad_checkpoint, "the tokenizer file is larger than 256 MiB",
                    source.origin);
}

}  // namespace

Result<Vocabulary> read_tokenizer_json(const TokenizerSource& source) {
  TRY(check_size(source.tokenizer_json.size(), source));
  const Json json = TRY(parse_json(source.tokenizer_json, source.origin));
  const Json* model = member(json, "model");
  const Json* vocab = model != nullptr ? member(*model, "vocab") : nullptr;
  const Json* merges = model != nullptr ? member(*model, "merges") : nullptr;
  const Json* added = member(json, "added_tokens");
  Vocabulary out((vocab != nullptr ? vocab->size() : 0) + (added != nullptr ? added->size() : 0),
                 source.origin);
  if (vocab == nullptr || merges == nullptr) return out.error("no model.vocab and model.merges");
  TRY(check_model(*model, out));
  if (const Json* normalizer = member(json, "normalizer");
      normalizer != nullptr && text_of(*normalizer, "type") != "NFC") {
    return out.error("the normalizer '" + text_of(*normalizer, "type") + "' is not supported",
                     ErrorCode::unsupported);
  }
  bool byte_level = false;
  if (const Json* pretokenizer = member(json, "pre_tokenizer")) {
    TRY(read_pretokenizer(*pretokenizer, out, byte_level));
  }
  if (!byte_level)
    return out.error("the tokenizer is not a byte-level BPE", ErrorCode::unsupported);
  out.whole_words = flag_of(*model, "ignore_merges", false);
  TRY(add_vocab(*vocab, out));
  if (added != nullptr) TRY(add_added_tokens(*added, out));
  TRY(add_more_tokens(source, out));
  TRY(add_merges(*merges, out));
  return out;
}

Result<Vocabulary> read_vocab_merges(const TokenizerSource& source) {
  TRY(check_size(source.vocab_json.size() + source.merges_txt.size(), source));
  const Json vocab = TRY(parse_json(source.vocab_json, source.origin));
  Vocabulary out(vocab.size(), source.origin);
  if (!source.pattern.empty()) out.pattern = source.pattern;
  TRY(add_vocab(vocab, out));
  TRY(add_more_tokens(source, out));
  Json merges = Json::array();
  std::string_view text = source.merges_txt;
  for (bool first = true; !text.empty(); first = false) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (first && line.starts_with("#version"))) continue;
    merges.push_back(std::string(line));
  }
  TRY(add_merges(merges, out));
  return out;
}

}  // namespace oasr
