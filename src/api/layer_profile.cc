#include "api/layer_profile.h"

#include <algorithm>

#include "kernels/peak/op.h"

namespace oasr {

void LayerProfile::measure(bool on) {
  on_ = on;
  if (!on) return;
  times_.clear();
  index_.clear();
}

void LayerProfile::layer_time(std::string_view layer, std::int64_t rows, double seconds) {
  auto found = index_.find(layer);
  if (found == index_.end()) {
    found = index_.emplace(std::string(layer), times_.size()).first;
    times_.emplace_back().layer = layer;
  }
  LayerTime& time = times_[found->second];
  ++time.calls;
  time.rows += rows;
  time.seconds += seconds;
}

std::vector<LayerTime> LayerProfile::times(const load::QuantizationReport& report) const {
  std::vector<LayerTime> times = times_;
  for (LayerTime& time : times) {
    const auto layer = std::ranges::find(report.layers, time.layer, &load::LayerReport::path);
    if (layer == report.layers.end()) continue;  // a norm
    time.scheme = layer->scheme;
    time.kernel = layer->kernel;
    time.operations = 2.0 * static_cast<double>(time.rows) * static_cast<double>(layer->taps * layer->in_features) *
                      static_cast<double>(layer->out_features);
  }
  return times;
}

}  // namespace oasr
