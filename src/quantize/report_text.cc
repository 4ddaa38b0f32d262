#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "eval/report.h"
#include "quantize/report_parts.h"

namespace oasr::quantize {
namespace {

constexpr std::size_t kWorstShown = 3, kReasons = 3, kLabel = 14;

std::string line(std::string_view label, std::string_view text) {
  return fmt::format("{:<{}}{}\n", label, kLabel, wrapped(text, kLabel));
}

std::string options_text(const Report& report) {
  std::string text = report.recipe;
  for (const auto& [key, value] : report.options) text += fmt::format("; {} {}", key, value);
  return text;
}

struct Reason {
  std::string text;
  std::int64_t layers = 0;
};

// "9 x the CTC head stays at full precision", the most frequent reasons first.
std::string skipped_lines(const Report& report) {
  std::vector<Reason> reasons;
  for (const auto* layer : full_precision_layers(report)) {
    auto found = std::ranges::find(reasons, layer->reason, &Reason::text);
    if (found == reasons.end()) found = reasons.insert(found, {.text = layer->reason});
    ++found->layers;
  }
  std::ranges::stable_sort(reasons, std::greater<>(), &Reason::layers);
  std::string text;
  // One more takes no more lines than to say that there is one.
  const std::size_t shown = reasons.size() == kReasons + 1 ? reasons.size() : std::min(kReasons, reasons.size());
  for (std::size_t i = 0; i < shown; ++i) {
    text += line(i == 0 ? "not quantized" : "", fmt::format("{} x {}", reasons[i].layers, reasons[i].text));
  }
  std::int64_t others = 0;
  for (std::size_t i = shown; i < reasons.size(); ++i) others += reasons[i].layers;
  if (others > 0)
    text += line("", fmt::format("{} x another reason (quantization_report.json has them)", others));
  return text;
}

// A table of layers, worst first, with the cause below each.
std::string layer_table(const Layers& layers, std::size_t most) {
  Table rows = {{"layer", "alone", "cumulative", "cosine", "effect"}};
  for (std::size_t i = 0; i < std::min(most, layers.size()); ++i) {
    const auto& layer = *layers[i];
    rows.push_back({layer.path, decibels(layer.alone->snr_db),
                    layer.cumulative ? decibels(layer.cumulative->snr_db) : "–",
                    fmt::format("{:.5f}", layer.alone->cosine),
                    layer.effect ? short_number(*layer.effect) : "–"});
  }
  const auto table = eval::table_text(without_empty_columns(rows));
  std::string text;
  std::size_t at = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto end = table.find('\n', at) + 1;
    text += table.substr(at, end - at);
    at = end;
    if (i > 0 && !layers[i - 1]->cause.empty()) {
      text += "  " + wrapped(layers[i - 1]->cause, 2) + "\n";
    }
  }
  return text;
}

std::string gate_lines(const GateReport& gate) {
  auto text = line("gate", gate_sentence(gate));
  if (!gate.passed && !gate.verdict.empty()) text += line("", gate.verdict);
  for (const auto& mode : gate.modes) text += line("", mode_sentence(mode));
  if (const auto words = words_sentence(gate); !words.empty()) text += line("", words);
  if (const auto* kept = kept_step(gate)) {
    text += line("back-off",
                 fmt::format("{} back at {}, {} more: {:+.2f} points", counted(std::ssize(kept->layers), "layer"),
                             gate.returned_to, mebibytes(kept->bytes), kept->increase));
  }
  return text;
}

}  // namespace

std::string to_text(const Report& report) {
  auto text = line("quantized", report.source + " -> " + report.destination) +
              line("recipe", options_text(report)) + line("layers", size_sentence(report)) +
              skipped_lines(report) + line("inputs", input_sentence(report));
  if (report.calibration) text += line("calibration", calibration_sentence(*report.calibration));
  if (const auto smoothing = smoothing_sentence(report); !smoothing.empty()) {
    text += line("smoothing", smoothing);
  }
  if (const auto keys = key_sentence(report); !keys.empty()) text += line("keys", keys);
  if (report.proof) text += line("fold proof", proof_sentence(*report.proof));
  if (report.divergence) text += line("divergence", divergence_sentence(*report.divergence));
  text += report.gate ? gate_lines(*report.gate) : line("gate", "was not asked for");
  if (!report.unmet.empty()) text += line("refused", report.unmet);
  for (const auto& note : report.notes) text += line("note", note);
  const auto worst = worst_first(report);
  if (!worst.empty()) text += "\n" + layer_table(worst, kWorstShown);
  return text;
}

std::string analysis_text(const Report& report) {
  const auto layers = worst_first(report);
  if (layers.empty()) return "no layer was analyzed\n";
  return layer_table(layers, layers.size());
}

}  // namespace oasr::quantize
