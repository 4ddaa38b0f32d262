#include "quantize/describe.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/enum_table.h"
#include "calib/observers.h"

namespace oasr::quantize {
namespace {

constexpr std::array kFolds = {EnumName<quant::Fold>{quant::Fold::norm_affine, "norm_affine"},
                               EnumName<quant::Fold>{quant::Fold::v_to_o, "v_to_o"},
                               EnumName<quant::Fold>{quant::Fold::producer_rows, "producer_rows"},
                               EnumName<quant::Fold>{quant::Fold::runtime, "runtime"}};

constexpr std::array kPairings = {
    EnumName<quant::RotaryPairing>{quant::RotaryPairing::none, "none"},
    EnumName<quant::RotaryPairing>{quant::RotaryPairing::split_half, "split_half"},
    EnumName<quant::RotaryPairing>{quant::RotaryPairing::interleaved, "interleaved"}};

void describe_input(const calib::InputStatistics& seen, const calib::LayerPlan* plan, LayerEntry& entry) {
  entry.rows = seen.rows();
  if (seen.rows() == 0) return;
  entry.input_min = std::ranges::min(seen.state().minimum);
  entry.input_max = std::ranges::max(seen.state().maximum);
  for (std::int64_t k = 0; k < seen.channels(); ++k) entry.channel_amax.push_back(seen.amax(k));
  if (plan == nullptr) return;
  for (std::size_t k = 0; k < plan->exponents.size(); ++k) {
    entry.channel_amax_smoothed.push_back(std::ldexp(entry.channel_amax[k], -plan->exponents[k]));
  }
  if (!plan->input_scale) return;
  entry.input_scale = plan->input_scale;
  entry.observer = plan->observer;
  const calib::Histogram histogram =
      plan->exponents.empty() ? seen.histogram() : seen.scaled_histogram(plan->exponents);
  for (const calib::Observer& observer : calib::observers()) {
    const float amax = observer.amax(histogram);
    const calib::ClipError error = calib::examine(histogram, amax);
    entry.ranges.push_back({.observer = std::string(observer.name),
                            .amax = amax,
                            .clipped = error.clipped,
                            .relative_error = error.relative_error});
  }
}

SmoothingReport describe_smoothing(const calib::GroupPlan& group) {
  SmoothingReport report;
  report.fold = enum_name<quant::Fold>(kFolds, group.group.fold);
  report.producer = group.group.producer;
  const calib::Smoothing& smoothing = group.smoothing;
  report.alpha = smoothing.alpha;
  const auto [least, greatest] = std::ranges::minmax(smoothing.exponents);
  report.least = std::ldexp(1.0f, least);
  report.greatest = std::ldexp(1.0f, greatest);
  report.moved = smoothing.moved;
  report.idle = smoothing.idle;
  report.clamped = smoothing.clamped;
  report.error_before = group.error_before;
  report.error_after = group.error_after;
  return report;
}

Status describe_weight(const Workbench& bench, const calib::LayerPlan& layer, LayerEntry& entry) {
  const auto tensors = TRY(bench.planner().standalone(layer));
  const auto slots = tensors.view();
  const StoredTensor& scale = slots.find(quant::quant_method(layer.scheme).channel_scale)->second;
  std::vector<float> scales(static_cast<std::size_t>(scale.shape.elements()));
  TRY(decode_to_float(scale, scales));
  entry.weight_scale_min = std::ranges::min(scales);
  entry.weight_scale_max = std::ranges::max(scales);
  return {};
}

}  // namespace

Result<std::vector<LayerEntry>> describe_layers(const Workbench& bench, const calib::Plan& plan,
                                                const quant::QuantizationSpec& spec,
                                                const load::QuantizationReport* served) {
  std::vector<LayerEntry> entries;
  for (const quant::LayerFacts& facts : bench.facts()) {
    LayerEntry entry;
    entry.path = facts.path;
    entry.kind = enum_name(quant::quant_kind_names(), facts.kind);
    entry.in_features = facts.in_features;
    entry.out_features = facts.out_features;
    entry.bytes_before = entry.bytes_after = bench.full_bytes(facts.path);
    for (const quant::SkippedLayer& skipped : spec.producer.skipped) {
      if (skipped.path == facts.path) entry.reason = skipped.reason;
    }
    const auto planned = plan.layers.find(facts.path);
    const calib::LayerPlan* layer = planned == plan.layers.end() ? nullptr : &planned->second;
    const auto seen = bench.statistics().find(facts.path);
    if (seen != bench.statistics().end()) describe_input(seen->second, layer, entry);
    if (layer != nullptr) {
      entry.scheme = layer->scheme;
      if (layer->group >= 0 && !layer->exponents.empty()) {
        entry.smoothing = describe_smoothing(plan.groups[static_cast<std::size_t>(layer->group)]);
      }
      TRY(describe_weight(bench, *layer, entry));
      entry.alone = TRY(error_alone(bench, *layer));
    }
    if (served != nullptr) {
      const auto row = std::ranges::find(served->layers, facts.path, &load::LayerReport::path);
      if (row != served->layers.end()) {
        entry.taps = row->taps;
        if (row->weight_bytes > 0) entry.bytes_after = row->weight_bytes;
      }
    }
    entry.cause = cause_of(entry);
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::vector<KeyReport> describe_keys(const calib::Plan& plan) {
  std::vector<KeyReport> reports;
  for (const calib::KeyPlan& keys : plan.keys) {
    const calib::KeyScales& scales = keys.scales;
    const auto [least, greatest] = std::ranges::minmax(scales.lambda);
    reports.push_back(
        {.key = keys.attention.key,
         .query = keys.attention.query,
         .pairing = std::string(enum_name<quant::RotaryPairing>(kPairings, keys.attention.pairing)),
         .alpha = scales.alpha,
         .least = static_cast<float>(least),
         .greatest = static_cast<float>(greatest),
         .moved = scales.moved,
         .idle = scales.idle,
         .clamped = scales.clamped});
  }
  return reports;
}

void count_passes(const load::QuantizationReport& served, Report& report) {
  for (const load::LayerReport& layer : served.layers) {
    if (layer.scheme.empty()) continue;
    ++(layer.input == "itself" ? report.quantize_passes : report.fused_inputs);
  }
}

CalibrationReport describe_calibration(const CalibrationSet& set, const Calibrated& calibrated, int asked,
                                       const std::string& manifest) {
  CalibrationReport report;
  report.manifest = manifest;
  report.manifest_hash = set.hash;
  report.selection = set.selection;
  report.utterances = static_cast<std::int64_t>(set.entries.size());
  report.available = static_cast<std::int64_t>(set.available);
  report.asked = asked;
  report.seconds = calibrated.seconds;
  for (const auto& entry : set.entries) report.ids.push_back(entry.id);
  report.notes = set.notes;
  std::ranges::copy(calibrated.notes, std::back_inserter(report.notes));
  return report;
}

}  // namespace oasr::quantize
