#include "quantize/analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace oasr::quantize {
namespace {

// A product as it is served, but for the fold of its input.
Result<quant::LinearMethodPtr> standalone_method(const Workbench& bench, const calib::LayerPlan& layer,
                                                 const layers::Linear& linear) {
  return bench.planner().trial(layer, bench.weights().bias(linear.path()), linear.spec().activation);
}

quant::LinearMethodPtr exact_method(const Workbench& bench, const layers::Linear& linear) {
  return bench.weights().exact(linear.path(), bench.weights().bias(linear.path()), linear.spec().activation);
}

std::vector<float> outputs(const Workbench& bench, const quant::LinearMethod& method, ConstMatrix x) {
  return calib::outputs_of(method, x, bench.context());
}

ErrorReport compare(const std::vector<float>& exact, const std::vector<float>& rounded) {
  double error = 0, power = 0, other = 0, product = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double a = exact[i], b = rounded[i];
    error += (a - b) * (a - b);
    power += a * a;
    other += b * b;
    product += a * b;
  }
  constexpr double kLossless = 200;  // dB, beyond float32: nothing differs
  const bool same = error == 0 || power == 0;
  return {.snr_db = same ? kLossless : std::min(kLossless, 10 * std::log10(power / error)),
          .cosine = power > 0 && other > 0 ? product / std::sqrt(power * other) : 1.0};
}

// Exchanges the method of a layer for the life of the object.
class Exchanged {
 public:
  Exchanged(layers::Linear& layer, quant::LinearMethodPtr method)
      : layer_(layer), kept_(layer.exchange(std::move(method))) {}
  ~Exchanged() { layer_.exchange(std::move(kept_)); }
  Exchanged(const Exchanged&) = delete;
  Exchanged& operator=(const Exchanged&) = delete;

 private:
  layers::Linear& layer_;
  quant::LinearMethodPtr kept_;
};

double median(std::vector<float> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

Result<std::optional<ErrorReport>> error_alone(const Workbench& bench, const calib::LayerPlan& layer) {
  const layers::Linear* linear = bench.loaded().model->layers().find_linear(layer.facts.path);
  const auto found = bench.statistics().find(layer.facts.path);
  if (linear == nullptr || found == bench.statistics().end() || found->second.rows() == 0) {
    return std::optional<ErrorReport>();
  }
  const auto method = TRY(standalone_method(bench, layer, *linear));
  const auto exact = exact_method(bench, *linear);
  const ConstMatrix x = found->second.sample();
  return std::optional<ErrorReport>(compare(outputs(bench, *exact, x), outputs(bench, *method, x)));
}

Result<std::map<std::string, double>> effects(const Workbench& bench, const calib::Plan& plan,
                                              const calib::Probe& probe, const LayerProgress& progress) {
  std::map<std::string, double> found;
  double done = 0;
  for (const auto& [path, layer] : plan.layers) {
    if (progress && !progress(done++, static_cast<double>(plan.layers.size()))) {
      return unexpected(ErrorCode::cancelled, "stopped");
    }
    layers::Linear* linear = bench.loaded().model->layers().find_linear(path);
    if (linear == nullptr) continue;
    auto method = TRY(standalone_method(bench, layer, *linear));
    const Exchanged exchanged(*linear, std::move(method));
    const auto said = TRY(probe.run(*bench.loaded().model));
    found[path] = calib::divergence(probe.reference(), said);
  }
  return found;
}

Result<std::map<std::string, ErrorReport>> cumulative_errors(const Workbench& bench, const calib::Plan& plan,
                                                             const calib::Probe& probe,
                                                             const std::filesystem::path& folder) {
  ExecContext context = bench.context();
  const auto quantized = TRY(load::load_model(folder, {.link = false}, context));
  std::vector<calib::WatchedLayer> watched;
  for (const auto& [path, layer] : plan.layers)
    watched.push_back({.path = path, .channels = layer.facts.in_features});
  calib::Collector before(*context.pool, watched, 1), after(*context.pool, watched, 1);
  for (const auto& [model, observer] :
       {std::pair(bench.loaded().model.get(), &before), std::pair(quantized.model.get(), &after)}) {
    const auto said = probe.run(*model, observer);
    if (!said) return unexpected(said.error());
  }
  TRY(before.status());
  TRY(after.status());
  std::map<std::string, ErrorReport> errors;
  for (const auto& [path, layer] : plan.layers) {
    const layers::Linear* exact = bench.loaded().model->layers().find_linear(path);
    const layers::Linear* rounded = quantized.model->layers().find_linear(path);
    if (exact == nullptr || rounded == nullptr) continue;
    // The same rows: each layer draws with the same seed from as many.
    const calib::InputStatistics &x = before.statistics().at(path), &seen = after.statistics().at(path);
    if (x.rows() == 0 || x.rows() != seen.rows()) continue;
    errors[path] = compare(outputs(bench, *exact_method(bench, *exact), x.sample()),
                           outputs(bench, rounded->method(), seen.sample()));
  }
  return errors;
}

std::string cause_of(const LayerEntry& layer) {
  constexpr double kOutlier = 20;    // times the median channel
  constexpr double kClipped = 1e-3;  // share of the values
  std::vector<std::string> causes;
  const auto& channels =
      layer.channel_amax_smoothed.empty() ? layer.channel_amax : layer.channel_amax_smoothed;
  if (!channels.empty()) {
    const auto greatest = std::ranges::max_element(channels);
    const double middle = median(channels);
    if (middle > 0 && *greatest > kOutlier * middle) {
      causes.push_back(fmt::format("channel {} of the input is {:.0f} times the median one",
                                   greatest - channels.begin(), *greatest / middle));
    }
  }
  for (const RangeChoice& range : layer.ranges) {
    if (range.observer == layer.observer && range.clipped > kClipped) {
      causes.push_back(fmt::format("{:.2f} % of the input is clipped", 100 * range.clipped));
    }
  }
  if (layer.weight_scale_min > 0 && layer.weight_scale_max > kOutlier * layer.weight_scale_min) {
    causes.push_back(fmt::format("rows of the weight differ {:.0f} times",
                                 layer.weight_scale_max / layer.weight_scale_min));
  }
  return fmt::format("{}", fmt::join(causes, "; "));
}

}  // namespace oasr::quantize
