// How much each layer loses when it is quantized.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "calib/probe.h"
#include "quantize/report.h"
#include "quantize/workbench.h"

namespace oasr::quantize {

using LayerProgress = std::function<bool(double done, double total)>;  // false stops: an Error `cancelled`

// The outputs of a product for the sampled rows of its input, quantized beside full precision. Nothing for
// convolutions, whose inputs are not kept as rows, and for layers that calibration did not reach.
Result<std::optional<ErrorReport>> error_alone(const Workbench& bench, const calib::LayerPlan& layer);

// By path: the divergence of the model's outputs with one layer of the plan quantized and all others at full
// precision. The model of the bench is changed in place and put back.
Result<std::map<std::string, double>> effects(const Workbench& bench, const calib::Plan& plan,
                                              const calib::Probe& probe, const LayerProgress& progress);

// By path: as error_alone(), but the quantized layer gets the input that it has in the quantized model in
// `folder`, where everything before it is quantized. Rows are of the probe's recordings.
Result<std::map<std::string, ErrorReport>> cumulative_errors(const Workbench& bench, const calib::Plan& plan,
                                                             const calib::Probe& probe,
                                                             const std::filesystem::path& folder);

// What stands out in the numbers of a layer, in words; empty: nothing.
std::string cause_of(const LayerEntry& layer);

}  // namespace oasr::quantize
