// What the writers of the report share.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quantize/report.h"

namespace oasr::quantize {

// Words in lines of at most `columns`, all but the first indented.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t columns = 100);

// Rows of cells, the first of them the head.
using Table = std::vector<std::vector<std::string>>;
// Of what was not measured: without the columns that have nothing or "–" in every row below the head.
Table without_empty_columns(const Table& table);

// "1 layer", "2 layers"
std::string counted(std::int64_t count, std::string_view noun);
// "61.2 MiB"
std::string mebibytes(std::int64_t bytes);
// "23.4 dB", or "exact" without any error.
std::string decibels(double snr_db);
// Four digits: "0.01234", "1.235e-05".
std::string short_number(double value);
// "43.5 min", "31 s"
std::string duration(double seconds);
// "34 %", of a whole that is not 0.
std::string share_text(double part, double whole);

// The greatest absolute values of channels: of those that were ever active (and finite) the median
// and the 99th percentile (nearest rank), and the greatest. Nothing if there is none.
struct Spread {
  double median = 0, p99 = 0, greatest = 0;
  double ratio() const { return greatest / median; }
};
std::optional<Spread> spread_of(const std::vector<float>& amax);

using Layers = std::vector<const LayerEntry*>;
Layers quantized_layers(const Report& report);
Layers full_precision_layers(const Report& report);  // that were selected by kind
Layers fallback_layers(const Report& report);  // quantized in another scheme than the others, for a reason
// Layers with an error of their own, the least SNR first, then in the order of the model.
Layers worst_first(const Report& report);

// What a reader of the summary wants to know, in sentences.
std::string size_sentence(const Report& report);
std::string input_sentence(const Report& report);
std::string smoothing_sentence(const Report& report);  // empty: nothing was smoothed
std::string key_sentence(const Report& report);        // empty: no keys were
std::string mode_sentence(const GateMode& mode);
std::string symptom_sentence(const GateMode& mode);  // lower case
std::string gate_sentence(const GateReport& gate);
std::string words_sentence(const GateReport& gate);  // how much a word is
std::string proof_sentence(const FoldProof& proof);
std::string divergence_sentence(double nats);
std::string calibration_sentence(const CalibrationReport& calibration);

// Plots as SVG; empty when there is nothing to draw.
std::string range_plots(const Report& report);
std::string error_plot(const Report& report, std::size_t highlighted);
std::string bytes_plot(const Report& report);
std::string time_plot(const Report& report);
std::string gate_plot(const GateMode& mode, double limit);

}  // namespace oasr::quantize
