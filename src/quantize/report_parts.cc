#include "quantize/report_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "eval/report.h"

namespace oasr::quantize {
namespace {

template <class Keep>
Layers layers_that(const Report& report, Keep keep) {
  Layers layers;
  for (const auto& layer : report.layers) {
    if (keep(layer)) layers.push_back(&layer);
  }
  return layers;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::string ratio_text(double ratio) { return fmt::format("{:.{}f} times", ratio, ratio < 10 ? 1 : 0); }

}  // namespace

std::string counted(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string wrapped(std::string_view text, std::size_t indent, std::size_t columns) {
  std::string out;
  std::size_t column = indent;
  while (!text.empty()) {
    const auto word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (column > indent && column + 1 + word.size() > columns) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

Table without_empty_columns(const Table& table) {
  Table kept(table.size());
  for (std::size_t column = 0; column < table.front().size(); ++column) {
    const bool empty = std::ranges::all_of(table.begin() + 1, table.end(), [&](const auto& row) {
      return row[column].empty() || row[column] == "–";
    });
    if (empty) continue;
    for (std::size_t row = 0; row < table.size(); ++row) kept[row].push_back(table[row][column]);
  }
  return kept;
}

std::string mebibytes(std::int64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

std::string decibels(double snr_db) {
  return std::isinf(snr_db) && snr_db > 0 ? "exact" : fmt::format("{:.1f} dB", snr_db);
}

std::string short_number(double value) { return fmt::format("{:.4g}", value); }

std::string duration(double seconds) {
  return seconds < 120 ? fmt::format("{:.0f} s", seconds) : fmt::format("{:.1f} min", seconds / 60);
}

std::string share_text(double part, double whole) { return fmt::format("{:.0f} %", 100 * part / whole); }

std::optional<Spread> spread_of(const std::vector<float>& amax) {
  std::vector<float> active;
  std::ranges::copy_if(amax, std::back_inserter(active),
                       [](float value) { return value > 0 && std::isfinite(value); });
  if (active.empty()) return std::nullopt;
  std::ranges::sort(active);
  const auto at = [&](std::size_t percent) { return active[(active.size() * percent + 99) / 100 - 1]; };
  return Spread{.median = at(50), .p99 = at(99), .greatest = active.back()};
}

Layers quantized_layers(const Report& report) {
  return layers_that(report, [](const LayerEntry& layer) { return !layer.scheme.empty(); });
}

Layers full_precision_layers(const Report& report) {
  return layers_that(report,
                     [](const LayerEntry& layer) { return layer.scheme.empty() && !layer.reason.empty(); });
}

Layers fallback_layers(const Report& report) {
  return layers_that(report,
                     [](const LayerEntry& layer) { return !layer.scheme.empty() && !layer.reason.empty(); });
}

Layers worst_first(const Report& report) {
  auto layers = layers_that(report, [](const LayerEntry& layer) { return layer.alone.has_value(); });
  std::ranges::stable_sort(layers, {}, [](const auto* layer) { return layer->alone->snr_db; });
  return layers;
}

std::string size_sentence(const Report& report) {
  const auto quantized = quantized_layers(report);
  auto text =
      fmt::format("{} of {} are quantized", quantized.size(), counted(std::ssize(report.layers), "layer"));
  if (const auto fallback = fallback_layers(report); !fallback.empty()) {
    text += fmt::format(", {} of them in {} instead of the recipe's scheme", fallback.size(),
                        fallback.front()->scheme);
  }
  if (const auto left = full_precision_layers(report); !left.empty()) {
    text += fmt::format(", {} of the same kinds {} not", left.size(), left.size() == 1 ? "is" : "are");
  }
  // After a dry run nothing is there to be measured.
  if (report.bytes_before == 0 || report.bytes_after == 0) return text + ".";
  return text + fmt::format("; all weights take {} in place of {}: {}.", mebibytes(report.bytes_after),
                            mebibytes(report.bytes_before),
                            share_text(static_cast<double>(report.bytes_after),
                                       static_cast<double>(report.bytes_before)));
}

std::string input_sentence(const Report& report) {
  if (report.bytes_after == 0) return "nothing was written: who quantizes which input is not known.";
  return fmt::format(
      "{} {} written as int8 by the norm or the product before, {} quantized in a pass of {} own.",
      counted(report.fused_inputs, "input"), report.fused_inputs == 1 ? "is" : "are", report.quantize_passes,
      report.quantize_passes == 1 ? "its" : "their");
}

std::string smoothing_sentence(const Report& report) {
  std::vector<double> before, after;
  for (const auto& layer : report.layers) {
    const auto as_it_came = spread_of(layer.channel_amax);
    const auto smoothed = spread_of(layer.channel_amax_smoothed);
    if (!as_it_came || !smoothed) continue;
    before.push_back(as_it_came->ratio());
    after.push_back(smoothed->ratio());
  }
  if (before.empty()) return {};
  return fmt::format(
      "{} of {} layers are smoothed, where their error becomes smaller. Their greatest input channel was {} "
      "the "
      "median one, of the worst layer {}; smoothed it is {}, at worst {}.",
      before.size(),
      std::ranges::count_if(report.layers, [](const auto& layer) { return !layer.scheme.empty(); }),
      ratio_text(median(before)), ratio_text(std::ranges::max(before)), ratio_text(median(after)),
      ratio_text(std::ranges::max(after)));
}

std::string key_sentence(const Report& report) {
  if (report.keys.empty()) return {};
  float least = 1, greatest = 1;
  std::int64_t moved = 0, clamped = 0;
  for (const KeyReport& keys : report.keys) {
    least = std::min(least, keys.least), greatest = std::max(greatest, keys.greatest);
    moved += keys.moved, clamped += keys.clamped;
  }
  return fmt::format(
      "the keys of {} are divided by {} to {}, and their queries multiplied: {}, {} held back.",
      counted(std::ssize(report.keys), "attention"), short_number(least), short_number(greatest),
      counted(moved, "channel"), clamped);
}

std::string mode_sentence(const GateMode& mode) {
  if (mode.groups.empty()) return mode.name + ": nothing was decoded.";
  const auto& all = mode.groups.front();
  auto text = fmt::format("{}: word error {} % at full precision, {} % quantized; {} points", mode.name,
                          eval::number_text(eval::percent(all.a)), eval::number_text(eval::percent(all.b)),
                          eval::signed_text(all.difference));
  if (!all.low || !all.high) return text + ".";
  text += fmt::format(" (95 % interval {} to {})", eval::signed_text(all.low), eval::signed_text(all.high));
  if (*all.low > 0) return text + ": it hears worse.";
  if (*all.high < 0) return text + ": it hears better.";
  return text + ": no difference is shown.";
}

std::string symptom_sentence(const GateMode& mode) {
  const auto &full = mode.full, &quantized = mode.quantized;
  return fmt::format(
      "from full precision to quantized {} → {} empty texts, {} → {} repeating, {} → {} failed.", full.empty,
      quantized.empty, full.repeating, quantized.repeating, full.failed, quantized.failed);
}

std::string gate_sentence(const GateReport& gate) {
  return fmt::format("{}: word error changes by {:+.2f} points{}, the limit is {:+.2f}; {}, {}.",
                     gate.passed ? "Passed" : "Refused", gate.increase,
                     gate.modes.size() > 1 ? " in the worst mode" : "", gate.limit,
                     counted(gate.utterances, "utterance"), duration(gate.seconds));
}

std::string words_sentence(const GateReport& gate) {
  if (gate.modes.empty() || gate.modes.front().groups.empty()) return {};
  const std::int64_t words = gate.modes.front().groups.front().a.reference;
  if (words == 0) return {};
  return fmt::format("the recordings have {}: one is {:.2f} points.", counted(words, "word"),
                     100.0 / static_cast<double>(words));
}

std::string proof_sentence(const FoldProof& proof) {
  const auto where = fmt::format("on {} ({} values)", counted(proof.utterances, "utterance"), proof.values);
  if (proof.greatest_difference == 0) {
    return "The smoothed model at full precision gives the bits of the original " + where + ".";
  }
  return fmt::format(
      "The smoothed model at full precision differs from the original by at most {} in "
      "log-probability {}.",
      short_number(proof.greatest_difference), where);
}

std::string divergence_sentence(double nats) {
  return fmt::format(
      "What the quantized model says is {} nats from full precision (Kullback–Leibler, calibration audio).",
      short_number(nats));
}

std::string calibration_sentence(const CalibrationReport& calibration) {
  return fmt::format("{} of {} in {}, {} of audio.", counted(calibration.utterances, "utterance"),
                     calibration.available, calibration.manifest, duration(calibration.seconds));
}

}  // namespace oasr::quantize
