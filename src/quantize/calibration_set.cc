#include "quantize/calibration_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "api/digest.h"
#include "audio/audio_source.h"
#include "eval/lines.h"
#include "oasr/eval.h"

namespace oasr::quantize {
namespace {

namespace fs = std::filesystem;

// One recording under two names would weigh twice, and make a calibration look larger than it is.
Status check_files(const std::vector<EvalInput>& rows) {
  std::map<fs::path, std::string> places;
  for (const EvalInput& row : rows) {
    std::error_code failed;
    if (fs::exists(row.utterance.audio, failed) && !fs::is_regular_file(row.utterance.audio, failed)) {
      return unexpected(ErrorCode::bad_audio, "is no regular file", row.utterance.audio,
                        "calibrate with files of recordings (" + row.where + ")");
    }
    const fs::path path = fs::canonical(row.utterance.audio, failed);
    const auto [place, is_new] = places.emplace(failed ? fs::path(row.utterance.audio) : path, row.where);
    if (is_new) continue;
    return unexpected(ErrorCode::invalid_argument,
                      fmt::format("{} is at {} already", row.utterance.audio, place->second), row.where,
                      "name every recording once");
  }
  return {};
}

Status check_rates(const std::vector<CalibrationSet::Entry>& entries, int sample_rate) {
  std::vector<std::string> others;
  for (const auto& entry : entries) {
    const auto source = TRY(open_audio(entry.audio, {.sample_rate = sample_rate}));
    const int rate = source->info().sample_rate;
    if (rate != sample_rate) others.push_back(fmt::format("{} ({} Hz)", entry.audio, rate));
  }
  if (others.empty()) return {};
  return unexpected(ErrorCode::bad_audio,
                    fmt::format("{} of {} recordings are not at the model's {} Hz: {}", others.size(),
                                entries.size(), sample_rate, eval::some_of(others)),
                    {}, "resample them first: calibration does not, since that is another front end");
}

Result<std::string> hash_of(const std::vector<CalibrationSet::Entry>& entries,
                            const std::function<bool()>& cancelled) {
  std::string text;
  for (const auto& entry : entries) {
    const auto digest = TRY(file_digest(entry.audio, Digest::Kind::sha256, cancelled));
    text += entry.id + "\t" + digest + "\n";
  }
  return "sha256:" + text_digest(text);
}

}  // namespace

Result<CalibrationSet> select_calibration(const std::string& manifest, const std::string& audio_root,
                                          int count, int sample_rate,
                                          const std::function<bool()>& cancelled) {
  auto inputs = TRY(read_eval_manifests(std::vector<std::string>{manifest},
                                        {.empty_reference = "ignore", .audio_root = audio_root}));
  std::ranges::sort(inputs.rows, {},
                    [](const EvalInput& row) { return std::pair(row.utterance.id, row.utterance.audio); });
  TRY(check_files(inputs.rows));
  CalibrationSet set;
  set.available = inputs.rows.size();
  const auto wanted = std::min(static_cast<std::size_t>(count), set.available);
  EvalInputs chosen;
  for (std::size_t i = 0; i < wanted; ++i) {
    EvalInput& row = inputs.rows[i * set.available / wanted];
    set.entries.push_back({row.utterance.id, row.utterance.audio});
    chosen.rows.push_back(std::move(row));
  }
  if (wanted < static_cast<std::size_t>(count)) {
    set.notes.push_back(
        fmt::format("{} calibration utterances were asked for, the manifest has {}", count, wanted));
  }
  set.selection = fmt::format("sorted by id, rows floor(i · {} / {})", set.available, wanted);
  TRY(check_eval_audio(chosen));
  std::ranges::move(chosen.notes, std::back_inserter(set.notes));
  TRY(check_rates(set.entries, sample_rate));
  set.hash = TRY(hash_of(set.entries, cancelled));
  return set;
}

}  // namespace oasr::quantize
