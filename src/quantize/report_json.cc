#include <fmt/format.h>

#include <cstdlib>

#include "eval/report.h"
#include "quantize/report.h"

namespace oasr::quantize {
namespace {

constexpr int kVersion = 1;
constexpr std::string_view kFormat = "oasr-quantization-report";

// The number with the fewest digits that is this float: 0.1, not 0.10000000149011612.
double shortest(float value) { return std::strtod(fmt::format("{}", value).c_str(), nullptr); }

template <class T>
OrderedJson or_null(const std::optional<T>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

// A list of what `json_of` makes of each.
template <class Items, class JsonOf>
OrderedJson list(const Items& items, JsonOf json_of) {
  auto json = OrderedJson::array();
  for (const auto& item : items) json.push_back(json_of(item));
  return json;
}

// Null when there is none.
template <class T, class JsonOf>
OrderedJson object(const std::optional<T>& value, JsonOf json_of) {
  return value ? OrderedJson(json_of(*value)) : OrderedJson(nullptr);
}

OrderedJson choice_json(const RangeChoice& choice) {
  return {{"observer", choice.observer},
          {"amax", shortest(choice.amax)},
          {"clipped", choice.clipped},
          {"relative_error", choice.relative_error}};
}

OrderedJson smoothing_json(const SmoothingReport& smoothing) {
  return {{"fold", smoothing.fold},
          {"producer", smoothing.producer},
          {"alpha", smoothing.alpha},
          {"least", shortest(smoothing.least)},
          {"greatest", shortest(smoothing.greatest)},
          {"moved", smoothing.moved},
          {"idle", smoothing.idle},
          {"clamped", smoothing.clamped},
          {"error_before", smoothing.error_before},
          {"error_after", smoothing.error_after}};
}

OrderedJson key_json(const KeyReport& keys) {
  return {{"key", keys.key},
          {"query", keys.query},
          {"pairing", keys.pairing},
          {"alpha", keys.alpha},
          {"least", shortest(keys.least)},
          {"greatest", shortest(keys.greatest)},
          {"moved", keys.moved},
          {"idle", keys.idle},
          {"clamped", keys.clamped}};
}

OrderedJson error_json(const ErrorReport& error) {
  return {{"snr_db", error.snr_db}, {"cosine", error.cosine}};
}

OrderedJson layer_json(const LayerEntry& layer) {
  return {{"path", layer.path},
          {"kind", layer.kind},
          {"scheme", layer.scheme},
          {"reason", layer.reason},
          {"in_features", layer.in_features},
          {"out_features", layer.out_features},
          {"taps", layer.taps},
          {"bytes_before", layer.bytes_before},
          {"bytes_after", layer.bytes_after},
          {"rows", layer.rows},
          {"input_min", shortest(layer.input_min)},
          {"input_max", shortest(layer.input_max)},
          {"channel_amax", list(layer.channel_amax, shortest)},
          {"channel_amax_smoothed", list(layer.channel_amax_smoothed, shortest)},
          {"ranges", list(layer.ranges, choice_json)},
          {"input_scale", object(layer.input_scale, shortest)},
          {"observer", layer.observer},
          {"weight_scale_min", shortest(layer.weight_scale_min)},
          {"weight_scale_max", shortest(layer.weight_scale_max)},
          {"smoothing", object(layer.smoothing, smoothing_json)},
          {"alone", object(layer.alone, error_json)},
          {"cumulative", object(layer.cumulative, error_json)},
          {"effect", or_null(layer.effect)},
          {"cause", layer.cause}};
}

OrderedJson calibration_json(const CalibrationReport& calibration) {
  return {{"manifest", calibration.manifest},   {"manifest_hash", calibration.manifest_hash},
          {"selection", calibration.selection}, {"utterances", calibration.utterances},
          {"available", calibration.available}, {"asked", calibration.asked},
          {"seconds", calibration.seconds},     {"ids", calibration.ids},
          {"notes", calibration.notes}};
}

OrderedJson proof_json(const FoldProof& proof) {
  return {{"utterances", proof.utterances},
          {"values", proof.values},
          {"greatest_difference", proof.greatest_difference}};
}

OrderedJson group_json(const EvalDifference& group) {
  return {{"name", group.name},
          {"utterances", group.utterances},
          {"full", eval::counts_json(group.a)},
          {"quantized", eval::counts_json(group.b)},
          {"full_percent", or_null(eval::percent(group.a))},
          {"quantized_percent", or_null(eval::percent(group.b))},
          {"difference", or_null(group.difference)},
          {"low", or_null(group.low)},
          {"high", or_null(group.high)},
          {"p", or_null(group.p)}};
}

OrderedJson symptoms_json(const Symptoms& symptoms) {
  return {{"empty", symptoms.empty}, {"repeating", symptoms.repeating}, {"failed", symptoms.failed}};
}

OrderedJson mode_json(const GateMode& mode) {
  return {{"name", mode.name},
          {"groups", list(mode.groups, group_json)},
          {"full", symptoms_json(mode.full)},
          {"quantized", symptoms_json(mode.quantized)},
          {"worse", mode.worse},
          {"better", mode.better}};
}

OrderedJson step_json(const BackOffStep& step) {
  return {
      {"layers", step.layers}, {"increase", step.increase}, {"passed", step.passed}, {"bytes", step.bytes}};
}

OrderedJson gate_json(const GateReport& gate) {
  return {{"manifest", gate.manifest},
          {"normalizer", gate.normalizer},
          {"limit", gate.limit},
          {"utterances", gate.utterances},
          {"seconds", gate.seconds},
          {"modes", list(gate.modes, mode_json)},
          {"increase", gate.increase},
          {"passed", gate.passed},
          {"verdict", gate.verdict},
          {"returned_to", gate.returned_to},
          {"back_off", list(gate.back_off, step_json)}};
}

}  // namespace

OrderedJson to_json(const Report& report) {
  OrderedJson options = OrderedJson::object();
  for (const auto& [key, value] : report.options) options[key] = value;
  return {{"format", kFormat},
          {"version", kVersion},
          {"source", report.source},
          {"destination", report.destination},
          {"architecture", report.architecture},
          {"tool", report.tool},
          {"recipe", report.recipe},
          {"options", std::move(options)},
          {"ignore", report.ignore},
          {"module_types", report.module_types},
          {"calib_dtype", report.calib_dtype},
          {"bytes_before", report.bytes_before},
          {"bytes_after", report.bytes_after},
          {"quantize_passes", report.quantize_passes},
          {"fused_inputs", report.fused_inputs},
          {"calibration", object(report.calibration, calibration_json)},
          {"keys", list(report.keys, key_json)},
          {"proof", object(report.proof, proof_json)},
          {"divergence", or_null(report.divergence)},
          {"gate", object(report.gate, gate_json)},
          {"unmet", report.unmet},
          {"notes", report.notes},
          {"layers", list(report.layers, layer_json)}};
}

}  // namespace oasr::quantize
