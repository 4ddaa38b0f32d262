#include "api/layer_profile.h"

#include <algorithm>

#include "tensor/dtype.h"

namespace oasr {
namespace {

double of(std::int64_t value) { return static_cast<double>(value); }

// The bytes of a row of a layer's inputs and outputs: floats, or int8 where a producer quantizes for its consumer.
double row_bytes(const load::LayerReport& layer, const load::QuantizationReport& report) {
  const bool int8_in = !layer.input.empty() && layer.input != "itself";
  const bool int8_out = std::ranges::find(report.layers, layer.path, &load::LayerReport::input) != report.layers.end();
  return of(layer.in_features) * (int8_in ? 1 : 4) + of(layer.out_features) * (int8_out ? 1 : 4);
}

double weight_bytes(const load::LayerReport& layer) {
  if (layer.weight_bytes > 0) return of(layer.weight_bytes);
  const auto dtype = parse_enum(dtype_names(), layer.storage);  // a tied head: its numbers are those of the embedding
  return dtype ? of(layer.in_features * layer.out_features) * static_cast<double>(dtype_size(*dtype)) : 0;
}

}  // namespace

void LayerProfile::measure(bool on) {
  on_ = on;
  if (!on) return;
  times_.clear();
  index_.clear();
  sections_ = {};
}

void LayerProfile::layer_time(std::string_view layer, const LayerCall& call) {
  auto found = index_.find(layer);
  if (found == index_.end()) {
    found = index_.emplace(std::string(layer), times_.size()).first;
    times_.emplace_back().layer = layer;
  }
  LayerTime& time = times_[found->second];
  ++time.calls;
  time.rows += call.rows;
  time.seconds += call.seconds;
  time.kernels += call.kernels;
  time.operations += call.work.operations;
  time.bytes += call.work.bytes;
  time.operands = call.work.operands;
}

void LayerProfile::section_time(double seconds, std::int64_t kernels) {
  ++sections_.calls;
  sections_.seconds += seconds;
  sections_.kernels += kernels;
}

std::vector<LayerTime> LayerProfile::times(const load::QuantizationReport& report) const {
  std::vector<LayerTime> times = times_;
  LayerTime between = sections_;
  between.layer = kBetweenLayers;
  for (LayerTime& time : times) {
    between.seconds -= time.seconds;
    between.kernels -= time.kernels;
    const auto layer = std::ranges::find(report.layers, time.layer, &load::LayerReport::path);
    if (layer == report.layers.end()) continue;  // attention, a norm
    time.scheme = layer->scheme;
    time.kernel = layer->kernel;
    time.operands = layer->operands;
    time.operations = 2 * of(time.rows) * of(layer->taps * layer->in_features) * of(layer->out_features);
    time.bytes = of(time.calls) * weight_bytes(*layer) + of(time.rows) * row_bytes(*layer, report);
  }
  if (sections_.calls > 0) times.push_back(std::move(between));
  return times;
}

}  // namespace oasr
