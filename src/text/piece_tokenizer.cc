#include "text/piece_tokenizer.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/characters.h"
#include "text/sentencepiece.h"
#include "text/units.h"
#include "text/utf8.h"
#include "text/vocabulary.h"

namespace oasr {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // ▁, U+2581
constexpr std::string_view kSpaceUnit = "<space>";       // of tables of characters

std::string with_spaces(std::string_view unit) {
  if (unit == kSpaceUnit) return " ";
  std::string text;
  while (!unit.empty()) {
    if (unit.starts_with(kSpaceMark)) {
      text += ' ';
      unit.remove_prefix(kSpaceMark.size());
    } else {
      text += unit.front();
      unit.remove_prefix(1);
    }
  }
  return text;
}

// A token as its table has it.
struct Unit {
  std::string spelling;  // "▁HE"; "" is an id that the table leaves out
  bool special = false;
};

bool is_one_character(std::string_view text) {
  return !text.empty() && utf8_front(text).size == text.size();
}

enum class Case { any, upper, lower };

class PieceTokenizer final : public Tokenizer {
 public:
  PieceTokenizer(std::vector<Unit> units, std::vector<std::pair<std::string, TokenId>> names,
                 std::shared_ptr<const SentencePieces> model, bool ids_are_the_models,
                 std::string origin)
      : units_(std::move(units)),
        model_(std::move(model)),
        ids_are_the_models_(ids_are_the_models),
        origin_(std::move(origin)) {
    bool upper = false, lower = false;
    for (std::size_t i = 0; i < units_.size(); ++i) {
      const auto id = static_cast<TokenId>(i);
      const Unit& unit = units_[i];
      if (unit.spelling.empty()) {
        bytes_.emplace_back();
        continue;
      }
      const int byte = unit_byte(unit.spelling);
      bytes_.push_back(unit.special ? unit.spelling
                       : byte >= 0  ? std::string(1, static_cast<char>(byte))
                                    : with_spaces(unit.spelling));
      by_spelling_.emplace(unit.spelling, id);
      by_bytes_.emplace(bytes_.back(), id);
      if (unit.special) {
        special_tokens_.emplace_back(unit.spelling, id);
        continue;
      }
      if (byte >= 0) continue;
      if (unit.spelling == kSpaceUnit) continue;
      characters_ = characters_ && is_one_character(unit.spelling);
      for (const char c : unit.spelling) {
        upper = upper || (c >= 'A' && c <= 'Z');
        lower = lower || (c >= 'a' && c <= 'z');
      }
    }
    if (upper != lower) case_ = upper ? Case::upper : Case::lower;
    for (auto& [name, id] : names) by_bytes_.emplace(std::move(name), id);
    for (const char* name : {"<unk>", "<UNK>"}) {
      if (const auto found = by_spelling_.find(name); found != by_spelling_.end()) {
        unknown_ = found->second;
      }
    }
  }

  std::vector<TokenId> encode(std::string_view text) const override {
    if (!can_encode()) return {};
    if (ids_are_the_models_) return model_->ids(text);
    const std::string cased = in_the_tables_case(to_valid_utf8(text));
    return model_ ? encode_runs(cased) : encode_characters(cased);
  }

  Status can_encode() const override {
    if (model_ || characters_) return {};
    return unexpected(ErrorCode::unsupported,
                      "a table of pieces does not say how text divides into them", origin_,
                      "put the SentencePiece model (bpe.model) beside it");
  }

  std::string decode(std::span<const TokenId> ids) const override {
    std::string text;
    for (const TokenId id : ids) {
      if (exists(id) && !is_special(id)) text += bytes_[static_cast<std::size_t>(id)];
    }
    return text;
  }

  std::string token_bytes(TokenId id) const override {
    return exists(id) ? bytes_[static_cast<std::size_t>(id)] : std::string();
  }

  std::optional<TokenId> id_of(std::string_view text) const override {
    const auto found = by_bytes_.find(std::string(text));
    return found == by_bytes_.end() ? std::nullopt : std::optional(found->second);
  }

  bool is_special(TokenId id) const override {
    return exists(id) && units_[static_cast<std::size_t>(id)].special;
  }

  int size() const override { return static_cast<int>(units_.size()); }

  const std::vector<std::pair<std::string, TokenId>>& special_tokens() const override {
    return special_tokens_;
  }

 private:
  bool exists(TokenId id) const { return id >= 0 && id < size(); }

  TokenId unit_id(const std::string& spelling) const {
    const auto found = by_spelling_.find(spelling);
    return found == by_spelling_.end() || is_special(found->second) ? unknown_ : found->second;
  }

  std::string in_the_tables_case(std::string text) const {
    for (char& c : text) {
      if (case_ == Case::upper && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
      if (case_ == Case::lower && c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return text;
  }

  // Characters of scripts without spaces that are units of their own stand alone; the model divides
  // what lies between them.
  std::vector<TokenId> encode_runs(std::string_view text) const {
    std::vector<TokenId> ids;
    std::string run;
    const auto flush = [&] {
      for (const std::string& piece : model_->pieces(strip(run))) ids.push_back(unit_id(piece));
      run.clear();
    };
    while (!text.empty()) {
      const std::string character(text.substr(0, utf8_front(text).size));
      text.remove_prefix(character.size());
      if (is_written_without_spaces(utf8_decode(character)) && by_spelling_.contains(character)) {
        flush();
        ids.push_back(unit_id(character));
      } else {
        run += character;
      }
    }
    flush();
    return ids;
  }

  std::vector<TokenId> encode_characters(std::string_view text) const {
    std::vector<TokenId> ids;
    text = strip(text);
    const auto space = id_of(" ");
    while (!text.empty()) {
      const std::string_view character = text.substr(0, utf8_front(text).size);
      text.remove_prefix(character.size());
      if (!is_space(utf8_decode(character))) {
        ids.push_back(unit_id(std::string(character)));
      } else if (space) {
        ids.push_back(*space);
      }
    }
    return ids;
  }

  std::vector<Unit> units_;  // by id
  std::vector<std::string> bytes_;
  std::unordered_map<std::string, TokenId> by_spelling_, by_bytes_;
  std::vector<std::pair<std::string, TokenId>> special_tokens_;
  std::shared_ptr<const SentencePieces> model_;  // null: none
  bool ids_are_the_models_;
  bool characters_ = true;  // every unit is one character
  Case case_ = Case::any;
  TokenId unknown_ = -1;
  std::string origin_;
};

Result<std::vector<Unit>> units_of_table(const TokenizerSource& source) {
  std::vector<std::string> spellings = TRY(read_units(source.units_txt, source.origin));
  std::vector<Unit> units;
  units.reserve(spellings.size());
  for (std::string& spelling : spellings) {
    const bool special = is_special_unit(spelling) || has_special_form(spelling);
    units.push_back({std::move(spelling), special});
  }
  return units;
}

std::vector<Unit> units_of_model(const SentencePieces& model) {
  std::vector<Unit> units;
  for (int id = 0; id < model.size(); ++id) {
    const auto kind = model.kind(id);
    const bool special =
        kind == SentencePieces::Kind::control || kind == SentencePieces::Kind::unknown;
    units.push_back({model.piece(id), special});
  }
  return units;
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> make_piece_tokenizer(
    const TokenizerSource& source,
    std::span<const std::pair<std::string, TokenId>> special_tokens) {
  const bool table = source.kind == "units";
  std::shared_ptr<const SentencePieces> model;
  if (!table || !source.sentencepiece_model.empty()) {
    model = TRY(SentencePieces::load(source.sentencepiece_model, source.origin));
  }
  std::vector<Unit> units;
  if (table) {
    units = TRY(units_of_table(source));
  } else {
    units = units_of_model(*model);
  }
  std::vector<std::pair<std::string, TokenId>> names;
  for (const auto& [name, id] : special_tokens) {
    const auto at = static_cast<std::size_t>(id);
    if (id < 0 || at >= units.size() || units[at].spelling.empty()) {
      return unexpected(ErrorCode::bad_checkpoint,
                        name + " has the id " + std::to_string(id) + ", which is not in the table",
                        source.origin);
    }
    if (!units[at].special) {
      return unexpected(ErrorCode::bad_checkpoint,
                        "id " + std::to_string(id) + " is the ordinary token '" +
                            units[at].spelling + "', but should be " + name,
                        source.origin);
    }
    names.emplace_back(name, id);
  }
  return std::shared_ptr<const Tokenizer>(std::make_shared<PieceTokenizer>(
      std::move(units), std::move(names), std::move(model), !table, source.origin));
}

}  // namespace oasr
