#include "layers/linear.h"

#include <algorithm>
#include <utility>

#include "layers/pack.h"
#include "layers/watched.h"
#include "quant/methods/registry.h"

namespace oasr::layers {
namespace {

std::vector<std::string> weight_names(const LinearSpec& spec) {
  std::vector<std::string> names;
  for (const std::string& part : spec.parts) names.push_back(part + ".weight");
  return names;
}

// `<part>.bias` of all parts; empty when none has one.
Result<std::vector<float>> read_bias(const Parameters& parameters,
                                     const std::vector<std::string>& parts) {
  std::vector<float> bias;
  const auto has_bias = [&](const std::string& part) { return parameters.has(part + ".bias"); };
  if (std::ranges::none_of(parts, has_bias)) return bias;
  for (const std::string& part : parts) {
    if (has_bias(part)) {
      const auto values = TRY(read_floats(parameters, part + ".bias"));
      bias.insert(bias.end(), values.begin(), values.end());
    } else {
      const std::int64_t rows = parameters.get(part + ".weight").shape[0];
      bias.insert(bias.end(), static_cast<std::size_t>(rows), 0.0f);
    }
  }
  return bias;
}

// From the path's own tensors, or round to nearest from full precision.
Result<quant::LinearMethodPtr> quantized_method(const Parameters& parameters, const LinearSpec& spec,
                                                const quant::QuantizedLayer& layer,
                                                std::vector<float> bias,
                                                const WeightOptions& options) {
  const quant::QuantMethod& method = quant::quant_method(layer.scheme);
  if (options.stored_quantized) {
    const auto slots = stored_slots(parameters, spec.path, layer);
    auto made = method.from_slots(layer, slots, std::move(bias), spec.activation, options.methods);
    for (const auto& [suffix, tensor] : slots) parameters.consumed(tensor.bytes.size());
    return made;
  }
  CHECK(method.from_floats != nullptr, "selection refuses what needs calibration");
  const StackedRows rows = TRY(StackedRows::open(parameters, weight_names(spec)));
  auto made = method.from_floats({.n = rows.rows(),
                                  .k = rows.columns(),
                                  .rows = [&](std::int64_t n, std::span<float> out) { rows.read(n, out); },
                                  .bias = std::move(bias),
                                  .activation = spec.activation},
                                 options.methods);
  parameters.consumed(rows.bytes());
  return made;
}

}  // namespace

Result<Linear> Linear::load(const Parameters& parameters, LinearSpec spec,
                            const WeightOptions& options) {
  const quant::QuantizedLayer* layer = options.scheme_of(spec.path);
  const bool own = parameters.has(spec.path + ".weight") || (layer != nullptr && options.stored_quantized);
  if (spec.parts.empty() || own) spec.parts = {spec.path};
  auto bias = TRY(read_bias(parameters, spec.parts));
  if (layer != nullptr) {
    auto method = quantized_method(parameters, spec, *layer, std::move(bias), options);
    if (!method) {
      Error error = std::move(method).error();
      error.where = spec.path;
      return unexpected(std::move(error));
    }
    return Linear(std::move(spec), std::move(*method));
  }
  auto packed = std::make_shared<kernels::PackedWeight>(
      TRY(pack_stacked(parameters, spec.path + ".weight", weight_names(spec), options)));
  auto method = std::make_unique<quant::FloatLinear>(std::move(packed), std::move(bias), spec.activation);
  return Linear(std::move(spec), std::move(method));
}

void Linear::forward(ExecContext& context, const quant::Activation& x,
                     const quant::Residual& residual, Matrix y) const {
  show_input(context, spec_.path, x);
  watched(context, spec_.path, x.rows(),
          [&] { return method_->forward(context, x, residual, y); });
  show_output(context, spec_.path, y);
}

void Linear::forward(ExecContext& context, const quant::Activation& x, quant::Activation& y) const {
  if (consumer_ == nullptr) {
    forward(context, x, quant::Residual(), quant::ActivationAccess::floats_out(y));
    return;
  }
  show_input(context, spec_.path, x);
  watched(context, spec_.path, x.rows(),
          [&] { return method_->forward_into(context, x, *consumer_, y); });
}

std::unique_ptr<quant::LinearMethod> Linear::exchange(std::unique_ptr<quant::LinearMethod> method) {
  CHECK(!linked() && method->in_features() == method_->in_features() &&
            method->out_features() == method_->out_features(),
        "a method of another shape, or of a linked layer");
  return std::exchange(method_, std::move(method));
}

void Linear::link(const Linear& consumer) {
  CHECK(method_->emits_int8() && consumer.method_->static_input() != nullptr,
        "a link between layers that can not have one");
  consumer_ = consumer.method_->static_input();
}

}  // namespace oasr::layers
