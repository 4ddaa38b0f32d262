// Fills in the report of a run from what was decided, measured and written.
#pragma once

#include <map>
#include <string>

#include "load/quantization_report.h"
#include "quantize/analysis.h"
#include "quantize/calibrate.h"
#include "quantize/report.h"
#include "quantize/workbench.h"

namespace oasr::quantize {

// What the layers are: from the plan, the statistics and the specification. `served` is the report of the
// written checkpoint as it was loaded again; null: nothing was written, and bytes after are not known.
Result<std::vector<LayerEntry>> describe_layers(const Workbench& bench, const calib::Plan& plan,
                                                const quant::QuantizationSpec& spec,
                                                const load::QuantizationReport* served);

std::vector<KeyReport> describe_keys(const calib::Plan& plan);

// Inputs that are quantized in a pass of their own, and that a norm or a product writes as int8.
void count_passes(const load::QuantizationReport& served, Report& report);

CalibrationReport describe_calibration(const CalibrationSet& set, const Calibrated& calibrated, int asked,
                                       const std::string& manifest);

}  // namespace oasr::quantize
