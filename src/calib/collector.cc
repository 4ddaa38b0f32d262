#include "calib/collector.h"

#include <algorithm>

#include "checkpoint/checksum.h"

namespace oasr::calib {

Collector::Collector(ThreadPool& pool, const std::vector<WatchedLayer>& layers, std::uint64_t seed,
                     std::int64_t sample_rows)
    : pool_(pool) {
  for (const WatchedLayer& layer : layers) {
    if (layer.output) {
      first_channels_.emplace(layer.path, layer.first_channel);
      statistics_.emplace(output_of(layer.path),
                          InputStatistics({.channels = layer.channels, .sample_rows = 0}));
      continue;
    }
    statistics_.emplace(layer.path, InputStatistics({.channels = layer.channels,
                                                     .channel_histograms = layer.channel_histograms,
                                                     .sample_rows = sample_rows,
                                                     .seed = seed << 32U | crc32_of(layer.path)}));
    if (!layer.padding) continue;
    statistics_.emplace(
        padding_of(layer.path),
        InputStatistics(
            {.channels = layer.channels, .channel_histograms = layer.channel_histograms, .sample_rows = 0}));
  }
}

void Collector::not_finite(std::string_view layer, std::int64_t) {
  if (!bad_layer_) bad_layer_ = layer;
}

void Collector::layer_input(std::string_view layer, ConstMatrix x) {
  const auto found = statistics_.find(layer);
  if (found != statistics_.end()) add(layer, found, x);
}

void Collector::layer_output(std::string_view layer, ConstMatrix y) {
  const auto first = first_channels_.find(layer);
  if (first == first_channels_.end()) return;
  const auto found = statistics_.find(output_of(layer));
  add(layer, found, y.column_range(first->second, found->second.channels()));
}

void Collector::add(std::string_view layer, Statistics::iterator found, ConstMatrix x) {
  if (audio_rows_ >= 0) {
    auto& seen = seen_.try_emplace(found->first, 0).first->second;
    const std::int64_t left = std::clamp<std::int64_t>(audio_rows_ - seen, 0, x.rows);
    seen += x.rows;
    const auto padding = statistics_.find(padding_of(found->first));
    if (padding != statistics_.end() && left < x.rows) {
      const ConstMatrix rest = x.row_range(left, x.rows - left);
      if (padding->second.add(pool_, rest)) not_finite(layer, 0);
    }
    x = x.row_range(0, left);
  }
  if (x.rows > 0 && found->second.add(pool_, x)) not_finite(layer, 0);
}

void Collector::audio_rows(std::int64_t rows) {
  audio_rows_ = rows;
  seen_.clear();
}

Status Collector::status() const {
  if (!bad_layer_) return {};
  return unexpected(ErrorCode::bad_checkpoint, "what " + *bad_layer_ + " reads or writes is NaN or infinite",
                    {},
                    "the checkpoint is damaged, or the samples are too large (float audio lies in [-1, 1])");
}

}  // namespace oasr::calib
