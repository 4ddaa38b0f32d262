// Statistics of a calibration in a file, so that another recipe need not measure again.
//
// A safetensors file with tensors `key` and `about` (bytes of texts) and for each layer, after its path and a
// dot:
//   settings  U64 [4]   rows seen, sample_rows, seed, 1 with channel histograms or 0
//   minimum, maximum  F32 [K]        sum, sum_of_squares  F64 [K]        sample  F32 [rows kept, K]
//   histogram U8 [bytes]   the cells of the one histogram or of those of the K channels, one after the
//                          other, each a LEB128 number; 0 is followed by how many cells of 0 it stands for
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/fs.h"
#include "base/result.h"
#include "calib/input_statistics.h"
#include "checkpoint/file_bytes.h"

namespace oasr::calib {

struct KeptStatistics {
  Statistics layers;
  std::string about;  // any text, given back as it was
};

// `key` says what they were measured from: any text that is the same if they would be the same. The file
// appears complete or not at all; the same statistics give the same bytes. Errors: io, invalid_argument
// for a path that no tensor can be named after.
Status write_statistics(const fs::path& file, std::string_view key, const Statistics& statistics,
                        std::string_view about = {});

// Nothing if there is no such file or it has another key. bad_checkpoint, naming what is wrong, for a
// file that write_statistics() does not write.
Result<std::optional<KeptStatistics>> read_statistics(const fs::path& file, std::string_view key);
Result<std::optional<KeptStatistics>> read_statistics(const FileBytes& file, std::string_view key);

}  // namespace oasr::calib
