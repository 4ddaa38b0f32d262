#include "quantize/statistics_cache.h"

#include <fmt/format.h>

#include "api/digest.h"
#include "base/json.h"
#include "calib/statistics_file.h"
#include "oasr/version.h"

namespace oasr::quantize {
namespace {

// Changes with what calibration keeps, so that a file with less is not taken for it.
constexpr const char* kMeasured = "inputs, padding, keys";

// What is not in the tensors of a calibration.
constexpr const char* kSeconds = "seconds";
constexpr const char* kNotes = "notes";

// Nothing if the text beside the tensors is not ours.
std::optional<Calibrated> from_file(calib::KeptStatistics kept) {
  const auto about = parse_json(kept.about, "about");
  if (!about || !about->is_object() || !about->contains(kSeconds) || !(*about)[kSeconds].is_number() ||
      !about->contains(kNotes) || !(*about)[kNotes].is_array()) {
    return std::nullopt;
  }
  Calibrated calibrated{
      .statistics = std::move(kept.layers), .seconds = (*about)[kSeconds].get<double>(), .notes = {}};
  for (const auto& note : (*about)[kNotes]) {
    if (note.is_string()) calibrated.notes.push_back(note.get<std::string>());
  }
  return calibrated;
}

}  // namespace

Result<std::string> calibration_key(const Checkpoint& source, const CalibrationSet& set,
                                    const CalibrateOptions& options) {
  std::string files;
  for (const auto& path : source.files) {
    files += TRY(file_digest(path, Digest::Kind::sha256, options.cancelled)) + "\n";
  }
  const OrderedJson key = {{"oasr", version()},
                           {"measured", kMeasured},
                           {"checkpoint", "sha256:" + text_digest(files)},
                           {"recordings", set.hash},
                           {"dtype", options.dtype},
                           {"language", options.language},
                           {"seed", options.seed}};
  return dump_json(key);
}

std::filesystem::path statistics_path(const std::filesystem::path& folder) {
  std::filesystem::path path = folder.has_filename() ? folder : folder.parent_path();
  path += ".calibration";
  return path;
}

Result<Calibrated> calibrate_cached(const std::filesystem::path& file, const std::string& key,
                                    const std::function<Result<Calibrated>()>& measure,
                                    const std::function<void(const std::string& line)>& say) {
  auto kept = calib::read_statistics(file, key);
  if (kept && *kept) {
    if (auto calibrated = from_file(std::move(**kept))) {
      say("the statistics in " + file.string() + " are of this model and these recordings: they are used");
      return std::move(*calibrated);
    }
  }
  auto calibrated = TRY(measure());
  if (!kept) {
    say(fmt::format(
        "{} is no file of statistics ({}): it stays as it is, and the statistics are not kept; delete it, or "
        "name another with --statistics",
        file.string(), kept.error().what));
    return calibrated;
  }
  const OrderedJson about = {{kSeconds, calibrated.seconds}, {kNotes, calibrated.notes}};
  const auto written = calib::write_statistics(file, key, calibrated.statistics, dump_json(about));
  if (!written) say("the statistics were not kept: " + written.error().message());
  return calibrated;
}

}  // namespace oasr::quantize
