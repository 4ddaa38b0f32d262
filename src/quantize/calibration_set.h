// The recordings that a model is calibrated on.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace oasr::quantize {

struct CalibrationSet {
  struct Entry {
    std::string id, audio;  // a path
  };
  std::vector<Entry> entries;  // sorted by id
  std::size_t available = 0;   // rows of the manifest
  std::string selection;       // the rule, in words
  std::string hash;            // "sha256:…" of the ids and of the bytes of the files
  std::vector<std::string> notes;
};

// Sorts the rows of the manifest by id and takes `count` of them, evenly strided; all, with a note, when
// there are fewer. Which rows are taken, and in which order, does not depend on their order in the file.
// Errors: those of read_eval_manifests, whose texts are not needed here; invalid_argument for the same
// recording twice; not_found; bad_audio for files of another rate than `sample_rate` (Hz): nothing is
// resampled, since that is another front end.
Result<CalibrationSet> select_calibration(const std::string& manifest, const std::string& audio_root,
                                          int count, int sample_rate, const std::function<bool()>& cancelled);

}  // namespace oasr::quantize
