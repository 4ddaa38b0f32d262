// The time of every layer of a recognizer's runs.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "device/run_observer.h"
#include "load/quantization_report.h"
#include "oasr/recognizer.h"

namespace oasr {

class LayerProfile final : public RunObserver {
 public:
  // Starts from nothing, or stops.
  void measure(bool on);

  void not_finite(std::string_view, std::int64_t) override {}  // the model's state tells the engine
  bool wants_times() const override { return on_; }
  void layer_time(std::string_view layer, const LayerCall& call) override;
  void section_time(double seconds, std::int64_t kernels) override;

  // In the order of the first call; of a GPU kBetweenLayers is the last.
  std::vector<LayerTime> times(const load::QuantizationReport& report) const;

 private:
  bool on_ = false;
  std::vector<LayerTime> times_;
  std::map<std::string, std::size_t, std::less<>> index_;
  LayerTime sections_;  // of a GPU, the layers included
};

}  // namespace oasr
