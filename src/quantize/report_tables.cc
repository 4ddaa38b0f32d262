#include "quantize/report_tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "eval/report.h"
#include "eval/svg.h"
#include "quantize/report_parts.h"

namespace oasr::quantize {
namespace {

using eval::escaped_html;
using eval::number_text;

using Row = std::vector<std::string>;

// A table; a head that begins with "<" is of a column to the left, with "~" of one that wraps. Columns without
// anything in them are left out.
std::string table(const Row& head, const std::vector<Row>& rows) {
  if (rows.empty()) return {};
  Table all = {head};
  all.insert(all.end(), rows.begin(), rows.end());
  all = without_empty_columns(all);
  std::vector<std::string> kinds;
  std::string html = "<div class=\"scroll\"><table><tr>";
  for (const auto& cell : all.front()) {
    kinds.emplace_back(cell[0] == '<' ? " class=\"l\"" : cell[0] == '~' ? " class=\"l w\"" : "");
    html +=
        fmt::format("<th{}>{}</th>", kinds.back(), escaped_html(cell.substr(kinds.back().empty() ? 0 : 1)));
  }
  for (std::size_t row = 1; row < all.size(); ++row) {
    html += "</tr><tr>";
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      html += fmt::format("<td{}>{}</td>", kinds[i], escaped_html(all[row][i]));
    }
  }
  return html + "</tr></table></div>";
}

std::string or_dash(bool there, const std::string& text) { return there ? text : "–"; }

std::string alone(const LayerEntry& layer) { return decibels(layer.alone->snr_db); }

std::string cumulative(const LayerEntry& layer) {
  return layer.cumulative ? decibels(layer.cumulative->snr_db) : "–";
}

std::string effect(const LayerEntry& layer) { return layer.effect ? short_number(*layer.effect) : "–"; }

std::string shape(const LayerEntry& layer) {
  auto text = fmt::format("{} → {}", layer.in_features, layer.out_features);
  return layer.taps > 1 ? text + fmt::format(" × {}", layer.taps) : text;
}

}  // namespace

std::string group_table(const GateMode& mode) {
  std::vector<Row> rows;
  for (const auto& group : mode.groups) {
    const auto counts = [](const ErrorCounts& c) {
      return fmt::format("{} / {} / {}", c.substitutions, c.deletions, c.insertions);
    };
    rows.push_back({group.name, std::to_string(group.utterances), std::to_string(group.a.reference),
                    number_text(eval::percent(group.a)), number_text(eval::percent(group.b)),
                    eval::signed_text(group.difference), eval::interval_text(group.low, group.high),
                    number_text(group.p), counts(group.a), counts(group.b)});
  }
  return table({"<group", "utterances", "words", "full %", "quantized %", "points", "95 %", "p",
                "full sub / del / ins", "quantized sub / del / ins"},
               rows);
}

std::string changed_utterances(const GateMode& mode) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < std::max(mode.worse.size(), mode.better.size()); ++i) {
    rows.push_back(
        {i < mode.worse.size() ? mode.worse[i] : "", i < mode.better.size() ? mode.better[i] : ""});
  }
  return table({"<worse", "<better"}, rows);
}

std::string back_off_table(const GateReport& gate) {
  std::vector<Row> rows;
  for (const auto& step : gate.back_off) {
    rows.push_back({std::to_string(step.layers.size()), fmt::format("{:+.2f}", step.increase),
                    step.passed ? "passes" : "does not pass", mebibytes(step.bytes),
                    fmt::format("{}", fmt::join(step.layers, ", "))});
  }
  return table({"layers", "points", "<", "costs", "~at " + gate.returned_to}, rows);
}

std::string worst_table(const Report& report, std::size_t most) {
  auto layers = worst_first(report);
  layers.resize(std::min(most, layers.size()));
  std::vector<Row> rows;
  for (const auto* layer : layers) {
    rows.push_back({std::to_string(rows.size() + 1), layer->path, alone(*layer), cumulative(*layer),
                    effect(*layer), layer->cause});
  }
  return table({"<", "<worst layers", "alone", "cumulative", "effect on output", "~cause"}, rows);
}

std::string error_table(const Report& report) {
  std::vector<Row> rows;
  for (const auto* layer : worst_first(report)) {
    rows.push_back({layer->path, alone(*layer), fmt::format("{:.6f}", layer->alone->cosine),
                    cumulative(*layer),
                    layer->cumulative ? fmt::format("{:.6f}", layer->cumulative->cosine) : "–",
                    effect(*layer), layer->cause});
  }
  return table({"<layer", "alone", "cosine", "cumulative", "cosine", "effect on output", "~cause"}, rows);
}

std::string smoothing_table(const Report& report) {
  std::vector<Row> rows;
  for (const auto& layer : report.layers) {
    if (!layer.smoothing) continue;
    const auto& s = *layer.smoothing;
    rows.push_back({layer.path, short_number(s.alpha),
                    fmt::format("{} – {}", short_number(s.least), short_number(s.greatest)),
                    short_number(s.error_before), short_number(s.error_after), std::to_string(s.moved),
                    std::to_string(s.idle), std::to_string(s.clamped), s.fold, s.producer});
  }
  return table({"<layer", "alpha", "scales", "error without", "with", "channels moved", "idle", "held back",
                "<fold", "<into"},
               rows);
}

std::string key_table(const Report& report) {
  std::vector<Row> rows;
  for (const KeyReport& k : report.keys) {
    rows.push_back({k.key, short_number(k.alpha),
                    fmt::format("{} – {}", short_number(k.least), short_number(k.greatest)),
                    std::to_string(k.moved), std::to_string(k.idle), std::to_string(k.clamped), k.pairing,
                    k.query});
  }
  return table(
      {"<keys of", "alpha", "scales", "channels moved", "idle", "held back", "<rotary pairs", "<into"}, rows);
}

std::string observer_table(const Report& report) {
  std::vector<Row> rows;
  for (const auto& layer : report.layers) {
    for (const auto& choice : layer.ranges) {
      const bool is_first = &choice == layer.ranges.data();
      rows.push_back({is_first ? layer.path : "", choice.observer,
                      choice.observer == layer.observer ? "chosen" : "", short_number(choice.amax),
                      fmt::format("{:.4f} %", 100 * choice.clipped), short_number(choice.relative_error)});
    }
  }
  return table({"<layer", "<observer", "<", "greatest kept", "clipped", "relative error"}, rows);
}

std::string skipped_table(const Report& report) {
  std::vector<Row> rows;
  for (const auto* layer : full_precision_layers(report)) {
    rows.push_back({layer->path, layer->kind, shape(*layer), layer->reason});
  }
  return table({"<layer", "<kind", "shape", "~because"}, rows);
}

std::string fallback_table(const Report& report) {
  std::vector<Row> rows;
  for (const auto* layer : fallback_layers(report)) {
    rows.push_back({layer->path, layer->scheme, shape(*layer), layer->reason});
  }
  return table({"<layer", "<scheme", "shape", "~because"}, rows);
}

std::string layer_table(const Report& report) {
  std::vector<Row> rows;
  for (const auto& layer : report.layers) {
    const auto spread = spread_of(layer.channel_amax);
    const bool quantized = !layer.scheme.empty();
    rows.push_back(
        {layer.path, layer.kind, shape(layer), quantized ? layer.scheme : "full precision",
         std::to_string(layer.bytes_before), std::to_string(layer.bytes_after),
         or_dash(layer.rows > 0, std::to_string(layer.rows)),
         or_dash(layer.rows > 0,
                 fmt::format("{} – {}", short_number(layer.input_min), short_number(layer.input_max))),
         spread ? short_number(spread->median) : "–", spread ? fmt::format("{:.1f}", spread->ratio()) : "–",
         layer.input_scale ? fmt::format("{} ({})", short_number(*layer.input_scale), layer.observer)
                           : or_dash(quantized, "a token"),
         or_dash(quantized, fmt::format("{} – {}", short_number(layer.weight_scale_min),
                                        short_number(layer.weight_scale_max))),
         layer.ms_before ? fmt::format("{:.3f}", *layer.ms_before) : "–",
         layer.ms_after ? fmt::format("{:.3f}", *layer.ms_after) : "–"});
  }
  return table({"<layer", "<kind", "shape", "<scheme", "bytes before", "after", "rows seen", "input",
                "median channel", "greatest / median", "input scale", "weight scales", "ms before", "after"},
               rows);
}

std::string calibration_table(const CalibrationReport& calibration) {
  return table({"<", "~"}, {{"manifest", calibration.manifest},
                            {"hash of its rows and audio", calibration.manifest_hash},
                            {"selection", calibration.selection},
                            {"utterances", fmt::format("{} (asked for {}, of {})", calibration.utterances,
                                                       calibration.asked, calibration.available)},
                            {"audio", fmt::format("{:.1f} s", calibration.seconds)}});
}

std::string provenance_table(const Report& report) {
  std::vector<Row> rows = {{"from", report.source},
                           {"to", report.destination},
                           {"architecture", report.architecture},
                           {"tool", report.tool},
                           {"recipe", report.recipe}};
  for (const auto& [key, value] : report.options) rows.push_back({key, value});
  rows.push_back({"kinds of layers", fmt::format("{}", fmt::join(report.module_types, ", "))});
  rows.push_back({"calibrated in", report.calib_dtype});
  if (!report.ignore.empty()) {
    rows.push_back({"ignored", fmt::format("{}", fmt::join(report.ignore, ", "))});
  }
  return table({"<", "~"}, rows);
}

}  // namespace oasr::quantize
