#include "eval/manifest.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <optional>

#include "audio/audio_source.h"
#include "base/fs.h"
#include "base/json.h"
#include "eval/lines.h"
#include "text/utf8.h"

namespace oasr {
namespace eval {
namespace {

constexpr double kDurationSlack = 0.1,
                 kDurationShare = 0.01;  // seconds, and of the declared length

// The set of a manifest's rows that name none.
std::string set_name(const std::string& path) {
  const fs::path file(path);
  const auto stem = file.stem().string();
  if (stem != "manifest") return stem;
  std::error_code ignored;
  const auto folder =
      fs::absolute(file, ignored).lexically_normal().parent_path().filename().string();
  return folder.empty() ? stem : folder;
}

// Reads fields of one line; the first that is of another type is the line's problem.
class Fields {
 public:
  explicit Fields(const Json& row) : row_(row) {}

  // Text or a whole number; nothing if it is not there.
  std::optional<std::string> text(const char* key) {
    const auto found = row_.find(key);
    if (found == row_.end() || found->is_null()) return std::nullopt;
    if (found->is_string()) return found->get<std::string>();
    if (found->is_number_integer()) return found->dump();
    return fail(key, "is not text");
  }

  // A number that is not negative; 0 if it is not there.
  double number(const char* key) {
    const auto found = row_.find(key);
    if (found == row_.end() || found->is_null()) return 0;
    const double value = found->is_number() ? found->get<double>() : -1;
    if (std::isfinite(value) && value >= 0 && value <= 1e9) return value;
    fail(key, "is not a number from 0");
    return 0;
  }

  const std::string& problem() const { return problem_; }

 private:
  std::nullopt_t fail(const char* key, const char* what) {
    if (problem_.empty()) problem_ = fmt::format("\"{}\" {}", key, what);
    return std::nullopt;
  }
  const Json& row_;
  std::string problem_;
};

// The row of a line, or what is wrong with it.
Result<EvalInput> parse_row(std::string_view line, const std::string& path,
                            const std::string& set, const ManifestOptions& options) {
  const auto bad = [](std::string what) {
    return unexpected(ErrorCode::invalid_argument, std::move(what));
  };
  const auto json = parse_json(line, {});
  if (!json) return bad(json.error().what);
  if (!json->is_object()) return bad("is not a JSON object");
  Fields fields(*json);
  auto audio = fields.text("audio");
  if (!audio) audio = fields.text("audio_filepath");
  const auto text = fields.text("text");
  EvalInput row;
  auto& utterance = row.utterance;
  utterance.id = fields.text("id").value_or(audio.value_or(""));
  utterance.set = fields.text("set").value_or(set);
  utterance.speaker = fields.text("speaker").value_or("");
  utterance.seconds = fields.number("duration");
  row.sample_rate = static_cast<int>(fields.number("sample_rate"));
  if (!fields.problem().empty()) return bad(fields.problem());
  if (!audio || audio->empty()) return bad("has no \"audio\"");
  if (!text && options.empty != EmptyReference::ignore) return bad("has no \"text\"");
  if (utterance.id.empty()) return bad("has an empty \"id\"");
  const fs::path file(*audio);
  const fs::path root = options.audio_root.empty() ? fs::path(path).parent_path() : fs::path(options.audio_root);
  utterance.audio = file.is_absolute() ? *audio : (root / file).string();
  utterance.reference = text.value_or("");
  return row;
}

void keep_first(EvalInputs& inputs, std::int64_t limit) {
  if (limit <= 0) return;
  std::map<std::string, std::int64_t> seen;
  std::erase_if(inputs.rows,
                [&](const EvalInput& row) { return ++seen[row.utterance.set] > limit; });
}

// The id of a set is there once, whichever manifests the set is made of.
Status check_ids(const EvalInputs& inputs) {
  std::map<std::pair<std::string, std::string>, std::string> places;
  for (const auto& row : inputs.rows) {
    const auto& u = row.utterance;
    const auto [place, is_new] = places.emplace(std::pair(u.set, u.id), row.where);
    if (is_new) continue;
    return unexpected(
        ErrorCode::invalid_argument,
        fmt::format("the id '{}' of the set '{}' is at {} already", u.id, u.set, place->second),
        row.where, "give every utterance of a set its own id");
  }
  return {};
}

}  // namespace

Result<EmptyReference> parse_empty_reference(const std::string& name) {
  if (name == "refuse") return EmptyReference::refuse;
  if (name == "skip") return EmptyReference::skip;
  if (name == "score") return EmptyReference::score;
  if (name == "ignore") return EmptyReference::ignore;
  return unexpected(ErrorCode::invalid_argument, "'" + name + "' is none of refuse, skip, score, ignore",
                    "empty_reference");
}

Status parse_manifest(std::string_view text, const std::string& path, const ManifestOptions& options,
                      EvalInputs& inputs) {
  const EmptyReference empty = options.empty;
  Problems problems(path), empty_ones(path);
  const auto set = set_name(path);
  std::size_t rows = 0, skipped = 0;
  for (const auto& line : split_lines(text, problems)) {
    auto row = parse_row(line.text, path, set, options);
    if (!row) {
      problems.add(line.number, row.error().what);
      continue;
    }
    ++rows;
    row->where = fmt::format("{}:{}", path, line.number);
    const bool is_empty = strip(row->utterance.reference).empty();
    if (is_empty && empty == EmptyReference::refuse)
      empty_ones.add(line.number, "\"text\" is empty");
    if (is_empty && empty == EmptyReference::skip) {
      ++skipped;
      inputs.notes.push_back(row->where + ": left out, its text is empty");
      continue;
    }
    inputs.rows.push_back(std::move(*row));
  }
  TRY(problems.status("a line is {\"audio\": path, \"text\": what is said, \"id\": name, …}"));
  TRY(empty_ones.status(
      "--empty-reference skip leaves them out, score counts every word as inserted"));
  if (rows == 0) return unexpected(ErrorCode::invalid_argument, "holds no utterance", path);
  if (rows == skipped) {
    return unexpected(ErrorCode::invalid_argument, "no utterance has a text", path);
  }
  return {};
}

}  // namespace eval

Result<EvalInputs> read_eval_manifests(std::span<const std::string> paths,
                                       const EvalReadOptions& options) {
  const auto empty = TRY(eval::parse_empty_reference(options.empty_reference));
  EvalInputs inputs;
  for (const auto& path : paths) {
    const auto text = TRY(eval::read_lines_file(path));
    TRY(eval::parse_manifest(text, path, {.empty = empty, .audio_root = options.audio_root}, inputs));
  }
  TRY(eval::check_ids(inputs));
  eval::keep_first(inputs, options.limit);
  return inputs;
}

Status check_eval_audio(EvalInputs& inputs) {
  std::vector<std::string> missing;
  for (const auto& row : inputs.rows) {
    std::error_code failed;
    const auto& audio = row.utterance.audio;
    if (!fs::exists(audio, failed)) missing.push_back(row.where + ": " + audio);
  }
  if (!missing.empty()) {
    return unexpected(ErrorCode::not_found,
                      fmt::format("{} of {} audio files are missing: {}", missing.size(),
                                  inputs.rows.size(), eval::some_of(missing)),
                      {}, "paths are relative to the manifest");
  }
  for (const auto& row : inputs.rows) {
    if (row.sample_rate == 0) continue;
    const auto source = open_audio(row.utterance.audio);
    if (!source) continue;  // told when its turn comes
    const int rate = (*source)->info().sample_rate;
    if (rate != row.sample_rate) {
      inputs.notes.push_back(fmt::format("{}: declares {} Hz, the file has {} Hz (which is used)",
                                         row.where, row.sample_rate, rate));
    }
  }
  return {};
}

std::optional<std::string> duration_note(const EvalInput& row, double seconds) {
  const double declared = row.utterance.seconds;
  const double slack = eval::kDurationSlack + eval::kDurationShare * declared;
  if (declared == 0 || std::abs(seconds - declared) <= slack) return std::nullopt;
  return fmt::format("{}: declares {:.2f} s, the audio has {:.2f} s", row.where, declared, seconds);
}

}  // namespace oasr
