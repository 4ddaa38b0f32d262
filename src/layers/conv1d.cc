#include "layers/conv1d.h"

#include "layers/pack.h"
#include "layers/watched.h"

namespace oasr::layers {
namespace {

Result<quant::Conv1dMethodPtr> quantized_method(const Parameters& parameters, const Conv1dSpec& spec,
                                                const quant::QuantizedLayer& layer,
                                                std::vector<float> bias,
                                                const WeightOptions& options) {
  const quant::QuantMethod& method = quant::quant_method(layer.scheme);
  CHECK(method.conv1d_from_slots != nullptr, "selection gives convolutions a static scheme");
  const auto slots = stored_slots(parameters, spec.path, layer);
  const Shape& shape = slots.at("weight").shape;  // [C_out, 3, C_in]
  return method.conv1d_from_slots(slots,
                                  {.c_out = shape[0],
                                   .c_in = shape[2],
                                   .stride = spec.stride,
                                   .bias = std::move(bias),
                                   .activation = spec.activation},
                                  options.methods);
}

}  // namespace

Result<Conv1d> Conv1d::load(const Parameters& parameters, Conv1dSpec spec,
                            const WeightOptions& options) {
  auto bias = TRY(read_floats(parameters, spec.path + ".bias"));
  if (const quant::QuantizedLayer* layer = options.scheme_of(spec.path)) {
    auto method = quantized_method(parameters, spec, *layer, std::move(bias), options);
    if (!method) {
      Error error = std::move(method).error();
      error.where = spec.path;
      return unexpected(std::move(error));
    }
    return Conv1d(std::move(spec.path), std::move(*method));
  }
  auto weight = TRY(pack_convolution(parameters, spec.path + ".weight", options));
  auto method = std::make_unique<quant::FloatConv1d>(std::move(weight), std::move(bias), spec.stride,
                                                     spec.activation);
  return Conv1d(std::move(spec.path), std::move(method));
}

void Conv1d::forward(ExecContext& context, Matrix padded, ConstMatrix residual, Matrix y) const {
  show_input(context, path_, padded.row_range(1, padded.rows - 2));
  watched(context, path_, y.rows,
          [&] { return method_->forward(context, padded, residual, y); });
}

}  // namespace oasr::layers
