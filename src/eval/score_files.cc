#include "eval/score_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "base/enum_table.h"
#include "base/json.h"
#include "eval/lines.h"
#include "eval/manifest.h"
#include "oasr/eval.h"
#include "text/utf8.h"

namespace oasr {
namespace eval {
namespace {

constexpr std::array kFormats = {
    EnumName<TextFormat>{TextFormat::kaldi, "kaldi"}, EnumName<TextFormat>{TextFormat::tsv, "tsv"},
    EnumName<TextFormat>{TextFormat::trn, "trn"}, EnumName<TextFormat>{TextFormat::jsonl, "jsonl"}};

Unexpected bad(std::string what) {
  return unexpected(ErrorCode::invalid_argument, std::move(what));
}

// Id, white space, words.
Result<TextRow> parse_kaldi(std::string_view line) {
  const auto text = strip(line);
  const auto end = std::min(text.find_first_of(" \t"), text.size());
  TextRow row;
  row.id = text.substr(0, end);
  row.text = strip(text.substr(end));
  return row;
}

Result<TextRow> parse_tsv(std::string_view line) {
  const auto tab = std::min(line.find('\t'), line.size());
  TextRow row;
  row.id = strip(line.substr(0, tab));
  if (tab < line.size()) row.text = line.substr(tab + 1);
  if (row.text.find('\t') != std::string::npos) return bad("has more than an id, a tab and a text");
  if (row.id.empty()) return bad("has no id before the tab");
  return row;
}

// Words and the id in round brackets at the end.
Result<TextRow> parse_trn(std::string_view line) {
  const auto text = strip(line);
  const auto open = text.rfind('(');
  if (!text.ends_with(')') || open == std::string_view::npos) return bad("does not end with (id)");
  TextRow row;
  row.id = strip(text.substr(open + 1, text.size() - open - 2));
  row.text = strip(text.substr(0, open));
  if (row.id.empty()) return bad("has an empty id");
  const auto brace = row.text.find('{');
  if (brace != std::string::npos && row.text.find('/', brace) != std::string::npos) {
    return bad("has alternatives in { / }, which are not served");
  }
  return row;
}

Result<TextRow> parse_jsonl(std::string_view line, TextSide side) {
  const auto json = parse_json(line, {});
  if (!json) return bad(json.error().what);
  if (!json->is_object()) return bad("is not a JSON object");
  const auto text = [&](const char* key) -> const Json* {
    const auto found = json->find(key);
    return found != json->end() && found->is_string() ? &*found : nullptr;
  };
  TextRow row;
  if (const auto id = json->find("id"); id != json->end() && id->is_number_integer()) {
    row.id = id->dump();
  } else if (const auto* name = text("id")) {
    row.id = name->get<std::string>();
  }
  if (row.id.empty()) return bad("has no \"id\"");
  const Json* words = nullptr;
  for (const char* key : {side == TextSide::reference ? "reference" : "hypothesis",
                          side == TextSide::reference ? "text" : "pred_text", "text"}) {
    if (words == nullptr) words = text(key);
  }
  if (words == nullptr) return bad("has no \"text\"");
  row.text = words->get<std::string>();
  if (const auto* set = text("set")) row.set = set->get<std::string>();
  if (const auto* speaker = text("speaker")) row.speaker = speaker->get<std::string>();
  const auto seconds = json->find("duration");
  if (seconds != json->end() && seconds->is_number()) {
    row.seconds = std::clamp(seconds->get<double>(), 0.0, 1e9);
  }
  return row;
}

Result<TextRow> parse_row(std::string_view line, TextFormat format, TextSide side) {
  switch (format) {
    case TextFormat::kaldi:
      return parse_kaldi(line);
    case TextFormat::tsv:
      return parse_tsv(line);
    case TextFormat::trn:
      return parse_trn(line);
    case TextFormat::jsonl:
      return parse_jsonl(line, side);
  }
  return bad("has no format");
}

// "id<tab>text" and the like at the top of a table.
bool is_head(const TextRow& row) {
  constexpr std::string_view kIds[] = {"id", "utt_id", "utterance_id", "utterance", "file", "path"};
  constexpr std::string_view kTexts[] = {"text",          "sentence",  "transcript",
                                         "transcription", "reference", "hypothesis"};
  return std::find(std::begin(kIds), std::end(kIds), row.id) != std::end(kIds) &&
         std::find(std::begin(kTexts), std::end(kTexts), row.text) != std::end(kTexts);
}

}  // namespace

Result<TextFormat> find_text_format(const std::string& name, const std::string& path,
                                    std::string_view text) {
  if (name != "auto") {
    if (const auto format = parse_enum<TextFormat>(kFormats, name)) return *format;
    return unexpected(ErrorCode::invalid_argument, "'" + name + "' is not a format of texts",
                      "format", "auto, " + enum_names<TextFormat>(kFormats));
  }
  const auto ending = std::filesystem::path(path).extension();
  if (ending == ".jsonl" || ending == ".json") return TextFormat::jsonl;
  if (ending == ".trn") return TextFormat::trn;
  if (ending == ".tsv") return TextFormat::tsv;
  Problems ignored(path);
  const auto lines = split_lines(text, ignored);
  const auto all = [&](auto fits) {
    return !lines.empty() && std::all_of(lines.begin(), lines.end(),
                                         [&](const Line& line) { return fits(strip(line.text)); });
  };
  if (all([](std::string_view line) { return line.starts_with('{'); })) return TextFormat::jsonl;
  const auto ends_with_id = [](std::string_view line) {
    return line.starts_with(";;") ||
           (line.ends_with(')') && line.find('(') != std::string_view::npos);
  };
  if (all(ends_with_id)) return TextFormat::trn;
  const auto has_tab = [](std::string_view line) {
    return line.find('\t') != std::string_view::npos;
  };
  return all(has_tab) ? TextFormat::tsv : TextFormat::kaldi;
}

Result<std::vector<TextRow>> parse_text_file(std::string_view text, const std::string& path,
                                             TextFormat format, TextSide side) {
  Problems problems(path);
  std::vector<TextRow> rows;
  std::map<std::pair<std::string, std::string>, std::size_t> seen;
  for (const auto& line : split_lines(text, problems)) {
    if (format == TextFormat::trn && line.text.starts_with(";;")) continue;  // a comment
    auto row = parse_row(line.text, format, side);
    if (!row) {
      problems.add(line.number, row.error().what);
      continue;
    }
    if (format == TextFormat::tsv && line.number == 1 && is_head(*row)) continue;
    const auto [first, is_new] = seen.emplace(std::pair(row->set, row->id), line.number);
    if (!is_new) {
      problems.add(line.number,
                   fmt::format("the id '{}' is on line {} already", row->id, first->second));
      continue;
    }
    row->line = line.number;
    rows.push_back(std::move(*row));
  }
  TRY(problems.status(fmt::format("the file was read as {}; --format names another of {}",
                                  enum_name<TextFormat>(kFormats, format),
                                  enum_names<TextFormat>(kFormats))));
  if (rows.empty()) return unexpected(ErrorCode::invalid_argument, "holds no utterance", path);
  return rows;
}

namespace {

// Speakers of utterances, from a Kaldi file.
Result<std::map<std::string, std::string>> read_speakers(const std::string& path) {
  std::map<std::string, std::string> speakers;
  if (path.empty()) return speakers;
  const auto text = TRY(read_lines_file(path));
  for (auto& row : TRY(parse_text_file(text, path, TextFormat::kaldi, TextSide::reference))) {
    speakers.emplace(std::move(row.id), std::move(row.text));
  }
  return speakers;
}

Result<std::vector<TextRow>> read_side(const ScoreFiles& files, TextSide side,
                                       std::vector<std::string>& notes) {
  const auto& path = side == TextSide::reference ? files.reference : files.hypothesis;
  const auto text = TRY(read_lines_file(path));
  const auto format = TRY(find_text_format(files.format, path, text));
  notes.push_back(fmt::format("{} was read as {}", path, enum_name<TextFormat>(kFormats, format)));
  return parse_text_file(text, path, format, side);
}

// Applies what was asked for references without text.
Status treat_empty(std::vector<TextRow>& rows, EmptyReference empty, const std::string& path,
                   std::vector<std::string>& notes) {
  if (empty == EmptyReference::score) return {};
  Problems problems(path);
  std::erase_if(rows, [&](const TextRow& row) {
    if (!strip(row.text).empty()) return false;
    problems.add(row.line, "the reference is empty");
    if (empty == EmptyReference::skip) {
      notes.push_back(
          fmt::format("{}:{}: '{}' is left out, its reference is empty", path, row.line, row.id));
    }
    return empty == EmptyReference::skip;
  });
  if (empty == EmptyReference::refuse) {
    TRY(problems.status(
        "--empty-reference skip leaves them out, score counts every word as inserted"));
  }
  if (rows.empty()) return unexpected(ErrorCode::invalid_argument, "no utterance has a text", path);
  return {};
}

// What joins references and hypotheses: the id, and the set if both files have sets.
class Keys {
 public:
  using Key = std::pair<std::string, std::string>;
  using Index = std::map<Key, const TextRow*>;

  Keys(const std::vector<TextRow>& references, const std::vector<TextRow>& hypotheses)
      : with_sets_(has_sets(references) && has_sets(hypotheses)) {}

  Key of(const TextRow& row) const { return {with_sets_ ? row.set : std::string(), row.id}; }

  Result<Index> index(const std::vector<TextRow>& rows, const std::string& path) const {
    Index index;
    for (const auto& row : rows) {
      const auto [first, is_new] = index.emplace(of(row), &row);
      if (is_new) continue;
      return unexpected(
          ErrorCode::invalid_argument,
          fmt::format("line {}: the id '{}' is on line {} already, in another set that the "
                      "other file does not name",
                      row.line, row.id, first->second->line),
          path);
    }
    return index;
  }

 private:
  static bool has_sets(const std::vector<TextRow>& rows) {
    return std::any_of(rows.begin(), rows.end(), [](const auto& row) { return !row.set.empty(); });
  }
  bool with_sets_;
};

std::string speaker_of(const TextRow& row, const std::map<std::string, std::string>& speakers,
                       const std::string& separator) {
  if (!row.speaker.empty()) return row.speaker;
  if (const auto found = speakers.find(row.id); found != speakers.end()) return found->second;
  const auto end = separator.empty() ? std::string::npos : row.id.find(separator);
  return end == std::string::npos ? std::string() : row.id.substr(0, end);
}

}  // namespace
}  // namespace eval

Result<ScoreTexts> read_score_files(const ScoreFiles& files) {
  using namespace eval;
  const auto empty = TRY(parse_empty_reference(files.read.empty_reference));
  const auto speakers = TRY(read_speakers(files.utt2spk));
  ScoreTexts texts;
  auto references = TRY(read_side(files, TextSide::reference, texts.notes));
  const auto hypotheses = TRY(read_side(files, TextSide::hypothesis, texts.notes));
  const Keys keys(references, hypotheses);
  const auto by_key = TRY(keys.index(hypotheses, files.hypothesis));
  const auto known = TRY(keys.index(references, files.reference));
  for (const auto& row : hypotheses) {
    if (known.count(keys.of(row)) == 0) texts.extra.push_back(row.id);
  }
  TRY(treat_empty(references, empty, files.reference, texts.notes));
  if (files.read.limit > 0 && references.size() > static_cast<std::size_t>(files.read.limit)) {
    references.resize(static_cast<std::size_t>(files.read.limit));
  }
  const auto set = std::filesystem::path(files.reference).stem().string();
  for (const auto& row : references) {
    EvalUtterance utterance;
    utterance.set = row.set.empty() ? set : row.set;
    utterance.id = row.id;
    utterance.speaker = speaker_of(row, speakers, files.speaker_separator);
    utterance.seconds = row.seconds;
    utterance.reference = row.text;
    const auto found = by_key.find(keys.of(row));
    if (found == by_key.end()) {
      utterance.failure = "missing";
    } else {
      utterance.hypothesis = found->second->text;
    }
    texts.utterances.push_back(std::move(utterance));
  }
  return texts;
}

}  // namespace oasr
