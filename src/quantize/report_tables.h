// The tables of the page; empty when there is nothing to list.
#pragma once

#include <cstddef>
#include <string>

#include "quantize/report.h"

namespace oasr::quantize {

std::string group_table(const GateMode& mode);
std::string changed_utterances(const GateMode& mode);
std::string back_off_table(const GateReport& gate);

std::string worst_table(const Report& report, std::size_t most);
std::string error_table(const Report& report);
std::string smoothing_table(const Report& report);
std::string key_table(const Report& report);
std::string observer_table(const Report& report);
std::string skipped_table(const Report& report);
std::string fallback_table(const Report& report);
std::string layer_table(const Report& report);

std::string calibration_table(const CalibrationReport& calibration);
std::string provenance_table(const Report& report);

}  // namespace oasr::quantize
