// The table of `oasr bench --per-layer`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "oasr/recognizer.h"

namespace oasr::cli {

// Rows of {layer, scheme, kernel, calls, rows, milliseconds, gops, peak_percent}; the peak is that of
// `threads` cores, measured here on registers with the instructions of the kernel. gops and
// peak_percent are null for what is not a matrix.
nlohmann::ordered_json layer_table(const std::vector<LayerTime>& times, int threads);

std::string layer_table_text(const nlohmann::ordered_json& rows);

}  // namespace oasr::cli
