#include "features/mel_filters.h"

#include <algorithm>
#include <cmath>

namespace oasr {
namespace {

constexpr int kBins = 201;
constexpr double kBinHz = 40.0;
constexpr double kMaxHz = 8000.0;

constexpr double kLinearHzPerMel = 200.0 / 3.0;
constexpr double kBreakHz = 1000.0;
constexpr double kBreakMel = kBreakHz / kLinearHzPerMel;

// 27 mels for a factor of 6.4 above the break.
double log_step() { return std::log(6.4) / 27.0; }

double hz_to_mel(double hz) {
  return hz < kBreakHz ? hz / kLinearHzPerMel : kBreakMel + std::log(hz / kBreakHz) / log_step();
}

double mel_to_hz(double mel) {
  return mel < kBreakMel ? mel * kLinearHzPerMel
                         : kBreakHz * std::exp(log_step() * (mel - kBreakMel));
}

}  // namespace

std::vector<MelFilter> slaney_mel_filters(int n_mels) {
  std::vector<double> edges(static_cast<std::size_t>(n_mels) + 2);
  for (std::size_t i = 0; i < edges.size(); ++i) {
    edges[i] = mel_to_hz(hz_to_mel(kMaxHz) * static_cast<double>(i) / (n_mels + 1));
  }
  std::vector<MelFilter> filters(static_cast<std::size_t>(n_mels));
  for (std::size_t i = 0; i < filters.size(); ++i) {
    const double area_scale = 2.0 / (edges[i + 2] - edges[i]);
    for (int bin = 0; bin < kBins; ++bin) {
      const double hz = bin * kBinHz;
      const double rising = (hz - edges[i]) / (edges[i + 1] - edges[i]);
      const double falling = (edges[i + 2] - hz) / (edges[i + 2] - edges[i + 1]);
      const auto height = static_cast<float>(std::max(0.0, std::min(rising, falling)));
      if (height == 0.0f) continue;
      if (filters[i].weights.empty()) filters[i].first_bin = bin;
      filters[i].weights.push_back(static_cast<float>(height * area_scale));
    }
  }
  return filters;
}

}  // namespace oasr
