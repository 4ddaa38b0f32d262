#include "layers/conv2d.h"

#include "layers/pack.h"
#include "layers/watched.h"

namespace oasr::layers {
namespace {

quant::Conv2dShape shape_of(const Conv2dSpec& spec, std::int64_t c_out, std::int64_t c_in) {
  return {.c_out = c_out, .c_in = c_in, .vertical = spec.vertical, .horizontal = spec.horizontal,
          .activation = spec.activation};
}

Result<quant::Conv2dMethodPtr> quantized_method(const Parameters& parameters, const Conv2dSpec& spec,
                                                const quant::QuantizedLayer& layer, std::vector<float> bias,
                                                const WeightOptions& options) {
  const quant::QuantMethod& method = quant::quant_method(layer.scheme);
  CHECK(method.conv2d_from_slots != nullptr && options.stored_quantized,
        "selection gives convolutions a calibrated scheme");
  const auto slots = stored_slots(parameters, spec.path, layer);
  const StoredTensor& weight = slots.at("weight");
  const Shape& stored = weight.shape;  // [C_out, height, width, C_in]
  CHECK(stored.rank() == 4 && stored[1] == spec.vertical.taps && stored[2] == spec.horizontal.taps,
        "a weight [out, height, width, in]");
  auto made = method.conv2d_from_slots(slots, shape_of(spec, stored[0], stored[3]), std::move(bias), options.methods);
  parameters.consumed(weight.bytes.size());
  return made;
}

}  // namespace

Result<Conv2d> Conv2d::load(const Parameters& parameters, Conv2dSpec spec, const WeightOptions& options) {
  std::vector<float> bias;
  if (parameters.has(spec.path + ".bias")) bias = TRY(read_floats(parameters, spec.path + ".bias"));
  if (const quant::QuantizedLayer* layer = options.scheme_of(spec.path)) {
    auto method = quantized_method(parameters, spec, *layer, std::move(bias), options);
    if (!method) {
      Error error = std::move(method).error();
      error.where = spec.path;
      return unexpected(std::move(error));
    }
    return Conv2d(std::move(spec.path), std::move(*method));
  }
  const Shape& stored = parameters.get(spec.path + ".weight").shape;
  CHECK(stored.rank() == 4 && stored[2] == spec.vertical.taps && stored[3] == spec.horizontal.taps,
        "a weight [out, in, height, width]");
  auto weight = TRY(pack_image_convolution(parameters, spec.path + ".weight", options));
  auto method = std::make_unique<quant::FloatConv2d>(shape_of(spec, stored[0], stored[1]), std::move(weight),
                                                     std::move(bias));
  return Conv2d(std::move(spec.path), std::move(method));
}

void Conv2d::forward(ExecContext& context, ImageExtent in, ConstMatrix x, Matrix y) const {
  show_input(context, path_, x);
  watched(context, path_, y.rows, [&] { return method_->forward(context, in, x, y); });
}

}  // namespace oasr::layers
