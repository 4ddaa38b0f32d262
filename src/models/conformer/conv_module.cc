#include "models/conformer/conv_module.h"

#include "kernels/activate/op.h"
#include "layers/buffer.h"
#include "layers/watched.h"
#include "models/conformer/layer_table.h"

namespace oasr::models::conformer {

Result<ConvModule> ConvModule::load(const Config& config, const std::string& path,
                                    const layers::Parameters& parameters,
                                    const layers::WeightOptions& options) {
  auto first = TRY(layers::Linear::load(parameters, linear_spec(config, path + ".pointwise_conv1"), options));
  auto second = TRY(layers::Linear::load(parameters, linear_spec(config, path + ".pointwise_conv2"), options));
  ConvModule module(path, std::move(first), std::move(second));
  module.depthwise_values_ = TRY(layers::read_floats(parameters, path + ".depthwise_conv.weight"));
  module.bias_ = TRY(layers::read_floats(parameters, path + ".depthwise_conv.bias"));
  const std::int64_t taps = config.encoder.cnn_module_kernel;
  module.depthwise_ = kernels::DepthwiseWeight::pack(
      config.encoder.output_size, taps, [&](std::int64_t c, std::span<float> out) {
        std::copy_n(module.depthwise_values_.values().begin() + c * taps, taps, out.begin());
      });
  if (!config.encoder.batch_norm) {
    module.norm_ = TRY(layers::LayerNorm::load(parameters, path + ".norm_activation"));
  }
  module.activation_ = config.encoder.activation;
  return module;
}

void ConvModule::widen(ExecContext& context, const quant::Activation& x, Matrix wide) const {
  pointwise_conv1_.forward(context, x, wide);
}

void ConvModule::gate(ExecContext& context, ConstMatrix wide, Matrix gated, ConstMatrix head) const {
  CHECK(gated.rows == head.rows + wide.rows, "room for both");
  kernels::glu(context, {.x = wide.data, .ldx = wide.stride, .m = wide.rows, .d = gated.columns,
                         .y = gated.data, .ldy = gated.stride, .head = head.data, .head_rows = head.rows,
                         .ld_head = head.stride});
}

void ConvModule::gate_of_zeros(ExecContext& context, Matrix gated) const {
  const std::int64_t d = gated.columns;
  layers::Buffer memory(3 * d, context.gpu);
  const Matrix all = memory.matrix(1, 3 * d), zeros = all.column_range(0, d), wide = all.column_range(d, 2 * d);
  clear(context.gpu, zeros.data, static_cast<std::size_t>(d) * sizeof(float));
  widen(context, ConstMatrix(zeros), wide);
  gate(context, wide, gated);
}

void ConvModule::convolve(ExecContext& context, ConstMatrix padded, Matrix y) const {
  layers::watched(context, depthwise_path_, y.rows, [&] {
    kernels::depthwise_conv1d(context, {.x = padded.data, .ldx = padded.stride, .frames = y.rows,
                                        .weight = &depthwise_, .bias = bias_.data(), .y = y.data,
                                        .ldy = y.stride});
    return kernels::NotFinite{};
  });
}

void ConvModule::activate(ExecContext& context, Matrix y) const {
  if (norm_) return norm_->forward(context, y, y, activation_);
  kernels::activate_rows(context, {.x = y.data, .ldx = y.stride, .m = y.rows, .d = y.columns,
                                   .activation = activation_});
}

void ConvModule::add(ExecContext& context, const quant::Activation& y, Matrix x) const {
  pointwise_conv2_.forward(context, y, x, x);
}

void ConvModule::list(layers::LayerList& layers) {
  layers.linears.push_back(&pointwise_conv1_);
  const std::int64_t channels = depthwise_.channels();
  layers.tables.push_back({.name = path_ + ".depthwise_conv.weight",
                           .shape = {channels, 1, depthwise_.taps()},
                           .values = &depthwise_values_});
  layers.moves.push_back([this](Gpu& gpu) { depthwise_.place(gpu); });
  layers.tables.push_back({.name = path_ + ".depthwise_conv.bias", .shape = {channels}, .values = &bias_});
  if (norm_) layers.norms.push_back(&*norm_);
  layers.linears.push_back(&pointwise_conv2_);
}

}  // namespace oasr::models::conformer
