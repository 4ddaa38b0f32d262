#include "layers/linear.h"

#include "layers/pack.h"

namespace oasr::layers {

FloatLinear::FloatLinear(std::shared_ptr<const kernels::PackedWeight> weight,
                         std::vector<float> bias, kernels::Activation activation)
    : weight_(std::move(weight)), bias_(std::move(bias)), activation_(activation) {
  CHECK(bias_.empty() || static_cast<std::int64_t>(bias_.size()) == weight_->n(),
        "a bias of another size than the output");
}

void FloatLinear::forward(ExecContext& context, ConstMatrix x, ConstMatrix residual,
                          Matrix y) const {
  CHECK(x.columns == weight_->k() && y.columns == weight_->n() && x.rows == y.rows,
        "shapes do not fit the weight");
  kernels::linear(context, {.x = x.data,
                            .ldx = x.stride,
                            .m = x.rows,
                            .weight = weight_.get(),
                            .bias = bias_.empty() ? nullptr : bias_.data(),
                            .activation = activation_,
                            .residual = residual.data,
                            .ldr = residual.stride,
                            .y = y.data,
                            .ldy = y.stride});
}

Result<Linear> Linear::load(const Parameters& parameters, LinearSpec spec,
                            const WeightOptions& options) {
  if (spec.parts.empty()) spec.parts = {spec.path};
  std::vector<std::string> weights;
  std::vector<float> bias;
  bool has_bias = false;
  for (const std::string& part : spec.parts) {
    weights.push_back(part + ".weight");
    if (parameters.has(part + ".bias")) {
      const auto values = TRY(read_floats(parameters, part + ".bias"));
      bias.insert(bias.end(), values.begin(), values.end());
      has_bias = true;
    } else {
      const std::int64_t rows = parameters.get(weights.back()).shape[0];
      bias.insert(bias.end(), static_cast<std::size_t>(rows), 0.0f);
    }
  }
  if (!has_bias) bias.clear();
  auto packed = std::make_shared<const kernels::PackedWeight>(
      TRY(pack_stacked(parameters, weights, options)));
  auto method = std::make_unique<FloatLinear>(std::move(packed), std::move(bias), spec.activation);
  return Linear(std::move(spec), std::move(method));
}

}  // namespace oasr::layers
