// The table of `oasr bench --per-layer`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "oasr/kernel_bench.h"
#include "oasr/recognizer.h"

namespace oasr::cli {

// Rows of {layer, scheme, kernel, calls, rows, milliseconds, gops, peak_percent}; the peak is that of
// `threads` cores, measured here on registers with the instructions of the kernel. gops and
// peak_percent are null for what has no operations that are counted.
nlohmann::ordered_json layer_table(const std::vector<LayerTime>& times, int threads);
// Of a GPU: with {kernels, gbs, roof_percent, bound}, the peak and the roof those of `ceilings`; null where they are not
// known. A row more, kBetweenLayers.
nlohmann::ordered_json layer_table(const std::vector<LayerTime>& times, const Ceilings& ceilings);

// Of a report that has `layers`, and of a GPU `ceilings` and `model`.
std::string layer_table_text(const nlohmann::ordered_json& report);

}  // namespace oasr::cli
