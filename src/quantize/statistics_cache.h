// The statistics of a calibration, kept beside the destination for other recipes.
#pragma once

#include <filesystem>
#include <string>

#include "quantize/calibrate.h"

namespace oasr::quantize {

// What the statistics of a run depend on, as text: the bytes of the checkpoint and of the recordings, how they
// were decoded, and this version.
Result<std::string> calibration_key(const Checkpoint& source, const CalibrationSet& set,
                                    const CalibrateOptions& options);

// `folder`.calibration; for "out/" it is "out.calibration".
std::filesystem::path statistics_path(const std::filesystem::path& folder);

// Reads what is there if it has the key, else calibrates and keeps the result. A file that is no file of statistics
// stays as it is, and nothing is kept; `say` tells of that, of a file that can not be written, and of one that is
// used.
Result<Calibrated> calibrate_cached(const std::filesystem::path& file, const std::string& key,
                                    const std::function<Result<Calibrated>()>& measure,
                                    const std::function<void(const std::string& line)>& say);

}  // namespace oasr::quantize
